//! A hash of a statement's structure, by which a connection finds the cell that counts it.
//!
//! It must be cheap, because every statement computes one: it reads the bytes once and allocates
//! nothing. It is finer than the shape: statements with equal fingerprints have equal shapes, but
//! one shape can have several fingerprints. It is never stored.

use quire_document::{Array, Doc, Value};
use quire_mql::collation::AskedCollation;
use quire_planner::ReadRequest;

/// The fingerprint of a statement, and the numbers in it that its shape leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// The hash of namespace and structure.
    pub hash: u64,
    /// The documents to skip; 0 for none.
    pub skip: u64,
    /// The greatest number of documents; 0 for no limit.
    pub limit: u64,
    /// The elements of the longest array of values in its filter; 0 without one.
    pub list: u64,
    /// True for an update that replaces the document.
    pub replaces: bool,
}

impl Fingerprint {
    /// Returns the fingerprint of a request that reads; `None` for a write.
    pub fn of_read(request: &ReadRequest<'_>) -> Option<Fingerprint> {
        let mut mixer = Mixer::new();
        let (skip, limit) = match request {
            ReadRequest::Find(find) => {
                mixer.begin(1, &find.namespace, &find.collation);
                mixer.filter(find.filter.as_doc());
                mixer.whole(find.sort.as_doc());
                mixer.whole(find.projection.as_doc());
                let others = [&find.min, &find.max, &find.let_vars];
                if others.iter().any(|other| !other.as_doc().is_empty()) {
                    others.iter().for_each(|other| mixer.whole(other.as_doc()));
                }
                mixer.word(u64::from(find.return_key) + 2 * u64::from(find.show_record_id));
                (find.skip, find.limit)
            }
            ReadRequest::Aggregate(aggregate) => {
                mixer.begin(2, &aggregate.namespace, &aggregate.collation);
                mixer.whole(aggregate.let_vars.as_doc());
                aggregate.pipeline.iter().for_each(|stage| mixer.stage(stage.as_doc()));
                (0, 0)
            }
            ReadRequest::Count(count) => {
                mixer.begin(3, &count.namespace, &count.collation);
                mixer.filter(count.filter.as_doc());
                (count.skip, count.limit)
            }
            ReadRequest::Distinct(distinct) => {
                mixer.begin(4, &distinct.namespace, &distinct.collation);
                mixer.text(&distinct.key);
                mixer.filter(distinct.filter.as_doc());
                (0, 0)
            }
            ReadRequest::Write(..) => return None,
        };
        mixer.word(u64::from(skip > 0) + 2 * u64::from(limit > 0));
        Some(Fingerprint { hash: mixer.hash, skip, limit, list: mixer.list, replaces: false })
    }

    /// Returns the fingerprint of a statement that writes: of a `findAndModify`, or of an element of
    /// `updates`, `deletes` or `ops`. `tag` tells the commands apart.
    pub fn of_write(tag: u64, namespace: &str, statement: Doc<'_>) -> Fingerprint {
        let mut mixer = Mixer::new();
        mixer.word(tag);
        mixer.text(namespace);
        let mut replaces = false;
        for (name, value) in statement.fields() {
            match (name, value) {
                ("q" | "filter" | "query", Value::Document(filter)) => {
                    mixer.word(11);
                    mixer.filter(filter);
                }
                ("u" | "updateMods" | "update", Value::Document(update)) => {
                    mixer.word(12);
                    replaces = !mixer.update(update);
                }
                ("u" | "updateMods" | "update", Value::Array(stages)) => {
                    mixer.word(13);
                    mixer.pipeline(stages);
                }
                ("multi" | "limit" | "upsert" | "remove" | "new", flag) => {
                    mixer.text(name);
                    mixer.exact(flag);
                }
                (
                    "sort" | "fields" | "collation" | "arrayFilters",
                    value @ (Value::Document(_) | Value::Array(_)),
                ) => {
                    mixer.text(name);
                    mixer.exact(value);
                }
                _ => {}
            }
        }
        Fingerprint { hash: mixer.hash, list: mixer.list, replaces, ..Fingerprint::default() }
    }

