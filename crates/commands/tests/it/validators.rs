//! Validators: no command that writes gets a document past one, and the levels differ only as
//! documented. Also what recorded replies cannot show: lines of the log, the clock, a restart.

use crate::transactions::{commit, within};
use crate::{Client, Lines, Server, at, code, number, text};
use quire_document::literal::print;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, doc};
use quire_storage::rng::Rng;
use std::collections::BTreeMap;

/// The collections of a round: without a validator, with a strict one, and with a moderate one.
const NAMES: [&str; 3] = ["free", "strict", "moderate"];

/// The ids of the documents of a round.
const IDS: u64 = 6;

type Docs = BTreeMap<i32, DocBuf>;

/// Returns the validator of the rounds: `n` is a whole number that is not negative.
fn validator() -> DocBuf {
    doc! { "$jsonSchema": {
        "required": ["n"],
        "properties": { "n": { "bsonType": "int", "minimum": 0 } }
    } }
}

/// Returns true if a document complies with [`validator`].
fn complies(doc: Doc<'_>) -> bool {
    matches!(doc.get("n"), Some(Value::Int32(0..)))
}

fn random_value(rng: &mut Rng) -> Value<'static> {
    match rng.below(5) {
        0 => Value::Int32(-1),
        1 => Value::String("x"),
        2 => Value::Double(1.5),
        _ => Value::Int32(rng.below(100) as i32),
    }
}

/// Returns a document, which in half of the cases complies.
fn random_doc(rng: &mut Rng, id: i32) -> DocBuf {
    let mut doc = doc! { "_id": id };
    if !rng.one_in(8) {
        doc.append("n", random_value(rng));
    }
    doc.append("m", rng.below(3) as i32);
    doc
}

fn random_id(rng: &mut Rng) -> i32 {
    rng.below(IDS) as i32
}

/// What an update does: `u`, and true if it may change several documents.
struct Change {
    u: ValueBuf,
    may_be_multi: bool,
}

fn random_change(rng: &mut Rng) -> Change {
    let value = random_value(rng);
    let operators = match rng.below(7) {
        0 => doc! { "$set": { "n": value } },
        1 => doc! { "$inc": { "n": (rng.below(5) as i32 - 3) } },
        2 => doc! { "$unset": { "n": "" }, "$set": { "m": 7 } },
        3 => doc! { "$rename": { "m": "n" } },
        4 => doc! { "$set": { "m": (rng.below(50) as i32) } },
        5 => {
            let replacement = doc! { "n": value, "r": true };
            return Change { u: ValueBuf::from(replacement), may_be_multi: false };
        }
        _ => {
            let stages = doc! { "u": [{ "$set": { "n": value } }, { "$set": { "p": "$n" } }] };
            return Change { u: ValueBuf::new(stages.get("u").unwrap()), may_be_multi: true };
        }
    };
    Change { u: ValueBuf::from(operators), may_be_multi: true }
}

/// The kinds of a round's command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It writes at most one document.
    Single,
    /// It writes several documents, each once, one after the other, and may end in between.
    Several,
    /// It may write a document several times.
    Bulk,
    /// It replaces the whole collection or leaves it as it is.
    Out,
}

/// A command of a round, for a collection by its name.
struct Step {
    kind: Kind,
    command: Box<dyn Fn(&str) -> DocBuf>,
}

fn step(kind: Kind, command: impl Fn(&str) -> DocBuf + 'static) -> Step {
    Step { kind, command: Box::new(command) }
}

fn insert(rng: &mut Rng) -> Step {
    let count = 1 + rng.below(3);
    let docs: Vec<DocBuf> = (0..count)
        .map(|_| {
            let id = random_id(rng);
            random_doc(rng, id)
        })
        .collect();
    let ordered = rng.one_in(2);
    let kind = if count == 1 { Kind::Single } else { Kind::Several };
    step(kind, move |name| {
        let mut command = doc! { "insert": name };
        command.append("documents", &list(&docs));
        command.append("ordered", ordered);
        command
    })
}

fn list(docs: &[DocBuf]) -> ArrayBuf {
    ArrayBuf::build(|writer| {
        docs.iter().for_each(|doc| {
            writer.push(doc.as_doc());
        });
    })
}

