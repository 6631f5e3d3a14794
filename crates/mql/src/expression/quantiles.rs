//! The operands of `$percentile` and `$median`, of expressions and of accumulators.

use super::Expression;
use crate::context::work::sort_by;
use crate::context::{EvalContext, ParseContext, Shared};
use crate::options::Options;
use crate::text;
use bumpalo::Bump;
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The requested percentiles and their method.
#[derive(Clone, Debug)]
pub struct Quantiles {
    shares: Vec<f64>,
    continuous: bool,
    /// True if a digest may replace the numbers.
    pub(crate) approximate: bool,
    /// True if the result is one number instead of an array.
    single: bool,
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

    /// Returns the result for `count` sorted numbers; `at` returns the number at a rank.
    pub(crate) fn of_ranks<'a>(
        &self,
        count: usize,
        at: &dyn Fn(usize) -> Option<f64>,
        cx: &EvalContext<'a>,
    ) -> Result<Value<'a>> {
        self.each(cx, |share| quantile_at(count, at, share, self.continuous))
    }

    /// The result where `quantile` gives the number for each share.
    pub(crate) fn each<'a>(
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
        let shown = text::value(p);
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
    let Some(number) = value.to_f64() else {
        let shown = text::value(value);
        return Err(Error::location(
            7750302,
            format!(
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {shown}"
            ),
        ));
    };
    if !(0.0..=1.0).contains(&number) {
        let shown = text::value(value);
        return Err(Error::location(
            7750303,
            format!(
                "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {shown}"
            ),
        ));
    }
    Ok(number)
}

/// Returns a quantile of sorted numbers: the one at rank `ceil(share * n)`, or with `continuous` an
/// interpolation.
fn quantile(sorted: &[f64], share: f64, continuous: bool) -> Option<f64> {
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
