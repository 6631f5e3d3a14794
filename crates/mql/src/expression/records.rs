//! Bodies of `$reduce` that make a record of which some fields grow, such as
//! `{list: {$concatArrays: ["$$value.list", ["$$this"]]}, n: {$add: ["$$value.n", 1]}}`, or the same in
//! `{$mergeObjects: ["$$value", ...]}`.
//!
//! Evaluating such a body copies the growing fields in each iteration. If nothing else reads them, the
//! loop keeps each in a buffer of its own ([`Held`]), and makes only the other fields anew.

use super::appending::{Held, Kind, Plan, reads_where};
use super::boolean::is_true;
use super::iterations::Iterations;
use super::tree::{Expression, ExpressionNode, Variable};
use crate::context::{Binding, EvalContext, Slot};
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::Result;

/// A body that makes a record with growing fields.
#[derive(Debug)]
pub(super) struct Records<'e> {
    plan: RecordPlan<'e>,
    growing: Vec<Growing<'e>>,
    this: Slot,
    value: Slot,
}

/// A field that grows, and the operator that appends to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Growing<'e> {
    name: &'e str,
    kind: Kind,
}

/// What an iteration does.
#[derive(Debug)]
enum RecordPlan<'e> {
    /// Leaves `$$value` as it is.
    Keep,
    /// Makes a record of these fields.
    Make(Vec<Field<'e>>),
    /// Replaces these fields of `$$value`, or adds them to it.
    Merge(Vec<Field<'e>>),
    /// The first plan if the condition is true, otherwise the second.
    Choose(&'e Expression, Box<[RecordPlan<'e>; 2]>),
}

/// A field of a record.
#[derive(Debug)]
enum Field<'e> {
    /// The growing field with this index.
    Grows(usize, Plan<'e>),
    /// A field with the value of an expression.
    Is(&'e str, &'e Expression),
}

/// What is accumulated.
struct Record {
    /// All fields in their order. A growing one has null in place of its value.
    fields: DocBuf,
    /// The values of the growing fields.
    held: Vec<Held>,
    /// The growing fields that became null in the last iteration.
    nulls: Vec<bool>,
}

impl<'a> Records<'a> {
    /// Returns the plan of a body; `None` if it is another kind of body.
    pub(super) fn of(body: &'a Expression, this: Slot, value: Slot) -> Option<Self> {
        let mut growing = Vec::new();
        find_growing(body, value, &mut growing)?;
        if growing.is_empty() {
            return None;
        }
        let plan = RecordPlan::of(body, value, &growing)?;
        Some(Records { plan, growing, this, value })
    }

    /// Runs the iterations for `items` while the fields can grow, and returns the value after them.
    /// Consumes no items if `value` does not have the fields that grow.
    pub(super) fn run(
        &self,
        value: Option<ValueBuf>,
        items: &mut impl Iterator<Item = Value<'a>>,
        iterations: &mut Iterations<'a>,
        cx: &EvalContext<'a>,
    ) -> Result<Option<ValueBuf>> {
        let initial = value.as_ref().and_then(|value| value.as_value().as_document());
        let Some(mut record) = initial.and_then(|initial| self.begin(initial)) else {
            return Ok(value);
        };
        for item in items {
            let size = record.size();
            cx.check_size(size)?;
            let inner = iterations.next()?.holding(size).bind(self.this, Some(item));
            let next = {
                let so_far = Value::Document(record.fields.as_doc());
                let inner = inner.bind(self.value, Some(so_far));
                let (held, nulls) = (&mut record.held, &mut record.nulls);
                self.step(&self.plan, record.fields.as_doc(), (held, nulls), &inner)?
            };
            record.fields = next.unwrap_or(record.fields);
            if record.nulls.contains(&true) {
                break;
            }
        }
        self.finish(record, cx).map(Some)
    }

    /// Returns the record of the initial value; `None` if a growing field has another type than the
    /// operator appends to.
    fn begin(&self, initial: Doc<'_>) -> Option<Record> {
        let held = self.growing.iter().map(|field| Held::new(field.kind, initial.get(field.name)));
        let held: Vec<_> = held.collect::<Option<_>>()?;
        let fields = DocBuf::build(|writer| {
            for (name, value) in initial.fields() {
                writer.append(name, if self.place(name).is_some() { Value::Null } else { value });
            }
        });
        let nulls = vec![false; held.len()];
        Some(Record { fields, held, nulls })
    }

    /// Returns the index of a growing field.
    fn place(&self, name: &str) -> Option<usize> {
        self.growing.iter().position(|field| field.name == name)
    }

