//! `$firstN`, `$lastN`, `$maxN`, `$minN` of an array.

use super::array_access::type_name;
use super::operator::{Arity, Call, Field, Fields, Operator};
use crate::context::EvalContext;
use crate::context::work::sort_by;
use quire_document::{Array, Value, compare};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$firstN", Arity::Named(&FIELDS), |call, cx| {
        let (input, n) = arguments(call, cx)?;
        cx.array_of_elements(input.as_doc().iter().take(n)).map(Some)
    })
    .doc("The first n elements.")
    .since("5.2"),
    Operator::function("$lastN", Arity::Named(&FIELDS), |call, cx| {
        let (input, n) = arguments(call, cx)?;
        let skipped = cx.count(input)?.saturating_sub(n);
        cx.array_of_elements(cx.elements_from(input, skipped)).map(Some)
    })
    .doc("The last n elements.")
    .since("5.2"),
    Operator::function("$maxN", Arity::Named(&FIELDS), |call, cx| extremes(call, cx, true))
        .doc("The n largest elements, without nulls.")
        .since("5.2"),
    Operator::function("$minN", Arity::Named(&FIELDS), |call, cx| extremes(call, cx, false))
        .doc("The n smallest elements, without nulls.")
        .since("5.2"),
];

const FIELDS: Fields = Fields {
    fields: &[Field::required("n", 5787906), Field::required("input", 5787907)],
    not_object: 5787900,
    unknown: 5787901,
};

fn arguments<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<(Array<'a>, usize)> {
    let name = call.name();
    let n = call.eval(0, cx)?;
    let Some(number) = n.filter(Value::is_number).and_then(|n| n.as_number()?.exact_i64()) else {
        let text = format!("Value for 'n' must be of integral type, but found {}", type_name(n));
        return Err(Error::location(5787902, text));
    };
    if number <= 0 {
        let text = format!("'n' must be greater than 0, found {number}");
        return Err(Error::location(5787908, text));
    }
    let input = call.eval(1, cx)?;
    let Some(Value::Array(input)) = input else {
        let text = format!("{name}: input must be an array, found {}", type_name(input));
        return Err(Error::location(5788200, text));
    };
    Ok((input, usize::try_from(number).unwrap_or(usize::MAX)))
}

fn extremes<'a>(call: &'a Call, cx: &EvalContext<'a>, largest: bool) -> Result<Option<Value<'a>>> {
    let (input, n) = arguments(call, cx)?;
    cx.charge_elements([input])?;
    let mut items: Vec<_> = input.iter().filter(|item| !item.is_nullish()).collect();
    let collator = cx.collator();
    sort_by(&mut items, cx.shared, |a, b| {
        let order = compare(*a, *b, collator);
        if largest { order.reverse() } else { order }
    })?;
    items.truncate(n);
    cx.array_of(items).map(Some)
}
