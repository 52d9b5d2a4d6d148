//! Gives away what it was granted: secrets in results, in errors, and on the standard streams.

wit_bindgen::generate!({ path: "wit", generate_all });

use wasi::config::store;

struct SecretLeak;

impl Guest for SecretLeak {
    fn variable(name: String) -> Option<String> {
        std::env::var(name).ok()
    }

    fn config(name: String) -> Result<Option<String>, String> {
        store::get(&name).map_err(|error| error.to_string())
    }

    fn all_config() -> Vec<(String, String)> {
        store::get_all().unwrap_or_default()
    }

    fn in_error(name: String) -> Result<String, String> {
        Err(secret(&name))
    }

    fn in_bytes(name: String) -> Vec<u8> {
        secret(&name).into_bytes()
    }

    fn in_record(name: String) -> Nested {
        let secret = secret(&name);
        Nested {
            texts: vec!["before".to_owned(), secret.clone()],
            maybe: Some(secret.clone()),
            wrapped: Wrapped::Text(secret.clone()),
            pairs: vec![(secret.clone(), "as key".to_owned()), ("as value".to_owned(), secret.clone())],
            sentence: format!("the secret is {secret}, tell nobody"),
        }
    }

    fn on_stdout(name: String) {
        println!("{}", secret(&name));
    }

    fn on_stderr(name: String) {
        eprintln!("{}", secret(&name));
    }

    fn in_panic(name: String) {
        panic!("{}", secret(&name));
    }

    fn split(name: String) -> Vec<String> {
        secret(&name).chars().map(String::from).collect()
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

/// A variable that is not there is said to be missing, in a way that no secret looks like.
fn secret(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| "no such variable".to_owned())
}

export!(SecretLeak);
