// SPDX-License-Identifier: Apache-2.0
//! Examples both ways, and properties against a small validator that shares no code with the judge.
#![expect(clippy::needless_pass_by_value, reason = "examples read better without a & each")]

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::manifest::schema::normalise;

#[track_caller]
fn fit(producer: Value, consumer: Value) {
    assert_eq!(fits(&producer, &consumer), Ok(()));
}

/// Does not fit, and says so in these words.
#[track_caller]
fn part(producer: Value, consumer: Value, expected: &[&str]) {
    let found = fits(&producer, &consumer).unwrap_err();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

/// The first fits the second, and not the other way round.
#[track_caller]
fn narrower(narrow: Value, wide: Value) {
    assert_eq!(fits(&narrow, &wide), Ok(()));
    assert!(fits(&wide, &narrow).is_err(), "{wide} should not fit {narrow}");
}

#[test]
fn types_fit_if_none_is_left_over() {
    narrower(json!({"type": "integer"}), json!({"type": "number"}));
    narrower(json!({"type": "string"}), json!({"type": ["string", "null"]}));
    narrower(json!({"type": "string"}), json!({}));
    narrower(json!(false), json!({"type": "string"}));
    narrower(json!({"type": "object"}), json!(true));
    part(
        json!({"type": ["string", "null"]}),
        json!({"type": "integer"}),
        &["may be null or string, expected integer"],
    );
}

#[test]
fn values_fit_where_each_of_them_is_accepted() {
    narrower(json!({"const": "a"}), json!({"enum": ["a", "b"]}));
    narrower(json!({"enum": ["a", "b"]}), json!({"type": "string", "maxLength": 1}));
    narrower(json!({"enum": [1, 2.0]}), json!({"type": "integer", "minimum": 1}));
    narrower(json!({"const": 1.0}), json!({"enum": [1, 2]}));
    narrower(json!({"const": null}), json!({"type": ["null", "string"]}));
    fit(json!({"type": "null"}), json!({"const": null}));
    fit(json!({"type": "string", "enum": ["a", null]}), json!({"type": "string"}));
    narrower(
        json!({"const": {"a": [1, "x"]}}),
        json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": "array", "items": {"type": ["integer", "string"]}}},
        }),
    );
    part(
        json!({"enum": ["a", "c"]}),
        json!({"enum": ["a", "b"]}),
        &[r#"may be "c", which is not accepted"#],
    );
    part(
        json!({"type": "string"}),
        json!({"const": "a"}),
        &["may be another value than those accepted"],
    );
}

#[test]
fn bounds_fit_within_bounds() {
    let number = |key: &str, at: f64| json!({ "type": "number", key: at });
    narrower(number("minimum", 2.0), number("minimum", 1.0));
    narrower(number("exclusiveMinimum", 1.0), number("minimum", 1.0));
    narrower(number("maximum", 1.0), number("exclusiveMaximum", 2.0));
    narrower(json!({"type": "integer", "exclusiveMinimum": 0}), number("minimum", 1.0));
    fit(
        json!({"type": "integer", "minimum": 1}),
        json!({"type": "integer", "exclusiveMinimum": 0}),
    );
    narrower(
        json!({"type": "integer", "multipleOf": 6}),
        json!({"type": "number", "multipleOf": 3}),
    );
    fit(json!({"type": "integer"}), json!({"multipleOf": 1}));
    part(number("maximum", 2.0), number("minimum", 1.0), &["may lie beyond minimum 1.0"]);

    let text = |min: u32, max: u32| json!({"type": "string", "minLength": min, "maxLength": max});
    narrower(text(2, 3), text(1, 4));
    part(text(1, 5), text(2, 4), &["may lie beyond maxLength 4", "may lie beyond minLength 2"]);
    // Without a type, a bound concerns only what it bounds.
    fit(json!({"type": "string"}), json!({"minimum": 3, "maxItems": 1, "required": ["a"]}));
}

