//! Declared patterns: redundancy that the engine keeps exact (docs/patterns). A collection has the
//! patterns that write its own documents; what they read is in the same database, mostly in another
//! collection. This module holds their definitions: parsed strictly, shown as they are stored. How
//! they are kept is in `collections` (`rules/patterns`).

mod counter;
mod fields;
mod loops;
mod plain;
mod reference;
mod rollup;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quire_document::{Array, Doc, DocBuf, DocWriter, Path, Value};
use quire_error::{Error, ErrorCode, Result};

pub use counter::Counter;
use fields::Fields;
pub use loops::{Reach, check_loops};
pub use plain::Plain;
pub use reference::{CopiedField, CopyMode, OnDelete, OnMissing, Reference};
pub use rollup::Rollup;

use crate::{Namespace, Uuid};

/// The most patterns that one collection declares.
pub const PATTERNS_MAX: usize = 32;

/// The documents that one write changes in its own commit; more are left to a durable job.
pub const MAX_FANOUT_DEFAULT: u32 = 1000;

/// The patterns of a collection and those that read it. Empty for most collections.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    /// The patterns that are declared on the collection, in the order of their declaration.
    pub declared: Vec<Arc<Pattern>>,
    /// The patterns of the database that read the collection: those of others, and its own if it
    /// refers to itself. Not stored; the catalog keeps the list.
    pub readers: Vec<Reader>,
}

/// A pattern, seen from the collection that it reads.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The collection that declares the pattern.
    pub owner: Uuid,
    /// The name of that collection.
    pub namespace: Namespace,
    /// The definition and the state of the pattern.
    pub pattern: Arc<Pattern>,
}

/// A declared pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The name, unique within its collection.
    pub name: String,
    /// What the pattern keeps.
    pub kind: PatternKind,
    /// What happens to a client's write of a derived path.
    pub on_client_write: OnClientWrite,
    /// Differs from the generation of every other declaration of this name, and rises with every
    /// new build. Jobs of an older generation do nothing.
    pub generation: u64,
    /// How far the pattern has come.
    pub state: PatternState,
    /// What happened to the pattern since the start of the process. Not stored.
    pub meters: Arc<PatternMeters>,
}

/// The kinds of patterns. One file each.
#[derive(Debug, Clone, PartialEq)]
pub enum PatternKind {
    /// Copies fields of a referred document into the documents that refer to it.
    Reference(Reference),
    /// Aggregates the documents that refer to a document into it.
    Rollup(Rollup),
    /// Counts increments of one field.
    Counter(Counter),
}

/// What happens to a client's write of a derived path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnClientWrite {
    /// The path keeps its derived value, and the write is counted.
    #[default]
    Ignore,
    /// The write fails with 121 DocumentValidationFailure.
    Reject,
}

/// How far a pattern has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternState {
    /// Writes keep the pattern, and a job applies it to the documents that were there before.
    /// Nothing is refused yet, so that documents may come before those that they refer to.
    Building,
    /// Writes are refused as if it was ready, and a job looks for documents that would have been.
    Checking,
    /// All documents have what the pattern says.
    Ready,
    /// The build has ended with an error. Writes keep the pattern as while it is built.
    Stopped(String),
}

/// Counters of a pattern since the start of the process.
#[derive(Debug, Default)]
pub struct PatternMeters {
    /// Writes of clients whose values at derived paths were ignored.
    pub ignored: AtomicI64,
    /// Writes of clients that were rejected for them.
    pub rejected: AtomicI64,
    /// Documents that the pattern has changed.
    pub derived: AtomicI64,
}

/// A change of the patterns of a collection.
#[derive(Debug, Clone)]
pub enum PatternChange {
    /// Adds a pattern, or replaces the one of the same name.
    Declare(Pattern),
    /// Removes the pattern with this name. What it has written stays.
    Remove(String),
}

impl PatternMeters {
    /// Counts `value` on one of the counters.
    pub fn add(counter: &AtomicI64, value: i64) {
        counter.fetch_add(value, Ordering::Relaxed);
    }
}

impl PartialEq for Reader {
    fn eq(&self, other: &Self) -> bool {
        self.owner == other.owner
            && self.namespace == other.namespace
            && Arc::ptr_eq(&self.pattern, &other.pattern)
    }
}

impl Patterns {
    /// Returns the declared pattern with this name.
    pub fn named(&self, name: &str) -> Option<&Arc<Pattern>> {
        self.declared.iter().find(|pattern| pattern.name == name)
    }

    /// Returns true if there is neither a declared pattern nor one that reads the collection.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty() && self.readers.is_empty()
    }
}

