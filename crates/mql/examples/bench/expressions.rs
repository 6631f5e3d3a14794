//! Expressions of each family, and `$group` by a field with `$sum`, on documents of 1 KB.

use crate::harness::nanoseconds;
use bumpalo::Bump;
use quire_document::{Decimal128, Doc, DocBuf, Value, array, doc};
use quire_error::Result;
use quire_mql::expression::{Batch, Extractor};
use quire_mql::stage::{Stage, parse_stage};
use quire_mql::{EvalContext, Expression, ParseContext, Shared};
use std::hint::black_box;

pub fn run() -> Result<()> {
    let context = ParseContext::default();
    let (mut arena, shared) = (Bump::new(), Shared::default());
    let docs: Vec<DocBuf> = (0..1024).map(document).collect();
    println!("\n{:44} {:>9}", "expression", "ns");
    for (name, source) in expressions() {
        let Ok(expression) = Expression::parse(Value::from(&source), &context) else {
            println!("{name:44} not built");
            continue;
        };
        let doc = docs[5].as_doc();
        let once = expression.eval(&EvalContext::new(&arena, doc, &shared));
        if let Err(error) = once {
            println!("{name:44} fails: {error}");
            continue;
        }
        let time = nanoseconds(|| {
            arena.reset();
            let cx = EvalContext::new(&arena, black_box(doc), &shared);
            black_box(expression.eval(&cx).is_ok());
        });
        println!("{name:44} {time:9.0}");
    }
    group(&docs, &context, &shared)?;
    batch(&docs, &context, &shared)
}

/// Returns a document of about 1 KB.
fn document(at: i32) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("_id", at).append("key", at % 16).append("amount", at % 100);
        writer.append("ratio", f64::from(at) * 0.25).append("exact", Decimal128::from_i32(at));
        writer.append("digits", "12345").append("when", "2024-02-29T12:30:00Z");
        writer.append("inner", &doc! { "x": 1, "y": 2 });
        for field in 0..13 {
            let name = format!("field_{field}");
            writer.append(&name, "a text of some thirty letters here, more or less");
        }
        let mut items = writer.array("items");
        for item in 0..8 {
            items.document().append("price", item).append("count", 2);
        }
        items.finish();
        writer.append("last", 7);
    })
}

