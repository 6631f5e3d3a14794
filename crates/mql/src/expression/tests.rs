//! Tests of the results and error codes of each family, and of folding, batches and extraction
//! compared with plain evaluation of random expressions.

use super::random::{random_expression, random_root};
use super::{Batch, Expression, Extractor, operators};
use crate::column::Column;
use crate::context::{EvalContext, Known, ParseContext, Shared, UserVariable};
use bumpalo::Bump;
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Decimal128, DocBuf, Value, ValueBuf, array, doc, identical};
use quire_error::Result;
use std::borrow::Cow;

fn shared() -> Shared {
    Shared::new(1_700_000_000_000).with_random(|| 1 << 63)
}

/// Parses and evaluates an expression; `None` is a missing value.
fn eval_on(expression: &DocBuf, root: &DocBuf) -> Result<Option<ValueBuf>> {
    let parsed = Expression::parse(Value::from(expression), &ParseContext::default())?;
    let (arena, shared) = (Bump::new(), shared());
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    Ok(parsed.eval(&cx)?.map(ValueBuf::new))
}

fn eval(expression: DocBuf) -> Result<Option<ValueBuf>> {
    let root = doc! {
        "n": 5, "s": "text", "z": Value::Null, "a": [1, 2, 3],
        "d": { "x": 1, "y": [{ "z": 1 }, { "z": 2 }, 3] },
    };
    eval_on(&expression, &root)
}

#[track_caller]
fn gives<'v>(expression: DocBuf, wanted: impl Into<Value<'v>>) {
    let (shown, wanted) = (format!("{expression:?}"), wanted.into());
    let found = eval(expression).unwrap().unwrap_or_else(|| panic!("{shown} is missing"));
    assert!(identical(found.as_value(), wanted), "{shown} is {found:?}, not {wanted:?}");
}

#[track_caller]
fn fails(expression: DocBuf, code: i32) {
    let shown = format!("{expression:?}");
    let error = eval(expression).expect_err(&shown);
    assert_eq!(error.code().number(), code, "{shown}: {error}");
}

#[track_caller]
fn is_missing(expression: DocBuf) {
    let found = eval(expression).unwrap();
    assert!(found.is_none(), "{found:?}");
}

fn dec(text: &str) -> Decimal128 {
    Decimal128::parse(text).unwrap()
}

/// A variable that is known to be missing is a constant, like `$$REMOVE`. Constants are evaluated
/// in order, after values from the document.
#[test]
fn variables_known_to_be_missing_are_constants() {
    let mut context = ParseContext::default();
    context.variables = vec![UserVariable { name: "v".into(), known: Some(Known::Missing) }].into();
    for missing in ["$$REMOVE", "$$v"] {
        let wrong = doc! { "$setUnion": [5, missing] };
        let error = Expression::parse(Value::from(&wrong), &context).unwrap_err();
        assert_eq!(error.code().number(), 17043, "{missing}");
        let null = doc! { "$setUnion": [missing, 5] };
        let null = Expression::parse(Value::from(&null), &context).unwrap();
        assert_eq!(null.as_constant().unwrap().type_name(), "null", "{missing}");
    }
}

#[test]
fn paths_and_variables() {
    gives(doc! { "$let": { "vars": { "v": "$d" }, "in": "$$v.x" } }, 1);
    gives(doc! { "$ifNull": ["$d.y.z", 0] }, &array![1, 2]);
    gives(doc! { "$ifNull": ["$a.0", 0] }, &array![]);
    gives(doc! { "$let": { "vars": { "CURRENT": "$d" }, "in": "$x" } }, 1);
    gives(doc! { "v": "$$NOW", "w": "$none" }, &doc! { "v": Value::Date(1_700_000_000_000) });
    fails(doc! { "v": "$" }, 16872);
    fails(doc! { "v": "$a." }, 40353);
    fails(doc! { "v": "$a..b" }, 15998);
    fails(doc! { "v": "$a.$b" }, 16410);
    fails(doc! { "v": "$$none" }, 17276);
    fails(doc! { "v": "$$_" }, 9);
    fails(doc! { "v": "$$KEEP" }, 17276);
    fails(doc! { "v": "$$CLUSTER_TIME" }, 10071200);
    fails(doc! { "a.b": 1 }, 16412);
    fails(doc! { "$add": [1], "b": 1 }, 15983);
    fails(doc! { "$nonsense": 1 }, 168);
    fails(doc! { "$let": { "vars": { "A": 1 }, "in": 1 } }, 9);
    fails(doc! { "$let": { "vars": {} } }, 16877);
}

