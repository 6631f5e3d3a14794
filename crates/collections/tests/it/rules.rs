//! The steps of a write of a collection with rules, with rules made for the tests: one that numbers
//! a document, one that refuses, one that keeps the newest documents, and one that copies a field
//! to another document.

use super::*;
use quire_catalog::{CollectionOptions, Uuid};
use quire_collections::{
    Attempt, Change, ChangeListener, ChangeLog, CollectionCursor, Deferred, Proposal, Rule,
    RuleTask, RuleWriter, Rules, Stepped, WritePolicy, derive_step,
};
use quire_document::Value;
use quire_document::literal::print;
use quire_error::{Error, ErrorCode};
use quire_storage::{Page, ScanRequest, Space};
use std::sync::Mutex;

/// Sets the rules of a collection that was not written to.
fn with_rules(store: &Arc<Store>, name: &str, rules: Vec<Arc<dyn Rule>>) -> Arc<Collection> {
    let collection = collection(store, name);
    assert!(collection.rules.get_or_compile(|| Rules::new(rules)).is_some());
    collection
}

fn int(doc: Doc<'_>, field: &str) -> i32 {
    match doc.get(field) {
        Some(Value::Int32(number)) => number,
        other => panic!("{field} is {other:?}"),
    }
}

/// Sets the field `twice` to the double of `n`.
struct Doubles;

impl Rule for Doubles {
    fn name(&self) -> &'static str {
        "doubles"
    }

    fn complete(&self, proposal: &Proposal<'_>, _: &mut dyn RuleWriter) -> Attempt<Option<DocBuf>> {
        let mut doc = DocBuf::build(|writer| {
            for (name, value) in proposal.after.fields().filter(|(name, _)| *name != "twice") {
                writer.append(name, value);
            }
        });
        doc.append("twice", int(proposal.after, "n") * 2);
        Ok(Some(doc))
    }
}

/// Refuses an odd `twice` and a negative `n`, except for writes of the server itself.
struct Refuses;

impl Rule for Refuses {
    fn name(&self) -> &'static str {
        "refuses"
    }

    fn check(&self, proposal: &Proposal<'_>) -> Result<()> {
        let bad = proposal.after.get("twice").is_none() || int(proposal.after, "n") < 0;
        if bad && proposal.policy != WritePolicy::Internal {
            return Err(Error::new(ErrorCode::DocumentValidationFailure, "refused"));
        }
        Ok(())
    }
}

/// Keeps the newest `max` documents, as a ring does.
struct Ring {
    max: u64,
}

impl Rule for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn place(&self, change: &Change<'_>, writer: &mut dyn RuleWriter) -> Attempt<()> {
        let Change::Insert { collection, .. } = change else { return Ok(()) };
        while writer.view().counts(collection).documents > self.max {
            let mut cursor = CollectionCursor::new(collection, Direction::Forward);
            let mut oldest = Vec::new();
            cursor.next_page(&writer.view(), collection, 1, 1 << 20, &mut oldest)?;
            let Some(oldest) = oldest.pop() else { break };
            writer.delete(collection, oldest.id, oldest.doc.as_doc())?;
        }
        Ok(())
    }
}

/// Copies `n` of each document to the documents of `to` whose `_id`s are `from` to `below`.
struct Copies {
    to: &'static str,
    below: i32,
}

impl Rule for Copies {
    fn name(&self) -> &'static str {
        "copies"
    }

    fn derive(
        &self,
        change: &Change<'_>,
        _: &mut dyn RuleWriter,
        tasks: &mut Vec<Box<dyn RuleTask>>,
    ) -> Attempt<()> {
        if let Some(after) = change.after() {
            tasks.push(self.task(0, int(after, "n")));
        }
        Ok(())
    }

    fn resume(&self, task: Doc<'_>) -> Result<Option<Box<dyn RuleTask>>> {
        Ok(Some(self.task(int(task, "from"), int(task, "n"))))
    }
}

impl Copies {
    fn task(&self, from: i32, n: i32) -> Box<dyn RuleTask> {
        Box::new(Copy { to: self.to, from, below: self.below, n })
    }
}

