//! Any document as an expression: parsing and evaluating never panic, and folding and printing it
//! do not change a successful result.
#![no_main]

use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use quire_document::limits::Limits;
use quire_document::testing::Generator;
use quire_document::{Value, identical, validate};
use quire_mql::expression::{Batch, Extractor};
use quire_mql::{EvalContext, Expression, ParseContext, Shared};

fuzz_target!(|bytes: &[u8]| {
    let Ok(doc) = validate(bytes, &Limits::WIRE) else { return };
    let plain = ParseContext::default().without_folding();
    let Ok(expression) = Expression::parse(Value::Document(doc), &plain) else { return };
    let root = Generator::new(bytes.len() as u64).document();
    let mut shared = Shared::new(1_700_000_000_000).with_random(|| 1 << 63);
    shared.memory_bytes_max = 1 << 20;
    let arena = Bump::new();
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    let Ok(result) = expression.eval(&cx) else { return };

    let printed = expression.to_bson();
    let Ok(again) = Expression::parse(printed.as_value(), &plain) else {
        panic!("{printed:?} does not parse");
    };
    check(&again, &cx, result);
    if let Ok(folded) = Expression::parse(Value::Document(doc), &ParseContext::default()) {
        check(&folded, &cx, result);
    }
    let Ok(mut attached) = Expression::parse(Value::Document(doc), &plain) else { return };
    let mut extractor = Extractor::default();
    extractor.attach(&mut attached);
    let docs = [root.as_doc(), root.as_doc()];
    let batch = Batch::new(&docs, &extractor, &cx).expect("paths do not fail");
    // Two documents may need more memory than one.
    let Ok(column) = attached.eval_batch(&batch, &cx) else { return };
    check_value(column.get(1), result, &attached);
});

fn check<'a>(expression: &'a Expression, cx: &EvalContext<'a>, wanted: Option<Value<'a>>) {
    check_value(expression.eval(cx).expect("it worked before"), wanted, expression);
}

fn check_value(found: Option<Value<'_>>, wanted: Option<Value<'_>>, expression: &Expression) {
    let same = match (found, wanted) {
        (Some(found), Some(wanted)) => identical(found, wanted),
        (found, wanted) => found.is_none() == wanted.is_none(),
    };
    assert!(same, "{expression:?}: {found:?} instead of {wanted:?}");
}