fn update(rng: &mut Rng) -> Step {
    let (id, change, upsert) = (random_id(rng), random_change(rng), rng.one_in(3));
    let multi = change.may_be_multi && rng.one_in(2);
    let query = if multi {
        doc! { "_id": { "$gte": id } }
    } else {
        doc! { "_id": id }
    };
    let upsert = upsert && !multi;
    step(if multi { Kind::Several } else { Kind::Single }, move |name| {
        doc! {
            "update": name,
            "updates": [{ "q": &query, "u": &change.u, "multi": multi, "upsert": upsert }]
        }
    })
}

fn find_and_modify(rng: &mut Rng) -> Step {
    let (id, change, upsert, new) =
        (random_id(rng), random_change(rng), rng.one_in(3), rng.one_in(2));
    step(Kind::Single, move |name| {
        doc! {
            "findAndModify": name, "query": { "_id": id }, "update": &change.u, "upsert": upsert,
            "new": new
        }
    })
}

fn bulk_write(rng: &mut Rng) -> Step {
    let (id, other) = (random_id(rng), random_id(rng));
    let (doc, change, ordered) = (random_doc(rng, id), random_change(rng), rng.one_in(2));
    let multi = change.may_be_multi && rng.one_in(2);
    step(Kind::Bulk, move |name| {
        doc! {
            "bulkWrite": 1,
            "ops": [
                { "insert": 0, "document": &doc },
                { "update": 0, "filter": { "_id": other }, "updateMods": &change.u, "multi": multi },
                { "delete": 0, "filter": { "_id": (other + 1) } },
            ],
            "nsInfo": [{ "ns": (format!("test.{name}").as_str()) }],
            "ordered": ordered,
            "$db": "admin"
        }
    })
}

fn delete(rng: &mut Rng) -> Step {
    let id = random_id(rng);
    step(Kind::Single, move |name| {
        doc! { "delete": name, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }
    })
}

fn merge(rng: &mut Rng) -> Step {
    const MATCHED: [&str; 4] = ["replace", "merge", "keepExisting", "fail"];
    let (matched, inserts) = (MATCHED[rng.below(4) as usize], rng.one_in(2));
    let (value, below) = (ValueBuf::new(random_value(rng)), random_id(rng));
    step(Kind::Several, move |name| {
        let unmatched = if inserts { "insert" } else { "discard" };
        doc! {
            "aggregate": "source",
            "pipeline": [
                { "$match": { "_id": { "$lte": below } } },
                { "$set": { "n": { "$ifNull": ["$n", &value] } } },
                { "$merge": { "into": name, "whenMatched": matched, "whenNotMatched": unmatched } },
            ],
            "cursor": {}
        }
    })
}

fn out(rng: &mut Rng) -> Step {
    let below = random_id(rng);
    step(Kind::Out, move |name| {
        doc! {
            "aggregate": "source",
            "pipeline": [{ "$match": { "_id": { "$lte": below } } }, { "$out": name }],
            "cursor": {}
        }
    })
}

fn random_step(rng: &mut Rng) -> Step {
    match rng.below(16) {
        0..=3 => insert(rng),
        4..=7 => update(rng),
        8..=9 => find_and_modify(rng),
        10..=11 => bulk_write(rng),
        12 => delete(rng),
        13..=14 => merge(rng),
        _ => out(rng),
    }
}

/// A server with the collections of the rounds.
struct Rounds {
    client: Client,
    transactions: i64,
}

impl Rounds {
    fn new() -> Self {
        let mut client = Server::new().client(1);
        for name in [&NAMES[..], &["source"]].concat() {
            client.works(doc! { "create": name, "$db": "test" });
        }
        let mut rounds = Rounds { client, transactions: 0 };
        rounds.set_validators();
        rounds
    }

    fn set_validators(&mut self) {
        for level in &NAMES[1..] {
            let change = doc! {
                "collMod": *level, "validator": &validator(), "validationLevel": *level,
                "$db": "test"
            };
            self.client.works(change);
        }
    }