/// A task of `Copies`.
struct Copy {
    to: &'static str,
    from: i32,
    below: i32,
    n: i32,
}

impl RuleTask for Copy {
    fn run(&mut self, writer: &mut dyn RuleWriter) -> Attempt<bool> {
        let to = writer.collection(&ns(self.to)).ok_or_else(|| Error::internal("no target"))?;
        while self.from < self.below {
            if writer.is_spent() {
                return Ok(true);
            }
            let new = doc! { "_id": self.from, "n": self.n };
            match writer.view().get_by_id(&to, self.from.into())? {
                Some(old) => {
                    writer.replace(&to, old.id, (old.doc.as_doc(), new.as_doc()), None)?;
                }
                None => writer.insert(&to, new.as_doc()).map(drop)?,
            }
            self.from += 1;
        }
        Ok(false)
    }

    fn encode(&self) -> DocBuf {
        doc! { "from": self.from, "n": self.n }
    }
}

fn write(
    store: &Arc<Store>,
    policy: WritePolicy,
    mut attempt: impl FnMut(&mut Writer) -> Attempt<()>,
) -> Result<()> {
    let options = CommitOptions::buffered();
    store.write_statement((&options, policy), None, &Interrupt::new(), &mut attempt).map(drop)
}

fn put(store: &Arc<Store>, collection: &Collection, doc: &DocBuf) -> Result<()> {
    write(store, WritePolicy::Client, |writer| writer.insert(collection, doc.as_doc()).map(drop))
}

fn shown(store: &Arc<Store>, name: &str) -> Vec<String> {
    all(store, name).iter().map(|doc| print(doc.as_doc())).collect()
}

#[test]
fn a_document_is_completed_before_it_is_checked() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Doubles), Arc::new(Refuses)]);
    put(&store, &c, &doc! { "_id": 1, "n": 4 }).unwrap();
    assert_eq!(shown(&store, "d.t"), ["{_id: 1, n: 4, twice: 8}"]);
    update(&store, "d.t", 1, doc! { "_id": 1, "n": 5 }.as_doc()).unwrap();
    assert_eq!(shown(&store, "d.t"), ["{_id: 1, n: 5, twice: 10}"]);
    assert_eq!(store.counts(&c).bytes, all(&store, "d.t")[0].as_doc().len() as u64);
    assert_clean(&store);
}

#[test]
fn a_refused_document_leaves_nothing_and_the_others_stay() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Doubles), Arc::new(Refuses)]);
    write(&store, WritePolicy::Client, |writer| {
        writer.insert(&c, doc! { "_id": 1, "n": 1 }.as_doc())?;
        let refused = writer.insert(&c, doc! { "_id": 2, "n": -1 }.as_doc()).unwrap_err();
        let error = refused.error().unwrap();
        assert_eq!(error.code(), ErrorCode::DocumentValidationFailure);
        writer.insert(&c, doc! { "_id": 3, "n": 3 }.as_doc()).map(drop)
    })
    .unwrap();
    // The server's own write is not checked.
    insert(&store, "d.t", &doc! { "_id": 4, "n": -4 }).unwrap();
    let expected =
        ["{_id: 1, n: 1, twice: 2}", "{_id: 3, n: 3, twice: 6}", "{_id: 4, n: -4, twice: -8}"];
    assert_eq!(shown(&store, "d.t"), expected);
    assert_eq!(store.counts(&c).documents, 3);
    assert_clean(&store);
}

#[test]
fn the_oldest_record_goes_in_the_commit_that_needs_its_place() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Ring { max: 2 })]);
    for id in 1..=5 {
        put(&store, &c, &doc! { "_id": id }).unwrap();
    }
    assert_eq!(shown(&store, "d.t"), ["{_id: 4}", "{_id: 5}"]);
    assert_eq!(put(&store, &c, &doc! { "_id": 5 }).unwrap_err().code(), ErrorCode::DuplicateKey);
    assert_eq!(shown(&store, "d.t"), ["{_id: 4}", "{_id: 5}"], "nothing was evicted for it");
    assert_eq!(store.counts(&c).documents, 2);
    assert_clean(&store);
}

