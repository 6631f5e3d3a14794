//! The typed changes that writing commands make, as a change log would store them.

use crate::transactions::{commit, within};
use crate::{Server, code};
use quire_collections::{Change, ChangeListener, ChangeLog, WritePolicy};
use quire_document::literal::print;
use quire_document::{DocBuf, doc};
use quire_error::Result;
use quire_storage::{Page, ScanRequest, Space};
use std::sync::Arc;

/// Appends a line of text to the log for each change of a document.
struct Recorder;

impl ChangeListener for Recorder {
    fn on_change(&self, change: &Change<'_>, log: &mut ChangeLog<'_>) -> Result<()> {
        let line = match change {
            Change::Insert { doc, .. } => format!("insert {}", print(*doc)),
            Change::Update(updated) => {
                let found = updated.description();
                let set = found
                    .updated
                    .iter()
                    .map(|(path, value)| format!("{path}={}", print(value.as_value())));
                let gone = found.removed.iter().map(|path| format!("-{path}"));
                format!("update {}", set.chain(gone).collect::<Vec<_>>().join(" "))
            }
            Change::Replace { after, .. } => format!("replace {}", print(*after)),
            Change::Delete { before, .. } => format!("delete {}", print(*before)),
            Change::Catalog(_) => return Ok(()),
        };
        let by = match log.policy() {
            WritePolicy::Client => "",
            WritePolicy::Bypassing => "bypassing ",
            WritePolicy::Derived => "derived ",
            WritePolicy::Internal => "internal ",
        };
        log.append([by, &line].concat().into_bytes());
        Ok(())
    }
}

/// A server with a listener, and the records stored since the last look.
struct Recorded {
    server: Server,
    seen: usize,
}

impl Recorded {
    fn new() -> Self {
        let server = Server::new();
        server.0.store().listen(Arc::new(Recorder)).unwrap();
        Recorded { server, seen: 0 }
    }

    fn log(&mut self) -> Vec<String> {
        let snapshot = self.server.0.store().engine().snapshot().unwrap();
        let mut page = Page::default();
        snapshot.scan(&ScanRequest::new(Space::Log, &[], &[0xff; 32]), &mut page).unwrap();
        let new = &page.rows[self.seen..];
        // The engine stores the cluster time before each record.
        let new = new.iter().map(|(_, value)| String::from_utf8_lossy(&value[8..]).into_owned());
        self.seen = page.rows.len();
        new.collect()
    }

    /// Expects that the command succeeds and makes these changes.
    #[track_caller]
    fn makes(&mut self, command: DocBuf, changes: &[&str]) {
        self.server.client(1).works(command);
        assert_eq!(self.log(), changes);
    }
}

fn update(query: DocBuf, change: DocBuf) -> DocBuf {
    doc! { "update": "t", "updates": [{ "q": &query, "u": &change }], "$db": "test" }
}

#[test]
fn each_command_that_writes_reports_typed_changes() {
    let mut server = Recorded::new();
    let docs = doc! { "insert": "t", "documents": [{ "_id": 1, "n": 1 }, { "_id": 2, "n": 1 }], "$db": "test" };
    server.makes(docs, &["insert {_id: 1, n: 1}", "insert {_id: 2, n: 1}"]);
    server.makes(update(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }), &["update n=2"]);
    server.makes(update(doc! { "_id": 1 }, doc! { "$set": { "n": 2 } }), &[]);
    server.makes(update(doc! { "_id": 1 }, doc! { "n": 9 }), &["replace {_id: 1, n: 9}"]);
    let many = doc! {
        "update": "t",
        "updates": [{ "q": {}, "u": [{ "$set": { "m": "$n" } }, { "$unset": "n" }], "multi": true }],
        "$db": "test"
    };
    server.makes(many, &["update m=9 -n", "update m=1 -n"]);
    let upsert = doc! {
        "update": "t",
        "updates": [{ "q": { "_id": 3 }, "u": { "$set": { "m": 3 } }, "upsert": true }],
        "$db": "test"
    };
    server.makes(upsert, &["insert {_id: 3, m: 3}"]);
    let change = doc! { "findAndModify": "t", "query": { "_id": 3 }, "update": { "$push": { "l": 1 } }, "$db": "test" };
    server.makes(change.clone(), &["update l=[1]"]);
    server.makes(change, &["update l.1=1"]);
    let merge = doc! {
        "aggregate": "t",
        "pipeline": [{ "$match": { "_id": 1 } }, { "$set": { "m": 10 } }, { "$merge": { "into": "t" } }],
        "cursor": {},
        "$db": "test"
    };
    server.makes(merge, &["update m=10"]);
    let delete = doc! { "delete": "t", "deletes": [{ "q": { "_id": { "$lte": 2 } }, "limit": 0 }], "$db": "test" };
    server.makes(delete, &["delete {_id: 1, m: 10}", "delete {_id: 2, m: 1}"]);
}

