//! A request of many parts checks its interrupt while it works on them, and the work of each step
//! is proportional to their number. The work between two checks, and after the last check, is
//! counted in calls of the allocator, which do not depend on the machine: the work on each part of
//! a request allocates or frees memory. `tests/soak/late.py` measures by the clock how late
//! requests end.

use crate::{Client, Server, allocator, code};
use quire_document::{ArrayBuf, DocBuf, Regex, Value, ValueBuf, doc, limits};
use quire_storage::observe::observed;
use quire_storage::{Interrupt, Interruption};
use std::cell::Cell;
use std::rc::Rc;

/// The number of parts of the lists in these requests.
const PARTS: i32 = 2000;

/// The largest number of calls of the allocator, for each part, between two checks and from a kill
/// to the end. A step that compares or copies all parts for each part takes thousands.
const CALLS_A_PART: u64 = 400;

/// The largest number of checks after the one at which a request is killed.
const LATE_LOOKS_MAX: u64 = 1000;

/// The most bytes of memory that a request may have for each part.
const BYTES_A_PART: usize = 50_000;

/// The counts of a request up to its last check of the interrupt.
#[derive(Default)]
struct Seen {
    looks: Cell<u64>,
    calls: Cell<u64>,
    most: Cell<u64>,
}

impl Seen {
    fn note(&self) {
        let now = allocator::calls();
        self.most.set(self.most.get().max(now - self.calls.replace(now)));
    }
}

/// Runs a command that is killed at its check number `kill_at`. Returns its code, the number of
/// checks, and the largest number of calls between two checks, before the first or after the last.
fn run(client: &mut Client, command: &DocBuf, kill_at: u64) -> (i32, u64, u64) {
    let seen = Rc::new(Seen::default());
    seen.calls.set(allocator::calls());
    let noted = Rc::clone(&seen);
    let observer = move |interrupt: &Interrupt| {
        noted.note();
        noted.looks.set(noted.looks.get() + 1);
        if noted.looks.get() == kill_at {
            interrupt.kill(Interruption::Killed);
        }
    };
    let run = || client.exchange(command, Interrupt::new()).0;
    let reply = observed(Box::new(observer), run);
    seen.note();
    (code(&reply), seen.looks.get(), seen.most.get())
}

fn one<'v>(name: &str, value: impl Into<Value<'v>>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append(name, value);
    })
}

fn list(item: impl Fn(i32) -> DocBuf) -> ArrayBuf {
    (0..PARTS).map(item).collect::<Vec<_>>().iter().collect()
}

fn numbers() -> ArrayBuf {
    (0..PARTS).collect()
}

/// Returns an array of `count` different regular expressions.
fn regexes(count: i32) -> ArrayBuf {
    ArrayBuf::build(|writer| {
        for at in 0..count {
            writer.push(Value::Regex(Regex { pattern: &format!("x{at}"), options: "" }));
        }
    })
}

fn fields<'v>(prefix: &str, value: impl Into<Value<'v>>) -> DocBuf {
    let value = value.into();
    DocBuf::build(|writer| {
        for at in 0..PARTS {
            writer.append(&format!("{prefix}{at}"), value);
        }
    })
}

