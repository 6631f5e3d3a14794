//! The first stages of a `$facet`'s branches, where they keep less than all documents: a `$group`, a
//! `$sort` with a limit, a `$limit`, and what stands before one of them. They take the documents while the
//! input is read, in all threads that read it, so that nothing else has to keep these.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpalo::Bump;
use bytes::Bytes;
use quire_error::{Error, Result};
use quire_mql::EvalContext;
use quire_mql::sort::SortPattern;
use quire_planner::explain::NodeStats;

use crate::columns::Grouping;
use crate::env::{Env, Scope};
use crate::grouping::group::{GroupOp, Intake};
use crate::joins::rows::Counted;
use crate::operators::chain::{Chain, Sent, StepCounts};
use crate::operators::filtering::renew;
use crate::operators::sort::Sort;
use crate::operators::{BoxedOperator, Eof};
use crate::row::Row;
use crate::sorting::sorter::Sorter;
use crate::sorting::taker::SortTaker;
use crate::taking::{Documents, Given, Scratch, Taken, Taker};

/// The head of a branch, as all threads know it.
pub(crate) enum Head {
    /// A `$group`, with what stands before it.
    Group(Grouping),
    /// A `$sort` with a limit.
    Best(SortTaker),
    /// The first documents.
    First(First),
}

/// The first documents that come out of a chain.
pub(crate) struct First {
    chain: Chain,
    count: u64,
    /// As many have been found.
    enough: AtomicBool,
}

/// What a head has taken.
pub(crate) struct Collected {
    kept: Kept,
    /// What ended it. It takes nothing more.
    failed: Option<Error>,
}

enum Kept {
    Groups(Box<Intake>),
    Best(Box<Sorter>, StepCounts),
    First(Box<FirstRows>),
}

/// The first documents, kept as a sort by their numbers, which goes on on disk where memory ends.
struct FirstRows {
    sorter: Sorter,
    count: u64,
    passed: StepCounts,
}

impl Head {
    /// A `$sort` that keeps `limit` rows of those that come out of a chain. `None` if it sorts by more than
    /// documents.
    pub fn best(chain: Chain, pattern: &Arc<SortPattern>, limit: u64) -> Option<Self> {
        let sorter = Sorter::new(Arc::clone(pattern), limit);
        Some(Head::Best(SortTaker::new(&sorter)?.behind(chain)))
    }

    /// The first `count` documents that come out of a chain.
    pub fn first(chain: Chain, count: u64) -> Self {
        Head::First(First { chain, count, enough: AtomicBool::new(count == 0) })
    }

    /// What it has before the first document.
    pub fn begin(&self, env: &Env) -> Collected {
        let kept = match self {
            Head::Group(grouping) => Kept::Groups(Box::new(Intake::new(grouping, env))),
            Head::Best(taker) => Kept::Best(Box::new(taker.sorter()), taker.chain().none_passed()),
            Head::First(first) => {
                let (sorter, passed) = (Sorter::by_given_keys("$facet"), first.chain.none_passed());
                Kept::First(Box::new(FirstRows { sorter, count: 0, passed }))
            }
        };
        Collected { kept, failed: None }
    }
}

impl Taker for Head {
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Option<Taken> {
        match self {
            Head::Group(grouping) => grouping.take(docs, scratch, scope),
            Head::Best(taker) => taker.take(docs, scratch, scope),
            Head::First(first) => first.take(docs, scratch, scope),
        }
    }
}

impl Taker for First {
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Option<Taken> {
        let (mut rows, mut passed) = (Vec::new(), self.chain.none_passed());
        let Scratch { arena, chunks, .. } = scratch;
        for (at, doc) in docs.docs.iter().enumerate() {
            if rows.len() as u64 >= self.count || self.enough.load(Ordering::Relaxed) {
                break;
            }
            renew(arena, scope.env).ok()?;
            let context = EvalContext::new(arena, *doc, &scope.env.shared);
            let mut emit = |context: &EvalContext<'_>| {
                let doc = chunks.copy(context.root.as_bytes());
                rows.push(Row::of_document((docs.record)(at), doc));
                Ok(())
            };
            let context = context.with_variables(scope.variables);
            self.chain.run_on(&context, &mut passed, &mut emit).ok()?;
        }
        Some(Taken::Rows(rows, passed))
    }
}

