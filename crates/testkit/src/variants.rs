//! Runs the reads of a case again in other ways whose results must be equal: with every usable
//! index and with none, in batches of one document, with forced spilling, inside a transaction, and
//! pipelines without rewriting. Also runs `explain` of every find and aggregate. The results are
//! compared with those of the plain read on the same server, and not with the recorded replies, so
//! a case on the list of expected failures counts too.

use crate::case::{Case, CaseFile};
use crate::client::{Client, Connect};
use crate::node::Node;
use crate::runner::Run;
use quire_document::{Binary, Value, ValueBuf, doc};
use std::sync::atomic::{AtomicU64, Ordering};

/// The results of the variants of one case.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of reads that were repeated and compared.
    pub compared: usize,
    /// Descriptions of the reads with different results.
    pub differences: Vec<String>,
}

/// Words that mark commands whose reply can differ between runs, or that change something.
pub(crate) const UNSTABLE: &[&str] = &[
    // A read inside a transaction also returns the transaction's own writes.
    "autocommit",
    "$rand",
    "$sample",
    "NOW",
    "CLUSTER_TIME",
    "$indexStats",
    "$collStats",
    "$currentOp",
    "$listClusterCatalog",
    "$listSessions",
    "$listLocalSessions",
    "$planCacheStats",
    "$queryStats",
    "$changeStream",
    "system.",
    "$out",
    "$merge\"",
    "$function",
    "$where",
];

/// Words that mark reads whose result depends on the order in which documents are read.
const ORDERED: &[&str] = &[
    "$limit",
    "$skip",
    "$first",
    "$last",
    "$push",
    "$addToSet",
    "$setWindowFields",
    "$natural",
    "$top",
    "$bottom",
    "$lookup",
    "$graphLookup",
    "$unionWith",
    "$facet",
    "limit:",
    "skip:",
    "singleBatch",
    "returnKey",
    "showRecordId",
    "min:",
    "max:",
    "tailable",
];

/// Fields for the session, the transaction or the client of the plain read.
const OF_SESSION: &[&str] = &[
    "lsid",
    "txnNumber",
    "autocommit",
    "startTransaction",
    "stmtId",
    "maxTimeMS",
    "$clusterTime",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
];

/// Words that mark reads that a transaction does not accept, or accepts only in the form of the
/// plain read.
const OUTSIDE: &[&str] = &["atClusterTime", "afterClusterTime", "tailable", "$unionWith"];

/// The parameters that limit the memory of blocking stages.
const MEMORY: &[&str] =
    &["internalQueryMaxBlockingSortMemoryUsageBytes", "internalDocumentSourceGroupMaxMemoryBytes"];
/// A limit that a few documents exceed.
const SPILL_BYTES: i32 = 256;
/// The default limit of a server.
const MEMORY_BYTES: i32 = 100 << 20;

/// The error code of a document that nests too deeply.
const TOO_DEEP: i64 = 15;

/// Returns true if the case can be repeated: it sets no parameter and no fail point, which would
/// affect the repeated reads.
pub fn is_repeatable(case: &Case) -> bool {
    let changes = ["configureFailPoint", "setParameter", "setDefaultRWConcern", "profile:"];
    !case.older && case.steps().all(|step| !changes.iter().any(|word| step.command.contains(word)))
}

/// Runs the case, and each of its reads in every way.
///
/// # Errors
/// The case cannot be parsed.
pub fn run(server: &dyn Connect, file: &CaseFile, case: &Case) -> Result<Report, String> {
    let mut plain = Run::new(server, file, case);
    let mut again =
        Again { client: server.connect(), report: Report::default(), place: String::new() };
    for step in case.steps() {
        let place = format!("{}:{}", file.name, step.line);
        if plain.step(step).map_err(|error| format!("{place}: {error}"))?.is_none() {
            continue;
        }
        if let Some((command, reply)) = plain.exchange()
            && let Some(read) = Read::of(command, reply)
        {
            again.place = place;
            again.repeat(&read);
        }
    }
    plain.finish();
    Ok(again.report)
}

