//! What is put into a client, and what is found there.

use std::fmt;
use std::str::FromStr;

/// The name of a server in the list of a client: 1 to 64 letters, digits, `-` and `_`, the first one no sign.
///
/// That is what every client takes, and what no format has to quote.
///
/// ```
/// let name: clients::ServerName = "text-tools".parse()?;
/// assert_eq!(name.as_str(), "text-tools");
/// assert!("text tools".parse::<clients::ServerName>().is_err());
/// # Ok::<(), clients::ServerNameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

impl ServerName {
    const LONGEST: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = ServerNameError;

    fn from_str(text: &str) -> Result<Self, ServerNameError> {
        if text.is_empty() {
            return Err(ServerNameError::Empty);
        }
        if let Some(character) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || "-_".contains(*c))) {
            let text = text.to_owned();
            return Err(ServerNameError::Character { text, character });
        }
        if text.starts_with(['-', '_']) {
            return Err(ServerNameError::Sign(text.to_owned()));
        }
        // All of them are ASCII by now.
        if text.len() > Self::LONGEST {
            return Err(ServerNameError::Long(text.len()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerNameError {
    #[error("the name of a server is empty; give it one, as in `--name text-tools`")]
    Empty,
    #[error(
        "`{}` has {character:?}, which not every client takes in the name of a server; use letters, digits, `-` and `_`",
        text.escape_debug()
    )]
    Character { text: String, character: char },
    #[error("`{0}` begins with a sign, which on a command line looks like an option; begin it with a letter or a digit")]
    Sign(String),
    #[error("the name of a server has at most 64 characters, and this has {0}; give a shorter one with `--name`")]
    Long(usize),
}

/// A server to be put into the list of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: ServerName,
    pub transport: Transport,
}

/// How a client reaches a server.
#[derive(Clone, Debug)]
pub enum Transport {
    /// The client starts it and talks over its standard input and output.
    Stdio {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    },
    /// It runs already, and talks streamable HTTP.
    Http { url: String, headers: Vec<(String, String)> },
}

/// The order of variables and headers says nothing.
impl PartialEq for Transport {
    fn eq(&self, other: &Self) -> bool {
        fn sorted(pairs: &[(String, String)]) -> Vec<&(String, String)> {
            let mut pairs: Vec<_> = pairs.iter().collect();
            pairs.sort();
            pairs
        }
        match (self, other) {
            (
                Self::Stdio { command, args, env },
                Self::Stdio {
                    command: other_command,
                    args: other_args,
                    env: other_env,
                },
            ) => command == other_command && args == other_args && sorted(env) == sorted(other_env),
            (
                Self::Http { url, headers },
                Self::Http {
                    url: other_url,
                    headers: other_headers,
                },
            ) => url == other_url && sorted(headers) == sorted(other_headers),
            _ => false,
        }
    }
}

impl Eq for Transport {}

impl Transport {
    /// Is this `host serve`, wherever the program lies? There are other programs of that name. The paths of both kinds of systems are
    /// understood on either.
    pub(crate) fn runs_host(&self) -> bool {
        let Self::Stdio { command, args, .. } = self else {
            return false;
        };
        if args.first().is_none_or(|command| command != "serve") {
            return false;
        }
        let file = command.rsplit(['/', '\\']).next().unwrap_or_default();
        let is_exe = |ending: &str| ending.eq_ignore_ascii_case(".exe");
        let stem = match file.len().checked_sub(4).and_then(|at| file.split_at_checked(at)) {
            Some((stem, ending)) if is_exe(ending) => stem,
            _ => file,
        };
        stem == "host"
    }

    /// Is this an entry that we made: `host serve`, or our program under another name?
    pub(crate) fn is_ours(&self, program: &str) -> bool {
        self.runs_host() || matches!(self, Self::Stdio { command, .. } if command == program)
    }

