//! Parses a schema document to its tree.

use super::compare::first_duplicate;
use super::encrypt::{Encrypted, check_fields};
use super::rules::{Additional, Bound, Dependency, Items, Rules};
use crate::context::Shared;
use crate::regex::Regex;
use crate::text::show;
use crate::type_set::{TypeSet, type_by_alias};
use quire_document::{Array, Doc, Type, Value, ValueBuf, number::Number};
use quire_error::{Error, Result};
use std::collections::HashSet;

/// Keywords of the draft that MongoDB refuses by name.
const UNSUPPORTED: &[&str] = &["$ref", "$schema", "default", "definitions", "format", "id"];

/// Parses a schema. `root` is true for the schema of whole documents.
pub(super) fn rules(doc: Doc<'_>, root: bool) -> Result<Rules> {
    let mut rules = Rules { source: doc.to_owned(), ..Rules::default() };
    for (name, value) in doc.fields() {
        keyword(&mut rules, name, value, root)?;
    }
    for (bound, exclusive) in [("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")] {
        if doc.contains(exclusive) && !doc.contains(bound) {
            return Err(failed(format!(
                "$jsonSchema keyword '{bound}' must be a present if {exclusive} is present"
            )));
        }
    }
    check_combinations(doc)?;
    Ok(rules)
}

fn check_combinations(doc: Doc<'_>) -> Result<()> {
    if doc.contains("type") && doc.contains("bsonType") {
        let text = "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'";
        return Err(failed(text));
    }
    if let Some(other) = ["type", "bsonType"].iter().find(|name| doc.contains(name))
        && doc.contains("encrypt")
    {
        return Err(failed(format!(
            "$jsonSchema keyword 'encrypt' cannot be used in conjunction with '{other}', \
             'encrypt' implies type 'bsonType::BinData'"
        )));
    }
    if doc.contains("encrypt") && doc.contains("encryptMetadata") {
        let text = "Cannot specify both $jsonSchema keywords 'encrypt' and 'encryptMetadata'";
        return Err(failed(text));
    }
    Ok(())
}

fn keyword(rules: &mut Rules, name: &str, value: Value<'_>, root: bool) -> Result<()> {
    match name {
        "bsonType" => rules.types = Some(types(name, value, type_by_alias)?),
        "type" => rules.types = Some(types(name, value, json_type)?),
        "multipleOf" => rules.multiple_of = Some(multiple_of(value)?),
        "maximum" => rules.maximum = Some(bound(name, value, "exclusiveMaximum", rules)?),
        "minimum" => rules.minimum = Some(bound(name, value, "exclusiveMinimum", rules)?),
        "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems" => {
            let flag = boolean(name, value)?;
            rules.unique_items |= name == "uniqueItems" && flag;
        }
        "maxLength" => rules.max_length = Some(count(name, value)?),
        "minLength" => rules.min_length = Some(count(name, value)?),
        "pattern" => {
            let pattern = string_of_pattern(value)?;
            // A document is not a string, so the pattern has no effect at the root and is not
            // compiled.
            if !root {
                rules.pattern = Some(Regex::new(pattern, "")?);
            }
        }
        "maxItems" => rules.max_items = Some(count(name, value)?),
        "minItems" => rules.min_items = Some(count(name, value)?),
        "items" => rules.items = Some(items(value)?),
        "additionalItems" => rules.additional_items = Some(additional_items(value)?),
        "required" => rules.required = required(value)?,
        "properties" => rules.properties = properties(value)?,
        "patternProperties" => rules.pattern_properties = pattern_properties(value)?,
        "additionalProperties" => {
            rules.additional_properties = Some(additional_properties(value)?);
        }
        "maxProperties" => rules.max_properties = Some(count(name, value)?),
        "minProperties" => rules.min_properties = Some(count(name, value)?),
        "dependencies" => rules.dependencies = dependencies(value)?,
        "allOf" => rules.all_of = schemas(name, value, root)?,
        "anyOf" => rules.any_of = schemas(name, value, root)?,
        "oneOf" => rules.one_of = schemas(name, value, root)?,
        "not" => rules.not = Some(Box::new(not(value, root)?)),
        "enum" => rules.one_of_values = Some(enumeration(value)?),
        "title" | "description" => {
            if !matches!(value, Value::String(_)) {
                return Err(mismatch(format!(
                    "$jsonSchema keyword '{name}' must be of type string"
                )));
            }
        }
        "encrypt" => rules.encrypted = Some(Encrypted::parse(value)?),
        "encryptMetadata" => match value {
            Value::Document(doc) => check_fields(name, doc)?,
            _ => return Err(mismatch("$jsonSchema keyword 'encryptMetadata' must be an object ")),
        },
        name if UNSUPPORTED.contains(&name) => {
            return Err(failed(format!("$jsonSchema keyword '{name}' is not currently supported")));
        }
        name => return Err(failed(format!("Unknown $jsonSchema keyword: {name}"))),
    }
    Ok(())
}

