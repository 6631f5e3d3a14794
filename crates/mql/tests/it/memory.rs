//! The peak memory of hostile expressions, stages and updates, measured with a counting allocator.

use super::allocator::peak;
use bumpalo::Bump;
use quire_document::{ArrayBuf, DocBuf, Value, ValueBuf, doc, memory};
use quire_mql::stage::{Transform, Transforms, row_of};
use quire_mql::{EvalContext, Expression, ParseContext, Shared, Update, UpdateSpec};

/// The memory limit of an evaluation in these tests.
const LIMIT: usize = 1 << 20;

/// The allowed peak: the limit, the buffer that grows in addition to the arena, and the slack of
/// both.
const PEAK_MAX: usize = 5 * LIMIT;

fn shared() -> Shared {
    let mut shared = Shared::default();
    shared.memory_bytes_max = LIMIT;
    shared
}

/// Returns a document with an array `v` of `count` numbers and a text `t` of 256 KiB.
fn input(count: i32) -> DocBuf {
    let numbers: ArrayBuf = (0..count).collect();
    let object = DocBuf::build(|writer| {
        (0..count / 10).for_each(|at| {
            writer.append(&format!("field{at}"), at);
        });
    });
    doc! { "v": &numbers, "t": "x".repeat(1 << 18).as_str(), "o": &object }
}

fn repeated(value: &ValueBuf, count: usize) -> ArrayBuf {
    (0..count).map(|_| value).collect()
}

fn assert_refused(what: &str, error: quire_error::Error, bytes: usize) {
    assert_eq!(error.code().number(), 146, "{what}: {error}");
    assert!(bytes < PEAK_MAX, "{what} held {bytes} bytes");
}

#[test]
fn what_may_not_grow_is_not_filled_any_longer() {
    let (arena, shared, root) = (Bump::new(), shared(), doc! {});
    let cx = EvalContext::new(&arena, root.as_doc(), &shared);
    let mut pulled = 0;
    let numbers = (0..10_000_000).inspect(|_| pulled += 1).map(Value::Int32);
    assert_eq!(cx.array_of(numbers).unwrap_err().code().number(), 146);
    assert!(pulled < LIMIT, "{pulled} elements were asked for");

    let mut rows = 0;
    let error = cx.array(|writer| {
        (0..10_000_000).try_for_each(|_| {
            rows += 1;
            writer.push("a text of some length");
            cx.check_size(writer.len())
        })
    });
    assert_eq!(error.unwrap_err().code().number(), 146);
    assert!(rows < LIMIT, "{rows} rows were written");
}

#[test]
fn an_expression_holds_no_more_than_it_may() {
    let root = input(10_000);
    let v = ValueBuf::new("$v");
    let o = ValueBuf::new("$o");
    let thousand = repeated(&v, 1000);
    let mut nested = ValueBuf::from(repeated(&v, 6));
    for _ in 0..30 {
        nested = ArrayBuf::from_iter([&v, &nested]).into();
    }
    let wide = DocBuf::build(|writer| {
        (0..1000).for_each(|at| {
            writer.append(&format!("f{at}"), "$v");
        });
    });
    let range = doc! { "$range": [0, 3_000_000] };
    let reduce = |body: DocBuf| {
        doc! { "$reduce": { "input": "$v", "initialValue": "$v", "in": &body } }
    };
    for expression in [
        ValueBuf::from(doc! { "$size": { "$concatArrays": &thousand } }),
        ValueBuf::from(thousand.clone()),
        ValueBuf::from(wide),
        nested,
        ValueBuf::from(doc! { "$zip": { "inputs": &thousand } }),
        ValueBuf::from(doc! { "$mergeObjects": &repeated(&o, 1000) }),
        ValueBuf::from(doc! { "$size": &range }),
        ValueBuf::from(doc! { "$setUnion": &thousand }),
        ValueBuf::from(doc! { "$map": { "input": "$v", "in": "$v" } }),
        ValueBuf::from(doc! { "$map": { "input": "$v", "in": "$$ROOT" } }),
        ValueBuf::from(reduce(doc! { "$concatArrays": ["$$value", "$$value"] })),
        ValueBuf::from(reduce(doc! { "a": "$$value", "b": "$$value" })),
        ValueBuf::from(doc! { "$map": { "input": "$v", "in": { "$concat": ["$t", "$t"] } } }),
        ValueBuf::from(doc! { "$split": ["$t", "x"] }),
        ValueBuf::from(doc! { "$regexFindAll": { "input": "$t", "regex": "x" } }),
        ValueBuf::from(doc! { "$map": { "input": "$v", "in": { "$objectToArray": &o } } }),
        ValueBuf::from(
            doc! { "$sortArray": { "input": { "$concatArrays": &thousand }, "sortBy": 1 } },
        ),
    ] {
        let what = format!("{:.120}", format!("{expression:?}"));
        let parsed = Expression::parse(expression.as_value(), &ParseContext::default()).unwrap();
        let shared = shared();
        let (result, bytes) = peak(|| {
            let arena = Bump::new();
            let cx = EvalContext::new(&arena, root.as_doc(), &shared);
            parsed.eval(&cx).map(|value| value.is_some())
        });
        match result {
            Ok(found) => panic!("{what} gave {found}"),
            Err(error) => assert_refused(&what, error, bytes),
        }
    }
}