/// A read with its whole result in one reply.
struct Read {
    command: Node,
    name: String,
    text: String,
    answer: Vec<String>,
}

impl Read {
    fn of(command: &Node, reply: &Node) -> Option<Read> {
        let text = command.show();
        let writes = ["$merge:", "$out:"].iter().any(|stage| text.contains(stage));
        if writes || UNSTABLE.iter().any(|word| text.contains(word)) {
            return None;
        }
        let name = command.fields()?.first()?.0.clone();
        let kept = command.fields()?.iter().filter(|(field, _)| !OF_SESSION.contains(&&**field));
        let command = Node::Doc(kept.cloned().collect());
        let answer = answer(&name, reply)?;
        Some(Read { command, name, text, answer })
    }

    fn has_cursor(&self) -> bool {
        matches!(&*self.name, "find" | "aggregate")
    }

    /// Returns the command with a field added.
    fn with(&self, field: &str, value: Node) -> Node {
        let mut command = self.command.clone();
        command.set(field, value);
        command
    }
}

/// Returns the documents or values of a reply, each as text; `None` for an error and for a reply
/// that leaves a cursor open.
pub(crate) fn answer(name: &str, reply: &Node) -> Option<Vec<String>> {
    let leaf = |path: &str| reply.at(path).and_then(Node::as_leaf);
    if leaf("ok").is_none_or(|ok| ok.exact_i64() != Some(1)) {
        return None;
    }
    let list = match name {
        "find" | "aggregate" if leaf("cursor.id")?.exact_i64() == Some(0) => {
            reply.at("cursor.firstBatch")?
        }
        "distinct" => reply.get("values")?,
        "count" => return Some(vec![reply.get("n")?.show()]),
        _ => return None,
    };
    match list {
        Node::Array(items) => Some(items.iter().map(Node::show).collect()),
        _ => None,
    }
}

/// The connection of the repeated reads, and their results.
struct Again {
    client: Box<dyn Client>,
    report: Report,
    place: String,
}

impl Again {
    fn repeat(&mut self, read: &Read) {
        let free = !ORDERED.iter().any(|word| read.text.contains(word));
        // Only its index answers a search, and a hint beside it is an error.
        let is_search = ["$text", "$near", "$geoNear"].iter().any(|name| read.text.contains(name));
        let may_hint = read.command.get("hint").is_none() && !is_search;
        if free && may_hint {
            let natural = Node::from_doc(doc! { "$natural": 1 }.as_doc());
            self.compare(read, "no index", &read.with("hint", natural), false);
            // A read of the past may be older than an index that is listed now.
            let now = !read.text.contains("atClusterTime");
            for index in if now { self.usable_indexes(read) } else { Vec::new() } {
                let hinted = read.with("hint", Node::text(&index));
                self.compare(read, &format!("index {index}"), &hinted, false);
            }
        }
        self.in_transaction(read);
        if read.has_cursor() {
            self.small_batches(read);
            self.as_written(read);
            self.explain(read);
        }
        let blocks = ["sort", "$group", "$bucket"].iter().any(|word| read.text.contains(word));
        if blocks && !read.text.contains("allowDiskUse") && !read.text.contains("$addToSet") {
            self.limit_memory(SPILL_BYTES);
            self.compare(read, "spilled", &read.command, false);
            self.limit_memory(MEMORY_BYTES);
        }
    }

    /// Compares the result of `command` with that of the plain read.
    fn compare(&mut self, read: &Read, way: &str, command: &Node, in_order: bool) {
        let reply = self.call(command);
        let got = answer(&read.name, &reply);
        // A view can begin with a search, which only its index answers.
        let refusals = ["near and hint not allowed", "unable to find index for $geoNear"];
        if got.is_none() && refusals.iter().any(|text| reply.show().contains(text)) {
            return;
        }
        let shown = || got.as_ref().map_or_else(|| reply.show(), |got| got.join(", "));
        let same = got.as_ref().is_some_and(|got| alike(&read.answer, got, in_order));
        let found = shown();
        self.note(read, way, same, &found);
    }

