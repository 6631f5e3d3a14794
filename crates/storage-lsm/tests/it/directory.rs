//! The directory: one process, one format, clean stops, backups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quire_storage::{
    CommitOptions, Engine, Interrupt, Interruption, Maintenance, Space, StorageError,
};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use crate::support::{document, fill, insert, numbers};

fn refused(directory: &std::path::Path) -> String {
    match open(directory, LsmOptions::default()).map(|_| ()) {
        Err(StorageError::Unavailable(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_second_user_is_refused_until_the_first_has_closed() {
    let directory = TempDir::new().unwrap();
    let first = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let why = refused(directory.path());
    assert!(why.contains("in use") && why.contains(&std::process::id().to_string()), "{why}");
    let snapshot = first.snapshot().unwrap();
    first.close().unwrap();
    let second = open(directory.path(), LsmOptions::default()).unwrap().engine;
    assert!(snapshot.get(Space::Doc, b"x").is_err(), "a snapshot of a closed engine");
    drop(second);
    open(directory.path(), LsmOptions::default()).unwrap();
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let directory = TempDir::new().unwrap();
    open(directory.path(), LsmOptions::default()).unwrap().engine.close().unwrap();
    let format = directory.path().join("FORMAT");
    assert_eq!(std::fs::read_to_string(&format).unwrap(), "quire-storage 3\n");
    std::fs::write(&format, "quire-storage 4\n").unwrap();
    let why = refused(directory.path());
    assert!(why.contains("format 4") && why.contains("format 3"), "{why}");
    std::fs::write(&format, "garbage").unwrap();
    let opened = open(directory.path(), LsmOptions::default()).map(|_| ());
    assert!(matches!(opened, Err(StorageError::Corruption { .. })));
}

#[test]
fn another_databases_directory_is_refused() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("WiredTiger"), "WiredTiger").unwrap();
    assert!(refused(directory.path()).contains("another database's files"));
    assert_eq!(directory.path().read_dir().unwrap().count(), 1, "left alone");
}

/// A directory without `FORMAT` was treated as an unfinished creation, and created again.
#[test]
fn data_without_their_format_are_refused_and_repaired() {
    for damage in ["", "quire-stor"] {
        let directory = TempDir::new().unwrap();
        let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
        insert(&engine, 1, 0, document(0, 10), CommitOptions::synced());
        engine.close().unwrap();
        let format = directory.path().join("FORMAT");
        match damage {
            "" => std::fs::remove_file(&format).unwrap(),
            text => std::fs::write(&format, text).unwrap(),
        }
        for _ in 0..2 {
            let opened = open(directory.path(), LsmOptions::default()).map(|_| ());
            assert!(matches!(opened, Err(StorageError::Corruption { .. })), "{opened:?}");
        }
        assert!(quire_storage_lsm::is_database(directory.path()));
        let repair = LsmOptions { repair: true, ..LsmOptions::default() };
        let opened = open(directory.path(), repair).unwrap();
        assert_eq!((opened.warnings.len(), opened.engine.counts(1).documents), (1, 1));
        opened.engine.close().unwrap();
        quire_storage_lsm::end_repair(directory.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&format).unwrap(), "quire-storage 3\n");
        let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
        assert_eq!(engine.counts(1).documents, 1);
    }
}

#[test]
fn a_directory_whose_creation_was_interrupted_is_created_again() {
    let directory = TempDir::new().unwrap();
    std::fs::create_dir_all(directory.path().join("data/keyspaces")).unwrap();
    std::fs::write(directory.path().join("data/0.jnl"), [0; 100]).unwrap();
    std::fs::write(directory.path().join("FORMAT.new"), "").unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    insert(&engine, 1, 0, document(0, 10), CommitOptions::synced());
}

#[test]
fn the_remains_of_a_creation_that_lost_power_are_replaced() {
    let whole = TempDir::new().unwrap();
    open(whole.path(), LsmOptions::default()).unwrap().engine.close().unwrap();
    let mut files = Vec::new();
    list(&whole.path().join("data"), &mut files);
    assert!(files.len() >= 10, "{files:?}");
    for lost in &files {
        let directory = TempDir::new().unwrap();
        for file in files.iter().filter(|file| *file != lost) {
            let to = directory.path().join(file.strip_prefix(whole.path()).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(file, to).unwrap();
        }
        let emptied = directory.path().join(lost.strip_prefix(whole.path()).unwrap());
        std::fs::create_dir_all(emptied.parent().unwrap()).unwrap();
        std::fs::write(emptied, "").unwrap();
        std::fs::write(directory.path().join("FORMAT.new"), "quire-st").unwrap();
        let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
        insert(&engine, 1, 0, document(0, 10), CommitOptions::synced());
        assert_eq!(engine.counts(1).documents, 1);
    }
}

/// Appends the files below a directory to `files`.
fn list(directory: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}

#[test]
fn a_clean_stop_leaves_nothing_to_replay() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    fill(&engine, 1, 2000, 500);
    let version = engine.version();
    engine.close().unwrap();
    let logs = quire_storage_lsm::journal::files(&directory.path().join("data")).unwrap();
    let lengths: Vec<_> = logs.iter().map(|log| log.metadata().unwrap().len()).collect();
    assert_eq!(lengths, [0]);
    for round in 0..3u64 {
        let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
        let snapshot = engine.snapshot().unwrap();
        assert_eq!(numbers(&*snapshot, Space::Doc, 1).len() as u64, 2000 + round);
        assert_eq!(engine.counts(1).documents, 2000 + round);
        assert_eq!(engine.version().as_u64(), version.as_u64() + round);
        insert(&engine, 1, 2000 + round, document(0, 10), CommitOptions::buffered());
        drop(snapshot);
        engine.close().unwrap();
    }
}

#[test]
fn an_interrupted_backup_leaves_nothing() {
    let directory = TempDir::new().unwrap();
    let target = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    fill(&engine, 1, 500, 300);
    let interrupt = Interrupt::new();
    interrupt.kill(Interruption::Killed);
    let killed = Err(StorageError::Interrupted(Interruption::Killed));
    let missing = target.path().join("copy");
    assert_eq!(engine.backup(&missing, &interrupt).map(|_| ()), killed);
    assert!(!missing.exists());
    assert_eq!(engine.backup(target.path(), &interrupt).map(|_| ()), killed);
    assert_eq!(target.path().read_dir().unwrap().count(), 0);
    engine.backup(target.path(), &Interrupt::new()).unwrap();
    open(target.path(), LsmOptions::default()).unwrap();
}

#[test]
fn a_backup_that_died_is_never_opened() {
    let directory = TempDir::new().unwrap();
    drop(open(directory.path(), LsmOptions::default()).unwrap());
    std::fs::write(directory.path().join("COPYING"), "").unwrap();
    let error = open(directory.path(), LsmOptions::default()).err();
    assert!(matches!(error, Some(StorageError::Unavailable(_))), "{error:?}");
}

#[test]
fn a_backup_is_consistent_while_writers_go_on() {
    let directory = TempDir::new().unwrap();
    let target = TempDir::new().unwrap();
    let copy = target.path().join("copy");
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    fill(&engine, 1, 5000, 300);
    engine.maintenance(Maintenance::Flush).unwrap();
    let stop = AtomicBool::new(false);
    let version = std::thread::scope(|scope| {
        let writer: &Arc<dyn Engine> = &engine;
        let stop = &stop;
        scope.spawn(move || {
            for number in 0.. {
                insert(writer, 2, number, document(number, 300), CommitOptions::buffered());
                if stop.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        let version = engine.backup(&copy, &Interrupt::new()).unwrap().version;
        stop.store(true, Ordering::SeqCst);
        version
    });
    assert!(engine.backup(&copy, &Interrupt::new()).is_err(), "a backup never overwrites");
    let restored = open(&copy, LsmOptions::default()).unwrap().engine;
    assert_eq!(restored.version(), version);
    let snapshot = restored.snapshot().unwrap();
    assert_eq!(numbers(&*snapshot, Space::Doc, 1).len(), 5000);
    let second = numbers(&*snapshot, Space::Doc, 2);
    assert_eq!(second, (0..second.len() as u64).collect::<Vec<_>>());
    assert_eq!(numbers(&*snapshot, Space::Idx, 2), second);
    assert_eq!(restored.counts(1).documents, 5000);
    assert_eq!(restored.counts(2).documents, second.len() as u64);
    drop(snapshot);
    insert(&restored, 3, 0, document(0, 10), CommitOptions::synced());
    restored.close().unwrap();
    let again = open(&copy, LsmOptions::default()).unwrap().engine;
    assert_eq!(again.counts(3).documents, 1);
}

/// Every user of the machine could read the files, and a symbolic link in place of `LOCK` was
/// followed.
#[cfg(unix)]
#[test]
fn files_belong_to_their_owner_alone_and_links_are_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("db");
    let engine = open(&path, LsmOptions::default()).unwrap().engine;
    crate::support::fill(&engine, 1, 1000, 100);
    engine.maintenance(Maintenance::Flush).unwrap();
    engine.backup(&directory.path().join("copy"), &Interrupt::new()).unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for top in ["db", "copy"] {
        let top = directory.path().join(top);
        // These directories protect the files below them: no other user can enter them.
        assert_eq!((mode(&top), mode(&top.join("data"))), (0o700, 0o700), "{}", top.display());
        for entry in std::fs::read_dir(&top).unwrap() {
            let path = entry.unwrap().path();
            assert!(path.is_dir() || mode(&path) == 0o600, "{}", path.display());
        }
    }
    engine.close().unwrap();
    drop(engine);
    let elsewhere = directory.path().join("precious");
    std::fs::write(&elsewhere, "precious").unwrap();
    std::fs::remove_file(path.join("LOCK")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, path.join("LOCK")).unwrap();
    assert!(open(&path, LsmOptions::default()).is_err());
    assert_eq!(std::fs::read(&elsewhere).unwrap(), b"precious");
}
