//! The iterations of a loop (`$map`, `$filter`, `$reduce`): the scratch arena of each, and the work
//! that it counts.

use super::Expression;
use crate::context::work::{LOOK_UNITS, units};
use crate::context::{Constants, EvalContext, LoopCache};
use bumpalo::Bump;
use quire_document::{Array, Value};
use quire_error::Result;

/// A loop over an input of at most this many bytes is short: it needs neither a scratch arena nor a
/// cache.
const SHORT_BYTES: usize = 1024;

/// Above this size the body counts as reading everything.
const LARGE_BYTES: usize = 1024 * 1024;

/// Returns true if a loop over `input` is long.
pub(super) fn is_long(input: Array<'_>) -> bool {
    input.as_bytes().len() > SHORT_BYTES
}

/// The iterations of a loop. Each has an arena that is cleared before the next.
#[derive(Debug)]
pub(crate) struct Iterations<'a> {
    cx: EvalContext<'a>,
    long: Option<(Bump, LoopCache<'a>)>,
    count: u32,
    /// The work of one iteration: what it may read.
    units: u32,
}

impl<'a> Iterations<'a> {
    /// Returns a loop over `input` that evaluates `body` for each element.
    pub(crate) fn over(input: Array<'a>, body: &'a Expression, cx: &EvalContext<'a>) -> Self {
        let long = is_long(input).then(|| (Bump::new(), LoopCache::new(input, body, *cx)));
        let walked = cx.kept_bytes().map(|bytes| bytes.saturating_add(input.as_bytes().len()));
        // A body reads a part of a small input, but may read everything in a large one several
        // times.
        let read = walked.map(|walked| if walked > LARGE_BYTES { walked } else { walked / 16 });
        Iterations { cx: *cx, long, count: 0, units: read.map_or(LOOK_UNITS, units) }
    }

    /// Returns the context of the next iteration. The caller must copy the results before the next
    /// call.
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

impl Constants for Expression {
    fn any_constant(&self, test: &mut dyn FnMut(Value<'_>) -> bool) -> bool {
        let mut found = self.as_constant().is_some_and(&mut *test);
        self.children(&mut |child| found = found || child.any_constant(test));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{ParseContext, Shared, UserVariable};
    use quire_document::{DocBuf, ValueBuf, array, doc, identical};

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

    /// An array of one iteration may have the address of an array of the previous one.
    #[test]
    fn arrays_of_different_iterations_are_not_confused() {
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
        // A variable of the command is a constant if its value is known.
        for expression in [over("$a"), over("$$ROOT.a"), bound, made, over("$$known")] {
            let found = eval(expression, &root);
            assert!(identical(found.as_value(), wanted.as_value()));
        }
    }
}
