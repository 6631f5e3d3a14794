//! Random documents made of the language's words: parsing and running them never panics, and
//! simplification does not change results. A small version of the fuzz targets, for every test run.

use crate::context::{EvalContext, ParseContext, Shared};
use crate::filter::{Features, Filter, Reporter};
use crate::projection::Projection;
use crate::sort::SortPattern;
use bumpalo::Bump;
use quire_document::limits::Limits;
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, validate};

const WORDS: &[&str] = &[
    "a",
    "b",
    "a.b",
    "a.0",
    "a.$",
    "_id",
    "",
    "$eq",
    "$ne",
    "$gt",
    "$lte",
    "$in",
    "$nin",
    "$exists",
    "$type",
    "$size",
    "$mod",
    "$all",
    "$elemMatch",
    "$not",
    "$and",
    "$or",
    "$nor",
    "$regex",
    "$options",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$expr",
    "$jsonSchema",
    "$sampleRate",
    "$alwaysTrue",
    "$alwaysFalse",
    "$comment",
    "$slice",
    "$meta",
    "$literal",
    "$add",
    "$near",
    "$ref",
    "$id",
    "properties",
    "required",
    "bsonType",
    "type",
    "items",
    "additionalItems",
    "additionalProperties",
    "patternProperties",
    "allOf",
    "oneOf",
    "not",
    "enum",
    "minimum",
    "maxLength",
    "dependencies",
    "uniqueItems",
    "multipleOf",
    "minItems",
];

const TEXTS: &[&str] = &["$a", "$$ROOT", "a", "int", "number", "^a(b|c)*$", "imsx", "randVal", "("];

fn word(generator: &mut Generator) -> String {
    generator.pick(WORDS).copied().unwrap_or("a").to_owned()
}

fn value(generator: &mut Generator, depth: u32) -> ValueBuf {
    match generator.below(if depth < 5 { 12 } else { 6 }) {
        0 => generator.number(),
        1 => ValueBuf::new(generator.pick(TEXTS).copied().unwrap_or("a")),
        2 => ValueBuf::new(generator.one_in(2)),
        3 => ValueBuf::new(generator.below(3) as i32),
        4 => generator.value(),
        5 => ValueBuf::new(Value::Null),
        6..=8 => document(generator, depth + 1).into(),
        9 => {
            let words: Vec<String> = (0..generator.below(3)).map(|_| word(generator)).collect();
            words.iter().collect::<ArrayBuf>().into()
        }
        _ => {
            let list: Vec<ValueBuf> =
                (0..generator.below(4)).map(|_| value(generator, depth + 1)).collect();
            list.iter().collect::<ArrayBuf>().into()
        }
    }
}

fn document(generator: &mut Generator, depth: u32) -> DocBuf {
    let mut doc = DocBuf::new();
    for _ in 0..generator.below(4) {
        let (name, value) = (word(generator), value(generator, depth));
        doc.append(&name, &value);
    }
    doc
}

fn check_filter(doc: Doc<'_>, roots: &[DocBuf], cx: &EvalContext<'_>) -> bool {
    let context = ParseContext::default();
    let exact = Filter::parse_exact(doc, &context, Features::ALL);
    let simplified = Filter::parse(doc, &context);
    assert_eq!(exact.is_ok(), simplified.is_ok(), "{doc:?}");
    let (Ok(exact), Ok(simplified)) = (exact, simplified) else { return false };
    for root in roots {
        let root = root.as_doc();
        let (Ok(wanted), Ok(found)) = (exact.matches(root, cx), simplified.matches(root, cx))
        else {
            continue;
        };
        assert_eq!(wanted, found, "{doc:?} on {root:?}");
        if !wanted && let Ok(reporter) = Reporter::parse(doc, &context) {
            let _ = reporter.report(root, cx);
        }
    }
    let _ = (simplified.paths(), simplified.to_bson());
    true
}

fn check_projections(doc: Doc<'_>, roots: &[DocBuf], cx: &EvalContext<'_>) -> bool {
    let context = ParseContext::default();
    let projections = [
        Projection::parse_find(doc, None, &context),
        Projection::parse_find(doc, Some(doc), &context),
        Projection::parse_project(Value::Document(doc), &context),
        Projection::parse_add_fields("$set", Value::Document(doc), &context),
    ];
    for projection in projections.iter().flatten() {
        let _ = projection.needs();
        for root in roots {
            let Ok(result) = projection.apply_to(root.as_doc(), cx) else { continue };
            assert!(validate(result.as_bytes(), &Limits::WIRE).is_ok(), "{doc:?} on {root:?}");
        }
    }
    projections.iter().any(|projection| projection.is_ok())
}

#[test]
fn any_words_in_any_order() {
    let (mut arena, shared) = (Bump::new(), Shared::new(0).with_random(|| 1 << 62));
    let (mut filters, mut projections) = (0, 0);
    for seed in 0..20_000 {
        let mut generator = Generator::new(seed);
        let doc = document(&mut generator, 0);
        let roots = [generator.document(), doc.clone()];
        arena.reset();
        let cx = EvalContext::new(&arena, Doc::empty(), &shared);
        filters += check_filter(doc.as_doc(), &roots, &cx) as u32;
        projections += check_projections(doc.as_doc(), &roots, &cx) as u32;
        if let Ok(sort) = SortPattern::parse(doc.as_doc(), &ParseContext::default()) {
            roots.iter().for_each(|root| {
                let _ = sort.key(root.as_doc(), &cx);
            });
        }
    }
    assert!(filters > 1000 && projections > 1000, "{filters} {projections}");
}
