//! The change log: what a reader sees of random writes equals the data, from any place on, also
//! after the store was opened again, and after the beginning of the log was removed.

use super::*;
use quire_catalog::CollectionOptions;
use quire_collections::{
    Attempt, ChangeEntry, ChangeLogMode, ChangePlace, ChangeWhat, LogBeginning, LogReader,
    LogWindow, Rename, View,
};
use quire_document::Value;
use quire_document::literal::print;
use quire_error::ErrorCode;
use quire_storage::rng::Rng;
use quire_storage::{Clock, Crash, Faults, Maintenance, Page, ScanRequest, SimulatedDisk, Space};
use std::collections::{BTreeMap, VecDeque};

/// The documents of all collections, by their names and `_id`s.
type Data = BTreeMap<String, BTreeMap<i32, String>>;

fn logged(disk: &SimulatedDisk) -> Arc<Store> {
    let options = StoreOptions { change_log: ChangeLogMode::On, ..StoreOptions::default() };
    Store::open(disk.open().unwrap(), options).unwrap()
}

fn beginning(store: &Store) -> LogBeginning {
    LogBeginning::read(&*store.engine().snapshot().unwrap()).unwrap().unwrap()
}

/// Returns the changes from `place` on, read `step` at a time.
fn read(store: &Store, place: ChangePlace, step: usize) -> Vec<ChangeEntry> {
    let snapshot = store.engine().snapshot().unwrap();
    let (mut reader, mut found) = (LogReader::at(place), Vec::new());
    loop {
        let mut out = VecDeque::new();
        let done = reader.read(&*snapshot, snapshot.version(), &|_| true, step, &mut out).unwrap();
        assert!(out.len() <= step);
        found.extend(out);
        if done {
            return found;
        }
    }
}

fn all(store: &Store) -> Vec<ChangeEntry> {
    read(store, ChangePlace::of_version(beginning(store).version.as_u64()), 1000)
}

fn text(bytes: &[u8]) -> String {
    print(Doc::from_valid_bytes(bytes))
}