impl Pattern {
    /// Parses a declaration, of `create` or `collMod` (`command`).
    ///
    /// # Errors
    /// 14 TypeMismatch, 40414 for a missing and 40415 for an unknown field, 2 BadValue, 72
    /// InvalidOptions for fields that contradict each other.
    pub fn parse(command: &str, doc: Doc<'_>) -> Result<Self> {
        let mut fields = Fields::new(format!("{command}.patterns"), doc);
        let name = fields.required("name")?.text()?.to_owned();
        check_name(&name)?;
        let kind = fields.required("type")?;
        let (text, unknown) = (kind.text()?, kind.bad_value("reference, rollup or counter"));
        let on_client_write = match fields.optional("onClientWrite") {
            None => OnClientWrite::default(),
            Some(field) => match field.text()? {
                "ignore" => OnClientWrite::Ignore,
                "reject" => OnClientWrite::Reject,
                _ => return Err(field.bad_value("ignore or reject")),
            },
        };
        let kind = match text {
            "reference" => PatternKind::Reference(Reference::parse(&mut fields)?),
            "rollup" => PatternKind::Rollup(Rollup::parse(&mut fields)?),
            "counter" => PatternKind::Counter(Counter::parse(&mut fields)?),
            _ => return Err(unknown),
        };
        fields.finish()?;
        let pattern = Pattern {
            name,
            kind,
            on_client_write,
            generation: 0,
            state: PatternState::Building,
            meters: Arc::default(),
        };
        pattern.check_paths()?;
        Ok(pattern)
    }

    /// Appends the definition, which [`parse`](Self::parse) reads, with its defaults.
    pub fn write_definition(&self, writer: &mut DocWriter<'_>) {
        writer.append("name", self.name.as_str());
        match &self.kind {
            PatternKind::Reference(reference) => reference.write(writer),
            PatternKind::Rollup(rollup) => rollup.write(writer),
            PatternKind::Counter(counter) => counter.write(writer),
        }
        let on_client_write = match self.on_client_write {
            OnClientWrite::Ignore => "ignore",
            OnClientWrite::Reject => "reject",
        };
        writer.append("onClientWrite", on_client_write);
    }

    /// Returns the definition, which [`parse`](Self::parse) reads.
    pub fn definition(&self) -> DocBuf {
        DocBuf::build(|writer| self.write_definition(writer))
    }

    /// Returns the pattern as `listCollections` shows it: its definition and its state.
    pub fn shown(&self) -> DocBuf {
        DocBuf::build(|writer| {
            self.write_definition(writer);
            self.write_state(writer);
        })
    }

    fn write_state(&self, writer: &mut DocWriter<'_>) {
        writer.append("state", self.state.name());
        writer.append("generation", self.generation as i64);
        if let PatternState::Stopped(reason) = &self.state {
            writer.append("reason", reason.as_str());
        }
    }

