//! `dataSize`: documents and bytes of a collection, or of a range of one of its indexes.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use quire_catalog::{Collection, Index, Namespace};
use quire_collections::{CollectionCursor, IndexCursor, IndexEntry, IndexRange, Record};
use quire_document::{Doc, DocWriter, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Direction;
use std::sync::Arc;
use std::time::Instant;

/// The number of entries that are read on one view.
const PAGE: usize = 1000;
/// The bytes of documents that are read on one view.
const PAGE_BYTES: usize = 1 << 20;

#[derive(Default)]
struct Arguments<'a> {
    key: Option<Doc<'a>>,
    min: Option<Doc<'a>>,
    max: Option<Doc<'a>>,
    estimate: bool,
    most: Most,
}

/// Where the count ends: with the document that exceeds one of these numbers; 0 for no limit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Most {
    documents: u64,
    bytes: u64,
}

/// The documents so far.
#[derive(Default)]
struct Counted {
    documents: u64,
    bytes: u64,
    most: Most,
}

impl Counted {
    /// Counts a document. Returns false if it is the last one.
    fn add(&mut self, bytes: u64) -> bool {
        self.documents += 1;
        self.bytes += bytes;
        !self.is_full()
    }

    fn is_full(&self) -> bool {
        let Most { documents, bytes } = self.most;
        documents > 0 && self.documents > documents || bytes > 0 && self.bytes > bytes
    }
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let began = Instant::now();
    let namespace = namespace(cx, body)?;
    let arguments = parse(cx, body)?;
    let catalog = cx.service.store.catalog();
    catalog.refuse_view_like(&namespace)?;
    let range = match (arguments.min, arguments.max) {
        (None, None) => None,
        (Some(min), Some(max)) => Some((min, max)),
        _ => return Err(Error::bad_value("only one of min or max specified")),
    };
    let mut counted = Counted { most: arguments.most, ..Counted::default() };
    if let Some(collection) = catalog.lookup(&namespace) {
        let counts = cx.service.store.counts(collection);
        let average = counts.bytes.checked_div(counts.documents).unwrap_or(0);
        let estimate = arguments.estimate.then_some(average);
        match range {
            None if arguments.most == Most::default() => {
                (counted.documents, counted.bytes) = (counts.documents, counts.bytes);
            }
            None => walk_all(cx, collection, estimate, &mut counted)?,
            Some((min, max)) => {
                let index = index(collection, arguments.key.unwrap_or_default())?;
                let range = bounds(index, arguments.key.unwrap_or_default(), min, max)?;
                walk(cx, collection, (index, range), estimate, &mut counted)?;
            }
        }
        reply.append("estimate", arguments.estimate);
    }
    reply.append("size", counted.bytes as i64).append("numObjects", counted.documents as i64);
    if counted.is_full() {
        reply.append("maxReached", true);
    }
    reply.append("millis", began.elapsed().as_millis() as i64);
    Ok(())
}

fn namespace(cx: &Context<'_>, body: Doc<'_>) -> Result<Namespace> {
    let first = body.first().map(|first| Arg::new(cx.command.name, first));
    match first {
        Some(arg) if !arg.is_null() => Namespace::parse(arg.string()?),
        _ => Err(missing(cx.command.name, cx.command.name)),
    }
}

fn parse<'a>(cx: &Context<'_>, body: Doc<'a>) -> Result<Arguments<'a>> {
    let mut found = Arguments::default();
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "keyPattern" | "min" | "max" | "estimate" | "maxSize" | "maxObjects"
                if arg.is_null() => {}
            "maxSize" => found.most.bytes = arg.integer_from(0)?.unsigned_abs(),
            "maxObjects" => found.most.documents = arg.integer_from(0)?.unsigned_abs(),
            "keyPattern" => found.key = Some(arg.document()?),
            "min" => found.min = Some(arg.document()?),
            "max" => found.max = Some(arg.document()?),
            "estimate" => found.estimate = arg.safe_bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    Ok(found)
}

