//! The keys by which documents are joined: encoded so that equal values have equal bytes, as in an
//! index.

use std::ops::ControlFlow;

use quire_document::key::{self, TypeBits};
use quire_document::path::{Leaf, Path};
use quire_document::{Collator, Doc, Value};

/// The bytes of a key.
pub(super) type Key = Box<[u8]>;

/// Returns the bytes that all values equal to this one have; a missing value is null.
pub(super) fn encode(value: Option<Value<'_>>, collator: Option<&dyn Collator>) -> Key {
    let mut bytes = Vec::with_capacity(16);
    encode_into(value, collator, &mut bytes);
    bytes.into()
}

/// As [`encode`], into memory that is used again.
pub(super) fn encode_into(
    value: Option<Value<'_>>,
    collator: Option<&dyn Collator>,
    bytes: &mut Vec<u8>,
) {
    bytes.clear();
    let value = value.unwrap_or(Value::Null);
    key::append_full(value, false, collator, bytes, &mut TypeBits::new());
}

/// Calls `see` with each value that a filter on `path` would compare: the elements of arrays and
/// the arrays themselves, null where the path ends in nothing.
pub(super) fn for_each_foreign<'a>(path: &Path, doc: Doc<'a>, mut see: impl FnMut(Value<'a>)) {
    let _ = path.visit(doc, Leaf::Elements, |found| {
        see(found.value.unwrap_or(Value::Null));
        ControlFlow::<()>::Continue(())
    });
}

/// Calls `see` with each value at `path`, those of an array one by one. An array without elements
/// and a missing value are `None`.
pub(super) fn for_each_local<'a>(
    path: &Path,
    doc: Doc<'a>,
    mut see: impl FnMut(Option<Value<'a>>),
) {
    let mut any = false;
    let _ = path.visit(doc, Leaf::Whole, |found| {
        any = true;
        match found.value {
            Some(Value::Array(array)) if !array.is_empty() => {
                array.iter().for_each(|element| see(Some(element)));
            }
            Some(Value::Array(_)) | None => see(None),
            value => see(value),
        }
        ControlFlow::<()>::Continue(())
    });
    if !any {
        see(None);
    }
}
