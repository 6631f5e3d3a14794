//! Unpacks a bucket of MongoDB, as it stands in `system.buckets` of a time-series collection and in its dumps, into points.
//!
//! A bucket has a version. In version 1 a field of `data` is a document with the values by the numbers of the points; in
//! versions 2 (points in the order of their times) and 3 (in any order) it is a BSON column. (MongoDB: "Bucket Collection
//! Schema" in the documentation of time-series collections.)

use std::collections::HashSet;

use quire_document::limits::DEPTH_MAX;
use quire_document::{Binary, Doc, DocWriter, Element, Iter, Type, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::bson_column::{BsonColumn, Budget};
use crate::limits::{BUCKET_BYTES_MAX, BUCKET_POINTS_MAX};

/// The steps that unpacking a bucket may take ([`Budget`]): a thousand points of 60,000 fields.
pub const UNPACK_STEPS_MAX: u64 = 64 << 20;
/// The subtype of a binary that is a BSON column.
const COLUMN: u8 = 7;

/// The points of a bucket, in its order.
#[derive(Debug, Default)]
pub struct Unpacked {
    bytes: Vec<u8>,
    /// The places in `bytes` at which a point ends.
    ends: Vec<usize>,
}

impl Unpacked {
    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the sum of the lengths of the points, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if there are no points.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the points.
    pub fn iter(&self) -> impl Iterator<Item = Doc<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let point = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            Doc::from_valid_bytes(point)
        })
    }
}

/// Unpacks a bucket. A point has its time first, then the meta field, then its other fields in the order of the bucket.
///
/// # Errors
/// 2 BadValue for a bucket that has no version, or not the fields of its version; 6067601 for a field with fewer or more
/// values than the bucket has points; 378 NonConformantBSON for a damaged column; 10334 BSONObjectTooLarge for more than
/// [`BUCKET_POINTS_MAX`] points or [`BUCKET_BYTES_MAX`] bytes, 15 Overflow for points that nest too deep.
pub fn unpack(bucket: Doc<'_>, time_field: &str, meta_field: Option<&str>) -> Result<Unpacked> {
    let mut budget = Budget::new(UNPACK_STEPS_MAX);
    let mut fields = Fields::open(bucket, time_field, meta_field, &mut budget)?;
    let meta = match (meta_field, bucket.find("meta")) {
        (Some(field), Some(meta)) => Some((field, meta)),
        (None, Some(_)) => {
            return Err(Error::bad_value("a bucket with a meta value, and no metaField"));
        }
        (_, None) => None,
    };
    let mut points = Unpacked::default();
    while let Some(number) = fields.time.next(points.len(), &mut budget)? {
        let mut point = DocWriter::new(&mut points.bytes);
        match fields.time.value() {
            Some(time) if time.kind() == Type::Date => point.append_renamed(time_field, time),
            _ => return Err(Error::bad_value(format!("a point without a date in '{time_field}'"))),
        };
        if let Some((field, meta)) = meta {
            point.append_renamed(field, meta);
        }
        for (name, values) in &mut fields.others {
            values.seek(number, &mut budget)?;
            if let Some(value) = values.value() {
                point.append_renamed(name, value);
            }
            if point.len() > BUCKET_BYTES_MAX {
                return Err(too_large());
            }
        }
        point.finish();
        points.ends.push(points.bytes.len());
        if points.len() > BUCKET_POINTS_MAX || points.bytes.len() > BUCKET_BYTES_MAX {
            return Err(too_large());
        }
    }
    fields.check_end(&points, &mut budget)?;
    if points.iter().any(|point| !point.nests_within(DEPTH_MAX + 1)) {
        return Err(Error::new(ErrorCode::Overflow, "a bucket with points that nest too deep"));
    }
    Ok(points)
}

fn too_large() -> Error {
    Error::new(ErrorCode::BSONObjectTooLarge, "a bucket with too many points, or too long ones")
}

fn other_count(what: &str) -> Error {
    Error::location(6_067_601, format!("Bucket unexpectedly contained {what} values than count"))
}

/// The fields of a bucket.
struct Fields<'b> {
    time: Values<'b>,
    others: Vec<(&'b str, Values<'b>)>,
    /// The number of points that the bucket states.
    count: Option<i64>,
}

