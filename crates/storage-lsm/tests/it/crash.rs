//! kill -9 under eight writers with synced commits. `QUIRE_CRASH_ROUNDS=200` for the long run.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use quire_storage::rng::Rng;
use quire_storage::{Bytes, CommitOptions, CommitterOptions, Page, ScanRequest, Snapshot, Space};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use crate::support::{document, insert, numbers};

const WRITERS: u32 = 8;
const DIRECTORY: &str = "QUIRE_CRASH_DIRECTORY";

/// The process that is killed: prints every acknowledged commit. Not a test by itself.
#[test]
#[ignore = "run by the crash test in a process of its own"]
fn writer_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    // Small log files, so that memtables are flushed and tables merged all the time.
    // Some log files are filled with zeros before they are used.
    let tick = Some(Duration::from_millis(3));
    let committer = CommitterOptions { tick, ..CommitterOptions::default() };
    let (log_file_bytes, log_fill_syncs) = (128 << 10, 3);
    let options = LsmOptions { committer, log_file_bytes, log_fill_syncs, ..LsmOptions::default() };
    let engine = open(Path::new(&directory), options).unwrap().engine;
    let snapshot = engine.snapshot().unwrap();
    std::thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let first = numbers(&*snapshot, Space::Doc, writer).len() as u64;
            let engine = &engine;
            scope.spawn(move || {
                for number in first.. {
                    let document = document(number, 200 + (number % 50 * 40) as usize);
                    insert(engine, writer, number, document, CommitOptions::synced());
                    let said = format!("{writer} {number}\n");
                    std::io::stdout().lock().write_all(said.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs the writers until they are killed. Returns the last acknowledged number of each.
fn run_and_kill(directory: &Path, after: Duration) -> Vec<Option<u64>> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "crash::writer_process", "--nocapture", "--quiet"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut last = vec![None; WRITERS as usize + 1];
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            let mut words = line.split(' ');
            let (Some(writer), Some(number)) = (words.next(), words.next()) else { continue };
            if let (Ok(writer), Ok(number)) = (writer.parse::<usize>(), number.parse()) {
                last[writer] = Some(number);
            }
        }
        last
    });
    std::thread::sleep(after);
    // On Unix this is SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// Returns the number of rows of a space. A page may end before it is full.
fn rows(snapshot: &dyn Snapshot, space: Space) -> u64 {
    let (mut page, mut start, mut rows) = (Page::default(), Bytes::new(), 0);
    loop {
        snapshot.scan(&ScanRequest::new(space, &start, b"").keys_only(), &mut page).unwrap();
        rows += page.rows.len() as u64;
        match page.resume.take() {
            Some(next) => start = next,
            None => return rows,
        }
    }
}

fn check(directory: &Path, acknowledged: &[Option<u64>]) -> u64 {
    let opened = open(directory, LsmOptions::default()).unwrap();
    let engine = opened.engine;
    let snapshot = engine.snapshot().unwrap();
    let mut total = 0;
    for writer in 1..=WRITERS {
        let documents = numbers(&*snapshot, Space::Doc, writer);
        let count = documents.len() as u64;
        assert_eq!(documents, (0..count).collect::<Vec<_>>(), "lost or doubled");
        assert_eq!(numbers(&*snapshot, Space::Idx, writer), documents, "entries and documents");
        if let Some(last) = acknowledged[writer as usize] {
            assert!(count > last, "writer {writer}: {last} was acknowledged, {count} are there");
            assert!(count <= last + 2, "writer {writer}: more than was ever begun");
        }
        for number in [0, count / 2, count.saturating_sub(1)] {
            let Some(found) =
                snapshot.get(Space::Doc, &crate::support::key(writer, number)).unwrap()
            else {
                assert_eq!(count, 0);
                continue;
            };
            assert_eq!(found, document(number, 200 + (number % 50 * 40) as usize));
        }
        assert_eq!(engine.counts(writer).documents, count, "counters");
        total += count;
    }
    assert_eq!(rows(&*snapshot, Space::Log), total, "change records");
    drop(snapshot);
    engine.close().unwrap();
    total
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let rounds: u64 =
        std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut rng = Rng::new(rounds);
    let mut directory = TempDir::new().unwrap();
    let mut total = 0;
    for round in 0..rounds {
        if round % 20 == 19 {
            directory = TempDir::new().unwrap();
        }
        let after = Duration::from_millis(100 + rng.below(400));
        let acknowledged = run_and_kill(directory.path(), after);
        let now = check(directory.path(), &acknowledged);
        total += acknowledged.iter().flatten().count() as u64;
        if rounds > 10 {
            println!("round {round}: {now} documents, {acknowledged:?}");
        }
    }
    assert!(total > 0, "no commit was ever acknowledged");
}

#[test]
fn a_directory_whose_creator_is_killed_opens_afterwards() {
    let rounds: u64 =
        std::env::var("QUIRE_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(10);
    let mut rng = Rng::new(rounds);
    let mut unfinished = 0;
    for _ in 0..rounds {
        let parent = TempDir::new().unwrap();
        let directory = parent.path().join("a/b");
        let acknowledged = run_and_kill(&directory, Duration::from_micros(rng.below(60_000)));
        unfinished += u64::from(!directory.join("FORMAT").exists());
        check(&directory, &acknowledged);
    }
    println!("{unfinished} of {rounds} were killed before the directory was complete");
}
