//! Any document as a filter: parsing and matching never panic, simplifying and printing it do not
//! change its matches, and the report of a failure can be made.
#![no_main]

use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use quire_document::limits::Limits;
use quire_document::testing::Generator;
use quire_document::{Doc, validate};
use quire_mql::filter::{Features, Reporter};
use quire_mql::{EvalContext, Filter, ParseContext, Shared};

fuzz_target!(|bytes: &[u8]| {
    let Ok(doc) = validate(bytes, &Limits::WIRE) else { return };
    let context = ParseContext::default();
    let exact = Filter::parse_exact(doc, &context, Features::ALL);
    let simplified = Filter::parse(doc, &context);
    assert_eq!(exact.is_ok(), simplified.is_ok(), "{doc:?}");
    let (Ok(exact), Ok(simplified)) = (exact, simplified) else { return };
    let (arena, shared) = (Bump::new(), Shared::new(0).with_random(|| 1 << 63));
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let again = Filter::parse(simplified.to_bson().as_doc(), &context);
    for seed in 0..4 {
        let root = Generator::new(seed + bytes.len() as u64).document();
        for root in [root.as_doc(), doc] {
            // A condition that is not evaluated may hide an expression that fails.
            let (Ok(wanted), Ok(found)) = (exact.matches(root, &cx), simplified.matches(root, &cx))
            else {
                continue;
            };
            assert_eq!(wanted, found, "{doc:?} on {root:?}");
            if let Ok(Ok(found)) = again.as_ref().map(|again| again.matches(root, &cx)) {
                assert_eq!(wanted, found, "{:?} on {root:?}", simplified.to_bson());
            }
            if !wanted && let Ok(reporter) = Reporter::parse(doc, &context) {
                let _ = reporter.report(root, &cx);
            }
            let _ = simplified.find_position(root, &cx);
        }
    }
    let _ = (simplified.paths(), simplified.to_bson());
});
