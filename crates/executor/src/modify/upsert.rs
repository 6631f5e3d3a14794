//! The insert of an upsert, and when a lost race means that the search is repeated.

use quire_catalog::Namespace;
use quire_collections::{Effect, EmptyTimestamps, prepare_insert_with};
use quire_document::{Doc, DocBuf, Value, ValueBuf, equal};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Committed;

use crate::UnitOfWork;
use crate::modify::statement::Statement;

/// The document that an upsert inserted.
pub(crate) struct Upserted {
    pub id: ValueBuf,
    pub doc: DocBuf,
    pub committed: Option<Committed>,
}

/// Inserts the `supplied` document, or the one that the statement makes without a match. `None`: another writer inserted
/// it meanwhile, and the statement should search again.
pub(crate) fn upsert(
    unit: &mut dyn UnitOfWork,
    namespace: &Namespace,
    statement: &mut Statement,
    supplied: Option<DocBuf>,
) -> Result<Option<Upserted>> {
    let doc = match supplied {
        Some(doc) => doc,
        None => statement.upsert_document(unit.store().new_object_id())?,
    };
    let interrupt = statement.env.params.interrupt.clone();
    loop {
        unit.ensure_collection(namespace, &interrupt, &|_| true)?;
        let ended = unit.write_with(&interrupt, |writer| {
            let Some(collection) = writer.collection(namespace) else { return Ok(None) };
            let mut buffer = Vec::new();
            let store = writer.store().clone();
            // As in mongod, only a replacement fills in empty timestamps, and has done so.
            let kept = EmptyTimestamps::Kept;
            let prepared = prepare_insert_with(&store, doc.as_doc(), kept, &mut buffer)?;
            let id = writer.insert(&collection, prepared)?;
            let stored = writer.as_stored(&collection, id, prepared.to_owned())?;
            statement.remember(writer, Effect::Insert, None, Some(stored.as_doc()));
            Ok(Some(stored))
        });
        return match ended {
            Ok((None, _)) => continue,
            Ok((Some(doc), committed)) => {
                let id = doc.get("_id").map(ValueBuf::new);
                let id = id.ok_or_else(|| Error::internal("an upserted document without _id"))?;
                Ok(Some(Upserted { id, doc, committed }))
            }
            Err(error) if lost_race(&error, statement) => Ok(None),
            Err(error) => Err(error),
        };
    }
}

/// Fails for a filter with `$expr`: an upsert cannot make a document of it.
///
/// # Errors
/// 224 QueryFeatureNotAllowed.
pub fn check_upsert_filter(filter: Doc<'_>) -> Result<()> {
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$expr", _) => {
                let text = "$expr is not allowed in the query predicate for an upsert";
                return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text));
            }
            ("$and" | "$or" | "$nor", Value::Array(parts)) => {
                let parts = parts.iter().filter_map(|part| part.as_document());
                parts.into_iter().try_for_each(check_upsert_filter)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// How many times the search is repeated for a document that has the key but may not match, before
/// the duplicate key is returned as the error.
const CLASHES_MAX: u32 = 3;

/// Returns true if the duplicate key is one that the filter asks for: the document that has it may
/// match, and the upsert should have been an update. (Manual: "Upsert with Unique Index".) A filter
/// with more conditions than the key repeats the search only a few times, because the document that
/// has the key may never match.
fn lost_race(error: &Error, statement: &mut Statement) -> bool {
    if error.code() != ErrorCode::DuplicateKey {
        return false;
    }
    let Some(details) = error.details().map(Doc::from_valid_bytes) else { return false };
    let Some(Value::Document(key)) = details.get("keyValue") else { return false };
    let filter = statement.query.filter();
    let mut wanted = Vec::new();
    let asked = equalities(filter, &mut wanted)
        && key.fields().all(|(path, value)| {
            wanted.iter().any(|(name, wanted)| *name == path && is_key(*wanted, value, statement))
                && !statement.update.as_ref().is_some_and(|update| {
                    !update.is_replacement() && !update.is_pipeline() && update.may_change(path)
                })
        });
    let exactly = wanted.len() == key.count();
    if asked && !exactly {
        statement.clashes += 1;
    }
    asked && (exactly || statement.clashes <= CLASHES_MAX)
}

/// Returns true if a value is the one in the details of a duplicate key error. Under a collation
/// the details have sort keys.
fn is_key(wanted: Value<'_>, shown: Value<'_>, statement: &Statement) -> bool {
    equal(wanted, shown, None)
        || statement
            .collation
            .as_ref()
            .is_some_and(|collation| equal(collation.hex_value(wanted).as_value(), shown, None))
}

/// Collects the `path: value` pairs of a filter. Returns false if it has anything except
/// equalities.
fn equalities<'f>(filter: Doc<'f>, out: &mut Vec<(&'f str, Value<'f>)>) -> bool {
    filter.fields().all(|(name, value)| match (name, value) {
        ("$and", Value::Array(parts)) => {
            parts.iter().all(|part| part.as_document().is_some_and(|part| equalities(part, out)))
        }
        (name, _) if name.starts_with('$') => false,
        (name, Value::Document(doc)) if doc.first().is_some_and(|f| f.key().starts_with('$')) => {
            match (doc.first(), doc.count()) {
                (Some(first), 1) if first.key() == "$eq" => {
                    out.push((name, first.value()));
                    true
                }
                _ => false,
            }
        }
        (_, Value::Regex(_)) => false,
        (name, value) => {
            out.push((name, value));
            true
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn only_equalities_count() {
        let names = |filter: DocBuf| {
            let mut out = Vec::new();
            let only = equalities(filter.as_doc(), &mut out);
            only.then_some(out.len())
        };
        assert_eq!(names(doc! { "a": 1, "b": { "$eq": 2 } }), Some(2));
        assert_eq!(names(doc! { "$and": [{ "a": 1 }, { "b": 2 }] }), Some(2));
        assert_eq!(names(doc! { "a": { "$gt": 1 } }), None);
        assert_eq!(names(doc! { "$or": [{ "a": 1 }] }), None);
    }
}
