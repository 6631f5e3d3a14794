//! The number of rows of the next chunk of a long write. After a conflict a chunk starts again from
//! its beginning, so under constant conflicts a large chunk never ends, but a small one does.

/// The size of the next chunk: a quarter after each conflict, twice as large after each success.
#[derive(Debug, Clone, Copy)]
pub struct ChunkSize {
    rows: usize,
    rows_max: usize,
}

impl ChunkSize {
    /// Starts with chunks of `rows_max` rows, which is also the upper bound.
    pub const fn new(rows_max: usize) -> Self {
        Self { rows: rows_max, rows_max }
    }

    /// Returns the largest number of rows of the next chunk, at least 1.
    pub const fn rows(self) -> usize {
        self.rows
    }

    /// Notes a conflict. A chunk of one row waits in the queue of the key that conflicted.
    pub fn lost(&mut self) {
        self.rows = (self.rows / 4).max(1);
    }

    /// Notes a commit.
    pub fn won(&mut self) {
        self.rows = self.rows.saturating_mul(2).min(self.rows_max);
    }
}
