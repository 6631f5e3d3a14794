//! The table of jobs: a step's effects and its position are one commit.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use quire_collections::{Attempt, Job, JobId, Progress, Rest, Stepped, Writer};
use quire_document::Value;
use quire_error::{Error, ErrorCode};
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};

use super::*;

/// A job that inserts the numbers from 0 below `of`, one a step.
fn counting(of: i64) -> Job {
    Job::new(JobId::new("count", "numbers"), doc! { "of": of }, 5)
}

fn count(writer: &mut Writer, job: &Job) -> Attempt<Progress> {
    let at = job.position.get("at").and_then(|at| at.exact_i64()).unwrap_or(0);
    let of = job.parameter("of").unwrap();
    let namespace = Namespace::parse("d.t").unwrap();
    let collection = writer.collection(&namespace).unwrap();
    writer.insert(&collection, doc! { "_id": at }.as_doc())?;
    let rest = if at + 1 < of { Rest::More } else { Rest::End };
    Ok(Progress { position: doc! { "at": (at + 1) }, done: 1, rest })
}

fn jobs(store: &Store) -> Vec<Job> {
    store.jobs(|key| panic!("damaged: {key:?}")).unwrap()
}

fn filled() -> Arc<Store> {
    let store = store();
    index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    store
}

#[test]
fn a_job_is_added_stepped_and_ends() {
    let store = filled();
    let (options, stop) = (CommitOptions::buffered(), Interrupt::new());
    let rung = store.job_bell().rung();
    assert!(store.add_job(&counting(3), &options, &stop).unwrap());
    assert!(store.job_bell().rung() > rung);
    assert!(!store.add_job(&counting(9), &options, &stop).unwrap());
    let mut job = jobs(&store).remove(0);
    assert_eq!(job, counting(3));
    let mut is_stored = true;
    let step =
        |job: &mut Job, is_stored: &mut bool| store.step_job(job, is_stored, &stop, count).unwrap();
    assert_eq!(step(&mut job, &mut is_stored), Stepped::Goes);
    assert_eq!(jobs(&store), [job.clone()]);
    assert_eq!((job.steps, job.done), (1, 1));
    assert_eq!(step(&mut job, &mut is_stored), Stepped::Goes);
    // A runner whose memory is behind, because the outcome of its last commit was unknown, goes on
    // behind the last effect.
    let (mut behind, mut known) = (counting(3), true);
    assert_eq!(step(&mut behind, &mut known), Stepped::Ended);
    assert!(jobs(&store).is_empty());
    assert_eq!(step(&mut job, &mut is_stored), Stepped::Gone);
    assert_eq!(store.counts(&collection(&store, "d.t")).documents, 3);
    assert_clean(&store);
}

#[test]
fn a_step_that_fails_has_no_effect_and_a_job_that_ends_at_once_no_row() {
    let store = filled();
    let stop = Interrupt::new();
    let (mut job, mut is_stored) = (counting(2), false);
    let failed = store.step_job(&mut job, &mut is_stored, &stop, |writer, job| {
        count(writer, job)?;
        Err(Error::new(ErrorCode::BadValue, "no").into())
    });
    assert_eq!(failed.unwrap_err().code(), ErrorCode::BadValue);
    assert_eq!((store.counts(&collection(&store, "d.t")).documents, job.steps), (0, 0));
    let read = |_: &mut Writer, _: &Job| -> Attempt<Progress> {
        Ok(Progress { position: doc! { "at": 1 }, done: 0, rest: Rest::MoreUnstored })
    };
    let version = store.engine().version();
    store.step_job(&mut job, &mut is_stored, &stop, read).unwrap();
    assert_eq!((is_stored, job.steps), (false, 1));
    assert_eq!(store.engine().version(), version);
    store.step_job(&mut job, &mut is_stored, &stop, count).unwrap();
    assert!(jobs(&store).is_empty());
    store
        .step_job(&mut job, &mut is_stored, &stop, |_, job| {
            let rest = Rest::Until(77);
            Ok(Progress { position: job.position.clone(), done: 2, rest })
        })
        .unwrap();
    assert_eq!((jobs(&store)[0].due_ms, is_stored), (77, true));
    let id = job.id.clone();
    assert!(store.remove_job(&id, &CommitOptions::buffered(), &stop).unwrap());
    assert!(!store.remove_job(&id, &CommitOptions::buffered(), &stop).unwrap());
}

