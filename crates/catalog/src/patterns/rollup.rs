//! `rollup`: aggregates the documents that refer to a document into it.

use std::sync::Arc;

use quire_document::{DocBuf, DocWriter, Value};
use quire_error::Result;

use super::fields::{Field, Fields, field_paths};
use super::{MAX_FANOUT_DEFAULT, check_path, invalid};

/// The definition of a roll-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Rollup {
    /// The collection of the documents that are aggregated.
    pub from: String,
    /// The field of the own document that they refer to.
    pub local_field: String,
    /// The path of their reference.
    pub foreign_field: String,
    /// The filter that they must match; empty for all.
    pub filter: DocBuf,
    /// The derived paths, each with its accumulator.
    pub set: Vec<(String, DocBuf)>,
    /// The documents that one write changes in its own commit; more are left to a durable job.
    pub max_fanout: u32,
}

impl Rollup {
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let from = fields.required("from")?.collection()?;
        let local_field = match fields.optional("localField") {
            None => "_id".to_owned(),
            Some(field) => field.path()?,
        };
        let foreign_field = fields.required("foreignField")?.path()?;
        let filter = match fields.optional("match") {
            None => DocBuf::new(),
            Some(field) => field.document()?.to_owned(),
        };
        let paths = fields.required("set")?;
        let mut set = Vec::new();
        for (path, accumulator) in paths.document()?.fields() {
            let place = format!("{}.{path}", paths.place());
            check_set_path(&place, path)?;
            let accumulator = Field::new(place, accumulator);
            let doc = accumulator.document()?;
            let is_one =
                doc.count() == 1 && doc.first().is_some_and(|one| one.key().starts_with('$'));
            if !is_one {
                return Err(accumulator.bad_value("one accumulator"));
            }
            set.push((path.to_owned(), doc.to_owned()));
        }
        if set.is_empty() {
            return Err(invalid("'set' of a roll-up must have a path"));
        }
        let max_fanout =
            fields.optional("maxFanout").map_or(Ok(MAX_FANOUT_DEFAULT), |field| field.count())?;
        let rollup = Rollup { from, local_field, foreign_field, filter, set, max_fanout };
        rollup.compile()?;
        Ok(rollup)
    }

    /// Compiles the accumulators.
    ///
    /// # Errors
    /// Those of [`quire_mql::rollup::Rollup::parse`].
    pub fn compile(&self) -> Result<Arc<quire_mql::rollup::Rollup>> {
        let set = DocBuf::build(|writer| {
            for (path, accumulator) in &self.set {
                writer.append(path, accumulator);
            }
        });
        let compiled = quire_mql::rollup::Rollup::parse(Some(self.filter.as_doc()), set.as_doc());
        compiled.map(Arc::new)
    }

    pub(super) fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append("type", "rollup").append("from", self.from.as_str());
        writer.append("localField", self.local_field.as_str());
        writer.append("foreignField", self.foreign_field.as_str());
        if !self.filter.as_doc().is_empty() {
            writer.append("match", &self.filter);
        }
        {
            let mut set = writer.document("set");
            for (path, accumulator) in &self.set {
                set.append(path, accumulator);
            }
        }
        match i32::try_from(self.max_fanout) {
            Ok(count) => writer.append("maxFanout", count),
            Err(_) => writer.append("maxFanout", i64::from(self.max_fanout)),
        };
    }

    pub(super) fn derived_paths(&self) -> Vec<String> {
        self.set.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Returns the paths of the aggregated documents that the result depends on.
    pub(super) fn read_paths(&self) -> Vec<String> {
        let mut paths = vec![self.foreign_field.clone()];
        filter_paths(&self.filter, &mut paths);
        for (_, accumulator) in &self.set {
            field_paths(Value::Document(accumulator.as_doc()), &mut paths);
        }
        paths.extend(self.set.iter().flat_map(|(_, accumulator)| sort_paths(accumulator)));
        paths
    }
}

/// Appends the paths that a filter tests.
fn filter_paths(filter: &DocBuf, out: &mut Vec<String>) {
    for (name, value) in filter.as_doc().fields() {
        match (name, value) {
            ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                for branch in branches.iter().filter_map(|branch| branch.as_document()) {
                    filter_paths(&branch.to_owned(), out);
                }
            }
            ("$comment", _) => {}
            (operator, _) if operator.starts_with('$') => out.push(String::new()),
            (path, _) => out.push(path.to_owned()),
        }
    }
}

/// Returns the paths of `sortBy` of an accumulator such as `$topN`.
fn sort_paths(accumulator: &DocBuf) -> Vec<String> {
    let operand = accumulator.as_doc().first().and_then(|one| one.value().as_document());
    let sort = operand.and_then(|operand| operand.get("sortBy")?.as_document());
    sort.into_iter().flat_map(|sort| sort.fields()).map(|(path, _)| path.to_owned()).collect()
}

/// Refuses a path as [`check_path`] does, but allows names that are numbers after the first, as in
/// `distribution.5`.
fn check_set_path(place: &str, path: &str) -> Result<()> {
    let named: Vec<&str> = path.split('.').collect();
    let is_number =
        |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let rest: Vec<&str> = named.iter().skip(1).filter(|name| !is_number(name)).copied().collect();
    let first = named.first().copied().unwrap_or_default();
    check_path(place, first)?;
    rest.iter().try_for_each(|name| check_path(place, name))
}
