//! The options of a time-series collection, as `create`, `collMod` and `$out` take them.

use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::options::Options;

/// The longest span of a bucket, in seconds: 365 days.
const SPAN_MAX: i64 = 31_536_000;

/// The options of a time-series collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSeriesOptions {
    /// The field with the date of a measurement.
    pub time_field: String,
    /// The field that names the source of a measurement, if there is one.
    pub meta_field: Option<String>,
    /// The bounds of a bucket.
    pub buckets: Buckets,
}

/// The bounds of a bucket, the measurements of one source that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// The bounds that belong to a granularity.
    Of(BucketGranularity),
    /// A bucket spans this number of seconds, to which its beginning is rounded, too.
    Seconds(i32),
}

/// How far apart the measurements of one source usually are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketGranularity {
    /// Seconds: buckets of an hour.
    Seconds,
    /// Minutes: buckets of a day.
    Minutes,
    /// Hours: buckets of 30 days.
    Hours,
}

/// The change of a time-series collection by `collMod`. What is absent stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSeriesChange {
    granularity: Option<BucketGranularity>,
    span: Option<i64>,
    rounding: Option<i64>,
}

impl BucketGranularity {
    fn of(name: &str) -> Option<Self> {
        match name {
            "seconds" => Some(BucketGranularity::Seconds),
            "minutes" => Some(BucketGranularity::Minutes),
            "hours" => Some(BucketGranularity::Hours),
            _ => None,
        }
    }

    /// Returns the name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            BucketGranularity::Seconds => "seconds",
            BucketGranularity::Minutes => "minutes",
            BucketGranularity::Hours => "hours",
        }
    }
}

impl Buckets {
    /// Returns the longest time between two measurements of one bucket, in seconds.
    pub fn span_seconds(self) -> i32 {
        match self {
            Buckets::Of(BucketGranularity::Seconds) => 3_600,
            Buckets::Of(BucketGranularity::Minutes) => 86_400,
            Buckets::Of(BucketGranularity::Hours) => 2_592_000,
            Buckets::Seconds(seconds) => seconds,
        }
    }

    /// Returns the seconds to which the beginning of a bucket is rounded down.
    pub fn rounding_seconds(self) -> i32 {
        match self {
            Buckets::Of(BucketGranularity::Seconds) => 60,
            Buckets::Of(BucketGranularity::Minutes) => 3_600,
            Buckets::Of(BucketGranularity::Hours) => 86_400,
            Buckets::Seconds(seconds) => seconds,
        }
    }

    /// Returns the bounds that the three options give; `None` if none is given.
    ///
    /// # Errors
    /// 72 InvalidOptions unless span and rounding are given together and are equal, and for a span
    /// beside a granularity that has another one.
    fn given(change: TimeSeriesChange) -> Result<Option<Self>> {
        let TimeSeriesChange { granularity, span, rounding } = change;
        let invalid = |text: String| Err(Error::new(ErrorCode::InvalidOptions, text));
        if let Some(granularity) = granularity {
            let own = Buckets::Of(granularity);
            let is_own = |given: Option<i64>, own: i32| given.is_none_or(|it| it == own.into());
            if is_own(span, own.span_seconds()) && is_own(rounding, own.rounding_seconds()) {
                return Ok(Some(own));
            }
            return invalid(format!(
                "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must have the defaults of the granularity '{}', if both are given",
                granularity.name()
            ));
        }
        match (span, rounding) {
            (None, None) => Ok(None),
            (Some(span), Some(rounding)) if span == rounding => {
                // `seconds` has checked the range.
                Ok(Some(Buckets::Seconds(i32::try_from(span).unwrap_or(i32::MAX))))
            }
            _ => invalid(
                "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' must both be set, to the same value"
                    .to_owned(),
            ),
        }
    }
}

