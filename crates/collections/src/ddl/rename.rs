//! `renameCollection`: within a database one commit; across databases a copy, then one commit that
//! puts it in place.

use std::sync::Arc;

use quire_catalog::{Catalog, Collection, IndexState, Namespace, Uuid};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Direction, Interrupt};

use super::pattern_names::{Fate, refuse_patterns};
use super::{drop_data, next_epoch, put_collection};
use crate::{CollectionCursor, Store, is_in_doubt};

/// The arguments of `renameCollection`.
#[derive(Debug, Clone)]
pub struct Rename {
    /// The current name.
    pub from: Namespace,
    /// The new name.
    pub to: Namespace,
    /// True to drop an existing collection with the new name.
    pub drop_target: bool,
    /// The collection must have this UUID (`collectionUUID`).
    pub from_uuid: Option<Uuid>,
    /// An existing collection with the new name must have this UUID (`dropTarget` as a UUID).
    pub target_uuid: Option<Uuid>,
}

/// The number of documents in one commit of a copy.
const COPY_CHUNK: usize = 1000;
const COPY_BYTES: usize = 4 << 20;

impl Store {
    /// Renames a collection. Errors: 26 NamespaceNotFound, 48 NamespaceExists, 20 IllegalOperation
    /// if both names are the same.
    pub fn rename_collection(
        self: &Arc<Self>,
        rename: &Rename,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<()> {
        let Rename { from, to, drop_target, .. } = rename;
        check_renamable(from)?;
        check_renamable(to)?;
        check_uuids(rename, &self.catalog())?;
        if from == to {
            return Err(Error::new(
                ErrorCode::IllegalOperation,
                "Can't rename a collection to itself",
            ));
        }
        check_names(&self.catalog(), from, to, *drop_target)?;
        if from.db() != to.db() {
            return self.rename_across(rename, interrupt, options);
        }
        let dropped = self.change_catalog(options, |writer, catalog, next_id| {
            check_uuids(rename, catalog)?;
            let source = check_names(catalog, from, to, *drop_target)?;
            check_at_rest(source)?;
            let mut next = (**catalog).clone();
            let target = catalog.lookup(to).cloned();
            if let Some(target) = &target {
                drop_data(writer, target)?;
            }
            let mut renamed = next_epoch(source);
            renamed.namespace = to.clone();
            put_collection(writer, &renamed)?;
            next = next.without(from).with(Arc::new(renamed));
            if let Some(target) = &target {
                let replaced = (&**target, Fate::Replaced);
                next = self.patterns_after(writer, next, next_id, replaced)?;
            }
            next = self.patterns_after_rename(writer, next, next_id, (source, to))?;
            Ok((Some(next), target))
        })?;
        if let Some(target) = dropped {
            self.forget_record_ids(target.id);
        }
        Ok(())
    }

    /// Copies documents and indexes into a temporary collection of the other database, then puts it
    /// in place and drops the source. Writes to the source are refused meanwhile.
    fn rename_across(
        self: &Arc<Self>,
        rename: &Rename,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<()> {
        let Rename { from, to, drop_target, .. } = rename;
        let each =
            CommitOptions { interrupt: Some(Arc::clone(interrupt)), ..CommitOptions::buffered() };
        let catalog = self.catalog();
        for collection in [catalog.lookup(from), catalog.lookup(to)].into_iter().flatten() {
            refuse_patterns(collection, "moved to or replaced from another database")?;
        }
        let source = self.freeze(from, true, &each)?;
        let temporary =
            Namespace::new(to.db(), &format!("tmp{}.renameCollection", self.new_uuid()))?;
        let copied = self.copy_collection(&source, &temporary, interrupt, &each);
        let ended = copied.and_then(|copy| {
            self.change_catalog(options, |writer, catalog, _| {
                let now = check_names(catalog, from, to, *drop_target)?;
                if now.id != source.id {
                    return Err(Error::new(
                        ErrorCode::NamespaceNotFound,
                        format!("Source collection {from} was dropped while it was copied"),
                    ));
                }
                if now.epoch != source.epoch {
                    return Err(Error::new(
                        ErrorCode::ConflictingOperationInProgress,
                        format!("{from} was altered while it was copied"),
                    ));
                }
                if catalog.lookup(&temporary).is_none_or(|now| now.id != copy.id) {
                    return Err(Error::new(
                        ErrorCode::NamespaceNotFound,
                        format!("The copy {temporary} was dropped before it was whole"),
                    ));
                }
                let target = catalog.lookup(to).cloned();
                if let Some(target) = &target {
                    drop_data(writer, target)?;
                }
                drop_data(writer, now)?;
                let mut renamed = next_epoch(&copy);
                renamed.frozen = false;
                renamed.options = source.options.clone();
                renamed.namespace = to.clone();
                put_collection(writer, &renamed)?;
                let next = catalog.without(from).without(&temporary).with(Arc::new(renamed));
                Ok((Some(next), ()))
            })
        });
        if ended.as_ref().is_err_and(|error| !is_in_doubt(error)) {
            self.drop_collection(&temporary, &CommitOptions::buffered())?;
            self.freeze(from, false, &CommitOptions::buffered())?;
        }
        ended
    }

    /// Refuses or admits writes to a collection. Writes that are running when the collection is
    /// frozen conflict and are retried, and then are refused.
    pub(super) fn freeze(
        self: &Arc<Self>,
        namespace: &Namespace,
        frozen: bool,
        options: &CommitOptions,
    ) -> Result<Arc<Collection>> {
        self.change_catalog(options, |writer, catalog, _| {
            let now = catalog.require(namespace)?;
            if frozen {
                check_at_rest(now)?;
            }
            let mut next = next_epoch(now);
            next.frozen = frozen;
            put_collection(writer, &next)?;
            let next = Arc::new(next);
            Ok((Some(catalog.with(Arc::clone(&next))), next))
        })
    }

    fn copy_collection(
        self: &Arc<Self>,
        source: &Collection,
        to: &Namespace,
        interrupt: &Arc<Interrupt>,
        each: &CommitOptions,
    ) -> Result<Arc<Collection>> {
        let copy = self.create_copy((Some(source), &source.options), to, each)?;
        let cursor = CollectionCursor::new(source, Direction::Forward);
        self.copy_documents((source, cursor), &copy, interrupt, each)?;
        Ok(copy)
    }

    /// Inserts the documents of `cursor` over `source` into `copy`, in many commits.
    pub(super) fn copy_documents(
        self: &Arc<Self>,
        (source, mut cursor): (&Collection, CollectionCursor),
        copy: &Collection,
        interrupt: &Arc<Interrupt>,
        each: &CommitOptions,
    ) -> Result<()> {
        let mut records = Vec::new();
        let mut more = true;
        while more {
            interrupt.check().map_err(crate::from_interruption)?;
            records.clear();
            let view = self.read_view()?;
            more = cursor.next_page(&view.view(), source, COPY_CHUNK, COPY_BYTES, &mut records)?;
            drop(view);
            self.write(each, interrupt, |writer| {
                let mut insert = |record: &crate::Record| writer.insert(copy, record.doc.as_doc());
                records.iter().try_for_each(|record| insert(record).map(|_| ()))
            })?;
        }
        Ok(())
    }
}

/// Refuses names that cannot be renamed from or to (20 IllegalOperation).
fn check_renamable(namespace: &Namespace) -> Result<()> {
    let oplog = namespace.db() == "local"
        && namespace.collection().strip_prefix("oplog.").is_some_and(|rest| !rest.is_empty());
    let why = if namespace.as_str().contains('$') {
        "a name with '$' cannot be renamed"
    } else if namespace.is_system() {
        "system collections cannot be renamed"
    } else if oplog {
        "the oplog cannot be renamed"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorCode::IllegalOperation, format!("{why}: {namespace}")))
}

fn check_uuids(rename: &Rename, catalog: &Catalog) -> Result<()> {
    if let Some(uuid) = &rename.from_uuid {
        catalog.check_uuid(&rename.from, uuid)?;
    }
    if let Some(uuid) = &rename.target_uuid {
        if rename.from.db() != rename.to.db() {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "dropTarget may not be a UUID when renaming across databases",
            ));
        }
        catalog.check_uuid(&rename.to, uuid)?;
    }
    Ok(())
}

