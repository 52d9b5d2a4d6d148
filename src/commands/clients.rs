//! `host clients`: which MCP clients are here, and which servers they have.

use std::path::PathBuf;
use std::process::ExitCode;

use catalog::plain_line;
use clap::Args;
use clients::{Client, Endpoint, Environment, Scope, Transport};
use serde_json::{Value, json};

use crate::clients::{Found, environment, is_installed, program, servers};
use crate::output;

/// List the MCP clients that are known, which of them are installed, and which servers they have
#[derive(Args)]
pub(crate) struct Clients {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Clients {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let environment = environment()?;
        let clients: Vec<Seen> = Client::ALL
            .into_iter()
            .map(|client| Seen::look(client, &environment))
            .collect();
        if self.json {
            let program = program().ok();
            let clients: Vec<Value> = clients.iter().map(|seen| seen.json(program.as_deref())).collect();
            output::line(&catalog::plain_json(&serde_json::to_string_pretty(
                &json!({ "clients": clients }),
            )?))?;
        } else {
            output::line(&table(&clients))?;
        }
        for seen in &clients {
            for problem in &seen.problems {
                output::note(&format!("warning: {}: {problem}", seen.client.title()));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

struct Seen {
    client: Client,
    installed: bool,
    /// Of the user, then of the project; one file that cannot be read does not hide the other.
    servers: Vec<Found>,
    problems: Vec<String>,
    files: Vec<PathBuf>,
}

impl Seen {
    fn look(client: Client, environment: &Environment) -> Self {
        let mut seen = Self {
            client,
            installed: is_installed(client, environment),
            servers: Vec::new(),
            problems: Vec::new(),
            files: Vec::new(),
        };
        for scope in [Scope::User, Scope::Project] {
            seen.files.extend(client.config_file(scope, environment));
            match servers(client, scope, environment) {
                Ok(servers) => seen.servers.extend(servers),
                Err(error) => seen.problems.push(plain_line(&format!("{error:#}"))),
            }
        }
        seen
    }

    fn json(&self, program: Option<&str>) -> Value {
        let server = |found: &Found| {
            json!({
                "name": found.server.name,
                "file": found.file,
                "enabled": found.server.enabled,
                "isHost": program.is_some_and(|program| found.server.is_ours(program)),
                "runs": runs(found),
            })
        };
        json!({
            "id": self.client.id(),
            "title": self.client.title(),
            "installed": self.installed,
            "files": self.files,
            "servers": self.servers.iter().map(server).collect::<Vec<_>>(),
            "problems": self.problems,
        })
    }
}

fn table(clients: &[Seen]) -> String {
    let mut rows = Vec::new();
    for seen in clients {
        let installed = if seen.installed { "yes" } else { "no" };
        let mut first = [seen.client.id().to_owned(), installed.to_owned()];
        let mut push = |name: String, runs: String| {
            let [client, installed] = std::mem::take(&mut first);
            rows.push([client, installed, name, runs]);
        };
        if seen.servers.is_empty() {
            push("-".to_owned(), String::new());
        }
        for found in &seen.servers {
            let off = if found.server.enabled { "" } else { " (off)" };
            push(format!("{}{off}", plain_line(&found.server.name)), runs(found));
        }
    }
    output::table(["CLIENT", "INSTALLED", "SERVER", "RUNS"], &rows)
}

/// The program or the host of a server, and no more: arguments, paths and queries may hold secrets.
fn runs(found: &Found) -> String {
    match &found.server.endpoint {
        Endpoint::Known(Transport::Stdio { command, .. }) => plain_line(command),
        Endpoint::Known(Transport::Http { url, .. }) => match catalog::Endpoint::parse(url) {
            Ok(endpoint) => endpoint.origin(),
            Err(_) => "(a URL that cannot be read)".to_owned(),
        },
        Endpoint::Unknown { reason } => format!("({})", plain_line(reason)),
    }
}
