//! Random pipelines over two small collections, through a whole server in memory: each ends in time
//! with a result or an error, and batches of one document have the same result as one large batch.
#![no_main]

#[path = "../choices.rs"]
mod choices;

use choices::Choices;
use libfuzzer_sys::fuzz_target;
use quire_commands::{Call, Connection, ConnectionInfo, Service, ServiceOptions};
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc};
use quire_storage::{Interrupt, open_memory};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The time limit of a pipeline in milliseconds, and how late it may end after it.
const TIME_MS: i32 = 500;
const LATE: Duration = Duration::from_millis(1500);

const PATHS: &[&str] = &["_id", "a", "b", "c", "c.d", "list", "list.x", "parent", "date", "none"];

impl Choices<'_> {
    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.next(words.len())]
    }

    fn path(&mut self) -> &'static str {
        self.one_of(PATHS)
    }

    fn field(&mut self) -> ValueBuf {
        match self.next(12) {
            0 => ValueBuf::new("$$ROOT"),
            1 => ValueBuf::new("$$outer"),
            _ => ValueBuf::new(format!("${}", self.path()).as_str()),
        }
    }

    fn constant(&mut self) -> ValueBuf {
        match self.next(8) {
            0 => ValueBuf::new(Value::Null),
            1 => ValueBuf::new("x"),
            2 => ValueBuf::new(1.5),
            3 => ValueBuf::new(Value::Date(86_400_000)),
            4 => ValueBuf::from(doc! { "d": 1 }),
            5 => ValueBuf::new(-7i64),
            _ => ValueBuf::new(self.next(12) as i32),
        }
    }

    fn expression(&mut self, depth: usize) -> ValueBuf {
        let one = |name: &str, value: &ValueBuf| {
            ValueBuf::from(DocBuf::build(|writer| {
                writer.append(name, value);
            }))
        };
        match self.next(if depth == 0 { 2 } else { 7 }) {
            0 => self.field(),
            1 => one("$literal", &self.constant()),
            2 => {
                let value = self.expression(depth - 1);
                one(
                    self.one_of(&[
                        "$size",
                        "$type",
                        "$isArray",
                        "$toString",
                        "$floor",
                        "$not",
                        "$first",
                    ]),
                    &value,
                )
            }
            3 => {
                let (left, right) = (self.expression(depth - 1), self.expression(depth - 1));
                let pair: ArrayBuf = [&left, &right].into_iter().collect();
                let name = self.one_of(&[
                    "$eq",
                    "$lt",
                    "$add",
                    "$subtract",
                    "$multiply",
                    "$in",
                    "$concatArrays",
                    "$ifNull",
                    "$and",
                ]);
                one(name, &pair.into())
            }
            4 => {
                let (test, yes, no) = (
                    self.expression(depth - 1),
                    self.expression(depth - 1),
                    self.expression(depth - 1),
                );
                ValueBuf::from(doc! { "$cond": [&test, &yes, &no] })
            }
            5 => {
                let value = self.expression(depth - 1);
                one(self.path(), &value)
            }
            _ => {
                let (input, body) = (self.field(), self.expression(depth - 1));
                ValueBuf::from(doc! { "$map": { "input": &input, "in": &body } })
            }
        }
    }

    fn condition(&mut self) -> DocBuf {
        let value = self.constant();
        let test = match self.next(8) {
            0 => doc! { "$gt": &value },
            1 => doc! { "$in": [&value, 3, Value::Null] },
            2 => doc! { "$exists": (self.next(2) == 0) },
            3 => doc! { "$ne": &value },
            4 => doc! { "$elemMatch": { "x": { "$gte": 1 } } },
            5 => return doc! { "$expr": &self.expression(2) },
            6 => return doc! { "$or": [{ "a": &value }, { "b": { "$lt": &value } }] },
            _ => doc! { "$eq": &value },
        };
        let path = self.path();
        DocBuf::build(|writer| {
            writer.append(path, &test);
        })
    }

    fn accumulator(&mut self) -> DocBuf {
        let value = self.expression(1);
        let name = self.one_of(&[
            "$sum",
            "$avg",
            "$min",
            "$max",
            "$push",
            "$addToSet",
            "$first",
            "$last",
            "$stdDevPop",
        ]);
        DocBuf::build(|writer| {
            writer.append(name, &value);
        })
    }

    fn window(&mut self) -> DocBuf {
        let mut function = match self.next(6) {
            0 => return doc! { "$rank": {} },
            1 => return doc! { "$documentNumber": {} },
            2 => {
                return doc! { "$shift": { "output": &self.field(), "by": (self.next(5) as i32 - 2) } };
            }
            3 => return doc! { "$linearFill": &self.field() },
            4 => return doc! { "$expMovingAvg": { "input": &self.field(), "N": 3 } },
            _ => self.accumulator(),
        };
        let (from, to) = (self.next(6) as i32 - 3, self.next(6) as i32 - 2);
        let window = match self.next(4) {
            0 => doc! { "documents": [from, to] },
            1 => doc! { "range": [from, to] },
            2 => doc! { "documents": ["unbounded", "current"] },
            _ => return function,
        };
        function.append("window", &window);
        function
    }

    fn pipeline(&mut self, depth: usize) -> ArrayBuf {
        let stages: Vec<DocBuf> = (0..1 + self.next(5)).map(|_| self.stage(depth)).collect();
        stages.iter().collect()
    }

    fn stage(&mut self, depth: usize) -> DocBuf {
        let path = self.path();
        let field = format!("${path}");
        match self.next(if depth == 0 { 16 } else { 21 }) {
            0 => doc! { "$match": &self.condition() },
            1 => doc! { "$set": { (path): &self.expression(2) } },
            2 => doc! { "$project": { (path): 1, "made": &self.expression(2) } },
            3 => doc! { "$project": { (path): 0 } },
            4 => {
                doc! { "$unwind": { "path": field.as_str(), "preserveNullAndEmptyArrays": (self.next(2) == 0) } }
            }
            5 => {
                doc! { "$group": { "_id": &self.expression(1), "n": &self.accumulator(), "a": &self.accumulator() } }
            }
            6 => doc! { "$sort": { (path): (if self.next(2) == 0 { 1 } else { -1 }), "_id": 1 } },
            7 => doc! { "$limit": (1 + self.next(9) as i32) },
            8 => doc! { "$skip": (self.next(9) as i32) },
            9 => {
                doc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", { "made": &self.expression(1) }] } }
            }
            10 => {
                doc! { "$bucketAuto": { "groupBy": &self.expression(1), "buckets": (1 + self.next(5) as i32) } }
            }
            11 => {
                doc! { "$setWindowFields": { "partitionBy": &self.expression(1), "sortBy": { (path): 1 }, "output": { "w": &self.window() } } }
            }
            12 => {
                doc! { "$densify": { "field": path, "range": { "step": (1 + self.next(4) as i32), "bounds": "full" } } }
            }
            13 => {
                doc! { "$fill": { "sortBy": { "_id": 1 }, "output": { (path): { "method": (self.one_of(&["linear", "locf"])) } } } }
            }
            14 => doc! { "$count": "n" },
            15 => doc! { "$sortByCount": field.as_str() },
            16 => {
                doc! { "$lookup": { "from": (self.one_of(&["one", "two", "none"])), "localField": path, "foreignField": (self.path()), "as": (self.path()) } }
            }
            17 => {
                doc! { "$lookup": { "from": (self.one_of(&["one", "two"])), "let": { "outer": &self.field() }, "pipeline": &self.pipeline(depth - 1), "as": "joined" } }
            }
            18 => {
                doc! { "$unionWith": { "coll": (self.one_of(&["one", "two"])), "pipeline": &self.pipeline(depth - 1) } }
            }
            19 => {
                doc! { "$facet": { "x": &self.pipeline(depth - 1), "y": &self.pipeline(depth - 1) } }
            }
            _ => {
                doc! { "$graphLookup": { "from": (self.one_of(&["one", "two"])), "startWith": &self.field(), "connectFromField": (self.path()), "connectToField": path, "as": "graph", "maxDepth": (self.next(4) as i32) } }
            }
        }
    }
}

