//! `$setWindowFields`: computes fields from the documents around each document. It is replaced by a
//! `$sort` by partition and order, and the stage that computes the fields.

use super::facts::{BehindChanges, Facts};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::{EvalContext, ParseContext, Slot};
use crate::expression::{Dependencies, Expression, ExpressionNode, Extractor};
use crate::options::Options;
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::window::{Output, Partition, SortedBy};
use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const SET_WINDOW_FIELDS: StageRow = StageRow {
    name: "$setWindowFields",
    since: "5.0",
    doc: "Adds fields computed from the documents around each document.",
    facts: Facts { behind_changes: BehindChanges::RefusedAs("$sort"), ..Facts::PLAIN },
    parse: |_, value, cx| parse(value, cx),
};

/// The field for the value of a `partitionBy` that is not a path.
const PARTITION_FIELD: &str = "__internal_setWindowFields_partition_key";

/// The part of a `$setWindowFields` that computes. Its input has one partition after the other,
/// each in order.
#[derive(Debug)]
pub struct WindowFields {
    partition_by: Option<Expression>,
    /// `sortBy` as the user wrote it.
    sort_by: Option<DocBuf>,
    sorted_by: SortedBy,
    outputs: Vec<Output>,
    /// Takes the values of all paths that the partition and the functions read from a document.
    extractor: Extractor,
    /// Sets the results, which are bound to the slots from `first_slot`, in a document; `None` if
    /// there are no outputs.
    projection: Option<Projection>,
    first_slot: Slot,
}

struct Parts<'v> {
    partition_by: Option<Value<'v>>,
    sort_by: Option<Doc<'v>>,
    output: Doc<'v>,
}

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let parts = Parts::parse(value)?;
    let mut stages = Vec::new();
    let mut partition_by = match parts.partition_by {
        Some(value) => Some(Expression::parse(value, cx)?).filter(|by| !by.is_constant()),
        None => None,
    };
    if let Some(Value::Array(_)) = parts.partition_by
        && partition_by.is_none()
    {
        return Err(array_partition());
    }
    let path = partition_by.as_ref().map(|by| match by.node() {
        ExpressionNode::Path(path) => path.to_string(),
        _ => PARTITION_FIELD.to_owned(),
    });
    let is_computed = path.as_deref() == Some(PARTITION_FIELD);
    if let (true, Some(value)) = (is_computed, parts.partition_by) {
        let add = doc! { "$addFields": { PARTITION_FIELD: value } };
        stages.extend(parse_stage(Value::Document(add.as_doc()), cx)?);
        partition_by = Some(Expression::path(PARTITION_FIELD)?);
    }
    let sorted_by = parts.sorted_by(cx)?;
    if let Some(sort) = sort_of(path.as_deref(), parts.sort_by) {
        let sort = doc! { "$sort": &sort };
        stages.extend(parse_stage(Value::Document(sort.as_doc()), cx)?);
    }
    let sort_by = parts.sort_by.map(|sort_by| sort_by.to_owned());
    let fields = WindowFields::new(partition_by, sort_by, sorted_by, parts.output, cx)?;
    stages.push(Stage::WindowFields(Arc::new(fields)));
    if is_computed {
        let unset = doc! { "$unset": PARTITION_FIELD };
        stages.extend(parse_stage(Value::Document(unset.as_doc()), cx)?);
    }
    Ok(stages)
}

/// Returns the sort order: by partition, and within a partition by `sortBy`.
fn sort_of(partition: Option<&str>, sort_by: Option<Doc<'_>>) -> Option<DocBuf> {
    let sort = DocBuf::build(|writer| {
        if let Some(path) = partition {
            writer.append(path, 1);
        }
        for (path, direction) in sort_by.unwrap_or(Doc::empty()).fields() {
            if Some(path) != partition {
                writer.append(path, direction);
            }
        }
    });
    (!sort.as_doc().is_empty()).then_some(sort)
}

fn array_partition() -> Error {
    Error::type_mismatch("An expression used to partition cannot evaluate to value of type array")
}

impl<'v> Parts<'v> {
    fn parse(value: Value<'v>) -> Result<Self> {
        let Value::Document(spec) = value else {
            let kind = value.type_name();
            return Err(Error::failed_to_parse(format!(
                "the $setWindowFields stage specification must be an object, found {kind}"
            )));
        };
        let (mut partition_by, mut sort_by, mut output) = (None, None, None);
        const OPTIONS: Options<'_> = Options("$setWindowFields");
        for field in OPTIONS.fields(spec) {
            match field? {
                ("partitionBy", value) => partition_by = Some(value),
                ("sortBy" | "output", Value::Null | Value::Undefined) => {}
                ("sortBy", Value::Document(doc)) => sort_by = Some(doc),
                ("output", Value::Document(doc)) => output = Some(doc),
                (name @ ("sortBy" | "output"), other) => {
                    return Err(OPTIONS.wrong_type(name, other, "object"));
                }
                (name, _) => return Err(OPTIONS.unknown(name)),
            }
        }
        let output = output.ok_or_else(|| OPTIONS.missing("output"))?;
        Ok(Parts { partition_by, sort_by, output })
    }

