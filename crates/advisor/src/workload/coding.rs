//! The document that carries a workload in a file or a reply; docs/recorder.md describes its fields.
//!
//! The same coding of one shape's measures is what the server stores (docs/format.md, "The
//! recorder"), so a changed meaning of a field needs a new version.

use super::figures::{Figure, Histogram};
use super::measures::{Measures, PLANS_MAX, PlanUse};
use super::{Cause, Forgotten, Kind, ShapeUse, Workload};
use quire_document::{ArrayBuf, Decimal128, Doc, DocBuf, DocWriter, Value, ValueBuf, extjson};
use std::fmt;

/// The version of the coding: the value of `quireWorkload`.
pub const VERSION: i32 = 1;

/// Why a document is no workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodingError {
    /// The text is no Extended JSON.
    Json,
    /// It has another version than [`VERSION`], or none.
    Version(Option<i64>),
    /// This field is missing or has another type.
    Field(&'static str),
}

impl fmt::Display for CodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodingError::Json => write!(f, "the text is no JSON document"),
            CodingError::Version(None) => write!(f, "the document is no recorded workload"),
            CodingError::Version(Some(version)) => {
                write!(f, "the workload has version {version}, this program reads {VERSION}")
            }
            CodingError::Field(name) => {
                write!(f, "the field '{name}' of the workload is missing or has a wrong type")
            }
        }
    }
}

impl std::error::Error for CodingError {}

impl Workload {
    /// Returns the workload as a document. It may be larger than a document of a collection.
    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|out| {
            out.append("quireWorkload", VERSION);
            out.append("begins", Value::Date(self.begins_ms));
            out.append("ends", Value::Date(self.ends_ms));
            {
                let mut forgotten = out.document("forgotten");
                count(&mut forgotten, "shapes", self.forgotten.shapes);
                count(&mut forgotten, "statements", self.forgotten.statements);
            }
            let mut shapes = out.array("shapes");
            self.shapes.iter().for_each(|used| used.write(&mut shapes.document()));
        })
    }

    /// Returns the document as relaxed Extended JSON. In it `$options` stands before `$regex`: in
    /// the order of a shape the two would be a regular expression.
    pub fn to_json(&self) -> String {
        let document = reordered(self.to_document().as_doc(), ["$regex", "$options"]);
        extjson::print(&document, extjson::Format { canonical: false, pretty: true })
    }

    /// Reads the text that [`to_json`](Self::to_json) has written.
    ///
    /// # Errors
    /// The text is no JSON; or as [`from_document`](Self::from_document).
    pub fn from_json(text: &str) -> Result<Workload, CodingError> {
        let document = extjson::parse_doc(text).map_err(|_| CodingError::Json)?;
        let document = reordered(document.as_doc(), ["$options", "$regex"]);
        Workload::from_document(document.as_doc())
    }

    /// Reads a workload.
    ///
    /// # Errors
    /// The document has another version or is damaged.
    pub fn from_document(doc: Doc<'_>) -> Result<Workload, CodingError> {
        match doc.get("quireWorkload").map(|version| version.exact_i64()) {
            Some(Some(version)) if version == i64::from(VERSION) => {}
            found => return Err(CodingError::Version(found.flatten())),
        }
        let shapes = doc.get("shapes").and_then(|shapes| shapes.as_array());
        let shapes = shapes.ok_or(CodingError::Field("shapes"))?;
        let read = |value: Value<'_>| {
            ShapeUse::read(value.as_document().ok_or(CodingError::Field("shapes"))?)
        };
        let forgotten = document(doc, "forgotten")?;
        Ok(Workload {
            begins_ms: date(doc, "begins")?,
            ends_ms: date(doc, "ends")?,
            shapes: shapes.iter().map(read).collect::<Result<_, _>>()?,
            forgotten: Forgotten {
                shapes: number(forgotten, "shapes")?,
                statements: number(forgotten, "statements")?,
            },
        })
    }
}