/// Returns some operators of each family.
fn expressions() -> Vec<(&'static str, DocBuf)> {
    let price = doc! { "$multiply": ["$$this.price", "$$this.count"] };
    let date = doc! { "$add": [Value::Date(1_700_000_000_000), "$amount"] };
    let paris = |name: &str, more: DocBuf| {
        let mut arguments = doc! { "date": &date, "timezone": "Europe/Paris" };
        arguments.extend(|writer| {
            writer.append_all(more.as_doc());
        });
        doc! { name: &arguments }
    };
    let branches = array![
        { "case": { "$lt": ["$key", 2] }, "then": "a" },
        { "case": { "$lt": ["$key", 9] }, "then": "b" }
    ];
    vec![
        ("paths: the second field", doc! { "$ifNull": ["$key", 0] }),
        ("paths: the last field", doc! { "$ifNull": ["$last", 0] }),
        ("arithmetic: $add of two ints", doc! { "$add": ["$key", "$amount"] }),
        ("arithmetic: $multiply of int and double", doc! { "$multiply": ["$amount", "$ratio"] }),
        ("arithmetic: $multiply of decimals", doc! { "$multiply": ["$exact", "$exact"] }),
        ("arithmetic: $round", doc! { "$round": ["$ratio", 1] }),
        ("arithmetic: $pow", doc! { "$pow": ["$ratio", 1.5] }),
        ("arithmetic: $mod", doc! { "$mod": ["$amount", 7] }),
        ("arithmetic: $abs", doc! { "$abs": "$amount" }),
        ("arithmetic: $sqrt", doc! { "$sqrt": "$ratio" }),
        ("arithmetic: $ln", doc! { "$ln": "$amount" }),
        ("arithmetic: $divide of decimals", doc! { "$divide": ["$exact", 7] }),
        ("arithmetic: $ln of a decimal", doc! { "$ln": "$exact" }),
        ("trigonometry: $sin", doc! { "$sin": "$ratio" }),
        ("trigonometry: $atan2", doc! { "$atan2": ["$ratio", 2] }),
        ("trigonometry: $degreesToRadians", doc! { "$degreesToRadians": "$ratio" }),
        ("trigonometry: $sin of a decimal", doc! { "$sin": "$exact" }),
        ("bitwise: $bitAnd", doc! { "$bitAnd": ["$key", "$amount"] }),
        ("bitwise: $bitNot", doc! { "$bitNot": "$amount" }),
        ("comparison: $gt", doc! { "$gt": ["$amount", 50] }),
        ("comparison: $eq of texts", doc! { "$eq": ["$field_0", "$field_1"] }),
        ("comparison: $cmp of int and decimal", doc! { "$cmp": ["$amount", "$exact"] }),
        ("booleans: $and", doc! { "$and": [{ "$gt": ["$amount", 1] }, "$key"] }),
        ("booleans: $not", doc! { "$not": "$key" }),
        ("conditions: $cond", doc! { "$cond": [{ "$lt": ["$key", 8] }, "low", "high"] }),
        ("conditions: $switch", doc! { "$switch": { "branches": &branches, "default": "c" } }),
        ("conditions: $ifNull", doc! { "$ifNull": ["$amount", 0] }),
        ("strings: $concat", doc! { "$concat": ["$field_0", "-", "$field_1"] }),
        ("strings: $toUpper", doc! { "$toUpper": "$field_0" }),
        ("strings: $split", doc! { "$split": ["$field_0", " "] }),
        ("strings: $indexOfCP", doc! { "$indexOfCP": ["$field_0", "letters"] }),
        ("strings: $substrCP", doc! { "$substrCP": ["$field_0", 7, 5] }),
        ("strings: $strLenCP", doc! { "$strLenCP": "$field_0" }),
        ("strings: $strcasecmp", doc! { "$strcasecmp": ["$field_0", "$field_1"] }),
        ("strings: $trim", doc! { "$trim": { "input": "$field_0" } }),
        (
            "strings: $replaceAll",
            doc! { "$replaceAll": { "input": "$field_0", "find": "e", "replacement": "--" } },
        ),
        (
            "patterns: $regexMatch",
            doc! { "$regexMatch": { "input": "$field_0", "regex": "t+ers" } },
        ),
        ("dates: $year", doc! { "$year": &date }),
        ("dates: $hour in Paris", paris("$hour", doc! {})),
        ("dates: $dateTrunc in Paris", paris("$dateTrunc", doc! { "unit": "week" })),
        ("dates: $dateToString", doc! { "$dateToString": { "date": &date } }),
        (
            "dates: $dateAdd in Paris",
            doc! { "$dateAdd": { "startDate": &date, "unit": "month", "amount": 1,
            "timezone": "Europe/Paris" } },
        ),
        (
            "dates: $dateDiff",
            doc! { "$dateDiff": { "startDate": Value::Date(0), "endDate": &date, "unit": "day" } },
        ),
        ("dates: $dateToParts in Paris", paris("$dateToParts", doc! {})),
        ("dates: $dateFromParts", doc! { "$dateFromParts": { "year": 2024, "day": "$key" } }),
        ("dates: $dateFromString", doc! { "$dateFromString": { "dateString": "$when" } }),
        ("conversion: $toString of a double", doc! { "$toString": "$ratio" }),
        ("conversion: $toInt of a string", doc! { "$toInt": "$digits" }),
        ("conversion: $toDecimal of a double", doc! { "$toDecimal": "$ratio" }),
        ("arrays: $sum of items.price", doc! { "$sum": "$items.price" }),
        ("arrays: $map", doc! { "$map": { "input": "$items", "in": &price } }),
        (
            "arrays: $filter",
            doc! { "$filter": { "input": "$items", "cond": { "$gt": ["$$this.price", 4] } } },
        ),
        (
            "arrays: $reduce",
            doc! { "$reduce": { "input": "$items", "initialValue": 0,
            "in": { "$add": ["$$value", "$$this.price"] } } },
        ),
        ("arrays: $slice", doc! { "$slice": ["$items", 2, 3] }),
        ("arrays: $arrayElemAt", doc! { "$arrayElemAt": ["$items", 5] }),
        ("arrays: $concatArrays", doc! { "$concatArrays": ["$items", "$items"] }),
        ("arrays: $indexOfArray", doc! { "$indexOfArray": ["$items.price", 6] }),
        ("arrays: $reverseArray", doc! { "$reverseArray": "$items" }),
        ("arrays: $range", doc! { "$range": [0, "$key"] }),
        ("arrays: $zip", doc! { "$zip": { "inputs": ["$items.price", "$items.count"] } }),
        ("arrays: $size", doc! { "$size": "$items" }),
        (
            "arrays: $sortArray",
            doc! { "$sortArray": { "input": "$items", "sortBy": { "price": (-1) } } },
        ),
        ("sets: $setUnion", doc! { "$setUnion": ["$items.price", [1, 2, 99]] }),
        ("sets: $in", doc! { "$in": ["$amount", "$items.price"] }),
        ("sets: $setDifference", doc! { "$setDifference": ["$items.price", [1, 2, 99]] }),
        ("sets: $setIsSubset", doc! { "$setIsSubset": ["$items.price", [0, 1, 2, 3, 4, 5]] }),
        ("sets: $anyElementTrue", doc! { "$anyElementTrue": ["$items.price"] }),
        ("objects: three fields", doc! { "a": "$key", "b": "$amount", "c": "$ratio" }),
        ("objects: $objectToArray", doc! { "$objectToArray": "$inner" }),
        (
            "objects: $arrayToObject",
            doc! { "$arrayToObject": [[{ "k": "a", "v": "$key" }, { "k": "b", "v": "$ratio" }]] },
        ),
        ("objects: $getField", doc! { "$getField": { "field": "x", "input": "$inner" } }),
        ("objects: $mergeObjects", doc! { "$mergeObjects": ["$inner", { "z": "$key" }] }),
        (
            "objects: $setField",
            doc! { "$setField": { "field": "x", "input": "$inner", "value": "$key" } },
        ),
        ("types: $type", doc! { "$type": "$key" }),
        ("types: $isNumber", doc! { "$isNumber": "$key" }),
        ("accumulators: $avg", doc! { "$avg": "$items.price" }),
        ("accumulators: $max", doc! { "$max": "$items.price" }),
        ("accumulators: $stdDevPop", doc! { "$stdDevPop": "$items.price" }),
        ("accumulators: $maxN", doc! { "$maxN": { "input": "$items.price", "n": 3 } }),
        (
            "accumulators: $median",
            doc! { "$median": { "input": "$items.price", "method": "approximate" } },
        ),
        ("sizes: $bsonSize", doc! { "$bsonSize": "$$ROOT" }),
        ("hashes: $toHashedIndexKey", doc! { "$toHashedIndexKey": "$field_0" }),
        ("variables: $let", doc! { "$let": { "vars": { "v": "$key" }, "in": ["$$v", "$$v"] } }),
    ]
}