    /// Returns the pattern as the record of its collection stores it.
    pub(crate) fn stored(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("definition", &self.definition());
            self.write_state(writer);
        })
    }

    /// Decodes what [`stored`](Self::stored) made.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse), and 301 DataCorruptionDetected.
    pub(crate) fn restored(stored: Doc<'_>) -> Result<Self> {
        let damaged = || {
            let text = "a catalog record is damaged at 'patterns'";
            Error::new(ErrorCode::DataCorruptionDetected, text)
        };
        let definition = stored.get("definition").and_then(|value| value.as_document());
        let mut pattern = Pattern::parse("stored", definition.ok_or_else(damaged)?)?;
        let generation = stored.get("generation").and_then(|value| value.exact_i64());
        pattern.generation = generation.ok_or_else(damaged)? as u64;
        pattern.state = match stored.get("state").and_then(|value| value.as_str()) {
            Some("building") => PatternState::Building,
            Some("checking") => PatternState::Checking,
            Some("ready") => PatternState::Ready,
            Some("stopped") => {
                let reason = stored.get("reason").and_then(|value| value.as_str());
                PatternState::Stopped(reason.unwrap_or_default().to_owned())
            }
            _ => return Err(damaged()),
        };
        Ok(pattern)
    }

    /// Returns a copy with another state.
    #[must_use]
    pub fn with_state(&self, state: PatternState) -> Self {
        Pattern { state, ..self.clone() }
    }

    /// Returns true if all documents have what the pattern says.
    pub fn is_ready(&self) -> bool {
        self.state == PatternState::Ready
    }

    /// Returns true if the pattern refuses what contradicts it.
    pub fn is_strict(&self) -> bool {
        matches!(self.state, PatternState::Checking | PatternState::Ready)
    }

    /// Returns the name of the collection that the pattern reads; `None` for a counter.
    pub fn from(&self) -> Option<&str> {
        match &self.kind {
            PatternKind::Reference(reference) => Some(&reference.from),
            PatternKind::Rollup(rollup) => Some(&rollup.from),
            PatternKind::Counter(_) => None,
        }
    }

    /// Returns a copy that reads the collection `from`, after a rename.
    #[must_use]
    pub fn reading(&self, from: &str) -> Self {
        let mut next = self.clone();
        match &mut next.kind {
            PatternKind::Reference(reference) => from.clone_into(&mut reference.from),
            PatternKind::Rollup(rollup) => from.clone_into(&mut rollup.from),
            PatternKind::Counter(_) => {}
        }
        next
    }

    /// Returns the paths of its own collection that the pattern writes.
    pub fn derived_paths(&self) -> Vec<String> {
        match &self.kind {
            PatternKind::Reference(reference) => reference.derived_paths(),
            PatternKind::Rollup(rollup) => rollup.derived_paths(),
            PatternKind::Counter(counter) => vec![counter.path.clone()],
        }
    }

    /// Returns true for a counter at `path` whose increments commit together.
    pub fn merges(&self, path: &str) -> bool {
        matches!(&self.kind, PatternKind::Counter(counter) if counter.merge && counter.path == path)
    }

    /// Returns true if one of `others`, patterns of the same collection, writes what this one looks the
    /// other documents up with.
    pub fn is_fed_by(&self, others: &[Arc<Pattern>]) -> bool {
        let local = match &self.kind {
            PatternKind::Reference(reference) => &reference.local_field,
            PatternKind::Rollup(rollup) => &rollup.local_field,
            PatternKind::Counter(_) => return false,
        };
        let mut written = others.iter().flat_map(|other| other.derived_paths());
        written.any(|path| overlap(&path, local))
    }

    /// Returns the paths of the indexes that the pattern needs, each with true if it is in its own
    /// collection and not in the one that it reads.
    pub fn needed_indexes(&self) -> Vec<(&str, bool)> {
        let mut needed: Vec<_> = self.needed_index().into_iter().collect();
        if let PatternKind::Rollup(rollup) = &self.kind
            && rollup.local_field != "_id"
        {
            needed.push((rollup.local_field.as_str(), true));
        }
        needed
    }

    /// Returns the path of the index that the pattern needs, and true if it is in its own collection
    /// and not in the one that it reads; `None` for a counter.
    pub fn needed_index(&self) -> Option<(&str, bool)> {
        match &self.kind {
            PatternKind::Reference(reference) => Some((reference.local_field.as_str(), true)),
            PatternKind::Rollup(rollup) => Some((rollup.foreign_field.as_str(), false)),
            PatternKind::Counter(_) => None,
        }
    }

    /// Refuses derived paths that meet each other, or `_id`.
    fn check_paths(&self) -> Result<()> {
        let paths = self.derived_paths();
        for (at, path) in paths.iter().enumerate() {
            let name = &self.name;
            if overlap(path, "_id") {
                let text = format!("pattern '{name}' cannot write '{path}': it is in '_id'");
                return Err(invalid(text));
            }
            if let Some(other) = paths.iter().skip(at + 1).find(|other| overlap(path, other)) {
                let text = format!("pattern '{name}' writes '{path}' and '{other}', which overlap");
                return Err(invalid(text));
            }
        }
        Ok(())
    }
}

impl PatternState {
    /// Returns the name of the state.
    pub fn name(&self) -> &'static str {
        match self {
            PatternState::Building => "building",
            PatternState::Checking => "checking",
            PatternState::Ready => "ready",
            PatternState::Stopped(_) => "stopped",
        }
    }
}

impl PatternChange {
    /// Parses the argument `patterns` of `collMod`. `{name: .., remove: true}` removes a pattern.
    ///
    /// # Errors
    /// Those of [`Pattern::parse`], and 2 BadValue for a name that occurs twice.
    pub fn parse_all(command: &str, patterns: Array<'_>) -> Result<Vec<Self>> {
        let mut changes: Vec<Self> = Vec::new();
        for value in patterns.iter() {
            let Value::Document(doc) = value else {
                let found = value.type_name();
                return Err(Error::type_mismatch(format!(
                    "BSON field '{command}.patterns' is the wrong type '{found}', expected type 'object'"
                )));
            };
            let change = match doc.contains("remove") {
                true => Self::parse_removal(command, doc)?,
                false => PatternChange::Declare(Pattern::parse(command, doc)?),
            };
            if changes.iter().any(|other| other.name() == change.name()) {
                let text = format!("'{command}.patterns' names '{}' twice", change.name());
                return Err(Error::bad_value(text));
            }
            changes.push(change);
        }
        Ok(changes)
    }

    fn parse_removal(command: &str, doc: Doc<'_>) -> Result<Self> {
        let mut fields = Fields::new(format!("{command}.patterns"), doc);
        let name = fields.required("name")?.text()?.to_owned();
        let remove = fields.required("remove")?;
        if !remove.flag()? {
            return Err(remove.bad_value("true"));
        }
        fields.finish()?;
        Ok(PatternChange::Remove(name))
    }

