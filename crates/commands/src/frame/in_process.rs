//! A client without a socket, which exchanges BSON bytes. The embedded library, the tools that open
//! a stopped server's directory, and the case runner use it.

use crate::frame::change_log::ChangeLogOptions;
use crate::frame::log::NoLog;
use crate::frame::service::{Connection, Outcome, Request, Sequence, ServiceOptions, Topology};
use quire_document::limits::Limits;
use quire_document::{Doc, DocBuf, validate};
use quire_error::Result;
use quire_storage::{Interrupt, SystemClock};
use std::path::Path;
use std::sync::Arc;

/// A command with validated bytes.
pub struct Call<'a> {
    body: Doc<'a>,
    sequences: Vec<Sequence<'a>>,
}

impl<'a> Call<'a> {
    /// Validates the document of a command.
    ///
    /// # Errors
    /// 22 InvalidBSON for bytes that are not a document or nest too deeply.
    pub fn new(body: &'a [u8]) -> Result<Self> {
        Ok(Call { body: validate(body, &Limits::WIRE)?, sequences: Vec::new() })
    }

    /// Adds the documents of the argument `name`, like a section of kind 1 of OP_MSG.
    ///
    /// # Errors
    /// Those of [`Call::new`], for the first invalid document.
    pub fn with_documents(
        mut self,
        name: &'a str,
        documents: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self> {
        let valid = |bytes| validate(bytes, &Limits::WIRE);
        let documents = documents.map(valid).collect::<Result<_, _>>()?;
        self.sequences.push(Sequence { name, documents });
        Ok(self)
    }

    /// Returns the document of the command.
    pub fn body(&self) -> Doc<'a> {
        self.body
    }
}

impl Connection {
    /// Runs one command and returns its reply, which may report an error. Do not use the connection
    /// after an outcome with `close` or `hang_up`.
    pub fn call(&mut self, call: &Call<'_>, interrupt: Arc<Interrupt>) -> (DocBuf, Outcome) {
        let request = Request {
            body: call.body,
            sequences: &call.sequences,
            legacy_query: false,
            exhaust_allowed: false,
            interrupt,
        };
        let mut reply = Vec::new();
        let outcome = self.handle(&request, &mut reply);
        (DocBuf::from_valid_bytes(reply), outcome)
    }
}

impl ServiceOptions {
    /// Returns the options of a service without sockets: a replica set with one member that writes
    /// no log. `storage_engine` is the engine's name for `serverStatus`. Blocking stages spill
    /// below `data_directory`, or without one into the system's directory for temporary files.
    pub fn in_process(storage_engine: &'static str, data_directory: Option<&Path>) -> Self {
        ServiceOptions {
            topology: Topology::ReplicaSet("rs0".into()),
            set_name_given: false,
            git_version: concat!("quire-", env!("CARGO_PKG_VERSION")),
            advertise: None,
            argv: std::env::args().collect(),
            parsed_options: DocBuf::new(),
            storage_engine,
            parameters: Vec::new(),
            clock: Arc::new(SystemClock),
            log: Arc::new(NoLog),
            audit: None,
            on_shutdown: Arc::new(|| {}),
            access_control: false,
            certificate: None,
            change_log: ChangeLogOptions::default(),
            recorder: true,
            status_history: None,
            data_directory: data_directory.map(Path::to_owned),
            request_bytes_max: usize::MAX,
        }
    }
}
