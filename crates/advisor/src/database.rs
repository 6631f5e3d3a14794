//! The profile of a whole database: its collections, and the references between them.

use crate::copies::{self, Copy};
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
    /// Fields that have the values of fields of the document that is referred to.
    pub copies: Vec<Copy>,
}

impl DatabaseProfile {
    /// Returns a collection with its profile.
    pub fn collection(&self, name: &str) -> Option<&(SourceCollection, CollectionProfile)> {
        self.collections.iter().find(|(found, _)| found.name == name)
    }
}

/// The paths that each collection may have, whatever those before it have.
const PATHS_MIN: usize = 32;

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
    let is_wanted =
        |collection: &&SourceCollection| only.is_empty() || only.contains(&collection.name);
    let mut left = all.iter().filter(is_wanted).count();
    let mut room = limits.paths_total_max;
    let mut collections = Vec::new();
    for collection in all.iter().filter(is_wanted) {
        progress.begins(collection, extent);
        left -= 1;
        let paths_max =
            room.saturating_sub(left * PATHS_MIN).clamp(PATHS_MIN, limits.paths_max.max(PATHS_MIN));
        let mut profile = CollectionProfile::new(Limits { paths_max, ..limits });
        source.read(&collection.name, extent, &mut |document| {
            profile.add(document);
            progress.read();
        })?;
        room = room.saturating_sub(profile.paths());
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
    let copies = copies::find(source, &collections, &references)?;
    Ok(DatabaseProfile { collections, extent, references, copies })
}
