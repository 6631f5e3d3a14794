//! The registry of window functions.

use super::bounds::{Bound, Bounds, only_fields, parse_unit};
use super::contents::{Contents, Growing};
use super::covariance::Covariance;
use super::edges::Edge;
use super::extremes::BestOf;
use super::fill::{FillSpec, LastObservation};
use super::moving_average::MovingAverage;
use super::multiset::{Order, Ordered};
use super::output::{Kind, Spec};
use super::percentiles::Percentiles;
use super::ranks::Rank;
use super::scaler::Scaler;
use super::sliding::{Given, SlidingSpec};
use super::slopes::{Derivative, Integral};
use super::sums::{RemovableAverage, RemovableDeviation, RemovableSum};
use crate::accumulator::{Argument, Parsed, StringOrder, find_accumulator};
use crate::context::EvalContext;
use crate::expression::Quantiles;
use crate::expression::{Expression, Unit};
use crate::text;
use quire_document::{Decimal128, Doc, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A function of `$setWindowFields`.
pub struct WindowFunction {
    /// The name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md.
    pub doc: &'static str,
    /// True if its output field may have a `window`.
    pub(super) takes_window: bool,
    pub(super) parse: fn(&Spec<'_, '_>) -> Result<Kind>,
}

impl fmt::Debug for WindowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns the window function with this name.
pub(super) fn find_window_function(name: &str) -> Option<&'static WindowFunction> {
    WINDOW_FUNCTIONS.iter().find(|function| function.name == name)
}

/// Returns a row for an accumulator of `$group`.
const fn accumulated(name: &'static str, since: &'static str, doc: &'static str) -> WindowFunction {
    windowed(name, since, doc, accumulator)
}

/// Returns a row for a function whose output field may have a `window`.
const fn windowed(
    name: &'static str,
    since: &'static str,
    doc: &'static str,
    parse: fn(&Spec<'_, '_>) -> Result<Kind>,
) -> WindowFunction {
    WindowFunction { name, since, doc, takes_window: true, parse }
}

/// Returns a row for a function without a `window`: it reads the whole partition.
const fn alone(
    name: &'static str,
    since: &'static str,
    doc: &'static str,
    parse: fn(&Spec<'_, '_>) -> Result<Kind>,
) -> WindowFunction {
    WindowFunction { takes_window: false, ..windowed(name, since, doc, parse) }
}

