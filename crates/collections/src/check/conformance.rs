//! Checks whether a document conforms to the BSON specification in points that the server
//! tolerates: deprecated types, names in arrays, sizes of binary values, options of regular
//! expressions.

use quire_document::{Binary, Doc, Value};

/// How strict the check of BSON is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conformance {
    /// Finds deprecated and forbidden values.
    #[default]
    Values,
    /// Also finds names that occur twice in a document.
    Full,
}

impl Conformance {
    /// Returns a description of the first violation of the specification, if there is one.
    pub(super) fn violation(self, doc: Doc<'_>) -> Option<String> {
        if self == Conformance::Full {
            let mut names: Vec<&[u8]> = doc.iter().map(|element| element.key_bytes()).collect();
            names.sort_unstable();
            if let Some([name, _]) = names.array_windows().find(|[one, next]| one == next) {
                let name = String::from_utf8_lossy(name);
                return Some(format!("the field {name} occurs more than once"));
            }
        }
        doc.fields().find_map(|(_, value)| self.violation_in(value))
    }

    fn violation_in(self, value: Value<'_>) -> Option<String> {
        match value {
            Value::Undefined | Value::DbPointer(_) | Value::Symbol(_) | Value::CodeWithScope(_) => {
                Some(format!("the BSON type {} is deprecated", value.type_name()))
            }
            Value::Document(doc) => self.violation(doc),
            Value::Array(array) => {
                let mut names = array.as_doc().fields().enumerate();
                match names.find(|(at, (name, _))| *name != at.to_string()) {
                    Some((at, (name, _))) => {
                        Some(format!("element {at} of an array has the name {name}"))
                    }
                    None => array.iter().find_map(|value| self.violation_in(value)),
                }
            }
            Value::Binary(binary) => violation_in_binary(binary),
            Value::Regex(regex) if !regex.options.bytes().is_sorted() => {
                Some(format!("the options {} of a regex are not in order", regex.options))
            }
            _ => None,
        }
    }
}

fn violation_in_binary(binary: Binary<'_>) -> Option<String> {
    match (binary.subtype, binary.bytes.len()) {
        (2 | 3, _) => Some(format!("the binary subtype {} is deprecated", binary.subtype)),
        (4, length) if length != 16 => Some(format!("a UUID has {length} bytes")),
        (5, length) if length != 16 => Some(format!("an MD5 has {length} bytes")),
        _ => None,
    }
}
