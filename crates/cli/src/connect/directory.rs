//! The directory of a stopped server, opened in this process.

use super::Documents;
use crate::exit::{FAILED, Failure};
use quire_commands::log::NoLog;
use quire_commands::{
    Connection, ConnectionInfo, Request, Sequence, Service, ServiceOptions, Topology,
};
use quire_document::limits::Limits;
use quire_document::{DocBuf, validate};
use quire_error::Error;
use quire_storage::Interrupt;
use quire_storage_fjall::FjallOptions;
use std::path::Path;
use std::sync::Arc;

/// An open directory.
pub(crate) struct Directory {
    service: Arc<Service>,
}

impl Directory {
    /// Opens a directory; it is made if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Directory, Failure> {
        let opened = crate::engine::open(path, FjallOptions::default())?;
        opened.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        let options = ServiceOptions {
            topology: Topology::ReplicaSet("rs0".into()),
            advertise: None,
            argv: std::env::args().collect(),
            parsed_options: DocBuf::new(),
            storage_engine: "fjall",
            parameters: Vec::new(),
            log: Arc::new(NoLog),
            on_shutdown: Arc::new(|| {}),
            data_directory: Some(path.to_owned()),
        };
        let service = Service::open(opened.engine, options).map_err(|error| {
            Failure::new(FAILED, format!("cannot open the data in {}: {error}", path.display()))
        })?;
        Ok(Directory { service })
    }

    pub(crate) fn client(&self) -> InProcess {
        let connection = self.service.connect(ConnectionInfo { id: 1, peer: None, local: None });
        InProcess { connection }
    }

    pub(crate) fn close(self) -> Result<(), Failure> {
        self.service.close().map_err(|error| {
            Failure::new(FAILED, format!("the data could not be closed cleanly: {error}"))
        })
    }
}

/// A client of the directory.
pub(crate) struct InProcess {
    connection: Connection,
}

impl InProcess {
    pub(crate) fn call(
        &mut self,
        body: &DocBuf,
        documents: Option<Documents>,
    ) -> Result<DocBuf, String> {
        let valid = |doc| {
            validate(DocBuf::as_bytes(doc), &Limits::WIRE)
                .map_err(|fault| Error::from(fault).to_string())
        };
        let (name, documents) = documents.unwrap_or_default();
        let sequence =
            Sequence { name, documents: documents.iter().map(valid).collect::<Result<_, _>>()? };
        let sequences = if name.is_empty() { Vec::new() } else { vec![sequence] };
        let request = Request {
            body: valid(body)?,
            sequences: &sequences,
            legacy_query: false,
            exhaust_allowed: false,
            interrupt: Interrupt::new(),
        };
        let mut reply = Vec::new();
        let outcome = self.connection.handle(&request, &mut reply);
        match outcome.hang_up {
            true => Err("the server closed the connection".to_owned()),
            false => Ok(DocBuf::from_valid_bytes(reply)),
        }
    }
}
