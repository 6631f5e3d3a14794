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

/// The values of a candidate that are looked up before all of them are.
const PROBED: usize = 16;

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
    let candidates: Vec<Candidate<'_>> = collections
        .iter()
        .flat_map(|(from, profile)| references::candidates(from, profile, &all))
        .collect();
    let mut references = Vec::new();
    for to in &all {
        let target = collections.iter().find(|(found, _)| found.name == to.name);
        let fits = |candidate: &&Candidate<'_>| {
            candidate.to == to.name
                && target
                    .is_none_or(|(_, profile)| profile.documents() == 0 || candidate.fits(profile))
        };
        let fitting = candidates.iter().filter(fits).collect();
        // A few values tell most candidates from references.
        let probed = counted(source, &to.name, fitting, PROBED)?.into_iter();
        let likely = probed.filter(|(one, found)| one.is_likely(*found, PROBED));
        let likely = likely.map(|(one, _)| one).collect();
        for (one, found) in counted(source, &to.name, likely, usize::MAX)? {
            references.extend(one.confirm(found, extent));
        }
    }
    references.sort_by(|left, right| (&left.from, &left.path).cmp(&(&right.from, &right.path)));
    let copies = copies::find(source, &collections, &references)?;
    Ok(DatabaseProfile { collections, extent, references, copies })
}

/// Returns for each candidate how many of its values exist, of `most` at most.
fn counted<'c, 'p, S: Source>(
    source: &mut S,
    to: &str,
    candidates: Vec<&'c Candidate<'p>>,
    most: usize,
) -> Result<Vec<(&'c Candidate<'p>, u64)>, S::Error> {
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let lookups: Vec<Lookup> = candidates.iter().map(|one| one.lookup(most)).collect();
    let found = source.look_up(to, &lookups)?;
    Ok(candidates.into_iter().zip(found).collect())
}
