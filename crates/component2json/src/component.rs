//! From the bytes of a component to what it exports: functions with their types and docs, and what is left out and why.

use std::collections::HashMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use wit_parser::decoding::{DecodedWasm, decode};
use wit_parser::{Handle, InterfaceId, Resolve, TypeDefKind, TypeId, TypeOwner, World, WorldItem, WorldKey};

use crate::docs::{self, Docs, Layers, Scope};
use crate::names::NameParts;
use crate::schema::{self, MAX_NODES};
use crate::sections::Section;
use crate::types::{Case, ExportName, Field, Function, Kind, Label, Type, TypeDef, TypeRef};
use crate::{Error, FileKind, file_kind, sections};

/// JSON deeper than this is refused by common parsers once the envelope of a message is around it.
const MAX_JSON_DEPTH: usize = 100;

/// What the schemas of one component may have in nodes, all together; a node is some 60 bytes of JSON.
const MAX_COMPONENT_NODES: usize = 250_000;

/// How many fields, cases and labels may be copied so that aliases of their types have names and docs of their own.
const MAX_ALIAS_COPIES: usize = 20_000;

/// Our own package, whose interfaces components may import and export.
const MCP_PACKAGE: &str = "host:mcp/";

/// A WIT name in a message is cut at this many characters.
const MAX_NAME_CHARS: usize = 200;

/// What a component exports, read once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Exports {
    /// Functions that can be called, in the order of the component.
    #[serde(with = "crate::wire")]
    pub functions: Vec<Function>,
    /// Functions of the interfaces of `host:mcp`, which the host calls for itself: what the component offers besides tools.
    #[serde(with = "crate::wire", default)]
    pub offers: Vec<Function>,
    /// Exports that are no tools, and why.
    pub left_out: Vec<LeftOut>,
    /// Names of what the component imports: interfaces, and functions of the world.
    pub imports: Vec<String>,
    /// What the world and the interfaces say about themselves.
    pub scopes: Vec<ScopeDocs>,
    /// The export that makes it a program, as `wasi:cli/run@0.2.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether the component needs an engine with component-model concurrency: it has `async` functions, streams, futures, or
    /// imports of WASI 0.3.
    pub needs_concurrency: bool,
    /// Whether making an instance runs none of its code.
    #[serde(default)]
    pub starts_silently: bool,
}

/// An export that is not offered as a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub export: String,
    pub reason: String,
}

/// What an exported interface says about itself; `interface` is absent for the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeDocs {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    pub docs: String,
}

/// What was found besides the exports, for the caller to report.
#[derive(Debug, Default)]
pub struct Warnings(pub Vec<String>);

/// Reads the exports of a component. `given` are docs from beside the component; the ones that it carries itself fill the gaps.
pub fn read_exports(bytes: &[u8], given: Option<&Docs>) -> Result<(Exports, Warnings), Error> {
    let mut warnings = Warnings::default();
    let carried = carried_docs(bytes, &mut warnings)?;
    let docs = Layers(given.into_iter().chain(&carried).collect());

    let (resolve, world) = match types_of(bytes)? {
        DecodedWasm::Component(resolve, world) => (resolve, world),
        DecodedWasm::WitPackage(..) => return Err(Error::WitPackage),
    };
    let Some(world) = resolve.worlds.get(world) else {
        return Err(Error::Malformed("the component has no world".into()));
    };

    let mut exports = Exports {
        functions: Vec::new(),
        offers: Vec::new(),
        left_out: Vec::new(),
        imports: world
            .imports
            .iter()
            .filter(|(_, item)| !matches!(item, WorldItem::Type { .. }))
            .map(|(key, _)| resolve.name_world_key(key))
            .collect(),
        scopes: Vec::new(),
        run: None,
        needs_concurrency: needs_concurrency(&resolve, world),
        starts_silently: !sections::has_start(bytes),
    };
    let mut types = TypeBuilder::new(&resolve, &docs);
    let world_docs = types.scope(None);
    exports.add_scope(None, &world_docs);
    for (key, item) in &world.exports {
        let name = resolve.name_world_key(key);
        match item {
            WorldItem::Function(function) => exports.add(&mut types, None, function, &world_docs),
            WorldItem::Interface { id, .. } => {
                let Some(interface) = resolve.interfaces.get(*id) else {
                    continue;
                };
                if name.starts_with("wasi:cli/run@") {
                    exports.run = Some(name.clone());
                }
                if let Some(reason) = toolchain_interface(key, &name) {
                    exports.leave_out(&name, reason);
                    continue;
                }
                let scope = types.scope(Some(&name));
                if is_offer(&name) {
                    for function in interface.functions.values() {
                        exports.add_offer(&mut types, &name, function, &scope);
                    }
                    continue;
                }
                exports.add_scope(Some(&name), &scope);
                for function in interface.functions.values() {
                    exports.add(&mut types, Some(&name), function, &scope);
                }
            }
            WorldItem::Type { .. } => {}
        }
    }
    Ok((exports, warnings))
}

