//! Requests made of the language's own words with large constants, under a budget of memory and of
//! work: each ends with a result or an error, and once it was killed it looks at its interrupt only a
//! few times more. Work is counted in looks and in calls of the allocator, memory by the allocator.
#![no_main]

#[path = "../choices.rs"]
mod choices;
#[path = "../../crates/mql/tests/it/allocator.rs"]
mod counting;

use bumpalo::Bump;
use choices::Choices;
use libfuzzer_sys::fuzz_target;
use quire_commands::{Call, Connection, ConnectionInfo, Service, ServiceOptions};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, doc, limits};
use quire_error::{Error, ErrorCode};
use quire_mql::stage::{Transform, Transforms, find_stage};
use quire_mql::{EvalContext, Expression, Filter, ParseContext, Shared, Update, UpdateSpec};
use quire_storage::{Interrupt, Interruption, observe::observed, open_memory};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Looks at the interrupt after which an evaluation is told to end.
const LOOKS_MAX: u32 = 64;

/// The number of checks that it may make after the interrupt.
const LATE_LOOKS_MAX: u32 = 64;

/// The same for a command, which looks before each batch as well.
const COMMAND_LOOKS_MAX: u32 = 2000;

/// Calls of the allocator between two looks, and from the last look of a command to its end. Some
/// steps copy or free a whole request without a look: it has at most 250,000 conditions, and each
/// can be in the filter, in the plan and in what runs, in a few allocations. That takes less than
/// 100 ms.
const CALLS_MAX: u64 = 3_000_000;

/// Bytes of the largest list in a request.
const LIST_BYTES_MAX: usize = 1 << 20;

/// Bytes that the evaluation of one document may take.
const EVALUATION_BYTES_MAX: usize = 4 << 20;

/// Bytes that a request may hold at once, beyond its own: its compiled parts are larger than what they
/// were compiled from.
const HELD_BYTES_MAX: usize = 600 << 20;

const OPERATORS: &[&str] = &[
    "$concatArrays", "$setUnion", "$setIntersection", "$setDifference", "$reverseArray", "$size",
    "$objectToArray", "$mergeObjects", "$concat", "$toString", "$split", "$indexOfCP",
    "$indexOfBytes", "$in", "$eq", "$slice", "$first", "$arrayElemAt", "$strLenCP", "$add",
    "$arrayToObject", "$allElementsTrue", "$setIsSubset", "$maxN", "$trim", "$toHashedIndexKey",
    "$max", "$or", "$and", "$ifNull", "$stdDevPop", "$cmp",
];

const PATTERNS: &[&str] = &[
    "^(a|b)*$", "(a+)+$", ".{0,200}.{0,200}.{0,150}[YZ]", "(a*)*b", "(?:a|aa)+c", "[^y]*z", "(.)\\1+",
    "(?=(a+))a*b", "\\X+\\d", "(a?){50}a{50}",
];

/// Parts of strings that are costly to compare under a collation.
const COSTLY: &[&str] = &[
    "word ", "1234567891", "0", "e\u{301}", "\u{301}\u{316}", "\u{f71}\u{f80}", "\u{fb2}\u{f71}\u{f80}",
    "\u{1}", " ", "\u{ac01}", "\u{e40}\u{e01}",
];

const PATHS: &[&str] = &["s", "v", "t", "o", "d", "n", "i", "_id", "o.field7", "v.3", "none"];

fn one(name: &str, value: &ValueBuf) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append(name, value);
    })
}

