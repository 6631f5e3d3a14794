//! `$sample`: rows at random (reservoir sampling: Vitter 1985, algorithm R; of a whole collection,
//! records at random).

use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operator::{BoxedOperator, Operator, over};
use crate::random_picks::{Picks, Random, pick};
use crate::row::Row;

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;

/// The stage.
pub(crate) struct Sample {
    input: BoxedOperator,
    /// The input is all of a collection, so there may be no need to read it.
    whole_collection: bool,
    size: u64,
    chosen: Option<Vec<Row>>,
    stats: NodeStats,
}

impl Sample {
    /// So many of the input's rows.
    pub fn new(input: BoxedOperator, size: u64) -> Self {
        let stats = NodeStats::default();
        Sample { input, whole_collection: false, size, chosen: None, stats }
    }

    /// So many of a collection's documents, all of which `input` gives.
    pub fn of_collection(input: BoxedOperator, size: u64) -> Self {
        Sample { whole_collection: true, ..Self::new(input, size) }
    }

    fn choose(&mut self, run: &mut Run<'_>) -> Result<Vec<Row>> {
        if self.whole_collection {
            let Picks { rows, docs_examined } = pick(run, self.size)?;
            self.stats.docs_examined = docs_examined;
            if let Some(rows) = rows {
                return Ok(rows);
            }
        }
        run.for_all(|run| self.collect(run))
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
            None => self.choose(run)?,
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
