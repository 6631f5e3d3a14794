//! Random interleavings of transactions and single statements compared with a map of versions, in
//! one thread: a transaction reads its snapshot and its own writes with any plan, the first of two
//! writers of a document wins, and an abort leaves nothing. `QUIRE_MODEL_SEEDS` runs more seeds.

use crate::transactions::{commit, within};
use crate::{Client, Server, at, code, number};
use quire_document::{ArrayBuf, Doc, DocBuf, array, doc};
use quire_storage::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

const IDS: u64 = 8;
const UNIQUE: u64 = 10;
const GROUPS: u64 = 4;
const SESSIONS: usize = 4;

const CONFLICT: i32 = 112;
const DUPLICATE: i32 = 11000;
const OUT_OF_TIME: i32 = 50;
const NO_TRANSACTION: i32 = 251;

/// A document: `_id`, `u` (unique), `a`, and `n`, which no two writes set to the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    id: i32,
    u: i32,
    a: i32,
    n: i32,
}

type Rows = BTreeMap<i32, Row>;

/// The key of locks and versions: a document or a unique value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lock {
    Document(i32),
    Unique(i32),
}

/// An open transaction.
#[derive(Clone)]
struct Open {
    txn_number: i64,
    began: u64,
    snapshot: Rows,
    view: Rows,
    touched: BTreeSet<Lock>,
}

/// Whether another transaction's write conflicts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Foreign {
    No,
    /// The same transaction undid the write: the server may or may not see a conflict.
    Perhaps,
    Yes,
}

/// A write of one statement: the documents before and after it.
#[derive(Debug)]
struct Write {
    command: DocBuf,
    changes: Vec<(i32, Option<Row>)>,
    /// True if no document with this `_id` may exist.
    inserts: bool,
}

#[derive(Default)]
struct Model {
    committed: Rows,
    time: u64,
    /// The time when a lock's holder last changed, and when it was last written at all.
    changed: BTreeMap<Lock, u64>,
    written: BTreeMap<Lock, u64>,
    open: [Option<Open>; SESSIONS],
    /// How often each error code occurred: a test without conflicts shows nothing.
    met: BTreeMap<i32, usize>,
}

/// Returns the row that a lock protects.
fn holder(rows: &Rows, lock: Lock) -> Option<Row> {
    match lock {
        Lock::Document(id) => rows.get(&id).copied(),
        Lock::Unique(u) => rows.values().find(|row| row.u == u).copied(),
    }
}

/// Returns true if a lock's holder has changed; for a unique value only the document counts.
fn is_changed(before: &Rows, after: &Rows, lock: Lock) -> bool {
    let (before, after) = (holder(before, lock), holder(after, lock));
    match lock {
        Lock::Document(_) => before != after,
        Lock::Unique(_) => before.map(|row| row.id) != after.map(|row| row.id),
    }
}

/// Returns the locks of a write.
fn locks(view: &Rows, (id, after): (i32, Option<Row>)) -> BTreeSet<Lock> {
    let (before, after) = (view.get(&id).map(|row| row.u), after.map(|row| row.u));
    let moved = if before == after { [None, None] } else { [before, after] };
    let unique = moved.into_iter().flatten().map(Lock::Unique);
    unique.chain([Lock::Document(id)]).collect()
}

fn apply(rows: &mut Rows, changes: &[(i32, Option<Row>)]) {
    for (id, after) in changes {
        match after {
            Some(row) => drop(rows.insert(*id, *row)),
            None => drop(rows.remove(id)),
        }
    }
}

impl Model {
    /// Returns what a session sees; without a session, the committed state.
    fn view(&self, session: Option<usize>) -> &Rows {
        session
            .and_then(|session| self.open[session].as_ref())
            .map_or(&self.committed, |open| &open.view)
    }

