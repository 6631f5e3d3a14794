//! Reads a command's arguments: one method for each type, with MongoDB's error for a wrong value.

use quire_document::{Array, Doc, Element, Type, Value};
use quire_error::{Error, ErrorCode, Result};
pub use quire_mql::whole;
use std::collections::HashSet;

/// One argument of a command.
#[derive(Clone, Copy)]
pub struct Arg<'a> {
    /// The command or nested structure that the field belongs to: `find`, `update.updates`.
    owner: &'static str,
    element: Element<'a>,
}

/// The field names of a document that were read so far.
pub struct FieldNames<'a> {
    // The names of a short document are compared one by one; for a long document, which may be an
    // attack, that would take quadratic time.
    first: [&'a [u8]; FieldNames::SHORT],
    count: usize,
    rest: HashSet<&'a [u8]>,
}

impl Default for FieldNames<'_> {
    fn default() -> Self {
        FieldNames { first: [&[]; FieldNames::SHORT], count: 0, rest: HashSet::new() }
    }
}

impl<'a> FieldNames<'a> {
    const SHORT: usize = 32;

    /// Adds a name. Returns false if it was added before.
    pub fn is_new(&mut self, name: &'a [u8]) -> bool {
        let met = self.first.get(..self.count).unwrap_or_default();
        if met.contains(&name) {
            return false;
        }
        match self.first.get_mut(self.count) {
            Some(place) => {
                *place = name;
                self.count += 1;
                true
            }
            None => self.rest.insert(name),
        }
    }
}

