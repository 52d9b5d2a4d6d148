//! What an entry looks like in the file of each client.
//!
//! One form is written: the one that current versions of the client read. All forms that were ever around are read.
//!
//! Where this is from, as of November 2026: the sources of Codex (`mcp_types.rs`), Goose (`agents/extension.rs`) and Zed
//! (`ContextServerSettingsContent`); the documentation of Gemini CLI, VS Code and Claude Desktop; for Claude Code, Cursor and
//! Windsurf, which show no source, what the makers of servers tell people to paste. Some say that Zed skips an entry without
//! `"source": "custom"`; that was so once, and its source and its own example do without now.

use crate::format::Format;
use crate::value::{Map, Value, get};
use crate::{Client, Configured, EditError, Endpoint, Entry, ServerName, Transport};

/// How a client writes its servers down.
pub(crate) struct Shape {
    client: Client,
    pub(crate) format: Format,
    /// The key of the list of servers.
    pub(crate) container: &'static str,
}

/// The keys that say how a server is reached, in any form. All others are somebody's settings; so is `type`, as long as the
/// server is reached in the same way.
const OF_TRANSPORT: &[&str] = &[
    "command",
    "cmd",
    "args",
    "env",
    "envs",
    "url",
    "uri",
    "httpUrl",
    "serverUrl",
    "headers",
    "http_headers",
    "config",
];

pub(crate) fn is_of_transport(key: &str) -> bool {
    OF_TRANSPORT.contains(&key)
}

impl Shape {
    pub(crate) const fn of(client: Client) -> Self {
        let (format, container) = match client {
            Client::ClaudeCode | Client::ClaudeDesktop | Client::Cursor | Client::Windsurf | Client::GeminiCli => {
                (Format::Json, "mcpServers")
            }
            Client::VsCode => (Format::Json, "servers"),
            Client::Zed => (Format::Json, "context_servers"),
            Client::Codex => (Format::Toml, "mcp_servers"),
            Client::Goose => (Format::Yaml, "extensions"),
        };
        Self {
            client,
            format,
            container,
        }
    }

    /// The key of a server. Goose looks its extensions up by their name in lower case.
    pub(crate) fn key(&self, name: &str) -> String {
        match self.client {
            Client::Goose => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        }
    }

    /// In YAML, `extensions:` with nothing after it is how people write an empty list.
    pub(crate) fn null_is_empty(&self) -> bool {
        self.format == Format::Yaml
    }

    /// The entry as it is written.
    pub(crate) fn fields(&self, entry: &Entry) -> Result<Map, EditError> {
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| fields.push((key.to_owned(), value));
        match &entry.transport {
            Transport::Stdio { command, args, env } => {
                match self.client {
                    Client::ClaudeCode | Client::VsCode => put("type", Value::text("stdio")),
                    Client::Goose => goose_head(&mut put, &entry.name, "stdio"),
                    _ => {}
                }
                put(self.command_key(), Value::text(command));
                // Always, as Zed and Goose read no entry without.
                put("args", Value::texts(args));
                if !env.is_empty() {
                    put(self.env_key(), Value::pairs(env));
                }
            }
            Transport::Http { url, headers } => {
                match self.client {
                    // It reads the file, and ignores such an entry: remote servers are connectors of the account.
                    Client::ClaudeDesktop => {
                        return Err(EditError::NoHttp {
                            client: self.client.title(),
                        });
                    }
                    Client::ClaudeCode | Client::VsCode => put("type", Value::text("http")),
                    Client::Goose => goose_head(&mut put, &entry.name, "streamable_http"),
                    _ => {}
                }
                put(self.url_key(), Value::text(url));
                if !headers.is_empty() {
                    put(self.headers_key(), Value::pairs(headers));
                }
            }
        }
        if self.client == Client::Goose {
            // What Goose itself writes for a new extension.
            put("timeout", Value::Other("300".to_owned()));
        }
        Ok(fields)
    }