/// All window functions, by name.
pub const WINDOW_FUNCTIONS: &[WindowFunction] = &[
    accumulated("$addToSet", "5.0", "The distinct values of the window."),
    accumulated("$avg", "5.0", "The mean of the window's numbers; null if there are none."),
    accumulated("$bottom", "5.2", "The output of the window's last document in a sort order."),
    accumulated("$bottomN", "5.2", "The outputs of the window's last n documents in a sort order."),
    accumulated("$concatArrays", "8.1", "The elements of the window's arrays."),
    windowed("$count", "5.0", "The number of documents in the window.", count),
    windowed(
        "$covariancePop",
        "5.0",
        "The covariance of pairs of numbers as a whole population; null if there are none.",
        |spec| covariance(spec, false),
    ),
    windowed(
        "$covarianceSamp",
        "5.0",
        "The covariance of pairs of numbers as a sample; null if there are fewer than two.",
        |spec| covariance(spec, true),
    ),
    alone("$denseRank", "5.0", "The rank in the partition; ties leave no gap.", |spec| {
        rank(spec, Rank::Dense)
    }),
    windowed(
        "$derivative",
        "5.0",
        "The slope between the first and the last document of the window.",
        derivative,
    ),
    alone("$documentNumber", "5.0", "The document's number in the partition.", |spec| {
        rank(spec, Rank::Number)
    }),
    alone(
        "$expMovingAvg",
        "5.0",
        "The exponential moving average of the numbers so far.",
        moving_average,
    ),
    accumulated("$first", "5.0", "The value of the window's first document."),
    accumulated("$firstN", "5.2", "The values of the window's first n documents."),
    windowed("$integral", "5.0", "The area below the points of the window.", integral),
    accumulated("$last", "5.0", "The value of the window's last document."),
    accumulated("$lastN", "5.2", "The values of the window's last n documents."),
    alone(
        "$linearFill",
        "5.3",
        "Linear interpolation of null and missing values between known ones.",
        linear_fill,
    ),
    alone("$locf", "5.2", "The last value that was not null or missing.", last_observation),
    accumulated("$max", "5.0", "The largest value of the window in BSON order."),
    accumulated("$maxN", "5.2", "The n largest values of the window."),
    accumulated("$median", "7.0", "The median of the window's numbers; null if there are none."),
    accumulated("$min", "5.0", "The smallest value of the window in BSON order."),
    accumulated("$minN", "5.2", "The n smallest values of the window."),
    windowed(
        "$minMaxScaler",
        "8.2",
        "The number, scaled by the window's smallest and largest numbers.",
        scaler,
    ),
    accumulated(
        "$percentile",
        "7.0",
        "Percentiles of the window's numbers; null if there are none.",
    ),
    accumulated("$push", "5.0", "The values of the window."),
    alone("$rank", "5.0", "The rank in the partition; ties leave a gap.", |spec| {
        rank(spec, Rank::Gaps)
    }),
    accumulated("$setUnion", "8.1", "The distinct elements of the window's arrays."),
    alone("$shift", "5.0", "The value of another document of the partition.", shift),
    accumulated("$stdDevPop", "5.0", "The standard deviation as a whole population."),
    accumulated("$stdDevSamp", "5.0", "The standard deviation as a sample."),
    accumulated("$sum", "5.0", "The sum of the window's numbers."),
    accumulated("$top", "5.2", "The output of the window's first document in a sort order."),
    accumulated("$topN", "5.2", "The outputs of the window's first n documents in a sort order."),
];

/// The parsed arguments of a function with a window; the fields are those of [`SlidingSpec`].
struct Parts {
    given: Given,
    bounds: Bounds,
    n: Option<Expression>,
    reads_window: bool,
    reads_current: bool,
}

impl Parts {
    fn new(given: Given, bounds: Bounds) -> Self {
        Parts { given, bounds, n: None, reads_window: false, reads_current: false }
    }
}

