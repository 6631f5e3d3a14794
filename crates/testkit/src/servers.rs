//! Services and servers in this process, on the memory engine and on disk.

use crate::client::{AtAddress, Connect, InProcess};
use quire_commands::{ChangeLogMode, ChangeLogOptions, Service, ServiceOptions};
use quire_server::{Endpoint, Listeners, Server, ServerOptions};
use quire_storage::Engine;
use std::path::Path;
use std::sync::Arc;

/// Opens a service over an engine as `quire serve` does, with test commands enabled.
pub fn service(engine: Arc<dyn Engine>, name: &'static str) -> Arc<Service> {
    let options = ServiceOptions {
        argv: vec!["quire".into(), "serve".into()],
        parameters: vec![("enableTestCommands".into(), "1".into())],
        change_log: ChangeLogOptions { mode: ChangeLogMode::On, ..ChangeLogOptions::default() },
        ..ServiceOptions::in_process(name, None)
    };
    Service::open(engine, options).expect("a new engine opens")
}

/// Returns a service in memory.
pub fn memory() -> Arc<Service> {
    service(quire_storage::memory::open_memory().expect("memory opens"), "memory")
}

/// Returns a service on disk.
pub fn on_disk(directory: &Path) -> Arc<Service> {
    let opened = quire_storage_lsm::open(directory, quire_storage_lsm::LsmOptions::default());
    service(opened.expect("a new directory opens").engine, "lsm")
}

/// A listening server on a free port of this machine.
pub struct Listening {
    /// The server that listens.
    pub server: Server,
    /// The address at which it listens.
    pub address: String,
}

/// Serves a service over sockets.
pub fn listen(service: Arc<Service>) -> Listening {
    let endpoint = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
    let listeners = Listeners::bind(&[endpoint]).expect("a free port");
    let server = Server::start(service, listeners, ServerOptions::default()).expect("threads");
    let address = match server.endpoints().first() {
        Some(Endpoint::Tcp(address)) => address.to_string(),
        other => panic!("no address: {other:?}"),
    };
    Listening { server, address }
}

/// The four ways in which every case is run.
pub struct Ways {
    listening: Vec<Listening>,
    ways: Vec<(&'static str, Box<dyn Connect>)>,
    _directories: Vec<tempfile::TempDir>,
}

impl Ways {
    /// Opens services in memory and on disk, each used in process and over a socket.
    pub fn open() -> Ways {
        let mut ways = Ways { listening: Vec::new(), ways: Vec::new(), _directories: Vec::new() };
        ways.ways.push(("memory, in process", Box::new(InProcess(memory()))));
        ways.listen("memory, socket", memory());
        let disk = ways.disk();
        ways.ways.push(("disk, in process", Box::new(InProcess(disk))));
        let disk = ways.disk();
        ways.listen("disk, socket", disk);
        ways
    }

    /// Returns the name and the connector of each way.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &dyn Connect)> {
        self.ways.iter().map(|(name, way)| (*name, &**way))
    }

    fn disk(&mut self) -> Arc<Service> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let service = on_disk(directory.path());
        self._directories.push(directory);
        service
    }

    fn listen(&mut self, name: &'static str, service: Arc<Service>) {
        let listening = listen(service);
        self.ways.push((name, Box::new(AtAddress(listening.address.clone()))));
        self.listening.push(listening);
    }
}
