//! Operators that build arrays: `$concatArrays`, `$range`, `$zip`, `$arrayToObject`,
//! `$objectToArray`.

use super::array_access::{integral, is_nullish, type_name};
use super::boolean::is_true;
use super::operator::{Arity, Call, Field, Fields, Operator};
use super::tree::{Expression, ExpressionNode};
use crate::context::EvalContext;
use foldhash::fast::RandomState;
use quire_document::{Array, Doc, Value, message};
use quire_error::{Error, Result};
use std::collections::HashMap;

/// Up to this number of keys a linear search is used; beyond it a hash table.
const COMPARED_KEYS_MAX: usize = 16;

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::function("$concatArrays", Arity::Any, concat)
        .doc("The elements of all arguments in one array.")
        .since("3.2"),
    Operator::function("$range", Arity::Between(2, 3), range)
        .doc("The integers from a start up to (not including) an end, by a step.")
        .since("3.4"),
    Operator::checked("$zip", Arity::Named(&ZIP), check_zip, zip)
        .doc("Transposes arrays: the first elements, the second elements, ...")
        .since("3.4"),
    Operator::function("$arrayToObject", Arity::Exactly(1), array_to_object)
        .doc("A document from an array of pairs or of {k, v}.")
        .since("3.4"),
    Operator::function("$objectToArray", Arity::Exactly(1), object_to_array)
        .doc("An array of {k, v} from a document.")
        .since("3.4"),
];

const ZIP: Fields = Fields {
    fields: &[
        Field::required("inputs", 34465),
        Field::optional("useLongestLength"),
        Field::optional("defaults"),
    ],
    not_object: 34460,
    unknown: 34464,
};

fn concat<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let Some(arrays) = concatenated(&call.args, cx)? else { return Ok(Some(Value::Null)) };
    let all = cx.array(|writer| arrays.into_iter().try_for_each(|array| cx.append(array, writer)));
    all.map(|all| Some(Value::Array(all)))
}

/// Returns the arguments of `$concatArrays`, which must be arrays. Returns `None` at the first that
/// is null or missing.
pub(super) fn concatenated<'a>(
    args: &'a [Expression],
    cx: &EvalContext<'a>,
) -> Result<Option<Vec<Array<'a>>>> {
    let mut arrays = Vec::with_capacity(args.len());
    for arg in args {
        match arg.eval(cx)? {
            None | Some(Value::Null | Value::Undefined) => return Ok(None),
            Some(Value::Array(array)) => arrays.push(array),
            Some(other) => {
                let text = format!("$concatArrays only supports arrays, not {}", other.type_name());
                return Err(Error::location(28664, text));
            }
        }
    }
    Ok(Some(arrays))
}

fn range_bound(value: Option<Value<'_>>, name: &str, codes: (i32, i32)) -> Result<i32> {
    let Some(value) = value.filter(Value::is_number) else {
        let text = format!(
            "$range requires a numeric {name} value, found value of type: {}",
            type_name(value)
        );
        return Err(Error::location(codes.0, text));
    };
    integral(value).ok_or_else(|| {
        let text = format!("$range requires a {name} value that can be represented as a 32-bit integer, found value: {}", message(value));
        Error::location(codes.1, text)
    })
}

fn range<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let (start, end) = (call.eval(0, cx)?, call.eval(1, cx)?);
    let start = range_bound(start, "starting", (34443, 34444))?;
    let end = range_bound(end, "ending", (34445, 34446))?;
    let step = match call.has(2) {
        true => range_bound(call.eval(2, cx)?, "step", (34447, 34448))?,
        false => 1,
    };
    if step == 0 {
        return Err(Error::location(34449, "$range requires a non-zero step value"));
    }
    let (start, end, step) = (i64::from(start), i64::from(end), i64::from(step));
    let numbers = std::iter::successors(Some(start), |at| Some(at + step));
    let numbers = numbers.take_while(|at| if step > 0 { *at < end } else { *at > end });
    cx.array_of(numbers.map(|at| Value::Int32(at as i32))).map(Some)
}

