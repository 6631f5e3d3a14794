//! The records of the change log, and the keys of the documents that it saves (docs/format.md, "The
//! change log").

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quire_catalog::{Collection, CollectionId, Uuid};
use quire_document::{Doc, DocBuf, Value};
use quire_error::Result;
use quire_mql::update::{ChangedPath, PathStep, UpdateDescription};

use crate::RecordId;
use crate::layout::damaged;

const INSERTS: u8 = 1;
const UPDATE: u8 = 2;
const REPLACE: u8 = 3;
const DELETE: u8 = 4;
const TRANSACTION: u8 = 5;
const CATALOG: u8 = 6;

const SAVED: u8 = 1;
const HAS_BEFORE: u8 = 2;
const HAS_AFTER: u8 = 4;

/// The first byte of the keys of saved documents.
const SAVED_DOCUMENTS: u8 = 0xff;

/// A decoded record.
#[derive(Debug)]
pub(crate) struct LogRecord<'r> {
    /// The wall clock of the change in milliseconds since 1970.
    pub wall_ms: u64,
    pub content: LogContent<'r>,
}

/// The content of a record by its kind.
#[derive(Debug)]
pub(crate) enum LogContent<'r> {
    /// The commit is that of a client's transaction, with its number and its session.
    Transaction { number: i64, session: Bytes },
    /// Documents of a collection changed.
    Documents { collection: LoggedName<'r>, change: LoggedChange },
    /// The catalog changed.
    Catalog(Bytes),
}

/// A collection in a record, with the name that it had.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedName<'r> {
    pub id: CollectionId,
    pub uuid: Uuid,
    pub namespace: &'r str,
}

/// A change of documents.
#[derive(Debug)]
pub(crate) enum LoggedChange {
    /// Inserts of `count` documents with consecutive record ids.
    Inserts { first: RecordId, count: u32 },
    /// An update by operators or a pipeline.
    Update { place: Place, key: Bytes, description: Bytes, images: Images },
    /// A replacement by `after`.
    Replace { place: Place, after: Bytes, images: Images },
    /// A delete of the document with this key.
    Delete { place: Place, key: Bytes, images: Images },
}

/// The record that changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub id: RecordId,
    /// True if the commit saved the document as it was before the change.
    pub saved: bool,
}

/// The document before and after a change, if its collection keeps them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Images {
    pub before: Option<Bytes>,
    pub after: Option<Bytes>,
}

impl Images {
    /// Returns the images that a record of `collection` stores.
    pub fn of(collection: &Collection, before: Doc<'_>, after: Option<Doc<'_>>) -> Self {
        if !collection.options.keeps_images() {
            return Images::default();
        }
        let copy = |doc: Doc<'_>| Bytes::copy_from_slice(doc.as_bytes());
        Images { before: Some(copy(before)), after: after.map(copy) }
    }
}

/// Returns true if the log has changes of a database. The database `local` belongs to the server.
pub(crate) fn is_logged(db: &str) -> bool {
    db != "local"
}

/// Returns the key of a document that the log saves as it was inserted.
pub(crate) fn saved_key(collection: CollectionId, id: RecordId) -> Bytes {
    let mut key = BytesMut::with_capacity(13);
    key.put_u8(SAVED_DOCUMENTS);
    key.put_slice(&collection.to_bytes());
    key.put_u64(id.0);
    key.freeze()
}

/// Returns the range of the keys of all saved documents of a collection.
pub(crate) fn saved_range(collection: CollectionId) -> (Vec<u8>, Vec<u8>) {
    let [a, b, c, d] = collection.to_bytes();
    let start = vec![SAVED_DOCUMENTS, a, b, c, d];
    let end = quire_storage::prefix_end(&start);
    (start, end)
}

/// Returns the record id in the key of a saved document.
pub(crate) fn saved_record_id(key: &[u8]) -> Result<RecordId> {
    let id = key.get(5..).and_then(|id| <[u8; 8]>::try_from(id).ok());
    id.map(|id| RecordId(u64::from_be_bytes(id))).ok_or_else(|| damaged("a saved document's key"))
}

/// The common beginning of the records of a collection, without the kind and the time.
pub(crate) fn name_of(collection: &Collection) -> Bytes {
    let namespace = collection.namespace.as_str();
    let mut name = BytesMut::with_capacity(22 + namespace.len());
    name.put_u32(collection.id.0);
    name.put_slice(&collection.uuid.0);
    name.put_u16(u16::try_from(namespace.len()).unwrap_or(u16::MAX));
    name.put_slice(namespace.as_bytes());
    name.freeze()
}

