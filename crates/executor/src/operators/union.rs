//! OR and SORT_MERGE: the rows of several inputs, each record once.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use bumpalo::Bump;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::sort::SortPattern;
use quire_planner::explain::NodeStats;

use crate::env::{Run, Scope};
use crate::operators::filtering::reset;
use crate::operators::metadata::metadata_of;
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::record_set::RecordSet;
use crate::row::Row;

/// Returns the rows of one input after the other.
pub(crate) struct Union {
    inputs: Vec<BoxedOperator>,
    at: usize,
    seen: RecordSet,
    stats: NodeStats,
}

impl Union {
    pub fn new(inputs: Vec<BoxedOperator>) -> Self {
        Union { inputs, at: 0, seen: RecordSet::default(), stats: NodeStats::default() }
    }
}

impl Operator for Union {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (mut rows, mut filling) = (Vec::new(), Filling::new(out, max));
        while !filling.is_full() {
            let Some(input) = self.inputs.get_mut(self.at) else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            if !input.next(run, filling.rows_left(), &mut rows)? {
                self.at += 1;
            }
            for row in rows.drain(..) {
                self.stats.dups_tested += 1;
                if self.seen.insert(row.record, run.env)? {
                    self.stats.returned += 1;
                    filling.push(row);
                } else {
                    self.stats.dups_dropped += 1;
                }
            }
        }
        Ok(true)
    }

    fn rest(&mut self) {
        self.inputs.iter_mut().for_each(|input| input.rest());
    }

    fn stats(&self) -> NodeStats {
        let inputs = self.inputs.iter().map(|input| input.stats()).collect();
        NodeStats { inputs, ..self.stats.clone() }
    }
}

/// An input of a merge, with its next row.
struct Branch {
    input: BoxedOperator,
    head: Option<(Vec<u8>, Row)>,
    queue: VecDeque<Row>,
    done: bool,
}

/// Merges sorted inputs.
pub(crate) struct Merge {
    branches: Vec<Branch>,
    pattern: Arc<SortPattern>,
    seen: RecordSet,
    arena: Bump,
    stats: NodeStats,
}

impl Merge {
    pub fn new(inputs: Vec<BoxedOperator>, pattern: Arc<SortPattern>) -> Self {
        let branches = inputs
            .into_iter()
            .map(|input| Branch { input, head: None, queue: VecDeque::new(), done: false })
            .collect();
        Merge {
            branches,
            pattern,
            seen: RecordSet::default(),
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    /// Gives every branch a next row whose record was not returned before.
    fn fill(&mut self, run: &mut Run<'_>) -> Result<()> {
        for branch in &mut self.branches {
            while branch.head.is_none() && !branch.done {
                let mut rows = Vec::new();
                let more = branch.input.next(run, 1, &mut rows)?;
                branch.queue.extend(rows);
                while let Some(row) = branch.queue.pop_front() {
                    self.stats.dups_tested += 1;
                    if !self.seen.insert(row.record, run.env)? {
                        self.stats.dups_dropped += 1;
                        continue;
                    }
                    let mut key = Vec::with_capacity(24);
                    sort_bytes(&self.pattern, &row, run.scope(), &mut self.arena, &mut key)?;
                    branch.head = Some((key, row));
                }
                branch.done = !more;
            }
        }
        Ok(())
    }
}

/// Returns the sort key of a row as bytes.
pub(crate) fn sort_bytes(
    pattern: &SortPattern,
    row: &Row,
    scope: Scope<'_>,
    arena: &mut Bump,
    key: &mut Vec<u8>,
) -> Result<()> {
    reset(arena);
    let bytes = row.doc_or_key()?;
    let doc = Doc::from_valid_bytes(&bytes);
    let metadata = pattern.reads_metadata().then(|| metadata_of(row)).transpose()?;
    let context = EvalContext::new(arena, doc, &scope.env.shared);
    let context = context.with_metadata(metadata.as_ref().map(DocBuf::as_doc));
    let values = pattern.key(doc, &context)?;
    pattern.append_bytes(&values, key);
    Ok(())
}

impl Operator for Merge {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            self.fill(run)?;
            let smallest = self
                .branches
                .iter()
                .enumerate()
                .filter_map(|(at, branch)| branch.head.as_ref().map(|(key, _)| (at, key)))
                .min_by(|a, b| match a.1.cmp(b.1) {
                    Ordering::Equal => a.0.cmp(&b.0),
                    order => order,
                })
                .map(|(at, _)| at);
            let head = smallest.and_then(|at| self.branches.get_mut(at)?.head.take());
            let Some((_, row)) = head else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            self.stats.returned += 1;
            filling.push(row);
        }
        Ok(true)
    }

    fn rest(&mut self) {
        for branch in &mut self.branches {
            let head = branch.head.as_mut().map(|(_, row)| row);
            branch.queue.iter_mut().chain(head).for_each(Row::detach);
            branch.input.rest();
        }
    }

    fn stats(&self) -> NodeStats {
        let inputs = self.branches.iter().map(|branch| branch.input.stats()).collect();
        NodeStats { inputs, ..self.stats.clone() }
    }
}
