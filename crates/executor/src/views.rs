//! Where an execution reads: a view that it may exchange for a newer one now and then, so that
//! no long scan and no idle cursor keeps old data alive.

use std::sync::Arc;

use quire_collections::{ReadView, Store, View};
use quire_error::Result;
use quire_storage::ClusterTime;

/// Gives an execution its view.
pub trait Views {
    /// Returns the view to read from until the next `renew`.
    fn view(&self) -> View<'_>;

    /// Exchanges the view for a newer one, unless this one is pinned.
    ///
    /// # Errors
    /// What the engine answers.
    fn renew(&mut self) -> Result<()>;

    /// True if `renew` keeps the view (a transaction, a snapshot read).
    fn is_pinned(&self) -> bool;
}

/// Views outside transactions: each renewal is a fresh snapshot, unless they stay at one time.
pub struct FreshViews {
    store: Arc<Store>,
    view: ReadView,
    at: Option<ClusterTime>,
}

impl FreshViews {
    /// Begins with a view of everything committed so far.
    ///
    /// # Errors
    /// What the engine answers.
    pub fn new(store: &Arc<Store>) -> Result<Self> {
        Ok(FreshViews::from_view(store, store.read_view()?))
    }

    /// Begins with a view that is already there.
    pub fn from_view(store: &Arc<Store>, view: ReadView) -> Self {
        FreshViews { store: Arc::clone(store), view, at: None }
    }

    /// Returns the state at one time, which it stays at.
    ///
    /// # Errors
    /// 239 SnapshotTooOld if that is not kept any more.
    pub fn at(store: &Arc<Store>, time: ClusterTime) -> Result<Self> {
        let view = store.read_view_at(time)?;
        Ok(FreshViews { at: Some(time), ..FreshViews::from_view(store, view) })
    }

    /// Returns the time that it stays at.
    pub fn time(&self) -> Option<ClusterTime> {
        self.at
    }
}

impl Views for FreshViews {
    fn view(&self) -> View<'_> {
        self.view.view()
    }

    fn renew(&mut self) -> Result<()> {
        if !self.is_pinned() {
            self.view = self.store.read_view()?;
        }
        Ok(())
    }

    fn is_pinned(&self) -> bool {
        self.at.is_some()
    }
}

/// The views of one call of a statement, as its unit of work gives them.
pub enum OpenViews<'u> {
    /// Outside a transaction.
    Fresh(FreshViews),
    /// A transaction's one view, with its own writes.
    Pinned(View<'u>),
}

impl OpenViews<'_> {
    /// The time that the views stay at, if a snapshot read chose one outside a transaction.
    pub fn time(&self) -> Option<ClusterTime> {
        match self {
            OpenViews::Fresh(views) => views.time(),
            OpenViews::Pinned(_) => None,
        }
    }
}

impl Views for OpenViews<'_> {
    fn view(&self) -> View<'_> {
        match self {
            OpenViews::Fresh(views) => views.view(),
            OpenViews::Pinned(view) => *view,
        }
    }

    fn renew(&mut self) -> Result<()> {
        match self {
            OpenViews::Fresh(views) => views.renew(),
            OpenViews::Pinned(_) => Ok(()),
        }
    }

    fn is_pinned(&self) -> bool {
        match self {
            OpenViews::Fresh(views) => views.is_pinned(),
            OpenViews::Pinned(_) => true,
        }
    }
}
