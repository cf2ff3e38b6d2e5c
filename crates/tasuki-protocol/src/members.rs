// SPDX-License-Identifier: Apache-2.0
//! Which members a request may have. It follows from the request's schema, and so holds for a type
//! whether or not its author thought of it: every object is closed, but for those that [`OPEN`] names.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};
use tasuki_core::envelope::{Fault, version};

/// What an object does with members that are not known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Openness {
    /// It has any members, and all of them are kept, hashed and passed on.
    Open,
    /// They are kept, hashed and passed on where `envelope_version` says that they are of a newer minor,
    /// and refused otherwise.
    NewerMinor,
    /// It is brought into the form of today before anybody looks, with rules of its own.
    Translated,
}

/// Every object in a request that may have members which are not known here, by the name of its schema.
/// Whatever is not in this list is closed. What is published as any JSON (a manifest, a JSON Schema)
/// has no members that we could know, and is read by its own rules.
pub const OPEN: &[(&str, Openness)] = &[
    // Metadata, details of a failure: the sender's own.
    ("Object", Openness::Open),
    ("Payload", Openness::Open),
    // An envelope of major 1.
    ("Flat", Openness::Translated),
    // What becomes an envelope.
    ("FollowUp", Openness::NewerMinor),
    ("Offer", Openness::NewerMinor),
    ("Send", Openness::NewerMinor),
];

const UNKNOWN: &str = "is not known";
const UNKNOWN_YET: &str = "is not known; a newer minor of envelope_version may bring new members";
/// How many members that are not known are named.
const NAMED_MAX: usize = 20;

/// The members of one request, and of what is in it.
#[derive(Debug)]
pub struct Members {
    nodes: Vec<Node>,
    root: usize,
}

/// An object, a list, or something without members; or whichever of them it turns out to be.
#[derive(Debug, Default)]
struct Node {
    closed: bool,
    newer_minor: bool,
    members: BTreeMap<String, usize>,
    /// Of a map, whose names are free.
    others: Option<usize>,
    items: Option<usize>,
}

