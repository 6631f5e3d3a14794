//! The join keys of documents, encoded so that equal values have equal bytes, as in an index.

use std::ops::ControlFlow;

use quire_document::key::{self, TypeBits};
use quire_document::path::{Leaf, Part, Path};
use quire_document::{Collator, Doc, Value};

/// Writes the encoding of a value to `bytes`, a buffer that is reused. The encoding is the same for
/// all equal values; a missing value counts as null.
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
pub(crate) fn for_each_foreign<'a>(path: &Path, doc: Doc<'a>, mut see: impl FnMut(Value<'a>)) {
    let _ = path.visit(doc, Leaf::Elements, |found| {
        see(found.value.unwrap_or(Value::Null));
        ControlFlow::<()>::Continue(())
    });
}

/// Calls `see` with each value at the local field `path`, those of an array one by one, and with
/// `None` if there is no value at all. A number behind an array is a position in it; elsewhere an
/// array's documents are entered, and those without the field add nothing.
pub(super) fn for_each_local<'a>(
    path: &Path,
    doc: Doc<'a>,
    mut see: impl FnMut(Option<Value<'a>>),
) {
    let mut any = false;
    local_values(path.parts(), doc, &mut |value| {
        any = true;
        see(Some(value));
    });
    if !any {
        see(None);
    }
}

/// Calls `see` with the values along `parts`. The depth of the recursion is at most their number.
fn local_values<'a>(parts: &[Part], doc: Doc<'a>, see: &mut dyn FnMut(Value<'a>)) {
    let Some((first, mut rest)) = parts.split_first() else { return };
    let Some(mut value) = doc.get(first.name()) else { return };
    while let (Value::Array(array), Some((next, beyond))) = (value, rest.split_first()) {
        let Some(at) = next.index() else { break };
        let Some(element) = array.get(at as usize) else { return };
        (value, rest) = (element, beyond);
    }
    match value {
        Value::Array(array) if rest.is_empty() => array.iter().for_each(see),
        Value::Array(array) => {
            for element in array.iter() {
                if let Value::Document(inner) = element {
                    local_values(rest, inner, see);
                }
            }
        }
        value if rest.is_empty() => see(value),
        Value::Document(inner) => local_values(rest, inner, see),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    /// Returns the values of a local field as text.
    fn values(path: &str, doc: &quire_document::DocBuf) -> Vec<String> {
        let mut found = Vec::new();
        for_each_local(&Path::new(path), doc.as_doc(), |value| {
            found.push(value.map_or_else(|| "none".to_owned(), quire_document::literal::print));
        });
        found
    }

    #[test]
    fn a_missing_field_counts_only_where_nothing_else_is_found() {
        let doc = doc! { "a": [{ "x": 1 }, { "y": 2 }, 3] };
        assert_eq!(values("a.x", &doc), ["1"]);
        assert_eq!(values("a.z", &doc), ["none"]);
        let empty = doc! { "a": [{ "x": [] }, { "x": [4, [5]] }], "e": [], "n": Value::Null };
        assert_eq!(values("a.x", &empty), ["4", "[5]"]);
        assert_eq!(values("e", &empty), ["none"]);
        assert_eq!(values("n", &empty), ["null"]);
        assert_eq!(values("n.x", &empty), ["none"]);
    }

    #[test]
    fn a_number_behind_an_array_is_a_position() {
        let doc = doc! { "a": [{ "x": 1, "0": 7 }, { "x": 2 }], "s": { "0": [8, [9]] } };
        assert_eq!(values("a.1.x", &doc), ["2"]);
        assert_eq!(values("a.0.y", &doc), ["none"]);
        assert_eq!(values("a.5.x", &doc), ["none"]);
        assert_eq!(values("s.0.1", &doc), ["9"]);
        assert_eq!(values("s.0", &doc), ["8", "[9]"]);
    }
}
