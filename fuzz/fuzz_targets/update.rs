//! Any document as an update: parsing and applying never panic, the result is a valid document, and
//! an update reported as without effect changes nothing.
#![no_main]

use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use quire_document::limits::Limits;
use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, ObjectId, Value, doc, validate};
use quire_mql::{EvalContext, ParseContext, Shared, Update, UpdateSpec};

fuzz_target!(|bytes: &[u8]| {
    let Ok(update) = validate(bytes, &Limits::WIRE) else { return };
    let filters = [doc! { "e": { "$gt": 1 } }];
    let filters: Vec<Doc<'_>> = filters.iter().map(DocBuf::as_doc).collect();
    let spec = |filters| UpdateSpec { update: Value::Document(update), array_filters: filters, multi: false };
    let context = ParseContext::default();
    let Ok(compiled) = Update::parse(spec(&[]), &context).or_else(|_| Update::parse(spec(&filters), &context))
    else {
        return;
    };
    let shared = Shared::new(1_700_000_000_000);
    for seed in 0..4 {
        let root = Generator::new(seed + bytes.len() as u64).document();
        for root in [root.as_doc(), update] {
            let arena = Bump::new();
            let cx = EvalContext::new(&arena, root, &shared);
            let mut out = Vec::new();
            if let Ok(outcome) = compiled.apply(root, Some(1), &cx, &mut out) {
                assert!(validate(&out, &Limits::WIRE).is_ok(), "{update:?} on {root:?}");
                // A stored document has its `_id` first; a replacement moves it there.
                let stored = root.iter().skip(1).all(|element| element.key() != "_id");
                assert!(outcome.changed || !stored || out == root.as_bytes(), "{update:?} on {root:?}");
            }
            let _ = compiled.upsert_document(root, &cx, || ObjectId([1; 12]));
        }
    }
});
