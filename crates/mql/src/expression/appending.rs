//! Bodies of `$reduce` that append to `$$value`, such as `{$concatArrays: ["$$value", ["$$this"]]}`.
//!
//! Evaluating such a body copies all that was accumulated, in each iteration. If the rest of the body
//! does not read `$$value`, the loop appends to a buffer of its own instead. A `$cond` that chooses
//! between appending and keeping `$$value` is such a body too.

use super::array_access::{is_nullish, type_name};
use super::boolean::is_true;
use super::iterations::Iterations;
use super::tree::{Expression, ExpressionNode};
use super::{sets, strings};
use crate::context::{Binding, EvalContext, Slot};
use foldhash::fast::RandomState;
use quire_document::{Array, ArrayBuf, Doc, GrowingArray, Value, ValueBuf};
use quire_error::Result;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A body that appends to `$$value` or keeps it.
#[derive(Debug)]
pub(super) struct Appending<'e> {
    kind: Kind,
    plan: Plan<'e>,
    this: Slot,
    value: Slot,
}

/// The operator that appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Arrays,
    Strings,
    Sets,
    Objects,
}

impl Kind {
    fn of(operator: &str) -> Option<Kind> {
        Some(match operator {
            "$concatArrays" => Kind::Arrays,
            "$concat" => Kind::Strings,
            "$setUnion" => Kind::Sets,
            "$mergeObjects" => Kind::Objects,
            _ => return None,
        })
    }

    /// Returns true if a condition may read what was accumulated so far.
    fn is_readable(self) -> bool {
        matches!(self, Kind::Arrays | Kind::Strings)
    }
}

/// What an iteration does.
#[derive(Debug)]
enum Plan<'e> {
    /// Leaves `$$value` as it is.
    Keep,
    /// Appends the values of these arguments.
    Append(&'e [Expression]),
    /// The first plan if the condition is true, otherwise the second.
    Choose(&'e Expression, Box<[Plan<'e>; 2]>),
}

impl<'a> Appending<'a> {
    /// Returns the plan of a body; `None` if it is another kind of body.
    pub(super) fn of(body: &'a Expression, this: Slot, value: Slot) -> Option<Self> {
        let mut kind = None;
        let plan = Plan::of(body, value, &mut kind)?;
        let kind = kind?;
        let is_served = kind.is_readable() || !plan.conditions_read(value);
        is_served.then_some(Appending { kind, plan, this, value })
    }

    /// Runs the iterations for `items` while values can be appended, and returns the value after
    /// them. Consumes no items if `value` is not what the operator appends to.
    pub(super) fn run(
        &self,
        value: Option<ValueBuf>,
        items: &mut impl Iterator<Item = Value<'a>>,
        iterations: &mut Iterations<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Option<ValueBuf>> {
        let so_far = value.as_ref().map(ValueBuf::as_value);
        let Some(mut held) = Held::new(self.kind, so_far) else { return Ok(value) };
        for item in items {
            let inner = iterations.next()?.holding(held.size());
            let inner = inner.bind(self.this, Some(item));
            if self.step(&self.plan, &mut held, &inner)?.is_none() {
                return Ok(Some(ValueBuf::new(Value::Null)));
            }
            cx.check_size(held.size())?;
        }
        held.finish(cx).map(Some)
    }

    /// Runs one iteration. Returns `None` if the value becomes null.
    fn step<'s>(
        &self,
        plan: &Plan<'s>,
        held: &mut Held,
        cx: &EvalContext<'s>,
    ) -> Result<Option<()>> {
        match plan {
            Plan::Keep => Ok(Some(())),
            Plan::Append(args) => held.append(args, cx),
            Plan::Choose(condition, plans) => {
                let so_far = held.as_value();
                // The context of the condition lives shorter than that of the iteration.
                let narrow: EvalContext<'_> = *cx;
                let taken = is_true(condition.eval(&narrow.bind(self.value, so_far))?);
                let [then, otherwise] = &**plans;
                self.step(if taken { then } else { otherwise }, held, cx)
            }
        }
    }
}