impl Choices<'_> {
    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.next(words.len())]
    }

    fn field(&mut self) -> ValueBuf {
        ValueBuf::new(["$v", "$t", "$o", "$d", "$$ROOT", "$n"][self.next(6)])
    }

    /// How many parts a list has, of which each takes `bytes`.
    fn count(&mut self, bytes: usize) -> usize {
        let wanted = [1, 2, 10, 300, 5000, 100_000][self.next(6)];
        wanted.min(LIST_BYTES_MAX / (bytes + 10)).max(1)
    }

    fn constant(&mut self, at: usize) -> ValueBuf {
        match self.next(8) {
            7 => ValueBuf::new(self.costly(at).as_str()),
            0 => ValueBuf::new(Value::Null),
            1 => ValueBuf::new(format!("word{at}").as_str()),
            2 => ValueBuf::new(at as f64),
            3 => ValueBuf::from(doc! { "a": (at as i32) }),
            4 => ValueBuf::new(-(at as i32)),
            _ => ValueBuf::new(at as i32),
        }
    }

    /// A string that is costly to compare, different for each number.
    fn costly(&mut self, at: usize) -> String {
        let (part, length) = (self.one_of(COSTLY), [30, 1000, 5000, 60_000][self.next(4)]);
        format!("{}{at}", part.repeat(length / part.len()))
    }

    fn collation(&mut self) -> DocBuf {
        let locale = self.one_of(&["en", "de", "fr_CA", "vi", "th", "zh"]);
        let mut collation = doc! { "locale": locale, "strength": (1 + self.next(5) as i32) };
        match self.next(5) {
            0 => collation.append("numericOrdering", true),
            1 => collation.append("alternate", "shifted"),
            2 => collation.append("backwards", true),
            3 => collation.append("caseLevel", true).append("caseFirst", "upper"),
            _ => collation.append("normalization", true),
        };
        collation
    }

    /// A list of strings, of as many bytes as a list of constants.
    fn texts(&mut self) -> ArrayBuf {
        let first = self.costly(0);
        let count = (LIST_BYTES_MAX / (first.len() + 10)).min(self.count(24)).max(1);
        let texts: Vec<String> = (0..count).map(|at| format!("{first}{}", at * 7919 % count)).collect();
        texts.iter().map(String::as_str).collect()
    }

    /// A list of constants.
    fn constants(&mut self) -> ArrayBuf {
        let count = self.count(24);
        let first = self.constant(0);
        match self.next(4) {
            3 => self.texts(),
            0 => (0..count).map(|_| &first).collect(),
            1 => (0..count).map(|at| at as i32).collect(),
            _ => (0..count).map(|at| self.constant(at)).collect::<Vec<_>>().iter().collect(),
        }
    }

    fn expression(&mut self, depth: usize) -> ValueBuf {
        if depth == 0 || self.0.is_empty() {
            return self.field();
        }
        let large = 10i32.pow(self.next(8) as u32);
        match self.next(12) {
            0 => ValueBuf::from(doc! { "$range": [0, large] }),
            1 => {
                let body = self.expression(depth - 1);
                let input = self.expression(depth - 1);
                ValueBuf::from(doc! { "$map": { "input": &input, "in": &body } })
            }
            2 => {
                let start = self.expression(depth - 1);
                let body = doc! { "$concatArrays": ["$$value", &start] };
                ValueBuf::from(doc! { "$reduce": { "input": "$v", "initialValue": [], "in": &body } })
            }
            3 => {
                let inputs: ArrayBuf = (0..1 + self.next(200)).map(|_| "$v").collect();
                ValueBuf::from(doc! { "$zip": { "inputs": &inputs } })
            }
            4 => {
                let item = self.expression(depth - 1);
                let count = self.count(item.size());
                (0..count).map(|_| &item).collect::<ArrayBuf>().into()
            }
            5 => {
                let pattern = self.one_of(PATTERNS);
                ValueBuf::from(doc! { "$regexFindAll": { "input": "$t", "regex": pattern } })
            }
            6 => {
                let input = self.expression(depth - 1);
                ValueBuf::from(doc! { "$sortArray": { "input": &input, "sortBy": 1 } })
            }
            7 => {
                let find = self.expression(depth - 1);
                ValueBuf::from(doc! { "$replaceAll": { "input": "$t", "find": "a", "replacement": &find } })
            }
            8 => {
                let (operator, item) = (self.one_of(OPERATORS), self.expression(depth - 1));
                let operands: ArrayBuf = (0..self.count(item.size())).map(|_| &item).collect();
                one(operator, &operands.into()).into()
            }
            9 => {
                let item = self.expression(depth - 1);
                self.fields(&item).into()
            }
            10 => {
                let item = self.expression(depth - 1);
                let branch = doc! { "case": { "$eq": ["$n", -1] }, "then": &item };
                let count = self.count(branch.as_bytes().len());
                let branches: ArrayBuf = (0..count).map(|_| &branch).collect();
                ValueBuf::from(doc! { "$switch": { "branches": &branches, "default": 1 } })
            }
            _ => {
                let operator = self.one_of(OPERATORS);
                let arguments: Vec<ValueBuf> =
                    (0..1 + self.next(4)).map(|_| self.expression(depth - 1)).collect();
                one(operator, &arguments.iter().collect::<ArrayBuf>().into()).into()
            }
        }
    }

    /// A document of many fields with the same value, or of dotted paths.
    fn fields(&mut self, value: &ValueBuf) -> DocBuf {
        let (count, prefix) = (self.count(value.size() + 10), self.one_of(&["f", "o.f", "a.b.c.f", "v."]));
        DocBuf::build(|writer| {
            for at in 0..count {
                writer.append(&format!("{prefix}{at}"), value);
            }
        })
    }

    /// A filter as it was, of few parts.
    fn small_filter(&mut self) -> DocBuf {
        let path = vec!["0"; 1 + self.next(190)].join(".");
        let pattern = self.one_of(PATTERNS);
        match self.next(5) {
            0 => doc! { "t": { "$not": { "$regex": pattern } } },
            1 => one(&format!("d.{path}"), &ValueBuf::new(1)),
            2 => doc! { "v": { "$all": [-1, -2, -3] } },
            3 => doc! { "$expr": &self.expression(3) },
            _ => doc! { "$jsonSchema": { "properties": { "t": { "pattern": pattern }, "v": { "uniqueItems": true } } } },
        }
    }

    fn filter(&mut self, depth: usize) -> DocBuf {
        let path = self.one_of(PATHS);
        match self.next(if depth == 0 { 7 } else { 11 }) {
            0 => self.small_filter(),
            1 => {
                let list = self.constants();
                doc! { (path): { (self.one_of(&["$in", "$nin", "$all", "$eq", "$gt", "$type"])): &list } }
            }
            2 => {
                let value = self.constant(3);
                doc! { (path): { (self.one_of(&["$gt", "$lt", "$ne", "$eq", "$gte"])): &value } }
            }
            3 => {
                let value = self.constant(1);
                self.fields(&value)
            }
            4 => {
                let value = self.constant(1);
                let fields = self.fields(&value);
                doc! { (path): { "$elemMatch": &fields } }
            }
            5 => {
                let (key, count) = (self.one_of(&["n", "i", "v"]), self.count(30));
                let operator = self.one_of(&["$gt", "$lt", "$ne", "$eq"]);
                let list: Vec<DocBuf> =
                    (0..count).map(|at| doc! { key: { operator: (at as i32) } }).collect();
                doc! { (self.one_of(&["$or", "$and", "$nor"])): &list.iter().collect::<ArrayBuf>() }
            }
            6 => doc! { "$expr": &self.expression(2) },
            7 => {
                let inner = self.filter(depth - 1);
                let count = self.count(inner.as_bytes().len());
                let list: ArrayBuf = (0..count).map(|_| &inner).collect();
                doc! { (self.one_of(&["$or", "$and", "$nor"])): &list }
            }
            8 => {
                let (left, right) = (self.filter(depth - 1), self.filter(depth - 1));
                doc! { (self.one_of(&["$or", "$and", "$nor"])): [&left, &right] }
            }
            9 => {
                let mut nested = self.filter(depth - 1);
                let word = self.one_of(&["$or", "$and", "$nor"]);
                for _ in 0..self.next(99) {
                    nested = doc! { word: [&nested, { "n": 1 }] };
                }
                nested
            }
            _ => {
                let inner = self.filter(depth - 1);
                doc! { (path): { "$elemMatch": &inner } }
            }
        }
    }

    fn update(&mut self) -> ValueBuf {
        let value = self.constant(1);
        match self.next(6) {
            0 => {
                let operators = ["$set", "$unset", "$inc", "$mul", "$min", "$max", "$push", "$addToSet", "$pull", "$pop", "$setOnInsert", "$rename"];
                let fields = self.fields(&value);
                doc! { (self.one_of(&operators)): &fields }.into()
            }
            1 => {
                let list = self.constants();
                let path = self.one_of(&["v", "none"]);
                match self.next(4) {
                    0 => doc! { "$push": { path: { "$each": &list, "$sort": -1, "$slice": 100 } } },
                    1 => doc! { "$addToSet": { path: { "$each": &list } } },
                    2 => doc! { "$pullAll": { path: &list } },
                    _ => doc! { "$pull": { path: { "$in": &list } } },
                }
                .into()
            }
            2 => {
                let stages: Vec<DocBuf> =
                    (0..1 + self.next(4)).map(|_| doc! { "$set": { (self.one_of(PATHS)): &self.expression(2) } }).collect();
                stages.iter().collect::<ArrayBuf>().into()
            }
            3 => self.fields(&value).into(),
            4 => {
                let condition = self.filter(1);
                doc! { "$pull": { "v": &condition } }.into()
            }
            _ => {
                let text = "x".repeat(1000 * self.next(200));
                doc! { "$set": { "v.$[e]": text.as_str() } }.into()
            }
        }
    }

    fn stage(&mut self, depth: usize) -> DocBuf {
        let value = self.expression(2);
        match self.next(if depth == 0 { 14 } else { 18 }) {
            0 => doc! { "$match": &self.filter(2) },
            1 => doc! { "$set": &self.fields(&value) },
            2 => doc! { "$project": &self.fields(&value) },
            3 => doc! { "$project": &self.fields(&ValueBuf::new(1)) },
            4 => {
                let names: Vec<String> = (0..self.count(10)).map(|at| format!("f{at}")).collect();
                doc! { "$unset": &names.iter().map(String::as_str).collect::<ArrayBuf>() }
            }
            5 => doc! { "$unwind": (self.one_of(&["$v", "$d", "$o"])) },
            6 => {
                let mut group = doc! { "_id": &value };
                let sum = doc! { (self.one_of(&["$push", "$sum", "$addToSet", "$max", "$first"])): &self.expression(1) };
                let count = self.count(sum.as_bytes().len());
                group.extend(|writer| {
                    (0..count).for_each(|at| {
                        writer.append(&format!("f{at}"), &sum);
                    });
                });
                doc! { "$group": &group }
            }
            7 => doc! { "$sort": { (self.one_of(PATHS)): -1, "_id": 1 } },
            8 => doc! { "$bucket": { "groupBy": "$n", "boundaries": &self.constants(), "default": -1 } },
            9 => {
                let output = self.fields(&doc! { "$sum": "$n", "window": { "documents": [-1, 1] } }.into());
                doc! { "$setWindowFields": { "sortBy": { "n": 1 }, "output": &output } }
            }
            10 => {
                let step = [1.0, 0.5, 0.001, 0.000_001][self.next(4)];
                doc! { "$densify": { "field": "n", "range": { "step": step, "bounds": [0, 100] } } }
            }
            11 => {
                let output = self.fields(&doc! { "method": "locf" }.into());
                doc! { "$fill": { "sortBy": { "n": 1 }, "output": &output } }
            }
            12 => doc! { "$replaceWith": &doc! { "a": &value, "b": "$$ROOT" } },
            13 => doc! { "$redact": { "$cond": [&value, "$$DESCEND", "$$PRUNE"] } },
            14 => doc! { "$lookup": { "from": "c", "pipeline": &self.pipeline(depth - 1), "as": "o" } },
            15 => doc! { "$facet": { "x": &self.pipeline(depth - 1), "y": &self.pipeline(depth - 1) } },
            16 => doc! { "$unionWith": { "coll": "c", "pipeline": &self.pipeline(depth - 1) } },
            _ => {
                doc! { "$graphLookup": { "from": "c", "startWith": &value, "connectFromField": "v", "connectToField": "n", "as": "g", "restrictSearchWithMatch": &self.filter(1) } }
            }
        }
    }

    fn pipeline(&mut self, depth: usize) -> ArrayBuf {
        let stages: Vec<DocBuf> = (0..1 + self.next(4)).map(|_| self.stage(depth)).collect();
        stages.iter().collect()
    }

    /// A command, with a collation or without one.
    fn command(&mut self) -> DocBuf {
        let mut command = self.plain_command();
        if self.next(2) == 0 && ["find", "aggregate", "count"].iter().any(|name| command.as_doc().contains(name)) {
            command.append("collation", &self.collation());
        }
        command
    }

    fn plain_command(&mut self) -> DocBuf {
        let find = |choices: &mut Self| doc! { "find": "c", "filter": &choices.filter(3), "batchSize": 5, "singleBatch": true };
        let aggregate = |choices: &mut Self| doc! { "aggregate": "c", "pipeline": &choices.pipeline(2), "cursor": { "batchSize": 5 } };
        match self.next(10) {
            0 | 1 => find(self),
            2 | 3 => aggregate(self),
            4 => doc! { "explain": &find(self) },
            5 => doc! { "explain": &aggregate(self) },
            6 => doc! { "count": "c", "query": &self.filter(3) },
            7 => {
                let mut statement = doc! { "q": &self.filter(2), "u": &self.update(), "upsert": (self.next(2) == 0), "arrayFilters": [{ "e": { "$gt": 1 } }] };
                if self.next(2) == 0 {
                    statement.append("collation", &self.collation());
                }
                doc! { "update": "u", "updates": [&statement] }
            }
            8 => doc! { "delete": "u", "deletes": [{ "q": &self.filter(3), "limit": 1 }] },
            _ => {
                let index = doc! { "key": { "z": 1 }, "name": "z", "partialFilterExpression": &self.filter(2) };
                doc! { "createIndexes": "p", "indexes": [&index] }
            }
        }
    }
}

