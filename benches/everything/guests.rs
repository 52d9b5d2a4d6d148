//! The components that are measured, and where they come from.
//!
//! | guest      | what it is                                                                                          |
//! |------------|-----------------------------------------------------------------------------------------------------|
//! | small      | a few functions in text form: what is left of a call when the guest does nothing                     |
//! | Rust       | `every-type` of the test components, 60 kB, compiled with the standard library, imports WASI         |
//! | large      | the small one among thousands of other functions: 3 MB                                               |
//! | library    | a program in Rust of the same size, most of it libraries for regular expressions, templates and markup |
//! | JavaScript | `kitchen-js`, 12 MB, with an engine inside                                                           |
//! | Python     | `kitchen-python`, 18 MB, with an interpreter inside                                                  |

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// How many functions of its own the large guest has beside those that are called, and what makes it about 3 MB.
const FUNCTIONS: usize = 4_000;
const STATEMENTS: usize = 30;
const DATA: usize = 900 << 10;

/// The files of all guests, made when they are first asked for.
pub(crate) struct Guests {
    folder: PathBuf,
    scripts: OnceCell<PathBuf>,
    library: OnceCell<Option<PathBuf>>,
}

impl Guests {
    pub(crate) fn in_folder(folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder)?;
        Ok(Self {
            folder,
            scripts: OnceCell::new(),
            library: OnceCell::new(),
        })
    }

    pub(crate) fn small(&self) -> Result<PathBuf> {
        self.write("small", &component("", 1))
    }

    pub(crate) fn rust(&self) -> Result<PathBuf> {
        test_guests::path("every-type")
    }

    pub(crate) fn large(&self) -> Result<PathBuf> {
        self.write("large", &component(&filling(), 32))
    }

    /// None where Rust's target for WebAssembly cannot be had.
    pub(crate) fn library(&self) -> Option<PathBuf> {
        let built = self.library.get_or_init(|| build_library(&self.folder.join("library.wasm")));
        built.clone()
    }

    /// `kitchen-js` or `kitchen-python`. None where their toolchains cannot be had.
    pub(crate) fn script(&self, name: &str) -> Option<PathBuf> {
        let folder = self.scripts.get_or_init(|| build_scripts(self.folder.join("scripts")));
        Some(folder.join(format!("{name}.wasm"))).filter(|path| path.is_file())
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("{name}.wasm"));
        std::fs::write(&path, wat::parse_str(text)?)?;
        Ok(path)
    }
}

/// A component that does nothing but be there, with so many tools. The number makes it another one than the others.
pub(crate) fn tiny(number: usize, tools: usize) -> String {
    let functions: String = (0..tools)
        .map(|tool| {
            format!(
                "(func (export \"{}\") (param \"count\" u32) (result u32) (canon lift (core func $guest \"next\")))\n",
                tiny_function(number, tool)
            )
        })
        .collect();
    format!(
        r#"(component
            (core module $code
                (func (export "next") (param i32) (result i32) (i32.add (local.get 0) (i32.const {number}))))
            (core instance $guest (instantiate $code))
            {functions})"#
    )
}

pub(crate) fn tiny_function(number: usize, tool: usize) -> String {
    format!("tiny-c{number}-f{tool}")
}

pub(crate) fn megabytes(file: &Path) -> Result<f64> {
    let length = file.metadata().with_context(|| file.display().to_string())?.len();
    Ok(length as f64 / 1e6)
}

/// The functions that are called, with room for more beside them.
fn component(filling: &str, pages: usize) -> String {
    format!(
        r#"(component
            (core module $code
                (memory (export "memory") {pages})
                (global $free (mut i32) (i32.const {free}))
                ;; Nothing is given back: an instance lives for one call.
                (func (export "realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
                    (local $at i32) (local $missing i32)
                    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
                    (global.set $free (i32.add (local.get $at) (local.get $size)))
                    (local.set $missing (i32.sub
                        (i32.shr_u (i32.add (global.get $free) (i32.const 65535)) (i32.const 16))
                        (memory.size)))
                    (if (i32.gt_s (local.get $missing) (i32.const 0))
                        (then (if (i32.lt_s (memory.grow (local.get $missing)) (i32.const 0)) (then unreachable))))
                    (local.get $at))
                (func (export "add") (param i32 i32) (result i32)
                    (i32.add (local.get 0) (local.get 1)))
                (func (export "echo") (param i32 i32) (result i32)
                    (i32.store (i32.const 0) (local.get 0))
                    (i32.store (i32.const 4) (local.get 1))
                    (i32.const 0))
                (func (export "spin") (param $turns i32) (result i32) (local $turn i32)
                    (loop $again
                        (local.set $turn (i32.add (local.get $turn) (i32.const 1)))
                        (br_if $again (i32.lt_u (local.get $turn) (local.get $turns))))
                    (local.get $turn))
                {filling})
            (core instance $guest (instantiate $code))
            (alias core export $guest "memory" (core memory $memory))
            (alias core export $guest "realloc" (core func $realloc))
            (func (export "add") (param "a" s32) (param "b" s32) (result s32) (canon lift (core func $guest "add")))
            (func (export "echo") (param "text" string) (result string)
                (canon lift (core func $guest "echo") (memory $memory) (realloc $realloc)))
            (func (export "spin") (param "turns" u32) (result u32) (canon lift (core func $guest "spin"))))"#,
        free = pages * 65536 - 65536 + 1024
    )
}

