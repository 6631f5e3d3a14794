//! The common part of the stages that read another collection: its name, the pipeline over it, and
//! the pipeline's variables, which have new values for each input document.

use super::pipeline::parse_sub_pipeline;
use super::{Needs, Stage, StageBody};
use crate::context::Inside;
use crate::context::ParseContext;
use crate::expression::{Dependencies, FieldPath, PATH_COMPONENTS_MAX};
use quire_document::{Array, Value};
use quire_error::{Error, ErrorCode, Result};

/// The collection that a stage reads in addition to its input.
#[derive(Clone, Debug)]
pub struct From {
    /// The name as the user wrote it; `None` if the pipeline begins with `$documents`.
    pub name: Option<Box<str>>,
    /// `database.collection`, or `database.$cmd.aggregate` without a collection.
    pub namespace: Box<str>,
}

impl From {
    /// Returns the collection `name` in the database of the enclosing pipeline.
    ///
    /// # Errors
    /// 73 InvalidNamespace for an invalid name.
    pub(super) fn named(name: &str, cx: &ParseContext) -> Result<Self> {
        let db = database(cx);
        if name.is_empty() || name.starts_with('.') || name.contains('\0') {
            let text = format!("Invalid namespace specified '{db}.{}'", name.replace('\0', "\\0"));
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
        Ok(From { name: Some(name.into()), namespace: format!("{db}.{name}").into() })
    }

    /// Returns the source of a pipeline that begins with `$documents`.
    ///
    /// # Errors
    /// 9 FailedToParse if the pipeline begins with another stage.
    pub(super) fn written(
        stage: &str,
        pipeline: Option<Array<'_>>,
        cx: &ParseContext,
    ) -> Result<Self> {
        let first = pipeline.and_then(|stages| stages.iter().next());
        let first = first.and_then(|first| first.as_document()).and_then(|first| first.first());
        if first.is_none_or(|first| first.key() != "$documents") {
            let text = format!(
                "{stage} without a collection must have a pipeline whose first stage is $documents"
            );
            return Err(Error::failed_to_parse(text));
        }
        Ok(From { name: None, namespace: format!("{}.$cmd.aggregate", database(cx)).into() })
    }
}

fn database(cx: &ParseContext) -> &str {
    cx.place.as_deref().map_or("", |place| place.db())
}

/// Parses the operand `pipeline` of a stage.
///
/// # Errors
/// 14 TypeMismatch if it is not an array of documents.
pub(super) fn stages_of(value: Value<'_>) -> Result<Array<'_>> {
    let Value::Array(stages) = value else {
        return Err(Error::type_mismatch("'pipeline' option must be specified as an array"));
    };
    if stages.iter().any(|stage| stage.as_document().is_none()) {
        let text = "Each element of the 'pipeline' array must be an object";
        return Err(Error::type_mismatch(text));
    }
    Ok(stages)
}

/// Parses the pipeline of a `$lookup` or a `$unionWith`.
pub(super) fn parse_over(
    stages: Option<Array<'_>>,
    inside: Inside,
    from: &From,
    cx: &ParseContext,
) -> Result<Vec<Stage>> {
    parse_sub_pipeline(stages.unwrap_or(Array::empty()), inside, &from.namespace, cx)
}

/// Parses an operand that is a path.
///
/// # Errors
/// 15 Overflow for more than 200 components, and errors as [`FieldPath::parse`].
pub(super) fn parse_path(path: &str) -> Result<FieldPath> {
    if path.split('.').count() > PATH_COMPONENTS_MAX {
        return Err(Error::new(ErrorCode::Overflow, "FieldPath is too long"));
    }
    FieldPath::parse(path)
}

/// Adds to `reads` the outer dependencies of a pipeline inside a stage: the variables with an index
/// below `first_own`, and whether its result may differ from run to run. Its paths and metadata are
/// those of its own documents.
pub(super) fn add_outer_reads(stages: &[Stage], first_own: usize, reads: &mut Dependencies) {
    for stage in stages {
        let Needs { reads: inner, .. } = stage.needs();
        reads.variables.extend(inner.variables.into_iter().filter(|index| *index < first_own));
        reads.volatile |= inner.volatile;
    }
}