thread_local! {
    static CLIENT: RefCell<Connection> = RefCell::new(client());
}

fn client() -> Connection {
    let options = ServiceOptions::in_process("memory", None);
    let service = Service::open(open_memory().expect("memory"), options).expect("a service");
    let info = ConnectionInfo { id: 1, peer: None, local: None, certificate_subject: None };
    let mut client = service.connect(info);
    for name in ["one", "two"] {
        let docs: Vec<DocBuf> = (0..40).map(document).collect();
        let docs: ArrayBuf = docs.iter().collect();
        run(&mut client, &doc! { "insert": name, "documents": &docs, "$db": "db" });
    }
    let indexes = doc! { "createIndexes": "two", "$db": "db", "indexes": [
        { "key": { "a": 1 }, "name": "a" }, { "key": { "parent": 1, "b": -1 }, "name": "parent" }, { "key": { "list.x": 1 }, "name": "list" },
    ] };
    run(&mut client, &indexes);
    client
}

fn document(id: i32) -> DocBuf {
    let mut found = doc! { "_id": id, "a": (id % 5), "parent": (id / 3) };
    match id % 7 {
        0 => found.append("b", "x"),
        1 => found.append("b", Value::Null),
        2 => found.append("b", &ArrayBuf::from_iter([1, id])),
        3 => found.append("b", 1.5),
        _ => found.append("b", id),
    };
    let items: Vec<DocBuf> = (0..id % 4).map(|x| doc! { "x": x, "y": "z" }).collect();
    found.append("list", &items.iter().collect::<ArrayBuf>());
    found
        .append("c", &doc! { "d": (id % 3) })
        .append("date", Value::Date(i64::from(id) * 3_600_000));
    found
}

