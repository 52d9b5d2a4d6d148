//! Two schemas compared: does the new one allow less, or more?
//!
//! Keywords are compared one by one, with references followed. What combines schemas (`anyOf`, `if` and the like) is compared only
//! where it is a choice between types, as in "text or null"; otherwise a difference in it cannot be judged.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Changes, at, keys, shown};
use crate::references::{Under, is_annotation, target, type_of};

type Object = Map<String, Value>;

const MAX_DEPTH: usize = 40;
/// Of two schemas; a hostile one could go on for ever.
const MAX_STEPS: usize = 20_000;
/// References in a row.
const MAX_HOPS: usize = 16;
/// Of values within a sentence.
const MAX_VALUES: usize = 5;

const TOO_MUCH: &str = "it is too large to be compared to its end, so that it counts as breaking";
const UNCLEAR: &str = "it changed in a way that cannot be judged, so that it counts as breaking";

/// Which way the values go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The caller gives them.
    Input,
    /// The caller gets them.
    Output,
}

/// What a change does to the values that are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Fewer,
    More,
    /// Other ones, or who knows.
    Other,
}

pub(super) fn compare(changes: &mut Changes, side: Side, old: &Value, new: &Value) {
    if old == new {
        return;
    }
    let place = match side {
        Side::Input => "input",
        Side::Output => "output",
    };
    let count = changes.list.len();
    let mut comparison = Comparison {
        changes,
        side,
        old_root: old,
        new_root: new,
        steps: 0,
        open: HashSet::new(),
        alike: HashSet::new(),
        same: HashSet::new(),
    };
    comparison.schemas(old, new, place, 0);
    // Such as a definition that nothing refers to.
    if changes.list.len() == count {
        changes.add(false, place, "it is written in another way");
    }
}

/// Two places, one in each schema.
type Pair = (*const Value, *const Value);

struct Comparison<'a, 'c> {
    changes: &'c mut Changes,
    side: Side,
    old_root: &'a Value,
    new_root: &'a Value,
    steps: usize,
    /// What is being compared; met again within itself, it is not compared twice.
    open: HashSet<Pair>,
    /// What was compared, and had no change.
    alike: HashSet<Pair>,
    /// What was compared and allows the same, whatever its descriptions say.
    same: HashSet<Pair>,
}

/// A schema with its references followed.
#[derive(Clone, Copy)]
enum Seen<'a> {
    Anything,
    Nothing,
    Fields(&'a Object),
}