    /// Replaces the documents of a collection.
    fn fill(&mut self, name: &str, docs: &Docs) {
        let deletes = doc! {
            "delete": name, "deletes": [{ "q": {}, "limit": 0 }], "$db": "test"
        };
        self.client.works(deletes);
        let docs: Vec<DocBuf> = docs.values().cloned().collect();
        if docs.is_empty() {
            return;
        }
        let mut inserts = doc! { "insert": name, "bypassDocumentValidation": true, "$db": "test" };
        inserts.append("documents", &list(&docs));
        let reply = self.client.works(inserts);
        assert_eq!(number(&reply, "n"), Some(docs.len() as i64));
    }

    fn read(&mut self, name: &str) -> Docs {
        let reply = self.client.works(doc! { "find": name, "$db": "test" });
        let Some(Value::Array(batch)) = at(&reply, "cursor.firstBatch") else {
            panic!("{reply:?}")
        };
        let docs = batch.iter().filter_map(|value| value.as_document());
        docs.map(|doc| match doc.get("_id") {
            Some(Value::Int32(id)) => (id, doc.to_owned()),
            other => panic!("_id is {other:?}"),
        })
        .collect()
    }

    /// Runs a step on a collection, in a transaction of its own if `within_transaction`.
    fn run(&mut self, name: &str, step: &Step, bypass: bool, within_transaction: bool) {
        let mut command = (step.command)(name);
        if command.get("$db").is_none() {
            command.append("$db", "test");
        }
        if bypass && command.get("delete").is_none() {
            command.append("bypassDocumentValidation", true);
        }
        if !within_transaction {
            self.client.run(command);
            return;
        }
        self.transactions += 1;
        let number = self.transactions;
        self.client.run(within(command, (1, number), true));
        // A statement with an error has aborted the transaction.
        self.client.run(within(commit(), (1, number), false));
    }
}

/// Fails unless the step was right to leave these documents in a collection with a validator. `free`
/// has the documents that it left in the collection without one.
fn judge(
    level: &str,
    kind: Kind,
    (before, after, free): (&Docs, &Docs, &Docs),
) -> Result<(), String> {
    let exempt =
        |id: &i32| level == "moderate" && before.get(id).is_some_and(|doc| !complies(doc.as_doc()));
    if kind == Kind::Out {
        // All documents are inserted, also those that were there before.
        let all_pass = free.values().all(|doc| complies(doc.as_doc()));
        let expected = if all_pass { free } else { before };
        return if after == expected { Ok(()) } else { Err(format!("{expected:?} was expected")) };
    }
    let admissible = |(id, doc): (&i32, &DocBuf)| {
        before.get(id) == Some(doc) || complies(doc.as_doc()) || exempt(id)
    };
    if let Some((_, doc)) = after.iter().find(|entry| !admissible(*entry)) {
        return Err(format!("{} got past the validator", print(doc.as_doc())));
    }
    // A document that does not comply may have been changed again.
    if kind == Kind::Bulk {
        return Ok(());
    }
    let all_pass = free.iter().all(admissible);
    let expected = match kind {
        _ if all_pass => free,
        Kind::Several => return Ok(()),
        Kind::Single | Kind::Bulk | Kind::Out => before,
    };
    if after == expected { Ok(()) } else { Err(format!("{expected:?} was expected")) }
}