#[test]
fn items_fit_one_by_one() {
    let list = |of: Value| json!({"type": "array", "items": of});
    narrower(list(json!({"type": "integer"})), list(json!({"type": "number"})));
    narrower(list(json!({"type": "integer"})), json!({"type": "array"}));
    fit(json!({"type": "array", "maxItems": 0}), list(json!({"type": "string"})));
    narrower(
        json!({"type": "array", "minItems": 2, "maxItems": 3}),
        json!({"type": "array", "minItems": 1}),
    );
    let pair = json!({
        "type": "array", "items": false,
        "prefixItems": [{"type": "string"}, {"type": "integer"}],
    });
    narrower(pair.clone(), list(json!({"type": ["string", "number"]})));
    part(pair, list(json!({"type": "string"})), &["[1]: may be integer, expected string"]);
    narrower(
        json!({"type": "array", "uniqueItems": true}),
        json!({"type": "array", "uniqueItems": false}),
    );
    fit(json!({"const": [1, 2]}), json!({"uniqueItems": true}));
    part(
        json!({"const": [1, 1.0]}),
        json!({"uniqueItems": true}),
        &["may have the same item twice"],
    );
    part(
        list(list(json!({}))),
        list(list(json!({"type": "string"}))),
        &["[][]: may be anything, expected string"],
    );
}

#[test]
fn a_producer_gives_what_a_consumer_requires() {
    let short = |value| normalise(value).unwrap();
    let producer =
        short(json!({"sources": [{"title": "string", "year": "int"}], "summary": "string"}));
    narrower(producer.clone(), short(json!({"summary": "string"})));
    narrower(
        producer.clone(),
        short(json!({"sources": [{"year": "number"}], "summary": "string?"})),
    );
    part(
        producer,
        short(json!({"sources": [{"title": "int", "url": "string"}], "query": "string"})),
        &[
            "query: may be anything, expected string",
            "sources[].title: may be string, expected integer",
            "sources[].url: may be anything, expected string",
            "sources[].url: is required and may be missing",
            "query: is required and may be missing",
        ],
    );
}

#[test]
fn an_open_producer_may_send_anything_else_unless_it_is_taken_at_its_word() {
    let given = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let optional = json!({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    let closed = json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false});
    part(given.clone(), optional.clone(), &["b: may be anything, expected integer"]);
    part(given.clone(), closed.clone(), &["may have further properties, which are not accepted"]);
    for consumer in [&optional, &closed] {
        assert_eq!(fits_as_named(&given, consumer), Ok(()));
    }
    // Its word may also be that more will come, or something that is not accepted.
    let mut more = given.clone();
    more["additionalProperties"] = json!({"type": "string"});
    for consumer in [&optional, &closed] {
        assert!(fits_as_named(&more, consumer).is_err());
    }
    let mut other = given;
    other["properties"]["c"] = json!({});
    assert_eq!(
        fits_as_named(&other, &closed).unwrap_err()[0].to_string(),
        "c: may be there and is not accepted"
    );
}

#[test]
fn a_closed_producer_sends_nothing_else() {
    let closed = |properties: Value| {
        let mut schema = json!({"type": "object", "additionalProperties": false});
        schema["properties"] = properties;
        schema
    };
    narrower(closed(json!({"a": {}})), closed(json!({"a": {}, "b": {"type": "string"}})));
    narrower(closed(json!({"a": {}})), json!({"type": "object", "maxProperties": 1}));
    narrower(
        closed(json!({"a": {"type": "integer"}})),
        json!({"type": "object", "additionalProperties": {"type": "number"}}),
    );
    part(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"additionalProperties": {"type": "integer"}}),
        &["*: may be string, expected integer"],
    );
    // Two at once are as closed as the tighter one.
    let both = json!({"allOf": [closed(json!({"a": {}})), {"properties": {"b": {}}}]});
    fit(both, closed(json!({"a": {}})));
}

#[test]
fn every_alternative_of_the_producer_fits_one_of_the_consumers() {
    let string = json!({"type": "string"});
    let integer = json!({"type": "integer"});
    for word in ["anyOf", "oneOf"] {
        narrower(string.clone(), json!({ word: [integer, string] }));
        narrower(json!({ word: [integer, string] }), json!({"type": ["number", "string"]}));
        fit(json!({"type": ["string", "integer"]}), json!({ word: [integer, string] }));
        part(
            json!({ word: [integer, string, {"type": "null"}] }),
            json!({ word: [integer, string] }),
            &["may be null and fits none of 2 alternatives"],
        );
    }
    let kind = |kind: &str, value: Value| {
        json!({"type": "object", "required": ["kind", "value"],
               "properties": {"kind": {"const": kind}, "value": value}})
    };
    narrower(
        json!({"oneOf": [kind("a", json!({"type": "integer"})), kind("b", string.clone())]}),
        json!({"oneOf": [kind("b", string), kind("a", json!({"type": "number"}))]}),
    );
}

