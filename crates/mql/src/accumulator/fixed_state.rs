//! Accumulators whose state is a fixed set of numbers.

use super::State;
use crate::context::EvalContext;
use quire_document::{ArrayBuf, Value, ValueBuf};
use quire_error::Result;
use std::fmt;

/// A state of fixed size, which each value updates.
pub(super) trait FixedState: Send + fmt::Debug + Sized {
    /// Updates the state with a value.
    fn take(&mut self, value: Value<'_>);

    /// Returns the result so far.
    fn current(&self) -> Value<'static>;

    /// Returns the numbers that another state needs to merge this one.
    fn parts(&self) -> ArrayBuf;

    /// Merges the numbers that another state returned from `parts`.
    fn join(&mut self, parts: &[Value<'_>]);
}

impl<R: FixedState> State for R {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if let Some(value) = value {
            self.take(value);
        }
        Ok(())
    }

    fn result<'a>(&self, _: &EvalContext<'a>) -> Result<Value<'a>> {
        Ok(self.current())
    }

    fn is_fixed() -> bool {
        true
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn save(&self) -> ValueBuf {
        self.parts().into()
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        self.join(&super::elements(saved).collect::<Vec<_>>());
        Ok(())
    }
}