    /// Runs one iteration, and returns the fields of the next record; `None` if they stay.
    fn step<'s>(
        &self,
        plan: &RecordPlan<'s>,
        old: Doc<'_>,
        (held, nulls): (&mut Vec<Held>, &mut Vec<bool>),
        cx: &EvalContext<'s>,
    ) -> Result<Option<DocBuf>> {
        let (fields, merges) = match plan {
            RecordPlan::Keep => return Ok(None),
            RecordPlan::Choose(condition, plans) => {
                let [then, otherwise] = &**plans;
                let plan = if is_true(condition.eval(cx)?) { then } else { otherwise };
                return self.step(plan, old, (held, nulls), cx);
            }
            RecordPlan::Make(fields) => (fields, false),
            RecordPlan::Merge(fields) => (fields, true),
        };
        let mut made: Vec<(&str, Value<'s>)> = Vec::with_capacity(fields.len());
        for field in fields {
            match field {
                Field::Grows(at, plan) => {
                    if let (Some(held), Some(null)) = (held.get_mut(*at), nulls.get_mut(*at)) {
                        *null = plan.step(held, None, cx)?.is_none();
                    }
                    made.extend(self.growing.get(*at).map(|field| (field.name, Value::Null)));
                }
                Field::Is(name, expression) => {
                    if let Some(value) = expression.eval(cx)? {
                        cx.check_field_depth(value)?;
                        made.push((*name, value));
                    }
                }
            }
        }
        let next = cx.document(|writer| {
            let kept = if merges { old } else { Doc::empty() };
            for (name, value) in kept.fields() {
                let new = made.iter().find(|(new, _)| *new == name);
                writer.append(name, new.map_or(value, |(_, new)| *new));
            }
            for (name, value) in made.iter().filter(|(name, _)| !kept.contains(name)) {
                writer.append(name, *value);
            }
            Ok(())
        })?;
        Ok(Some(next.to_owned()))
    }

    /// Returns the record with the values of the growing fields.
    fn finish(&self, record: Record, cx: &EvalContext<'_>) -> Result<ValueBuf> {
        let Record { fields, held, nulls } = record;
        let values = held.into_iter().zip(nulls).map(|(held, is_null)| match is_null {
            true => Ok(ValueBuf::new(Value::Null)),
            false => held.finish(cx),
        });
        let values: Vec<ValueBuf> = values.collect::<Result<_>>()?;
        let doc = cx.document(|writer| {
            for (name, value) in fields.as_doc().fields() {
                match self.place(name).and_then(|at| values.get(at)) {
                    Some(grown) => writer.append(name, grown),
                    None => writer.append(name, value),
                };
                cx.check_size(writer.len())?;
            }
            Ok(())
        })?;
        cx.check_depth(Value::Document(doc))?;
        Ok(ValueBuf::new(Value::Document(doc)))
    }
}

impl Record {
    fn size(&self) -> usize {
        let held: usize = self.held.iter().map(Held::size).sum();
        held + self.fields.as_bytes().len()
    }
}

impl<'e> RecordPlan<'e> {
    fn of(body: &'e Expression, value: Slot, growing: &[Growing<'e>]) -> Option<Self> {
        match shape(body, value)? {
            Shape::Value => Some(RecordPlan::Keep),
            Shape::Made(fields) => {
                let has = |name: &str| fields.iter().any(|(own, _)| &**own == name);
                let is_whole = growing.iter().all(|field| has(field.name));
                let fields = is_whole.then(|| fields_of(fields, value, growing))??;
                Some(RecordPlan::Make(fields))
            }
            Shape::Merged(fields) => Some(RecordPlan::Merge(fields_of(fields, value, growing)?)),
            Shape::Chosen(condition, [then, otherwise]) => {
                if reads_growing(condition, value, growing) {
                    return None;
                }
                let then = RecordPlan::of(then, value, growing)?;
                let otherwise = RecordPlan::of(otherwise, value, growing)?;
                Some(RecordPlan::Choose(condition, Box::new([then, otherwise])))
            }
        }
    }
}

/// The forms of a body.
enum Shape<'e> {
    /// The variable `$$value`, so that nothing changes.
    Value,
    /// A document of expressions.
    Made(&'e [(Box<str>, Expression)]),
    /// `$mergeObjects` of `$$value` and a document of expressions.
    Merged(&'e [(Box<str>, Expression)]),
    /// A condition with two bodies.
    Chosen(&'e Expression, [&'e Expression; 2]),
}

fn shape(body: &Expression, value: Slot) -> Option<Shape<'_>> {
    match body.node() {
        ExpressionNode::Variable(variable) => is_whole(variable, value).then_some(Shape::Value),
        ExpressionNode::Object(fields) => Some(Shape::Made(fields)),
        ExpressionNode::Call(call) if call.name() == "$mergeObjects" => {
            let [first, second] = &call.args[..] else { return None };
            match (first.node(), second.node()) {
                (ExpressionNode::Variable(variable), ExpressionNode::Object(fields))
                    if is_whole(variable, value) =>
                {
                    Some(Shape::Merged(fields))
                }
                _ => None,
            }
        }
        ExpressionNode::Form(form) => {
            let [condition, then, otherwise] = form.branches()?;
            Some(Shape::Chosen(condition, [then, otherwise]))
        }
        _ => None,
    }
}

