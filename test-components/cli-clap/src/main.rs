//! `depot` keeps notes, or would: it is a command line with every kind of flag, argument and subcommand that clap has.
//!
//! A command that has nothing better to do prints what clap made of its arguments, so that a test sees which flag was
//! set, and to what.

mod parse;

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};

/// Keep notes in a depot
///
/// Notes have a title, tags and labels. They live in a store, which is a directory, and can be copied to remotes.
#[derive(Parser, Serialize)]
// Without a bin_name clap takes the name from argv[0], which is whatever the host makes of the file's name.
#[command(name = "depot", bin_name = "depot", version, after_help = ROOT_EXAMPLES)]
struct Cli {
    /// Say more; repeat to say even more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,

    /// Settings to use
    #[arg(long, value_name = "NAME", default_value = "default", global = true)]
    profile: String,

    /// Directory with the notes
    #[arg(long, value_name = "DIR", default_value = ".")]
    store: PathBuf,

    /// Touch no file
    #[arg(short = 'n', long)]
    dry_run: bool,

    #[command(subcommand)]
    command: Command,
}

const ROOT_EXAMPLES: &str = "\
Examples:
  depot add --notebook work --tag urgent 'Call Ada'
  depot --store ./notes list --format json

The store has to be named before the command.";

#[derive(Subcommand, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Command {
    /// Add a note
    ///
    /// The note is put at the end of its notebook. With --expires it is dropped once that time has passed, counted from
    /// now.
    #[command(after_help = ADD_EXAMPLES)]
    Add(Add),

    /// List the notes
    #[command(visible_alias = "ls")]
    List(List),

    /// Manage the remotes
    #[command(subcommand)]
    Remote(Remote),

    /// Show all tags, or change them
    #[command(args_conflicts_with_subcommands = true)]
    Tag(Tag),

    /// Run a program with the notes
    Exec(Exec),

    /// Count the lines, words and bytes of the standard input
    Count(Count),

    /// Print files, one after the other
    Cat(Cat),

    /// Write text to a file
    Write(WriteFile),

    /// End with an exit code
    Fail(Fail),

    /// Print all arguments of the program as a JSON array
    Echo(Echo),

    /// Print bytes that are no UTF-8
    Bytes,

    /// First of two commands whose names differ in one character
    #[command(name = "app1-cmd")]
    #[serde(rename = "app1-cmd")]
    Dash(App1),

    /// Second of two commands whose names differ in one character
    #[command(name = "app1_cmd")]
    #[serde(rename = "app1_cmd")]
    Underscore(App1),

    /// Print what the author of the program needs to know
    #[command(hide = true)]
    DebugDump(DebugDump),
}

const ADD_EXAMPLES: &str = "\
Examples:
  depot add --notebook work --label from=mail 'Call Ada'
  depot add --notebook home --priority -2 --expires 1h30m Tea 'Green, not black'";

#[derive(Args, Serialize)]
struct Add {
    /// Title of the note
    title: String,

    /// Text of the note
    body: Option<String>,

    /// Notebook to add the note to
    #[arg(short = 'b', long)]
    notebook: String,

    /// Keep the note at the top
    #[arg(short, long)]
    pinned: bool,

    /// Copy the note to the remotes (the default)
    #[arg(long, overrides_with = "no_sync")]
    sync: bool,

    /// Do not copy the note to the remotes
    #[arg(long, overrides_with = "sync")]
    no_sync: bool,

    /// Make the note searchable
    #[arg(long, action = ArgAction::Set, value_name = "BOOL", default_value_t = true)]
    index: bool,

    /// Urgency; below zero is less than usual
    #[arg(long, allow_negative_numbers = true, default_value_t = 0)]
    priority: i32,

    /// How many copies to keep
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    copies: Option<u8>,

    /// Share of the page, from 0 to 1
    #[arg(long, value_name = "FLOAT")]
    weight: Option<f64>,

    /// What kind of note it is
    #[arg(short, long, value_enum, default_value_t = Kind::Memo)]
    kind: Kind,

    /// Who wrote it
    #[arg(long, default_value = "nobody in particular")]
    author: String,

    /// Tag of the note; may be repeated
    #[arg(short, long)]
    tag: Vec<String>,

    /// Label of the note; may be repeated
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = parse::key_value)]
    label: Vec<(String, String)>,

    /// People to tell, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    notify: Vec<String>,

    /// Drop the note after this time, such as 90s or 1h30m
    #[arg(long, value_name = "DURATION", value_parser = parse::milliseconds)]
    expires: Option<u64>,

    /// Print nothing but errors
    #[arg(short = 'q')]
    quiet: bool,

    /// Page to start on
    #[arg(short = 'P', value_name = "PAGE")]
    page: Option<u32>,

    /// Deprecated: use --tag
    #[arg(long)]
    category: Option<String>,

    /// Number of this call, for the author of the program
    #[arg(long, hide = true)]
    trace_id: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Something to remember
    Memo,
    /// Something to do
    Task,
    /// Something to read
    WebLink,
}

