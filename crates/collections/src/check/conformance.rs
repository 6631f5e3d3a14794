//! Whether a document keeps to the BSON specification in what the server can read all the same:
//! deprecated types, names in arrays, sizes of binary values, options of regular expressions.

use quire_document::{Binary, Doc, Value};

/// How strict the check of BSON is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conformance {
    /// What the specification deprecates or forbids in values.
    #[default]
    Values,
    /// That, and names that occur twice in a document.
    Full,
}

impl Conformance {
    /// Returns the first departure from the specification, if there is one.
    pub(super) fn departure(self, doc: Doc<'_>) -> Option<String> {
        if self == Conformance::Full {
            let mut names: Vec<&[u8]> = doc.iter().map(|element| element.key_bytes()).collect();
            names.sort_unstable();
            if let Some([name, _]) = names.array_windows().find(|[one, next]| one == next) {
                let name = String::from_utf8_lossy(name);
                return Some(format!("the field {name} occurs more than once"));
            }
        }
        doc.fields().find_map(|(_, value)| self.departure_of(value))
    }

    fn departure_of(self, value: Value<'_>) -> Option<String> {
        match value {
            Value::Undefined | Value::DbPointer(_) | Value::Symbol(_) | Value::CodeWithScope(_) => {
                Some(format!("the BSON type {} is deprecated", value.type_name()))
            }
            Value::Document(doc) => self.departure(doc),
            Value::Array(array) => {
                let mut names = array.as_doc().fields().enumerate();
                match names.find(|(at, (name, _))| *name != at.to_string()) {
                    Some((at, (name, _))) => {
                        Some(format!("element {at} of an array has the name {name}"))
                    }
                    None => array.iter().find_map(|value| self.departure_of(value)),
                }
            }
            Value::Binary(binary) => departure_of_binary(binary),
            Value::Regex(regex) if !regex.options.bytes().is_sorted() => {
                Some(format!("the options {} of a regex are not in order", regex.options))
            }
            _ => None,
        }
    }
}

fn departure_of_binary(binary: Binary<'_>) -> Option<String> {
    match (binary.subtype, binary.bytes.len()) {
        (2 | 3, _) => Some(format!("the binary subtype {} is deprecated", binary.subtype)),
        (4, length) if length != 16 => Some(format!("a UUID has {length} bytes")),
        (5, length) if length != 16 => Some(format!("an MD5 has {length} bytes")),
        _ => None,
    }
}
