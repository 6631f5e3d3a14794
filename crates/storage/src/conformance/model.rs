//! Random operations compared with `BTreeMap`s: reads in both directions through the overlay,
//! savepoints, commits, open snapshots, restarts.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::{Harness, rows};
use crate::contract::{Direction, Engine, Maintenance, ScanRequest, Snapshot, Space};
use crate::rng::Rng;
use crate::txn::{CommitOptions, Mode, Savepoint, begin};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const SPACES: [Space; 2] = [Space::Doc, Space::Idx];

pub(super) fn random(harness: &dyn Harness) {
    for seed in 0..6 {
        run(harness, seed);
    }
}

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let length = rng.below(3) + 1;
    (0..length).map(|_| b"abcd\0\xff"[usize::try_from(rng.below(6)).unwrap_or(0)]).collect()
}

fn run(harness: &dyn Harness, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut engine = harness.open();
    let mut models = [Model::new(), Model::new()];
    let mut pinned: Vec<(Box<dyn Snapshot>, [Model; 2])> = Vec::new();
    for round in 0..60 {
        transaction(&engine, &mut models, &mut rng);
        if rng.one_in(6) {
            let snapshot = engine.snapshot().expect("a snapshot");
            pinned.push((snapshot, models.clone()));
        }
        if pinned.len() > 3 {
            pinned.remove(0);
        }
        for (snapshot, models) in &pinned {
            compare(&**snapshot, models, &mut rng);
        }
        match rng.below(20) {
            0 => engine.maintenance(Maintenance::Flush).expect("a flush"),
            1 => engine.maintenance(Maintenance::Compact).expect("a compaction"),
            2 => engine.maintenance(Maintenance::Tick).expect("a tick"),
            _ => {}
        }
        if round % 20 == 19 {
            pinned.clear();
            match harness.reopen(engine) {
                Some(reopened) => engine = reopened,
                None => return,
            }
        }
    }
}

fn transaction(engine: &Arc<dyn Engine>, models: &mut [Model; 2], rng: &mut Rng) {
    let mut txn = begin(engine, Mode::Write).expect("a transaction");
    let mut now = models.clone();
    let mut savepoints: Vec<(Savepoint, [Model; 2])> = Vec::new();
    for _ in 0..rng.below(30) {
        let which = usize::from(rng.one_in(2));
        let (space, model) = (SPACES[which], &mut now[which]);
        let name = random_key(rng);
        let key = Bytes::from(name.clone());
        match rng.below(10) {
            0..5 => {
                let value = rng.next_u64().to_string().into_bytes();
                let bytes = Bytes::from(value.clone());
                let written = match rng.below(3) {
                    0 => txn.put(space, key, bytes),
                    1 => txn.put_entry(space, key, bytes),
                    _ => match txn.insert(space, key, bytes, 1) {
                        Err(crate::StorageError::Duplicate(1)) => {
                            assert!(model.contains_key(&name), "a false duplicate");
                            continue;
                        }
                        other => {
                            assert!(!model.contains_key(&name), "a duplicate went unnoticed");
                            other
                        }
                    },
                };
                written.expect("a write is buffered");
                model.insert(name, value);
            }
            5..8 => {
                txn.delete(space, key).expect("a delete is buffered");
                model.remove(&name);
            }
            8 => savepoints.push((txn.savepoint(), now.clone())),
            _ => {
                if let Some((savepoint, model)) = savepoints.pop() {
                    txn.rollback_to(savepoint);
                    now = model;
                }
            }
        }
        if rng.one_in(4) {
            compare(&txn, &now, rng);
        }
    }
    compare(&txn, &now, rng);
    if rng.one_in(5) {
        return;
    }
    txn.commit(CommitOptions::buffered()).expect("nobody else writes");
    *models = now;
    compare(&*engine.snapshot().expect("a snapshot"), models, rng);
}

fn compare(view: &dyn Snapshot, models: &[Model; 2], rng: &mut Rng) {
    for (space, model) in SPACES.into_iter().zip(models) {
        let name = random_key(rng);
        let found = view.get(space, &name).expect("a read");
        assert_eq!(found.as_deref(), model.get(&name).map(Vec::as_slice));
        let (start, mut end) = (random_key(rng), random_key(rng));
        if rng.one_in(3) {
            end.clear();
        }
        let mut request = ScanRequest::new(space, &start, &end);
        request.rows_max = usize::try_from(rng.below(12)).unwrap_or(0) + 1;
        request.bytes_max = usize::try_from(rng.below(200)).unwrap_or(0) + 1;
        if rng.one_in(2) {
            request.direction = Direction::Reverse;
        }
        let found: Vec<_> = rows(view, request).into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, expected(model, &request), "{space:?} {start:?}..{end:?}");
    }
}

fn expected(model: &Model, request: &ScanRequest<'_>) -> Vec<String> {
    if request.is_empty() {
        return Vec::new();
    }
    let upper =
        if request.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(request.end) };
    let range = model.range::<[u8], _>((Bound::Included(request.start), upper));
    let names = range.map(|(key, _)| String::from_utf8_lossy(key).into_owned());
    match request.direction {
        Direction::Forward => names.collect(),
        Direction::Reverse => {
            let mut names: Vec<_> = names.collect();
            names.reverse();
            names
        }
    }
}