impl TimeSeriesOptions {
    /// Parses the options of `owner`, for example `create.timeseries`.
    ///
    /// # Errors
    /// 14 TypeMismatch for values of wrong types, 40414 without a `timeField`, 40415 for an unknown
    /// field, 2 BadValue for an unknown granularity, a span out of range or a zero byte in a name,
    /// 72 InvalidOptions for a name with a dot, and as for [`Buckets`].
    pub fn parse(owner: &str, spec: Doc<'_>) -> Result<Self> {
        let options = Options(owner);
        let (mut time_field, mut meta_field) = (None, None);
        let mut change = TimeSeriesChange::default();
        for field in options.fields(spec) {
            let (name, value) = field?;
            match name {
                "timeField" => time_field = field_name(options, name, value)?,
                "metaField" => meta_field = field_name(options, name, value)?,
                _ if change.take(options, name, value)? => {}
                _ => return Err(options.unknown(name)),
            }
        }
        let time_field = time_field.ok_or_else(|| options.missing("timeField"))?;
        let buckets = Buckets::given(change)?.unwrap_or(Buckets::Of(BucketGranularity::Seconds));
        Ok(TimeSeriesOptions { time_field, meta_field, buckets })
    }

    /// Reads the options of a stored collection; `None` if they are damaged.
    pub fn of_stored(spec: Doc<'_>) -> Option<Self> {
        let text = |name: &str| spec.get(name)?.as_str();
        let buckets = match text("granularity") {
            Some(name) => Buckets::Of(BucketGranularity::of(name)?),
            None => {
                Buckets::Seconds(spec.get("bucketMaxSpanSeconds")?.exact_i64()?.try_into().ok()?)
            }
        };
        let meta_field = text("metaField").map(str::to_owned);
        Some(TimeSeriesOptions { time_field: text("timeField")?.to_owned(), meta_field, buckets })
    }