/// Returns the type with a name of JSON Schema, for `type`.
fn json_type(alias: &str) -> Option<Type> {
    Some(match alias {
        "array" => Type::Array,
        "object" => Type::Document,
        "string" => Type::String,
        "boolean" => Type::Bool,
        "null" => Type::Null,
        _ => return None,
    })
}

fn types(keyword: &str, value: Value<'_>, find: fn(&str) -> Option<Type>) -> Result<TypeSet> {
    let aliases = match value {
        Value::String(alias) => vec![alias],
        Value::Array(array) => array
            .iter()
            .map(|value| {
                value.as_str().ok_or_else(|| {
                    let text = "array elements must be strings";
                    mismatch(format!("$jsonSchema keyword '{keyword}' {text}"))
                })
            })
            .collect::<Result<Vec<_>>>()?,
        _ => {
            let text = "must be either a string or an array of strings";
            return Err(mismatch(format!("$jsonSchema keyword '{keyword}' {text}")));
        }
    };
    if aliases.is_empty() {
        return Err(failed(format!("$jsonSchema keyword '{keyword}' must name at least one type")));
    }
    let mut set = TypeSet::default();
    for (at, alias) in aliases.iter().enumerate() {
        if aliases[..at].contains(alias) {
            let text = format!("$jsonSchema keyword '{keyword}' has duplicate value: {alias}");
            return Err(failed(text));
        }
        match (*alias, find(alias)) {
            ("integer", _) => {
                return Err(failed("$jsonSchema type 'integer' is not currently supported."));
            }
            ("number", _) => {
                set.insert_alias("number");
            }
            (_, Some(kind)) => set.insert(kind),
            (alias, None) => {
                return Err(Error::bad_value(format!("Unknown type name alias: {alias}")));
            }
        }
    }
    Ok(set)
}

fn multiple_of(value: Value<'_>) -> Result<ValueBuf> {
    let positive = match value.as_number() {
        None => return Err(mismatch("$jsonSchema keyword 'multipleOf' must be a number")),
        Some(Number::Int(number)) => number > 0,
        Some(Number::Double(number)) => number > 0.0 || number.is_nan(),
        Some(Number::Decimal(decimal)) => !decimal.is_negative() && !decimal.is_zero(),
    };
    if !positive {
        return Err(failed("$jsonSchema keyword 'multipleOf' must have a positive value"));
    }
    Ok(ValueBuf::new(value))
}

fn bound(name: &str, value: Value<'_>, exclusive: &str, rules: &Rules) -> Result<Bound> {
    if !value.is_number() {
        return Err(mismatch(format!("$jsonSchema keyword '{name}' must be a number")));
    }
    let exclusive = matches!(rules.source.get(exclusive), Some(Value::Bool(true)));
    Ok(Bound { value: ValueBuf::new(value), exclusive })
}

fn boolean(name: &str, value: Value<'_>) -> Result<bool> {
    value
        .as_bool()
        .ok_or_else(|| mismatch(format!("$jsonSchema keyword '{name}' must be a boolean")))
}

