//! Operators on arrays as sets: `$setUnion`, `$setIntersection`, `$setDifference`, `$setEquals`,
//! `$setIsSubset`, `$allElementsTrue`, `$anyElementTrue`. Elements are equal as for `$eq`.

use super::array_access::{is_nullish, type_name};
use super::boolean::is_true;
use super::operator::{Arity, Call, Operator};
use super::tree::{Expression, ExpressionNode};
use crate::context::work::{search_units, sort_by};
use crate::context::{Collator, EvalContext};
use quire_document::{Array, Value, compare};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$setUnion", Arity::Any, union)
        .doc("The distinct elements of all arguments together."),
    Operator::function("$setIntersection", Arity::Any, intersection)
        .doc("The distinct elements that every argument has."),
    Operator::function("$setDifference", Arity::Exactly(2), difference)
        .doc("The distinct elements of the first argument that the second does not have."),
    Operator::checked("$setEquals", Arity::AtLeast(2, 17045), check_equals, equals)
        .doc("True if all arguments have the same distinct elements."),
    Operator::checked("$setIsSubset", Arity::Exactly(2), check_subset, is_subset)
        .doc("True if the second argument has all elements of the first."),
    Operator::function("$allElementsTrue", Arity::Exactly(1), all_true)
        .doc("True if no element is false, null or zero."),
    Operator::function("$anyElementTrue", Arity::Exactly(1), any_true)
        .doc("True if any element is true."),
];

/// The distinct elements of an array, in order.
struct Sorted<'a> {
    items: Vec<Value<'a>>,
    collator: Option<&'a dyn Collator>,
}

impl<'a> Sorted<'a> {
    fn new(array: Array<'a>, cx: &EvalContext<'a>) -> Result<Self> {
        Sorted::of(cx.elements(array)?, cx)
    }

    fn of(mut items: Vec<Value<'a>>, cx: &EvalContext<'a>) -> Result<Self> {
        let collator = cx.collator();
        sort_by(&mut items, cx.shared, |a, b| compare(*a, *b, collator))?;
        items.dedup_by(|a, b| compare(*a, *b, collator).is_eq());
        Ok(Sorted { items, collator })
    }

    /// Counts the work of `count` calls of `contains`.
    fn prepare(&self, count: usize, cx: &EvalContext<'_>) -> Result<()> {
        cx.shared.work(search_units(count, self.items.len()))
    }

    fn contains(&self, value: Value<'_>) -> bool {
        self.items.binary_search_by(|item| compare(*item, value, self.collator)).is_ok()
    }
}

fn not_an_array(name: &str, code: i32, value: Option<Value<'_>>) -> Error {
    let text = format!(
        "All operands of {name} must be arrays. One argument is of type: {}",
        type_name(value)
    );
    Error::location(code, text)
}

/// Returns the distinct elements of an array in order: of equal ones the first.
pub(super) fn distinct<'v>(array: Array<'v>, cx: &EvalContext<'v>) -> Result<Vec<Value<'v>>> {
    Ok(Sorted::new(array, cx)?.items)
}

/// Returns the arguments of the operator `name` as arrays. Returns `None` if one is null or missing,
/// and fails with `code` if one is of another type; the first of these in order of evaluation
/// decides. Constants are evaluated last, because mongod moves them to the end.
pub(super) fn arrays<'a>(
    args: &'a [Expression],
    name: &str,
    code: i32,
    cx: &EvalContext<'a>,
) -> Result<Option<Vec<Array<'a>>>> {
    let mut arrays = Vec::with_capacity(args.len());
    let (constant, read): (Vec<_>, Vec<_>) = args.iter().partition(|arg| arg.is_constant());
    for arg in read.into_iter().chain(constant) {
        match arg.eval(cx)? {
            Some(Value::Array(array)) => arrays.push(array),
            other if is_nullish(other) => return Ok(None),
            other => return Err(not_an_array(name, code, other)),
        }
    }
    Ok(Some(arrays))
}

fn union<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let arrays = arrays(&call.args, call.name(), 17043, cx)?;
    let Some(arrays) = arrays else { return Ok(Some(Value::Null)) };
    cx.charge_elements(arrays.iter().copied())?;
    let union = Sorted::of(arrays.into_iter().flat_map(Array::iter).collect(), cx)?;
    cx.array_of(union.items).map(Some)
}

fn intersection<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let arrays = arrays(&call.args, call.name(), 17047, cx)?;
    let Some(arrays) = arrays else { return Ok(Some(Value::Null)) };
    let mut arrays = arrays.into_iter();
    let Some(first) = arrays.next() else { return Ok(Some(Value::Array(Array::empty()))) };
    let mut common = Sorted::new(first, cx)?;
    for other in arrays {
        let other = Sorted::new(other, cx)?;
        other.prepare(common.items.len(), cx)?;
        common.items.retain(|item| other.contains(*item));
    }
    cx.array_of(common.items).map(Some)
}