#[test]
fn no_document_gets_past_a_validator_and_the_levels_differ_only_as_documented() {
    let mut rounds = Rounds::new();
    let mut rng = Rng::new(0x7a11_da7e);
    let mut kept = [0, 0];
    for round in 0..600 {
        let mut docs = || -> Docs {
            let ids: Vec<i32> = (0..IDS as i32).filter(|_| rng.one_in(2)).collect();
            ids.into_iter().map(|id| (id, random_doc(&mut rng, id))).collect()
        };
        let (before, source) = (docs(), docs());
        rounds.fill("source", &source);
        NAMES.iter().for_each(|name| rounds.fill(name, &before));
        let (step, bypass) = (random_step(&mut rng), rng.one_in(5));
        let is_aggregate = (step.command)("x").get("aggregate").is_some();
        let within_transaction = !is_aggregate && rng.one_in(3);
        let [free, strict, moderate] = NAMES.map(|name| {
            rounds.run(name, &step, bypass, within_transaction);
            rounds.read(name)
        });
        let shown = || {
            let command = print((step.command)("c").as_doc());
            format!("round {round}: {command}, bypass {bypass}, on {before:?}, gave")
        };
        if bypass {
            assert_eq!(free, strict, "{}", shown());
            assert_eq!(free, moderate, "{}", shown());
            continue;
        }
        for (at, (level, after)) in [("strict", strict), ("moderate", moderate)].iter().enumerate()
        {
            // A transaction keeps all of its documents or none.
            let kind = match step.kind {
                Kind::Several if within_transaction => Kind::Single,
                kind => kind,
            };
            kept[at] += usize::from(*after != free);
            if within_transaction && *after != before && *after != free {
                panic!("{level}: {} {after:?}: a part of a transaction", shown());
            }
            if let Err(why) = judge(level, kind, (&before, after, &free)) {
                panic!("{level}: {} {after:?}: {why}", shown());
            }
        }
    }
    let [strict, moderate] = kept;
    assert!(moderate > 50 && strict > moderate, "refusals: strict {strict}, moderate {moderate}");
}

fn create(client: &mut Client, options: DocBuf) {
    let mut command = doc! { "create": "t" };
    for (name, value) in options.as_doc().fields() {
        command.append(name, value);
    }
    command.append("$db", "test");
    client.works(command);
}

fn put(client: &mut Client, doc: DocBuf) -> DocBuf {
    client.works(doc! { "insert": "t", "documents": [&doc], "$db": "test" })
}

#[test]
fn warnings_are_lines_of_the_log_with_the_details() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(1);
    let options = |action: &str| doc! { "validator": { "a": 1 }, "validationAction": action };
    create(&mut client, options("warn"));
    assert_eq!(number(&put(&mut client, doc! { "_id": 1, "a": 2 }), "n"), Some(1));
    assert_eq!(number(&put(&mut client, doc! { "_id": 2, "a": 1 }), "n"), Some(1));
    let [(component, logged)] = &lines.with_message("Document would fail validation")[..] else {
        panic!("one line")
    };
    assert_eq!(*component, "STORAGE");
    assert_eq!(text(logged, "namespace"), Some("test.t"));
    assert_eq!(number(logged, "document._id"), Some(1));
    assert_eq!(number(logged, "errInfo.failingDocumentId"), Some(1));
    assert_eq!(text(logged, "errInfo.details.operatorName"), Some("$eq"));

    let mut change = doc! { "collMod": "t", "validationAction": "errorAndLog" };
    change.append("$db", "test");
    client.works(change);
    let refused = put(&mut client, doc! { "_id": 3, "a": 3 });
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(121));
    assert_eq!(lines.with_message("Document failed validation").len(), 1);
    assert_eq!(lines.with_message("Document would fail validation").len(), 1);
    // A validator without details is logged with a note.
    let change = doc! {
        "collMod": "t", "validator": { "$alwaysFalse": 1 }, "validationAction": "warn", "$db": "test"
    };
    client.works(change);
    assert_eq!(number(&put(&mut client, doc! { "_id": 4 }), "n"), Some(1));
    assert_eq!(lines.with_message("Document would fail validation").len(), 2);
}

#[test]
fn now_in_a_validator_is_the_time_of_the_statement() {
    let mut client = Server::new().client(1);
    create(&mut client, doc! { "validator": { "$expr": { "$lte": ["$at", "$$NOW"] } } });
    let day = 24 * 60 * 60 * 1000;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = now.as_millis() as i64;
    let mut try_at = |id: i32, ms: i64| {
        number(&put(&mut client, doc! { "_id": id, "at": Value::Date(ms) }), "n")
    };
    assert_eq!(try_at(1, now - day), Some(1));
    assert_eq!(try_at(2, now + day), Some(0));
}

