//! The shape of a pipeline: a table says which part of each stage is what.

use super::expression::{self, TIME_UNITS};
use super::filter::{self, Detail};
use super::{literal, projection};
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter, Value, ValueBuf};

/// What a part of a stage is.
#[derive(Clone, Copy)]
enum Part {
    /// A value, whose type stays.
    Literal,
    /// A name, a list of names, or a document of them.
    Name,
    /// One of these words; anything else is a literal.
    Word(&'static [&'static str]),
    /// An expression, or a document of expressions and accumulators.
    Expression,
    /// A filter like that of `$match`.
    Filter,
    /// A projection like that of `$project`.
    Projection,
    /// A sort like that of `$sort`.
    Sort,
    /// A list of stages, each with its own shape.
    Pipeline,
    /// A pipeline, or one of these words in its place.
    PipelineOrWord(&'static [&'static str]),
    /// A document of which each field is this.
    Each(&'static Part),
    /// A document of these fields; another field is an expression.
    Fields(&'static [(&'static str, Part)]),
    /// As `Fields`, or a name in its place.
    NameOrFields(&'static [(&'static str, Part)]),
}

use Part::{Each, Expression, Fields, Filter, Literal, Name, NameOrFields, Pipeline, Sort, Word};

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
            ("whenMatched", Part::PipelineOrWord(&["replace", "keepExisting", "merge", "fail"])),
            ("whenNotMatched", Word(&["insert", "discard", "fail"])),
        ]),
    ),
    ("$out", Name),
    ("$project", Part::Projection),
    ("$rankFusion", FUSION),
    ("$sample", Each(&Literal)),
    ("$score", Fields(&[("normalization", NORMALIZATION)])),
    ("$scoreFusion", FUSION),
    ("$setWindowFields", Fields(&[("sortBy", Sort)])),
    ("$skip", Literal),
    ("$sort", Sort),
    ("$unionWith", NameOrFields(&[("coll", Name), ("db", Name), ("pipeline", Pipeline)])),
    ("$unset", Name),
    ("$unwind", NameOrFields(&[("path", Name), ("includeArrayIndex", Name)])),
];

const RANGE: Part = Fields(&[("unit", Word(TIME_UNITS)), ("bounds", Word(&["full", "partition"]))]);
const FILLED: Part = Fields(&[("method", Word(&["linear", "locf"]))]);
const NORMALIZATION: Part = Word(&["none", "sigmoid", "minMaxScaler"]);
const GRAPH_LOOKUP: Part = Fields(&[
    ("from", Name),
    ("connectFromField", Name),
    ("connectToField", Name),
    ("as", Name),
    ("depthField", Name),
    ("restrictSearchWithMatch", Filter),
]);
const FUSION: Part = Fields(&[("input", INPUT), ("combination", COMBINATION)]);
const INPUT: Part = Fields(&[("pipelines", Each(&Pipeline)), ("normalization", NORMALIZATION)]);
const COMBINATION: Part =
    Fields(&[("weights", Each(&Literal)), ("method", Word(&["avg", "expression"]))]);

/// Returns the shape of a pipeline. What is no stage is a literal.
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
                None => {
                    out.push(&*literal::of(stage));
                }
            }
        }
    })
}

/// Appends the shape of one part.
fn write(name: &str, value: Value<'_>, part: Part, out: &mut DocWriter<'_>) {
    match (part, value) {
        (Name, value) => out.append(name, &names(value)),
        (NameOrFields(_), value @ Value::String(_)) => out.append(name, value),
        (Word(words) | Part::PipelineOrWord(words), Value::String(word))
            if words.contains(&word) =>
        {
            out.append(name, word)
        }
        (Filter, Value::Document(doc)) => out.append(name, &filter::of(doc, Detail::Request)),
        (Part::Projection, Value::Document(doc)) => out.append(name, &projection::of(doc)),
        (Sort, Value::Document(doc)) => out.append(name, &projection::of_sort(doc)),
        (Pipeline | Part::PipelineOrWord(_), Value::Array(stages)) => {
            out.append(name, &of(stages.iter()))
        }
        (Each(part), Value::Document(doc)) => {
            let each = |(field, value): (&str, Value<'_>), inner: &mut DocWriter<'_>| {
                write(field, value, *part, inner);
            };
            out.append(name, &fields(doc, each))
        }
        (Fields(parts) | NameOrFields(parts), Value::Document(doc)) => {
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

/// Returns names as they are. What is no name, list of names or document of names is a literal.
fn names(value: Value<'_>) -> ValueBuf {
    match value {
        Value::String(name) => ValueBuf::new(name),
        Value::Array(list) => ArrayBuf::build(|out| {
            list.iter().for_each(|one| {
                out.push(&names(one));
            });
        })
        .into(),
        Value::Document(doc) => {
            let each = |(field, value): (&str, Value<'_>), inner: &mut DocWriter<'_>| {
                inner.append(field, &names(value));
            };
            fields(doc, each).into()
        }
        other => ValueBuf::new(&*literal::of(other)),
    }
}

fn fields(doc: Doc<'_>, mut each: impl FnMut((&str, Value<'_>), &mut DocWriter<'_>)) -> DocBuf {
    DocBuf::build(|out| doc.fields().for_each(|field| each(field, out)))
}
