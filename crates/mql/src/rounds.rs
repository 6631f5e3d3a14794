//! Loops of expressions (`$map`, `$filter`, `$reduce`): where a round leaves its results, and what
//! the rounds of a loop remember of documents and arrays that they read again and again.
//!
//! BSON is walked to reach an element. A body that asks for the elements of one array by their
//! places would take the square of the time, so a loop remembers where elements begin, once
//! walking has cost as much as a look at all of them.

use crate::context::EvalContext;
use crate::expression::Expression;
use crate::work::{ELEMENTS_AT_ONCE, bytes_of, units};
use bumpalo::Bump;
use foldhash::fast::RandomState;
use quire_document::{Array, Doc, Value};
use quire_error::Result;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Inputs of no more bytes make a short loop: it needs no arena of its own and remembers nothing.
const SHORT_BYTES: usize = 1024;

/// Bytes that a body counts as if it read all of them.
const LARGE_BYTES: usize = 1024 * 1024;

/// Walking up to this number of elements is faster than a look-up.
const NEAR: usize = 64;

/// Elements from one noted beginning to the next.
const STRIDE: usize = 16;

/// What noting a name costs, in units of walking past it.
const NAME_COST: usize = 8;

/// The rounds of a loop: each has an arena whose content is dropped before the next.
#[derive(Debug)]
pub(crate) struct Rounds<'a> {
    cx: EvalContext<'a>,
    long: Option<(Bump, LoopCache<'a>)>,
    count: u32,
    /// What a round may have to walk over, as units of work.
    units: u32,
}

impl<'a> Rounds<'a> {
    /// A loop over `input` that evaluates `body` for each element.
    pub(crate) fn over(input: Array<'a>, body: &'a Expression, cx: &EvalContext<'a>) -> Self {
        let long = input.as_bytes().len() > SHORT_BYTES;
        let long = long.then(|| (Bump::new(), LoopCache::new(input, body, *cx)));
        let walked = cx.kept().map(bytes_of).fold(input.as_bytes().len(), usize::saturating_add);
        // A body takes a part of a small input; of a large one it may read all several times.
        let read = if walked > LARGE_BYTES { walked } else { walked / 16 };
        Rounds { cx: *cx, long, count: 0, units: units(read) }
    }

    /// The context of the next round. Its results must be copied before the round after it.
    pub(crate) fn next(&mut self) -> Result<EvalContext<'_>> {
        const KEPT_BYTES: usize = 64 * 1024;
        self.cx.shared.work(self.units)?;
        self.count = self.count.wrapping_add(1);
        if self.count.is_multiple_of(1024) {
            self.cx.check_limits()?;
        }
        let Some((arena, loop_cache)) = &mut self.long else { return Ok(self.cx) };
        if arena.allocated_bytes() > KEPT_BYTES {
            *arena = Bump::new();
        } else {
            arena.reset();
        }
        Ok(self.cx.with_arena(arena).with_loop_cache(loop_cache))
    }
}

/// What a loop remembers of large documents and arrays.
///
/// They are known by the address of their bytes, and only those that lie in something that the
/// loop borrows as long as it remembers: nothing else can come to lie there meanwhile.
#[derive(Debug)]
pub(crate) struct LoopCache<'a> {
    input: Array<'a>,
    /// What is evaluated for each element: its constants are kept.
    body: &'a Expression,
    /// The context around the loop: its document and variables, and the loops around it.
    cx: EvalContext<'a>,
    known: RefCell<HashMap<usize, Known, RandomState>>,
}

impl<'a> LoopCache<'a> {
    fn new(input: Array<'a>, body: &'a Expression, cx: EvalContext<'a>) -> Self {
        LoopCache { input, body, cx, known: RefCell::default() }
    }

