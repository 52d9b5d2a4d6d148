//! `paths.txt`: where every client keeps its files, on all platforms. `BLESS=1` writes it.

#![cfg(test)]

use std::fmt::Write as _;
use std::path::Path;

use clients::{Client, Environment, Platform, Scope};

#[test]
fn paths_are_what_the_snapshot_says() {
    let mut text = String::new();
    for (platform, home, project) in [
        (Platform::Linux, "/h/ada", "/srv/project"),
        (Platform::MacOs, "/h/ada", "/srv/project"),
        (Platform::Windows, r"C:\h\ada", r"D:\srv\project"),
    ] {
        let environment = Environment::new(platform, Some(home.into()), project.into());
        writeln!(text, "{platform:?}").unwrap();
        for client in Client::ALL {
            writeln!(text, "  {client}").unwrap();
            for scope in [Scope::User, Scope::Project] {
                let file = client.config_file(scope, &environment);
                assert_eq!(file.is_some(), client.scopes().contains(&scope));
                let shown = file.map_or("-".to_owned(), |file| shown(&file));
                writeln!(text, "    {:<8} {shown}", format!("{scope:?}").to_lowercase()).unwrap();
            }
            for trace in client.traces(&environment) {
                writeln!(text, "    trace    {}", shown(&trace)).unwrap();
            }
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/paths.txt");
    if std::env::var_os("BLESS").is_some() {
        #[expect(clippy::disallowed_methods, reason = "a snapshot that is half written is blessed again")]
        std::fs::write(file, text).unwrap();
    } else {
        let known = std::fs::read_to_string(file).unwrap_or_default().replace("\r\n", "\n");
        assert!(known == text, "look at `git diff` after BLESS=1");
    }
}

fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