    fn foreign(&self, session: Option<usize>, lock: Lock) -> Foreign {
        let mut worst = Foreign::No;
        for (number, open) in self.open.iter().enumerate() {
            let Some(open) = open.as_ref().filter(|_| Some(number) != session) else { continue };
            if open.touched.contains(&lock) {
                let changed = is_changed(&open.snapshot, &open.view, lock);
                worst = worst.max(if changed { Foreign::Yes } else { Foreign::Perhaps });
            }
        }
        let began = session.and_then(|session| self.open[session].as_ref());
        let since = |times: &BTreeMap<Lock, u64>| {
            began.is_some_and(|open| times.get(&lock).is_some_and(|time| *time > open.began))
        };
        if since(&self.changed) {
            return Foreign::Yes;
        }
        if since(&self.written) { worst.max(Foreign::Perhaps) } else { worst }
    }

    /// Returns the codes that a write may return.
    fn allowed(&self, session: Option<usize>, write: &Write) -> BTreeSet<i32> {
        let view = self.view(session);
        let conflict = if session.is_some() { CONFLICT } else { OUT_OF_TIME };
        let mut codes = BTreeSet::new();
        let mut works = true;
        for change in &write.changes {
            for lock in locks(view, *change) {
                let (id, after) = change;
                let held = match lock {
                    Lock::Document(_) => write.inserts && view.contains_key(id),
                    Lock::Unique(u) => {
                        after.is_some_and(|row| row.u == u) && holder(view, lock).is_some()
                    }
                };
                let added = match lock {
                    Lock::Document(_) => !view.contains_key(id),
                    Lock::Unique(u) => after.is_some_and(|row| row.u == u),
                };
                let foreign = self.foreign(session, lock);
                // The lock of its document covers a value that is removed.
                let leaves = !added && matches!(lock, Lock::Unique(_));
                works &= !held && (foreign != Foreign::Yes || leaves);
                if held {
                    codes.insert(DUPLICATE);
                }
                if foreign != Foreign::No {
                    codes.insert(conflict);
                    if added && holder(&self.committed, lock).is_some() {
                        codes.insert(DUPLICATE);
                    }
                }
            }
        }
        if works {
            codes.insert(0);
        }
        codes
    }

    /// Applies a write that succeeded.
    fn write(&mut self, session: Option<usize>, changes: &[(i32, Option<Row>)]) {
        let view = self.view(session);
        let touched: BTreeSet<Lock> =
            changes.iter().flat_map(|change| locks(view, *change)).collect();
        match session.and_then(|session| self.open[session].as_mut()) {
            Some(open) => {
                apply(&mut open.view, changes);
                open.touched.extend(touched);
            }
            None => {
                let before = self.committed.clone();
                apply(&mut self.committed, changes);
                self.pass(&before, &touched);
            }
        }
    }

    /// Advances the time with a commit.
    fn pass(&mut self, before: &Rows, touched: &BTreeSet<Lock>) {
        self.time += 1;
        for lock in touched {
            self.written.insert(*lock, self.time);
            if is_changed(before, &self.committed, *lock) {
                self.changed.insert(*lock, self.time);
            }
        }
    }

    fn commit(&mut self, session: usize) {
        let Some(open) = self.open[session].take() else { return };
        let before = self.committed.clone();
        for lock in &open.touched {
            if let Lock::Document(id) = lock {
                apply(&mut self.committed, &[(*id, open.view.get(id).copied())]);
            }
        }
        self.pass(&before, &open.touched);
    }
}

