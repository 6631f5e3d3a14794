//! Accumulators as expressions: applied to the elements of one array, or to several arguments.

use super::operator::{Arity, Call, Operator};
use super::quantiles::Quantiles;
use super::tree::{Expression, Form};
use crate::context::{EvalContext, ParseContext};
use crate::text;
use crate::totals::{Average, Deviation, Sum, replaces};
use quire_document::{DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use std::cmp::Ordering;

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$sum", Arity::Any, |call, cx| {
        let mut sum = Sum::default();
        for_each(call, cx, |value| sum.push(value))?;
        Ok(Some(sum.value()))
    })
    .doc("The sum of the numbers.")
    .since("3.2"),
    Operator::function("$avg", Arity::Any, |call, cx| {
        let mut average = Average::default();
        for_each(call, cx, |value| average.push(value))?;
        Ok(Some(average.value()))
    })
    .doc("The mean of the numbers; null if there are none.")
    .since("3.2"),
    Operator::function("$min", Arity::Any, |call, cx| extreme(call, cx, Ordering::Less))
        .constants_last()
        .doc("The smallest value; null and missing values are ignored.")
        .since("3.2"),
    Operator::function("$max", Arity::Any, |call, cx| extreme(call, cx, Ordering::Greater))
        .constants_last()
        .doc("The largest value; null and missing values are ignored.")
        .since("3.2"),
    Operator::function("$stdDevPop", Arity::Any, |call, cx| deviation(call, cx, false))
        .doc("The standard deviation of the numbers as a whole population.")
        .since("3.2"),
    Operator::function("$stdDevSamp", Arity::Any, |call, cx| deviation(call, cx, true))
        .doc("The standard deviation of the numbers as a sample.")
        .since("3.2"),
    Operator::form("$percentile", parse_quantiles)
        .doc("Percentiles of the numbers in an array.")
        .since("7.0"),
    Operator::form("$median", parse_quantiles)
        .doc("The median of the numbers in an array.")
        .since("7.0"),
];

/// Visits the elements of a single argument that is an array, or otherwise all arguments.
fn for_each<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    mut visit: impl FnMut(Value<'a>),
) -> Result<()> {
    if call.args.len() == 1 {
        match call.eval(0, cx)? {
            Some(Value::Array(array)) => array.iter().for_each(visit),
            Some(value) => visit(value),
            None => {}
        }
        return Ok(());
    }
    for index in 0..call.args.len() {
        if let Some(value) = call.eval(index, cx)? {
            visit(value);
        }
    }
    Ok(())
}

fn extreme<'a>(
    call: &'a Call,
    cx: &EvalContext<'a>,
    better: Ordering,
) -> Result<Option<Value<'a>>> {
    let mut best: Option<Value<'a>> = None;
    let collator = cx.collator();
    for_each(call, cx, |value| {
        if replaces(value, best, better, collator) {
            best = Some(value);
        }
    })?;
    Ok(Some(best.unwrap_or(Value::Null)))
}

fn deviation<'a>(call: &'a Call, cx: &EvalContext<'a>, sample: bool) -> Result<Option<Value<'a>>> {
    let mut deviation = Deviation::new(sample);
    for_each(call, cx, |value| deviation.push(value))?;
    Ok(Some(deviation.value()))
}

/// `$percentile` or `$median` with its parsed arguments.
#[derive(Debug)]
struct QuantilesOf {
    name: &'static str,
    input: Expression,
    quantiles: Quantiles,
    source: DocBuf,
}

fn parse_quantiles(
    operator: &'static Operator,
    value: Value<'_>,
    cx: &ParseContext,
) -> Result<Expression> {
    let median = operator.name == "$median";
    let Value::Document(spec) = value else {
        let number = if median { 7436200 } else { 7436201 };
        let shown = text::field(operator.name, value);
        let message = format!("specification must be an object; found {shown}");
        return Err(Error::location(number, message));
    };
    let quantiles = if median {
        Quantiles::parse_median(spec, cx)?
    } else {
        Quantiles::parse_percentile(spec, cx)?
    };
    let input = Expression::parse(spec.get("input").unwrap_or(Value::Null), cx)?;
    let name = operator.name;
    Ok(Expression::form(Box::new(QuantilesOf { name, input, quantiles, source: spec.to_owned() })))
}

impl Form for QuantilesOf {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        let number = |value: Value<'_>| value.to_f64().filter(|number| !number.is_nan());
        let mut numbers: Vec<f64> = match self.input.eval(cx)? {
            Some(Value::Array(array)) => {
                cx.charge_elements([array])?;
                array.iter().filter_map(number).collect()
            }
            value => value.and_then(number).into_iter().collect(),
        };
        self.quantiles.result(&mut numbers, cx).map(Some)
    }

    fn children<'e>(&'e self, visit: &mut dyn FnMut(&'e Expression)) {
        visit(&self.input);
    }

    fn children_mut(&mut self, visit: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        visit(&mut self.input)
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(self.name);
        for (name, value) in self.source.as_doc().fields() {
            match name {
                "input" => self.input.serialize_to("input", &mut inner),
                _ => {
                    inner.append(name, value);
                }
            }
        }
    }
}
