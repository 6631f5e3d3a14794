//! The projection stages.

use quire_document::Doc;
use quire_error::{Error, Result};
use quire_mql::filter::Filter;
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::operator::{BoxedOperator, Operator};
use crate::row::Row;

/// Reshapes documents.
pub(crate) struct Project {
    input: BoxedOperator,
    stats: NodeStats,
}

impl Project {
    pub fn new(input: BoxedOperator, spec: Doc<'_>, _: &Env, _: &Filter) -> Result<Self> {
        if !spec.is_empty() {
            return Err(Error::not_built("a projection"));
        }
        Ok(Project { input, stats: NodeStats::default() })
    }
}

/// Fails as compiling the projection would.
pub(crate) fn check(_: Doc<'_>, _: &Env, _: &Filter) -> Result<()> {
    Ok(())
}

impl Operator for Project {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let start = out.len();
        let more = self.input.next(run, max, out)?;
        self.stats.returned += (out.len() - start) as u64;
        self.stats.is_eof = !more;
        Ok(more)
    }

    fn stats(&self) -> NodeStats {
        NodeStats { inputs: vec![self.input.stats()], ..self.stats.clone() }
    }
}
