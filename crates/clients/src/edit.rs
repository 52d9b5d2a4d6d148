//! Installing and uninstalling, whatever the client and its format.

use crate::check::check;
use crate::format::Patch;
use crate::shape::{self, Shape};
use crate::text::BOM;
use crate::value::{Map, Value, duplicate, get};
use crate::{Configured, EditError, Endpoint, Entry, Transport};

/// The new text of a file, and what was done to the list of servers. If nothing was, the text is the old one to the byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub text: String,
    pub change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    None,
    Added,
    Replaced,
    Removed,
}

pub(crate) fn install(shape: &Shape, text: Option<&str>, entry: &Entry, replace: bool) -> Result<Edit, EditError> {
    let name = shape.key(entry.name.as_str());
    let file = File::read(shape, text.unwrap_or_default())?;
    let Some(existing) = file.server(&name) else {
        let fields = shape.fields(entry)?;
        let after = shape.format.add(file.body, shape.container, &name, &fields)?;
        return file.edited(&name, after, Some(Value::Map(fields)), Change::Added);
    };
    let found = shape.endpoint(existing);
    let is_ours = is_ours(&found, &entry.transport);
    let entry = match &found {
        Endpoint::Known(known) if is_ours => &Entry {
            name: entry.name.clone(),
            transport: entry.transport.keeping(known),
        },
        _ => entry,
    };
    let fields = shape.fields(entry)?;
    if matches!(&found, Endpoint::Known(transport) if *transport == entry.transport)
        && shape.has_form_of(existing, &entry.transport)
    {
        return Ok(file.unchanged());
    }
    if !(is_ours || replace) {
        return Err(EditError::Taken { name });
    }
    let Some(old) = existing.as_map() else {
        let without = shape.format.remove(file.body, shape.container, &name)?;
        let after = shape.format.add(&without, shape.container, &name, &fields)?;
        return file.edited(&name, after, Some(Value::Map(fields)), Change::Replaced);
    };
    refuse_duplicates(old)?;
    // What people added to an entry of ours stays: time limits, tools that need no question, whether it is on. Of a server of
    // somebody else, and of one that is reached in another way now, nothing would make sense.
    let keeps = is_ours && matches!(&found, Endpoint::Known(known) if same_kind(known, &entry.transport));
    let mut wanted: Map = old
        .iter()
        .filter(|(key, _)| keeps && !shape::is_of_transport(key))
        .cloned()
        .collect();
    for (key, value) in &fields {
        if !wanted.iter().any(|(kept, _)| kept == key) {
            wanted.push((key.clone(), value.clone()));
        }
    }
    let gone = old.iter().filter(|(key, _)| get(&wanted, key).is_none());
    let new = wanted.iter().filter(|(key, value)| get(old, key) != Some(value));
    // In this order, as no format likes an entry without any keys in between.
    let patches: Vec<Patch<'_>> = new
        .map(|(key, value)| Patch::Set(key, value))
        .chain(gone.map(|(key, _)| Patch::Unset(key)))
        .collect();
    let after = shape.format.patch(file.body, shape.container, &name, &patches)?;
    file.edited(&name, after, Some(Value::Map(wanted)), Change::Replaced)
}

pub(crate) fn uninstall(shape: &Shape, text: &str, name: &str, program: &str) -> Result<Edit, EditError> {
    let file = File::read(shape, text)?;
    // A name that stands there as it was given, whoever wrote it; else the one that we would have written.
    let name = match file.server(name) {
        Some(_) => name.to_owned(),
        None => shape.key(name),
    };
    let Some(existing) = file.server(&name) else {
        return Ok(file.unchanged());
    };
    // Nobody can tell of a URL whose it is; of a command one can.
    if matches!(shape.endpoint(existing), Endpoint::Known(transport @ Transport::Stdio { .. }) if !transport.is_ours(program)) {
        return Err(EditError::NotOurs { name });
    }
    let after = shape.format.remove(file.body, shape.container, &name)?;
    file.edited(&name, after, None, Change::Removed)
}

pub(crate) fn servers(shape: &Shape, text: &str) -> Result<Vec<Configured>, EditError> {
    let root = shape.format.read(text.strip_prefix(BOM).unwrap_or(text))?;
    let servers = container(shape, &root)?;
    Ok(servers
        .into_iter()
        .flatten()
        .map(|(name, value)| shape.configured(name, value))
        .collect())
}

fn is_ours(found: &Endpoint, wanted: &Transport) -> bool {
    match (found, wanted) {
        (Endpoint::Known(Transport::Http { url, .. }), Transport::Http { url: wanted, .. }) => url == wanted,
        (Endpoint::Known(found), Transport::Stdio { command, .. }) => found.is_ours(command),
        (Endpoint::Known(found), Transport::Http { .. }) => found.runs_host(),
        (Endpoint::Unknown { .. }, _) => false,
    }
}

fn same_kind(a: &Transport, b: &Transport) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// A file that was read, and may be edited.
struct File<'a> {
    shape: &'a Shape,
    /// All of it.
    text: &'a str,
    /// Without the byte order mark, which no parser has to know of.
    body: &'a str,
    root: Map,
}

impl<'a> File<'a> {
    fn read(shape: &'a Shape, text: &'a str) -> Result<Self, EditError> {
        let body = text.strip_prefix(BOM).unwrap_or(text);
        let root = shape.format.read(body)?;
        refuse_duplicates(&root)?;
        if let Some(servers) = container(shape, &root)? {
            refuse_duplicates(servers)?;
        }
        Ok(Self { shape, text, body, root })
    }

    fn server(&self, name: &str) -> Option<&Value> {
        get(get(&self.root, self.shape.container)?.as_map()?, name)
    }

    fn unchanged(&self) -> Edit {
        Edit {
            text: self.text.to_owned(),
            change: Change::None,
        }
    }

    fn edited(&self, name: &str, after: String, expected: Option<Value>, change: Change) -> Result<Edit, EditError> {
        check(self.shape.format, &self.root, &after, (self.shape.container, name), expected)?;
        let mark = self.text.strip_suffix(self.body).unwrap_or_default();
        Ok(Edit {
            text: format!("{mark}{after}"),
            change,
        })
    }
}

fn container<'a>(shape: &Shape, root: &'a Map) -> Result<Option<&'a Map>, EditError> {
    match get(root, shape.container) {
        None => Ok(None),
        Some(Value::Map(servers)) => Ok(Some(servers)),
        Some(value) if value.is_null() && shape.null_is_empty() => Ok(None),
        Some(value) => Err(EditError::Container {
            key: shape.container,
            found: value.kind(),
        }),
    }
}

fn refuse_duplicates(map: &Map) -> Result<(), EditError> {
    match duplicate(map) {
        Some(key) => Err(EditError::Duplicate { key: key.to_owned() }),
        None => Ok(()),
    }
}
