//! `dropIndexes`: by name, by key pattern, several by name, or all except `_id`.

use std::sync::Arc;

use quire_catalog::{Index, Namespace, debug_doc};
use quire_document::DocBuf;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::CommitOptions;

use super::patterns::needed_indexes;
use super::{drop_index_data, next_epoch, put_collection};
use crate::Store;

/// Which indexes to drop.
#[derive(Debug, Clone)]
pub enum DropIndexes {
    /// `"*"`: all except `_id`.
    All,
    /// One by name.
    Name(String),
    /// Several by name, all or none.
    Names(Vec<String>),
    /// The one with this key pattern.
    Key(DocBuf),
}

/// What `dropIndexes` replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedIndexes {
    /// `nIndexesWas`: the indexes that the collection had.
    pub before: usize,
    /// The names of the dropped indexes.
    pub names: Vec<String>,
}

impl Store {
    /// Drops indexes. 26 NamespaceNotFound, 27 IndexNotFound, 72 InvalidOptions for `_id`, 181
    /// AmbiguousIndexKeyPattern. `All` leaves the indexes that patterns need, and any of them by name is
    /// 72.
    pub fn drop_indexes(
        self: &Arc<Self>,
        namespace: &Namespace,
        which: &DropIndexes,
        options: &CommitOptions,
    ) -> Result<DroppedIndexes> {
        self.change_catalog(options, |writer, catalog, _| {
            catalog.refuse_view(namespace)?;
            let collection = catalog.lookup(namespace).ok_or_else(|| {
                Error::new(ErrorCode::NamespaceNotFound, format!("ns not found {namespace}"))
            })?;
            let listed: Vec<Arc<Index>> = collection.listed_indexes().cloned().collect();
            let mut doomed = select(&listed, which)?;
            let needed: Vec<_> = needed_indexes(collection);
            if let DropIndexes::All = which {
                doomed.retain(|index| !needed.iter().any(|(id, _)| *id == index.id));
            }
            if let Some((index, pattern)) = doomed.iter().find_map(|index| {
                needed.iter().find(|(id, _)| *id == index.id).map(|(_, name)| (index, name))
            }) {
                let text = format!("the pattern '{pattern}' needs the index '{}'", index.name);
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            let names: Vec<String> = doomed.iter().map(|index| index.name.clone()).collect();
            let successors = collection
                .indexes
                .iter()
                .filter(|index| collection.is_successor(index) && names.contains(&index.name));
            doomed.extend(successors.cloned());
            let answer = DroppedIndexes { before: collection.index_count(), names };
            if doomed.is_empty() {
                return Ok((None, answer));
            }
            doomed.iter().try_for_each(|index| drop_index_data(writer, index))?;
            let mut next = next_epoch(collection);
            next.indexes.retain(|index| !doomed.iter().any(|gone| gone.id == index.id));
            put_collection(writer, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), answer))
        })
    }
}

fn select(indexes: &[Arc<Index>], which: &DropIndexes) -> Result<Vec<Arc<Index>>> {
    let indexes = indexes.iter().filter(|index| !index.is_internal());
    let by_name = |name: &String| {
        indexes
            .clone()
            .find(|index| index.name == *name)
            .cloned()
            .ok_or_else(|| not_found(format!("index not found with name [{name}]")))
            .and_then(not_id)
    };
    match which {
        DropIndexes::All => Ok(indexes.filter(|index| !index.is_id()).cloned().collect()),
        DropIndexes::Name(name) => Ok(vec![by_name(name)?]),
        DropIndexes::Names(names) if matches!(names.as_slice(), [star] if star == "*") => {
            Ok(indexes.filter(|index| !index.is_id()).cloned().collect())
        }
        DropIndexes::Names(names) => {
            let mut all: Vec<Arc<Index>> = Vec::new();
            for name in names {
                let index = by_name(name)?;
                // Already removed: the name was given twice.
                if all.iter().any(|other| other.id == index.id) {
                    return Err(not_found(format!("index not found with name [{name}]")));
                }
                all.push(index);
            }
            Ok(all)
        }
        DropIndexes::Key(key) => {
            let mut found = indexes.filter(|index| index.has_key(key.as_doc()));
            let first = found.next().cloned();
            let first = first.ok_or_else(|| {
                not_found(format!("can't find index with key: {}", debug_doc(key.as_doc())))
            })?;
            if let Some(second) = found.next() {
                return Err(Error::new(
                    ErrorCode::AmbiguousIndexKeyPattern,
                    format!(
                        "2 indexes found for key: {}, identify by name instead. Conflicting indexes: {}, {}",
                        debug_doc(key.as_doc()),
                        debug_doc(first.to_document().as_doc()),
                        debug_doc(second.to_document().as_doc())
                    ),
                ));
            }
            Ok(vec![not_id(first)?])
        }
    }
}

fn not_id(index: Arc<Index>) -> Result<Arc<Index>> {
    if index.is_clustered() {
        return Err(Error::location(5979800, "It is illegal to drop the clusteredIndex"));
    }
    if index.is_id() {
        return Err(Error::new(ErrorCode::InvalidOptions, "cannot drop _id index"));
    }
    Ok(index)
}

fn not_found(message: String) -> Error {
    Error::new(ErrorCode::IndexNotFound, message)
}
