//! Stages that make one document of each, including all stages of pipeline updates.

use super::registry::StageRow;
use super::{Modified, Needs, ReplaceRoot, Stage, StageBody};
use crate::context::{EvalContext, ParseContext};
use crate::expression::Dependencies;
use crate::projection::{Edits, Kind, Projection};
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A stage that makes one document of each.
#[derive(Clone, Debug)]
pub enum Transform {
    /// `$project`, `$addFields`, `$set` or `$unset`, with the name that the user wrote.
    Projection(&'static str, Arc<Projection>),
    /// The stages `$replaceRoot` and `$replaceWith`.
    ReplaceRoot(Arc<ReplaceRoot>),
}

impl Transform {
    /// Parses a stage. Returns `None` for other kinds of stages.
    pub fn parse(row: &StageRow, value: Value<'_>, cx: &ParseContext) -> Result<Option<Transform>> {
        if !row.facts.in_update {
            return Ok(None);
        }
        let mut stages = (row.parse)(row.name, value, cx)?;
        match (stages.pop(), stages.is_empty()) {
            (Some(Stage::Transform(transform)), true) => Ok(Some(transform)),
            _ => Ok(None),
        }
    }

    pub(super) fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        match self {
            Transform::Projection(_, projection) => projection.transform(cx),
            Transform::ReplaceRoot(stage) => stage.apply(cx),
        }
    }

    /// Adds the dependencies of the stage to `needed`. Returns true if the output depends on
    /// nothing else.
    pub fn add_dependencies(&self, needed: &mut Dependencies) -> bool {
        match self {
            Transform::Projection(_, projection) => {
                let computed = projection.computed_fields();
                computed.iter().for_each(|(_, expression)| expression.add_dependencies(needed));
                if projection.kind() != Kind::Inclusion {
                    return false;
                }
                let needs = projection.needs();
                needed.whole_document |= needs.whole_document;
                needed.paths.extend(needs.paths);
                needed.metadata.extend(needs.metadata);
                true
            }
            Transform::ReplaceRoot(stage) => {
                stage.add_dependencies(needed);
                true
            }
        }
    }
}

impl StageBody for Transform {
    fn name(&self) -> &'static str {
        match self {
            Transform::Projection("$unset", _) => "$project",
            Transform::Projection(name, _) => name,
            Transform::ReplaceRoot(_) => "$replaceRoot",
        }
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        needs.exhaustive = self.add_dependencies(&mut needs.reads);
        needs
    }

    fn modified(&self) -> Modified {
        match self {
            Transform::Projection(_, projection) => match projection.kind() {
                Kind::Inclusion => Modified::AllExcept(kept(projection)),
                Kind::AddFields => {
                    let computed = projection.computed_fields();
                    Modified::Paths(computed.into_iter().map(|(path, _)| path).collect())
                }
                Kind::Exclusion => Modified::Paths(named(projection)),
            },
            Transform::ReplaceRoot(_) => Modified::All,
        }
    }

    fn streams(&self) -> bool {
        true
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        match self {
            Transform::Projection(_, projection) => {
                writer.append(self.name(), &projection.print());
            }
            Transform::ReplaceRoot(stage) => stage.print(writer),
        }
    }
}

/// Consecutive transforms, ready for execution.
#[derive(Debug, Default)]
pub struct Transforms(Vec<Step>);

#[derive(Debug)]
enum Step {
    One(Transform),
    Edits(Edits),
}

impl From<Transform> for Transforms {
    fn from(transform: Transform) -> Self {
        let mut transforms = Transforms::default();
        transforms.push(transform);
        transforms
    }
}

impl Transforms {
    /// Adds the next transform.
    pub fn push(&mut self, transform: Transform) {
        match transform {
            Transform::Projection(name, projection) => self.project(name, projection),
            other => self.0.push(Step::One(other)),
        }
    }