fn root() -> DocBuf {
    let numbers: ArrayBuf = (0..5000).collect();
    let mut nested = doc! { "0": 1 };
    for _ in 0..80 {
        nested = doc! { "0": [&nested] };
    }
    let object = DocBuf::build(|writer| {
        (0..500).for_each(|at| {
            writer.append(&format!("field{at}"), at);
        });
    });
    doc! { "v": &numbers, "t": "ab".repeat(2000).as_str(), "o": &object, "d": [&nested], "n": 7, "s": "e\u{301} ".repeat(2000).as_str() }
}

thread_local! {
    static CLIENT: RefCell<Connection> = RefCell::new(client());
}

fn client() -> Connection {
    let options = ServiceOptions::in_process("memory", None);
    let service = Service::open(open_memory().expect("memory"), options).expect("a service");
    let info = ConnectionInfo { id: 1, peer: None, local: None, certificate_subject: None };
    let mut client = service.connect(info);
    for name in ["c", "u"] {
        let documents: Vec<DocBuf> = (0..10)
            .map(|at| {
                let mut document = doc! { "_id": at, "i": at };
                root().as_doc().fields().for_each(|(name, value)| {
                    document.append(name, value);
                });
                document
            })
            .collect();
        let documents: ArrayBuf = documents.iter().collect();
        run(&mut client, &doc! { "insert": name, "documents": &documents, "$db": "db" });
        let indexes = doc! { "createIndexes": name, "$db": "db", "indexes": [
            { "key": { "n": 1 }, "name": "n" }, { "key": { "i": 1, "n": 1 }, "name": "i" }, { "key": { "o.field7": 1 }, "name": "o" },
        ] };
        run(&mut client, &indexes);
    }
    client
}

