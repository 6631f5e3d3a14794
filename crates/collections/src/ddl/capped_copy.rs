//! `convertToCapped` and `cloneCollectionAsCapped`: a capped copy of the newest documents of a
//! collection, and one commit that puts it in place. The copy has no secondary indexes.

use std::sync::Arc;

use quire_catalog::capped::{Capped, CappedChange};
use quire_catalog::{Catalog, Collection, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Direction, Interrupt};

use super::pattern_names::refuse_patterns;
use super::{drop_data, next_epoch, put_collection};
use crate::{CollectionCursor, Record, RecordId, Store, is_in_doubt};

/// The documents and bytes of a page that is read to find the oldest document that fits.
const PAGE_ROWS: usize = 1000;
const PAGE_BYTES: usize = 4 << 20;

impl Store {
    /// Makes a collection capped. It keeps the newest documents that fit. Writes to it are refused
    /// meanwhile.
    ///
    /// # Errors
    /// 26 NamespaceNotFound, 166 CommandNotSupportedOnView, 12587 during an index build, 117 if the
    /// collection is being copied already.
    pub fn convert_to_capped(
        self: &Arc<Self>,
        namespace: &Namespace,
        bytes_max: u64,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<()> {
        // As in MongoDB, the name of the collection must leave room for the name of its copy.
        let random = self.new_uuid().to_string();
        let random = random.get(..5).unwrap_or_default();
        let name = format!("tmp{random}.convertToCapped.{}", namespace.collection());
        let name = Namespace::new(namespace.db(), &name)?;
        let each =
            CommitOptions { interrupt: Some(interrupt.clone()), ..CommitOptions::buffered() };
        if let Some(collection) = self.catalog().lookup(namespace) {
            refuse_patterns(collection, "made capped")?;
        }
        self.catalog().refuse_view_like(namespace)?;
        let source = self.freeze(namespace, true, &each)?;
        let copied = self.capped_copy(&source, bytes_max, &name, interrupt);
        let ended = copied.and_then(|copy| {
            self.change_catalog(options, |writer, catalog, _| {
                let now = catalog.require(namespace)?;
                if now.id != source.id || now.epoch != source.epoch {
                    let text = format!("{namespace} was altered while it was copied");
                    return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
                }
                drop_data(writer, now)?;
                let placed = Arc::new(placed(catalog, &copy, namespace)?);
                put_collection(writer, &placed)?;
                let next = catalog.without(namespace).without(&copy.namespace).with(placed);
                Ok((Some(next), ()))
            })
        });
        match &ended {
            Ok(()) => self.forget_record_ids(source.id),
            Err(error) if is_in_doubt(error) => {}
            Err(_) => {
                self.drop_collection(&name, &CommitOptions::buffered())?;
                self.freeze(namespace, false, &CommitOptions::buffered())?;
            }
        }
        ended
    }

    /// Creates the capped collection `to` with the newest documents of `from` that fit.
    ///
    /// # Errors
    /// 26 NamespaceNotFound without a source, 166 CommandNotSupportedOnView for a view, 48
    /// NamespaceExists if `to` exists.
    pub fn clone_as_capped(
        self: &Arc<Self>,
        (from, to): (&Namespace, &Namespace),
        bytes_max: u64,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<()> {
        to.check_creatable()?;
        let source = check_ends(&self.catalog(), from, to)?;
        let name = format!("tmp{}.cloneCollectionAsCapped", self.new_uuid());
        let name = Namespace::new(to.db(), &name)?;
        let copied = self.capped_copy(&source, bytes_max, &name, interrupt);
        let ended = copied.and_then(|copy| {
            self.change_catalog(options, |writer, catalog, _| {
                check_ends(catalog, from, to)?;
                let placed = Arc::new(placed(catalog, &copy, to)?);
                put_collection(writer, &placed)?;
                Ok((Some(catalog.without(&copy.namespace).with(placed)), ()))
            })
        });
        if ended.as_ref().is_err_and(|error| !is_in_doubt(error)) {
            self.drop_collection(&name, &CommitOptions::buffered())?;
        }
        ended
    }

    /// Returns a temporary capped collection with the newest documents of `source` that fit, in the
    /// order of their insertion.
    fn capped_copy(
        self: &Arc<Self>,
        source: &Collection,
        bytes_max: u64,
        name: &Namespace,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Arc<Collection>> {
        let capped = match source.options.capped() {
            Some(before) => before.changed(CappedChange { bytes_max: Some(bytes_max), max: None }),
            None => Capped::of_bytes(bytes_max),
        };
        let options = source.options.capped_at(capped).temporary();
        let each =
            CommitOptions { interrupt: Some(interrupt.clone()), ..CommitOptions::buffered() };
        let copy = self.change_catalog(&each, |writer, catalog, next_id| {
            let (next, made) = self.create_in(writer, catalog, next_id, name, options.clone())?;
            Ok((Some(next), made))
        })?;
        if let Some(first) = self.oldest_that_fits(source, capped, interrupt)? {
            let cursor = CollectionCursor::between(source, Direction::Forward, Some(first), None);
            self.copy_documents((source, cursor), &copy, interrupt, &each)?;
        }
        Ok(copy)
    }

    /// Returns the first of the newest documents that together keep the bounds; `None` if there are
    /// no documents.
    fn oldest_that_fits(
        self: &Arc<Self>,
        source: &Collection,
        capped: Capped,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Option<RecordId>> {
        let mut cursor = CollectionCursor::new(source, Direction::Reverse);
        let (mut records, mut more): (Vec<Record>, bool) = (Vec::new(), true);
        let (mut found, mut docs, mut bytes) = (None, 0, 0);
        while more {
            interrupt.check().map_err(crate::from_interruption)?;
            records.clear();
            let view = self.read_view()?;
            more = cursor.next_page(&view.view(), source, PAGE_ROWS, PAGE_BYTES, &mut records)?;
            for record in &records {
                docs += 1;
                bytes += record.doc.as_bytes().len() as u64;
                let fits = bytes <= capped.bytes_max
                    && capped.docs_max().is_none_or(|docs_max| docs <= docs_max);
                if !fits && found.is_some() {
                    return Ok(found);
                }
                found = Some(record.id);
            }
        }
        Ok(found)
    }
}

/// Returns a finished copy as it is stored under its final name.
fn placed(catalog: &Catalog, copy: &Collection, namespace: &Namespace) -> Result<Collection> {
    if catalog.lookup(&copy.namespace).is_none_or(|now| now.id != copy.id) {
        let text = format!("The copy {} was dropped before it was whole", copy.namespace);
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    }
    let mut placed = next_epoch(copy);
    placed.options = copy.options.lasting();
    placed.namespace = namespace.clone();
    Ok(placed)
}

/// Checks source and target of a clone. Returns the source.
fn check_ends(catalog: &Catalog, from: &Namespace, to: &Namespace) -> Result<Arc<Collection>> {
    catalog.refuse_view_like(from)?;
    let source = catalog.lookup(from).cloned().ok_or_else(|| {
        let text = format!("source collection {from} does not exist");
        Error::new(ErrorCode::NamespaceNotFound, text)
    })?;
    catalog.refuse_view_like(to)?;
    if catalog.lookup(to).is_some() {
        let text = format!(
            "cloneCollectionAsCapped failed - destination collection {to} already exists. source collection: {from}"
        );
        return Err(Error::new(ErrorCode::NamespaceExists, text));
    }
    catalog.check_db_case(to.db())?;
    Ok(source)
}
