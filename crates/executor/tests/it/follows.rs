//! Executions that follow commits: what they answer at the end of their rows, and that the stages
//! above pass it on instead of asking again.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use quire_collections::{CollectionCursor, RecordId};
use quire_document::doc;
use quire_error::ErrorCode;
use quire_executor::{Awaits, Feed, Follows, open, open_fed};
use quire_planner::{AggregateRequest, FindRequest};
use quire_storage::{Direction, Interruption, Reach, Watched};

/// A source of the documents of `d.t` that follows its commits.
struct Commits {
    store: Arc<Store>,
    next: RecordId,
    calls: Arc<AtomicUsize>,
}

impl Feed for Commits {
    fn next(
        &mut self,
        max: usize,
        interrupt: &Arc<Interrupt>,
        out: &mut Vec<DocBuf>,
    ) -> Result<Follows> {
        interrupt.check().map_err(quire_collections::from_interruption)?;
        self.calls.fetch_add(1, Ordering::SeqCst);
        let collection = self.store.ensure_collection(&ns("d.t"))?;
        let view = self.store.settled_view(&collection)?;
        let to = RecordId(view.view().settled_below(&collection).unwrap().0 - 1);
        let forward = Direction::Forward;
        let mut cursor = CollectionCursor::between(&collection, forward, Some(self.next), Some(to));
        let mut page = Vec::new();
        cursor.next_page(&view.view(), &collection, max, 1 << 20, &mut page)?;
        let Some(last) = page.last() else {
            return Ok(Follows::NothingYet { past: view.view().version() });
        };
        self.next = RecordId(last.id.0 + 1);
        out.extend(page.iter().map(|record| record.doc.as_doc().to_owned()));
        Ok(Follows::Rows)
    }

    fn awaits(&self) -> Option<Awaits> {
        let collection = self.store.ensure_collection(&ns("d.t")).unwrap();
        Some(Awaits { watched: Watched::Collection(collection.id.0), reach: Reach::Visible })
    }
}

/// Returns the `_id`s of the next batch, and what follows it.
fn next(store: &Arc<Store>, execution: &mut Execution) -> (Vec<i64>, Follows) {
    let mut views = FreshViews::new(store).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrayWriter::new(&mut bytes);
    let limits = BatchLimits::docs(100);
    let end = execution.next_batch(&mut views, &Interrupt::new(), limits, &mut writer).unwrap();
    writer.finish();
    let docs = ArrayBuf::from_valid_bytes(bytes);
    let ids = documents(docs.as_array()).map(|doc| doc.get("_id").unwrap().exact_i64().unwrap());
    (ids.collect(), end.follows)
}

fn insert_ids(store: &Arc<Store>, ids: std::ops::Range<i32>) {
    let docs: Vec<DocBuf> = ids.map(|id| doc! { "_id": id, "odd": id % 2 == 1 }).collect();
    insert_all(store, "d.t", docs.iter().map(DocBuf::as_doc));
}

#[test]
fn a_source_that_follows_commits_waits_between_them() {
    let store = store();
    insert_ids(&store, 0..4);
    let calls = Arc::new(AtomicUsize::new(0));
    let feed = Commits { store: Arc::clone(&store), next: RecordId(1), calls: Arc::clone(&calls) };
    let stages = [
        doc! { "$match": { "odd": true } },
        doc! { "$skip": 1 },
        doc! { "$project": { "_id": 1 } },
    ];
    let request = AggregateRequest {
        namespace: "d.t".to_owned(),
        pipeline: stages.to_vec(),
        fed_by: Some("$commits"),
        ..AggregateRequest::default()
    };
    let views = FreshViews::new(&store).unwrap();
    let mut execution = open_fed(&request, Box::new(feed), &views, params()).unwrap();
    let interrupt = Interrupt::new();
    let Awaits { watched, reach } = execution.awaits().unwrap();
    let watch = store.engine().watch(watched, reach, &interrupt);
    for round in 1..20 {
        let (ids, follows) = next(&store, &mut execution);
        let expected: Vec<i64> = ((round - 1) * 4..round * 4).filter(|id| id % 2 == 1).collect();
        assert_eq!(ids, expected[usize::from(round == 1)..]);
        let Follows::NothingYet { past } = follows else { panic!("{follows:?}") };
        let before = calls.load(Ordering::SeqCst);
        let writer = std::thread::spawn({
            let store = Arc::clone(&store);
            let from = round as i32 * 4;
            move || insert_ids(&store, from..from + 4)
        });
        assert_eq!(watch.wait(past, None), Ok(true));
        assert_eq!(calls.load(Ordering::SeqCst), before, "a wait does not read");
        writer.join().unwrap();
    }
}

#[test]
fn an_interrupt_reaches_the_source() {
    let store = store();
    let calls = Arc::default();
    let feed = Commits { store: Arc::clone(&store), next: RecordId(1), calls: Arc::clone(&calls) };
    let request = AggregateRequest {
        namespace: "d.t".to_owned(),
        fed_by: Some("$commits"),
        ..AggregateRequest::default()
    };
    let mut views = FreshViews::new(&store).unwrap();
    let mut execution = open_fed(&request, Box::new(feed), &views, params()).unwrap();
    let killed = Interrupt::new();
    killed.kill(Interruption::Killed);
    let mut bytes = Vec::new();
    let mut out = ArrayWriter::new(&mut bytes);
    let ended = execution.next_batch(&mut views, &killed, BatchLimits::docs(1), &mut out);
    assert_eq!(ended.unwrap_err().code(), ErrorCode::Interrupted);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// A slow writer has a smaller record id than a faster one. A tail that read past it would never
/// return its document.
#[test]
fn a_tail_skips_no_late_record() {
    let store = store();
    let options = doc! { "capped": true, "size": 100_000 };
    let options = quire_catalog::CollectionOptions::parse(options.as_doc(), 0).unwrap();
    store.create_collection(&ns("d.t"), options, &CommitOptions::buffered()).unwrap();
    insert_ids(&store, 0..1);
    let request =
        FindRequest { namespace: "d.t".to_owned(), tailable: true, ..FindRequest::default() };
    let views = FreshViews::new(&store).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    assert_eq!(next(&store, &mut execution).0, [0]);
    let collection = store.ensure_collection(&ns("d.t")).unwrap();
    let mut slow = store.writer(quire_collections::WriterMode::Statement).unwrap();
    slow.delete(&collection, RecordId(1000), doc! { "_id": 1000 }.as_doc()).unwrap();
    insert_ids(&store, 1..2);
    let interrupt = Interrupt::new();
    let Awaits { watched, reach } = execution.awaits().unwrap();
    let watch = store.engine().watch(watched, reach, &interrupt);
    let (ids, follows) = next(&store, &mut execution);
    assert_eq!(ids, [0; 0], "a document behind an unfinished writer is not returned yet");
    let Follows::NothingYet { past } = follows else { panic!("{follows:?}") };
    // The writer ends without a commit.
    drop(slow);
    assert_eq!(watch.wait(past, None), Ok(true));
    assert_eq!(next(&store, &mut execution).0, [1]);
}
