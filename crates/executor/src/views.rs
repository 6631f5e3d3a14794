//! The views of an execution. It may replace its view by a newer one from time to time, so that no
//! long scan and no idle cursor keeps old data alive.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::{ReadView, Store, View};
use quire_error::Result;
use quire_storage::ClusterTime;

/// Provides the view of an execution.
pub trait Views {
    /// Returns the view to read from until the next `renew`.
    fn view(&self) -> View<'_>;

    /// Replaces the view by a newer one, unless it is pinned.
    ///
    /// # Errors
    /// The errors of the engine.
    fn renew(&mut self) -> Result<()>;

    /// Replaces the view by a newer one that knows [`View::settled_below`] of a collection, unless it
    /// is pinned.
    ///
    /// # Errors
    /// The errors of the engine.
    fn renew_settled(&mut self, collection: &Collection) -> Result<()>;

    /// Returns true if `renew` keeps the view (in a transaction, or for a snapshot read).
    fn is_pinned(&self) -> bool;

    /// Returns true if newer commits than those of the view may be known, so that the counters of a
    /// collection are not those of the view.
    fn may_be_old(&self) -> bool {
        self.is_pinned()
    }
}

/// Views outside transactions: each renewal takes a new snapshot, unless they stay at one time.
pub struct FreshViews {
    store: Arc<Store>,
    view: ReadView,
    at: Option<ClusterTime>,
}

impl FreshViews {
    /// Returns a view of the latest committed state.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn new(store: &Arc<Store>) -> Result<Self> {
        Ok(FreshViews::from_view(store, store.read_view()?))
    }

    /// Begins with an existing view.
    pub fn from_view(store: &Arc<Store>, view: ReadView) -> Self {
        FreshViews { store: Arc::clone(store), view, at: None }
    }

    /// Returns views that stay at the state of one time.
    ///
    /// # Errors
    /// 239 SnapshotTooOld if that state is no longer kept.
    pub fn at(store: &Arc<Store>, time: ClusterTime) -> Result<Self> {
        let view = store.read_view_at(time)?;
        Ok(FreshViews { at: Some(time), ..FreshViews::from_view(store, view) })
    }

    /// Returns the time of the views, if they stay at one.
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

    fn renew_settled(&mut self, collection: &Collection) -> Result<()> {
        if !self.is_pinned() {
            self.view = self.store.settled_view(collection)?;
        }
        Ok(())
    }

    fn is_pinned(&self) -> bool {
        self.at.is_some()
    }
}

/// The views of one call of a statement.
pub enum OpenViews<'u> {
    /// Outside a transaction.
    Fresh(FreshViews),
    /// The only view of a transaction, with its own writes.
    Pinned(View<'u>),
}

impl OpenViews<'_> {
    /// Returns the time of the views, for a snapshot read outside a transaction.
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

    fn renew_settled(&mut self, collection: &Collection) -> Result<()> {
        match self {
            OpenViews::Fresh(views) => views.renew_settled(collection),
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