    /// Returns the name of the pattern.
    pub fn name(&self) -> &str {
        match self {
            PatternChange::Declare(pattern) => &pattern.name,
            PatternChange::Remove(name) => name,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns true if one path is the other one, or leads to it.
pub fn overlap(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short)
        .is_some_and(|rest| short.is_empty() || rest.is_empty() || rest.starts_with('.'))
}

/// Refuses a path with an empty component, one that begins with `$`, and a position in an array.
fn check_path(what: &str, path: &str) -> Result<()> {
    let parsed = Path::new(path);
    let bad = |name: &str| name.is_empty() || name.starts_with('$') || name.contains('\0');
    if parsed.parts().iter().any(|part| bad(part.name()) || part.index().is_some()) {
        return Err(Error::bad_value(format!("'{what}' is not a path of fields: '{path}'")));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    const NAME_BYTES_MAX: usize = 120;
    let is_valid = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.contains(['\0', '.'])
        && !name.starts_with('$');
    if is_valid {
        return Ok(());
    }
    let text = format!(
        "the name of a pattern has 1 to {NAME_BYTES_MAX} bytes, no dot and no '$' at its beginning: '{name}'"
    );
    Err(Error::bad_value(text))
}

fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidOptions, text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use quire_document::doc;

    use super::*;

    fn parse(doc: DocBuf) -> Result<Pattern> {
        Pattern::parse("collMod", doc.as_doc())
    }

    fn code(doc: DocBuf) -> i32 {
        parse(doc).unwrap_err().code().number()
    }

    #[test]
    fn a_definition_comes_back_with_its_defaults() {
        let customer = doc! {
            "name": "customer", "type": "reference", "from": "customers",
            "localField": "customerId", "as": "customer",
            "fields": { "name": "sync", "price": { "mode": "snapshot", "as": "priceAtOrder" } }
        };
        let pattern = parse(customer).unwrap();
        assert_eq!(pattern.derived_paths(), ["customer.name", "customer.priceAtOrder"]);
        let shown = pattern.definition();
        assert_eq!(parse(shown.clone()).unwrap().definition().as_bytes(), shown.as_bytes());
        assert_eq!(shown.get("onDelete").unwrap().as_str(), Some("restrict"));
        assert_eq!(shown.get("maxFanout").unwrap().exact_i64(), Some(1000));
        let back = Pattern::restored(pattern.stored().as_doc()).unwrap();
        assert_eq!(back.stored().as_bytes(), pattern.stored().as_bytes());

        let rollup = doc! {
            "name": "reviews", "type": "rollup", "from": "reviews", "foreignField": "productId",
            "match": { "hidden": { "$ne": true } }, "set": { "count": { "$count": {} } }
        };
        let shown = parse(rollup).unwrap().definition();
        assert_eq!(shown.get("localField").unwrap().as_str(), Some("_id"));
        let counter = doc! { "name": "v", "type": "counter", "path": "views", "merge": true };
        let shown = parse(counter).unwrap().definition();
        assert_eq!(shown.get("merge").unwrap().as_bool(), Some(true));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let reference = |more: DocBuf| {
            DocBuf::build(|writer| {
                writer.append("name", "p").append("type", "reference").append("from", "c");
                writer.append("localField", "cId").append_all(more.as_doc());
            })
        };
        assert!(parse(reference(DocBuf::new())).is_ok());
        assert_eq!(code(reference(doc! { "unknown": 1 })), 40415);
        assert_eq!(code(reference(doc! { "fields": { "name": "sync" } })), 72);
        assert_eq!(code(reference(doc! { "as": "c", "fields": { "name": "copy" } })), 2);
        assert_eq!(code(reference(doc! { "as": "_id", "fields": { "name": "sync" } })), 72);
        assert_eq!(code(reference(doc! { "onDelete": "drop" })), 2);
        assert_eq!(code(reference(doc! { "maxFanout": -1 })), 2);
        assert_eq!(code(reference(doc! { "onClientWrite": 1 })), 14);
        assert_eq!(code(doc! { "name": "p", "type": "reference", "from": "c" }), 40414);
        assert_eq!(code(doc! { "name": "p", "type": "tree" }), 2);
        assert_eq!(code(doc! { "name": "a.b", "type": "counter", "path": "v" }), 2);
        assert_eq!(code(doc! { "name": "p", "type": "counter", "path": "a..b" }), 2);
    }

    #[test]
    fn paths_overlap_at_whole_names() {
        assert!(overlap("a.b", "a") && overlap("a", "a") && overlap("", "x"));
        assert!(!overlap("ab", "a") && !overlap("a.b", "a.c"));
    }
}
