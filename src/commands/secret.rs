//! `host secret`: values that a component gets, and nobody sees.

use std::io::{IsTerminal, Read as _};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use lifecycle::ComponentId;
use policy::{SecretName, SecretValue};

use crate::{options, output};

/// The longest value that is read: a longer one is refused, but it has to be seen that it is longer.
const MAX_READ: u64 = 1 << 20;

/// Keep secrets for components, such as tokens
///
/// A component gets one of its secrets only where `--allow-secret=NAME` grants it: as a variable of its environment, and from `wasi:config`.
#[derive(Args)]
pub(crate) struct Secret {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Keep a secret; its value is asked for, or read from stdin, and never stands on the command line
    Set(Named),
    /// List the names of a component's secrets
    List {
        /// The component's id
        #[arg(value_parser = ComponentId::parse)]
        id: ComponentId,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a secret
    Delete(Named),
}

#[derive(Args)]
struct Named {
    /// The component's id
    #[arg(value_parser = ComponentId::parse)]
    id: ComponentId,
    /// The secret's name, which is the name of the variable that the component sees
    name: SecretName,
}

impl Secret {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let manager = options::store_manager()?;
        let store = manager.store()?;
        match self.action {
            Action::Set(Named { id, name }) => {
                let value = read_value(&name)?;
                let done = if store.set_secret(&id, name.clone(), &value)? {
                    "replaced"
                } else {
                    "kept"
                };
                output::line(&format!("{done} the secret `{name}` of `{id}`"))?;
                if store.entry(&id).is_err() {
                    output::note(&format!(
                        "note: no component `{id}` was added; the secret is kept for one of that name"
                    ));
                }
                let is_granted = store.entry(&id).is_ok_and(|entry| entry.grants.secrets.contains(&name));
                if !is_granted {
                    output::note(&format!(
                        "hint: `host grant {id} --allow-secret={name}` lets the component have it, or `--allow-secret={name}` when the host is started"
                    ));
                }
            }
            Action::List { id, json } => {
                let names: Vec<String> = store.secret_names(&id)?.iter().map(ToString::to_string).collect();
                if json {
                    output::line(&serde_json::to_string(&names)?)?;
                } else if names.is_empty() {
                    output::note(&format!("`{id}` has no secrets"));
                } else {
                    output::line(&names.join("\n"))?;
                }
            }
            Action::Delete(Named { id, name }) => {
                if !store.delete_secret(&id, &name)? {
                    bail!("`{id}` has no secret `{name}`\nhint: `host secret list {id}` shows those that it has");
                }
                output::line(&format!("forgot the secret `{name}` of `{id}`"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The value: typed where a person sits, read where none does. One line break at its end belongs to the typing.
fn read_value(name: &SecretName) -> anyhow::Result<SecretValue> {
    let text = if std::io::stdin().is_terminal() {
        rpassword::prompt_password(format!("Value of `{name}`: ")).context("the value could not be read")?
    } else {
        let mut text = String::new();
        let stdin = std::io::stdin().take(MAX_READ);
        let mut stdin = std::io::BufReader::new(stdin);
        stdin
            .read_to_string(&mut text)
            .context("the value could not be read from stdin")?;
        text
    };
    let value = text
        .strip_suffix('\n')
        .map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    Ok(SecretValue::new(value.to_owned())?)
}