/// Returns an index that has every document once, in the order of the key pattern.
fn index<'c>(collection: &'c Collection, key: Doc<'_>) -> Result<&'c Arc<Index>> {
    let begins = |index: &&Arc<Index>| {
        let mut fields = index.key().iter();
        !key.is_empty()
            && key.iter().all(|wanted| {
                fields.next().is_some_and(|field| {
                    field.key() == wanted.key()
                        && quire_document::equal(field.value(), wanted.value(), None)
                })
            })
    };
    let whole = |index: &&Arc<Index>| {
        !index.keys.misses_documents()
            && index.keys.partial().is_none()
            && !index.is_multikey()
            && begins(index)
    };
    collection.ready_indexes().find(whole).ok_or_else(|| {
        let shown = quire_catalog::debug_doc(key);
        let text = format!("couldn't find valid index containing key pattern {shown}");
        Error::new(ErrorCode::OperationFailed, text)
    })
}

/// Returns the range from `min`, inclusive, to `max`, exclusive.
fn bounds(index: &Index, key: Doc<'_>, min: Doc<'_>, max: Doc<'_>) -> Result<IndexRange> {
    let values = |bound: Doc<'_>| {
        if bound.fields().map(|(name, _)| name).eq(key.fields().map(|(name, _)| name)) {
            return Ok(());
        }
        let text = format!(
            "field names of bound {} do not match those of keyPattern {}",
            quire_catalog::debug_doc(bound),
            quire_catalog::debug_doc(key)
        );
        Err(Error::location(16634, text))
    };
    values(min)?;
    values(max)?;
    let keyed = |bound: Doc<'_>| -> Vec<ValueBuf> {
        bound.fields().map(|(_, value)| index.keys.key_value(value)).collect()
    };
    let (min, max) = (keyed(min), keyed(max));
    let min: Vec<Value<'_>> = min.iter().map(ValueBuf::as_value).collect();
    let max: Vec<Value<'_>> = max.iter().map(ValueBuf::as_value).collect();
    Ok(IndexRange::new(index, &min, true, &max, false))
}

/// Counts the documents of a range; with an `average` size no document is read.
fn walk(
    cx: &Context<'_>,
    collection: &Collection,
    (index, range): (&Index, IndexRange),
    average: Option<u64>,
    counted: &mut Counted,
) -> Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    let mut cursor = IndexCursor::new(index, range, Direction::Forward);
    let mut entries: Vec<IndexEntry> = Vec::new();
    let mut more = true;
    while more {
        cx.check_interrupt()?;
        entries.clear();
        let view = cx.service.store.read_view()?;
        more = cursor.next_page(&view.view(), PAGE, &mut entries)?;
        more &= match average {
            Some(average) => entries.iter().all(|_| counted.add(average)),
            None => {
                let ids: Vec<_> = entries.iter().map(|entry| entry.record).collect();
                let mut found = Vec::with_capacity(ids.len());
                view.view().get_many(collection, &ids, &mut found)?;
                found.iter().flatten().all(|doc| counted.add(doc.as_bytes().len() as u64))
            }
        };
    }
    Ok(())
}

/// Counts the documents of the whole collection, up to the limit.
fn walk_all(
    cx: &Context<'_>,
    collection: &Arc<Collection>,
    average: Option<u64>,
    counted: &mut Counted,
) -> Result<()> {
    let mut cursor = CollectionCursor::new(collection, Direction::Forward);
    let mut records: Vec<Record> = Vec::new();
    let mut more = true;
    while more {
        cx.check_interrupt()?;
        records.clear();
        let view = cx.service.store.read_view()?;
        more = cursor.next_page(&view.view(), collection, PAGE, PAGE_BYTES, &mut records)?;
        let bytes = |record: &Record| average.unwrap_or(record.doc.as_bytes().len() as u64);
        more &= records.iter().all(|record| counted.add(bytes(record)));
    }
    Ok(())
}
