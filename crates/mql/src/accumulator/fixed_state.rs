//! Accumulators whose state is a fixed set of numbers.

use super::State;
use crate::context::EvalContext;
use crate::totals::FixedState;
use quire_document::{Value, ValueBuf};
use quire_error::Result;

impl<R: FixedState> State for R {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        if let Some(value) = value {
            self.take(value);
        }
        Ok(())
    }

    fn add_repeated(&mut self, value: Option<Value<'_>>, count: u32) -> Result<()> {
        if let Some(value) = value {
            self.take_repeated(value, count);
        }
        Ok(())
    }

    fn add_doubles(&mut self, numbers: &[f64]) -> Result<()> {
        self.take_doubles(numbers);
        Ok(())
    }

    fn add_doubles_to_four(states: [&mut Self; 4], numbers: [&[f64]; 4]) -> Result<()> {
        Self::take_doubles_of_four(states, numbers);
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
