//! The profile of a whole database: its collections, and the references between them.

use crate::profile::{CollectionProfile, Limits};
use crate::references::{self, Candidate, Reference};
use crate::source::{Extent, Lookup, Source, SourceCollection};

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
