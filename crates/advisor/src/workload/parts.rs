//! The paths that a shape filters, sorts, returns and writes, and the collections that it joins.

use super::Kind;
use quire_document::{Array, Doc, Value};

/// The parts of a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The tests of paths, in the written order. Those of an aggregate are the tests of its `$match`
    /// stages that see the documents as they are stored.
    pub filtered: Vec<Filtered>,
    /// The paths of the sort, and whether each is descending. That of an aggregate is its first
    /// `$sort` that sees the documents as they are stored.
    pub sorted: Vec<(String, bool)>,
    /// The paths that are returned, or that an aggregate reads before a stage makes new documents;
    /// empty if whole documents are.
    pub projected: Vec<String>,
    /// The paths that are written, each with its operator. A replacement writes the path ``.
    pub written: Vec<Written>,
    /// The other collections that an aggregate reads.
    pub joined: Vec<Joined>,
}

/// A test of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The path, with dots; also through `$elemMatch`.
    pub path: String,
    /// How it tests the values there.
    pub test: Test,
    /// True if the test is a branch of `$or` or `$nor`, or is negated: an index cannot serve it
    /// alone.
    pub is_optional: bool,
}

/// A sort of test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `$eq`, `$all`, `$size`.
    Equality,
    /// The operator `$in`.
    Membership,
    /// `$gt`, `$gte`, `$lt`, `$lte`.
    Range,
    /// The operator `$regex`.
    Pattern,
    /// The operator `$exists`.
    Existence,
    /// The operator `$type`.
    Type,
    /// Any other operator.
    Other,
}

/// A path that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The path, with dots.
    pub path: String,
    /// The update operator, or the stage of a pipeline; `replace` for a replacement.
    pub operator: String,
}

/// Another collection that an aggregate reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The stage, such as `$lookup`.
    pub stage: String,
    /// The other collection, of the same database unless it says so.
    pub from: String,
    /// `localField`, if given.
    pub local: Option<String>,
    /// `foreignField`, if given.
    pub foreign: Option<String>,
}

/// Returns the parts of a shape.
pub(crate) fn of(kind: Kind, shape: Doc<'_>) -> Parts {
    let mut parts = Parts::default();
    let part = |name: &str| shape.get(name).and_then(|part| part.as_document());
    for filter in ["filter", "query"].into_iter().filter_map(part) {
        parts.add_filter(filter, "", false);
    }
    if kind == Kind::Distinct
        && let Some(key) = shape.get("key").and_then(|key| key.as_str())
    {
        parts.projected.push(key.to_owned());
    }
    if let Some(sort) = part("sort") {
        parts.add_sort(sort);
    }
    for projection in ["projection", "fields"].into_iter().filter_map(part) {
        parts.add_projection(projection);
    }
    match shape.get("update") {
        Some(Value::Document(operators)) => parts.add_operators(operators),
        Some(Value::Array(stages)) => parts.add_update_pipeline(stages),
        Some(_) => parts.add_written("", "replace"),
        None => {}
    }
    if let Some(stages) = shape.get("pipeline").and_then(|stages| stages.as_array()) {
        parts.add_pipeline(stages);
    }
    parts
}

impl Parts {
    fn add_filter(&mut self, filter: Doc<'_>, below: &str, is_optional: bool) {
        for (name, value) in filter.fields() {
            match (name, value) {
                ("$and", Value::Array(branches)) => {
                    documents(branches)
                        .for_each(|inner| self.add_filter(inner, below, is_optional));
                }
                ("$or" | "$nor", Value::Array(branches)) => {
                    documents(branches).for_each(|inner| self.add_filter(inner, below, true));
                }
                (path, Value::Document(tests)) if !path.starts_with('$') => {
                    let path = joined(below, path);
                    tests.fields().for_each(|(operator, value)| {
                        self.add_test(&path, operator, value, is_optional);
                    });
                }
                _ => {}
            }
        }
    }

    fn add_test(&mut self, path: &str, operator: &str, value: Value<'_>, is_optional: bool) {
        let test = match (operator, value) {
            ("$elemMatch", Value::Document(inner)) => {
                let of_value = inner.fields().all(|(name, value)| {
                    name.starts_with('$') && !matches!(value, Value::Array(_))
                });
                match of_value {
                    true => inner.fields().for_each(|(operator, value)| {
                        self.add_test(path, operator, value, is_optional);
                    }),
                    false => self.add_filter(inner, path, is_optional),
                }
                return;
            }
            ("$not", Value::Document(inner)) => {
                inner.fields().for_each(|(operator, value)| {
                    self.add_test(path, operator, value, true);
                });
                return;
            }
            ("$options", _) => return,
            ("$eq" | "$all" | "$size", _) => Test::Equality,
            ("$in", _) => Test::Membership,
            ("$gt" | "$gte" | "$lt" | "$lte", _) => Test::Range,
            ("$regex", _) => Test::Pattern,
            ("$exists", _) => Test::Existence,
            ("$type", _) => Test::Type,
            _ => Test::Other,
        };
        self.filtered.push(Filtered { path: path.to_owned(), test, is_optional });
    }

