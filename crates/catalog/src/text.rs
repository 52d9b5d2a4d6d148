//! Remote text for terminals and pages.

/// Text that steers nothing: no control characters but line breaks and tabs, and none that reorder what is shown.
pub fn plain(text: &str) -> String {
    text.chars().filter(|c| !steers(*c) || matches!(c, '\n' | '\t')).collect()
}

/// The same on one line.
pub fn plain_line(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// JSON whose text is all there, with what steers a terminal written as `\u…`.
pub fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if steers(c) && !matches!(c, '\n' | '\t') {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                plain.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

/// Would this character do something to a terminal, or to the text around it, besides being shown?
pub fn steers(c: char) -> bool {
    let reorders = matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{061C}');
    // Characters that nobody sees, in which instructions have been hidden.
    let is_hidden = matches!(
        c,
        '\u{E0000}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}' | '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{00AD}'
    );
    c.is_control() || reorders || is_hidden || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(plain("a\u{1b}[31mb\u{9b}c\u{7f}\td\ne\r"), "a[31mbc\td\ne");
        assert_eq!(plain("a\u{202e}b\u{2066}c\u{e0041}"), "abc");
        assert_eq!(plain_line(" a\r\n\tb \u{1b} c "), "a b c");
    }

    #[test]
    fn json_loses_nothing() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}\u{7f}\u{202e}\u{e0041}\n\"\\" });
        let json = plain_json(&value.to_string());
        assert!(!json.contains(|c: char| steers(c)), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), value);
    }
}
