//! The conformance suite, in memory and on the simulated disk.

use std::sync::{Arc, Mutex};

use quire_storage::conformance::{Harness, run_all};
use quire_storage::{Crash, Engine, Faults, SimulatedDisk, open_memory};

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

/// The current disk. A restart kills the process without closing the engine.
#[derive(Default)]
struct Simulated(Mutex<Option<SimulatedDisk>>);

impl Harness for Simulated {
    fn open(&self) -> Arc<dyn Engine> {
        let disk = SimulatedDisk::new(Faults::none(1));
        let engine = disk.open().unwrap();
        *self.0.lock().unwrap() = Some(disk);
        engine
    }

    fn reopen(&self, _engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>> {
        let mut disk = self.0.lock().unwrap();
        let disk = disk.as_mut().unwrap();
        assert_eq!(disk.crash(Crash::Process), 0);
        Some(disk.open().unwrap())
    }
}

#[test]
fn the_simulated_disk_conforms() {
    run_all(&Simulated::default());
}
