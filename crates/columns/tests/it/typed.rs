//! Columns have the values of the documents.

use quire_columns::{Bucket, Column, pack};
use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, Value, ValueBuf, doc, identical};

fn bucket(points: &[DocBuf], meta: Option<&str>) -> Bucket<Vec<u8>> {
    let docs: Vec<Doc<'_>> = points.iter().map(DocBuf::as_doc).collect();
    Bucket::open(pack(&docs, "at", meta).unwrap()).unwrap()
}

/// Returns the value of a point in a column.
fn value(column: &Column, at: usize) -> Option<Value<'_>> {
    match column {
        Column::Ints(all) => all.get(at).map(|number| Value::Int32(*number)),
        Column::Longs(all) => all.get(at).map(|number| Value::Int64(*number)),
        Column::Doubles(all) => all.get(at).map(|number| Value::Double(*number)),
        Column::Dates(all) => all.get(at).map(|number| Value::Date(*number)),
        Column::Same(value) => Some(value.as_value()),
        Column::Missing => None,
        Column::Values(values) => values.get(at),
        Column::Documents => panic!("no values"),
    }
}

#[test]
fn columns_are_typed() {
    let points: Vec<DocBuf> = (0..300)
        .map(|at: i32| {
            let number = f64::from(at);
            doc! {
                "at": Value::Date(i64::from(at)), "m": "x", "i": at, "l": i64::from(at),
                "d": number / 4.0, "n": Value::Null, "s": "same", "in": { "x": 1 },
            }
        })
        .collect();
    let bucket = bucket(&points, Some("m"));
    let column = |field: &str| bucket.column(field).unwrap();
    assert!(matches!(column("at"), Column::Dates(all) if all.len() == 300));
    assert!(matches!(column("m"), Column::Same(value) if value == ValueBuf::new("x")));
    assert!(matches!(column("i"), Column::Ints(all) if all == (0..300).collect::<Vec<_>>()));
    assert!(matches!(column("l"), Column::Longs(all) if all == (0..300).collect::<Vec<_>>()));
    assert!(matches!(column("d"), Column::Doubles(all) if all[6] == 1.5 && all.len() == 300));
    assert!(matches!(column("n"), Column::Same(value) if value == ValueBuf::new(Value::Null)));
    assert!(matches!(column("none"), Column::Missing));
    assert!(matches!(column("in"), Column::Documents));
    assert!(matches!(column("in.x"), Column::Missing));
}

#[test]
fn columns_have_the_first_value_of_each_document() {
    let mut generator = Generator::new(70);
    let mut compared = 0;
    for _ in 0..300 {
        let pool: Vec<ValueBuf> = (0..3).map(|_| generator.value()).collect();
        let points: Vec<DocBuf> = (0..20)
            .map(|time| {
                DocBuf::build(|writer| {
                    writer.append("at", Value::Date(time));
                    for name in ["x", "y", "x"] {
                        if !generator.one_in(6) {
                            writer.append_some(name, generator.pick(&pool).map(Value::from));
                        }
                    }
                })
            })
            .collect();
        let bucket = bucket(&points, None);
        for field in ["at", "x", "y", "z"] {
            let column = bucket.column(field).unwrap();
            if matches!(column, Column::Documents) {
                continue;
            }
            compared += 1;
            for (at, point) in points.iter().enumerate() {
                match (value(&column, at), point.get(field)) {
                    (Some(a), Some(b)) => assert!(identical(a, b), "{a:?} {b:?}"),
                    (a, b) => assert!(a.is_none() && b.is_none(), "{a:?} {b:?}"),
                }
            }
        }
    }
    assert!(compared > 700, "{compared}");
}
