//! Capped collections compared with a ring, and the ids of records that are settled.

use super::*;
use quire_catalog::CollectionOptions;
use quire_catalog::capped::CappedChange;
use quire_collections::{ModifyCollection, is_in_doubt};
use quire_error::ErrorCode;
use quire_storage::rng::Rng;
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};
use std::collections::VecDeque;

fn options(fields: &DocBuf) -> CollectionOptions {
    CollectionOptions::parse(fields.as_doc(), 0).unwrap()
}

fn capped(store: &Arc<Store>, name: &str, bytes: i64, max: i64) -> Arc<Collection> {
    let fields = doc! { "capped": true, "size": bytes, "max": max };
    store.create_collection(&ns(name), options(&fields), &CommitOptions::buffered()).unwrap()
}

fn integer(doc: &DocBuf, name: &str) -> i64 {
    doc.get(name).unwrap().exact_i64().unwrap()
}

/// The expected documents of a capped collection, oldest first.
struct Ring {
    docs: VecDeque<DocBuf>,
    bytes_max: usize,
    docs_max: usize,
}

impl Ring {
    fn bytes(&self) -> usize {
        self.docs.iter().map(|doc| doc.as_bytes().len()).sum()
    }

    /// Returns false, and changes nothing, if a document with the same `_id` or `u` is there.
    fn push(&mut self, doc: &DocBuf) -> bool {
        let clashes = |other: &DocBuf| {
            ["_id", "u"].iter().any(|name| integer(other, name) == integer(doc, name))
        };
        if self.docs.iter().any(clashes) {
            return false;
        }
        self.docs.push_back(doc.clone());
        while self.docs.len() > 1
            && (self.docs.len() > self.docs_max || self.bytes() > self.bytes_max)
        {
            self.docs.pop_front();
        }
        true
    }
}

fn assert_same(store: &Arc<Store>, name: &str, ring: &Ring, context: &str) {
    let found = all(store, name);
    assert_eq!(found, Vec::from(ring.docs.clone()), "{context}");
    let counts = store.counts(store.catalog().lookup(&ns(name)).unwrap());
    assert_eq!(counts.documents as usize, ring.docs.len(), "{context}");
    assert_eq!(counts.bytes as usize, ring.bytes(), "{context}");
}

fn any_doc(dice: &mut Rng) -> DocBuf {
    let pad = "p".repeat(dice.below(300) as usize);
    let mut doc = doc! { "_id": dice.below(200) as i32, "u": dice.below(200) as i32, "a": &pad };
    if dice.below(40) == 0 {
        doc.append("large", &"x".repeat(5000));
    }
    doc
}

