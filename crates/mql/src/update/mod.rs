//! Updates: operators, replacements and pipelines, compiled once and applied to BSON bytes.
//!
//! Read in this order: this file (the three kinds), `operator` (the registry), `tree` (the
//! operators by their paths, and conflicts), `apply` (the pass over the bytes), `modifier` (the
//! interface of an operator), then one file for each operator or family. Other files: `path`,
//! `element_filter` and `array_filter` (`$[name]`), `replacement`, `pipeline`, `upsert` (the
//! document from which an upsert starts), `text` (values in messages), `limits`, `describe` (the
//! description of an update for a change log).

mod add_to_set;
mod apply;
mod arithmetic;
mod array_filter;
mod bit;
mod current_date;
mod describe;
mod element_filter;
mod extreme;
mod limits;
mod modifier;
mod modifiers;
mod operator;
mod path;
mod pipeline;
mod pop;
mod pull;
mod push;
mod rename;
mod replacement;
mod set;
mod tree;
mod unset;
mod upsert;
mod value_set;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

pub use describe::{ChangedPath, PathStep, UpdateDescription};
pub use operator::{FieldOperand, OPERATORS, UpdateOperator, find_operator};

use crate::context::{EvalContext, ParseContext};
use crate::too_large;
use array_filter::ArrayFilters;
use modifiers::Modifiers;
use pipeline::PipelineUpdate;
use quire_document::limits::INTERNAL_DOCUMENT_BYTES_MAX;
use quire_document::{Doc, DocBuf, ObjectId, Value};
use quire_error::{Error, Result};
use replacement::Replacement;

/// An update as the user wrote it.
#[derive(Clone, Copy, Debug)]
pub struct UpdateSpec<'v> {
    /// Operators, a replacement document, or a pipeline.
    pub update: Value<'v>,
    /// The documents of `arrayFilters`.
    pub array_filters: &'v [Doc<'v>],
    /// True if the update applies to several documents, so that it must not be a replacement.
    pub multi: bool,
}

/// A compiled update.
#[derive(Debug)]
pub struct Update {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Modifiers(Modifiers),
    Replacement(Replacement),
    Pipeline(PipelineUpdate),
}

/// The result of an update of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// True if the document counts as modified (`nModified`). If false, nothing needs to be
    /// written.
    pub changed: bool,
}

impl Update {
    /// Returns an update that stands for any change of a document: [`describe`](Self::describe)
    /// compares all fields. Applied, it changes nothing.
    pub fn difference() -> Update {
        Update { kind: Kind::Pipeline(PipelineUpdate::default()) }
    }

    /// Compiles an update.
    pub fn parse(spec: UpdateSpec<'_>, cx: &ParseContext) -> Result<Update> {
        let kind = match spec.update {
            Value::Array(stages) => {
                if !spec.array_filters.is_empty() {
                    return Err(Error::failed_to_parse(
                        "arrayFilters may not be specified for pipeline-syle updates",
                    ));
                }
                Kind::Pipeline(PipelineUpdate::parse(stages, cx)?)
            }
            Value::Document(update) => {
                let filters = ArrayFilters::parse(spec.array_filters, cx)?;
                if update.first().is_some_and(|first| first.key().starts_with('$')) {
                    Kind::Modifiers(Modifiers::parse(update, filters, cx)?)
                } else {
                    if spec.multi {
                        return Err(Error::failed_to_parse(
                            "multi update is not supported for replacement-style update",
                        ));
                    }
                    Kind::Replacement(Replacement::parse(update)?)
                }
            }
            _ => {
                return Err(Error::failed_to_parse(
                    "Update argument must be either an object or an array",
                ));
            }
        };
        Ok(Update { kind })
    }

    /// Makes a replacement keep its empty timestamps, in whose place it otherwise writes the time of
    /// the update.
    pub fn keep_empty_timestamps(&mut self) {
        if let Kind::Replacement(replacement) = &mut self.kind {
            replacement.keep_stamps();
        }
    }