/// Parses a length or a number of items.
fn count(name: &str, value: Value<'_>) -> Result<i64> {
    let shown = || format!("{name}: {}", show(value));
    if !value.is_number() {
        return Err(failed(format!("Expected a number in: {}", shown())));
    }
    match value.exact_i64() {
        None => Err(failed(format!("Expected an integer: {}", shown()))),
        Some(number) if number < 0 => {
            Err(failed(format!("Expected a positive number in: {}", shown())))
        }
        Some(number) => Ok(number),
    }
}

fn string_of_pattern(value: Value<'_>) -> Result<&str> {
    value.as_str().ok_or_else(|| mismatch("$jsonSchema keyword 'pattern' must be a string"))
}

fn items(value: Value<'_>) -> Result<Items> {
    match value {
        Value::Document(doc) => Ok(Items::All(Box::new(rules(doc, false)?))),
        Value::Array(array) => array
            .iter()
            .map(|value| match value {
                Value::Document(doc) => rules(doc, false),
                other => Err(mismatch(format!(
                    "$jsonSchema keyword 'items' requires that each element of the array is an \
                     object, but found a {}",
                    other.type_name()
                ))),
            })
            .collect::<Result<_>>()
            .map(Items::Each),
        other => Err(mismatch(format!(
            "$jsonSchema keyword 'items' must be an array or an object, not {}",
            other.type_name()
        ))),
    }
}

fn additional_items(value: Value<'_>) -> Result<Additional> {
    additional(value)?.ok_or_else(|| {
        mismatch(format!(
            "$jsonSchema keyword 'additionalItems' must be either an object or a boolean, but got \
             a {}",
            value.type_name()
        ))
    })
}

fn additional_properties(value: Value<'_>) -> Result<Additional> {
    additional(value)?.ok_or_else(|| {
        mismatch("$jsonSchema keyword 'additionalProperties' must be an object or a boolean")
    })
}

fn additional(value: Value<'_>) -> Result<Option<Additional>> {
    Ok(match value {
        Value::Bool(allowed) => Some(Additional::Allowed(allowed)),
        Value::Document(doc) => Some(Additional::Rules(Box::new(rules(doc, false)?))),
        _ => None,
    })
}

fn required(value: Value<'_>) -> Result<Vec<String>> {
    let Value::Array(array) = value else {
        return Err(mismatch(format!(
            "$jsonSchema keyword 'required' must be an array, but found an element of type {}",
            value.type_name()
        )));
    };
    let names = strings(array, |value| {
        mismatch(format!(
            "$jsonSchema keyword 'required' must be an array of strings, but found an element of \
             type: {}",
            value.type_name()
        ))
    })?;
    if names.is_empty() {
        return Err(failed("$jsonSchema keyword 'required' cannot be an empty array"));
    }
    if duplicate(&names).is_some() {
        let text = "$jsonSchema keyword 'required' array cannot contain duplicate values";
        return Err(failed(text));
    }
    Ok(names)
}

fn strings(array: Array<'_>, wrong: impl Fn(Value<'_>) -> Error) -> Result<Vec<String>> {
    array
        .iter()
        .map(|value| value.as_str().map(str::to_owned).ok_or_else(|| wrong(value)))
        .collect()
}

fn duplicate(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(name.as_str()))
}

fn properties(value: Value<'_>) -> Result<Vec<(String, Rules)>> {
    let Value::Document(doc) = value else {
        return Err(mismatch("$jsonSchema keyword 'properties' must be an object"));
    };
    doc.fields()
        .map(|(name, value)| match value {
            Value::Document(nested) => Ok((name.to_owned(), rules(nested, false)?)),
            _ => Err(mismatch(format!(
                "Nested schema for $jsonSchema property '{name}' must be an object"
            ))),
        })
        .collect()
}

