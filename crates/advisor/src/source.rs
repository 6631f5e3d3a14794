//! Where collections and documents come from, and the profile of a whole database.

use crate::profile::{CollectionProfile, Limits};
use crate::references::{self, Candidate, Reference};
use quire_document::{ArrayBuf, Doc, DocBuf};

/// A collection of a source.
#[derive(Clone, Debug)]
pub struct SourceCollection {
    /// Its name.
    pub name: String,
    /// The number of documents, if the source knows it.
    pub documents: Option<u64>,
    /// The specifications of its indexes, as `listIndexes` shows them.
    pub indexes: Vec<DocBuf>,
}

impl SourceCollection {
    /// Returns the fields that identify a document alone: `_id`, and the keys of unique indexes of
    /// one field that hold for all documents.
    pub fn unique_fields(&self) -> Vec<String> {
        let mut fields = vec!["_id".to_owned()];
        for index in &self.indexes {
            let is_true = |name| index.get(name).and_then(|value| value.as_bool()) == Some(true);
            let partial = index.get("partialFilterExpression").is_some();
            let key = index.get("key").and_then(|key| key.as_document());
            let Some(key) = key.filter(|key| is_true("unique") && !partial && key.count() == 1)
            else {
                continue;
            };
            fields.extend(key.first().map(|field| field.key().to_owned()));
        }
        fields
    }
}

/// How much of a collection is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every document.
    All,
    /// At most this many documents, drawn uniformly at random by the source.
    Sample(u64),
}

/// A place with collections: a server, or files.
pub trait Source {
    /// The error of a source.
    type Error;

    /// Returns the collections of the database, without views and without the server's own.
    ///
    /// # Errors
    /// Those of the source.
    fn collections(&mut self) -> Result<Vec<SourceCollection>, Self::Error>;

    /// Calls `each` with the documents of a collection.
    ///
    /// # Errors
    /// Those of the source.
    fn read(
        &mut self,
        collection: &str,
        extent: Extent,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Self::Error>;

    /// Returns for each of the lookups how many of its values are there.
    ///
    /// # Errors
    /// Those of the source.
    fn look_up(&mut self, collection: &str, lookups: &[Lookup]) -> Result<Vec<u64>, Self::Error>;
}

/// A question to a collection: how many of these values does a field have in some document?
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The field, whose values are unique.
    pub field: String,
    /// Distinct values.
    pub values: ArrayBuf,
}

/// Is told what has been done.
pub trait Progress {
    /// A collection is about to be read.
    fn begins(&mut self, collection: &SourceCollection, extent: Extent);
    /// One more document was read.
    fn read(&mut self);
}

/// The profile of a database.
pub struct DatabaseProfile {
    /// Its collections, by name, with their profiles.
    pub collections: Vec<(SourceCollection, CollectionProfile)>,
    /// True if only samples were read.
    pub extent: Extent,
    /// The references between them.
    pub references: Vec<Reference>,
}

/// Reads the collections of a source, all or those named in `only`, and profiles them. References
/// are looked for from the collections that were read to all collections of the source.
///
/// # Errors
/// Those of the source.
pub fn profile_database<S: Source>(
    source: &mut S,
    only: &[String],
    extent: Extent,
    limits: Limits,
    progress: &mut dyn Progress,
) -> Result<DatabaseProfile, S::Error> {
    let mut all = source.collections()?;
    all.sort_by(|left, right| left.name.cmp(&right.name));
    let mut collections = Vec::new();
    for collection in &all {
        if !only.is_empty() && !only.contains(&collection.name) {
            continue;
        }
        progress.begins(collection, extent);
        let mut profile = CollectionProfile::new(limits);
        source.read(&collection.name, extent, &mut |document| {
            profile.add(document);
            progress.read();
        })?;
        collections.push((collection.clone(), profile));
    }
    let candidates: Vec<Candidate> = collections
        .iter()
        .flat_map(|(from, profile)| references::candidates(from, profile, &all))
        .collect();
    let mut references = Vec::new();
    for to in &all {
        let (of_this, lookups): (Vec<&Candidate>, Vec<Lookup>) = candidates
            .iter()
            .filter(|candidate| candidate.to == to.name)
            .map(|candidate| (candidate, candidate.lookup.clone()))
            .unzip();
        if lookups.is_empty() {
            continue;
        }
        let found = source.look_up(&to.name, &lookups)?;
        let confirmed = of_this.into_iter().zip(found);
        references
            .extend(confirmed.filter_map(|(candidate, found)| candidate.confirm(found, extent)));
    }
    references.sort_by(|left, right| (&left.from, &left.path).cmp(&(&right.from, &right.path)));
    Ok(DatabaseProfile { collections, extent, references })
}
