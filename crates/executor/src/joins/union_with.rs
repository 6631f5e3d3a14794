//! `$unionWith`: the rows of the input, then those of other plans.

use std::sync::Arc;

use quire_error::Result;
use quire_planner::Plan;
use quire_planner::explain::NodeStats;

use crate::build::build;
use crate::env::Run;
use crate::operators::{BoxedOperator, Operator};
use crate::row::Row;

/// One `$unionWith`, or several in a sequence.
pub(crate) struct UnionWith {
    input: BoxedOperator,
    input_ended: bool,
    others: Arc<[Plan]>,
    /// The running plan. It is built after the plans before it have ended.
    running: Option<BoxedOperator>,
    /// The statistics of the plans before it.
    ended: Vec<NodeStats>,
    stats: NodeStats,
}

impl UnionWith {
    pub fn new(input: BoxedOperator, others: &Arc<[Plan]>) -> Self {
        UnionWith {
            input,
            input_ended: false,
            others: Arc::clone(others),
            running: None,
            ended: Vec::new(),
            stats: NodeStats::default(),
        }
    }
}

impl Operator for UnionWith {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let start = out.len();
        if !self.input_ended {
            self.input_ended = !self.input.next(run, max, out)?;
            self.stats.returned += (out.len() - start) as u64;
        }
        let left = max - (out.len() - start);
        if !self.input_ended || left == 0 {
            return Ok(true);
        }
        let Some(plan) = self.others.get(self.ended.len()) else { return Ok(false) };
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(build(&plan.root, None)?),
        };
        let from = out.len();
        let more = running.next(run, left, out)?;
        out.iter_mut().skip(from).try_for_each(Row::know_doc)?;
        self.stats.returned += (out.len() - from) as u64;
        if !more {
            self.ended.push(running.stats());
            self.running = None;
        }
        self.stats.is_eof = self.ended.len() == self.others.len();
        Ok(!self.stats.is_eof)
    }

    fn rest(&mut self) {
        self.input.rest();
        if let Some(running) = &mut self.running {
            running.rest();
        }
    }

    fn stats(&self) -> NodeStats {
        let running = self.running.as_ref().map(|running| running.stats());
        let others = self.ended.iter().cloned().chain(running);
        let inputs = [self.input.stats()].into_iter().chain(others).collect();
        NodeStats { inputs, ..self.stats.clone() }
    }
}
