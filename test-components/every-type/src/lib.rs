//! One function per WIT type, each returning its value unchanged.

wit_bindgen::generate!({ path: "wit" });

use exports::test::every_type::echo::{self, Document, Level, Permission, Point, Shape};

struct EveryType;

/// `name: Type` becomes a function from that type to itself.
macro_rules! echo {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(fn $name(value: $type) -> $type {
            value
        })*
    };
}

impl echo::Guest for EveryType {
    echo! {
        echo_bool: bool,
        echo_u8: u8,
        echo_u16: u16,
        echo_u32: u32,
        echo_u64: u64,
        echo_s8: i8,
        echo_s16: i16,
        echo_s32: i32,
        echo_s64: i64,
        echo_f32: f32,
        echo_f64: f64,
        echo_char: char,
        echo_string: String,
        echo_bytes: Vec<u8>,
        echo_list: Vec<i32>,
        echo_nested_list: Vec<Vec<String>>,
        echo_record: Document,
        echo_records: Vec<Point>,
        echo_tuple: (u32, String),
        echo_nested_tuple: (u8, (bool, Option<char>)),
        echo_variant: Shape,
        echo_enum: Level,
        echo_flags: Permission,
        echo_option: Option<String>,
        echo_option_option: Option<Option<u32>>,
        echo_result: Result<u32, String>,
        echo_result_empty: Result<(), ()>,
        echo_result_ok_only: Result<u32, ()>,
        echo_result_err_only: Result<(), String>,
        echo_results: Vec<Result<u32, String>>,
    }

    fn echo_mixed(
        count: u32,
        display_name: String,
        how: Level,
        limit: Option<u8>,
    ) -> (u32, String, Level, Option<u8>) {
        (count, display_name, how, limit)
    }
}

impl Guest for EveryType {
    fn greet(name: String) -> String {
        format!("Hello, {name}!")
    }

    fn nothing() {}
}

export!(EveryType);