#[test]
fn arithmetic_promotes() {
    gives(doc! { "$add": [1, 2] }, 3);
    gives(doc! { "$add": [i32::MAX, 1] }, i64::from(i32::MAX) + 1);
    gives(doc! { "$add": [i64::MAX, 1] }, 9_223_372_036_854_775_808.0);
    gives(doc! { "$add": [1, dec("0.5")] }, dec("1.5"));
    gives(doc! { "$add": [Value::Date(1000), 1.5] }, Value::Date(1002));
    gives(doc! { "$add": [1, Value::Null] }, Value::Null);
    gives(doc! { "$subtract": [Value::Date(5), Value::Date(3)] }, 2i64);
    gives(doc! { "$multiply": [65_536, 65_536] }, 4_294_967_296i64);
    gives(doc! { "$divide": [1, 4] }, 0.25);
    gives(doc! { "$mod": [-7, 3] }, -1);
    gives(doc! { "$mod": [7, 2.5] }, 2.0);
    gives(doc! { "$pow": [2, 10] }, 1024);
    gives(doc! { "$pow": [2, -1] }, 0.5);
    gives(doc! { "$pow": [2, 64] }, 2f64.powi(64));
    gives(doc! { "$abs": i32::MIN }, 2_147_483_648i64);
    gives(doc! { "$round": [2.5] }, 2.0);
    gives(doc! { "$round": [1250, -2] }, 1200);
    gives(doc! { "$round": [dec("1.25"), 1] }, dec("1.2"));
    gives(doc! { "$trunc": [-2.59, 1] }, -2.5);
    gives(doc! { "$ceil": dec("2.1") }, dec("3"));
    gives(doc! { "$sqrt": 9 }, 3.0);
    gives(doc! { "$sigmoid": 0 }, 0.5);
    gives(doc! { "$bitAnd": [6, 3] }, 2);
    gives(doc! { "$bitXor": [6i64, 3] }, 5i64);
    for (expression, code) in [
        (doc! { "$add": [1, "x"] }, 14),
        (doc! { "$add": [Value::Date(1), Value::Date(1)] }, 16612),
        (doc! { "$subtract": [1, "x"] }, 14),
        (doc! { "$divide": [1, 0] }, 2),
        (doc! { "$mod": [1, 0] }, 16610),
        (doc! { "$mod": [1, dec("0")] }, 5733415),
        (doc! { "$mod": ["x", 1] }, 16611),
        (doc! { "$abs": "x" }, 28765),
        (doc! { "$abs": i64::MIN }, 28680),
        (doc! { "$abs": [1, 2] }, 16020),
        (doc! { "$round": [1, 2, 3] }, 28667),
        (doc! { "$round": [1, 101] }, 51083),
        (doc! { "$sqrt": -1 }, 28714),
        (doc! { "$ln": 0 }, 28766),
        (doc! { "$log": [1, 1] }, 28759),
        (doc! { "$log10": -1 }, 28761),
        (doc! { "$pow": [0, -1] }, 28764),
        (doc! { "$acos": 2 }, 50989),
        (doc! { "$bitNot": 1.0 }, 14),
    ] {
        fails(expression, code);
    }
}

#[test]
fn branches_run_only_when_taken() {
    gives(doc! { "$cond": [true, 1, { "$divide": [1, 0] }] }, 1);
    gives(doc! { "$cond": { "if": "$z", "then": { "$divide": [1, "$z"] }, "else": 2 } }, 2);
    gives(doc! { "$or": [{ "$divide": [1, "$none"] }, true] }, true);
    gives(doc! { "$and": [] }, true);
    gives(doc! { "$not": "$z" }, true);
    gives(doc! { "$ifNull": ["$z", "$none", 7] }, 7);
    fails(doc! { "$ifNull": ["$n", { "$divide": [1, 0] }] }, 2);
    let branches = array![{ "case": { "$gt": ["$n", 3] }, "then": "big" }];
    gives(doc! { "$switch": { "branches": &branches } }, "big");
    fails(doc! { "$switch": { "branches": [{ "case": false, "then": 1 }] } }, 40069);
    fails(doc! { "$switch": { "branches": [] } }, 40068);
    fails(doc! { "$cond": [1, 2] }, 16020);
    fails(doc! { "$ifNull": [1] }, 1257300);
    gives(doc! { "$cmp": ["$n", "$s"] }, -1);
    gives(doc! { "$eq": [1, dec("1.0")] }, true);
    gives(doc! { "$lt": ["$none", Value::Null] }, true);
}

