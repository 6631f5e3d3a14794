//! Makes a bucket in the form of MongoDB's version 1 of points: `_id`, `control` with the smallest and the largest value of
//! each field, `meta`, and `data` with the values of each field by the number of the point.

use std::cmp::Ordering;

use quire_catalog::Collection;
use quire_document::{
    ArrayBuf, Doc, DocBuf, DocWriter, ObjectId, Type, Value, ValueBuf, compare, identical_or_absent,
};
use twox_hash::XxHash3_64;

use super::shape::Shape;

/// The most points of a bucket, and the most bytes of them. MongoDB: timeseriesBucketMaxCount, timeseriesBucketMaxSize.
const BUCKET_POINTS_MAX: usize = 1000;
const BUCKET_BYTES_MAX: usize = 125 << 10;

/// What decides which points are in a bucket.
pub(super) struct Limits {
    pub time_field: String,
    pub meta_field: Option<String>,
    span_ms: i64,
    rounding_ms: i64,
}

impl Limits {
    pub fn of(series: &Collection) -> Self {
        let options = series.options.time_series();
        let buckets = options.map(|options| options.buckets);
        let ms = |seconds: Option<i32>| i64::from(seconds.unwrap_or(1)) * 1000;
        Limits {
            time_field: options.map(|options| options.time_field.clone()).unwrap_or_default(),
            meta_field: options.and_then(|options| options.meta_field.clone()),
            span_ms: ms(buckets.map(|buckets| buckets.span_seconds())),
            rounding_ms: ms(buckets.map(|buckets| buckets.rounding_seconds())),
        }
    }

    fn time(&self, point: Doc<'_>) -> i64 {
        match point.get(&self.time_field) {
            Some(Value::Date(time)) => time,
            _ => 0,
        }
    }

    fn meta<'p>(&self, point: Doc<'p>) -> Option<Value<'p>> {
        point.get(self.meta_field.as_deref()?)
    }

    /// Returns the time at which the bucket of a point begins.
    fn begin(&self, time: i64) -> i64 {
        time.saturating_sub(time.rem_euclid(self.rounding_ms.max(1)))
    }
}

/// The points of the bucket that is being made.
pub(super) struct Gathered {
    limits: Limits,
    points: Vec<DocBuf>,
    shape: Shape,
    bytes: usize,
    begin: i64,
    /// The hash of the first point of the last bucket, and how many buckets before it began with the same.
    last: Option<(u64, u64)>,
}

impl Gathered {
    pub fn new(limits: Limits) -> Self {
        let (points, shape) = (Vec::new(), Shape::of_nothing());
        Gathered { limits, points, shape, bytes: 0, begin: 0, last: None }
    }

    /// Adds the next point. Returns the bucket of the points before it, if it does not fit into that.
    pub fn add(&mut self, point: Doc<'_>) -> Option<DocBuf> {
        let time = self.limits.time(point);
        let fits = self.points.first().is_some_and(|first| {
            // Numbers of different types are equal, but must come back as they are.
            identical_or_absent(self.limits.meta(first.as_doc()), self.limits.meta(point))
                && time.saturating_sub(self.begin) < self.limits.span_ms
                && self.points.len() < BUCKET_POINTS_MAX
                && self.shape.fits_document(point)
                && self.bytes + point.len() <= BUCKET_BYTES_MAX
        });
        let full = if fits { None } else { self.take() };
        if self.points.is_empty() {
            self.begin = self.limits.begin(time);
        }
        self.bytes += point.len();
        self.shape.add_document(point);
        self.points.push(point.to_owned());
        full
    }

    /// Returns the `_id` of the bucket: the second in which it begins, and a hash of its first point. So it stays the same while
    /// other buckets come and go.
    fn id(&mut self, first: Doc<'_>) -> ObjectId {
        let hash = XxHash3_64::oneshot(first.as_bytes());
        let before = match self.last {
            Some((last, before)) if last == hash => before + 1,
            _ => 0,
        };
        self.last = Some((hash, before));
        let seconds = u32::try_from(self.begin.div_euclid(1000)).unwrap_or_default();
        let [a, b, c, d, e, f, g, h] = hash.wrapping_add(before).to_be_bytes();
        ObjectId::from_parts(seconds, [a, b, c, d, e], u32::from_be_bytes([0, f, g, h]))
    }