fn id_of(bytes: &[u8]) -> i32 {
    match Doc::from_valid_bytes(bytes).get("_id") {
        Some(Value::Int32(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// Applies a change as a consumer does that mirrors the data.
fn apply(data: &mut Data, entry: &ChangeEntry) {
    match &entry.what {
        ChangeWhat::Insert { collection, doc } => {
            let old = data.get_mut(&collection.namespace).unwrap().insert(id_of(doc), text(doc));
            assert_eq!(old, None, "an insert over a document");
        }
        ChangeWhat::Update { collection, key, description, .. } => {
            let docs = data.get_mut(&collection.namespace).unwrap();
            let now = Doc::from_valid_bytes(description).get("updatedFields");
            let Some(Value::Document(now)) = now else { panic!() };
            let doc = docs.get_mut(&id_of(key)).unwrap();
            let Some(Value::Int32(value)) = now.get("v") else { panic!() };
            *doc = print(doc! { "_id": id_of(key), "v": value }.as_doc());
        }
        ChangeWhat::Replace { collection, after, .. } => {
            let docs = data.get_mut(&collection.namespace).unwrap();
            assert!(docs.insert(id_of(after), text(after)).is_some());
        }
        ChangeWhat::Delete { collection, key, .. } => {
            let docs = data.get_mut(&collection.namespace).unwrap();
            assert!(docs.remove(&id_of(key)).is_some());
        }
        ChangeWhat::Catalog(_) => apply_catalog(data, entry.catalog().unwrap()),
    }
}

fn apply_catalog(data: &mut Data, entry: Doc<'_>) {
    let name = |field: &str| entry.get(field).unwrap().as_str().unwrap().to_owned();
    match name("op").as_str() {
        "create" => drop(data.entry(name("ns")).or_default()),
        "drop" => drop(data.remove(&name("ns")).unwrap()),
        "rename" => {
            let docs = data.remove(&name("ns")).unwrap();
            data.insert(name("to"), docs);
        }
        "dropDatabase" => assert!(!data.keys().any(|ns| ns.starts_with(&name("ns")))),
        other => panic!("{other}"),
    }
}

/// Returns what the collections contain.
fn stored(store: &Arc<Store>) -> Data {
    let view = store.read_view().unwrap();
    let mut data = Data::new();
    for collection in view.catalog().collections() {
        let docs = data.entry(collection.namespace.to_string()).or_default();
        for record in records(&view.view(), collection) {
            docs.insert(id_of(record.doc.as_bytes()), text(record.doc.as_bytes()));
        }
    }
    data
}

fn records(view: &View<'_>, collection: &Collection) -> Vec<Record> {
    let mut cursor = CollectionCursor::new(collection, Direction::Forward);
    let mut found = Vec::new();
    while cursor.next_page(view, collection, 100, 1 << 20, &mut found).unwrap() {}
    found
}

/// Does one random write or change of the catalog.
fn act(store: &Arc<Store>, rng: &mut Rng, next_id: &mut i32) {
    let options = CommitOptions::buffered();
    let name = Namespace::parse(["one.a", "one.b", "two.a"][rng.below(3) as usize]).unwrap();
    let Some(collection) = store.catalog().lookup(&name).cloned() else {
        store.create_collection(&name, CollectionOptions::default(), &options).unwrap();
        return;
    };
    match rng.below(40) {
        0 => drop(store.drop_collection(&name, &options).unwrap()),
        1 => drop(store.drop_database(name.db(), &options).unwrap()),
        2 => {
            let to = Namespace::parse(&format!("{}.b", name.db())).unwrap();
            let (drop_target, from_uuid, target_uuid) = (true, None, None);
            let rename = Rename { from: name, to, drop_target, from_uuid, target_uuid };
            // Both names can be the same.
            let _ = store.rename_collection(&rename, &Interrupt::new(), &options);
        }
        _ => {
            let (writes, seed) = (1 + rng.below(6), rng.next_u64());
            let first = *next_id;
            *next_id += 100;
            let write = |writer: &mut Writer| {
                let mut rng = Rng::new(seed);
                (0..writes).try_for_each(|at| {
                    write_one(writer, &collection, &mut rng, first + at as i32 * 10)
                })
            };
            store.write(&options, &Interrupt::new(), write).unwrap();
        }
    }
}

/// Inserts, updates, replaces or deletes documents; sometimes undoes it again.
fn write_one(
    writer: &mut Writer,
    collection: &Collection,
    rng: &mut Rng,
    next: i32,
) -> Attempt<()> {
    let before = writer.savepoint();
    let docs = records(&writer.view(), collection);
    let chosen = (!docs.is_empty()).then(|| &docs[rng.below(docs.len() as u64) as usize]);
    let value = rng.below(1000) as i32;
    match (rng.below(5), chosen) {
        (0, Some(record)) => writer.delete(collection, record.id, record.doc.as_doc())?,
        (1, Some(record)) => {
            let new = doc! { "_id": id_of(record.doc.as_bytes()), "v": value, "w": "replaced" };
            writer.replace(collection, record.id, record.doc.as_doc(), new.as_doc())?;
        }
        (2, Some(record)) if record.doc.get("w").is_none() => {
            let new = doc! { "_id": id_of(record.doc.as_bytes()), "v": value + 1000 };
            let update = super::changes::operators(&doc! { "$set": &doc! { "v": value + 1000 } });
            writer.update(collection, record.id, record.doc.as_doc(), new.as_doc(), &update)?;
        }
        _ => {
            for id in 0..1 + rng.below(4) as i32 {
                let doc = doc! { "_id": next + id, "v": value };
                writer.insert(collection, doc.as_doc())?;
            }
        }
    }
    if rng.below(6) == 0 {
        writer.rollback_to(before);
    }
    Ok(())
}

#[test]
fn the_log_tells_what_happened_from_any_place_on() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let mut disk = SimulatedDisk::new(Faults::none(seed));
        let mut store = logged(&disk);
        let mut next_id = 0;
        for _ in 0..4 {
            for _ in 0..60 {
                act(&store, &mut rng, &mut next_id);
            }
            let entries = all(&store);
            assert!(entries.is_sorted_by(|one, next| one.place < next.place));
            assert!(entries.is_sorted_by_key(|entry| entry.time));
            let mut data = Data::new();
            entries.iter().for_each(|entry| apply(&mut data, entry));
            assert_eq!(data, stored(&store));
            for _ in 0..20 {
                let at = rng.below(entries.len() as u64) as usize;
                let step = 1 + rng.below(7) as usize;
                let found = read(&store, entries[at].place.next(), step);
                assert_eq!(shown(&found), shown(&entries[at + 1..]), "from {at}");
            }
            drop(store);
            disk.crash(Crash::Process);
            store = logged(&disk);
            assert_eq!(shown(&all(&store)), shown(&entries), "after a crash");
        }
    }
}

fn shown(entries: &[ChangeEntry]) -> Vec<String> {
    let one = |entry: &ChangeEntry| {
        let ChangeEntry { place, time, .. } = entry;
        let what = match &entry.what {
            ChangeWhat::Insert { doc, .. } => text(doc),
            ChangeWhat::Update { key, description, .. } => text(key) + &text(description),
            ChangeWhat::Replace { after, .. } => text(after),
            ChangeWhat::Delete { key, .. } => text(key),
            ChangeWhat::Catalog(entry) => text(entry),
        };
        format!("{place:?} {time:?} {what}")
    };
    entries.iter().map(one).collect()
}

/// A record id that a deleted document had must not be used again while the log refers to it.
#[test]
fn a_record_id_is_not_used_twice_within_the_window() {
    let mut disk = SimulatedDisk::new(Faults::none(1));
    let store = logged(&disk);
    let name = Namespace::parse("d.c").unwrap();
    let options = CommitOptions::buffered();
    store.create_collection(&name, CollectionOptions::default(), &options).unwrap();
    insert_and_delete(&store, &name, 1);
    drop(store);
    disk.crash(Crash::Process);
    let store = logged(&disk);
    insert_and_delete(&store, &name, 2);
    let entries = all(&store);
    let inserted = entries.iter().filter_map(|entry| match &entry.what {
        ChangeWhat::Insert { doc, .. } => Some(id_of(doc)),
        _ => None,
    });
    assert_eq!(inserted.collect::<Vec<_>>(), [1, 2]);
}

fn insert_and_delete(store: &Arc<Store>, name: &Namespace, id: i32) {
    let collection = store.catalog().lookup(name).cloned().unwrap();
    let doc = doc! { "_id": id };
    let options = CommitOptions::buffered();
    let insert = |writer: &mut Writer| writer.insert(&collection, doc.as_doc());
    let (record, _) = store.write(&options, &Interrupt::new(), insert).unwrap();
    let delete = |writer: &mut Writer| writer.delete(&collection, record, doc.as_doc());
    store.write(&options, &Interrupt::new(), delete).unwrap();
}

/// Old changes go, with the documents that they saved and with those of dropped collections. What
/// is left can be read, what is gone is an error.
#[test]
fn the_window_ends_and_frees_what_only_it_needed() {
    let disk = SimulatedDisk::new(Faults::none(1));
    let store = logged(&disk);
    let options = CommitOptions::buffered();
    let name = Namespace::parse("d.old").unwrap();
    store.create_collection(&name, CollectionOptions::default(), &options).unwrap();
    insert_and_delete(&store, &name, 1);
    let collection = store.catalog().lookup(&name).cloned().unwrap();
    let keep = doc! { "_id": 2 };
    let insert = |writer: &mut Writer| writer.insert(&collection, keep.as_doc());
    store.write(&options, &Interrupt::new(), insert).unwrap();
    store.drop_collection(&name, &options).unwrap();
    let first = all(&store);
    assert!(
        first
            .iter()
            .any(|entry| matches!(&entry.what, ChangeWhat::Insert { doc, .. } if id_of(doc) == 2))
    );
    let count = |space: Space, start: &[u8]| {
        let mut page = Page::default();
        store.engine().maintenance(Maintenance::Reclaim).unwrap();
        let request = ScanRequest::new(space, start, &[]);
        store.engine().snapshot().unwrap().scan(&request, &mut page).unwrap();
        page.rows.len()
    };
    assert_eq!((count(Space::Doc, &[]), count(Space::Log, &[0xff])), (1, 1));
    let window = LogWindow { bytes_max: u64::MAX, age_min_ms: 0, age_max_ms: 1 };
    let later = quire_storage::SystemClock.now_ms() + 1_000_000;
    let trimmed = store.trim_change_log(&window, later, &Interrupt::new()).unwrap();
    assert!(trimmed.records >= 4);
    assert_eq!((count(Space::Doc, &[]), count(Space::Log, &[])), (0, 0));
    let mut reader = LogReader::at(first[0].place);
    let snapshot = store.engine().snapshot().unwrap();
    let lost = reader.read(&*snapshot, snapshot.version(), &|_| true, 9, &mut VecDeque::new());
    assert_eq!(lost.unwrap_err().code(), ErrorCode::ChangeStreamHistoryLost);
    assert!(!beginning(&store).whole && all(&store).is_empty());
}

/// A log that a run without it has not continued would lie.
#[test]
fn an_open_without_the_log_removes_it() {
    let disk = SimulatedDisk::new(Faults::none(1));
    let store = logged(&disk);
    let name = Namespace::parse("d.c").unwrap();
    let options = CommitOptions::buffered();
    store.create_collection(&name, CollectionOptions::default(), &options).unwrap();
    insert_and_delete(&store, &name, 1);
    let was = beginning(&store);
    drop(store);
    let open = |change_log| {
        let options = StoreOptions { change_log, ..StoreOptions::default() };
        Store::open(disk.open().unwrap(), options).unwrap()
    };
    assert!(open(ChangeLogMode::AsFound).logs_changes());
    assert!(!open(ChangeLogMode::Off).logs_changes());
    let store = open(ChangeLogMode::AsFound);
    assert!(!store.logs_changes());
    assert!(LogBeginning::read(&*store.engine().snapshot().unwrap()).unwrap().is_none());
    drop(store);
    // The log that begins again has not the changes before it: a stream from an earlier time would
    // miss them.
    let again = beginning(&open(ChangeLogMode::On));
    assert!(!again.whole && was.whole, "{was:?} {again:?}");
}