#[derive(Args, Serialize)]
struct List {
    /// Form of the list
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Only notes that have these values
    #[arg(long, value_name = "JSON", value_parser = parse::json)]
    filter: Option<Value>,

    /// At most this many notes
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    /// Color the list
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    color: Option<When>,
}

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Format {
    Json,
    JsonLines,
    Yaml,
    Table,
}

#[derive(Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Remote {
    /// Add a remote
    Add(RemoteAdd),
    /// Forget remotes
    #[command(alias = "rm")]
    Remove(RemoteRemove),
    /// Manage who may reach a remote
    #[command(subcommand)]
    Access(Access),
}

#[derive(Args, Serialize)]
struct RemoteAdd {
    /// Name of the remote
    name: String,

    /// Where it is
    url: String,

    /// Address to connect to, instead of that of the URL
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,

    /// Port to connect to
    #[arg(long, default_value_t = 443)]
    port: u16,

    /// Give up after this time
    #[arg(long, value_name = "DURATION", value_parser = parse::milliseconds, default_value = "30s")]
    timeout: u64,

    /// Headers to send
    #[arg(short = 'H', long, value_name = "KEY=VALUE", value_parser = parse::key_value)]
    header: Vec<(String, String)>,
}

#[derive(Args, Serialize)]
struct RemoteRemove {
    /// Names of the remotes
    #[arg(required = true)]
    name: Vec<String>,

    /// Remove the notes there too
    #[arg(long, requires = "yes")]
    purge: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Subcommand, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Access {
    /// Let a network reach the remote
    Allow(AccessAllow),
}

#[derive(Args, Serialize)]
struct AccessAllow {
    /// Name of the remote
    name: String,

    /// Network in CIDR notation
    #[arg(long, value_name = "CIDR", value_parser = parse::network, required = true)]
    network: Vec<String>,
}

#[derive(Args, Serialize)]
struct Tag {
    /// How to sort the tags
    #[arg(long, value_parser = ["name", "count"], default_value = "name")]
    sort: String,

    #[command(subcommand)]
    command: Option<TagCommand>,
}

#[derive(Subcommand, Serialize)]
#[serde(rename_all = "kebab-case")]
enum TagCommand {
    /// Give a tag another name
    Rename(TagRename),
    /// Delete tags
    Delete(TagDelete),
}

#[derive(Args, Serialize)]
struct TagRename {
    /// Name now
    old: String,
    /// Name from now on
    new: String,
}

#[derive(Args, Serialize)]
struct TagDelete {
    /// Names of the tags
    #[arg(required = true)]
    tag: Vec<String>,
}

#[derive(Args, Serialize)]
struct Exec {
    /// Program to run
    program: String,

    /// Variables to set for the program
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = parse::key_value)]
    env: Vec<(String, String)>,

    /// Arguments of the program
    #[arg(last = true)]
    args: Vec<String>,
}

#[derive(Args, Serialize)]
struct Count {
    /// Count the lines only
    #[arg(short, long)]
    lines: bool,

    /// Count the words only
    #[arg(short, long)]
    words: bool,

    /// Count the bytes only
    #[arg(short = 'c', long)]
    bytes: bool,
}

#[derive(Args, Serialize)]
struct Cat {
    /// Files to print
    #[arg(required = true)]
    file: Vec<PathBuf>,

    /// Number the lines
    #[arg(long)]
    number: bool,
}

#[derive(Args, Serialize)]
struct WriteFile {
    /// File to write to
    file: PathBuf,

    /// Text to write
    text: String,

    /// Add to the end of the file
    #[arg(short, long)]
    append: bool,
}

#[derive(Args, Serialize)]
struct Fail {
    /// Exit code
    #[arg(long, value_name = "N")]
    code: u8,

    /// What to say on the standard error
    #[arg(long, default_value = "failed as asked")]
    message: String,
}

#[derive(Args, Serialize)]
struct Echo {
    /// Any words
    word: Vec<String>,

    /// A flag without a value
    #[arg(short, long)]
    loud: bool,

    /// A flag with a value
    #[arg(short, long)]
    text: Option<String>,

    /// A number
    #[arg(long, allow_negative_numbers = true)]
    number: Option<i64>,

    /// A flag that may be repeated
    #[arg(long, value_name = "ITEM")]
    item: Vec<String>,