    /// With the variables and headers that a person has added to the entry of ours that it takes the place of.
    pub(crate) fn keeping(&self, known: &Self) -> Self {
        let mut kept = self.clone();
        let (ours, theirs) = match (&mut kept, known) {
            (Self::Stdio { env, .. }, Self::Stdio { env: known, .. }) => (env, known),
            (Self::Http { headers, .. }, Self::Http { headers: known, .. }) => (headers, known),
            _ => return kept,
        };
        let is_new = |name: &String| name != OWN_VARIABLE && !ours.iter().any(|(own, _)| own == name);
        let added: Vec<_> = theirs.iter().filter(|(name, _)| is_new(name)).cloned().collect();
        ours.extend(added);
        kept
    }
}

/// The one that is ours to set and to take away.
const OWN_VARIABLE: &str = "HOST_HOME";

/// A server that stands in the list of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    pub name: String,
    pub endpoint: Endpoint,
    /// The client will start it, as far as this file says.
    pub enabled: bool,
    /// Where it is started, if the entry says so.
    pub cwd: Option<String>,
}

impl Configured {
    /// Is this an entry of ours: does it start `host serve`, or this program? Of a server reached over HTTP, nobody can tell.
    pub fn is_ours(&self, program: &str) -> bool {
        matches!(&self.endpoint, Endpoint::Known(transport) if transport.is_ours(program))
    }
}

/// How a configured server is reached. One odd entry does not hide the others, so what cannot be understood is told as such.
///
/// Variables such as `${HOME}` or `${env:TOKEN}` are the client's to expand; here they are text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Known(Transport),
    Unknown { reason: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "text-tools", "A_1", &"x".repeat(64)] {
            assert_eq!(good.parse::<ServerName>().unwrap().to_string(), good);
        }
        assert_eq!("".parse::<ServerName>(), Err(ServerNameError::Empty));
        assert_eq!("-a".parse::<ServerName>(), Err(ServerNameError::Sign("-a".to_owned())));
        assert_eq!("x".repeat(65).parse::<ServerName>(), Err(ServerNameError::Long(65)));
        for (text, character) in [("a b", ' '), ("a.b", '.'), ("é", 'é'), ("a\n", '\n')] {
            let error = ServerNameError::Character {
                text: text.to_owned(),
                character,
            };
            assert_eq!(text.parse::<ServerName>(), Err(error));
        }
    }

    #[test]
    fn which_commands_are_ours() {
        let runs_host = |command: &str| {
            Transport::Stdio {
                command: command.to_owned(),
                args: vec!["serve".to_owned()],
                env: Vec::new(),
            }
            .runs_host()
        };
        for ours in ["host", "/opt/host/bin/host", r"C:\opt\host\host.exe", r"D:\HOST.d\host.EXE"] {
            assert!(runs_host(ours), "{ours}");
        }
        for other in [
            "",
            "npx",
            "/opt/host/npx",
            "hostess",
            "host.sh",
            "ghost.exe",
            "/opt/host/",
            ".exe",
            "é",
        ] {
            assert!(!runs_host(other), "{other}");
        }
    }

    #[test]
    fn other_programs_have_that_name_too() {
        let lookup = Transport::Stdio {
            command: "/usr/bin/host".to_owned(),
            args: vec!["-t".to_owned(), "mx".to_owned()],
            env: Vec::new(),
        };
        assert!(!lookup.is_ours("/opt/host/bin/host"));
        assert!(lookup.is_ours("/usr/bin/host"));
    }

    #[test]
    fn what_a_person_added_is_kept() {
        let stdio = |env: &[(&str, &str)]| Transport::Stdio {
            command: "host".to_owned(),
            args: Vec::new(),
            env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        };
        let known = stdio(&[("TOKEN", "t"), ("HOST_HOME", "/old"), ("A", "old")]);
        assert_eq!(stdio(&[("A", "new")]).keeping(&known), stdio(&[("A", "new"), ("TOKEN", "t")]));
    }

    #[test]
    fn the_order_of_variables_says_nothing() {
        let stdio = |env: &[(&str, &str)]| Transport::Stdio {
            command: "host".to_owned(),
            args: Vec::new(),
            env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        };
        assert_eq!(stdio(&[("A", "1"), ("B", "2")]), stdio(&[("B", "2"), ("A", "1")]));
        assert_ne!(stdio(&[("A", "1")]), stdio(&[("A", "2")]));
    }
}