/// Returns a write with random values, as a change of what a session sees.
fn random_write(rng: &mut Rng, view: &Rows, n: i32, single: bool) -> Write {
    let (id, u) = (rng.below(IDS) as i32, rng.below(UNIQUE) as i32);
    let a = rng.below(GROUPS) as i32;
    let row = Row { id, u, a, n };
    let update = |filter: DocBuf, change: DocBuf, multi: bool, upsert: bool| {
        doc! { "update": "t", "updates": [{ "q": &filter, "u": &change, "multi": multi, "upsert": upsert }], "$db": "test" }
    };
    let found = |hit: &dyn Fn(&Row) -> bool, change: &dyn Fn(Row) -> Option<Row>| {
        view.values().filter(|row| hit(row)).map(|row| (row.id, change(*row))).collect()
    };
    let (command, changes) = match rng.below(if single { 6 } else { 8 }) {
        0 | 1 => {
            let document = doc! { "_id": id, "u": u, "a": a, "n": n };
            let command = doc! { "insert": "t", "documents": [&document], "$db": "test" };
            return Write { command, changes: vec![(id, Some(row))], inserts: true };
        }
        2 => {
            let set = doc! { "$set": { "u": u, "n": n } };
            let changed = found(&|row| row.id == id, &|row| Some(Row { u, n, ..row }));
            (update(doc! { "_id": id }, set, false, false), changed)
        }
        3 => {
            let set = doc! { "$set": { "a": a, "n": n } };
            let changed = found(&|row| row.u == u, &|row| Some(Row { a, n, ..row }));
            (update(doc! { "u": u }, set, false, false), changed)
        }
        4 => {
            let document = doc! { "u": u, "a": a, "n": n };
            (update(doc! { "_id": id }, document, false, true), vec![(id, Some(row))])
        }
        5 => {
            let command =
                doc! { "delete": "t", "deletes": [{ "q": { "u": u }, "limit": 1 }], "$db": "test" };
            (command, found(&|row| row.u == u, &|_| None))
        }
        6 => {
            let set = doc! { "$set": { "a": (a + 1) % GROUPS as i32, "n": n } };
            let to = |row| Some(Row { a: (a + 1) % GROUPS as i32, n, ..row });
            (update(doc! { "a": a }, set, true, false), found(&|row| row.a == a, &to))
        }
        _ => {
            let command =
                doc! { "delete": "t", "deletes": [{ "q": { "a": a }, "limit": 0 }], "$db": "test" };
            (command, found(&|row| row.a == a, &|_| None))
        }
    };
    Write { command, changes, inserts: false }
}

/// Returns a read with some plan, and its result: one list of numbers for each document, and true
/// if their order is defined.
fn random_read(rng: &mut Rng, view: &Rows, inside: bool) -> (DocBuf, Vec<Vec<i64>>, bool) {
    let (k, hint_a, hint_u) = (rng.below(UNIQUE) as i32, doc! { "a": 1, "u": 1 }, doc! { "u": 1 });
    let find = |filter: DocBuf, hint: &DocBuf| {
        doc! { "find": "t", "filter": &filter, "hint": hint, "$db": "test" }
    };
    let aggregate = |pipeline: &ArrayBuf| {
        doc! { "aggregate": "t", "pipeline": pipeline, "cursor": {}, "$db": "test" }
    };
    let wide = |rows: Vec<Row>| -> Vec<Vec<i64>> {
        rows.iter().map(|row| [row.id, row.u, row.a, row.n].map(i64::from).to_vec()).collect()
    };
    let all: Vec<Row> = view.values().copied().collect();
    let with = |hit: &dyn Fn(&Row) -> bool| all.iter().filter(|row| hit(row)).copied().collect();
    let sorted = |key: &dyn Fn(&Row) -> (i32, i32)| {
        let mut rows = all.clone();
        rows.sort_by_key(|row| key(row));
        wide(rows)
    };
    let from_k = doc! { "u": { "$gte": k } };
    let a = k % GROUPS as i32;
    let values = |rows: Vec<Row>| -> Vec<Vec<i64>> {
        let set: BTreeSet<i64> = rows.iter().map(|row| i64::from(row.a)).collect();
        set.into_iter().map(|a| vec![a]).collect()
    };
    match rng.below(12) {
        0 => (find(DocBuf::new(), &doc! { "$natural": 1 }), wide(all), false),
        1 => (
            doc! { "find": "t", "filter": { "_id": k }, "$db": "test" },
            wide(with(&|row| row.id == k)),
            false,
        ),
        2 => (find(doc! { "u": k }, &hint_u), wide(with(&|row| row.u == k)), false),
        3 => (find(doc! { "a": { "$gte": a } }, &hint_a), wide(with(&|row| row.a >= a)), false),
        4 => {
            let mut command = find(doc! { "a": a }, &hint_a);
            command.append("projection", &doc! { "_id": 0, "u": 1, "a": 1 });
            let rows: Vec<Row> = with(&|row| row.a == a);
            (command, rows.iter().map(|row| vec![row.a.into(), row.u.into()]).collect(), false)
        }
        5 => {
            let mut command = find(DocBuf::new(), &hint_u);
            command.append("sort", &doc! { "u": -1 });
            (command, sorted(&|row| (-row.u, 0)), true)
        }
        6 => {
            let mut command = find(DocBuf::new(), &doc! { "$natural": 1 });
            command.append("sort", &doc! { "a": 1, "u": -1 });
            (command, sorted(&|row| (row.a, -row.u)), true)
        }
        7 => {
            let mut command = find(DocBuf::new(), &hint_a);
            command.append("sort", &doc! { "a": 1, "u": 1 });
            (command, sorted(&|row| (row.a, row.u)), true)
        }
        8 if inside => {
            let rows: Vec<Row> = with(&|row| row.u >= k);
            let some = (!rows.is_empty()).then(|| vec![rows.len() as i64]);
            let pipeline = array![&doc! { "$match": &from_k }, &doc! { "$count": "n" }];
            (aggregate(&pipeline), some.into_iter().collect(), false)
        }
        8 => {
            let rows: Vec<Row> = with(&|row| row.u >= k);
            (
                doc! { "count": "t", "query": &from_k, "$db": "test" },
                vec![vec![rows.len() as i64]],
                false,
            )
        }
        9 => (doc! { "distinct": "t", "key": "a", "$db": "test" }, values(all), false),
        10 => (
            doc! { "distinct": "t", "key": "a", "query": &from_k, "$db": "test" },
            values(with(&|row| row.u >= k)),
            false,
        ),
        _ => {
            let mut groups: BTreeMap<i32, (i64, i64)> = BTreeMap::new();
            for row in &all {
                let group = groups.entry(row.a).or_default();
                *group = (group.0 + 1, group.1 + i64::from(row.u));
            }
            let group = doc! { "_id": "$a", "count": { "$sum": 1 }, "of": { "$sum": "$u" } };
            let expected = groups.iter().map(|(a, (n, of))| vec![i64::from(*a), *n, *of]);
            (aggregate(&array![&doc! { "$group": &group }]), expected.collect(), false)
        }
    }
}

