//! What a command asks of its collection, as far as an index can serve it: conditions on paths, the
//! sort, the paths that it returns, and what it writes.

use quire_document::{Array, Doc, DocBuf, Value, ValueBuf};

/// The longest list of an `$in` that counts as an equality.
pub const EQUALITY_LIST_MAX: usize = 200;
/// The most alternatives of `$or` that are looked at.
const ALTERNATIVES_MAX: usize = 16;

/// How a condition bounds a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// It has one value.
    Value(ValueBuf),
    /// At most [`EQUALITY_LIST_MAX`] values.
    Values,
    /// A range, a prefix, or the existence of the path.
    Range,
}

/// A condition on one path.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The path, with dots; also through `$elemMatch`.
    pub path: String,
    /// How it bounds the path.
    pub bound: Bound,
}

/// What a command asks of its collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// The name of the collection.
    pub collection: String,
    /// The alternatives of `$or`, each with the conditions outside of it; one without `$or`.
    pub alternatives: Vec<Vec<Condition>>,
    /// The paths of the sort, and whether each is descending.
    pub sort: Vec<(String, bool)>,
    /// The paths that are enough to answer; `None` for whole documents.
    pub returned: Option<Vec<String>>,
    /// The collation of the command.
    pub collation: Option<DocBuf>,
    /// The fields of other collections by which their documents are looked up, each with its
    /// collection.
    pub joined: Vec<(String, String)>,
    /// What the command writes.
    pub writes: Writes,
}

/// What a command writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Writes {
    /// It writes nothing.
    #[default]
    Nothing,
    /// It inserts this number of documents.
    Inserts(u64),
    /// It changes these paths; `None` if it may change any.
    Updates(Option<Vec<String>>),
    /// It deletes documents.
    Deletes,
}

impl Asked {
    /// Returns what a command asks; `None` for a command that asks nothing of a collection.
    pub fn of_command(command: Doc<'_>) -> Option<Asked> {
        let first = command.first()?;
        let collection = first.value().as_str()?.to_owned();
        let mut asked = Asked { collection, ..Asked::default() };
        let part = |name: &str| command.get(name)?.as_document();
        asked.collation = part("collation").map(Doc::to_owned);
        match first.key() {
            "find" => {
                asked.filter(part("filter"));
                asked.sort(part("sort"));
                asked.returned = part("projection").and_then(included);
            }
            "count" => {
                asked.filter(part("query"));
                asked.returned = Some(Vec::new());
            }
            "distinct" => {
                asked.filter(part("query"));
                asked.returned = Some(vec![command.get("key")?.as_str()?.to_owned()]);
            }
            "aggregate" => asked.pipeline(command.get("pipeline")?.as_array()?),
            "insert" => {
                let documents = command.get("documents").and_then(|list| list.as_array());
                let count = documents.map_or(1, |documents| documents.count() as u64);
                asked.writes = Writes::Inserts(count.max(1));
            }
            "update" => {
                let update = command.get("updates")?.as_array()?.get(0)?.as_document()?;
                let filter = update.get("q").and_then(|filter| filter.as_document());
                asked.filter(filter);
                asked.sort(update.get("sort").and_then(|sort| sort.as_document()));
                asked.collation = update
                    .get("collation")
                    .and_then(|collation| collation.as_document())
                    .map(Doc::to_owned)
                    .or(asked.collation);
                asked.writes = Writes::Updates(changed(update.get("u")));
            }
            "delete" => {
                let delete = command.get("deletes")?.as_array()?.get(0)?.as_document()?;
                asked.filter(delete.get("q").and_then(|filter| filter.as_document()));
                asked.writes = Writes::Deletes;
            }
            "findAndModify" | "findandmodify" => {
                asked.filter(part("query"));
                asked.sort(part("sort"));
                let removes = matches!(command.get("remove"), Some(Value::Bool(true)));
                asked.writes = match removes {
                    true => Writes::Deletes,
                    false => Writes::Updates(changed(command.get("update"))),
                };
            }
            _ => return None,
        }
        if asked.alternatives.is_empty() {
            asked.alternatives.push(Vec::new());
        }
        Some(asked)
    }

    /// Returns true if an index could serve a part of the command.
    pub fn can_use_index(&self) -> bool {
        !self.sort.is_empty()
            || self.alternatives.iter().any(|alternative| !alternative.is_empty())
            || !self.joined.is_empty()
    }

