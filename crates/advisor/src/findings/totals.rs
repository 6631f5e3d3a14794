//! The totals of a `$group` as a collection that is kept: the pipeline that fills it, and the one that
//! answers from it. Rule P7 proposes only what has both, so that the totals answer what was asked.

use quire_document::{Array, ArrayBuf, Doc, DocBuf, Value, doc};

/// Variables that have another value in each statement.
const VARYING: &[&str] = &["$$NOW", "$$CLUSTER_TIME", "$$USER_ROLES"];
/// Operators that return another value each time, or whose code a shape does not keep.
const UNKNOWN: &[&str] = &["$rand", "$function", "$accumulator"];

/// A pipeline that begins with `$match` and `$group`, as a client sends it or as a shape keeps it. The
/// paths of its `$match` are a part of the key of the totals.
#[derive(Debug)]
pub struct Totals<'p> {
    tests: Vec<Tested<'p>>,
    unwinds: Vec<Doc<'p>>,
    group: Doc<'p>,
    /// The key of `$group`; `None` for one group of all documents.
    id: Option<Value<'p>>,
    form: Form,
}

/// A test of a path.
#[derive(Debug)]
struct Tested<'p> {
    path: &'p str,
    test: Value<'p>,
    /// True if one key passes the test.
    is_single: bool,
}

/// How the totals answer.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// They are the answer.
    Whole,
    /// Those that pass the test are the answer.
    Found,
    /// Those that pass the test are grouped once more.
    Merged,
}

impl<'p> Totals<'p> {
    /// Returns the totals of a pipeline. `None` if a filter before `$group` cannot be asked of them: it is
    /// no equality or `$in`, or sees other documents than those of the collection; or if a shape does not
    /// keep what a total is made of.
    pub fn of(stages: Array<'p>) -> Option<Totals<'p>> {
        let (mut tests, mut unwinds) = (Vec::new(), Vec::new());
        for stage in stages.iter() {
            let stage = stage.as_document()?;
            match (stage.first()?.key(), stage.first()?.value()) {
                ("$match", Value::Document(filter)) => add_tests(filter, &mut tests)?,
                ("$unwind", operand) if is_known(operand) => unwinds.push(stage),
                ("$group", Value::Document(group)) => {
                    let id = match group.get("_id")? {
                        Value::Null | Value::String("?null") => None,
                        id if is_known(id) => Some(id),
                        _ => return None,
                    };
                    let form = form(group, &tests)?;
                    return Some(Totals { tests, unwinds, group, id, form });
                }
                _ => return None,
            }
        }
        None
    }

    /// Returns the paths of the filter, each once.
    pub fn paths(&self) -> Vec<&'p str> {
        let mut paths: Vec<&str> = Vec::new();
        for tested in &self.tests {
            if !paths.contains(&tested.path) {
                paths.push(tested.path);
            }
        }
        paths
    }

