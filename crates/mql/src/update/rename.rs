//! `$rename`: moves a field to another path. A rename is two nodes of the tree: one removes the
//! source, the other sets the target. The source values are read before anything is written.

use super::apply::{Run, put};
use super::modifier::{Effect, Missing, Modifier, depth};
use super::operator::UpdateOperator;
use super::path;
use crate::text;
use quire_document::{Doc, Element, Value};
use quire_error::{Error, ErrorCode, Result};
use std::collections::HashMap;

pub(super) const RENAME: UpdateOperator = UpdateOperator {
    name: "$rename",
    since: "2.2",
    doc: "Moves a field to another path; has no effect if the source is missing.",
    parse: |_, _| Err(Error::internal("$rename is parsed as a pair of paths")),
};

/// A `$rename`: its source and target paths.
#[derive(Debug)]
pub(super) struct Rename {
    from: String,
    to: String,
}

/// The source field of a rename; `None` if it is missing.
pub(super) type Source<'r> = Option<Element<'r>>;

/// Up to this number of renames each one searches the document separately.
const WALKING_RENAMES_MAX: usize = 8;

/// Finds fields of a document for renames. If there are many renames, it uses a hash table of the
/// fields of each document on the way.
pub(super) struct Finder<'r> {
    root: Doc<'r>,
    tables: Option<HashMap<*const u8, Fields<'r>>>,
}

type Fields<'r> = HashMap<&'r [u8], Element<'r>>;

impl<'r> Finder<'r> {
    /// Returns a finder for `renames` renames in `root`.
    pub(super) fn new(root: Doc<'r>, renames: usize) -> Self {
        let tables = (renames > WALKING_RENAMES_MAX).then(HashMap::new);
        Finder { root, tables }
    }

    /// Returns the first field with this name.
    fn find(&mut self, doc: Doc<'r>, name: &str) -> Option<Element<'r>> {
        let Some(tables) = &mut self.tables else { return doc.find(name) };
        let fields = tables.entry(doc.as_bytes().as_ptr()).or_insert_with(|| {
            let mut fields = Fields::new();
            for element in doc.iter() {
                fields.entry(element.key_bytes()).or_insert(element);
            }
            fields
        });
        fields.get(name.as_bytes()).copied()
    }
}

impl Rename {
    /// Parses and checks a pair of paths.
    pub(super) fn parse(from: &str, to: &str) -> Result<Self> {
        let shown = || text::field(from, Value::String(to));
        if from == to {
            return Err(Error::bad_value(format!(
                "The source and target field for $rename must differ: {}",
                shown()
            )));
        }
        if is_prefix(from, to) || is_prefix(to, from) {
            return Err(Error::bad_value(format!(
                "The source and target field for $rename must not be on the same path: {}",
                shown()
            )));
        }
        if from.split('.').any(path::is_dynamic) {
            let message = format!("The source field for $rename may not be dynamic: {from}");
            return Err(Error::bad_value(message));
        }
        if to.split('.').any(path::is_dynamic) {
            let message = format!("The destination field for $rename may not be dynamic: {to}");
            return Err(Error::bad_value(message));
        }
        Ok(Rename { from: from.to_owned(), to: to.to_owned() })
    }

    /// Returns the node for the source path; `number` is the index of the rename in the update.
    pub(super) fn source(number: usize) -> Box<dyn Modifier> {
        Box::new(From { number })
    }

    /// Returns the node for the target path.
    pub(super) fn target(number: usize) -> Box<dyn Modifier> {
        Box::new(To { number })
    }

    /// Returns the field to move. Fails if the path passes through an array.
    pub(super) fn find<'r>(&self, finder: &mut Finder<'r>) -> Result<Source<'r>> {
        let root = finder.root;
        let mut parts = self.from.split('.').peekable();
        let mut current = root;
        let mut array = None;
        let mut found = None;
        while let Some(part) = parts.next() {
            let Some(element) = finder.find(current, part) else { break };
            if parts.peek().is_none() {
                found = Some(element);
                break;
            }
            current = match element.value() {
                Value::Document(doc) => doc,
                Value::Array(items)
                    if parts.peek().is_some_and(|next| path::index(next).is_some()) =>
                {
                    array = array.or(Some(element.key()));
                    items.as_doc()
                }
                _ => return Err(self.not_viable(part, element)),
            };
        }
        let Some(source) = found else { return Ok(None) };
        if let Some(array) = array {
            return Err(through_array("source", &self.from, array, root));
        }
        self.check_target(finder)?;
        Ok(Some(source))
    }

    fn check_target(&self, finder: &mut Finder<'_>) -> Result<()> {
        let root = finder.root;
        let mut parts = self.to.split('.').peekable();
        let mut current = root;
        while let Some(part) = parts.next() {
            let Some(element) = finder.find(current, part) else { break };
            if parts.peek().is_none() {
                break;
            }
            current = match element.value() {
                Value::Document(doc) => doc,
                Value::Array(_) => {
                    return Err(through_array("destination", &self.to, element.key(), root));
                }
                _ => break,
            };
        }
        Ok(())
    }

    fn not_viable(&self, part: &str, element: Element<'_>) -> Error {
        let message = format!(
            "cannot use the part ({part} of {}) to traverse the element ({{{}}})",
            self.from,
            text::element(element)
        );
        Error::new(ErrorCode::PathNotViable, message)
    }
}

fn through_array(which: &str, path: &str, array: &str, root: Doc<'_>) -> Error {
    let id = root.find("_id").map_or_else(|| "no id".to_owned(), text::element);
    Error::bad_value(format!(
        "The {which} field cannot be an array element, '{path}' in doc with {id} has an array field called '{array}'"
    ))
}

fn is_prefix(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
}

#[derive(Debug)]
struct From {
    number: usize,
}

#[derive(Debug)]
struct To {
    number: usize,
}

fn moved<'r>(run: &Run<'r>, number: usize) -> Source<'r> {
    run.renames.get(number).copied().flatten()
}

impl Modifier for From {
    fn update(&self, run: &Run<'_>, _: bool, _: Element<'_>, _: &mut Vec<u8>) -> Result<Effect> {
        let moves = moved(run, self.number).is_some();
        Ok(if moves { Effect::Removed } else { Effect::Kept })
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Ignore
    }

    fn create(&self, _: &Run<'_>, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }
}

impl To {
    fn write(&self, run: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<Effect> {
        let Some(source) = moved(run, self.number) else { return Ok(Effect::Kept) };
        run.check_depth(depth(source.value()))?;
        Ok(put(out, name, source.value()))
    }
}

impl Modifier for To {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        self.write(run, element.key_bytes(), out)
    }

    fn missing(&self, run: &Run<'_>) -> Missing {
        if moved(run, self.number).is_some() { Missing::Create } else { Missing::Ignore }
    }

    fn create(&self, run: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.write(run, name, out).map(|_| ())
    }
}