    /// Returns the value to which a path is bound in every alternative, if it is the same one.
    pub fn constant(&self, path: &str) -> Option<&ValueBuf> {
        let mut of_each = self.alternatives.iter().map(|alternative| {
            alternative.iter().find_map(|condition| match &condition.bound {
                Bound::Value(value) if condition.path == path => Some(value),
                _ => None,
            })
        });
        let first = of_each.next()??;
        of_each.all(|value| value == Some(first)).then_some(first)
    }

    fn filter(&mut self, filter: Option<Doc<'_>>) {
        let Some(filter) = filter else { return };
        let before = match std::mem::take(&mut self.alternatives) {
            none if none.is_empty() => vec![Vec::new()],
            some => some,
        };
        self.alternatives = with_filter(before, filter, "");
    }

    fn sort(&mut self, sort: Option<Doc<'_>>) {
        let descending = |value: Value<'_>| match value {
            Value::Int32(direction) => Some(direction < 0),
            Value::Int64(direction) => Some(direction < 0),
            Value::Double(direction) => Some(direction < 0.0),
            _ => None,
        };
        let Some(sort) = sort else { return };
        // A sort by a computed value, such as a text score, is served by no ordinary index.
        let fields = sort.fields().map(|(path, value)| Some((path.to_owned(), descending(value)?)));
        self.sort = fields.collect::<Option<_>>().unwrap_or_default();
        self.sort.retain(|(path, _)| path != "$natural");
    }

    /// Adds the stages that see the documents as they are stored.
    fn pipeline(&mut self, stages: Array<'_>) {
        let mut is_stored = true;
        for stage in stages.iter().filter_map(|stage| stage.as_document()?.first()) {
            let operand = stage.value();
            self.join(stage.key(), operand);
            if !is_stored {
                continue;
            }
            match (stage.key(), operand) {
                ("$match", Value::Document(filter)) if self.sort.is_empty() => {
                    self.filter(Some(filter));
                }
                ("$sort", Value::Document(sort)) if self.sort.is_empty() => self.sort(Some(sort)),
                ("$match" | "$sort" | "$limit" | "$skip", _) => {}
                ("$project", Value::Document(projection)) => {
                    self.returned = included(projection);
                    is_stored = false;
                }
                ("$group" | "$count" | "$sortByCount", operand) => {
                    let mut paths = Vec::new();
                    references(operand, &mut paths);
                    let needs_all = paths.iter().any(String::is_empty);
                    self.returned = (!needs_all).then_some(paths);
                    is_stored = false;
                }
                _ => is_stored = false,
            }
        }
    }

    fn join(&mut self, stage: &str, operand: Value<'_>) {
        let Some(operand) = operand.as_document() else { return };
        let text = |name: &str| operand.get(name)?.as_str();
        let field = match stage {
            "$lookup" => text("foreignField"),
            "$graphLookup" => text("connectToField"),
            _ => None,
        };
        if let (Some(from), Some(field)) = (text("from"), field) {
            let joined = (from.to_owned(), field.to_owned());
            if !self.joined.contains(&joined) && field != "_id" {
                self.joined.push(joined);
            }
        }
    }
}

/// Returns the alternatives with the conditions of a filter in each of them.
fn with_filter(
    mut alternatives: Vec<Vec<Condition>>,
    filter: Doc<'_>,
    below: &str,
) -> Vec<Vec<Condition>> {
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$and", Value::Array(parts)) => {
                for part in parts.iter().filter_map(|part| part.as_document()) {
                    alternatives = with_filter(alternatives, part, below);
                }
            }
            ("$or", Value::Array(parts)) => {
                if alternatives.len() * parts.count() > ALTERNATIVES_MAX {
                    continue;
                }
                let of_part = |part: Doc<'_>| with_filter(alternatives.clone(), part, below);
                let parts = parts.iter().filter_map(|part| part.as_document());
                alternatives = parts.flat_map(of_part).collect();
            }
            (name, _) if name.starts_with('$') => {}
            (path, value) => {
                let path = match below {
                    "" => path.to_owned(),
                    below => format!("{below}.{path}"),
                };
                alternatives = with_test(alternatives, &path, value);
            }
        }
    }
    alternatives
}