    /// The outermost loop that `bytes` outlive: it can remember them longest.
    fn of(&self, bytes: &[u8]) -> Option<&LoopCache<'a>> {
        let outer = self.cx.loop_cache.and_then(|outer| outer.of(bytes));
        outer.or_else(|| self.is_outlived_by(bytes).then_some(self))
    }

    fn is_outlived_by(&self, bytes: &[u8]) -> bool {
        let mut kept = self.cx.kept().chain([Value::Array(self.input)]);
        kept.any(|kept| holds(kept, bytes)) || holds_constant(self.body, bytes)
    }

    /// Works with what is known of a document, or of an array seen as one.
    fn with_known<T>(&self, doc: Doc<'_>, work: impl FnOnce(&mut Known, &RandomState) -> T) -> T {
        let mut known = self.known.borrow_mut();
        let state = known.hasher().clone();
        work(known.entry(doc.as_bytes().as_ptr().addr()).or_default(), &state)
    }
}

/// True if `bytes` lie in a value.
fn holds(value: Value<'_>, bytes: &[u8]) -> bool {
    let all = match value {
        Value::Document(doc) => doc.as_bytes(),
        Value::Array(array) => array.as_bytes(),
        _ => return false,
    };
    all.as_ptr_range().contains(&bytes.as_ptr())
}

/// True if they lie in a constant of an expression.
fn holds_constant(expression: &Expression, bytes: &[u8]) -> bool {
    let mut found = expression.as_constant().is_some_and(|constant| holds(constant, bytes));
    expression.children(&mut |child| found = found || holds_constant(child, bytes));
    found
}

/// What is known of one document or array.
#[derive(Debug, Default)]
struct Known {
    /// Bytes that have been walked to reach elements by their places.
    walked: usize,
    /// The same, by their names.
    searched: usize,
    places: Option<Places>,
    names: Option<Names>,
}

impl Known {
    /// Where to begin a walk to element `index`, and how many elements to skip from there.
    fn way_to(&mut self, index: usize, doc: Doc<'_>) -> (usize, usize) {
        if let Some(places) = self.places(doc) {
            return places.way_to(index, doc);
        }
        let mut walk = doc.iter();
        walk.by_ref().take(index).for_each(drop);
        let consumed = walk.consumed(doc);
        self.walked += consumed;
        (consumed, 0)
    }

    fn count(&mut self, doc: Doc<'_>) -> usize {
        if let Some(places) = self.places(doc) {
            return places.count;
        }
        self.walked += doc.len();
        doc.count()
    }

    /// The places, as soon as walking has cost as much as noting them.
    fn places(&mut self, doc: Doc<'_>) -> Option<&Places> {
        if self.places.is_none() && self.walked >= doc.len() {
            self.places = Some(Places::of(doc));
        }
        self.places.as_ref()
    }

    fn field<'a>(&mut self, name: &str, doc: Doc<'a>, state: &RandomState) -> Option<Value<'a>> {
        if self.names.is_none() && self.searched >= doc.len() * NAME_COST {
            self.names = Some(Names::of(doc, state));
        }
        if let Some(names) = &self.names {
            return names.field(name, doc, state);
        }
        let mut walk = doc.iter();
        let found = walk.find(|field| field.key_bytes() == name.as_bytes());
        self.searched += walk.consumed(doc);
        found.map(|field| field.value())
    }
}

/// Where some of the elements begin, as bytes of elements before them.
#[derive(Debug)]
struct Places {
    offsets: Box<[u32]>,
    count: usize,
}

impl Places {
    fn of(doc: Doc<'_>) -> Self {
        let (mut offsets, mut count) = (Vec::new(), 0);
        let mut walk = doc.iter();
        loop {
            let offset = walk.consumed(doc) as u32;
            if walk.next().is_none() {
                break;
            }
            if count % STRIDE == 0 {
                offsets.push(offset);
            }
            count += 1;
        }
        Places { offsets: offsets.into(), count }
    }