#[test]
fn a_change_names_its_writer() {
    let mut server = Recorded::new();
    server.makes(doc! { "create": "t", "$db": "test" }, &[]);
    let bypassing = |mut command: DocBuf, flag: bool| {
        command.append("bypassDocumentValidation", flag);
        command
    };
    let insert = |id: i32| doc! { "insert": "t", "documents": [{ "_id": id }], "$db": "test" };
    server.makes(bypassing(insert(1), true), &["bypassing insert {_id: 1}"]);
    server.makes(bypassing(insert(2), false), &["insert {_id: 2}"]);
    let change =
        doc! { "findAndModify": "t", "query": { "_id": 1 }, "update": { "a": 1 }, "$db": "test" };
    server.makes(bypassing(change, true), &["bypassing replace {_id: 1, a: 1}"]);
    let bulk = doc! {
        "bulkWrite": 1,
        "ops": [{ "update": 0, "filter": { "_id": 1 }, "updateMods": { "$set": { "a": 2 } } }],
        "nsInfo": [{ "ns": "test.t" }],
        "$db": "admin"
    };
    server.makes(bypassing(bulk, true), &["bypassing update a=2"]);
    let merge = |cursor: DocBuf| {
        doc! {
            "aggregate": "t",
            "pipeline": [{ "$match": { "_id": 1 } }, { "$merge": { "into": "other" } }],
            "cursor": &cursor,
            "$db": "test"
        }
    };
    server.makes(bypassing(merge(doc! {}), true), &["bypassing insert {_id: 1, a: 2}"]);
    // Each statement of a transaction sets the flag for itself.
    server.makes(within(bypassing(insert(3), true), (1, 1), true), &[]);
    server.makes(within(insert(4), (1, 1), false), &[]);
    server
        .makes(within(commit(), (1, 1), false), &["bypassing insert {_id: 3}", "insert {_id: 4}"]);
    let user = doc! { "createUser": "u", "pwd": "p", "roles": [], "$db": "admin" };
    server.server.client(1).works(user);
    let lines = server.log();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("internal insert")));
}

#[test]
fn a_transaction_stores_its_changes_with_its_commit() {
    let mut server = Recorded::new();
    server.makes(doc! { "create": "t", "$db": "test" }, &[]);
    let insert = |id: i32| doc! { "insert": "t", "documents": [{ "_id": id }], "$db": "test" };
    server.makes(within(insert(1), (1, 1), true), &[]);
    let set = update(doc! { "_id": 1 }, doc! { "$set": { "a": 1 } });
    server.makes(within(set, (1, 1), false), &[]);
    server.makes(within(commit(), (1, 1), false), &["insert {_id: 1}", "update a=1"]);
    // A transaction that is aborted by its error stores nothing.
    server.makes(within(insert(2), (1, 2), true), &[]);
    let failed = server.server.client(1).run(within(insert(1), (1, 2), false));
    assert!(failed.get("writeErrors").is_some());
    let ended = server.server.client(1).run(within(commit(), (1, 2), false));
    assert_eq!(code(&ended), 251);
    assert!(server.log().is_empty());
}