/// Returns the numbers in a reply, one list for each document.
fn told(reply: &DocBuf) -> Vec<Vec<i64>> {
    let numbers = |document: Doc<'_>| {
        document.iter().map(|field| field.value().exact_i64().expect("a whole number")).collect()
    };
    if let Some(values) = reply.get("values").and_then(|values| values.as_array()) {
        return values.iter().map(|value| vec![value.exact_i64().unwrap()]).collect();
    }
    match at(reply, "cursor.firstBatch").and_then(|batch| batch.as_array()) {
        Some(batch) => batch.iter().map(|row| numbers(row.as_document().unwrap())).collect(),
        None => vec![vec![number(reply, "n").unwrap()]],
    }
}

/// Returns the code of a statement, also that of a write error.
fn outcome(reply: &DocBuf) -> i32 {
    match code(reply) {
        0 => number(reply, "writeErrors.0.code").unwrap_or(0) as i32,
        code => code,
    }
}

/// One run: the server and its model.
struct Run {
    client: Client,
    model: Model,
    rng: Rng,
    next: i32,
    seed: u64,
}

impl Run {
    fn new(server: &Server, seed: u64) -> Self {
        let mut client = server.client(1);
        let indexes = array![
            &doc! { "key": { "u": 1 }, "name": "u_1", "unique": true },
            &doc! { "key": { "a": 1, "u": 1 }, "name": "a_1_u_1" },
        ];
        client.works(doc! { "createIndexes": "t", "indexes": &indexes, "$db": "test" });
        Run { client, model: Model::default(), rng: Rng::new(seed), next: 0, seed }
    }

    /// Runs a step of one of the sessions, or of a client without a transaction.
    fn step(&mut self) {
        self.next += 1;
        let session = usize::try_from(self.rng.below(SESSIONS as u64 + 2)).unwrap();
        if session >= SESSIONS {
            return self.statement(None, None);
        }
        let open = self.model.open[session].as_ref().map(|open| open.txn_number);
        match open {
            Some(_) if self.rng.one_in(7) => self.end(session),
            Some(txn_number) => self.statement(Some(session), Some((txn_number, false))),
            None => {
                let (txn_number, model) = (i64::from(self.next), &mut self.model);
                let began = model.time;
                let (snapshot, view) = (model.committed.clone(), model.committed.clone());
                let touched = BTreeSet::new();
                let open = Open { txn_number, began, snapshot, view, touched };
                model.open[session] = Some(open);
                self.statement(Some(session), Some((txn_number, true)));
            }
        }
    }

