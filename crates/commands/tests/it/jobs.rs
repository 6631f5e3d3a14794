//! The runner of jobs: fair, woken by need, resumed, stopped at once; and expiry, which it runs.

use crate::{Client, Lines, Server, at, code, number, text};
use quire_collections::{Attempt, Job, JobId, Progress, Rest, Writer};
use quire_commands::{JobKind, Service, StepContext, Work};
use quire_document::{Array, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode};
use quire_executor::BatchLimits;
use quire_planner::AggregateRequest;
use quire_storage::{CommitOptions, Interrupt};
use std::sync::Arc;
use std::time::Duration;

/// A kind of jobs of these tests.
const fn kind(
    name: &'static str,
    step: fn(&StepContext<'_>, &mut Writer, &Job) -> Attempt<Progress>,
) -> JobKind {
    JobKind {
        name,
        summary: "A job of a test.",
        thread: "Test",
        op: "command",
        step_time_max: Duration::from_secs(600),
        may_run: |_| true,
        namespace: |_, _| "test.log".to_owned(),
        work: Work::Step(step),
        count: |_, _| {},
    }
}

static KINDS: &[JobKind] = &[
    kind("count", count),
    kind("copy", copy),
    kind("fail", |_, _, job| {
        let text = format!("{} fails always", job.id.name);
        Err(Error::new(ErrorCode::BadValue, text).into())
    }),
    kind("panic", |_, _, _| panic!("a step that panics")),
    kind("block", |cx, writer, job| {
        // Writes what a transaction holds.
        let collection = log(writer);
        let found = writer.view().get_by_id(&collection, Value::String("held"))?.unwrap();
        writer.delete(&collection, found.id, found.doc.as_doc())?;
        let _ = (cx, job);
        Ok(Progress::end(1))
    }),
];

fn log(writer: &mut Writer) -> Arc<quire_catalog::Collection> {
    let namespace = quire_catalog::Namespace::parse("test.log").unwrap();
    writer.collection(&namespace).unwrap()
}

/// Inserts `{job, at}` into the log for each number below `of`, one a step.
fn count(_: &StepContext<'_>, writer: &mut Writer, job: &Job) -> Attempt<Progress> {
    let at = job.position.get("at").and_then(|at| at.exact_i64()).unwrap_or(0);
    let collection = log(writer);
    let name = job.id.name.as_str();
    let id = format!("{name} {at}");
    writer.insert(&collection, doc! { "_id": id.as_str(), "job": name, "at": at }.as_doc())?;
    let is_last = at + 1 == job.parameter("of").unwrap();
    let rest = if is_last { Rest::End } else { Rest::More };
    Ok(Progress { position: doc! { "at": (at + 1) }, done: 1, rest })
}

/// Writes the result of an aggregation into the log.
fn copy(cx: &StepContext<'_>, writer: &mut Writer, _: &Job) -> Attempt<Progress> {
    let group = doc! { "$group": { "_id": "sums", "sum": { "$sum": "$n" } } };
    let namespace = "test.odd".to_owned();
    let request =
        AggregateRequest { namespace, pipeline: vec![group], ..AggregateRequest::default() };
    let rows = cx.aggregate(writer, &request, BatchLimits::docs(10))?;
    let collection = log(writer);
    for row in rows.as_array().iter() {
        writer.insert(&collection, row.as_document().unwrap())?;
    }
    Ok(Progress::end(1))
}

/// Returns a server with an empty log.
fn server() -> Server {
    with_log(Server::new())
}

fn with_log(server: Server) -> Server {
    server.client(1).works(doc! { "create": "log", "$db": "test" });
    server
}

fn add(service: &Service, kind: &str, name: &str, of: i64) {
    let job = Job::new(JobId::new(kind, name), doc! { "of": of }, 1);
    let options = CommitOptions::buffered();
    assert!(service.store().add_job(&job, &options, &Interrupt::new()).unwrap());
}

fn status(client: &mut Client) -> DocBuf {
    client.works(doc! { "serverStatus": 1, "$db": "admin" })
}

/// Waits until `serverStatus` shows what `done` looks for.
fn wait(client: &mut Client, done: impl Fn(&DocBuf) -> bool) -> DocBuf {
    loop {
        let status = status(client);
        if done(&status) {
            return status;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn wait_for(client: &mut Client, path: &str, least: i64) -> DocBuf {
    wait(client, |status| number(status, path) >= Some(least))
}

fn names(client: &mut Client) -> Vec<String> {
    let found = client.works(doc! { "find": "log", "batchSize": 10_000, "$db": "test" });
    let rows: Array<'_> = at(&found, "cursor.firstBatch").unwrap().as_array().unwrap();
    let name = |row: Value<'_>| Some(row.as_document()?.get("job")?.as_str()?.to_owned());
    rows.iter().filter_map(name).collect()
}

fn operations(client: &mut Client) -> DocBuf {
    client.works(doc! { "currentOp": 1, "desc": "Test", "$db": "admin" })
}

/// Jobs that are there together take turns, so none waits for the end of a longer one.
#[test]
fn jobs_take_turns() {
    let server = server();
    let mut client = server.client(1);
    add(&server.0, "count", "a", 100);
    add(&server.0, "count", "b", 3);
    add(&server.0, "count", "c", 50);
    let jobs = server.0.start_jobs_of(KINDS).unwrap();
    wait_for(&mut client, "jobs.count.ended", 3);
    let order = names(&mut client);
    assert_eq!(order[..9], ["a", "b", "c", "a", "b", "c", "a", "b", "c"]);
    assert_eq!(order.len(), 153);
    assert_eq!(number(&status(&mut client), "jobs.count.done"), Some(153));
    // A job that is added while the runner sleeps wakes it.
    add(&server.0, "count", "d", 2);
    wait_for(&mut client, "jobs.count.ended", 4);
    drop(jobs);
    assert!(server.0.store().jobs(|_| {}).unwrap().is_empty());
}

/// A job that fails or panics is shown with its error, logged and tried again; the others go on.
#[test]
fn a_failure_stops_nothing_else() {
    let lines = Lines::default();
    let server = with_log(Server::logging(&lines));
    let mut client = server.client(1);
    add(&server.0, "fail", "f", 1);
    add(&server.0, "panic", "p", 1);
    let jobs = server.0.start_jobs_of(KINDS).unwrap();
    wait_for(&mut client, "jobs.panic.failures", 1);
    add(&server.0, "count", "c", 20);
    wait_for(&mut client, "jobs.count.ended", 1);
    wait_for(&mut client, "jobs.fail.failures", 2);
    let shown = operations(&mut client);
    assert_eq!(text(&shown, "inprog.0.job.kind"), Some("fail"));
    assert_eq!(text(&shown, "inprog.0.ns"), Some("test.log"));
    assert!(text(&shown, "inprog.0.job.error").unwrap().contains("f fails always"));
    assert_eq!(text(&shown, "inprog.1.job.name"), Some("p"));
    let logged = lines.with_message("Error running a job");
    let of_fail = logged.iter().filter(|(_, line)| text(line, "kind") == Some("fail"));
    assert!(of_fail.count() >= 2);
    drop(jobs);
    // Both are still in the table, for the next start.
    assert_eq!(server.0.store().jobs(|_| {}).unwrap().len(), 2);
}

#[test]
fn a_job_goes_on_in_the_next_process() {
    let server = server();
    let mut client = server.client(1);
    add(&server.0, "count", "long", 2000);
    let jobs = server.0.start_jobs_of(KINDS).unwrap();
    wait_for(&mut client, "jobs.count.steps", 5);
    drop(jobs);
    let before = names(&mut client).len();
    let stored = server.0.store().jobs(|_| {}).unwrap();
    assert_eq!(stored.first().map_or(2000, |job| job.done), before as i64);
    let again = server.reopened();
    let mut client = again.client(1);
    let _jobs = again.0.start_jobs_of(KINDS).unwrap();
    if before < 2000 {
        wait_for(&mut client, "jobs.count.ended", 1);
    }
    let found = client.works(doc! { "count": "log", "$db": "test" });
    assert_eq!(number(&found, "n"), Some(2000));
}

/// A job runs a pipeline without a connection, also on a view.
#[test]
fn a_job_runs_an_aggregation() {
    let server = server();
    let mut client = server.client(1);
    let documents =
        doc! { "insert": "t", "documents": [{ "n": 1 }, { "n": 2 }, { "n": 3 }], "$db": "test" };
    client.works(documents);
    let odd = doc! { "$match": { "n": { "$mod": [2, 1] } } };
    client.works(doc! { "create": "odd", "viewOn": "t", "pipeline": [&odd], "$db": "test" });
    add(&server.0, "copy", "sums", 1);
    let _jobs = server.0.start_jobs_of(KINDS).unwrap();
    wait_for(&mut client, "jobs.copy.ended", 1);
    let found = client.works(doc! { "find": "log", "$db": "test" });
    assert_eq!(number(&found, "cursor.firstBatch.0.sum"), Some(4));
}

/// A step that waits for the lock of a transaction is ended by killOp, and by the end of the server.
#[test]
fn a_step_that_waits_can_be_ended() {
    let server = server();
    let mut client = server.client(1);
    client.works(doc! { "insert": "log", "documents": [{ "_id": "held" }], "$db": "test" });
    let session =
        doc! { "id": Value::Binary(quire_document::Binary { subtype: 4, bytes: &[7; 16] }) };
    client.works(doc! {
        "update": "log", "updates": [{ "q": { "_id": "held" }, "u": { "$set": { "a": 1 } } }],
        "lsid": &session, "txnNumber": 1i64, "autocommit": false, "startTransaction": true, "$db": "test",
    });
    add(&server.0, "block", "b", 1);
    let jobs = server.0.start_jobs_of(KINDS).unwrap();
    let op = loop {
        let shown = operations(&mut client);
        if text(&shown, "inprog.0.job.state") == Some("running") {
            break number(&shown, "inprog.0.opid").unwrap();
        }
        std::thread::yield_now();
    };
    client.works(doc! { "killOp": 1, "op": op, "$db": "admin" });
    wait_for(&mut client, "jobs.block.failures", 1);
    // The next attempt waits again; the end of the jobs does not wait for it.
    let attempts = |shown: &DocBuf| text(shown, "inprog.0.job.state") == Some("running");
    while !attempts(&operations(&mut client)) {
        std::thread::yield_now();
    }
    drop(jobs);
    client.works(doc! {
        "abortTransaction": 1, "lsid": &session, "txnNumber": 1i64, "autocommit": false, "$db": "admin",
    });
    let _jobs = server.0.start_jobs_of(KINDS).unwrap();
    wait_for(&mut client, "jobs.block.ended", 1);
    assert_eq!(number(&client.works(doc! { "count": "log", "$db": "test" }), "n"), Some(0));
}

/// While `fsync` blocks writes no step runs.
#[test]
fn no_step_runs_while_writes_are_locked() {
    let server = server();
    let mut client = server.client(1);
    client.works(doc! { "fsync": 1, "lock": true, "$db": "admin" });
    add(&server.0, "count", "c", 1);
    let jobs = server.0.start_jobs_of(KINDS).unwrap();
    while number(&status(&mut client), "globalLock.currentQueue.writers") != Some(1) {
        std::thread::yield_now();
    }
    assert_eq!(number(&status(&mut client), "jobs.count.steps"), Some(0));
    client.works(doc! { "fsyncUnlock": 1, "$db": "admin" });
    wait_for(&mut client, "jobs.count.ended", 1);
    drop(jobs);
}

fn set(client: &mut Client, name: &str, value: impl Into<Value<'static>>) {
    let command = doc! { "setParameter": 1, name: (value.into()), "$db": "admin" };
    client.works(command);
}

/// Inserts documents whose `at` has passed, and some whose has not.
fn fill(client: &mut Client, name: &str, documents: i32) {
    let index = doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 10 };
    client.works(doc! { "createIndexes": name, "indexes": [&index], "$db": "test" });
    let documents: quire_document::ArrayBuf =
        (0..documents).map(|_| doc! { "at": Value::Date(0) }).collect::<Vec<_>>().iter().collect();
    client.works(doc! { "insert": name, "documents": &documents, "$db": "test" });
    let far = Value::Date(i64::MAX / 2);
    client.works(
        doc! { "insert": name, "documents": [{ "at": far }, { "at": 1 }, {}], "$db": "test" },
    );
}

fn left(client: &mut Client, name: &str) -> Option<i64> {
    number(&client.works(doc! { "count": name, "$db": "test" }), "n")
}

#[test]
fn expired_documents_of_all_collections_go_in_shares() {
    let server = Server::new();
    let mut client = server.client(1);
    let clustered = doc! { "key": { "_id": 1 }, "unique": true };
    client.works(doc! {
        "create": "c", "clusteredIndex": &clustered, "expireAfterSeconds": 10, "$db": "test",
    });
    let (old, far) = (Value::Date(1000), Value::Date(i64::MAX / 2));
    client.works(
        doc! { "insert": "c", "documents": [{ "_id": old }, { "_id": far }], "$db": "test" },
    );
    fill(&mut client, "long", 3000);
    fill(&mut client, "short", 20);
    set(&mut client, "ttlMonitorSleepSecs", 1);
    set(&mut client, "ttlIndexDeleteTargetDocs", 500i64);
    let jobs = server.0.start_jobs().unwrap();
    let ended = wait_for(&mut client, "metrics.ttl.deletedDocuments", 3021);
    assert_eq!(number(&ended, "metrics.ttl.deletedDocuments"), Some(3021));
    let after = number(&ended, "metrics.ttl.passes").unwrap() + 1;
    let ended = wait_for(&mut client, "metrics.ttl.passes", after);
    let passes = number(&ended, "metrics.ttl.passes");
    assert!(number(&ended, "metrics.ttl.subPasses") > passes, "{ended:?}");
    for (name, expected) in [("c", 1), ("long", 3), ("short", 3)] {
        assert_eq!(left(&mut client, name), Some(expected), "{name}");
    }
    // The change of a collection's expiry counts from the next pass on.
    client.works(doc! { "collMod": "c", "expireAfterSeconds": "off", "$db": "test" });
    client.works(doc! { "insert": "c", "documents": [{ "_id": old }], "$db": "test" });
    let index = doc! { "name": "at", "expireAfterSeconds": 0 };
    client.works(doc! { "collMod": "short", "index": &index, "$db": "test" });
    let passes = number(&status(&mut client), "metrics.ttl.passes").unwrap();
    wait_for(&mut client, "metrics.ttl.passes", passes + 2);
    assert_eq!(left(&mut client, "c"), Some(2));
    drop(jobs);
}

#[test]
fn expiry_waits_while_it_is_disabled_and_goes_on_after_a_restart() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client, "t", 400);
    set(&mut client, "ttlMonitorSleepSecs", 1);
    set(&mut client, "ttlMonitorBatchDeletes", false);
    set(&mut client, "ttlMonitorEnabled", false);
    let jobs = server.0.start_jobs().unwrap();
    set(&mut client, "ttlMonitorEnabled", true);
    wait_for(&mut client, "metrics.ttl.deletedDocuments", 3);
    set(&mut client, "ttlMonitorEnabled", false);
    drop(jobs);
    let before = left(&mut client, "t").unwrap();
    let stored = server.0.store().jobs(|_| {}).unwrap();
    assert_eq!(stored.len(), usize::from(before > 3));
    let deleted = number(&status(&mut client), "metrics.ttl.deletedDocuments").unwrap();
    assert_eq!(deleted, 403 - before);
    let steps = number(&status(&mut client), "jobs.ttl.steps").unwrap();
    assert!((deleted..=deleted + 1).contains(&steps), "{steps} {deleted}");
    // The next process goes on at once: the job is in the table, no pass is waited for.
    let again = Server::open(
        Arc::clone(server.0.store().engine()),
        crate::replica_set(),
        &[("ttlMonitorSleepSecs", "3600")],
        Arc::new(quire_commands::log::NoLog),
    );
    let mut client = again.client(1);
    let _jobs = again.0.start_jobs().unwrap();
    if before > 3 {
        wait_for(&mut client, "jobs.ttl.ended", 1);
    }
    assert_eq!(left(&mut client, "t"), Some(3));
}

#[test]
fn a_dropped_index_ends_its_job() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client, "t", 10);
    let catalog = server.0.store().catalog();
    let expiring = quire_collections::Expiring::all(&catalog);
    let job = expiring.first().unwrap().job(i64::MAX);
    let options = CommitOptions::buffered();
    assert!(server.0.store().add_job(&job, &options, &Interrupt::new()).unwrap());
    client.works(doc! { "drop": "t", "$db": "test" });
    let _jobs = server.0.start_jobs().unwrap();
    let ended = wait_for(&mut client, "jobs.ttl.ended", 1);
    assert_eq!(number(&ended, "jobs.ttl.done"), Some(0));
    assert_eq!(code(&client.run(doc! { "killOp": 1, "op": 123_456, "$db": "admin" })), 0);
}
