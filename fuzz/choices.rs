//! Interprets the bytes of an input as choices, for targets that generate requests from a grammar.

/// The remaining bytes.
pub struct Choices<'b>(pub &'b [u8]);

impl Choices<'_> {
    /// Returns a number below `below`; 0 after the last byte.
    pub fn next(&mut self, below: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % below.max(1)
    }
}
