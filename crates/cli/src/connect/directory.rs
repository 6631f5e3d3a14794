//! The directory of a stopped server, opened by this process.

use super::Documents;
use crate::exit::{FAILED, Failure};
use quire_commands::{Call, Connection, ConnectionInfo, Service, ServiceOptions};
use quire_document::DocBuf;
use quire_storage::Interrupt;
use quire_storage_lsm::LsmOptions;
use std::path::Path;
use std::sync::Arc;

/// An open directory.
pub(crate) struct Directory {
    service: Arc<Service>,
}

impl Directory {
    /// Opens a directory; creates it if it is missing.
    pub(crate) fn open(path: &Path) -> Result<Directory, Failure> {
        let opened = crate::engine::open(path, LsmOptions::default())?;
        opened.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        // What a tool does is not what the application asks.
        let options =
            ServiceOptions { recorder: false, ..ServiceOptions::in_process("lsm", Some(path)) };
        let service = Service::open(opened.engine, options).map_err(|error| {
            Failure::new(FAILED, format!("cannot open the data in {}: {error}", path.display()))
        })?;
        Ok(Directory { service })
    }

    pub(crate) fn client(&self) -> InProcess {
        let connection = self.service.connect(ConnectionInfo {
            id: 1,
            peer: None,
            local: None,
            certificate_subject: None,
        });
        InProcess { connection }
    }

    pub(crate) fn close(self) -> Result<(), Failure> {
        self.service.close().map_err(|error| {
            Failure::new(FAILED, format!("the data could not be closed cleanly: {error}"))
        })
    }
}

/// A client of the open directory.
pub(crate) struct InProcess {
    connection: Connection,
}

impl InProcess {
    pub(crate) fn call(
        &mut self,
        body: &DocBuf,
        documents: Option<Documents>,
    ) -> Result<DocBuf, String> {
        let (name, documents) = documents.unwrap_or_default();
        let call = Call::new(body.as_bytes()).and_then(|call| match name {
            "" => Ok(call),
            name => call.with_documents(name, documents.iter().map(DocBuf::as_bytes)),
        });
        let call = call.map_err(|error| error.to_string())?;
        match self.connection.call(&call, Interrupt::new()) {
            (_, outcome) if outcome.hang_up => Err("the server closed the connection".to_owned()),
            (reply, _) => Ok(reply),
        }
    }
}