/// Checks that `inputs` and `defaults` are written as arrays.
fn check_zip(call: &Call) -> Result<()> {
    let length = |index| match call.arg(index).map(Expression::node) {
        Some(ExpressionNode::Array(items)) => Ok(items.len()),
        Some(ExpressionNode::Constant(value)) => match value.as_value() {
            Value::Array(array) => Ok(array.count()),
            other => Err(other.type_name()),
        },
        Some(_) => Err("an expression"),
        None => Ok(0),
    };
    let inputs = length(0).map_err(|found| {
        Error::location(34461, format!("inputs must be an array of expressions, found {found}"))
    })?;
    if inputs == 0 {
        return Err(Error::location(34465, "$zip requires at least one input array"));
    }
    if call.has(1) && call.constant(1).and_then(|flag| flag.as_bool()).is_none() {
        return Err(Error::location(34463, "useLongestLength must be a bool"));
    }
    let defaults = length(2).map_err(|found| {
        Error::location(34462, format!("defaults must be an array of expressions, found {found}"))
    })?;
    if call.has(2) && defaults > 0 {
        if !call.has(1) || call.constant(1).is_some_and(|flag| !is_true(Some(flag))) {
            let text = "cannot specify defaults unless useLongestLength is true";
            return Err(Error::location(34466, text));
        }
        if defaults != inputs {
            let text = "defaults and inputs must have the same length";
            return Err(Error::location(34467, text));
        }
    }
    Ok(())
}

fn zip<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let mut inputs = Vec::new();
    for input in list_items(call, 0, cx)? {
        match input? {
            None | Some(Value::Null | Value::Undefined) => return Ok(Some(Value::Null)),
            Some(Value::Array(array)) => inputs.push(array),
            Some(other) => {
                let text =
                    format!("$zip found a non-array expression in input: {}", message(other));
                return Err(Error::location(34468, text));
            }
        }
    }
    let longest = is_true(call.eval(1, cx)?);
    let mut inputs: Vec<_> = inputs.into_iter().map(Array::iter).collect();
    let mut row = Vec::with_capacity(inputs.len());
    let mut defaults = None;
    let zipped = cx.array(|writer| {
        loop {
            row.clear();
            row.extend(inputs.iter_mut().map(Iterator::next));
            let is_full = row.iter().all(Option::is_some) && !row.is_empty();
            let is_over = if longest { row.iter().all(Option::is_none) } else { !is_full };
            if is_over {
                return Ok(());
            }
            if !is_full && defaults.is_none() {
                defaults = Some(zip_defaults(call, row.len(), cx)?);
            }
            let defaults = defaults.as_deref().unwrap_or_default();
            let mut list = writer.array();
            for (column, value) in row.iter().enumerate() {
                let default = || defaults.get(column).copied().flatten();
                // A missing default leaves its place out.
                if let Some(value) = value.or_else(default) {
                    list.push(value);
                }
            }
            list.finish();
            cx.check_size(writer.len())?;
            cx.shared.work(u32::try_from(row.len()).unwrap_or(u32::MAX))?;
        }
    });
    Ok(Some(Value::Array(zipped?)))
}

/// Returns the values after the end of each of `count` inputs: null, unless `defaults` are given.
/// Evaluated only if the inputs differ in length.
fn zip_defaults<'a>(
    call: &'a Call,
    count: usize,
    cx: &EvalContext<'a>,
) -> Result<Vec<Option<Value<'a>>>> {
    let defaults: Vec<_> = list_items(call, 2, cx)?.collect::<Result<_>>()?;
    Ok(if defaults.is_empty() { vec![Some(Value::Null); count] } else { defaults })
}

/// Returns the values of an argument that is written as an array of expressions. Each is evaluated
/// when the iterator reaches it.
fn list_items<'a, 'c>(
    call: &'a Call,
    index: usize,
    cx: &'c EvalContext<'a>,
) -> Result<impl Iterator<Item = Result<Option<Value<'a>>>> + use<'a, 'c>> {
    let (written, known) = match call.arg(index).map(Expression::node) {
        Some(ExpressionNode::Array(items)) => (&items[..], None),
        _ => match call.eval(index, cx)? {
            Some(Value::Array(array)) => {
                cx.charge_elements([array])?;
                (&[][..], Some(array))
            }
            _ => (&[][..], None),
        },
    };
    let known = known.into_iter().flat_map(Array::iter).map(|value| Ok(Some(value)));
    Ok(written.iter().map(|item| item.eval(cx)).chain(known))
}

/// An entry of `$arrayToObject`'s input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Pair,
    KeyValue,
}