/// Returns filters of many parts, by name. The collection has indexes on `i`, on `j`, and on both.
fn filters() -> Vec<(&'static str, DocBuf)> {
    let ranges = |operator: &'static str| list(move |at| doc! { "i": { operator: at } });
    let ins = list(|at| doc! { "i": { "$in": [at, 1, 2] } });
    let ors = list(|at| doc! { "$or": [{ "i": at }, { "j": at }] });
    let either = list(|at| {
        if at % 2 == 0 {
            doc! { "i": { "$lt": at } }
        } else {
            doc! { "j": { "$gt": at } }
        }
    });
    let wide = doc! { "$or": &either };
    let schema = fields("f", &doc! { "type": "string" });
    vec![
        ("fields", fields("f", 1)),
        ("fields below a field", fields("a.b.f", 1)),
        ("all", doc! { "v": { "$all": &numbers() } }),
        ("all on an index", doc! { "i": { "$all": &numbers() } }),
        (
            "all elements",
            doc! { "v": { "$all": &list(|at| doc! { "$elemMatch": { "$gt": at } }) } },
        ),
        ("in", doc! { "n": { "$in": &numbers() } }),
        ("in on an index", doc! { "i": { "$in": &numbers() } }),
        ("not in, on an index", doc! { "i": { "$nin": &numbers() } }),
        ("in on _id", doc! { "_id": { "$in": &numbers() } }),
        ("in regexes", doc! { "n": { "$in": &regexes(PARTS) } }),
        ("in regexes on an index", doc! { "i": { "$in": &regexes(PARTS) } }),
        ("or", doc! { "$or": &list(|at| one(&format!("f{}", at % 7), at)) }),
        ("or of nothing", doc! { "$or": &list(|_| DocBuf::new()) }),
        ("or of ranges", doc! { "$or": &ranges("$gt") }),
        ("or of two indexes", wide.clone()),
        ("or of ands", doc! { "$or": &list(|at| doc! { "i": at, "j": at }) }),
        ("and of ranges", doc! { "$and": &ranges("$gt") }),
        ("and of others", doc! { "$and": &ranges("$ne") }),
        ("and of lists", doc! { "$and": &ins }),
        ("and of ors", doc! { "$and": &ors }),
        ("an or beside conditions", doc! { "$and": [&wide, &fields("f", 1)] }),
        ("ors beside each other", doc! { "$and": [&wide, &wide, &wide] }),
        ("nor", doc! { "$nor": &ranges("$lt") }),
        ("one element", doc! { "v": { "$elemMatch": &fields("f", 1) } }),
        ("expressions", doc! { "$expr": { "$and": &list(|at| doc! { "$lt": ["$n", at] }) } }),
        ("a schema", doc! { "$jsonSchema": { "properties": &schema } }),
    ]
}

fn stages() -> Vec<(&'static str, DocBuf)> {
    let sum = doc! { "$sum": "$n" };
    let names: Vec<String> = (0..PARTS).map(|at| format!("f{at}")).collect();
    let names: ArrayBuf = names.iter().map(String::as_str).collect();
    let window = doc! { "$sum": "$n", "window": { "documents": [-1, 1] } };
    let mut group = doc! { "_id": "$n" };
    group.extend(|writer| {
        for at in 0..PARTS {
            writer.append(&format!("f{at}"), &sum);
        }
    });
    let many: ArrayBuf = (0..PARTS).map(|_| "$n").collect();
    vec![
        ("project", doc! { "$project": &fields("f", 1) }),
        ("project without", doc! { "$project": &fields("f", 0) }),
        ("project paths", doc! { "$project": &fields("f", "$n") }),
        ("project below", doc! { "$project": &fields("a.b.f", 1) }),
        ("set", doc! { "$set": &fields("f", "$n") }),
        ("unset", doc! { "$unset": &names }),
        ("group", doc! { "$group": &group }),
        ("group by many", doc! { "$group": { "_id": &fields("f", "$n") } }),
        ("add", doc! { "$set": { "x": { "$add": &many } } }),
        ("a list", doc! { "$set": { "x": &many } }),
        ("a list of constants", doc! { "$set": { "x": &numbers() } }),
        ("let", doc! { "$set": { "x": { "$let": { "vars": &fields("v", "$n"), "in": 1 } } } }),
        ("replace", doc! { "$replaceWith": &fields("f", "$n") }),
        (
            "bucket",
            doc! { "$bucket": { "groupBy": "$n", "boundaries": &numbers(), "default": -1 } },
        ),
        (
            "windows",
            doc! { "$setWindowFields": { "sortBy": { "n": 1 }, "output": &fields("f", &window) } },
        ),
        (
            "fill",
            doc! { "$fill": { "sortBy": { "n": 1 }, "output": &fields("f", &doc! { "method": "locf" }) } },
        ),
        (
            "lookup",
            doc! { "$lookup": { "from": "c", "let": &fields("v", "$n"), "pipeline": [], "as": "x" } },
        ),
        (
            "union",
            doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$match": &fields("f", 1) }] } },
        ),
    ]
}

