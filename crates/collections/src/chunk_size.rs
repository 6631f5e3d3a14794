//! How many rows the next chunk of a long write takes. A chunk that meets a conflict is done again
//! from its beginning, so under constant conflicts a large chunk never ends; a small one does.

/// The rows of the next chunk: a quarter after each conflict, twice as many after each success.
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

    /// Returns the most rows that the next chunk may take, at least 1.
    pub const fn rows(self) -> usize {
        self.rows
    }

    /// After a conflict. A chunk of one row waits in line for the key that it lost.
    pub fn lost(&mut self) {
        self.rows = (self.rows / 4).max(1);
    }

    /// After a commit.
    pub fn won(&mut self) {
        self.rows = self.rows.saturating_mul(2).min(self.rows_max);
    }
}