/// Adjacent ranges use the binary search, and ranges with a gap do not. Both give the results of
/// the definition.
#[test]
fn ranges_of_a_switch_give_what_their_comparisons_give() {
    let branch = |low: i32, high: i32| {
        doc! { "case": { "$and": [{ "$gte": ["$a", low] }, { "$lt": ["$a", high] }] }, "then": low }
    };
    for bounds in [[0, 10, 10, 20], [0, 10, 11, 20]] {
        let branches = [branch(bounds[0], bounds[1]), branch(bounds[2], bounds[3])];
        let branches: ArrayBuf = branches.iter().map(Value::from).collect();
        let with_default = doc! { "$switch": { "branches": &branches, "default": "none" } };
        let without = doc! { "$switch": { "branches": &branches } };
        for (value, expected) in [
            (doc! { "a": 0 }, Some(0)),
            (doc! { "a": 9.99 }, Some(0)),
            (doc! { "a": 10i64 }, (bounds[2] == 10).then_some(10)),
            (doc! { "a": 11 }, Some(bounds[2])),
            (doc! { "a": 20 }, None),
            (doc! { "a": -1 }, None),
            (doc! { "a": f64::NAN }, None),
            (doc! { "a": Value::Null }, None),
            (doc! { "a": "text" }, None),
            (doc! {}, None),
        ] {
            let number = |number: i32| ValueBuf::new(Value::Int32(number));
            let none = ValueBuf::new(Value::String("none"));
            let given = expected.map_or(none, number);
            let found = eval_on(&with_default, &value).unwrap();
            assert_eq!(found, Some(given), "{value:?} {bounds:?}");
            let found = eval_on(&without, &value).map_err(|error| error.code().number());
            assert_eq!(found, expected.map(|n| Some(number(n))).ok_or(40069), "{value:?}");
        }
    }
}

#[test]
fn arrays() {
    gives(doc! { "$arrayElemAt": ["$a", -1] }, 3);
    is_missing(doc! { "$arrayElemAt": ["$a", 9] });
    gives(doc! { "$slice": ["$a", -2] }, &array![2, 3]);
    gives(doc! { "$slice": ["$a", 1, 1] }, &array![2]);
    gives(doc! { "$range": [5, 0, -2] }, &array![5, 3, 1]);
    gives(
        doc! { "$map": { "input": "$a", "in": { "$multiply": ["$$this", 2] } } },
        &array![2, 4, 6],
    );
    let filter = doc! { "input": "$a", "as": "e", "cond": { "$gt": ["$$e", 1] }, "limit": 1 };
    gives(doc! { "$filter": &filter }, &array![2]);
    let reduce = doc! {
        "input": "$a", "initialValue": 0, "in": { "$add": ["$$value", "$$this"] }
    };
    gives(doc! { "$reduce": &reduce }, 6);
    gives(doc! { "$concatArrays": ["$a", [4]] }, &array![1, 2, 3, 4]);
    gives(doc! { "$zip": { "inputs": ["$a", ["x"]] } }, &array![[1, "x"]]);
    gives(doc! { "$sortArray": { "input": "$a", "sortBy": -1 } }, &array![3, 2, 1]);
    gives(doc! { "$maxN": { "n": 2, "input": "$a" } }, &array![3, 2]);
    gives(doc! { "$indexOfArray": ["$a", 3] }, 2);
    gives(doc! { "$in": [2.0, "$a"] }, true);
    gives(doc! { "$setUnion": ["$a", [3, 4]] }, &array![1, 2, 3, 4]);
    gives(doc! { "$setDifference": [[3, 1, 3], [1]] }, &array![3]);
    gives(doc! { "$setEquals": ["$a", [3, 2, 1, 1]] }, true);
    gives(doc! { "$arrayToObject": [[["k", 1], ["k", 2]]] }, &doc! { "k": 2 });
    gives(doc! { "$objectToArray": { "k": 1 } }, &array![{ "k": "k", "v": 1 }]);
    gives(doc! { "$allElementsTrue": ["$a"] }, true);
    for (expression, code) in [
        (doc! { "$size": "$none" }, 17124),
        (doc! { "$range": [0, 5, 0] }, 34449),
        (doc! { "$in": [1, "$s"] }, 40081),
        (doc! { "$map": { "input": "$s", "in": 1 } }, 16883),
        (doc! { "$filter": { "input": "$a", "cond": 1, "limit": 0 } }, 327392),
        (doc! { "$reduce": { "input": "$a", "in": 1 } }, 40078),
        (doc! { "$setUnion": ["$s"] }, 17043),
        (doc! { "$setEquals": [["a"], 1] }, 5887502),
        (doc! { "$zip": { "inputs": "$a" } }, 34461),
        (doc! { "$sortArray": { "input": "$a", "sortBy": 2 } }, 2942506),
        (doc! { "$slice": ["$a", 1, 0] }, 28729),
    ] {
        fails(expression, code);
    }
}