fn pattern_properties(value: Value<'_>) -> Result<Vec<(Regex, Rules)>> {
    let Value::Document(doc) = value else {
        return Err(mismatch("$jsonSchema keyword 'patternProperties' must be an object"));
    };
    doc.fields()
        .map(|(name, value)| {
            let Value::Document(nested) = value else {
                return Err(mismatch(format!(
                    "$jsonSchema keyword 'patternProperties' has property '{name}' which is not an \
                     object"
                )));
            };
            let regex = Regex::new(name, "").map_err(|error| {
                let reason = error.message().rsplit_once(": ").map_or("", |(_, reason)| reason);
                Error::bad_value(format!("Invalid regular expression: {reason}"))
            })?;
            Ok((regex, rules(nested, false)?))
        })
        .collect()
}

fn dependencies(value: Value<'_>) -> Result<Vec<(String, Dependency)>> {
    let Value::Document(doc) = value else {
        return Err(mismatch("$jsonSchema keyword 'dependencies' must be an object"));
    };
    doc.fields().map(|(name, value)| Ok((name.to_owned(), dependency(name, value)?))).collect()
}

fn dependency(name: &str, value: Value<'_>) -> Result<Dependency> {
    let array = match value {
        Value::Document(nested) => {
            return rules(nested, false).map(|rules| Dependency::Rules(Box::new(rules)));
        }
        Value::Array(array) => array,
        _ => {
            return Err(mismatch(format!(
                "property '{name}' in $jsonSchema keyword 'dependencies' must be either an object \
                 or an array"
            )));
        }
    };
    if array.is_empty() {
        return Err(failed(format!(
            "property '{name}' in $jsonSchema keyword 'dependencies' cannot be an empty array"
        )));
    }
    let names = strings(array, |value| {
        mismatch(format!(
            "array '{name}' in $jsonSchema keyword 'dependencies' can only contain strings, but \
             found element of type: {}",
            value.type_name()
        ))
    })?;
    if let Some(twice) = duplicate(&names) {
        return Err(failed(format!(
            "array '{name}' in $jsonSchema keyword 'dependencies' contains duplicate element: \
             {twice}"
        )));
    }
    Ok(Dependency::Properties(names))
}

fn schemas(name: &str, value: Value<'_>, root: bool) -> Result<Vec<Rules>> {
    let Value::Array(array) = value else {
        return Err(mismatch(format!("$jsonSchema keyword '{name}' must be an array")));
    };
    if array.is_empty() {
        let text = format!("$jsonSchema keyword '{name}' must be a non-empty array");
        return Err(Error::bad_value(text));
    }
    array
        .iter()
        .map(|value| match value {
            Value::Document(doc) => rules(doc, root),
            other => Err(mismatch(format!(
                "$jsonSchema keyword '{name}' must be an array of objects, but found an element of \
                 type {}",
                other.type_name()
            ))),
        })
        .collect()
}

fn not(value: Value<'_>, root: bool) -> Result<Rules> {
    match value {
        Value::Document(doc) => rules(doc, root),
        other => Err(mismatch(format!(
            "$jsonSchema keyword 'not' must be an object, but found an element of type {}",
            other.type_name()
        ))),
    }
}

fn enumeration(value: Value<'_>) -> Result<Vec<ValueBuf>> {
    let Value::Array(array) = value else {
        return Err(mismatch(format!(
            "$jsonSchema keyword 'enum' must be an array, but found an element of type {}",
            value.type_name()
        )));
    };
    if array.is_empty() {
        return Err(failed("$jsonSchema keyword 'enum' cannot be an empty array"));
    }
    if first_duplicate(&array.to_vec(), &Shared::default())?.is_some() {
        let text = "$jsonSchema keyword 'enum' array cannot contain duplicate values.";
        return Err(failed(text));
    }
    Ok(array.iter().map(ValueBuf::new).collect())
}

fn mismatch(text: impl Into<String>) -> Error {
    Error::type_mismatch(text)
}

fn failed(text: impl Into<String>) -> Error {
    Error::failed_to_parse(text)
}