fn sliding(
    spec: &Spec<'_, '_>,
    parts: Parts,
    make: impl Fn(&EvalContext<'_>, usize) -> Result<Box<dyn Contents>> + Send + Sync + 'static,
) -> Result<Kind> {
    let Parts { given, bounds, n, reads_window, reads_current } = parts;
    let sorted_by = match bounds {
        Bounds::Range(..) => spec.sorted_by()?,
        Bounds::Documents(..) => None,
    };
    let make = Box::new(make);
    let spec = SlidingSpec { given, bounds, n, make, sorted_by, reads_window, reads_current };
    Ok(Kind::Sliding(Arc::new(spec)))
}

/// Returns the bounds; by default the whole partition.
fn bounds(spec: &Spec<'_, '_>) -> Result<Bounds> {
    spec.window().map_or(Ok(Bounds::WHOLE), |window| Bounds::parse(window, spec.sorted_by, spec.cx))
}

fn collation(cx: &EvalContext<'_>) -> StringOrder {
    StringOrder::new(cx.shared.collator.clone())
}

fn accumulator(spec: &Spec<'_, '_>) -> Result<Kind> {
    spec.check_fields()?;
    let Some(accumulator) = find_accumulator(spec.name) else {
        return Err(Error::failed_to_parse("Unrecognized window function"));
    };
    let quantiles = match spec.name {
        "$median" | "$percentile" => Some(quantiles(spec)?),
        _ => None,
    };
    let Parsed { argument, n, make } = accumulator.parsed_in_window(spec.argument, spec.cx)?;
    let bounds = bounds(spec)?;
    let reads_window =
        matches!(spec.name, "$first" | "$last" | "$firstN" | "$lastN" | "$push" | "$concatArrays");
    let only_grows = bounds.only_grows();
    let reads_window = reads_window && !only_grows;
    let name = spec.name;
    let (given, ranking) = match argument {
        Argument::One(expression) => (Given::One(expression), None),
        Argument::Ranked(ranking) => {
            let ranking = Arc::new(ranking);
            (Given::Ranked(Arc::clone(&ranking)), Some(ranking))
        }
    };
    let parts = Parts { n, reads_window, ..Parts::new(given, bounds) };
    sliding(spec, parts, move |cx, n| {
        if let Some(quantiles) = &quantiles {
            return Ok(Box::new(Percentiles::new(quantiles.clone())));
        }
        if only_grows {
            return Ok(Box::new(Growing(make(n, collation(cx)))));
        }
        removable(name, n, ranking.as_ref(), collation(cx))
    })
}

fn quantiles(spec: &Spec<'_, '_>) -> Result<Quantiles> {
    let argument = spec.argument.as_document().unwrap_or(Doc::empty());
    match (spec.name, spec.argument) {
        ("$median", Value::Document(_)) => Quantiles::parse_median(argument, spec.cx),
        (_, Value::Document(_)) => Quantiles::parse_percentile(argument, spec.cx),
        (name, other) => {
            let number = if name == "$median" { 7436100 } else { 7429703 };
            let shown = text::value(other);
            let message = format!("specification must be an object; found {name}: {shown}");
            Err(Error::location(number, message))
        }
    }
}

/// Returns the state of the accumulator `name` for a window that values leave.
fn removable(
    name: &str,
    n: usize,
    ranking: Option<&Arc<crate::accumulator::Ranking>>,
    collation: StringOrder,
) -> Result<Box<dyn Contents>> {
    let edge = |edge: Edge| -> Result<Box<dyn Contents>> { Ok(Box::new(edge)) };
    let order = match (name, ranking) {
        ("$sum", _) => return Ok(Box::new(RemovableSum::default())),
        ("$avg", _) => return Ok(Box::new(RemovableAverage::default())),
        ("$stdDevPop", _) => return Ok(Box::new(RemovableDeviation::new(false))),
        ("$stdDevSamp", _) => return Ok(Box::new(RemovableDeviation::new(true))),
        ("$min", _) => return Ok(Box::new(BestOf::new(Ordering::Less, collation))),
        ("$max", _) => return Ok(Box::new(BestOf::new(Ordering::Greater, collation))),
        ("$first", _) => return edge(Edge::First),
        ("$last", _) => return edge(Edge::Last),
        ("$firstN", _) => return edge(Edge::FirstN(n)),
        ("$lastN", _) => return edge(Edge::LastN(n)),
        ("$concatArrays", _) => return edge(Edge::Elements),
        ("$minN", _) => Order::Least(n),
        ("$maxN", _) => Order::Greatest(n),
        ("$addToSet", _) => Order::Distinct,
        ("$setUnion", _) => Order::DistinctElements,
        ("$top", Some(ranking)) => Order::Top(Arc::clone(ranking), None),
        ("$topN", Some(ranking)) => Order::Top(Arc::clone(ranking), Some(n)),
        ("$bottom", Some(ranking)) => Order::Bottom(Arc::clone(ranking), None),
        ("$bottomN", Some(ranking)) => Order::Bottom(Arc::clone(ranking), Some(n)),
        ("$push", _) => return edge(Edge::All),
        (name, _) => {
            return Err(Error::internal(format!("no window that values of {name} leave")));
        }
    };
    Ok(Box::new(Ordered::new(order, collation)))
}

fn count(spec: &Spec<'_, '_>) -> Result<Kind> {
    spec.check_fields()?;
    if !spec.argument.as_document().is_some_and(Doc::is_empty) {
        return Err(Error::failed_to_parse("$count only accepts an empty object as input"));
    }
    let given = Given::One(Expression::constant(1));
    let parts = Parts::new(given, bounds(spec)?);
    sliding(spec, parts, |_, _| Ok(Box::new(RemovableSum::default())))
}

fn covariance(spec: &Spec<'_, '_>, sample: bool) -> Result<Kind> {
    spec.check_fields()?;
    let given = Given::One(spec.expression(spec.argument)?);
    let parts = Parts::new(given, bounds(spec)?);
    sliding(spec, parts, move |_, _| Ok(Box::new(Covariance::new(sample))))
}

fn rank(spec: &Spec<'_, '_>, rank: Rank) -> Result<Kind> {
    let name = spec.name;
    if spec.whole.count() > 1 {
        let message = "Rank style window functions take no other arguments";
        return Err(Error::location(5371601, message));
    }
    let pattern = spec.sorted_by.pattern.as_ref().filter(|_| spec.sorted_by.has_one_part());
    let Some(pattern) = pattern else { return Err(one_sort_field(5371602, name)) };
    if !spec.argument.as_document().is_some_and(Doc::is_empty) {
        let message = format!("{name} must be specified with '{{}}' as the value");
        return Err(Error::location(5371603, message));
    }
    Ok(Kind::Rank(rank, Arc::clone(pattern)))
}

fn one_sort_field(number: i32, name: &str) -> Error {
    let message = format!(
        "{name} must be specified with a top level sortBy expression with exactly one element"
    );
    Error::location(number, message)
}

fn failed<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::failed_to_parse(message))
}

