//! The catalogs that the last statements have replaced. A view of the past (`Store::read_view_at`)
//! needs the catalog of its time: the collections and indexes that existed, and their names.

use std::collections::VecDeque;
use std::sync::Arc;

use quire_catalog::Catalog;
use quire_storage::Version;

/// The largest number of kept catalogs: each has a table of all names.
const CATALOGS_MAX: usize = 64;

/// Replaced catalogs, oldest first.
#[derive(Default)]
pub(crate) struct PastCatalogs {
    /// Each catalog with the version of the commit that replaced it.
    replaced: VecDeque<(Version, Arc<Catalog>)>,
    /// The catalogs before this version are no longer known.
    known_since: Version,
}

impl PastCatalogs {
    /// Keeps the catalog that the commit `by` has replaced.
    pub fn keep(&mut self, catalog: Arc<Catalog>, by: Version) {
        self.replaced.push_back((by, catalog));
        if self.replaced.len() > CATALOGS_MAX
            && let Some((version, _)) = self.replaced.pop_front()
        {
            self.known_since = version;
        }
    }

    /// Returns the catalog of a snapshot; `published` is the latest.
    pub fn at(&self, snapshot: Version, published: &Arc<Catalog>) -> Option<Arc<Catalog>> {
        if snapshot < self.known_since {
            return None;
        }
        let next = self.replaced.partition_point(|(by, _)| *by <= snapshot);
        let catalog = self.replaced.get(next).map_or(published, |(_, catalog)| catalog);
        Some(Arc::clone(catalog))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_snapshot_gets_the_catalog_of_its_time() {
        let catalog = || Arc::new(Catalog::new(Vec::new()));
        let (first, second, latest) = (catalog(), catalog(), catalog());
        let version = Version::from_u64;
        let mut past = PastCatalogs::default();
        past.keep(Arc::clone(&first), version(5));
        past.keep(Arc::clone(&second), version(8));
        let is = |past: &PastCatalogs, at: u64, expected: &Arc<Catalog>| {
            past.at(version(at), &latest).is_some_and(|found| Arc::ptr_eq(&found, expected))
        };
        assert!(is(&past, 0, &first) && is(&past, 4, &first));
        assert!(is(&past, 5, &second) && is(&past, 7, &second));
        assert!(is(&past, 8, &latest) && is(&past, 100, &latest));
        for by in 0..CATALOGS_MAX as u64 {
            past.keep(Arc::clone(&second), version(10 + by));
        }
        assert!(past.at(version(7), &latest).is_none(), "forgotten, not taken for another");
        assert!(is(&past, 8, &second));
    }
}