    fn project(&mut self, name: &'static str, projection: Arc<Projection>) {
        let left = match self.0.last_mut() {
            Some(Step::Edits(edits)) => edits.push(projection),
            _ => Some(projection),
        };
        let Some(projection) = left else { return };
        let mut edits = Edits::default();
        self.0.push(match edits.push(projection) {
            None => Step::Edits(edits),
            Some(alone) => Step::One(Transform::Projection(name, alone)),
        });
    }

    /// Returns the document that the transforms make of `cx.root`. It borrows from it or from the
    /// arena.
    ///
    /// # Errors
    /// Errors of the stages, in their order.
    pub fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        self.0.iter().try_fold(cx.root, |doc, step| {
            let cx = cx.with_root(doc);
            match step {
                Step::One(transform) => transform.apply(&cx),
                Step::Edits(edits) => edits.apply(&cx),
            }
        })
    }
}

/// Returns the paths that an inclusion keeps unchanged, with `_id` unless it is excluded.
fn kept(projection: &Projection) -> BTreeSet<String> {
    let computed: BTreeSet<String> =
        projection.computed_fields().into_iter().map(|(path, _)| path).collect();
    let fields = projection.to_bson().as_doc().fields().filter_map(|(name, value)| match value {
        Value::Bool(true) => Some(name.to_owned()),
        value if value.as_number().is_some_and(|number| number.exact_i64() != Some(0)) => {
            Some(name.to_owned())
        }
        _ => None,
    });
    let mut kept: BTreeSet<String> = fields.filter(|name| !computed.contains(name)).collect();
    if projection.keeps_field("_id") {
        kept.insert("_id".to_owned());
    }
    kept
}

