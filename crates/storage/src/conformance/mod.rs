//! The conformance suite that every engine passes: the promises of the contract as tests, which get
//! an engine from a harness. A failure panics with the name of the case.

mod commits;
mod model;
mod reads;
mod transactions;

use std::sync::Arc;

use bytes::Bytes;

use crate::contract::{Committed, Engine, Page, ScanRequest, Snapshot, Space};
use crate::txn::{CommitOptions, Mode, Txn, begin};

/// The source of engines for the suite.
pub trait Harness {
    /// Returns a new, empty engine.
    fn open(&self) -> Arc<dyn Engine>;

    /// Closes an engine and opens its data again; `None` if the data does not outlive the engine.
    fn reopen(&self, engine: Arc<dyn Engine>) -> Option<Arc<dyn Engine>> {
        let _ = engine.close();
        None
    }
}

/// A test of the suite.
pub type Case = fn(&dyn Harness);

/// All cases with their names.
pub const CASES: &[(&str, Case)] = &[
    ("get, put and delete in all spaces", reads::get_put_delete),
    ("scans in both directions", reads::scans),
    ("pages and resume keys", reads::pages),
    ("snapshots do not change", reads::snapshots_stay),
    ("the recent past", reads::past),
    ("the recent past of many threads", reads::past_of_many),
    ("own writes are merged into reads", reads::own_writes),
    ("large values", reads::large_values),
    ("limits", reads::limits),
    ("the engine's own keys", reads::own_keys),
    ("insert and duplicates", commits::duplicates),
    ("clashes of tracked keys", commits::clashes),
    ("guards", commits::guards),
    ("versions, cluster times, change records", commits::numbers),
    ("counters", commits::counters),
    ("dropped ranges", commits::dropped_ranges),
    ("many threads on one key", commits::hot_key),
    ("many threads on their own keys", commits::parallel),
    ("durability", commits::durability),
    ("what survives a restart", commits::restart),
    ("a barrier with a limit", commits::impatience),
    ("a clock that is moved on", commits::clock),
    ("a closed engine", commits::closed),
    ("savepoints", transactions::savepoints),
    ("pushed locks", transactions::locks),
    ("waiting for a lock", transactions::waiting),
    ("turns at a key", transactions::turns),
    ("many turns at a key", transactions::many_turns),
    ("an idle transaction", transactions::idle),
    ("random operations against a model", model::random),
];

/// Runs every case.
pub fn run_all(harness: &dyn Harness) {
    for (name, case) in CASES {
        println!("conformance: {name}");
        case(harness);
    }
}

fn key(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn write(engine: &Arc<dyn Engine>) -> Txn {
    begin(engine, Mode::Write).expect("a transaction begins")
}

fn commit(txn: Txn) -> Committed {
    txn.commit(CommitOptions::buffered()).expect("the commit succeeds")
}

fn put(engine: &Arc<dyn Engine>, space: Space, name: &str, value: &str) -> Committed {
    let mut txn = write(engine);
    txn.put(space, key(name), key(value)).expect("a small write is buffered");
    commit(txn)
}

fn text(value: Option<Bytes>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn get(from: &dyn Snapshot, space: Space, name: &str) -> Option<String> {
    text(from.get(space, name.as_bytes()).expect("a read succeeds"))
}

/// Returns all rows of a range, read page by page.
/// Returns the rows of a range, read page by page, and checks that counting page by page finds as
/// many.
fn rows(from: &dyn Snapshot, request: ScanRequest<'_>) -> Vec<(String, String)> {
    let string = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let mut out = Vec::new();
    pages(request, |step, page| {
        from.scan(step, page).expect("a scan succeeds");
        out.extend(page.rows.iter().map(|(key, value)| (string(key), string(value))));
        page.rows.len()
    });
    let mut counted = 0;
    pages(request, |step, page| {
        let count = from.pass(step, page).expect("a count succeeds");
        counted += count;
        let last = page.rows.iter().map(|(key, value)| (string(key), string(value)));
        assert_eq!(last.collect::<Vec<_>>(), out[counted - count.min(1)..counted]);
        count
    });
    assert_eq!(counted, out.len());
    out
}

/// Reads a range with `read`, page by page.
fn pages(request: ScanRequest<'_>, mut read: impl FnMut(&ScanRequest<'_>, &mut Page) -> usize) {
    let mut page = Page::default();
    let mut resume: Option<Bytes> = None;
    loop {
        let step = resume.as_deref().map_or(request, |key| request.resumed(key));
        let count = read(&step, &mut page);
        assert!(count <= request.rows_max, "a page has too many rows");
        assert!(page.resume.is_none() || count > 0, "an empty page with a resume key");
        resume = page.resume.take();
        if resume.is_none() {
            return;
        }
    }
}

fn keys(from: &dyn Snapshot, request: ScanRequest<'_>) -> String {
    let rows = rows(from, request);
    rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>().join(" ")
}
