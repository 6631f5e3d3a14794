//! `$rank`, `$denseRank`, `$documentNumber`: the positions of documents in their partition.

use super::partition::Evaluator;
use crate::context::EvalContext;
use crate::sort::{SortKey, SortPattern};
use quire_document::Value;
use quire_error::Result;
use std::collections::VecDeque;
use std::sync::Arc;

/// How documents with equal sort keys are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// They have the same rank, and a gap follows it.
    Gaps,
    /// They have the same rank, and no gap follows it.
    Dense,
    /// Each has its own number.
    Number,
}

/// Counts the documents of a partition.
#[derive(Debug)]
pub(super) struct Ranking {
    rank: Rank,
    pattern: Arc<SortPattern>,
    /// The sort keys of the documents without a result yet.
    keys: VecDeque<SortKey>,
    last: Option<SortKey>,
    current: i64,
    bytes: usize,
}

impl Ranking {
    pub fn new(rank: Rank, pattern: Arc<SortPattern>) -> Self {
        Ranking { rank, pattern, keys: VecDeque::new(), last: None, current: 0, bytes: 0 }
    }
}

impl Evaluator for Ranking {
    fn push(&mut self, cx: &EvalContext<'_>) -> Result<()> {
        if self.rank != Rank::Number {
            let key = self.pattern.owned_key(cx.root, cx)?;
            self.bytes += key.size();
            self.keys.push_back(key);
        }
        Ok(())
    }

    fn end(&mut self) {}

    fn is_ready(&mut self, _: u64) -> Result<bool> {
        Ok(true)
    }

    fn result<'a>(&mut self, at: u64, _: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let number = i64::try_from(at + 1).unwrap_or(i64::MAX);
        let key = self.keys.pop_front();
        self.bytes -= key.as_ref().map_or(0, SortKey::size);
        let ties = match (&self.last, &key) {
            (Some(last), Some(key)) => self.pattern.compare(&last.values(), &key.values()).is_eq(),
            _ => false,
        };
        match self.rank {
            Rank::Number => self.current = number,
            _ if ties => {}
            Rank::Gaps => self.current = number,
            Rank::Dense => self.current += 1,
        }
        self.last = key;
        let current = self.current;
        Ok(Some(i32::try_from(current).map_or(Value::Int64(current), Value::Int32)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