    /// Returns the key of the `$group`; `None` for one group of all documents.
    pub fn group_key(&self) -> Option<Value<'p>> {
        self.id
    }

    /// Returns true if the shape does not keep which number is summed: then it is 1.
    pub fn assumes_one(&self) -> bool {
        self.accumulators().any(|(_, _, operand)| is_some_number(operand))
    }

    /// Returns the stages that make the totals of all documents.
    pub fn keep(&self) -> Vec<DocBuf> {
        let group = DocBuf::build(|out| {
            match self.form {
                Form::Whole => out.append("_id", self.id.unwrap_or(Value::Null)),
                Form::Found | Form::Merged => out.append("_id", &self.key()),
            };
            for (name, operator, operand) in self.accumulators() {
                let mut total = out.document(name);
                match is_some_number(operand) {
                    true => total.append(operator, 1),
                    false => total.append(operator, operand),
                };
            }
        });
        let unwinds = self.unwinds.iter().map(|stage| Doc::to_owned(*stage));
        unwinds.chain([doc! { "$group": &group }]).collect()
    }

    /// Returns the stages over the totals that have the results of the `$group`; none if these are the
    /// totals.
    pub fn ask(&self) -> Vec<DocBuf> {
        let (names, group) = self.names();
        let path = format!("$_id.{group}");
        let id = self.id.map_or(Value::Null, |_| Value::String(&path));
        let tests = self.tests.iter().filter_map(|tested| {
            let (_, name) = names.iter().find(|(path, _)| *path == tested.path)?;
            let mut test = DocBuf::new();
            test.append(&format!("_id.{name}"), tested.test);
            Some(test)
        });
        let tests: Vec<DocBuf> = tests.collect();
        // A path that is tested twice needs two documents.
        let filter = match self.paths().len() == tests.len() {
            true => {
                DocBuf::build(|out| tests.iter().for_each(|test| _ = out.append_all(test.as_doc())))
            }
            false => doc! { "$and": &tests.iter().collect::<ArrayBuf>() },
        };
        let found = doc! { "$match": &filter };
        match self.form {
            Form::Whole => Vec::new(),
            Form::Found => vec![found, doc! { "$set": { "_id": id } }],
            Form::Merged => {
                let group = DocBuf::build(|out| {
                    out.append("_id", id);
                    for (name, operator, _) in self.accumulators() {
                        let operator = merging(operator).unwrap_or(operator);
                        out.document(name).append(operator, format!("${name}").as_str());
                    }
                });
                vec![found, doc! { "$group": &group }]
            }
        }
    }

    /// Returns the paths in the totals that the filter tests.
    pub fn tested(&self) -> Vec<String> {
        self.names().0.iter().map(|(_, name)| format!("_id.{name}")).collect()
    }

    /// Returns the key of the totals: the paths of the filter, and the key of the `$group`.
    fn key(&self) -> DocBuf {
        let (names, group) = self.names();
        DocBuf::build(|out| {
            for (path, name) in &names {
                out.append(name, format!("${path}").as_str());
            }
            match (self.id, &self.form) {
                (None, _) => {}
                // A missing value and null are one group, so that they must be one total.
                (Some(id), Form::Found) => {
                    out.document(&group).array("$ifNull").push(id).push(Value::Null);
                }
                (Some(id), _) => _ = out.append(&group, id),
            }
        })
    }

    /// Returns the fields of the key for the paths of the filter, and that for the key of the `$group`.
    fn names(&self) -> (Vec<(&'p str, String)>, String) {
        let mut names: Vec<(&str, String)> = Vec::new();
        let free = |names: &[(&str, String)], wanted: String| {
            let mut name = wanted;
            while names.iter().any(|(_, known)| *known == name) {
                name.push('_');
            }
            name
        };
        for path in self.paths() {
            let name = free(&names, path.replace('.', "_"));
            names.push((path, name));
        }
        let group = free(&names, "group".to_owned());
        (names, group)
    }

    /// Returns the accumulators: field, operator, operand.
    fn accumulators(&self) -> impl Iterator<Item = (&'p str, &'p str, Value<'p>)> + use<'p> {
        accumulators(self.group)
    }
}

fn accumulators(group: Doc<'_>) -> impl Iterator<Item = (&str, &str, Value<'_>)> {
    let fields = group.fields().filter(|(name, _)| *name != "_id");
    fields.filter_map(|(name, accumulator)| {
        let first = accumulator.as_document()?.first()?;
        Some((name, first.key(), first.value()))
    })
}

/// Returns how totals answer; `None` if they cannot.
fn form(group: Doc<'_>, tests: &[Tested<'_>]) -> Option<Form> {
    let is_made = |(_, operator, operand): (&str, &str, Value<'_>)| {
        let is_sum = operator == "$sum" && is_some_number(operand);
        !UNKNOWN.contains(&operator) && (is_sum || is_known(operand))
    };
    if accumulators(group).count() + 1 != group.fields().count()
        || !accumulators(group).all(is_made)
    {
        return None;
    }
    if tests.is_empty() {
        return Some(Form::Whole);
    }
    if accumulators(group).all(|(_, operator, _)| merging(operator).is_some()) {
        return Some(Form::Merged);
    }
    let is_one_number = |operator: &str| {
        merging(operator).is_some() || ["$avg", "$stdDevPop", "$stdDevSamp"].contains(&operator)
    };
    let is_single = tests.iter().all(|tested| tested.is_single);
    let are_numbers = accumulators(group).all(|(_, operator, _)| is_one_number(operator));
    (is_single && are_numbers).then_some(Form::Found)
}

/// Returns the accumulator that makes a total of the totals of parts; `None` if there is none.
fn merging(operator: &str) -> Option<&'static str> {
    match operator {
        "$sum" | "$count" => Some("$sum"),
        "$min" => Some("$min"),
        "$max" => Some("$max"),
        _ => None,
    }
}

/// Adds the tests of a filter. Returns `None` if one of them is not decided by a key.
fn add_tests<'p>(filter: Doc<'p>, found: &mut Vec<Tested<'p>>) -> Option<()> {
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$and", Value::Array(branches)) => {
                branches.iter().try_for_each(|branch| add_tests(branch.as_document()?, found))?;
            }
            (path, _) if path.starts_with('$') => return None,
            (path, Value::Document(tests)) if has_operators(tests) => {
                let mut is_single = true;
                for (operator, operand) in tests.fields() {
                    match operator {
                        "$eq" if is_key(operand) => is_single &= !is_null(operand),
                        "$in" if are_keys(operand) => is_single = false,
                        _ => return None,
                    }
                }
                found.push(Tested { path, test: value, is_single });
            }
            (path, test) if is_key(test) => {
                found.push(Tested { path, test, is_single: !is_null(test) });
            }
            _ => return None,
        }
    }
    Some(())
}

fn has_operators(tests: Doc<'_>) -> bool {
    tests.first().is_some_and(|first| first.key().starts_with('$'))
}

/// Returns true for a value, or its type in a shape, that equals the key of one group, or of two if it is
/// null.
fn is_key(value: Value<'_>) -> bool {
    match value {
        Value::Array(_) | Value::Regex(_) | Value::Undefined => false,
        Value::String(text) => {
            !["?array", "?regex", "?undefined", "[]"].iter().any(|kind| text.starts_with(kind))
        }
        _ => true,
    }
}