fn array_to_object<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    let input = call.eval(0, cx)?;
    if is_nullish(input) {
        return Ok(Some(Value::Null));
    }
    let Some(Value::Array(array)) = input else {
        let text = format!("$arrayToObject requires an array input, found: {}", type_name(input));
        return Err(Error::location(40386, text));
    };
    charge_entries(0, array.as_doc(), cx)?;
    let (mut entries, mut form): (Vec<(&str, Value<'_>)>, _) = (Vec::new(), None);
    for item in array.iter() {
        let (kind, key, value) = match (item, form) {
            (Value::Array(pair), None | Some(Entry::Pair)) => pair_entry(pair)?,
            (Value::Document(doc), None | Some(Entry::KeyValue)) => key_value_entry(doc)?,
            (other, form) => return Err(inconsistent(form, other)),
        };
        form = Some(kind);
        entries.push((key, value));
    }
    Ok(Some(Value::Document(last_of_each(&entries, cx)?)))
}

/// Charges the memory of a list of `held` entries and of a document's fields, with a hash table of
/// their names.
pub(super) fn charge_entries(held: usize, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<()> {
    const ENTRY_BYTES: usize = 4 * size_of::<(&str, Value<'_>)>();
    const UNCHARGED_BYTES: usize = 1024;
    const UNCHARGED_ENTRIES: usize = 256;
    match doc.len() > UNCHARGED_BYTES || held > UNCHARGED_ENTRIES {
        true => cx.charge((held + doc.count()).saturating_mul(ENTRY_BYTES)),
        false => Ok(()),
    }
}

/// Writes the entries. A repeated name keeps its first position and its last value.
pub(super) fn last_of_each<'a>(
    entries: &[(&'a str, Value<'a>)],
    cx: &EvalContext<'a>,
) -> Result<Doc<'a>> {
    let many = entries.len() > COMPARED_KEYS_MAX;
    let mut places: HashMap<&str, usize, RandomState> = HashMap::default();
    let mut unique: Vec<(&str, Value<'_>)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let known = match many {
            true => places.get(key).copied(),
            false => unique.iter().position(|(known, _)| known == key),
        };
        match known.and_then(|place| unique.get_mut(place)) {
            Some((_, known)) => *known = *value,
            None => {
                if many {
                    places.insert(key, unique.len());
                }
                unique.push((key, *value));
            }
        }
    }
    cx.document(|writer| {
        for (key, value) in unique {
            writer.append(key, value);
        }
        Ok(())
    })
}

fn inconsistent(form: Option<Entry>, found: Value<'_>) -> Error {
    let (code, before) = match form {
        None => {
            let text =
                format!("Unrecognised input type format for $arrayToObject: {}", found.type_name());
            return Error::location(40398, text);
        }
        Some(Entry::Pair) => (40396, "Array"),
        Some(Entry::KeyValue) => (40391, "Object"),
    };
    let text = format!(
        "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. {before} was detected, now found: {}",
        found.type_name()
    );
    Error::location(code, text)
}

fn pair_entry<'a>(pair: Array<'a>) -> Result<(Entry, &'a str, Value<'a>)> {
    let mut items = pair.iter();
    let (Some(key), Some(value), None) = (items.next(), items.next(), items.next()) else {
        let text = format!(
            "$arrayToObject requires an array of size 2 arrays,found array of size: {}",
            pair.count()
        );
        return Err(Error::location(40397, text));
    };
    let Value::String(key) = key else {
        let text = format!(
            "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: {}",
            key.type_name()
        );
        return Err(Error::location(40395, text));
    };
    check_key(key, 4940400)?;
    Ok((Entry::Pair, key, value))
}

fn key_value_entry<'a>(doc: Doc<'a>) -> Result<(Entry, &'a str, Value<'a>)> {
    if doc.count() != 2 {
        let text = format!(
            "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{}",
            doc.count()
        );
        return Err(Error::location(40392, text));
    }
    let (Some(key), Some(value)) = (doc.get("k"), doc.get("v")) else {
        let text =
            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys";
        return Err(Error::location(40393, text));
    };
    let Value::String(key) = key else {
        let text = format!(
            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: {}",
            key.type_name()
        );
        return Err(Error::location(40394, text));
    };
    check_key(key, 4940401)?;
    Ok((Entry::KeyValue, key, value))
}

fn check_key(key: &str, code: i32) -> Result<()> {
    if !key.contains('\0') {
        return Ok(());
    }
    let text = "Key field cannot contain an embedded null byte";
    Err(Error::location(code, text))
}

fn object_to_array<'a>(call: &'a Call, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
    match call.eval(0, cx)? {
        None | Some(Value::Null | Value::Undefined) => Ok(Some(Value::Null)),
        Some(Value::Document(doc)) => {
            let array = cx.array(|writer| {
                for element in doc.iter() {
                    let mut entry = writer.document();
                    entry.append("k", element.key());
                    entry.append_renamed("v", element);
                }
                Ok(())
            });
            Ok(Some(Value::Array(array?)))
        }
        Some(other) => {
            let text =
                format!("$objectToArray requires a document input, found: {}", other.type_name());
            Err(Error::location(40390, text))
        }
    }
}
