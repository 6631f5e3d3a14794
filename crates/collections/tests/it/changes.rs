//! The changes that the listener of a store gets. The commits that make the changes store its
//! records.

use super::*;
use quire_catalog::{CollectionOptions, ViewDefinition};
use quire_collections::{CatalogChange, Change, ChangeListener, ChangeLog, Rename};
use quire_document::Value;
use quire_document::literal::print;
use quire_error::{Error, ErrorCode};
use quire_mql::ParseContext;
use quire_mql::update::{Update, UpdateSpec};
use quire_storage::{Page, ScanRequest, Space};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Appends a line of text to the log for each change.
struct Recorder;

impl ChangeListener for Recorder {
    fn on_change(&self, change: &Change<'_>, log: &mut ChangeLog<'_>) -> Result<()> {
        log.append(line(change).into_bytes());
        Ok(())
    }
}

fn line(change: &Change<'_>) -> String {
    match change {
        Change::Insert { collection, doc, .. } => {
            format!("insert {} {}", collection.namespace, print(*doc))
        }
        Change::Update(updated) => {
            let description = updated.description();
            let set = description.updated.iter().map(|(path, _)| path.to_string());
            let set = set.collect::<Vec<_>>().join(",");
            let gone = description.removed.iter().map(ToString::to_string);
            let gone = gone.collect::<Vec<_>>().join(",");
            format!("update {} set [{set}] removed [{gone}]", updated.collection.namespace)
        }
        Change::Replace { collection, before, after, .. } => {
            format!("replace {} {} by {}", collection.namespace, print(*before), print(*after))
        }
        Change::Delete { collection, before, .. } => {
            format!("delete {} {}", collection.namespace, print(*before))
        }
        Change::Catalog(change) => match change {
            CatalogChange::CollectionCreated(name) => format!("create {name}"),
            CatalogChange::CollectionDropped(name) => format!("drop {name}"),
            CatalogChange::CollectionRenamed { from, to } => format!("rename {from} to {to}"),
            CatalogChange::IndexReady(name, index) => format!("index {} of {name}", index.name),
            CatalogChange::ViewCreated(view) => format!("view {}", view.namespace),
            _ => "other".to_owned(),
        },
    }
}

fn recorded() -> Arc<Store> {
    let store = store();
    store.listen(Arc::new(Recorder)).unwrap();
    store
}

/// Returns the committed records, except those of changes for which `line` has no text.
fn log(store: &Store) -> Vec<String> {
    let snapshot = store.engine().snapshot().unwrap();
    let mut page = Page::default();
    snapshot.scan(&ScanRequest::new(Space::Log, &[], &[0xff; 32]), &mut page).unwrap();
    // The engine stores the cluster time before each record.
    let lines =
        page.rows.iter().map(|(_, value)| String::from_utf8_lossy(&value[8..]).into_owned());
    lines.filter(|line| line != "other").collect()
}

pub(super) fn operators(update: &DocBuf) -> Update {
    let update = Value::Document(update.as_doc());
    let spec = UpdateSpec { update, array_filters: &[], multi: false };
    Update::parse(spec, &ParseContext::default()).unwrap()
}

#[test]
fn every_change_of_a_document_is_reported_in_order() {
    let store = recorded();
    let c = collection(&store, "d.t");
    let (first, second) = (doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 2 });
    let third = doc! { "_id": 1 };
    let mut writer = store.writer(WriterMode::Statement).unwrap();
    let id = writer.insert(&c, first.as_doc()).unwrap();
    let set = operators(&doc! { "$set": { "a": 2 } });
    writer.update(&c, id, first.as_doc(), second.as_doc(), &set).unwrap();
    let unset = operators(&doc! { "$unset": { "a": "" } });
    writer.update(&c, id, second.as_doc(), third.as_doc(), &unset).unwrap();
    let other = operators(&first);
    writer.update(&c, id, third.as_doc(), first.as_doc(), &other).unwrap();
    writer.replace(&c, id, first.as_doc(), third.as_doc()).unwrap();
    writer.delete(&c, id, third.as_doc()).unwrap();
    assert_eq!(log(&store), ["create d.t"], "nothing of it is committed");
    writer.commit(CommitOptions::buffered()).unwrap();
    let expected = [
        "create d.t",
        r#"insert d.t {_id: 1, a: 1}"#,
        "update d.t set [a] removed []",
        "update d.t set [] removed [a]",
        r#"replace d.t {_id: 1} by {_id: 1, a: 1}"#,
        r#"replace d.t {_id: 1, a: 1} by {_id: 1}"#,
        r#"delete d.t {_id: 1}"#,
    ];
    assert_eq!(log(&store), expected);
}

