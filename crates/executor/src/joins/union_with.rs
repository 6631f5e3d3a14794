//! `$unionWith`: the rows of the input, then those of another plan.

use std::sync::Arc;

use quire_error::Result;
use quire_planner::Plan;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::opening::build::build;
use crate::operators::{BoxedOperator, Operator};
use crate::row::Row;

/// The stage.
pub(crate) struct UnionWith {
    input: BoxedOperator,
    input_ended: bool,
    other: Arc<Plan>,
    /// Built once the input has ended.
    running: Option<BoxedOperator>,
    stats: NodeStats,
}

impl UnionWith {
    pub fn new(input: BoxedOperator, other: &Arc<Plan>) -> Self {
        UnionWith {
            input,
            input_ended: false,
            other: Arc::clone(other),
            running: None,
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
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(build(&self.other.root, None)?),
        };
        let from = out.len();
        let more = running.next(run, left, out)?;
        out.iter_mut().skip(from).try_for_each(Row::know_doc)?;
        self.stats.returned += (out.len() - from) as u64;
        self.stats.is_eof = !more;
        Ok(more)
    }

    fn rest(&mut self) {
        self.input.rest();
        if let Some(running) = &mut self.running {
            running.rest();
        }
    }

    fn stats(&self) -> NodeStats {
        let other = self.running.as_ref().map(|running| running.stats());
        let inputs = [self.input.stats()].into_iter().chain(other).collect();
        NodeStats { inputs, ..self.stats.clone() }
    }
}