fn shift(spec: &Spec<'_, '_>) -> Result<Kind> {
    if !spec.sorted_by.given {
        return failed("'$shift' requires a sortBy");
    }
    if spec.window().is_some() {
        return failed("$shift does not accept a 'window' field");
    }
    spec.check_fields()?;
    let Value::Document(argument) = spec.argument else {
        return failed("Argument to $shift must be an object");
    };
    only_fields(argument, &["output", "by", "default"], |_| "Unknown argument in $shift".into())?;
    let by = argument.get("by").map(|by| {
        let whole = by.as_number().and_then(|number| number.exact_i64());
        whole.and_then(|number| i32::try_from(number).ok()).map(i64::from).ok_or_else(|| {
            let shown = text::field("by", by);
            let message = format!("'$shift:by' field must be an integer, but found  {shown}");
            Error::failed_to_parse(message)
        })
    });
    let by = by.transpose()?;
    let default = match argument.get("default") {
        None => ValueBuf::new(Value::Null),
        Some(default) => match spec.expression(default)?.as_constant() {
            Some(default) => ValueBuf::new(default),
            None => return failed("'$shift:default' expression must yield a constant value."),
        },
    };
    let Some(output) = argument.get("output") else {
        return failed("$shift requires an 'output' expression.");
    };
    let Some(by) = by else { return failed("$shift requires 'by' as an integer value.") };
    let bounds = Bounds::Documents(Bound::Offset(by), Bound::Offset(by));
    let given = Given::One(spec.expression(output)?);
    let parts = Parts { reads_window: true, ..Parts::new(given, bounds) };
    sliding(spec, parts, move |_, _| Ok(Box::new(Edge::Only(default.clone()))))
}

/// Returns the input and the unit of `$derivative` and `$integral`.
fn slope_arguments(spec: &Spec<'_, '_>) -> Result<(Given, Option<i64>)> {
    let name = spec.name;
    if !spec.sorted_by.given {
        return failed(format!("{name} requires a sortBy"));
    }
    let Some(sorted_by) = spec.sorted_by()? else {
        return failed(format!("{name} requires a non-compound sortBy"));
    };
    let Value::Document(argument) = spec.argument else {
        let (kind, shown) = (spec.argument.type_name(), text::field(name, spec.argument));
        return failed(format!("{name} expects an object, but got a {kind}: {shown}"));
    };
    let unexpected = |field: &str| format!("{name} got unexpected argument: {field}");
    only_fields(spec.whole, &[name, "window"], unexpected)?;
    only_fields(argument, &["input", "unit"], unexpected)?;
    let unit = argument.get("unit").map(parse_unit).transpose()?;
    let unit_millis = unit.and_then(Unit::millis);
    if unit.is_some() && unit_millis.is_none() {
        return Err(Error::location(5490704, "unit must be 'week' or smaller"));
    }
    let Some(input) = argument.get("input") else {
        return failed(format!("{name} requires an 'input' expression"));
    };
    Ok((Given::Pair(sorted_by, spec.expression(input)?), unit_millis))
}

