//! Bodies of `$reduce` that append to `$$value`, such as `{$concatArrays: ["$$value", ["$$this"]]}`.
//!
//! Evaluating such a body copies all that was accumulated, in each iteration. If the rest of the body
//! does not read `$$value`, the loop appends to a buffer of its own instead. A `$cond` that chooses
//! between appending and keeping `$$value` is such a body too.

use super::array_access::{is_nullish, type_name};
use super::boolean::is_true;
use super::iterations::Iterations;
use super::tree::{Expression, ExpressionNode, Variable};
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
pub(super) enum Kind {
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

/// What an iteration does with the accumulated value.
#[derive(Debug)]
pub(super) enum Plan<'e> {
    /// Leaves it as it is.
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
        let is_value = |body: &Expression| is_variable(body, value);
        let plan = Plan::of(body, &is_value, &|part| reads(part, value), &mut kind)?;
        let kind = kind?;
        let is_served = kind.is_readable() || !plan.any_condition(&|part| reads(part, value));
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
            if self.plan.step(&mut held, Some(self.value), &inner)?.is_none() {
                return Ok(Some(ValueBuf::new(Value::Null)));
            }
            cx.check_size(held.size())?;
        }
        held.finish(cx).map(Some)
    }
}

impl<'e> Plan<'e> {
    /// Returns the plan of an expression that appends to what `is_value` recognises, and the operator
    /// in `kind`. The appended values must not read what `reads` recognises.
    pub(super) fn of(
        body: &'e Expression,
        is_value: &dyn Fn(&Expression) -> bool,
        reads: &dyn Fn(&Expression) -> bool,
        kind: &mut Option<Kind>,
    ) -> Option<Self> {
        match body.node() {
            _ if is_value(body) => Some(Plan::Keep),
            ExpressionNode::Call(call) => {
                let found = Kind::of(call.name())?;
                let (first, rest) = call.args.split_first()?;
                let is_appended = !rest.is_empty() && is_value(first);
                if !is_appended || *kind.get_or_insert(found) != found || rest.iter().any(reads) {
                    return None;
                }
                Some(Plan::Append(rest))
            }
            ExpressionNode::Form(form) => {
                let [condition, then, otherwise] = form.branches()?;
                let then = Plan::of(then, is_value, reads, kind)?;
                let otherwise = Plan::of(otherwise, is_value, reads, kind)?;
                Some(Plan::Choose(condition, Box::new([then, otherwise])))
            }
            _ => None,
        }
    }

    /// Runs one iteration. Conditions read the accumulated value as the variable `value`, if there is
    /// one. Returns `None` if the value becomes null.
    pub(super) fn step(
        &self,
        held: &mut Held,
        value: Option<Slot>,
        cx: &EvalContext<'e>,
    ) -> Result<Option<()>> {
        match self {
            Plan::Keep => Ok(Some(())),
            Plan::Append(args) => held.append(args, cx),
            Plan::Choose(condition, plans) => {
                // The context of the condition lives shorter than that of the iteration.
                let narrow: EvalContext<'_> = *cx;
                let chosen = match value {
                    Some(slot) => condition.eval(&narrow.bind(slot, held.as_value()))?,
                    None => condition.eval(&narrow)?,
                };
                let [then, otherwise] = &**plans;
                let plan = if is_true(chosen) { then } else { otherwise };
                plan.step(held, value, cx)
            }
        }
    }

    /// Returns true if `test` is true for a condition.
    pub(super) fn any_condition(&self, test: &dyn Fn(&Expression) -> bool) -> bool {
        match self {
            Plan::Choose(condition, plans) => {
                test(condition) || plans.iter().any(|plan| plan.any_condition(test))
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
    reads_where(expression, &|variable| variable.binding == Binding::Scoped(slot))
}

/// Returns true if an expression reads a variable for which `test` is true.
pub(super) fn reads_where(expression: &Expression, test: &dyn Fn(&Variable) -> bool) -> bool {
    if let ExpressionNode::Variable(variable) = expression.node()
        && test(variable)
    {
        return true;
    }
    let mut found = false;
    expression.children(&mut |child| found = found || reads_where(child, test));
    found
}

/// The accumulated value, in a form to which appending is cheap.
#[derive(Debug)]
pub(super) enum Held {
    Array(GrowingArray),
    Text(String),
    Set(Union),
    Object(Fields),
}

/// The elements of the arrays of a union.
#[derive(Debug)]
pub(super) struct Union {
    elements: GrowingArray,
    /// The number of elements that are known to be distinct.
    distinct: u32,
    /// False for the initial value, whose elements may be equal and have any order.
    is_union: bool,
}

/// The fields of a document under construction. A repeated name keeps its place and gets the last
/// value.
#[derive(Debug, Default)]
pub(super) struct Fields {
    places: HashMap<Box<str>, usize, RandomState>,
    values: Vec<ValueBuf>,
    bytes: usize,
}

impl Held {
    /// Returns the form of a value; `None` if the operator fails for it or returns null.
    pub(super) fn new(kind: Kind, value: Option<Value<'_>>) -> Option<Held> {
        Some(match (kind, value) {
            (Kind::Arrays, Some(Value::Array(array))) => Held::Array(GrowingArray::new(array)),
            (Kind::Strings, Some(Value::String(text))) => Held::Text(text.to_owned()),
            (Kind::Sets, Some(Value::Array(array))) => {
                let elements = GrowingArray::new(array);
                Held::Set(Union { elements, distinct: 0, is_union: false })
            }
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
            Held::Set(_) | Held::Object(_) => None,
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Held::Array(array) => array.as_array().as_bytes().len(),
            Held::Set(union) => union.elements.as_array().as_bytes().len(),
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
            Held::Set(Union { elements, distinct, is_union }) => {
                let Some(arrays) = sets::arrays(args, "$setUnion", 17043, cx)? else {
                    return Ok(None);
                };
                extend(elements, &arrays, cx)?;
                *is_union = true;
                // Often enough that the list stays short, and seldom enough to be cheap.
                if elements.count() > distinct.saturating_mul(2).saturating_add(1024) {
                    *elements = GrowingArray::new(distinct_of(elements, cx)?.as_array());
                    *distinct = elements.count();
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

    pub(super) fn finish(self, cx: &EvalContext<'_>) -> Result<ValueBuf> {
        Ok(match self {
            Held::Set(Union { elements, is_union: true, .. }) => distinct_of(&elements, cx)?.into(),
            Held::Array(array) | Held::Set(Union { elements: array, .. }) => {
                ArrayBuf::from_valid_bytes(array.into_bytes()).into()
            }
            Held::Text(text) => ValueBuf::new(Value::String(&text)),
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

    /// A union that no iteration made had its elements sorted and made distinct.
    #[test]
    fn a_set_to_which_nothing_is_added_stays_as_it_is() {
        let root = doc! { "a": &(0..500).map(Value::Int32).collect::<ArrayBuf>() };
        let union = doc! { "$setUnion": ["$$value", ["$$this"]] };
        let body = doc! { "$cond": [{ "$gt": ["$$this", 1000] }, &union, "$$value"] };
        let initial = array![3, 1, 1.0];
        let found = outcome(&body, Value::from(&initial), &root).unwrap().unwrap();
        assert!(identical(found.as_value(), Value::from(&initial)), "{found:?}");
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