fn run(client: &mut Connection, command: &DocBuf) {
    let Ok(call) = Call::new(command.as_bytes()) else { return };
    client.call(&call, Interrupt::new());
}

/// Runs a command that is killed at its `COMMAND_LOOKS_MAX`th look.
fn run_command(mut command: DocBuf) {
    command.append("$db", "db");
    let looks = Rc::new(Cell::new(0));
    let (seen, before) = (Rc::clone(&looks), Cell::new(counting::calls()));
    let observer = move |interrupt: &Interrupt| {
        seen.set(seen.get() + 1);
        if seen.get() == COMMAND_LOOKS_MAX {
            interrupt.kill(Interruption::Killed);
        }
        assert!(seen.get() < COMMAND_LOOKS_MAX + LATE_LOOKS_MAX, "it goes on after it was killed");
        let now = counting::calls();
        assert!(now - before.replace(now) < CALLS_MAX, "too much work between two looks");
        LAST.set(now);
    };
    LAST.set(counting::calls());
    CLIENT.with_borrow_mut(|client| observed(Box::new(observer), || run(client, &command)));
    let freed = counting::calls() - LAST.get();
    assert!(freed < CALLS_MAX, "too much work after the last look");
}

thread_local! {
    /// Calls of the allocator up to the last look.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices(bytes);
    if choices.next(2) == 0 {
        let command = choices.command();
        if command.as_bytes().len() > limits::USER_DOCUMENT_BYTES_MAX {
            return; // No message has such a document.
        }
        // What is made once, and what the request itself takes, is not of this request.
        CLIENT.with_borrow(|_| ());
        let ((), peak) = counting::peak(|| run_command(command));
        assert!(peak < HELD_BYTES_MAX, "{peak} bytes were held");
        return;
    }
    let root = root();
    let looks = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&looks);
    let check = Arc::new(move || {
        let look = seen.fetch_add(1, Ordering::Relaxed);
        assert!(look < LOOKS_MAX + LATE_LOOKS_MAX, "it goes on after it was killed");
        match look < LOOKS_MAX {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::Interrupted, "operation was interrupted")),
        }
    });
    let mut shared = Shared::new(0).with_interrupt(check.clone());
    shared.memory_bytes_max = EVALUATION_BYTES_MAX;
    let mut context = ParseContext::default();
    context.interrupt = Some(check);
    let arena = Bump::new();
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    let ((), peak) = counting::peak(|| evaluate(&mut choices, &context, &cx));
    assert!(peak < HELD_BYTES_MAX, "{peak} bytes were held");
});