    fn command_key(&self) -> &'static str {
        if self.client == Client::Goose { "cmd" } else { "command" }
    }

    fn env_key(&self) -> &'static str {
        if self.client == Client::Goose { "envs" } else { "env" }
    }

    fn url_key(&self) -> &'static str {
        match self.client {
            Client::GeminiCli => "httpUrl",
            Client::Windsurf => "serverUrl",
            Client::Goose => "uri",
            _ => "url",
        }
    }

    fn headers_key(&self) -> &'static str {
        // Codex ignores `headers`.
        if self.client == Client::Codex {
            "http_headers"
        } else {
            "headers"
        }
    }

    /// Does the entry say where the server is in the way that current versions read? An entry of an older form is as good as
    /// another one.
    pub(crate) fn has_form_of(&self, entry: &Value, transport: &Transport) -> bool {
        let (key, address) = match transport {
            Transport::Stdio { command, .. } => (self.command_key(), command),
            Transport::Http { url, .. } => (self.url_key(), url),
        };
        let found = entry.as_map().and_then(|entry| get(entry, key));
        found.and_then(Value::as_text) == Some(address)
    }

    pub(crate) fn configured(&self, name: &str, value: &Value) -> Configured {
        let entry = value.as_map();
        let of = |key| entry.and_then(|entry| get(entry, key));
        let is = |key, wanted| matches!(of(key), Some(Value::Bool(found)) if *found == wanted);
        Configured {
            name: name.to_owned(),
            endpoint: self.endpoint(value),
            enabled: !(is("enabled", false) || is("disabled", true)),
            cwd: of("cwd").and_then(Value::as_text).map(str::to_owned),
        }
    }

    /// How the server of this entry is reached.
    pub(crate) fn endpoint(&self, value: &Value) -> Endpoint {
        match self.transport(value) {
            Ok(transport) => Endpoint::Known(transport),
            Err(reason) => Endpoint::Unknown { reason },
        }
    }

    fn transport(&self, value: &Value) -> Result<Transport, String> {
        let mut entry = value
            .as_map()
            .ok_or_else(|| format!("the entry is {}, not a map", value.kind()))?;
        // Older versions of Goose had everything but `enabled` one level deeper.
        if let (Client::Goose, Some(Value::Map(config))) = (self.client, get(entry, "config")) {
            entry = config;
        }
        let kind = get(entry, "type")
            .or_else(|| get(entry, "transport"))
            .and_then(Value::as_text);
        match kind {
            None | Some("stdio" | "http" | "streamable_http" | "streamable-http" | "streamableHttp") => {}
            Some("sse") => return Err("it uses SSE, the transport before streamable HTTP".to_owned()),
            Some(kind) if self.client == Client::Goose => return Err(format!("it is an extension of the type `{kind}`")),
            Some(kind) => return Err(format!("its type `{kind}` is not known here")),
        }
        match get(entry, self.command_key()) {
            Some(Value::Text(command)) => return stdio(command, entry, self.env_key()),
            // Older versions of Zed.
            Some(Value::Map(inner)) if self.client == Client::Zed => {
                let command = get(inner, "path")
                    .and_then(Value::as_text)
                    .ok_or("its `command` has no `path`")?;
                return stdio(command, inner, self.env_key());
            }
            Some(other) => return Err(format!("its `{}` is {}", self.command_key(), other.kind())),
            None => {}
        }
        let url = ["httpUrl", "serverUrl", "uri", "url"]
            .into_iter()
            .find_map(|key| Some((key, get(entry, key)?.as_text()?)));
        match (url, kind) {
            (Some(("url", _)), None) if self.client == Client::GeminiCli => {
                Err("its `url` may be SSE; streamable HTTP is `httpUrl`".to_owned())
            }
            (Some(_), None) if self.client == Client::ClaudeCode => Err("it has a URL, but no `type`".to_owned()),
            (Some((_, url)), _) => Ok(Transport::Http {
                url: url.to_owned(),
                headers: pairs(entry, self.headers_key())?,
            }),
            (None, _) if self.client == Client::Zed => Err("it belongs to an extension".to_owned()),
            (None, _) => Err("it has neither a command nor a URL".to_owned()),
        }
    }
}

/// `description` may be empty, but Goose skips an entry over HTTP that has none.
fn goose_head(put: &mut impl FnMut(&str, Value), name: &ServerName, kind: &str) {
    put("enabled", Value::Bool(true));
    put("type", Value::text(kind));
    put("name", Value::text(name.as_str()));
    put("description", Value::text("WebAssembly tools, served by host"));
}

fn stdio(command: &str, entry: &Map, env_key: &str) -> Result<Transport, String> {
    let args = match get(entry, "args") {
        None => Vec::new(),
        Some(Value::List(args)) => args
            .iter()
            .map(|arg| scalar(arg).ok_or_else(|| format!("one of its `args` is {}", arg.kind())))
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(format!("its `args` is {}, not a list", other.kind())),
    };
    Ok(Transport::Stdio {
        command: command.to_owned(),
        args,
        env: pairs(entry, env_key)?,
    })
}

fn pairs(entry: &Map, key: &str) -> Result<Vec<(String, String)>, String> {
    match get(entry, key) {
        None => Ok(Vec::new()),
        Some(value) if value.is_null() => Ok(Vec::new()),
        Some(Value::Map(pairs)) => pairs
            .iter()
            .map(|(name, value)| {
                let text = scalar(value).ok_or_else(|| format!("`{name}` in its `{key}` is {}", value.kind()))?;
                Ok((name.clone(), text))
            })
            .collect(),
        Some(other) => Err(format!("its `{key}` is {}, not a map", other.kind())),
    }
}

/// In YAML, a port is a number, if nobody put quotes around it.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) | Value::Other(text) => Some(text.clone()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::List(_) | Value::Map(_) => None,
    }
}