fn begin(kind: u8, wall_ms: u64, name: &[u8], more: usize) -> BytesMut {
    let mut record = BytesMut::with_capacity(9 + name.len() + more);
    record.put_u8(kind);
    record.put_u64(wall_ms);
    record.put_slice(name);
    record
}

/// Encodes inserts of `count` documents from `first` on.
pub(crate) fn inserts(wall_ms: u64, name: &[u8], first: RecordId, count: u32) -> Bytes {
    let mut record = begin(INSERTS, wall_ms, name, 12);
    record.put_u64(first.0);
    record.put_u32(count);
    record.freeze()
}

/// Encodes an update of the document with the `_id` in `key`.
pub(crate) fn update(
    (wall_ms, name): (u64, &[u8]),
    place: Place,
    (key, description): (&DocBuf, &DocBuf),
    images: &Images,
) -> Bytes {
    let parts = [key.as_bytes(), description.as_bytes()];
    change(UPDATE, (wall_ms, name), place, &parts, images)
}

/// Encodes a replacement by `after`.
pub(crate) fn replace(
    (wall_ms, name): (u64, &[u8]),
    place: Place,
    after: Doc<'_>,
    images: &Images,
) -> Bytes {
    change(REPLACE, (wall_ms, name), place, &[after.as_bytes()], images)
}

/// Encodes a delete of the document with the `_id` in `key`.
pub(crate) fn delete(
    (wall_ms, name): (u64, &[u8]),
    place: Place,
    key: &DocBuf,
    images: &Images,
) -> Bytes {
    change(DELETE, (wall_ms, name), place, &[key.as_bytes()], images)
}

fn change(
    kind: u8,
    (wall_ms, name): (u64, &[u8]),
    place: Place,
    docs: &[&[u8]],
    images: &Images,
) -> Bytes {
    let images = [(&images.before, HAS_BEFORE), (&images.after, HAS_AFTER)];
    let given = || images.iter().filter_map(|(image, _)| image.as_ref());
    let bytes = docs.iter().map(|doc| doc.len()).chain(given().map(Bytes::len)).sum::<usize>();
    let mut record = begin(kind, wall_ms, name, 9 + bytes);
    record.put_u64(place.id.0);
    let has = images.iter().filter(|(image, _)| image.is_some()).map(|(_, flag)| flag);
    record.put_u8(has.fold(if place.saved { SAVED } else { 0 }, |flags, flag| flags | flag));
    docs.iter().for_each(|doc| record.put_slice(doc));
    given().for_each(|image| record.put_slice(image));
    record.freeze()
}

/// Encodes the first record of the commit of a client's transaction.
pub(crate) fn transaction(wall_ms: u64, number: i64, session: Doc<'_>) -> Bytes {
    let mut record = begin(TRANSACTION, wall_ms, &[], 8 + session.len());
    record.put_i64(number);
    record.put_slice(session.as_bytes());
    record.freeze()
}

/// Encodes a change of the catalog.
pub(crate) fn catalog(wall_ms: u64, change: &DocBuf) -> Bytes {
    let mut record = begin(CATALOG, wall_ms, &[], change.as_bytes().len());
    record.put_slice(change.as_bytes());
    record.freeze()
}

/// Decodes a record: the value in the engine without its first 8 bytes, the cluster time.
pub(crate) fn decode(record: &Bytes) -> Result<LogRecord<'_>> {
    parse(record).ok_or_else(|| damaged("a record of the change log"))
}

fn parse(record: &Bytes) -> Option<LogRecord<'_>> {
    let mut rest = &record[..];
    let kind = rest.try_get_u8().ok()?;
    let wall_ms = rest.try_get_u64().ok()?;
    let content = match kind {
        TRANSACTION => {
            let number = rest.try_get_i64().ok()?;
            LogContent::Transaction { number, session: take_doc(record, &mut rest)? }
        }
        CATALOG => LogContent::Catalog(take_doc(record, &mut rest)?),
        _ => {
            let collection = take_name(&mut rest)?;
            let change = match kind {
                INSERTS => LoggedChange::Inserts {
                    first: RecordId(rest.try_get_u64().ok()?),
                    count: rest.try_get_u32().ok()?,
                },
                _ => take_change(kind, record, &mut rest)?,
            };
            LogContent::Documents { collection, change }
        }
    };
    rest.is_empty().then_some(LogRecord { wall_ms, content })
}

fn take_name<'r>(rest: &mut &'r [u8]) -> Option<LoggedName<'r>> {
    let id = CollectionId(rest.try_get_u32().ok()?);
    let (uuid, after) = rest.split_first_chunk::<16>()?;
    *rest = after;
    let length = usize::from(rest.try_get_u16().ok()?);
    let (namespace, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(LoggedName { id, uuid: Uuid(*uuid), namespace: std::str::from_utf8(namespace).ok()? })
}