#[test]
fn all_that_holds_at_once_is_known_at_once() {
    let parts = json!({"allOf": [{"type": "integer"}, {"minimum": 3}], "maximum": 5});
    narrower(parts.clone(), json!({"type": "integer", "minimum": 2, "maximum": 5}));
    fit(json!({"type": "integer", "minimum": 3, "maximum": 5}), parts);
    fit(json!({"allOf": [{"type": "string"}, {"type": "integer"}]}), json!(false));
}

#[test]
fn references_are_followed_within_their_own_schema() {
    let named = |of: Value| json!({"$ref": "#/$defs/a~1b", "$defs": {"a/b": of}});
    narrower(named(json!({"type": "integer"})), named(json!({"type": "number"})));
    // The same words, and yet something else.
    let items =
        |of: Value| json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": of}});
    narrower(items(json!({"type": "integer"})), items(json!({"type": "number"})));
    part(
        json!({}),
        json!({"$ref": "#/nowhere", "a": 1}),
        &[r##"cannot follow the reference "#/nowhere""##],
    );
    part(json!({}), json!({"$ref": "#"}), &["nested too deep to be compared, or refers to itself"]);
    // With an `$id`, a part is a schema of its own, in which the pointer means something else.
    part(
        json!({"type": "object"}),
        json!({"$defs": {"a": true}, "properties": {"x": {"$id": "y", "$ref": "#/$defs/a"}}}),
        &[r##"x: cannot follow the reference "#/$defs/a""##],
    );
}

#[test]
fn recursive_schemas_are_compared_to_the_end() {
    let tree = |leaf: &str| {
        json!({
            "type": "object",
            "required": ["value"],
            "properties": {
                "value": {"type": leaf},
                "children": {"type": "array", "items": {"$ref": "#"}},
            },
        })
    };
    narrower(tree("integer"), tree("number"));
    part(
        tree("string"),
        tree("number"),
        &[
            "children[].value: may be string, expected number",
            "value: may be string, expected number",
        ],
    );
    // A list that is written twice as long is the same list.
    let list = json!({"type": "object", "additionalProperties": {"$ref": "#"}});
    let longer = json!({
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": {"$ref": "#"}},
    });
    fit(list.clone(), longer.clone());
    fit(longer, list);
    fit(json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}), json!({}));
}

#[test]
fn what_cannot_be_judged_must_be_the_same_on_both_sides() {
    for demand in [
        json!({"pattern": "^a"}),
        json!({"format": "uri"}),
        json!({"not": {"const": "a"}}),
        json!({"if": {"minLength": 3}, "then": {"maxLength": 9}}),
    ] {
        let mut producer = demand.clone();
        producer["type"] = json!("string");
        narrower(producer, demand);
    }
    part(
        json!({"type": "string", "pattern": "^ab"}),
        json!({"pattern": "^a"}),
        &["pattern cannot be judged and is not the producer's own"],
    );
    // Nor does it matter to what it does not concern.
    fit(json!({"type": "integer"}), json!({"pattern": "^a"}));
    // A reference in it may lead elsewhere.
    let not =
        |of: Value| json!({"type": "string", "not": {"$ref": "#/$defs/x"}, "$defs": {"x": of}});
    assert!(fits(&not(json!({"const": "a"})), &not(json!({"const": "b"}))).is_err());
}