impl<'a> Comparison<'a, '_> {
    fn report(&mut self, effect: Effect, path: &str, what: impl Into<String>) {
        let breaking = match effect {
            Effect::Other => true,
            Effect::Fewer => self.side == Side::Input,
            Effect::More => self.side == Side::Output,
        };
        self.changes.add(breaking, path, what);
    }

    /// Is there no more to be done? Says so once.
    fn is_over(&mut self, path: &str, depth: usize) -> bool {
        self.steps += 1;
        if self.steps == MAX_STEPS || depth >= MAX_DEPTH {
            self.changes.add(true, path, TOO_MUCH);
        }
        self.steps >= MAX_STEPS || depth >= MAX_DEPTH || self.changes.is_full
    }

    fn schemas(&mut self, old: &'a Value, new: &'a Value, path: &str, depth: usize) {
        let pair: Pair = (old, new);
        if self.alike.contains(&pair) || self.is_over(path, depth) {
            return;
        }
        let (old_end, old_seen) = self.follow(old, self.old_root);
        let (new_end, new_seen) = self.follow(new, self.new_root);
        if !self.open.insert((old_end, new_end)) {
            return;
        }
        let count = self.changes.list.len();
        self.annotations([old, old_end], [new, new_end], path);
        match (old_seen, new_seen) {
            (Some(old), Some(new)) => self.seen(old, new, path, depth),
            // A reference that leads out, or that has more beside it.
            _ if self.is_same(old, new, Under::Schemas, 0) => {}
            _ => self.report(Effect::Other, path, UNCLEAR),
        }
        self.open.remove(&(old_end, new_end));
        if self.changes.list.len() == count {
            self.alike.insert(pair);
        }
    }

    /// Where a schema is really written, and what is written there if that can be told.
    fn follow(&self, schema: &'a Value, root: &'a Value) -> (&'a Value, Option<Seen<'a>>) {
        let mut current = schema;
        for _ in 0..MAX_HOPS {
            let fields = match current {
                Value::Bool(false) => return (current, Some(Seen::Nothing)),
                Value::Bool(true) => return (current, Some(Seen::Anything)),
                Value::Object(fields) => fields,
                _ => return (current, None),
            };
            // Where these lead depends on who refers to this.
            if ["$dynamicRef", "$recursiveRef"]
                .iter()
                .any(|keyword| fields.contains_key(*keyword))
            {
                return (current, None);
            }
            let only = match fields.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
                Some([only]) => Some(only),
                _ => None,
            };
            let stands_for = |keyword: &str| fields.keys().all(|key| key == keyword || !is_constraint(key));
            match (fields.get("$ref"), only) {
                (Some(Value::String(reference)), _) if stands_for("$ref") => match target(root, reference) {
                    Some(next) => current = next,
                    None => return (current, None),
                },
                (Some(_), _) => return (current, None),
                (None, Some(only)) if stands_for("allOf") => current = only,
                (None, _) if fields.keys().any(|key| is_constraint(key)) => return (current, Some(Seen::Fields(fields))),
                (None, _) => return (current, Some(Seen::Anything)),
            }
        }
        (current, None)
    }

    /// Descriptions and the like, beside a reference or where it leads.
    fn annotations(&mut self, old: [&Value; 2], new: [&Value; 2], path: &str) {
        let said = |places: [&'_ Value; 2]| {
            let mut said = Object::new();
            for (key, value) in places.into_iter().filter_map(Value::as_object).flatten() {
                if (is_annotation(key) || key == "$schema") && !said.contains_key(key) {
                    said.insert(key.clone(), value.clone());
                }
            }
            said
        };
        let (old, new) = (said(old), said(new));
        for key in keys(&old, &new) {
            match (old.get(key), new.get(key)) {
                (Some(old), Some(new)) if key == "default" && old != new => {
                    self.changes
                        .add(false, &at(path, key), format!("it was {} and is {}", shown(old), shown(new)));
                }
                (old, new) => self.changes.note(&at(path, key), old, new),
            }
        }
    }

    fn seen(&mut self, old: Seen<'a>, new: Seen<'a>, path: &str, depth: usize) {
        match (old, new) {
            (Seen::Nothing, Seen::Nothing) | (Seen::Anything, Seen::Anything) => {}
            (Seen::Nothing, _) => self.report(Effect::More, path, "no value was allowed, and now some are"),
            (_, Seen::Nothing) => self.report(Effect::Fewer, path, "no value is allowed any more"),
            (Seen::Fields(old), Seen::Fields(new)) => self.fields(old, new, path, depth),
            (Seen::Fields(_), Seen::Anything) => self.report(Effect::More, path, "any value is allowed now"),
            (Seen::Anything, Seen::Fields(_)) => self.report(Effect::Fewer, path, "any value was allowed, and now not all are"),
        }
    }

    fn fields(&mut self, old: &'a Object, new: &'a Object, path: &str, depth: usize) {
        if self.alternatives(old, new, path, depth) {
            return;
        }
        if is_choice(old) != is_choice(new) {
            return self.report(Effect::Other, path, UNCLEAR);
        }
        self.types(&types(old), &types(new), path);
        self.values(old, new, path);
        for (key, limit) in LIMITS {
            self.limit(key, limit, old, new, path);
        }
        for key in TEXTS {
            self.text(key, old, new, path);
        }
        self.object(old, new, path, depth);
        self.array(old, new, path, depth);
        for key in keys(old, new).filter(|key| is_constraint(key) && !is_compared(key)) {
            match (old.get(key), new.get(key)) {
                (Some(Value::Array(old)), Some(Value::Array(new))) if key == "allOf" && old.len() == new.len() => {
                    for (place, (old, new)) in old.iter().zip(new).enumerate() {
                        self.schemas(old, new, &format!("{}[{place}]", at(path, key)), depth + 1);
                    }
                }
                (Some(old), Some(new)) if self.is_same(old, new, Under::keyword(key), 0) => {
                    if old != new {
                        self.changes
                            .add(false, &at(path, key), "its descriptions or definitions changed");
                    }
                }
                _ => self.report(Effect::Other, &at(path, key), UNCLEAR),
            }
        }
    }

    /// A choice between types, as in `anyOf: [{type: string}, {type: null}]`, compared type by type. Was it one?
    fn alternatives(&mut self, old: &'a Object, new: &'a Object, path: &str, depth: usize) -> bool {
        if !is_choice(old) && !is_choice(new) {
            return false;
        }
        let (Some(old), Some(new)) = (self.by_type(old, self.old_root), self.by_type(new, self.new_root)) else {
            return false;
        };
        // An integer may have become a number, or the reverse; what else is asked of it would not be compared.
        if ["integer", "number"]
            .iter()
            .any(|kind| old.contains_key(kind) != new.contains_key(kind))
        {
            return false;
        }
        let names = |by_type: &HashMap<&'a str, Branch<'a>>| by_type.keys().map(|kind| (*kind).to_owned()).collect::<HashSet<_>>();
        self.types(&Some(names(&old)), &Some(names(&new)), path);
        let mut kinds: Vec<&str> = old.keys().filter(|kind| new.contains_key(*kind)).copied().collect();
        kinds.sort_unstable();
        for kind in kinds {
            match (old.get(kind), new.get(kind)) {
                (Some(Branch::Written(old)), Some(Branch::Written(new))) => self.schemas(old, new, path, depth + 1),
                (Some(old), Some(new)) if !self.is_over(path, depth + 1) => {
                    if let (Some(old), Some(new)) = (self.branch(old, self.old_root), self.branch(new, self.new_root)) {
                        self.fields(old, new, path, depth + 1);
                    }
                }
                _ => {}
            }
        }
        true
    }

    fn branch(&self, branch: &Branch<'a>, root: &'a Value) -> Option<&'a Object> {
        match branch {
            Branch::Own(fields) => Some(fields),
            Branch::Written(schema) => match self.follow(schema, root) {
                (_, Some(Seen::Fields(fields))) => Some(fields),
                _ => None,
            },
        }
    }

    /// The branches of a choice, if each is of one type that no other has. A schema of one type is a choice of one.
    fn by_type(&self, fields: &'a Object, root: &'a Value) -> Option<HashMap<&'a str, Branch<'a>>> {
        let mut by_type = HashMap::new();
        let choice = fields.get("anyOf").or_else(|| fields.get("oneOf"));
        let Some(choice) = choice else {
            let kind = fields.get("type")?.as_str()?;
            by_type.insert(kind, Branch::Own(fields));
            return Some(by_type);
        };
        // With more beside it, it is no mere choice.
        if fields.keys().filter(|key| is_constraint(key)).count() > 1 {
            return None;
        }
        for branch in choice.as_array()? {
            let (_, Some(Seen::Fields(fields))) = self.follow(branch, root) else {
                return None;
            };
            let kind = fields.get("type")?.as_str()?;
            if fields.contains_key("anyOf")
                || fields.contains_key("oneOf")
                || by_type.insert(kind, Branch::Written(branch)).is_some()
            {
                return None;
            }
        }
        Some(by_type)
    }

    fn types(&mut self, old: &Option<HashSet<String>>, new: &Option<HashSet<String>>, path: &str) {
        if old == new {
            return;
        }
        let words = |types: &Option<HashSet<String>>| match types {
            None => "any type".to_owned(),
            Some(types) => {
                let mut types: Vec<&str> = types.iter().map(String::as_str).collect();
                types.sort_unstable();
                shown(&types.join(" | ").into()).replace('"', "")
            }
        };
        let covers = |wide: &Option<HashSet<String>>, narrow: &Option<HashSet<String>>| match (wide, narrow) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wide), Some(narrow)) => narrow
                .iter()
                .all(|kind| wide.contains(kind) || (kind == "integer" && wide.contains("number"))),
        };
        let effect = match (covers(old, new), covers(new, old)) {
            (true, false) => Effect::Fewer,
            (false, true) => Effect::More,
            (true, true) => return,
            (false, false) => Effect::Other,
        };
        self.report(
            effect,
            &at(path, "type"),
            format!("it was {} and is {}", words(old), words(new)),
        );
    }

    /// `enum` and `const`.
    fn values(&mut self, old: &Object, new: &Object, path: &str) {
        match (values(old), values(new)) {
            (None, None) => {}
            (None, Some(new)) => self.report(
                Effect::Fewer,
                &at(path, "enum"),
                format!("only these are allowed now: {}", listed(&new)),
            ),
            (Some(_), None) => self.report(Effect::More, &at(path, "enum"), "it is no longer limited to certain values"),
            (Some(old), Some(new)) => {
                let texts = |values: &[&Value]| values.iter().map(|value| value.to_string()).collect::<HashSet<_>>();
                let (in_old, in_new) = (texts(&old), texts(&new));
                let gone: Vec<&Value> = old.into_iter().filter(|value| !in_new.contains(&value.to_string())).collect();
                let added: Vec<&Value> = new.into_iter().filter(|value| !in_old.contains(&value.to_string())).collect();
                if !gone.is_empty() {
                    self.report(Effect::Fewer, &at(path, "enum"), format!("{} is gone", listed(&gone)));
                }
                if !added.is_empty() {
                    self.report(Effect::More, &at(path, "enum"), format!("{} is new", listed(&added)));
                }
            }
        }
    }

    fn limit(&mut self, key: &str, limit: Limit, old: &Object, new: &Object, path: &str) {
        let path = at(path, key);
        let (old, new) = (old.get(key), new.get(key));
        if old == new {
            return;
        }
        let read = |value: Option<&Value>| match value {
            None => Ok(None),
            // None at all is as good as none written.
            Some(value) => match value.as_f64() {
                Some(0.0) if limit == Limit::LeastCount => Ok(None),
                Some(number) => Ok(Some(number)),
                None => Err(()),
            },
        };
        let (Ok(before), Ok(after)) = (read(old), read(new)) else {
            return self.report(Effect::Other, &path, UNCLEAR);
        };
        let is_stricter = |old: f64, new: f64| if limit == Limit::Most { new < old } else { new > old };
        let words = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), shown);
        let effect = match (before, after) {
            (None, None) => return,
            (None, Some(_)) => Effect::Fewer,
            (Some(_), None) => Effect::More,
            // As numbers they are alike: 1 and 1.0.
            (Some(old), Some(new)) if old == new => return,
            (Some(old), Some(new)) if is_stricter(old, new) => Effect::Fewer,
            (Some(_), Some(_)) => Effect::More,
        };
        self.report(effect, &path, format!("it was {} and is {}", words(old), words(new)));
    }

    fn text(&mut self, key: &str, old: &Object, new: &Object, path: &str) {
        let path = at(path, key);
        // `uniqueItems: false` asks for nothing.
        let is_asked = |value: &&Value| **value != Value::Bool(false);
        match (old.get(key).filter(is_asked), new.get(key).filter(is_asked)) {
            (None, Some(new)) => self.report(Effect::Fewer, &path, format!("{} is asked for now", shown(new))),
            (Some(old), None) => self.report(Effect::More, &path, format!("{} is no longer asked for", shown(old))),
            (Some(old), Some(new)) if old != new => {
                self.report(Effect::Other, &path, format!("it was {} and is {}", shown(old), shown(new)));
            }
            _ => {}
        }
    }

    fn object(&mut self, old: &'a Object, new: &'a Object, path: &str, depth: usize) {
        let properties = |fields: &'a Object| fields.get("properties").and_then(Value::as_object);
        let (was_required, is_required) = (required(old), required(new));
        let place = at(path, "properties");
        let (before, after) = (properties(old), properties(new));
        for (name, schema) in before.into_iter().flatten() {
            let place = at(&place, name);
            match after.and_then(|after| after.get(name)) {
                Some(new) => self.schemas(schema, new, &place, depth + 1),
                None => {
                    // Whoever sends it still can if others are asked for in so many words.
                    let others = new
                        .get("additionalProperties")
                        .is_some_and(|others| *others != Value::Bool(false));
                    self.changes.add(self.side == Side::Output || !others, &place, "it is gone");
                }
            }
        }
        for (name, schema) in after.into_iter().flatten() {
            if before.is_some_and(|before| before.contains_key(name)) {
                continue;
            }
            let place = at(&place, name);
            // What had a schema before, by a rule for others, may fit the new one or not.
            let was_ruled = old.get("additionalProperties").is_some_and(Value::is_object) || old.contains_key("patternProperties");
            let is_narrow = is_required.contains(name.as_str()) || *schema == Value::Bool(false);
            let breaking = if self.side == Side::Input {
                is_narrow || was_ruled
            } else {
                was_ruled
            };
            self.changes.add(
                breaking,
                &place,
                if is_required.contains(name.as_str()) {
                    "it is new, and required"
                } else {
                    "it is new"
                },
            );
        }
        let is_known = |name: &str, properties: Option<&Object>| properties.is_some_and(|properties| properties.contains_key(name));
        // The change of a property that came or went has been told.
        let mut names: Vec<&str> = was_required.symmetric_difference(&is_required).copied().collect();
        names.sort_unstable();
        for name in names {
            match (is_known(name, before), is_known(name, after)) {
                (false, true) if is_required.contains(name) => continue,
                (true, false) if was_required.contains(name) => continue,
                _ => {}
            }
            if is_required.contains(name) {
                self.report(Effect::Fewer, &at(&place, name), "it is required now");
            } else {
                self.report(Effect::More, &at(&place, name), "it is no longer required");
            }
        }
        let is_closed = |fields: &Object| fields.get("additionalProperties") == Some(&Value::Bool(false));
        match (is_closed(old), is_closed(new)) {
            (true, true) => {}
            (false, true) => self.report(
                Effect::Fewer,
                &at(path, "additionalProperties"),
                "other properties are not allowed any more",
            ),
            // Not even for who reads them, no more than a new property is.
            (true, false) => self
                .changes
                .add(false, &at(path, "additionalProperties"), "other properties are allowed now"),
            (false, false) => self.others("additionalProperties", old, new, path, depth),
        }
    }

    fn array(&mut self, old: &'a Object, new: &'a Object, path: &str, depth: usize) {
        let items = |fields: &'a Object| fields.get("items");
        if items(old).is_some_and(Value::is_array) || items(new).is_some_and(Value::is_array) {
            let (old, new) = (items(old).unwrap_or(&Value::Null), items(new).unwrap_or(&Value::Null));
            self.tuple("items", old, new, path, depth);
        } else {
            self.others("items", old, new, path, depth);
        }
        if old.contains_key("prefixItems") || new.contains_key("prefixItems") {
            let parts = |fields: &'a Object| fields.get("prefixItems").unwrap_or(&Value::Null);
            self.tuple("prefixItems", parts(old), parts(new), path, depth);
        }
    }

    /// A list of schemas, by place.
    fn tuple(&mut self, key: &str, old: &'a Value, new: &'a Value, path: &str, depth: usize) {
        match (old, new) {
            (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
                for (place, (old, new)) in old.iter().zip(new).enumerate() {
                    self.schemas(old, new, &format!("{}[{place}]", at(path, key)), depth + 1);
                }
            }
            _ => self.report(Effect::Other, &at(path, key), UNCLEAR),
        }
    }

    /// A keyword whose absence means that everything is allowed.
    fn others(&mut self, key: &str, old: &'a Object, new: &'a Object, path: &str, depth: usize) {
        const ANYTHING: &Value = &Value::Bool(true);
        let (old, new) = (old.get(key).unwrap_or(ANYTHING), new.get(key).unwrap_or(ANYTHING));
        self.schemas(old, new, &at(path, key), depth + 1);
    }

    /// Do two schemas allow the same, as far as they are written alike? Descriptions are left aside, references followed.
    fn is_same(&mut self, old: &'a Value, new: &'a Value, under: Under, depth: usize) -> bool {
        self.steps += 1;
        if self.steps >= MAX_STEPS || depth > MAX_DEPTH {
            return false;
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) if under != Under::Values => {
                let matters = |key: &String| under == Under::Named || is_constraint(key);
                if keys(old, new).any(|key| matters(key) && old.contains_key(key) != new.contains_key(key)) {
                    return false;
                }
                old.iter().filter(|(key, _)| matters(key)).all(|(key, old)| {
                    let Some(new) = new.get(key) else { return false };
                    match (key.as_str(), old, new) {
                        ("$ref", Value::String(a), Value::String(b)) if under == Under::Schemas => self.leads_to_same(a, b, depth),
                        ("$dynamicRef" | "$recursiveRef", _, _) if under == Under::Schemas => false,
                        _ if under == Under::Named => self.is_same(old, new, Under::Schemas, depth + 1),
                        _ => self.is_same(old, new, Under::keyword(key), depth + 1),
                    }
                })
            }
            (Value::Array(old), Value::Array(new)) if under != Under::Values => {
                old.len() == new.len()
                    && old
                        .iter()
                        .zip(new)
                        .all(|(old, new)| self.is_same(old, new, Under::Schemas, depth + 1))
            }
            _ => old == new,
        }
    }

    fn leads_to_same(&mut self, old: &str, new: &str, depth: usize) -> bool {
        match (target(self.old_root, old), target(self.new_root, new)) {
            (Some(old), Some(new)) => {
                let pair: Pair = (old, new);
                // Within itself it is the same if the rest of it is.
                if self.same.contains(&pair) || !self.open.insert(pair) {
                    return true;
                }
                let is_same = self.is_same(old, new, Under::Schemas, depth + 1);
                self.open.remove(&pair);
                if is_same {
                    self.same.insert(pair);
                }
                is_same
            }
            // An anchor, or an address: what it leads to is not looked up here, and the rest of the schema is not the same.
            _ => false,
        }
    }
}

