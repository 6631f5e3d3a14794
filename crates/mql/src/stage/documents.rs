//! `$documents`: documents given in the pipeline. It is replaced by one empty document and the
//! stages that make an array of it and unwind the array.

use super::facts::{Facts, Reads, Source, Standing};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::ParseContext;
use quire_document::{DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};

pub(super) const DOCUMENTS: StageRow = StageRow {
    name: "$documents",
    since: "5.1",
    doc: "Returns the documents in an array expression.",
    facts: Facts {
        standing: Standing::First,
        reads: Reads::Literal,
        source: Source::Database(ErrorCode::InvalidNamespace),
        in_facet: false,
        rights: &[],
        ..Facts::PLAIN
    },
    parse: |name, value, cx| parse(name, value, cx),
};

/// The first stage that replaces `$documents`: one empty document instead of the documents of a
/// collection. The planner makes a leaf of it.
#[derive(Clone, Copy, Debug)]
pub struct OneDocument;

impl OneDocument {
    /// The number of stages that replace a `$documents`.
    pub const STAGES: usize = 4;
}

/// Parses the operand. Fails with 73 InvalidNamespace in a pipeline that reads a collection, and
/// with 5858203 if the operand cannot be an array.
fn parse(name: &str, operand: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    if cx.place.as_deref().is_some_and(|place| !place.has_no_collection()) {
        let text = format!("'{name}' can only be run with {{aggregate: 1}}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let may_be_array = match operand {
        Value::Array(_) => true,
        Value::String(text) => text.starts_with('$'),
        Value::Document(spec) => spec.first().is_some_and(|first| first.key().starts_with('$')),
        _ => false,
    };
    if !may_be_array {
        let message = "error in $documents: an array is expected";
        return Err(Error::location(5858203, message));
    }
    let mut stages = vec![Stage::OneDocument(OneDocument)];
    for stage in [
        doc! { "$project": { "_id": false, "_documents": operand } },
        doc! { "$unwind": "$_documents" },
        doc! { "$replaceRoot": { "newRoot": "$_documents" } },
    ] {
        stages.extend(parse_stage(Value::Document(stage.as_doc()), cx)?);
    }
    Ok(stages)
}

impl StageBody for OneDocument {
    fn name(&self) -> &'static str {
        "$queue"
    }

    fn needs(&self) -> Needs {
        Needs::only(Default::default())
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        writer.array("$queue").document();
    }
}