    /// Returns the fingerprint of an insert.
    pub fn of_insert(namespace: &str) -> Fingerprint {
        let mut mixer = Mixer::new();
        mixer.word(20);
        mixer.text(namespace);
        Fingerprint { hash: mixer.hash, ..Fingerprint::default() }
    }
}

/// The tag of an update for [`Fingerprint::of_write`].
pub const UPDATE: u64 = 21;
/// The tag of a delete.
pub const DELETE: u64 = 22;
/// The tag of a `findAndModify`.
pub const FIND_AND_MODIFY: u64 = 23;

/// Operators of filters whose operand is hashed as it is, because the shape keeps more of it than
/// types, or because they are rare.
const EXACT: &[&str] = &["$exists", "$type", "$jsonSchema", "$options"];

struct Mixer {
    hash: u64,
    list: u64,
}

impl Mixer {
    fn new() -> Self {
        Mixer { hash: 0x243F_6A88_85A3_08D3, list: 0 }
    }

    fn begin(&mut self, command: u64, namespace: &str, collation: &AskedCollation) {
        self.word(command);
        self.text(namespace);
        match collation {
            AskedCollation::Default => {}
            AskedCollation::Own(None) => self.word(1),
            AskedCollation::Own(Some(own)) => self.whole(own.to_document().as_doc()),
        }
    }