fn round(seed: u64) {
    let mut dice = Rng::new(seed);
    let engine = quire_storage::open_memory().unwrap();
    let mut store = open(Arc::clone(&engine));
    let mut ring = Ring { docs: VecDeque::new(), bytes_max: 4000, docs_max: 12 };
    capped(&store, "c.r", 4000, 12);
    index(&store, "c.r", &doc! { "key": { "u": 1 }, "name": "u", "unique": true }).unwrap();
    index(&store, "c.r", &doc! { "key": { "a": 1 }, "name": "a" }).unwrap();
    for step in 0..200 {
        let doc = any_doc(&mut dice);
        match dice.below(20) {
            0 => {
                // The bounds change at once, the documents with the next insert.
                ring.bytes_max = 2000 + dice.below(4000) as usize;
                let capped = CappedChange { bytes_max: Some(ring.bytes_max as u64), max: None };
                let change = ModifyCollection { capped, ..ModifyCollection::default() };
                let commit = CommitOptions::buffered();
                store.modify_collection(&ns("c.r"), &change, &commit).unwrap();
            }
            1 => store = open(Arc::clone(&engine)),
            2 | 3 => {
                let at = dice.below(ring.docs.len().max(1) as u64) as usize;
                if let Some(gone) = ring.docs.remove(at) {
                    delete(&store, "c.r", integer(&gone, "_id") as i32).unwrap();
                }
            }
            4 | 5 => {
                let at = dice.below(ring.docs.len().max(1) as u64) as usize;
                if let Some(old) = ring.docs.get_mut(at) {
                    let id = integer(old, "_id") as i32;
                    let new =
                        doc! { "_id": id, "u": old.get("u").unwrap(), "a": doc.get("a").unwrap() };
                    update(&store, "c.r", id, new.as_doc()).unwrap();
                    *old = new;
                }
            }
            6 => {
                // A batch is one commit.
                let docs: Vec<DocBuf> = (0..5).map(|_| any_doc(&mut dice)).collect();
                let work = |writer: &mut Writer| {
                    let collection = writer.collection(&ns("c.r")).unwrap();
                    let insert = |doc: &DocBuf| writer.insert(&collection, doc.as_doc()).is_ok();
                    Ok(docs.iter().map(insert).collect::<Vec<bool>>())
                };
                let written = store.write(&CommitOptions::buffered(), &Interrupt::new(), work);
                let expected: Vec<bool> = docs.iter().map(|doc| ring.push(doc)).collect();
                assert_eq!(written.unwrap().0, expected, "seed {seed}, step {step}");
            }
            _ => {
                let refused = insert(&store, "c.r", &doc).err();
                let code = refused.map(|error| error.code());
                let expected = (!ring.push(&doc)).then_some(ErrorCode::DuplicateKey);
                assert_eq!(code, expected, "seed {seed}, step {step}");
            }
        }
        assert_same(&store, "c.r", &ring, &format!("seed {seed}, step {step}"));
    }
    assert_clean(&store);
}

#[test]
fn a_capped_collection_agrees_with_a_ring() {
    (1..=8).for_each(round);
}

/// Two writers that both saw room for one more document would exceed the bound together.
#[test]
fn writers_keep_the_bound_together() {
    const WRITERS: i32 = 4;
    const EACH: i32 = 60;
    let store = store();
    let c = capped(&store, "c.w", 1 << 20, 10);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, c) = (&store, &c);
            scope.spawn(move || {
                for number in 0..EACH {
                    let doc = doc! { "_id": writer * EACH + number, "w": writer, "n": number };
                    insert(store, "c.w", &doc).unwrap();
                    assert!(store.counts(c).documents <= 10);
                }
            });
        }
    });
    let left = all(&store, "c.w");
    assert_eq!(left.len(), 10);
    for writer in 0..WRITERS {
        let own: Vec<i64> = left
            .iter()
            .filter(|doc| integer(doc, "w") == i64::from(writer))
            .map(|doc| integer(doc, "n"))
            .collect();
        assert!(own.is_sorted_by(|a, b| a + 1 == *b), "{own:?}");
    }
    assert!(left.iter().any(|doc| integer(doc, "n") == i64::from(EACH - 1)));
    assert_clean(&store);
}

/// A scan from the head would otherwise pass the tombstones of all documents that were deleted.
#[test]
fn the_head_follows_the_oldest_document() {
    let engine = quire_storage::open_memory().unwrap();
    let store = open(Arc::clone(&engine));
    capped(&store, "c.h", 1 << 20, 5);
    for number in 0..500 {
        insert(&store, "c.h", &doc! { "_id": number }).unwrap();
    }
    let head_and_first = |store: &Arc<Store>| {
        let c = collection(store, "c.h");
        let head = store.read_view().unwrap().view().record_ids(&c).unwrap().start;
        (head, records(store, "c.h").first().unwrap().id.0)
    };
    assert_eq!(head_and_first(&store), (496, 496));
    let reopened = open(engine);
    insert(&reopened, "c.h", &doc! { "_id": 500 }).unwrap();
    assert_eq!(head_and_first(&reopened), (497, 497));
}