/// Returns true for a list of keys, or for the type of one in a shape.
fn are_keys(operand: Value<'_>) -> bool {
    match operand {
        Value::Array(items) => items.iter().all(is_key),
        Value::String(text) => {
            let inner = text.strip_prefix("?array<").and_then(|inner| inner.strip_suffix('>'));
            inner.is_some_and(|inner| inner.starts_with('?') && is_key(Value::String(inner)))
        }
        _ => false,
    }
}

fn is_null(value: Value<'_>) -> bool {
    matches!(value, Value::Null | Value::String("?null"))
}

/// Returns true for the constant number of a shape.
fn is_some_number(operand: Value<'_>) -> bool {
    matches!(operand, Value::String("?number"))
}

/// Returns true for an expression that is the same in the shape and in each statement: it has no constant
/// whose type stands in its place, and no value of the moment.
fn is_known(expression: Value<'_>) -> bool {
    match expression {
        Value::String(text) => {
            !text.starts_with('?') && !VARYING.iter().any(|name| text.starts_with(name))
        }
        Value::Document(fields) => {
            fields.fields().all(|(name, value)| !UNKNOWN.contains(&name) && is_known(value))
        }
        Value::Array(items) => items.iter().all(is_known),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::array;

    fn both(pipeline: &ArrayBuf) -> Option<(Vec<DocBuf>, Vec<DocBuf>)> {
        let totals = Totals::of(pipeline.as_array())?;
        Some((totals.keep(), totals.ask()))
    }

    /// A walk through the tools found advice whose totals were over all days, so that the total of one day
    /// could not be read from them.
    #[test]
    fn the_paths_of_the_filter_are_in_the_key() {
        let (keep, ask) = both(&array![
            { "$match": { "day": { "$eq": "?string" }, "shop.id": { "$in": "?array<?number>" } } },
            { "$group": { "_id": "$status", "n": { "$sum": "$amount" }, "of": { "$sum": "?number" } } },
            { "$sort": { "n": -1 } },
        ])
        .unwrap();
        let id = doc! { "day": "$day", "shop_id": "$shop.id", "group": "$status" };
        let group = doc! { "_id": &id, "n": { "$sum": "$amount" }, "of": { "$sum": 1 } };
        assert_eq!(keep, [doc! { "$group": &group }]);
        let filter =
            doc! { "_id.day": { "$eq": "?string" }, "_id.shop_id": { "$in": "?array<?number>" } };
        let group = doc! { "_id": "$_id.group", "n": { "$sum": "$n" }, "of": { "$sum": "$of" } };
        assert_eq!(ask, [doc! { "$match": &filter }, doc! { "$group": &group }]);
    }

    #[test]
    fn means_are_read_and_not_made_of_means() {
        let (_, ask) = both(&array![
            { "$match": { "group": 7 } },
            { "$group": { "_id": Value::Null, "mean": { "$avg": "$x" } } },
        ])
        .unwrap();
        assert_eq!(
            ask,
            [doc! { "$match": { "_id.group": 7 } }, doc! { "$set": { "_id": Value::Null } }]
        );
        let several = array![
            { "$match": { "a": { "$in": [1, 2] } } },
            { "$group": { "_id": "$b", "mean": { "$avg": "$x" } } },
        ];
        assert!(both(&several).is_none());
    }

    #[test]
    fn what_totals_cannot_answer_has_none() {
        let group = doc! { "$group": { "_id": "$b", "n": { "$sum": "$x" } } };
        for pipeline in [
            array![{ "$match": { "day": { "$gte": "?date" } } }, &group],
            array![{ "$match": { "day": { "$eq": "?string", "$ne": "?string" } } }, &group],
            array![{ "$match": { "$or": [{ "a": { "$eq": 1 } }, { "b": { "$eq": 1 } }] } }, &group],
            array![{ "$match": { "$expr": { "$eq": ["$a", "?number"] } } }, &group],
            array![{ "$match": { "a": { "$in": "?array<>" } } }, &group],
            array![{ "$match": { "a": { "$eq": "?array<?number>" } } }, &group],
            array![{ "$match": { "a": { "$regex": "?string" } } }, &group],
            array![{ "$limit": "?number" }, &group],
            array![{ "$project": { "b": true } }, &group],
            array![{ "$group": { "_id": "?string", "n": { "$sum": "$x" } } }],
            array![{ "$group": { "_id": { "$add": ["$a", "?number"] }, "n": { "$sum": "$x" } } }],
            array![{ "$group": { "_id": "$a", "n": { "$sum": { "$multiply": ["$x", "?number"] } } } }],
            array![{ "$group": { "_id": "$a", "n": { "$sum": { "$subtract": ["$$NOW", "$at"] } } } }],
            array![{ "$match": { "a": 1 } }, { "$group": { "_id": "$b", "all": { "$push": "$x" } } }],
            array![{ "$match": { "a": 1 } }, { "$sort": { "x": 1 } }],
        ] {
            assert!(both(&pipeline).is_none(), "{pipeline:?}");
        }
    }
}