    /// Mixes a word in: a folded multiplication, as in foldhash and wyhash.
    #[inline]
    fn word(&mut self, word: u64) {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let product = u128::from(self.hash ^ word) * u128::from(FACTOR);
        self.hash = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        let mut last = [0; 8];
        let rest = chunks.remainder();
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.word(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Mixes in all bytes of a document.
    #[inline]
    fn whole(&mut self, doc: Doc<'_>) {
        match doc.is_empty() {
            true => self.word(0),
            false => self.bytes(doc.as_bytes()),
        }
    }

    /// Mixes in a value with its content.
    fn exact(&mut self, value: Value<'_>) {
        self.word(value.kind() as u64);
        match value {
            Value::Document(doc) => self.whole(doc),
            Value::Array(array) => self.bytes(array.as_bytes()),
            Value::String(text) => self.text(text),
            Value::Bool(flag) => self.word(u64::from(flag)),
            Value::Int32(number) => self.word(number as u64),
            Value::Int64(number) => self.word(number as u64),
            Value::Double(number) => self.word(number.to_bits()),
            _ => {}
        }
    }

    /// Mixes in a filter: names, and types in place of literals.
    fn filter(&mut self, filter: Doc<'_>) {
        for (name, value) in filter.fields() {
            self.text(name);
            match (name, value) {
                ("$expr", value) => self.expression(value, false),
                (name, value) if EXACT.contains(&name) => self.exact(value),
                ("$all", Value::Array(items)) => {
                    items.iter().for_each(|item| self.literal(item));
                    self.word(7);
                }
                (_, value) => self.literal(value),
            }
        }
        self.word(8);
    }

    fn literal(&mut self, value: Value<'_>) {
        match value {
            Value::Document(inner) => self.filter(inner),
            Value::Array(items) => self.array(items),
            number if number.is_number() => self.word(1),
            other => self.word(other.kind() as u64 + 2),
        }
    }

    /// Mixes in the types of an array's scalars, each once, and its documents.
    fn array(&mut self, items: Array<'_>) {
        let (mut types, mut count) = (0_u64, 0);
        for item in items.iter() {
            match item {
                Value::Document(inner) => self.filter(inner),
                other => {
                    count += 1;
                    types |= type_bit(other);
                }
            }
        }
        self.list = self.list.max(count);
        self.word(types | 1 << 60);
    }

    /// Mixes in an expression: everything but numbers, dates and ids that are constants. Numbers
    /// stay where they may be flags or directions.
    fn expression(&mut self, value: Value<'_>, numbers: bool) {
        match value {
            Value::String(text) => self.text(text),
            Value::Document(doc) => {
                for (name, value) in doc.fields() {
                    self.text(name);
                    match (name, value) {
                        ("pipeline", Value::Array(stages)) => self.pipeline(stages),
                        (name, value) => {
                            let is_flag = numbers || matches!(name, "sortBy" | "window");
                            self.expression(value, is_flag);
                        }
                    }
                }
                self.word(8);
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.expression(item, numbers));
                self.word(9);
            }
            number if number.is_number() && !numbers => self.word(1),
            other => self.exact(other),
        }
    }

    fn pipeline(&mut self, stages: Array<'_>) {
        for stage in stages.iter() {
            match stage {
                Value::Document(stage) => self.stage(stage),
                other => self.exact(other),
            }
        }
        self.word(10);
    }

    fn stage(&mut self, stage: Doc<'_>) {
        for (name, value) in stage.fields() {
            self.text(name);
            match (name, value) {
                ("$match", Value::Document(filter)) => self.filter(filter),
                ("$limit" | "$skip", value) => self.literal(value),
                ("$facet", Value::Document(branches)) => {
                    for (name, branch) in branches.fields() {
                        self.text(name);
                        match branch {
                            Value::Array(stages) => self.pipeline(stages),
                            other => self.exact(other),
                        }
                    }
                }
                (_, value) => self.expression(value, true),
            }
        }
    }

    /// Mixes in what an update writes. Returns false for a replacement.
    fn update(&mut self, update: Doc<'_>) -> bool {
        if !update.first().is_some_and(|first| first.key().starts_with('$')) {
            self.word(3);
            return false;
        }
        for (operator, fields) in update.fields() {
            self.text(operator);
            let Value::Document(fields) = fields else {
                self.literal(fields);
                continue;
            };
            for (path, value) in fields.fields() {
                self.text(path);
                match (operator, value) {
                    ("$rename", value) => self.exact(value),
                    ("$push" | "$addToSet", Value::Document(modifiers))
                        if modifiers.first().is_some_and(|first| first.key().starts_with('$')) =>
                    {
                        for (name, value) in modifiers.fields() {
                            self.text(name);
                            match name {
                                "$sort" => self.exact(value),
                                _ => self.shallow(value),
                            }
                        }
                    }
                    (_, value) => self.shallow(value),
                }
            }
            self.word(8);
        }
        true
    }

    /// Mixes in the type of a value that is written; of an array also those of its elements.
    fn shallow(&mut self, value: Value<'_>) {
        match value {
            Value::Document(_) => self.word(Value::MinKey.kind() as u64 + 99),
            Value::Array(items) => {
                let types = items.iter().fold(0, |types, item| types | type_bit(item));
                self.word(types | 1 << 60);
            }
            other => self.literal(other),
        }
    }
}

/// Returns a bit for the type of a value, one for all types of numbers.
fn type_bit(value: Value<'_>) -> u64 {
    match value.is_number() {
        true => 1,
        false => 2 << (value.kind() as u64 % 53),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::testing::Generator;
    use quire_document::{DocBuf, doc};
    use quire_planner::{AggregateRequest, FindRequest, RequestShape};
    use std::collections::HashMap;

    fn find(filter: DocBuf) -> FindRequest {
        FindRequest { namespace: "shop.orders".to_owned(), filter, ..FindRequest::default() }
    }

    fn hash(request: &FindRequest) -> u64 {
        Fingerprint::of_read(&ReadRequest::Find(request)).unwrap().hash
    }

    #[test]
    fn literals_and_lengths_of_lists_do_not_count() {
        let base = find(doc! { "a": 1, "b": { "$in": [1, 2] }, "c": { "$gt": "x" } });
        let same = find(doc! { "a": 2.5, "b": { "$in": [3, 4, 5] }, "c": { "$gt": "y" } });
        assert_eq!(hash(&base), hash(&same));
        assert_eq!(Fingerprint::of_read(&ReadRequest::Find(&same)).unwrap().list, 3);
        let different = [
            find(doc! { "a": "1", "b": { "$in": [1, 2] }, "c": { "$gt": "x" } }),
            find(doc! { "a": 1, "b": { "$in": [1, "2"] }, "c": { "$gt": "x" } }),
            find(doc! { "a": 1, "b": { "$in": [1, 2] }, "c": { "$gte": "x" } }),
            FindRequest { limit: 1, ..base.clone() },
            FindRequest { sort: doc! { "a": 1 }, ..base.clone() },
            FindRequest { namespace: "shop.archive".to_owned(), ..base.clone() },
        ];
        for other in different {
            assert_ne!(hash(&base), hash(&other), "{other:?}");
        }
    }

    /// Random filters over few names, so that many have the same structure.
    fn filter(random: &mut Generator, depth: u64) -> DocBuf {
        let names = ["a", "b"];
        let operators = ["$eq", "$gt", "$in", "$exists", "$not", "$elemMatch", "$all", "$type"];
        DocBuf::build(|out| {
            for _ in 0..=random.below(2) {
                let name = *random.pick(&names).unwrap();
                let value = random.below(3) as i32;
                let list = quire_document::array![value, "x", 2];
                let (one, less) = (quire_document::array![value], doc! { "$lt": value });
                match random.below(5 + depth) {
                    0 => drop(out.append(name, value)),
                    1 => drop(out.append(name, if value == 0 { "x" } else { "yy" })),
                    2 if depth > 0 => {
                        let inner = [filter(random, depth - 1), filter(random, depth - 1)];
                        out.array("$or").push(&inner[0]).push(&inner[1]);
                    }
                    3 if depth > 0 => {
                        let inner = filter(random, depth - 1);
                        out.document(name).append("$elemMatch", &inner);
                    }
                    4 => {
                        let inner = doc! { "$gt": ["$a", value], "$x": { "sortBy": value } };
                        out.append("$expr", &inner);
                    }
                    _ => {
                        let operator = *random.pick(&operators).unwrap();
                        let mut inner = out.document(name);
                        match (operator, random.one_in(2)) {
                            ("$in" | "$all", true) => drop(inner.append(operator, &list)),
                            ("$in" | "$all", false) => drop(inner.append(operator, &one)),
                            ("$not" | "$elemMatch", _) => drop(inner.append(operator, &less)),
                            (operator, true) => drop(inner.append(operator, value)),
                            (operator, false) => drop(inner.append(operator, value == 0)),
                        }
                    }
                }
            }
        })
    }

    #[test]
    fn equal_fingerprints_have_equal_shapes() {
        let mut random = Generator::new(46);
        let (mut finds, mut aggregates) = (HashMap::new(), HashMap::new());
        for _ in 0..4000 {
            let filter = filter(&mut random, 2);
            let find = FindRequest { skip: random.below(2), ..find(filter.clone()) };
            let request = ReadRequest::Find(&find);
            let shape = RequestShape::of(&request).unwrap();
            let known = finds.entry(hash(&find)).or_insert_with(|| shape.clone());
            assert_eq!(*known, shape, "{find:?}");
            let group = doc! { "$group": { "_id": "$a", "n": { "$sum": random.below(2) as i64 } } };
            let sort = doc! { "$sort": { "a": if random.one_in(2) { 1 } else { -1 } } };
            let limit = doc! { "$limit": random.below(5) as i64 };
            let aggregate = AggregateRequest {
                pipeline: vec![doc! { "$match": &filter }, sort, limit, group],
                ..AggregateRequest::default()
            };
            let request = ReadRequest::Aggregate(&aggregate);
            let shape = RequestShape::of(&request).unwrap();
            let hash = Fingerprint::of_read(&request).unwrap().hash;
            assert_eq!(*aggregates.entry(hash).or_insert_with(|| shape.clone()), shape);
        }
        assert!(finds.len() > 50 && finds.len() < 4000, "{}", finds.len());
    }

    #[test]
    fn updates_are_told_apart_by_paths() {
        let of = |update: DocBuf| {
            let statement = doc! { "q": { "_id": 1 }, "u": &update };
            Fingerprint::of_write(UPDATE, "shop.orders", statement.as_doc())
        };
        let base = of(doc! { "$set": { "a": 1 }, "$push": { "l": { "$each": [1], "$slice": 5 } } });
        let same =
            of(doc! { "$set": { "a": 2 }, "$push": { "l": { "$each": [7, 8], "$slice": 6 } } });
        assert_eq!(base, same);
        assert_ne!(base.hash, of(doc! { "$set": { "b": 1 } }).hash);
        assert!(!base.replaces && of(doc! { "a": 1 }).replaces);
        assert_eq!(of(doc! { "a": 1 }), of(doc! { "x": "y", "z": 2 }));
    }
}