/// Remembers the policy and the document of each change.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl ChangeListener for Recorder {
    fn on_change(&self, change: &Change<'_>, log: &mut ChangeLog<'_>) -> Result<()> {
        if let (Some(collection), Some(after)) = (change.collection(), change.after()) {
            let line = format!("{:?} {} {}", log.policy(), collection.namespace, print(after));
            self.0.lock().unwrap().push(line.clone());
            log.append(line.into_bytes());
        }
        Ok(())
    }
}

#[test]
fn a_derived_write_follows_its_cause_in_the_same_commit() {
    let store = store();
    let recorder = Arc::new(Recorder::default());
    store.listen(Arc::clone(&recorder) as Arc<dyn ChangeListener>).unwrap();
    assert!(store.listen(Arc::new(Recorder::default())).is_err(), "a second listener");
    let c = with_rules(&store, "d.t", vec![Arc::new(Copies { to: "d.copies", below: 2 })]);
    with_rules(&store, "d.copies", vec![Arc::new(Doubles), Arc::new(Refuses)]);
    write(&store, WritePolicy::Bypassing, |writer| {
        writer.insert(&c, doc! { "_id": 9, "n": 3 }.as_doc())?;
        assert_eq!(writer.view().counts(&c).documents, 1);
        Ok(())
    })
    .unwrap();
    let copies = ["{_id: 0, n: 3, twice: 6}", "{_id: 1, n: 3, twice: 6}"];
    assert_eq!(shown(&store, "d.copies"), copies);
    let expected = [
        "Bypassing d.t {_id: 9, n: 3}",
        "Derived d.copies {_id: 0, n: 3, twice: 6}",
        "Derived d.copies {_id: 1, n: 3, twice: 6}",
    ];
    assert_eq!(*recorder.0.lock().unwrap(), expected);
    let snapshot = store.engine().snapshot().unwrap();
    let mut page = Page::default();
    snapshot.scan(&ScanRequest::new(Space::Log, &[], &[0xff; 32]), &mut page).unwrap();
    let times: Vec<&[u8]> = page.rows.iter().map(|(_, value)| &value[..8]).collect();
    assert_eq!(times.len(), 3);
    assert!(times.iter().all(|time| *time == times[0]), "one commit has one time");
    assert_clean(&store);
}

#[test]
fn a_refused_derived_write_undoes_its_cause_and_no_other() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Copies { to: "d.copies", below: 3 })]);
    let copies = with_rules(&store, "d.copies", vec![Arc::new(Doubles), Arc::new(Refuses)]);
    write(&store, WritePolicy::Bypassing, |writer| {
        writer.insert(&c, doc! { "_id": 1, "n": 1 }.as_doc())?;
        // The client may bypass the checks of its own write, not those of the copies.
        assert!(writer.insert(&c, doc! { "_id": 2, "n": -1 }.as_doc()).is_err());
        writer.insert(&c, doc! { "_id": 3, "n": 2 }.as_doc()).map(drop)
    })
    .unwrap();
    assert_eq!(shown(&store, "d.t"), ["{_id: 1, n: 1}", "{_id: 3, n: 2}"]);
    assert_eq!(all(&store, "d.copies").len(), 3);
    assert_eq!(shown(&store, "d.copies")[0], "{_id: 0, n: 2, twice: 4}");
    assert_eq!((store.counts(&c).documents, store.counts(&copies).documents), (2, 3));
    assert_clean(&store);
}

#[test]
fn rules_that_write_in_a_circle_end_with_an_error() {
    let store = store();
    let a = with_rules(&store, "d.a", vec![Arc::new(Copies { to: "d.b", below: 1 })]);
    with_rules(&store, "d.b", vec![Arc::new(Copies { to: "d.a", below: 1 })]);
    let failed = put(&store, &a, &doc! { "_id": 7, "n": 1 }).unwrap_err();
    assert_eq!(failed.code(), ErrorCode::OperationFailed);
    assert!(all(&store, "d.a").is_empty() && all(&store, "d.b").is_empty());
    assert_clean(&store);
}

