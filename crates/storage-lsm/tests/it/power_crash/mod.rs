//! Power cuts at every call. A process works on a directory while its calls on files are recorded
//! (`examples/recorder.rs`). Then the test builds a disk as a power cut after any call can leave
//! it, with any part of the unsynced changes, and opens it.
//!
//! For each disk it asserts: a check finds no damage, the database opens, every acknowledged commit
//! is there, and the content is the state after one commit, complete. The test can fail: without
//! the syncs of any one kind of file it does. `QUIRE_POWER_CUTS=10000` for the long run.
//!
//! The same process also runs on a failing disk: a call that writes or syncs returns EIO, the disk
//! is full from some call on, also in the middle of a write, or a call that reads returns EIO. The
//! process may stop but not hang, and every acknowledged commit is there afterwards. `repair` kills
//! repairs. `full_disk` fills the disk during flushes, `pieces` watches the syncs of large tables.
//! Linux only.

mod disk;
mod full_disk;
mod pieces;
mod repair;
mod trace;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use quire_storage::rng::Rng;
use quire_storage::{Bytes, CommitOptions, CommitterOptions, Maintenance, Mode, Space, begin};
use quire_storage_lsm::{LsmOptions, examine, is_database, open};
use tempfile::TempDir;

use crate::support::{document, key};
use disk::Disk;
use trace::{Event, Number};

const DIRECTORY: &str = "QUIRE_POWER_DIRECTORY";
/// The file that lists the acknowledged commits. It is in the recorded directory, so that its
/// writes are in the record, and belongs to no database.
const SAID: &str = "said";
const COMMITS: u64 = 240;
/// A process that takes longer counts as hanging.
const HANGS_AFTER: Duration = Duration::from_secs(60);
/// The number of documents that the commits write in turn.
const SLOTS: u64 = 24;

/// Returns the length of the document that commit `at` writes.
fn length(at: u64) -> usize {
    600 + usize::try_from(at % 7).unwrap() * 900
}

/// The recorded process. Not a test by itself.
#[test]
#[ignore = "run by the tests of power cuts in a process of its own"]
fn recorded_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let mut said = OpenOptions::new().create(true).append(true).open(directory.join(SAID)).unwrap();
    let data = directory.join("data");
    // A dozen commits fill a log file. Some are filled with zeros before.
    let tick = Some(Duration::from_millis(3));
    let committer = CommitterOptions { tick, ..CommitterOptions::default() };
    let (log_file_bytes, log_fill_syncs) = (48 << 10, 2);
    let options = LsmOptions { committer, log_file_bytes, log_fill_syncs, ..LsmOptions::default() };
    let mut engine = open(&data, options.clone()).unwrap().engine;
    for at in 1..=COMMITS {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        txn.put_entry(Space::Doc, key(1, at % SLOTS), document(at, length(at))).unwrap();
        txn.put_entry(Space::Idx, key(1, 0), Bytes::copy_from_slice(&at.to_le_bytes())).unwrap();
        txn.put_entry(Space::Doc, key(2, at), Bytes::from_static(b"new")).unwrap();
        if at > 1 {
            txn.delete_entry(Space::Doc, key(2, at - 1)).unwrap();
        }
        let synced = at % 3 == 0;
        let durability = if synced { CommitOptions::synced() } else { CommitOptions::buffered() };
        txn.commit(durability).unwrap();
        if synced {
            said.write_all(&at.to_le_bytes()).unwrap();
        }
        if at % 60 == 20 {
            engine.maintenance(Maintenance::Flush).unwrap();
        }
        if at % 60 == 50 {
            engine.maintenance(Maintenance::Compact).unwrap();
        }
        if at % 100 == 70 {
            engine.close().unwrap();
            drop(engine);
            engine = open(&data, options.clone()).unwrap().engine;
        }
    }
    engine.close().unwrap();
}

/// Runs that process on a directory `root` of `place`, recorded in its file `log`, with a fault.
fn run(place: &Path, fault: &str) -> Output {
    run_process("power_crash::recorded_process", place, fault)
}