impl<'e> Plan<'e> {
    fn of(body: &'e Expression, value: Slot, kind: &mut Option<Kind>) -> Option<Self> {
        match body.node() {
            _ if is_variable(body, value) => Some(Plan::Keep),
            ExpressionNode::Call(call) => {
                let found = Kind::of(call.name())?;
                let (first, rest) = call.args.split_first()?;
                let is_appended = !rest.is_empty() && is_variable(first, value);
                if !is_appended
                    || *kind.get_or_insert(found) != found
                    || rest.iter().any(|arg| reads(arg, value))
                {
                    return None;
                }
                Some(Plan::Append(rest))
            }
            ExpressionNode::Form(form) => {
                let [condition, then, otherwise] = form.branches()?;
                let plans = [Plan::of(then, value, kind)?, Plan::of(otherwise, value, kind)?];
                Some(Plan::Choose(condition, Box::new(plans)))
            }
            _ => None,
        }
    }

    fn conditions_read(&self, value: Slot) -> bool {
        match self {
            Plan::Choose(condition, plans) => {
                reads(condition, value) || plans.iter().any(|plan| plan.conditions_read(value))
            }
            Plan::Keep | Plan::Append(_) => false,
        }
    }
}

/// Returns true for a variable without a path.
fn is_variable(expression: &Expression, slot: Slot) -> bool {
    match expression.node() {
        ExpressionNode::Variable(variable) => {
            variable.binding == Binding::Scoped(slot) && variable.path.is_none()
        }
        _ => false,
    }
}

/// Returns true if an expression reads a variable.
fn reads(expression: &Expression, slot: Slot) -> bool {
    if let ExpressionNode::Variable(variable) = expression.node()
        && variable.binding == Binding::Scoped(slot)
    {
        return true;
    }
    let mut found = false;
    expression.children(&mut |child| found = found || reads(child, slot));
    found
}

/// The accumulated value, in a form to which appending is cheap.
#[derive(Debug)]
enum Held {
    Array(GrowingArray),
    Text(String),
    /// The elements of all arrays, and how many of them are known to be distinct.
    Set(GrowingArray, u32),
    Object(Fields),
}

/// The fields of a document under construction. A repeated name keeps its place and gets the last
/// value.
#[derive(Debug, Default)]
struct Fields {
    places: HashMap<Box<str>, usize, RandomState>,
    values: Vec<ValueBuf>,
    bytes: usize,
}

impl Held {
    /// Returns the form of a value; `None` if the operator fails for it or returns null.
    fn new(kind: Kind, value: Option<Value<'_>>) -> Option<Held> {
        Some(match (kind, value) {
            (Kind::Arrays, Some(Value::Array(array))) => Held::Array(GrowingArray::new(array)),
            (Kind::Strings, Some(Value::String(text))) => Held::Text(text.to_owned()),
            (Kind::Sets, Some(Value::Array(array))) => Held::Set(GrowingArray::new(array), 0),
            (Kind::Objects, value) => {
                let mut fields = Fields::default();
                match value {
                    Some(Value::Document(doc)) => fields.merge(doc),
                    value if is_nullish(value) => {}
                    _ => return None,
                }
                Held::Object(fields)
            }
            _ => return None,
        })
    }