fn take_change(kind: u8, record: &Bytes, rest: &mut &[u8]) -> Option<LoggedChange> {
    let id = RecordId(rest.try_get_u64().ok()?);
    let flags = rest.try_get_u8().ok()?;
    let place = Place { id, saved: flags & SAVED != 0 };
    let first = take_doc(record, rest)?;
    let description = match kind {
        UPDATE => Some(take_doc(record, rest)?),
        _ => None,
    };
    let mut image = |flag| match flags & flag {
        0 => Some(None),
        _ => take_doc(record, rest).map(Some),
    };
    let images = Images { before: image(HAS_BEFORE)?, after: image(HAS_AFTER)? };
    Some(match (kind, description) {
        (UPDATE, Some(description)) => {
            LoggedChange::Update { place, key: first, description, images }
        }
        (REPLACE, _) => LoggedChange::Replace { place, after: first, images },
        (DELETE, _) => LoggedChange::Delete { place, key: first, images },
        _ => return None,
    })
}

/// Takes a document, whose first four bytes are its length.
fn take_doc(record: &Bytes, rest: &mut &[u8]) -> Option<Bytes> {
    let length = rest.first_chunk().map(|length| u32::from_le_bytes(*length))?;
    let (doc, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = after;
    (doc.len() > 4).then(|| record.slice_ref(doc))
}

/// Returns the description of an update as its event shows it.
pub(crate) fn describe(description: &UpdateDescription) -> DocBuf {
    let UpdateDescription { updated, removed, truncated } = description;
    let paths = updated.iter().map(|(path, _)| path).chain(removed);
    let paths = paths.chain(truncated.iter().map(|(path, _)| path));
    let ambiguous: Vec<&ChangedPath> = paths.filter(|path| is_ambiguous(path)).collect();
    DocBuf::build(|writer| {
        let mut fields = writer.document("updatedFields");
        for (path, value) in updated {
            fields.append(&path.to_string(), value);
        }
        fields.finish();
        let mut fields = writer.array("removedFields");
        for path in removed {
            fields.push(&*path.to_string());
        }
        fields.finish();
        let mut arrays = writer.array("truncatedArrays");
        for (path, size) in truncated {
            let mut array = arrays.document();
            array.append("field", &*path.to_string()).append("newSize", *size as i32);
        }
        arrays.finish();
        if !ambiguous.is_empty() {
            let mut paths = writer.document("disambiguatedPaths");
            for path in ambiguous {
                let mut steps = paths.array(&path.to_string());
                for step in &path.steps {
                    match step {
                        PathStep::Field(name) => steps.push(name.as_str()),
                        PathStep::Index(index) => steps.push(Value::Int32(*index as i32)),
                    };
                }
            }
        }
    })
}

/// Returns true if the dotted text of a path does not say what its parts are: a name has a dot, or
/// looks like the position of an array element.
fn is_ambiguous(path: &ChangedPath) -> bool {
    let is_number = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    path.steps.iter().any(|step| match step {
        PathStep::Field(name) => name.contains('.') || is_number(name),
        PathStep::Index(_) => false,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use quire_document::doc;

    const NAME: &[u8] = b"\0\0\0\x07uuid-uuid-uuid-u\0\x03d.c";

    #[test]
    fn a_record_decodes_to_what_was_encoded_and_no_part_of_it_decodes() {
        let (key, description) = (doc! { "_id": 1 }, doc! { "updatedFields": &doc! { "a": 2 } });
        let before = Bytes::from(doc! { "_id": 1, "a": 1 }.into_bytes());
        let images = Images { before: Some(before.clone()), after: None };
        let place = Place { id: RecordId(9), saved: true };
        let record = update((5, NAME), place, (&key, &description), &images);
        let LogRecord { wall_ms: 5, content } = decode(&record).unwrap() else { panic!() };
        let LogContent::Documents { collection, change } = content else { panic!() };
        assert_eq!((collection.id, collection.namespace), (CollectionId(7), "d.c"));
        let LoggedChange::Update { place, key: found, images, .. } = change else { panic!() };
        assert_eq!((place.id, place.saved, &found[..]), (RecordId(9), true, key.as_bytes()));
        assert_eq!((images.before, images.after), (Some(before), None));
        for length in 0..record.len() {
            assert!(decode(&record.slice(..length)).is_err());
        }
        let record = inserts(6, NAME, RecordId(3), 4);
        let LogContent::Documents { change, .. } = decode(&record).unwrap().content else {
            panic!()
        };
        assert!(matches!(change, LoggedChange::Inserts { first: RecordId(3), count: 4 }));
    }
}
