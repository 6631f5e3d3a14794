//! `$push` with the modifiers `$each`, `$position`, `$slice`, `$sort`.

use super::apply::{Run, begin, end, header};
use super::modifier::{Effect, Missing, Modifier, depth};
use super::operator::{FieldOperand, UpdateOperator};
use super::{extreme, pop};
use crate::context::EvalContext;
use crate::context::work::sort_by;
use crate::text;
use quire_document::limits::SORT_KEYS_MAX;
use quire_document::{Array, ArrayBuf, Doc, Element, Type, Value, write_element, write_index};
use quire_error::{Error, Result};
use std::cmp::Ordering;

pub(super) const PUSH: UpdateOperator = UpdateOperator {
    name: "$push",
    since: "2.2",
    doc: "Appends a value, or those of `$each` at `$position`, to an array, sorts it by `$sort` and keeps `$slice` elements.",
    parse: |operand, _| Ok(Box::new(Push::parse(operand)?)),
};

#[derive(Debug)]
struct Push {
    values: ArrayBuf,
    /// The position of the new values. A negative one counts from the end; `None` appends.
    position: Option<i64>,
    /// The number of elements to keep; a negative one counts from the end.
    slice: Option<i64>,
    sort: Option<Sort>,
    depth: usize,
}

#[derive(Debug)]
enum Sort {
    /// By the elements themselves; descending if true.
    Whole(bool),
    /// By fields of the elements.
    Fields(Vec<(Box<str>, bool)>),
}

impl Push {
    fn parse(operand: &FieldOperand<'_>) -> Result<Self> {
        let spec = match operand.value {
            Value::Document(spec) if spec.contains("$each") => spec,
            value => {
                let values: ArrayBuf = std::iter::once(value).collect();
                let depth = depth(Value::Array(values.as_array()));
                return Ok(Push { values, position: None, slice: None, sort: None, depth });
            }
        };
        let mut push =
            Push { values: ArrayBuf::new(), position: None, slice: None, sort: None, depth: 0 };
        for (name, value) in spec.fields() {
            match name {
                "$each" => push.values = each(value)?,
                "$position" => push.position = Some(position(value)?),
                "$slice" => push.slice = Some(slice(value)?),
                "$sort" => push.sort = Some(Sort::parse(value)?),
                _ => {
                    let message = format!("Unrecognized clause in $push: {name}");
                    return Err(Error::bad_value(message));
                }
            }
        }
        push.depth = depth(Value::Array(push.values.as_array()));
        Ok(push)
    }

    /// Returns the array after the push, or `None` if nothing changes.
    fn pushed<'v>(
        &'v self,
        cx: &EvalContext<'_>,
        array: Array<'v>,
    ) -> Result<Option<Vec<Value<'v>>>> {
        let mut elements = array.to_vec();
        let new = self.values.as_array().to_vec();
        let mut changed = !new.is_empty();
        let at = insertion_point(self.position, elements.len());
        elements.splice(at..at, new);
        if let Some(sort) = &self.sort {
            changed = true;
            sort_by(&mut elements, cx.shared, |left, right| sort.compare(cx, *left, *right))?;
        }
        if let Some(slice) = self.slice {
            let kept = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            if elements.len() > kept {
                changed = true;
                if slice >= 0 {
                    elements.truncate(kept);
                } else {
                    elements.drain(..elements.len() - kept);
                }
            }
        }
        Ok(changed.then_some(elements))
    }

    fn only_appends(&self) -> bool {
        self.position.is_none() && self.slice.is_none() && self.sort.is_none()
    }

    /// Copies the array's bytes and appends the values.
    fn append(&self, array: Array<'_>, out: &mut Vec<u8>) {
        let start = begin(out);
        out.extend_from_slice(array.as_doc().element_bytes());
        let mut name = Vec::with_capacity(8);
        let count = array.count();
        for (at, value) in self.values.as_array().iter().enumerate() {
            name.clear();
            write_index(&mut name, (count + at) as u32);
            write_element(out, &name, value);
        }
        end(out, start);
    }
}

fn insertion_point(position: Option<i64>, length: usize) -> usize {
    match position {
        None => length,
        Some(from_end) if from_end < 0 => {
            let back = usize::try_from(from_end.unsigned_abs()).unwrap_or(usize::MAX);
            length.saturating_sub(back)
        }
        Some(from_start) => usize::try_from(from_start).unwrap_or(usize::MAX).min(length),
    }
}

