//! `collMod` on a collection: all its changes in one commit, or none.

use std::sync::Arc;

use quire_catalog::capped::CappedChange;
use quire_catalog::time_series::check_index;
use quire_catalog::{Collection, Namespace, ValidationOptions};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::time_series::TimeSeriesChange;
use quire_storage::CommitOptions;

use super::{IndexBefore, ModifyIndex, next_epoch, put_collection};
use crate::Store;

/// The changes of a collection. What is absent stays.
#[derive(Debug, Clone, Default)]
pub struct ModifyCollection {
    /// The change of one index.
    pub index: Option<ModifyIndex>,
    /// The change of the time after which documents of a clustered collection expire.
    pub expiry: Option<Expiry>,
    /// The change of the validation.
    pub validation: ValidationOptions,
    /// The change of the bounds of a capped collection. Smaller bounds apply from the next insert on.
    pub capped: CappedChange,
    /// Whether the change log keeps the documents before and after each change.
    pub images: Option<bool>,
    /// The change of the buckets of a time-series collection.
    pub series: Option<TimeSeriesChange>,
}

/// The seconds after which documents expire; `None` if they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(pub Option<i64>);

impl ModifyCollection {
    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.index.is_none()
            && self.expiry.is_none()
            && self.validation.is_empty()
            && self.capped.is_empty()
            && self.images.is_none()
            && self.series.is_none()
    }

    /// Returns the collection after the changes, and the options that the changed index had.
    ///
    /// # Errors
    /// Those of [`Store::modify_collection`].
    pub fn applied(&self, collection: &Collection) -> Result<(Collection, Option<IndexBefore>)> {
        let mut next = next_epoch(collection);
        if let Some(change) = self.series {
            next.options = next.options.series_changed(change)?;
        }
        if collection.is_time_series() && (!self.validation.is_empty() || self.images.is_some()) {
            let text = "option not supported on a time-series collection: a validator or changeStreamPreAndPostImages";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        if !self.validation.is_empty() {
            next.options = next.options.validated_by(&self.validation)?;
            next.check_validator()?;
        }
        if let Some(Expiry(seconds)) = self.expiry {
            if collection.is_time_series() {
                next.options.check_series_expiry()?;
            } else if collection.clustered_index().is_none() {
                let text =
                    "'expireAfterSeconds' option is only supported on collections clustered by _id";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            next.options = next.options.expiring_after(seconds);
        }
        // As in MongoDB, the bounds are ignored beside `timeseries`.
        if !self.capped.is_empty() && self.series.is_none() {
            let Some(capped) = collection.options.capped() else {
                let text = "Collection must be capped.";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            };
            next.options = next.options.capped_at(capped.changed(self.capped));
        }
        if let Some(enabled) = self.images {
            next.options = next.options.keeping_images(enabled);
        }
        let before = self.index.as_ref().map(|change| change.apply(&mut next)).transpose()?;
        if let (Some(series), true) = (next.options.time_series(), self.index.is_some()) {
            let own = next.indexes.iter().filter(|index| !index.is_internal());
            own.clone().try_for_each(|index| check_index(series, &index.spec))?;
        }
        Ok((next, before))
    }
}

impl Store {
    /// Changes a collection. Returns the options that the changed index had.
    ///
    /// # Errors
    /// 26 NamespaceNotFound, 166 CommandNotSupportedOnView; the errors of a validator and of a change of
    /// a time series; 72
    /// InvalidOptions for the expiry of a collection that is not clustered, for bounds of one that is
    /// not capped, and for an index that cannot be a TTL index; 27 IndexNotFound; 181 for a key pattern that several indexes have; 2
    /// for hiding `_id`.
    pub fn modify_collection(
        self: &Arc<Self>,
        namespace: &Namespace,
        change: &ModifyCollection,
        options: &CommitOptions,
    ) -> Result<Option<IndexBefore>> {
        let modify = || self.modify(namespace, change, options);
        let before = self.catalog().lookup(namespace).cloned();
        match before.filter(|before| before.is_time_series()) {
            Some(series) => self.change_series(&change.applied(&series)?.0, options, modify),
            None => modify(),
        }
    }

    fn modify(
        self: &Arc<Self>,
        namespace: &Namespace,
        change: &ModifyCollection,
        options: &CommitOptions,
    ) -> Result<Option<IndexBefore>> {
        self.change_catalog(options, |writer, catalog, _| {
            catalog.refuse_view(namespace)?;
            let collection = catalog
                .lookup(namespace)
                .ok_or_else(|| Error::new(ErrorCode::NamespaceNotFound, "ns does not exist"))?;
            let (next, before) = change.applied(collection)?;
            put_collection(writer, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), before))
        })
    }
}
