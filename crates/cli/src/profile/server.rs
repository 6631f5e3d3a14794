//! A server, or the directory of a stopped one, as a source: only commands that read.

use crate::connect::{Client, batch, integer};
use crate::exit::{FAILED, Failure};
use quire_advisor::{Extent, IndexUse, Lookup, Source, SourceCollection};
use quire_document::{Doc, DocBuf, Value, doc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// Returns the time in milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Source for ServerSource<'_> {
    type Error = Failure;

    fn collections(&mut self) -> Result<Vec<SourceCollection>, Failure> {
        let mut found = Vec::new();
        let list = doc! { "listCollections": 1, "filter": { "type": "collection" } };
        self.follow("$cmd.listCollections", list, &mut |row| {
            let options = row.get("options").and_then(|options| options.as_document());
            let options = options.map(Doc::to_owned).unwrap_or_default();
            if let Some(name) = row.get("name").and_then(|name| name.as_str()) {
                found.push((name.to_owned(), options));
            }
        })?;
        found.retain(|(name, _)| !name.starts_with("system."));
        let mut collections = Vec::new();
        for (name, options) in found {
            let mut indexes = Vec::new();
            let list = doc! { "listIndexes": name.as_str() };
            self.follow(&format!("$cmd.listIndexes.{name}"), list, &mut |row| {
                indexes.push(row.to_owned());
            })?;
            let documents = self.count(&name);
            let uses = self.uses(&name);
            collections.push(SourceCollection { name, documents, options, indexes, uses });
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

    fn fetch(
        &mut self,
        collection: &str,
        lookup: &Lookup,
        each: &mut dyn FnMut(Doc<'_>),
    ) -> Result<(), Failure> {
        let mut filter = DocBuf::new();
        filter.append(&lookup.field, &doc! { "$in": &lookup.values });
        self.follow(collection, doc! { "find": collection, "filter": &filter }, each)
    }
}

impl ServerSource<'_> {
    /// Returns the use and the size of the indexes. A user without the privileges for `$indexStats`
    /// or `$collStats` gets what the others say.
    fn uses(&mut self, collection: &str) -> Vec<IndexUse> {
        let stage =
            |stage: DocBuf| doc! { "aggregate": collection, "pipeline": [&stage], "cursor": {} };
        let mut uses: Vec<IndexUse> = Vec::new();
        // Without the privilege there are no rows.
        let _ = self.follow(collection, stage(doc! { "$indexStats": {} }), &mut |row| {
            let text = |path: &str| row.get(path).and_then(|value| value.as_str());
            let accesses = row.get("accesses").and_then(|accesses| accesses.as_document());
            let accesses = accesses.unwrap_or_default();
            let since = match accesses.get("since") {
                Some(Value::Date(since)) => since,
                _ => return,
            };
            let Some(name) = text("name") else { return };
            let seconds = now_ms().saturating_sub(since).max(0) as f64 / 1000.0;
            let ops = accesses.get("ops").and_then(integer);
            let ops = ops.and_then(|ops| u64::try_from(ops).ok());
            uses.push(IndexUse { name: name.to_owned(), uses: ops, seconds, bytes: None });
        });
        let _ = self.follow(
            collection,
            stage(doc! { "$collStats": { "storageStats": {} } }),
            &mut |row| {
                let stats = row.get("storageStats").and_then(|stats| stats.as_document());
                let sizes = stats.and_then(|stats| stats.get("indexSizes")?.as_document());
                for (name, size) in sizes.iter().flat_map(|sizes| sizes.fields()) {
                    let bytes = integer(size).and_then(|bytes| u64::try_from(bytes).ok());
                    match uses.iter_mut().find(|found| found.name == name) {
                        Some(found) => found.bytes = bytes,
                        None => uses.push(IndexUse {
                            name: name.to_owned(),
                            bytes,
                            ..IndexUse::default()
                        }),
                    }
                }
            },
        );
        uses
    }

    /// Counts the values that are there. They are unique, so that a document is a value.
    fn present(&mut self, collection: &str, lookup: &Lookup) -> Result<u64, Failure> {
        let mut filter = DocBuf::new();
        filter.append(&lookup.field, &doc! { "$in": &lookup.values });
        let reply = self.call(doc! { "count": collection, "query": &filter })?;
        let found = reply.get("n").and_then(integer).and_then(|found| u64::try_from(found).ok());
        found.ok_or_else(|| Failure::new(FAILED, "the reply has no count"))
    }
}