#[test]
fn undone_changes_leave_no_record() {
    let store = recorded();
    let c = collection(&store, "d.t");
    let mut writer = with_one_of_two(&store, &c);
    assert!(writer.insert(&c, doc! { "_id": 1 }.as_doc()).is_err(), "a duplicate");
    writer.commit(CommitOptions::buffered()).unwrap();
    let mut writer = store.writer(WriterMode::Statement).unwrap();
    writer.insert(&c, doc! { "_id": 3 }.as_doc()).unwrap();
    drop(writer);
    assert_eq!(log(&store), ["create d.t", r#"insert d.t {_id: 1}"#]);
}

#[test]
fn a_write_that_runs_again_after_a_conflict_is_recorded_once() {
    let store = recorded();
    insert(&store, "d.t", &doc! { "_id": 1, "n": 0 }).unwrap();
    let runs = AtomicUsize::new(0);
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut is_first = true;
                let written =
                    store.write(&CommitOptions::buffered(), &Interrupt::new(), |writer| {
                        let c = writer.catalog().lookup(&ns("d.t")).cloned().unwrap();
                        let found = writer.view().get_by_id(&c, 1.into())?.unwrap();
                        let Some(Value::Int32(n)) = found.doc.as_doc().get("n") else {
                            panic!("no n")
                        };
                        let new = doc! { "_id": 1, "n": n + 1 };
                        writer.replace(&c, found.id, found.doc.as_doc(), new.as_doc())?;
                        runs.fetch_add(1, Ordering::Relaxed);
                        // Both writers have read the same document before one of them commits.
                        if std::mem::take(&mut is_first) {
                            both.wait();
                        }
                        Ok(())
                    });
                written.unwrap();
            });
        }
    });
    assert!(runs.load(Ordering::Relaxed) > 2, "one of them ran again");
    let replaced: Vec<String> =
        log(&store).into_iter().filter(|line| line.starts_with("replace")).collect();
    let expected = [
        r#"replace d.t {_id: 1, n: 0} by {_id: 1, n: 1}"#,
        r#"replace d.t {_id: 1, n: 1} by {_id: 1, n: 2}"#,
    ];
    assert_eq!(replaced, expected);
}

#[test]
fn changes_of_the_catalog_are_reported_in_the_commits_that_publish_them() {
    let store = recorded();
    let options = CommitOptions::buffered();
    insert(&store, "d.a", &doc! { "_id": 1 }).unwrap();
    index(&store, "d.a", &doc! { "key": { "x": 1 }, "name": "x_1" }).unwrap();
    let rename = Rename {
        from: ns("d.a"),
        to: ns("d.b"),
        drop_target: false,
        from_uuid: None,
        target_uuid: None,
    };
    store.rename_collection(&rename, &Interrupt::new(), &options).unwrap();
    let view = ViewDefinition {
        namespace: ns("d.v"),
        on: "b".into(),
        pipeline: Vec::new(),
        collation: None,
    };
    store.create_view(&Arc::new(view), &options).unwrap();
    store.drop_collection(&ns("d.b"), &options).unwrap();
    let expected = [
        "create d.a",
        r#"insert d.a {_id: 1}"#,
        "index x_1 of d.a",
        "rename d.a to d.b",
        "create d.system.views",
        r#"insert d.system.views {_id: "d.v", viewOn: "b", pipeline: []}"#,
        "view d.v",
        "drop d.b",
    ];
    assert_eq!(log(&store), expected);
}

#[test]
fn a_transaction_reports_a_created_collection_before_its_documents() {
    let store = recorded();
    let mut writer = store.writer(WriterMode::Transaction).unwrap();
    let c = writer.create_collection(&ns("d.new"), CollectionOptions::default()).unwrap();
    writer.insert(&c, doc! { "_id": 1 }.as_doc()).unwrap();
    assert!(log(&store).is_empty());
    writer.commit(CommitOptions::buffered()).unwrap();
    assert_eq!(log(&store), ["create d.new", r#"insert d.new {_id: 1}"#]);
}

#[test]
fn an_error_of_the_listener_fails_the_write() {
    struct Failing;
    impl ChangeListener for Failing {
        fn on_change(&self, change: &Change<'_>, log: &mut ChangeLog<'_>) -> Result<()> {
            log.append(&b"        never"[..]);
            match change {
                Change::Insert { .. } => {
                    Err(Error::new(ErrorCode::OutOfDiskSpace, "the log is full"))
                }
                _ => Ok(()),
            }
        }
    }
    let store = store();
    let c = collection(&store, "d.t");
    store.listen(Arc::new(Failing)).unwrap();
    let failed = insert(&store, "d.t", &doc! { "_id": 1 }).unwrap_err();
    assert_eq!(failed.code(), ErrorCode::OutOfDiskSpace);
    assert!(all(&store, "d.t").is_empty() && log(&store).is_empty());
    assert_eq!(store.counts(&c).documents, 0);
    assert_clean(&store);
}
