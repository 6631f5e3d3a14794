//! The conformance suite of the storage contract, on disk.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quire_storage::Engine;
use quire_storage::conformance::{Harness, run_all};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

#[derive(Default)]
struct Disk {
    options: LsmOptions,
    directories: Mutex<HashMap<usize, (PathBuf, Arc<TempDir>)>>,
}

fn identity(engine: &Arc<dyn Engine>) -> usize {
    Arc::as_ptr(engine).cast::<()>() as usize
}

impl Disk {
    fn open_in(&self, directory: Arc<TempDir>) -> Arc<dyn Engine> {
        let path = directory.path().to_owned();
        let opened = open(&path, self.options.clone()).unwrap();
        assert_eq!(opened.warnings, Vec::<String>::new());
        let mut directories = self.directories.lock().unwrap();
        directories.insert(identity(&opened.engine), (path, directory));
        opened.engine
    }
}

impl Harness for Disk {
    fn open(&self) -> Arc<dyn Engine> {
        self.open_in(Arc::new(TempDir::new().unwrap()))
    }

    fn reopen(&self, engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>> {
        engine.close().unwrap();
        let (_, directory) = self.directories.lock().unwrap().remove(&identity(&engine)).unwrap();
        drop(engine);
        Some(self.open_in(directory))
    }
}

#[test]
fn the_engine_conforms() {
    run_all(&Disk::default());
}

#[test]
fn the_engine_conforms_when_every_scan_remembers_empty_ranges() {
    let options = LsmOptions { slow_head: Duration::ZERO, ..LsmOptions::default() };
    run_all(&Disk { options, ..Disk::default() });
}
