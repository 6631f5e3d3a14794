//! Look-ups by `_id`: which requests are planned as one, without an index scan (IDHACK).

use super::FindQuery;
use super::finish::Finish;
use crate::indexes::choose::Statistics;
use crate::indexes::keys::{tests_ids, types_in};
use crate::plan::{IndexScan, KeyedField, Node};
use crate::request::{FindRequest, collation_of};
use quire_catalog::Collection;
use quire_document::{Doc, Value};
use quire_error::Result;
use quire_mql::collation::Collation;
use quire_mql::filter::{Comparison, Node as Condition, Test, is_operator_document};
use std::sync::Arc;

/// Returns the `_id` of a query that is a lookup by `_id` and `plain`: without an option that needs
/// another plan.
pub(super) fn id_of_lookup<'q>(
    query: &'q FindQuery<'_>,
    plain: impl Fn() -> bool,
) -> Option<Value<'q>> {
    match (query.by_id, &query.filter) {
        (Some(id), _) => Some(id),
        (None, filter) if plain() => {
            let id = filter.as_deref().and_then(compiled_id_equality);
            id.or_else(|| id_equality(query.request.filter.as_doc()))
        }
        (None, _) => None,
    }
}

/// Returns true if a request compares `_id`s as the `_id` index of the collection does, or if there is no
/// collection.
pub fn compares_ids(request: &FindRequest, collection: Option<&Collection>) -> bool {
    collection.is_none_or(|collection| {
        ids_compare_alike(collection, collation_of(&request.collation, Some(collection)))
    })
}

/// Returns the `_id` that a document must have for a write of one document; `None` if the write searches
/// for its document. Then the look-up of this `_id` is the plan, and the write tests the whole filter on
/// the document. `compares_ids` is the result of [`compares_ids`] for the request.
pub fn id_of_write(request: &FindRequest, compares_ids: bool) -> Option<Value<'_>> {
    if request.hint.is_some() || !compares_ids {
        return None;
    }
    id_of_condition(request.filter.get("_id")?)
}

/// Returns the look-ups of the keys of a join that are `_id`s, if the query has no other condition: no index can
/// serve it better, so none is chosen. `None` for other queries, and if the index on `_id` has all that the projection
/// needs.
pub(crate) fn lookups_of_keys(
    query: &FindQuery<'_>,
    collection: &Arc<Collection>,
    collation: Option<&Arc<Collation>>,
    stats: &dyn Statistics,
) -> Result<Option<Node>> {
    let request = query.request;
    let types = query.filter.as_deref().filter(|filter| tests_ids(filter)).and_then(types_in);
    let (Some(types), Some(index)) = (types, collection.id_index()) else { return Ok(None) };
    let collation_of_query = collation.map(|collation| &**collation);
    let settings = stats.query_settings();
    let is_plain = query.sort.is_none()
        && query.natural.is_none()
        && request.limit == 0
        && request.sample.is_none()
        && wants_plain_documents(request)
        && ids_compare_alike(collection, collation)
        && settings.and_then(|settings| settings.allowed(&request.namespace)).is_none()
        && collection.index_filters.find(|| query.shape(collation_of_query).0).is_none();
    if !is_plain {
        return Ok(None);
    }
    let mut scan = IndexScan::whole(collection, index, index.multikey_paths());
    scan.keyed = Some(KeyedField { field: 0, types, by_partial: false });
    Ok(Finish::new(query, collation_of_query)?.id_lookups(scan))
}

/// Returns true if a request has no option that needs an index scan.
pub(super) fn wants_plain_documents(request: &FindRequest) -> bool {
    request.hint.is_none()
        && !request.return_key
        && request.skip == 0
        && request.min.as_doc().is_empty()
        && request.max.as_doc().is_empty()
        && !request.show_record_id
        && !request.tailable
        && (request.sort.as_doc().is_empty() || !request.sort.as_doc().contains("$natural"))
}

/// Returns the `_id` of a request that is visibly a lookup by `_id`: such a filter never fails to
/// parse, and planning does not need its tree.
pub fn id_to_look_up<'r>(
    request: &'r FindRequest,
    collection: Option<&Collection>,
) -> Option<Value<'r>> {
    let plain = wants_plain_documents(request) && compares_ids(request, collection);
    if plain { id_equality(request.filter.as_doc()) } else { None }
}

/// Returns true if there is an `_id` index, and it compares strings as a query with this collation
/// does.
pub(super) fn ids_compare_alike(
    collection: &Collection,
    collation: Option<&Arc<Collation>>,
) -> bool {
    collection.id_index().is_some() && collection.options.collation() == collation
}

/// Returns the value of a filter that is only an equality on `_id`.
fn id_equality(filter: Doc<'_>) -> Option<Value<'_>> {
    let mut fields = filter.fields();
    let (Some(("_id", value)), None) = (fields.next(), fields.next()) else { return None };
    id_of_condition(value)
}

/// Returns the single `_id` of a condition on `_id` that is a value or an `$eq`; else `None`.
fn id_of_condition(condition: Value<'_>) -> Option<Value<'_>> {
    let value = match condition {
        Value::Document(doc) if is_operator_document(doc) => {
            let mut operators = doc.fields();
            match (operators.next(), operators.next()) {
                (Some(("$eq", value)), None) => value,
                _ => return None,
            }
        }
        value => value,
    };
    is_point(value).then_some(value)
}

/// Does the same for a compiled filter that is equivalent to an equality, such as `{_id: {$in:
/// [1]}}`.
fn compiled_id_equality(filter: &Condition) -> Option<Value<'_>> {
    let Condition::Path(node) = filter else { return None };
    let Test::Compare(Comparison::Eq, operand) = &node.test else { return None };
    (node.path.as_str() == "_id" && is_point(operand.value())).then(|| operand.value())
}

/// Returns true if only this one value is equal to it as an `_id`.
fn is_point(value: Value<'_>) -> bool {
    !matches!(value, Value::Array(_) | Value::Regex(_) | Value::Null | Value::Undefined)
}
