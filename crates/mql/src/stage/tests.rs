//! Tests of stages: parsing with MongoDB's error codes, and the execution of stages that work on
//! one document at a time.

use super::unwind::Position;
use super::{Lookup, Modified, Stage, StageBody, parse_pipeline, pipeline_to_bson};
use crate::context::{EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::literal::{parse, parse_doc, print};
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::Result;
use std::sync::Arc;

fn list(pipeline: &ValueBuf) -> Vec<Value<'_>> {
    pipeline.as_value().as_array().unwrap().iter().collect()
}

fn stages(pipeline: &str) -> Result<Vec<Stage>> {
    let pipeline = parse(pipeline).unwrap();
    parse_pipeline(list(&pipeline).into_iter(), &ParseContext::default())
}

/// Executes stages that work on one document at a time.
fn run(pipeline: &str, docs: &[&str]) -> Result<Vec<String>> {
    let (arena, shared) = (Bump::new(), Shared::default());
    let owned: Vec<DocBuf> = docs.iter().map(|doc| parse_doc(doc).unwrap()).collect();
    let stages = stages(pipeline)?;
    let mut docs: Vec<Doc<'_>> = owned.iter().map(DocBuf::as_doc).collect();
    for stage in &stages {
        let mut next = Vec::new();
        for doc in docs {
            let cx = EvalContext::new(&arena, doc, &shared);
            match stage {
                Stage::Transform(stage) => next.push(stage.apply(&cx)?),
                Stage::Unwind(stage) => {
                    let mut start = Some(Position::default());
                    while let Some(from) = start {
                        start = stage.for_each(&cx, from, 1, &mut |inner| {
                            next.push(Doc::from_valid_bytes(cx.bytes(inner.root.as_bytes())?));
                            Ok(())
                        })?;
                    }
                }
                Stage::Redact(stage) => next.extend(stage.apply(&cx)?),
                Stage::Match(stage) if stage.filter().matches(doc, &cx)? => next.push(doc),
                _ => {}
            }
        }
        docs = next;
    }
    Ok(docs.into_iter().map(print).collect())
}

#[track_caller]
fn gives(pipeline: &str, docs: &[&str], expected: &[&str]) {
    let expected: Vec<String> =
        expected.iter().map(|doc| print(parse_doc(doc).unwrap().as_doc())).collect();
    assert_eq!(run(pipeline, docs).unwrap(), expected);
}