    fn note(&mut self, read: &Read, way: &str, same: bool, got: &str) {
        self.report.compared += 1;
        if !same {
            let want = read.answer.join(", ");
            self.report.differences.push(format!(
                "{} ({way})\n  > {}\n  want {want}\n  got  {got}",
                self.place, read.text
            ));
        }
    }

    /// Reads in batches of one document to the end of the cursor.
    fn small_batches(&mut self, read: &Read) {
        if ["batchSize", "singleBatch"].iter().any(|word| read.text.contains(word)) {
            return;
        }
        let one = Node::Leaf(ValueBuf::new(1));
        let command = match &*read.name {
            "find" => read.with("batchSize", one.clone()),
            _ => read.with("cursor", Node::Doc(vec![("batchSize".into(), one.clone())])),
        };
        let mut reply = self.call(&command);
        let (mut got, mut batch) = (Vec::new(), "firstBatch");
        loop {
            let cursor = reply.get("cursor");
            let documents = cursor.and_then(|cursor| cursor.get(batch));
            let Some(Node::Array(documents)) = documents else {
                let found = reply.show();
                return self.note(read, "batches of one", false, &found);
            };
            got.extend(documents.iter().map(Node::show));
            let id = cursor.and_then(|cursor| cursor.get("id")).and_then(Node::as_leaf);
            let id = id.and_then(|id| id.exact_i64()).unwrap_or(0);
            if id == 0 {
                break;
            }
            let namespace = cursor.and_then(|cursor| cursor.get("ns")).and_then(Node::as_str);
            let (db, collection) = namespace.and_then(|ns| ns.split_once('.')).unwrap_or_default();
            let more = doc! { "getMore": id, "collection": collection, "batchSize": 1, "$db": db };
            (reply, batch) = (self.call(&Node::from_doc(more.as_doc())), "nextBatch");
        }
        let same = alike(&read.answer, &got, true);
        self.note(read, "batches of one", same, &got.join(", "));
    }

    /// Runs a pipeline without rewriting it.
    fn as_written(&mut self, read: &Read) {
        if read.name != "aggregate" {
            return;
        }
        self.keep_pipelines(read, "alwaysOn");
        self.compare(read, "as written", &read.command, false);
        self.keep_pipelines(read, "off");
    }

    /// Switches the fail point that disables the rewriting of pipelines.
    fn keep_pipelines(&mut self, read: &Read, mode: &str) {
        let name = "disablePipelineOptimization";
        let command = doc! { "configureFailPoint": name, "mode": mode, "$db": "admin" };
        let reply = self.call(&Node::from_doc(command.as_doc()));
        let ok = reply.get("ok").and_then(Node::as_leaf).and_then(|ok| ok.exact_i64());
        if ok != Some(1) {
            self.note(read, "as written: the fail point", false, &reply.show());
        }
    }

    /// Reads in a separate transaction, and ends it.
    fn in_transaction(&mut self, read: &Read) {
        let db = read.command.get("$db").and_then(Node::as_str).unwrap_or_default();
        let is_refused = read.name == "count" || matches!(db, "admin" | "config" | "local");
        if is_refused || OUTSIDE.iter().any(|word| read.text.contains(word)) {
            return;
        }
        let session = session_id();
        let outside = ["readConcern", "writeConcern", "$readPreference"];
        let fields = read.command.fields().unwrap_or_default().iter();
        let kept = fields.filter(|(name, _)| !outside.contains(&&**name));
        let mut command = Node::Doc(kept.cloned().collect());
        let mut end = Node::from_doc(doc! { "abortTransaction": 1, "$db": "admin" }.as_doc());
        for command in [&mut command, &mut end] {
            command.set("lsid", session.clone());
            command.set("txnNumber", Node::Leaf(ValueBuf::new(1_i64)));
            command.set("autocommit", Node::Leaf(ValueBuf::new(false)));
        }
        command.set("startTransaction", Node::Leaf(ValueBuf::new(true)));
        self.compare(read, "in a transaction", &command, false);
        self.call(&end);
    }

