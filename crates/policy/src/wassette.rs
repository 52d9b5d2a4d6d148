//! Reads the policy files of Wassette (`policy.yaml`, version 1.0), so that nobody has to write theirs again.
//!
//! What such a file says and our types cannot is refused, with its line and the reason: a policy that is half understood
//! would allow more, or less, than it shows.

use std::fmt;

use crate::yaml::{self, Content, Key, Node, YamlProblem};
use crate::{
    ByteSize, Contradiction, Denial, Directory, DirectoryError, Grants, HostPattern, LimitSettings, NetworkRule, NetworkRuleError,
    Permission, Ports, Variable, VariableError, quantity,
};

/// What a policy file of Wassette says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WassettePolicy {
    pub grants: Grants,
    pub limits: LimitSettings,
}

/// What is wrong with a policy file of Wassette, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {place}{problem}")]
pub struct WassetteError {
    /// From 1.
    pub line: usize,
    place: Place,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Yaml(YamlProblem),
    #[error("{expected} is expected here, not {found}")]
    Shape { expected: &'static str, found: &'static str },
    #[error("`{}` is not known here; the keys are {known}", .name.escape_debug())]
    Unknown { name: String, known: String },
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("version `{}` is not known; `1.0` is", .0.escape_debug())]
    Version(String),
    #[error("{0}")]
    NoCounterpart(&'static str),
    #[error("`{}` is no place of files; write it as in `fs:///srv/data`", .0.escape_debug())]
    Scheme(String),
    #[error(
        "`{}` is relative to a folder that only Wassette knows; \
         write the whole path, as in `fs:///srv/data`",
        .0.escape_debug()
    )]
    Relative(String),
    #[error("`{}` has a `*`; a whole directory is granted, as in `fs:///srv/data/**`, and nothing less", .0.escape_debug())]
    Glob(String),
    #[error(
        "`{}` has a `:`, which parts a directory from its path inside; \
         grant it with `--allow-read=DIR:GUEST`",
        .0.escape_debug()
    )]
    Colon(String),
    #[error("`{}` is no access; it is `read` or `write`", .0.escape_debug())]
    Access(String),
    #[error("no access is given; write `read`, or `read` and `write`")]
    NoAccess,
    #[error("access to write without reading cannot be granted; add `read`")]
    WriteOnly,
    #[error("reading and writing are denied together; write both")]
    DenialOfOne,
    #[error("`{}` is no network; write it as in `10.0.0.0/8`", .0.escape_debug())]
    NoNetwork(String),
    #[error("`{}` has a `*`; name each variable", .0.escape_debug())]
    Wildcard(String),
    #[error("`{}` is no amount of memory; write a whole number and `Ki`, `Mi`, `Gi` or `Ti`, as in `512Mi`", .0.escape_debug())]
    Memory(String),
    #[error(transparent)]
    Network(#[from] NetworkRuleError),
    #[error(transparent)]
    Variable(#[from] VariableError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
}

/// The keys that lead to something, as in `permissions.storage.allow[0].uri`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place(String);

impl Place {
    fn key(&self, name: &str) -> Self {
        let dot = if self.0.is_empty() { "" } else { "." };
        Self(format!("{}{dot}{}", self.0, name.escape_debug()))
    }

    fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => Ok(()),
            false => write!(f, "`{}`: ", self.0),
        }
    }
}

/// Reads a policy file of Wassette.
///
/// ```
/// let policy = policy::read_wassette(
///     r#"
/// version: "1.0"
/// permissions:
///   network:
///     allow:
///       - host: api.example.com
/// "#,
/// )?;
/// assert_eq!(policy.grants.rules()[0].to_string(), "--allow-net=api.example.com");
/// # Ok::<(), policy::WassetteError>(())
/// ```
pub fn read_wassette(text: &str) -> Result<WassettePolicy, WassetteError> {
    let root = yaml::parse(text).map_err(|(line, problem)| WassetteError {
        line,
        place: Place::default(),
        problem: Problem::Yaml(problem),
    })?;
    let empty = Node {
        line: 1,
        content: Content::Map(Vec::new()),
    };
    let root = root.as_ref().unwrap_or(&empty);
    let root = At {
        node: root,
        line: root.line,
        place: Place::default(),
    };
    // What these say is for people and editors: the name of the schema, and what the policy is for.
    let [version, permissions, schema, description] = root.fields(["version", "permissions", "$schema", "description"])?;
    for note in [schema, description].into_iter().flatten() {
        note.text()?;
    }
    let version = version.ok_or_else(|| root.problem(Problem::Missing("version")))?;
    match version.text()? {
        "1.0" => {}
        other => return Err(version.problem(Problem::Version(other.to_owned()))),
    }
    let permissions = permissions.ok_or_else(|| root.problem(Problem::Missing("permissions")))?;
    let mut policy = WassettePolicy::default();
    let names = ["storage", "network", "environment", "resources", "runtime", "ipc"];
    let [storage, network, environment, resources, runtime, ipc] = permissions.fields(names)?;
    if let Some(storage) = storage {
        read_storage(&storage, &mut policy.grants)?;
    }
    if let Some(network) = network {
        read_network(&network, &mut policy.grants)?;
    }
    if let Some(environment) = environment {
        read_environment(&environment, &mut policy.grants)?;
    }
    if let Some(resources) = resources {
        read_resources(&resources, &mut policy.limits)?;
    }
    if let Some(runtime) = runtime {
        return Err(runtime.problem(Problem::NoCounterpart(
            "settings of another runtime mean nothing here; take them out, and grant what they grant with `--allow-…`",
        )));
    }
    if let Some(ipc) = ipc {
        return Err(ipc.problem(Problem::NoCounterpart(
            "components here talk to no other process of this machine; take this out",
        )));
    }
    Ok(policy)
}

