//! Changes of the catalog that wait for open transactions. A transaction that does not use the
//! collection yet waits behind them. So a change comes to its turn however many transactions
//! follow each other.

use parking_lot::Mutex;

/// What a change of the catalog changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// Collections, by their full names.
    Collections(Vec<String>),
    /// Every collection of a database.
    Database(String),
}

impl Changed {
    /// Returns true if the collection of this full name is changed.
    pub fn covers(&self, namespace: &str) -> bool {
        match self {
            Changed::Collections(names) => names.iter().any(|name| name == namespace),
            Changed::Database(db) => {
                namespace.strip_prefix(db.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
        }
    }
}

/// The changes that wait or run now.
#[derive(Debug, Default)]
pub(crate) struct CatalogChanges {
    running: Mutex<Vec<Changed>>,
}

impl CatalogChanges {
    /// Adds a change until the answer is dropped.
    pub(crate) fn begin(&self, changed: Changed) -> RunningChange<'_> {
        self.running.lock().push(changed.clone());
        RunningChange { changes: self, changed }
    }

    /// Returns true if a change covers `namespace` and nothing that `is_used` names. A
    /// transaction that such a change waits for must not wait for the change.
    pub(crate) fn stand_before(&self, namespace: &str, is_used: impl Fn(&Changed) -> bool) -> bool {
        let running = self.running.lock();
        running.iter().any(|changed| changed.covers(namespace) && !is_used(changed))
    }
}

/// A change that waits or runs. Ends when it is dropped.
#[derive(Debug)]
pub struct RunningChange<'a> {
    changes: &'a CatalogChanges,
    changed: Changed,
}

impl RunningChange<'_> {
    /// What is changed.
    pub fn changed(&self) -> &Changed {
        &self.changed
    }
}

impl Drop for RunningChange<'_> {
    fn drop(&mut self) {
        let mut running = self.changes.running.lock();
        if let Some(at) = running.iter().position(|changed| *changed == self.changed) {
            running.swap_remove(at);
        }
    }
}