fn run(client: &mut Connection, command: &DocBuf) -> DocBuf {
    let call = Call::new(command.as_bytes()).expect("a valid command");
    client.call(&call, Interrupt::new()).0
}

/// Returns all documents of a pipeline; `None` for an error.
fn answer(client: &mut Connection, pipeline: &ArrayBuf, batch: i32) -> Option<Vec<DocBuf>> {
    let begun = Instant::now();
    let command = doc! { "aggregate": "one", "pipeline": pipeline, "cursor": { "batchSize": batch }, "maxTimeMS": TIME_MS, "$db": "db" };
    let mut reply = run(client, &command);
    assert!(
        begun.elapsed() < Duration::from_millis(TIME_MS as u64) + LATE,
        "too late: {pipeline:?}"
    );
    let mut docs = Vec::new();
    loop {
        let cursor = reply.get("cursor")?.as_document()?;
        let batch = cursor.get("firstBatch").or(cursor.get("nextBatch"))?.as_array()?;
        docs.extend(batch.iter().filter_map(|value| value.as_document().map(|doc| doc.to_owned())));
        let Some(Value::Int64(id)) = cursor.get("id") else { return None };
        if id == 0 {
            return Some(docs);
        }
        reply =
            run(client, &doc! { "getMore": id, "collection": "one", "batchSize": 1, "$db": "db" });
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices(bytes);
    let mut stages = vec![doc! { "$sort": { "_id": 1 } }];
    stages.extend((0..1 + choices.next(6)).map(|_| choices.stage(2)));
    let pipeline: ArrayBuf = stages.iter().collect();
    CLIENT.with_borrow_mut(|client| {
        let whole = answer(client, &pipeline, 10_000);
        let single = answer(client, &pipeline, 1);
        // The documents before an error, or before the time limit, may differ.
        if let (Some(whole), Some(single)) = (whole, single) {
            assert_eq!(whole, single, "{pipeline:?}");
        }
    });
});
