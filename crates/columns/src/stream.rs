//! The values of one type in a column.

use quire_document::{Element, ObjectId, Timestamp, Type, Value};
use quire_error::Result;

use crate::bytes::{Reader, damaged};
use crate::texts::{self, Texts};
use crate::{doubles, integers};

/// The type byte of elements that belong to no column.
pub(crate) const ELEMENTS: u8 = 0;

/// How the values of a type are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Integers,
    Doubles,
    Ids,
    /// Without the length and the zero of BSON's strings.
    Strings,
    /// In BSON's wire form.
    Wire,
    /// Without data: the type says it all.
    Nothing,
}

/// Returns the form of a type's values, and of elements (`None`).
pub(crate) const fn form(kind: Option<Type>) -> Form {
    let Some(kind) = kind else { return Form::Wire };
    match kind {
        Type::Int32 | Type::Int64 | Type::Date | Type::Timestamp | Type::Bool => Form::Integers,
        Type::Double => Form::Doubles,
        Type::ObjectId => Form::Ids,
        Type::String | Type::Symbol | Type::Code => Form::Strings,
        Type::Null | Type::Undefined | Type::MinKey | Type::MaxKey => Form::Nothing,
        Type::Document
        | Type::Array
        | Type::Binary
        | Type::Regex
        | Type::DbPointer
        | Type::CodeWithScope
        | Type::Decimal => Form::Wire,
    }
}

/// Returns the fewest bytes that a value takes in a document, without type and name.
pub(crate) const fn bytes_min(kind: Option<Type>) -> usize {
    let Some(kind) = kind else { return 0 };
    match kind {
        Type::Null | Type::Undefined | Type::MinKey | Type::MaxKey => 0,
        Type::Bool => 1,
        Type::Regex => 2,
        Type::Int32 => 4,
        Type::String | Type::Symbol | Type::Code | Type::Document | Type::Array | Type::Binary => 5,
        Type::Double | Type::Int64 | Type::Date | Type::Timestamp => 8,
        Type::ObjectId => 12,
        Type::CodeWithScope => 14,
        Type::Decimal => 16,
        Type::DbPointer => 17,
    }
}

/// The values of one type that are packed.
#[derive(Debug)]
pub(crate) enum Gathered<'d> {
    Integers(Vec<i64>),
    Doubles(Vec<f64>),
    Ids(Vec<ObjectId>),
    Texts(Vec<&'d [u8]>),
    Nothing(usize),
}

impl<'d> Gathered<'d> {
    /// Returns an empty list for values of a type.
    pub fn new(kind: Option<Type>) -> Self {
        match form(kind) {
            Form::Integers => Gathered::Integers(Vec::new()),
            Form::Doubles => Gathered::Doubles(Vec::new()),
            Form::Ids => Gathered::Ids(Vec::new()),
            Form::Strings | Form::Wire => Gathered::Texts(Vec::new()),
            Form::Nothing => Gathered::Nothing(0),
        }
    }

    /// Appends the value of an element, whose type must be that of the list. Returns false if its
    /// bytes are not valid.
    #[inline]
    pub fn push(&mut self, element: &Element<'d>) -> bool {
        let bytes = element.value_bytes();
        match self {
            Gathered::Integers(all) => match integer(element.kind(), bytes) {
                Some(number) => all.push(number),
                None => return false,
            },
            Gathered::Doubles(all) => match bytes.first_chunk() {
                Some(bits) => all.push(f64::from_bits(u64::from_le_bytes(*bits))),
                None => return false,
            },
            Gathered::Ids(all) => match bytes.first_chunk() {
                Some(id) => all.push(ObjectId(*id)),
                None => return false,
            },
            Gathered::Texts(all) if form(Some(element.kind())) == Form::Strings => {
                match bytes.get(4..).and_then(<[u8]>::split_last) {
                    Some((0, text)) => all.push(text),
                    _ => return false,
                }
            }
            Gathered::Texts(all) => all.push(bytes),
            Gathered::Nothing(count) => *count += 1,
        }
        true
    }

    /// Appends several elements, for a list of elements.
    pub fn push_elements(&mut self, elements: &'d [u8]) {
        if let Gathered::Texts(all) = self {
            all.push(elements);
        }
    }

    /// Appends the values in the format of a bucket.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Gathered::Integers(all) => integers::encode(all, out),
            Gathered::Doubles(all) => doubles::encode(all, out),
            Gathered::Ids(all) => {
                for (from, to) in ID_PARTS {
                    let part = |id: &ObjectId| {
                        id.0[from..to].iter().fold(0, |all, byte| all << 8 | i64::from(*byte))
                    };
                    integers::encode(&all.iter().map(part).collect::<Vec<_>>(), out);
                }
            }
            Gathered::Texts(all) => texts::encode(all, out),
            Gathered::Nothing(_) => {}
        }
    }
}

/// The seconds, the process and the counter of an ObjectId.
const ID_PARTS: [(usize, usize); 3] = [(0, 4), (4, 9), (9, 12)];

#[inline]
fn integer(kind: Type, bytes: &[u8]) -> Option<i64> {
    match kind {
        Type::Int32 => bytes.first_chunk().map(|bytes| i64::from(i32::from_le_bytes(*bytes))),
        Type::Bool => bytes.first().filter(|byte| **byte < 2).map(|byte| i64::from(*byte)),
        _ => bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes)),
    }
}