/// The interfaces that a component names, whose docs it could carry.
pub fn interface_names(bytes: &[u8]) -> Result<Vec<String>, Error> {
    let decoded = types_of(bytes)?;
    let resolve = decoded.resolve();
    let named = resolve
        .interfaces
        .iter()
        .filter_map(|(id, interface)| interface.name.as_ref().and(resolve.id_of(id)));
    let inline = resolve
        .worlds
        .iter()
        .flat_map(|(_, world)| world.exports.keys())
        .filter_map(|key| match key {
            WorldKey::Name(name) => Some(name.clone()),
            WorldKey::Interface(_) => None,
        });
    Ok(named.chain(inline).filter(|name| !name.starts_with("wasi:")).collect())
}

fn types_of(bytes: &[u8]) -> Result<DecodedWasm, Error> {
    // To wit-parser a core module is a component that exports nothing.
    if file_kind(bytes) == FileKind::CoreModule {
        return Err(Error::Malformed("it is a core module".into()));
    }
    // wit-parser fails on a `package-docs` section that names what is not there, so it never sees one. It also makes room for
    // a section before it has looked whether the section is there; by now all of them have been read once, to their ends.
    let plain = sections::without(bytes, &[docs::PACKAGE_DOCS_SECTION])?;
    // A name that wit-parser thinks impossible (a function called like a URL) makes it panic; to us that is one more malformed file.
    let decoded = std::panic::catch_unwind(|| decode(&plain));
    decoded
        .map_err(|_| Error::Malformed("its exports have names that are not allowed".into()))?
        .map_err(|error| Error::Malformed(format!("{error:#}")))
}

/// Docs inside the component: ours first, then `package-docs`. A section that cannot be read is reported and passed over.
fn carried_docs(bytes: &[u8], warnings: &mut Warnings) -> Result<[Docs; 2], Error> {
    let mut ours = Docs::default();
    let mut package = Docs::default();
    for Section { name, data, .. } in sections::custom_sections(bytes)? {
        let read = match name {
            docs::SECTION_NAME => Docs::from_section(data).map(|docs| ours = docs),
            docs::PACKAGE_DOCS_SECTION => Docs::from_package_docs(data).map(|docs| package = docs),
            _ => continue,
        };
        match read {
            Err(error) => warnings.0.push(format!("the docs in section `{name}` were ignored: {error}")),
            Ok(()) if docs::hides_something(data) => warnings.0.push(format!(
                "the docs in section `{name}` have characters that hide text or steer a terminal; they were taken out, but somebody put them there"
            )),
            Ok(()) => {}
        }
    }
    Ok([ours, package])
}

impl Exports {
    /// What the names of the tools are made of, in the order of the functions.
    pub fn name_parts(&self) -> Vec<NameParts> {
        let exports: Vec<_> = self.functions.iter().map(|function| function.export.clone()).collect();
        NameParts::of_exports(&exports)
    }

