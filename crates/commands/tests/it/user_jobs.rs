//! Jobs of users: on schedules, on changes, generators of slots; exactly once across crashes, with the
//! rights of their owners, and with a clock that jumps.

use super::change_streams::{array, document};
use super::*;
use quire_access::Mechanism;
use quire_commands::{ChangeLogMode, ChangeLogOptions, Jobs};
use quire_document::doc;
use quire_storage::rng::Rng;
use quire_storage::{Crash, Faults, ManualClock, SimulatedDisk};
use std::time::Duration;

/// 2026-03-28T12:00:00Z, the day before the clocks of Berlin change.
const NOON: u64 = 1_774_699_200_000;
const DAY_MS: u64 = 86_400_000;

pub(super) fn open(disk: &SimulatedDisk, clock: &Arc<ManualClock>) -> (Server, Jobs) {
    let change_log = ChangeLogOptions { mode: ChangeLogMode::On, ..ChangeLogOptions::default() };
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let in_process = ServiceOptions::in_process("simulated", None);
    let options = ServiceOptions { change_log, clock, ..in_process };
    let server = Server(Service::open(disk.open().unwrap(), options).unwrap());
    let jobs = server.0.start_jobs().unwrap();
    (server, jobs)
}

pub(super) fn begin() -> (SimulatedDisk, Arc<ManualClock>, Server, Jobs) {
    let (disk, clock) = (SimulatedDisk::new(Faults::none(49)), Arc::new(ManualClock::new(NOON)));
    let (server, jobs) = open(&disk, &clock);
    (disk, clock, server, jobs)
}

pub(super) fn find(client: &mut Client, name: &str) -> Vec<DocBuf> {
    let find = doc! { "find": name, "sort": { "_id": 1 }, "batchSize": 100_000, "$db": "d" };
    let reply = client.works(find);
    array(&reply, "cursor.firstBatch").iter().map(|doc| document(Some(doc))).collect()
}

pub(super) fn shown(client: &mut Client, name: &str) -> DocBuf {
    let reply = client.works(doc! { "listJobs": 1, "name": name, "$db": "d" });
    document(array(&reply, "cursor.firstBatch").iter().next())
}

