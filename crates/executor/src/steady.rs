//! Keeps an execution that reads a time-series collection from losing points, or returning them twice, while other
//! commits move points between records and buckets.
//!
//! An execution takes newer views from time to time. As long as no points have moved, it goes on as over any other
//! collection. When points may have moved since its last view, it stays at the state of that view from then on, as a
//! snapshot read does.

use std::cell::RefCell;
use std::sync::Arc;

use quire_catalog::{Collection, CollectionId};
use quire_collections::{Store, View};
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
}

/// Collects the time-series collections that are looked up while a request is planned.
#[derive(Default)]
pub(crate) struct SeenSeries(RefCell<Vec<CollectionId>>);

impl SeenSeries {
    pub fn add(&self, collection: &Collection) {
        let mut seen = self.0.borrow_mut();
        if !seen.contains(&collection.id) {
            seen.push(collection.id);
        }
    }

    /// Returns the state of an execution whose plan was made on `view`; `None` if it reads no time series.
    pub fn steady(self, view: &View<'_>) -> Option<Box<Steady>> {
        let collections = self.0.into_inner();
        (!collections.is_empty()).then(|| {
            Box::new(Steady {
                store: Arc::clone(view.shared_store()),
                collections,
                version: view.version(),
                time: view.cluster_time(),
                stays: false,
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
        let Steady { store, time, .. } = &*self.steady;
        if self.views.is_pinned() || self.own.is_some() {
            return Ok(());
        }
        let newer = self.views.view().version();
        let is_same = newer == self.steady.version;
        if self.steady.stays || !is_same && self.steady.has_moved() {
            self.own = Some(FreshViews::at(store, *time)?);
            self.steady.stays = true;
        } else {
            self.steady.version = newer;
            self.steady.time = self.views.view().cluster_time();
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
