//! Panics as real guests do: a message on stderr, then a trap.

wit_bindgen::generate!({ path: "wit" });

struct Panic;

impl Guest for Panic {
    fn panic_with(message: String) -> String {
        panic!("{message}")
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

export!(Panic);
