//! Compares the documents of a collection with what its patterns say: each pattern computes every
//! document anew.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_catalog::patterns::Pattern;
use quire_document::ValueBuf;
use quire_error::Result;
use quire_storage::{CommitOptions, Direction, Interrupt};

use crate::failure::{Attempt, from_interruption};
use crate::rules::RuleWriter;
use crate::rules::patterns::{Settled, Upkeep, upkeep};
use crate::{CollectionCursor, Record, RecordId, Store, WritePolicy, Writer, WriterMode};

/// The documents that are read on one snapshot.
const PAGE_DOCS: usize = 500;
const PAGE_BYTES: usize = 2 << 20;
/// The most `_id`s of differing documents that are kept.
const LISTED_MAX: usize = 1000;

/// The comparison of one pattern with the documents.
#[derive(Debug, Clone, Default)]
pub struct PatternCheck {
    /// The name of the pattern.
    pub name: String,
    /// The documents that were computed.
    pub checked: u64,
    /// Those that differ from what is stored, or that the pattern would refuse.
    pub drift: u64,
    /// Those of them that were written anew.
    pub repaired: u64,
    /// The `_id`s of the first of them.
    pub documents: Vec<ValueBuf>,
    /// What the pattern would refuse of the first one that it would refuse.
    pub first_problem: Option<String>,
}

/// Compares a pattern of a collection with its documents, each page on a snapshot of its own. With
/// `repair` the documents that differ are written.
///
/// # Errors
/// Those of reading and of an interrupt; with `repair` those of writing.
pub fn check_pattern(
    store: &Arc<Store>,
    (collection, pattern): (&Arc<Collection>, &Arc<Pattern>),
    repair: bool,
    interrupt: &Arc<Interrupt>,
) -> Result<PatternCheck> {
    let mut found = PatternCheck { name: pattern.name.clone(), ..PatternCheck::default() };
    let Some(upkeep) = upkeep(pattern) else { return Ok(found) };
    let mut from = Some(RecordId(0));
    while let Some(start) = from {
        interrupt.check().map_err(from_interruption)?;
        let check = |writer: &mut Writer| compare(&*upkeep, collection, start, repair, writer);
        let page = match repair {
            true => store.write(&CommitOptions::buffered(), interrupt, check)?.0,
            false => check(&mut store.writer(WriterMode::Statement)?)?,
        };
        found.checked += page.found.checked;
        found.drift += page.found.drift;
        found.repaired += page.found.repaired;
        found.first_problem = found.first_problem.take().or(page.found.first_problem);
        let room = LISTED_MAX.saturating_sub(found.documents.len());
        found.documents.extend(page.found.documents.into_iter().take(room));
        from = page.next;
    }
    Ok(found)
}

/// The comparison of one page of documents.
struct Compared {
    found: PatternCheck,
    /// The first record of the next page.
    next: Option<RecordId>,
}

fn compare(
    upkeep: &dyn Upkeep,
    collection: &Collection,
    from: RecordId,
    repair: bool,
    writer: &mut Writer,
) -> Attempt<Compared> {
    writer.set_policy(WritePolicy::Derived);
    let (records, more) = page(collection, from, writer)?;
    let mut found = PatternCheck { checked: records.len() as u64, ..PatternCheck::default() };
    for record in &records {
        let doc = record.doc.as_doc();
        let settled = Settled::from(upkeep.recomputed(collection, doc, writer)?);
        let problem = upkeep.problem(collection, doc, writer)?;
        match settled {
            Settled::Same if problem.is_none() => continue,
            Settled::Changed(new) if repair => {
                RuleWriter::replace(writer, collection, record.id, (doc, new.as_doc()), None)?;
                found.repaired += 1;
            }
            Settled::Same | Settled::Changed(_) | Settled::Deleted => {}
        }
        found.drift += 1;
        if let Some(problem) = problem.filter(|_| found.first_problem.is_none()) {
            let id = doc.get("_id").map_or_else(String::new, quire_catalog::debug_value);
            found.first_problem = Some(format!("document with _id {id}: {problem}"));
        }
        found.documents.extend(doc.get("_id").map(ValueBuf::new));
    }
    let next = records.last().filter(|_| more).map(|last| RecordId(last.id.0 + 1));
    Ok(Compared { found, next })
}

/// Returns the next documents of a collection, and true if there may be more.
pub(super) fn page(
    collection: &Collection,
    from: RecordId,
    writer: &Writer,
) -> Attempt<(Vec<Record>, bool)> {
    let mut records = Vec::new();
    let mut cursor = CollectionCursor::between(collection, Direction::Forward, Some(from), None);
    let more = cursor.next_page(&writer.view(), collection, PAGE_DOCS, PAGE_BYTES, &mut records)?;
    Ok((records, more))
}