#[test]
fn objects_and_types() {
    gives(
        doc! { "$mergeObjects": ["$d", { "x": 2 }, "$z"] },
        &doc! {
            "x": 2, "y": [{ "z": 1 }, { "z": 2 }, 3]
        },
    );
    gives(doc! { "$getField": { "field": "a.b", "input": { "$literal": { "a.b": 1 } } } }, 1);
    let literal = doc! { "field": { "$literal": "$x" }, "input": {}, "value": 1 };
    gives(doc! { "$setField": &literal }, &doc! { "$x": 1 });
    gives(doc! { "$unsetField": { "field": "x", "input": { "x": 1, "y": 2 } } }, &doc! { "y": 2 });
    gives(doc! { "$type": "$none" }, "missing");
    gives(doc! { "$type": dec("1") }, "decimal");
    gives(doc! { "$bsonSize": {} }, 5);
    gives(doc! { "$binarySize": "häh" }, 4);
    gives(doc! { "$rand": {} }, 0.5);
    fails(doc! { "$rand": 1 }, 10065);
    fails(doc! { "$meta": "nothing" }, 17308);
    fails(doc! { "$function": {} }, 115);
    fails(doc! { "$mergeObjects": [1, 2] }, 40400);
    fails(doc! { "$setField": { "field": "$x", "input": {}, "value": 1 } }, 4161108);
    // An array is none, though an array of constants becomes one.
    fails(doc! { "$setField": { "field": ["x"], "input": {}, "value": 1 } }, 4161106);
}

#[test]
fn long_loops_hold_no_more_than_their_result() {
    let numbers: ArrayBuf = (0..20_000).collect();
    let root = doc! { "a": &numbers };
    let (arena, mut shared) = (Bump::new(), shared());
    shared.memory_bytes_max = 1 << 20;
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    let body = doc! { "$size": { "$concatArrays": [["$$this"], { "$range": [0, 100] }] } };
    let sum = doc! { "$reduce": {
        "input": { "$map": { "input": "$a", "in": &body } },
        "initialValue": 0, "in": { "$add": ["$$value", "$$this"] },
    } };
    let parsed = Expression::parse(Value::from(&sum), &ParseContext::default()).unwrap();
    let result = parsed.eval(&cx).unwrap().unwrap();
    assert!(identical(result, Value::Int32(20_000 * 101)), "{result:?}");
    let range = doc! { "$range": [0, 200_000] };
    let parsed = Expression::parse(Value::from(&range), &ParseContext::default().without_folding());
    assert_eq!(parsed.unwrap().eval(&cx).unwrap_err().code().number(), 146);
}

fn same(left: &Result<Option<Value<'_>>>, right: &Result<Option<Value<'_>>>) -> bool {
    match (left, right) {
        (Ok(None), Ok(None)) => true,
        (Ok(Some(left)), Ok(Some(right))) => identical(*left, *right),
        (Err(left), Err(right)) => left.code() == right.code(),
        _ => false,
    }
}