    fn add_scope(&mut self, interface: Option<&str>, scope: &Scope) {
        if let Some(docs) = scope.docs.clone() {
            self.scopes.push(ScopeDocs {
                interface: interface.map(str::to_owned),
                docs,
            });
        }
    }

    fn add(&mut self, types: &mut TypeBuilder<'_>, interface: Option<&str>, function: &wit_parser::Function, scope: &Scope) {
        let export = ExportName {
            interface: interface.map(str::to_owned),
            function: function.name.clone(),
        };
        match types.function(export.clone(), function, scope) {
            Ok(function) => self.functions.push(function),
            Err(reason) => self.leave_out(&export.to_string(), &reason),
        }
    }

    fn add_offer(&mut self, types: &mut TypeBuilder<'_>, interface: &str, function: &wit_parser::Function, scope: &Scope) {
        let export = ExportName {
            interface: Some(interface.to_owned()),
            function: function.name.clone(),
        };
        match types.function(export.clone(), function, scope) {
            Ok(function) => self.offers.push(function),
            Err(reason) => self.leave_out(&export.to_string(), &reason),
        }
    }

    /// The function of an interface of `host:mcp`, and its index among all functions: those that are tools come first.
    pub fn offer(&self, interface: &str, function: &str) -> Option<(usize, &Function)> {
        let is_it = |offer: &&Function| {
            let name = offer
                .export
                .interface
                .as_deref()
                .and_then(|name| name.strip_prefix(MCP_PACKAGE));
            offer.export.function == function && name.and_then(|name| name.split('@').next()) == Some(interface)
        };
        let index = self.offers.iter().position(|offer| is_it(&offer))?;
        Some((self.functions.len() + index, self.offers.get(index)?))
    }

    /// Whether the component imports anything of `host:mcp`.
    pub fn imports_any_mcp(&self) -> bool {
        self.imports.iter().any(|import| import.starts_with(MCP_PACKAGE))
    }

    /// Whether the component imports an interface of `host:mcp`.
    pub fn imports_mcp(&self, interface: &str) -> bool {
        let named = |import: &String| {
            import
                .strip_prefix(MCP_PACKAGE)?
                .split('@')
                .next()
                .map(|name| name == interface)
        };
        self.imports.iter().any(|import| named(import) == Some(true))
    }

    fn leave_out(&mut self, export: &str, reason: &str) {
        self.left_out.push(LeftOut {
            export: docs::cap(export, MAX_NAME_CHARS),
            reason: docs::cap(reason, 2 * MAX_NAME_CHARS),
        });
    }

    /// What the named interface, or the world, says about itself.
    pub(crate) fn scope_docs(&self, interface: Option<&str>) -> Option<&str> {
        self.scopes
            .iter()
            .find(|scope| scope.interface.as_deref() == interface)
            .map(|scope| scope.docs.as_str())
    }
}

/// Whether an exported interface is one that the host calls for itself.
fn is_offer(name: &str) -> bool {
    name.starts_with(MCP_PACKAGE)
}

fn needs_concurrency(resolve: &Resolve, world: &World) -> bool {
    let of_world = world
        .imports
        .values()
        .chain(world.exports.values())
        .filter_map(|item| match item {
            WorldItem::Function(function) => Some(function),
            _ => None,
        });
    let of_interfaces = resolve
        .interfaces
        .iter()
        .flat_map(|(_, interface)| interface.functions.values());
    of_world.chain(of_interfaces).any(|function| function.kind.is_async())
        || resolve
            .types
            .iter()
            .any(|(_, ty)| matches!(ty.kind, TypeDefKind::Future(_) | TypeDefKind::Stream(_)))
        || world.imports.keys().any(|key| {
            let name = resolve.name_world_key(key);
            name.starts_with("wasi:") && name.contains("@0.3.")
        })
}

/// Why an exported interface belongs to a toolchain and not to the author.
fn toolchain_interface(key: &WorldKey, name: &str) -> Option<&'static str> {
    match key {
        WorldKey::Interface(_) if name.starts_with("wasi:") => Some("a WASI interface, which a host calls for itself"),
        WorldKey::Name(name) if name == "exports" => Some("componentize-py's own entry points"),
        _ => None,
    }
}