/// Fails for a collection that is being copied or has an index build.
fn check_at_rest(collection: &Collection) -> Result<()> {
    let namespace = &collection.namespace;
    if collection.frozen {
        let text = format!("{namespace} is being copied already");
        return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
    }
    if collection.indexes.iter().any(|index| index.state == IndexState::WriteOnly) {
        let text = format!(
            "cannot perform operation: an index build is currently running for collection '{namespace}' with UUID: {}",
            collection.uuid
        );
        return Err(Error::new(ErrorCode::BackgroundOperationInProgressForNamespace, text));
    }
    Ok(())
}

fn check_names<'c>(
    catalog: &'c Catalog,
    from: &Namespace,
    to: &Namespace,
    drop_target: bool,
) -> Result<&'c Arc<Collection>> {
    if catalog.view(from).is_some() {
        let text = format!("cannot rename view: {from}");
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
    }
    let source = catalog.lookup(from).ok_or_else(|| {
        Error::new(ErrorCode::NamespaceNotFound, format!("Source collection {from} does not exist"))
    })?;
    if source.is_time_series() {
        let text = format!("cannot rename a time-series collection: {from}");
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
    }
    catalog.check_db_case(to.db())?;
    if catalog.lookup(to).is_some_and(|target| target.is_time_series()) {
        let text = format!("a time-series collection already exists with that name: {to}");
        return Err(Error::new(ErrorCode::NamespaceExists, text));
    }
    if catalog.view(to).is_some() {
        let text = format!("a view already exists with that name: {to}");
        return Err(Error::new(ErrorCode::NamespaceExists, text));
    }
    if !drop_target && catalog.lookup(to).is_some() {
        return Err(Error::new(ErrorCode::NamespaceExists, "target namespace exists"));
    }
    Ok(source)
}
