//! Keeps an execution that reads a time-series collection from losing points, or returning them twice, while other
//! commits move points between records and buckets.
//!
//! An execution takes newer views from time to time. As long as no points have moved, it goes on as over any other
//! collection. Closing waits until no such execution is open. When other statements have moved points since its last view,
//! or closing has waited too long, it stays at the state of that view from then on, as a snapshot read does.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use quire_catalog::{Collection, CollectionId};
use quire_collections::{SeriesReading, Store, View};
use quire_error::Result;
use quire_storage::{ClusterTime, Version};

use crate::views::{FreshViews, Views};

/// The time-series collections that a plan reads, and the last view of its execution.
pub(crate) struct Steady {
    store: Arc<Store>,
    collections: Vec<CollectionId>,
    version: Version,
    time: ClusterTime,
    /// True if the execution stays at that view.
    stays: bool,
    /// True while nothing was read yet, if the plan is right also for a newer view to which points have moved.
    may_renew: bool,
    /// Keeps closing waiting.
    _reading: Vec<SeriesReading>,
}

/// Collects the time-series collections that are looked up while a request is planned.
#[derive(Default)]
pub(crate) struct SeenSeries {
    collections: RefCell<Vec<CollectionId>>,
    /// True if one of them has no buckets, so that its plan reads records only.
    has_rows_only: Cell<bool>,
}

impl SeenSeries {
    pub fn add(&self, collection: &Collection, has_buckets: bool) {
        self.has_rows_only.set(self.has_rows_only.get() || !has_buckets);
        let mut seen = self.collections.borrow_mut();
        if !seen.contains(&collection.id) {
            seen.push(collection.id);
        }
    }

    /// Returns the state of an execution whose plan was made on `view`; `None` if it reads no time series.
    pub fn steady(self, view: &View<'_>) -> Option<Box<Steady>> {
        let collections = self.collections.into_inner();
        let may_renew = !self.has_rows_only.get();
        (!collections.is_empty()).then(|| {
            let store = Arc::clone(view.shared_store());
            Box::new(Steady {
                _reading: collections.iter().map(|id| store.reading_series(*id)).collect(),
                store,
                collections,
                version: view.version(),
                time: view.cluster_time(),
                stays: false,
                may_renew,
            })
        })
    }
}

impl Steady {
    /// Returns the views of a call that was given `views`.
    ///
    /// # Errors
    /// 239 SnapshotTooOld if points have moved and the state before that is no longer kept.
    pub fn over<'v>(&'v mut self, views: &'v mut dyn Views) -> Result<SteadyViews<'v>> {
        let mut over = SteadyViews { steady: self, views, own: None };
        over.follow()?;
        Ok(over)
    }

    fn go_on_at(&mut self, view: &View<'_>) {
        self.version = view.version();
        self.time = view.cluster_time();
    }

    /// Returns true if points may have moved since the last view. A newer view was taken before this call.
    fn has_moved(&self) -> bool {
        self.collections.iter().any(|id| self.store.moved_since(*id, self.version))
    }
}

/// The views of one call.
pub(crate) struct SteadyViews<'v> {
    steady: &'v mut Steady,
    views: &'v mut dyn Views,
    /// The view at which the execution stays.
    own: Option<FreshViews>,
}

impl SteadyViews<'_> {
    /// Goes on with the views of the call, unless points have moved.
    fn follow(&mut self) -> Result<()> {
        let may_renew = std::mem::take(&mut self.steady.may_renew);
        if self.views.is_pinned() || self.own.is_some() {
            return Ok(());
        }
        if may_renew && self.steady.has_moved() {
            // Between the view of the plan and the mark that keeps closing waiting.
            self.views.renew()?;
            self.steady.go_on_at(&self.views.view());
        }
        let Steady { store, time, .. } = &*self.steady;
        let newer = self.views.view().version();
        let is_same = newer == self.steady.version;
        if self.steady.stays || !is_same && self.steady.has_moved() {
            self.own = Some(FreshViews::at(store, *time)?);
            self.steady.stays = true;
        } else {
            self.steady.go_on_at(&self.views.view());
        }
        Ok(())
    }
}

impl Views for SteadyViews<'_> {
    fn view(&self) -> View<'_> {
        match &self.own {
            Some(own) => own.view(),
            None => self.views.view(),
        }
    }

    fn renew(&mut self) -> Result<()> {
        if self.own.is_none() {
            self.views.renew()?;
            self.follow()?;
        }
        Ok(())
    }

    fn renew_settled(&mut self, collection: &Collection) -> Result<()> {
        if self.own.is_none() {
            self.views.renew_settled(collection)?;
            self.follow()?;
        }
        Ok(())
    }

    fn is_pinned(&self) -> bool {
        self.own.is_some() || self.views.is_pinned()
    }
}
