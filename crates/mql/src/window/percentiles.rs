//! `$percentile`, `$median` for windows: the numbers of the window in order, in blocks, so that a
//! number can enter and leave without sorting the others again.

use super::contents::{Contents, Seen};
use crate::context::EvalContext;
use crate::expression::Quantiles;
use quire_document::Value;
use quire_error::Result;

/// The most numbers of a block; a larger one is split.
const BLOCK_NUMBERS_MAX: usize = 1024;

/// The numbers of a window in order. NaN and values that are not numbers are ignored.
#[derive(Debug)]
pub(super) struct Percentiles {
    quantiles: Quantiles,
    /// Each block is in order, and no number is greater than one of a later block.
    blocks: Vec<Vec<f64>>,
    count: usize,
}

impl Percentiles {
    pub fn new(quantiles: Quantiles) -> Self {
        Percentiles { quantiles, blocks: Vec::new(), count: 0 }
    }

    /// Returns the block to which a number belongs.
    fn block(&self, number: f64) -> usize {
        let ends_before =
            |block: &Vec<f64>| block.last().is_some_and(|last| last.total_cmp(&number).is_lt());
        let at = self.blocks.partition_point(ends_before);
        at.min(self.blocks.len().saturating_sub(1))
    }

    /// Returns the number at a rank.
    fn at(&self, rank: usize) -> Option<f64> {
        let mut rank = rank;
        for block in &self.blocks {
            match block.get(rank) {
                Some(number) => return Some(*number),
                None => rank -= block.len(),
            }
        }
        None
    }
}

fn number(value: Option<Value<'_>>) -> Option<f64> {
    value.and_then(|value| value.to_f64()).filter(|number| !number.is_nan())
}

impl Contents for Percentiles {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some(number) = number(value) else { return Ok(()) };
        self.count += 1;
        let at = self.block(number);
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(vec![number]);
            return Ok(());
        };
        let place = block.partition_point(|other| other.total_cmp(&number).is_le());
        block.insert(place, number);
        if block.len() > BLOCK_NUMBERS_MAX {
            let upper = block.split_off(BLOCK_NUMBERS_MAX / 2);
            self.blocks.insert(at + 1, upper);
        }
        Ok(())
    }

    fn remove(&mut self, value: Option<Value<'_>>) -> Result<()> {
        let Some(number) = number(value) else { return Ok(()) };
        let at = self.block(number);
        let Some(block) = self.blocks.get_mut(at) else { return Ok(()) };
        if let Ok(place) = block.binary_search_by(|other| other.total_cmp(&number)) {
            self.count -= 1;
            block.remove(place);
            if block.is_empty() {
                self.blocks.remove(at);
            }
        }
        Ok(())
    }

    fn result<'a>(&self, _: Seen<'_>, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        self.quantiles.of_ranks(self.count, &|rank| self.at(rank), cx).map(Some)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.count * size_of::<f64>()
    }
}