/// Waits until `done` holds for what `listJobs` shows of a job.
pub(super) fn wait(client: &mut Client, name: &str, done: impl Fn(&DocBuf) -> bool) -> DocBuf {
    loop {
        let job = shown(client, name);
        if done(&job) {
            return job;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

pub(super) fn runs(client: &mut Client, name: &str, least: i64) -> DocBuf {
    wait(client, name, |job| number(job, "runs").unwrap_or(0) >= least)
}

/// Sets the clock, and wakes those who wait for it as their look each minute does.
fn set(server: &Server, clock: &ManualClock, now_ms: u64) {
    clock.set_ms(now_ms);
    server.0.look_at_clock();
}

pub(super) fn insert(client: &mut Client, name: &str, doc: &DocBuf) {
    client.works(doc! { "insert": name, "documents": [doc], "$db": "d" });
}

#[test]
fn a_schedule_runs_a_pipeline_at_each_due_time_once_whatever_the_clock_does() {
    let (_disk, clock, server, _jobs) = begin();
    let mut client = server.client(1);
    for (at, stars) in [(1, 5), (1, 3), (2, 4)] {
        insert(&mut client, "ratings", &doc! { "film": at, "stars": stars });
    }
    client.works(doc! { "createJob": "averages", "collection": "ratings",
    "schedule": { "cron": "30 2 * * *", "timeZone": "Europe/Berlin" }, "pipeline": [
        { "$group": { "_id": "$film", "average": { "$avg": "$stars" } } },
        { "$merge": { "into": "films" } },
    ], "$db": "d" });
    let first = shown(&mut client, "averages");
    assert!(matches!(first.get("next"), Some(Value::Date(next)) if next > NOON as i64));
    assert!(find(&mut client, "films").is_empty());
    set(&server, &clock, NOON + DAY_MS);
    let job = runs(&mut client, "averages", 1);
    assert_eq!((number(&job, "last.documents"), number(&job, "done")), (Some(2), Some(2)));
    let films = find(&mut client, "films");
    assert_eq!(films, [doc! { "_id": 1, "average": 4.0 }, doc! { "_id": 2, "average": 4.0 }]);
    // Back by half a day, and forward again: the time that was due has run.
    set(&server, &clock, NOON + DAY_MS / 2);
    set(&server, &clock, NOON + DAY_MS + 1000);
    // Ten missed times are caught up by one run.
    set(&server, &clock, NOON + 11 * DAY_MS);
    let job = runs(&mut client, "averages", 2);
    assert_eq!(number(&job, "runs"), Some(2));
    client.works(doc! { "runJob": "averages", "wait": true, "$db": "d" });
    assert_eq!(number(&shown(&mut client, "averages"), "runs"), Some(3));
}

/// Returns the number of collections with the stored results of runs.
fn results_left(client: &mut Client) -> usize {
    let results = client.works(doc! { "listCollections": 1, "$db": "config" });
    let names = array(&results, "cursor.firstBatch");
    let left = names.iter().filter(|row| {
        let name = row.as_document().and_then(|row| row.get("name")?.as_str());
        name.is_some_and(|name| name.starts_with("jobResults"))
    });
    left.count()
}

#[test]
fn a_large_result_is_merged_part_by_part() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    client.works(
        doc! { "createJob": "fill", "schedule": { "every": 1, "unit": "day" }, "pipeline": [
            { "$documents": [{ "n": { "$range": [0, 2500] } }] }, { "$unwind": "$n" },
            { "$project": { "_id": "$n", "run": "$$job.run" } }, { "$merge": { "into": "many" } },
        ], "$db": "d" },
    );
    let reply = client.works(doc! { "runJob": "fill", "wait": true, "$db": "d" });
    assert_eq!(number(&reply, "run.documents"), Some(2500));
    assert_eq!(find(&mut client, "many").len(), 2500);
    assert_eq!(results_left(&mut client), 0);
    let limited = doc! { "updateJob": "fill", "maxDocuments": 10, "attempts": 1, "deadLetters": "dead",
    "$db": "d" };
    client.works(limited);
    let given_up = client.run(doc! { "runJob": "fill", "wait": true, "$db": "d" });
    assert_eq!(code(&given_up), 96, "the run has no other attempt");
    let dead = find(&mut client, "dead");
    assert!(text(&dead[0], "error.message").unwrap().contains("more than 10"), "{dead:?}");
}

/// The process died after the results were stored and before the commit that notes them, or after the
/// drop of their job.
#[test]
fn stored_results_that_no_run_merges_are_dropped_when_the_server_starts() {
    let (mut disk, clock, server, jobs) = begin();
    let mut client = server.client(1);
    client.works(doc! { "createJob": "j", "schedule": { "every": 1, "unit": "day" },
    "writes": [{ "insert": "t", "documents": [{}] }], "$db": "d" });
    let stored = client.works(doc! { "find": "system.jobs", "$db": "admin" });
    let stored = document(array(&stored, "cursor.firstBatch").iter().next());
    let Some(Value::Binary(uuid)) = stored.get("uuid") else { panic!("{stored:?}") };
    let own: String = uuid.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for digits in [own.as_str(), "00000000000000000000000000000000"] {
        client.works(doc! { "create": (format!("jobResults.{digits}").as_str()), "$db": "config" });
    }
    assert_eq!(results_left(&mut client), 2);
    drop(jobs);
    drop((client, server));
    disk.crash(Crash::Process);
    let (server, _jobs) = open(&disk, &clock);
    assert_eq!(results_left(&mut server.client(1)), 0);
}

#[test]
fn slots_are_made_for_each_item_and_day_and_gaps_are_filled() {
    let (_disk, clock, server, _jobs) = begin();
    let mut client = server.client(1);
    for room in 1..=3 {
        insert(&mut client, "rooms", &doc! { "_id": room, "open": (room < 3) });
    }
    let template = doc! { "_id": { "room": "$$item._id", "day": "$$day" }, "taken": false };
    client.works(doc! { "createJob": "slots", "schedule": { "cron": "0 1 * * *" },
    "slots": { "over": "rooms", "filter": { "open": true }, "days": 4, "timeZone": "Europe/Berlin",
    "template": &template, "into": "calendar" }, "$db": "d" });
    client.works(doc! { "runJob": "slots", "wait": true, "$db": "d" });
    assert_eq!(find(&mut client, "calendar").len(), 8);
    // Local midnights, also over the change of the clocks.
    let days: Vec<_> = find(&mut client, "calendar")
        .iter()
        .map(|slot| match at(slot, "_id.day") {
            Some(Value::Date(day)) => day,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(days[1] - days[0], 86_400_000);
    assert_eq!(days[2] - days[1], 82_800_000);
    let book = doc! { "q": { "_id.room": 1 }, "u": { "$set": { "taken": true } } };
    client.works(doc! { "update": "calendar", "updates": [&book], "$db": "d" });
    let later = Value::Date(NOON as i64);
    let gone = doc! { "q": { "_id.room": 2, "_id.day": { "$gt": later } }, "limit": 1 };
    client.works(doc! { "delete": "calendar", "deletes": [&gone], "$db": "d" });
    set(&server, &clock, NOON + DAY_MS);
    runs(&mut client, "slots", 2);
    let slots = find(&mut client, "calendar");
    assert_eq!(slots.len(), 10);
    let taken = slots
        .iter()
        .filter(|slot| slot.get("taken").and_then(|taken| taken.as_bool()) == Some(true));
    assert_eq!(taken.count(), 1);
}

#[test]
fn a_job_on_changes_keeps_copies_and_does_not_run_for_its_own() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    insert(&mut client, "customers", &doc! { "_id": 1, "name": "Ann" });
    insert(&mut client, "orders", &doc! { "_id": 1, "customer": 1, "name": "Ann" });
    let copy = doc! { "update": "orders", "updates": [{ "q": { "$expr": { "$eq": ["$customer", "$$event.documentKey._id"] } },
    "u": [{ "$set": { "name": "$$event.fullDocument.name" } }], "multi": true }] };
    let sync = doc! { "createJob": "sync", "changes": { "collection": "customers", "fullDocument": "updateLookup",
    "pipeline": [{ "$match": { "operationType": { "$in": ["update", "replace"] } } }] },
    "writes": [&copy], "$db": "d" };
    client.works(sync.clone());
    assert_eq!(code(&client.run(sync)), 48);
    let rename = doc! { "q": { "_id": 1 }, "u": { "$set": { "name": "Bea" } } };
    client.works(doc! { "update": "customers", "updates": [&rename], "$db": "d" });
    runs(&mut client, "sync", 1);
    assert_eq!(text(&find(&mut client, "orders")[0], "name"), Some("Bea"));
    // What happens while the job is paused is handled later.
    client.works(doc! { "pauseJob": "sync", "$db": "d" });
    let rename = doc! { "q": { "_id": 1 }, "u": { "$set": { "name": "Cyd" } } };
    client.works(doc! { "update": "customers", "updates": [&rename], "$db": "d" });
    assert_eq!(text(&shown(&mut client, "sync"), "state"), Some("paused"));
    client.works(doc! { "resumeJob": "sync", "$db": "d" });
    runs(&mut client, "sync", 2);
    assert_eq!(text(&find(&mut client, "orders")[0], "name"), Some("Cyd"));
    let stamp = doc! { "update": "customers", "updates": [{ "q": { "_id": "$$event.documentKey._id" },
    "u": { "$inc": { "seen": 1 } }, "multi": true }] };
    let looping = |ignore: &str| {
        doc! { "createJob": "stamp", "changes": { "collection": "customers", "ignore": ignore },
        "writes": [&stamp], "$db": "d" }
    };
    assert_eq!(code(&client.run(looping("none"))), 2);
    client.works(looping("own"));
    client.works(doc! { "dropJob": "stamp", "$db": "d" });
    client.works(doc! { "dropJob": "sync", "$db": "d" });
    assert_eq!(code(&client.run(doc! { "dropJob": "sync", "$db": "d" })), 26);
    assert!(server.0.store().jobs(|_| {}).unwrap().iter().all(|job| job.id.kind != "user"));
}

#[test]
fn an_event_that_fails_becomes_a_dead_letter_and_the_next_ones_go_on() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let add = doc! { "update": "sums", "updates": [{ "q": { "_id": 1 }, "upsert": true,
    "u": [{ "$set": { "sum": { "$add": [{ "$ifNull": ["$sum", 0] }, "$$event.fullDocument.n"] } } }] }] };
    client.works(doc! { "createJob": "sum", "changes": { "collection": "in" }, "writes": [&add],
    "attempts": 1, "deadLetters": "dead", "$db": "d" });
    client.works(
        doc! { "insert": "in", "documents": [{ "n": 1 }, { "n": "two" }, { "n": 3 }], "$db": "d" },
    );
    wait(&mut client, "sum", |job| number(job, "runs") == Some(3));
    assert_eq!(number(&find(&mut client, "sums")[0], "sum"), Some(4));
    let dead = find(&mut client, "dead");
    assert_eq!((dead.len(), text(&dead[0], "event.fullDocument.n")), (1, Some("two")));
    // Without a collection for them the job stops, and says why.
    client.works(doc! { "updateJob": "sum", "deadLetters": Value::Null, "$db": "d" });
    client.works(doc! { "insert": "in", "documents": [{ "n": "four" }], "$db": "d" });
    let job = wait(&mut client, "sum", |job| text(job, "state") == Some("paused"));
    assert!(text(&job, "reason").unwrap().contains("failed"), "{job:?}");
}

/// A step that had read the definition before `updateJob` handled events of after it by the old one, and a
/// commit that was durable before it was visible did not wake the job.
#[test]
fn an_event_after_a_change_of_the_job_is_handled_by_the_new_definition() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let fails = doc! { "update": "sums", "updates": [{ "q": { "_id": 1 }, "upsert": true,
    "u": [{ "$set": { "sum": { "$add": [1, "$$event.fullDocument.n"] } } }] }] };
    client.works(doc! { "createJob": "sum", "changes": { "collection": "in" }, "writes": [&fails],
    "attempts": 1, "deadLetters": "dead", "$db": "d" });
    for round in 0..30_i64 {
        let name = format!("dead{round}");
        client.works(doc! { "updateJob": "sum", "deadLetters": name.as_str(), "$db": "d" });
        client.works(doc! { "insert": "in", "documents": [{ "n": "text" }], "$db": "d" });
        wait(&mut client, "sum", |job| number(job, "runs") == Some(round + 1));
        assert_eq!(find(&mut client, &name).len(), 1, "{round}");
    }
}

#[test]
fn a_standalone_runs_schedules_and_refuses_jobs_on_changes() {
    let server = Server::of(Topology::Standalone);
    let _jobs = server.0.start_jobs().unwrap();
    let mut client = server.client(1);
    client.works(doc! { "createJob": "j", "schedule": { "every": 1, "unit": "week" },
    "writes": [{ "insert": "t", "documents": [{ "_id": 1 }] },
        { "update": "t", "updates": [{ "q": {}, "u": [{ "$set": { "run": "$$job.run" } }] }] }],
    "$db": "d" });
    client.works(doc! { "runJob": "j", "wait": true, "$db": "d" });
    assert_eq!(find(&mut client, "t"), [doc! { "_id": 1, "run": 0_i64 }]);
    let follow = doc! { "createJob": "k", "changes": { "collection": "t" },
    "writes": [{ "delete": "u", "deletes": [{ "q": {}, "limit": 0 }] }], "$db": "d" };
    assert_eq!(code(&client.run(follow)), 40_573);
}

#[test]
fn what_is_no_job_is_refused() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let day = doc! { "every": 1, "unit": "day" };
    let merge = doc! { "$merge": { "into": "t" } };
    let write = doc! { "insert": "t", "documents": [{}] };
    for (expected, job) in [
        (2, doc! { "createJob": "j", "schedule": &day }),
        (2, doc! { "createJob": "j", "writes": [&write] }),
        (2, doc! { "createJob": "", "schedule": &day, "writes": [&write] }),
        (2, doc! { "createJob": "j", "schedule": &day, "pipeline": [{ "$match": {} }] }),
        (2, doc! { "createJob": "j", "schedule": &day, "changes": {}, "writes": [&write] }),
        (2, doc! { "createJob": "j", "schedule": &day, "writes": [{ "drop": "t" }] }),
        (2, doc! { "createJob": "j", "schedule": { "cron": "x" }, "writes": [&write] }),
        (40415, doc! { "createJob": "j", "schedule": &day, "writes": [&write], "often": true }),
        (2, doc! { "createJob": "j", "schedule": &day, "writes": [] }),
        (
            73,
            doc! { "createJob": "j", "schedule": &day, "writes": [{ "insert": "system.users", "documents": [{}] }] },
        ),
        (
            17276,
            doc! { "createJob": "j", "schedule": &day, "collection": "c", "pipeline": [{ "$set": { "a": "$$nope" } }, &merge] },
        ),
        (
            17276,
            doc! { "createJob": "j", "changes": { "collection": "c" }, "pipeline": [{ "$documents": [{ "a": "$$nope" }] }, &merge] },
        ),
        (
            2,
            doc! { "createJob": "j", "changes": { "collection": "c" }, "collection": "c", "pipeline": [{ "$out": "t" }] },
        ),
        (
            20,
            doc! { "createJob": "j", "changes": { "collection": "c", "pipeline": [{ "$group": { "_id": 1 } }] }, "writes": [&write] },
        ),
        (
            40324,
            doc! { "createJob": "j", "schedule": &day, "collection": "c", "pipeline": [{ "$nothing": {} }, &merge] },
        ),
        (
            2,
            doc! { "createJob": "j", "changes": { "collection": "t" }, "collection": "c", "pipeline": [&merge] },
        ),
    ] {
        let mut job = job;
        job.append("$db", "d");
        assert_eq!(code(&client.run(job.clone())), expected, "{job:?}");
    }
    let in_admin = doc! { "createJob": "j", "schedule": &day, "writes": [&write], "$db": "admin" };
    assert_eq!(code(&client.run(in_admin)), 73);
    for command in ["updateJob", "runJob", "pauseJob", "resumeJob", "dropJob"] {
        assert_eq!(code(&client.run(doc! { (command): "none", "$db": "d" })), 26, "{command}");
    }
}