    fn send(&mut self, session: Option<usize>, txn: Option<(i64, bool)>, body: DocBuf) -> DocBuf {
        let body = match (session, txn) {
            (Some(session), Some((txn_number, start))) => {
                within(body, (session as u8 + 1, txn_number), start)
            }
            _ => body,
        };
        self.client.run(body)
    }

    fn statement(&mut self, session: Option<usize>, txn: Option<(i64, bool)>) {
        let view = self.model.view(session);
        if self.rng.below(5) < 3 {
            let (command, mut expected, ordered) =
                random_read(&mut self.rng, view, session.is_some());
            let reply = self.send(session, txn, command.clone());
            assert_eq!(code(&reply), 0, "seed {}: {command:?}: {reply:?}", self.seed);
            let mut told = told(&reply);
            if !ordered {
                told.sort();
                expected.sort();
            }
            let seed = self.seed;
            assert_eq!(told, expected, "seed {seed}, session {session:?}: {command:?}");
            return;
        }
        let mut write = random_write(&mut self.rng, view, self.next, session.is_none());
        let allowed = self.model.allowed(session, &write);
        if allowed.contains(&OUT_OF_TIME) {
            // The statement would wait for the transaction, which ends only after it.
            write.command.append("maxTimeMS", 1);
        }
        let reply = self.send(session, txn, write.command.clone());
        let code = outcome(&reply);
        let text = format!("seed {}, session {session:?}: {write:?}: {reply:?}", self.seed);
        assert!(allowed.contains(&code), "{code} and not one of {allowed:?}: {text}");
        *self.model.met.entry(code).or_default() += 1;
        if code == 0 {
            return self.model.write(session, &write.changes);
        }
        if let (Some(session), Some((txn_number, _))) = (session, txn) {
            self.model.open[session] = None;
            let find = doc! { "find": "t", "$db": "test" };
            let reply = self.send(Some(session), Some((txn_number, false)), find);
            assert_eq!(outcome(&reply), NO_TRANSACTION, "{text}");
        }
    }

    fn end(&mut self, session: usize) {
        let Some(open) = &self.model.open[session] else { return };
        let txn = Some((open.txn_number, false));
        let aborts = self.rng.one_in(4);
        let end = if aborts {
            doc! { "abortTransaction": 1, "$db": "admin" }
        } else {
            commit()
        };
        let reply = self.send(Some(session), txn, end);
        assert_eq!(code(&reply), 0, "seed {}: {reply:?}", self.seed);
        if aborts {
            self.model.open[session] = None;
        } else {
            self.model.commit(session);
        }
    }

    fn validate(&mut self) {
        (0..SESSIONS).for_each(|session| self.end(session));
        let reply = self.client.works(doc! { "validate": "t", "full": true, "$db": "test" });
        let valid = reply.get("valid").and_then(|valid| valid.as_bool());
        assert_eq!(valid, Some(true), "seed {}: {reply:?}", self.seed);
        let count = number(&reply, "nrecords");
        assert_eq!(count, Some(self.model.committed.len() as i64), "seed {}", self.seed);
    }
}

#[test]
fn interleaved_transactions_follow_a_map_of_versions() {
    let seeds = std::env::var("QUIRE_MODEL_SEEDS").ok().and_then(|text| text.parse().ok());
    let mut met: BTreeMap<i32, usize> = BTreeMap::new();
    for seed in 1..=seeds.unwrap_or(20) {
        let server = Server::new();
        let mut run = Run::new(&server, seed);
        (0..400).for_each(|_| run.step());
        run.validate();
        run.model.met.iter().for_each(|(code, count)| *met.entry(*code).or_default() += count);
    }
    println!("writes by code: {met:?}");
    for code in [0, CONFLICT, DUPLICATE, OUT_OF_TIME] {
        assert!(met.get(&code).is_some_and(|count| *count > 10), "{code}: {met:?}");
    }
}