/// Parses a part of a request and runs it on one document.
fn evaluate<'a>(choices: &mut Choices<'_>, context: &ParseContext, cx: &EvalContext<'a>) {
    match choices.next(4) {
        0 => {
            let expression = choices.expression(4);
            if let Ok(parsed) = Expression::parse(expression.as_value(), context) {
                let _ = parsed.eval(&cx.with_arena(&Bump::new()));
            }
        }
        1 => {
            if let Ok(filter) = Filter::parse(choices.filter(2).as_doc(), context) {
                let _ = filter.matches(cx.root, cx);
            }
        }
        2 => {
            let mut stages = Transforms::default();
            for _ in 0..1 + choices.next(40) {
                let value = choices.expression(2);
                let fields = doc! { "v": &value, "o": "$$ROOT" };
                let fields = Value::Document(fields.as_doc());
                let row = find_stage("$set").expect("$set is a stage");
                if let Ok(Some(stage)) = Transform::parse(row, fields, context) {
                    stages.push(stage);
                }
            }
            let _ = stages.apply(&cx.with_arena(&Bump::new()));
        }
        _ => {
            let (filter, update) = (doc! { "e": { "$gt": 1 } }, choices.update());
            let filters: [Doc<'_>; 1] = [filter.as_doc()];
            let spec = UpdateSpec { update: update.as_value(), array_filters: &filters, multi: false };
            if let Ok(update) = Update::parse(spec, context) {
                let _ = update.apply(cx.root, None, cx, &mut Vec::new());
            }
        }
    }
}
