//! `host clients`: which MCP clients are here, and which servers they have.

use std::process::ExitCode;

use catalog::plain_line;
use clap::Args;
use clients::{Client, Endpoint, Environment, Transport};
use serde_json::{Value, json};

use crate::clients::{Found, environment, servers};
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
            let clients: Vec<Value> = clients.iter().map(Seen::json).collect();
            output::line(&catalog::plain_json(&serde_json::to_string_pretty(
                &json!({ "clients": clients }),
            )?))?;
        } else {
            output::line(&table(&clients))?;
        }
        for seen in &clients {
            if let Err(problem) = &seen.servers {
                output::note(&format!("warning: {}: {problem}", seen.client.title()));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

struct Seen {
    client: Client,
    installed: bool,
    servers: Result<Vec<Found>, String>,
}

impl Seen {
    fn look(client: Client, environment: &Environment) -> Self {
        Self {
            client,
            installed: client.traces(environment).iter().any(|trace| trace.exists()),
            servers: servers(client, environment).map_err(|error| plain_line(&format!("{error:#}"))),
        }
    }

    fn json(&self) -> Value {
        let server = |found: &Found| {
            json!({
                "name": found.server.name,
                "file": found.file,
                "enabled": found.server.enabled,
                "isHost": found.server.runs_host(),
                "runs": runs(found),
            })
        };
        let mut seen = json!({
            "id": self.client.id(),
            "title": self.client.title(),
            "installed": self.installed,
        });
        if let Value::Object(fields) = &mut seen {
            match &self.servers {
                Ok(servers) => fields.insert("servers".to_owned(), servers.iter().map(server).collect()),
                Err(problem) => fields.insert("error".to_owned(), problem.as_str().into()),
            };
        }
        seen
    }
}

fn table(clients: &[Seen]) -> String {
    let mut rows = Vec::new();
    for seen in clients {
        let installed = if seen.installed { "yes" } else { "no" };
        let mut first = [seen.client.id().to_owned(), installed.to_owned()];
        let servers = seen.servers.as_deref().unwrap_or_default();
        let mut push = |name: String, runs: String| {
            let [client, installed] = std::mem::take(&mut first);
            rows.push([client, installed, name, runs]);
        };
        if servers.is_empty() {
            push("-".to_owned(), String::new());
        }
        for found in servers {
            let off = if found.server.enabled { "" } else { " (off)" };
            push(format!("{}{off}", plain_line(&found.server.name)), runs(found));
        }
    }
    output::table(["CLIENT", "INSTALLED", "SERVER", "RUNS"], &rows)
}

/// The program or the host of a server, and no more: arguments and queries may hold secrets.
fn runs(found: &Found) -> String {
    match &found.server.endpoint {
        Endpoint::Known(Transport::Stdio { command, .. }) => plain_line(command),
        Endpoint::Known(Transport::Http { url, .. }) => plain_line(url.split(['?', '#']).next().unwrap_or_default()),
        Endpoint::Unknown { reason } => format!("({})", plain_line(reason)),
    }
}
