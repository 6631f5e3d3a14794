//! The budget of one commit for derived writes. A write that changes thousands of other documents
//! would otherwise make a commit that no other writer can get past.

/// The most documents that the rules of one commit write.
pub const DERIVED_DOCUMENTS_MAX: usize = 1000;

/// The most bytes of these documents.
pub const DERIVED_BYTES_MAX: usize = 4 << 20;

/// What the rules of one commit may still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    documents: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { documents: DERIVED_DOCUMENTS_MAX, bytes: DERIVED_BYTES_MAX }
    }
}

impl Budget {
    /// Returns true if nothing is left.
    pub fn is_spent(&self) -> bool {
        self.documents == 0 || self.bytes == 0
    }

    /// Returns true if less than a tenth is left.
    pub fn is_low(&self) -> bool {
        self.documents < DERIVED_DOCUMENTS_MAX / 10 || self.bytes < DERIVED_BYTES_MAX / 10
    }

    /// Takes a derived write of a document of `bytes` bytes.
    pub fn spend(&mut self, bytes: usize) {
        self.documents = self.documents.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_bytes_end_the_budget() {
        let mut budget = Budget::default();
        (1..DERIVED_DOCUMENTS_MAX).for_each(|_| budget.spend(100));
        assert!(!budget.is_spent() && budget.is_low());
        budget.spend(100);
        assert!(budget.is_spent());

        let mut budget = Budget::default();
        budget.spend(DERIVED_BYTES_MAX - 1);
        assert!(!budget.is_spent());
        budget.spend(2);
        assert!(budget.is_spent());
    }
}