/// Steps against writers of the same documents: each number is inserted once, and no writer is
/// refused.
#[test]
fn steps_and_writers_of_the_same_documents_both_succeed() {
    let store = filled();
    let namespace = Namespace::parse("d.t").unwrap();
    insert(&store, "d.t", &doc! { "_id": "shared", "n": 0i64 }).unwrap();
    let (stop, ended, begin) = (Interrupt::new(), AtomicBool::new(false), Barrier::new(2));
    let add = |writer: &mut Writer| -> Attempt<i64> {
        let collection = writer.collection(&namespace).unwrap();
        let found = writer.view().get_by_id(&collection, Value::String("shared"))?.unwrap();
        let n = found.doc.get("n").and_then(|n| n.exact_i64()).unwrap() + 1;
        let new = doc! { "_id": "shared", "n": n };
        writer.replace(&collection, found.id, found.doc.as_doc(), new.as_doc())?;
        Ok(n)
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            begin.wait();
            let mut written = 0;
            while !ended.load(Ordering::Acquire) {
                store.write(&CommitOptions::buffered(), &Interrupt::new(), add).unwrap();
                written += 1;
            }
            written
        });
        begin.wait();
        let (mut job, mut is_stored) = (counting(200), false);
        while store
            .step_job(&mut job, &mut is_stored, &stop, |writer, job| {
                add(writer)?;
                count(writer, job)
            })
            .unwrap()
            == Stepped::Goes
        {}
        ended.store(true, Ordering::Release);
        let written: i64 = writer.join().unwrap();
        let (last, _) = store.write(&CommitOptions::buffered(), &stop, add).unwrap();
        assert_eq!(last, written + 200 + 1);
    });
    assert_eq!(store.counts(&collection(&store, "d.t")).documents, 201);
}

/// Crashes between any two steps: buffered commits are lost from the end, and the job goes on where
/// its last effect that is left says.
#[test]
fn after_a_crash_the_job_goes_on_behind_its_last_effect() {
    for seed in 0..20 {
        let mut disk = SimulatedDisk::new(Faults::none(seed));
        let mut store = open(disk.open().unwrap());
        index(&store, "d.t", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
        store.add_job(&counting(30), &CommitOptions::synced(), &Interrupt::new()).unwrap();
        let mut steps = seed;
        while let Some(mut job) = jobs(&store).pop() {
            let documents = store.counts(&collection(&store, "d.t")).documents;
            assert_eq!(job.done, documents as i64);
            let mut is_stored = true;
            for _ in 0..=seed % 7 {
                let stepped = store.step_job(&mut job, &mut is_stored, &Interrupt::new(), count);
                steps += 1;
                if stepped.unwrap() != Stepped::Goes {
                    break;
                }
            }
            if steps % 3 == 0 {
                store.engine().barrier(store.engine().version()).unwrap();
            }
            drop(store);
            disk.crash(if steps % 2 == 0 { Crash::Power } else { Crash::TornTail });
            store = open(disk.open().unwrap());
        }
        assert_eq!(store.counts(&collection(&store, "d.t")).documents, 30, "seed {seed}");
        assert_clean(&store);
    }
}

#[test]
fn a_damaged_row_is_found_and_removed() {
    let store = filled();
    store.add_job(&counting(3), &CommitOptions::buffered(), &Interrupt::new()).unwrap();
    let mut txn = quire_storage::begin(store.engine(), quire_storage::Mode::Write).unwrap();
    let rows = [(&b"jcount\0x"[..], &b"no document"[..]), (b"j\xff", b"\x05\0\0\0\0")];
    for (key, value) in rows {
        txn.put(quire_storage::Space::Meta, key.into(), value.into()).unwrap();
    }
    txn.commit(CommitOptions::buffered()).unwrap();
    assert_eq!(check(&store, false).unwrap().findings.len(), 2);
    assert!(check(&store, true).unwrap().is_repaired());
    assert_clean(&store);
    assert_eq!(jobs(&store).len(), 1);
}