/// Returns the top-level fields that a projection names.
fn named(projection: &Projection) -> BTreeSet<String> {
    let names = projection.to_bson().as_doc().fields().map(|(name, _)| name.to_owned());
    names.map(|name| name.split('.').next().unwrap_or_default().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Shared;
    use crate::stage::find_stage;
    use bumpalo::Bump;
    use quire_document::testing::Generator;
    use quire_document::{ArrayBuf, DocBuf, ValueBuf, array, doc};

    const PATHS: [&str; 12] =
        ["a", "b", "c", "_id", "a.b", "a.c", "b.a", "b.a.c", "c._id", "d", "d.a", "a.b.a"];

    fn path(random: &mut Generator) -> &'static str {
        random.pick(&PATHS).copied().unwrap_or("a")
    }

    fn expression(random: &mut Generator, depth: u32) -> ValueBuf {
        let field = format!("${}", path(random));
        let inner = |random: &mut Generator| match depth {
            0 => expression(random, 1),
            _ => ValueBuf::new(format!("${}", path(random)).as_str()),
        };
        match random.below(14) {
            0 => ValueBuf::new(&doc! { "$literal": &random.value() }),
            1 => ValueBuf::new(random.integer()),
            2 => ValueBuf::new("$$REMOVE"),
            3 => ValueBuf::new(&doc! { "$add": [field.as_str(), 1] }),
            4 => ValueBuf::new(&doc! { "$ifNull": [field.as_str(), &inner(random)] }),
            5 => ValueBuf::new(&doc! { "x": field.as_str(), "y": [&inner(random), 1] }),
            6 => ValueBuf::new(&array![&inner(random), &inner(random)]),
            7 => ValueBuf::new(&doc! { "$map": { "input": field.as_str(), "in": [
                "$$this", &inner(random)
            ] } }),
            8 if random.one_in(2) => ValueBuf::new("$$ROOT"),
            9 if random.one_in(2) => {
                ValueBuf::new(&doc! { "$getField": { "field": "a.b", "input": "$$CURRENT" } })
            }
            10 => ValueBuf::new(&doc! { "$mergeObjects": [field.as_str(), &inner(random)] }),
            11 => ValueBuf::new(&doc! { "$let": {
                "vars": { "CURRENT": &inner(random) }, "in": field.as_str()
            } }),
            _ => ValueBuf::new(field.as_str()),
        }
    }

    fn stage(random: &mut Generator) -> DocBuf {
        let paths: Vec<&str> = (0..=random.below(3)).map(|_| path(random)).collect();
        match random.below(12) {
            0..=5 => {
                let mut fields = DocBuf::new();
                for path in &paths {
                    fields.append(path, &expression(random, 0));
                }
                doc! { "$set": &fields }
            }
            6..=8 => doc! { "$unset": &paths.iter().copied().collect::<ArrayBuf>() },
            9..=10 => {
                let mut fields = DocBuf::new();
                if random.one_in(3) {
                    fields.append("_id", true);
                }
                if random.one_in(3) {
                    fields.append("e.m", &doc! { "$meta": "textScore" });
                }
                for path in &paths {
                    fields.append(path, false);
                }
                doc! { "$project": &fields }
            }
            _ => match random.below(3) {
                0 => doc! { "$replaceWith": { "a": "$a", "b": "$$ROOT" } },
                1 => doc! { "$project": { "a": 1, "b": "$c" } },
                _ => doc! { "$set": {} },
            },
        }
    }

    fn parse(stage: &DocBuf) -> Option<Transform> {
        let stage = stage.as_doc().first()?;
        let parsed =
            Transform::parse(find_stage(stage.key())?, stage.value(), &ParseContext::default());
        parsed.unwrap_or_default()
    }

    fn one_by_one<'a>(stages: &'a [Transform], cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        stages.iter().try_fold(cx.root, |doc, stage| stage.apply(&cx.with_root(doc)))
    }

    #[test]
    fn consecutive_stages_give_the_result_of_each_in_turn() {
        let (mut failed, mut arena, shared) = (0, Bump::new(), Shared::default());
        let metadata = doc! { "textScore": 1.5 };
        for seed in 0..10_000 {
            let mut random = Generator::new(seed);
            let stages: Vec<DocBuf> = (0..=random.below(8)).map(|_| stage(&mut random)).collect();
            let alone: Vec<Transform> = stages.iter().filter_map(parse).collect();
            let mut together = Transforms::default();
            stages.iter().filter_map(parse).for_each(|stage| together.push(stage));
            for _ in 0..4 {
                let doc = random.document();
                arena.reset();
                let cx = EvalContext::new(&arena, doc.as_doc(), &shared)
                    .with_metadata(Some(metadata.as_doc()));
                let what = || format!("{seed}: {stages:?} on {doc:?}");
                match (one_by_one(&alone, &cx), together.apply(&cx)) {
                    (Ok(wanted), Ok(found)) => {
                        assert_eq!(found.as_bytes(), wanted.as_bytes(), "{}", what());
                    }
                    (Err(wanted), Err(found)) => {
                        failed += 1;
                        assert_eq!(found.to_string(), wanted.to_string(), "{}", what());
                    }
                    (wanted, found) => panic!("{wanted:?}, {found:?}: {}", what()),
                }
            }
        }
        assert!((1000..30_000).contains(&failed), "{failed}");
    }

    #[test]
    fn results_that_nest_too_deep_are_refused_at_the_same_stage() {
        let deepen = doc! { "$set": { "a": { "x": "$a" } } };
        let (arena, shared) = (Bump::new(), Shared::default());
        let root = doc! { "a": 1, "b": 2 };
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        let mut depths = Vec::new();
        for hides in [false, true] {
            for count in 150..220 {
                let mut together = Transforms::default();
                let mut alone = Vec::new();
                for _ in 0..count {
                    together.push(parse(&deepen).unwrap());
                    alone.push(parse(&deepen).unwrap());
                }
                if hides {
                    together.push(parse(&doc! { "$unset": "a" }).unwrap());
                    alone.push(parse(&doc! { "$unset": "a" }).unwrap());
                }
                let (wanted, found) = (one_by_one(&alone, &cx), together.apply(&cx));
                assert_eq!(found.is_ok(), wanted.is_ok(), "{count}");
                depths.push(found.is_ok());
            }
        }
        assert!(depths.contains(&true) && depths.contains(&false));
    }
}
