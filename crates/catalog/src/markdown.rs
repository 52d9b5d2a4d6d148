//! A catalog as a page that a person reads.
//!
//! What a server says is put into the page as text; `prose` sees to it that it stays within its place.

mod prose;
mod schema;

use serde_json::Value;

use crate::document::{Detail, Document, Item, Prompt, Tool};
use crate::references::Names;
use schema::Way;

/// Fewer are found without a list of contents.
const CONTENTS: usize = 8;

/// A page in Markdown, as GitHub shows it. The same catalog always gives the same page.
pub fn markdown(document: &Document) -> String {
    let mut page = Page::default();
    page.server(document);
    let anchors = anchors(document);
    if document.items.len() > CONTENTS {
        page.contents(document, &anchors);
    }
    page.instructions(document);
    for (kind, title) in Detail::TYPES.into_iter().zip(TITLES) {
        let items = items(document, kind);
        let Some((_, first)) = items.first() else { continue };
        page.block(format!("## {title}"));
        match first.detail {
            Detail::Tool(_) | Detail::Prompt(_) => {
                for (place, item) in items {
                    page.item(item, anchors.get(place).map_or("", String::as_str));
                }
            }
            Detail::Resource(_) | Detail::ResourceTemplate(_) => page.resources(&items),
        }
    }
    page.text
}

/// As [`Detail::TYPES`].
const TITLES: [&str; 4] = ["Tools", "Resources", "Resource templates", "Prompts"];
const COUNTED: [(&str, &str); 4] = [
    ("tool", "tools"),
    ("resource", "resources"),
    ("resource template", "resource templates"),
    ("prompt", "prompts"),
];

/// With their places in the document.
fn items<'a>(document: &'a Document, kind: &str) -> Vec<(usize, &'a Item)> {
    let items = document.items.iter().enumerate();
    items.filter(|(_, item)| item.detail.type_name() == kind).collect()
}