/// Adds the fields that a body appends to. Returns `None` if it is another kind of body.
fn find_growing<'e>(
    body: &'e Expression,
    value: Slot,
    growing: &mut Vec<Growing<'e>>,
) -> Option<()> {
    match shape(body, value)? {
        Shape::Value => {}
        Shape::Made(fields) | Shape::Merged(fields) => {
            for (name, expression) in fields {
                let mut kind = None;
                let is_field = |part: &Expression| is_field(part, value, name);
                Plan::of(expression, &is_field, &|_| false, &mut kind);
                let found = kind.map(|kind| Growing { name, kind });
                growing.extend(found.filter(|found| !growing.contains(found)));
            }
        }
        Shape::Chosen(_, bodies) => {
            bodies.into_iter().try_for_each(|body| find_growing(body, value, growing))?;
        }
    }
    Some(())
}

/// Returns the plans of the fields of a record. Each growing field must grow in one way, and nothing
/// else may read it.
fn fields_of<'e>(
    fields: &'e [(Box<str>, Expression)],
    value: Slot,
    growing: &[Growing<'e>],
) -> Option<Vec<Field<'e>>> {
    let reads = |part: &Expression| reads_growing(part, value, growing);
    let plan_of = |(at, (name, expression)): (usize, &'e (Box<str>, Expression))| {
        let is_repeated = fields.iter().take(at).any(|(other, _)| other == name);
        let mut own = growing.iter().enumerate().filter(|(_, field)| field.name == &**name);
        match (own.next(), own.next()) {
            _ if is_repeated => None,
            (None, _) => (!reads(expression)).then_some(Field::Is(name, expression)),
            (Some((place, field)), None) => {
                let mut kind = Some(field.kind);
                let is_field = |part: &Expression| is_field(part, value, name);
                let plan = Plan::of(expression, &is_field, &reads, &mut kind)?;
                (!plan.any_condition(&reads)).then_some(Field::Grows(place, plan))
            }
            // It grows by two operators.
            (Some(_), Some(_)) => None,
        }
    };
    fields.iter().enumerate().map(plan_of).collect()
}

