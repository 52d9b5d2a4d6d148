//! What commands a program has: from the description that came with it, and from its own help.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use command2json::{Answer, Command, Discovered, Given, discover, read_cli_json, read_usage_kdl};
use component2json::{Exports, custom_section, with_custom_section};
use policy::{ByteSize, Limits, Timeout};
use sandbox::{CallError, CodeError, CodeKind, Executable, Exited, Sandbox, Start, unknown_imports, unknown_module_imports};
use serde::{Deserialize, Serialize};
use sources::Digest;

use crate::error::LoadError;
use crate::files;

/// The names of description files are `NAME` and one of these; a custom section has the ending alone for its name.
const CLI_JSON: &str = "cli.json";
const USAGE_KDL: &str = "usage.kdl";

/// A description of more bytes than this is none.
const MAX_DESCRIPTION: u64 = 4 << 20;

/// Help is asked for within these limits and the usual memory, whatever calls may use: what is found out is kept for all later starts.
pub(crate) const HELP_TIMEOUT: Timeout = Timeout::from_millis(const { NonZeroU64::new(5_000).unwrap() });
pub(crate) const HELP_OUTPUT: ByteSize = ByteSize::from_mib(1);

/// All questions together take no longer than this.
const ALL_HELP: std::time::Duration = std::time::Duration::from_secs(60);

/// So that help is plain and its lines are not broken where that can be helped.
pub(crate) const HELP_ENV: [(&str, &str); 2] = [("NO_COLOR", "1"), ("COLUMNS", "200")];

/// A program, and what is known of its commands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramMetadata {
    /// What it imports, and its `wasi:cli/run`; a core module has only imports, as `module.name`.
    pub exports: Exports,
    pub is_module: bool,
    pub command: Command,
    pub source: CommandSource,
    /// What a person should know about how that was found out.
    pub notes: Vec<String>,
    /// Why it can never run, if that is so.
    pub broken: Option<String>,
}

impl ProgramMetadata {
    /// A program of which nothing is known yet.
    pub(crate) fn new(exports: Exports, is_module: bool) -> Self {
        Self {
            exports,
            is_module,
            command: Command::default(),
            source: CommandSource::Nothing,
            notes: Vec::new(),
            broken: None,
        }
    }

    pub(crate) fn set(&mut self, found: Found) {
        (self.command, self.source) = (found.command, found.source);
        (self.notes, self.broken) = (found.notes, found.broken);
        let reads = |import: &String| import == "wasi_snapshot_preview1.fd_read" || import.starts_with("wasi:cli/stdin@");
        if !self.exports.imports.iter().any(reads) {
            without_stdin(&mut self.command);
        }
    }

    /// The imports that nothing here implements.
    pub(crate) fn unknown_imports(&self) -> Vec<&str> {
        if self.is_module {
            unknown_module_imports(&self.exports.imports)
        } else {
            unknown_imports(&self.exports.imports)
        }
    }

    pub(crate) fn code_kind(&self) -> CodeKind {
        if self.is_module {
            CodeKind::Module
        } else {
            CodeKind::Component {
                concurrency: self.exports.needs_concurrency,
            }
        }
    }
}

/// A program that imports no way to read its standard input does not read it, whatever its texts say.
fn without_stdin(command: &mut Command) {
    command.stdin = Some(false);
    command.commands.iter_mut().for_each(without_stdin);
}

/// Where a command tree comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandSource {
    /// The program's own help.
    Help,
    /// A description alone.
    Description,
    /// Help, completed and corrected by a description.
    Both,
    /// Nothing could be found out: the program takes bare `args`.
    Nothing,
}

/// What was found out about the commands of a program.
pub(crate) struct Found {
    command: Command,
    source: CommandSource,
    notes: Vec<String>,
    broken: Option<String>,
}

/// The description files that may lie beside a program.
pub(crate) fn side_files(program: &Path) -> Vec<PathBuf> {
    let files = [CLI_JSON, USAGE_KDL].map(|ending| program.with_extension(ending));
    files.into_iter().filter(|file| file.is_file()).collect()
}

/// What the tree depends on besides the bytes of the program: its file's name, and the descriptions.
pub(crate) fn fingerprint(program: &Path, files: &[PathBuf]) -> Vec<u8> {
    let mut texts = file_name(program).into_bytes();
    for file in files {
        texts.push(0);
        texts.extend_from_slice(file.extension().unwrap_or_default().as_encoded_bytes());
        // One that cannot be read will be reported when it is needed.
        let text = read_text(file).unwrap_or_default();
        texts.extend_from_slice(Digest::of(text.as_bytes()).hex().as_bytes());
    }
    texts
}

/// The description that came with a program: beside it, else inside. One that is wrong is reported and ignored.
pub(crate) fn description(files: &[PathBuf], bytes: &[u8], warnings: &mut Vec<String>) -> Option<Given> {
    for file in files {
        let read = read_text(file).and_then(|text| parse(&file.to_string_lossy(), &text));
        match read {
            Ok(given) => return Some(given),
            Err(problem) => warnings.push(format!("`{}` was ignored: {problem}", file.display())),
        }
    }
    for ending in [CLI_JSON, USAGE_KDL] {
        let Some(data) = custom_section(bytes, ending) else { continue };
        let read = match data.len() as u64 {
            0..=MAX_DESCRIPTION => parse(ending, &String::from_utf8_lossy(data)),
            _ => Err(too_large()),
        };
        match read {
            Ok(given) => return Some(given),
            Err(problem) => warnings.push(format!("its custom section `{ending}` was ignored: {problem}")),
        }
    }
    None
}