impl ShapeUse {
    /// Appends its fields.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        out.append("ns", self.namespace.as_str()).append("kind", self.kind.name());
        out.append("cause", self.cause.name()).append("shape", &self.shape);
        if !self.samples.is_empty() {
            let mut samples = out.array("samples");
            self.samples.iter().for_each(|sample| {
                samples.push(sample);
            });
        }
        self.measures.write(&mut out.document("measures"));
    }

    /// Reads what [`write`](Self::write) has written.
    ///
    /// # Errors
    /// A field is missing or has another type.
    pub fn read(doc: Doc<'_>) -> Result<ShapeUse, CodingError> {
        let samples = doc.get("samples").and_then(|samples| samples.as_array());
        let samples = samples.into_iter().flat_map(|samples| samples.iter());
        Ok(ShapeUse {
            namespace: text(doc, "ns")?.to_owned(),
            kind: Kind::parse(text(doc, "kind")?).ok_or(CodingError::Field("kind"))?,
            cause: Cause::parse(text(doc, "cause")?).ok_or(CodingError::Field("cause"))?,
            shape: document(doc, "shape")?.to_owned(),
            samples: samples.filter_map(|sample| sample.as_document().map(Doc::to_owned)).collect(),
            measures: Measures::read(document(doc, "measures")?)?,
        })
    }
}

impl Measures {
    /// Appends its fields. Those that are 0 are left out.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        count(out, "count", self.count);
        if self.first_ms <= self.last_ms {
            out.append("first", Value::Date(self.first_ms));
            out.append("last", Value::Date(self.last_ms));
        }
        for (name, number) in self.counts() {
            if *number > 0 {
                count(out, name, *number);
            }
        }
        for (name, figure) in self.figures() {
            if figure.min <= figure.max {
                figure.write(&mut out.document(name));
            }
        }
        for (name, histogram) in self.histograms() {
            if histogram.count() > 0 {
                histogram.write(out, name);
            }
        }
        if !self.plans.is_empty() {
            let mut plans = out.array("plans");
            for plan in &self.plans {
                let mut one = plans.document();
                one.append("summary", plan.summary.as_str()).append("index", plan.index.as_str());
                count(&mut one, "count", plan.count);
            }
        }
    }

    /// Reads what [`write`](Self::write) has written.
    ///
    /// # Errors
    /// A field is missing or has another type.
    pub fn read(doc: Doc<'_>) -> Result<Measures, CodingError> {
        let mut read = Measures { count: number(doc, "count")?, ..Measures::default() };
        if doc.contains("first") {
            (read.first_ms, read.last_ms) = (date(doc, "first")?, date(doc, "last")?);
        }
        for (name, slot) in read.counts_mut() {
            if doc.contains(name) {
                *slot = number(doc, name)?;
            }
        }
        for (name, slot) in read.figures_mut() {
            if doc.contains(name) {
                *slot = Figure::read(document(doc, name)?)?;
            }
        }
        for (name, slot) in read.histograms_mut() {
            if let Some(value) = doc.get(name) {
                *slot = Histogram::read(value).ok_or(CodingError::Field(name))?;
            }
        }
        let plans = doc.get("plans").and_then(|plans| plans.as_array());
        for plan in plans.into_iter().flat_map(|plans| plans.iter()).take(PLANS_MAX) {
            let plan = plan.as_document().ok_or(CodingError::Field("plans"))?;
            read.plans.push(PlanUse {
                summary: text(plan, "summary")?.to_owned(),
                index: text(plan, "index")?.to_owned(),
                count: number(plan, "count")?,
            });
        }
        Ok(read)
    }
}

/// Returns the document with the other order of two fields, wherever they follow each other.
fn reordered(doc: Doc<'_>, [first, second]: [&str; 2]) -> DocBuf {
    let value = |value: Value<'_>| match value {
        Value::Document(inner) => ValueBuf::from(reordered(inner, [first, second])),
        Value::Array(items) => ArrayBuf::build(|out| {
            items.iter().for_each(|item| match item {
                Value::Document(inner) => drop(out.push(&reordered(inner, [first, second]))),
                other => drop(out.push(other)),
            });
        })
        .into(),
        other => ValueBuf::new(other),
    };
    DocBuf::build(|out| {
        let mut fields = doc.fields().peekable();
        while let Some((name, found)) = fields.next() {
            let swapped = fields.next_if(|(next, _)| name == first && *next == second);
            if let Some((next, found)) = swapped {
                out.append(next, &value(found));
            }
            out.append(name, &value(found));
        }
    })
}