impl Members {
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let top = generator.subschema_for::<T>().to_value();
        let definitions = generator.take_definitions(true);
        let mut maker = Maker { definitions: &definitions, nodes: Vec::new(), made: Vec::new() };
        let root = maker.node(vec![&top]);
        Self { nodes: maker.nodes, root }
    }

    /// The names that the request itself may have.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes[self.root].members.keys().map(String::as_str)
    }

    /// Every member that is not known, with its place.
    #[must_use]
    pub fn unknown(&self, value: &Value) -> Vec<Fault> {
        let mut found = Vec::new();
        self.look(self.root, value, &Place::Top, &mut found);
        found
    }

    fn look(&self, node: usize, value: &Value, place: &Place<'_>, found: &mut Vec<Fault>) {
        let node = &self.nodes[node];
        match value {
            Value::Object(members) => {
                let open = !node.closed || node.newer_minor && is_newer(members);
                for (name, value) in members {
                    let place = Place::Member(place, name);
                    match node.members.get(name).or(node.others.as_ref()) {
                        Some(known) => self.look(*known, value, &place, found),
                        None if open || found.len() >= NAMED_MAX => {}
                        None => {
                            let problem = if node.newer_minor { UNKNOWN_YET } else { UNKNOWN };
                            found.push(Fault::new(place.text(), problem));
                        }
                    }
                }
            }
            Value::Array(items) => {
                let Some(item) = node.items else { return };
                for (number, value) in items.iter().enumerate() {
                    self.look(item, value, &Place::Item(place, number), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn is_newer(members: &Map<String, Value>) -> bool {
    let given = members.get("envelope_version").and_then(Value::as_str);
    given.is_some_and(version::is_newer_minor)
}

/// Where something stands. Written down only where there is a fault.
enum Place<'p> {
    Top,
    Member(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn text(&self) -> String {
        match self {
            Self::Top => String::new(),
            Self::Member(within, name) => format!("{}/{name}", within.text()),
            Self::Item(within, number) => format!("{}/{number}", within.text()),
        }
    }
}

struct Maker<'s> {
    definitions: &'s Map<String, Value>,
    nodes: Vec<Node>,
    /// Schemas refer to themselves; each set of alternatives is made once.
    made: Vec<(Vec<*const Value>, usize)>,
}

/// What the alternatives of a schema come to.
#[derive(Default)]
struct Alternatives<'s> {
    objects: Vec<&'s Map<String, Value>>,
    open: bool,
    newer_minor: bool,
}

impl<'s> Maker<'s> {
    #[expect(clippy::needless_pass_by_value, reason = "each list is made for this call")]
    fn node(&mut self, schemas: Vec<&'s Value>) -> usize {
        let key: Vec<_> = schemas.iter().map(|schema| std::ptr::from_ref(*schema)).collect();
        if let Some((_, made)) = self.made.iter().find(|(known, _)| *known == key) {
            return *made;
        }
        let number = self.nodes.len();
        self.nodes.push(Node::default());
        self.made.push((key, number));
        let mut all = Alternatives::default();
        schemas.iter().for_each(|schema| self.expand(schema, &mut all));
        let mut members: BTreeMap<&String, Vec<&'s Value>> = BTreeMap::new();
        let (mut others, mut items) = (Vec::new(), Vec::new());
        let mut closed = false;
        for schema in all.objects {
            let properties = schema.get("properties").and_then(Value::as_object);
            closed |= properties.is_some();
            for (name, schema) in properties.into_iter().flatten() {
                members.entry(name).or_default().push(schema);
            }
            match schema.get("additionalProperties") {
                Some(Value::Bool(more)) => closed |= !more,
                Some(schema) => others.push(schema),
                None => {}
            }
            items.extend(schema.get("items"));
        }
        // Nothing of what is anybody's own is looked at.
        let node = if all.open {
            Node::default()
        } else {
            let members = members.into_iter();
            Node {
                closed,
                newer_minor: all.newer_minor,
                members: members.map(|(name, all)| (name.clone(), self.node(all))).collect(),
                others: (!others.is_empty()).then(|| self.node(others)),
                items: (!items.is_empty()).then(|| self.node(items)),
            }
        };
        self.nodes[number] = node;
        number
    }

    fn expand(&self, schema: &'s Value, all: &mut Alternatives<'s>) {
        let Value::Object(schema) = schema else {
            all.open |= *schema == Value::Bool(true);
            return;
        };
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.rsplit('/').next().unwrap_or(name);
            match OPEN.iter().find(|(open, _)| *open == name) {
                Some((_, Openness::Open)) => {
                    all.open = true;
                    return;
                }
                Some((_, Openness::NewerMinor)) => all.newer_minor = true,
                Some((_, Openness::Translated)) => return,
                None => {}
            }
            if let Some(schema) = self.definitions.get(name) {
                self.expand(schema, all);
            }
        }
        for several in ["anyOf", "oneOf", "allOf"] {
            let several = schema.get(several).and_then(Value::as_array);
            several.into_iter().flatten().for_each(|schema| self.expand(schema, all));
        }
        all.objects.push(schema);
    }
}

/// The schema of a request on its own, for whoever names every fault of one.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Schema {
    schemars::schema_for!(T)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Claim, Complete, DecideMany, Offer, Publication, StartPipeline};

    #[expect(clippy::needless_pass_by_value, reason = "made for the call")]
    fn unknown<T: JsonSchema>(value: Value) -> Vec<String> {
        Members::of::<T>().unknown(&value).into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn what_is_known_is_taken_at_every_depth() {
        let none: Vec<String> = Vec::new();
        let offer = json!({
            "from_agent": "a", "to": { "agent": "b" }, "payload": { "type": "x", "any": { "y": 1 } },
            "metadata": { "mine": { "own": 1 } }, "decisions": [{ "key": "k", "decision": "d" }],
            "terms": { "lease_ms": 1000 }, "coordinator": { "role": "lead" },
            "output_schema": { "properties": { "x": {} } },
        });
        assert_eq!(unknown::<Offer>(offer), none);
        assert_eq!(unknown::<Claim>(json!({ "agent": "a", "capabilities": ["x"] })), none);
        let decided = json!({ "by": "a", "decision": { "reroute": { "agent": "b" } } });
        assert_eq!(unknown::<DecideMany>(decided), none);
    }

    #[test]
    fn what_is_not_known_is_named_at_every_depth() {
        assert_eq!(unknown::<Claim>(json!({ "agent": "a", "agnet": "b" })), ["/agnet"]);
        let offer = json!({
            "to": { "agent": "b", "x": 1 }, "terms": { "leese_ms": 1 }, "nope": 1,
            "decisions": [{ "key": "k" }, { "kye": "k" }],
        });
        let found = unknown::<Offer>(offer);
        assert_eq!(found, ["/decisions/1/kye", "/nope", "/terms/leese_ms", "/to/x"]);
        assert_eq!(unknown::<Publication>(json!({ "nope": 1 })), ["/nope"]);
        assert_eq!(unknown::<StartPipeline>(json!({ "nope": 1 })), ["/nope"]);
        let complete = json!({ "follow_ups": [{ "to": { "agent": "b" }, "nope": 1 }] });
        assert_eq!(unknown::<Complete>(complete), ["/follow_ups/0/nope"]);
    }

    #[test]
    fn members_of_a_newer_minor_are_not_faults_but_within_what_is_known() {
        let newer = json!({ "envelope_version": "2.99", "mood": 1, "terms": { "leese_ms": 1 } });
        assert_eq!(unknown::<Offer>(newer), ["/terms/leese_ms"]);
        assert_eq!(unknown::<Offer>(json!({ "envelope_version": "2.0", "mood": 1 })), ["/mood"]);
    }
}
