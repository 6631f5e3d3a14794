//! The cache of a loop (`$map`, `$filter`, `$reduce`) for documents and arrays that its iterations read
//! repeatedly.
//!
//! BSON must be read from its beginning to reach an element. A body that reads all elements of an
//! array by their indexes would take quadratic time. Therefore, once reading has cost as much as
//! reading all elements, the loop caches where elements begin.

use super::EvalContext;
use super::work::ELEMENTS_AT_ONCE;
use foldhash::fast::RandomState;
use quire_document::{Array, Doc, Element, Value};
use quire_error::Result;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;

/// Up to this number of elements, skipping them is faster than a look-up in the cache.
const SKIPPED_MAX: usize = 64;

/// The number of elements between two cached offsets.
const STRIDE: usize = 16;

/// The cost of caching a name, relative to skipping it.
const NAME_COST: usize = 8;

/// An expression whose constants outlive a loop.
pub(crate) trait Constants: fmt::Debug {
    /// Returns true if `test` holds for a constant of the expression.
    fn any_constant(&self, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool;
}

/// The cache of a loop for large documents and arrays.
///
/// The key of an entry is the address of the bytes. Only bytes within a value that the loop borrows
/// are cached, so that no other value can have the same address meanwhile.
#[derive(Debug)]
pub(crate) struct LoopCache<'a> {
    input: Array<'a>,
    /// The body of the loop, whose constants are borrowed.
    body: &'a dyn Constants,
    /// The context of the loop: its document, variables and enclosing loops.
    cx: EvalContext<'a>,
    entries: RefCell<HashMap<usize, CacheEntry, RandomState>>,
}

impl<'a> LoopCache<'a> {
    /// Returns the cache of a loop over `input` that evaluates `body` for each element.
    pub(crate) fn new(input: Array<'a>, body: &'a dyn Constants, cx: EvalContext<'a>) -> Self {
        LoopCache { input, body, cx, entries: RefCell::default() }
    }

    /// Returns the outermost loop that `bytes` outlive, because its cache lives longest.
    fn of(&self, bytes: &[u8]) -> Option<&LoopCache<'a>> {
        let outer = self.cx.loop_cache.and_then(|outer| outer.of(bytes));
        outer.or_else(|| self.is_outlived_by(bytes).then_some(self))
    }

    fn is_outlived_by(&self, bytes: &[u8]) -> bool {
        let mut kept = self.cx.kept().chain([Value::Array(self.input)]);
        kept.any(|kept| holds(kept, bytes))
            || self.body.any_constant(&mut |constant| holds(constant, bytes))
    }

    /// Calls `work` with the cache entry of a document, or of an array as a document.
    fn with_entry<T>(
        &self,
        doc: Doc<'_>,
        work: impl FnOnce(&mut CacheEntry, &RandomState) -> T,
    ) -> T {
        let mut known = self.entries.borrow_mut();
        let state = known.hasher().clone();
        work(known.entry(doc.as_bytes().as_ptr().addr()).or_default(), &state)
    }
}

/// Returns true if `bytes` are within a value.
fn holds(value: Value<'_>, bytes: &[u8]) -> bool {
    let all = match value {
        Value::Document(doc) => doc.as_bytes(),
        Value::Array(array) => array.as_bytes(),
        _ => return false,
    };
    all.as_ptr_range().contains(&bytes.as_ptr())
}

/// The cache entry of one document or array.
#[derive(Debug, Default)]
struct CacheEntry {
    /// The bytes read so far to reach elements by their indexes.
    walked: usize,
    /// The bytes read so far to reach fields by their names.
    searched: usize,
    places: Option<ElementIndex>,
    names: Option<NameIndex>,
}

impl CacheEntry {
    /// Returns the offset from which to read element `index`, and how many elements to skip from
    /// there.
    fn locate(&mut self, index: usize, doc: Doc<'_>) -> (usize, usize) {
        if let Some(places) = self.places(doc) {
            return places.locate(index, doc);
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

    /// Returns the element index, which is built once reading has cost as much as building it.
    fn places(&mut self, doc: Doc<'_>) -> Option<&ElementIndex> {
        if self.places.is_none() && self.walked >= doc.len() {
            self.places = Some(ElementIndex::of(doc));
        }
        self.places.as_ref()
    }

    fn field<'a>(&mut self, name: &str, doc: Doc<'a>, state: &RandomState) -> Option<Value<'a>> {
        if self.names.is_none() && self.searched >= doc.len() * NAME_COST {
            self.names = Some(NameIndex::of(doc, state));
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

/// The offsets of every `STRIDE`th element, in bytes of elements before it.
#[derive(Debug)]
struct ElementIndex {
    offsets: Box<[u32]>,
    count: usize,
}

impl ElementIndex {
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
        ElementIndex { offsets: offsets.into(), count }
    }

    fn locate(&self, index: usize, doc: Doc<'_>) -> (usize, usize) {
        match self.offsets.get(index / STRIDE) {
            Some(offset) => (*offset as usize, index % STRIDE),
            None => (doc.len(), 0),
        }
    }
}

/// For each field the hash of its name in the upper half, and its offset in the lower half; sorted.
#[derive(Debug)]
struct NameIndex(Box<[u64]>);

impl NameIndex {
    fn of(doc: Doc<'_>, state: &RandomState) -> Self {
        let (mut names, mut offset, mut walk) = (Vec::new(), 0, doc.iter());
        while let Some(field) = walk.next() {
            names.push(NameIndex::bucket(field.key_bytes(), state) | offset);
            offset = walk.consumed(doc) as u64;
        }
        names.sort_unstable();
        NameIndex(names.into())
    }

    fn bucket(name: &[u8], state: &RandomState) -> u64 {
        state.hash_one(name) << 32
    }

    /// Returns the first field with this name: of those with its hash, the one with the lowest
    /// offset.
    fn field<'a>(&self, name: &str, doc: Doc<'a>, state: &RandomState) -> Option<Value<'a>> {
        let bucket = NameIndex::bucket(name.as_bytes(), state);
        let start = self.0.partition_point(|known| *known < bucket);
        let same = self.0.iter().skip(start).take_while(|known| **known >> 32 == bucket >> 32);
        let mut fields = same.filter_map(|known| doc.iter_from(*known as u32 as usize).next());
        fields.find(|field| field.key_bytes() == name.as_bytes()).map(|field| field.value())
    }
}

