//! What others know of an app proxy's API stands in the schema that is printed: whoever sends that is understood, and finds what
//! they read.

use std::collections::BTreeMap;

use async_graphql::parser::parse_schema;
use async_graphql::parser::types::{BaseType, InputValueDefinition, Type, TypeKind, TypeSystemDefinition};
use async_graphql::{Positioned, Value};

/// A field that is read, or an input that is given: its type without what says whether it may be left out.
#[derive(Debug, Default)]
struct Field {
    of: String,
    /// Whether it must be given.
    is_required: bool,
    /// What it is given itself.
    inputs: BTreeMap<String, Self>,
}

type Types = BTreeMap<String, BTreeMap<String, Field>>;

fn bare(of: &Type) -> String {
    match &of.base {
        BaseType::Named(name) => name.to_string(),
        BaseType::List(each) => format!("[{}]", bare(each)),
    }
}

fn inputs(of: &[Positioned<InputValueDefinition>]) -> BTreeMap<String, Field> {
    let one = |input: &Positioned<InputValueDefinition>| {
        let input = &input.node;
        let default = input.default_value.as_ref().map(|value| &value.node);
        let is_required = !input.ty.node.nullable && default.is_none_or(|default| *default == Value::Null);
        (input.name.node.to_string(), Field { of: bare(&input.ty.node), is_required, ..Field::default() })
    };
    of.iter().map(one).collect()
}

/// Every type of a schema, with its fields, its inputs or its words.
fn types(schema: &str) -> Types {
    let mut all = Types::new();
    for definition in parse_schema(schema).unwrap().definitions {
        let TypeSystemDefinition::Type(definition) = definition else { continue };
        let fields = match definition.node.kind {
            TypeKind::Object(object) => {
                let of = object.fields.into_iter().map(|field| field.node);
                of.map(|field| {
                    let inputs = inputs(&field.arguments);
                    (
                        field.name.node.to_string(),
                        Field { of: bare(&field.ty.node), inputs, ..Field::default() },
                    )
                })
                .collect()
            }
            TypeKind::InputObject(object) => inputs(&object.fields),
            TypeKind::Enum(words) => {
                let of = words.values.into_iter().map(|word| word.node.value.node.to_string());
                of.map(|word| (word, Field::default())).collect()
            }
            _ => continue,
        };
        all.insert(definition.node.name.node.to_string(), fields);
    }
    all
}

/// What of some fields, or inputs, is not understood or not found in others.
fn missing(at: &str, named: &BTreeMap<String, Field>, served: &BTreeMap<String, Field>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, field) in named {
        let at = format!("{at}.{name}");
        let Some(found) = served.get(name) else {
            wrong.push(format!("{at} is not there"));
            continue;
        };
        if found.of != field.of {
            wrong.push(format!("{at} is {} and not {}", found.of, field.of));
        }
        if found.is_required && !field.is_required {
            wrong.push(format!("{at} must be given"));
        }
        wrong.extend(missing(&at, &field.inputs, &found.inputs));
    }
    let must = served.iter().filter(|(name, field)| field.is_required && !named.contains_key(*name));
    wrong.extend(must.map(|(name, _)| format!("{at}.{name} must be given as well")));
    wrong
}

#[test]
fn what_is_known_of_an_app_proxy_stands_in_the_printed_schema() {
    let (named, served) = (types(include_str!("named.graphql")), types(include_str!("../../schema.graphql")));
    assert!(named.len() > 45 && named["Mutation"].len() == 10, "{} types", named.len());
    let none = BTreeMap::new();
    let each = named.iter().map(|(name, fields)| missing(name, fields, served.get(name).unwrap_or(&none)));
    let wrong: Vec<String> = each.flatten().collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