#[test]
fn folding_batches_and_extraction_change_nothing() {
    let mut random = Generator::new(7);
    let (plain, folding) = (ParseContext::default().without_folding(), ParseContext::default());
    let (mut parsed, mut results) = (0, 0);
    for round in 0..2000 {
        let source = random_expression(&mut random, 3);
        let roots: Vec<DocBuf> = (0..6).map(|_| random_root(&mut random)).collect();
        let docs: Vec<_> = roots.iter().map(DocBuf::as_doc).collect();
        let (arena, shared) = (Bump::new(), shared());
        let cx = EvalContext::new(&arena, docs[0], &shared);
        let folded = Expression::parse(source.as_value(), &folding);
        let Ok(unfolded) = Expression::parse(source.as_value(), &plain) else {
            assert!(folded.is_err(), "{round} {source:?}");
            continue;
        };
        parsed += 1;
        let expected: Vec<_> = docs.iter().map(|doc| unfolded.eval(&cx.with_root(*doc))).collect();

        results += expected.iter().filter(|result| matches!(result, Ok(Some(_)))).count();
        let text = unfolded.to_bson();
        let again = Expression::parse(text.as_value(), &plain).unwrap();
        let mut attached = Expression::parse(source.as_value(), &plain).unwrap();
        let mut extractor = Extractor::default();
        extractor.attach(&mut attached);
        for (doc, expected) in docs.iter().zip(&expected) {
            let found = again.eval(&cx.with_root(*doc));
            assert!(
                same(expected, &found),
                "{round} {source:?} as {text:?}: {expected:?} {found:?}"
            );
            let extracted = extractor.extract(*doc, &cx).unwrap();
            let found = attached.eval(&cx.with_root(*doc).with_extracted(extracted));
            assert!(same(expected, &found), "{round} {source:?} extracted: {expected:?} {found:?}");
            if let (Ok(folded), Ok(_)) = (&folded, expected) {
                let found = folded.eval(&cx.with_root(*doc));
                assert!(
                    same(expected, &found),
                    "{round} {source:?} folded: {expected:?} {found:?}"
                );
            }
        }
        for (expression, extractor) in [(&unfolded, &Extractor::default()), (&attached, &extractor)]
        {
            let batch = Batch::new(&docs, extractor, &cx).unwrap();
            check_batch(&expected, expression.eval_batch(&batch, &cx), &source);
        }
    }
    // The counts show that enough of the random cases are meaningful.
    assert!(parsed > 1800 && results > 3000, "{parsed} parsed, {results} results");
}