impl<'a> EvalContext<'a> {
    /// Returns the number of elements of an array. Counting a large array counts as work.
    pub fn count(&self, array: Array<'a>) -> Result<usize> {
        let doc = array.as_doc();
        if let Some(loop_cache) = self.loop_cache_of(doc) {
            return Ok(loop_cache.with_entry(doc, |known, _| known.count(doc)));
        }
        let count = array.count();
        if count > ELEMENTS_AT_ONCE {
            self.shared.work(u32::try_from(count).unwrap_or(u32::MAX))?;
        }
        Ok(count)
    }

    /// Returns the element at `index`.
    pub fn element(&self, array: Array<'a>, index: usize) -> Option<Value<'a>> {
        self.elements_from(array, index).next().map(|element| element.value())
    }

    /// Returns the last element.
    pub fn last_element(&self, array: Array<'a>) -> Option<Value<'a>> {
        match self.loop_cache_of(array.as_doc()) {
            Some(loop_cache) => {
                let doc = array.as_doc();
                let count = loop_cache.with_entry(doc, |known, _| known.count(doc));
                count.checked_sub(1).and_then(|at| self.element(array, at))
            }
            None => array.iter().last(),
        }
    }

    /// Returns the elements from `index`, not decoded.
    pub fn elements_from(
        &self,
        array: Array<'a>,
        index: usize,
    ) -> impl Iterator<Item = Element<'a>> + use<'a> {
        let doc = array.as_doc();
        let loop_cache = if index < SKIPPED_MAX { None } else { self.loop_cache_of(doc) };
        let (offset, skipped) = match loop_cache {
            Some(loop_cache) => loop_cache.with_entry(doc, |known, _| known.locate(index, doc)),
            None => (0, index),
        };
        doc.iter_from(offset).skip(skipped)
    }

    /// Returns the value of the field with this name.
    #[inline]
    pub fn field(&self, doc: Doc<'a>, name: &str) -> Option<Value<'a>> {
        if self.loop_cache.is_none() { doc.get(name) } else { self.field_in_loop(doc, name) }
    }

    fn field_in_loop(&self, doc: Doc<'a>, name: &str) -> Option<Value<'a>> {
        let mut walk = doc.iter();
        for field in walk.by_ref().take(SKIPPED_MAX) {
            if field.key_bytes() == name.as_bytes() {
                return Some(field.value());
            }
        }
        let next = walk.next()?;
        match self.loop_cache_of(doc) {
            Some(loop_cache) => {
                loop_cache.with_entry(doc, |known, state| known.field(name, doc, state))
            }
            None => {
                let mut rest = [next].into_iter().chain(walk);
                let found = rest.find(|field| field.key_bytes() == name.as_bytes());
                found.map(|field| field.value())
            }
        }
    }

    /// Returns the loop whose cache a document belongs to, if the document is large enough.
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
    use crate::context::Shared;
    use crate::expression::Expression;
    use bumpalo::Bump;
    use quire_document::testing::Generator;
    use quire_document::{DocBuf, identical};

    fn same(left: Option<Value<'_>>, right: Option<Value<'_>>) -> bool {
        match (left, right) {
            (Some(left), Some(right)) => identical(left, right),
            (left, right) => left.is_none() && right.is_none(),
        }
    }

    /// Returns a document with this number of fields, some of them repeated, and an array of the
    /// same length.
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
    fn loops_find_the_same_elements_as_a_scan() {
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
            let loop_cache = LoopCache::new(input.as_array(), &body, cx);
            let inner = cx.with_loop_cache(&loop_cache);
            for _ in 0..400 {
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

    /// Each access to an element read half of the array on average.
    #[test]
    fn repeated_reads_use_the_cache() {
        let root = large(&mut Generator::new(6), 3000);
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, root.as_doc(), &shared);
        let input = root.as_doc().get("list").and_then(|list| list.as_array()).unwrap();
        let object = root.as_doc().get("object").and_then(|object| object.as_document()).unwrap();
        let body = Expression::constant(1);
        let loop_cache = LoopCache::new(input, &body, cx);
        let inner = cx.with_loop_cache(&loop_cache);
        for _ in 0..100 {
            inner.element(input, 2990);
            inner.field(object, "not there");
        }
        loop_cache.with_entry(input.as_doc(), |known, _| {
            assert!(known.walked < 2 * input.as_bytes().len(), "{}", known.walked);
            assert_eq!(known.locate(2990, input.as_doc()).1, 2990 % STRIDE);
        });
        loop_cache.with_entry(object, |known, _| {
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
}