fn with_test(
    mut alternatives: Vec<Vec<Condition>>,
    path: &str,
    value: Value<'_>,
) -> Vec<Vec<Condition>> {
    let operators = value.as_document().filter(|doc| {
        doc.first().is_some_and(|first| first.key().starts_with('$') && first.key() != "$ref")
    });
    let Some(operators) = operators else {
        match value {
            Value::Regex(regex) => {
                if is_prefix(regex.pattern, regex.options) {
                    add(&mut alternatives, path, Bound::Range);
                }
            }
            value => add(&mut alternatives, path, Bound::Value(ValueBuf::new(value))),
        }
        return alternatives;
    };
    for (operator, operand) in operators.fields() {
        match (operator, operand) {
            ("$eq", value) => add(&mut alternatives, path, Bound::Value(ValueBuf::new(value))),
            ("$in", Value::Array(values)) => {
                let bound = match values.count() {
                    0..=EQUALITY_LIST_MAX => Bound::Values,
                    _ => Bound::Range,
                };
                add(&mut alternatives, path, bound);
            }
            ("$all", Value::Array(values)) => {
                if let Some(first) = values.get(0) {
                    add(&mut alternatives, path, Bound::Value(ValueBuf::new(first)));
                }
            }
            ("$gt" | "$gte" | "$lt" | "$lte", _) => add(&mut alternatives, path, Bound::Range),
            ("$exists", Value::Bool(true)) => add(&mut alternatives, path, Bound::Range),
            ("$regex", pattern) => {
                let options = operators.get("$options").and_then(|options| options.as_str());
                let (pattern, own) = match pattern {
                    Value::Regex(regex) => (regex.pattern, regex.options),
                    other => (other.as_str().unwrap_or_default(), ""),
                };
                if is_prefix(pattern, options.unwrap_or(own)) {
                    add(&mut alternatives, path, Bound::Range);
                }
            }
            ("$elemMatch", Value::Document(inner)) => {
                let of_value = inner.first().is_some_and(|first| {
                    first.key().starts_with('$') && !matches!(first.key(), "$and" | "$or")
                });
                alternatives = match of_value {
                    true => with_test(alternatives, path, Value::Document(inner)),
                    false => with_filter(alternatives, inner, path),
                };
            }
            _ => {}
        }
    }
    alternatives
}

/// Adds a condition. Of two on a path the one that bounds it more counts.
fn add(alternatives: &mut [Vec<Condition>], path: &str, bound: Bound) {
    let width = |bound: &Bound| match bound {
        Bound::Value(_) => 0,
        Bound::Values => 1,
        Bound::Range => 2,
    };
    for conditions in alternatives {
        match conditions.iter_mut().find(|condition| condition.path == path) {
            Some(known) if width(&bound) < width(&known.bound) => known.bound = bound.clone(),
            Some(_) => {}
            None => conditions.push(Condition { path: path.to_owned(), bound: bound.clone() }),
        }
    }
}

/// Returns true if a pattern finds only strings with a fixed beginning.
fn is_prefix(pattern: &str, options: &str) -> bool {
    let rest = pattern.strip_prefix('^').or_else(|| pattern.strip_prefix("\\A"));
    let is_literal =
        |first: char| first.is_alphanumeric() || matches!(first, ' ' | '_' | '-' | ',' | '/');
    let begins = rest.and_then(|rest| rest.chars().next()).is_some_and(is_literal);
    begins && !options.contains(['i', 'm', 'x']) && !pattern.contains('|')
}

/// Returns the paths of a projection that includes; `None` if whole documents are needed.
fn included(projection: Doc<'_>) -> Option<Vec<String>> {
    let is_set = |value: Value<'_>| match value {
        Value::Bool(is) => Some(is),
        Value::Int32(number) => Some(number != 0),
        Value::Int64(number) => Some(number != 0),
        Value::Double(number) => Some(number != 0.0),
        _ => None,
    };
    let (mut paths, mut has_id) = (Vec::new(), true);
    for (path, value) in projection.fields() {
        match (path, is_set(value)?) {
            ("_id", included) => has_id = included,
            (path, true) => paths.push(path.to_owned()),
            _ => return None,
        }
    }
    if has_id {
        paths.push("_id".to_owned());
    }
    (paths.len() > usize::from(has_id)).then_some(paths)
}