#[test]
fn a_comparison_ends_however_large_it_is() {
    let level = |n: u32| {
        json!({"type": "object", "anyOf": (0..8).map(|i| json!({
        "properties": {format!("p{i}"): {"$ref": format!("#/$defs/l{}", n + 1)}},
    })).collect::<Vec<_>>()})
    };
    let schema = |leaf: &str| {
        let mut defs: Map<String, Value> = (0..30).map(|n| (format!("l{n}"), level(n))).collect();
        defs.insert("l30".into(), json!({ "type": leaf }));
        json!({"$ref": "#/$defs/l0", "$defs": defs})
    };
    assert!(fits(&schema("string"), &schema("integer")).is_err());
    let many = |count: u32| json!({"enum": (0..count).collect::<Vec<_>>(), "title": count});
    fit(many(1000), json!({"type": "integer"}));
    fit(many(1000), json!({"enum": many(1000)["enum"]}));
    part(many(1000), many(1001), &["may be another value than those accepted"]);
    let both = json!({"type": "array", "items": {"anyOf": [many(200), many(199), many(198)]}});
    part(both, json!({"items": {"maximum": 200}}), &["[]: too many alternatives to be compared"]);
    // Far more than the stack would bear.
    let (mut deep, mut defs) = (json!({"$ref": "#/$defs/d0"}), Map::new());
    for n in 0..2000 {
        defs.insert(format!("d{n}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]}));
    }
    defs.insert("d2000".into(), json!({"type": "string"}));
    deep["$defs"] = defs.into();
    part(
        json!({"type": "string"}),
        deep.clone(),
        &["nested too deep to be compared, or refers to itself"],
    );
    fit(deep, json!({"type": "string"}));
}

/// A validator of the keywords that [`schemas`] makes. Plain and slow.
fn valid(value: &Value, schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return *schema == Value::Bool(true) };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let number = |value: &Value| value.as_f64().unwrap();
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        _ => 0,
    } as f64;
    let equal = |one: &Value, other: &Value| one == other;
    let has_type = |word: &Value| match (word.as_str().unwrap(), value) {
        ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null)
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => number.as_f64().unwrap().fract() == 0.0,
        _ => false,
    };
    schema.iter().all(|(keyword, demand)| match (keyword.as_str(), value) {
        ("type", _) if demand.is_array() => list(demand).iter().any(has_type),
        ("type", _) => has_type(demand),
        ("const", _) => equal(value, demand),
        ("enum", _) => list(demand).iter().any(|one| equal(one, value)),
        ("minimum", Value::Number(_)) => number(value) >= number(demand),
        ("maximum", Value::Number(_)) => number(value) <= number(demand),
        ("exclusiveMinimum", Value::Number(_)) => number(value) > number(demand),
        ("multipleOf", Value::Number(_)) => number(value) % number(demand) == 0.0,
        ("minLength", Value::String(_)) | ("minItems", Value::Array(_)) => size >= number(demand),
        ("maxLength", Value::String(_)) | ("maxItems", Value::Array(_)) => size <= number(demand),
        ("items", Value::Array(items)) => {
            let prefix = schema.get("prefixItems").map_or(0, |prefix| list(prefix).len());
            items.iter().skip(prefix).all(|item| valid(item, demand))
        }
        ("prefixItems", Value::Array(items)) => {
            items.iter().zip(list(demand)).all(|(item, schema)| valid(item, &schema))
        }
        ("uniqueItems", Value::Array(items)) => {
            demand == false || (1..items.len()).all(|n| !items[..n].contains(&items[n]))
        }
        ("required", Value::Object(members)) => {
            list(demand).iter().all(|name| members.contains_key(name.as_str().unwrap()))
        }
        ("properties", Value::Object(members)) => {
            members.iter().all(|(name, it)| demand.get(name).is_none_or(|want| valid(it, want)))
        }
        ("additionalProperties", Value::Object(members)) => members.iter().all(|(name, it)| {
            let named = schema.get("properties").is_some_and(|named| named.get(name).is_some());
            named || valid(it, demand)
        }),
        ("minProperties", Value::Object(members)) => members.len() as f64 >= number(demand),
        ("maxProperties", Value::Object(members)) => members.len() as f64 <= number(demand),
        ("anyOf", _) => list(demand).iter().any(|branch| valid(value, branch)),
        ("allOf", _) => list(demand).iter().all(|branch| valid(value, branch)),
        _ => true,
    })
}

