//! The shape of a pipeline: a table says which part of each stage is what.

use super::filter::{self, Detail};
use super::{expression, literal, projection};
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter, Value};

/// What a part of a stage is.
#[derive(Clone, Copy)]
enum Part {
    /// A value, whose type stays.
    Literal,
    /// A name or another thing that is no value.
    Name,
    /// A string is a name; another value is a literal.
    NameOrLiteral,
    /// An expression, or a document of expressions and accumulators.
    Expression,
    /// A filter like that of `$match`.
    Filter,
    /// A projection like that of `$project`.
    Projection,
    /// A sort like that of `$sort`.
    Sort,
    /// A pipeline, or a name in its place.
    Pipeline,
    /// A document of which each field is this.
    Each(&'static Part),
    /// A document of these fields; another field is an expression. A string in its place is a name.
    Fields(&'static [(&'static str, Part)]),
}

use Part::{Each, Expression, Fields, Filter, Literal, Name, NameOrLiteral, Pipeline, Sort};

/// The operands of stages. That of another stage is an expression.
const STAGES: &[(&str, Part)] = &[
    ("$count", Name),
    ("$densify", Fields(&[("field", Name), ("partitionByFields", Name), ("range", RANGE)])),
    ("$documents", Expression),
    ("$facet", Each(&Pipeline)),
    ("$fill", Fields(&[("partitionByFields", Name), ("sortBy", Sort), ("output", Each(&FILLED))])),
    ("$graphLookup", GRAPH_LOOKUP),
    ("$limit", Literal),
    (
        "$lookup",
        Fields(&[
            ("from", Name),
            ("localField", Name),
            ("foreignField", Name),
            ("as", Name),
            ("pipeline", Pipeline),
        ]),
    ),
    ("$match", Filter),
    (
        "$merge",
        Fields(&[
            ("into", Name),
            ("on", Name),
            ("whenMatched", Pipeline),
            ("whenNotMatched", Name),
        ]),
    ),
    ("$out", Name),
    ("$project", Part::Projection),
    ("$rankFusion", FUSION),
    ("$sample", Each(&Literal)),
    ("$score", Fields(&[("normalization", Name)])),
    ("$scoreFusion", FUSION),
    ("$setWindowFields", Fields(&[("sortBy", Sort)])),
    ("$skip", Literal),
    ("$sort", Sort),
    ("$unionWith", Fields(&[("coll", Name), ("db", Name), ("pipeline", Pipeline)])),
    ("$unset", Name),
    ("$unwind", Fields(&[("path", Name), ("includeArrayIndex", Name)])),
];

const RANGE: Part = Fields(&[("unit", Name), ("bounds", NameOrLiteral)]);
const FILLED: Part = Fields(&[("method", Name)]);
const GRAPH_LOOKUP: Part = Fields(&[
    ("from", Name),
    ("connectFromField", Name),
    ("connectToField", Name),
    ("as", Name),
    ("depthField", Name),
    ("restrictSearchWithMatch", Filter),
]);
const FUSION: Part = Fields(&[("input", INPUT), ("combination", COMBINATION)]);
const INPUT: Part = Fields(&[("pipelines", Each(&Pipeline)), ("normalization", Name)]);
const COMBINATION: Part = Fields(&[("weights", Each(&Literal)), ("method", Name)]);

/// Returns the shape of a pipeline. What is no document of one stage stays as it is.
pub(super) fn of<'s>(stages: impl Iterator<Item = Value<'s>>) -> ArrayBuf {
    ArrayBuf::build(|out| {
        for stage in stages {
            let operand = stage.as_document().and_then(Doc::first);
            match operand {
                Some(operand) => {
                    let name = operand.key();
                    let part = STAGES.iter().find(|(stage, _)| *stage == name);
                    let part = part.map_or(Expression, |(_, part)| *part);
                    write(name, operand.value(), part, &mut out.document());
                }
                None => drop(out.push(stage)),
            }
        }
    })
}

/// Appends the shape of one part.
fn write(name: &str, value: Value<'_>, part: Part, out: &mut DocWriter<'_>) {
    match (part, value) {
        (Name, value) | (Part::NameOrLiteral, value @ Value::String(_)) => out.append(name, value),
        (Pipeline | Fields(_), value @ Value::String(_)) => out.append(name, value),
        (Filter, Value::Document(doc)) => out.append(name, &filter::of(doc, Detail::Request)),
        (Part::Projection, Value::Document(doc)) => out.append(name, &projection::of(doc)),
        (Sort, Value::Document(doc)) => out.append(name, &projection::of_sort(doc)),
        (Pipeline, Value::Array(stages)) => out.append(name, &of(stages.iter())),
        (Each(part), Value::Document(doc)) => {
            let each = |(field, value): (&str, Value<'_>), inner: &mut DocWriter<'_>| {
                write(field, value, *part, inner);
            };
            out.append(name, &fields(doc, each))
        }
        (Fields(parts), Value::Document(doc)) => {
            let each = |(field, value): (&str, Value<'_>), inner: &mut DocWriter<'_>| {
                let part = parts.iter().find(|(name, _)| *name == field);
                write(field, value, part.map_or(Expression, |(_, part)| *part), inner);
            };
            out.append(name, &fields(doc, each))
        }
        (Expression, value) => out.append(name, &expression::of(value)),
        (_, value) => out.append(name, &*literal::of(value)),
    };
}

fn fields(doc: Doc<'_>, mut each: impl FnMut((&str, Value<'_>), &mut DocWriter<'_>)) -> DocBuf {
    DocBuf::build(|out| doc.fields().for_each(|field| each(field, out)))
}