    /// Returns the options as `listCollections` shows them and as they are stored.
    pub fn document(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("timeField", self.time_field.as_str());
            if let Some(meta) = &self.meta_field {
                writer.append("metaField", meta.as_str());
            }
            match self.buckets {
                Buckets::Of(granularity) => writer.append("granularity", granularity.name()),
                Buckets::Seconds(seconds) => writer.append("bucketRoundingSeconds", seconds),
            };
            writer.append("bucketMaxSpanSeconds", self.buckets.span_seconds());
        })
    }

    /// Returns true if the path is the meta field or lies within it.
    pub fn is_meta(&self, path: &str) -> bool {
        self.meta_field.as_ref().is_some_and(|meta| {
            path.strip_prefix(meta.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

impl TimeSeriesChange {
    /// Parses `timeseries` of `collMod`.
    ///
    /// # Errors
    /// As for [`TimeSeriesOptions::parse`]; `timeField` and `metaField` are unknown fields.
    pub fn parse(spec: Doc<'_>) -> Result<Self> {
        let options = Options("collMod.timeseries");
        let mut change = TimeSeriesChange::default();
        for field in options.fields(spec) {
            let (name, value) = field?;
            if !change.take(options, name, value)? {
                return Err(options.unknown(name));
            }
        }
        Ok(change)
    }

    /// Takes an option of the buckets; returns false for another one.
    fn take(&mut self, options: Options<'_>, name: &str, value: Value<'_>) -> Result<bool> {
        match name {
            "granularity" | "bucketMaxSpanSeconds" | "bucketRoundingSeconds"
                if value.is_nullish() => {}
            "granularity" => {
                let Value::String(word) = value else {
                    return Err(options.wrong_type(name, value, "string"));
                };
                let known = BucketGranularity::of(word);
                self.granularity = Some(known.ok_or_else(|| {
                    let owner = options.0;
                    Error::bad_value(format!(
                        "Enumeration value '{word}' for field '{owner}.granularity' is not a valid value."
                    ))
                })?);
            }
            "bucketMaxSpanSeconds" => self.span = Some(seconds(options, name, value)?),
            "bucketRoundingSeconds" => self.rounding = Some(seconds(options, name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the options of a collection after the change.
    ///
    /// # Errors
    /// 72 InvalidOptions if the span or the rounding became smaller, and as for [`Buckets`].
    pub fn applied(self, to: &TimeSeriesOptions) -> Result<TimeSeriesOptions> {
        let was = to.buckets;
        let buckets = Buckets::given(self)?.unwrap_or(was);
        if buckets.span_seconds() < was.span_seconds()
            || buckets.rounding_seconds() < was.rounding_seconds()
        {
            let text = "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to 'minutes' or 'minutes' to 'hours', and to longer bucket spans.";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        Ok(TimeSeriesOptions { buckets, ..to.clone() })
    }
}

/// Parses the name of a field; `None` for null.
fn field_name(options: Options<'_>, name: &str, value: Value<'_>) -> Result<Option<String>> {
    match value {
        Value::Null | Value::Undefined => Ok(None),
        Value::String(field) if field.contains('\0') => {
            Err(Error::bad_value(format!("The '{name}' cannot contain a null byte")))
        }
        Value::String(field) if field.contains('.') => {
            let text = format!("The '{name}' cannot be a path with a dot: '{field}'");
            Err(Error::new(ErrorCode::InvalidOptions, text))
        }
        Value::String(field) => Ok(Some(field.to_owned())),
        other => Err(options.wrong_type(name, other, "string")),
    }
}

/// Parses the span of a bucket in seconds.
fn seconds(options: Options<'_>, name: &str, value: Value<'_>) -> Result<i64> {
    let seconds = options.integer_from(1, name, value)?;
    if seconds > SPAN_MAX {
        let text =
            format!("BSON field '{name}' value must be <= {SPAN_MAX}, actual value '{seconds}'");
        return Err(Error::bad_value(text));
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use quire_document::doc;

    use super::*;

    #[test]
    fn stored_options_are_read_back() {
        for spec in [
            doc! { "timeField": "t" },
            doc! { "timeField": "t", "metaField": "m", "granularity": "hours" },
            doc! { "timeField": "t", "bucketMaxSpanSeconds": 300, "bucketRoundingSeconds": 300.9 },
            doc! { "timeField": "", "granularity": "minutes", "bucketMaxSpanSeconds": 86_400 },
        ] {
            let parsed = TimeSeriesOptions::parse("create.timeseries", spec.as_doc()).unwrap();
            let stored = TimeSeriesOptions::of_stored(parsed.document().as_doc());
            assert_eq!(stored, Some(parsed), "{spec:?}");
        }
    }

    #[test]
    fn buckets_only_grow() {
        let options = |spec: DocBuf| TimeSeriesOptions::parse("t", spec.as_doc()).unwrap();
        let changed = |options: &TimeSeriesOptions, change: DocBuf| {
            TimeSeriesChange::parse(change.as_doc()).unwrap().applied(options)
        };
        let minutes = options(doc! { "timeField": "t", "granularity": "minutes" });
        let hours = changed(&minutes, doc! { "granularity": "hours" }).unwrap();
        assert_eq!(hours.buckets, Buckets::Of(BucketGranularity::Hours));
        assert!(changed(&hours, doc! { "granularity": "minutes" }).is_err());
        assert_eq!(changed(&hours, doc! {}).unwrap(), hours);
        let day = doc! { "bucketMaxSpanSeconds": 86_400, "bucketRoundingSeconds": 86_400 };
        let day = changed(&minutes, day).unwrap();
        assert_eq!(day.buckets, Buckets::Seconds(86_400));
        // The span would stay, the rounding would shrink.
        assert!(changed(&day, doc! { "granularity": "minutes" }).is_err());
        assert!(changed(&day, doc! { "granularity": "hours" }).is_ok());
    }

    #[test]
    fn meta_is_a_field_or_a_path_within_it() {
        let spec = doc! { "timeField": "t", "metaField": "m" };
        let options = TimeSeriesOptions::parse("t", spec.as_doc()).unwrap();
        assert!(options.is_meta("m") && options.is_meta("m.a.b"));
        assert!(!options.is_meta("ma") && !options.is_meta("t") && !options.is_meta(""));
    }
}
