//! The documents of a trace file: a head, then one for each statement, as BSON one after the other.

use super::{Entry, Head, PathHashes, Values};
use crate::workload::Kind;
use crate::workload::coding::CodingError;
use quire_document::{Doc, DocBuf, Value};

/// The version of the coding: the value of `quireTrace`.
pub const VERSION: i32 = 1;

impl Head {
    /// Returns the first document of a trace file.
    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|out| {
            out.append("quireTrace", VERSION).append("begins", Value::Date(self.begins_ms));
            out.append("values", self.values.name());
        })
    }

    /// Reads the first document of a trace file.
    ///
    /// # Errors
    /// It has another version or is damaged.
    pub fn from_document(doc: Doc<'_>) -> Result<Head, CodingError> {
        match doc.get("quireTrace").map(|version| version.exact_i64()) {
            Some(Some(version)) if version == i64::from(VERSION) => {}
            found => return Err(CodingError::Version(found.flatten())),
        }
        let Some(Value::Date(begins_ms)) = doc.get("begins") else {
            return Err(CodingError::Field("begins"));
        };
        let values = doc.get("values").and_then(|name| Values::parse(name.as_str()?));
        Ok(Head { begins_ms, values: values.ok_or(CodingError::Field("values"))? })
    }
}

impl Entry {
    /// Returns the document of the statement. What is empty is left out.
    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|out| {
            let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            out.append("at", long(self.at_micros)).append("micros", long(self.micros));
            out.append("session", self.session as i64).append("name", self.name.as_str());
            out.append("ns", self.namespace.as_str());
            if let Some(kind) = self.kind {
                out.append("kind", kind.name()).append("shape", &self.shape);
            }
            if self.failed {
                out.append("failed", true);
            }
            if self.returned_docs > 0 {
                out.append("n", long(self.returned_docs));
            }
            if self.cursor != 0 {
                out.append("cursor", self.cursor);
            }
            for (name, list) in [("asked", &self.asked), ("returned", &self.returned)] {
                if list.is_empty() {
                    continue;
                }
                let mut paths = out.array(name);
                for PathHashes { path, hashes } in list {
                    let mut one = paths.document();
                    one.append("path", path.as_str());
                    let mut values = one.array("hashes");
                    hashes.iter().for_each(|hash| {
                        values.push(*hash);
                    });
                }
            }
            if self.statement != 0 {
                out.append("statement", self.statement as i64);
            }
            if let Some(command) = &self.command {
                out.append("command", command);
            }
        })
    }

    /// Reads the document of a statement.
    ///
    /// # Errors
    /// A field is missing or has another type.
    pub fn from_document(doc: Doc<'_>) -> Result<Entry, CodingError> {
        let number = |name: &'static str| {
            let found = doc.get(name).and_then(|value| value.exact_i64());
            found.ok_or(CodingError::Field(name))
        };
        let text = |name: &'static str| {
            let found = doc.get(name).and_then(|value| value.as_str());
            found.map(str::to_owned).ok_or(CodingError::Field(name))
        };
        let object = |name: &str| doc.get(name)?.as_document().map(Doc::to_owned);
        Ok(Entry {
            at_micros: number("at")?.unsigned_abs(),
            micros: number("micros")?.unsigned_abs(),
            session: number("session")? as u64,
            name: text("name")?,
            namespace: text("ns")?,
            kind: doc.get("kind").and_then(|kind| Kind::parse(kind.as_str()?)),
            shape: object("shape").unwrap_or_default(),
            failed: doc.get("failed").and_then(|flag| flag.as_bool()) == Some(true),
            returned_docs: number("n").unwrap_or(0).unsigned_abs(),
            cursor: number("cursor").unwrap_or(0),
            asked: paths(doc, "asked"),
            returned: paths(doc, "returned"),
            statement: number("statement").unwrap_or(0) as u64,
            command: object("command"),
        })
    }
}

fn paths(doc: Doc<'_>, name: &str) -> Vec<PathHashes> {
    let list = doc.get(name).and_then(|list| list.as_array());
    let one = |value: Value<'_>| {
        let one = value.as_document()?;
        let hashes = one.get("hashes")?.as_array()?;
        Some(PathHashes {
            path: one.get("path")?.as_str()?.to_owned(),
            hashes: hashes.iter().filter_map(|hash| hash.exact_i64()).collect(),
        })
    };
    list.into_iter().flat_map(|list| list.iter()).filter_map(one).collect()
}
