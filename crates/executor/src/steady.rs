//! Keeps an execution at one state of the database where newer states would mix up its results.
//!
//! An execution takes newer views from time to time. If it reads several collections, it reopens the state of its
//! first view instead, as long as that state is kept: a commit that changes both sides of a join is then visible
//! completely or not at all. Afterwards it goes on with the newest state (docs/adr/0050-one-state-of-a-join.md).
//!
//! An execution that reads a time-series collection must not lose points, or return them twice, while other commits move
//! points between records and buckets. As long as no points have moved, it goes on as over any other collection. Closing
//! waits until no such execution is open. When other statements have moved points since its last view, or closing has waited
//! too long, it stays at the state of that view from then on, as a snapshot read does.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use quire_catalog::{Collection, CollectionId};
use quire_collections::{SeriesReading, Store, View};
use quire_error::{ErrorCode, Result};
use quire_planner::{Inner, Node, Plan};
use quire_storage::{ClusterTime, Version};

use crate::views::{FreshViews, Views};

/// The state of an execution that does not always take newer views.
pub(crate) struct Steady {
    store: Arc<Store>,
    /// The time-series collections that the plan reads.
    series: Vec<CollectionId>,
    /// True if the plan reads several collections, or one several times.
    joins: bool,
    /// The last view of the execution.
    version: Version,
    time: ClusterTime,
    /// True if points have moved since: the execution can go on only at that view.
    must_stay: bool,
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
}

/// Returns true if the stages of a plan read a collection besides that of its query.
fn joins(node: &Node) -> bool {
    let mut node = node;
    while let Node::Stage { inner, input, .. } = node {
        let joins = match inner {
            Inner::Nothing => false,
            Inner::Union(_) | Inner::Foreign(_) => true,
            Inner::Branches(branches) => branches.iter().any(joins),
        };
        if joins {
            return true;
        }
        node = input;
    }
    false
}

impl Steady {
    /// Returns the state of an execution whose plan was made on `view`. `series` are the time-series collections that
    /// the planner has seen. `None` if the execution can take any newer view.
    pub fn of(plan: &Plan, series: SeenSeries, view: &View<'_>) -> Option<Box<Steady>> {
        let may_renew = !series.has_rows_only.get();
        let (series, joins) = (series.collections.into_inner(), joins(&plan.root));
        (joins || !series.is_empty()).then(|| {
            let store = Arc::clone(view.shared_store());
            Box::new(Steady {
                _reading: series.iter().map(|id| store.reading_series(*id)).collect(),
                store,
                series,
                joins,
                version: view.version(),
                time: view.cluster_time(),
                must_stay: false,
                may_renew,
            })
        })
    }

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
        self.series.iter().any(|id| self.store.moved_since(*id, self.version))
    }

    /// Returns views at the last view of the execution; `None` if it may go on with newer ones.
    fn reopened(&mut self) -> Result<Option<FreshViews>> {
        self.must_stay = self.must_stay || self.has_moved();
        if !self.must_stay && !self.joins {
            return Ok(None);
        }
        match FreshViews::at(&self.store, self.time) {
            Err(error) if !self.must_stay && error.code() == ErrorCode::SnapshotTooOld => Ok(None),
            reopened => reopened.map(Some),
        }
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
    /// Goes on with the views of the call, or stays at the last view.
    fn follow(&mut self) -> Result<()> {
        let may_renew = std::mem::take(&mut self.steady.may_renew);
        self.own = None;
        if self.views.is_pinned() {
            return Ok(());
        }
        if may_renew && self.steady.has_moved() {
            // Between the view of the plan and the mark that keeps closing waiting.
            self.views.renew()?;
            self.steady.go_on_at(&self.views.view());
        }
        if self.views.view().version() == self.steady.version {
            return Ok(());
        }
        self.own = self.steady.reopened()?;
        if self.own.is_none() {
            self.steady.go_on_at(&self.views.view());
        }
        Ok(())
    }

    /// Returns true if no later view of this call can be another one.
    fn has_settled(&self) -> bool {
        self.steady.must_stay && self.own.is_some()
    }
}

impl Views for SteadyViews<'_> {
    fn view(&self) -> View<'_> {
        match &self.own {
            Some(own) => own.view(),
            None => self.views.view(),
        }
    }

    /// Also ends the use of an old view whose state is no longer kept for others.
    fn renew(&mut self) -> Result<()> {
        if self.has_settled() {
            return Ok(());
        }
        self.views.renew()?;
        self.follow()
    }

    fn renew_settled(&mut self, collection: &Collection) -> Result<()> {
        if self.has_settled() {
            return Ok(());
        }
        self.views.renew_settled(collection)?;
        self.follow()
    }

    fn is_pinned(&self) -> bool {
        self.has_settled() || self.views.is_pinned()
    }

    fn may_be_old(&self) -> bool {
        self.own.is_some() || self.views.may_be_old()
    }
}
