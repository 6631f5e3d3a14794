//! Shapes: what is replaced, what stays, and that other literals never change a shape.

use super::*;
use quire_document::literal::{parse, parse_doc, print};
use quire_document::testing::Generator;
use std::collections::HashMap;

/// Parses a literal with single quotes in place of double ones.
fn value(text: &str) -> ValueBuf {
    parse(&text.replace('\'', "\"")).unwrap()
}

fn doc(text: &str) -> DocBuf {
    parse_doc(&text.replace('\'', "\"")).unwrap()
}

fn filter_shape(text: &str, detail: Detail) -> String {
    print(&of_filter(doc(text).as_doc(), detail))
}

#[test]
fn filters_keep_structure_and_lose_literals() {
    for (filter, shape) in [
        ("{}", "{}"),
        ("{a: 1}", r#"{a: {$eq: "?number"}}"#),
        ("{a: {$eq: 1.5}}", r#"{a: {$eq: "?number"}}"#),
        ("{$and: [{a: 1}]}", r#"{a: {$eq: "?number"}}"#),
        ("{b: 'x', a: null}", r#"{$and: [{b: {$eq: "?string"}}, {a: {$eq: "?null"}}]}"#),
        (
            "{a: {$gt: 1, $lt: ISODate('2025-01-15T08:30:00.000Z')}}",
            r#"{$and: [{a: {$gt: "?number"}}, {a: {$lt: "?date"}}]}"#,
        ),
        ("{a: {$in: [1, 2.5]}}", r#"{a: {$in: "?array<?number>"}}"#),
        ("{a: {$in: ['x']}}", r#"{a: {$in: "?array<?string>"}}"#),
        ("{a: {$in: [1, 'x']}}", r#"{a: {$in: "?array<>"}}"#),
        ("{a: {$in: []}}", r#"{a: {$in: "[]"}}"#),
        ("{a: {$nin: [1]}}", r#"{a: {$not: {$in: "?array<?number>"}}}"#),
        ("{a: {$ne: {b: 1}}}", r#"{a: {$not: {$eq: "?object"}}}"#),
        ("{a: {$exists: 0}}", r#"{a: {$not: {$exists: "?bool"}}}"#),
        ("{a: /x/i}", r#"{a: {$regex: "?string"}}"#),
        ("{a: {$regex: 'x', $options: 'i'}}", r#"{a: {$regex: "?string", $options: "?string"}}"#),
        ("{a: {$type: ['int', 'string']}}", "{a: {$type: [2, 16]}}"),
        ("{a: {$type: 16}}", "{a: {$type: [16]}}"),
        ("{a: {$all: [1, 'x']}}", r#"{a: {$all: ["?number", "?string"]}}"#),
        ("{a: {$elemMatch: {$gt: 1}}}", r#"{a: {$elemMatch: {$gt: "?number"}}}"#),
        ("{a: {$elemMatch: {b: 1}}}", r#"{a: {$elemMatch: {b: {$eq: "?number"}}}}"#),
        ("{a: {$not: {$gt: 1}}}", r#"{a: {$not: {$gt: "?number"}}}"#),
        ("{$or: [{a: 1}, {b: 2}]}", r#"{$or: [{a: {$eq: "?number"}}, {b: {$eq: "?number"}}]}"#),
        ("{$comment: 'why', a: true}", r#"{a: {$eq: "?bool"}}"#),
        ("{$expr: {$gt: ['$a', 1]}}", r#"{$expr: {$gt: ["$a", "?number"]}}"#),
        (
            "{$jsonSchema: {required: ['a'], properties: {a: {bsonType: 'int', minimum: 3}}}}",
            r#"{$jsonSchema: {required: ["a"], properties: {a: {bsonType: "int", minimum: "?number"}}}}"#,
        ),
    ] {
        assert_eq!(filter_shape(filter, Detail::Request), shape, "{filter}");
    }
}

#[test]
fn plans_do_not_depend_on_order_types_and_expressions() {
    for (one, other) in [
        ("{a: 1, b: 2}", "{$and: [{b: 3}, {a: 4}]}"),
        ("{a: 1}", "{a: 'x'}"),
        ("{$or: [{a: 1}, {b: 2}]}", "{$or: [{b: 1}, {a: 2}]}"),
        ("{$expr: {$gt: ['$a', '$b']}}", "{$expr: {$lt: ['$a', '$b']}}"),
        ("{a: {$type: 'int'}}", "{a: {$type: ['string', 'date']}}"),
        ("{a: {$elemMatch: {$gt: 1, $lt: 2}}}", "{a: {$elemMatch: {$lt: 1, $gt: 2}}}"),
    ] {
        assert_eq!(filter_shape(one, Detail::Plan), filter_shape(other, Detail::Plan));
        assert_ne!(filter_shape(one, Detail::Request), filter_shape(other, Detail::Request));
    }
}

#[test]
fn expressions_keep_names_and_lose_constants() {
    for (expression, shape) in [
        ("'$a'", r#""$a""#),
        ("'text'", r#""?string""#),
        ("[1, 2]", r#""?array<?number>""#),
        ("['$a', 2]", r#"["$a", "?number"]"#),
        ("{x: '$a', y: 1}", r#"{x: "$a", y: "?number"}"#),
        ("{$literal: '$a'}", r#"{$const: "?string"}"#),
        ("{$in: ['$a', [1, 2, 3]]}", r#"{$in: ["$a", "?array<?number>"]}"#),
        ("{$getField: 'a'}", r#"{$getField: "a"}"#),
        ("{$meta: 'textScore'}", r#"{$meta: "textScore"}"#),
        (
            "{$map: {input: '$a', as: 'x', in: {$add: ['$$x', 1]}}}",
            r#"{$map: {input: "$a", as: "x", in: {$add: ["$$x", "?number"]}}}"#,
        ),
        (
            "{$sortArray: {input: '$a', sortBy: {b: -1.0}}}",
            r#"{$sortArray: {input: "$a", sortBy: {b: -1}}}"#,
        ),
        (
            "{$sum: '$x', window: {documents: ['unbounded', 3]}}",
            r#"{$sum: "$x", window: {documents: ["unbounded", "?number"]}}"#,
        ),
    ] {
        let shape_of = of_expression(value(expression).as_value());
        assert_eq!(print(&shape_of), shape, "{expression}");
    }
}

/// Shapes are stored, so that a value in the place of a word or of a name must not stay.
#[test]
fn a_value_in_place_of_a_word_or_a_name_becomes_its_type() {
    for expression in [
        "{$meta: 'secret'}",
        "{$derivative: {input: '$a', unit: 'secret'}}",
        "{$percentile: {input: '$a', p: [0.5], method: 'secret'}}",
        "{$getField: {field: {$const: 'secret'}, input: '$a'}}",
        "{$map: {input: '$a', as: {x: 'secret'}, in: 1}}",
        "{$sum: '$x', window: {range: ['secret', 1], unit: 'secret'}}",
        "{$sum: '$x', window: {range: 'secret'}}",
    ] {
        let shape_of = of_expression(value(expression).as_value());
        assert!(!print(&shape_of).contains("secret"), "{expression}: {shape_of:?}");
    }
    for stage in [
        "{$densify: 'secret'}",
        "{$densify: {field: 'a', range: {step: 1, unit: 'secret', bounds: 'secret'}}}",
        "{$fill: {output: {a: {method: 'secret'}}}}",
        "{$merge: {into: 'c', whenMatched: 'secret', whenNotMatched: 'secret'}}",
        "{$lookup: 'secret'}",
        "{$lookup: {from: 'c', as: 'd', pipeline: 'secret'}}",
        "{$lookup: {from: 'c', as: 'd', pipeline: ['secret']}}",
        "{$facet: {a: 'secret'}}",
        "{$scoreFusion: {input: {normalization: 'secret'}, combination: {method: 'secret'}}}",
    ] {
        let shape_of = of_pipeline([doc(stage).as_doc()]);
        assert!(!print(&shape_of).contains("secret"), "{stage}: {shape_of:?}");
    }
}

#[test]
fn projections_and_sorts_keep_flags_and_directions() {
    let projected = |text: &str| print(&of_projection(doc(text).as_doc()));
    assert_eq!(projected("{a: 1}"), "{a: true, _id: true}");
    assert_eq!(projected("{a: 1, _id: 0}"), "{a: true, _id: false}");
    assert_eq!(projected("{a: 0}"), "{a: false}");
    assert_eq!(projected("{a: {$slice: 3}}"), r#"{a: {$slice: "?number"}, _id: true}"#);
    assert_eq!(projected("{a: {b: 1}, c: '$d'}"), r#"{a: {b: true}, c: "$d", _id: true}"#);
    let sorted = |text: &str| print(&of_sort(doc(text).as_doc()));
    assert_eq!(sorted("{a: 1.0, b: NumberLong('-1')}"), "{a: 1, b: -1}");
}

#[test]
fn pipelines_keep_names_and_lose_literals() {
    for (stage, shape) in [
        ("{$match: {a: 1}}", r#"{$match: {a: {$eq: "?number"}}}"#),
        ("{$limit: 5}", r#"{$limit: "?number"}"#),
        ("{$count: 'n'}", r#"{$count: "n"}"#),
        ("{$sort: {a: 1}}", "{$sort: {a: 1}}"),
        ("{$unwind: '$a'}", r#"{$unwind: "$a"}"#),
        (
            "{$unwind: {path: '$a', preserveNullAndEmptyArrays: true}}",
            r#"{$unwind: {path: "$a", preserveNullAndEmptyArrays: "?bool"}}"#,
        ),
        ("{$group: {_id: '$a', n: {$sum: 1}}}", r#"{$group: {_id: "$a", n: {$sum: "?number"}}}"#),
        (
            "{$lookup: {from: 'c', let: {x: 1}, pipeline: [{$match: {b: 2}}], as: 'd'}}",
            r#"{$lookup: {from: "c", let: {x: "?number"}, pipeline: [{$match: {b: {$eq: "?number"}}}], as: "d"}}"#,
        ),
        ("{$unionWith: 'c'}", r#"{$unionWith: "c"}"#),
        ("{$facet: {f: [{$skip: 1}]}}", r#"{$facet: {f: [{$skip: "?number"}]}}"#),
        (
            "{$merge: {into: 'c', on: 'k', whenMatched: [{$set: {a: 1}}]}}",
            r#"{$merge: {into: "c", on: "k", whenMatched: [{$set: {a: "?number"}}]}}"#,
        ),
        (
            "{$merge: {into: {db: 'd', coll: 'c'}, on: ['k', 'l'], whenMatched: 'fail', whenNotMatched: 'discard'}}",
            r#"{$merge: {into: {db: "d", coll: "c"}, on: ["k", "l"], whenMatched: "fail", whenNotMatched: "discard"}}"#,
        ),
        ("{$unset: ['a', 'b']}", r#"{$unset: ["a", "b"]}"#),
        (
            "{$densify: {field: 'a', range: {step: 1, bounds: 'full'}}}",
            r#"{$densify: {field: "a", range: {step: "?number", bounds: "full"}}}"#,
        ),
        (
            "{$bucket: {groupBy: '$a', boundaries: [0, 5], default: 'x'}}",
            r#"{$bucket: {groupBy: "$a", boundaries: "?array<?number>", default: "?string"}}"#,
        ),
    ] {
        let shape_of = of_pipeline([doc(stage).as_doc()]);
        assert_eq!(print(&shape_of), format!("[{shape}]"), "{stage}");
    }
}

/// Makes random filters: `structure` decides about operators and paths, `literals` about values.
struct Random {
    structure: Generator,
    literals: Generator,
    /// A description of the structure, made without the shape.
    skeleton: String,
}

impl Random {
    fn filter(&mut self, depth: u32) -> String {
        let count = 1 + self.structure.below(3);
        let conditions: Vec<String> = (0..count).map(|_| self.condition(depth)).collect();
        format!("{{$and: [{}]}}", conditions.join(", "))
    }

    fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.structure.one_in(4) {
            let operator = ["$or", "$nor"][self.structure.below(2) as usize];
            self.skeleton.push_str(operator);
            self.skeleton.push('[');
            let branches: Vec<String> = (0..2)
                .map(|_| {
                    self.skeleton.push('|');
                    self.filter(depth - 1)
                })
                .collect();
            self.skeleton.push(']');
            return format!("{{{operator}: [{}]}}", branches.join(", "));
        }
        let path = ["a", "b.c", "d", "e.0"][self.structure.below(4) as usize];
        let operator = ["$eq", "$gt", "$lte", "$in", "$not", "$elemMatch", "$size", "$exists"]
            [self.structure.below(8) as usize];
        self.skeleton.push_str(&format!("({path} {operator} "));
        let operand = match operator {
            "$in" => {
                let kind = self.structure.below(3);
                self.skeleton.push_str(&format!("in {kind}"));
                let count = 1 + self.literals.below(5);
                let items: Vec<String> = (0..count).map(|_| self.literal(kind)).collect();
                format!("[{}]", items.join(", "))
            }
            "$not" => format!("{{$lt: {}}}", self.typed()),
            "$elemMatch" => format!("{{x: {}}}", self.typed()),
            "$size" => self.literal(0),
            "$exists" => "true".to_owned(),
            _ => self.typed(),
        };
        self.skeleton.push(')');
        format!("{{'{path}': {{{operator}: {operand}}}}}")
    }

    /// Returns a literal of a type that belongs to the structure.
    fn typed(&mut self) -> String {
        let kind = self.structure.below(3);
        self.skeleton.push_str(&kind.to_string());
        self.literal(kind)
    }

    fn literal(&mut self, kind: u64) -> String {
        let number = self.literals.below(1000);
        match (kind, self.literals.below(2)) {
            (0, 0) => number.to_string(),
            (0, _) => format!("NumberLong('{number}')"),
            (1, _) => format!("'text {number}'"),
            _ => number.is_multiple_of(2).to_string(),
        }
    }
}

#[test]
fn ten_thousand_random_filters_have_the_same_shape_with_other_literals_only() {
    let mut skeletons: HashMap<String, String> = HashMap::new();
    for seed in 0..10_000 {
        let make = |literals: u64| {
            let (structure, literals) = (Generator::new(seed), Generator::new(literals));
            let mut random = Random { structure, literals, skeleton: String::new() };
            let filter = random.filter(2);
            (filter_shape(&filter, Detail::Request), filter_shape(&filter, Detail::Plan), random)
        };
        let (first, second) = (make(seed + 20_000), make(seed + 40_000));
        assert_eq!((&first.0, &first.1), (&second.0, &second.1), "seed {seed}");
        let known = skeletons.entry(first.0.clone()).or_insert_with(|| first.2.skeleton.clone());
        assert_eq!(*known, first.2.skeleton, "two structures have the shape {}", first.0);
    }
    assert!(skeletons.len() > 5_000, "{}", skeletons.len());
}

#[test]
fn updates_keep_operators_and_paths() {
    for (update, shape) in [
        (
            "{$set: {'a.b': 5, c: {d: 1}}, $rename: {old: 'new'}}",
            r#"{$set: {"a.b": "?number", c: "?object"}, $rename: {old: "new"}}"#,
        ),
        (
            "{$push: {l: {$each: [1, 2], $slice: -5, $sort: {x: -1.0}}}}",
            r#"{$push: {l: {$each: "?array<?number>", $slice: "?number", $sort: {x: -1}}}}"#,
        ),
        ("{name: 'x'}", r#""?object""#),
        ("{}", r#""?object""#),
        ("[{$set: {a: '$b', c: 5}}]", r#"[{$set: {a: "$b", c: "?number"}}]"#),
    ] {
        assert_eq!(print(&of_update(value(update).as_value())), shape, "{update}");
    }
}
