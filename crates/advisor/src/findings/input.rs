//! What the rules look at: the profile of the data, and the recorded statements by collection.

use super::{Confidence, Cost, Severity, Value};
use crate::database::DatabaseProfile;
use crate::profile::{CollectionProfile, PathProfile};
use crate::source::{Extent, SourceCollection};
use crate::workload::{Cause, Kind, Parts, ShapeUse, Workload};
use quire_document::{Doc, DocBuf};
use std::collections::BTreeMap;

/// The share of the whole workload that a finding of high severity saves.
const HIGH_SHARE: f64 = 0.2;
/// The share of the whole workload that a finding of medium severity saves.
const MEDIUM_SHARE: f64 = 0.02;

/// The statements of a shape, with their rate.
pub struct Statement<'i> {
    /// What was recorded.
    pub used: &'i ShapeUse,
    /// The paths that the shape filters, sorts, returns and writes.
    pub parts: Parts,
    /// Statements each second.
    pub per_second: f64,
    seconds: f64,
    /// The mean size of a document of the collection.
    mean_bytes: f64,
}

impl Statement<'_> {
    /// Returns a cost: documents examined and bytes read each second. A log of MongoDB does not say how
    /// many bytes were read: then it is the mean size of the documents examined.
    pub fn cost(&self) -> Cost {
        let measures = &self.used.measures;
        let docs_examined = measures.docs_examined.sum as f64 / self.seconds;
        let bytes_read = match measures.bytes_read.sum {
            0 => docs_examined * self.mean_bytes,
            bytes => bytes as f64 / self.seconds,
        };
        Cost { docs_examined, bytes_read, ..Cost::default() }
    }

    /// Returns the documents that a statement examines for each that it returns or changes.
    pub fn examined_for_each(&self) -> f64 {
        let measures = &self.used.measures;
        let useful = measures.returned.sum + measures.matched.sum + measures.deleted.sum;
        measures.docs_examined.sum as f64 / useful.max(measures.count).max(1) as f64
    }

    /// Returns the documents that all statements returned or changed.
    pub fn useful_per_second(&self) -> f64 {
        let measures = &self.used.measures;
        (measures.returned.sum + measures.matched.sum + measures.deleted.sum) as f64 / self.seconds
    }

    /// Returns true if it reads and does not write.
    pub fn reads(&self) -> bool {
        !self.used.kind.writes()
    }

    /// Returns true if it filters or sorts by the path.
    pub fn uses(&self, path: &str) -> bool {
        self.parts.filtered.iter().any(|one| one.path == path)
            || self.parts.sorted.iter().any(|(sorted, _)| sorted == path)
    }

    /// Returns true if the documents that it returns have the path: it projects the path, a parent or
    /// a child of it, or nothing.
    pub fn returns(&self, path: &str) -> bool {
        let below = |inner: &str, outer: &str| {
            inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
        };
        self.parts.projected.is_empty()
            || self.parts.projected.iter().any(|one| below(one, path) || below(path, one))
    }
}

/// What the rules look at.
pub struct Input<'i> {
    /// The name of the database.
    pub database: &'i str,
    /// What the data look like.
    pub profile: &'i DatabaseProfile,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    /// The length of the recorded workload in seconds; `None` without one.
    pub seconds: Option<f64>,
    statements: BTreeMap<String, Vec<Statement<'i>>>,
    total: Cost,
}

