//! `collMod` on an index: its visibility, `prepareUnique`, and the time after which documents
//! expire.

use std::sync::Arc;

use quire_catalog::{Collection, Index, Namespace, debug_doc};
use quire_document::DocBuf;
use quire_error::{Error, ErrorCode, Result};

/// Names an index.
#[derive(Debug, Clone)]
pub enum IndexChoice {
    /// By its name.
    Name(String),
    /// By its key pattern.
    Key(DocBuf),
}

/// The changes of an index; `None` leaves an option as it is.
#[derive(Debug, Clone)]
pub struct ModifyIndex {
    /// The index to change, by name or by key pattern.
    pub index: IndexChoice,
    /// Hides the index, or shows it again.
    pub hidden: Option<bool>,
    /// Refuses new duplicates, or accepts them again.
    pub prepare_unique: Option<bool>,
    /// The seconds after which documents expire.
    pub expire_after_seconds: Option<i64>,
}

/// The options of an index before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexBefore {
    /// True if it was hidden.
    pub hidden: bool,
    /// True if it refused new duplicates.
    pub prepare_unique: bool,
    /// The seconds after which documents expired, if they did.
    pub expire_after_seconds: Option<i64>,
    /// True if that number came from an earlier change and not from the creation of the index.
    pub expire_changed: bool,
}

impl ModifyIndex {
    /// Changes the index in the record of its collection. Returns the options that it had.
    pub(super) fn apply(&self, collection: &mut Collection) -> Result<IndexBefore> {
        let found = find(collection, &self.index)?;
        refuse_clustered(collection, found, self)?;
        check(&collection.namespace, found, self)?;
        let before = IndexBefore {
            hidden: found.hidden,
            prepare_unique: found.prepare_unique,
            expire_after_seconds: found.expire_after_seconds,
            expire_changed: found.spec.expire_changed,
        };
        let id = found.id;
        for index in collection.indexes.iter_mut().filter(|index| index.id == id) {
            let index = Arc::make_mut(index);
            if let Some(hidden) = self.hidden.filter(|hidden| *hidden != before.hidden) {
                index.hidden = hidden;
                index.spec.hidden = hidden;
                index.uses = Arc::default();
            }
            if let Some(prepare) = self.prepare_unique {
                index.prepare_unique = prepare;
                index.spec.prepare_unique = prepare;
            }
            if let Some(seconds) = self.expire_after_seconds {
                index.expire_after_seconds = Some(seconds);
                index.spec.expire_after_seconds = Some(seconds);
                index.spec.expire_changed |= before.expire_after_seconds != Some(seconds);
            }
        }
        Ok(before)
    }
}

/// Returns the index with this name or key pattern.
pub(super) fn find<'c>(collection: &'c Collection, choice: &IndexChoice) -> Result<&'c Arc<Index>> {
    let missing = |shown: &str| {
        let text = format!("cannot find index {shown} for ns {}", collection.namespace);
        Error::new(ErrorCode::IndexNotFound, text)
    };
    match choice {
        IndexChoice::Name(name) => collection.index_by_name(name).ok_or_else(|| missing(name)),
        IndexChoice::Key(key) => {
            let mut found = collection.indexes_by_key(key.as_doc());
            let shown = debug_doc(key.as_doc());
            let first = found.next().ok_or_else(|| missing(&shown))?;
            match found.count() {
                0 => Ok(first),
                more => Err(Error::new(
                    ErrorCode::AmbiguousIndexKeyPattern,
                    format!(
                        "index keyPattern {shown} matches {} indexes, must use index name.",
                        more + 1
                    ),
                )),
            }
        }
    }
}

/// Refuses to change the clustered index, which is not a stored index; hiding it has its own error.
fn refuse_clustered(collection: &Collection, index: &Index, change: &ModifyIndex) -> Result<()> {
    if !index.is_clustered() {
        return Ok(());
    }
    if change.hidden.is_some() {
        return Err(Error::location(
            6011800,
            "The 'hidden' option is not supported for a clusteredIndex",
        ));
    }
    let text = format!("cannot find index {} for ns {}", index.name, collection.namespace);
    Err(Error::new(ErrorCode::IndexNotFound, text))
}

fn check(namespace: &Namespace, index: &Index, change: &ModifyIndex) -> Result<()> {
    if index.is_id() && change.hidden.is_some() {
        return Err(Error::bad_value("can't hide _id index"));
    }
    if namespace.is_system() && change.hidden.is_some() {
        return Err(Error::bad_value("can't hide index on system collection"));
    }
    if change.expire_after_seconds.is_some() && (index.is_id() || index.keys.fields().len() > 1) {
        let text = "no expireAfterSeconds field to update";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let Some(prepare) = change.prepare_unique.filter(|new| *new != index.prepare_unique) else {
        return Ok(());
    };
    if change.hidden.is_some() || change.expire_after_seconds.is_some() {
        let text =
            "collMod: 'prepareUnique' cannot be combined with any other modification of the index";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    if prepare { index.spec.check_convertible() } else { Ok(()) }
}