    /// Returns the bucket of the points; `None` if there are none.
    pub fn take(&mut self) -> Option<DocBuf> {
        let points = std::mem::take(&mut self.points);
        self.shape = Shape::of_nothing();
        self.bytes = 0;
        let first = points.first()?;
        let id = self.id(first.as_doc());
        let meta = self.limits.meta(first.as_doc());
        let columns = columns(&points, self.limits.meta_field.as_deref());
        Some(DocBuf::build(|bucket| {
            bucket.append("_id", id);
            {
                let mut control = bucket.document("control");
                control.append("version", 1);
                for (name, way) in [("min", Ordering::Less), ("max", Ordering::Greater)] {
                    let mut extremes = control.document(name);
                    for (field, values) in &columns {
                        if way.is_lt() && *field == self.limits.time_field {
                            extremes.append(field, Value::Date(self.begin));
                        } else if let Some(extreme) = Extreme::of_all(values, way) {
                            extreme.write(field, &mut extremes);
                        }
                    }
                }
            }
            bucket.append_some("meta", meta);
            let mut data = bucket.document("data");
            for (field, values) in &columns {
                let mut column = data.document(field);
                for (at, value) in values {
                    column.append(&at.to_string(), *value);
                }
            }
        }))
    }
}

/// A field, and its values with the numbers of their points.
type Column<'p> = (&'p str, Vec<(usize, Value<'p>)>);

/// Returns the values of each field but the meta field with the numbers of their points, in the order in which the fields
/// first appear.
fn columns<'p>(points: &'p [DocBuf], meta_field: Option<&str>) -> Vec<Column<'p>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for (number, point) in points.iter().enumerate() {
        for (at, (field, value)) in point.as_doc().fields().enumerate() {
            if Some(field) == meta_field {
                continue;
            }
            // The fields of most points are in the same order, with the meta field second.
            let near = at.saturating_sub(usize::from(meta_field.is_some()));
            let known = columns.get(near).is_some_and(|(name, _)| *name == field);
            let known = if known {
                Some(near)
            } else {
                columns.iter().position(|(name, _)| *name == field)
            };
            match known.and_then(|at| columns.get_mut(at)) {
                Some((_, values)) => values.push((number, value)),
                None => columns.push((field, vec![(number, value)])),
            }
        }
    }
    columns
}

/// The smallest or the largest value of a field. Documents and arrays are compared field by field.
enum Extreme {
    Value(ValueBuf),
    Fields(Vec<(String, Extreme)>),
    Elements(Vec<Extreme>),
}

impl Extreme {
    fn of_all(values: &[(usize, Value<'_>)], way: Ordering) -> Option<Self> {
        let mut values = values.iter().map(|(_, value)| *value);
        let mut extreme = Extreme::of(values.next()?);
        values.for_each(|value| extreme.add(value, way));
        Some(extreme)
    }

    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Document(doc) => {
                let field =
                    |(name, value): (&str, Value<'_>)| (name.to_owned(), Extreme::of(value));
                Extreme::Fields(doc.fields().map(field).collect())
            }
            Value::Array(array) => Extreme::Elements(array.iter().map(Extreme::of).collect()),
            value => Extreme::Value(ValueBuf::new(value)),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Extreme::Value(value) => value.as_value().kind().rank(),
            Extreme::Fields(_) => Type::Document.rank(),
            Extreme::Elements(_) => Type::Array.rank(),
        }
    }

    /// Takes a further value if it is smaller (`way` is `Less`) or larger.
    fn add(&mut self, value: Value<'_>, way: Ordering) {
        match (&mut *self, value) {
            (Extreme::Fields(fields), Value::Document(doc)) => {
                for (name, value) in doc.fields() {
                    match fields.iter_mut().find(|(known, _)| known == name) {
                        Some((_, extreme)) => extreme.add(value, way),
                        None => fields.push((name.to_owned(), Extreme::of(value))),
                    }
                }
            }
            (Extreme::Elements(elements), Value::Array(array)) => {
                for (at, value) in array.iter().enumerate() {
                    match elements.get_mut(at) {
                        Some(extreme) => extreme.add(value, way),
                        None => elements.push(Extreme::of(value)),
                    }
                }
            }
            (Extreme::Value(known), value)
                if known.as_value().kind().rank() == value.kind().rank() =>
            {
                if compare(value, known.as_value(), None) == way {
                    *known = ValueBuf::new(value);
                }
            }
            (_, value) => {
                if value.kind().rank().cmp(&self.rank()) == way {
                    *self = Extreme::of(value);
                }
            }
        }
    }

    fn write(&self, name: &str, out: &mut DocWriter<'_>) {
        match self {
            Extreme::Value(value) => {
                out.append(name, value);
            }
            Extreme::Fields(fields) => {
                let mut inner = out.document(name);
                fields.iter().for_each(|(name, extreme)| extreme.write(name, &mut inner));
            }
            Extreme::Elements(elements) => {
                // An array is a document whose names are numbers.
                let inner = DocBuf::build(|inner| {
                    for (at, extreme) in elements.iter().enumerate() {
                        extreme.write(&at.to_string(), inner);
                    }
                });
                let values: ArrayBuf = inner.as_doc().fields().map(|(_, value)| value).collect();
                out.append(name, values.as_array());
            }
        }
    }
}
