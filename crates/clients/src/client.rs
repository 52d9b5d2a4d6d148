//! The clients that are known, and what one can ask of each.

use std::fmt;
use std::str::FromStr;

use crate::shape::Shape;
use crate::{Configured, Edit, EditError, Entry, Format, Scope, edit};

/// An MCP client that people use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    VsCode,
    Cursor,
    Windsurf,
    Zed,
    GeminiCli,
    Codex,
    Goose,
}

impl Client {
    pub const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::VsCode,
        Self::Cursor,
        Self::Windsurf,
        Self::Zed,
        Self::GeminiCli,
        Self::Codex,
        Self::Goose,
    ];

    /// The name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::VsCode => "vscode",
            Self::Cursor => "cursor",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::GeminiCli => "gemini-cli",
            Self::Codex => "codex",
            Self::Goose => "goose",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::VsCode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::GeminiCli => "Gemini CLI",
            Self::Codex => "Codex",
            Self::Goose => "Goose",
        }
    }

    /// Whose servers it can be told of, the usual one first.
    pub fn scopes(self) -> &'static [Scope] {
        match self {
            Self::ClaudeDesktop | Self::Windsurf | Self::Goose => &[Scope::User],
            _ => &[Scope::User, Scope::Project],
        }
    }

    /// What else people call it on a command line.
    pub fn aliases(self) -> impl Iterator<Item = &'static str> {
        ALIASES
            .iter()
            .filter(move |(_, client)| *client == self)
            .map(|(alias, _)| *alias)
    }

    /// What its file is written in.
    pub fn format(self) -> Format {
        Shape::of(self).format
    }

    /// The file with this entry in it. `text` is `None` if there is no file.
    ///
    /// An entry of ours is brought up to date. A server of somebody else that has the name is replaced only if `replace` says so.
    pub fn install(self, text: Option<&str>, entry: &Entry, replace: bool) -> Result<Edit, EditError> {
        edit::install(&Shape::of(self), text, entry, replace)
    }

    /// The file without the entry of this name, as it stands there. An entry that starts anything but `host serve` or `program` is
    /// refused.
    pub fn uninstall(self, text: &str, name: &str, program: &str) -> Result<Edit, EditError> {
        edit::uninstall(&Shape::of(self), text, name, program)
    }

    /// Every server in the file, in its order. Of Claude Code these are the servers of the user; those that it keeps for single
    /// projects in the same file are its own affair.
    pub fn servers(self, text: &str) -> Result<Vec<Configured>, EditError> {
        edit::servers(&Shape::of(self), text)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// What people type, besides the ids.
const ALIASES: &[(&str, Client)] = &[
    ("claude", Client::ClaudeCode),
    ("claudecode", Client::ClaudeCode),
    ("claudedesktop", Client::ClaudeDesktop),
    ("code", Client::VsCode),
    ("vs-code", Client::VsCode),
    ("visual-studio-code", Client::VsCode),
    ("gemini", Client::GeminiCli),
    ("geminicli", Client::GeminiCli),
    ("codex-cli", Client::Codex),
];

impl FromStr for Client {
    type Err = UnknownClient;

    fn from_str(text: &str) -> Result<Self, UnknownClient> {
        let wanted = text.trim().to_ascii_lowercase().replace([' ', '_'], "-");
        let names = || {
            Self::ALL
                .into_iter()
                .map(|client| (client.id(), client))
                .chain(ALIASES.iter().copied())
        };
        if let Some((_, client)) = names().find(|(name, _)| *name == wanted) {
            return Ok(client);
        }
        let nearest = names()
            .map(|(name, client)| (strsim::jaro_winkler(name, &wanted), client))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, client)| client);
        Err(UnknownClient {
            text: text.to_owned(),
            nearest,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownClient {
    pub text: String,
    pub nearest: Option<Client>,
}

impl std::error::Error for UnknownClient {}

impl fmt::Display for UnknownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no client that is known here", self.text.escape_debug())?;
        match self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?")?,
            None => f.write_str(".")?,
        }
        f.write_str(" Known are ")?;
        for (index, client) in Client::ALL.iter().enumerate() {
            write!(f, "{}`{client}`", if index == 0 { "" } else { ", " })?;
        }
        write!(f, "; for any other, paste what `--print json` or `--print toml` gives")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_parsed_and_printed() {
        for client in Client::ALL {
            assert_eq!(client.to_string().parse(), Ok(client));
            assert_eq!(client.title().parse(), Ok(client));
        }
        for (alias, client) in ALIASES {
            assert_eq!(alias.parse(), Ok(*client));
        }
        assert_eq!("VSCode".parse(), Ok(Client::VsCode));
    }

    #[test]
    fn what_is_not_known_is_explained() {
        let error = "cursr".parse::<Client>().unwrap_err();
        assert_eq!(error.nearest, Some(Client::Cursor));
        assert_eq!(
            error.to_string(),
            "`cursr` is no client that is known here; did you mean `cursor`? Known are `claude-code`, `claude-desktop`, `vscode`, \
             `cursor`, `windsurf`, `zed`, `gemini-cli`, `codex`, `goose`; for any other, paste what `--print json` or `--print toml` gives"
        );
        let error = "emacs".parse::<Client>().unwrap_err();
        assert_eq!(error.nearest, None);
        assert!(
            error
                .to_string()
                .starts_with("`emacs` is no client that is known here. Known are "),
            "{error}"
        );
    }
}