    /// A flag whose value may be left out
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    color: Option<When>,
}

#[derive(Args, Serialize)]
struct App1 {
    /// Any text
    #[arg(long)]
    text: Option<String>,
}

#[derive(Args, Serialize)]
struct DebugDump {
    /// Also what is secret
    #[arg(long)]
    secrets: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::List(list) => print(&list_notes(list)),
        Command::Count(count) => count_input(count),
        Command::Cat(cat) => print_files(&cli.store, cat),
        Command::Write(write) => write_file(&cli.store, write),
        Command::Fail(fail) => {
            eprintln!("{}", fail.message);
            return exit(fail.code);
        }
        Command::Echo(_) => print_line(&std::env::args().collect::<Value>()),
        Command::Bytes => io::stdout().write_all(b"not UTF-8: \xff\xfe, nor is half of \xe2\x82\n"),
        _ => print_line(&json!(cli)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("depot: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Ends with exactly this code. In a component, std only says whether the program failed, so 1 is all that is left of any
/// code but 0; that is what becomes of clap's own 2 too.
fn exit(code: u8) -> ExitCode {
    #[cfg(target_env = "p2")]
    wasip2::cli::exit::exit_with_code(code);
    ExitCode::from(code)
}

fn print(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}

fn print_line(value: &Value) -> io::Result<()> {
    print(&format!("{value}\n"))
}

fn list_notes(list: &List) -> String {
    let notes = [
        json!({"title": "Call Ada", "notebook": "work", "pinned": true, "priority": 2}),
        json!({"title": "Tea", "notebook": "home", "pinned": false, "priority": -1}),
        json!({"title": "Read: \"Émile\"", "notebook": "home", "pinned": false, "priority": 0}),
    ];
    let wanted = |note: &&Value| match &list.filter {
        Some(Value::Object(filter)) => filter.iter().all(|(key, value)| note.get(key) == Some(value)),
        _ => true,
    };
    let notes: Vec<&Value> = notes.iter().filter(wanted).take(list.limit.unwrap_or(usize::MAX)).collect();
    // Each note as one line or more.
    let lines = |line: fn(&Value) -> String| notes.iter().map(|note| line(note)).collect::<String>();
    match list.format {
        Format::Json => format!("{:#}\n", json!(notes)),
        Format::JsonLines => lines(|note| format!("{note}\n")),
        Format::Yaml => lines(|note| {
            // The text of a JSON string, number or bool is YAML too.
            let [title, notebook, pinned, priority] = ["title", "notebook", "pinned", "priority"].map(|key| &note[key]);
            format!("- title: {title}\n  notebook: {notebook}\n  pinned: {pinned}\n  priority: {priority}\n")
        }),
        Format::Table => {
            let row = |note: &Value| {
                let text = |key: &str| note[key].as_str().unwrap_or_default().to_owned();
                format!(
                    "{:<16}{:<10}{:>8}\n",
                    text("title"),
                    text("notebook"),
                    note["priority"].to_string()
                )
            };
            format!("{:<16}{:<10}{:>8}\n", "TITLE", "NOTEBOOK", "PRIORITY") + &lines(row)
        }
    }
}

fn count_input(count: &Count) -> io::Result<()> {
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let text = String::from_utf8_lossy(&input);
    let all = !(count.lines || count.words || count.bytes);
    let mut counts = serde_json::Map::new();
    for (name, asked, number) in [
        ("lines", count.lines, text.lines().count()),
        ("words", count.words, text.split_whitespace().count()),
        ("bytes", count.bytes, input.len()),
    ] {
        if all || asked {
            counts.insert(name.to_owned(), json!(number));
        }
    }
    print_line(&Value::Object(counts))
}

fn print_files(store: &Path, cat: &Cat) -> io::Result<()> {
    let mut number = 0;
    for file in &cat.file {
        let bytes = fs::read(store.join(file)).map_err(|error| about(file, &error))?;
        if !cat.number {
            io::stdout().write_all(&bytes)?;
            continue;
        }
        for line in String::from_utf8_lossy(&bytes).lines() {
            number += 1;
            print(&format!("{number}\t{line}\n"))?;
        }
    }
    Ok(())
}

fn write_file(store: &Path, write: &WriteFile) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true);
    if write.append {
        options.append(true);
    } else {
        options.write(true).truncate(true);
    }
    options
        .open(store.join(&write.file))
        .and_then(|mut file| file.write_all(write.text.as_bytes()))
        .map_err(|error| about(&write.file, &error))?;
    print_line(&json!({"file": write.file, "bytes": write.text.len()}))
}

fn about(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}
