//! The documents of events, with MongoDB's fields in MongoDB's order.

use super::scope::{Scope, split};
use quire_collections::{ChangeEntry, ChangeWhat, EntryCollection, View};
use quire_document::{Binary, Doc, DocBuf, DocWriter, Timestamp, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::{BeforeChange, ChangeStream, FullDocument, ResumeToken, TokenKind};
use quire_storage::Bytes;

/// An event before the rest of the pipeline.
pub(super) struct Event {
    pub token: ResumeToken,
    pub doc: DocBuf,
    /// True if the stream ends after it.
    pub ends: bool,
    /// True if the pipeline removes it. Then it lacks the documents that are looked up.
    pub refused: bool,
    /// The fragments of it that were returned before the stream was resumed.
    pub returned: u16,
}

/// Makes events of changes.
pub(super) struct Events<'s> {
    pub scope: &'s Scope,
    pub spec: &'s ChangeStream,
}

/// A document in an event.
enum Image<'d> {
    /// The event has no such field.
    None,
    /// The field is null.
    Null,
    Doc(&'d [u8]),
}

impl Events<'_> {
    /// Returns the events of a change: none, one, or one and the `invalidate` after it.
    ///
    /// # Errors
    /// 47 NoMatchingDocument if the stream requires a document that the log does not have.
    pub fn of(&self, entry: &ChangeEntry, view: &View<'_>) -> Result<Vec<Event>> {
        let token = token_of(entry, TokenKind::Event);
        let made = match entry.catalog() {
            Some(change) => self.of_catalog(entry, token, change),
            None => self.of_document(entry, token, view)?.map(|doc| (doc, false)),
        };
        let Some((doc, invalidates)) = made else { return Ok(Vec::new()) };
        let mut events = vec![Event { token, doc, ends: false, refused: false, returned: 0 }];
        if invalidates {
            events.push(invalidate(entry));
        }
        Ok(events)
    }

    fn of_document(
        &self,
        entry: &ChangeEntry,
        token: ResumeToken,
        view: &View<'_>,
    ) -> Result<Option<DocBuf>> {
        let (op, collection) = match &entry.what {
            ChangeWhat::Insert { collection, .. } => ("insert", collection),
            ChangeWhat::Update { collection, .. } => ("update", collection),
            ChangeWhat::Replace { collection, .. } => ("replace", collection),
            ChangeWhat::Delete { collection, .. } => ("delete", collection),
            ChangeWhat::Catalog(_) => return Ok(None),
        };
        if !self.scope.has(&collection.namespace) {
            return Ok(None);
        }
        let looked_up;
        let full = match &entry.what {
            ChangeWhat::Insert { doc, .. } => Image::Doc(doc),
            ChangeWhat::Replace { after, .. } => Image::Doc(after),
            ChangeWhat::Update { key, images: (_, after), .. } => match self.spec.full_document {
                FullDocument::Default => Image::None,
                FullDocument::UpdateLookup => {
                    looked_up = look_up(view, collection, key)?;
                    looked_up.as_deref().map_or(Image::Null, Image::Doc)
                }
                FullDocument::WhenAvailable => after.as_deref().map_or(Image::Null, Image::Doc),
                FullDocument::Required => Image::Doc(required(after.as_ref(), entry, "post")?),
            },
            ChangeWhat::Delete { .. } | ChangeWhat::Catalog(_) => Image::None,
        };
        let before = self.before(entry)?;
        Ok(Some(DocBuf::build(|event| {
            self.begin(event, token, op, entry, Some(collection));
            append_image(event, "fullDocument", &full);
            append_namespace(event, "ns", &collection.namespace);
            let mut key = event.document("documentKey");
            key.append_some("_id", key_of(&entry.what));
            key.finish();
            if let ChangeWhat::Update { description, .. } = &entry.what {
                let description = Doc::from_valid_bytes(description);
                self.append_description(event, description);
            }
            append_image(event, "fullDocumentBeforeChange", &before);
        })))
    }

    /// Returns the document before an update, a replacement or a delete, as the stream shows it.
    fn before<'e>(&self, entry: &'e ChangeEntry) -> Result<Image<'e>> {
        let before = match &entry.what {
            ChangeWhat::Update { images: (before, _), .. } => before.as_ref(),
            ChangeWhat::Replace { before, .. } | ChangeWhat::Delete { before, .. } => {
                before.as_ref()
            }
            ChangeWhat::Insert { .. } | ChangeWhat::Catalog(_) => return Ok(Image::None),
        };
        Ok(match self.spec.before_change {
            BeforeChange::Off => Image::None,
            BeforeChange::WhenAvailable => before.map_or(Image::Null, |doc| Image::Doc(doc)),
            BeforeChange::Required => Image::Doc(required(before, entry, "pre")?),
        })
    }

    fn append_description(&self, event: &mut DocWriter<'_>, description: Doc<'_>) {
        let mut shown = event.document("updateDescription");
        for (name, value) in description.fields() {
            if name != "disambiguatedPaths" {
                shown.append(name, value);
            }
        }
        if self.spec.expanded {
            let none = Value::Document(Doc::empty());
            let paths = description.get("disambiguatedPaths").unwrap_or(none);
            shown.append("disambiguatedPaths", paths);
        }
    }

    /// Appends the fields that all events begin with.
    fn begin(
        &self,
        event: &mut DocWriter<'_>,
        token: ResumeToken,
        op: &str,
        entry: &ChangeEntry,
        collection: Option<&EntryCollection>,
    ) {
        event.append("_id", &token.to_doc()).append("operationType", op);
        event.append("clusterTime", Timestamp::from_u64(entry.time.0));
        if let Some(collection) = collection.filter(|_| self.spec.expanded) {
            let uuid = Binary { subtype: 4, bytes: &collection.uuid.0 };
            event.append("collectionUUID", Value::Binary(uuid));
        }
        event.append("wallTime", wall_time(entry));
        if let Some(origin) = &entry.origin {
            event.append("txnNumber", origin.number);
            event.append("lsid", Doc::from_valid_bytes(&origin.session));
        }
    }

    /// Returns the event of a change of the catalog, and true if it invalidates the stream.
    fn of_catalog(
        &self,
        entry: &ChangeEntry,
        token: ResumeToken,
        change: Doc<'_>,
    ) -> Option<(DocBuf, bool)> {
        let text = |name: &str| change.get(name).and_then(|value| value.as_str());
        let (op, namespace, to) = (text("op")?, text("ns")?, text("to"));
        let is_view = change.contains("view");
        let is_plain = matches!(op, "drop" | "rename" | "dropDatabase") && !is_view;
        if !is_plain && !self.spec.expanded {
            return None;
        }
        let is_seen = match (op, self.scope) {
            ("dropDatabase", Scope::Collection(_)) => false,
            _ => self.scope.has(namespace) || to.is_some_and(|to| self.scope.has(to)),
        };
        if !is_seen {
            return None;
        }
        let invalidates = match self.scope {
            Scope::Collection(_) => matches!(op, "drop" | "rename") && !is_view,
            Scope::Database(_) => op == "dropDatabase",
            Scope::Cluster => false,
        };
        let doc = DocBuf::build(|event| {
            if let Some(to) = to {
                append_namespace(event, "to", to);
            }
            self.begin(event, token, op, entry, None);
            if self.spec.expanded {
                event.append_some("collectionUUID", change.get("uuid"));
            }
            append_namespace(event, "ns", namespace);
            self.append_catalog(event, op, change);
        });
        Some((doc, invalidates))
    }

    /// Appends what expanded events say about a change of the catalog.
    fn append_catalog(&self, event: &mut DocWriter<'_>, op: &str, change: Doc<'_>) {
        if !self.spec.expanded {
            return;
        }
        if op == "create" {
            let kind = if change.contains("view") { "view" } else { "collection" };
            event.append("nsType", kind);
        }
        if op == "rename" {
            let mut description = event.document("operationDescription");
            if let Some(to) = change.get("to").and_then(|to| to.as_str()) {
                append_namespace(&mut description, "to", to);
            }
            description.append_some("dropTarget", change.get("dropTarget"));
            return;
        }
        event.append_some("operationDescription", change.get("o"));
        event.append_some("stateBeforeChange", change.get("before"));
    }
}

