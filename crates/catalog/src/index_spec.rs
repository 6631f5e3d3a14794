//! The specification of an index, as in `createIndexes`: parsed, checked as mongod checks it, and
//! compared with the existing indexes.

use std::sync::Arc;

use quire_document::DocBuf;
use quire_error::{Error, Result};
use quire_mql::collation::Collation;

use crate::debug_doc;
use crate::index_pattern::is_id_pattern;

/// The specification of one index, normalised.
#[derive(Debug, Clone, Default)]
pub struct IndexSpec {
    /// The key pattern as the user wrote it.
    pub key: DocBuf,
    /// The name of the index.
    pub name: String,
    /// Two documents may not have the same key.
    pub unique: bool,
    /// A write may not add a second document with the same key. `collMod` can then make the index
    /// unique.
    pub prepare_unique: bool,
    /// True for the index that gives the natural order: the `_id` index of a clustered collection,
    /// which is unique, and the index on the time of a time-series collection, which is not.
    pub clustered: bool,
    /// Documents without the fields have no entry. `None` if the user did not give the option.
    pub sparse: Option<bool>,
    /// The planner does not use the index.
    pub hidden: bool,
    /// An option without effect, kept because `listIndexes` shows it.
    pub background: Option<bool>,
    /// Seconds after which documents expire.
    pub expire_after_seconds: Option<i64>,
    /// `collMod` has changed `expire_after_seconds`, and therefore shows it as a long. Not stored.
    pub expire_changed: bool,
    /// The filter of a partial index: only matching documents have entries.
    pub partial_filter: Option<DocBuf>,
    /// How the index compares strings; `None` for byte order.
    pub collation: Option<Arc<Collation>>,
    /// The specification has no collation, so the index inherits the collection's. Not stored.
    pub inherits_collation: bool,
    /// The options that only this index kind has ([`KindOption`](crate::key::KindOption)), as the
    /// user wrote them.
    pub kind_options: DocBuf,
    /// The index version.
    pub version: i32,
    /// Options of other index kinds, which mongod keeps for any index, as `listIndexes` shows them.
    pub extra: DocBuf,
}

impl IndexSpec {
    /// Returns the specification of the `_id` index.
    pub fn id() -> Self {
        IndexSpec {
            key: quire_document::doc! { "_id": 1 },
            name: "_id_".to_owned(),
            version: 2,
            ..IndexSpec::default()
        }
    }

    /// Returns true for the specification of the `_id` index: `{_id: 1}`, with 1 of any numeric
    /// type.
    pub fn is_id(&self) -> bool {
        is_id_pattern(self.key.as_doc()) && !self.is_time_order()
    }

    /// Returns true for the hidden index on the time of a time-series collection.
    pub fn is_time_order(&self) -> bool {
        self.clustered && !self.unique
    }

    /// Returns the specification with the collection's collation if it has none.
    ///
    /// # Errors
    /// `BadValue` if it is the `_id` index and its collation differs from the collection's.
    pub fn in_collection(&self, default: Option<&Arc<Collation>>) -> Result<Self> {
        let collation = match self.inherits_collation {
            true => default.cloned(),
            false => self.collation.clone(),
        };
        if self.is_id() && collation.as_ref() != default {
            let shown = |collation: Option<&Arc<Collation>>| match collation {
                Some(collation) => debug_doc(collation.to_document().as_doc()),
                None => "{ locale: \"simple\" }".to_owned(),
            };
            return Err(Error::bad_value(format!(
                "The _id index must have the same collation as the collection. Index collation: {}, collection collation: {}",
                shown(collation.as_ref()),
                shown(default)
            )));
        }
        Ok(IndexSpec { collation, inherits_collation: false, ..self.clone() })
    }

    /// Returns the unique index that `collMod` makes of an index with `prepareUnique`.
    #[must_use]
    pub fn converted(&self) -> Self {
        IndexSpec { unique: true, prepare_unique: false, ..self.clone() }
    }

    /// Returns the specification as `listIndexes` shows it.
    pub fn to_document(&self) -> DocBuf {
        let mut doc = quire_document::doc! {
            "v": self.version, "key": &self.key, "name": &self.name,
        };
        if let Some(background) = self.background {
            doc.append("background", background);
        }
        if self.unique {
            doc.append("unique", true);
        }
        if self.clustered {
            doc.append("clustered", true);
        }
        if self.prepare_unique {
            doc.append("prepareUnique", true);
        }
        if self.hidden {
            doc.append("hidden", true);
        }
        if let Some(filter) = &self.partial_filter {
            doc.append("partialFilterExpression", filter);
        }
        if let Some(sparse) = self.sparse {
            doc.append("sparse", sparse);
        }
        if let Some(seconds) = self.expire_after_seconds {
            match i32::try_from(seconds) {
                Ok(seconds) => doc.append("expireAfterSeconds", seconds),
                Err(_) => doc.append("expireAfterSeconds", seconds),
            };
        }
        doc.extend(|writer| {
            writer.append_all(self.kind_options.as_doc());
            writer.append_all(self.extra.as_doc());
        });
        if let Some(collation) = &self.collation {
            doc.append("collation", &collation.to_document());
        }
        doc
    }

    /// The specification as errors show it.
    pub(crate) fn debug(&self) -> String {
        debug_doc(self.to_document().as_doc())
    }
}
