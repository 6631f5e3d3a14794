//! `$unionWith`: adds the documents of another collection after those of the input.

use super::facts::Facts;
use super::registry::StageRow;
use super::rights::Names;
use super::sub_pipeline::{From, add_outer_reads, parse_over, stages_of};
use super::{Modified, Needs, Stage, StageBody};
use crate::context::Inside;
use crate::context::ParseContext;
use crate::expression::Dependencies;
use crate::options::Options;
use quire_document::{DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const UNION_WITH: StageRow = StageRow {
    name: "$unionWith",
    since: "4.4",
    doc: "Adds the documents of another collection, or of a pipeline over it.",
    facts: Facts { names: Names::Field("coll"), in_transaction: false, ..Facts::JOIN },
    parse: |_, value, cx| Ok(vec![Stage::UnionWith(Arc::new(UnionWith::parse(value, cx)?))]),
};

/// A parsed `$unionWith`, or several consecutive ones.
#[derive(Debug)]
pub struct UnionWith {
    /// The pipelines whose results follow the input, in order.
    pub others: Vec<OtherPipeline>,
}

/// A pipeline over another collection.
#[derive(Clone, Debug)]
pub struct OtherPipeline {
    /// The other collection.
    pub from: From,
    /// The stages that process its documents.
    pub pipeline: Vec<Stage>,
}

impl UnionWith {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let (name, stages) = match value {
            Value::String(name) => (Some(name), None),
            Value::Document(spec) => {
                let (mut name, mut stages) = (None, None);
                const OPTIONS: Options<'_> = Options("$unionWith");
                for field in OPTIONS.fields(spec) {
                    match field? {
                        ("coll", Value::String(text)) => name = Some(text),
                        ("coll", other) => {
                            return Err(OPTIONS.wrong_type("coll", other, "string"));
                        }
                        ("pipeline", value) => stages = Some(stages_of(value)?),
                        (other, _) => return Err(OPTIONS.unknown(other)),
                    }
                }
                (name, stages)
            }
            other => {
                return Err(Error::failed_to_parse(format!(
                    "the $unionWith stage specification must be an object or string, but found {}",
                    other.type_name()
                )));
            }
        };
        let from = match name {
            Some(name) => From::named(name, cx)?,
            None => From::written("$unionWith", stages, cx)?,
        };
        let pipeline = parse_over(stages, Inside::Union, &from, cx)?;
        Ok(UnionWith { others: vec![OtherPipeline { from, pipeline }] })
    }
}

impl OtherPipeline {
    fn print(&self, writer: &mut DocWriter<'_>) {
        writer.append_some("coll", self.from.name.as_deref().map(Value::from));
        writer.append("pipeline", &super::pipeline_to_bson(&self.pipeline));
    }
}

impl StageBody for UnionWith {
    fn name(&self) -> &'static str {
        UNION_WITH.name
    }

    /// The whole input is passed on.
    fn needs(&self) -> Needs {
        let mut reads = Dependencies { whole_document: true, ..Dependencies::default() };
        for other in &self.others {
            add_outer_reads(&other.pipeline, usize::MAX, &mut reads);
        }
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        match &*self.others {
            [one] => one.print(&mut writer.document(UNION_WITH.name)),
            several => {
                let mut list = writer.array(UNION_WITH.name);
                several.iter().for_each(|other| other.print(&mut list.document()));
            }
        }
    }
}