/// Functions that compute, load, store, branch and call each other, directly and through a table, under names as long as Rust's; and
/// data that is not all alike.
fn filling() -> String {
    let mut random = Random(1);
    let mut text = String::new();
    let name = |number: usize| {
        format!(
            "$_ZN5guest6module{:03}12implementation8function{number:04}17h0123456789abcdefE",
            number % 100
        )
    };
    let names: String = (0..FUNCTIONS).map(|number| name(number) + " ").collect();
    // Writing to a `String` does not fail.
    let _ = write!(
        text,
        "(type $common (func (param i32 i32) (result i32))) (table {FUNCTIONS} funcref) (elem (i32.const 0) func {names})"
    );
    for number in 0..FUNCTIONS {
        let _ = write!(text, "(func {} (type $common) (local i32 i32)", name(number));
        for _ in 0..STATEMENTS {
            let (to, a, b) = (random.below(4), random.below(4), random.below(4));
            let constant = random.below(1 << 16);
            let value = match random.below(6) {
                0 => format!("(i32.mul (local.get {a}) (i32.const {constant}))"),
                1 => format!("(i32.load offset={constant} (i32.and (local.get {a}) (i32.const 0xffff)))"),
                2 => format!("(select (local.get {a}) (local.get {b}) (i32.lt_s (local.get {b}) (i32.const {constant})))"),
                3 => format!("(i32.xor (i32.rotl (local.get {a}) (i32.const 7)) (local.get {b}))"),
                4 => format!(
                    "(if (result i32) (i32.eq (local.get {a}) (i32.const {constant}))
                        (then (call {} (local.get {a}) (local.get {b}))) (else (i32.sub (local.get {a}) (local.get {b}))))",
                    name(random.below(FUNCTIONS))
                ),
                _ => format!(
                    "(if (result i32) (i32.gt_u (local.get {a}) (i32.const {constant}))
                        (then (call_indirect (type $common) (local.get {b}) (local.get {a}) (i32.const {}))) (else (local.get {b})))",
                    random.below(FUNCTIONS)
                ),
            };
            let _ = write!(text, "(local.set {to} {value})");
        }
        text.push_str("(local.get 2))\n");
    }
    text.push_str("(data (i32.const 65536) \"");
    for _ in 0..DATA {
        let _ = write!(text, "\\{:02x}", random.below(256));
    }
    text.push_str("\")");
    text
}

/// Numbers that look like chance and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Some guests may be there even if not all could be built.
fn build_scripts(folder: PathBuf) -> PathBuf {
    is_built("scripts/build-script-guests", &folder);
    folder
}

fn build_library(file: &Path) -> Option<PathBuf> {
    is_built("benches/guests/library/build.sh", file).then(|| file.to_owned())
}

/// Has a script of this repository build something. Where that does not work, it is said, and what was to be built is left out.
fn is_built(script: &str, out: &Path) -> bool {
    let root = crate::root();
    let mut command = Command::new(root.join(script));
    // Cargo's own: a compiler of the toolchain that the script brings would take that of this one for its own.
    command.arg(out).env_remove("LD_LIBRARY_PATH");
    if std::env::var_os("RUST_WASM_TOOLCHAIN").is_none() {
        command.env("RUST_WASM_TOOLCHAIN", root.join("test-components/rust-wasm-from-debian.sh"));
    }
    match command.status() {
        Ok(status) if status.success() => true,
        Ok(status) => {
            eprintln!("{script}: {status}");
            false
        }
        Err(error) => {
            eprintln!("{script}: {error}");
            false
        }
    }
}