impl FirstRows {
    fn push(&mut self, first: &First, row: Row, env: &Env) -> Result<()> {
        if self.count >= first.count {
            return Ok(());
        }
        self.sorter.push_keyed(&self.count.to_be_bytes(), row, env)?;
        self.count += 1;
        first.enough.store(self.count >= first.count, Ordering::Relaxed);
        Ok(())
    }
}

impl Collected {
    /// Takes rows whose documents are known.
    pub fn take_rows(&mut self, head: &Head, rows: &mut [Row], scope: Scope<'_>) {
        if self.failed.is_none() {
            self.failed = self.kept.take_rows(head, rows, scope).err();
        }
    }

    /// Takes what was read for the head.
    pub fn take(&mut self, head: &Head, taken: Taken, scope: Scope<'_>) {
        if self.failed.is_none() {
            self.failed = self.kept.take(head, taken, scope).err();
        }
    }

    /// Makes the operator of the head, which has taken everything. `leaf` are the counters of the input.
    ///
    /// # Errors
    /// What ended it.
    pub fn finish(
        self,
        head: Head,
        leaf: NodeStats,
        keep_sort_key: bool,
        env: &Env,
    ) -> Result<BoxedOperator> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let ended = |stats| Box::new(Counted { rows: Box::new(Eof), stats });
        Ok(match (head, self.kept) {
            (Head::Group(grouping), Kept::Groups(intake)) => {
                Box::new(GroupOp::of_all(ended(leaf), grouping, *intake, env)?)
            }
            (Head::Best(taker), Kept::Best(sorter, passed)) => {
                let leaf = taker.chain().stats(&passed, leaf);
                Box::new(Sort::of_all(ended(leaf), *sorter, keep_sort_key, env)?)
            }
            (Head::First(first), Kept::First(rows)) => {
                let stats = first.chain.stats(&rows.passed, leaf);
                let rows = Sort::of_all(Box::new(Eof), rows.sorter, false, env)?;
                Box::new(Counted { rows: Box::new(rows), stats })
            }
            _ => return Err(Taken::mistaken("$facet")),
        })
    }
}

impl Kept {
    fn take_rows(&mut self, head: &Head, rows: &mut [Row], scope: Scope<'_>) -> Result<()> {
        match (self, head) {
            (Kept::Groups(intake), Head::Group(grouping)) => {
                intake.take_rows(grouping, rows, scope)
            }
            (Kept::Best(sorter, passed), Head::Best(taker)) => {
                run_each(taker.chain(), rows, passed, scope, &mut |row| sorter.push(row, scope))
            }
            (Kept::First(kept), Head::First(first)) => rows.chunks(1).try_for_each(|row| {
                if kept.count >= first.count {
                    return Ok(());
                }
                let mut passed = std::mem::take(&mut kept.passed);
                let mut keep = |row| kept.push(first, row, scope.env);
                run_each(&first.chain, row, &mut passed, scope, &mut keep)?;
                kept.passed = passed;
                Ok(())
            }),
            _ => Err(Taken::mistaken("$facet")),
        }
    }

    fn take(&mut self, head: &Head, taken: Taken, scope: Scope<'_>) -> Result<()> {
        match (self, head, taken) {
            (Kept::Groups(intake), Head::Group(grouping), taken) => {
                intake.take(grouping, Given::Taken(taken), scope)
            }
            (Kept::Best(sorter, passed), Head::Best(taker), Taken::Keyed(keyed)) => {
                passed.add(&keyed.passed);
                taker.give(Given::Taken(Taken::Keyed(keyed)), sorter, scope)
            }
            (Kept::First(kept), Head::First(first), Taken::Rows(rows, passed)) => {
                kept.passed.add(&passed);
                rows.into_iter().try_for_each(|row| kept.push(first, row, scope.env))
            }
            _ => Err(Taken::mistaken("$facet")),
        }
    }
}

/// Gives what a chain makes of each row to `emit`.
fn run_each(
    chain: &Chain,
    rows: &[Row],
    passed: &mut StepCounts,
    scope: Scope<'_>,
    emit: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    if chain.is_empty() {
        return rows.iter().cloned().try_for_each(emit);
    }
    let mut arena = Bump::new();
    rows.iter().try_for_each(|row| {
        let mut take = |context: &EvalContext<'_>| {
            let doc = Bytes::copy_from_slice(context.root.as_bytes());
            emit(Row { record: row.record, doc: Some(doc), extra: row.extra.clone() })
        };
        chain.run(Sent { row, scope }, &mut arena, passed, &mut take)
    })
}