/// A power cut leaves a prefix of the inserts, and with it exactly the ring of that prefix.
#[test]
fn a_crash_leaves_a_ring() {
    for seed in 0..12 {
        let mut dice = Rng::new(seed);
        let mut disk = SimulatedDisk::new(Faults::none(seed));
        let store = open(disk.open().unwrap());
        capped(&store, "c.c", 1 << 20, 7);
        let mut durable = -1;
        for number in 0..40 {
            let synced = dice.below(5) == 0;
            let options = if synced { CommitOptions::synced() } else { CommitOptions::buffered() };
            let written = store.write(&options, &Interrupt::new(), |writer| {
                let c = writer.collection(&ns("c.c")).unwrap();
                writer.insert(&c, doc! { "_id": number }.as_doc()).map(|_| ())
            });
            assert!(!written.as_ref().is_err_and(is_in_doubt));
            durable = if synced { number } else { durable };
        }
        drop(store);
        disk.crash(Crash::Power);
        let store = open(disk.open().unwrap());
        let ids: Vec<i64> = all(&store, "c.c").iter().map(|doc| integer(doc, "_id")).collect();
        let last = ids.last().copied().unwrap_or(-1);
        assert!(last >= i64::from(durable), "seed {seed}: {ids:?} {durable}");
        let expected: Vec<i64> = ((last - 6).max(0)..=last).collect();
        assert_eq!(ids, expected, "seed {seed}");
        assert_clean(&store);
    }
}

/// A reader that goes on after the last record that it has seen would skip a record that a slow
/// writer commits later with a smaller id.
#[test]
fn a_view_knows_which_records_are_settled() {
    let store = store();
    let c = collection(&store, "d.t");
    insert(&store, "d.t", &doc! { "_id": 1 }).unwrap();
    let settled = |store: &Arc<Store>| {
        let view = store.settled_view(&c).unwrap();
        let bound = view.view().settled_below(&c).unwrap();
        let read = records(store, "d.t").iter().filter(|record| record.id < bound).count();
        (bound.0, read)
    };
    assert_eq!(settled(&store), (2, 1));
    let mut slow = store.writer(WriterMode::Statement).unwrap();
    slow.insert(&c, doc! { "_id": 2 }.as_doc()).unwrap();
    insert(&store, "d.t", &doc! { "_id": 3 }).unwrap();
    assert_eq!((settled(&store), all(&store, "d.t").len()), ((2, 1), 2));
    slow.commit(CommitOptions::buffered()).unwrap();
    assert_eq!(settled(&store), (4, 3));
    let view = store.read_view().unwrap();
    assert_eq!(view.view().settled_below(&c), None, "a view for other readers does not know it");
}

#[test]
fn a_conversion_keeps_the_newest_documents() {
    let store = store();
    let text = "x".repeat(1000);
    for id in 0..10 {
        insert(&store, "d.t", &doc! { "_id": id, "s": text.as_str() }).unwrap();
    }
    index(&store, "d.t", &doc! { "key": { "s": 1 }, "name": "s" }).unwrap();
    let (interrupt, commit) = (Interrupt::new(), CommitOptions::buffered());
    let (from, to) = (ns("d.t"), ns("d.copy"));
    store.clone_as_capped((&from, &to), 2100, &interrupt, &commit).unwrap();
    store.convert_to_capped(&from, 3100, &interrupt, &commit).unwrap();
    let ids = |name: &str| -> Vec<i64> {
        let id = |doc: &DocBuf| integer(doc, "_id");
        all(&store, name).iter().map(id).collect()
    };
    assert_eq!((ids("d.t"), ids("d.copy")), (vec![7, 8, 9], vec![8, 9]));
    let catalog = store.catalog();
    let converted = catalog.lookup(&from).unwrap();
    assert_eq!((converted.indexes.len(), converted.frozen), (1, false));
    assert_eq!(catalog.collections().count(), 2);
    insert(&store, "d.t", &doc! { "_id": 10, "s": text.as_str() }).unwrap();
    assert_eq!(ids("d.t"), [8, 9, 10]);
    let again = store.clone_as_capped((&from, &to), 2100, &interrupt, &commit);
    assert_eq!(again.unwrap_err().code(), ErrorCode::NamespaceExists);
    assert_clean(&store);
}
