//! Accumulators: results, and that a state split in two, saved and merged gives the same.

use super::AccumulatorSpec;
use crate::context::{EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::literal::{parse, parse_doc, print};
use quire_document::{Doc, DocBuf, Value};

/// Accumulates over documents `{v: ...}`, at once and in two halves.
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
fn ranked_rows_are_cut_to_the_wanted_ones_in_any_order_of_arrival() {
    let rising: Vec<i32> = (0..50).collect();
    let falling: Vec<i32> = rising.iter().rev().copied().collect();
    let mixed: Vec<i32> = (0..50).map(|at| at * 27 % 50).collect();
    for order in [rising, falling, mixed] {
        let docs: Vec<String> =
            order.iter().map(|at| format!("{{s: {}, v: {at}}}", at / 2)).collect();
        let docs: Vec<&str> = docs.iter().map(String::as_str).collect();
        // Keys come in pairs; of equal keys the one that came first stands first.
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