    /// Returns true for a replacement document.
    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, Kind::Replacement(_))
    }

    /// Returns true for a pipeline.
    pub fn is_pipeline(&self) -> bool {
        matches!(self.kind, Kind::Pipeline(_))
    }

    /// Returns true if a path has a `$`, so that `apply` needs the position that the filter
    /// matched.
    pub fn needs_position(&self) -> bool {
        match &self.kind {
            Kind::Modifiers(modifiers) => modifiers.needs_position(),
            Kind::Replacement(_) | Kind::Pipeline(_) => false,
        }
    }

    /// Returns false only if the update cannot change the dotted path `path`, nor anything below
    /// it.
    pub fn may_change(&self, path: &str) -> bool {
        match &self.kind {
            Kind::Modifiers(modifiers) => modifiers.may_change(path),
            Kind::Replacement(_) | Kind::Pipeline(_) => true,
        }
    }

    /// Returns true if `$unset` or `$rename` removes the dotted path `path`, or something below it, also
    /// within elements of arrays. False for a replacement and for a pipeline.
    pub fn removes(&self, path: &str) -> bool {
        matches!(&self.kind, Kind::Modifiers(modifiers) if modifiers.removes(path))
    }

    /// Returns true if an operator changes exactly the path `path`, by its current value only: `$inc`,
    /// `$mul`, `$min` or `$max`.
    pub fn is_relative(&self, path: &str) -> bool {
        matches!(&self.kind, Kind::Modifiers(modifiers) if modifiers.is_relative(path))
    }

    /// Returns true if the update changes nothing but paths that are `meant`, each as
    /// [`is_relative`](Self::is_relative) says.
    pub fn is_only_relative(&self, meant: impl Fn(&str) -> bool) -> bool {
        matches!(&self.kind, Kind::Modifiers(modifiers) if modifiers.is_only_relative(meant))
    }

    /// Returns the paths that the operators can change, up to the first part that depends on the
    /// document; `None` for a replacement and for a pipeline.
    pub fn touched(&self) -> Option<impl Iterator<Item = &str>> {
        match &self.kind {
            Kind::Modifiers(modifiers) => Some(modifiers.touched()),
            Kind::Replacement(_) | Kind::Pipeline(_) => None,
        }
    }

    /// Describes how [`apply`](Self::apply) changed `before` to `after`. Returns `None` for a
    /// replacement, because the new document describes it completely.
    pub fn describe(&self, before: Doc<'_>, after: Doc<'_>) -> Option<UpdateDescription> {
        match &self.kind {
            Kind::Modifiers(modifiers) => Some(modifiers.describe(before, after)),
            Kind::Replacement(_) => None,
            Kind::Pipeline(_) => Some(describe::by_difference(before, after)),
        }
    }

    /// Appends the updated document to `out`, even if nothing changed. `position` is the index of
    /// the array element that the filter matched, for `$`.
    pub fn apply(
        &self,
        doc: Doc<'_>,
        position: Option<u32>,
        cx: &EvalContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome> {
        let start = out.len();
        let changed = match &self.kind {
            Kind::Modifiers(modifiers) => modifiers.apply(doc, position, false, cx, out)?,
            Kind::Replacement(replacement) => {
                replacement.apply(doc, cx, out)?;
                replacement::check_id(doc, written(out, start))?;
                replacement.changes(doc, written(out, start))
            }
            Kind::Pipeline(pipeline) => pipeline.apply(doc, cx, out)?,
        };
        limits::check_size(out.len() - start, doc)?;
        Ok(Outcome { changed })
    }

    /// Returns the document that an upsert inserts: the equalities of `filter`, with the update
    /// applied. `_id` is the first field; `new_id` is called if neither has one.
    pub fn upsert_document(
        &self,
        filter: Doc<'_>,
        cx: &EvalContext<'_>,
        new_id: impl FnOnce() -> ObjectId,
    ) -> Result<DocBuf> {
        let seed = upsert::seed(filter, self.is_replacement())?;
        // An operator that changes `_id` is an error before its value is checked.
        let operators = matches!(self.kind, Kind::Modifiers(_));
        if let Some(id) = seed.get("_id").filter(|_| !operators) {
            upsert::check_id(id)?;
        }
        let mut bytes = Vec::with_capacity(seed.as_bytes().len() + 64);
        match &self.kind {
            Kind::Modifiers(modifiers) => {
                modifiers.apply(seed.as_doc(), None, true, cx, &mut bytes)?;
            }
            Kind::Replacement(replacement) => {
                replacement.apply(seed.as_doc(), cx, &mut bytes)?;
                replacement::check_id(seed.as_doc(), written(&bytes, 0))?;
            }
            Kind::Pipeline(pipeline) => {
                pipeline.apply(seed.as_doc(), cx, &mut bytes)?;
            }
        }
        finish_upsert(written(&bytes, 0), new_id)
    }
}

fn written(out: &[u8], start: usize) -> Doc<'_> {
    Doc::from_valid_bytes(out.get(start..).unwrap_or_default())
}

/// Moves `_id` to the front, or adds one, and makes the checks of an insert.
fn finish_upsert(doc: Doc<'_>, new_id: impl FnOnce() -> ObjectId) -> Result<DocBuf> {
    let id = doc.find("_id").map(|id| id.value());
    if let Some(id) = id {
        upsert::check_id(id)?;
    }
    let document = DocBuf::build(|writer| {
        writer.append("_id", id.unwrap_or_else(|| Value::ObjectId(new_id())));
        for element in doc.iter().filter(|element| element.key_bytes() != b"_id") {
            writer.append_element(element);
        }
    });
    if document.as_bytes().len() > INTERNAL_DOCUMENT_BYTES_MAX {
        return Err(too_large(document.as_bytes().len(), document.as_doc().first()));
    }
    if document.as_bytes().len() > limits::DOCUMENT_BYTES_MAX {
        let max = limits::DOCUMENT_BYTES_MAX;
        let message = format!("Document to upsert is larger than {max}");
        return Err(Error::location(17420, message));
    }
    Ok(document)
}