fn read_storage(storage: &At<'_>, grants: &mut Grants) -> Result<(), WassetteError> {
    let [allow, deny] = storage.fields(["allow", "deny"])?;
    for entry in items(allow)? {
        let (path, access) = read_place(&entry)?;
        let directory = Directory::new(path.into(), None).map_err(|error| entry.problem(error))?;
        let permission = match (access.read, access.write) {
            (true, true) => Permission::Write(directory),
            (true, false) => Permission::Read(directory),
            (false, _) => return Err(entry.problem(Problem::WriteOnly)),
        };
        grants.allow(permission).map_err(|error| entry.problem(error))?;
    }
    for entry in items(deny)? {
        let (path, access) = read_place(&entry)?;
        if !(access.read && access.write) {
            return Err(entry.problem(Problem::DenialOfOne));
        }
        grants.deny(Denial::Read(path.into()));
    }
    Ok(())
}

#[derive(Default)]
struct AccessList {
    read: bool,
    write: bool,
}

/// One entry of `storage`: a directory, and what is done there.
fn read_place(entry: &At<'_>) -> Result<(String, AccessList), WassetteError> {
    let [uri, access] = entry.fields(["uri", "access"])?;
    let uri = uri.ok_or_else(|| entry.problem(Problem::Missing("uri")))?;
    let path = read_uri(uri.text()?).map_err(|problem| uri.problem(problem))?;
    let access = access.ok_or_else(|| entry.problem(Problem::Missing("access")))?;
    let mut list = AccessList::default();
    for kind in access.items()? {
        match kind.text()? {
            "read" => list.read = true,
            "write" => list.write = true,
            other => return Err(kind.problem(Problem::Access(other.to_owned()))),
        }
    }
    match list.read || list.write {
        true => Ok((path, list)),
        false => Err(access.problem(Problem::NoAccess)),
    }
}

fn read_uri(uri: &str) -> Result<String, Problem> {
    let path = uri.strip_prefix("fs://").ok_or_else(|| Problem::Scheme(uri.to_owned()))?;
    if !path.starts_with('/') {
        return Err(Problem::Relative(uri.to_owned()));
    }
    let path = path.strip_suffix("/**").unwrap_or(path).trim_end_matches('/');
    if path.contains('*') {
        return Err(Problem::Glob(uri.to_owned()));
    }
    if path.contains(':') {
        return Err(Problem::Colon(uri.to_owned()));
    }
    Ok(if path.is_empty() { "/" } else { path }.to_owned())
}

fn read_network(network: &At<'_>, grants: &mut Grants) -> Result<(), WassetteError> {
    let [allow, deny] = network.fields(["allow", "deny"])?;
    for entry in items(allow)? {
        let rule = read_hosts(&entry)?;
        grants.allow(Permission::Net(rule)).map_err(|error| entry.problem(error))?;
    }
    for entry in items(deny)? {
        grants.deny(Denial::Net(read_hosts(&entry)?));
    }
    Ok(())
}

/// One entry of `network`. Without a port it is about every port, also where it has a scheme.
fn read_hosts(entry: &At<'_>) -> Result<NetworkRule, WassetteError> {
    let [host, cidr, defaults] = entry.fields(["host", "cidr", "defaults"])?;
    if let Some(defaults) = defaults {
        return Err(defaults.problem(Problem::NoCounterpart(
            "this stands for a list of hosts that Wassette keeps; name the hosts, each as `host: …`",
        )));
    }
    match (host, cidr) {
        (Some(host), None) => {
            let (scheme, pattern, ports) = NetworkRule::parts(host.text()?).map_err(|error| host.problem(error))?;
            Ok(NetworkRule {
                scheme,
                host: pattern,
                ports: ports.unwrap_or(Ports::ANY),
            })
        }
        (None, Some(cidr)) => match cidr.text()?.parse() {
            Ok(host @ HostPattern::Addresses(_)) => Ok(NetworkRule {
                scheme: None,
                host,
                ports: Ports::ANY,
            }),
            Ok(_) => Err(cidr.problem(Problem::NoNetwork(cidr.text()?.to_owned()))),
            Err(error) => Err(cidr.problem(NetworkRuleError::from(error))),
        },
        (None, None) => Err(entry.problem(Problem::Missing("host"))),
        (Some(_), Some(cidr)) => Err(cidr.problem(Problem::NoCounterpart(
            "a host and a network are two entries; write them apart",
        ))),
    }
}