/// Measures `$group`: a table of states, as the executor keeps it, fed document by document and by
/// batches.
fn group(docs: &[DocBuf], context: &ParseContext, shared: &Shared) -> Result<()> {
    let source = doc! { "$group": { "_id": "$key", "total": { "$sum": "$amount" } } };
    let stages = parse_stage(Value::from(&source), context)?;
    let Some(Stage::Group(group)) = stages.first() else { return Ok(()) };
    let views: Vec<Doc<'_>> = docs.iter().map(DocBuf::as_doc).collect();
    let mut arena = Bump::new();
    let mut tables = group.new_tables(None);
    (0..16).try_for_each(|_| {
        group.open(&mut tables, Value::Null, &EvalContext::new(&arena, Doc::empty(), shared))
    })?;
    let number = |key: Option<Value<'_>>| match key {
        Some(Value::Int32(key)) => key as u32,
        _ => 0,
    };
    let one_by_one = nanoseconds(|| {
        for doc in &views {
            arena.reset();
            let cx = EvalContext::new(&arena, *doc, shared);
            let Ok(cx) = group.extract(&cx) else { return };
            let Ok(key) = group.key().eval(&cx) else { return };
            black_box(group.add(&mut tables, number(Some(key)) as usize, &cx).is_ok());
        }
    });
    let batches = nanoseconds(|| {
        arena.reset();
        let cx = EvalContext::new(&arena, Doc::empty(), shared);
        let Ok(batch) = group.batch(&views, &cx) else { return };
        let Ok((keys, arguments)) = group.columns(&batch, &cx) else { return };
        let groups: Vec<u32> = (0..batch.len()).map(|row| number(keys.get(row))).collect();
        for (table, argument) in tables.iter_mut().zip(&arguments) {
            black_box(table.add_column(&groups, argument).is_ok());
        }
    });
    let count = docs.len() as f64;
    println!("{:44} {:9.0}", "$group by key with $sum, one by one", one_by_one / count);
    println!("{:44} {:9.0}", "$group by key with $sum, in batches", batches / count);
    Ok(())
}

fn batch(docs: &[DocBuf], context: &ParseContext, shared: &Shared) -> Result<()> {
    let views: Vec<Doc<'_>> = docs.iter().map(DocBuf::as_doc).collect();
    let mut arena = Bump::new();
    for (name, source) in [
        ("$add of a $multiply", doc! { "$add": [{ "$multiply": ["$amount", 2] }, "$key"] }),
        ("$cond of a $gt", doc! { "$cond": [{ "$gt": ["$amount", 50] }, 1, 0] }),
        (
            "$divide, $toDate and $hour",
            doc! { "$hour": { "$toDate": { "$divide": ["$ratio", 2] } } },
        ),
    ] {
        let mut expression = Expression::parse(Value::from(&source), context)?;
        let mut extractor = Extractor::default();
        extractor.attach(&mut expression);
        let one_by_one = nanoseconds(|| {
            for doc in &views {
                arena.reset();
                let cx = EvalContext::new(&arena, *doc, shared);
                black_box(expression.eval(&cx).is_ok());
            }
        });
        let batches = nanoseconds(|| {
            arena.reset();
            let cx = EvalContext::new(&arena, Doc::empty(), shared);
            let Ok(batch) = Batch::new(&views, &extractor, &cx) else { return };
            black_box(expression.eval_batch(&batch, &cx).is_ok());
        });
        let count = docs.len() as f64;
        println!("{:44} {:9.0}", format!("{name}, one by one"), one_by_one / count);
        println!("{:44} {:9.0}", format!("{name}, in a batch"), batches / count);
    }
    Ok(())
}
