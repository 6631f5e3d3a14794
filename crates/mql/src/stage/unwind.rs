//! `$unwind`: one document for each element of an array.

use super::facts::Facts;
use super::registry::StageRow;
use super::sub_pipeline::parse_path;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, FieldPath};
use bumpalo::Bump;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const UNWIND: StageRow = StageRow {
    name: "$unwind",
    since: "2.2",
    doc: "One document for each element of an array.",
    facts: Facts::PLAIN,
    parse: |_, value, cx| Ok(vec![Stage::Unwind(Arc::new(Unwind::parse(value, cx)?))]),
};

/// The number of elements between two checks of the interrupt.
const INTERRUPT_ROUNDS: i64 = 256;
/// The bytes of documents after which their arena is cleared.
const SCRATCH_BYTES: usize = 256 * 1024;

/// The progress in unwinding an array.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    consumed: usize,
    index: i64,
}

/// A parsed `$unwind`.
#[derive(Debug)]
pub struct Unwind {
    path: FieldPath,
    index: Option<FieldPath>,
    preserve: bool,
}

impl Unwind {
    fn parse(value: Value<'_>, _: &ParseContext) -> Result<Self> {
        let (path, index, preserve) = match value {
            Value::String(path) => (Some(path), None, false),
            Value::Document(spec) => options(spec)?,
            _ => {
                let message = format!(
                    "expected either a string or an object as specification for $unwind stage, got {}",
                    value.type_name()
                );
                return Err(Error::location(15981, message));
            }
        };
        let path = match path {
            Some(path) if !path.is_empty() => path,
            _ => return Err(Error::location(28812, "no path specified to $unwind stage")),
        };
        let Some(path) = path.strip_prefix('$') else {
            let message =
                format!("path option to $unwind stage should be prefixed with a '$': {path}");
            return Err(Error::location(28818, message));
        };
        if path.contains('\0') {
            let message = "field path must not contain embedded null bytes";
            return Err(Error::location(16419, message));
        }
        let index = index.map(parse_path).transpose()?;
        Ok(Unwind { path: parse_path(path)?, index, preserve })
    }

    /// Returns the path of the array.
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// Returns the path of the field for the element's index.
    pub fn index_path(&self) -> Option<&FieldPath> {
        self.index.as_ref()
    }

    /// Returns true if documents without elements are kept (`preserveNullAndEmptyArrays`).
    pub fn preserves(&self) -> bool {
        self.preserve
    }

    /// Calls `emit` with a context for each document that `cx.root` becomes, from position `start`
    /// and at most `max` times. Returns the position to continue from. Each document is in a
    /// scratch arena only until `emit` returns, so a long array needs no more memory than a short
    /// one.
    pub fn for_each(
        &self,
        cx: &EvalContext<'_>,
        start: Position,
        max: usize,
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<Option<Position>> {
        let path: Vec<&str> = self.path.components().collect();
        let array = match nested(cx.root, &path) {
            Some(Value::Array(array)) if !array.is_empty() => array.as_doc(),
            value => {
                self.without_elements(cx, value, &path, emit)?;
                return Ok(None);
            }
        };
        let mut elements = array.iter_from(start.consumed);
        let mut index = start.index;
        let mut scratch = Bump::new();
        for _ in 0..max {
            let Some(element) = elements.next() else { return Ok(None) };
            if scratch.allocated_bytes() > SCRATCH_BYTES {
                scratch.reset();
            }
            let inner = cx.with_arena(&scratch);
            let with = inner.document(|writer| {
                write_at(cx.root, &path, Some(element.value()), writer);
                Ok(())
            })?;
            emit(&inner.with_root(self.indexed(with, Some(index), &inner)?))?;
            index += 1;
            if index % INTERRUPT_ROUNDS == 0 {
                cx.shared.check_interrupt()?;
            }
        }
        let consumed = elements.consumed(array);
        Ok(elements.next().is_some().then_some(Position { consumed, index }))
    }

    /// Emits the document if its array is empty, missing or another value, and such documents are
    /// kept.
    fn without_elements(
        &self,
        cx: &EvalContext<'_>,
        value: Option<Value<'_>>,
        path: &[&str],
        emit: &mut dyn FnMut(&EvalContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let empty_array = matches!(value, Some(Value::Array(_)));
        let absent = empty_array || value.is_none_or(|value| value.is_nullish());
        if absent && !self.preserve {
            return Ok(());
        }
        if !empty_array {
            return emit(&cx.with_root(self.indexed(cx.root, None, cx)?));
        }
        let without = cx.document(|writer| {
            write_at(cx.root, path, None, writer);
            Ok(())
        })?;
        emit(&cx.with_root(self.indexed(without, None, cx)?))
    }

    /// Returns the document with the element's index in the field for it.
    pub fn indexed_doc(&self, doc: DocBuf, index: Option<i64>) -> DocBuf {
        let Some(path) = &self.index else { return doc };
        let path: Vec<&str> = path.components().collect();
        let index = index.map_or(Value::Null, Value::Int64);
        DocBuf::build(|writer| write_at(doc.as_doc(), &path, Some(index), writer))
    }

    /// Returns the document with the element's index in the field for it.
    fn indexed<'a>(
        &self,
        doc: Doc<'a>,
        index: Option<i64>,
        cx: &EvalContext<'a>,
    ) -> Result<Doc<'a>> {
        let Some(path) = &self.index else { return Ok(doc) };
        let path: Vec<&str> = path.components().collect();
        let index = index.map_or(Value::Null, Value::Int64);
        cx.document(|writer| {
            write_at(doc, &path, Some(index), writer);
            Ok(())
        })
    }
}

