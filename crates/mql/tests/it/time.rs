//! Operations that take long within one document check the interrupt. Work is counted instead of
//! time: the interrupt is that of a killed operation, so an operation without a check succeeds.

use bumpalo::Bump;
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc};
use quire_error::{Error, ErrorCode};
use quire_mql::collation::{Collation, as_collator};
use quire_mql::context::{InterruptCheck, interruptible};
use quire_mql::sort::SortPattern;
use quire_mql::stage::{Group, Transform, Transforms, find_stage, parse_pipeline};
use quire_mql::{EvalContext, Expression, Filter, ParseContext, Shared, Update, UpdateSpec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn killed() -> Shared {
    let check = || Err(Error::new(ErrorCode::Interrupted, "operation was interrupted"));
    Shared::default().with_interrupt(Arc::new(check))
}

/// Returns a document with an array `v` of 100,000 unordered numbers, an array `d` of as many
/// documents, and a text `t` of a megabyte.
fn input() -> DocBuf {
    let numbers: ArrayBuf = (0..100_000).map(|at| at * 7919 % 100_003).collect();
    let documents: ArrayBuf = (0..100_000)
        .map(|at| ValueBuf::from(doc! { "x": at }))
        .collect::<Vec<_>>()
        .iter()
        .collect();
    doc! { "v": &numbers, "d": &documents, "t": "ab".repeat(500_000).as_str() }
}

fn assert_interrupted<T>(what: &str, result: quire_error::Result<T>) {
    match result {
        Ok(_) => panic!("{what} did not look at the interrupt"),
        Err(error) => assert_eq!(error.code(), ErrorCode::Interrupted, "{what}: {error}"),
    }
}

#[test]
fn expressions_over_one_large_array_are_interrupted() {
    let root = input();
    for expression in [
        doc! { "$sortArray": { "input": "$v", "sortBy": 1 } },
        doc! { "$sortArray": { "input": "$d", "sortBy": { "x": -1 } } },
        doc! { "$setUnion": ["$v", "$v"] },
        doc! { "$setIntersection": ["$v", "$v"] },
        doc! { "$setDifference": ["$v", ["$v"]] },
        doc! { "$setIsSubset": ["$v", "$v"] },
        doc! { "$maxN": { "input": "$v", "n": 3 } },
        doc! { "$reduce": { "input": "$v", "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } },
        doc! { "$filter": { "input": "$v", "cond": { "$eq": ["$$this", -1] } } },
        doc! { "$size": { "$concatArrays": ["$v", "$v", "$v", "$d", "$d", "$d"] } },
        doc! { "$zip": { "inputs": ["$v", "$v"] } },
        doc! { "$add": [{ "$size": "$v" }, { "$size": "$v" }] },
    ] {
        let what = format!("{expression:?}");
        let value = Value::Document(expression.as_doc());
        let parsed = Expression::parse(value, &ParseContext::default()).unwrap();
        let (arena, shared) = (Bump::new(), killed());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        assert_interrupted(&what, parsed.eval(&cx).map(|value| value.is_some()));
    }
}

/// 50,000 operators on an array of a million numbers continued for minutes after they were killed,
/// because only loops counted as work.
#[test]
fn many_operators_that_read_one_large_value_are_interrupted() {
    let root = input();
    for operator in [
        doc! { "$eq": ["$v", "$v"] },
        doc! { "$lte": ["$t", "$t"] },
        doc! { "$add": [1, { "$max": "$v" }] },
        doc! { "$add": [1, { "$sum": "$v" }] },
        doc! { "$add": [1, { "$size": "$v" }] },
        doc! { "$add": [1, { "$last": "$v" }] },
        doc! { "$not": { "$in": [-1, "$v"] } },
        doc! { "$indexOfArray": ["$v", -1] },
        doc! { "$arrayElemAt": ["$v", 99_999] },
        doc! { "$not": { "$allElementsTrue": "$v" } },
        doc! { "$add": [1, { "$strLenCP": "$t" }] },
        doc! { "$strLenCP": { "$substrCP": ["$t", 999_990, 5] } },
        doc! { "$indexOfCP": ["$t", "c"] },
        doc! { "$not": { "$strcasecmp": ["$t", "$t"] } },
        doc! { "$not": { "$regexMatch": { "input": "$t", "regex": "c" } } },
        doc! { "$convert": { "input": "$t", "to": "decimal", "onError": 1 } },
        doc! { "$dateFromString": { "dateString": "$t", "onError": 1 } },
        doc! { "$toHashedIndexKey": "$v" },
        doc! { "$not": "$$ROOT.z" },
        doc! { "$isArray": "$d.z" },
        doc! { "$ne": [{ "$getField": { "field": "z", "input": "$$ROOT" } }, 1] },
    ] {
        let operators: ArrayBuf = (0..200).map(|_| &operator).collect();
        let expression = doc! { "$and": &operators };
        let value = Value::Document(expression.as_doc());
        let parsed = Expression::parse(value, &ParseContext::default()).unwrap();
        let (arena, shared) = (Bump::new(), killed());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        assert_interrupted(&format!("{operator:?}"), parsed.eval(&cx).map(|value| value.is_some()));
    }
}

/// The operators may have any position in the tree.
#[test]
fn a_tree_of_operators_over_one_large_value_is_interrupted() {
    let root = input();
    let leaf = ValueBuf::new(&doc! { "$strLenCP": "$t" });
    let pairs = |name: &str| {
        let pair = |below: &ValueBuf| doc! { name: [below.as_value(), below.as_value()] };
        (0..8).fold(leaf.clone(), |below, _| ValueBuf::new(&pair(&below)))
    };
    let chosen = (0..8).fold(leaf.clone(), |below, _| {
        let test = doc! { "$eq": [below.as_value(), -1] };
        let choice = doc! { "if": &test, "then": 0, "else": below.as_value() };
        ValueBuf::new(&doc! { "$cond": &choice })
    });
    let fields = DocBuf::build(|writer| {
        (0..200).for_each(|at| {
            writer.append(&format!("f{at}"), leaf.as_value());
        });
    });
    let items: Vec<Value<'_>> = vec![leaf.as_value(); 200];
    let items: ArrayBuf = items.into_iter().collect();
    for tree in [
        pairs("$add"),
        pairs("$ifNull"),
        chosen,
        ValueBuf::new(&fields),
        ValueBuf::new(&items),
        ValueBuf::new(&doc! { "$let": { "vars": { "x": "$t" }, "in": &items } }),
    ] {
        let parsed = Expression::parse(tree.as_value(), &ParseContext::default()).unwrap();
        let (arena, shared) = (Bump::new(), killed());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        assert_interrupted("a tree", parsed.eval(&cx).map(|value| value.is_some()));
        // Its BSON shows no checkpoint.
        assert!(!format!("{:?}", parsed.to_bson()).contains("heckpoint"));
    }
}

/// A stage with many short expressions.
#[test]
fn many_fields_of_one_stage_are_interrupted() {
    let root = input();
    let fields = DocBuf::build(|writer| {
        (0..200).for_each(|at| {
            writer.append(&format!("f{at}"), Value::Document(doc! { "$strLenCP": "$t" }.as_doc()));
        });
    });
    let row = find_stage("$project").expect("$project is a stage");
    let parsed = Transform::parse(row, Value::Document(fields.as_doc()), &ParseContext::default());
    let mut stages = Transforms::default();
    stages.push(parsed.unwrap().unwrap());
    let (arena, shared) = (Bump::new(), killed());
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    assert_interrupted("$project", stages.apply(&cx).map(|_| ()));

    let group = DocBuf::build(|writer| {
        writer.append("_id", Value::Null);
        (0..200).for_each(|at| {
            let sum = doc! { "$sum": { "$strLenCP": "$t" } };
            writer.append(&format!("f{at}"), Value::Document(sum.as_doc()));
        });
    });
    let group = Group::parse(Value::Document(group.as_doc()), &ParseContext::default()).unwrap();
    let values = group.fields().iter().try_for_each(|(_, spec)| spec.value(&cx).map(|_| ()));
    assert_interrupted("$group", values);
}

/// Each field walked over all variables to measure what it may read: 40,000 fields with as many
/// variables in a `let` took three seconds between two checks.
#[test]
fn few_fields_with_very_many_variables_are_interrupted() {
    let root = doc! { "n": 1, "t": "x".repeat(10_000).as_str() };
    let values = vec![Some(Value::Int32(1)); 20_000];
    let (arena, shared) = (Bump::new(), killed());
    let cx = EvalContext::new(&arena, root.as_doc(), &shared).with_variables(&values);
    let fields = DocBuf::build(|writer| {
        (0..100).for_each(|at| {
            writer.append(&format!("f{at}"), "$n");
        });
    });
    let row = find_stage("$set").expect("$set is a stage");
    let parsed = Transform::parse(row, Value::Document(fields.as_doc()), &ParseContext::default());
    let mut stages = Transforms::default();
    stages.push(parsed.unwrap().unwrap());
    assert_interrupted("$set", stages.apply(&cx).map(|_| ()));

    let numbers: ArrayBuf = (0..100).collect();
    let map = doc! { "$map": { "input": &numbers, "in": { "$add": ["$$this", "$n"] } } };
    let map = Expression::parse(Value::Document(map.as_doc()), &ParseContext::default()).unwrap();
    assert_interrupted("$map", map.eval(&cx).map(|value| value.is_some()));
}

/// A projection set fields in each element even after memory had been refused: half a minute for a
/// result that was known after a second.
#[test]
fn fields_of_each_element_are_interrupted() {
    let fields = DocBuf::build(|writer| {
        (0..1000).for_each(|at| {
            writer.append(&format!("v.f{at}"), at);
        });
    });
    let row = find_stage("$set").expect("$set is a stage");
    let parsed = Transform::parse(row, Value::Document(fields.as_doc()), &ParseContext::default());
    let mut stages = Transforms::default();
    stages.push(parsed.unwrap().unwrap());
    let (root, arena, shared) = (input(), Bump::new(), killed());
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    assert_interrupted("$set", stages.apply(&cx).map(|_| ()));
}

#[test]
fn filters_over_one_large_array_are_interrupted() {
    let root = input();
    let clauses: ArrayBuf = (0..1000)
        .map(|at| ValueBuf::from(doc! { "v": -1 - at }))
        .collect::<Vec<_>>()
        .iter()
        .collect();
    for query in [
        doc! { "v": -1 },
        doc! { "v": { "$all": [1, 2, -1] } },
        doc! { "d.x": -1 },
        doc! { "v": { "$elemMatch": { "$lt": 0 } } },
        doc! { "d": { "$elemMatch": { "x": -1 } } },
        doc! { "$or": &clauses },
        doc! { "$nor": &clauses },
        doc! { "$jsonSchema": { "properties": { "v": { "items": { "bsonType": "int" } } } } },
    ] {
        let filter = Filter::parse(query.as_doc(), &ParseContext::default()).unwrap();
        let (arena, shared) = (Bump::new(), killed());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        assert_interrupted(
            &format!("{:.100}", format!("{query:?}")),
            filter.matches(root.as_doc(), &cx),
        );
    }
}

#[test]
fn array_filters_over_one_large_array_are_interrupted() {
    let (root, update, filter) = (input(), doc! { "$set": { "v.$[e]": 0 } }, doc! { "e": -1 });
    let filters = [filter.as_doc()];
    let update = Value::Document(update.as_doc());
    let spec = UpdateSpec { update, array_filters: &filters, multi: false };
    let parsed = Update::parse(spec, &ParseContext::default()).unwrap();
    let (arena, shared) = (Bump::new(), killed());
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    assert_interrupted("$[e]", parsed.apply(root.as_doc(), None, &cx, &mut Vec::new()));
}

/// These took quadratic time. The test ends in time because they no longer do.
#[test]
fn searching_for_a_long_text_takes_linear_time() {
    let (text, find) = ("a".repeat(2_000_000), format!("{}b", "a".repeat(1_000_000)));
    let others: String = (0x4e00..0x9e00).filter_map(char::from_u32).collect();
    let root = doc! { "t": text.as_str(), "f": find.as_str(), "c": others.as_str() };
    for (expression, wanted) in [
        (doc! { "$indexOfCP": ["$t", "$f"] }, -1),
        (doc! { "$indexOfBytes": ["$t", "$f"] }, -1),
        (doc! { "$indexOfCP": ["$f", "b", 10] }, 1_000_000),
        (doc! { "$indexOfCP": ["$f", "b", 0, 1_000_000] }, -1),
        (doc! { "$indexOfCP": ["日本語日本", "本", 2] }, 4),
        (
            doc! { "$strLenCP": { "$trim": { "input": "$t", "chars": { "$concat": ["$c", "a"] } } } },
            0,
        ),
    ] {
        let value = Value::Document(expression.as_doc());
        let parsed = Expression::parse(value, &ParseContext::default()).unwrap();
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        let found = parsed.eval(&cx).unwrap().and_then(|value| value.as_number()?.exact_i64());
        assert_eq!(found, Some(wanted), "{:.100}", format!("{expression:?}"));
    }
}

/// Each of thousands of constants was evaluated up to the limit on its memory, with looks at a
/// budget of their own in place of the interrupt: 23 s for a request of 1 MB.
#[test]
fn folding_constants_ends_with_the_request_and_is_given_up() {
    let large = doc! { "$eq": [{ "$size": { "$range": [0, 10_000_000] } }, -1] };
    let branch = doc! { "case": &large, "then": 1 };
    let branches: ArrayBuf = (0..3000).map(|_| &branch).collect();
    let switch = ValueBuf::from(doc! { "$switch": { "branches": &branches, "default": 2 } });
    let looks = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&looks);
    let mut context = ParseContext::default();
    context.interrupt = Some(Arc::new(move || {
        seen.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }));
    assert!(Expression::parse(switch.as_value(), &context).is_ok());
    // Of the looks 256 are those of the budget; the others fall to parsing and simplifying.
    let looks = looks.load(Ordering::Relaxed);
    assert!((200..600).contains(&looks), "{looks}");
    context.interrupt = Some(Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed"))));
    assert_interrupted("folding", Expression::parse(switch.as_value(), &context));
}

/// A request with half a million parts continued for seconds before its first document was read.
#[test]
fn parsing_is_interrupted() {
    let killed = || Err(Error::new(ErrorCode::Interrupted, "killed"));
    let mut context = ParseContext::default();
    context.interrupt = Some(Arc::new(killed));
    let numbers: ArrayBuf = (0..10_000).collect();
    let branches: ArrayBuf =
        (0..10_000).map(|at| doc! { "a": at }).collect::<Vec<_>>().iter().collect();
    let fields = DocBuf::build(|writer| {
        (0..10_000).for_each(|at| {
            writer.append(&format!("f{at}"), 1);
        });
    });
    for filter in [
        doc! { "a": { "$in": &numbers } },
        doc! { "a": { "$nin": &numbers } },
        doc! { "a": { "$all": &numbers } },
        doc! { "$or": &branches },
        doc! { "a": { "$elemMatch": { "$nor": &branches } } },
        doc! { "$expr": { "$in": ["$a", &numbers] } },
        fields.clone(),
    ] {
        assert_interrupted("a filter", Filter::parse(filter.as_doc(), &context));
    }
    for (stage, operand) in [
        ("$bucket", doc! { "groupBy": "$a", "boundaries": &numbers }),
        ("$project", fields.clone()),
        ("$addFields", fields.clone()),
        ("$group", doc! { "_id": &numbers }),
    ] {
        let stage_doc = doc! { stage: &operand };
        let stages = [Value::Document(stage_doc.as_doc())];
        assert_interrupted(stage, parse_pipeline(stages.into_iter(), &context));
    }
    let spec = doc! { "$set": &fields };
    let update = Value::Document(spec.as_doc());
    let spec = UpdateSpec { update, array_filters: &[], multi: false };
    assert_interrupted("an update", Update::parse(spec, &context));
}

/// The steps after the parsing of each name, which list all names, had no check.
#[test]
fn a_long_unset_is_interrupted_between_its_steps() {
    let mut context = ParseContext::default();
    context.interrupt = Some(Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed"))));
    // Parsing these names alone is less work than there is between two checks.
    let names: Vec<String> = (0..500).map(|at| format!("f{at}")).collect();
    let names: ArrayBuf = names.iter().map(String::as_str).collect();
    let stage = doc! { "$unset": &names };
    let stages = [Value::Document(stage.as_doc())];
    assert_interrupted("$unset", parse_pipeline(stages.into_iter(), &context));
}

/// An update wrote a quarter of a million fields without a check.
#[test]
fn an_update_of_many_fields_is_interrupted_while_it_writes_them() {
    for (operator, value) in [("$set", Value::Int32(1)), ("$unset", Value::String(""))] {
        let fields = DocBuf::build(|writer| {
            (0..10_000).for_each(|at| {
                writer.append(&format!("f{at}"), value);
            });
        });
        let operators = doc! { operator: &fields };
        let update = Value::Document(operators.as_doc());
        let spec = UpdateSpec { update, array_filters: &[], multi: false };
        let parsed = Update::parse(spec, &ParseContext::default()).unwrap();
        let (arena, shared, root) = (Bump::new(), killed(), doc! { "_id": 1 });
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        assert_interrupted(operator, parsed.apply(root.as_doc(), None, &cx, &mut Vec::new()));
    }
}

/// A comparison of two strings of megabytes took a second without a check. The `Shared` of these
/// evaluations has no interrupt, so the checks are those of the collation.
#[test]
fn long_strings_under_a_collation_are_interrupted() {
    let collation = doc! { "locale": "de", "strength": 3 };
    let collation = Collation::parse(collation.as_doc()).unwrap();
    let shared = Shared::default().with_collator(as_collator(collation.as_ref()));
    let mut context = ParseContext::default();
    context.collator = as_collator(collation.as_ref());
    let (lower, upper) = ("ab ".repeat(30_000), "AB ".repeat(30_000));
    let texts = ArrayBuf::from_iter([lower.as_str(), upper.as_str()]);
    let root = doc! { "s": lower.as_str(), "v": &texts };
    let killed: Arc<dyn InterruptCheck> =
        Arc::new(|| Err(Error::new(ErrorCode::Interrupted, "killed")));
    let arena = Bump::new();
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);

    for expression in [
        doc! { "$eq": ["$s", upper.as_str()] },
        doc! { "$in": [upper.as_str(), ["$s"]] },
        doc! { "$max": "$v" },
        doc! { "$maxN": { "input": "$v", "n": 1 } },
        doc! { "$sortArray": { "input": "$v", "sortBy": 1 } },
        doc! { "$setUnion": ["$v"] },
        doc! { "$indexOfArray": [["$s"], upper.as_str()] },
    ] {
        let value = Value::Document(expression.as_doc());
        let parsed = Expression::parse(value, &context).unwrap();
        let evaluated = interruptible(&killed, || parsed.eval(&cx).map(|value| value.is_some()));
        assert_interrupted(&format!("{:.20}", format!("{expression:?}")), evaluated);
        assert!(parsed.eval(&cx).is_ok());
    }
    for query in [
        doc! { "s": upper.as_str() },
        doc! { "s": { "$gt": upper.as_str() } },
        doc! { "s": { "$in": [1, upper.as_str()] } },
        doc! { "$expr": { "$lt": ["$s", upper.as_str()] } },
    ] {
        let filter = Filter::parse(query.as_doc(), &context).unwrap();
        let matched = interruptible(&killed, || filter.matches(root.as_doc(), &cx));
        assert_interrupted(&format!("{:.20}", format!("{query:?}")), matched);
    }
    let long_list = doc! { "s": { "$in": &texts } };
    let parsed = interruptible(&killed, || Filter::parse(long_list.as_doc(), &context));
    assert_interrupted("the order of an $in", parsed);

    let pattern = SortPattern::parse(doc! { "v": 1 }.as_doc(), &context).unwrap();
    let key = interruptible(&killed, || pattern.key(root.as_doc(), &cx).map(|_| ()));
    assert_interrupted("the smallest element for a sort", key);
    let bytes = interruptible(&killed, || {
        pattern.append_bytes(&[Value::String(&lower)], &mut Vec::new());
        Ok(())
    });
    assert_interrupted("the bytes of a sort key", bytes);
    let hashed = interruptible(&killed, || {
        Ok(quire_document::hash_of(Value::String(&lower), cx.collator()))
    });
    assert_interrupted("a hash", hashed);
    for operator in ["$min", "$max"] {
        let operators = doc! { operator: { "s": upper.as_str() } };
        let update = Value::Document(operators.as_doc());
        let spec = UpdateSpec { update, array_filters: &[], multi: false };
        let parsed = Update::parse(spec, &context).unwrap();
        let applied =
            interruptible(&killed, || parsed.apply(root.as_doc(), None, &cx, &mut Vec::new()));
        assert_interrupted(operator, applied);
    }
}
