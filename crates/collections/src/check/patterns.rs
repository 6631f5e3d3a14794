//! Compares the documents of a collection with what its patterns say: each pattern computes every
//! document anew. Also what a pattern would cost, before it is declared.

use std::collections::HashMap;
use std::sync::Arc;

use quire_catalog::Collection;
use quire_catalog::patterns::{Pattern, PatternKind};
use quire_document::{Path, ValueBuf};
use quire_error::Result;
use quire_storage::{CommitOptions, Direction, Interrupt};

use crate::failure::{Attempt, from_interruption};
use crate::rules::RuleWriter;
use crate::rules::patterns::{Settled, Upkeep, references, upkeep};
use crate::{CollectionCursor, Record, RecordId, Store, WritePolicy, Writer, WriterMode};

/// The documents that are read on one snapshot.
const PAGE_DOCS: usize = 500;
const PAGE_BYTES: usize = 2 << 20;
/// The most `_id`s of differing documents that are kept.
const LISTED_MAX: usize = 1000;
/// The most different values of a reference that are counted.
const VALUES_MAX: usize = 1_000_000;

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
}

/// What a pattern would cost.
#[derive(Debug, Clone, Default)]
pub struct PatternCost {
    /// The documents that the build would change.
    pub documents: u64,
    /// The bytes by which they would grow; negative if they would shrink.
    pub bytes: i64,
    /// For each value, how many documents have it, in ascending order: what a change of one document
    /// would change.
    pub fanout: Vec<u32>,
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
        let has_problem = upkeep.problem(collection, doc, writer)?.is_some();
        match settled {
            Settled::Same if !has_problem => continue,
            Settled::Changed(new) if repair => {
                RuleWriter::replace(writer, collection, record.id, doc, new.as_doc())?;
                found.repaired += 1;
            }
            Settled::Same | Settled::Changed(_) | Settled::Deleted => {}
        }
        found.drift += 1;
        found.documents.extend(doc.get("_id").map(ValueBuf::new));
    }
    let next = records.last().filter(|_| more).map(|last| RecordId(last.id.0 + 1));
    Ok(Compared { found, next })
}

fn page(collection: &Collection, from: RecordId, writer: &Writer) -> Attempt<(Vec<Record>, bool)> {
    let mut records = Vec::new();
    let mut cursor = CollectionCursor::between(collection, Direction::Forward, Some(from), None);
    let more = cursor.next_page(&writer.view(), collection, PAGE_DOCS, PAGE_BYTES, &mut records)?;
    Ok((records, more))
}

/// Returns what the build of a pattern of `collection` would change, and what its upkeep would.
///
/// # Errors
/// Those of reading and of an interrupt.
pub fn pattern_cost(
    store: &Arc<Store>,
    (collection, pattern): (&Arc<Collection>, &Arc<Pattern>),
    interrupt: &Arc<Interrupt>,
) -> Result<PatternCost> {
    let mut cost = PatternCost::default();
    let Some(upkeep) = upkeep(pattern) else { return Ok(cost) };
    let local = match &pattern.kind {
        PatternKind::Reference(reference) => Some(Path::new(&reference.local_field)),
        PatternKind::Rollup(_) | PatternKind::Counter(_) => None,
    };
    let mut counted: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut from = Some(RecordId(0));
    while let Some(start) = from {
        interrupt.check().map_err(from_interruption)?;
        let mut writer = store.writer(WriterMode::Statement)?;
        let (records, more) = page(collection, start, &writer)?;
        for record in &records {
            let doc = record.doc.as_doc();
            if let Some(new) = upkeep.recomputed(collection, doc, &mut writer)? {
                cost.documents += 1;
                cost.bytes += new.as_bytes().len() as i64 - doc.len() as i64;
            }
            let values = local.iter().flat_map(|local| references(doc, local.parts()));
            for value in values {
                let key = quire_document::key::encode(value);
                if counted.len() < VALUES_MAX || counted.contains_key(&key) {
                    *counted.entry(key).or_default() += 1;
                }
            }
        }
        from = records.last().filter(|_| more).map(|last| RecordId(last.id.0 + 1));
    }
    cost.fanout = counted.into_values().collect();
    cost.fanout.sort_unstable();
    Ok(cost)
}