/// Runs the test `name` as a process on a directory `root` of `place`, recorded in its file `log`,
/// with a fault (`examples/recorder.rs`).
fn run_process(name: &str, place: &Path, fault: &str) -> Output {
    let here = std::env::current_exe().unwrap();
    let recorder = here.ancestors().nth(2).unwrap().join("examples/librecorder.so");
    assert!(
        recorder.exists(),
        "{} is missing: `cargo build -p quire-storage-lsm --examples` makes it",
        recorder.display()
    );
    let root = place.canonicalize().unwrap().join("root");
    std::fs::create_dir_all(&root).unwrap();
    let mut running = Command::new(here)
        .args(["--ignored", "--exact", name, "--quiet"])
        .env(DIRECTORY, &root)
        .env("QUIRE_RECORDER_ROOT", &root)
        .env("QUIRE_RECORDER_LOG", place.join("log"))
        .env("QUIRE_RECORDER_FAULT", fault)
        .env("LD_PRELOAD", &recorder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while running.try_wait().unwrap().is_none() {
        if begun.elapsed() > HANGS_AFTER {
            running.kill().unwrap();
            panic!("it hangs after the fault '{fault}'");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    running.wait_with_output().unwrap()
}

/// Returns the calls of that process on a disk without faults. A process that fills no log file,
/// because the machine is busy, runs again.
fn record() -> Vec<Event> {
    for _ in 0..5 {
        let place = TempDir::new().unwrap();
        assert!(run(place.path(), "").status.success());
        let events = trace::read(&std::fs::read(place.path().join("log")).unwrap());
        let zeros = events.iter().filter(|event| match event {
            Event::Write(_, _, bytes) => bytes.len() == 16 << 10 && bytes.iter().all(|it| *it == 0),
            _ => false,
        });
        if zeros.count() >= 6 {
            return events;
        }
    }
    panic!("no log file was filled");
}

/// Returns the last commit that was acknowledged before a call.
fn acknowledged(event: &Event, said: Number) -> Option<u64> {
    match event {
        Event::Write(number, _, bytes) if *number == said => {
            Some(u64::from_le_bytes(bytes[..].try_into().unwrap()))
        }
        _ => None,
    }
}

/// Opens the disk after a power cut. Returns an error that describes what is wrong with it.
fn check(directory: &Path, acknowledged: u64) -> Result<(), String> {
    let data = directory.join("data");
    if is_database(&data) {
        let examined = examine(&data, LsmOptions::default());
        let damages = examined.map_err(|error| format!("no check: {error}"))?.damages;
        if !damages.is_empty() {
            return Err(format!("a check finds damage: {}", damages.join("; ")));
        }
    }
    let opened = match open(&data, LsmOptions::default()) {
        Ok(opened) => opened,
        Err(error) => return Err(format!("it does not open: {error}")),
    };
    let snapshot = opened.engine.snapshot().map_err(|error| error.to_string())?;
    let get = |space, key: Bytes| snapshot.get(space, &key).map_err(|error| error.to_string());
    let last = match get(Space::Idx, key(1, 0))? {
        Some(bytes) => u64::from_le_bytes(bytes[..].try_into().map_err(|_| "a counter is torn")?),
        None => 0,
    };
    if last < acknowledged {
        return Err(format!(
            "commit {acknowledged} was acknowledged, {last} is the last one there"
        ));
    }
    for slot in 0..SLOTS {
        let at = last.saturating_sub((last + SLOTS - slot) % SLOTS);
        let wanted = (at > 0 && at % SLOTS == slot).then(|| document(at, length(at)));
        if get(Space::Doc, key(1, slot))? != wanted {
            return Err(format!("after commit {last}, document {slot} is not that of commit {at}"));
        }
    }
    for at in 1..=COMMITS {
        if get(Space::Doc, key(2, at))?.is_some() != (at == last) {
            return Err(format!("after commit {last}, the mark of commit {at} is wrong"));
        }
    }
    drop(snapshot);
    opened.engine.close().map_err(|error| error.to_string())
}

/// Cuts the power `cuts` times at calls spread over the record, each time with another seed.
/// Returns the errors. A sync for which `is_lost` returns true has no effect.
fn cut(
    events: &[Event],
    cuts: u64,
    first_seed: u64,
    is_lost: &dyn Fn(&Path) -> bool,
) -> Vec<String> {
    let said = events.iter().find_map(|event| match event {
        Event::Create(number, path) if path == Path::new(SAID) => Some(*number),
        _ => None,
    });
    let said = said.unwrap();
    let mut places: Vec<(usize, u64)> = (first_seed..first_seed + cuts)
        .map(|seed| (usize::try_from(Rng::new(seed).below(events.len() as u64)).unwrap(), seed))
        .collect();
    places.sort_unstable();
    let mut places = places.into_iter().peekable();
    let (mut disk, mut last, mut wrong) = (Disk::default(), 0, Vec::new());
    let mut paths: std::collections::HashMap<Number, PathBuf> = std::collections::HashMap::new();
    paths.insert(0, PathBuf::new());
    for (at, event) in events.iter().enumerate() {
        while let Some((_, seed)) = places.next_if(|(place, _)| *place == at) {
            let directory = TempDir::new().unwrap();
            disk.after_power_cut(seed, directory.path());
            if let Err(problem) = check(directory.path(), last) {
                wrong.push(format!("seed {seed}, before call {at}: {problem}"));
            }
        }
        match event {
            Event::Create(number, path) | Event::MakeDirectory(number, path) => {
                paths.insert(*number, path.clone());
            }
            Event::Sync(number) if paths.get(number).is_some_and(|path| is_lost(path)) => continue,
            _ => {}
        }
        last = acknowledged(event, said).unwrap_or(last);
        disk.apply(event);
    }
    wrong
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let cuts = std::env::var("QUIRE_POWER_CUTS").ok().and_then(|cuts| cuts.parse().ok());
    let (events, cuts) = (record(), cuts.unwrap_or(40));
    let wrong = cut(&events, cuts, 1, &|_| false);
    assert!(wrong.is_empty(), "{} of {cuts}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Matches a kind of file or directory by the path below the recorded directory.
type Kind = fn(&Path) -> bool;

/// The kinds of files and directories whose syncs are needed for durability.
const KINDS: [(&str, Kind); 6] = [
    ("logs", |path| path.extension().is_some_and(|kind| kind == "jnl")),
    ("tables", |path| path.parent().is_some_and(|above| above.ends_with("tables"))),
    ("lists of tables", |path| name(path).starts_with('v') || name(path).starts_with(".tmp")),
    ("directories of tables", |path| name(path) == "tables"),
    ("directories of keyspaces", |path| {
        path.parent().is_some_and(|above| above.ends_with("keyspaces"))
    }),
    ("the database's directory", |path| path == Path::new("data/data")),
];

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[test]
fn a_missing_sync_is_found() {
    let events = record();
    for (kind, is_lost) in KINDS {
        let found = (1..=20).any(|round| !cut(&events, 20, round * 1000, &is_lost).is_empty());
        assert!(found, "nothing tells that {kind} are not synced");
    }
}

/// Returns the last commit in the file `said`.
fn last_said(place: &Path) -> u64 {
    let said = std::fs::read(place.join("root").join(SAID)).unwrap();
    said.as_chunks::<8>().0.last().map_or(0, |last| u64::from_le_bytes(*last))
}

#[test]
fn a_failing_disk_loses_nothing_that_was_acknowledged() {
    let cuts: Option<u64> =
        std::env::var("QUIRE_POWER_CUTS").ok().and_then(|cuts| cuts.parse().ok());
    let mut stopped = 0;
    for seed in 1..=cuts.map_or(15, |cuts| cuts / 10) {
        let mut rng = Rng::new(seed);
        let kind = ["eio", "enospc", "short", "read"][usize::try_from(rng.below(4)).unwrap()];
        let calls = if kind == "read" { 600 } else { 1800 };
        let fault = format!("{kind} {}", 1 + rng.below(calls));
        let place = TempDir::new().unwrap();
        let ended = run(place.path(), &fault);
        stopped += u64::from(!ended.status.success());
        let checked = check(&place.path().join("root"), last_said(place.path()));
        checked.unwrap_or_else(|problem| panic!("seed {seed}, {fault}: {problem}"));
    }
    assert!(stopped > 0, "no fault did anything");
}