/// Defines the fields of [`Measures`] with their names in the coding, once for writing and reading.
macro_rules! named_fields {
    ($all:ident, $all_mut:ident, $kind:ty: $($name:literal $field:ident,)*) => {
        impl Measures {
            fn $all(&self) -> Vec<(&'static str, &$kind)> {
                vec![$(($name, &self.$field)),*]
            }

            fn $all_mut(&mut self) -> Vec<(&'static str, &mut $kind)> {
                vec![$(($name, &mut self.$field)),*]
            }
        }
    };
}

named_fields!(counts, counts_mut, u64:
    "errors" errors,
    "lastMicros" last_micros,
    "getMores" get_mores,
    "sorts" sorts,
    "spills" spills,
    "collectionScans" collection_scans,
    "cachedPlans" cached_plans,
    "inserted" inserted,
    "upserted" upserted,
    "replacements" replacements,
);
named_fields!(figures, figures_mut, Figure:
    "micros" micros,
    "totalMicros" total_micros,
    "keysExamined" keys_examined,
    "docsExamined" docs_examined,
    "bytesRead" bytes_read,
    "returned" returned,
    "matched" matched,
    "modified" modified,
    "deleted" deleted,
);
named_fields!(histograms, histograms_mut, Histogram:
    "latency" latency,
    "skip" skip,
    "limit" limit,
    "list" list,
);

impl Figure {
    /// Returns the sum of the squares. Beyond 34 digits it is rounded.
    pub fn squares_decimal(&self) -> Decimal128 {
        Decimal128::parse(&self.squares.to_string()).unwrap_or(Decimal128::ZERO)
    }

    fn write(&self, out: &mut DocWriter<'_>) {
        count(out, "sum", self.sum);
        count(out, "min", self.min);
        count(out, "max", self.max);
        out.append("squares", self.squares.to_string().as_str());
    }

    fn read(doc: Doc<'_>) -> Result<Figure, CodingError> {
        Ok(Figure {
            sum: number(doc, "sum")?,
            min: number(doc, "min")?,
            max: number(doc, "max")?,
            squares: text(doc, "squares")?.parse().map_err(|_| CodingError::Field("squares"))?,
        })
    }
}

impl Histogram {
    /// Appends an array `[bucket, count, bucket, count, ...]`.
    fn write(&self, out: &mut DocWriter<'_>, name: &str) {
        let mut pairs = out.array(name);
        for (bucket, count) in self.buckets() {
            pairs.push(bucket as i32).push(signed(count));
        }
    }

    fn read(value: Value<'_>) -> Option<Histogram> {
        let mut read = Histogram::default();
        let numbers: Option<Vec<u64>> =
            value.as_array()?.iter().map(|number| number.exact_i64()?.try_into().ok()).collect();
        for pair in numbers?.chunks(2) {
            let [bucket, count] = *pair else { return None };
            read.add(usize::try_from(bucket).ok()?, count);
        }
        Some(read)
    }
}

fn count(out: &mut DocWriter<'_>, name: &str, number: u64) {
    out.append(name, signed(number));
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(doc: Doc<'_>, name: &'static str) -> Result<u64, CodingError> {
    let found = doc.get(name).and_then(|value| value.exact_i64());
    found.and_then(|number| u64::try_from(number).ok()).ok_or(CodingError::Field(name))
}

fn text<'d>(doc: Doc<'d>, name: &'static str) -> Result<&'d str, CodingError> {
    doc.get(name).and_then(|value| value.as_str()).ok_or(CodingError::Field(name))
}

fn document<'d>(doc: Doc<'d>, name: &'static str) -> Result<Doc<'d>, CodingError> {
    doc.get(name).and_then(|value| value.as_document()).ok_or(CodingError::Field(name))
}

fn date(doc: Doc<'_>, name: &'static str) -> Result<i64, CodingError> {
    match doc.get(name) {
        Some(Value::Date(millis)) => Ok(millis),
        _ => Err(CodingError::Field(name)),
    }
}