    fn add_sort(&mut self, sort: Doc<'_>) {
        let directions = sort.fields().filter_map(|(path, value)| match value {
            Value::Int32(direction) => Some((path.to_owned(), direction < 0)),
            _ => None,
        });
        self.sorted.extend(directions);
    }

    /// Adds the included paths. A projection that leaves fields out returns whole documents.
    fn add_projection(&mut self, projection: Doc<'_>) {
        let excludes =
            |(name, value): (&str, Value<'_>)| name != "_id" && matches!(value, Value::Bool(false));
        if projection.fields().any(excludes) {
            return;
        }
        for (name, value) in projection.fields() {
            match value {
                Value::Bool(true) => self.add_projected(name),
                Value::Bool(false) => {}
                computed => self.add_references(computed),
            }
        }
    }

    fn add_projected(&mut self, path: &str) {
        if !self.projected.iter().any(|known| known == path) {
            self.projected.push(path.to_owned());
        }
    }

    /// Adds the paths to which an expression refers.
    fn add_references(&mut self, expression: Value<'_>) {
        match expression {
            Value::String(text) => match text.strip_prefix('$') {
                Some(path) if !path.starts_with('$') => self.add_projected(path),
                _ => {}
            },
            Value::Document(doc) => doc.fields().for_each(|(_, value)| self.add_references(value)),
            Value::Array(items) => items.iter().for_each(|item| self.add_references(item)),
            _ => {}
        }
    }

    fn add_written(&mut self, path: &str, operator: &str) {
        self.written.push(Written { path: path.to_owned(), operator: operator.to_owned() });
    }

    fn add_operators(&mut self, operators: Doc<'_>) {
        for (operator, fields) in operators.fields() {
            let paths = fields.as_document().into_iter().flat_map(Doc::fields);
            paths.for_each(|(path, _)| self.add_written(path, operator));
        }
    }

    fn add_update_pipeline(&mut self, stages: Array<'_>) {
        for stage in documents(stages).filter_map(Doc::first) {
            match (stage.key(), stage.value()) {
                (name @ ("$set" | "$addFields" | "$project"), Value::Document(fields)) => {
                    fields.fields().for_each(|(path, _)| self.add_written(path, name));
                }
                (name @ "$unset", Value::String(path)) => self.add_written(path, name),
                (name @ "$unset", Value::Array(paths)) => {
                    let paths = paths.iter().filter_map(|path| path.as_str());
                    paths.for_each(|path| self.add_written(path, name));
                }
                (name, _) => self.add_written("", name),
            }
        }
    }

    fn add_pipeline(&mut self, stages: Array<'_>) {
        let (mut is_stored, mut is_sorted) = (true, false);
        for stage in documents(stages).filter_map(Doc::first) {
            let (name, operand) = (stage.key(), stage.value());
            self.add_join(name, operand);
            if !is_stored {
                continue;
            }
            match (name, operand) {
                ("$match", Value::Document(filter)) => self.add_filter(filter, "", false),
                ("$sort", Value::Document(sort)) if !is_sorted => {
                    is_sorted = true;
                    self.add_sort(sort);
                }
                ("$limit" | "$skip" | "$sample" | "$lookup" | "$unionWith" | "$sort", _) => {}
                ("$project", Value::Document(projection)) => {
                    self.add_projection(projection);
                    is_stored = false;
                }
                (_, operand) => {
                    self.add_references(operand);
                    is_stored = false;
                }
            }
        }
    }

    fn add_join(&mut self, stage: &str, operand: Value<'_>) {
        let from = match (stage, operand) {
            ("$lookup" | "$graphLookup", Value::Document(fields)) => fields.get("from"),
            ("$unionWith", Value::Document(fields)) => fields.get("coll"),
            ("$unionWith", name @ Value::String(_)) => Some(name),
            ("$facet", Value::Document(branches)) => {
                let branches = branches.fields().filter_map(|(_, inner)| inner.as_array());
                let stages = branches.flat_map(documents).filter_map(Doc::first);
                stages.for_each(|stage| self.add_join(stage.key(), stage.value()));
                None
            }
            _ => None,
        };
        let Some(from) = from.and_then(|from| from.as_str()) else { return };
        let field = |names: [&str; 2]| {
            let fields = operand.as_document()?;
            let found = names.into_iter().find_map(|name| fields.get(name)?.as_str());
            found.map(str::to_owned)
        };
        self.joined.push(Joined {
            stage: stage.to_owned(),
            from: from.to_owned(),
            local: field(["localField", "connectFromField"]),
            foreign: field(["foreignField", "connectToField"]),
        });
    }
}

fn documents(array: Array<'_>) -> impl Iterator<Item = Doc<'_>> {
    array.iter().filter_map(|value| value.as_document())
}

fn joined(above: &str, path: &str) -> String {
    if above.is_empty() { path.to_owned() } else { format!("{above}.{path}") }
}
