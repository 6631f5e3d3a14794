//! `$percentile`, `$median`: the values below which a share of the numbers lies.
//!
//! Up to a certain count the numbers are kept and the result is exact. Beyond it "approximate"
//! continues with a t-digest, which mongod uses from the beginning. "discrete" and "continuous"
//! (which interpolates) keep all numbers.

use super::digest::Digest;
use super::registry::{Accumulator, Parsed};
use super::spec::Argument;
use super::{State, check_memory};
use crate::context::{EvalContext, ParseContext, Shared};
use crate::expression::Expression;
use crate::options::Options;
use crate::work::sort_by;
use bumpalo::Bump;
use quire_document::{ArrayBuf, Doc, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

/// The most numbers of a group that "approximate" keeps without a digest.
const EXACT_MAX: usize = 100_000;

pub(super) const PERCENTILE: Accumulator = Accumulator::own(
    "$percentile",
    "7.0",
    "An array of percentiles of the numbers; null if there are none.",
    |value, cx| {
        let spec = object("$percentile", value)?;
        let quantiles = Quantiles::parse_percentile(spec, cx)?;
        accumulator("$percentile", spec, quantiles, cx)
    },
);

pub(super) const MEDIAN: Accumulator = Accumulator::own(
    "$median",
    "7.0",
    "The median of the numbers; null if there are none.",
    |value, cx| {
        let spec = object("$median", value)?;
        let quantiles = Quantiles::parse_median(spec, cx)?;
        accumulator("$median", spec, quantiles, cx)
    },
);

/// The requested percentiles and their method.
#[derive(Clone, Debug)]
pub struct Quantiles {
    shares: Vec<f64>,
    continuous: bool,
    /// True if a digest may replace the numbers.
    approximate: bool,
    /// True if the result is one number instead of an array.
    single: bool,
}

fn object<'v>(name: &str, value: Value<'v>) -> Result<Doc<'v>> {
    value.as_document().ok_or_else(|| {
        let number = if name == "$median" { 7436100 } else { 7429703 };
        let text = format!(
            "specification must be an object; found {name}: {}",
            crate::update::text::value(value)
        );
        Error::location(number, text)
    })
}

fn accumulator(
    name: &'static str,
    spec: Doc<'_>,
    quantiles: Quantiles,
    cx: &ParseContext,
) -> Result<Parsed> {
    let input = spec.get("input").unwrap_or(Value::Null);
    Ok(Parsed {
        argument: Argument::One(Expression::parse(input, cx)?),
        n: None,
        make: Arc::new(move |_, _| Box::new(Numbers::new(name, quantiles.clone()))),
    })
}

impl Quantiles {
    /// Parses `{input, p, method}`.
    pub fn parse_percentile(spec: Doc<'_>, cx: &ParseContext) -> Result<Self> {
        check_fields("$percentile", spec, &["input", "p", "method"])?;
        let (continuous, approximate) = method(spec)?;
        let shares = shares(spec.get("p").unwrap_or(Value::Null), cx)?;
        Ok(Quantiles { shares, continuous, approximate, single: false })
    }

    /// Parses `{input, method}`.
    pub fn parse_median(spec: Doc<'_>, _: &ParseContext) -> Result<Self> {
        check_fields("$median", spec, &["input", "method"])?;
        let (continuous, approximate) = method(spec)?;
        Ok(Quantiles { shares: vec![0.5], continuous, approximate, single: true })
    }

    /// Returns the result for `numbers`, and sorts them.
    pub fn result<'a>(&self, numbers: &mut Vec<f64>, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        sort_by(numbers, cx.shared, f64::total_cmp)?;
        self.each(cx, |share| quantile(numbers, share, self.continuous))
    }

    /// Returns the result for the numbers of a digest.
    fn of_digest<'a>(&self, digest: &mut Digest, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        self.each(cx, |share| digest.quantile(share))
    }

    /// Returns the result for `count` sorted numbers; `at` returns the number at a rank.
    pub(crate) fn of_ranks<'a>(
        &self,
        count: usize,
        at: &dyn Fn(usize) -> Option<f64>,
        cx: &EvalContext<'a>,
    ) -> Result<Value<'a>> {
        self.each(cx, |share| quantile_at(count, at, share, self.continuous))
    }

    fn each<'a>(
        &self,
        cx: &EvalContext<'a>,
        mut quantile: impl FnMut(f64) -> Option<f64>,
    ) -> Result<Value<'a>> {
        let mut value = |share: &f64| quantile(*share).map_or(Value::Null, Value::Double);
        match (self.single, self.shares.first()) {
            (true, Some(share)) => Ok(value(share)),
            _ => cx.array_of(self.shares.iter().map(value)),
        }
    }
}

fn check_fields(name: &str, spec: Doc<'_>, allowed: &[&str]) -> Result<()> {
    let options = Options(name);
    for field in options.fields(spec) {
        let (field, _) = field?;
        if !allowed.contains(&field) {
            return Err(options.unknown(field));
        }
    }
    match allowed.iter().find(|field| !spec.contains(field)) {
        None => Ok(()),
        Some(missing) => Err(options.missing(missing)),
    }
}

/// Returns whether the method is "continuous", and whether it is "approximate".
fn method(spec: Doc<'_>) -> Result<(bool, bool)> {
    match spec.get("method") {
        Some(Value::String("approximate")) => Ok((false, true)),
        Some(Value::String("discrete")) => Ok((false, false)),
        Some(Value::String("continuous")) => Ok((true, false)),
        Some(Value::String(_)) => Err(Error::bad_value(
            "Currently only 'approximate', 'discrete' and 'continuous' can be used as percentile 'method'.",
        )),
        other => {
            let kind = other.map_or("missing", |value| value.type_name());
            let message = format!(
                "BSON field '$percentile.method' is the wrong type '{kind}', expected type 'string'"
            );
            Err(Error::new(ErrorCode::TypeMismatch, message))
        }
    }
}