/// One of the schemas of a choice.
enum Branch<'a> {
    /// The schema itself, which is no choice.
    Own(&'a Object),
    Written(&'a Value),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Least,
    /// Whose absence means 0.
    LeastCount,
    Most,
}

const LIMITS: [(&str, Limit); 10] = [
    ("minimum", Limit::Least),
    ("exclusiveMinimum", Limit::Least),
    ("minLength", Limit::LeastCount),
    ("minItems", Limit::LeastCount),
    ("minProperties", Limit::LeastCount),
    ("maximum", Limit::Most),
    ("exclusiveMaximum", Limit::Most),
    ("maxLength", Limit::Most),
    ("maxItems", Limit::Most),
    ("maxProperties", Limit::Most),
];

/// Keywords that ask for something, of which another value is another demand.
const TEXTS: [&str; 6] = [
    "pattern",
    "format",
    "multipleOf",
    "uniqueItems",
    "contentEncoding",
    "contentMediaType",
];

/// Does a keyword forbid values? One that nobody knows may; what is only there to be referred to is compared where it is used.
fn is_constraint(key: &str) -> bool {
    !is_annotation(key)
        && !matches!(
            key,
            "$schema" | "$id" | "$anchor" | "$dynamicAnchor" | "$defs" | "definitions" | "$vocabulary"
        )
}

/// Is it compared on its own?
fn is_compared(key: &str) -> bool {
    matches!(
        key,
        "type" | "enum" | "const" | "properties" | "required" | "additionalProperties" | "items" | "prefixItems"
    ) || TEXTS.contains(&key)
        || LIMITS.iter().any(|(limit, _)| *limit == key)
}

fn is_choice(fields: &Object) -> bool {
    fields.contains_key("anyOf") || fields.contains_key("oneOf")
}

/// None for all of them.
fn types(fields: &Object) -> Option<HashSet<String>> {
    match fields.get("type") {
        Some(Value::String(kind)) => Some(HashSet::from([kind.clone()])),
        Some(Value::Array(kinds)) => Some(kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => values(fields).map(|values| values.into_iter().map(|value| type_of(value).to_owned()).collect()),
    }
}

/// Those that are allowed, where they are listed.
fn values(fields: &Object) -> Option<Vec<&Value>> {
    match (fields.get("const"), fields.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn required(fields: &Object) -> HashSet<&str> {
    let required = fields.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn listed(values: &[&Value]) -> String {
    let mut words: Vec<String> = values.iter().take(MAX_VALUES).map(|value| shown(value)).collect();
    if values.len() > MAX_VALUES {
        words.push(format!("{} more", values.len() - MAX_VALUES));
    }
    if words.is_empty() {
        "nothing".to_owned()
    } else {
        words.join(", ")
    }
}
