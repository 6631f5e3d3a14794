//! Patterns in the words of a plain MongoDB: the definition of each as an aggregation that finds the
//! documents which differ, and one that writes them. `quire eject` prints them, and the tests compare
//! them with what the engine keeps.

use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc};

use super::reference::{CopiedField, CopyMode, OnDelete, OnMissing, Reference};
use super::rollup::Rollup;
use super::{Pattern, PatternKind};

/// The field that holds the document as it is stored while an aggregation computes it.
const OLD: &str = "__old";
/// The field that holds the documents that the pattern reads.
const FOUND: &str = "__found";

/// A pattern as aggregations over the collection that declares it. They run on MongoDB 5.0, or on the
/// version that has the accumulators of a roll-up.
#[derive(Debug, Clone, PartialEq)]
pub struct Plain {
    /// The stages that leave the documents that differ, as they should be.
    pub compute: Vec<DocBuf>,
    /// The stages that leave the `_id`s of the documents that the pattern would refuse.
    pub refused: Vec<DocBuf>,
    /// The stages behind `compute` that write.
    pub write: Vec<DocBuf>,
    /// The stages of an update that put null in place of the references in the variable `$$gone`,
    /// an array.
    pub release: Vec<DocBuf>,
}

impl Pattern {
    /// Returns the pattern, which the collection `owner` declares, in the words of a plain MongoDB.
    pub fn plain(&self, owner: &str) -> Plain {
        let tops = self.top_fields();
        let release = match &self.kind {
            PatternKind::Reference(reference) => vec![reference.release()],
            PatternKind::Rollup(_) | PatternKind::Counter(_) => Vec::new(),
        };
        let (compute, refused) = match &self.kind {
            PatternKind::Reference(reference) => (reference.compute(), reference.dangling()),
            PatternKind::Rollup(rollup) => (rollup.compute(), Vec::new()),
            PatternKind::Counter(counter) => {
                let bad = doc! { "$exists": true, "$not": { "$type": "number" } };
                let bad = one(&counter.path, &bad);
                (Vec::new(), vec![doc! { "$match": &bad }, doc! { "$project": { "_id": 1 } }])
            }
        };
        if compute.is_empty() {
            return Plain { compute, refused, write: Vec::new(), release };
        }
        let differs = list(tops.iter().map(|top| {
            let sides = [format!("${top}"), format!("${OLD}.{top}")];
            doc! { "$ne": [sides[0].as_str(), sides[1].as_str()] }
        }));
        let differs = doc! { "$match": { "$expr": { "$or": Value::Array(differs.as_array()) } } };
        let shown = DocBuf::build(|writer| {
            for top in &tops {
                writer.append(top, 1);
            }
        });
        let set = DocBuf::build(|writer| {
            for top in &tops {
                writer.append(top, &*format!("$$new.{top}"));
            }
        });
        let merge = doc! { "$merge": {
            "into": owner, "on": "_id", "whenMatched": [{ "$set": &set }],
            "whenNotMatched": "discard"
        } };
        let mut stages = vec![doc! { "$set": { OLD: "$$ROOT" } }];
        stages.extend(compute);
        stages.push(differs);
        stages.push(doc! { "$project": &shown });
        Plain { compute: stages, refused, write: vec![merge], release }
    }

    /// Returns the first names of the paths that the pattern writes.
    fn top_fields(&self) -> Vec<String> {
        let first = |path: String| path.split('.').next().unwrap_or_default().to_owned();
        let mut tops: Vec<String> = self.derived_paths().into_iter().map(first).collect();
        tops.sort();
        tops.dedup();
        tops
    }
}

fn one(name: &str, value: &DocBuf) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append(name, value);
    doc
}

fn list(docs: impl Iterator<Item = DocBuf>) -> ArrayBuf {
    ArrayBuf::build(|out| {
        docs.for_each(|doc| {
            out.push(&doc);
        });
    })
}