fn read_environment(environment: &At<'_>, grants: &mut Grants) -> Result<(), WassetteError> {
    let [allow] = environment.fields(["allow"])?;
    for entry in items(allow)? {
        let [key] = entry.fields(["key"])?;
        let key = key.ok_or_else(|| entry.problem(Problem::Missing("key")))?;
        let text = key.text()?;
        if text.contains('*') {
            return Err(key.problem(Problem::Wildcard(text.to_owned())));
        }
        let name = text.parse().map_err(|error: VariableError| key.problem(error))?;
        let permission = Permission::Env(Variable { name, value: None });
        grants.allow(permission).map_err(|error| key.problem(error))?;
    }
    Ok(())
}

/// Today's files have `limits`; older ones have the same keys without it.
fn read_resources(resources: &At<'_>, limits: &mut LimitSettings) -> Result<(), WassetteError> {
    let [nested, memory, cpu, io] = resources.fields(["limits", "memory", "cpu", "io"])?;
    let (nested_memory, nested_cpu) = match nested {
        Some(nested) => {
            let [memory, cpu] = nested.fields(["memory", "cpu"])?;
            (memory, cpu)
        }
        None => (None, None),
    };
    if let Some(cpu) = nested_cpu.or(cpu) {
        return Err(cpu.problem(Problem::NoCounterpart(
            "a share of a processor cannot be set; take it out, and set `max_cpu`, the time that a call may compute",
        )));
    }
    if let Some(io) = io {
        return Err(io.problem(Problem::NoCounterpart("operations per second cannot be set; take this out")));
    }
    match (nested_memory, memory) {
        (Some(_), Some(memory)) => Err(memory.problem(Problem::Yaml(YamlProblem::Twice("memory".to_owned())))),
        (Some(memory), None) | (None, Some(memory)) => {
            limits.max_memory = Some(read_memory(&memory)?);
            Ok(())
        }
        (None, None) => Ok(()),
    }
}

/// As Kubernetes writes it: a text without a unit is bytes. A bare number is of the older files: mebibytes.
fn read_memory(memory: &At<'_>) -> Result<ByteSize, WassetteError> {
    let text = memory.text()?;
    let bytes = quantity::split(text).and_then(|(number, unit)| {
        let size: u128 = match unit {
            "" if memory.is_plain() => 1 << 20,
            "" => 1,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            "Ti" => 1 << 40,
            _ => return None,
        };
        u64::try_from(number.saturating_mul(size)).ok()
    });
    match bytes {
        None | Some(0) => Err(memory.problem(Problem::Memory(text.to_owned()))),
        Some(bytes) => Ok(ByteSize::from_bytes(bytes)),
    }
}

/// A node, and how it was reached.
struct At<'tree> {
    node: &'tree Node,
    /// That of its key, if it has one.
    line: usize,
    place: Place,
}

impl<'tree> At<'tree> {
    fn problem(&self, problem: impl Into<Problem>) -> WassetteError {
        WassetteError {
            line: self.line,
            place: self.place.clone(),
            problem: problem.into(),
        }
    }

    fn shape(&self, expected: &'static str) -> WassetteError {
        let found = self.node.kind();
        self.problem(Problem::Shape { expected, found })
    }

    fn text(&self) -> Result<&'tree str, WassetteError> {
        match &self.node.content {
            Content::Scalar { text, .. } if !self.node.is_null() => Ok(text),
            _ => Err(self.shape("a text")),
        }
    }

    fn is_plain(&self) -> bool {
        matches!(self.node.content, Content::Scalar { is_plain: true, .. })
    }

    fn items(&self) -> Result<Vec<At<'tree>>, WassetteError> {
        let Content::List(nodes) = &self.node.content else {
            return Err(self.shape("a list"));
        };
        let item = |(index, node): (usize, &'tree Node)| At {
            node,
            line: node.line,
            place: self.place.item(index),
        };
        Ok(nodes.iter().enumerate().map(item).collect())
    }

    /// The values of all keys that can be here, in the order of the names. A key without a value is as one that is not there.
    fn fields<const N: usize>(&self, names: [&'static str; N]) -> Result<[Option<At<'tree>>; N], WassetteError> {
        let none: &[(Key, Node)] = &[];
        let pairs = match &self.node.content {
            Content::Map(pairs) => pairs,
            _ if self.node.is_null() => none,
            _ => return Err(self.shape("a map")),
        };
        if let Some((key, _)) = pairs.iter().find(|(key, _)| !names.contains(&key.name.as_str())) {
            let known: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            return Err(WassetteError {
                line: key.line,
                place: self.place.clone(),
                problem: Problem::Unknown {
                    name: key.name.clone(),
                    known: known.join(", "),
                },
            });
        }
        Ok(names.map(|name| {
            let (key, node) = pairs.iter().find(|(key, node)| key.name == name && !node.is_null())?;
            Some(At {
                node,
                line: key.line,
                place: self.place.key(name),
            })
        }))
    }
}

/// A list that may not be there.
fn items(list: Option<At<'_>>) -> Result<Vec<At<'_>>, WassetteError> {
    list.map_or_else(|| Ok(Vec::new()), |list| list.items())
}