    /// Runs `explain` of the read with execution, which must succeed.
    fn explain(&mut self, read: &Read) {
        let Some(fields) = read.command.fields() else { return };
        let outer = ["$db", "cursor", "readConcern"];
        let inner = fields.iter().filter(|(name, _)| !outer.contains(&&**name));
        let mut command = Node::Doc(vec![("explain".into(), Node::Doc(inner.cloned().collect()))]);
        command.set("verbosity", Node::text("executionStats"));
        if let Some(db) = read.command.get("$db") {
            command.set("$db", db.clone());
        }
        let reply = self.call(&command);
        let code = reply.get("code").and_then(Node::as_leaf).and_then(|code| code.exact_i64());
        // A command at the nesting limit does not fit into another one.
        let works = reply.get("ok").is_some() && matches!(code, None | Some(TOO_DEEP));
        self.note(read, "explain", works, &reply.show());
    }

    /// Returns the names of the indexes that contain every document of the collection.
    fn usable_indexes(&mut self, read: &Read) -> Vec<String> {
        let (Some((_, collection)), Some(db)) = (
            read.command.fields().and_then(<[_]>::first),
            read.command.get("$db").and_then(Node::as_str),
        ) else {
            return Vec::new();
        };
        let Some(collection) = collection.as_str() else { return Vec::new() };
        let reply =
            self.call(&Node::from_doc(doc! { "listIndexes": collection, "$db": db }.as_doc()));
        let Some(Node::Array(indexes)) = reply.at("cursor.firstBatch") else { return Vec::new() };
        let whole = |index: &&Node| {
            let partial = ["sparse", "partialFilterExpression", "hidden"];
            let key = index.get("key").and_then(Node::fields).unwrap_or_default();
            let holds_all = |way: &Node| {
                way.as_str() == Some("hashed") || way.as_leaf().is_some_and(|way| way.is_number())
            };
            partial.iter().all(|option| index.get(option).is_none())
                && key.iter().all(|(path, way)| holds_all(way) && !path.contains("$**"))
        };
        let names = indexes.iter().filter(whole).filter_map(|index| index.get("name")?.as_str());
        names.map(str::to_owned).collect()
    }

    fn limit_memory(&mut self, bytes: i32) {
        let mut command = Node::from_doc(doc! { "setParameter": 1 }.as_doc());
        for parameter in MEMORY {
            command.set(parameter, Node::Leaf(ValueBuf::new(Value::Int32(bytes))));
        }
        command.set("$db", Node::text("admin"));
        self.call(&command);
    }

    /// Sends a command; a lost connection becomes a reply without `ok`.
    fn call(&mut self, command: &Node) -> Node {
        match self.client.call(command.to_doc().as_doc()) {
            Ok(reply) => Node::from_doc(reply.as_doc()),
            Err(reason) => Node::Doc(vec![("connection".into(), Node::text(&reason))]),
        }
    }
}

/// Returns the `lsid` of a session that nothing else in this process uses.
pub(crate) fn session_id() -> Node {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut uuid = [0x7f; 16];
    uuid[8..].copy_from_slice(&number.to_be_bytes());
    let id = Value::Binary(Binary { subtype: 4, bytes: &uuid });
    Node::from_doc(doc! { "id": id }.as_doc())
}

/// Compares two results, as lists or as multisets.
pub(crate) fn alike(want: &[String], got: &[String], in_order: bool) -> bool {
    if in_order {
        return want == got;
    }
    let sorted = |texts: &[String]| {
        let mut texts = texts.to_vec();
        texts.sort();
        texts
    };
    sorted(want) == sorted(got)
}
