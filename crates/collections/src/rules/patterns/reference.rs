//! The rule of the documents that refer: a document gets the copies of its references before it is
//! stored, and one that refers to nothing is refused.

use std::sync::Arc;

use quire_catalog::patterns::{CopyMode, OnDelete, OnMissing, Pattern, PatternKind, Reference};
use quire_catalog::{Collection, Namespace};
use quire_document::path::Part;
use quire_document::{Doc, DocBuf, Path, Value, ValueBuf, equal};
use quire_error::{Error, ErrorCode};

use super::copies::{Copies, Places, nulled, references};
use super::declared::Declared;
use super::{Settled, Upkeep, any_reference, client_wrote, depend, refused, values};
use crate::failure::Attempt;
use crate::rules::{Proposal, RuleWriter};
use crate::{StoredDoc, WritePolicy};

/// A reference with its paths.
pub(in crate::rules) struct Computed {
    pattern: Arc<Pattern>,
    reference: Reference,
    local: Path,
    into: Path,
    sources: Vec<Path>,
}

/// The document that one value names, read once for all documents that refer to it.
pub(super) struct Fresh(Option<StoredDoc>);

/// What a document had at a reference: its value and its copies.
type Before = (Option<ValueBuf>, DocBuf);

/// The computation of the copies of one document.
struct Computation<'c> {
    of: &'c Computed,
    reference: &'c Reference,
    owner: &'c Collection,
    /// The collection of the referred documents; `None` if it does not exist.
    from: Option<Arc<Collection>>,
    /// The document itself, if the collection refers to itself: it may not be stored yet.
    own: Option<Doc<'c>>,
    /// The references that the stored document has, each with true after it was used.
    before: Vec<(Before, bool)>,
    /// For each reference of the document, in order, the one of `before` whose copies it carries: an
    /// element that has moved within its array keeps its own.
    carried: Vec<Option<usize>>,
    /// The number of references whose copies were computed.
    at: usize,
    /// True if a reference that the stored document does not have must lead to a document.
    is_strict: bool,
    /// The referred documents that were read.
    read: Vec<(ValueBuf, Option<StoredDoc>)>,
    /// The first derived path at which the document has a value that is neither the stored nor the
    /// computed one.
    touched: Option<String>,
}

impl Declared for Computed {
    const RULE: &'static str = "reference";

    fn new(pattern: &Arc<Pattern>) -> Option<Self> {
        let PatternKind::Reference(reference) = &pattern.kind else { return None };
        Some(Computed {
            pattern: Arc::clone(pattern),
            local: Path::new(&reference.local_field),
            into: Path::new(&reference.into),
            sources: reference.fields.iter().map(|field| Path::new(&field.source)).collect(),
            reference: reference.clone(),
        })
    }

    fn complete(
        &self,
        proposal: &Proposal<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let Proposal { collection, before, after, policy, by, .. } = *proposal;
        let pattern = &self.pattern;
        // Nothing that follows from the copies changes them: circles of patterns are refused.
        if by.is_some_and(|by| by.name == pattern.name) {
            return Ok(None);
        }
        if before.is_some_and(|before| self.is_untouched(before, after)) {
            return Ok(None);
        }
        // While the pattern is built, an inserted document may come from a dump: what it has of a
        // snapshot is the snapshot.
        let known = match before {
            None if !pattern.is_strict() => Some(after),
            before => before,
        };
        let occurrences = known.map_or(Ok(Vec::new()), |known| self.occurrences(known))?;
        let mut computation = self.computation(collection, after, occurrences, writer);
        computation.is_strict = pattern.is_strict()
            && self.reference.on_missing == OnMissing::Error
            && matches!(policy, WritePolicy::Client | WritePolicy::Derived);
        if self.sources.is_empty() {
            computation.check(&self.references(after), writer)?;
            return Ok(None);
        }
        if !computation.before.is_empty() && self.references(after).len() > 1 {
            computation.carry(&self.occurrences(after)?);
        }
        let completed = self.places().rewrite(after, &mut |reference, copies| {
            computation.copies(reference, copies, writer).map(Some)
        })?;
        let is_client = matches!(policy, WritePolicy::Client | WritePolicy::Bypassing);
        if is_client
            && let Some(path) = computation
                .touched
                .or_else(|| self.displaced(completed.as_ref(), after))
                .or_else(|| self.removed(completed.as_ref(), proposal))
        {
            client_wrote(pattern, collection, &path)?;
        }
        Ok(completed)
    }
}

