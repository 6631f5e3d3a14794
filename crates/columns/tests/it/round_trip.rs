//! Every document comes back byte for byte.

use quire_columns::{BUCKET_POINTS_MAX, Bucket, pack};
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, doc};
use quire_error::ErrorCode;

/// Packs and unpacks the points, and compares them in every order of reading. Returns the bytes.
pub fn round_trip(points: &[DocBuf], time: &str, meta: Option<&str>) -> Vec<u8> {
    let docs: Vec<Doc<'_>> = points.iter().map(DocBuf::as_doc).collect();
    let bytes = pack(&docs, time, meta).unwrap();
    let bucket = Bucket::open(&bytes).unwrap();
    assert_eq!(bucket.len(), points.len());
    assert_eq!(bucket.size(), points.iter().map(|point| point.as_bytes().len()).sum::<usize>());
    let back: Vec<DocBuf> = bucket.points().unwrap().collect();
    assert_eq!(back, points);
    for at in [0, points.len() / 2, points.len() - 1] {
        assert_eq!(bucket.point(at).unwrap().as_ref(), points.get(at));
    }
    assert_eq!(bucket.point(points.len()).unwrap(), None);
    let mut reader = bucket.points().unwrap();
    for at in [points.len() - 1, 0, points.len() / 3] {
        reader.seek(at);
        assert_eq!(reader.position(), at);
        assert_eq!(reader.next().as_ref(), points.get(at));
    }
    bytes
}

/// Returns a point with a time, a meta value, and the elements of `rest`.
fn point(time: i64, meta: Option<&ValueBuf>, rest: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("at", Value::Date(time));
        writer.append_some("sensor", meta.map(ValueBuf::as_value));
        for element in rest.iter() {
            writer.append_element(element);
        }
    })
}

#[test]
fn random_documents_come_back() {
    let mut generator = Generator::new(53);
    for round in 0..300 {
        let meta = generator.one_in(2).then(|| generator.value());
        let count = 1 + generator.below(40);
        let mut time = generator.integer() >> 1;
        let points: Vec<DocBuf> = (0..count)
            .map(|_| {
                time += generator.below(5) as i64;
                let rest = generator.document();
                point(time, meta.as_ref(), rest.as_doc())
            })
            .collect();
        let bytes = round_trip(&points, "at", Some("sensor"));
        let bucket = Bucket::open(bytes).unwrap();
        assert_eq!(bucket.meta().map(ValueBuf::new), meta, "round {round}");
        let times: Vec<i64> = points
            .iter()
            .map(|point| match point.get("at") {
                Some(Value::Date(time)) => time,
                _ => panic!("no time"),
            })
            .collect();
        assert_eq!(bucket.time_range(), (times[0], times[times.len() - 1]));
        assert_eq!(bucket.times().unwrap(), times);
    }
}

#[test]
fn few_fields_with_values_of_every_type_come_back() {
    let mut generator = Generator::new(54);
    for _ in 0..40 {
        let kinds = 1 + generator.below(4) as usize;
        let values: Vec<ValueBuf> = (0..kinds).map(|_| generator.value()).collect();
        let points: Vec<DocBuf> = (0..500)
            .map(|time| {
                let rest = DocBuf::build(|writer| {
                    for name in ["x", "y", "", "x"] {
                        if !generator.one_in(5) {
                            writer.append_some(name, generator.pick(&values).map(Value::from));
                        }
                    }
                });
                point(time, None, rest.as_doc())
            })
            .collect();
        round_trip(&points, "at", None);
    }
}

#[test]
fn the_time_may_stand_anywhere_and_repeat() {
    let mut generator = Generator::new(55);
    let points: Vec<DocBuf> = (0..2000)
        .map(|time| {
            let (before, after) = (generator.document(), generator.document());
            DocBuf::build(|writer| {
                writer.append_all(before.as_doc());
                writer.append("time", Value::Date(time));
                writer.append_all(after.as_doc());
                writer.append("m", "meta");
                writer.append("time", 1.5);
                writer.append("m", true);
            })
        })
        .collect();
    let bytes = round_trip(&points, "time", Some("m"));
    let bucket = Bucket::open(bytes).unwrap();
    assert_eq!(bucket.times().unwrap(), (0..2000).collect::<Vec<i64>>());
    assert_eq!(bucket.meta().map(ValueBuf::new), Some(ValueBuf::new("meta")));
}

#[test]
fn deep_and_wide_points_come_back() {
    let mut deep = doc! { "x": 1 };
    for _ in 0..100 {
        deep = doc! { "x": deep.as_doc(), "y": 2 };
    }
    let long: ArrayBuf = (0..5000).collect();
    let short: ArrayBuf = (0..3).map(f64::from).collect();
    let points: Vec<DocBuf> = (0..20)
        .map(|time| {
            let at = Value::Date(time);
            doc! { "at": at, "deep": deep.as_doc(), "long": &long, "short": &short, "e": {} }
        })
        .collect();
    round_trip(&points, "at", None);
    let wide: Vec<DocBuf> = (0..30)
        .map(|time| {
            DocBuf::build(|writer| {
                writer.append("at", Value::Date(time));
                for field in 0..300 {
                    writer.append(&format!("field {time} {field}"), field);
                }
            })
        })
        .collect();
    round_trip(&wide, "at", None);
}

#[test]
fn extreme_times_come_back() {
    for times in [[i64::MIN, 0, i64::MAX], [i64::MAX; 3], [i64::MIN, i64::MIN, i64::MIN + 1]] {
        let points: Vec<DocBuf> =
            times.iter().map(|time| doc! { "": Value::Date(*time) }).collect();
        let bytes = round_trip(&points, "", None);
        assert_eq!(Bucket::open(bytes).unwrap().time_range(), (times[0], times[2]));
    }
}

#[test]
fn what_is_no_bucket_of_points_is_refused() {
    let refused = |points: &[DocBuf], meta| {
        let docs: Vec<Doc<'_>> = points.iter().map(DocBuf::as_doc).collect();
        assert_eq!(pack(&docs, "at", meta).unwrap_err().code(), ErrorCode::BadValue);
    };
    let at = Value::Date(1);
    refused(&[], None);
    refused(&[doc! { "at": 1 }], None);
    refused(&[doc! { "x": { "at": at } }], None);
    refused(&[doc! { "at": at, "m": 1 }, doc! { "at": at, "m": 1.0 }], Some("m"));
    refused(&[doc! { "at": at, "m": 1 }, doc! { "at": at }], Some("m"));
    refused(&[doc! { "at": at }, doc! { "at": at, "m": 1 }], Some("m"));
    refused(&vec![doc! { "at": at }; BUCKET_POINTS_MAX + 1], None);
    let large = "x".repeat(8 << 20);
    refused(&vec![doc! { "at": at, "x": large.as_str() }; 9], None);
}