/// Returns a document whose fields decide which privileges a client needs; an empty document for
/// another value, which is refused when it is parsed. A duplicate field is an error: the check
/// might read the first value and the command the last.
pub fn unambiguous(value: Value<'_>) -> Result<Doc<'_>> {
    let doc = value.as_document().unwrap_or_default();
    let mut names = FieldNames::default();
    match doc.iter().find(|element| !names.is_new(element.key_bytes())) {
        None => Ok(doc),
        Some(element) => {
            let text = format!("BSON field '{}' is a duplicate field", element.key());
            Err(Error::new(ErrorCode::IDLDuplicateField, text))
        }
    }
}

/// Returns the arguments that the command itself must know: all except its first field and the
/// generic fields.
pub fn arguments<'a>(owner: &'static str, body: Doc<'a>) -> impl Iterator<Item = Arg<'a>> {
    body.iter()
        .skip(1)
        .filter(|element| !is_generic(element.key_bytes()))
        .map(move |element| Arg { owner, element })
}

/// Returns the fields of a structure inside a command.
pub fn fields<'a>(owner: &'static str, doc: Doc<'a>) -> impl Iterator<Item = Arg<'a>> {
    doc.iter().map(move |element| Arg { owner, element })
}

/// Returns true for the generic fields, which every command takes and `dispatch` reads. A match
/// compares lengths first, which a search in a list does not.
pub fn is_generic(name: &[u8]) -> bool {
    match name {
        [b'$', rest @ ..] => is_generic_dollar(rest),
        b"lsid"
        | b"txnNumber"
        | b"autocommit"
        | b"startTransaction"
        | b"readConcern"
        | b"writeConcern"
        | b"maxTimeMS"
        | b"maxTimeMSOpOnly"
        | b"comment"
        | b"apiVersion"
        | b"apiStrict"
        | b"apiDeprecationErrors"
        | b"clientOperationKey"
        | b"mayBypassWriteBlocking"
        | b"allowImplicitCollectionCreation"
        | b"shardVersion"
        | b"databaseVersion"
        | b"rawData"
        | b"requestGossipRoutingCache"
        | b"stmtId"
        | b"expectPrefix" => true,
        _ => false,
    }
}

/// Returns true if this is the rest, after the dollar sign, of the name of a generic field.
fn is_generic_dollar(rest: &[u8]) -> bool {
    matches!(
        rest,
        b"db"
            | b"clusterTime"
            | b"readPreference"
            | b"audit"
            | b"client"
            | b"configTime"
            | b"topologyTime"
            | b"configServerState"
            | b"oplogQueryData"
            | b"queryOptions"
            | b"replData"
            | b"tenant"
            | b"traceCtx"
            | b"gleStats"
    )
}

impl<'a> Arg<'a> {
    /// Returns an argument for an element.
    pub fn new(owner: &'static str, element: Element<'a>) -> Self {
        Arg { owner, element }
    }

    /// Returns the field's name.
    pub fn name(&self) -> &'a str {
        self.element.key()
    }

    /// Returns the value as it is.
    pub fn value(&self) -> Value<'a> {
        self.element.value()
    }

    /// Returns true for null, which most optional arguments treat as "not given".
    pub fn is_null(&self) -> bool {
        matches!(self.element.kind(), Type::Null | Type::Undefined)
    }

    /// Returns the error for an unknown field.
    pub fn unknown(&self) -> Error {
        let text = format!("BSON field '{}.{}' is an unknown field.", self.owner, self.name());
        Error::new(ErrorCode::IDLUnknownField, text)
    }

    /// Returns the error for a value of a wrong type.
    pub fn wrong_type(&self, expected: &str) -> Error {
        let (owner, name, found) = (self.owner, self.name(), self.value().type_name());
        let several = expected.contains(',');
        let expected = match several {
            true => format!("types '[{expected}]'"),
            false => format!("type '{expected}'"),
        };
        Error::type_mismatch(format!(
            "BSON field '{owner}.{name}' is the wrong type '{found}', expected {expected}"
        ))
    }

    /// Returns the error for an array element of a wrong type.
    pub fn wrong_element(&self, at: usize, found: Value<'_>, expected: &str) -> Error {
        let (owner, name, found) = (self.owner, self.name(), found.type_name());
        Error::type_mismatch(format!(
            "BSON field '{owner}.{name}.{at}' is the wrong type '{found}', expected type '{expected}'"
        ))
    }

    /// Returns the value as a document.
    pub fn document(&self) -> Result<Doc<'a>> {
        self.value().as_document().ok_or_else(|| self.wrong_type("object"))
    }

    /// Returns the value as an array.
    pub fn array(&self) -> Result<Array<'a>> {
        self.value().as_array().ok_or_else(|| self.wrong_type("array"))
    }

    /// Returns the value as a string.
    pub fn string(&self) -> Result<&'a str> {
        self.value().as_str().ok_or_else(|| self.wrong_type("string"))
    }

    /// Returns a boolean; no other type is accepted.
    pub fn bool(&self) -> Result<bool> {
        self.value().as_bool().ok_or_else(|| self.wrong_type("bool"))
    }

    /// Returns a boolean, or a number read as "not zero".
    pub fn safe_bool(&self) -> Result<bool> {
        flag(self.value()).ok_or_else(|| self.wrong_type("bool, long, int, decimal, double"))
    }

    /// Returns a whole number of any numeric type.
    ///
    /// Doubles are truncated towards zero and clamped, as MongoDB's safe integers are.
    pub fn integer(&self) -> Result<i64> {
        whole(self.value()).ok_or_else(|| self.wrong_type("long, int, decimal, double"))
    }

    /// Returns a whole number that is at least `least`.
    pub fn integer_from(&self, least: i64) -> Result<i64> {
        let number = self.integer()?;
        if number < least {
            return Err(self.too_small(least, number));
        }
        Ok(number)
    }

    /// Returns the error for a number below its minimum.
    pub fn too_small(&self, least: i64, number: i64) -> Error {
        let name = self.name();
        let text = format!("BSON field '{name}' value must be >= {least}, actual value '{number}'");
        Error::bad_value(text)
    }
}

/// Returns the error for a missing required field.
pub fn missing(owner: &str, name: &str) -> Error {
    let text = format!("BSON field '{owner}.{name}' is missing but a required field");
    Error::new(ErrorCode::IDLFailedToParse, text)
}

/// Returns a boolean, or a number read as "not zero"; `None` for other types.
pub fn flag(value: Value<'_>) -> Option<bool> {
    Some(match value {
        Value::Bool(flag) => flag,
        Value::Int32(number) => number != 0,
        Value::Int64(number) => number != 0,
        Value::Double(number) => number != 0.0,
        Value::Decimal(number) => !number.is_zero(),
        _ => return None,
    })
}