/// Returns an expression: the document `input` with another value of a field, or without it.
fn set_field(input: &ValueBuf, field: &str, value: &ValueBuf) -> ValueBuf {
    let (input, value) = (input.as_value(), value.as_value());
    doc! { "$setField": { "field": field, "input": input, "value": value } }.into()
}

/// Returns an expression: `then` if `value` is of a type, else `other`.
fn by_type(value: &str, name: &str, then: &ValueBuf, other: &ValueBuf) -> ValueBuf {
    let is = doc! { "$eq": [{ "$type": value }, name] };
    doc! { "$cond": [&is, then.as_value(), other.as_value()] }.into()
}

fn text(text: &str) -> ValueBuf {
    ValueBuf::new(Value::String(text))
}

impl Reference {
    fn compute(&self) -> Vec<DocBuf> {
        if self.fields.is_empty() {
            return Vec::new();
        }
        let names = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        let whole = self.rewritten("$$ROOT", &names(&self.local_field), &names(&self.into), 0);
        vec![self.lookup(), doc! { "$replaceWith": whole.as_value() }]
    }

    fn lookup(&self) -> DocBuf {
        doc! { "$lookup": {
            "from": self.from.as_str(), "localField": self.local_field.as_str(),
            "foreignField": self.foreign_field.as_str(), "as": FOUND
        } }
    }

    /// Returns the stages that leave the documents that refer to nothing.
    fn dangling(&self) -> Vec<DocBuf> {
        if self.on_missing != OnMissing::Error || self.on_delete == OnDelete::Keep {
            return Vec::new();
        }
        let (local, foreign) =
            (format!("${}", self.local_field), format!("${FOUND}.{}", self.foreign_field));
        // A path through an array gives an array of values, or of arrays of values.
        let values = doc! { "$cond": [{ "$isArray": &*local }, &*local, [&*local]] };
        let this = doc! { "$cond": [{ "$isArray": "$$this" }, "$$this", ["$$this"]] };
        let flat = doc! { "$reduce": {
            "input": &values, "initialValue": [], "in": { "$concatArrays": ["$$value", &this] }
        } };
        let nothing = doc! { "$filter": {
            "input": { "$setDifference": [&flat, &*foreign] }, "as": "value",
            "cond": { "$gt": ["$$value", Value::Null] }
        } };
        vec![
            self.lookup(),
            doc! { "$match": { "$expr": { "$gt": [{ "$size": &nothing }, 0] } } },
            doc! { "$project": { "_id": 1 } },
        ]
    }

    /// Returns the stage that puts null in place of the references in `$$gone`.
    fn release(&self) -> DocBuf {
        let names: Vec<String> = self.local_field.split('.').map(str::to_owned).collect();
        let first = names.first().cloned().unwrap_or_default();
        let value = released(&format!("${first}"), names.get(1..).unwrap_or_default(), 0);
        doc! { "$replaceWith": set_field(&text("$$ROOT"), &first, &value).as_value() }
    }

    /// Returns an expression: the document `this` with its copies.
    fn rewritten(&self, this: &str, local: &[String], into: &[String], depth: usize) -> ValueBuf {
        if let ([first, local @ ..], [shared, into @ ..]) = (local, into)
            && first == shared
            && !local.is_empty()
            && !into.is_empty()
        {
            let (field, name) = (format!("{this}.{first}"), format!("e{depth}"));
            let element = format!("$${name}");
            let inner = self.rewritten(&element, local, into, depth + 1);
            let inner = by_type(&element, "object", &inner, &text(&element));
            let mapped = doc! { "$map": {
                "input": &*field, "as": &*name, "in": inner.as_value()
            } };
            let vars = one_value(&name, &text(&field));
            let single = doc! { "$let": { "vars": &vars, "in": inner.as_value() } };
            let value = by_type(&field, "array", &mapped.into(), &single.into());
            return set_field(&text(this), first, &value);
        }
        let reference = format!("{this}.{}", local.join("."));
        let value = self.copies(this, &reference, into);
        placed(this, into, &value)
    }