impl<'i> Input<'i> {
    /// Returns the input of the rules for one database.
    pub fn new(
        database: &'i str,
        profile: &'i DatabaseProfile,
        workload: Option<&'i Workload>,
        now_ms: i64,
    ) -> Input<'i> {
        let seconds = workload
            .filter(|workload| !workload.shapes.is_empty())
            .map(|workload| ((workload.ends_ms - workload.begins_ms) as f64 / 1000.0).max(1.0));
        let mut input = Input {
            database,
            profile,
            now_ms,
            seconds,
            statements: BTreeMap::new(),
            total: Cost::default(),
        };
        let Some(seconds) = seconds else { return input };
        for used in workload.iter().flat_map(|workload| &workload.shapes) {
            let Some((db, collection)) = used.namespace.split_once('.') else { continue };
            if db != database || used.cause != Cause::Client {
                continue;
            }
            let per_second = used.measures.count as f64 / seconds;
            let mean_bytes = input.mean_bytes(collection);
            let statement =
                Statement { used, parts: used.parts(), per_second, seconds, mean_bytes };
            let cost = statement.cost();
            input.total.docs_examined += cost.docs_examined;
            input.total.bytes_read += cost.bytes_read;
            input.statements.entry(collection.to_owned()).or_default().push(statement);
        }
        input
    }

    /// Returns the statements on a collection.
    pub fn statements(&self, collection: &str) -> &[Statement<'i>] {
        self.statements.get(collection).map_or(&[], Vec::as_slice)
    }

    /// Returns the collections with their profiles that have documents.
    pub fn collections(
        &self,
    ) -> impl Iterator<Item = (&'i SourceCollection, &'i CollectionProfile)> {
        let all = self.profile.collections.iter();
        all.filter(|(_, found)| found.documents() > 0).map(|(source, found)| (source, found))
    }

    /// Returns the names of the collections on which there are statements, whether their documents
    /// are known or not.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.statements.keys().map(String::as_str)
    }

    /// Returns a collection with its profile.
    pub fn collection(&self, name: &str) -> Option<(&'i SourceCollection, &'i CollectionProfile)> {
        self.profile.collection(name).map(|(source, found)| (source, found))
    }

    /// Returns the number of documents of a collection: as the source says, or as many as were read.
    pub fn documents(&self, collection: &str) -> f64 {
        let known = self.collection(collection);
        known.map_or(0.0, |(source, found)| {
            source.documents.unwrap_or(found.documents()).max(found.documents()) as f64
        })
    }

    /// Returns how many documents of the collection stand for one that was read.
    pub fn scale(&self, collection: &str) -> f64 {
        let read = self.collection(collection).map_or(1, |(_, found)| found.documents().max(1));
        self.documents(collection) / read as f64
    }

    /// Returns the mean size of a document in bytes.
    pub fn mean_bytes(&self, collection: &str) -> f64 {
        let found = self.collection(collection);
        found.map_or(0.0, |(_, found)| found.bytes() / found.documents().max(1) as f64)
    }

    /// Returns the reading statements each second.
    pub fn reads(&self, collection: &str) -> f64 {
        let reads = self.statements(collection).iter().filter(|one| one.reads());
        reads.map(|one| one.per_second).sum()
    }

    /// Returns the documents that are inserted, changed or deleted each second.
    pub fn writes(&self, collection: &str) -> f64 {
        let changed = |one: &Statement<'_>| {
            let measures = &one.used.measures;
            let changed = measures.inserted
                + measures.modified.sum
                + measures.deleted.sum
                + measures.upserted;
            changed as f64 / one.seconds
        };
        self.statements(collection).iter().map(changed).sum()
    }

    /// Returns the documents that are inserted and deleted each second: the entries of an index.
    pub fn inserts(&self, collection: &str) -> f64 {
        let inserts =
            self.statements(collection).iter().filter(|one| one.used.kind == Kind::Insert);
        inserts.map(|one| one.used.measures.inserted as f64 / one.seconds).sum()
    }

    /// Returns the severity of a finding that saves so much of the whole workload; `least` without a
    /// workload.
    pub fn severity(&self, cost: Option<(Cost, Cost)>, least: Severity) -> Severity {
        let (Some((now, after)), Some(_)) = (cost, self.seconds) else { return least };
        let saved = Cost { storage: 0.0, ..now }.weight() - Cost { storage: 0.0, ..after }.weight();
        let share = saved / self.total.weight().max(1e-9);
        let found = match share {
            share if share >= HIGH_SHARE => Severity::High,
            share if share >= MEDIUM_SHARE => Severity::Medium,
            _ => Severity::Low,
        };
        found.max(least)
    }

    /// Returns how sure a number is that was counted on the documents that were read.
    pub fn confidence(&self, collection: &str) -> Confidence {
        let read = self.collection(collection).map_or(0, |(_, found)| found.documents());
        let of = self.documents(collection) as u64;
        match self.profile.extent == Extent::All || read >= of {
            true => Confidence::Measured,
            false => Confidence::Sampled { read, of },
        }
    }

    /// Returns a share of `of` that was counted, with its interval if only a sample was read (Wilson,
    /// 1927).
    pub fn share(&self, collection: &str, count: f64, of: f64) -> Value {
        let share = count / of.max(1.0);
        if self.confidence(collection) == Confidence::Measured {
            return Value::Share(share);
        }
        let (z, n) = (1.96_f64, of.max(1.0));
        let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n)
            * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).max(0.0).sqrt();
        Value::Interval(share, (middle - half).max(0.0), (middle + half).min(1.0))
    }

    /// Returns true if an index begins with the path and holds for all documents.
    pub fn is_indexed(&self, collection: &str, path: &str) -> bool {
        let Some((source, _)) = self.collection(collection) else { return false };
        path == "_id"
            || source.indexes.iter().any(|index| {
                let first = key(index).and_then(|key| key.first());
                let is_whole = index.get("partialFilterExpression").is_none();
                is_whole && first.is_some_and(|first| first.key() == path)
            })
    }
}

/// Returns the key of an index.
pub fn key(index: &DocBuf) -> Option<Doc<'_>> {
    index.get("key").and_then(|key| key.as_document())
}

/// Returns a text of an index or of options.
pub fn text<'d>(document: &'d DocBuf, name: &str) -> &'d str {
    document.get(name).and_then(|value| value.as_str()).unwrap_or_default()
}

/// Returns true if a field of an index or of options is true.
pub fn is_true(document: &DocBuf, name: &str) -> bool {
    document.get(name).and_then(|value| value.as_bool()) == Some(true)
}

/// Returns the types of the values of a path with their counts, without null: all numbers are one
/// type.
pub fn types(values: &PathProfile) -> Vec<(&'static str, u64)> {
    let mut found: BTreeMap<&'static str, u64> = BTreeMap::new();
    for (name, count) in values.types() {
        let name = match name {
            "int" | "long" | "double" | "decimal" => "number",
            "null" | "undefined" => continue,
            other => other,
        };
        *found.entry(name).or_default() += count;
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found
}
