//! Requests from the language's own words with large constants, under a budget of memory and of
//! work: each ends with a result or an error within a bounded number of interrupt checks.
#![no_main]

#[path = "../choices.rs"]
mod choices;

use choices::Choices;
use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, doc};
use quire_error::{Error, ErrorCode};
use quire_mql::stage::{Transform, Transforms, find_stage};
use quire_mql::{EvalContext, Expression, Filter, ParseContext, Shared, Update, UpdateSpec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of interrupt checks after which an operation is interrupted.
const LOOKS_MAX: u32 = 64;

/// The number of checks that it may make after the interrupt.
const LATE_LOOKS_MAX: u32 = 64;

/// The bytes of the largest array in an expression.
const EXPRESSION_BYTES_MAX: usize = 4 << 20;

const OPERATORS: &[&str] = &[
    "$concatArrays", "$setUnion", "$setIntersection", "$setDifference", "$reverseArray", "$size",
    "$objectToArray", "$mergeObjects", "$concat", "$toString", "$split", "$indexOfCP",
    "$indexOfBytes", "$in", "$eq", "$slice", "$first", "$arrayElemAt", "$strLenCP", "$add",
];

const PATTERNS: &[&str] = &[
    "^(a|b)*$", "(a+)+$", ".{0,200}.{0,200}.{0,150}[YZ]", "(a*)*b", "(?:a|aa)+c", "[^y]*z", "(.)\\1+",
    "(?=(a+))a*b", "\\X+\\d", "(a?){50}a{50}",
];

impl Choices<'_> {
    fn field(&mut self) -> ValueBuf {
        ValueBuf::new(["$v", "$t", "$o", "$d", "$$ROOT", "$n"][self.next(6)])
    }

    fn expression(&mut self, depth: usize) -> ValueBuf {
        if depth == 0 || self.0.is_empty() {
            return self.field();
        }
        let large = 10i32.pow(self.next(8) as u32);
        match self.next(9) {
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
                let inputs: ArrayBuf =
                    (0..1 + self.next(200)).map(|_| "$v").collect();
                ValueBuf::from(doc! { "$zip": { "inputs": &inputs } })
            }
            4 => {
                let item = self.expression(depth - 1);
                // A request has at most 16 MB, so its parts are bounded too.
                let room = EXPRESSION_BYTES_MAX / item.size();
                let items: ArrayBuf = (0..(1 + self.next(250)).min(room)).map(|_| &item).collect();
                items.into()
            }
            5 => {
                let pattern = PATTERNS[self.next(PATTERNS.len())];
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
            _ => {
                let operator = OPERATORS[self.next(OPERATORS.len())];
                let arguments: Vec<ValueBuf> =
                    (0..1 + self.next(4)).map(|_| self.expression(depth - 1)).collect();
                let arguments: ArrayBuf = arguments.iter().collect();
                ValueBuf::from(DocBuf::build(|writer| {
                    writer.append(operator, &arguments);
                }))
            }
        }
    }

    fn filter(&mut self) -> DocBuf {
        let path = vec!["0"; 1 + self.next(190)].join(".");
        let pattern = PATTERNS[self.next(PATTERNS.len())];
        match self.next(5) {
            0 => doc! { "t": { "$not": { "$regex": pattern } } },
            1 => DocBuf::build(|writer| {
                writer.append(&format!("d.{path}"), 1);
            }),
            2 => doc! { "v": { "$all": [-1, -2, -3] } },
            3 => doc! { "$expr": &self.expression(3) },
            _ => doc! { "$jsonSchema": { "properties": { "t": { "pattern": pattern }, "v": { "uniqueItems": true } } } },
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
    doc! { "v": &numbers, "t": "ab".repeat(2000).as_str(), "o": &object, "d": [&nested], "n": 7 }
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices(bytes);
    let root = root();
    let looks = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&looks);
    let mut shared = Shared::new(0).with_interrupt(Arc::new(move || {
        let look = seen.fetch_add(1, Ordering::Relaxed);
        assert!(look < LOOKS_MAX + LATE_LOOKS_MAX, "it goes on after it was killed");
        match look < LOOKS_MAX {
            true => Ok(()),
            false => Err(Error::new(ErrorCode::Interrupted, "operation was interrupted")),
        }
    }));
    shared.memory_bytes_max = 4 << 20;
    let arena = Bump::new();
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    match choices.next(4) {
        0 => {
            let expression = choices.expression(4);
            let Ok(parsed) = Expression::parse(expression.as_value(), &ParseContext::default())
            else {
                return;
            };
            let _ = parsed.eval(&cx);
        }
        1 => {
            let Ok(filter) = Filter::parse(choices.filter().as_doc(), &ParseContext::default())
            else {
                return;
            };
            let _ = filter.matches(root.as_doc(), &cx);
        }
        2 => {
            let mut stages = Transforms::default();
            for _ in 0..1 + choices.next(40) {
                let value = choices.expression(2);
                let fields = doc! { "v": &value, "o": "$$ROOT" };
                let fields = Value::Document(fields.as_doc());
                let row = find_stage("$set").expect("$set is a stage");
                if let Ok(Some(stage)) = Transform::parse(row, fields, &ParseContext::default()) {
                    stages.push(stage);
                }
            }
            let _ = stages.apply(&cx);
        }
        _ => {
            let (filter, text) = (doc! { "e": { "$gt": 1 } }, "x".repeat(1000 * choices.next(200)));
            let filters: [Doc<'_>; 1] = [filter.as_doc()];
            let update = doc! { "$set": { "v.$[e]": text.as_str() } };
            let update = Value::Document(update.as_doc());
            let spec = UpdateSpec { update, array_filters: &filters, multi: false };
            let Ok(update) = Update::parse(spec, &ParseContext::default()) else { return };
            let _ = update.apply(root.as_doc(), None, &cx, &mut Vec::new());
        }
    }
});