#[test]
fn derived_writes_beyond_the_budget_become_a_job_of_the_same_commit() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Copies { to: "d.copies", below: 2500 })]);
    let copies = collection(&store, "d.copies");
    let jobs = || store.jobs(|key| panic!("damaged: {key:?}")).unwrap();
    let rung = store.job_bell().rung();
    put(&store, &c, &doc! { "_id": 1, "n": 1 }).unwrap();
    let written = || store.counts(&copies).documents;
    assert_eq!((written(), jobs().len()), (1000, 1));
    assert!(store.job_bell().rung() > rung);
    let mut steps = 0;
    while let Some(mut job) = jobs().pop() {
        assert_eq!((job.id.kind.as_str(), written()), ("derived", 1000 * (steps + 1)));
        let (stop, mut is_stored) = (Interrupt::new(), true);
        let stepped = store.step_job(&mut job, &mut is_stored, &stop, derive_step).unwrap();
        assert_eq!(stepped, Stepped::Ended);
        steps += 1;
    }
    assert_eq!((written(), steps), (2500, 2));
    assert_eq!(store.take_derived().get(&copies.id), Some(&2500));
    assert!(store.take_derived().is_empty());
    assert_clean(&store);
    // A write that is undone leaves no job.
    let mut writer = store.writer(WriterMode::Statement).unwrap();
    let before = writer.savepoint();
    writer.insert(&c, doc! { "_id": 2, "n": 2 }.as_doc()).unwrap();
    writer.rollback_to(before);
    writer.commit(CommitOptions::buffered()).unwrap();
    assert!(jobs().is_empty());
}

#[test]
fn a_deferred_task_runs_in_a_later_commit() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Copies { to: "d.copies", below: 900 })]);
    collection(&store, "d.copies");
    let task = doc! { "from": 890, "n": 5 };
    let deferred = Deferred { collection: c.uuid, rule: "copies".into(), depth: 0, task };
    write(&store, WritePolicy::Internal, |writer| writer.run_deferred(&deferred)).unwrap();
    assert_eq!(all(&store, "d.copies").len(), 10);
    // Its collection or its rule may be gone meanwhile.
    for gone in [
        Deferred { collection: Uuid([9; 16]), ..deferred.clone() },
        Deferred { rule: "other".into(), ..deferred },
    ] {
        write(&store, WritePolicy::Internal, |writer| writer.run_deferred(&gone)).unwrap();
    }
    assert_eq!(all(&store, "d.copies").len(), 10);
    assert_clean(&store);
}

#[test]
fn a_transaction_runs_the_steps_of_its_statements() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Copies { to: "d.copies", below: 1 })]);
    collection(&store, "d.copies");
    let mut writer = store.writer(WriterMode::Transaction).unwrap();
    writer.statement(|writer| writer.insert(&c, doc! { "_id": 1, "n": 1 }.as_doc())).unwrap();
    assert!(all(&store, "d.copies").is_empty());
    writer.commit(CommitOptions::buffered()).unwrap();
    assert_eq!(shown(&store, "d.copies"), ["{_id: 0, n: 1}"]);
    assert_clean(&store);
}

#[test]
fn a_changed_collection_gets_its_rules_anew() {
    let store = store();
    let c = with_rules(&store, "d.t", vec![Arc::new(Refuses)]);
    assert!(put(&store, &c, &doc! { "_id": 1, "n": 1 }).is_err());
    index(&store, "d.t", &doc! { "key": { "x": 1 }, "name": "x_1" }).unwrap();
    let next = store.catalog().lookup(&ns("d.t")).cloned().unwrap();
    assert_eq!(next.options.document().len(), CollectionOptions::default().document().len());
    // The rules come from the options, which ask for none.
    put(&store, &next, &doc! { "_id": 1, "n": 1 }).unwrap();
}