fn difference<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (left, right) = (call.eval(0, cx)?, call.eval(1, cx)?);
    if is_nullish(left) || is_nullish(right) {
        return Ok(Some(Value::Null));
    }
    let Some(Value::Array(left)) = left else {
        let text = format!(
            "both operands of $setDifference must be arrays. First argument is of type: {}",
            type_name(left)
        );
        return Err(Error::location(17048, text));
    };
    let Some(Value::Array(right)) = right else {
        let text = format!(
            "both operands of $setDifference must be arrays. Second argument is of type: {}",
            type_name(right)
        );
        return Err(Error::location(17049, text));
    };
    let (right, collator) = (Sorted::new(right, cx)?, cx.collator());
    let kept = left.iter().enumerate().filter(|(_, item)| !right.contains(*item));
    cx.charge_elements([left, left])?;
    right.prepare(left.count(), cx)?;
    let mut kept: Vec<_> = kept.collect();
    sort_by(&mut kept, cx.shared, |a, b| compare(a.1, b.1, collator))?;
    kept.dedup_by(|a, b| compare(a.1, b.1, collator).is_eq());
    kept.sort_by_key(|(place, _)| *place);
    cx.array_of(kept.into_iter().map(|(_, item)| item)).map(Some)
}

/// Fails while parsing if a constant argument is not an array.
fn check_equals(call: &Call) -> Result<()> {
    match call.args.iter().find(|arg| is_constant_tree(arg) && !is_array_literal(arg)) {
        Some(wrong) => Err(not_an_array("$setEquals", 5887502, wrong.as_constant())),
        None => Ok(()),
    }
}

fn is_array_literal(arg: &Expression) -> bool {
    let constant = arg.as_constant().is_some_and(|value| value.as_array().is_some());
    constant || matches!(arg.node(), ExpressionNode::Array(_))
}

/// Returns true for constants, and for objects and arrays of constants.
fn is_constant_tree(arg: &Expression) -> bool {
    match arg.node() {
        ExpressionNode::Object(fields) => fields.iter().all(|(_, field)| is_constant_tree(field)),
        ExpressionNode::Array(items) => items.iter().all(is_constant_tree),
        _ => arg.as_constant().is_some(),
    }
}

fn equals<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let mut first: Option<Sorted<'a>> = None;
    for arg in &call.args {
        let value = arg.eval(cx)?;
        let Some(Value::Array(array)) = value else {
            return Err(not_an_array("$setEquals", 17044, value));
        };
        let next = Sorted::new(array, cx)?;
        let Some(first) = &first else {
            first = Some(next);
            continue;
        };
        let pairs = first.items.iter().zip(&next.items);
        let same = first.items.len() == next.items.len()
            && pairs.into_iter().all(|(a, b)| compare(*a, *b, first.collator).is_eq());
        if !same {
            return Ok(Some(Value::Bool(false)));
        }
    }
    Ok(Some(Value::Bool(true)))
}

/// Fails while parsing if only the second argument is constant and is not an array, as mongod does
/// for an expression that it optimises, even where it is not reached.
fn check_subset(call: &Call) -> Result<()> {
    let is_known = |at| call.arg(at).is_some_and(Expression::is_constant);
    match call.constant(1) {
        Some(Value::Array(_)) => Ok(()),
        other if is_known(1) && !is_known(0) => {
            let text = format!(
                "both operands of $setIsSubset must be arrays. Second argument is of type: {}",
                type_name(other)
            );
            Err(Error::location(17311, text))
        }
        _ => Ok(()),
    }
}

fn is_subset<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (left, right) = (call.eval(0, cx)?, call.eval(1, cx)?);
    let wrong = |which: &str, value, code| {
        let text = format!(
            "both operands of $setIsSubset must be arrays. {which} argument is of type: {}",
            type_name(value)
        );
        Error::location(code, text)
    };
    let Some(Value::Array(left)) = left else { return Err(wrong("First", left, 17046)) };
    let Some(Value::Array(right)) = right else { return Err(wrong("Second", right, 17042)) };
    let right = Sorted::new(right, cx)?;
    right.prepare(left.count(), cx)?;
    Ok(Some(Value::Bool(left.iter().all(|item| right.contains(item)))))
}

fn elements<'a>(call: &'a Call, cx: &EvalContext<'a>, code: i32) -> Result<Array<'a>> {
    let value = call.eval(0, cx)?;
    let Some(Value::Array(array)) = value else {
        let text =
            format!("{}'s argument must be an array, but is {}", call.name(), type_name(value));
        return Err(Error::location(code, text));
    };
    Ok(array)
}

fn all_true<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let array = elements(call, cx, 17040)?;
    Ok(Some(Value::Bool(array.iter().all(|item| is_true(Some(item))))))
}

fn any_true<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let array = elements(call, cx, 17041)?;
    Ok(Some(Value::Bool(array.iter().any(|item| is_true(Some(item))))))
}