/// Returns true if an expression reads a growing field, or the record as a whole.
fn reads_growing(expression: &Expression, value: Slot, growing: &[Growing<'_>]) -> bool {
    reads_where(expression, &|variable| {
        variable.binding == Binding::Scoped(value)
            && variable
                .path
                .as_ref()
                .is_none_or(|path| growing.iter().any(|field| field.name == path.first()))
    })
}

fn is_whole(variable: &Variable, value: Slot) -> bool {
    variable.binding == Binding::Scoped(value) && variable.path.is_none()
}

/// Returns true for the field `name` of `$$value`.
fn is_field(expression: &Expression, value: Slot, name: &str) -> bool {
    match expression.node() {
        ExpressionNode::Variable(variable) => {
            let path = variable.path.as_ref();
            variable.binding == Binding::Scoped(value)
                && path.is_some_and(|path| path.components().eq([name]))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{ParseContext, Shared};
    use bumpalo::Bump;
    use quire_document::testing::Generator;
    use quire_document::{ArrayBuf, array, doc, identical};

    /// Returns an expression for `$$value.{name}`, hidden from the search for fields that grow if
    /// `hides` is true.
    fn field(name: &str, hides: bool) -> ValueBuf {
        let path = format!("$$value.{name}");
        match hides {
            false => ValueBuf::new(path.as_str()),
            true => ValueBuf::new(&doc! { "$ifNull": [path.as_str(), path.as_str()] }),
        }
    }

    /// Returns the fields of a random body.
    fn fields(random: &mut Generator, hides: bool) -> DocBuf {
        let list = match random.below(3) {
            0 => array!["$$this", "$$value.n"],
            1 => array![{ "x": "$$value.n", "y": "$$this" }],
            _ => array!["$$this"],
        };
        let null_at = random.below(1500) as i32;
        let list = doc! { "$cond": [{ "$eq": ["$$this", null_at] }, Value::Null, &list] };
        let mut list = doc! { "$concatArrays": [&field("list", hides), &list] };
        if random.one_in(2) {
            let condition = doc! { "$lt": [{ "$mod": ["$$this", 5] }, 3] };
            list = doc! { "$cond": [&condition, &list, &field("list", hides)] };
        }
        let mut body = DocBuf::new();
        if random.one_in(2) {
            body.append("n", &doc! { "$add": ["$$value.n", 1] });
        }
        body.append("list", &list);
        match random.below(4) {
            0 => {
                let text = doc! { "$toString": "$$this" };
                body.append("text", &doc! { "$concat": [&field("text", hides), &text] });
            }
            1 => {
                let added = array![{ "$mod": ["$$this", 7] }];
                body.append("set", &doc! { "$setUnion": [&field("set", hides), &added] });
            }
            2 => {
                let pair = array![[{ "$toString": { "$mod": ["$$this", 9] } }, "$$this"]];
                let object = doc! { "$arrayToObject": [&pair] };
                body.append(
                    "object",
                    &doc! { "$mergeObjects": [&field("object", hides), &object] },
                );
            }
            _ => {}
        }
        if random.one_in(2) {
            body.append(
                "last",
                &doc! { "$cond": [{ "$gt": ["$$this", 3] }, "$$this", "$$REMOVE"] },
            );
        }
        if random.one_in(3) {
            body.append("n2", &doc! { "$multiply": ["$$value.n", 2] });
        }
        body
    }

    /// Returns a body that makes a record, and the same body in a form that is not recognised.
    fn bodies(seed: u64) -> [DocBuf; 2] {
        [false, true].map(|hides| {
            let mut random = Generator::new(seed);
            let own = fields(&mut random, hides);
            let body = match random.below(2) {
                0 => own,
                _ => doc! { "$mergeObjects": ["$$value", &own] },
            };
            match random.below(3) {
                0 => {
                    let condition = doc! { "$ne": [{ "$mod": ["$$this", 4] }, "$$value.n"] };
                    doc! { "$cond": [&condition, &body, "$$value"] }
                }
                _ => body,
            }
        })
    }

    fn outcome(body: &DocBuf, initial: Value<'_>, root: &DocBuf) -> Result<Option<ValueBuf>> {
        let reduce = doc! { "$reduce": { "input": "$a", "initialValue": initial, "in": body } };
        let expression = Expression::parse(Value::from(&reduce), &ParseContext::default())?;
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        Ok(expression.eval(&cx)?.map(ValueBuf::new))
    }

    fn is_record(body: &DocBuf) -> bool {
        let (context, this) = ParseContext::default().bind("this");
        let (context, value) = context.bind("value");
        let body = Expression::parse(Value::from(body), &context).unwrap();
        Records::of(&body, this, value).is_some()
    }

    #[test]
    fn growing_fields_give_what_evaluating_the_body_gives() {
        let root = doc! { "a": &(0..500).map(Value::Int32).collect::<ArrayBuf>() };
        let initial = [
            ValueBuf::new(&doc! { "list": [7], "n": 0, "text": "", "set": [3, 1, 1.0], "z": 1 }),
            ValueBuf::new(
                &doc! { "z": 1, "n": 2.5, "list": [], "text": "a", "object": { "5": 1 } },
            ),
            ValueBuf::new(&doc! { "n": 1, "last": 4, "set": [], "text": "", "list": [] }),
            ValueBuf::new(&doc! { "list": 5 }),
            ValueBuf::new(&doc! { "n": 1 }),
            ValueBuf::new(Value::Null),
        ];
        let (mut failed, mut passed) = (0, 0);
        for seed in 0..600 {
            let [plain, hidden] = bodies(seed);
            assert!(is_record(&plain) && !is_record(&hidden), "{plain:?} {hidden:?}");
            let initial = Generator::new(seed ^ 77).pick(&initial).unwrap().clone();
            let initial = initial.as_value();
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
        assert!(failed > 20 && passed > 100, "{failed} {passed}");
    }

    #[test]
    fn fields_that_something_else_reads_do_not_grow_in_place() {
        let list = doc! { "$concatArrays": ["$$value.list", ["$$this"]] };
        let size = doc! { "$size": "$$value.list" };
        let count = doc! { "$add": ["$$value.n", 1] };
        assert!(is_record(&doc! { "list": &list, "n": &count }));
        assert!(is_record(&doc! { "$mergeObjects": ["$$value", { "list": &list }] }));
        assert!(!is_record(&doc! { "list": &list, "n": &size }));
        assert!(!is_record(&doc! { "list": &list, "copy": "$$value" }));
        assert!(!is_record(&doc! { "other": &list, "n": &count }));
        assert!(!is_record(&doc! { "n": &count }));
        let choice =
            |otherwise: &DocBuf| doc! { "$cond": ["$$this", { "list": &list }, otherwise] };
        assert!(!is_record(&choice(&doc! { "n": 1 })), "the list is dropped");
        assert!(!is_record(&choice(&doc! { "list": "$$this" })));
        assert!(is_record(&choice(&doc! { "list": "$$value.list", "n": 1 })));
    }
}