/// The values of one type that were read.
#[derive(Debug)]
pub(crate) enum Stream {
    Integers(Type, Vec<i64>),
    Doubles(Vec<f64>),
    Ids(Vec<ObjectId>),
    Strings(Type, Texts),
    /// `None` for elements.
    Wire(Option<Type>, Texts),
    Nothing(Type),
}

impl Stream {
    /// Reads `count` values of a type that [`Gathered::encode`] wrote. Texts must fit into `room`.
    pub fn decode(
        reader: &mut Reader<'_>,
        kind: Option<Type>,
        count: usize,
        room: &mut usize,
    ) -> Result<Stream> {
        let form = form(kind);
        let Some(kind) = kind else {
            return Ok(Stream::Wire(None, texts::decode(reader, count, room)?));
        };
        Ok(match form {
            Form::Integers => {
                let numbers = integers::decode(reader, count)?;
                let (least, most) = match kind {
                    Type::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
                    Type::Bool => (0, 1),
                    _ => (i64::MIN, i64::MAX),
                };
                if numbers.iter().any(|number| *number < least || *number > most) {
                    return Err(damaged("a number beyond its type"));
                }
                Stream::Integers(kind, numbers)
            }
            Form::Doubles => Stream::Doubles(doubles::decode(reader, count)?),
            Form::Ids => Stream::Ids(decode_ids(reader, count)?),
            Form::Strings => Stream::Strings(kind, texts::decode(reader, count, room)?),
            Form::Wire => Stream::Wire(Some(kind), texts::decode(reader, count, room)?),
            Form::Nothing => Stream::Nothing(kind),
        })
    }

    /// Returns the type of the values; `None` for elements.
    pub fn kind(&self) -> Option<Type> {
        match self {
            Stream::Integers(kind, _) | Stream::Strings(kind, _) | Stream::Nothing(kind) => {
                Some(*kind)
            }
            Stream::Doubles(_) => Some(Type::Double),
            Stream::Ids(_) => Some(Type::ObjectId),
            Stream::Wire(kind, _) => *kind,
        }
    }

    /// Returns the value at `at`; null for elements.
    pub fn value(&self, at: usize) -> Value<'_> {
        match self {
            Stream::Integers(kind, all) => {
                integer_value(*kind, all.get(at).copied().unwrap_or_default())
            }
            Stream::Doubles(all) => Value::Double(all.get(at).copied().unwrap_or_default()),
            Stream::Ids(all) => Value::ObjectId(all.get(at).copied().unwrap_or(ObjectId([0; 12]))),
            Stream::Strings(kind, all) => text_value(*kind, all.get(at)),
            Stream::Wire(Some(kind), all) => text_value(*kind, all.get(at)),
            Stream::Wire(None, _) => Value::Null,
            Stream::Nothing(kind) => text_value(*kind, &[]),
        }
    }

    /// Appends the value at `at` in BSON's wire form, without type and name.
    #[inline]
    pub fn write(&self, at: usize, out: &mut Vec<u8>) {
        match self {
            Stream::Integers(kind, all) => {
                let number = all.get(at).copied().unwrap_or_default();
                match kind {
                    Type::Int32 => out.extend_from_slice(&(number as i32).to_le_bytes()),
                    Type::Bool => out.push(number as u8),
                    _ => out.extend_from_slice(&number.to_le_bytes()),
                }
            }
            Stream::Doubles(all) => {
                let number = all.get(at).copied().unwrap_or_default();
                out.extend_from_slice(&number.to_bits().to_le_bytes());
            }
            Stream::Ids(all) => {
                out.extend_from_slice(&all.get(at).map_or([0; 12], |id| id.0));
            }
            Stream::Strings(_, all) => {
                let text = all.get(at);
                out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
                out.extend_from_slice(text);
                out.push(0);
            }
            Stream::Wire(_, all) => out.extend_from_slice(all.get(at)),
            Stream::Nothing(_) => {}
        }
    }
}

/// Returns the value of a type that is stored as a text.
pub(crate) fn text_value(kind: Type, bytes: &[u8]) -> Value<'_> {
    let text = || std::str::from_utf8(bytes).unwrap_or("\u{fffd}");
    match kind {
        Type::String => Value::String(text()),
        Type::Symbol => Value::Symbol(text()),
        Type::Code => Value::Code(text()),
        _ => Element::from_parts(kind, b"", bytes).value(),
    }
}

/// Returns the value of a type that is stored as an integer.
pub(crate) fn integer_value(kind: Type, number: i64) -> Value<'static> {
    match kind {
        Type::Int32 => Value::Int32(number as i32),
        Type::Bool => Value::Bool(number != 0),
        Type::Date => Value::Date(number),
        Type::Timestamp => Value::Timestamp(Timestamp::from_u64(number as u64)),
        _ => Value::Int64(number),
    }
}

fn decode_ids(reader: &mut Reader<'_>, count: usize) -> Result<Vec<ObjectId>> {
    let mut ids = vec![ObjectId([0; 12]); count];
    for (from, to) in ID_PARTS {
        for (id, number) in ids.iter_mut().zip(integers::decode(reader, count)?) {
            if number as u64 >> (8 * (to - from)) != 0 {
                return Err(damaged("a part of an ObjectId"));
            }
            id.0[from..to].copy_from_slice(&number.to_be_bytes()[8 - (to - from)..]);
        }
    }
    Ok(ids)
}
