//! Changes of the catalog that wait for open transactions. A transaction that has not used the
//! collection yet waits until the change is done. Without that rule, a sequence of overlapping
//! transactions could delay the change forever.

use parking_lot::Mutex;

/// The namespaces that a catalog change affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// Collections, by their full names.
    Collections(Vec<String>),
    /// Every collection of a database.
    Database(String),
}

impl Changed {
    /// Returns true if the change affects the collection with this full name.
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
    /// Registers a change until the returned value is dropped.
    pub(crate) fn begin(&self, changed: Changed) -> RunningChange<'_> {
        self.running.lock().push(changed.clone());
        RunningChange { changes: self, changed }
    }

    /// Returns true if a registered change covers `namespace` and `is_used` returns false for it.
    /// The changes for which `is_used` returns true wait for the calling transaction, so the
    /// transaction must not wait for them.
    pub(crate) fn is_blocked(&self, namespace: &str, is_used: impl Fn(&Changed) -> bool) -> bool {
        let running = self.running.lock();
        running.iter().any(|changed| changed.covers(namespace) && !is_used(changed))
    }
}

/// A registered change. Dropping it ends the registration.
#[derive(Debug)]
pub struct RunningChange<'a> {
    changes: &'a CatalogChanges,
    changed: Changed,
}

impl RunningChange<'_> {
    /// Returns what the change affects.
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
