//! The bytes of an input as choices, for targets that make requests of a grammar.

/// What is left of the bytes.
pub struct Choices<'b>(pub &'b [u8]);

impl Choices<'_> {
    /// A number below `below`; 0 once the bytes are used up.
    pub fn next(&mut self, below: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % below.max(1)
    }
}