impl Upkeep for Computed {
    fn recomputed(
        &self,
        collection: &Collection,
        doc: Doc<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let before = self.occurrences(doc)?;
        let mut computation = self.computation(collection, doc, before, writer);
        self.places().rewrite(doc, &mut |reference, copies| {
            computation.copies(reference, copies, writer).map(Some)
        })
    }

    fn settled(
        &self,
        collection: &Collection,
        doc: Doc<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Settled> {
        let on_delete = self.reference.on_delete;
        let mut computation = self.computation(collection, doc, Vec::new(), writer);
        let mut new = doc.to_owned();
        for value in self.references(doc) {
            let is_gone = computation.target(value, writer)?.is_none();
            match on_delete {
                OnDelete::Cascade if is_gone => return Ok(Settled::Deleted),
                OnDelete::SetNull if is_gone => {
                    new = nulled(new.as_doc(), self.local.parts(), value);
                }
                _ => {}
            }
        }
        let is_changed = new.as_bytes() != doc.as_bytes();
        let recomputed = self.recomputed(collection, new.as_doc(), writer)?;
        Ok(Settled::from(recomputed.or(is_changed.then_some(new))))
    }

    fn problem(
        &self,
        collection: &Collection,
        doc: Doc<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<String>> {
        let reference = &self.reference;
        // With `keep` a reference outlives its document.
        if reference.on_missing != OnMissing::Error || reference.on_delete == OnDelete::Keep {
            return Ok(None);
        }
        let mut computation = self.computation(collection, doc, Vec::new(), writer);
        for value in self.references(doc) {
            if computation.target(value, writer)?.is_none() {
                return Ok(Some(missing(reference, value)));
            }
        }
        Ok(None)
    }
}

impl Computed {
    fn places(&self) -> Places<'_> {
        let into: &[Part] = if self.sources.is_empty() { &[] } else { self.into.parts() };
        Places { local: self.local.parts(), into }
    }

    /// Returns all values of the reference in a document.
    pub fn references<'a>(&self, doc: Doc<'a>) -> Vec<Value<'a>> {
        let mut found = Vec::new();
        references(doc, self.local.parts(), &mut found);
        found
    }

    /// Reads the document that `value` names, which the commit depends on. Returns `None` if the
    /// collection refers to itself: then the document may be one of those that refer to it.
    pub(super) fn fresh(
        &self,
        owner: &Collection,
        value: Value<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<Fresh>> {
        let mut computation = self.computation(owner, Doc::empty(), Vec::new(), writer);
        if self.sources.is_empty() || computation.own.is_some() {
            return Ok(None);
        }
        Ok(Some(Fresh(computation.target(value, writer)?)))
    }

    /// Returns the document with other copies of one value; `None` if it has them.
    pub(super) fn refreshed(
        &self,
        doc: Doc<'_>,
        value: Value<'_>,
        fresh: &Fresh,
    ) -> Attempt<Option<DocBuf>> {
        self.places().rewrite(doc, &mut |reference, copies| {
            let is_same = reference.is_some_and(|found| equal(found, value, None));
            Ok(is_same.then(|| {
                let kept = copies.map(|copies| self.copied(copies));
                self.copies_of(fresh.0.as_ref(), kept.as_ref())
            }))
        })
    }

    /// Returns the copies of the referred document `target`. `kept` are those that the document has.
    fn copies_of(&self, target: Option<&StoredDoc>, kept: Option<&DocBuf>) -> Copies {
        let has_copies = kept.is_some_and(|kept| !kept.as_doc().is_empty());
        let stays = |mode: CopyMode| match mode {
            CopyMode::Snapshot => has_copies,
            CopyMode::Sync => target.is_none() && self.reference.on_delete == OnDelete::Keep,
        };
        let fields = self.reference.fields.iter().zip(&self.sources);
        fields
            .map(|(field, source)| {
                let value = match stays(field.mode) {
                    true => kept.and_then(|kept| kept.get(&field.name)),
                    false => target.and_then(|target| source.get(target.as_doc())),
                };
                (field.name.clone(), value.map(ValueBuf::new))
            })
            .collect()
    }

    /// Returns the references of a document with their copies, in order.
    fn occurrences(&self, doc: Doc<'_>) -> Attempt<Vec<(Before, bool)>> {
        let mut found = Vec::new();
        if self.sources.is_empty() {
            let values = self.references(doc).into_iter();
            found.extend(values.map(|value| ((Some(ValueBuf::new(value)), DocBuf::new()), false)));
            return Ok(found);
        }
        self.places().rewrite(doc, &mut |reference, copies| {
            let copies = copies.map(|doc| self.copied(doc)).unwrap_or_default();
            found.push(((reference.map(ValueBuf::new), copies), false));
            Ok(None)
        })?;
        Ok(found)
    }

    /// Returns the copies among the fields of a document.
    fn copied(&self, doc: Doc<'_>) -> DocBuf {
        let reference = &self.reference;
        DocBuf::build(|writer| {
            for field in &reference.fields {
                writer.append_some(&field.name, doc.get(&field.name));
            }
        })
    }

    fn computation<'c>(
        &'c self,
        owner: &'c Collection,
        doc: Doc<'c>,
        before: Vec<(Before, bool)>,
        writer: &mut dyn RuleWriter,
    ) -> Computation<'c> {
        let reference = &self.reference;
        let from = Namespace::new(owner.namespace.db(), &reference.from).ok();
        let from = from.and_then(|from| writer.collection(&from));
        let own = from.as_ref().filter(|from| from.id == owner.id).map(|_| doc);
        Computation {
            of: self,
            reference,
            owner,
            from,
            own,
            before,
            carried: Vec::new(),
            at: 0,
            is_strict: false,
            read: Vec::new(),
            touched: None,
        }
    }

    /// Returns the first derived path if a client's document has something else than a document where
    /// the copies stand, which the completed document has replaced.
    fn displaced(&self, completed: Option<&DocBuf>, after: Doc<'_>) -> Option<String> {
        let completed = completed?.as_doc();
        let is_displaced =
            values::is_blocked(after, &self.into) && !values::is_blocked(completed, &self.into);
        let paths = || self.pattern.derived_paths();
        is_displaced.then(|| paths().into_iter().next()).flatten()
    }

    /// Returns the first derived path that a client removes and the completed document has again.
    fn removed(&self, completed: Option<&DocBuf>, proposal: &Proposal<'_>) -> Option<String> {
        let (Some(_), Some(update)) = (completed, proposal.update) else { return None };
        self.pattern.derived_paths().into_iter().find(|path| update.removes(path))
    }

    /// Returns true if the fields of the document that have references or copies are the same bytes
    /// before and after a write.
    fn is_untouched(&self, before: Doc<'_>, after: Doc<'_>) -> bool {
        let same = |name: &str| values::same(before.get(name), after.get(name));
        same(self.local.first()) && (self.sources.is_empty() || same(self.into.first()))
    }
}

