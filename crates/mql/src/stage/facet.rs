//! `$facet`: several pipelines over the same documents; returns one document with the results of
//! all.

use super::facts::{Facts, Pipelines};
use super::pipeline::{parse_sub_pipeline, pipeline_to_bson};
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::Inside;
use crate::context::ParseContext;
use crate::expression::Dependencies;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const FACET: StageRow = StageRow {
    name: "$facet",
    since: "3.4",
    doc: "Runs several pipelines over the same documents.",
    facts: Facts { in_facet: false, pipelines: Pipelines::Each, ..Facts::PLAIN },
    parse: |_, value, cx| Ok(vec![Stage::Facet(Arc::new(Facet::parse(value, cx)?))]),
};

/// A parsed `$facet`.
#[derive(Debug)]
pub struct Facet {
    /// The fields of the result, with their pipelines.
    pub branches: Vec<(Box<str>, Vec<Stage>)>,
}

impl Facet {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Some(spec) = value.as_document().filter(|spec| !spec.is_empty()) else {
            let text = "the $facet specification must be a non-empty object";
            return Err(Error::location(40169, text));
        };
        for (name, pipeline) in spec.fields() {
            cx.part()?;
            check_branch(name, pipeline)?;
        }
        let namespace = cx.place.as_deref().map_or("", |place| &place.namespace);
        let mut branches = Vec::new();
        for (name, pipeline) in spec.fields() {
            let Value::Array(stages) = pipeline else { continue };
            let parsed = parse_sub_pipeline(stages, Inside::Facet, namespace, cx)?;
            branches.push((name.into(), parsed));
        }
        Ok(Facet { branches })
    }
}

/// Makes the checks of a branch that do not need its stages parsed.
fn check_branch(name: &str, pipeline: Value<'_>) -> Result<()> {
    crate::expression::check_field_name(name)?;
    if name.contains('.') {
        return Err(Error::location(16412, "FieldPath field names may not contain '.'."));
    }
    let Value::Array(stages) = pipeline else {
        let kind = pipeline.type_name();
        let text = format!("arguments to $facet must be arrays, {name} is type {kind}");
        return Err(Error::location(40170, text));
    };
    let wrong = |stage: &Value<'_>| stage.as_document().is_none_or(Doc::is_empty);
    match stages.iter().find(wrong) {
        None => Ok(()),
        Some(stage) => {
            let kind = stage.type_name();
            let text = format!(
                "elements of arrays in $facet spec must be non-empty objects, {name} argument contained an element of type {kind}"
            );
            Err(Error::location(40171, text))
        }
    }
}

impl StageBody for Facet {
    fn name(&self) -> &'static str {
        FACET.name
    }

    /// Returns the needs of all branches: everything, if one of them returns its input.
    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        for (_, stages) in &self.branches {
            let mut exhausted = false;
            for stage in stages {
                let needs = stage.needs();
                // Fields that an earlier stage of the branch sets are not needed from the input.
                reads.variables.extend(needs.reads.variables);
                reads.metadata.extend(needs.reads.metadata);
                reads.volatile |= needs.reads.volatile;
                if exhausted {
                    continue;
                }
                reads.whole_document |= needs.reads.whole_document;
                reads.paths.extend(needs.reads.paths);
                exhausted = needs.exhaustive;
            }
            reads.whole_document |= !exhausted;
        }
        Needs::only(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(FACET.name);
        for (name, stages) in &self.branches {
            let mut branch = inner.array(name);
            branch.document().document("$teeConsumer");
            for stage in pipeline_to_bson(stages).as_array().iter() {
                branch.push(stage);
            }
        }
    }
}
