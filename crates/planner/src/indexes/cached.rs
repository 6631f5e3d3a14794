//! The key of the plan cache: the shape of a request, and what decides which indexes can serve it.

use crate::indexes::access::Candidate;
use crate::plan::Plan;
use crate::request::Hint;
use crate::shape::{PlanParts, PlanShape};
use quire_catalog::{Collection, Index, is_allowed};
use quire_document::{DocBuf, Value};
use quire_mql::collation::Collation;
use quire_mql::filter::{Node, Test};
use quire_mql::stage::{Stage, StageBody, Transform, find_stage};
use std::sync::Arc;

/// The facts about a request, besides its shape, that decide which indexes can serve it.
pub(crate) struct KeyFacts<'k> {
    /// The collection that it searches.
    pub collection: &'k Arc<Collection>,
    /// The normalised filter.
    pub filter: &'k Node,
    /// The collation of the request.
    pub collation: Option<&'k Collation>,
    /// The index that it demands.
    pub hint: Option<&'k Hint>,
}

impl KeyFacts<'_> {
    /// Returns the key of the plan cache for requests of a shape with these facts. `is_allowed` says
    /// which indexes an index filter or query settings allow.
    pub fn key(&self, shape: PlanShape, is_allowed: impl Fn(&Index) -> bool) -> u64 {
        let usable = || {
            let visible = self.collection.ready_indexes().filter(|index| !index.hidden);
            visible.filter(|index| is_allowed(index)).filter(|index| {
                Candidate::new(self.collection, index).holds_all(self.filter, self.collation)
            })
        };
        let operands = Operands::of(self.filter);
        let sparse = operands.nulls && usable().any(|index| index.keys.is_sparse());
        let foreign = |index: &Arc<Index>| index.keys.collation() != self.collation;
        let compared = operands.strings && usable().any(foreign);
        let facts = DocBuf::build(|out| {
            match self.hint {
                None => {}
                Some(Hint::Name(name)) => drop(out.append("hint", name.as_str())),
                Some(Hint::Pattern(pattern)) => drop(out.append("hint", pattern)),
                Some(Hint::Natural(forward)) => drop(out.append("natural", *forward)),
            }
            out.append("nulls", sparse).append("strings", compared);
            let mut indexes = out.array("indexes");
            usable().for_each(|index| {
                indexes.push(i64::from(index.id.0));
            });
        });
        shape.with(&facts)
    }
}

/// The types of operands that some indexes cannot serve.
#[derive(Default)]
struct Operands {
    /// Null, which a sparse index does not hold.
    nulls: bool,
    /// Strings, or values that can hold them: an index with another collation orders them
    /// differently.
    strings: bool,
}

impl Operands {
    fn of(filter: &Node) -> Self {
        let mut found = Operands::default();
        filter.visit_paths(&mut |node| match &node.test {
            Test::Compare(_, operand) | Test::Implied(_, operand) => found.add(operand.value()),
            Test::In(list) => list.values().for_each(|value| found.add(value)),
            _ => {}
        });
        found
    }

    fn add(&mut self, value: Value<'_>) {
        self.nulls |= value.is_nullish();
        self.strings |= matches!(value, Value::String(_) | Value::Document(_) | Value::Array(_));
    }
}

/// Returns the shape of a plan, and the key of the plan cache for it.
pub fn shape_hashes(plan: &Plan) -> (u64, u64) {
    let parts = PlanParts {
        filter: plan.filter.as_deref(),
        sort: plan.sort.as_doc(),
        projection: plan.projection.as_doc(),
        collation: plan.collation.as_deref(),
    };
    let is_unset =
        |stage: &&Stage| matches!(stage, Stage::Transform(Transform::Projection("$unset", _)));
    // Explain prints an `$unset` as a `$project`, but the shape must not contain it.
    let names = plan.stages().into_iter().filter(|stage| !is_unset(stage)).map(StageBody::name);
    let reshapes = |name: &&str| find_stage(name).is_some_and(|row| row.facts.reshapes);
    let shape = PlanShape::of(parts, &names.filter(reshapes).collect::<Vec<_>>());
    (shape.0, cache_key(shape, plan).unwrap_or(shape.0))
}

/// Returns the key of the plan cache; `None` without a collection or a filter.
fn cache_key(shape: PlanShape, plan: &Plan) -> Option<u64> {
    let facts = KeyFacts {
        collection: plan.root.collection()?,
        filter: plan.filter.as_deref()?,
        collation: plan.collation.as_deref(),
        hint: plan.hint.as_ref(),
    };
    let settings = plan.allowed_by_settings();
    let filter = plan.index_filter.as_ref().map(|filter| filter.indexes.as_slice());
    let allowed = settings.or(filter);
    Some(facts.key(shape, |index| allowed.is_none_or(|allowed| is_allowed(allowed, index))))
}