/// Why an exported function belongs to a toolchain and not to the author.
fn toolchain_function(export: &ExportName) -> Option<&'static str> {
    let name = export.function.as_str();
    if name.starts_with("cabi_") || name.starts_with("cabi-") {
        return Some("part of the canonical ABI");
    }
    (export.interface.is_none() && name == "init").then_some("a toolchain's initializer")
}

/// Turns wit-parser's types into ours, each once.
struct TypeBuilder<'a> {
    resolve: &'a Resolve,
    docs: &'a Layers<'a>,
    /// By interface; the world has no name.
    scopes: HashMap<Option<String>, Rc<Scope>>,
    done: HashMap<TypeId, Result<TypeRef, String>>,
    /// By the address of the type, which is kept so that no other takes its place there.
    depths: HashMap<usize, (TypeRef, usize)>,
    nodes: usize,
    alias_copies: usize,
}

impl<'a> TypeBuilder<'a> {
    fn new(resolve: &'a Resolve, docs: &'a Layers<'a>) -> Self {
        Self {
            resolve,
            docs,
            scopes: HashMap::new(),
            done: HashMap::new(),
            depths: HashMap::new(),
            nodes: 0,
            alias_copies: 0,
        }
    }

    /// The plan of a function, or why it cannot be called.
    fn function(&mut self, export: ExportName, function: &wit_parser::Function, scope: &Scope) -> Result<Function, String> {
        if let Some(reason) = toolchain_function(&export) {
            return Err(reason.into());
        }
        self.check_room()?;
        let mut params = Vec::with_capacity(function.params.len());
        for param in &function.params {
            let ty = self
                .ty(&param.ty, 0)
                .map_err(|reason| format!("parameter `{}` {reason}", param.name))?;
            params.push(Field::new(&param.name, None, ty));
        }
        let result = match &function.result {
            Some(ty) => Some(self.ty(ty, 0).map_err(|reason| format!("its result {reason}"))?),
            None => None,
        };
        for ty in params.iter().map(|param| &param.ty).chain(&result) {
            let depth = self.json_depth(ty);
            if depth > MAX_JSON_DEPTH {
                return Err(format!(
                    "its types nest {depth} levels deep in JSON; {MAX_JSON_DEPTH} is the limit"
                ));
            }
        }
        let docs = scope.functions.get(&function.name).cloned();
        let function = Function {
            export,
            docs,
            params,
            result,
            is_async: function.kind.is_async(),
            answers_content: function.result.as_ref().is_some_and(|ty| self.answers_content(ty)),
        };
        let nodes = schema::nodes_of(&function);
        // One that is refused counts too: to find out what it is takes time. The docs of the scope are part of every description.
        self.nodes += nodes.min(MAX_NODES) + 1 + schema::nodes_of_docs(&function.docs) + schema::nodes_of_docs(&scope.docs);
        if nodes > MAX_NODES {
            return Err(format!("its schema would have {nodes} nodes; {MAX_NODES} is the limit"));
        }
        self.check_room()?;
        Ok(function)
    }

    fn answers_content(&self, ty: &wit_parser::Type) -> bool {
        match self.target(ty).map(|def| &def.kind) {
            Some(TypeDefKind::Result(result)) => result.ok.as_ref().is_some_and(|ok| self.is_content(ok)),
            _ => self.is_content(ty),
        }
    }

    fn is_content(&self, ty: &wit_parser::Type) -> bool {
        let Some(def) = self.target(ty) else { return false };
        let owner = match def.owner {
            TypeOwner::Interface(id) => self.resolve.id_of(id),
            _ => None,
        };
        def.name.as_deref() == Some("content") && owner.is_some_and(|owner| owner.starts_with("host:mcp/content@0.1."))
    }

    /// The type behind all aliases.
    fn target(&self, ty: &wit_parser::Type) -> Option<&wit_parser::TypeDef> {
        let mut ty = *ty;
        loop {
            let wit_parser::Type::Id(id) = ty else { return None };
            let def = self.resolve.types.get(id)?;
            match def.kind {
                TypeDefKind::Type(next) => ty = next,
                _ => return Some(def),
            }
        }
    }

