//! `$bucketAuto`: no document is lost, buckets are adjacent, and the result is the same with
//! spilling.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, compare, doc};
use quire_error::ErrorCode;
use quire_executor::open;
use quire_planner::AggregateRequest;

fn buckets(store: &Arc<Store>, stage: DocBuf, bytes: usize, disk: bool) -> Result<Vec<DocBuf>> {
    let request = AggregateRequest {
        namespace: "db.c".into(),
        pipeline: vec![doc! { "$bucketAuto": &stage }],
        allow_disk_use: Some(disk),
        ..AggregateRequest::default()
    };
    let mut params = params();
    params.stage_bytes_max = bytes;
    try_drain(store, &mut open(&request, &FreshViews::new(store)?, params)?, 3)
}

fn numbers(random: &mut Generator, count: usize) -> Vec<DocBuf> {
    let number = |random: &mut Generator| random.below(50) as i32;
    (0..count).map(|n| doc! { "_id": n as i32, "v": number(random) }).collect()
}

#[test]
fn buckets_hold_every_document_once() {
    let random = &mut Generator::new(11);
    for round in 0..40 {
        let (store, count) = (store(), 1 + random.below(300) as usize);
        let docs = numbers(random, count);
        insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
        let wanted = 1 + random.below(12) as i32;
        let mut stage = doc! { "groupBy": "$v", "buckets": wanted, "output": {
            "n": { "$sum": 1 }, "min": { "$min": "$v" }, "max": { "$max": "$v" },
            "all": { "$push": "$v" }
        } };
        if round % 2 == 1 {
            stage
                .append("granularity", *random.pick(&["R5", "E12", "1-2-5", "POWERSOF2"]).unwrap());
        }
        let found = buckets(&store, stage.clone(), 1 << 20, true).unwrap();
        assert_eq!(found, buckets(&store, stage, 4096, true).unwrap());
        assert!(found.len() <= wanted as usize);
        let total = found.iter().map(|bucket| match bucket.get("n") {
            Some(Value::Int32(n)) => n as usize,
            other => panic!("{other:?}"),
        });
        assert_eq!(total.sum::<usize>(), count);
        for (at, bucket) in found.iter().enumerate() {
            let bounds = bucket.get("_id").and_then(|id| id.as_document()).unwrap();
            let order =
                |a: Option<Value<'_>>, b: Option<Value<'_>>| compare(a.unwrap(), b.unwrap(), None);
            assert!(order(bounds.get("min"), bucket.get("min")).is_le());
            let is_last = at + 1 == found.len();
            let highest = order(bucket.get("max"), bounds.get("max"));
            assert!(if is_last { highest.is_le() } else { highest.is_lt() }, "{bucket:?}");
            if let Some(next) = found.get(at + 1) {
                let next = next.get("_id").and_then(|id| id.as_document()).unwrap();
                assert!(order(bounds.get("max"), next.get("min")).is_eq());
            }
        }
    }
}

#[test]
fn without_a_disk_memory_ends() {
    let store = store();
    let docs = numbers(&mut Generator::new(3), 1000);
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let stage = doc! { "groupBy": "$v", "buckets": 5 };
    let error = buckets(&store, stage, 4096, false).unwrap_err();
    assert_eq!(error.code(), ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed);
}