impl StageBody for Unwind {
    fn name(&self) -> &'static str {
        UNWIND.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        reads.paths.insert(self.path.to_string());
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        // The position is set through documents alone, as `Modified::replacing` describes.
        let index = self.index.iter().map(|index| index.first().to_owned());
        Modified::Paths(index.chain([self.path.to_string()]).collect())
    }

    fn streams(&self) -> bool {
        true
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document("$unwind");
        inner.append("path", format!("${}", self.path).as_str());
        if self.preserve {
            inner.append("preserveNullAndEmptyArrays", true);
        }
        if let Some(index) = &self.index {
            inner.append("includeArrayIndex", index.to_string().as_str());
        }
    }
}

type Options<'v> = (Option<&'v str>, Option<&'v str>, bool);

fn options<'v>(spec: Doc<'v>) -> Result<Options<'v>> {
    let (mut path, mut index, mut preserve) = (None, None, false);
    for (name, value) in spec.fields() {
        match (name, value) {
            ("path", Value::String(text)) => path = Some(text),
            ("path", other) => {
                let message = format!(
                    "expected a string as the path for $unwind stage, got {}",
                    other.type_name()
                );
                return Err(Error::location(28808, message));
            }
            ("preserveNullAndEmptyArrays", Value::Bool(flag)) => preserve = flag,
            ("preserveNullAndEmptyArrays", other) => {
                let message = format!(
                    "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                    other.type_name()
                );
                return Err(Error::location(28809, message));
            }
            ("includeArrayIndex", Value::String(text)) if !text.is_empty() => {
                if text.starts_with('$') {
                    let message = format!(
                        "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}"
                    );
                    return Err(Error::location(28822, message));
                }
                index = Some(text);
            }
            ("includeArrayIndex", other) => {
                let message = format!(
                    "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {}",
                    other.type_name()
                );
                return Err(Error::location(28810, message));
            }
            (other, _) => {
                let message = format!("unrecognized option to $unwind stage: {other}");
                return Err(Error::location(28811, message));
            }
        }
    }
    Ok((path, index, preserve))
}

/// Returns the value at a path that passes through documents only.
fn nested<'a>(doc: Doc<'a>, path: &[&str]) -> Option<Value<'a>> {
    let (first, rest) = path.split_first()?;
    match doc.get(first)? {
        value if rest.is_empty() => Some(value),
        Value::Document(inner) => nested(inner, rest),
        _ => None,
    }
}

/// Writes `doc` with another value (or none) at a path through documents. Missing documents on the
/// way are created, and other values are replaced by documents.
pub fn write_at(doc: Doc<'_>, path: &[&str], value: Option<Value<'_>>, writer: &mut DocWriter<'_>) {
    let Some((first, rest)) = path.split_first() else { return };
    let mut found = false;
    for element in doc.iter() {
        if found || element.key_bytes() != first.as_bytes() {
            writer.append_element(element);
            continue;
        }
        found = true;
        if rest.is_empty() {
            writer.append_some(first, value);
        } else {
            let inner = element.value().as_document().unwrap_or(Doc::empty());
            write_at(inner, rest, value, &mut writer.document(first));
        }
    }
    if found {
        return;
    }
    if rest.is_empty() {
        writer.append_some(first, value);
    } else {
        write_at(Doc::empty(), rest, value, &mut writer.document(first));
    }
}