fn derivative(spec: &Spec<'_, '_>) -> Result<Kind> {
    let (given, unit_millis) = slope_arguments(spec)?;
    let Some(window) = spec.window() else {
        return failed("$derivative requires explicit window bounds");
    };
    let bounds = Bounds::parse(window, spec.sorted_by, spec.cx)?;
    let parts = Parts { reads_window: true, ..Parts::new(given, bounds) };
    sliding(spec, parts, move |_, _| Ok(Box::new(Derivative { unit_millis })))
}

fn integral(spec: &Spec<'_, '_>) -> Result<Kind> {
    let (given, unit_millis) = slope_arguments(spec)?;
    let bounds = bounds(spec)?;
    let only_grows = bounds.only_grows();
    let parts = Parts::new(given, bounds);
    sliding(spec, parts, move |_, _| Ok(Box::new(Integral::new(unit_millis, only_grows))))
}

fn moving_average(spec: &Spec<'_, '_>) -> Result<Kind> {
    const FIELDS: &str = "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field";
    let Value::Document(argument) = spec.argument else {
        return failed("$expMovingAvg must have exactly one argument that is an object");
    };
    if spec.whole.count() > 1 {
        return failed("$expMovingAvg must have exactly one argument that is an object");
    }
    if !spec.sorted_by.given {
        return failed("$expMovingAvg requires an explicit 'sortBy'");
    }
    let [input, n, alpha] = ["input", "N", "alpha"].map(|name| argument.get(name));
    let (Some(input), true) = (input, argument.count() == 2) else { return failed(FIELDS) };
    let alpha = match (n, alpha) {
        (Some(n), None) => alpha_of_n(n)?,
        (None, Some(alpha)) => checked_alpha(alpha)?,
        _ => return failed(FIELDS),
    };
    let given = Given::One(spec.expression(input)?);
    let bounds = Bounds::Documents(Bound::Unbounded, Bound::Current);
    let parts = Parts::new(given, bounds);
    sliding(spec, parts, move |_, _| Ok(Box::new(MovingAverage::new(alpha))))
}

/// Returns the weight of the newest value for `N`: 2 / (N + 1).
fn alpha_of_n(value: Value<'_>) -> Result<Decimal128> {
    let Some(n) = value.as_number().and_then(|number| number.exact_i64()) else {
        let shown = text::field("N", value);
        return failed(format!(
            "'N' field must be an integer, but found  {shown}. To use a non-integer, use the 'alpha' argument instead"
        ));
    };
    if n <= 0 {
        return failed(format!("'N' must be greater than zero. Got {n}"));
    }
    let terms = Decimal128::from_i64(n).add(Decimal128::ONE);
    Ok(Decimal128::from_i64(2).divide(terms))
}

fn checked_alpha(value: Value<'_>) -> Result<Decimal128> {
    let alpha = match value {
        Value::Decimal(number) => Some(number),
        Value::Double(number) => Some(Decimal128::from_f64(number)),
        other => other.as_number().and_then(|n| n.exact_i64()).map(Decimal128::from_i64),
    };
    let Some(alpha) = alpha else {
        let shown = text::field("alpha", value);
        return failed(format!("'alpha' must be a number, but found {shown}"));
    };
    let number = alpha.to_f64();
    if number > 0.0 && number < 1.0 {
        return Ok(alpha);
    }
    let shown = text::field("alpha", value);
    failed(format!("'alpha' must be between 0 and 1 (exclusive), found {shown}"))
}

fn linear_fill(spec: &Spec<'_, '_>) -> Result<Kind> {
    no_window(spec)?;
    let Some(sorted_by) = spec.sorted_by()? else {
        return Err(one_sort_field(605001, spec.name));
    };
    let input = spec.expression(spec.argument)?;
    Ok(Kind::LinearFill(Arc::new(FillSpec { sorted_by, input })))
}

