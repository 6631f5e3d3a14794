//! `$sample`: rows at random (reservoir sampling: Vitter 1985, algorithm R).

use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operator::{BoxedOperator, Operator, over};
use crate::row::Row;

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;

/// The stage.
pub(crate) struct Sample {
    pub input: BoxedOperator,
    pub size: u64,
    pub chosen: Option<Vec<Row>>,
    pub stats: NodeStats,
}

impl Sample {
    fn collect(&mut self, run: &mut Run<'_>) -> Result<Vec<Row>> {
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        let (mut chosen, mut rows, mut met) = (Vec::new(), Vec::new(), 0u64);
        let mut random = run.env.shared.random()? | 1;
        let mut below = |bound: u64| {
            random ^= random >> 12;
            random ^= random << 25;
            random ^= random >> 27;
            random.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound.max(1)
        };
        loop {
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            for row in rows.drain(..) {
                met += 1;
                if chosen.len() < size {
                    chosen.push(row);
                    let other = below(chosen.len() as u64) as usize;
                    let last = chosen.len() - 1;
                    chosen.swap(other, last);
                } else if let Ok(at) = usize::try_from(below(met))
                    && let Some(slot) = chosen.get_mut(at)
                {
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
