//! Where the clients keep their files.
//!
//! Paths are put together as text, with the separator of the platform that is asked about: `Path::join` knows only the one that
//! this program runs on.
//!
//! The sources or the documentation of the makers say so for Gemini CLI, Goose and Zed. What others tried and wrote down, and the
//! makers do not say in a place that could be looked up: that `CLAUDE_CONFIG_DIR` moves `.claude.json`, too; where Claude Desktop
//! is on Linux; the file of VS Code's default profile; the folder of Windsurf on Windows; the files of Cursor and Codex.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Client;

/// Whose list of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// That of a person, for everything they do.
    User,
    /// That of one project, usually shared with others.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    pub fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }

    fn separator(self) -> &'static str {
        if self == Self::Windows { "\\" } else { "/" }
    }
}

/// What the places of files depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    pub platform: Platform,
    pub home: Option<PathBuf>,
    /// The root of the project: the current directory.
    pub project: PathBuf,
    /// `XDG_CONFIG_HOME`, in the place of `~/.config`
    pub xdg_config_home: Option<PathBuf>,
    /// `FLATPAK_XDG_CONFIG_HOME`, which Zed prefers to it
    pub flatpak_xdg_config_home: Option<PathBuf>,
    /// `APPDATA`, on Windows
    pub app_data: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`, in the place of `~/.codex`
    pub codex_home: Option<PathBuf>,
    /// `GEMINI_CLI_HOME`, in the place of the home directory
    pub gemini_cli_home: Option<PathBuf>,
    /// `GOOSE_PATH_ROOT`
    pub goose_path_root: Option<PathBuf>,
}

impl Environment {
    /// With nothing but a home directory.
    pub fn new(platform: Platform, home: Option<PathBuf>, project: PathBuf) -> Self {
        Self {
            platform,
            home,
            project,
            xdg_config_home: None,
            flatpak_xdg_config_home: None,
            app_data: None,
            claude_config_dir: None,
            codex_home: None,
            gemini_cli_home: None,
            goose_path_root: None,
        }
    }

    /// With what `variable` knows; to the caller that is `std::env::var_os`. An empty variable is as good as none.
    pub fn from_variables(platform: Platform, project: PathBuf, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // A relative one is invalid by the rules of XDG, and to be ignored.
        let xdg = |name: &str| path(name).filter(|path| path.as_os_str().as_encoded_bytes().starts_with(b"/"));
        let home = if platform == Platform::Windows {
            "USERPROFILE"
        } else {
            "HOME"
        };
        Self {
            platform,
            home: path(home),
            project,
            xdg_config_home: xdg("XDG_CONFIG_HOME"),
            flatpak_xdg_config_home: xdg("FLATPAK_XDG_CONFIG_HOME"),
            app_data: path("APPDATA"),
            claude_config_dir: path("CLAUDE_CONFIG_DIR"),
            codex_home: path("CODEX_HOME"),
            gemini_cli_home: path("GEMINI_CLI_HOME"),
            goose_path_root: path("GOOSE_PATH_ROOT"),
        }
    }

    fn under(&self, base: &Path, parts: &[&str]) -> PathBuf {
        let separator = self.platform.separator();
        let mut path = base.as_os_str().to_owned();
        for part in parts {
            if !path.as_encoded_bytes().ends_with(separator.as_bytes()) {
                path.push(separator);
            }
            path.push(part);
        }
        path.into()
    }

    fn in_home(&self, parts: &[&str]) -> Option<PathBuf> {
        Some(self.under(self.home.as_deref()?, parts))
    }

    /// `~/.config`, or what is in its place.
    fn xdg(&self) -> Option<PathBuf> {
        self.xdg_config_home.clone().or_else(|| self.in_home(&[".config"]))
    }

    fn app_data(&self) -> Option<PathBuf> {
        self.app_data.clone().or_else(|| self.in_home(&["AppData", "Roaming"]))
    }

    /// Where programs built on Electron keep their settings.
    fn application_support(&self) -> Option<PathBuf> {
        match self.platform {
            Platform::Linux => self.xdg(),
            Platform::MacOs => self.in_home(&["Library", "Application Support"]),
            Platform::Windows => self.app_data(),
        }
    }
}

impl Client {
    /// The file with its list of servers. There is none if the client knows no such scope, or if there is no home directory.
    ///
    /// VS Code has one for each profile; this is that of the default one, of the stable version. A file of a project is read by
    /// VS Code, Zed, Codex and others only after somebody trusted the project.
    pub fn config_file(self, scope: Scope, environment: &Environment) -> Option<PathBuf> {
        match scope {
            Scope::User => {
                let file = match self {
                    Self::ClaudeCode => ".claude.json",
                    Self::ClaudeDesktop => "claude_desktop_config.json",
                    Self::VsCode | Self::Cursor => "mcp.json",
                    Self::Windsurf => "mcp_config.json",
                    Self::Zed | Self::GeminiCli => "settings.json",
                    Self::Codex => "config.toml",
                    Self::Goose => "config.yaml",
                };
                Some(environment.under(&self.folder(environment)?, &[file]))
            }
            Scope::Project => {
                let parts: &[&str] = match self {
                    Self::ClaudeCode => &[".mcp.json"],
                    Self::VsCode => &[".vscode", "mcp.json"],
                    Self::Cursor => &[".cursor", "mcp.json"],
                    Self::Zed => &[".zed", "settings.json"],
                    Self::GeminiCli => &[".gemini", "settings.json"],
                    Self::Codex => &[".codex", "config.toml"],
                    Self::ClaudeDesktop | Self::Windsurf | Self::Goose => return None,
                };
                Some(environment.under(&environment.project, parts))
            }
        }
    }

    /// The folder of the user's config file.
    fn folder(self, environment: &Environment) -> Option<PathBuf> {
        let under = |base: Option<PathBuf>, parts: &[&str]| Some(environment.under(&base?, parts));
        match self {
            // Not `~/.claude`, which is the default of the variable for everything else.
            Self::ClaudeCode => environment.claude_config_dir.clone().or_else(|| environment.home.clone()),
            Self::ClaudeDesktop => under(environment.application_support(), &["Claude"]),
            Self::VsCode => under(environment.application_support(), &["Code", "User"]),
            Self::Cursor => environment.in_home(&[".cursor"]),
            Self::Windsurf => environment.in_home(&[".codeium", "windsurf"]),
            Self::Zed => match environment.platform {
                Platform::Linux => {
                    let base = environment.flatpak_xdg_config_home.clone().or_else(|| environment.xdg());
                    under(base, &["zed"])
                }
                // Whatever `XDG_CONFIG_HOME` says.
                Platform::MacOs => environment.in_home(&[".config", "zed"]),
                Platform::Windows => under(environment.app_data(), &["Zed"]),
            },
            Self::GeminiCli => match &environment.gemini_cli_home {
                Some(home) => Some(environment.under(home, &[".gemini"])),
                None => environment.in_home(&[".gemini"]),
            },
            Self::Codex => environment.codex_home.clone().or_else(|| environment.in_home(&[".codex"])),
            Self::Goose => match (&environment.goose_path_root, environment.platform) {
                (Some(root), _) => Some(environment.under(root, &["config"])),
                // It follows XDG on macOS, too.
                (None, Platform::Linux | Platform::MacOs) => under(environment.xdg(), &["goose"]),
                (None, Platform::Windows) => under(environment.app_data(), &["Block", "goose", "config"]),
            },
        }
    }

    /// Files and folders of which one is there if the client is installed, or was.
    pub fn traces(self, environment: &Environment) -> Vec<PathBuf> {
        let mut traces = Vec::new();
        match self {
            // Its file is in the home directory, which says nothing.
            Self::ClaudeCode => {
                traces.extend(self.config_file(Scope::User, environment));
                let data = environment.claude_config_dir.clone();
                traces.extend(data.or_else(|| environment.in_home(&[".claude"])));
            }
            Self::VsCode => {
                let support = environment.application_support();
                traces.extend(support.map(|support| environment.under(&support, &["Code"])));
                traces.extend(environment.in_home(&[".vscode"]));
            }
            _ => traces.extend(self.folder(environment)),
        }
        let app = match self {
            Self::ClaudeDesktop => "Claude.app",
            Self::VsCode => "Visual Studio Code.app",
            Self::Cursor => "Cursor.app",
            Self::Windsurf => "Windsurf.app",
            Self::Zed => "Zed.app",
            Self::Goose => "Goose.app",
            Self::ClaudeCode | Self::GeminiCli | Self::Codex => return traces,
        };
        if environment.platform == Platform::MacOs {
            traces.push(environment.under(Path::new("/Applications"), &[app]));
        }
        traces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(platform: Platform, variables: &[(&str, &str)]) -> Environment {
        Environment::from_variables(platform, "/srv/project".into(), |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    fn user_file(client: Client, environment: &Environment) -> Option<String> {
        let file = client.config_file(Scope::User, environment)?;
        Some(file.to_str().unwrap().to_owned())
    }

    #[test]
    fn variables_move_the_files() {
        let linux = environment(
            Platform::Linux,
            &[
                ("HOME", "/h/ada"),
                ("XDG_CONFIG_HOME", "/x"),
                ("FLATPAK_XDG_CONFIG_HOME", "/f"),
                ("CLAUDE_CONFIG_DIR", "/c/"),
                ("CODEX_HOME", "/d"),
                ("GEMINI_CLI_HOME", "/g"),
                ("GOOSE_PATH_ROOT", "/o"),
            ],
        );
        let files: Vec<String> = Client::ALL.iter().map(|client| user_file(*client, &linux).unwrap()).collect();
        assert_eq!(
            files,
            [
                "/c/.claude.json",
                "/x/Claude/claude_desktop_config.json",
                "/x/Code/User/mcp.json",
                "/h/ada/.cursor/mcp.json",
                "/h/ada/.codeium/windsurf/mcp_config.json",
                "/f/zed/settings.json",
                "/g/.gemini/settings.json",
                "/d/config.toml",
                "/o/config/config.yaml",
            ]
        );
        let mac = environment(Platform::MacOs, &[("HOME", "/h/ada"), ("XDG_CONFIG_HOME", "/x")]);
        assert_eq!(user_file(Client::Zed, &mac).unwrap(), "/h/ada/.config/zed/settings.json");
        assert_eq!(user_file(Client::Goose, &mac).unwrap(), "/x/goose/config.yaml");
        let windows = environment(Platform::Windows, &[("USERPROFILE", r"C:\h\ada"), ("APPDATA", r"D:\roaming")]);
        assert_eq!(user_file(Client::VsCode, &windows).unwrap(), r"D:\roaming\Code\User\mcp.json");
    }

    #[test]
    fn what_is_empty_or_relative_counts_for_nothing() {
        let odd = environment(
            Platform::Linux,
            &[("HOME", "/h/ada"), ("XDG_CONFIG_HOME", "x"), ("CODEX_HOME", "")],
        );
        assert_eq!(odd, environment(Platform::Linux, &[("HOME", "/h/ada")]));
        assert_eq!(odd, {
            Environment::new(Platform::Linux, Some("/h/ada".into()), "/srv/project".into())
        });
    }

    #[test]
    fn without_a_home_there_are_only_projects() {
        for platform in [Platform::Linux, Platform::MacOs, Platform::Windows] {
            let nobody = environment(platform, &[]);
            for client in Client::ALL {
                assert_eq!(user_file(client, &nobody), None, "{client}");
                assert_eq!(
                    client.config_file(Scope::Project, &nobody).is_some(),
                    client.scopes().contains(&Scope::Project),
                    "{client}"
                );
            }
        }
    }
}