fn shares(p: Value<'_>, cx: &ParseContext) -> Result<Vec<f64>> {
    let not_array = || {
        let shown = crate::update::text::value(p);
        Error::location(
            7750301,
            format!(
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {shown}"
            ),
        )
    };
    let parsed = Expression::parse(p, cx)?;
    let reads = parsed.dependencies();
    if reads.whole_document || !reads.paths.is_empty() || !reads.variables.is_empty() {
        return Err(not_array());
    }
    let (arena, shared) = (Bump::new(), Shared::default());
    let value = parsed.eval(&EvalContext::new(&arena, Doc::empty(), &shared))?;
    let Some(Value::Array(values)) = value else { return Err(not_array()) };
    if values.is_empty() {
        return Err(not_array());
    }
    values.iter().map(share).collect()
}

fn share(value: Value<'_>) -> Result<f64> {
    let Some(number) = to_f64(value) else {
        let shown = crate::update::text::value(value);
        return Err(Error::location(
            7750302,
            format!(
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {shown}"
            ),
        ));
    };
    if !(0.0..=1.0).contains(&number) {
        let shown = crate::update::text::value(value);
        return Err(Error::location(
            7750303,
            format!(
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {shown}"
            ),
        ));
    }
    Ok(number)
}

/// Returns the number as a double; `None` if the value is not a number.
pub(crate) fn to_f64(value: Value<'_>) -> Option<f64> {
    Some(match value {
        Value::Int32(number) => f64::from(number),
        Value::Int64(number) => number as f64,
        Value::Double(number) => number,
        Value::Decimal(number) => number.to_f64(),
        _ => return None,
    })
}

/// Returns a quantile of sorted numbers: the one at rank `ceil(share * n)`, or with `continuous` an
/// interpolation.
pub fn quantile(sorted: &[f64], share: f64, continuous: bool) -> Option<f64> {
    quantile_at(sorted.len(), &|rank| sorted.get(rank).copied(), share, continuous)
}

/// Like `quantile`, for `count` numbers; `at` returns the number at a rank.
fn quantile_at(
    count: usize,
    at: &dyn Fn(usize) -> Option<f64>,
    share: f64,
    continuous: bool,
) -> Option<f64> {
    let last = count.checked_sub(1)?;
    if !continuous {
        let rank = (share * count as f64).ceil() as usize;
        return at(rank.saturating_sub(1).min(last));
    }
    let rank = share * last as f64;
    let (low, high) = (at(rank.floor() as usize)?, at(rank.ceil() as usize)?);
    if low == high || rank.fract() == 0.0 {
        return Some(low);
    }
    Some(low * (1.0 - rank.fract()) + high * rank.fract())
}

/// The state of a group: its numbers, or a digest of them.
#[derive(Debug)]
struct Numbers {
    name: &'static str,
    quantiles: Quantiles,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    All(Vec<f64>),
    Digest(Box<Digest>),
}

impl Numbers {
    fn new(name: &'static str, quantiles: Quantiles) -> Self {
        Numbers { name, quantiles, kept: Kept::All(Vec::new()) }
    }

    fn push(&mut self, number: f64) -> Result<()> {
        match &mut self.kept {
            Kept::All(numbers) => {
                numbers.push(number);
                if numbers.len() > EXACT_MAX && self.quantiles.approximate {
                    self.digest();
                    return Ok(());
                }
                check_memory(self.name, numbers.len() * 8)
            }
            Kept::Digest(digest) => {
                digest.add(number);
                Ok(())
            }
        }
    }

    /// Returns the digest, after it has replaced the numbers.
    fn digest(&mut self) -> &mut Digest {
        if let Kept::All(numbers) = &self.kept {
            let mut digest = Box::<Digest>::default();
            numbers.iter().for_each(|number| digest.add(*number));
            self.kept = Kept::Digest(digest);
        }
        match &mut self.kept {
            Kept::Digest(digest) => digest,
            Kept::All(_) => unreachable!("the digest has just taken their place"),
        }
    }
}

impl State for Numbers {
    fn add(&mut self, value: Option<Value<'_>>) -> Result<()> {
        match value.and_then(to_f64).filter(|number| !number.is_nan()) {
            Some(number) => self.push(number),
            None => Ok(()),
        }
    }

    fn result<'a>(&self, cx: &EvalContext<'a>) -> Result<Value<'a>> {
        match &self.kept {
            Kept::All(numbers) => self.quantiles.result(&mut numbers.clone(), cx),
            Kept::Digest(digest) => self.quantiles.of_digest(&mut digest.clone(), cx),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>()
            + match &self.kept {
                Kept::All(numbers) => numbers.len() * 8,
                Kept::Digest(digest) => digest.bytes(),
            }
    }

    fn save(&self) -> ValueBuf {
        match &self.kept {
            Kept::All(numbers) => numbers.iter().copied().collect::<ArrayBuf>().into(),
            Kept::Digest(digest) => digest.save().into(),
        }
    }

    fn merge(&mut self, saved: Value<'_>) -> Result<()> {
        if let Value::Document(saved) = saved {
            self.digest().merge(saved);
            return Ok(());
        }
        super::elements(saved).try_for_each(|value| self.add(Some(value)))
    }
}