pub(crate) fn read_text(file: &Path) -> Result<String, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > MAX_DESCRIPTION {
        return Err(too_large());
    }
    fs::read_to_string(file).map_err(|error| error.to_string())
}

fn too_large() -> String {
    format!("it is larger than {}", ByteSize::from_bytes(MAX_DESCRIPTION))
}

/// Reads a description by the ending of its name.
fn parse(name: &str, text: &str) -> Result<Given, String> {
    let read = if name.ends_with(USAGE_KDL) {
        read_usage_kdl(text)
    } else {
        read_cli_json(text)
    };
    read.map_err(|error| error.to_string())
}

/// Puts a description into the file of a program.
pub fn embed_description(program: &Path, description: &Path) -> Result<(), LoadError> {
    files::check_binary(program)?;
    let bytes = files::read_component(program)?;
    let wrong = |problem| LoadError::Description {
        path: description.to_owned(),
        problem,
    };
    let text = read_text(description).map_err(wrong)?;
    let name = description.to_string_lossy();
    parse(&name, &text).map_err(wrong)?;
    let ending = if name.ends_with(USAGE_KDL) { USAGE_KDL } else { CLI_JSON };
    let with_description = with_custom_section(&bytes, ending, text.as_bytes()).map_err(|error| LoadError::Component {
        path: program.to_owned(),
        error,
    })?;
    files::write_atomically(program, &with_description).map_err(|error| LoadError::Write {
        path: program.to_owned(),
        error,
    })
}

/// The commands of a program. `executable` makes it ready to run; nothing does when a description says everything.
pub(crate) fn find(
    path: &Path,
    given: Option<&Given>,
    sandbox: &Arc<Sandbox>,
    executable: impl FnOnce() -> Result<Arc<Executable>, CodeError>,
    warnings: &mut Vec<String>,
) -> Found {
    if let Some(given) = given.filter(|given| given.is_complete()) {
        return Found {
            command: given.command().clone(),
            source: CommandSource::Description,
            notes: vec![],
            broken: None,
        };
    }
    let asked = ask(path, sandbox, executable);
    let Some(given) = given else { return asked };
    match given.apply_to(asked.command.clone()) {
        Ok(command) => Found {
            command,
            source: match asked.source {
                CommandSource::Nothing => CommandSource::Description,
                _ => CommandSource::Both,
            },
            notes: asked.notes,
            broken: asked.broken,
        },
        Err(error) => {
            warnings.push(format!("the description was ignored: {error}"));
            asked
        }
    }
}

/// What the program says of itself.
fn ask(path: &Path, sandbox: &Arc<Sandbox>, executable: impl FnOnce() -> Result<Arc<Executable>, CodeError>) -> Found {
    let name = file_name(path);
    match executable() {
        Ok(executable) => {
            let mut helper = Helper::new(sandbox, &executable);
            let Discovered {
                command,
                understood,
                notes,
            } = discover(&name, &mut |words| helper.ask(words));
            let source = if understood {
                CommandSource::Help
            } else {
                CommandSource::Nothing
            };
            Found {
                command,
                source,
                notes,
                broken: None,
            }
        }
        Err(error) => Found {
            command: Command {
                name,
                bare: true,
                ..Command::default()
            },
            source: CommandSource::Nothing,
            notes: vec![],
            broken: Some(error.to_string()),
        },
    }
}

/// What the program is called until its usage line says otherwise.
fn file_name(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = stem.unwrap_or_default().replace(char::is_whitespace, "-");
    match name.trim_start_matches('-') {
        "" => "program".to_owned(),
        name => name.to_owned(),
    }
}

/// Runs a program to read its help: in the empty sandbox, with limits of its own.
struct Helper<'a> {
    sandbox: &'a Arc<Sandbox>,
    executable: &'a Arc<Executable>,
    limits: Limits,
    end: std::time::Instant,
}

impl<'a> Helper<'a> {
    fn new(sandbox: &'a Arc<Sandbox>, executable: &'a Arc<Executable>) -> Self {
        Self {
            sandbox,
            executable,
            limits: Limits {
                timeout: HELP_TIMEOUT,
                max_output: HELP_OUTPUT,
                ..Limits::default()
            },
            end: std::time::Instant::now() + ALL_HELP,
        }
    }

    fn ask(&mut self, words: &[String]) -> Answer {
        if std::time::Instant::now() >= self.end {
            return Answer::Failed {
                reason: format!("all its help together took longer than {} s", ALL_HELP.as_secs()),
                is_slow: true,
            };
        }
        let start = Start {
            argv: words.to_vec(),
            env: HELP_ENV.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            stdin: vec![],
        };
        match self.sandbox.run_blocking(self.executable, start, self.limits.clone()) {
            Ok(Exited {
                exit_code,
                stdout,
                stderr,
            }) => Answer::Printed {
                stdout: String::from_utf8_lossy(&stdout.bytes).into_owned(),
                stderr: String::from_utf8_lossy(&stderr.bytes).into_owned(),
                exit_code,
            },
            Err(error) => Answer::Failed {
                is_slow: matches!(error.cause(), CallError::Deadline(_)),
                reason: error.cause().to_string(),
            },
        }
    }
}
