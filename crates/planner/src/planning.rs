//! Plans a request of any kind: one tree for everything that it reads.

use crate::count::plan_count;
use crate::distinct::plan_distinct;
use crate::find::{FindQuery, plan_find};
use crate::indexes::choose::Statistics;
use crate::indexes::covering::ProjectionFacts;
use crate::pipeline::plan_pipeline;
use crate::plan::{Node, Plan, Reshape};
use crate::request::{FindRequest, ReadRequest, WriteKind, collation_of};
use crate::shape::PlanShape;
use quire_catalog::Collection;
use quire_error::Result;
use quire_mql::projection::Projection;
use quire_mql::{Filter, ParseContext};
use std::sync::Arc;

/// Plans a request. Filters, sorts, projections and stages are compiled here, once; the plan holds
/// the compiled objects.
///
/// # Errors
/// The errors of `mql` about them; `BadValue` for a hint that names no index; 51173 to 51176 for
/// `min` and `max` that do not match the index or each other.
pub fn plan(
    request: &ReadRequest<'_>,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    Ok(match request {
        ReadRequest::Find(find) => plan_find(&FindQuery::compile(find, context, stats)?, stats)?,
        ReadRequest::Aggregate(aggregate) => plan_pipeline(aggregate, context, stats)?,
        ReadRequest::Count(count) => plan_count(count, context, stats)?,
        ReadRequest::Distinct(distinct) => plan_distinct(distinct, context, stats)?,
        ReadRequest::Write(find, kind) => {
            let mut query = FindQuery::compile(find, context, stats)?;
            // The write needs whole documents. Its projection is that of the returned document.
            let projection = query.projection.take();
            written(plan_find(&query, stats)?, *kind, projection.as_ref())
        }
    })
}

/// Returns the shape of a request on `collection`, by which its index filter is found. Requests
/// that differ only in their values have the same shape.
///
/// # Errors
/// The errors of `mql` about the filter, the sort and the projection.
pub fn shape_of_request(
    request: &FindRequest,
    context: &ParseContext,
    collection: &Collection,
) -> Result<PlanShape> {
    let filter = Filter::parse(request.filter.as_doc(), context)?;
    let mut query = FindQuery::of_filter(request, Some(&filter));
    query.compile_sort(context)?;
    Projection::parse_find(request.projection.as_doc(), Some(request.filter.as_doc()), context)?;
    let collation = collation_of(&request.collation, Some(collection));
    Ok(query.shape(collation.map(|collation| &**collation)))
}

/// Puts a write above the plan of its query, and the projection of the returned document above the
/// write. As in MongoDB a write of one document has a limit only if it has a sort.
fn written(mut plan: Plan, kind: WriteKind, projection: Option<&Arc<Reshape>>) -> Plan {
    let has_sort = !plan.sort.as_doc().is_empty();
    for node in std::iter::once(&mut plan.root).chain(&mut plan.rejected) {
        let input = match std::mem::replace(node, Node::Eof) {
            Node::Limit { input, .. } if !has_sort => input,
            other => Box::new(other),
        };
        let write = Node::Write { kind, input };
        *node = match projection {
            Some(spec) => ProjectionFacts::new(spec).over_documents(write, spec),
            None => write,
        };
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::query_planner;
    use crate::plan::IndexScan;
    use quire_catalog::{
        CollectionId, CollectionOptions, Index, IndexId, IndexSpec, IndexState, Namespace, Uuid,
    };
    use quire_document::{DocBuf, doc};

    /// Statistics of a collection of 100,000 orders that does not exist.
    struct Table {
        collection: Arc<Collection>,
        /// The number of keys that a scan of each index visits.
        keys: &'static [(&'static str, u64)],
    }

    impl Statistics for Table {
        fn collection(&self, _: &str) -> Result<Option<Arc<Collection>>> {
            Ok(Some(Arc::clone(&self.collection)))
        }

        fn documents(&self, _: &Collection) -> u64 {
            100_000
        }

        fn keys(&self, scan: &IndexScan, limit: u64) -> u64 {
            let found = self.keys.iter().find(|(name, _)| scan.index.name == *name);
            found.map_or(limit, |(_, keys)| limit.min(*keys))
        }

        fn draws(&self, _: &Collection, _: u64) -> bool {
            false
        }
    }

    fn orders(keys: &[(&'static str, DocBuf)]) -> Arc<Collection> {
        let namespace = Namespace::new("shop", "orders").unwrap();
        let options = CollectionOptions::default();
        let mut collection =
            Collection::new(CollectionId(1), Uuid::default(), namespace, options, IndexId(1));
        for (at, (name, key)) in keys.iter().enumerate() {
            let spec = IndexSpec::parse(doc! { "key": key, "name": *name }.as_doc(), false);
            let id = IndexId(2 + at as u32);
            collection.indexes.push(Arc::new(Index::new(id, spec.unwrap(), IndexState::Ready)));
        }
        Arc::new(collection)
    }

    #[test]
    fn an_index_that_does_not_exist_is_planned_and_explained_from_metadata_alone() {
        let request = FindRequest {
            namespace: "shop.orders".to_owned(),
            filter: doc! { "user": "u1", "amount": { "$gte": 100 } },
            sort: doc! { "created": -1 },
            ..FindRequest::default()
        };
        let explained = |collection, keys| {
            let what = ReadRequest::Find(&request);
            let found = plan(&what, &ParseContext::default(), &Table { collection, keys }).unwrap();
            let shown = DocBuf::build(|out| query_planner(&found, out));
            let winning = shown.get("winningPlan").unwrap().as_document().unwrap().to_owned();
            (winning, found.rejected.len())
        };
        let stage = |plan: &DocBuf| plan.get("stage").unwrap().as_str().unwrap().to_owned();
        let (now, _) = explained(orders(&[]), &[]);
        assert_eq!(stage(&now), "SORT");
        let hypothetical = orders(&[
            ("amount", doc! { "amount": 1 }),
            ("esr", doc! { "user": 1, "created": -1, "amount": 1 }),
        ]);
        let (then, rejected) = explained(hypothetical, &[("amount", 90_000), ("esr", 40)]);
        assert_eq!((stage(&then).as_str(), rejected), ("FETCH", 1));
        let input = then.get("inputStage").unwrap().as_document().unwrap();
        assert_eq!(input.get("indexName").unwrap().as_str(), Some("esr"));
        let bounds = input.get("indexBounds").unwrap().as_document().unwrap();
        let created = bounds.get("created").unwrap().as_array().unwrap().get(0).unwrap();
        assert_eq!(created.as_str(), Some("[MaxKey, MinKey]"));
        let amount = bounds.get("amount").unwrap().as_array().unwrap().get(0).unwrap();
        assert_eq!(amount.as_str(), Some("[100, inf.0]"));
    }
}
