//! `$sample`: random rows. Each row gets a random key, and the rows with the smallest keys are the
//! sample (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006, without
//! weights): a sort with a limit, which can spill to disk.

use quire_error::Result;
use quire_planner::explain::NodeStats;
use quire_storage::rng::Rng;

use crate::env::Run;
use crate::operators::{BoxedOperator, Filling, Operator, over};
use crate::row::Row;
use crate::sorting::sorter::{Sorted, Sorter};

/// The rows pulled at a time.
const ROWS_MAX: usize = 1024;

/// The operator of a `$sample` that sorts its input by random numbers.
pub(crate) struct Sample {
    input: BoxedOperator,
    size: u64,
    chosen: Option<Sorted>,
    stats: NodeStats,
}

impl Sample {
    /// Returns the operator; `size` is the number of rows to choose.
    pub fn new(input: BoxedOperator, size: u64) -> Self {
        let stats = NodeStats::default();
        Sample { input, size, chosen: None, stats }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<Sorted> {
        let mut sorter = Sorter::by_given_keys("$sample").with_limit(self.size);
        let (mut rows, mut random) = (Vec::new(), Rng::new(run.env.shared.random()?));
        loop {
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            for mut row in rows.drain(..) {
                // No later stage may treat the rows as sorted.
                if let Some(extra) = &mut row.extra {
                    extra.sort_key = None;
                }
                let key = random.next_u64().to_be_bytes();
                sorter.push_keyed(&key, row, run.env)?;
            }
            if !more {
                self.stats.spills = sorter.spills;
                return sorter.finish(run.env);
            }
        }
    }
}

impl Operator for Sample {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let chosen = match &mut self.chosen {
            Some(chosen) => chosen,
            None => {
                let chosen = run.for_all(|run| self.collect(run))?;
                self.chosen.insert(chosen)
            }
        };
        let mut filling = Filling::new(out, max);
        while !filling.is_full()
            && let Some(row) = chosen.next()?
        {
            self.stats.returned += 1;
            filling.push(row);
        }
        self.stats.is_eof = chosen.is_empty();
        Ok(!self.stats.is_eof)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