impl<'b> Fields<'b> {
    fn open(
        bucket: Doc<'b>,
        time_field: &str,
        meta_field: Option<&str>,
        budget: &mut Budget,
    ) -> Result<Self> {
        let wrong = |what: &str| Error::bad_value(format!("a bucket without {what}"));
        let control = bucket.get("control").and_then(|control| control.as_document());
        let control = control.ok_or_else(|| wrong("'control'"))?;
        let version = control.get("version").and_then(|version| version.exact_i64());
        let version = version.filter(|version| (1..=3).contains(version));
        let is_packed = version.ok_or_else(|| wrong("a known version"))? > 1;
        let data = bucket.get("data").and_then(|data| data.as_document());
        let (mut time, mut others) = (None, Vec::new());
        let mut names = HashSet::new();
        for (name, value) in data.ok_or_else(|| wrong("'data'"))?.fields() {
            if !names.insert(name) || meta_field == Some(name) {
                return Err(Error::bad_value(format!("a bucket with a second field '{name}'")));
            }
            let values = Values::open(name, value, is_packed, budget)?;
            match name == time_field {
                true => time = Some(values),
                false => others.push((name, values)),
            }
        }
        let time = time.ok_or_else(|| wrong(&format!("values of '{time_field}'")))?;
        let count = control.get("count").and_then(|count| count.exact_i64());
        Ok(Fields { time, others, count: count.filter(|_| is_packed) })
    }

    /// Checks that no field has more values than there are points.
    fn check_end(&mut self, points: &Unpacked, budget: &mut Budget) -> Result<()> {
        for (_, values) in &mut self.others {
            if !values.is_at_end(budget)? {
                return Err(other_count("more"));
            }
        }
        match self.count {
            Some(count) if count > points.len() as i64 => Err(other_count("fewer")),
            Some(count) if count < points.len() as i64 => Err(other_count("more")),
            _ => Ok(()),
        }
    }
}

/// The values of a field.
enum Values<'b> {
    /// By the numbers of their points.
    Plain { rest: Iter<'b>, next: Option<Element<'b>>, current: Option<Element<'b>> },
    /// As a BSON column.
    Packed(Box<BsonColumn<'b>>),
}

impl<'b> Values<'b> {
    fn open(name: &str, value: Value<'b>, is_packed: bool, budget: &mut Budget) -> Result<Self> {
        match (is_packed, value) {
            (false, Value::Document(values)) => {
                let mut rest = values.iter();
                Ok(Values::Plain { next: rest.next(), current: None, rest })
            }
            (true, Value::Binary(Binary { subtype: COLUMN, bytes })) => {
                Ok(Values::Packed(Box::new(BsonColumn::new(bytes, budget)?)))
            }
            _ => {
                let text = format!("the values of '{name}' are not those of the bucket's version");
                Err(Error::bad_value(text))
            }
        }
    }

    /// Moves to the next value, whatever its number. Returns the number as it is written; `None` at the end.
    fn next(&mut self, at: usize, budget: &mut Budget) -> Result<Option<Number<'b>>> {
        match self {
            Values::Plain { rest, next, current } => {
                budget.spend(1)?;
                *current = std::mem::replace(next, rest.next());
                let Some(current) = current else { return Ok(None) };
                let number = current.key();
                // Numbers that rise are all different.
                match number.parse::<usize>() {
                    Ok(number) if number == at => {}
                    _ => return Err(Error::bad_value("the points of a bucket are not numbered")),
                }
                Ok(Some(Number(number)))
            }
            Values::Packed(column) => Ok(column.advance(budget)?.then_some(Number(""))),
        }
    }

    /// Moves to the value of a point.
    fn seek(&mut self, number: Number<'_>, budget: &mut Budget) -> Result<()> {
        match self {
            Values::Plain { rest, next, current } => {
                budget.spend(1)?;
                *current = next.take_if(|next| next.key() == number.0);
                if current.is_some() {
                    *next = rest.next();
                }
                Ok(())
            }
            Values::Packed(column) => match column.advance(budget)? {
                true => Ok(()),
                false => Err(other_count("fewer")),
            },
        }
    }

    fn value(&self) -> Option<Element<'_>> {
        match self {
            Values::Plain { current, .. } => *current,
            Values::Packed(column) => column.value(),
        }
    }

    fn is_at_end(&mut self, budget: &mut Budget) -> Result<bool> {
        match self {
            Values::Plain { next, .. } => Ok(next.is_none()),
            Values::Packed(column) => Ok(!column.advance(budget)?),
        }
    }
}

/// The number of a point as a field has it; empty in packed buckets, whose values have none.
#[derive(Clone, Copy)]
struct Number<'b>(&'b str);

#[cfg(test)]
mod tests {
    use quire_document::literal::print;
    use quire_document::{DocBuf, ValueBuf, doc};

    use super::*;