    fn way_to(&self, index: usize, doc: Doc<'_>) -> (usize, usize) {
        match self.offsets.get(index / STRIDE) {
            Some(offset) => (*offset as usize, index % STRIDE),
            None => (doc.len(), 0),
        }
    }
}

/// The hash of each field's name above the bytes of elements before the field, in order.
#[derive(Debug)]
struct Names(Box<[u64]>);

impl Names {
    fn of(doc: Doc<'_>, state: &RandomState) -> Self {
        let (mut names, mut offset, mut walk) = (Vec::new(), 0, doc.iter());
        while let Some(field) = walk.next() {
            names.push(Names::bucket(field.key_bytes(), state) | offset);
            offset = walk.consumed(doc) as u64;
        }
        names.sort_unstable();
        Names(names.into())
    }

    fn bucket(name: &[u8], state: &RandomState) -> u64 {
        state.hash_one(name) << 32
    }

    /// The first field of that name: the lowest offset of those with its hash.
    fn field<'a>(&self, name: &str, doc: Doc<'a>, state: &RandomState) -> Option<Value<'a>> {
        let bucket = Names::bucket(name.as_bytes(), state);
        let start = self.0.partition_point(|known| *known < bucket);
        let same = self.0.iter().skip(start).take_while(|known| **known >> 32 == bucket >> 32);
        let mut fields = same.filter_map(|known| doc.iter_from(*known as u32 as usize).next());
        fields.find(|field| field.key_bytes() == name.as_bytes()).map(|field| field.value())
    }
}

impl<'a> EvalContext<'a> {
    /// Returns how many elements an array has. Walking over a large one counts as work.
    pub fn count(&self, array: Array<'a>) -> Result<usize> {
        let doc = array.as_doc();
        if let Some(loop_cache) = self.loop_cache_of(doc) {
            return Ok(loop_cache.with_known(doc, |known, _| known.count(doc)));
        }
        let count = array.count();
        if count > ELEMENTS_AT_ONCE {
            self.shared.work(u32::try_from(count).unwrap_or(u32::MAX))?;
        }
        Ok(count)
    }