    fn check_room(&self) -> Result<(), String> {
        if self.nodes > MAX_COMPONENT_NODES {
            return Err(format!(
                "the schemas of the functions before it have {MAX_COMPONENT_NODES} nodes, which is the limit"
            ));
        }
        Ok(())
    }

    fn ty(&mut self, ty: &wit_parser::Type, depth: usize) -> Result<TypeRef, String> {
        use wit_parser::Type as Wit;
        let kind = match ty {
            Wit::Bool => Kind::Bool,
            Wit::U8 => Kind::U8,
            Wit::U16 => Kind::U16,
            Wit::U32 => Kind::U32,
            Wit::U64 => Kind::U64,
            Wit::S8 => Kind::S8,
            Wit::S16 => Kind::S16,
            Wit::S32 => Kind::S32,
            Wit::S64 => Kind::S64,
            Wit::F32 => Kind::F32,
            Wit::F64 => Kind::F64,
            Wit::Char => Kind::Char,
            Wit::String => Kind::String,
            Wit::ErrorContext => return Err("involves an error-context, which is not yet callable".into()),
            Wit::Id(id) => return self.defined(*id, depth),
        };
        Ok(TypeRef::new(TypeDef {
            name: None,
            docs: None,
            kind,
        }))
    }

    fn defined(&mut self, id: TypeId, depth: usize) -> Result<TypeRef, String> {
        if let Some(done) = self.done.get(&id) {
            return done.clone();
        }
        let built = self.build(id, depth);
        self.done.insert(id, built.clone());
        built
    }

    fn build(&mut self, id: TypeId, depth: usize) -> Result<TypeRef, String> {
        // Only aliases and nesting recurse, and WIT has no recursive types; the bound is for what a hostile file might hold.
        if depth > 2 * MAX_JSON_DEPTH {
            return Err("nests too deep".into());
        }
        let Some(def) = self.resolve.types.get(id) else {
            return Err("is not defined".into());
        };
        let scope = self.scope_of(&def.owner);
        let docs = def.name.as_ref().and_then(|name| scope.as_ref()?.types.get(name));
        let item = |name: &str| docs.and_then(|docs| docs.items.get(name)).cloned();
        let label = |name: &String| Label {
            name: name.clone(),
            docs: item(name),
        };
        let next = depth + 1;
        let kind = match &def.kind {
            TypeDefKind::Type(ty) => {
                // An alias is its target under another name, with its own docs where it has some.
                let target = self.ty(ty, next)?;
                let name = def.name.clone().or_else(|| target.name.clone());
                let docs = docs.and_then(|docs| docs.docs.clone()).or_else(|| target.docs.clone());
                let copies = target.kind.parts();
                return Ok(
                    if (&name, &docs) == (&target.name, &target.docs) || self.alias_copies + copies > MAX_ALIAS_COPIES {
                        target
                    } else {
                        self.alias_copies += copies;
                        TypeRef::new(Type {
                            name,
                            docs,
                            kind: target.kind.clone(),
                        })
                    },
                );
            }
            TypeDefKind::Record(record) => {
                let mut fields = Vec::with_capacity(record.fields.len());
                for field in &record.fields {
                    fields.push(Field::new(&field.name, item(&field.name), self.ty(&field.ty, next)?));
                }
                Kind::Record(fields)
            }
            TypeDefKind::Tuple(tuple) => Kind::Tuple(tuple.types.iter().map(|ty| self.ty(ty, next)).collect::<Result<_, _>>()?),
            TypeDefKind::Variant(variant) => {
                let mut cases = Vec::with_capacity(variant.cases.len());
                for case in &variant.cases {
                    let ty = case.ty.as_ref().map(|ty| self.ty(ty, next)).transpose()?;
                    cases.push(Case {
                        name: case.name.clone(),
                        docs: item(&case.name),
                        ty,
                    });
                }
                Kind::Variant(cases)
            }
            TypeDefKind::Enum(cases) => Kind::Enum(cases.cases.iter().map(|case| label(&case.name)).collect()),
            TypeDefKind::Flags(flags) => Kind::Flags(flags.flags.iter().map(|flag| label(&flag.name)).collect()),
            TypeDefKind::Option(ty) => Kind::Option(self.ty(ty, next)?),
            TypeDefKind::Result(result) => Kind::Result {
                ok: result.ok.as_ref().map(|ty| self.ty(ty, next)).transpose()?,
                err: result.err.as_ref().map(|ty| self.ty(ty, next)).transpose()?,
            },
            TypeDefKind::List(ty) => match self.ty(ty, next)? {
                item if item.kind == Kind::U8 => Kind::Bytes,
                item => Kind::List(item),
            },
            TypeDefKind::FixedLengthList(ty, len) => Kind::FixedList(self.ty(ty, next)?, *len),
            TypeDefKind::Map(key, value) => match self.ty(key, next)? {
                key if key.kind == Kind::String => Kind::StringMap(self.ty(value, next)?),
                key => Kind::Map(key, self.ty(value, next)?),
            },
            TypeDefKind::Resource => return Err("involves a resource, which is not yet callable".into()),
            TypeDefKind::Handle(Handle::Own(id) | Handle::Borrow(id)) => {
                let name = self
                    .resolve
                    .types
                    .get(*id)
                    .and_then(|def| def.name.as_deref())
                    .unwrap_or("resource");
                return Err(format!(
                    "involves a handle to the resource `{name}`; resources are not yet callable"
                ));
            }
            TypeDefKind::Future(_) => return Err("involves a future, which is not yet callable".into()),
            TypeDefKind::Stream(_) => return Err("involves a stream, which is not yet callable".into()),
            TypeDefKind::Unknown => return Err("is not defined".into()),
        };
        Ok(TypeRef::new(TypeDef {
            name: def.name.clone(),
            docs: docs.and_then(|docs| docs.docs.clone()),
            kind,
        }))
    }