    /// Returns a column of literals; `None` is a missing value.
    fn column(values: &[Option<Value<'_>>]) -> ValueBuf {
        let mut bytes = Vec::new();
        for value in values {
            match value {
                Some(value) => {
                    let doc = doc! { "": *value };
                    bytes.extend_from_slice(doc.as_doc().element_bytes());
                }
                // One block with one number of 60 bits, all set.
                None => bytes.extend_from_slice(&[0x80, 0xFE, 255, 255, 255, 255, 255, 255, 255]),
            }
        }
        bytes.push(0);
        ValueBuf::new(Value::Binary(Binary { subtype: COLUMN, bytes: &bytes }))
    }

    fn shown(bucket: &DocBuf, meta_field: Option<&str>) -> Result<Vec<String>> {
        let points = unpack(bucket.as_doc(), "t", meta_field)?;
        Ok(points.iter().map(print).collect())
    }

    fn packed(version: i32, count: i32) -> DocBuf {
        let times = column(&[Some(Value::Date(9)), Some(Value::Date(7))]);
        let values = column(&[None, Some(Value::Int32(5))]);
        doc! {
            "control": { "version": version, "count": count }, "meta": { "s": 1 },
            "data": { "v": &values, "t": &times },
        }
    }

    #[test]
    fn each_version_is_unpacked() {
        let expected = [
            doc! { "t": Value::Date(9), "m": { "s": 1 } },
            doc! { "t": Value::Date(7), "m": { "s": 1 }, "v": 5 },
        ];
        let expected: Vec<String> = expected.iter().map(|doc| print(doc.as_doc())).collect();
        for version in [2, 3] {
            assert_eq!(shown(&packed(version, 2), Some("m")).unwrap(), expected);
        }
        let plain = doc! {
            "control": { "version": 1 }, "meta": { "s": 1 },
            "data": { "v": { "1": 5 }, "t": { "0": Value::Date(9), "1": Value::Date(7) } },
        };
        assert_eq!(shown(&plain, Some("m")).unwrap(), expected);
        let empty = doc! { "control": { "version": 1 }, "data": { "t": {} } };
        assert!(shown(&empty, None).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_bucket_is_refused() {
        let code = |bucket: &DocBuf| shown(bucket, Some("m")).unwrap_err().code().number();
        let time = column(&[Some(Value::Date(1))]);
        let plain = |data: DocBuf| doc! { "control": { "version": 1 }, "data": &data };
        let two = doc! { "0": Value::Date(1), "1": Value::Date(2) };
        let control = doc! { "version": 2 };
        for (bucket, expected) in [
            (doc! { "data": {} }, 2),
            (doc! { "control": { "version": 4 }, "data": {} }, 2),
            (doc! { "control": { "version": 1 } }, 2),
            (plain(doc! { "v": { "0": 1 } }), 2),
            (plain(doc! { "t": { "0": 1 } }), 2),
            (plain(doc! { "t": { "1": Value::Date(1) } }), 2),
            (plain(doc! { "t": &two, "t": &two }), 2),
            (plain(doc! { "t": &two, "m": {} }), 2),
            (plain(doc! { "t": &two, "v": 1 }), 2),
            (plain(doc! { "t": &time }), 2),
            (plain(doc! { "t": &two, "v": { "2": 1 } }), 6_067_601),
            (plain(doc! { "t": &two, "v": { "1": 1, "0": 1 } }), 6_067_601),
            (packed(2, 3), 6_067_601),
            (packed(2, 1), 6_067_601),
            (doc! { "control": &control, "data": { "t": &two } }, 2),
            (doc! { "control": &control, "data": { "t": &time, "v": &column(&[]) } }, 6_067_601),
            (
                doc! { "control": &control, "data": { "t": &time, "v": &column(&[None, None]) } },
                6_067_601,
            ),
            (
                doc! {
                    "control": &control,
                    "data": { "t": Value::Binary(Binary { subtype: COLUMN, bytes: &[9] }) },
                },
                378,
            ),
        ] {
            assert_eq!(code(&bucket), expected, "{bucket:?}");
        }
        assert_eq!(shown(&packed(2, 2), None).unwrap_err().code(), ErrorCode::BadValue);
    }

    #[test]
    fn a_small_bucket_cannot_become_large_points() {
        let run = [0x80, 0xFF, 0, 0, 0, 0, 0, 0, 0];
        let repeated = |value: Value<'_>| {
            let doc = doc! { "": value };
            let mut bytes = doc.as_doc().element_bytes().to_vec();
            bytes.extend_from_slice(&run);
            bytes.push(0);
            ValueBuf::new(Value::Binary(Binary { subtype: COLUMN, bytes: &bytes }))
        };
        let long = "a".repeat(1 << 20);
        let bucket = doc! {
            "control": { "version": 2 },
            "data": { "t": &repeated(Value::Date(1)), "v": &repeated(Value::String(&long)) },
        };
        let refused = unpack(bucket.as_doc(), "t", None).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::BSONObjectTooLarge);
    }
}
