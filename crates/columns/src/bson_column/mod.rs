//! Reads a *BSON column*: the values of one field of many documents as MongoDB compresses them (binary subtype 7). MongoDB's
//! buckets of a time-series collection have one for each field, so this decoder is what a dump of MongoDB needs.
//!
//! The binary is a sequence of parts, each with a control byte in front, up to a zero byte:
//!
//! - a *literal*: an element with an empty name;
//! - one to sixteen *blocks* of differences to the value before them (`blocks`, `series`);
//! - an *interleaved* part: a document that names fields, then for each of them literals and blocks, which give documents
//!   (`interleaved`).
//!
//! The bytes come from outside: every length is checked, and a [`Budget`] bounds steps and memory, because a block of eight
//! bytes can stand for 1,920 values. (Format: MongoDB's "BSON Column Compression"; the blocks are those of Anh and Moffat,
//! "Index compression using 64-bit words", extended.)

mod blocks;
mod control;
#[cfg(test)]
mod encoder;
mod interleaved;
mod numbers;
mod series;
#[cfg(test)]
mod tests;

use quire_document::Element;
use quire_error::{Error, ErrorCode, Result};

use self::control::Control;
use self::interleaved::Interleaved;
use self::series::Series;

/// Returns a `NonConformantBSON` (378) for bytes that are no BSON column.
fn malformed(what: &str) -> Error {
    Error::new(ErrorCode::NonConformantBSON, format!("invalid BSON column: {what}"))
}

/// The steps that a field costs for which state is kept.
const STATE_STEPS: u64 = 256;

/// What the decoding of one or several columns may take.
///
/// A value costs a step, one of an interleaved part a step for each of its fields and for each 16 bytes. A column costs 256
/// steps, as does each field of an interleaved part, since state is kept for it (about 130 bytes).
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// Returns a budget of `steps`.
    pub const fn new(steps: u64) -> Self {
        Budget { left: steps }
    }

    /// Takes steps.
    ///
    /// # Errors
    /// 378 NonConformantBSON if fewer are left.
    pub fn spend(&mut self, steps: u64) -> Result<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(malformed("it stands for more values than a bucket may have")),
        }
    }
}

/// The values of a column, one after another.
#[derive(Debug)]
pub struct BsonColumn<'a> {
    bytes: &'a [u8],
    /// The position of the next control byte.
    at: usize,
    plain: Series<'a>,
    interleaved: Option<Interleaved<'a>>,
    is_missing: bool,
}

impl<'a> BsonColumn<'a> {
    /// Returns a reader of these bytes, before the first value.
    ///
    /// # Errors
    /// 378 NonConformantBSON if the budget is too small.
    pub fn new(bytes: &'a [u8], budget: &mut Budget) -> Result<Self> {
        budget.spend(STATE_STEPS)?;
        let plain = Series::default();
        Ok(BsonColumn { bytes, at: 0, plain, interleaved: None, is_missing: true })
    }

    /// Moves to the next value. Returns false after the last one.
    ///
    /// # Errors
    /// 378 NonConformantBSON for bytes that are no column, and if the budget is too small.
    pub fn advance(&mut self, budget: &mut Budget) -> Result<bool> {
        budget.spend(1)?;
        loop {
            if let Some(part) = &mut self.interleaved {
                if let Some(is_there) = part.advance(self.bytes, &mut self.at, budget)? {
                    self.is_missing = !is_there;
                    return Ok(true);
                }
                self.plain = part.last();
                self.interleaved = None;
            }
            if let Some(is_there) = self.plain.advance()? {
                self.is_missing = !is_there;
                return Ok(true);
            }
            match control::read(self.bytes, self.at)? {
                Control::End if self.at + 1 == self.bytes.len() => return Ok(false),
                Control::End => return Err(malformed("bytes follow its end")),
                Control::Literal { element, end } => {
                    self.plain.set(element);
                    self.is_missing = false;
                    self.at = end;
                    return Ok(true);
                }
                Control::Blocks { scale, words, end } => {
                    self.plain.begin(scale, words)?;
                    self.at = end;
                }
                Control::Interleaved { form, reference, end } => {
                    self.interleaved = Some(Interleaved::new(form, reference, budget)?);
                    self.at = end;
                }
            }
        }
    }

    /// Returns the current value with an empty name; `None` if the document has no such field.
    pub fn value(&self) -> Option<Element<'_>> {
        if self.is_missing {
            return None;
        }
        match &self.interleaved {
            Some(part) => part.value(),
            None => self.plain.value(),
        }
    }
}