/// Checks that the column equals the results of single evaluation, or fails with the error of the
/// first document that failed.
fn check_batch(
    expected: &[Result<Option<Value<'_>>>],
    column: Result<Cow<'_, Column<'_>>>,
    source: &ValueBuf,
) {
    let first_error = expected.iter().find_map(|result| result.as_ref().err());
    match (column, first_error) {
        (Ok(column), None) => {
            assert_eq!(column.len(), expected.len(), "{source:?}");
            for (row, expected) in expected.iter().enumerate() {
                let found = Ok(column.get(row));
                assert!(same(expected, &found), "{source:?} at {row}: {expected:?} {found:?}");
            }
        }
        (Err(error), Some(first)) => assert_eq!(error.code(), first.code(), "{source:?}"),
        (column, first) => panic!("{source:?}: {column:?} {first:?}"),
    }
}

/// Arithmetic, comparisons and conditions on columns of one type, of two types, with gaps, and at
/// the limits of ints, longs and doubles.
#[test]
fn columns_are_exact() {
    let mut random = Generator::new(21);
    for round in 0..2000 {
        let names = ["$add", "$subtract", "$multiply", "$divide", "$eq", "$lt", "$gte", "$cond"];
        let name = *random.pick(&names).unwrap();
        let operand = |random: &mut Generator, path: &str| match random.below(3) {
            0 => typed_value(random, round % 7),
            _ => ValueBuf::new(path),
        };
        let (a, b) = (operand(&mut random, "$a"), operand(&mut random, "$c.b"));
        let source: ValueBuf = match name {
            "$cond" => doc! { "$cond": [{ "$gt": [&a, &b] }, "$a", { "$add": [&b, 1] }] }.into(),
            _ => doc! { name: [{ "$add": [&a, 0] }, &b] }.into(),
        };
        let source = if random.one_in(3) {
            doc! { name: [&a, &b, &b] }
        } else {
            source_doc(source)
        };
        let source = ValueBuf::from(source);
        let Ok(mut expression) =
            Expression::parse(source.as_value(), &ParseContext::default().without_folding())
        else {
            continue;
        };
        let other = if random.one_in(3) { random.below(7) } else { round % 7 };
        let roots: Vec<DocBuf> = (0..random.below(9))
            .map(|_| {
                let a = typed_value(&mut random, round % 7);
                let b = typed_value(&mut random, other);
                match random.below(40) {
                    0 => doc! { "a": &a },
                    1 => doc! { "a": &b, "c": [{ "b": &b }] },
                    _ => doc! { "z": 1, "c": { "b": &b }, "a": &a, "aa": 1 },
                }
            })
            .collect();
        let docs: Vec<_> = roots.iter().map(DocBuf::as_doc).collect();
        let (arena, shared) = (Bump::new(), shared());
        let cx = EvalContext::new(&arena, quire_document::Doc::empty(), &shared);
        let mut extractor = Extractor::default();
        extractor.attach(&mut expression);
        let expected: Vec<_> =
            docs.iter().map(|doc| expression.eval(&cx.with_root(*doc))).collect();
        let batch = Batch::new(&docs, &extractor, &cx).unwrap();
        check_batch(&expected, expression.eval_batch(&batch, &cx), &source);
    }
}

fn source_doc(source: ValueBuf) -> DocBuf {
    source.as_value().as_document().unwrap().to_owned()
}

/// Returns a value of one of seven types.
fn typed_value(random: &mut Generator, kind: u64) -> ValueBuf {
    let word = random.below(1 << 62) as i64;
    match kind {
        0 => ValueBuf::new(word as i32 % 10),
        1 => ValueBuf::new(*random.pick(&[0, 1, -1, i32::MAX, i32::MIN, 65_536]).unwrap()),
        2 => {
            ValueBuf::new(*random.pick(&[0, 3, -3, i64::MAX, i64::MIN, 1 << 53, 1 << 32]).unwrap())
        }
        3 => {
            let numbers = [0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, 9007199254740993.0, 1e300];
            ValueBuf::new(*random.pick(&numbers).unwrap())
        }
        4 => ValueBuf::new(Value::Date(word % 1000)),
        5 => ValueBuf::new(*random.pick(&["", "a", "b", "a\u{0}"]).unwrap()),
        _ => ValueBuf::new(word % 2 == 0),
    }
}

#[test]
fn the_whole_manual_is_there() {
    let known: Vec<_> = operators().map(|operator| operator.name).collect();
    assert!(known.len() > 100, "{}", known.len());
    let mut random = Generator::new(3);
    for operator in operators() {
        // For any argument the result is a value or an error, and never a panic.
        for _ in 0..20 {
            let argument = random.value();
            let name = operator.name;
            drop(eval(doc! { name: &argument }));
            drop(eval(doc! { name: ["$a", "$n"] }));
            drop(eval(doc! { name: [&argument, "$n", 1] }));
        }
    }
}

/// A view relies on this property: an operator that fails for a value would reveal a hidden value
/// (`can_fail`).
#[test]
fn total_operators_have_a_result_for_any_values() {
    let mut random = Generator::new(23);
    let total: Vec<_> = operators().filter(|operator| operator.total).collect();
    assert!(total.len() > 10);
    for operator in total {
        let name = operator.name;
        let expression = match operator.arity {
            super::Arity::Exactly(1) => doc! { name: ["$a"] },
            _ => doc! { name: ["$a", "$b"] },
        };
        for _ in 0..2000 {
            let mut root = DocBuf::new();
            for name in ["a", "b"] {
                if !random.one_in(8) {
                    root.append(name, &random.value());
                }
            }
            let found = eval_on(&expression, &root);
            assert!(found.is_ok_and(|value| value.is_some()), "{expression:?} on {root:?}");
        }
    }
    let can_fail = |expression: DocBuf| {
        let value = Value::from(expression.as_doc());
        Expression::parse(value, &ParseContext::default()).unwrap().can_fail()
    };
    assert!(!can_fail(doc! { "$and": [{ "$gt": ["$a", 1] }, { "$not": "$$ROOT.b" }] }));
    assert!(can_fail(doc! { "$and": [{ "$gt": [{ "$toInt": "$a" }, 1] }] }));
    assert!(can_fail(doc! { "$cond": [{ "$divide": [1, "$a"] }, 1, 2] }));
}