    /// The element at `index`.
    pub fn element(&self, array: Array<'a>, index: usize) -> Option<Value<'a>> {
        self.elements_from(array, index).next()
    }

    /// The last element.
    pub fn last_element(&self, array: Array<'a>) -> Option<Value<'a>> {
        match self.loop_cache_of(array.as_doc()) {
            Some(loop_cache) => {
                let doc = array.as_doc();
                let count = loop_cache.with_known(doc, |known, _| known.count(doc));
                count.checked_sub(1).and_then(|at| self.element(array, at))
            }
            None => array.iter().last(),
        }
    }

    /// The elements from `index` on.
    pub fn elements_from(
        &self,
        array: Array<'a>,
        index: usize,
    ) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let doc = array.as_doc();
        let loop_cache = if index < NEAR { None } else { self.loop_cache_of(doc) };
        let (offset, skipped) = match loop_cache {
            Some(loop_cache) => loop_cache.with_known(doc, |known, _| known.way_to(index, doc)),
            None => (0, index),
        };
        doc.iter_from(offset).skip(skipped).map(|element| element.value())
    }

    /// The field of that name.
    #[inline]
    pub fn field(&self, doc: Doc<'a>, name: &str) -> Option<Value<'a>> {
        if self.loop_cache.is_none() { doc.get(name) } else { self.field_in_loop(doc, name) }
    }

    fn field_in_loop(&self, doc: Doc<'a>, name: &str) -> Option<Value<'a>> {
        let mut walk = doc.iter();
        for field in walk.by_ref().take(NEAR) {
            if field.key_bytes() == name.as_bytes() {
                return Some(field.value());
            }
        }
        let next = walk.next()?;
        match self.loop_cache_of(doc) {
            Some(loop_cache) => {
                loop_cache.with_known(doc, |known, state| known.field(name, doc, state))
            }
            None => {
                let mut rest = [next].into_iter().chain(walk);
                let found = rest.find(|field| field.key_bytes() == name.as_bytes());
                found.map(|field| field.value())
            }
        }
    }

    /// The loop that remembers a document, if it is worth remembering.
    #[inline]
    fn loop_cache_of(&self, doc: Doc<'_>) -> Option<&'a LoopCache<'a>> {
        const WORTH_BYTES: usize = 1024;
        let loop_cache = self.loop_cache.filter(|_| doc.len() >= WORTH_BYTES)?;
        loop_cache.of(doc.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{ParseContext, Shared, UserVariable};
    use quire_document::testing::Generator;
    use quire_document::{DocBuf, ValueBuf, array, doc, identical};

    fn same(left: Option<Value<'_>>, right: Option<Value<'_>>) -> bool {
        match (left, right) {
            (Some(left), Some(right)) => identical(left, right),
            (left, right) => left.is_none() && right.is_none(),
        }
    }

    /// A document with this number of fields, some of whose names come twice, and an array as long.
    fn large(random: &mut Generator, fields: u64) -> DocBuf {
        DocBuf::build(|writer| {
            let mut object = writer.document("object");
            for _ in 0..fields {
                object.append(&format!("name{}", random.below(fields)), &random.value());
            }
            object.finish();
            let mut list = writer.array("list");
            (0..fields).for_each(|_| {
                list.push(&random.value());
            });
        })
    }

    #[test]
    fn loops_find_what_walking_finds() {
        let mut random = Generator::new(5);
        let shared = Shared::default();
        for fields in [0, 1, 63, 64, 65, 200, 1500] {
            let root = large(&mut random, fields);
            let arena = Bump::new();
            let cx = EvalContext::new(&arena, root.as_doc(), &shared);
            let (object, list) = match (root.as_doc().get("object"), root.as_doc().get("list")) {
                (Some(Value::Document(object)), Some(Value::Array(list))) => (object, list),
                other => panic!("{other:?}"),
            };
            let input = quire_document::ArrayBuf::build(|list| {
                (0..400).for_each(|number| {
                    list.push(number);
                });
            });
            let body = Expression::constant(1);
            let mut rounds = Rounds::over(input.as_array(), &body, &cx);
            for _ in 0..400 {
                let inner = rounds.next().unwrap();
                let name = format!("name{}", random.below(fields + 3));
                assert!(same(inner.field(object, &name), object.get(&name)), "{name} of {fields}");
                let index = random.below(fields + 40) as usize;
                assert!(same(inner.element(list, index), list.get(index)), "{index} of {fields}");
                let rest = inner.elements_from(list, index).count();
                assert_eq!(rest, list.count().saturating_sub(index));
                assert_eq!(inner.count(list).unwrap(), list.count());
                assert!(same(inner.last_element(list), list.iter().last()));
            }
        }
    }

    /// Reaching elements took a walk through half the array, each time.
    #[test]
    fn what_is_read_again_and_again_is_no_longer_walked() {
        let root = large(&mut Generator::new(6), 3000);
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        let input = root.as_doc().get("list").and_then(|list| list.as_array()).unwrap();
        let object = root.as_doc().get("object").and_then(|object| object.as_document()).unwrap();
        let body = Expression::constant(1);
        let mut rounds = Rounds::over(input, &body, &cx);
        for _ in 0..100 {
            let inner = rounds.next().unwrap();
            inner.element(input, 2990);
            inner.field(object, "not there");
        }
        let (_, loop_cache) = rounds.long.as_ref().unwrap();
        loop_cache.with_known(input.as_doc(), |known, _| {
            assert!(known.walked < 2 * input.as_bytes().len(), "{}", known.walked);
            assert_eq!(known.way_to(2990, input.as_doc()).1, 2990 % STRIDE);
        });
        loop_cache.with_known(object, |known, _| {
            assert!(known.searched <= (NAME_COST + 1) * object.len(), "{}", known.searched);
        });
    }

    #[test]
    fn constants_of_the_body_are_remembered_too() {
        let constant = large(&mut Generator::new(7), 100);
        let list = constant.as_doc().get("list").and_then(|list| list.as_array()).unwrap();
        let body = Expression::constant(Value::Array(list));
        let Some(Value::Array(kept)) = body.as_constant() else { panic!("{body:?}") };
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, Doc::empty(), &shared);
        let loop_cache = LoopCache::new(Array::empty(), &body, cx);
        assert!(loop_cache.of(kept.as_bytes()).is_some());
        assert!(loop_cache.of(list.as_bytes()).is_none());
    }

    fn eval(expression: DocBuf, root: &DocBuf) -> ValueBuf {
        let list = root.as_doc().get("a").map_or(crate::context::Known::Missing, |list| {
            crate::context::Known::Value(ValueBuf::new(list))
        });
        let known = UserVariable { name: "known".into(), known: Some(list) };
        let mut context = ParseContext::default();
        context.variables = vec![known].into();
        let expression = Expression::parse(Value::from(&expression), &context).unwrap();
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        expression.eval(&cx).unwrap().map(ValueBuf::new).unwrap()
    }

    /// What one round leaves in the arena may lie where the next one's array comes to lie.
    #[test]
    fn arrays_of_different_rounds_are_not_confused() {
        let inner = doc! { "$map": { "input": { "$range": [0, 300] }, "as": "j",
        "in": { "$arrayElemAt": ["$$v", { "$add": [100, "$$j"] }] } } };
        let body = doc! { "$let": {
            "vars": { "v": { "$range": [{ "$mod": ["$$i", 7] }, 1000, { "$add": [1, { "$mod": ["$$i", 3] }] }] } },
            "in": { "$sum": [&inner] }
        } };
        let outer = doc! { "$map": { "input": { "$range": [0, 300] }, "as": "i", "in": &body } };
        let found = eval(outer, &doc! {});
        let Value::Array(found) = found.as_value() else { panic!("{found:?}") };
        for (i, sum) in (0i64..).zip(found.iter()) {
            let list: Vec<i64> = (i % 7..1000).step_by(1 + (i % 3) as usize).collect();
            let wanted: i64 = list.iter().skip(100).take(300).sum();
            assert_eq!(sum.as_number().and_then(|sum| sum.exact_i64()), Some(wanted), "{i}");
        }
    }

    #[test]
    fn loops_read_arrays_of_the_document_and_of_variables_alike() {
        let root = DocBuf::build(|writer| {
            let mut list = writer.array("a");
            (0..2000).for_each(|number| {
                list.push(number * 2);
            });
        });
        let over = |list: &str| {
            doc! { "$map": { "input": { "$range": [0, 2000] }, "as": "j", "in": [
                { "$arrayElemAt": [list, "$$j"] },
                { "$arrayElemAt": [list, { "$subtract": [-1, "$$j"] }] },
                { "$slice": [list, "$$j", 1] },
                { "$size": list },
                { "$last": list },
                { "$indexOfArray": [list, { "$multiply": ["$$j", 2] }, "$$j"] }
            ] } }
        };
        let wanted = ValueBuf::new(&quire_document::ArrayBuf::build(|rows| {
            for j in 0..2000 {
                rows.push(&array![2 * j, 2 * (1999 - j), [2 * j], 2000, 3998, j]);
            }
        }));
        let bound = doc! { "$let": { "vars": { "v": "$a" }, "in": &over("$$v") } };
        let made = doc! { "$concatArrays": ["$a", []] };
        let made = doc! { "$let": { "vars": { "v": &made }, "in": &over("$$v") } };
        // A variable of the command whose value is known is a constant.
        for expression in [over("$a"), over("$$ROOT.a"), bound, made, over("$$known")] {
            let found = eval(expression, &root);
            assert!(identical(found.as_value(), wanted.as_value()));
        }
    }
}
