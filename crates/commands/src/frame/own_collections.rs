//! The collections of the server: in the database `local` `oplog.rs`, in whose place readers get the
//! change log, and `startup_log`, with one document for each start; in `admin` the document of
//! `system.version` with the feature compatibility version, which tools and drivers' tests read.

use crate::frame::log::{LogLine, Severity};
use crate::frame::parameters::FEATURE_COMPATIBILITY_NAME;
use crate::frame::service::{Service, Topology, now_ms};
use crate::frame::{MONGODB_VERSION, host};
use quire_catalog::capped::CappedChange;
use quire_catalog::{CollectionOptions, Namespace, OPLOG};
use quire_collections::{ModifyCollection, Store, prepare_insert};
use quire_document::calendar::iso_text;
use quire_document::{DocBuf, Value, doc};
use quire_error::Result;
use quire_storage::{CommitOptions, Interrupt};
use std::sync::Arc;

/// The collection with the versions of the data.
const VERSION: &str = "admin.system.version";
/// The collection with the starts of the server.
const STARTUP_LOG: &str = "local.startup_log";
/// The size of `startup_log`. MongoDB: 10 MiB.
const STARTUP_LOG_BYTES: u64 = 10 << 20;

impl Service {
    /// Makes the collections of the server in `local`, and notes the start. A failure is logged: a
    /// server whose disk is full can still be read.
    pub fn note_start(&self) {
        self.told(self.keep_oplog().and_then(|()| self.note_in_startup_log()), "local");
    }

    /// Makes `admin.system.version` show the feature compatibility version. A failure is logged.
    pub fn note_version(&self) {
        self.told(self.keep_version(), "admin");
    }

    /// Logs that the start could not be noted in a database.
    fn told(&self, noted: Result<()>, database: &str) {
        if let Err(error) = noted {
            self.log().write(LogLine {
                severity: Severity::Warning,
                component: "STORAGE",
                id: 8424,
                context: "initandlisten",
                message: "The start could not be noted in a database of the server",
                attributes: doc! { "database": database, "error": error.to_string().as_str() },
            });
        }
    }

    /// Makes the collection `oplog.rs` as large as the change log, or removes it if there is no log.
    ///
    /// # Errors
    /// The errors of the catalog.
    pub fn keep_oplog(&self) -> Result<()> {
        let (store, namespace) = (&self.store, Namespace::parse(OPLOG)?);
        let options = CommitOptions::synced();
        let found = store.catalog().lookup(&namespace).cloned();
        let is_member = matches!(self.options.topology, Topology::ReplicaSet(_));
        if !is_member || !store.logs_changes() {
            return match found {
                Some(_) => store.drop_collection(&namespace, &options).map(drop),
                None => Ok(()),
            };
        }
        let bytes_max = self.change_log_size.get().bytes_max;
        match found.as_ref().and_then(|found| found.options.capped()) {
            None => make_capped(store, &namespace, bytes_max),
            Some(capped) if capped.bytes_max == bytes_max => Ok(()),
            Some(_) => {
                let capped = CappedChange { bytes_max: Some(bytes_max), max: None };
                let change = ModifyCollection { capped, ..ModifyCollection::default() };
                store.modify_collection(&namespace, &change, &options).map(drop)
            }
        }
    }

    /// Stores the feature compatibility version in `admin.system.version`.
    ///
    /// # Errors
    /// The errors of the catalog and of the write.
    pub fn keep_version(&self) -> Result<()> {
        let (store, namespace) = (&self.store, Namespace::parse(VERSION)?);
        if store.catalog().lookup(&namespace).is_none() {
            let options = CollectionOptions::default();
            store.create_collection(&namespace, options, &CommitOptions::synced())?;
        }
        let Some(version) = self.parameters.get(FEATURE_COMPATIBILITY_NAME) else { return Ok(()) };
        let shown = doc! { "_id": FEATURE_COMPATIBILITY_NAME, "version": (version.as_value()) };
        let written = store.write(&CommitOptions::synced(), &Interrupt::new(), |writer| {
            let Some(collection) = writer.collection(&namespace) else { return Ok(()) };
            let id = Value::String(FEATURE_COMPATIBILITY_NAME);
            match writer.view().get_by_id(&collection, id)? {
                Some(old) if old.doc.as_doc().as_bytes() == shown.as_bytes() => Ok(()),
                Some(old) => writer.replace(&collection, old.id, old.doc.as_doc(), shown.as_doc()),
                None => writer.insert(&collection, shown.as_doc()).map(drop),
            }
        });
        written.map(drop)
    }

    fn note_in_startup_log(&self) -> Result<()> {
        let namespace = Namespace::parse(STARTUP_LOG)?;
        if self.store.catalog().lookup(&namespace).is_none() {
            make_capped(&self.store, &namespace, STARTUP_LOG_BYTES)?;
        }
        let host = host::host_name();
        let entry = DocBuf::build(|entry| {
            entry.append("_id", format!("{host}-{}", self.started_ms).as_str());
            entry.append("hostname", host.as_str());
            entry.append("startTime", Value::Date(self.started_ms));
            entry.append("startTimeLocal", iso_text(self.started_ms).as_str());
            entry.append("cmdLine", &self.options.parsed_options);
            entry.append("pid", i64::from(std::process::id()));
            let mut build = entry.document("buildinfo");
            build.append("version", MONGODB_VERSION);
            build.append("gitVersion", self.options.git_version);
            build.document("quire").append("version", env!("CARGO_PKG_VERSION"));
        });
        let written = self.store.write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
            let Some(collection) = writer.collection(&namespace) else { return Ok(()) };
            let (store, mut buffer) = (Arc::clone(writer.store()), Vec::new());
            let prepared = prepare_insert(&store, entry.as_doc(), &mut buffer)?;
            writer.insert(&collection, prepared).map(drop)
        });
        written.map(drop)
    }
}

fn make_capped(store: &Arc<Store>, namespace: &Namespace, bytes_max: u64) -> Result<()> {
    let size = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    let asked = doc! { "capped": true, "size": size };
    let options = CollectionOptions::parse(asked.as_doc(), now_ms())?;
    store.create_collection(namespace, options, &CommitOptions::synced()).map(drop)
}
