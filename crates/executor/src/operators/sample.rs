//! `$sample`: rows at random (reservoir sampling: Vitter 1985, algorithm R).

use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::{BoxedOperator, Operator, over};
use crate::row::Row;
use crate::scans::random_picks::Random;

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;

/// The stage.
pub(crate) struct Sample {
    input: BoxedOperator,
    size: u64,
    chosen: Option<Vec<Row>>,
    stats: NodeStats,
}

impl Sample {
    /// So many of the input's rows.
    pub fn new(input: BoxedOperator, size: u64) -> Self {
        let stats = NodeStats::default();
        Sample { input, size, chosen: None, stats }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<Vec<Row>> {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let (mut chosen, mut rows, mut met) = (Vec::new(), Vec::new(), 0u64);
        let mut random = Random::new(run)?;
        loop {
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            for mut row in rows.drain(..) {
                met += 1;
                if chosen.len() < size {
                    row.detach();
                    chosen.push(row);
                    let other = random.below(chosen.len() as u64) as usize;
                    let last = chosen.len() - 1;
                    chosen.swap(other, last);
                } else if let Ok(at) = usize::try_from(random.below(met))
                    && let Some(slot) = chosen.get_mut(at)
                {
                    row.detach();
                    *slot = row;
                }
            }
            if !more {
                return Ok(chosen);
            }
        }
    }
}

impl Operator for Sample {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut chosen = match self.chosen.take() {
            Some(chosen) => chosen,
            None => run.for_all(|run| self.collect(run))?,
        };
        let rest = chosen.split_off(chosen.len().saturating_sub(max));
        self.stats.returned += rest.len() as u64;
        out.extend(rest);
        self.stats.is_eof = chosen.is_empty();
        self.chosen = Some(chosen);
        Ok(!self.stats.is_eof)
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
