//! Patterns of a collection: `create` and `collMod` declare, change and remove them. A change is one
//! commit: the record of the collection, those of the collections that the patterns read (so that
//! writes under way conflict and are tried again by the new rules), the documents of
//! `quire.patterns`, from which a dump is declared again, and the job that builds.

use std::sync::Arc;

use quire_catalog::patterns::{
    PATTERNS_MAX, Pattern, PatternChange, PatternKind, PatternState, Reach, check_loops, overlap,
};
use quire_catalog::{
    CATALOG_FORMAT, Catalog, Collection, CollectionOptions, FormatRecord, Index, IndexId,
    IndexSpec, Namespace, Uuid, format_key,
};
use quire_document::{Binary, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Interrupt};

use super::{CreateIndexes, drop_groups, next_epoch, put_collection};
use crate::job::{Job, JobId};
use crate::meta::put_meta;
use crate::rules::patterns::usable_index;
use crate::{Store, Writer};

/// The collection of a database that has a document for each declared pattern.
pub const PATTERNS: &str = "quire.patterns";

/// The kind of the jobs that build a pattern.
pub(crate) const PATTERN_BUILD: &str = "patternBuild";

/// Why a pattern is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rebuild {
    /// It was declared.
    Declared,
    /// Its collection has other documents.
    Replaced,
    /// Documents that it reads are gone. What it says about deleted documents is done.
    Gone,
}

/// How long after a step of its client the runner takes over a build.
pub(crate) const CLIENT_BUILD_MS: i64 = 5000;

impl Store {
    /// Checks whether the patterns of a collection can be changed, without the indexes that they
    /// need.
    ///
    /// # Errors
    /// Those of [`change_patterns`](Self::change_patterns).
    pub fn check_patterns(&self, namespace: &Namespace, changes: &[PatternChange]) -> Result<()> {
        let catalog = self.catalog();
        let owner = catalog.require(namespace)?;
        let next = applied(owner, changes)?;
        check(&catalog.with(Arc::new(next)), namespace)
    }

