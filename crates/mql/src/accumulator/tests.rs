//! Tests of the results of accumulators, and that a state that is split, saved and merged gives the
//! same result.

use super::{AccumulatorSpec, GroupRun, Table};
use crate::column::OwnedColumn;
use crate::context::{EvalContext, ParseContext, Shared};
use crate::expression::Expression;
use bumpalo::Bump;
use quire_document::literal::{parse, parse_doc, print};
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, doc, identical};

/// Accumulates the values of documents `{v: ...}`, as a whole and in two halves.
#[track_caller]
fn gives(spec: &str, values: &[&str], expected: &str) {
    let docs: Vec<DocBuf> = values.iter().map(|doc| parse_doc(doc).unwrap()).collect();
    let spec = parse(spec).unwrap();
    let spec = AccumulatorSpec::parse("f", spec.as_value(), &ParseContext::default()).unwrap();
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let accumulate = |docs: &[DocBuf]| {
        let mut state = spec.new_state(Value::Null, &cx).unwrap();
        for doc in docs {
            let inner = Bump::new();
            let cx = EvalContext::new(&inner, doc.as_doc(), &shared);
            spec.add(state.as_mut(), &cx).unwrap();
        }
        state
    };
    let whole = accumulate(&docs).result(&cx).unwrap();
    assert_eq!(print(whole), expected);
    for split in 0..=docs.len() {
        let (front, back) = docs.split_at(split);
        let mut merged = spec.new_state(Value::Null, &cx).unwrap();
        merged.merge(accumulate(front).save().as_value()).unwrap();
        merged.merge(accumulate(back).save().as_value()).unwrap();
        assert_eq!(print(merged.result(&cx).unwrap()), expected, "split at {split}");
    }
}

fn error(spec: &str) -> i32 {
    let spec = parse(spec).unwrap();
    let parsed = AccumulatorSpec::parse("f", spec.as_value(), &ParseContext::default());
    parsed.unwrap_err().code().number()
}