    /// Returns an expression: the copies of the reference `reference` of the document `this`.
    fn copies(&self, this: &str, reference: &str, into: &[String]) -> ValueBuf {
        let place = format!("{this}.{}", into.join("."));
        let own = by_type(&place, "object", &text(&place), &doc! { "$literal": {} }.into());
        let single = self.with_target(reference, &own);
        // What is there instead of a document belongs to the client while there is nothing to copy.
        let nothing = by_type(&place, "object", &text("$$REMOVE"), &text(&place));
        let single = doc! { "$let": {
            "vars": { "made": single.as_value() },
            "in": { "$cond": [
                { "$eq": ["$$made", { "$literal": {} }] }, nothing.as_value(), "$$made"
            ] }
        } };
        let kept = doc! { "$let": {
            "vars": { "was": { "$arrayElemAt": [
                { "$cond": [{ "$isArray": &*place }, &*place, []] }, "$$at"
            ] } },
            "in": self.snapshots().as_value()
        } };
        let each = doc! { "$let": {
            "vars": { "value": { "$arrayElemAt": [reference, "$$at"] } },
            "in": self.with_target("$$value", &kept.into()).as_value()
        } };
        let many = doc! { "$map": {
            "input": { "$range": [0, { "$size": reference }] }, "as": "at", "in": &each
        } };
        let is_untouched = doc! { "$and": [
            { "$eq": [reference, []] }, { "$eq": [{ "$type": &*place }, "missing"] }
        ] };
        let many = doc! { "$cond": [&is_untouched, "$$REMOVE", &many] };
        by_type(reference, "array", &many.into(), &single.into())
    }

    /// Returns an expression: a document with the copies that `$$was` has and that stay.
    fn snapshots(&self) -> ValueBuf {
        let nothing: ValueBuf = doc! { "$literal": {} }.into();
        self.fields.iter().fold(nothing, |made, field| {
            set_field(&made, &field.name, &text(&format!("$$was.{}", field.name)))
        })
    }

    /// Returns an expression: the document `own` with the copies of the value `reference`.
    fn with_target(&self, reference: &str, own: &ValueBuf) -> ValueBuf {
        let is_named = doc! { "$eq": [&*format!("$$found.{}", self.foreign_field), "$$wanted"] };
        let target = doc! { "$first": { "$filter": {
            "input": &*format!("${FOUND}"), "as": "found", "cond": &is_named
        } } };
        let made = self
            .fields
            .iter()
            .fold(text("$$own"), |made, field| set_field(&made, &field.name, &self.copy(field)));
        let wanted = doc! { "$let": {
            "vars": { "target": &target }, "in": made.as_value()
        } };
        doc! { "$let": {
            "vars": { "own": own.as_value(), "wanted": { "$ifNull": [reference, Value::Null] } },
            "in": &wanted
        } }
        .into()
    }

    /// Returns an expression: the copy of one field, with the variables of
    /// [`with_target`](Self::with_target).
    fn copy(&self, field: &CopiedField) -> ValueBuf {
        let (own, source) = (format!("$$own.{}", field.name), format!("$$target.{}", field.source));
        let value: ValueBuf = match field.mode {
            CopyMode::Snapshot => doc! { "$ifNull": [&*own, &*source] }.into(),
            CopyMode::Sync if self.on_delete == OnDelete::Keep => {
                by_type("$$target", "object", &text(&source), &text(&own))
            }
            CopyMode::Sync => text(&source),
        };
        doc! { "$cond": [{ "$eq": ["$$wanted", Value::Null] }, "$$REMOVE", value.as_value()] }
            .into()
    }
}

