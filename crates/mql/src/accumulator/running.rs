//! Accumulators of a fixed size: what they are given changes some numbers, and any other value
//! nothing.

use super::State;
use crate::context::EvalContext;
use quire_document::{ArrayBuf, Value, ValueBuf};
use quire_error::Result;
use std::fmt;

/// Numbers that are kept up to date.
pub(super) trait Running: Send + fmt::Debug + Sized {
    /// Takes a value.
    fn take(&mut self, value: Value<'_>);

    /// The result so far.
    fn current(&self) -> Value<'static>;

    /// Returns the numbers of which another server makes the whole.
    fn parts(&self) -> ArrayBuf;

    /// Takes what another one knew.
    fn join(&mut self, parts: &[Value<'_>]);
}

impl<R: Running> State for R {
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
