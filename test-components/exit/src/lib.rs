//! Leaves in the middle of a call instead of returning.

wit_bindgen::generate!({ path: "wit" });

struct Exit;

impl Guest for Exit {
    fn exit_three() -> String {
        std::process::exit(3)
    }

    fn exit_zero() -> String {
        std::process::exit(0)
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
}

export!(Exit);
