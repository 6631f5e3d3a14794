//! The engines of this crate against the conformance suite.

use std::sync::Arc;

use quire_storage::conformance::{Harness, run_all};
use quire_storage::{Engine, open_memory};

struct Memory;

impl Harness for Memory {
    fn open(&self) -> Arc<dyn Engine> {
        open_memory().unwrap()
    }
}

#[test]
fn memory_conforms() {
    run_all(&Memory);
}