#[test]
fn a_validator_survives_a_restart() {
    let server = Server::new();
    let options = doc! {
        "validator": { "name": "é" }, "validationLevel": "moderate",
        "collation": { "locale": "fr", "strength": 1 }
    };
    create(&mut server.client(1), options);
    let shown = |server: &Server| {
        let reply = server.client(1).works(doc! { "listCollections": 1, "$db": "test" });
        let Some(Value::Document(options)) = at(&reply, "cursor.firstBatch.0.options") else {
            panic!("{reply:?}")
        };
        options.to_owned()
    };
    let before = shown(&server);
    let server = server.reopened();
    assert_eq!(shown(&server), before);
    let mut client = server.client(1);
    assert_eq!(number(&put(&mut client, doc! { "_id": 1, "name": "E" }), "n"), Some(1));
    assert_eq!(number(&put(&mut client, doc! { "_id": 2, "name": "f" }), "n"), Some(0));
}

#[test]
fn validate_counts_the_documents_that_do_not_comply() {
    let mut client = Server::new().client(1);
    create(&mut client, doc! {});
    for id in 0..5 {
        put(&mut client, doc! { "_id": id, "n": (id - 2) });
    }
    let count = |client: &mut Client| {
        let reply = client.works(doc! { "validate": "t", "$db": "test" });
        assert!(matches!(at(&reply, "valid"), Some(Value::Bool(true))));
        let Some(Value::Array(warnings)) = at(&reply, "warnings") else { panic!("{reply:?}") };
        (number(&reply, "nNonCompliantDocuments").unwrap(), warnings.iter().count())
    };
    assert_eq!(count(&mut client), (0, 0));
    let change = |level: &str| {
        doc! { "collMod": "t", "validator": &validator(), "validationLevel": level, "$db": "test" }
    };
    client.works(change("moderate"));
    assert_eq!(count(&mut client), (2, 1));
    client.works(change("off"));
    assert_eq!(count(&mut client), (0, 0));
}

#[test]
fn keywords_of_encryption_need_an_action_without_a_log_and_the_level_strict() {
    let mut client = Server::new().client(1);
    let schema = doc! { "$jsonSchema": { "properties": { "a": { "encrypt": {} } } } };
    for (option, value) in [
        ("validationAction", "warn"),
        ("validationAction", "errorAndLog"),
        ("validationLevel", "moderate"),
    ] {
        let mut refused = doc! { "create": "t", "validator": &schema, "$db": "test" };
        refused.append(option, value);
        assert_eq!(code(&client.run(refused)), 224, "{option} {value}");
    }
    create(&mut client, doc! { "validator": &schema });
    let refused = put(&mut client, doc! { "_id": 1, "a": "plain" });
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(121));
    let logs = doc! { "collMod": "t", "validationAction": "errorAndLog", "$db": "test" };
    assert_eq!(code(&client.run(logs)), 224);
}

#[test]
fn an_expression_that_fails_refuses_the_document_and_says_why() {
    let mut client = Server::new().client(1);
    create(
        &mut client,
        doc! { "validator": { "$expr": { "$gt": [{ "$divide": ["$a", "$b"] }, 1] } } },
    );
    assert_eq!(number(&put(&mut client, doc! { "_id": 1, "a": 4, "b": 2 }), "n"), Some(1));
    let refused = put(&mut client, doc! { "_id": 2, "a": 4, "b": "x" });
    let details = "writeErrors.0.errInfo.details";
    let reason = format!("{details}.reason");
    assert_eq!(text(&refused, &reason), Some("failed to evaluate aggregation expression"));
    assert!(number(&refused, &format!("{details}.details.code")).is_some_and(|code| code > 0));
}

/// Every document was refused, because the condition had no source of random numbers.
#[test]
fn a_validator_may_draw_random_numbers() {
    let server = Server::new();
    let mut client = server.client(1);
    let always = doc! { "$expr": { "$lt": [{ "$rand": {} }, 2] } };
    client.works(doc! { "create": "c", "validator": &always, "$db": "test" });
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    let never = doc! { "$expr": { "$gt": [{ "$rand": {} }, 2] } };
    client.works(doc! { "collMod": "c", "validator": &never, "$db": "test" });
    let refused = client.run(doc! { "insert": "c", "documents": [{ "_id": 2 }], "$db": "test" });
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(121));
}