    /// Makes the indexes that new patterns need and that are not there.
    ///
    /// # Errors
    /// Those of [`create_indexes`](Self::create_indexes).
    pub fn create_pattern_indexes(
        self: &Arc<Self>,
        namespace: &Namespace,
        changes: &[PatternChange],
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<()> {
        let needed = changes.iter().flat_map(|change| match change {
            PatternChange::Declare(pattern) => {
                let from = pattern.from().unwrap_or_default();
                let of = |(path, is_own)| (path, is_own, from);
                pattern.needed_indexes().into_iter().map(of).collect()
            }
            PatternChange::Remove(_) => Vec::new(),
        });
        for (path, is_own, from) in needed {
            let of = match is_own {
                true => namespace.clone(),
                false => Namespace::new(namespace.db(), from)?,
            };
            let catalog = self.catalog();
            let existing = catalog.lookup(&of);
            if existing.is_some_and(|existing| usable_index(existing, path).is_some()) {
                continue;
            }
            let mut key = DocBuf::new();
            key.append(path, 1);
            let name = format!("{path}_1");
            let spec =
                IndexSpec::parse(doc! { "key": &key, "name": name.as_str() }.as_doc(), false)?;
            let request = CreateIndexes { namespace: of, specs: vec![spec] };
            self.create_indexes(&request, interrupt, options)?;
        }
        Ok(())
    }

    /// Changes the patterns of a collection. A new pattern is kept from this commit on; a job applies
    /// it to the documents that are there.
    ///
    /// # Errors
    /// 26 NamespaceNotFound; 2 BadValue for a pattern to be removed that is not declared; 72
    /// InvalidOptions for patterns that contradict each other or depend on each other in a circle,
    /// and for collections that cannot have them; 27 IndexNotFound.
    pub fn change_patterns(
        self: &Arc<Self>,
        namespace: &Namespace,
        changes: &[PatternChange],
        options: &CommitOptions,
    ) -> Result<()> {
        self.change_catalog(options, |writer, catalog, next_id| {
            let before = catalog.require(namespace)?;
            let after = applied(before, changes)?;
            if shown(before) == shown(&after) {
                return Ok((None, ()));
            }
            let mut next = catalog.with(Arc::new(after.clone()));
            check(&next, namespace)?;
            check_indexes(&next, &after)?;
            put_collection(writer, &after)?;
            for name in read_by(before).into_iter().chain(read_by(&after)) {
                next = touch(writer, &next, &Namespace::new(namespace.db(), &name)?)?;
            }
            for pattern in &after.patterns.declared {
                let known = before.patterns.named(&pattern.name);
                if known.is_none_or(|known| known.generation != pattern.generation) {
                    add_build(writer, &after, pattern, Rebuild::Declared)?;
                }
            }
            for pattern in &before.patterns.declared {
                let stays = after.patterns.named(&pattern.name);
                if stays.is_none_or(|stays| stays.generation != pattern.generation) {
                    drop_groups(writer, before, pattern);
                }
            }
            let gone = declared_ids(before);
            next = self.write_declared(writer, &next, next_id, (namespace.db(), &gone))?;
            // An older program would not keep the patterns.
            let format = FormatRecord { format: CATALOG_FORMAT, next_id: *next_id };
            put_meta(writer.txn_mut(), &format_key(), format.encode())?;
            Ok((Some(next), ()))
        })
    }

    /// Sets the state of a pattern, unless it was declared anew. Returns true if it was set.
    ///
    /// # Errors
    /// Those of the commit.
    pub fn set_pattern_state(
        self: &Arc<Self>,
        owner: &Uuid,
        (name, generation): (&str, u64),
        state: &PatternState,
        options: &CommitOptions,
    ) -> Result<bool> {
        self.change_catalog(options, |writer, catalog, _| {
            let Some(owner) = catalog.by_uuid(owner) else { return Ok((None, false)) };
            let pattern = owner.patterns.named(name);
            let Some(pattern) = pattern.filter(|pattern| pattern.generation == generation) else {
                return Ok((None, false));
            };
            if pattern.state == *state {
                return Ok((None, true));
            }
            let mut after = next_epoch(owner);
            replace(&mut after, pattern.with_state(state.clone()));
            put_collection(writer, &after)?;
            let from = pattern.from().map(str::to_owned);
            let mut next = catalog.with(Arc::new(after));
            if let Some(from) = from {
                next = touch(writer, &next, &Namespace::new(owner.namespace.db(), &from)?)?;
            }
            Ok((Some(next), true))
        })
    }

    /// Makes the documents of `quire.patterns` those of the declared patterns of a database, and
    /// removes the documents `gone`. The first pattern of a database creates the collection. Other
    /// documents stay: a restore writes them, and a job declares their patterns.
    pub(super) fn write_declared(
        &self,
        writer: &mut Writer,
        catalog: &Catalog,
        next_id: &mut u32,
        (db, gone): (&str, &[String]),
    ) -> Result<Catalog> {
        let Some(database) = catalog.database(db) else { return Ok(catalog.clone()) };
        let declared: Vec<(String, DocBuf)> =
            database.collections().flat_map(|collection| declared_docs(collection)).collect();
        let namespace = Namespace::new(db, PATTERNS)?;
        let (next, collection) = match catalog.lookup(&namespace) {
            Some(collection) => (catalog.clone(), Arc::clone(collection)),
            None if declared.is_empty() => return Ok(catalog.clone()),
            None => {
                let options = CollectionOptions::default();
                let (next, created) =
                    self.create_in(writer, catalog, next_id, &namespace, options)?;
                writer.set_catalog(Arc::new(next.clone()))?;
                (next, created)
            }
        };
        let is_gone = |id: &&String| !declared.iter().any(|(known, _)| known == *id);
        for id in gone.iter().filter(is_gone) {
            let stored = writer.view().get_by_id(&collection, Value::String(id))?;
            if let Some(stored) = stored {
                writer.delete(&collection, stored.id, stored.doc.as_doc())?;
            }
        }
        for (id, doc) in &declared {
            match writer.view().get_by_id(&collection, Value::String(id))? {
                Some(stored) if stored.doc.as_bytes() == doc.as_bytes() => {}
                Some(stored) => {
                    writer.replace(&collection, stored.id, stored.doc.as_doc(), doc.as_doc())?;
                }
                None => drop(writer.insert(&collection, doc.as_doc())?),
            }
        }
        Ok(next)
    }
}

/// Returns the documents of `quire.patterns` for a collection, each with its `_id`.
fn declared_docs(collection: &Collection) -> Vec<(String, DocBuf)> {
    let name = collection.namespace.collection();
    let document = |pattern: &Arc<Pattern>| {
        let id = format!("{name}.{}", pattern.name);
        let doc = DocBuf::build(|writer| {
            writer.append("_id", id.as_str()).append("collection", name);
            pattern.write_definition(writer);
        });
        (id, doc)
    };
    collection.patterns.declared.iter().map(document).collect()
}

/// Returns the `_id`s of the documents of `quire.patterns` for a collection.
pub(super) fn declared_ids(collection: &Collection) -> Vec<String> {
    declared_docs(collection).into_iter().map(|(id, _)| id).collect()
}

/// Returns the collection with its patterns after the changes.
pub(super) fn applied(collection: &Collection, changes: &[PatternChange]) -> Result<Collection> {
    let mut next = next_epoch(collection);
    for change in changes {
        let known = next.patterns.named(change.name()).cloned();
        match (change, known) {
            (PatternChange::Remove(name), None) => {
                let namespace = &collection.namespace;
                let text = format!("{namespace} has no pattern '{name}'");
                return Err(Error::bad_value(text));
            }
            (PatternChange::Remove(name), Some(_)) => {
                next.patterns.declared.retain(|pattern| pattern.name != *name);
            }
            (PatternChange::Declare(pattern), Some(known))
                if known.definition().as_bytes() == pattern.definition().as_bytes()
                    && !matches!(known.state, PatternState::Stopped(_)) => {}
            (PatternChange::Declare(pattern), _) => {
                let mut pattern = pattern.clone();
                pattern.generation = next.epoch;
                replace(&mut next, pattern);
            }
        }
    }
    Ok(next)
}

/// Puts a pattern in the place of the one of the same name, or behind the others.
pub(super) fn replace(collection: &mut Collection, pattern: Pattern) {
    let declared = &mut collection.patterns.declared;
    match declared.iter_mut().find(|known| known.name == pattern.name) {
        Some(known) => *known = Arc::new(pattern),
        None => declared.push(Arc::new(pattern)),
    }
}

/// Returns the patterns of a collection as they are shown.
fn shown(collection: &Collection) -> Vec<Vec<u8>> {
    let declared = collection.patterns.declared.iter();
    declared.map(|pattern| pattern.shown().into_bytes()).collect()
}

/// Returns the names of the collections that the patterns of a collection read.
pub(super) fn read_by(collection: &Collection) -> Vec<String> {
    let declared = collection.patterns.declared.iter();
    let mut names: Vec<String> =
        declared.filter_map(|pattern| pattern.from().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names.retain(|name| name != collection.namespace.collection());
    names
}

/// Changes the record of a collection, so that writes under way conflict. Does nothing if the
/// collection does not exist.
pub(super) fn touch(writer: &mut Writer, catalog: &Catalog, name: &Namespace) -> Result<Catalog> {
    let Some(collection) = catalog.lookup(name) else { return Ok(catalog.clone()) };
    let next = next_epoch(collection);
    put_collection(writer, &next)?;
    Ok(catalog.with(Arc::new(next)))
}

/// Adds the job that builds a pattern.
pub(super) fn add_build(
    writer: &mut Writer,
    owner: &Collection,
    pattern: &Pattern,
    rebuild: Rebuild,
) -> Result<()> {
    if pattern.is_ready() {
        return Ok(());
    }
    let now_ms = i64::try_from(writer.now_ms()).unwrap_or(0);
    let uuid = Value::Binary(Binary { subtype: 4, bytes: &owner.uuid.0 });
    let parameters = doc! {
        "collection": uuid, "pattern": pattern.name.as_str(),
        "generation": pattern.generation as i64, "gone": rebuild == Rebuild::Gone
    };
    let mut job = Job::new(build_job(&owner.uuid, pattern), parameters, now_ms);
    if rebuild == Rebuild::Declared {
        // The client that declares the pattern builds it. If it goes away, the runner goes on.
        job.due_ms = now_ms.saturating_add(CLIENT_BUILD_MS);
    }
    writer.add_job(&job)?;
    Ok(())
}

/// Returns the identity of the job that builds a pattern.
pub(crate) fn build_job(owner: &Uuid, pattern: &Pattern) -> JobId {
    JobId::new(PATTERN_BUILD, format!("{owner}.{}.{}", pattern.name, pattern.generation))
}

/// Checks the patterns of one collection together with all of its database.
///
/// # Errors
/// 72 InvalidOptions.
pub(super) fn check(catalog: &Catalog, namespace: &Namespace) -> Result<()> {
    let owner = catalog.require(namespace)?;
    let declared = &owner.patterns.declared;
    if declared.is_empty() {
        return Ok(());
    }
    check_owner(owner)?;
    if declared.len() > PATTERNS_MAX {
        let text = format!("a collection declares at most {PATTERNS_MAX} patterns");
        return Err(invalid(text));
    }
    let paths: Vec<(&str, String)> = declared
        .iter()
        .flat_map(|pattern| {
            pattern.derived_paths().into_iter().map(|path| (pattern.name.as_str(), path))
        })
        .collect();
    for (at, (name, path)) in paths.iter().enumerate() {
        let mut later = paths.iter().skip(at + 1);
        if let Some((other, clash)) = later.find(|(_, other)| overlap(path, other)) {
            return Err(invalid(format!(
                "patterns '{name}' and '{other}' write paths that overlap: '{path}' and '{clash}'"
            )));
        }
    }
    declared.iter().try_for_each(|pattern| check_read(catalog, owner, pattern))?;
    let database = catalog.database(namespace.db());
    let collections = database.into_iter().flat_map(|database| database.collections());
    let mut sorted: Vec<_> = collections.collect();
    sorted.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    let reach: Vec<Reach> = sorted
        .into_iter()
        .flat_map(|collection| {
            let name = collection.namespace.collection();
            collection.patterns.declared.iter().flat_map(move |pattern| Reach::of(name, pattern))
        })
        .collect();
    check_loops(&reach)
}

/// Refuses a collection that cannot have patterns.
fn check_owner(owner: &Collection) -> Result<()> {
    let namespace = &owner.namespace;
    let refused = |why: &str| Err(invalid(format!("{namespace} cannot have patterns: {why}")));
    if namespace.is_system() || matches!(namespace.db(), "admin" | "config" | "local") {
        return refused("it is a collection of the server");
    }
    if namespace.collection() == PATTERNS {
        return refused("it holds the definitions");
    }
    if owner.options.capped().is_some() {
        return refused("it is capped");
    }
    if owner.is_time_series() {
        return refused("it is a time-series collection");
    }
    if owner.options.collation().is_some() {
        return refused("it has a default collation");
    }
    Ok(())
}

/// Refuses a pattern that cannot read its collection.
fn check_read(catalog: &Catalog, owner: &Collection, pattern: &Pattern) -> Result<()> {
    let Some(from) = pattern.from() else { return Ok(()) };
    let from = Namespace::new(owner.namespace.db(), from)?;
    from.check_creatable()?;
    catalog.refuse_view_like(&from)?;
    if from.collection() == PATTERNS {
        let text = format!("pattern '{}' reads {from}, which holds the definitions", pattern.name);
        return Err(invalid(text));
    }
    let Some(read) = catalog.lookup(&from) else { return Ok(()) };
    check_readable(read, pattern)?;
    let PatternKind::Reference(reference) = &pattern.kind else { return Ok(()) };
    let field = reference.foreign_field.as_str();
    if field != "_id" && unique_index(read, field).is_none() {
        let name = &pattern.name;
        let text = format!("pattern '{name}' needs a unique index of {from} on '{field}'");
        return Err(invalid(text));
    }
    Ok(())
}

/// Refuses a collection whose values compare otherwise than those of patterns.
///
/// # Errors
/// 72 InvalidOptions.
pub(super) fn check_readable(read: &Collection, pattern: &Pattern) -> Result<()> {
    match read.options.collation() {
        None => Ok(()),
        Some(_) => Err(invalid(format!(
            "pattern '{}' reads {}, which has a default collation",
            pattern.name, read.namespace
        ))),
    }
}

/// Returns the indexes of a collection that patterns need, each with the name of a pattern.
pub(super) fn needed_indexes(collection: &Collection) -> Vec<(IndexId, String)> {
    let patterns = &collection.patterns;
    let own = patterns.declared.iter().map(|pattern| (pattern, true));
    let read = patterns.readers.iter().map(|reader| (&reader.pattern, false));
    let mut needed = Vec::new();
    for (pattern, is_own) in own.chain(read) {
        let dependents = pattern.needed_indexes().into_iter();
        let dependents = dependents
            .filter(|(_, of_owner)| *of_owner == is_own)
            .filter_map(|(path, _)| usable_index(collection, path));
        let targets = match &pattern.kind {
            PatternKind::Reference(reference) if !is_own && reference.foreign_field != "_id" => {
                unique_index(collection, &reference.foreign_field)
            }
            _ => None,
        };
        let indexes = dependents.chain(targets);
        needed.extend(indexes.map(|index| (index.id, pattern.name.clone())));
    }
    needed
}

/// Returns the index with which a document is found by the value of a field that is not `_id`.
fn unique_index<'c>(collection: &'c Collection, field: &str) -> Option<&'c Arc<Index>> {
    let is_usable = |index: &&Arc<Index>| {
        index.unique
            && index.keys.fields().len() == 1
            && index.keys.partial().is_none()
            && index.keys.collation().is_none()
            && index.keys.field(field) == Some(0)
    };
    collection.ready_indexes().find(is_usable)
}

/// Refuses a pattern whose index is not there.
fn check_indexes(catalog: &Catalog, owner: &Collection) -> Result<()> {
    let needed = owner.patterns.declared.iter().flat_map(|pattern| {
        pattern.needed_indexes().into_iter().map(move |(path, is_own)| (pattern, path, is_own))
    });
    for (pattern, path, is_own) in needed {
        let read = catalog.collection(owner.namespace.db(), pattern.from().unwrap_or_default());
        let of = if is_own { Some(owner) } else { read.map(|read| &**read) };
        if of.is_some_and(|of| usable_index(of, path).is_none()) {
            let text =
                format!("pattern '{}' needs an index that begins with '{path}'", pattern.name);
            return Err(Error::new(ErrorCode::IndexNotFound, text));
        }
    }
    Ok(())
}

fn invalid(text: String) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}