/// Says that a referred document does not exist.
fn missing(reference: &Reference, value: Value<'_>) -> String {
    let (from, field) = (&reference.from, &reference.foreign_field);
    let value = quire_catalog::debug_value(value);
    format!("no document of '{from}' has {field}: {value}")
}

impl Computation<'_> {
    /// Returns the copies of one reference. `copies` is the document that has them now.
    fn copies(
        &mut self,
        reference: Option<Value<'_>>,
        copies: Option<Doc<'_>>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Copies> {
        let carried = self.carried.get(self.at).copied().flatten();
        self.at += 1;
        let computed = match reference.filter(|value| !value.is_nullish()) {
            None => self.reference.fields.iter().map(|field| (field.name.clone(), None)).collect(),
            Some(value) => self.of_value(value, carried, writer)?,
        };
        if self.touched.is_none()
            && let Some(copies) = copies
        {
            self.touched = self.touched_by(copies, &computed);
        }
        Ok(computed)
    }

    fn of_value(
        &mut self,
        value: Value<'_>,
        carried: Option<usize>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Copies> {
        let kept = match carried.and_then(|at| self.before.get(at)) {
            Some(((_, copies), _)) => Some(copies.clone()),
            None => self.take_before(value),
        };
        let target = self.target(value, writer)?;
        if target.is_none() && self.is_strict && kept.is_none() {
            return Err(self.refuses(value).into());
        }
        Ok(self.of.copies_of(target.as_ref(), kept.as_ref()))
    }

    /// Refuses a reference that the stored document does not have and that leads nowhere.
    fn check(&mut self, values: &[Value<'_>], writer: &mut dyn RuleWriter) -> Attempt<()> {
        for value in values {
            let is_new = self.take_before(*value).is_none();
            if is_new && self.target(*value, writer)?.is_none() && self.is_strict {
                return Err(self.refuses(*value).into());
            }
        }
        Ok(())
    }

    fn refuses(&self, value: Value<'_>) -> Error {
        let why = missing(self.reference, value);
        refused(self.owner, &self.of.pattern, &self.reference.local_field, &why)
    }

    /// Finds which of the stored references the references of the document are, by the snapshots that
    /// they carry.
    fn carry(&mut self, now: &[(Before, bool)]) {
        let snapshots = self.reference.fields.iter();
        let snapshots: Vec<&str> = snapshots
            .filter(|field| field.mode == CopyMode::Snapshot)
            .map(|field| field.name.as_str())
            .collect();
        let taken = |copies: &DocBuf| -> Vec<Option<ValueBuf>> {
            snapshots.iter().map(|name| copies.get(name).map(ValueBuf::new)).collect()
        };
        for ((reference, copies), _) in now {
            let own = taken(copies);
            let has_some = own.iter().any(Option::is_some);
            let found = self.before.iter().position(|((stored, copies), used)| {
                let same = match (stored, reference) {
                    (Some(stored), Some(value)) => equal(stored.as_value(), value.as_value(), None),
                    _ => false,
                };
                has_some && !used && same && taken(copies) == own
            });
            if let Some((_, used)) = found.and_then(|at| self.before.get_mut(at)) {
                *used = true;
            }
            self.carried.push(found);
        }
    }

    /// Returns the copies that the stored document has for the next reference with this value.
    fn take_before(&mut self, value: Value<'_>) -> Option<DocBuf> {
        let found = self.before.iter_mut().find(|((reference, _), used)| {
            !*used && reference.as_ref().is_some_and(|found| equal(found.as_value(), value, None))
        })?;
        found.1 = true;
        Some(found.0.1.clone())
    }

    /// Returns the referred document, which this commit depends on.
    fn target(
        &mut self,
        value: Value<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<StoredDoc>> {
        let read = self.read.iter().find(|(read, _)| equal(read.as_value(), value, None));
        if let Some((_, doc)) = read {
            return Ok(doc.clone());
        }
        depend(writer, self.owner.id, &self.of.pattern, value);
        if self.reference.on_delete == OnDelete::Restrict {
            writer.mark_key(&any_reference(self.owner.id, &self.of.pattern));
        }
        let own = self.own.filter(|own| {
            let named = Path::new(&self.reference.foreign_field).get(*own);
            named.is_some_and(|named| equal(named, value, None))
        });
        let found = match (own, &self.from) {
            (Some(own), _) => Some(StoredDoc::from_doc(own)),
            (None, Some(from)) => {
                writer.guard_collection(from);
                find_target(from, &self.reference.foreign_field, value, &*writer)?
            }
            (None, None) => None,
        };
        self.read.push((ValueBuf::new(value), found.clone()));
        Ok(found)
    }

    /// Returns the derived path at which `copies` has a value that is neither computed nor one that
    /// the stored document has.
    fn touched_by(&self, copies: Doc<'_>, computed: &Copies) -> Option<String> {
        let is_stored = |name: &str, value: &ValueBuf| {
            self.before.iter().any(|((_, stored), _)| {
                stored.get(name).is_some_and(|stored| ValueBuf::new(stored) == *value)
            })
        };
        let mut fields = computed.iter().filter_map(|(name, new)| {
            let found = ValueBuf::new(copies.get(name)?);
            let is_known = new.as_ref() == Some(&found) || is_stored(name, &found);
            (!is_known).then(|| format!("{}.{name}", self.reference.into))
        });
        fields.next()
    }
}

/// Returns the document of `from` whose `field` has a value.
///
/// # Errors
/// 27 IndexNotFound if `from` has no unique index of the field.
pub(crate) fn find_target(
    from: &Collection,
    field: &str,
    value: Value<'_>,
    writer: &dyn RuleWriter,
) -> Attempt<Option<StoredDoc>> {
    if field == "_id" {
        return Ok(writer.view().get_by_id(from, value)?.map(|record| record.doc));
    }
    let is_unique = |index: &&Arc<quire_catalog::Index>| {
        index.unique && index.keys.fields().len() == 1 && index.keys.collation().is_none()
    };
    let named = from.ready_indexes().filter(is_unique);
    let mut named = named.filter(|index| index.keys.field(field) == Some(0));
    let Some(index) = named.next() else {
        let text = format!("a pattern needs a unique index of {} on '{field}'", from.namespace);
        return Err(Error::new(ErrorCode::IndexNotFound, text).into());
    };
    let probe = field.rsplit('.').fold(ValueBuf::new(value), |inner, name| {
        let mut doc = DocBuf::new();
        doc.append(name, inner.as_value());
        doc.into()
    });
    let Some(probe) = probe.as_value().as_document() else { return Ok(None) };
    let found = writer.view().get_by_key_of(from, index, probe)?.map(|record| record.doc);
    // An element of an array names no document: its changes would not be found.
    let path = Path::new(field);
    let is_named =
        |doc: &StoredDoc| path.get(doc.as_doc()).is_some_and(|named| equal(named, value, None));
    Ok(found.filter(is_named))
}
