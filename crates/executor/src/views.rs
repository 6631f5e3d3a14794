//! Where an execution reads: a view that it may exchange for a newer one now and then, so that
//! no long scan and no idle cursor keeps old data alive.

use std::sync::Arc;

use quire_collections::{ReadView, Store, View};
use quire_error::Result;

/// Gives an execution its view.
pub trait Views {
    /// The view to read from until the next `renew`.
    fn view(&self) -> View<'_>;

    /// Exchanges the view for a newer one, unless this one is pinned.
    ///
    /// # Errors
    /// What the engine answers.
    fn renew(&mut self) -> Result<()>;

    /// True if `renew` keeps the view (a transaction, a snapshot read).
    fn is_pinned(&self) -> bool;
}

/// Views outside transactions: each renewal is a fresh snapshot.
pub struct FreshViews {
    store: Arc<Store>,
    view: ReadView,
}

impl FreshViews {
    /// Begins with a view of everything committed so far.
    ///
    /// # Errors
    /// What the engine answers.
    pub fn new(store: &Arc<Store>) -> Result<Self> {
        Ok(FreshViews { store: Arc::clone(store), view: store.read_view()? })
    }

    /// Begins with a view that is already there.
    pub fn from_view(store: &Arc<Store>, view: ReadView) -> Self {
        FreshViews { store: Arc::clone(store), view }
    }
}

impl Views for FreshViews {
    fn view(&self) -> View<'_> {
        self.view.view()
    }

    fn renew(&mut self) -> Result<()> {
        self.view = self.store.read_view()?;
        Ok(())
    }

    fn is_pinned(&self) -> bool {
        false
    }
}

/// One view for the whole execution: a transaction's, or a snapshot read's.
pub struct PinnedView<'v>(pub View<'v>);

impl Views for PinnedView<'_> {
    fn view(&self) -> View<'_> {
        self.0
    }

    fn renew(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_pinned(&self) -> bool {
        true
    }
}