    /// Returns the value for conditions that read it; `None` if there are none.
    fn as_value(&self) -> Option<Value<'_>> {
        match self {
            Held::Array(array) => Some(Value::Array(array.as_array())),
            Held::Text(text) => Some(Value::String(text)),
            Held::Set(..) | Held::Object(_) => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Held::Array(array) | Held::Set(array, _) => array.as_array().as_bytes().len(),
            Held::Text(text) => text.len(),
            Held::Object(fields) => fields.bytes,
        }
    }

    /// Appends the values of all arguments. Returns `None` if one of them makes the result null.
    fn append<'s>(&mut self, args: &'s [Expression], cx: &EvalContext<'s>) -> Result<Option<()>> {
        match self {
            Held::Array(array) => {
                let arrays = super::array_building::concatenated(args, cx)?;
                arrays.map(|arrays| extend(array, &arrays, cx)).transpose()
            }
            Held::Set(array, distinct) => {
                let Some(arrays) = sets::arrays(args, "$setUnion", 17043, cx)? else {
                    return Ok(None);
                };
                extend(array, &arrays, cx)?;
                // Often enough that the list stays short, and seldom enough to be cheap.
                if array.count() > distinct.saturating_mul(2).saturating_add(1024) {
                    *array = GrowingArray::new(distinct_of(array, cx)?.as_array());
                    *distinct = array.count();
                }
                Ok(Some(()))
            }
            Held::Text(text) => strings::append(text, args, cx),
            Held::Object(fields) => {
                for arg in args {
                    match arg.eval(cx)? {
                        Some(Value::Document(doc)) => {
                            doc.fields().try_for_each(|(_, value)| cx.check_field_depth(value))?;
                            fields.merge(doc);
                        }
                        other if is_nullish(other) => {}
                        other => return Err(super::objects::not_an_object(type_name(other))),
                    }
                }
                Ok(Some(()))
            }
        }
    }

    fn finish(self, cx: &EvalContext<'_>) -> Result<ValueBuf> {
        Ok(match self {
            Held::Array(array) => ArrayBuf::from_valid_bytes(array.into_bytes()).into(),
            Held::Text(text) => ValueBuf::new(Value::String(&text)),
            Held::Set(array, _) => distinct_of(&array, cx)?.into(),
            Held::Object(fields) => fields.finish(cx)?,
        })
    }
}