fn updates() -> Vec<(&'static str, ValueBuf)> {
    let mut all: Vec<(&'static str, ValueBuf)> = Vec::new();
    for operator in
        ["$set", "$unset", "$inc", "$min", "$push", "$addToSet", "$pull", "$setOnInsert"]
    {
        all.push((operator, one(operator, &fields("f", 1)).into()));
    }
    let renamed = DocBuf::build(|writer| {
        for at in 0..PARTS {
            writer.append(&format!("f{at}"), format!("r{at}").as_str());
        }
    });
    all.push(("$rename", one("$rename", &renamed).into()));
    all.push(("$set below", one("$set", &fields("a.b.f", 1)).into()));
    all.push((
        "$push each",
        doc! { "$push": { "w": { "$each": &numbers(), "$sort": -1 } } }.into(),
    ));
    all.push(("$addToSet each", doc! { "$addToSet": { "w": { "$each": &numbers() } } }.into()));
    all.push(("$pull in", doc! { "$pull": { "v": { "$in": &numbers() } } }.into()));
    all.push(("a replacement", fields("f", 1).into()));
    let stage = doc! { "$set": &fields("f", "$n") };
    all.push(("a pipeline", ArrayBuf::from_iter([&stage]).into()));
    all
}

/// Returns every command that has such a filter, stage or update.
fn commands() -> Vec<(String, DocBuf)> {
    let mut all = Vec::new();
    for (name, filter) in filters() {
        let find = doc! { "find": "c", "filter": &filter, "singleBatch": true };
        let partial = doc! { "key": { "z": 1 }, "name": "z", "partialFilterExpression": &filter };
        all.push((format!("find {name}"), find.clone()));
        all.push((format!("explain {name}"), doc! { "explain": &find }));
        all.push((format!("count {name}"), doc! { "count": "c", "query": &filter }));
        all.push((
            format!("match {name}"),
            doc! { "aggregate": "c", "pipeline": [{ "$match": &filter }], "cursor": {} },
        ));
        all.push((
            format!("delete {name}"),
            doc! { "delete": "u", "deletes": [{ "q": &filter, "limit": 1 }] },
        ));
        all.push((format!("partial {name}"), doc! { "createIndexes": "p", "indexes": [&partial] }));
        let statement = doc! { "q": &filter, "u": { "$set": { "zz": 1 } }, "upsert": true };
        all.push((format!("upsert {name}"), doc! { "update": "u", "updates": [&statement] }));
        all.push((format!("collections {name}"), doc! { "listCollections": 1, "filter": &filter }));
    }
    for (name, stage) in stages() {
        let aggregate = doc! { "aggregate": "c", "pipeline": [&stage], "cursor": {} };
        all.push((format!("stage {name}"), aggregate.clone()));
        all.push((format!("explain stage {name}"), doc! { "explain": &aggregate }));
        let inner = doc! { "$lookup": { "from": "c", "pipeline": [&stage], "as": "x" } };
        all.push((
            format!("inner {name}"),
            doc! { "aggregate": "c", "pipeline": [&inner], "cursor": {} },
        ));
    }
    for (name, update) in updates() {
        let statement = doc! { "q": { "_id": 1 }, "u": &update };
        all.push((format!("update {name}"), doc! { "update": "u", "updates": [&statement] }));
        let modify = doc! { "findAndModify": "u", "query": { "_id": 2 }, "update": &update };
        all.push((format!("modify {name}"), modify));
    }
    let projection = fields("f", 1);
    all.push((
        "projection".into(),
        doc! { "find": "c", "projection": &projection, "singleBatch": true },
    ));
    let wildcard = doc! { "key": { "$**": 1 }, "name": "w", "wildcardProjection": &projection };
    all.push(("wildcard".into(), doc! { "createIndexes": "p", "indexes": [&wildcard] }));
    all.push(("let".into(), doc! { "find": "c", "let": &projection, "singleBatch": true }));
    all
}

fn loaded() -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    for name in ["c", "u"] {
        let documents: Vec<DocBuf> = (0..5)
            .map(|at| doc! { "_id": at, "n": at, "i": at, "j": at, "v": [1, 2, 3], "w": [] })
            .collect();
        let documents: ArrayBuf = documents.iter().collect();
        client.works(doc! { "insert": name, "documents": &documents, "$db": "test" });
        client.works(doc! { "createIndexes": name, "$db": "test", "indexes": [
            { "key": { "i": 1 }, "name": "i" }, { "key": { "j": 1 }, "name": "j" },
            { "key": { "i": 1, "j": 1 }, "name": "ij" },
        ] });
    }
    (server, client)
}

