//! `$graphLookup`: a recursive search in another collection.

use super::facts::{Facts, Pipelines};
use super::registry::StageRow;
use super::sub_pipeline::{From, parse_path};
use super::{Match, Modified, Needs, Stage, StageBody};
use crate::context::ParseContext;
use crate::expression::{Dependencies, Expression, FieldPath};
use crate::text;
use quire_document::path::Path;
use quire_document::{DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const GRAPH_LOOKUP: StageRow = StageRow {
    name: "$graphLookup",
    since: "3.4",
    doc: "Searches another collection recursively.",
    facts: Facts { pipelines: Pipelines::None, ..Facts::JOIN },
    parse: |_, value, cx| Ok(vec![Stage::GraphLookup(Arc::new(GraphLookup::parse(value, cx)?))]),
};

/// A parsed `$graphLookup`.
#[derive(Debug)]
pub struct GraphLookup {
    /// The collection to search.
    pub from: From,
    /// The values to start with; an array gives its elements.
    pub start_with: Expression,
    /// The field of a found document with the values to search for in the next step.
    pub connect_from: Path,
    /// The field that is compared with these values.
    pub connect_to: Path,
    /// The output field for the found documents.
    pub output: FieldPath,
    /// The most steps; `None` for no limit.
    pub depth_max: Option<u64>,
    /// The field of a found document that gets the number of steps.
    pub depth_field: Option<FieldPath>,
    /// An additional filter of found documents.
    pub restriction: Option<Arc<Match>>,
}

/// The operands during parsing.
#[derive(Default)]
struct Spec<'v> {
    from: Option<&'v str>,
    start_with: Option<Expression>,
    connect_from: Option<&'v str>,
    connect_to: Option<&'v str>,
    output: Option<&'v str>,
    depth_field: Option<&'v str>,
    depth_max: Option<u64>,
    restriction: Option<Arc<Match>>,
}

impl GraphLookup {
    fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Self> {
        let Value::Document(fields) = value else {
            let text = format!(
                "the $graphLookup stage specification must be an object, but found {}",
                value.type_name()
            );
            return Err(Error::failed_to_parse(text));
        };
        let mut spec = Spec::default();
        for (name, value) in fields.fields() {
            spec.take(name, value, cx)?;
        }
        let (Some(from), Some(start_with), Some(connect_from), Some(connect_to), Some(output)) =
            (spec.from, spec.start_with, spec.connect_from, spec.connect_to, spec.output)
        else {
            let text = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.";
            return Err(Error::location(40105, text));
        };
        Ok(GraphLookup {
            from: From::named(from, cx)?,
            start_with,
            connect_from: Path::new(&parse_path(connect_from)?.to_string()),
            connect_to: Path::new(&parse_path(connect_to)?.to_string()),
            output: parse_path(output)?,
            depth_max: spec.depth_max,
            depth_field: spec.depth_field.map(parse_path).transpose()?,
            restriction: spec.restriction,
        })
    }
}

impl<'v> Spec<'v> {
    fn take(&mut self, name: &str, value: Value<'v>, cx: &ParseContext) -> Result<()> {
        match name {
            "startWith" => self.start_with = Some(Expression::parse(value, cx)?),
            "maxDepth" => self.depth_max = Some(depth_max(value)?),
            "restrictSearchWithMatch" => {
                let Value::Document(filter) = value else {
                    let kind = value.type_name();
                    let text = format!("restrictSearchWithMatch must be an object, found {kind}");
                    return Err(Error::location(40185, text));
                };
                self.restriction = Some(Arc::new(Match::new(filter, cx)?));
            }
            "from" => match value {
                Value::String(from) => self.from = Some(from),
                other => {
                    let text = format!(
                        "$graphLookup 'from' field must be a string, but found {}",
                        other.type_name()
                    );
                    return Err(Error::failed_to_parse(text));
                }
            },
            "connectFromField" | "connectToField" | "as" | "depthField" => {
                let Value::String(path) = value else {
                    let text = format!(
                        "expected string as argument for {name}, found: {}",
                        text::value(value)
                    );
                    return Err(Error::location(40103, text));
                };
                match name {
                    "connectFromField" => self.connect_from = Some(path),
                    "connectToField" => self.connect_to = Some(path),
                    "as" => self.output = Some(path),
                    _ => self.depth_field = Some(path),
                }
            }
            other => {
                let text = format!("Unknown argument to $graphLookup: {other}");
                return Err(Error::location(40104, text));
            }
        }
        Ok(())
    }
}

fn depth_max(value: Value<'_>) -> Result<u64> {
    let Some(number) = value.as_number() else {
        let kind = value.type_name();
        let text = format!("maxDepth requires numeric argument, found {kind}");
        return Err(Error::location(40100, text));
    };
    let Some(depth) = number.exact_i64() else {
        let text =
            format!("maxDepth could not be represented as a long long: {}", text::value(value));
        return Err(Error::location(40102, text));
    };
    u64::try_from(depth).map_err(|_| {
        let text = format!("maxDepth requires a nonnegative argument, found: {depth}");
        Error::location(40101, text)
    })
}

impl StageBody for GraphLookup {
    fn name(&self) -> &'static str {
        GRAPH_LOOKUP.name
    }

    fn needs(&self) -> Needs {
        let mut reads = self.start_with.dependencies();
        if let Some(restriction) = &self.restriction {
            let Dependencies { variables, volatile, .. } = restriction.needs().reads;
            reads.variables.extend(variables);
            reads.volatile |= volatile;
        }
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        Modified::replacing([&self.output])
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(GRAPH_LOOKUP.name);
        inner.append_some("from", self.from.name.as_deref().map(Value::from));
        inner.append("as", self.output.to_string().as_str());
        inner.append("connectToField", self.connect_to.as_str());
        inner.append("connectFromField", self.connect_from.as_str());
        self.start_with.serialize_to("startWith", &mut inner);
        if let Some(field) = &self.depth_field {
            inner.append("depthField", field.to_string().as_str());
        }
        if let Some(depth) = self.depth_max {
            inner.append("maxDepth", super::limit::printed(depth));
        }
        if let Some(restriction) = &self.restriction {
            inner.append("restrictSearchWithMatch", &restriction.filter().to_bson());
        }
    }
}