/// Appends the elements of arrays, within the memory limit.
fn extend(held: &mut GrowingArray, arrays: &[Array<'_>], cx: &EvalContext<'_>) -> Result<()> {
    for array in arrays {
        array.iter().try_for_each(|value| cx.check_field_depth(value))?;
    }
    cx.limited(|| {
        held.extend(|writer| arrays.iter().try_for_each(|array| cx.append(*array, writer)))
    })
}

/// Returns the distinct elements in order.
fn distinct_of(array: &GrowingArray, cx: &EvalContext<'_>) -> Result<ArrayBuf> {
    Ok(sets::distinct(array.as_array(), cx)?.into_iter().collect())
}

impl Fields {
    fn merge(&mut self, doc: Doc<'_>) {
        const ENTRY_BYTES: usize = 64;
        for (name, value) in doc.fields() {
            let value = ValueBuf::new(value);
            self.bytes += value.size();
            match self.places.entry(name.into()) {
                Entry::Occupied(place) => {
                    if let Some(known) = self.values.get_mut(*place.get()) {
                        self.bytes -= known.size();
                        *known = value;
                    }
                }
                Entry::Vacant(place) => {
                    self.bytes += name.len() + ENTRY_BYTES;
                    place.insert(self.values.len());
                    self.values.push(value);
                }
            }
        }
    }

    fn finish(self, cx: &EvalContext<'_>) -> Result<ValueBuf> {
        let mut names: Vec<(usize, Box<str>)> =
            self.places.into_iter().map(|(name, place)| (place, name)).collect();
        names.sort_unstable_by_key(|(place, _)| *place);
        let doc = cx.document(|writer| {
            for ((_, name), value) in names.iter().zip(&self.values) {
                writer.append(name, value);
                cx.check_size(writer.len())?;
            }
            Ok(())
        })?;
        Ok(ValueBuf::new(doc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{ParseContext, Shared};
    use bumpalo::Bump;
    use quire_document::testing::Generator;
    use quire_document::{DocBuf, array, doc, identical};

    /// Returns a body that appends, and the same body in a form that is not recognised.
    fn bodies(random: &mut Generator) -> (DocBuf, DocBuf) {
        let (operator, added) = match random.below(4) {
            0 => ("$concatArrays", ValueBuf::new(&array!["$$this", { "x": "$$this" }])),
            1 => ("$setUnion", ValueBuf::new(&array![{ "$mod": ["$$this", 7] }, "$$this"])),
            2 => ("$concat", ValueBuf::new(&doc! { "$toString": "$$this" })),
            _ => {
                let name = doc! { "$toString": { "$mod": ["$$this", 9] } };
                let pair = array![[&name, "$$this"]];
                ("$mergeObjects", ValueBuf::new(&doc! { "$arrayToObject": [&pair] }))
            }
        };
        let null_at = random.below(600) as i32;
        let added = match random.below(4) {
            0 => {
                doc! { "$cond": [{ "$eq": ["$$this", null_at] }, quire_document::Value::Null, &added] }
            }
            _ => doc! { "$cond": [true, &added, 0] },
        };
        let body = |value: Value<'_>| {
            let mut body = DocBuf::new();
            body.append(operator, &array![value, &added]);
            body
        };
        let plain = body("$$value".into());
        let hidden = body(Value::from(&doc! { "$ifNull": ["$$value", "$$value"] }));
        if random.one_in(2) {
            return (plain, hidden);
        }
        let condition = match random.below(2) {
            0 => doc! { "$lt": [{ "$mod": ["$$this", 5] }, 3] },
            _ => doc! { "$ne": ["$$value", "$$this"] },
        };
        let choose = |body: DocBuf| doc! { "$cond": [&condition, &body, "$$value"] };
        (choose(plain), choose(hidden))
    }

    fn outcome(body: &DocBuf, initial: Value<'_>, root: &DocBuf) -> Result<Option<ValueBuf>> {
        let reduce = doc! { "$reduce": { "input": "$a", "initialValue": initial, "in": body } };
        let expression = Expression::parse(Value::from(&reduce), &ParseContext::default())?;
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        Ok(expression.eval(&cx)?.map(ValueBuf::new))
    }

    #[test]
    fn appending_gives_what_evaluating_the_body_gives() {
        let root = doc! { "a": &(0..500).map(Value::Int32).collect::<ArrayBuf>() };
        let initial = [
            ValueBuf::new(&array![3, 1, 1.0]),
            ValueBuf::new("text"),
            ValueBuf::new(&doc! { "5": true, "z": 1 }),
            ValueBuf::new(Value::Null),
            ValueBuf::new(&doc! { "$literal": 4 }),
        ];
        let (mut failed, mut passed) = (0, 0);
        for seed in 0..400 {
            let mut random = Generator::new(seed);
            let (plain, hidden) = bodies(&mut random);
            let initial = random.pick(&initial).unwrap().as_value();
            match (outcome(&plain, initial, &root), outcome(&hidden, initial, &root)) {
                (Ok(Some(found)), Ok(Some(wanted))) => {
                    passed += 1;
                    assert!(
                        identical(found.as_value(), wanted.as_value()),
                        "{seed}: {plain:?} of {initial:?} gives {found:?}, not {wanted:?}"
                    );
                }
                (Err(found), Err(wanted)) => {
                    failed += 1;
                    assert_eq!(found.code(), wanted.code(), "{seed}: {plain:?} of {initial:?}");
                }
                (found, wanted) => panic!("{seed}: {plain:?} of {initial:?}: {found:?} {wanted:?}"),
            }
        }
        assert!(failed > 50 && passed > 50, "{failed} {passed}");
    }

    #[test]
    fn only_bodies_that_do_not_read_the_value_append() {
        let plan = |body: DocBuf| {
            let context = ParseContext::default();
            let (context, this) = context.bind("this");
            let (context, value) = context.bind("value");
            let body = Expression::parse(Value::from(&body), &context).unwrap();
            Appending::of(&body, this, value).is_some()
        };
        assert!(plan(doc! { "$concatArrays": ["$$value", ["$$this"]] }));
        assert!(plan(doc! { "$cond": [{ "$in": ["$$this", "$$value"] }, "$$value",
        { "$concatArrays": ["$$value", ["$$this"]] }] }));
        assert!(!plan(doc! { "$concatArrays": ["$$value", "$$value"] }));
        assert!(!plan(doc! { "$concatArrays": [["$$this"], "$$value"] }));
        assert!(!plan(doc! { "$concatArrays": ["$$value.a", ["$$this"]] }));
        assert!(!plan(doc! { "$mergeObjects": ["$$value"] }));
        assert!(!plan(doc! { "$cond": [{ "$gt": ["$$value.a", 1] }, "$$value",
        { "$mergeObjects": ["$$value", { "a": "$$this" }] }] }));
    }
}