/// `$and` of 400,000 ranges on an indexed field took minutes, and one of as many `$or`s all memory.
#[test]
fn a_request_of_many_parts_checks_its_interrupt_while_it_works_on_them() {
    let (_server, mut client) = loaded();
    let calls_max = PARTS as u64 * CALLS_A_PART;
    let mut failed = Vec::new();
    for (name, mut command) in commands() {
        command.append("$db", "test");
        let ((_, looks, most), held) = allocator::peak(|| run(&mut client, &command, 0));
        if most > calls_max {
            failed.push(format!("{name}: {most} calls between two of {looks} looks"));
        }
        if held > PARTS as usize * BYTES_A_PART {
            failed.push(format!("{name}: {held} bytes"));
        }
        for kill_at in [1, looks / 2, looks].into_iter().filter(|at| *at > 0) {
            let before = allocator::calls();
            let (_, looks, most) = run(&mut client, &command, kill_at);
            if looks > kill_at + LATE_LOOKS_MAX || most > calls_max {
                let calls = allocator::calls() - before;
                failed.push(format!(
                    "{name}: killed at {kill_at}, then {} looks, {most} of {calls} calls",
                    looks.saturating_sub(kill_at)
                ));
            }
        }
        if name.starts_with("partial") || name == "wildcard" {
            client.run(doc! { "drop": "p", "$db": "test" });
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The list of an `$in` was encoded for each count of keys and for the scan, and copied into each
/// plan, without a check: a million values took 0.3 seconds. A killed `$graphLookup` freed its keys
/// one by one.
#[test]
fn long_lists_of_values_have_checks_in_every_step() {
    const VALUES: i32 = 50_000;
    let (_server, mut client) = loaded();
    let values: ArrayBuf = (0..VALUES).map(|at| at * 2).collect();
    let filter = doc! { "i": { "$in": &values } };
    let graph = doc! { "$graphLookup": {
        "from": "c", "startWith": &values, "connectFromField": "n", "connectToField": "i", "as": "x"
    } };
    let commands = [
        doc! { "find": "c", "filter": &filter, "singleBatch": true, "$db": "test" },
        doc! { "count": "c", "query": &filter, "$db": "test" },
        doc! { "aggregate": "c", "pipeline": [{ "$match": &filter }], "cursor": {}, "$db": "test" },
        doc! { "aggregate": "c", "pipeline": [&graph], "cursor": {}, "$db": "test" },
    ];
    for command in commands {
        let (code, looks, most) = run(&mut client, &command, 0);
        assert_eq!(code, 0);
        assert!(most < VALUES as u64 / 4, "{most} calls between two of {looks} looks");
        for kill_at in [looks / 2, looks] {
            let (_, _, most) = run(&mut client, &command, kill_at);
            assert!(most < VALUES as u64 / 4, "{most} calls after the look {kill_at}");
        }
    }
}

/// 63 `$in` of 1,000 values, each over a multikey index of its own, were planned 0.5 to 0.9 seconds
/// late.
#[test]
fn planning_many_lists_over_many_indexes_has_checks() {
    const INDEXES: i32 = 24;
    const VALUES: i32 = 300;
    let (_server, mut client) = loaded();
    let names: Vec<String> = (0..INDEXES).map(|at| format!("m{at}")).collect();
    let mut document = doc! { "_id": 100 };
    for name in &names {
        document.append(name, &ArrayBuf::from_iter([1, 2]));
    }
    client.works(doc! { "insert": "c", "documents": [&document], "$db": "test" });
    let index = |name: &String| {
        let key = one(name, 1);
        doc! { "key": &key, "name": name.as_str() }
    };
    let indexes: Vec<DocBuf> = names.iter().map(index).collect();
    let indexes: ArrayBuf = indexes.iter().collect();
    client.works(doc! { "createIndexes": "c", "indexes": &indexes, "$db": "test" });
    let values: ArrayBuf = (0..VALUES).collect();
    let mut filter = DocBuf::new();
    for name in &names {
        filter.append(name, &doc! { "$in": &values });
    }
    let find = doc! { "find": "c", "filter": &filter, "$db": "test" };
    let (code, looks, most) = run(&mut client, &find, 0);
    assert_eq!(code, 0);
    assert!(looks >= 3 * INDEXES as u64, "{looks} looks");
    let calls_max = (INDEXES * VALUES * 4) as u64;
    assert!(most < calls_max, "{most} calls between two of {looks} looks");
    for kill_at in [INDEXES as u64 / 2, looks / 2] {
        let (code, ended, most) = run(&mut client, &find, kill_at);
        assert!(code == 11601 && ended < kill_at + 10, "{code} after {ended} looks");
        assert!(most < calls_max, "{most} calls after the look {kill_at}");
    }
}

#[test]
fn a_request_has_a_limited_number_of_parts() {
    let (_server, mut client) = loaded();
    let max = limits::REQUEST_PARTS_MAX as i32;
    let list: ArrayBuf = (0..max + 1).map(|_| Value::Null).collect();
    let all = doc! { "find": "c", "filter": { "v": { "$all": &list } }, "$db": "test" };
    assert_eq!(code(&client.run(all)), 2);
    let regexes = doc! { "v": { "$in": &regexes(max + 1) } };
    assert_eq!(code(&client.run(doc! { "find": "c", "filter": &regexes, "$db": "test" })), 2);
    // Values that are kept as they are do not count.
    for filter in [doc! { "v": { "$in": &list } }, doc! { "$expr": { "$in": ["$v", &list] } }] {
        client.works(doc! { "find": "c", "filter": &filter, "$db": "test" });
    }
    // Each statement of a batch is a request of its own.
    let statement = doc! { "q": &fields("f", 1), "u": { "$set": { "a": 1 } } };
    let statements: ArrayBuf = (0..max / PARTS + 1).map(|_| &statement).collect();
    client.works(doc! { "update": "c", "updates": &statements, "$db": "test" });
}

/// Returns commands that compare `other` with strings under a collation, or make keys of them. The
/// collections `plain` and `indexed` have such strings in the field `s`, and `indexed` has `index`.
fn commands_under_a_collation(other: &str, list: &ArrayBuf, index: &DocBuf) -> Vec<DocBuf> {
    let collation = doc! { "locale": "en", "strength": 3 };
    let find = |name: &str, filter: DocBuf| {
        doc! { "find": name, "filter": &filter, "collation": &collation, "singleBatch": true }
    };
    let aggregate = |stage: DocBuf| {
        let pipeline = ArrayBuf::from_iter([&stage]);
        doc! { "aggregate": "plain", "pipeline": &pipeline, "cursor": {}, "collation": &collation }
    };
    let max = doc! { "q": { "_id": 0 }, "u": { "$max": { "s": other } }, "collation": &collation };
    let delete = doc! { "q": { "s": other }, "limit": 0, "collation": &collation };
    let window = doc! { "sortBy": { "s": 1 }, "output": { "r": { "$rank": {} } } };
    let lookup = doc! { "from": "plain", "localField": "s", "foreignField": "s", "as": "x" };
    let both = doc! { "$concatArrays": [["$s"], [other]] };
    vec![
        find("plain", doc! { "s": other }),
        find("plain", doc! { "s": { "$in": list } }),
        find("plain", doc! { "$expr": { "$gt": ["$s", other] } }),
        find("indexed", doc! { "s": other }),
        find("indexed", doc! { "s": { "$gte": other } }),
        doc! { "find": "plain", "sort": { "s": 1 }, "collation": &collation, "singleBatch": true },
        doc! { "distinct": "plain", "key": "s", "collation": &collation },
        doc! { "count": "plain", "query": { "s": other }, "collation": &collation },
        aggregate(doc! { "$group": { "_id": "$s" } }),
        aggregate(doc! { "$group": { "_id": 1, "a": { "$addToSet": "$s" } } }),
        aggregate(doc! { "$group": { "_id": 1, "a": { "$max": "$s" } } }),
        aggregate(doc! { "$sortByCount": "$s" }),
        aggregate(doc! { "$bucketAuto": { "groupBy": "$s", "buckets": 2 } }),
        aggregate(doc! { "$setWindowFields": &window }),
        aggregate(doc! { "$lookup": &lookup }),
        aggregate(doc! { "$set": { "x": { "$sortArray": { "input": &both, "sortBy": 1 } } } }),
        aggregate(doc! { "$set": { "x": { "$setUnion": [&both] } } }),
        doc! { "update": "plain", "updates": [&max] },
        doc! { "delete": "plain", "deletes": [&delete] },
        doc! { "insert": "indexed", "documents": [{ "_id": 9, "s": other }] },
        doc! { "createIndexes": "plain", "indexes": [index] },
    ]
}

/// Comparing two strings of megabytes under a collation took a second without a check, as did the
/// making of a key of one. A killed insert reported the interruption as an error of its document.
#[test]
fn long_strings_under_a_collation_have_checks_in_every_step() {
    /// A check is made for each 16 KiB of a key.
    const BYTES_A_LOOK: u64 = 16 << 10;
    /// The first checks are those before the strings are read.
    const KILL_AT: u64 = 8;
    let (_server, mut client) = loaded();
    let texts = ["ab ", "AB ", "aB "].map(|part| part.repeat(60_000));
    let collation = doc! { "locale": "en", "strength": 3 };
    let index = doc! { "key": { "s": 1 }, "name": "s", "collation": &collation };
    client.works(doc! { "createIndexes": "indexed", "indexes": [&index], "$db": "test" });
    for name in ["plain", "indexed"] {
        for (id, text) in (0..).zip(&texts[..2]) {
            let document = doc! { "_id": id, "s": text.as_str() };
            client.works(doc! { "insert": name, "documents": [&document], "$db": "test" });
        }
    }
    let list: ArrayBuf = texts.iter().map(String::as_str).collect();
    let mut failed = Vec::new();
    for mut command in commands_under_a_collation(&texts[2], &list, &index) {
        command.append("$db", "test");
        let name = format!("{:.120}", format!("{command:?}"));
        let (killed, ended, _) = run(&mut client, &command, KILL_AT);
        if killed != 11601 || ended > 2 * KILL_AT {
            failed.push(format!("{name}: killed, and ended with {killed} after {ended} looks"));
        }
        let (code, looks, _) = run(&mut client, &command, u64::MAX);
        if code != 0 || looks < texts[0].len() as u64 / BYTES_A_LOOK {
            failed.push(format!("{name}: ended with {code} after {looks} looks"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Commands that sort, search and compare lists of strings, whose comparisons were not counted below
/// 64 KiB: an update with `$addToSet` answered ok after ten seconds.
fn lists_under_a_collation(list: &ArrayBuf) -> Vec<DocBuf> {
    let update = |filter: DocBuf, change: DocBuf| doc! { "q": &filter, "u": &change };
    let all = doc! { "_id": 0 };
    let push = doc! { "$push": { "v": { "$each": list, "$sort": 1 } } };
    let add = doc! { "$addToSet": { "v": { "$each": list } } };
    let pull = doc! { "$pullAll": { "v": list } };
    let filtered = doc! {
        "q": &all, "u": { "$set": { "v.$[one]": 1 } },
        "arrayFilters": [{ "one": { "$in": list } }]
    };
    let stage = |stage: DocBuf| {
        let pipeline = ArrayBuf::from_iter([&stage]);
        doc! { "aggregate": "lists", "pipeline": &pipeline, "cursor": {} }
    };
    let both = doc! { "$setIntersection": ["$v", list] };
    let kept = doc! { "$cond": [{ "$setIsSubset": [["$s"], list] }, "$$KEEP", "$$PRUNE"] };
    vec![
        doc! { "find": "lists", "filter": { "s": { "$in": list } } },
        doc! { "find": "lists", "filter": { "s": { "$nin": list } } },
        doc! { "find": "lists", "filter": { "$or": [{ "s": { "$in": list } }, { "n": 1 }] } },
        doc! { "delete": "lists", "deletes": [{ "q": { "n": 1, "s": { "$in": list } }, "limit": 0 }] },
        doc! { "update": "lists", "updates": [&update(doc! { "s": { "$nin": list } }, doc! { "$set": { "a": 1 } })] },
        doc! { "update": "lists", "updates": [&update(all.clone(), push)] },
        doc! { "update": "lists", "updates": [&update(all.clone(), add)] },
        doc! { "update": "lists", "updates": [&update(all.clone(), pull)] },
        doc! { "update": "lists", "updates": [&filtered] },
        stage(doc! { "$project": { "x": &both } }),
        stage(doc! { "$redact": &kept }),
    ]
}

#[test]
fn lists_of_strings_under_a_collation_have_checks() {
    /// The strings of the lists.
    const STRINGS: usize = 12;
    let (_server, mut client) = loaded();
    for spec in [
        doc! { "locale": "en", "numericOrdering": true },
        doc! { "locale": "en", "alternate": "shifted" },
        doc! { "locale": "en", "strength": 5 },
        doc! { "locale": "en", "backwards": true },
    ] {
        client.run(doc! { "drop": "lists", "$db": "test" });
        client.works(doc! { "create": "lists", "collation": &spec, "$db": "test" });
        let part =
            if spec.as_doc().contains("numericOrdering") { "1234567891" } else { "e\u{301} " };
        let text = |at: usize| format!("{}{}", part.repeat(250), (at * 7919) % STRINGS);
        let list: ArrayBuf =
            (0..STRINGS).map(text).collect::<Vec<_>>().iter().map(String::as_str).collect();
        let rest: ArrayBuf = (0..STRINGS)
            .map(|at| text(at * 3 + 1))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect();
        let document = doc! { "_id": 0, "s": text(1).as_str(), "v": &rest };
        for mut command in lists_under_a_collation(&list) {
            client.works(
                doc! { "delete": "lists", "deletes": [{ "q": {}, "limit": 0 }], "$db": "test" },
            );
            client.works(doc! { "insert": "lists", "documents": [&document], "$db": "test" });
            command.append("$db", "test");
            let name = format!("{spec:?} {:.80}", format!("{command:?}"));
            let (code, looks, _) = run(&mut client, &command, 0);
            assert!(code == 0 && looks >= STRINGS as u64, "{name}: {code} after {looks} looks");
            let (code, ended, _) = run(&mut client, &command, STRINGS as u64 / 2);
            assert!(code == 11601 && ended <= STRINGS as u64, "{name}: {code} after {ended} looks");
        }
    }
}

/// The keys of one document were made, encoded and sorted without a check: a tenth of a second for
/// each of the largest documents in each index.
#[test]
fn the_keys_of_one_document_have_checks() {
    const KEYS: i32 = 50_000;
    /// The largest number of keys between two checks.
    const KEYS_A_LOOK: u64 = 5000;
    let (_server, mut client) = loaded();
    let numbers: ArrayBuf = (0..KEYS).collect();
    let fields = DocBuf::build(|writer| {
        (0..KEYS).for_each(|at| {
            writer.append(&format!("f{at}"), at);
        });
    });
    let document = doc! { "_id": 1, "v": &numbers, "o": &fields };
    client.works(doc! { "insert": "k", "documents": [&document], "$db": "test" });
    let wildcard = doc! { "o.$**": 1 };
    for key in [doc! { "v": 1 }, doc! { "_id": 1, "v": 1 }, wildcard] {
        let index = doc! { "key": &key, "name": "k" };
        let command = doc! { "createIndexes": "k", "indexes": [&index], "$db": "test" };
        let (_, looks, _) = run(&mut client, &command, 0);
        assert!(looks > KEYS as u64 / KEYS_A_LOOK, "{key:?}: {looks} looks");
        client.works(doc! { "dropIndexes": "k", "index": "k", "$db": "test" });
        let (code, ended, _) = run(&mut client, &command, looks / 2);
        assert_eq!((code, ended < looks / 2 + 10), (11601, true), "{key:?}: {ended} looks");
    }
}
