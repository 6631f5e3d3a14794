//! Bounds contain every value that a filter can see.

use quire_columns::{Bucket, pack};
use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, Path, Value, ValueBuf, compare, doc, identical};

fn bucket(points: &[DocBuf], meta: Option<&str>) -> Bucket<Vec<u8>> {
    let docs: Vec<Doc<'_>> = points.iter().map(DocBuf::as_doc).collect();
    Bucket::open(pack(&docs, "at", meta).unwrap()).unwrap()
}

/// Returns the value at a dotted path that leads through documents only.
fn value<'d>(doc: Doc<'d>, path: &str) -> Option<Value<'d>> {
    match path.split_once('.') {
        None => doc.get(path),
        Some((first, rest)) => value(doc.get(first)?.as_document()?, rest),
    }
}

#[test]
fn bounds_contain_all_values() {
    let mut generator = Generator::new(60);
    let mut known = 0;
    for _ in 0..400 {
        let pool: Vec<ValueBuf> = (0..3).map(|_| generator.value()).collect();
        let points: Vec<DocBuf> = (0..1 + generator.below(8))
            .map(|time| {
                DocBuf::build(|writer| {
                    writer.append("at", Value::Date(time as i64));
                    for name in ["x", "y"] {
                        if !generator.one_in(6) {
                            writer.append_some(name, generator.pick(&pool).map(Value::from));
                        }
                    }
                })
            })
            .collect();
        let bucket = bucket(&points, None);
        for path in ["at", "x", "y", "z", "x.a", "x.b", "y.a.b", "x.", "x.0"] {
            let Some(bounds) = bucket.bounds(path) else { continue };
            known += 1;
            let _ = Path::new(path);
            let mut missing = false;
            for point in &points {
                let Some(found) = value(point.as_doc(), path) else {
                    missing = true;
                    continue;
                };
                assert!(!matches!(found, Value::Array(_)), "{path} {point:?}");
                let (least, most) = bounds.range.unwrap();
                assert!(compare(least, found, None).is_le(), "{path} {point:?} {bounds:?}");
                assert!(compare(most, found, None).is_ge(), "{path} {point:?} {bounds:?}");
            }
            assert_eq!(missing, bounds.is_missing, "{path} {points:?}");
        }
    }
    assert!(known > 1000, "{known}");
}

#[test]
fn bounds_are_values_of_the_points() {
    let long = "x".repeat(100);
    let points: Vec<DocBuf> = [(2.5, "b"), (-1.0, "a"), (7.0, "c")]
        .iter()
        .map(|(number, text)| {
            let inner = doc! { "n": *number };
            doc! {
                "at": Value::Date(5), "m": 1, "n": *number, "s": *text, "in": inner.as_doc(),
                "long": long.as_str(), "array": [1],
            }
        })
        .collect();
    let bucket = bucket(&points, Some("m"));
    let same = |path: &str, least: Value<'_>, most: Value<'_>| {
        let bounds = bucket.bounds(path).unwrap();
        let (found_least, found_most) = bounds.range.unwrap();
        assert!(identical(found_least, least) && identical(found_most, most), "{bounds:?}");
        assert!(!bounds.is_missing);
    };
    same("at", Value::Date(5), Value::Date(5));
    same("m", Value::Int32(1), Value::Int32(1));
    same("n", Value::Double(-1.0), Value::Double(7.0));
    same("s", Value::String("a"), Value::String("c"));
    same("in.n", Value::Double(-1.0), Value::Double(7.0));
    for unknown in ["long", "array", "in", "array.0", "m.x"] {
        assert!(bucket.bounds(unknown).is_none(), "{unknown}");
    }
    assert!(bucket.bounds("none").unwrap().range.is_none());
    assert!(bucket.bounds("n.x").unwrap().range.is_none());
    assert!(bucket.bounds("none").unwrap().is_missing);
}