#[test]
fn sums() {
    gives(
        "{$sum: '$v'}".replace('\'', "\"").as_str(),
        &["{v: 1}", "{v: 2}", "{v: \"x\"}", "{}"],
        "3",
    );
    gives(r#"{$sum: "$v"}"#, &["{v: 2147483647}", "{v: 1}"], "NumberLong(\"2147483648\")");
    gives(
        r#"{$sum: "$v"}"#,
        &[r#"{v: NumberLong("9223372036854775807")}"#, "{v: 1}"],
        "9223372036854776000.0",
    );
    gives(r#"{$sum: "$v"}"#, &["{v: 0.1}", "{v: 0.2}", "{v: 0.3}"], "0.6");
    gives(
        r#"{$sum: "$v"}"#,
        &[r#"{v: NumberDecimal("1.10")}"#, "{v: 2}"],
        r#"NumberDecimal("3.10")"#,
    );
    gives("{$sum: 1}", &["{}", "{}"], "2");
    gives("{$count: {}}", &["{}", "{}"], "2");
}

#[test]
fn means_and_deviations() {
    gives(r#"{$avg: "$v"}"#, &["{v: 1}", "{v: 3}", "{v: \"x\"}"], "2.0");
    gives(r#"{$avg: "$v"}"#, &["{}"], "null");
    gives(
        r#"{$avg: "$v"}"#,
        &[r#"{v: NumberDecimal("1.5")}"#, "{v: 2}", "{v: 1.25}"],
        r#"NumberDecimal("1.583333333333333333333333333333333")"#,
    );
    gives(r#"{$stdDevPop: "$v"}"#, &["{v: 2}", "{v: 4}"], "1.0");
    gives(r#"{$stdDevSamp: "$v"}"#, &["{v: 2}"], "null");
}

#[test]
fn sums_of_longs_are_exact_until_they_are_divided() {
    let both =
        [r#"{v: NumberLong("9223372036854775807")}"#, r#"{v: NumberLong("-9223372036854775808")}"#];
    gives(r#"{$avg: "$v"}"#, &both, "-0.5");
    gives(r#"{$sum: "$v"}"#, &both, "NumberLong(\"-1\")");
    let longs = [
        r#"{v: NumberLong("4238490222011636052")}"#,
        "{v: 2147483647}",
        r#"{v: NumberLong("2784613532250790543")}"#,
        r#"{v: NumberLong("-1526472846570064320")}"#,
        "{v: 0}",
    ];
    gives(r#"{$avg: "$v"}"#, &longs, "1099326181967969300.0");
}

/// Returns the result of the expression for the array, and of the accumulator for its elements.
fn both_ways(name: &str, numbers: &[ValueBuf]) -> (ValueBuf, ValueBuf) {
    let (arena, shared) = (Bump::new(), Shared::default());
    let over_array = doc! { name: "$v" };
    let root = doc! { "v": &numbers.iter().collect::<ArrayBuf>() };
    let expression = Expression::parse(Value::from(&over_array), &ParseContext::default()).unwrap();
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    let expression = ValueBuf::new(expression.eval(&cx).unwrap().unwrap());

    let spec =
        AccumulatorSpec::parse("f", Value::from(&over_array), &ParseContext::default()).unwrap();
    let mut state = spec.new_state(Value::Null, &cx).unwrap();
    for number in numbers {
        state.add(Some(number.as_value())).unwrap();
    }
    (expression, ValueBuf::new(state.result(&cx).unwrap()))
}

fn number(random: &mut Generator) -> ValueBuf {
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -0.0];
    if random.one_in(8) {
        return ValueBuf::new(*random.pick(&special).unwrap());
    }
    random.number()
}

#[test]
fn expressions_over_arrays_agree_with_accumulators() {
    let mut random = Generator::new(17);
    for _ in 0..20_000 {
        let count = random.below(7);
        let numbers: Vec<ValueBuf> = (0..count).map(|_| number(&mut random)).collect();
        let whole =
            |number: &ValueBuf| matches!(number.as_value(), Value::Int32(_) | Value::Int64(_));
        for name in ["$sum", "$avg", "$min", "$max", "$stdDevPop", "$stdDevSamp"] {
            // Means of longs only differ by rounding errors: see `Average::exact`.
            if name == "$avg" && numbers.iter().all(whole) {
                continue;
            }
            let (expression, accumulator) = both_ways(name, &numbers);
            let same = identical(expression.as_value(), accumulator.as_value());
            assert!(same, "{name} of {numbers:?}: {expression:?} and {accumulator:?}");
        }
    }
}

#[test]
fn extremes_and_edges() {
    let docs = ["{v: 5}", "{v: null}", "{}", "{v: \"a\"}", "{v: [1]}"];
    gives(r#"{$min: "$v"}"#, &docs, "5");
    gives(r#"{$max: "$v"}"#, &docs, "[1]");
    gives(r#"{$first: "$v"}"#, &docs, "5");
    gives(r#"{$last: "$v"}"#, &["{v: 1}", "{}"], "null");
    gives(r#"{$firstN: {input: "$v", n: 3}}"#, &docs, "[5, null, null]");
    gives(r#"{$lastN: {input: "$v", n: 2}}"#, &docs, r#"["a", [1]]"#);
    gives(r#"{$minN: {input: "$v", n: 2}}"#, &docs, r#"[5, "a"]"#);
    gives(r#"{$maxN: {input: "$v", n: 2}}"#, &docs, r#"[[1], "a"]"#);
}

#[test]
fn collections_of_values() {
    let docs = ["{v: 1}", "{v: 1.0}", "{v: null}", "{}", "{v: [1, 2]}"];
    gives(r#"{$push: "$v"}"#, &docs, "[1, 1.0, null, [1, 2]]");
    gives(r#"{$addToSet: "$v"}"#, &docs, "[1, null, [1, 2]]");
    gives(r#"{$concatArrays: "$v"}"#, &["{v: [1]}", "{}", "{v: [2, [3]]}"], "[1, 2, [3]]");
    gives(r#"{$setUnion: "$v"}"#, &["{v: [1]}", "{v: [1.0, 2]}"], "[1, 2]");
    gives(
        r#"{$mergeObjects: "$v"}"#,
        &["{v: {a: 1, b: 1}}", "{v: {b: 2, c: 2}}", "{v: null}"],
        "{a: 1, b: 2, c: 2}",
    );
}

#[test]
fn rankings() {
    let docs = ["{s: 2, v: \"b\"}", "{s: 1, v: \"a\"}", "{s: 3, v: \"c\"}"];
    gives(r#"{$top: {sortBy: {s: 1}, output: "$v"}}"#, &docs, "\"a\"");
    gives(r#"{$bottom: {sortBy: {s: 1}, output: "$v"}}"#, &docs, "\"c\"");
    gives(r#"{$topN: {sortBy: {s: -1}, output: "$v", n: 2}}"#, &docs, r#"["c", "b"]"#);
    gives(r#"{$bottomN: {sortBy: {s: 1}, output: "$v", n: 2}}"#, &docs, r#"["b", "c"]"#);
}

#[test]
fn percentiles() {
    let docs = ["{v: 10}", "{v: 20}", "{v: 30}", "{v: \"x\"}"];
    gives(r#"{$median: {input: "$v", method: "approximate"}}"#, &docs, "20.0");
    gives(
        r#"{$percentile: {input: "$v", p: [0.5, 1, 0], method: "approximate"}}"#,
        &docs,
        "[20.0, 30.0, 10.0]",
    );
    gives(r#"{$percentile: {input: "$x", p: [0.5], method: "continuous"}}"#, &docs, "[null]");
}

#[test]
fn errors() {
    for (spec, code) in [
        ("1", 40234),
        ("{}", 40234),
        ("{x: 1}", 40234),
        ("{$sum: 1, $avg: 2}", 40238),
        ("{$nope: 1}", 15952),
        ("{$add: [1, 2]}", 40237),
        ("{$count: 1}", 14),
        ("{$count: []}", 40237),
        (r#"{$firstN: {input: "$v"}}"#, 5787906),
        (r#"{$topN: {sortBy: {s: 1}, output: "$v"}}"#, 5788003),
        (r#"{$percentile: {input: "$x", p: [1.5], method: "approximate"}}"#, 7750303),
        (r#"{$percentile: {input: "$x", p: [], method: "approximate"}}"#, 7750301),
        (r#"{$percentile: {input: "$x", p: [0.5], method: "invalid"}}"#, 2),
        (r#"{$percentile: {input: "$x", p: [0.5]}}"#, 40414),
    ] {
        assert_eq!(error(spec), code, "{spec}");
    }
}

#[test]
fn ranked_rows_are_reduced_to_the_best_in_any_order_of_arrival() {
    let rising: Vec<i32> = (0..50).collect();
    let falling: Vec<i32> = rising.iter().rev().copied().collect();
    let mixed: Vec<i32> = (0..50).map(|at| at * 27 % 50).collect();
    for order in [rising, falling, mixed] {
        let docs: Vec<String> =
            order.iter().map(|at| format!("{{s: {}, v: {at}}}", at / 2)).collect();
        let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
        // The sort keys come in pairs. Of two equal keys the earlier one comes first.
        let pairs = |keys: &[i32]| {
            let of_key = |key: &i32| order.iter().filter(|at| **at / 2 == *key).collect::<Vec<_>>();
            let values: Vec<&i32> = keys.iter().flat_map(of_key).collect();
            format!("{values:?}")
        };
        let spec = |name: &str| format!(r#"{{{name}: {{sortBy: {{s: 1}}, output: "$v", n: 6}}}}"#);
        gives(&spec("$topN"), &docs, &pairs(&[0, 1, 2]));
        gives(&spec("$bottomN"), &docs, &pairs(&[22, 23, 24]));
    }
}

/// Returns a column of `rows` random values.
fn random_column(random: &mut Generator, rows: usize) -> OwnedColumn {
    let mut any = random.value();
    let kind = random.below(7);
    let mut column = OwnedColumn::new();
    for _ in 0..rows {
        column.push(match kind {
            0 => return OwnedColumn::Same(any, rows),
            1 => Some(Value::Int32(random.integer() as i32)),
            2 => Some(Value::Int64(random.integer())),
            3 => Some(Value::Double(random.double())),
            4 => Some(Value::Double(random.below(10_000) as f64 / 100.0)),
            5 => Some(Value::Double(*random.pick(&[f64::NAN, f64::INFINITY, 0.1, 1e300]).unwrap())),
            _ if random.one_in(5) => None,
            _ => {
                any = random.value();
                Some(any.as_value())
            }
        });
    }
    column
}

/// States to which values were added run by run are those to which they were added one by one, bit for bit.
#[test]
fn runs_are_added_as_their_values_are() {
    let specs = [
        r#"{$sum: "$v"}"#,
        r#"{$avg: "$v"}"#,
        r#"{$min: "$v"}"#,
        r#"{$max: "$v"}"#,
        r#"{$first: "$v"}"#,
        r#"{$last: "$v"}"#,
        r#"{$push: "$v"}"#,
        r#"{$stdDevPop: "$v"}"#,
    ];
    let specs = specs.map(|spec| {
        let spec = parse(spec).unwrap();
        AccumulatorSpec::parse("f", spec.as_value(), &ParseContext::default()).unwrap()
    });
    let mut random = Generator::new(31);
    for round in 0..1500 {
        let spec = random.pick(&specs).unwrap();
        let (mut by_run, mut by_value) = (spec.new_table(None), spec.new_table(None));
        for _ in 0..5 {
            by_run.open(0);
            by_value.open(0);
        }
        for _ in 0..3 {
            let run = |random: &mut Generator| GroupRun {
                group: random.below(5) as u32,
                rows: random.below(if round % 2 == 0 { 4 } else { 20 }) as u32,
            };
            let runs: Vec<GroupRun> = (0..random.below(12)).map(|_| run(&mut random)).collect();
            let rows: u32 = runs.iter().map(|run| run.rows).sum();
            let column = random_column(&mut random, rows as usize);
            let column = column.as_column();
            by_run.add_runs(&runs, &column).unwrap();
            let groups = runs.iter().flat_map(|run| (0..run.rows).map(|_| run.group as usize));
            for (row, group) in groups.enumerate() {
                by_value.add(group, column.get(row)).unwrap();
            }
        }
        assert_eq!(by_run.bytes(), by_value.bytes(), "{}", spec.name());
        for group in 0..5 {
            let save = |table: &dyn Table| table.state(group).unwrap().save();
            let (found, expected) = (save(&*by_run), save(&*by_value));
            assert!(identical(found.as_value(), expected.as_value()), "{found:?} {expected:?}");
        }
    }
}