/// The numbers of runs, and the last run, are those of the job's whole life.
#[test]
fn a_job_that_was_paused_or_changed_counts_on() {
    let (_disk, _clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let insert = doc! { "update": "runs", "updates": [
        { "q": { "$expr": { "$eq": ["$_id", "$$job.run"] } }, "u": [{ "$set": { "n": 1 } }] },
        { "q": {}, "u": [{ "$set": { "run": "$$job.run" } }] },
    ] };
    client.works(doc! { "insert": "runs", "documents": [{ "_id": 100 }], "$db": "d" });
    let schedule = doc! { "every": 1, "unit": "day" };
    client.works(doc! { "createJob": "j", "schedule": &schedule, "writes": [&insert],
    "maxTimeMS": 5000, "$db": "d" });
    assert_eq!(number(&shown(&mut client, "j"), "definition.maxTimeMS"), Some(5000));
    let run = |expected: i64, client: &mut Client| {
        client.works(doc! { "runJob": "j", "wait": true, "$db": "d" });
        assert_eq!(number(&find(client, "runs")[0], "run"), Some(expected));
    };
    run(0, &mut client);
    run(1, &mut client);
    client.works(doc! { "pauseJob": "j", "$db": "d" });
    let paused = shown(&mut client, "j");
    assert_eq!((text(&paused, "state"), number(&paused, "runs")), (Some("paused"), Some(2)));
    assert!(at(&paused, "last.ended").is_some() && paused.get("next").is_none());
    client.works(doc! { "resumeJob": "j", "$db": "d" });
    run(2, &mut client);
    let weekly = doc! { "every": 7, "unit": "day" };
    client.works(
        doc! { "updateJob": "j", "schedule": &weekly, "maxTimeMS": Value::Null, "$db": "d" },
    );
    assert_eq!(number(&shown(&mut client, "j"), "definition.maxTimeMS"), None);
    run(3, &mut client);
}

/// Nothing runs the jobs of this server.
#[test]
fn a_run_that_was_asked_for_is_told_and_kept_when_its_job_is_paused() {
    let server = Server::new();
    let mut client = server.client(1);
    let write = doc! { "insert": "t", "documents": [{}] };
    let day = doc! { "every": 1, "unit": "day" };
    client.works(doc! { "createJob": "j", "schedule": &day, "writes": [&write], "$db": "d" });
    // The pause can also come before the command, which then refuses a paused job.
    while ask_and_pause(&server, &mut client) == 20 {}
    let _jobs = server.0.start_jobs().unwrap();
    client.works(doc! { "resumeJob": "j", "$db": "d" });
    runs(&mut client, "j", 1);
}

/// Asks for a run, pauses the job while the command waits for the run, and returns its error.
fn ask_and_pause(server: &Server, client: &mut Client) -> i32 {
    client.works(doc! { "resumeJob": "j", "$db": "d" });
    let reply = std::thread::scope(|scope| {
        let mut waiting = server.client(2);
        let command = doc! { "runJob": "j", "wait": true, "$db": "d" };
        let asked = scope.spawn(move || waiting.run(command));
        while !asked.is_finished() {
            client.works(doc! { "pauseJob": "j", "$db": "d" });
            let stored = client.works(doc! { "find": "system.jobs", "$db": "admin" });
            let stored = document(array(&stored, "cursor.firstBatch").iter().next());
            if at(&stored, "position.asked").is_none() && !asked.is_finished() {
                client.works(doc! { "resumeJob": "j", "$db": "d" });
                std::thread::yield_now();
            }
        }
        asked.join().unwrap()
    });
    assert!([20, 96].contains(&code(&reply)), "{reply:?}");
    assert!(text(&reply, "errmsg").unwrap().contains("paused"), "{reply:?}");
    code(&reply)
}

/// Money moves from one account to another, by a schedule and by a trigger that books each transfer.
/// However often the process dies, each run and each event has its effect once.
#[test]
fn runs_and_events_have_their_effect_once_across_crashes() {
    let rounds = std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let (mut disk, clock, server, jobs) = begin();
    let mut client = server.client(1);
    for (id, sum) in [("a", 1000), ("b", 0)] {
        insert(&mut client, "accounts", &doc! { "_id": id, "sum": sum });
    }
    let give = |id: &str, amount: i64| {
        doc! { "q": { "_id": id }, "u": { "$inc": { "sum": amount } } }
    };
    let moves = doc! { "update": "accounts", "updates": [&give("a", -1), &give("b", 1)] };
    let note = doc! { "insert": "moves", "documents": [{ "amount": 1 }] };
    client.works(doc! { "createJob": "move", "schedule": { "every": 1, "unit": "minute" },
    "writes": [&moves, &note], "$db": "d" });
    let book = doc! { "update": "book", "updates": [{ "q": { "_id": "sum" }, "upsert": true,
    "u": { "$inc": { "count": 1 } } }] };
    client.works(doc! { "createJob": "book", "changes": { "collection": "moves" }, "writes": [&book], "$db": "d" });
    drop(client);
    let mut rng = Rng::new(49);
    let mut now = NOON;
    let mut held = Some((server, jobs));
    for round in 0..rounds.unwrap_or(6_u64) {
        let (server, jobs) = held.take().unwrap_or_else(|| open(&disk, &clock));
        let mut client = server.client(1);
        for _ in 0..rng.below(4) {
            now += 60_000;
            set(&server, &clock, now);
            if rng.below(2) == 0 {
                let before = number(&shown(&mut client, "move"), "runs").unwrap_or(0);
                runs(&mut client, "move", before.max(1));
            }
        }
        drop(jobs);
        drop((client, server));
        let crash = if round % 2 == 0 { Crash::Process } else { Crash::Power };
        disk.crash(crash);
    }
    let (server, _jobs) = open(&disk, &clock);
    let mut client = server.client(1);
    now += 60_000;
    set(&server, &clock, now);
    // A job that is due at this moment has no lag yet.
    let is_idle =
        |job: &DocBuf| matches!(job.get("next"), Some(Value::Date(next)) if next > now as i64);
    let moved = number(&wait(&mut client, "move", is_idle), "runs").unwrap();
    let last = wait(&mut client, "book", |job| number(job, "runs").unwrap_or(0) >= moved);
    let booked = number(&last, "runs");
    let moved = number(&shown(&mut client, "move"), "runs");
    assert_eq!(booked, moved);
    let sums: Vec<_> =
        find(&mut client, "accounts").iter().map(|account| number(account, "sum")).collect();
    assert_eq!(sums, [moved.map(|moved| 1000 - moved), moved]);
    assert_eq!(find(&mut client, "moves").len() as i64, moved.unwrap());
    assert_eq!(number(&find(&mut client, "book")[0], "count"), moved);
}

#[test]
fn a_job_has_the_rights_of_its_owner_and_stops_without_one() {
    let (server, mut client) = super::access::guarded();
    let jobs = server.0.start_jobs().unwrap();
    let in_d = |role: &str| doc! { "role": role, "db": "d" };
    client.works(doc! { "createUser": "maker", "pwd": "m",
    "roles": [&in_d("dbAdmin"), &in_d("read")], "$db": "admin" });
    let mut maker = server.client(2);
    assert_eq!(maker.log_in("admin", "maker", "m", Mechanism::Sha256), 0);
    let job = doc! { "createJob": "j", "schedule": { "every": 1, "unit": "day" }, "attempts": 1,
    "writes": [{ "insert": "t", "documents": [{ "a": 1 }] }], "$db": "d" };
    maker.works(job.clone());
    assert_eq!(code(&maker.run(doc! { "runJob": "j", "wait": true, "$db": "d" })), 96);
    let job = shown(&mut maker, "j");
    assert!(text(&job, "last.error").unwrap().contains("not authorized"), "{job:?}");
    client
        .works(doc! { "grantRolesToUser": "maker", "roles": [&in_d("readWrite")], "$db": "admin" });
    maker.works(doc! { "runJob": "j", "wait": true, "$db": "d" });
    assert_eq!(find(&mut client, "t").len(), 1);
    client.works(doc! { "dropUser": "maker", "$db": "admin" });
    let paused = client.run(doc! { "runJob": "j", "wait": true, "$db": "d" });
    assert!(text(&paused, "errmsg").unwrap().contains("paused"), "{paused:?}");
    let job = shown(&mut client, "j");
    assert!(text(&job, "reason").unwrap().contains("maker"), "{job:?}");
    assert_eq!(find(&mut client, "t").len(), 1);
    drop(jobs);
}

/// The pages of patterns, in both languages.
const PAGES: [&str; 2] = [
    include_str!("../../../../docs/patterns/jobs.md"),
    include_str!("../../../../docs/patterns/zh/jobs.md"),
];

/// Each block of a page is a command, or the documents that the command before it returns, at once or
/// after a while.
#[test]
fn the_pages_of_patterns_do_what_they_say() {
    for section in PAGES.iter().flat_map(|page| page.split("\n## ").skip(1)) {
        let (_disk, _clock, server, _jobs) = begin();
        let mut client = server.client(1);
        let mut last = DocBuf::new();
        for block in section.split("```js\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let Some(expected) = block.strip_prefix("// result") else {
                last = quire_document::literal::parse_doc(block.trim()).unwrap();
                last.append("$db", "d");
                client.works(last.clone());
                continue;
            };
            let expected = quire_document::literal::parse(expected.trim()).unwrap();
            let expected = quire_document::literal::print(expected.as_value());
            let began = std::time::Instant::now();
            loop {
                let reply = client.works(last.clone());
                let found = at(&reply, "cursor.firstBatch").unwrap();
                let found = quire_document::literal::print(found);
                if found == expected {
                    break;
                }
                assert!(began.elapsed() < Duration::from_secs(300), "{found} is not {expected}");
                std::thread::park_timeout(Duration::from_millis(5));
            }
        }
    }
}

