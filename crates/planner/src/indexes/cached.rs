//! The key of the plan cache: the shape of a request, and what decides which indexes it may use.

use crate::indexes::access::Candidate;
use crate::plan::Plan;
use crate::request::Hint;
use crate::shape::PlanShape;
use quire_document::DocBuf;

/// Returns the key of a plan's shape: it differs between requests of one shape that may not use the
/// same indexes.
pub(crate) fn cache_key(shape: PlanShape, plan: &Plan) -> u64 {
    let usable = usable_indexes(plan).unwrap_or_default();
    key_of(shape, usable.into_iter(), plan.hint.as_ref())
}

fn key_of(shape: PlanShape, usable: impl Iterator<Item = u32>, hint: Option<&Hint>) -> u64 {
    let facts = DocBuf::build(|out| {
        match hint {
            None => {}
            Some(Hint::Name(name)) => drop(out.append("hint", name.as_str())),
            Some(Hint::Pattern(pattern)) => drop(out.append("hint", pattern)),
            Some(Hint::Natural(forward)) => drop(out.append("natural", *forward)),
        }
        let mut indexes = out.array("indexes");
        usable.for_each(|id| {
            indexes.push(i64::from(id));
        });
    });
    shape.with(&facts)
}

/// Returns the numbers of the indexes that hold all documents which the plan searches for; `None`
/// without a collection or a filter.
fn usable_indexes(plan: &Plan) -> Option<Vec<u32>> {
    let (collection, filter) = (plan.root.collection()?, plan.filter.as_deref()?);
    let usable = collection.ready_indexes().filter(|index| !index.hidden).filter(|index| {
        Candidate::new(collection, index).holds_all(filter, plan.collation.as_deref())
    });
    Some(usable.map(|index| index.id.0).collect())
}
