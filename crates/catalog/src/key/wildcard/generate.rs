//! The keys of a document in a wildcard index: for each value that is not a document its path and
//! the value, between the values of the regular fields.

use quire_document::limits::WILDCARD_PATHS_BYTES_MAX;
use quire_document::path::{Lookup, Path};
use quire_document::{Array, Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::count_work;

use super::tree::Tree;
use super::{NESTED, Wildcard};
use crate::MultikeyPaths;
use crate::key::{Arena, GeneratedKeys, KeySpec};

/// The units of work of visiting a field or an element.
const FIELD_UNITS: u32 = 8;

/// The walk through a document that adds a key for each indexed value.
struct Walk<'a, 'k> {
    arena: &'a Arena,
    /// The path of the current value.
    path: String,
    /// The number of names in `path`. A name may be empty, so the length of `path` does not tell
    /// whether it has one.
    names: usize,
    /// Total length in bytes of the paths that were copied into the arena.
    paths_bytes: usize,
    /// The values of the regular fields before and after the wildcard term.
    regular: (Vec<Option<Value<'a>>>, Vec<Option<Value<'a>>>),
    keys: &'k mut GeneratedKeys<'a>,
}

pub(super) fn generate<'a>(
    spec: &KeySpec,
    doc: Doc<'a>,
    arena: &'a Arena,
    keys: &mut GeneratedKeys<'a>,
) -> Result<()> {
    let Some(Wildcard { at, tree, .. }) = Wildcard::in_keys(spec) else { return Ok(()) };
    let values =
        |paths: &[Path]| paths.iter().map(|path| regular(path, doc)).collect::<Result<Vec<_>>>();
    let before = values(spec.paths.get(..*at).unwrap_or(&[]))?;
    let after = values(spec.paths.get(at + 2..).unwrap_or(&[]))?;
    let compound = spec.fields.len() > 2;
    let regular = (before, after);
    let mut walk = Walk { arena, path: String::new(), names: 0, paths_bytes: 0, regular, keys };
    walk.document(doc, tree)?;
    if compound && walk.keys.values.is_empty() {
        // A document without any indexed path still has its regular fields.
        walk.push(Value::MinKey, Value::MinKey);
    }
    if !keys.arrays.is_empty()
        && let Some(bits) = keys.multikey.get_mut(at + 1)
    {
        *bits |= MultikeyPaths::bit(0);
    }
    Ok(())
}

/// Returns the value of a regular field; `None` if it is missing.
fn regular<'a>(path: &Path, doc: Doc<'a>) -> Result<Option<Value<'a>>> {
    match path.lookup(doc) {
        Lookup::Missing => Ok(None),
        Lookup::Value(Value::Array(_)) | Lookup::Array(..) => Err(Error::location(
            7246301,
            format!(
                "The non-wildcard field '{}' of a compound wildcard index cannot be an array",
                path.as_str()
            ),
        )),
        Lookup::Value(value) => Ok(Some(value)),
    }
}

impl<'a> Walk<'a, '_> {
    /// Adds the keys of a document's fields. Returns false if there are none.
    fn document(&mut self, doc: Doc<'a>, tree: &Tree) -> Result<bool> {
        let before = self.keys.values.len();
        let end = self.path.len();
        for (name, value) in doc.fields() {
            count_work(FIELD_UNITS)?;
            // No query path can address a name with a dot.
            if name.contains('.') {
                continue;
            }
            let Some(below) = tree.below(name) else { continue };
            if self.names > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            self.names += 1;
            self.value(value, below)?;
            self.names -= 1;
            self.path.truncate(end);
        }
        Ok(self.keys.values.len() > before)
    }

    fn value(&mut self, value: Value<'a>, tree: &Tree) -> Result<()> {
        match value {
            Value::Document(doc) => self.object(doc, tree),
            Value::Array(array) => self.array(array, tree),
            value => self.leaf(value, tree),
        }
    }

    fn object(&mut self, doc: Doc<'a>, tree: &Tree) -> Result<()> {
        if self.document(doc, tree)? {
            return Ok(());
        }
        // The field exists although nothing within it has a key.
        let value = match doc.is_empty() {
            true => Doc::empty(),
            false => self.placeholder(),
        };
        self.leaf(Value::Document(value), tree)
    }

    /// Returns a placeholder for a document whose fields have no keys. It is not empty, unlike an
    /// empty document's own key.
    fn placeholder(&self) -> Doc<'a> {
        let bytes = DocBuf::build(|writer| {
            writer.append("", Value::Null);
        });
        Doc::from_valid_bytes(self.arena.alloc_slice_copy(bytes.as_bytes()))
    }

    fn array(&mut self, array: Array<'a>, tree: &Tree) -> Result<()> {
        let mut path = None;
        self.note("")?;
        if array.is_empty() {
            self.leaf(Value::Undefined, tree)?;
        }
        for element in array.iter() {
            count_work(FIELD_UNITS)?;
            if let Value::Document(doc) = element {
                self.object(doc, tree)?;
                continue;
            }
            if matches!(element, Value::Array(_)) {
                self.note(NESTED)?;
            }
            if tree.holds_values() {
                // All elements share one copy of the path.
                let shared = match path {
                    Some(path) => path,
                    None => *path.insert(self.copied()?),
                };
                self.push(Value::String(shared), element);
            }
        }
        Ok(())
    }

    fn leaf(&mut self, value: Value<'a>, tree: &Tree) -> Result<()> {
        if tree.holds_values() {
            let path = self.copied()?;
            self.push(Value::String(path), value);
        }
        Ok(())
    }

    /// Records that the current path has an array; with the mark `NESTED`, that the array has
    /// arrays among its elements.
    fn note(&mut self, mark: &str) -> Result<()> {
        let end = self.path.len();
        self.path.push_str(mark);
        if !self.keys.arrays.contains(self.path.as_str()) {
            let copy = self.copied()?;
            self.keys.arrays.insert(copy);
        }
        self.path.truncate(end);
        Ok(())
    }

    /// Copies the current path into the arena.
    ///
    /// # Errors
    /// 201 CannotBuildIndexKeys if the paths of the document exceed [`WILDCARD_PATHS_BYTES_MAX`].
    fn copied(&mut self) -> Result<&'a str> {
        self.paths_bytes += self.path.len();
        if self.paths_bytes > WILDCARD_PATHS_BYTES_MAX {
            let text = format!(
                "The paths of one document in a wildcard index have more than {WILDCARD_PATHS_BYTES_MAX} bytes"
            );
            return Err(Error::new(ErrorCode::CannotBuildIndexKeys, text));
        }
        Ok(self.arena.alloc_str(&self.path))
    }

    fn push(&mut self, path: Value<'a>, value: Value<'a>) {
        let (before, after) = &self.regular;
        self.keys.values.extend_from_slice(before);
        self.keys.values.extend([Some(path), Some(value)]);
        self.keys.values.extend_from_slice(after);
    }
}