/// One for every item, in the order of the document.
fn anchors(document: &Document) -> Vec<String> {
    let mut names = Names::default();
    let anchor = |item: &Item| names.give(&format!("{}-{}", item.detail.type_name(), item.name), '-');
    document.items.iter().map(anchor).collect()
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn block(&mut self, block: String) {
        if block.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&block);
        self.text.push('\n');
    }

    fn server(&mut self, document: &Document) {
        let server = &document.server;
        let info = |key: &str| {
            server
                .info
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.trim().is_empty())
        };
        let name = info("name");
        let title = info("title").or(name).unwrap_or("MCP server");
        let title = match info("version") {
            Some(version) => format!("{title} {version}"),
            None => title.to_owned(),
        };
        self.block(format!("# {}", prose::line(&title)));
        for problem in &document.problems {
            let list = prose::code(&problem.list);
            self.block(format!(
                "> **This page is not complete.** {list}: {}",
                prose::cell(&problem.message)
            ));
        }
        let mut has = Vec::new();
        for (kind, (one, many)) in Detail::TYPES.into_iter().zip(COUNTED) {
            match items(document, kind).len() {
                0 => {}
                1 => has.push(format!("1 {one}")),
                count => has.push(format!("{count} {many}")),
            }
        }
        let has = if has.is_empty() {
            "nothing".to_owned()
        } else {
            has.join(", ")
        };
        let server_name = name.map_or_else(
            || "This server".to_owned(),
            |name| format!("The MCP server {}", prose::code(name)),
        );
        let protocol = server.protocol.version.as_deref();
        let protocol = protocol.map_or_else(String::new, |version| {
            format!(" It speaks version {} of the protocol.", prose::code(version))
        });
        self.block(format!("{server_name} has {has}.{protocol}"));
        if let Some(text) = info("description") {
            self.block(prose::blocks(text));
        }
    }

    fn instructions(&mut self, document: &Document) {
        if let Some(text) = &document.server.instructions {
            let text = prose::blocks(text);
            if !text.is_empty() {
                self.block("## Instructions".to_owned());
                self.block(text);
            }
        }
    }

    fn contents(&mut self, document: &Document, anchors: &[String]) {
        let mut lines = Vec::new();
        for (kind, title) in Detail::TYPES.into_iter().zip(TITLES) {
            let items = items(document, kind);
            let Some((_, first)) = items.first() else { continue };
            let section = title.to_lowercase().replace(' ', "-");
            lines.push(format!("- [{title}](#{section})"));
            if matches!(first.detail, Detail::Resource(_) | Detail::ResourceTemplate(_)) {
                continue;
            }
            for (place, item) in items {
                let anchor = anchors.get(place).map_or("", String::as_str);
                let says = title_of(item).map_or_else(String::new, |title| format!(": {}", prose::line(title)));
                lines.push(format!("  - [{}](#{anchor}){says}", name_of(item)));
            }
        }
        self.block("## Contents".to_owned());
        self.block(lines.join("\n"));
    }

    fn item(&mut self, item: &Item, anchor: &str) {
        self.block(format!("### <a id=\"{anchor}\"></a>{}", name_of(item)));
        if let Some(title) = title_of(item) {
            self.block(format!("**{}**", prose::line(title)));
        }
        if let Some(error) = &item.error {
            self.block(format!("> **Not usable, or not fully:** {}", prose::cell(error)));
        }
        if let Some(text) = &item.description {
            self.block(prose::blocks(text));
        }
        match &item.detail {
            Detail::Tool(tool) => self.tool(item, tool),
            Detail::Prompt(Prompt { input, .. }) => self.arguments(input),
            Detail::Resource(_) | Detail::ResourceTemplate(_) => {}
        }
    }

    fn tool(&mut self, item: &Item, tool: &Tool) {
        let mut notes = hints(item);
        let tasks = tool
            .execution
            .as_ref()
            .and_then(|execution| execution.get("taskSupport"))
            .and_then(Value::as_str);
        match tasks {
            Some("required") => notes.push("runs only as a task".to_owned()),
            Some("optional") => notes.push("can run as a task".to_owned()),
            _ => {}
        }
        let view = tool.ui.as_ref().and_then(|ui| ui.get("resourceUri")).and_then(Value::as_str);
        notes.extend(view.map(|view| format!("shows {}", prose::code(view))));
        if !notes.is_empty() {
            self.block(format!("Hints: {}.", notes.join(", ")));
        }
        self.arguments(&tool.input);
        if let Some(output) = &tool.output {
            self.block("**Returns**".to_owned());
            self.block(schema::describe(output, Way::Out));
        }
        if let Some(example) = schema::example(&tool.input) {
            self.block("**Example of the arguments**".to_owned());
            let json = serde_json::to_string_pretty(&example).unwrap_or_default();
            self.block(prose::code_block("json", &json));
        }
    }

    fn arguments(&mut self, input: &Value) {
        let text = schema::describe(input, Way::In);
        if text.starts_with('|') {
            self.block("**Arguments**".to_owned());
            self.block(text);
        } else {
            self.block(format!("**Arguments**: {}", text.to_lowercase()));
        }
    }

    /// In a table: servers have many, with little to say about each.
    fn resources(&mut self, items: &[(usize, &Item)]) {
        let mut rows = vec![["Name", "Address", "Type", "Description"].map(str::to_owned).to_vec()];
        for (_, item) in items {
            let (address, mime_type, size) = match &item.detail {
                Detail::Resource(resource) => (&resource.uri, &resource.mime_type, resource.size),
                Detail::ResourceTemplate(template) => (&template.uri_template, &template.mime_type, None),
                Detail::Tool(_) | Detail::Prompt(_) => continue,
            };
            let mut name = prose::line(&item.name);
            if let Some(title) = title_of(item) {
                name = format!("{name}<br>{}", prose::line(title));
            }
            let mut kind: Vec<String> = mime_type.iter().map(|kind| prose::cell_code(kind)).collect();
            kind.extend(size.map(|size| format!("{size} bytes")));
            let mut says: Vec<String> = item
                .error
                .iter()
                .map(|error| format!("**Not usable:** {}", prose::cell(error)))
                .collect();
            says.extend(item.description.iter().map(|text| prose::cell(text)));
            rows.push(vec![name, prose::cell_code(address), kind.join("<br>"), says.join("<br>")]);
        }
        self.block(prose::table(&rows));
    }
}

fn name_of(item: &Item) -> String {
    if item.name.trim().is_empty() {
        "(no name)".to_owned()
    } else {
        prose::code(&item.name)
    }
}

/// Where it says more than the name.
fn title_of(item: &Item) -> Option<&str> {
    let annotated = || item.meta.annotations.as_ref()?.get("title")?.as_str();
    let title = item.title.as_deref().or_else(annotated)?;
    (!title.trim().is_empty() && title != item.name).then_some(title)
}

/// What the annotations of a tool say, as far as they say something.
fn hints(item: &Item) -> Vec<String> {
    let hint = |key: &str| item.meta.annotations.as_ref()?.get(key)?.as_bool();
    let reads_only = hint("readOnlyHint");
    let words = [
        reads_only.map(|yes| if yes { "read-only" } else { "changes things" }),
        // Of a tool that changes nothing, these say nothing.
        hint("destructiveHint")
            .filter(|_| reads_only != Some(true))
            .map(|yes| if yes { "destructive" } else { "not destructive" }),
        hint("idempotentHint")
            .filter(|yes| *yes && reads_only != Some(true))
            .map(|_| "idempotent"),
        hint("openWorldHint").map(|yes| if yes { "open world" } else { "closed world" }),
    ];
    words.into_iter().flatten().map(str::to_owned).collect()
}
