//! Replaces a collection by another one in one commit, after that one is filled: used by `$out` and
//! by a rename to another database.

use std::sync::Arc;

use quire_catalog::{Collection, CollectionOptions, IndexState, Namespace};
use quire_document::DocBuf;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::CommitOptions;

use super::create::add_ready_index;
use super::pattern_names::{Fate, inherit};
use super::{drop_data, next_epoch, put_collection};
use crate::Store;

impl Store {
    /// Creates an empty temporary collection with the options and the ready indexes of `model`, or
    /// with the options `own` and their indexes if there is no model. A restart drops it.
    ///
    /// # Errors
    /// The errors of creating a collection.
    pub fn create_copy(
        self: &Arc<Self>,
        (model, own): (Option<&Collection>, &CollectionOptions),
        to: &Namespace,
        options: &CommitOptions,
    ) -> Result<Arc<Collection>> {
        let copied = model.map_or(own, |model| &model.options).temporary();
        self.change_catalog(options, |writer, catalog, next_id| {
            let (next, created) = self.create_in(writer, catalog, next_id, to, copied.clone())?;
            let mut copy = Collection::clone(&created);
            let indexes = model.into_iter().flat_map(|model| model.ready_indexes());
            let others = indexes.filter(|index| !index.is_id() && !index.is_internal());
            let others = others.map(|index| index.spec.clone());
            let first = if model.is_none() { own.default_index() } else { None };
            for spec in others.chain(first) {
                add_ready_index(&mut copy, next_id, spec)?;
            }
            put_collection(writer, &copy)?;
            let copy = Arc::new(copy);
            Ok((Some(next.with(Arc::clone(&copy))), copy))
        })
    }

    /// Gives a copy made by [`create_copy`](Self::create_copy) the name `to`, and drops the
    /// collection that has that name now. That collection must have the options and indexes of
    /// `model`, but need not be the same collection, because another copy of the model may have
    /// replaced it. A reader sees either the old or the new collection.
    ///
    /// # Errors
    /// 26 NamespaceNotFound if the copy was dropped meanwhile, 125 CommandFailed if the options or
    /// indexes of the collection `to` are not those of the model, 166 if `to` is now a view.
    pub fn put_in_place(
        self: &Arc<Self>,
        copy: &Collection,
        to: &Namespace,
        model: Option<&Collection>,
        options: &CommitOptions,
    ) -> Result<()> {
        let replaced = self.change_catalog(options, |writer, catalog, next_id| {
            catalog.check_db_case(to.db())?;
            let Some(filled) = catalog.lookup(&copy.namespace).filter(|found| found.id == copy.id)
            else {
                let text = format!("The collection {} was dropped meanwhile", copy.namespace);
                return Err(Error::new(ErrorCode::NamespaceNotFound, text));
            };
            let target = catalog.writable(to)?;
            check_unchanged(to, model, target.as_deref())?;
            if let Some(target) = &target {
                drop_data(writer, target)?;
            }
            let mut placed = next_epoch(filled);
            placed.options = match &target {
                Some(target) => target.options.clone(),
                None => filled.options.lasting(),
            };
            placed.namespace = to.clone();
            if let Some(target) = &target {
                inherit(writer, &mut placed, target)?;
            }
            put_collection(writer, &placed)?;
            let mut next = catalog.without(&copy.namespace).with(Arc::new(placed));
            if let Some(target) = &target {
                let replaced = (&**target, Fate::Replaced);
                next = self.patterns_after(writer, next, next_id, replaced)?;
            }
            Ok((Some(next), target))
        })?;
        if let Some(target) = replaced {
            self.forget_record_ids(target.id);
        }
        Ok(())
    }
}

/// Fails if the options or the indexes of the collection with this name have changed.
fn check_unchanged(
    namespace: &Namespace,
    before: Option<&Collection>,
    now: Option<&Collection>,
) -> Result<()> {
    let options = |collection: Option<&Collection>| {
        collection.map(|collection| collection.options.clone()).unwrap_or_default()
    };
    let indexes = |collection: Option<&Collection>| -> Vec<(DocBuf, bool)> {
        let indexes = collection.into_iter().flat_map(|collection| &collection.indexes);
        let mut indexes: Vec<_> =
            indexes.map(|index| (index.to_document(), index.state == IndexState::Ready)).collect();
        indexes.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        indexes
    };
    let what = if !options(before).same_as(&options(now)) {
        "collection options"
    } else if indexes(before) != indexes(now) {
        "indexes"
    } else {
        return Ok(());
    };
    let text = format!("{what} of target collection {namespace} changed while processing $out");
    Err(Error::new(ErrorCode::CommandFailed, text))
}