    /// What is known of an interface, or of the world.
    fn scope(&mut self, interface: Option<&str>) -> Rc<Scope> {
        let merged = || Rc::new(self.docs.scope(interface));
        self.scopes.entry(interface.map(str::to_owned)).or_insert_with(merged).clone()
    }

    fn scope_of(&mut self, owner: &TypeOwner) -> Option<Rc<Scope>> {
        match owner {
            TypeOwner::Interface(id) => {
                let name = self.interface_name(*id)?;
                Some(self.scope(Some(&name)))
            }
            TypeOwner::World(_) => Some(self.scope(None)),
            TypeOwner::None => None,
        }
    }

    fn interface_name(&self, id: InterfaceId) -> Option<String> {
        let interface = self.resolve.interfaces.get(id)?;
        if interface.name.is_some() {
            return self.resolve.id_of(id);
        }
        // An interface written inside the world: its name is the one that the world exports it under.
        self.resolve
            .worlds
            .iter()
            .flat_map(|(_, world)| &world.exports)
            .find_map(|(key, item)| match item {
                WorldItem::Interface { id: exported, .. } if *exported == id => Some(self.resolve.name_world_key(key)),
                _ => None,
            })
    }

    /// How deep a value of this type nests in JSON.
    fn json_depth(&mut self, ty: &TypeRef) -> usize {
        if let Some((_, depth)) = self.depths.get(&ty.address()) {
            return *depth;
        }
        let below = ty
            .children()
            .into_iter()
            .map(|child| self.json_depth(child))
            .max()
            .unwrap_or(0);
        let own = match &ty.kind {
            Kind::Option(inner) => usize::from(inner.is_option()),
            Kind::Map(..) => 2,
            Kind::Flags(_) => 1,
            _ => usize::from(!ty.children().is_empty()),
        };
        let depth = below + own;
        self.depths.insert(ty.address(), (ty.clone(), depth));
        depth
    }
}
