//! Small tools for plain text. The interface, with its documentation, is `wit/text.wit`; nothing here knows of MCP.

wit_bindgen::generate!({ path: "wit" });

use exports::example::text::tools::{Guest, Occurrence, Size};

struct TextTools;

impl Guest for TextTools {
    fn count_words(text: String) -> Size {
        Size {
            words: count(text.split_whitespace()),
            characters: count(text.chars()),
            lines: count(text.lines()),
        }
    }

    fn slugify(title: String) -> String {
        let letters: String = title.to_lowercase().chars().map(without_accent).collect();
        let words: Vec<&str> = letters
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        words.join("-")
    }

    fn find_all(text: String, needle: String, ignore_case: Option<bool>) -> Vec<Occurrence> {
        let ignore_case = ignore_case.unwrap_or(false);
        let needle: Vec<char> = needle.chars().map(|c| folded(c, ignore_case)).collect();
        if needle.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (line, line_text) in (1..).zip(text.lines()) {
            let letters: Vec<char> = line_text.chars().map(|c| folded(c, ignore_case)).collect();
            let mut start = 0;
            while let Some(rest) = letters.get(start..).filter(|rest| rest.len() >= needle.len()) {
                if rest.starts_with(&needle) {
                    found.push(Occurrence {
                        line,
                        column: start as u32 + 1,
                        line_text: line_text.to_owned(),
                    });
                    start += needle.len();
                } else {
                    start += 1;
                }
            }
        }
        found
    }

    fn wrap(text: String, width: Option<u32>) -> Result<String, String> {
        let width = width.unwrap_or(80) as usize;
        if width == 0 {
            return Err("the width must be at least 1".to_owned());
        }
        let mut paragraphs = vec![Vec::new()];
        for line in text.lines() {
            if line.trim().is_empty() {
                paragraphs.push(Vec::new());
            } else if let Some(words) = paragraphs.last_mut() {
                words.extend(line.split_whitespace());
            }
        }
        let filled = paragraphs
            .iter()
            .filter(|words| !words.is_empty())
            .map(|words| filled(words, width));
        Ok(filled.collect::<Vec<_>>().join("\n\n"))
    }
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// A character for comparing. One whose lower case is several characters stays as it is, so that columns stay right.
fn folded(c: char, ignore_case: bool) -> char {
    let mut lower = c.to_lowercase();
    match (ignore_case, lower.next(), lower.next()) {
        (true, Some(single), None) => single,
        _ => c,
    }
}

/// A lower-case Latin letter without what stands above or below it, as text because `ß` is two letters without.
fn without_accent(c: char) -> String {
    let plain = match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'æ' => "ae",
        'ç' | 'ć' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => "e",
        'ğ' => "g",
        'ì'..='ï' | 'ī' | 'į' | 'ı' => "i",
        'ł' | 'ľ' => "l",
        'ñ' | 'ń' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => "o",
        'œ' => "oe",
        'ř' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ț' => "t",
        'þ' => "th",
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => "u",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        // Accents that follow their letter as characters of their own.
        '\u{300}'..='\u{36f}' => "",
        other => return other.to_string(),
    };
    plain.to_owned()
}

/// Words as lines of at most `width` characters, except where one word alone is longer.
fn filled(words: &[&str], width: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in words {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            column = 0;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

export!(TextTools);
