//! The operators with little state: LIMIT, SKIP, SUBPLAN, COUNT, RETURN_KEY.

use quire_document::{DocBuf, Value, ValueBuf};
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::{BoxedOperator, Operator, Passed, over, pass_by, pass_on};
use crate::row::{Row, nested};

/// Returns at most `count` rows of its input, then ends.
pub(crate) struct Limit {
    input: BoxedOperator,
    count: u64,
    left: u64,
    stats: NodeStats,
}

impl Limit {
    pub fn new(input: BoxedOperator, count: u64) -> Self {
        Limit { input, count, left: count, stats: NodeStats::default() }
    }
}

impl Operator for Limit {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let before = self.stats.returned;
        let (input, stats) = (&mut self.input, &mut self.stats);
        let mut pass = |run: &mut Run<'_>| pass_on(input, stats, run, max.min(left), out);
        let more = left > 0 && run.wanting(run.wanted.min(left), &mut pass)?;
        self.left -= self.stats.returned - before;
        self.stats.is_eof = !more || self.left == 0;
        Ok(!self.stats.is_eof)
    }

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        self.left = self.count;
        self.input.restart(rows)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// Skips the first `count` rows of its input.
pub(crate) struct Skip {
    input: BoxedOperator,
    count: u64,
    left: u64,
    stats: NodeStats,
}

impl Skip {
    pub fn new(input: BoxedOperator, count: u64) -> Self {
        Skip { input, count, left: count, stats: NodeStats::default() }
    }
}

impl Operator for Skip {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        while self.left > 0 {
            let passed = self.input.pass(run, self.left)?;
            self.left -= passed.rows;
            self.stats.skipped += passed.rows;
            if !passed.more {
                self.left = 0;
                self.stats.is_eof = true;
                return Ok(false);
            }
            if run.nothing_yet.is_some() {
                return Ok(true);
            }
        }
        pass_on(&mut self.input, &mut self.stats, run, max, out)
    }

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        self.left = self.count;
        self.input.restart(rows)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// A stage that only shows in explain that its input was planned branch by branch.
pub(crate) struct Subplan {
    pub input: BoxedOperator,
    pub stats: NodeStats,
}

impl Operator for Subplan {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        pass_on(&mut self.input, &mut self.stats, run, max, out)
    }

    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        pass_by(&mut self.input, &mut self.stats, run, max)
    }

    fn counts(&self) -> bool {
        self.input.counts()
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// A scan of a clustered collection: its documents in the order of the clustered index. It counts
/// documents and no keys, because users see no index.
pub(crate) struct ClusteredScan(pub BoxedOperator);

impl Operator for ClusteredScan {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        self.0.next(run, max, out)
    }

    fn rest(&mut self) {
        self.0.rest();
    }

    fn stats(&self) -> NodeStats {
        NodeStats { inputs: Vec::new(), ..self.0.stats() }
    }
}

/// Counts rows and returns none.
pub(crate) struct Count {
    pub input: BoxedOperator,
    pub skip: u64,
    /// The largest number to count; 0 for all.
    pub limit: u64,
    pub stats: NodeStats,
}

impl Operator for Count {
    fn next(&mut self, run: &mut Run<'_>, _: usize, _: &mut Vec<Row>) -> Result<bool> {
        while !self.stats.is_eof {
            let wanted = match (self.skip - self.stats.skipped, self.limit) {
                (skip, _) if skip > 0 => skip,
                (_, 0) => u64::MAX,
                (_, limit) => limit - self.stats.counted,
            };
            if wanted == 0 {
                self.stats.is_eof = true;
                break;
            }
            let passed = self.input.pass(run, wanted)?;
            let skipped = passed.rows.min(self.skip - self.stats.skipped);
            self.stats.skipped += skipped;
            self.stats.counted += passed.rows - skipped;
            self.stats.is_eof = !passed.more;
        }
        Ok(false)
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

/// Returns index keys instead of documents.
pub(crate) struct ReturnKey {
    pub input: BoxedOperator,
    /// The fields that get the sort key of the row.
    pub sort_keys: Vec<String>,
    pub stats: NodeStats,
}

impl Operator for ReturnKey {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let start = out.len();
        let more = pass_on(&mut self.input, &mut self.stats, run, max, out)?;
        for row in out.iter_mut().skip(start) {
            let key = row.key_values()?;
            let sort_key = row.extra.as_ref().and_then(|extra| extra.sort_key.as_ref());
            let sort_keys = self.sort_keys.iter().zip(std::iter::repeat(sort_key));
            let sort_keys = sort_keys.filter_map(|(name, key)| Some((name.as_str(), key?)));
            let sort_keys = nested(&sort_keys.collect::<Vec<_>>());
            let doc = DocBuf::build(|writer| {
                for (field, value) in
                    key.iter().flat_map(|(keys, key)| keys.fields().iter().zip(key))
                {
                    let value = value.as_ref().map_or(Value::Null, ValueBuf::as_value);
                    if !sort_keys.as_doc().contains(&field.path) {
                        writer.append(&field.path, value);
                    }
                }
                writer.append_all(sort_keys.as_doc());
            });
            *row = Row { record: row.record, ..Row::made(doc) };
        }
        Ok(more)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