#[test]
fn unwind() {
    gives(
        r#"[{$unwind: "$a"}]"#,
        &["{x: 1, a: [1, 2], y: 2}"],
        &["{x: 1, a: 1, y: 2}", "{x: 1, a: 2, y: 2}"],
    );
    gives(r#"[{$unwind: "$a"}]"#, &["{a: []}", "{a: null}", "{}", "{a: 5}"], &["{a: 5}"]);
    gives(
        r#"[{$unwind: {path: "$a.b", includeArrayIndex: "i", preserveNullAndEmptyArrays: true}}]"#,
        &["{a: {b: [7]}}", "{a: {b: []}}", "{a: {b: null}}", "{a: [{b: [1]}]}"],
        &[
            r#"{a: {b: 7}, i: NumberLong("0")}"#,
            "{a: {}, i: null}",
            "{a: {b: null}, i: null}",
            "{a: [{b: [1]}], i: null}",
        ],
    );
}

#[test]
fn redact() {
    gives(
        r#"[{$redact: {$cond: [{$eq: ["$secret", true]}, "$$PRUNE", "$$DESCEND"]}}]"#,
        &["{a: {secret: true}, b: [{secret: true}, {x: 1}, 5], c: {d: {e: 1}}}", "{secret: true}"],
        &["{b: [{x: 1}, 5], c: {d: {e: 1}}}"],
    );
}

#[test]
fn transforms() {
    gives(
        r#"[{$set: {"a.b": 1, c: {d: "$x"}}}, {$unset: ["x", "a.z"]}, {$project: {_id: 0}}]"#,
        &["{_id: 1, x: 5, a: {z: 1}}"],
        &["{a: {b: 1}, c: {d: 5}}"],
    );
    gives(r#"[{$replaceRoot: {newRoot: "$a"}}]"#, &["{a: {b: 1}}"], &["{b: 1}"]);
    assert_eq!(run(r#"[{$replaceWith: "$a"}]"#, &["{a: 1}"]).unwrap_err().code().number(), 40228);
}

#[test]
fn shorthands_and_explain() {
    let shown = print(
        pipeline_to_bson(&stages(r#"[{$count: "n"}, {$sortByCount: "$k"}]"#).unwrap()).as_array(),
    );
    assert_eq!(
        shown,
        r#"[{$group: {_id: {$const: null}, n: {$sum: {$const: 1}}}}, {$project: {n: true, _id: false}}, {$group: {_id: "$k", count: {$sum: {$const: 1}}}}, {$sort: {sortKey: {count: -1}}}]"#
    );
}

#[test]
fn changes() {
    let stages = stages(
        r#"[{$set: {"a.b": 1}}, {$limit: 1}, {$project: {x: 1, "y.z": 1}}, {$unwind: "$a"}]"#,
    )
    .unwrap();
    let paths = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    assert_eq!(stages[0].modified(), Modified::Paths(paths(&["a.b"])));
    assert_eq!(stages[1].modified(), Modified::Nothing);
    assert_eq!(stages[2].modified(), Modified::AllExcept(paths(&["_id", "x", "y.z"])));
    assert_eq!(stages[3].modified(), Modified::Paths(paths(&["a"])));
    assert!(stages[2].needs().exhaustive);
}

#[test]
fn errors() {
    for (pipeline, code) in [
        ("[5]", 14),
        ("[{}]", 40323),
        ("[{$limit: 5, $skip: 2}]", 40323),
        ("[{$nope: 1}]", 40324),
        ("[{$geoNear: {}}]", 5860400),
        ("[{$lookup: {}}]", 9),
        ("[{$lookup: {from: \"b\", pipeline: [{$out: \"c\"}], as: \"r\"}}]", 51047),
        ("[{$lookup: {from: \"b\", pipeline: [], as: \"a..b\"}}]", 15998),
        ("[{$unionWith: {pipeline: []}}]", 9),
        ("[{$unionWith: {coll: \"b\", pipeline: [{$merge: \"c\"}]}}]", 31441),
        ("[{$facet: {}}]", 40169),
        ("[{$facet: {a: [{$facet: {b: []}}]}}]", 40600),
        (
            "[{$facet: {a: [{$lookup: {from: \"b\", pipeline: [{$out: \"c\"}], as: \"r\"}}]}}]",
            51047,
        ),
        (
            "[{$facet: {a: [{$lookup: {from: \"b\", pipeline: [{$indexStats: {}}], as: \"r\"}}]}}]",
            40600,
        ),
        ("[{$graphLookup: {from: \"b\"}}]", 40105),
        ("[{$limit: 0}]", 15958),
        ("[{$limit: -1}]", 5107201),
        ("[{$skip: 1.5}]", 5107200),
        ("[{$match: 1}]", 15959),
        ("[{$match: {a: {$near: [0, 0]}}}]", 5626500),
        ("[{$count: \"\"}]", 40157),
        ("[{$count: \"_id\"}]", 9039800),
        ("[{$sortByCount: 1}]", 40149),
        ("[{$sample: {size: 0.5}}]", 28747),
        ("[{$unwind: \"a\"}]", 28818),
        ("[{$unwind: \"$$ROOT\"}]", 16410),
        ("[{$unwind: {path: \"$a\", includeArrayIndex: \"\"}}]", 28810),
        ("[{$group: {}}]", 15955),
        ("[{$group: {_id: {a: 1}}}]", 17390),
        ("[{$group: {_id: {\"a.b\": \"$v\"}}}]", 16412),
        ("[{$group: {_id: null, \"a.b\": {$sum: 1}}}]", 40235),
        ("[{$replaceRoot: {}}]", 40414),
        ("[{$replaceRoot: 1}]", 40229),
        ("[{$sort: {}}]", 15976),
        ("[{$project: {}}]", 51272),
        ("[{$unset: []}]", 31119),
        ("[{$set: 1}]", 40272),
    ] {
        assert_eq!(stages(pipeline).unwrap_err().code().number(), code, "{pipeline}");
    }
}

#[test]
fn bucket_is_a_group_by_a_switch() {
    let stages =
        stages(r#"[{$bucket: {groupBy: "$x", boundaries: [0, 10], default: "other"}}]"#).unwrap();
    assert_eq!(
        print(pipeline_to_bson(&stages).as_array()),
        r#"[{$group: {_id: {$switch: {branches: [{case: {$and: [{$gte: ["$x", {$const: 0}]}, {$lt: ["$x", {$const: 10}]}]}, then: {$const: 0}}], default: {$const: "other"}}}, count: {$sum: {$const: 1}}}}, {$sort: {sortKey: {_id: 1}}}]"#
    );
    for (spec, code) in [
        ("1", 40201),
        ("{}", 40198),
        ("{groupBy: 5}", 40202),
        (r#"{groupBy: "$x", boundaries: [1]}"#, 40192),
        (r#"{groupBy: "$x", boundaries: [1, "a"]}"#, 40193),
        (r#"{groupBy: "$x", boundaries: [1, 1]}"#, 40194),
        (r#"{groupBy: "$x", boundaries: [1, "$y"]}"#, 40191),
        (r#"{groupBy: "$x", boundaries: [0, 10], default: 5}"#, 40199),
        (r#"{groupBy: "$x", boundaries: [0, 10], output: {_id: {$sum: 1}}}"#, 15948),
        (r#"{groupBy: "$x", boundaries: [0, 10], extra: 5}"#, 40197),
    ] {
        let pipeline = format!("[{{$bucket: {spec}}}]");
        let pipeline = parse(&pipeline).unwrap();
        let error = parse_pipeline(list(&pipeline).into_iter(), &ParseContext::default());
        assert_eq!(error.unwrap_err().code().number(), code, "{spec}");
    }
}

/// Parses a `$lookup`; single quotes are used instead of double ones.
fn lookup(operands: &str) -> Arc<Lookup> {
    let spec = format!("[{{$lookup: {{from: 'f', as: 'o', {operands}}}}}]").replace('\'', "\"");
    match stages(&spec).unwrap().as_slice() {
        [Stage::Lookup(lookup)] => Arc::clone(lookup),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stage_that_varies_is_run_for_each_document() {
    let shared = "{$match: {a: 1}}";
    for varies in [
        "{$group: {_id: null, v: {$firstN: {input: '$x', n: '$$k'}}}}",
        "{$group: {_id: null, v: {$topN: {sortBy: {x: 1}, output: '$x', n: '$$k'}}}}",
        "{$bucketAuto: {groupBy: '$x', buckets: 2, output: {v: {$lastN: {input: '$x', n: '$$k'}}}}}",
        "{$setWindowFields: {sortBy: {x: 1}, output: {v: {$minN: {input: '$x', n: '$$k'}}}}}",
        "{$sample: {size: 1}}",
        "{$facet: {a: [{$sample: {size: 1}}]}}",
        "{$lookup: {from: 'g', as: 'p', pipeline: [{$sample: {size: 1}}]}}",
        "{$unionWith: {coll: 'g', pipeline: [{$sample: {size: 1}}]}}",
    ] {
        let operands = format!("let: {{k: '$n'}}, pipeline: [{shared}, {varies}]");
        let varying = lookup(&operands);
        assert!(varying.uncorrelated() < varying.pipeline.len(), "{varies}");
        let constant = operands.replace("$$k", "$$NOW");
        if constant != operands {
            let shared = lookup(&constant);
            assert_eq!(shared.uncorrelated(), shared.pipeline.len(), "{constant}");
        }
    }
}

#[test]
fn only_a_path_of_the_foreign_document_is_an_equality_of_a_lookup() {
    let of = |variable: &str, left: &str| {
        let found = lookup(&format!(
            "let: {{{variable}: '$n'}}, pipeline: [{{$match: {{$expr: {{$eq: ['{left}', '$${variable}']}}}}}}]"
        ));
        found.equality.as_ref().map(|found| found.foreign.to_string())
    };
    assert_eq!(of("k", "$a.b").as_deref(), Some("a.b"));
    assert_eq!(of("CURRENT", "$a.b"), None);
    assert_eq!(of("CURRENT", "$$ROOT.a").as_deref(), Some("a"));
}

#[test]
fn options_that_are_there_twice_are_refused() {
    for stage in [
        r#"$merge: {into: "a", into: "b"}"#,
        r#"$merge: {into: {coll: "a", coll: "b"}}"#,
        r#"$merge: {into: "a", let: null, let: {}}"#,
        r#"$out: {db: "d", coll: null, coll: "c"}"#,
        r#"$unionWith: {coll: "a", coll: "b"}"#,
        r#"$lookup: {from: "a", pipeline: [], as: "x", as: "y"}"#,
        r#"$fill: {output: {a: {value: 1}}, output: {b: {value: 1}}}"#,
        r#"$densify: {field: "a", field: "b", range: {step: 1, bounds: "full"}}"#,
        r#"$densify: {field: "a", range: {step: 1, step: 2, bounds: "full"}}"#,
        r#"$setWindowFields: {output: {}, output: {}}"#,
        r#"$replaceRoot: {newRoot: "$a", newRoot: "$b"}"#,
    ] {
        let error = stages(&format!("[{{{stage}}}]")).unwrap_err();
        assert_eq!(error.code().number(), 40413, "{stage}: {error}");
    }
}

#[test]
fn the_element_that_is_wrong_is_named() {
    for stage in [
        r#"$densify: {field: "a", partitionByFields: ["b", 5], range: {step: 1, bounds: "full"}}"#,
        r#"$fill: {partitionByFields: ["b", 5], output: {a: {value: 1}}}"#,
    ] {
        let error = stages(&format!("[{{{stage}}}]")).unwrap_err();
        assert!(
            error.message().contains(".partitionByFields.1' is the wrong type 'int'"),
            "{error}"
        );
    }
}

#[test]
fn documents_made_by_densify_keep_the_order_of_their_fields() {
    let stages = stages(
        r#"[{$densify: {field: "a.y", partitionByFields: ["a.x", "b"], range: {step: 1, bounds: "full"}}}]"#,
    );
    let [_, Stage::Densify(densify)] = &stages.unwrap()[..] else { panic!() };
    let partition = [Some(ValueBuf::new(1)), Some(ValueBuf::new(2))];
    let made = densify.document(&partition, &ValueBuf::new(3));
    assert_eq!(print(made.as_doc()), "{a: {x: 1, y: 3}, b: 2}");
}

#[test]
fn out_checks_the_options_of_a_time_series() {
    for (spec, code) in [
        ("1", 14),
        ("[]", 14),
        ("{}", 40414),
        ("{timeField: null}", 40414),
        ("{timeField: 1}", 14),
        (r#"{timeField: "t", metaField: 1}"#, 14),
        (r#"{timeField: "t", x: 1}"#, 40415),
        (r#"{timeField: "t", granularity: "Seconds"}"#, 2),
        (r#"{timeField: "t", granularity: 1}"#, 14),
        (r#"{timeField: "t", bucketMaxSpanSeconds: 5}"#, 72),
        (r#"{timeField: "t", bucketMaxSpanSeconds: 5, bucketRoundingSeconds: null}"#, 72),
        (r#"{timeField: "t", bucketMaxSpanSeconds: 5, bucketRoundingSeconds: 6}"#, 72),
        (r#"{timeField: "t", bucketMaxSpanSeconds: true}"#, 14),
        (r#"{timeField: "t", bucketRoundingSeconds: 0.5}"#, 2),
        (r#"{timeField: "t", bucketRoundingSeconds: 31536001}"#, 2),
        (
            r#"{timeField: "t", granularity: "hours", bucketMaxSpanSeconds: 5, bucketRoundingSeconds: 5}"#,
            72,
        ),
        (r#"{timeField: "a.b"}"#, 72),
    ] {
        let pipeline = format!(r#"[{{$out: {{db: "d", coll: "c", timeseries: {spec}}}}}]"#);
        assert_eq!(stages(&pipeline).unwrap_err().code().number(), code, "{spec}");
    }
    for spec in [
        "null",
        r#"{timeField: "t", metaField: "t"}"#,
        r#"{timeField: "t", metaField: "m", granularity: "hours"}"#,
        r#"{timeField: "t", bucketMaxSpanSeconds: 5, bucketRoundingSeconds: 5}"#,
    ] {
        let pipeline = format!(r#"[{{$out: {{db: "d", coll: "c", timeseries: {spec}}}}}]"#);
        assert!(stages(&pipeline).is_ok(), "{spec}");
    }
}
