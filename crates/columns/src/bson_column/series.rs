//! The values of one stream: a literal, and blocks of differences to it.

use quire_document::{Element, Type};
use quire_error::Result;

use super::blocks::Blocks;
use super::malformed;
use super::numbers::{Scale, has_steps, is_wide, number_of, put};

/// A stream of values.
#[derive(Debug)]
pub(super) struct Series<'a> {
    /// The type of the last value; `None` if there is none, and every number means a missing value.
    kind: Option<Type>,
    /// The last value in wire form.
    value: Vec<u8>,
    /// The number of the last value, to which differences are added.
    number: u128,
    /// The last difference, of types that have differences of differences.
    step: u64,
    scale: Scale,
    blocks: Blocks<'a>,
}

impl Default for Series<'_> {
    fn default() -> Self {
        let (kind, value, number, step) = (None, Vec::new(), 0, 0);
        let mut blocks = Blocks::default();
        blocks.reset();
        Series { kind, value, number, step, scale: Scale::Bits, blocks }
    }
}

impl<'a> Series<'a> {
    /// Returns the stream whose last value is this one.
    pub fn after(element: Element<'_>) -> Self {
        let mut series = Series::default();
        series.set(element);
        series
    }

    /// Goes on from a literal.
    pub fn set(&mut self, element: Element<'_>) {
        self.kind = Some(element.kind());
        self.value.clear();
        self.value.extend_from_slice(element.value_bytes());
        self.number = number_of(element);
        self.step = 0;
        self.blocks.reset();
    }

    /// Goes on with blocks.
    ///
    /// # Errors
    /// 378 NonConformantBSON for a scale that the type, or the last value, does not have.
    pub fn begin(&mut self, scale: Scale, words: &'a [u8]) -> Result<()> {
        if self.kind == Some(Type::Double) {
            let bits = self.value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let number = scale.number_of(f64::from_bits(bits));
            let number = number.ok_or_else(|| malformed("a double does not have its scale"))?;
            self.number = u128::from(number as u64);
        } else if scale != Scale::Bits {
            return Err(malformed("a scale for values that are no doubles"));
        }
        self.scale = scale;
        self.blocks.begin(words);
        Ok(())
    }

    /// Returns true if no numbers are left in the blocks.
    pub fn is_done(&self) -> bool {
        self.blocks.is_done()
    }

    /// Moves to the next value of the blocks, and returns whether there is one or it is missing; `None` after the last.
    ///
    /// # Errors
    /// 378 NonConformantBSON for damaged blocks, and for a difference that gives no value.
    pub fn advance(&mut self) -> Result<Option<bool>> {
        let is_wide = self.kind.is_some_and(is_wide);
        let Some(number) = self.blocks.next(is_wide)? else { return Ok(None) };
        let (Some(number), Some(kind)) = (number, self.kind) else { return Ok(Some(false)) };
        let has_steps = has_steps(kind);
        if number == 0 && !has_steps {
            return Ok(Some(true));
        }
        // The lowest bit is the sign.
        let difference = (number >> 1) ^ (number & 1).wrapping_neg();
        self.number = match (is_wide, has_steps) {
            (true, _) => self.number.wrapping_add(difference),
            (false, true) => {
                self.step = self.step.wrapping_add(difference as u64);
                u128::from((self.number as u64).wrapping_add(self.step))
            }
            (false, false) => u128::from((self.number as u64).wrapping_add(difference as u64)),
        };
        put(kind, self.number, self.scale, &mut self.value)?;
        Ok(Some(true))
    }

    /// Returns the last value with an empty name.
    pub fn value(&self) -> Option<Element<'_>> {
        self.kind.map(|kind| Element::from_parts(kind, b"", &self.value))
    }
}