/// Returns an expression: the value `this` with null in place of the references at `path` in it.
fn released(this: &str, path: &[String], depth: usize) -> ValueBuf {
    let inner = |this: &str| match path {
        [] => {
            let is_gone = doc! { "$in": [this, "$$gone"] };
            doc! { "$cond": [&is_gone, Value::Null, this] }.into()
        }
        [first, rest @ ..] => {
            let value = released(&format!("{this}.{first}"), rest, depth + 1);
            by_type(this, "object", &set_field(&text(this), first, &value), &text(this))
        }
    };
    let name = format!("e{depth}");
    let element = inner(&format!("$${name}"));
    let mapped = doc! { "$map": { "input": this, "as": &*name, "in": element.as_value() } };
    by_type(this, "array", &mapped.into(), &inner(this))
}

fn one_value(name: &str, value: &ValueBuf) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append(name, value.as_value());
    doc
}

/// Returns an expression: the document `this` with `value` at a path of documents.
fn placed(this: &str, path: &[String], value: &ValueBuf) -> ValueBuf {
    match path {
        [] => text(this),
        [last] => set_field(&text(this), last, value),
        [first, rest @ ..] => {
            let inner = format!("{this}.{first}");
            // Where no document is yet, the value makes one.
            let made = rest.iter().rev().fold(value.clone(), |made, name| {
                set_field(&doc! { "$literal": {} }.into(), name, &made)
            });
            let inner = by_type(&inner, "object", &placed(&inner, rest, value), &made);
            set_field(&text(this), first, &inner)
        }
    }
}

impl Rollup {
    fn compute(&self) -> Vec<DocBuf> {
        let group = DocBuf::build(|writer| {
            writer.append("_id", Value::Null);
            for (at, (_, accumulator)) in self.set.iter().enumerate() {
                writer.append(&format!("r{at}"), accumulator);
            }
        });
        let lookup = doc! { "$lookup": {
            "from": self.from.as_str(), "localField": self.local_field.as_str(),
            "foreignField": self.foreign_field.as_str(), "as": FOUND,
            "pipeline": [{ "$match": &self.filter }, { "$sort": { "_id": 1 } }, { "$group": &group }]
        } };
        let local = format!("${}", self.local_field);
        let found = format!("${FOUND}");
        // A lookup takes null and missing fields as equal; here they refer to nothing.
        let known = doc! { "$set": { FOUND: { "$cond": [
            { "$gt": [&*local, Value::Null] }, &*found, []
        ] } } };
        let set = DocBuf::build(|writer| {
            for (at, (path, accumulator)) in self.set.iter().enumerate() {
                writer.append(path, result(at, path, accumulator).as_value());
            }
        });
        vec![lookup, known, doc! { "$set": &set }]
    }
}

/// Returns an expression: the result of the accumulator at this place, also of an empty group.
fn result(at: usize, path: &str, accumulator: &DocBuf) -> ValueBuf {
    let name = accumulator.as_doc().first().map_or("", |first| first.key());
    let empty: ValueBuf = match name {
        "$sum" | "$count" => ValueBuf::new(Value::Int32(0)),
        "$push" | "$addToSet" | "$topN" | "$bottomN" | "$firstN" | "$lastN" | "$maxN" | "$minN" => {
            ArrayBuf::build(|_| ()).into()
        }
        _ => text("$$REMOVE"),
    };
    let field = format!("${FOUND}.r{at}");
    let value = doc! { "$ifNull": [{ "$first": &*field }, empty.as_value()] };
    if name != "$addToSet" {
        return value.into();
    }
    // A set has no order.
    let stored = format!("${path}");
    let stored_set = doc! { "$cond": [{ "$isArray": &*stored }, &*stored, []] };
    let same = doc! { "$and": [
        { "$isArray": &*stored }, { "$setEquals": [&stored_set, "$$made"] }
    ] };
    doc! { "$let": {
        "vars": { "made": &value }, "in": { "$cond": [&same, &*stored, "$$made"] }
    } }
    .into()
}