fn each(value: Value<'_>) -> Result<ArrayBuf> {
    match value {
        Value::Array(values) => Ok(values.iter().collect()),
        other => Err(Error::bad_value(format!(
            "The argument to $each in $push must be an array but it was of type: {}",
            other.type_name()
        ))),
    }
}

fn position(value: Value<'_>) -> Result<i64> {
    value.as_number().and_then(|number| number.exact_i64()).ok_or_else(|| {
        Error::bad_value(format!(
            "The value for $position must be an integer value, not of type: {}",
            value.type_name()
        ))
    })
}

fn slice(value: Value<'_>) -> Result<i64> {
    value.as_number().and_then(|number| number.exact_i64()).ok_or_else(|| {
        Error::bad_value(format!(
            "The value for $slice must be an integer value but was given type: {}",
            value.type_name()
        ))
    })
}

impl Sort {
    fn parse(value: Value<'_>) -> Result<Self> {
        if let Value::Document(pattern) = value {
            return Sort::parse_pattern(pattern);
        }
        if value.as_number().is_some() {
            return Ok(Sort::Whole(descends(value)?));
        }
        Err(Error::bad_value(
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
        ))
    }

    fn parse_pattern(pattern: Doc<'_>) -> Result<Self> {
        let mut fields = Vec::new();
        for (path, direction) in pattern.fields() {
            if fields.len() == SORT_KEYS_MAX {
                return Err(Error::bad_value("too many compound keys"));
            }
            let descending = descends(direction)?;
            if path.is_empty() {
                return Err(Error::bad_value("The $sort field cannot be empty"));
            }
            if path.split('.').any(str::is_empty) {
                return Err(Error::bad_value(format!(
                    "The $sort field is a dotted field but has an empty part: {path}"
                )));
            }
            fields.push((path.into(), descending));
        }
        if fields.is_empty() {
            return Err(Error::bad_value(
                "The $sort pattern is empty when it should be a set of fields.",
            ));
        }
        Ok(Sort::Fields(fields))
    }

    fn compare(&self, cx: &EvalContext<'_>, left: Value<'_>, right: Value<'_>) -> Ordering {
        match self {
            Sort::Whole(descending) => turned(extreme::compare(cx, left, right), *descending),
            Sort::Fields(fields) => {
                let mut orders = fields.iter().map(|(path, descending)| {
                    turned(extreme::compare(cx, key(left, path), key(right, path)), *descending)
                });
                orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            }
        }
    }
}

fn turned(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

fn descends(direction: Value<'_>) -> Result<bool> {
    match direction.as_number().and_then(|number| number.exact_i64()) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
    }
}

/// Returns the value at a dotted path of an element, or null if there is none. A path does not
/// continue in an array.
fn key<'v>(element: Value<'v>, path: &str) -> Value<'v> {
    let mut current = element;
    for (at, part) in path.split('.').enumerate() {
        current = match current {
            Value::Document(doc) => match doc.get(part) {
                Some(value) => value,
                None => return Value::Null,
            },
            Value::Array(_) if at > 0 => return current,
            _ => return Value::Null,
        };
    }
    current
}

impl Modifier for Push {
    fn update(
        &self,
        run: &Run<'_>,
        _: bool,
        element: Element<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Effect> {
        let Value::Array(array) = element.value() else {
            return Err(Error::bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {}",
                element.key(),
                element.value().type_name(),
                text::id_of(run.root)
            )));
        };
        if self.only_appends() {
            if self.values.as_array().is_empty() {
                return Ok(Effect::Kept);
            }
            header(out, Type::Array, element.key_bytes());
            self.append(array, out);
            return Ok(Effect::Written);
        }
        let Some(elements) = self.pushed(run.cx, array)? else { return Ok(Effect::Kept) };
        header(out, Type::Array, element.key_bytes());
        pop::write_array(out, elements);
        Ok(Effect::Written)
    }

    fn missing(&self, _: &Run<'_>) -> Missing {
        Missing::Create
    }

    fn create(&self, run: &Run<'_>, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        header(out, Type::Array, name);
        pop::write_array(out, self.pushed(run.cx, Array::empty())?.unwrap_or_default());
        Ok(())
    }

    fn appends(&self) -> bool {
        self.only_appends()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
