//! `encrypt`: the value is encrypted by client-side field level encryption.

use crate::options::Options;
use crate::type_set::{TypeSet, type_by_alias};
use quire_document::{Doc, Type, Value};
use quire_error::{Error, Result};

/// The subtype of encrypted binary data.
const SUBTYPE: u8 = 6;

/// The position of the original value's type in the payload.
const TYPE_OFFSET: usize = 17;

/// The requirements of `encrypt`.
#[derive(Debug, Default)]
pub(super) struct Encrypted {
    types: Option<TypeSet>,
}

impl Encrypted {
    pub(super) fn parse(value: Value<'_>) -> Result<Encrypted> {
        let Value::Document(doc) = value else {
            let text = "$jsonSchema keyword 'encrypt' must be an object ";
            return Err(Error::type_mismatch(text));
        };
        check_fields("encrypt", doc)?;
        let types = match doc.get("bsonType") {
            None => None,
            Some(Value::String(alias)) => Some(one_type(alias)?),
            Some(Value::Array(array)) => {
                let mut set = TypeSet::default();
                for value in array.iter() {
                    let alias = value.as_str().unwrap_or("");
                    let Some(kind) = type_by_alias(alias) else { return Err(unknown(alias)) };
                    set.insert(kind);
                }
                Some(set)
            }
            Some(_) => {
                let text =
                    "$jsonSchema keyword 'bsonType' must be either a string or an array of strings";
                return Err(Error::type_mismatch(text));
            }
        };
        Ok(Encrypted { types })
    }

    pub(super) fn accepts(&self, value: Value<'_>) -> bool {
        let Value::Binary(binary) = value else { return false };
        if binary.subtype != SUBTYPE {
            return false;
        }
        let Some(types) = &self.types else { return true };
        let original = binary.bytes.get(TYPE_OFFSET).and_then(|byte| Type::from_byte(*byte));
        original.is_some_and(|kind| types.contains(kind))
    }
}

/// Returns true if a schema, or a schema inside it, has a keyword of encryption.
pub(crate) fn has_encryption(schema: Doc<'_>) -> bool {
    schema.fields().any(|(keyword, value)| match (keyword, value) {
        ("encrypt" | "encryptMetadata", _) => true,
        ("properties" | "patternProperties" | "dependencies", Value::Document(named)) => {
            named.fields().filter_map(|(_, value)| value.as_document()).any(has_encryption)
        }
        ("items" | "additionalItems" | "additionalProperties" | "not", Value::Document(inner)) => {
            has_encryption(inner)
        }
        ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
            schemas.iter().filter_map(|value| value.as_document()).any(has_encryption)
        }
        _ => false,
    })
}

/// Fails for a field that neither `encrypt` nor `encryptMetadata` has.
pub(super) fn check_fields(keyword: &str, doc: Doc<'_>) -> Result<()> {
    let options = Options(keyword);
    for field in options.fields(doc) {
        let (name, _) = field?;
        if !matches!(name, "bsonType" | "keyId" | "algorithm") {
            return Err(options.unknown(name));
        }
    }
    Ok(())
}

fn one_type(alias: &str) -> Result<TypeSet> {
    type_by_alias(alias).map(TypeSet::one).ok_or_else(|| unknown(alias))
}

fn unknown(alias: &str) -> Error {
    Error::bad_value(format!("Unknown type name alias: {alias}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn encryption_is_found_at_every_depth_and_not_in_names_of_fields() {
        for schema in [
            doc! { "encryptMetadata": {} },
            doc! { "properties": { "a": { "encrypt": {} } } },
            doc! { "patternProperties": { "^a": { "items": [{ "not": { "encrypt": {} } }] } } },
            doc! { "dependencies": { "a": { "properties": { "b": { "encrypt": {} } } } } },
            doc! { "additionalProperties": { "anyOf": [{}, { "encrypt": {} }] } },
        ] {
            assert!(has_encryption(schema.as_doc()), "{schema:?}");
        }
        for schema in [
            doc! { "properties": { "encrypt": { "bsonType": "int" } } },
            doc! { "required": ["encrypt"], "enum": [{ "encrypt": {} }] },
            doc! { "dependencies": { "a": ["encrypt"] }, "additionalItems": false },
        ] {
            assert!(!has_encryption(schema.as_doc()), "{schema:?}");
        }
    }
}