/// Few names and small numbers, so that values and schemas meet.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-1..4).prop_map(Value::from),
        Just(json!(0.5)),
        Just(json!(2.5)),
        prop::sample::select(vec!["", "a", "bb", "ccc"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let name = prop::sample::select(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        Just(json!({})),
        values().prop_map(|value| json!({ "const": value })),
        prop::collection::vec(values(), 1..3).prop_map(|values| json!({ "enum": values })),
        keywords(
            &["string", "integer", "number", "boolean", "null"],
            prop::sample::subsequence(
                vec![
                    ("minimum", json!(0.5)),
                    ("minimum", json!(2)),
                    ("exclusiveMinimum", json!(0)),
                    ("maximum", json!(2)),
                    ("multipleOf", json!(2)),
                    ("minLength", json!(1)),
                    ("maxLength", json!(2)),
                ],
                0..4,
            ),
        ),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..3);
        let name = prop::sample::select(vec!["a".to_owned(), "b".to_owned()]);
        let named = prop::collection::btree_map(name, inner.clone(), 0..3);
        let array = (inner.clone(), some.clone()).prop_flat_map(|(items, prefix)| {
            let demands = vec![
                ("items", items),
                ("prefixItems", prefix.into()),
                ("minItems", json!(1)),
                ("maxItems", json!(2)),
                ("uniqueItems", json!(true)),
            ];
            keywords(&["array", "array", "string"], prop::sample::subsequence(demands, 0..5))
        });
        let object = (named, inner).prop_flat_map(|(named, rest)| {
            let named: Map<String, Value> = named.into_iter().collect();
            let demands = vec![
                ("properties", named.into()),
                ("required", json!(["a"])),
                ("required", json!(["a", "b"])),
                ("additionalProperties", json!(false)),
                ("additionalProperties", rest),
                ("minProperties", json!(1)),
                ("maxProperties", json!(2)),
            ];
            keywords(&["object", "object", "null"], prop::sample::subsequence(demands, 0..6))
        });
        prop_oneof![
            2 => array,
            3 => object,
            1 => some.clone().prop_map(|branches| json!({ "anyOf": branches })),
            1 => some.prop_map(|parts| json!({ "allOf": parts })),
        ]
    })
}

/// An object of some of these demands, with or without a type.
fn keywords(
    types: &[&'static str],
    demands: impl Strategy<Value = Vec<(&'static str, Value)>>,
) -> impl Strategy<Value = Value> {
    let types = prop::option::of(prop::sample::subsequence(types.to_vec(), 1..=2));
    (types, demands).prop_map(|(types, demands)| {
        let mut schema: Map<String, Value> =
            demands.into_iter().map(|(keyword, demand)| (keyword.to_owned(), demand)).collect();
        if let Some(types) = types {
            let one = types.len() == 1;
            schema.insert("type".into(), if one { types[0].into() } else { types.into() });
        }
        Value::Object(schema)
    })
}

/// The same schema with a remark in every object, so that nothing is equal at a glance.
fn remarked(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let inner = |(keyword, demand): (&String, &Value)| {
                let demand = match keyword.as_str() {
                    "items" | "additionalProperties" => remarked(demand),
                    "anyOf" | "allOf" | "prefixItems" => {
                        demand.as_array().unwrap().iter().map(remarked).collect()
                    }
                    "properties" => {
                        let named = demand.as_object().unwrap().iter();
                        let named = named.map(|(name, schema)| (name.clone(), remarked(schema)));
                        Value::Object(named.collect())
                    }
                    _ => demand.clone(),
                };
                (keyword.clone(), demand)
            };
            let mut members: Map<String, Value> = members.iter().map(inner).collect();
            members.insert("$comment".into(), "a remark".into());
            Value::Object(members)
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_schema_fits_itself(schema in schemas()) {
        prop_assert_eq!(fits(&remarked(&schema), &schema), Ok(()));
        prop_assert_eq!(fits_as_named(&schema, &remarked(&schema)), Ok(()));
    }

    #[test]
    fn a_single_value_fits_exactly_if_it_is_valid(value in values(), schema in schemas()) {
        let fits = fits(&json!({ "const": value }), &schema).is_ok();
        prop_assert_eq!(fits, valid(&value, &schema));
    }

    #[test]
    fn what_a_producer_that_fits_can_send_is_accepted(
        producer in schemas(),
        consumer in schemas(),
        sent in prop::collection::vec(values(), 40),
    ) {
        if fits(&producer, &consumer).is_ok() {
            for value in sent {
                prop_assert!(!valid(&value, &producer) || valid(&value, &consumer), "{}", value);
            }
        }
    }

    #[test]
    fn a_schema_fits_what_is_left_of_it_without_one_demand(
        schema in schemas(),
        which in any::<prop::sample::Index>(),
    ) {
        let mut looser = remarked(&schema);
        if let Value::Object(members) = &mut looser {
            // Without these, others would concern more than before.
            let keeps = ["properties", "prefixItems"];
            let keys: Vec<String> =
                members.keys().filter(|key| !keeps.contains(&key.as_str())).cloned().collect();
            members.remove(which.get(&keys));
            prop_assert_eq!(fits(&schema, &looser), Ok(()));
        }
    }
}
