//! Tests that the variants really run: a result that is damaged in only one of them is detected in
//! that one alone, and the spilling variant spills.

#![allow(clippy::unwrap_used)]

use crate::case::CaseFile;
use crate::client::{Client, Connect, InProcess};
use crate::node::Node;
use crate::servers;
use crate::variants::{self, Report};
use quire_document::{Doc, DocBuf, doc};
use std::sync::{Arc, Mutex};

/// Two reads of a collection with an index, one of which blocks on a sort and one on a group.
const CASE: &str = r#"
## reads that every variant repeats
> {insert: "t", documents: [{_id: 1, a: 7}, {_id: 2, a: 5}, {_id: 3, a: 6}, {_id: 4, a: 4},
    {_id: 5, a: 3}, {_id: 6, a: 2}, {_id: 7, a: 1}, {_id: 8, a: 8}, {_id: 9, a: 9}]}
< {n: 9, ok: 1.0}
> {createIndexes: "t", indexes: [{key: {a: 1}, name: "a_1"}]}
< {ok: 1.0}
> {find: "t", filter: {_id: {$gt: 0}}, sort: {b: 1, a: -1}}
< {ok: 1.0}
> {aggregate: "t", pipeline: [{$group: {_id: "$a", ids: {$sum: "$_id"}}}], cursor: {}}
< {ok: 1.0}
"#;

/// All variants, by their names in differences.
const WAYS: [&str; 7] = [
    "no index",
    "index a_1",
    "batches of one",
    "spilled",
    "as written",
    "in a transaction",
    "explain",
];

/// A server with wrong results in one of the variants.
struct Damaging {
    server: InProcess,
    /// The variant with wrong results; empty for none.
    way: &'static str,
    /// For each read with little memory, true if it spilled.
    spilled: Arc<Mutex<Vec<bool>>>,
}

/// A connection to such a server.
struct Damaged {
    client: Box<dyn Client>,
    way: &'static str,
    spilled: Arc<Mutex<Vec<bool>>>,
    /// True if the connection has set a low memory limit of stages.
    has_little_memory: bool,
    /// True if the connection has disabled the rewriting of pipelines.
    keeps_pipelines: bool,
}

impl Connect for Damaging {
    fn connect(&self) -> Box<dyn Client> {
        Box::new(Damaged {
            client: self.server.connect(),
            way: self.way,
            spilled: Arc::clone(&self.spilled),
            has_little_memory: false,
            keeps_pipelines: false,
        })
    }
}

impl Client for Damaged {
    fn call(&mut self, command: Doc<'_>) -> Result<DocBuf, String> {
        let node = Node::from_doc(command);
        self.follow(&node);
        let reply = self.client.call(command)?;
        let way = self.way_of(&node);
        if way == "spilled" {
            let explain = doc! { "explain": &without_db(&node).to_doc(), "$db": db_of(&node) };
            let plan = Node::from_doc(self.client.call(explain.as_doc())?.as_doc()).show();
            self.spilled.lock().unwrap().push(plan.contains("usedDisk: true"));
        }
        if self.way.is_empty() || way != self.way {
            return Ok(reply);
        }
        if way == "explain" {
            return Ok(doc! { "ok": 0.0, "code": 8, "errmsg": "damaged" });
        }
        let mut reply = Node::from_doc(reply.as_doc());
        let batch = reply.get_mut("cursor").and_then(|cursor| cursor.get_mut("firstBatch"));
        if let Some(Node::Array(documents)) = batch {
            documents.pop();
        }
        Ok(reply.to_doc())
    }
}

impl Damaged {
    /// Notes the effect of a command on later ones.
    fn follow(&mut self, command: &Node) {
        let memory = command.get("internalQueryMaxBlockingSortMemoryUsageBytes");
        if let Some(bytes) = memory.and_then(Node::as_leaf).and_then(|bytes| bytes.exact_i64()) {
            self.has_little_memory = bytes < 1 << 20;
        }
        if command.get("configureFailPoint").is_some() {
            self.keeps_pipelines = command.get("mode").and_then(Node::as_str) == Some("alwaysOn");
        }
    }

    /// Returns the variant of a read; empty if it is none.
    fn way_of(&self, command: &Node) -> &'static str {
        let name = command.fields().and_then(<[_]>::first).map_or("", |(name, _)| name);
        if name == "explain" {
            return "explain";
        }
        if !matches!(name, "find" | "aggregate") {
            return "";
        }
        if let Some(hint) = command.get("hint") {
            return match hint.as_str() {
                Some("a_1") => "index a_1",
                Some(_) => "",
                None => "no index",
            };
        }
        match () {
            () if command.get("startTransaction").is_some() => "in a transaction",
            () if command.get("batchSize").is_some() => "batches of one",
            () if command.at("cursor.batchSize").is_some() => "batches of one",
            () if self.has_little_memory => "spilled",
            () if self.keeps_pipelines => "as written",
            () => "",
        }
    }
}

fn db_of(command: &Node) -> &str {
    command.get("$db").and_then(Node::as_str).unwrap()
}

fn without_db(command: &Node) -> Node {
    let fields = command.fields().unwrap().iter();
    Node::Doc(fields.filter(|(name, _)| name != "$db").cloned().collect())
}

/// Runs the case with wrong results in one variant. Returns the report, and for each read with
/// little memory whether it spilled.
fn run(way: &'static str) -> (Report, Vec<bool>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("variants.mql");
    std::fs::write(&path, CASE).unwrap();
    let file = CaseFile::load(directory.path(), &path).unwrap();
    let server = InProcess(servers::memory());
    let spilled = Arc::default();
    let server = Damaging { server, way, spilled: Arc::clone(&spilled) };
    let report = variants::run(&server, &file, &file.cases[0]).unwrap();
    let spilled = spilled.lock().unwrap().clone();
    (report, spilled)
}

#[test]
fn a_wrong_answer_in_one_way_is_found_there_and_nowhere_else() {
    for way in WAYS {
        let (report, _) = run(way);
        let reads = if way == "as written" { 1 } else { 2 };
        assert_eq!(report.differences.len(), reads, "{way}: {:?}", report.differences);
        let named = report.differences.iter().all(|text| text.contains(&format!("({way})")));
        assert!(named, "{way}: {:?}", report.differences);
    }
}

#[test]
fn right_answers_are_compared_in_every_way_and_reads_with_little_memory_spill() {
    let (report, spilled) = run("");
    assert_eq!(report.differences, Vec::<String>::new());
    // Each variant for both reads, also the index of `_id`; `as written` only for the pipeline.
    assert_eq!(report.compared, 2 * WAYS.len() + 2 - 1);
    assert_eq!(spilled, [true, true]);
}
