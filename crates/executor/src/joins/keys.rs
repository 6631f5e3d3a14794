//! The join keys of documents, encoded so that equal values have equal bytes, as in an index.

use std::ops::ControlFlow;

use quire_document::key::{self, TypeBits};
use quire_document::path::{Leaf, Path};
use quire_document::{Collator, Doc, Value};

/// The bytes of a key.
pub(super) type Key = Box<[u8]>;

/// Returns the encoding, which is the same for all equal values; a missing value counts as null.
pub(super) fn encode(value: Option<Value<'_>>, collator: Option<&dyn Collator>) -> Key {
    let mut bytes = Vec::with_capacity(16);
    encode_into(value, collator, &mut bytes);
    bytes.into()
}

/// Encodes like [`encode`], into a buffer that is reused.
pub(super) fn encode_into(
    value: Option<Value<'_>>,
    collator: Option<&dyn Collator>,
    bytes: &mut Vec<u8>,
) {
    bytes.clear();
    let value = value.unwrap_or(Value::Null);
    key::append_full(value, false, collator, bytes, &mut TypeBits::new());
}

/// Calls `see` with each value that a filter on `path` compares: the elements of arrays and the
/// arrays themselves, and null if nothing is at the path.
pub(super) fn for_each_foreign<'a>(path: &Path, doc: Doc<'a>, mut see: impl FnMut(Value<'a>)) {
    let _ = path.visit(doc, Leaf::Elements, |found| {
        see(found.value.unwrap_or(Value::Null));
        ControlFlow::<()>::Continue(())
    });
}

/// Calls `see` with each value at `path`, and with the elements of an array one by one. An empty
/// array and a missing value are `None`.
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