/// A run of several steps said that it began when its last step did; a run that was tried again, when its
/// last attempt did.
#[test]
fn a_run_begins_with_its_first_step_and_its_first_attempt() {
    let (_disk, clock, server, _jobs) = begin();
    let mut client = server.client(1);
    let unique = doc! { "key": { "u": 1 }, "name": "u_1", "unique": true };
    client.works(doc! { "createIndexes": "many", "indexes": [&unique], "$db": "d" });
    insert(&mut client, "many", &doc! { "_id": -1, "u": 1500 });
    insert(&mut client, "few", &doc! { "_id": 1 });
    let day = doc! { "every": 1, "unit": "day" };
    client.works(doc! { "createJob": "parts", "schedule": &day, "attempts": 100, "pipeline": [
        { "$documents": [{ "n": { "$range": [0, 2500] } }] }, { "$unwind": "$n" },
        { "$project": { "_id": "$n", "u": "$n" } }, { "$merge": { "into": "many" } },
    ], "$db": "d" });
    client.works(doc! { "createJob": "whole", "schedule": &day, "attempts": 100,
    "writes": [{ "insert": "few", "documents": [{ "_id": 1 }] }], "$db": "d" });
    for job in ["parts", "whole"] {
        client.works(doc! { "runJob": job, "$db": "d" });
        wait(&mut client, job, |job| number(job, "failures").unwrap_or(0) > 0);
    }
    // An hour later nothing is in their way.
    clock.set_ms(NOON + 3_600_000);
    for (name, id) in [("many", -1), ("few", 1)] {
        let gone = doc! { "q": { "_id": id }, "limit": 1 };
        client.works(doc! { "delete": name, "deletes": [&gone], "$db": "d" });
    }
    for job in ["parts", "whole"] {
        let job = runs(&mut client, job, 1);
        let time = |name: &str| match at(&job, name) {
            Some(Value::Date(time)) => time.cast_unsigned() - NOON,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!((time("last.due"), time("last.started")), (0, 0), "{job:?}");
    }
}
