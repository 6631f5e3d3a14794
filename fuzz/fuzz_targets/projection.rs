//! Any document as a projection and as a sort: parsing and evaluating never panic, and the result
//! is valid.
#![no_main]

use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use quire_document::limits::Limits;
use quire_document::testing::Generator;
use quire_document::{Doc, Value, validate};
use quire_mql::projection::Projection;
use quire_mql::sort::SortPattern;
use quire_mql::{EvalContext, ParseContext, Shared};

fuzz_target!(|bytes: &[u8]| {
    let Ok(doc) = validate(bytes, &Limits::WIRE) else { return };
    let context = ParseContext::default();
    let (arena, mut shared) = (Bump::new(), Shared::new(0).with_random(|| 1 << 63));
    shared.memory_bytes_max = 1 << 20;
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let root = Generator::new(bytes.len() as u64).document();
    let projections = [
        Projection::parse_find(doc, Some(doc), &context),
        Projection::parse_find(doc, None, &context),
        Projection::parse_project(Value::Document(doc), &context),
        Projection::parse_add_fields("$set", Value::Document(doc), &context),
    ];
    for projection in projections.iter().flatten() {
        let _ = projection.needs();
        for root in [root.as_doc(), doc] {
            let Ok(result) = projection.apply_to(root, &cx) else { continue };
            assert!(validate(result.as_bytes(), &Limits::WIRE).is_ok(), "{doc:?} on {root:?}");
        }
    }
    let Ok(sort) = SortPattern::parse(doc, &context) else { return };
    for root in [root.as_doc(), doc] {
        if let Ok(key) = sort.key(root, &cx) {
            assert_eq!(key.len(), sort.parts().len());
            sort.append_bytes(&key, &mut Vec::new());
        }
    }
});
