//! A component as large as those that people write: the libraries in it make three megabytes of it.

wit_bindgen::generate!({ path: "wit" });

use minijinja::Environment;
use pulldown_cmark::{Options, Parser, html};
use regex::Regex;

struct Library;

fn told(error: impl ToString) -> String {
    error.to_string()
}

impl Guest for Library {
    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }

    fn echo(text: String) -> String {
        text
    }

    fn find(pattern: String, text: String) -> Result<Vec<String>, String> {
        let pattern = Regex::new(&pattern).map_err(told)?;
        Ok(pattern.find_iter(&text).map(|found| found.as_str().to_owned()).collect())
    }

    fn render(markdown: String) -> String {
        let mut page = String::new();
        html::push_html(&mut page, Parser::new_ext(&markdown, Options::all()));
        page
    }

    fn fill(template: String, values: String) -> Result<String, String> {
        let values: serde_json::Value = serde_json::from_str(&values).map_err(told)?;
        Environment::new().render_str(&template, values).map_err(told)
    }

    fn convert(toml: String) -> Result<String, String> {
        let value: toml::Value = toml.parse().map_err(told)?;
        serde_json::to_string_pretty(&value).map_err(told)
    }
}

export!(Library);
