//! Writes the results of a pipeline: the loop of both `$out` and `$merge`. A batch of documents is
//! read on a view, then written in chunks, each of them its own commit.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::View;
use quire_document::{ArrayBuf, Doc};
use quire_error::Result;
use quire_mql::stage::{Merge, Out, Stage};
use quire_planner::{Inner, Node, Plan};
use quire_storage::{CommitOptions, Committed, Interrupt};

use crate::execution::Execution;
use crate::modify::merge::Merging;
use crate::modify::out::Replacing;
use crate::params::BatchLimits;
use crate::unit::UnitOfWork;
use crate::views::Views;

/// The documents that are read before they are written.
const BATCH: BatchLimits = BatchLimits { docs_max: 1000, bytes_max: 4 << 20, is_whole: false };

/// The last stage of a pipeline that writes.
pub(crate) enum ResultStage {
    Out(Arc<Out>),
    Merge(Arc<Merge>),
}

impl Execution {
    /// Returns true if it ends with a stage that writes: [`write_results`] runs it.
    pub fn writes(&self) -> bool {
        self.result_stage().is_some()
    }

    fn result_stage(&self) -> Option<ResultStage> {
        let Node::Stage { stage, .. } = &self.plan.root else { return None };
        match stage {
            Stage::Out(out) => Some(ResultStage::Out(Arc::clone(out))),
            Stage::Merge(merge) => Some(ResultStage::Merge(Arc::clone(merge))),
            _ => None,
        }
    }

    /// Calls `write` with the documents of each batch, in order.
    fn for_each_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        write: &mut dyn FnMut(&[Doc<'_>]) -> Result<()>,
    ) -> Result<()> {
        loop {
            let mut exhausted = Ok(false);
            let batch = ArrayBuf::build(|out| {
                let end = self.next_batch(views, interrupt, BATCH, out);
                exhausted = end.map(|end| end.is_last());
            });
            let exhausted = exhausted?;
            let docs: Vec<Doc<'_>> =
                batch.as_array().iter().filter_map(|doc| doc.as_document()).collect();
            write(&docs)?;
            if exhausted {
                return Ok(());
            }
            // The next batch must not use a view that was held during the writes.
            views.renew()?;
        }
    }
}

/// Runs an execution that ends with `$out` or `$merge`. The documents are read on `views` and
/// written through `unit`. `commit` has the durability of the last commit; `interrupt` ends the
/// execution early.
///
/// # Errors
/// The errors of reading and writing. Earlier commits of a `$merge` stay; a failed `$out` leaves
/// its target as it was.
pub fn write_results(
    execution: &mut Execution,
    views: &mut dyn Views,
    unit: &mut dyn UnitOfWork,
    commit: &CommitOptions,
    interrupt: &Arc<Interrupt>,
) -> Result<Option<Committed>> {
    let env = Arc::clone(&execution.env);
    env.set_interrupt(interrupt);
    env.always_interruptible(|| write_all(execution, views, unit, commit, interrupt))
}

fn write_all(
    execution: &mut Execution,
    views: &mut dyn Views,
    unit: &mut dyn UnitOfWork,
    commit: &CommitOptions,
    interrupt: &Arc<Interrupt>,
) -> Result<Option<Committed>> {
    match execution.result_stage() {
        None => Ok(None),
        Some(ResultStage::Out(out)) => {
            let replacing = Replacing::begin(&out, unit, commit)?;
            let filled = execution.for_each_batch(views, interrupt, &mut |docs| {
                replacing.insert(unit, docs, interrupt)
            });
            replacing.finish(filled, commit).map(|()| None)
        }
        Some(ResultStage::Merge(merge)) => {
            let mut merging = Merging::new(&merge, execution)?;
            let mut committed = None;
            let is_held = reads(&execution.plan, merging.namespace());
            let mut held = Held { views, is_held };
            execution.for_each_batch(&mut held, interrupt, &mut |docs| {
                committed = merging.write(unit, docs, interrupt)?.or(committed);
                Ok(())
            })?;
            Ok(committed)
        }
    }
}

/// Returns true if a plan reads a collection, itself or in a plan inside of its stages.
fn reads(plan: &Plan, namespace: &str) -> bool {
    plan.namespace == namespace || reads_below(&plan.root, namespace)
}

fn reads_below(node: &Node, namespace: &str) -> bool {
    let inside = match node {
        Node::Stage { inner: Inner::Union(plans), .. } => {
            plans.iter().any(|plan| reads(plan, namespace))
        }
        Node::Stage { inner: Inner::Branches(branches), .. } => {
            branches.iter().any(|branch| reads_below(branch, namespace))
        }
        Node::Stage { inner: Inner::Foreign(foreign), .. } => {
            reads(&foreign.whole, namespace)
                || foreign.tail.as_ref().is_some_and(|tail| reads_below(tail, namespace))
        }
        _ => false,
    };
    inside || node.inputs().iter().any(|input| reads_below(input, namespace))
}

/// Views that do not change while their pipeline writes to a collection that it reads: a newer view
/// would contain the pipeline's own documents, and the pipeline would not end.
struct Held<'v> {
    views: &'v mut dyn Views,
    is_held: bool,
}

impl Views for Held<'_> {
    fn view(&self) -> View<'_> {
        self.views.view()
    }

    fn renew(&mut self) -> Result<()> {
        if self.is_held { Ok(()) } else { self.views.renew() }
    }

    fn renew_settled(&mut self, collection: &Collection) -> Result<()> {
        if self.is_held { Ok(()) } else { self.views.renew_settled(collection) }
    }

    fn is_pinned(&self) -> bool {
        self.is_held || self.views.is_pinned()
    }
}