fn last_observation(spec: &Spec<'_, '_>) -> Result<Kind> {
    no_window(spec)?;
    let given = Given::One(spec.expression(spec.argument)?);
    let bounds = Bounds::Documents(Bound::Unbounded, Bound::Current);
    let parts = Parts::new(given, bounds);
    sliding(spec, parts, |_, _| Ok(Box::new(LastObservation::default())))
}

fn no_window(spec: &Spec<'_, '_>) -> Result<()> {
    spec.check_fields()?;
    match spec.window() {
        Some(_) => failed(format!("'window' field is not allowed in {}", spec.name)),
        None => Ok(()),
    }
}

fn scaler(spec: &Spec<'_, '_>) -> Result<Kind> {
    if spec.cx.api_strict {
        let text = "$minMaxScaler is not allowed with 'apiStrict: true' in API Version 1";
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    spec.check_fields()?;
    let Value::Document(argument) = spec.argument else {
        return failed("$minMaxScaler expects an object");
    };
    only_fields(argument, &["input", "min", "max"], |field| {
        format!("$minMaxScaler got unexpected argument: {field}")
    })?;
    let Some(input) = argument.get("input") else {
        return failed("$minMaxScaler requires an 'input' expression");
    };
    let end = |name: &str, default: i32| match argument.get(name) {
        None => Ok(ValueBuf::new(default)),
        Some(end) => match spec.expression(end)?.as_constant() {
            Some(end) if end.is_number() => Ok(ValueBuf::new(end)),
            _ => failed(format!("'{name}' of $minMaxScaler must be a constant number")),
        },
    };
    let (low, high) = (end("min", 0)?, end("max", 1)?);
    if quire_document::compare(low.as_value(), high.as_value(), None).is_ge() {
        return failed("'min' of $minMaxScaler must be less than 'max'");
    }
    let given = Given::One(spec.expression(input)?);
    let parts = Parts { reads_current: true, ..Parts::new(given, bounds(spec)?) };
    sliding(spec, parts, move |_, _| Ok(Box::new(Scaler::new(low.clone(), high.clone()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{ParseContext, Shared};
    use crate::sort::SortPattern;
    use crate::window::{Output, SortedBy};
    use quire_document::literal::parse;

    fn started(name: &str, argument: &str, bounds: &str) -> Result<()> {
        let cx = ParseContext::default();
        let pattern = SortPattern::parse(quire_document::doc! { "a": 1 }.as_doc(), &cx);
        let sorted_by = SortedBy { given: true, pattern: Some(Arc::new(pattern.unwrap())) };
        let spec =
            format!("{{{name}: {argument}, window: {{documents: {bounds}}}}}").replace('\'', "\"");
        let spec = parse(&spec).unwrap();
        let output = Output::parse("out", spec.as_value(), &sorted_by, &cx)?;
        let (arena, shared) = (bumpalo::Bump::new(), Shared::default());
        let root = quire_document::doc! { "x": 2 };
        output.evaluator(&EvalContext::new(&arena, root.as_doc(), &shared)).map(drop)
    }

    #[test]
    fn values_may_leave_the_window_of_every_accumulator() {
        for name in WINDOW_FUNCTIONS.iter().map(|row| row.name) {
            let argument = match name {
                "$top" | "$bottom" => "{sortBy: {a: 1}, output: '$a'}",
                "$topN" | "$bottomN" => "{sortBy: {a: 1}, output: '$a', n: 2}",
                "$firstN" | "$lastN" | "$minN" | "$maxN" => "{input: '$a', n: 2}",
                "$median" => "{input: '$a', method: 'approximate'}",
                "$percentile" => "{input: '$a', p: [0.5], method: 'approximate'}",
                _ if find_accumulator(name).is_some() && name != "$count" => "'$a'",
                _ => continue,
            };
            started(name, argument, "[-1, 1]").unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn n_cannot_read_documents() {
        for bounds in ["[-1, 1]", "['unbounded', 'current']"] {
            started("$firstN", "{input: '$a', n: {$add: [1, 1]}}", bounds).unwrap();
            let error = started("$firstN", "{input: '$a', n: '$x'}", bounds).unwrap_err();
            assert_eq!(error.code().number(), 5787908);
        }
    }
}
