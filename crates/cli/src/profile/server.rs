//! A server, or the directory of a stopped one, as a source: only commands that read.

use crate::connect::{Client, batch, integer};
use crate::exit::{FAILED, Failure};
use quire_advisor::{Extent, Lookup, Source, SourceCollection};
use quire_document::{Doc, DocBuf, doc};
use std::time::{Duration, Instant};

/// The documents of a batch. A pause for the rate comes after each.
const BATCH: i32 = 1000;

/// A connection to a database.
pub(super) struct ServerSource<'c> {
    pub(super) client: &'c mut Client,
    pub(super) db: String,
    /// The largest number of documents a second.
    pub(super) rate: u64,
}

impl ServerSource<'_> {
    fn call(&mut self, body: DocBuf) -> Result<DocBuf, Failure> {
        let doing = format!("cannot read the database {}", self.db);
        self.client.call(&self.db, body, None).map_err(|error| error.failure(&doing))
    }

    /// Calls `each` with the documents of a cursor.
    fn follow(
        &mut self,
        collection: &str,
        first: DocBuf,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Failure> {
        let (began, mut read) = (Instant::now(), 0_u64);
        let (mut reply, mut name) = (self.call(first)?, "firstBatch");
        loop {
            let (id, documents) = batch(&reply, name)?;
            for document in documents.iter().filter_map(|value| value.as_document()) {
                each(document);
                read += 1;
            }
            if id == 0 {
                return Ok(());
            }
            let due = Duration::from_secs_f64(read as f64 / self.rate as f64);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            reply =
                self.call(doc! { "getMore": id, "collection": collection, "batchSize": BATCH })?;
            name = "nextBatch";
        }
    }

    fn count(&mut self, collection: &str) -> Option<u64> {
        let reply = self.call(doc! { "count": collection }).ok()?;
        u64::try_from(reply.get("n").and_then(integer)?).ok()
    }
}

impl Source for ServerSource<'_> {
    type Error = Failure;

    fn collections(&mut self) -> Result<Vec<SourceCollection>, Failure> {
        let mut names = Vec::new();
        let list =
            doc! { "listCollections": 1, "filter": { "type": "collection" }, "nameOnly": true };
        self.follow("$cmd.listCollections", list, &mut |row| {
            names.extend(row.get("name").and_then(|name| name.as_str()).map(str::to_owned));
        })?;
        names.retain(|name| !name.starts_with("system."));
        let mut collections = Vec::new();
        for name in names {
            let mut indexes = Vec::new();
            let list = doc! { "listIndexes": name.as_str() };
            self.follow(&format!("$cmd.listIndexes.{name}"), list, &mut |row| {
                indexes.push(row.to_owned());
            })?;
            let documents = self.count(&name);
            collections.push(SourceCollection { name, documents, indexes });
        }
        Ok(collections)
    }

    fn read(
        &mut self,
        collection: &str,
        extent: Extent,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Failure> {
        let whole = match extent {
            Extent::All => None,
            Extent::Sample(size) => Some(size)
                .filter(|size| self.count(collection).is_none_or(|documents| documents > *size)),
        };
        let command = match whole {
            None => doc! { "find": collection, "batchSize": BATCH },
            Some(size) => doc! {
                "aggregate": collection, "pipeline": [{ "$sample": { "size": size as i64 } }],
                "cursor": { "batchSize": BATCH },
            },
        };
        self.follow(collection, command, each)
    }

    fn look_up(&mut self, collection: &str, lookups: &[Lookup]) -> Result<Vec<u64>, Failure> {
        lookups.iter().map(|lookup| self.present(collection, lookup)).collect()
    }
}

impl ServerSource<'_> {
    /// Counts the values that are there. They are unique, so that a document is a value.
    fn present(&mut self, collection: &str, lookup: &Lookup) -> Result<u64, Failure> {
        let mut filter = DocBuf::new();
        filter.append(&lookup.field, &doc! { "$in": &lookup.values });
        let reply = self.call(doc! { "count": collection, "query": &filter })?;
        let found = reply.get("n").and_then(integer).and_then(|found| u64::try_from(found).ok());
        found.ok_or_else(|| Failure::new(FAILED, "the reply has no count"))
    }
}