/// Each constant of a request was folded to as much as 100 MB.
#[test]
fn constants_are_folded_within_a_budget() {
    let range = doc! { "$range": [0, 1_000_000] };
    let each = repeated(&range.into(), 200);
    let small = repeated(&doc! { "$range": [0, 20_000] }.into(), 2000);
    let long = doc! { "$reduce": { "input": { "$range": [0, 20_000] }, "initialValue": 0, "in": {
        "$sum": { "$map": { "input": { "$range": [0, 20_000] }, "in": "$$this" } }
    } } };
    for expression in [ValueBuf::from(each), small.into(), long.into()] {
        let (parsed, bytes) =
            peak(|| Expression::parse(expression.as_value(), &ParseContext::default()).unwrap());
        assert!(bytes < 48 << 20, "{bytes}");
        assert!(!parsed.is_constant());
    }
}

#[test]
fn stages_that_double_a_document_end() {
    let root = input(1000);
    let twice = doc! { "$project": { "a": "$$ROOT", "b": "$$ROOT" } };
    let arrays = doc! { "$set": { "v": { "$concatArrays": ["$v", "$v"] } } };
    for stage in [twice, arrays] {
        let mut stages = Transforms::default();
        let (row, operand) = row_of(Value::Document(stage.as_doc())).unwrap();
        for _ in 0..40 {
            let cx = ParseContext::default();
            stages.push(Transform::parse(row, operand, &cx).unwrap().unwrap());
        }
        let shared = shared();
        let (result, bytes) = peak(|| {
            let arena = Bump::new();
            let cx = EvalContext::new(&arena, root.as_doc(), &shared);
            stages.apply(&cx).map(|doc| doc.len())
        });
        assert_refused(row.name, result.unwrap_err(), bytes);
    }
}

/// An operand of 1 MB for each of 100,000 elements.
#[test]
fn an_update_ends_once_its_document_is_too_large() {
    let root = input(100_000);
    let update = doc! { "$set": { "v.$[]": "y".repeat(1 << 20).as_str() } };
    let update = Value::Document(update.as_doc());
    let spec = UpdateSpec { update, array_filters: &[], multi: false };
    let parsed = Update::parse(spec, &ParseContext::default()).unwrap();
    let (result, bytes) = peak(|| {
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        parsed.apply(root.as_doc(), None, &cx, &mut Vec::new())
    });
    assert_eq!(result.map(|_| ()).unwrap_err().code().number(), 10334);
    assert!(bytes < 80 << 20, "{bytes}");
}

/// A request that needs more than the server has left fails, and its memory is returned.
#[test]
fn a_thread_takes_from_the_pool_and_gives_back() {
    let pool = memory::Pool::new(100 << 20);
    pool.within(|| {
        assert!(memory::reserve(40 << 20).is_ok());
        assert!(pool.used() >= 40 << 20);
        memory::settle(10 << 20);
        assert_eq!(pool.used(), 10 << 20);
        memory::release();
        assert_eq!(pool.used(), 0);
        assert!(memory::reserve(usize::MAX / 2).is_err());
        memory::release();
    });
}
