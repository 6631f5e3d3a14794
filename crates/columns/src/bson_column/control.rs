//! Control bytes, and the parts of a column that follow them.

use quire_document::limits::Limits;
use quire_document::{Doc, Element, Type, declared_length, first_element, validate};
use quire_error::Result;

use super::malformed;
use super::numbers::Scale;

/// A part of a column. `end` is the position after it.
pub(super) enum Control<'a> {
    /// The end of the column, or of an interleaved part.
    End,
    /// A value in full.
    Literal { element: Element<'a>, end: usize },
    /// Blocks of eight bytes.
    Blocks { scale: Scale, words: &'a [u8], end: usize },
    /// The beginning of an interleaved part, whose fields are those of `reference`.
    Interleaved { form: Form, reference: Doc<'a>, end: usize },
}

/// What the values of an interleaved part are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Document or array.
    pub root: Type,
    /// True if the elements of arrays in it are fields of their own.
    pub enters_arrays: bool,
}

/// Returns the part at a position.
///
/// # Errors
/// 378 NonConformantBSON if there is none.
pub(super) fn read(bytes: &[u8], at: usize) -> Result<Control<'_>> {
    let Some(&byte) = bytes.get(at) else { return Err(malformed("it has no end")) };
    match byte {
        0x00 => Ok(Control::End),
        0xF0 => interleaved(bytes, at, Form { root: Type::Document, enters_arrays: false }),
        0xF1 => interleaved(bytes, at, Form { root: Type::Document, enters_arrays: true }),
        0xF2 => interleaved(bytes, at, Form { root: Type::Array, enters_arrays: true }),
        0x01..=0x1F | 0x7F | 0xFF => literal(bytes, at),
        _ => {
            let scale = Scale::of_control(byte)?;
            let end = at + 1 + 8 * (usize::from(byte & 0x0F) + 1);
            let words = bytes.get(at + 1..end);
            let words = words.ok_or_else(|| malformed("a block ends too early"))?;
            Ok(Control::Blocks { scale, words, end })
        }
    }
}

fn literal(bytes: &[u8], at: usize) -> Result<Control<'_>> {
    let broken = || malformed("a literal is damaged");
    let element = bytes.get(at..).and_then(first_element).ok_or_else(broken)?;
    let length = 2 + element.value_bytes().len();
    let is_nameless = element.key_bytes().is_empty() && element.kind() != Type::CodeWithScope;
    let part = bytes.get(at..at + length).ok_or_else(broken)?;
    if !is_nameless || !is_valid(element, part) {
        return Err(broken());
    }
    Ok(Control::Literal { element, end: at + length })
}

/// Returns true if an element is valid BSON. `bytes` are all of it.
fn is_valid(element: Element<'_>, bytes: &[u8]) -> bool {
    match element.kind() {
        Type::Double | Type::ObjectId | Type::Date | Type::Int32 | Type::Int64 => true,
        Type::Null | Type::Undefined | Type::Timestamp | Type::Decimal => true,
        _ => {
            let mut doc = Vec::with_capacity(bytes.len() + 5);
            let Ok(length) = i32::try_from(bytes.len() + 5) else { return false };
            doc.extend_from_slice(&length.to_le_bytes());
            doc.extend_from_slice(bytes);
            doc.push(0);
            validate(&doc, &Limits::WIRE).is_ok()
        }
    }
}

fn interleaved(bytes: &[u8], at: usize, form: Form) -> Result<Control<'_>> {
    let rest = bytes.get(at + 1..).unwrap_or_default();
    let reference = declared_length(rest).and_then(|length| rest.get(..length));
    let reference = reference.and_then(|bytes| validate(bytes, &Limits::WIRE).ok());
    let reference = reference.ok_or_else(|| malformed("the fields of documents are damaged"))?;
    Ok(Control::Interleaved { form, reference, end: at + 1 + reference.len() })
}