    fn sorted_by(&self, cx: &ParseContext) -> Result<SortedBy> {
        let Some(sort_by) = self.sort_by else { return Ok(SortedBy::default()) };
        let pattern = match sort_by.is_empty() {
            true => None,
            false => Some(Arc::new(SortPattern::parse_stage(Value::Document(sort_by), cx)?)),
        };
        Ok(SortedBy { given: true, pattern })
    }
}

impl WindowFields {
    fn new(
        partition_by: Option<Expression>,
        sort_by: Option<DocBuf>,
        sorted_by: SortedBy,
        output: Doc<'_>,
        cx: &ParseContext,
    ) -> Result<Self> {
        let outputs = output.fields().map(|(field, value)| {
            cx.part()?;
            Output::parse(field, value, &sorted_by, cx)
        });
        let mut outputs: Vec<Output> = outputs.collect::<Result<_>>()?;
        let (mut partition_by, mut extractor) = (partition_by, Extractor::default());
        partition_by.iter_mut().for_each(|by| extractor.attach(by));
        outputs.iter_mut().for_each(|output| output.attach(&mut extractor));
        let names: Vec<String> = (0..outputs.len()).map(|at| format!("result{at}")).collect();
        let (inner, first_slot) = cx.bind_all(names.iter().map(String::as_str));
        let spec = DocBuf::build(|writer| {
            for (output, name) in outputs.iter().zip(&names) {
                writer.append(output.field(), format!("$${name}").as_str());
            }
        });
        let parse = || {
            let spec = Value::Document(spec.as_doc());
            Projection::parse_add_fields("$setWindowFields", spec, &inner)
        };
        let projection = (!outputs.is_empty()).then(parse).transpose()?;
        Ok(WindowFields {
            partition_by,
            sort_by,
            sorted_by,
            outputs,
            extractor,
            projection,
            first_slot,
        })
    }

    /// Returns the output fields with their functions, in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Returns the path of `partitionBy`; `None` if all documents are one partition.
    pub fn partition_path(&self) -> Option<String> {
        match self.partition_by.as_ref()?.node() {
            ExpressionNode::Path(path) => Some(path.to_string()),
            _ => None,
        }
    }

    /// Returns the value that all documents in the partition of `cx.root` share; null for a missing
    /// value. Fails with TypeMismatch for an array.
    pub fn partition_of<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        let Some(by) = &self.partition_by else { return Ok(Value::Null) };
        match by.eval(cx)? {
            None | Some(Value::Undefined) => Ok(Value::Null),
            Some(Value::Array(_)) => Err(array_partition()),
            Some(value) => Ok(value),
        }
    }

    /// Returns the context with the values of all paths of `cx.root` that the partition and the functions read,
    /// so that evaluating these does not search for them.
    pub fn extract<'a>(&self, cx: &EvalContext<'a>) -> Result<EvalContext<'a>> {
        self.extractor.context(cx)
    }

    /// Returns the state of a new partition.
    pub fn partition(&self, cx: &EvalContext<'_>) -> Result<Partition> {
        Partition::new(&self.outputs, cx)
    }

    /// Returns `cx.root`, the next document of a partition, with its results.
    pub fn output<'a>(
        &'a self,
        partition: &mut Partition,
        cx: &EvalContext<'a>,
    ) -> Result<Doc<'a>> {
        let results = partition.results(cx)?;
        let Some(projection) = &self.projection else { return Ok(cx.root) };
        projection.transform(&cx.bind_all(self.first_slot, results))
    }
}

impl StageBody for WindowFields {
    fn name(&self) -> &'static str {
        "$_internalSetWindowFields"
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies::default();
        self.partition_by.iter().for_each(|by| by.add_dependencies(&mut reads));
        self.outputs.iter().for_each(|output| output.add_dependencies(&mut reads));
        if let Some(pattern) = &self.sorted_by.pattern {
            for path in pattern.parts().iter().filter_map(|part| part.path()) {
                reads.paths.insert(path.as_str().to_owned());
            }
            reads.metadata.extend(pattern.metadata().map(|kind| kind.name().to_owned()));
        }
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        match self.outputs.is_empty() {
            true => Modified::Nothing,
            false => Modified::Paths(
                self.outputs.iter().map(|output| output.field().to_owned()).collect(),
            ),
        }
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(self.name());
        if let Some(by) = &self.partition_by {
            by.serialize_to("partitionBy", &mut inner);
        }
        if let Some(sort_by) = &self.sort_by {
            inner.append("sortBy", sort_by);
        }
        let mut output = inner.document("output");
        self.outputs.iter().for_each(|one| one.print(&mut output));
    }
}