/// Adds the paths to which an expression refers; an empty path for a whole document.
fn references(expression: Value<'_>, paths: &mut Vec<String>) {
    match expression {
        Value::String(text) => {
            let path = match text.strip_prefix("$$") {
                Some("ROOT" | "CURRENT") => Some(""),
                Some(_) => None,
                None => text.strip_prefix('$'),
            };
            if let Some(path) = path
                && !paths.iter().any(|known| known == path)
            {
                paths.push(path.to_owned());
            }
        }
        Value::Document(doc) => doc.fields().for_each(|(_, value)| references(value, paths)),
        Value::Array(items) => items.iter().for_each(|item| references(item, paths)),
        _ => {}
    }
}

/// Returns the paths that an update changes; `None` if it may change any.
fn changed(update: Option<Value<'_>>) -> Option<Vec<String>> {
    let operators = update?.as_document()?;
    let mut paths = Vec::new();
    for (operator, fields) in operators.fields() {
        if !operator.starts_with('$') {
            return None;
        }
        paths.extend(fields.as_document()?.fields().map(|(path, _)| path.to_owned()));
        if operator == "$rename" {
            let names = fields.as_document()?.fields();
            paths.extend(names.filter_map(|(_, name)| Some(name.as_str()?.to_owned())));
        }
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn conditions(filter: &DocBuf) -> Vec<Vec<(String, &'static str)>> {
        let asked = Asked::of_command(doc! { "find": "c", "filter": filter }.as_doc()).unwrap();
        let shown = |condition: Condition| {
            let bound = match condition.bound {
                Bound::Value(_) => "value",
                Bound::Values => "values",
                Bound::Range => "range",
            };
            (condition.path, bound)
        };
        let alternatives = asked.alternatives.into_iter();
        alternatives.map(|conditions| conditions.into_iter().map(shown).collect()).collect()
    }

    #[test]
    fn conditions_are_read_from_a_filter() {
        let filter = doc! {
            "a": 1, "b": { "$gte": 1, "$lt": 5 }, "c": { "$in": [1, 2] }, "d": { "$ne": 3 },
            "e": { "$elemMatch": { "f": 1, "g": { "$gt": 2 } } }, "h": { "$regex": "^ab" },
            "i": { "$regex": "ab" }, "$and": [{ "b": 4 }], "j": { "$elemMatch": { "$gt": 4 } },
        };
        let expected = [
            ("a", "value"),
            ("b", "value"),
            ("c", "values"),
            ("e.f", "value"),
            ("e.g", "range"),
            ("h", "range"),
            ("j", "range"),
        ];
        let expected = expected.map(|(path, bound)| (path.to_owned(), bound)).to_vec();
        assert_eq!(conditions(&filter), [expected]);
    }

    #[test]
    fn alternatives_have_the_conditions_outside_of_them() {
        let filter = doc! { "a": 1, "$or": [{ "b": 2 }, { "c": { "$gt": 3 } }] };
        let pair = |path: &str, bound| vec![("a".to_owned(), "value"), (path.to_owned(), bound)];
        assert_eq!(conditions(&filter), [pair("b", "value"), pair("c", "range")]);
    }

    #[test]
    fn pipelines_and_writes_are_read() {
        let pipeline = doc! {
            "aggregate": "c",
            "pipeline": [
                { "$match": { "s": 1 } }, { "$sort": { "t": -1 } },
                { "$lookup": { "from": "o", "localField": "x", "foreignField": "y", "as": "z" } },
                { "$group": { "_id": "$g", "n": { "$sum": "$m" } } },
            ],
        };
        let asked = Asked::of_command(pipeline.as_doc()).unwrap();
        assert_eq!(asked.sort, [("t".to_owned(), true)]);
        assert_eq!(asked.joined, [("o".to_owned(), "y".to_owned())]);
        assert_eq!(asked.returned, None, "the stage before needs whole documents");
        let update =
            doc! { "update": "c", "updates": [{ "q": { "a": 1 }, "u": { "$set": { "b": 1 } } }] };
        let asked = Asked::of_command(update.as_doc()).unwrap();
        assert_eq!(asked.writes, Writes::Updates(Some(vec!["b".to_owned()])));
        assert!(asked.constant("a").is_some() && asked.constant("b").is_none());
        assert_eq!(Asked::of_command(doc! { "ping": 1 }.as_doc()), None);
    }
}