/// Returns the token of the event of a change.
pub(super) fn token_of(entry: &ChangeEntry, kind: TokenKind) -> ResumeToken {
    ResumeToken {
        time: entry.time.0,
        version: entry.place.version,
        index: entry.place.index,
        offset: entry.place.offset,
        kind,
        fragment: 0,
    }
}

/// Returns the event after which a stream ends.
fn invalidate(entry: &ChangeEntry) -> Event {
    let token = token_of(entry, TokenKind::Invalidate);
    let doc = DocBuf::build(|event| {
        event.append("_id", &token.to_doc()).append("operationType", "invalidate");
        event.append("clusterTime", Timestamp::from_u64(entry.time.0));
        event.append("wallTime", wall_time(entry));
    });
    Event { token, doc, ends: true, refused: false, returned: 0 }
}

fn wall_time(entry: &ChangeEntry) -> Value<'static> {
    Value::Date(i64::try_from(entry.wall_ms).unwrap_or(i64::MAX))
}

fn append_image(event: &mut DocWriter<'_>, name: &str, image: &Image<'_>) {
    match image {
        Image::None => {}
        Image::Null => drop(event.append(name, Value::Null)),
        Image::Doc(doc) => drop(event.append(name, Doc::from_valid_bytes(doc))),
    }
}

/// Appends `{db, coll}`.
fn append_namespace(event: &mut DocWriter<'_>, name: &str, namespace: &str) {
    let (db, collection) = split(namespace);
    let mut shown = event.document(name);
    shown.append("db", db);
    if !collection.is_empty() {
        shown.append("coll", collection);
    }
}

/// Returns the `_id` of the changed document.
fn key_of(what: &ChangeWhat) -> Option<Value<'_>> {
    let doc = match what {
        ChangeWhat::Insert { doc, .. } => doc,
        ChangeWhat::Replace { after, .. } => after,
        ChangeWhat::Update { key, .. } | ChangeWhat::Delete { key, .. } => key,
        ChangeWhat::Catalog(_) => return None,
    };
    Doc::from_valid_bytes(doc).get("_id")
}

/// Returns the document with a key as it is now, if its collection still exists.
fn look_up(view: &View<'_>, collection: &EntryCollection, key: &Bytes) -> Result<Option<Bytes>> {
    let Some(now) = view.catalog().by_uuid(&collection.uuid) else { return Ok(None) };
    let Some(id) = Doc::from_valid_bytes(key).get("_id") else { return Ok(None) };
    Ok(view.get_by_id(now, id)?.map(|record| record.doc.into_bytes()))
}

/// Returns an image that the stream requires.
fn required<'e>(image: Option<&'e Bytes>, entry: &ChangeEntry, which: &str) -> Result<&'e [u8]> {
    image.map(|image| &image[..]).ok_or_else(|| {
        let text = format!(
            "Change stream was configured to require a {which}-image for all update events, but the {which}-image was not found for event: {}",
            quire_catalog::debug_doc(token_of(entry, TokenKind::Event).to_doc().as_doc())
        );
        Error::new(ErrorCode::NoMatchingDocument, text)
    })
}
