//! `system.buckets`: the points as buckets of MongoDB's version 1, which lose none.

use super::sources::fill;
use super::{all, closing_server, sorted};
use crate::{at, code, number, text};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, array, compare, doc};
use quire_storage::rng::Rng;
use std::collections::HashSet;

/// Returns the points of a bucket, as MongoDB unpacks them.
pub(super) fn unpacked(bucket: &DocBuf) -> Vec<DocBuf> {
    let Some(Value::Document(data)) = bucket.get("data") else { panic!("{bucket:?}") };
    let columns: Vec<(&str, Doc<'_>)> =
        data.fields().map(|(field, column)| (field, column.as_document().unwrap())).collect();
    let (_, times) = columns.iter().find(|(field, _)| *field == "t").unwrap();
    let point = |number: usize| {
        let number = number.to_string();
        DocBuf::build(|point| {
            point.append_some("t", times.get(&number));
            point.append_some("m", bucket.get("meta"));
            for (field, column) in columns.iter().filter(|(field, _)| *field != "t") {
                point.append_some(field, column.get(&number));
            }
        })
    };
    (0..times.count()).map(point).collect()
}

fn path<'d>(doc: &'d DocBuf, path: &str) -> Value<'d> {
    at(doc, path).unwrap_or_else(|| panic!("{path} of {doc:?}"))
}

#[test]
fn buckets_as_tools_see_them_have_every_point_once() {
    let server = closing_server();
    let mut client = server.client(1);
    fill(&mut client, &mut Rng::new(3), true);
    for name in ["closed", "rows"] {
        let points = sorted(all(&mut client, doc! { "find": name }, 100));
        let hidden = format!("system.buckets.{name}");
        let buckets = all(&mut client, doc! { "find": (hidden.as_str()) }, 10);
        let found: Vec<DocBuf> = buckets.iter().flat_map(unpacked).collect();
        assert_eq!(sorted(found), points);
        let id = |bucket| ValueBuf::new(path(bucket, "_id"));
        let ids: HashSet<ValueBuf> = buckets.iter().map(id).collect();
        assert_eq!(ids.len(), buckets.len());
        for bucket in &buckets {
            let (Value::Date(begin), Value::Date(last)) =
                (path(bucket, "control.min.t"), path(bucket, "control.max.t"))
            else {
                panic!("{bucket:?}")
            };
            assert!(begin % 10_000 == 0 && last - begin < 10_000, "{bucket:?}");
            let values: Vec<Value<'_>> =
                path(bucket, "data.v").as_document().unwrap().fields().map(|(_, v)| v).collect();
            let least = values.iter().min_by(|a, b| compare(**a, **b, None)).unwrap();
            assert!(compare(path(bucket, "control.min.v"), *least, None).is_eq(), "{bucket:?}");
        }
        let count = client.works(doc! { "count": (hidden.as_str()), "$db": "test" });
        assert_eq!(number(&count, "n"), Some(buckets.len() as i64));
        let stages: ArrayBuf =
            array![{ "$match": { "meta": "a" } }, { "$sort": { "_id": 1 } }, { "$limit": 3 }];
        let some =
            all(&mut client, doc! { "aggregate": (hidden.as_str()), "pipeline": &stages }, 2);
        assert!(some.len() == 3 && some.iter().all(|bucket| text(bucket, "meta") == Some("a")));
    }
}

#[test]
fn extremes_of_nested_values_are_those_of_their_parts() {
    let server = closing_server();
    let mut client = server.client(1);
    super::create(&mut client, "s");
    let point = |n: i64, rest: DocBuf| {
        let mut point = doc! { "t": Value::Date(1_000 + n), "m": 1, "_id": n };
        rest.as_doc().fields().for_each(|(name, value)| {
            point.append(name, value);
        });
        point
    };
    super::insert(
        &mut client,
        "s",
        &[
            point(1, doc! { "d": { "a": 1, "b": { "c": 9 } }, "l": [3, 4], "x": "text" }),
            point(2, doc! { "d": { "a": 5, "b": { "c": 2 } }, "l": [1, 7, 8], "x": "a" }),
            point(3, doc! { "d": { "e": 0 } }),
            // A value of another type opens another bucket.
            point(4, doc! { "x": 4 }),
        ],
    );
    let found = all(&mut client, doc! { "find": "system.buckets.s" }, 10);
    let control = path(&found[0], "control").as_document().unwrap().to_owned();
    assert_eq!(
        control,
        doc! {
            "version": 1,
            "min": { "t": Value::Date(0), "_id": 1_i64, "d": { "a": 1, "b": { "c": 2 }, "e": 0 }, "l": [1, 4, 8], "x": "a" },
            "max": { "t": Value::Date(1_003), "_id": 3_i64, "d": { "a": 5, "b": { "c": 9 }, "e": 0 }, "l": [3, 7, 8], "x": "text" },
        }
    );
    assert_eq!(found.len(), 2);
    assert_eq!(path(&found[1], "control.min.x").exact_i64(), Some(4));
    let in_snapshot = client.run(doc! {
        "find": "system.buckets.s", "readConcern": { "level": "snapshot" }, "$db": "test",
    });
    assert_eq!(code(&in_snapshot), 115, "{in_snapshot:?}");
    let none = client.works(doc! { "find": "system.buckets.nothing", "$db": "test" });
    assert_eq!(path(&none, "cursor.firstBatch").as_array().map(|list| list.is_empty()), Some(true));
}
