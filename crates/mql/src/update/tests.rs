//! Tests of updates by operators: the new document, or the error.

use super::{Update, UpdateSpec};
use crate::context::{EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::literal::{parse, parse_doc, print};
use quire_document::{Doc, DocBuf, ObjectId, ValueBuf};
use quire_error::{Error, Result};

struct Case {
    update: ValueBuf,
    filters: Vec<DocBuf>,
    position: Option<u32>,
}

fn case(update: &str) -> Case {
    Case { update: parse(update).unwrap(), filters: Vec::new(), position: None }
}

impl Case {
    fn filters(mut self, filters: &[&str]) -> Self {
        self.filters = filters.iter().map(|filter| parse_doc(filter).unwrap()).collect();
        self
    }

    fn position(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }

    fn compile(&self) -> Result<Update> {
        let filters: Vec<Doc<'_>> = self.filters.iter().map(DocBuf::as_doc).collect();
        let update = self.update.as_value();
        let spec = UpdateSpec { update, array_filters: &filters, multi: false };
        Update::parse(spec, &ParseContext::default())
    }

    fn try_apply(&self, doc: &str) -> Result<(String, bool)> {
        let doc = parse_doc(doc).unwrap();
        let (arena, shared) = (Bump::new(), Shared::new(1000));
        let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
        let mut out = Vec::new();
        let outcome = self.compile()?.apply(doc.as_doc(), self.position, &cx, &mut out)?;
        Ok((print(Doc::from_valid_bytes(&out)), outcome.changed))
    }

    /// Applies the update to `doc`, and expects `result` and a modification.
    #[track_caller]
    fn gives(&self, doc: &str, result: &str) {
        let expected = print(parse_doc(result).unwrap().as_doc());
        assert_eq!(self.try_apply(doc).unwrap(), (expected, true));
    }

    #[track_caller]
    fn keeps(&self, doc: &str) {
        let expected = print(parse_doc(doc).unwrap().as_doc());
        assert_eq!(self.try_apply(doc).unwrap(), (expected, false));
    }

    #[track_caller]
    fn fails(&self, doc: &str, code: i32, message: &str) {
        check(self.try_apply(doc).unwrap_err(), code, message);
    }

    fn upsert(&self, filter: &str) -> Result<String> {
        let filter = parse_doc(filter).unwrap();
        let (arena, shared) = (Bump::new(), Shared::new(1000));
        let cx = EvalContext::new(&arena, Doc::empty(), &shared);
        let doc = self.compile()?.upsert_document(filter.as_doc(), &cx, || ObjectId([7; 12]))?;
        Ok(print(doc.as_doc()))
    }

    #[track_caller]
    fn upserts(&self, filter: &str, result: &str) {
        let expected = print(parse_doc(result).unwrap().as_doc());
        assert_eq!(self.upsert(filter).unwrap(), expected);
    }
}

#[track_caller]
fn check(error: Error, code: i32, message: &str) {
    assert_eq!((error.code().number(), error.message()), (code, message));
}

#[test]
fn set_replaces_in_place_and_appends_in_order() {
    case("{$set: {b: {x: 1}, z: 9}}")
        .gives("{_id: 1, a: 1, b: 2, c: 3}", "{_id: 1, a: 1, b: {x: 1}, c: 3, z: 9}");
    case(r#"{$set: {z: 1, a: 2, m: 3, B: 4, "10": 5, "9": 6, "o.z": 1, "o.a": 2}}"#)
        .gives("{_id: 1}", r#"{_id: 1, "9": 6, "10": 5, B: 4, a: 2, m: 3, o: {a: 2, z: 1}, z: 1}"#);
    case("{$inc: {y: 1}, $set: {x: 1, q: 2}, $push: {p: 1}}")
        .gives("{z: 1}", "{z: 1, p: [1], q: 2, x: 1, y: 1}");
    case(r#"{$set: {"o.p.q": 1, "n.m": 2}}"#).gives("{o: {}}", "{o: {p: {q: 1}}, n: {m: 2}}");
}

#[test]
fn set_of_the_same_bytes_is_no_change() {
    case("{$set: {a: 1}}").keeps("{a: 1}");
    case("{$set: {a: 1.0}}").gives("{a: 1}", "{a: 1.0}");
    case("{$set: {n: NaN}}").keeps("{n: NaN}");
    case("{$set: {o: {y: 2, x: 1}}}").gives("{o: {x: 1, y: 2}}", "{o: {y: 2, x: 1}}");
    case("{$set: {}}").keeps("{a: 1}");
    case("{$setOnInsert: {a: 5}}").keeps("{a: 1}");
}

#[test]
fn arrays_are_padded_with_null() {
    case(r#"{$set: {"l.4": 5}}"#).gives("{l: [1]}", "{l: [1, null, null, null, 5]}");
    case(r#"{$set: {"l.1": 2, "l.6.x": 7}}"#)
        .gives("{l: [1, null, null, null, 5]}", "{l: [1, 2, null, null, 5, null, {x: 7}]}");
    case(r#"{$set: {"l.1500008": 1}}"#).fails(
        "{l: [1, 2, 3, 4, 5, 6, 7]}",
        34,
        "can't backfill more than 1500000 elements",
    );
    case(r#"{$set: {"m.1.0": "x", "m.0.3": "y"}}"#)
        .gives("{m: [[1, 2], [3, 4]]}", r#"{m: [[1, 2, null, "y"], ["x", 4]]}"#);
    case(r#"{$unset: {"l.9": 1}}"#).keeps("{l: [1]}");
}

#[test]
fn unset() {
    case(r#"{$unset: {a: "", "o.x": 0, nope: 1}}"#)
        .gives("{a: 1, o: {x: 1, y: 2}, z: 3}", "{o: {y: 2}, z: 3}");
    case(r#"{$unset: {"l.1": 1, "d.0.x": 1}}"#)
        .gives("{l: [1, 2, 3], d: [{x: 1}, {x: 2}]}", "{l: [1, null, 3], d: [{}, {x: 2}]}");
    case(r#"{$unset: {"a.b": 1}}"#).keeps("{a: 5}");
}

#[test]
fn dead_ends() {
    case(r#"{$set: {"a.b": 1}}"#).fails("{a: 5}", 28, "Cannot create field 'b' in element {a: 5}");
    case(r#"{$inc: {"s.b.c": 1}}"#).fails(
        r#"{s: "x"}"#,
        28,
        "Cannot create field 'b' in element {s: \"x\"}",
    );
    case(r#"{$pull: {"a.b": 1}}"#).fails(
        "{a: 5}",
        28,
        "Cannot use the part (b) of (a.b) to traverse the element ({a: 5})",
    );
    case(r#"{$set: {"l.x": 2}}"#).fails(
        "{l: [{x: 1}]}",
        28,
        "Cannot create field 'x' in element {l: [ { x: 1 } ]}",
    );
    case(r#"{$set: {"$a": 1}}"#).fails("{a: 1}", 52, "The dollar ($) prefixed field '$a' in '$a' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.");
}

#[test]
fn conflicts() {
    case("{$set: {a: 2}, $inc: {a: 1}}").fails(
        "{}",
        40,
        "Updating the path 'a' would create a conflict at 'a'",
    );
    case(r#"{$set: {a: 1, "a.b": 2}}"#).fails(
        "{}",
        40,
        "Updating the path 'a.b' would create a conflict at 'a'",
    );
    case(r#"{$set: {"l.$": 5, "l.1": 6}}"#).position(1).fails(
        "{l: [1, 2]}",
        40,
        "Update created a conflict at 'l.1'",
    );
    case(r#"{$set: {"l.$[]": 5, "l.0": 6}}"#).fails(
        "{l: [1, 2]}",
        40,
        "Updating the path 'l.0' would create a conflict at 'l'",
    );
}

#[test]
fn inc_and_mul() {
    case("{$inc: {i: 1, l: 1, d: 1, m: 1}}").gives(
        r#"{i: 2147483647, l: NumberLong("1"), d: 1.5, m: NumberDecimal("1.10")}"#,
        r#"{i: NumberLong("2147483648"), l: NumberLong("2"), d: 2.5, m: NumberDecimal("2.10")}"#,
    );
    case(r#"{$inc: {d: NumberDecimal("0.1")}}"#)
        .gives("{d: 2.5}", r#"{d: NumberDecimal("2.60000000000000")}"#);
    case("{$inc: {a: 0}}").keeps("{a: 5}");
    case("{$inc: {n: 0}}").gives("{}", "{n: 0}");
    case(r#"{$mul: {a: 5, b: NumberLong("5"), c: 1.5, d: NumberDecimal("2.50")}}"#)
        .gives("{}", r#"{a: 0, b: NumberLong("0"), c: 0.0, d: NumberDecimal("0.00")}"#);
    case("{$inc: {a: 1}}").fails(
        r#"{_id: 1, a: NumberLong("9223372036854775807")}"#,
        2,
        "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}",
    );
    case("{$mul: {s: 1}}").fails(r#"{_id: {k: "x"}, s: "5"}"#, 14, "Cannot apply $mul to a value of non-numeric type. {_id: { k: \"x\" }} has the field 's' of non-numeric type string");
}

#[test]
fn push_with_modifiers() {
    case("{$push: {l: [3, 4]}}").gives("{l: [1]}", "{l: [1, [3, 4]]}");
    case(r#"{$push: {l: {$each: ["b", "c"], $position: 2}}}"#)
        .gives("{l: [1, 2, 3]}", r#"{l: [1, 2, "b", "c", 3]}"#);
    case(r#"{$push: {l: {$each: ["d"], $position: -1}}}"#)
        .gives("{l: [1, 2]}", r#"{l: [1, "d", 2]}"#);
    case("{$push: {l: {$each: [4, 5], $slice: -4}}}").gives("{l: [1, 2, 3]}", "{l: [2, 3, 4, 5]}");
    case("{$push: {l: {$each: [], $sort: 1}}}").gives("{l: [1, 2]}", "{l: [1, 2]}");
    case("{$push: {l: {$each: [], $slice: 5}}}").keeps("{l: [1, 2]}");
    case(r#"{$push: {d: {$each: [], $sort: {"o.x": 1}}}}"#)
        .gives("{d: [{o: {x: 2}}, {o: {x: 1}}, {}, 5]}", "{d: [{}, 5, {o: {x: 1}}, {o: {x: 2}}]}");
    case("{$push: {m: {$each: []}}}").gives("{}", "{m: []}");
    case("{$push: {a: 1}}").fails(
        "{_id: 1, a: 5}",
        2,
        "The field 'a' must be an array but is of type int in document {_id: 1}",
    );
}

#[test]
fn sets_pops_and_pulls() {
    case("{$addToSet: {s: {$each: [2, 3, 3, 4, 3.0]}}}").gives("{s: [1, 2]}", "{s: [1, 2, 3, 4]}");
    case("{$addToSet: {s: 1.0}}").keeps("{s: [1]}");
    case("{$pop: {l: -1}}").gives("{l: [1, 2, 3]}", "{l: [2, 3]}");
    case("{$pop: {l: 1}}").keeps("{l: []}");
    case("{$pull: {l: 1}}")
        .gives(r#"{l: [1, 2, 1.0, 3, NumberLong("1"), "1"]}"#, r#"{l: [2, 3, "1"]}"#);
    case("{$pull: {l: {$eq: 1}}}").gives("{l: [[2, 1], 1, 2, [[1, 2]]]}", "{l: [2, [[1, 2]]]}");
    case("{$pull: {l: {a: null}}}")
        .gives("{l: [{a: null}, {b: 1}, {a: 1}, 5, null]}", "{l: [{a: 1}, 5, null]}");
    case("{$pull: {l: {}}}").gives("{l: [{}, {a: 1}, 5, [], null]}", "{l: [5, [], null]}");
    case("{$pullAll: {l: [1.0, {a: 1, b: 2}, [1], null]}}").gives(
        r#"{l: [1, 2, 3, 1, "x", {a: 1, b: 2}, {b: 2, a: 1}, [1], null]}"#,
        r#"{l: [2, 3, "x", {b: 2, a: 1}]}"#,
    );
    case("{$pull: {l: {$expr: {$eq: [1, 1]}}}}").fails(
        "{l: [1]}",
        224,
        "$expr is not allowed in this context",
    );
}

#[test]
fn renames() {
    case(r#"{$rename: {a: "z"}}"#).gives("{_id: 1, a: 1, b: 2}", "{_id: 1, b: 2, z: 1}");
    case(r#"{$rename: {a: "b"}}"#).gives("{a: 1, b: 2, c: 3}", "{b: 1, c: 3}");
    case(r#"{$rename: {a: "b"}}"#).keeps("{b: 2}");
    case(r#"{$rename: {"o.x": "p.q.r"}}"#)
        .gives("{o: {x: 1, y: 2}, p: {}}", "{o: {y: 2}, p: {q: {r: 1}}}");
    case(r#"{$rename: {x: "y", y: "x"}}"#).fails(
        "{}",
        40,
        "Updating the path 'y' would create a conflict at 'y'",
    );
    case(r#"{$rename: {"l.0.x": "y"}}"#).fails("{_id: 1, l: [{x: 1}]}", 2, "The source field cannot be an array element, 'l.0.x' in doc with _id: 1 has an array field called 'l'");
    case(r#"{$rename: {a: "_id"}}"#).fails(
        "{_id: 1, a: 1}",
        66,
        "Performing an update on the path '_id' would modify the immutable field '_id'",
    );
}

#[test]
fn array_filters_and_positions() {
    case(r#"{$set: {"l.$[big]": 0}}"#)
        .filters(&["{big: {$gt: 4}}"])
        .gives("{l: [1, 5, 9]}", "{l: [1, 0, 0]}");
    case(r#"{$inc: {"l.$[e].n": 100}}"#).filters(&[r#"{"e.k": "a"}"#]).gives(
        r#"{l: [{k: "a", n: 1}, {k: "b", n: 2}, 7]}"#,
        r#"{l: [{k: "a", n: 101}, {k: "b", n: 2}, 7]}"#,
    );
    case(r#"{$mul: {"m.$[].$[e]": 10}}"#)
        .filters(&["{e: {$gte: 2}}"])
        .gives("{m: [[1, 2], [3, 4]]}", "{m: [[1, 20], [30, 40]]}");
    case(r#"{$set: {"l.$[e]": 0}}"#).filters(&["{e: 2}"]).gives("{l: [2, [2]]}", "{l: [0, 0]}");
    case(r#"{$set: {"l.$": 0}}"#).position(1).gives("{l: [5, 15]}", "{l: [5, 0]}");
    case(r#"{$set: {"zip.$": 0}}"#)
        .position(1)
        .gives("{l: [1, 2]}", r#"{l: [1, 2], zip: {"1": 0}}"#);
    case(r#"{$set: {"l.$": 0}}"#).fails(
        "{l: [1]}",
        2,
        "The positional operator did not find the match needed from the query.",
    );
    case(r#"{$set: {"a.$[]": 0}}"#).fails(
        "{a: 5}",
        2,
        "Cannot apply array updates to non-array element a: 5",
    );
    case("{$set: {a: 1}}").filters(&["{e: 1}"]).fails(
        "{}",
        9,
        "The array filter for identifier 'e' was not used in the update { $set: { a: 1 } }",
    );
}

#[test]
fn ids_are_immutable() {
    let message = "Performing an update on the path '_id' would modify the immutable field '_id'";
    case("{$set: {_id: 2}}").fails("{_id: 1}", 66, message);
    case("{$set: {_id: 1.0}}").fails("{_id: 1}", 66, message);
    case("{$set: {_id: 1, a: 2}}").gives("{_id: 1, a: 1}", "{_id: 1, a: 2}");
    case(r#"{$set: {"_id.z": 5}}"#).fails("{_id: {x: 1, y: 2}}", 66, "Updating the path '_id' to _id: { x: 1, y: 2, z: 5 } would modify the immutable field '_id'");
    case("{c: 4, _id: 1.0}").gives("{_id: 1, a: 1}", "{_id: 1.0, c: 4}");
    case("{_id: 2}").fails("{_id: 1}", 66, "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2");
}

#[test]
fn replacements() {
    case("{b: 2}").gives("{_id: 1, a: 1}", "{_id: 1, b: 2}");
    case("{b: 2}").gives("{_id: 1, b: 2}", "{_id: 1, b: 2}");
    case("{_id: 1, b: 2}").keeps("{_id: 1, b: 2}");
    // Setting the time counts as a change, even if the document had the empty timestamp.
    case("{_id: 1, b: Timestamp(0, 0)}")
        .gives("{_id: 1, b: Timestamp(0, 0)}", "{_id: 1, b: Timestamp(1, 1)}");
    case("{_id: Timestamp(0, 0), b: 2}").keeps("{_id: Timestamp(0, 0), b: 2}");
    case("{b: 2, $set: {a: 1}}").fails("{}", 52, "The dollar ($) prefixed field '$set' in '$set' is not allowed in the context of an update's replacement document. Consider using an aggregation pipeline with $replaceWith.");
}

#[test]
fn upserts() {
    case("{$set: {c: 3}}").upserts("{_id: 1, b: 1, a: 2}", "{_id: 1, a: 2, b: 1, c: 3}");
    case("{$set: {y: 1}}").upserts("{_id: 1, x: {$gt: 5}, $and: [{z: 4}]}", "{_id: 1, z: 4, y: 1}");
    case(r#"{$setOnInsert: {b: 5, "o.x": 1}, $set: {a: 2}}"#)
        .upserts(r#"{_id: 2, "d.e": 1}"#, "{_id: 2, d: {e: 1}, a: 2, b: 5, o: {x: 1}}");
    case("{z: 1, _id: 6}").upserts("{_id: 6, q: 1}", "{_id: 6, z: 1}");
    case("{$set: {a: 1}}").upserts("{}", "{_id: ObjectId(\"070707070707070707070707\"), a: 1}");
    check(
        case("{$set: {_id: 2}}").upsert("{_id: 1}").unwrap_err(),
        66,
        "Performing an update on the path '_id' would modify the immutable field '_id'",
    );
    check(
        case("{$setOnInsert: {_id: [3, 2, 1]}}").upsert("{_id: [1, 2, 3]}").unwrap_err(),
        66,
        "Performing an update on the path '_id' would modify the immutable field '_id'",
    );
    check(
        case("{$set: {a: 1}}").upsert("{_id: [1]}").unwrap_err(),
        53,
        "The '_id' value cannot be of type array",
    );
    check(
        case("{_id: [1]}").upsert("{}").unwrap_err(),
        54,
        "After applying the update to the document, the (immutable) field '_id' was found to be an array or array descendant.",
    );
}

#[test]
fn pipelines() {
    case(r#"[{$set: {a: {$add: ["$b", 1]}}}, {$unset: "b"}]"#)
        .gives("{_id: 1, b: 2, c: 3}", "{_id: 1, c: 3, a: 3}");
    case(r#"[{$replaceWith: {b: 5}}]"#).gives("{_id: 1, a: 1}", "{_id: 1, b: 5}");
    case("[{$set: {a: 1}}]").keeps("{_id: 1, a: 1}");
    case("[]").keeps("{_id: 1, a: 1}");
    case("[{$match: {}}]").fails("{}", 72, "$match is not allowed to be used within an update");
    case("[{$fill: {output: {y: {value: 42}}}}]").gives("{x: 1, y: null}", "{x: 1, y: 42}");
    case(r#"[{$fill: {sortBy: {x: 1}, output: {y: {value: 1}, z: {method: "locf"}}}}]"#).fails(
        "{}",
        72,
        "$fill is not allowed to be used within an update",
    );
    case("[{$nope: {}}]").fails("{}", 40324, "Unrecognized pipeline stage name: '$nope'");
}

/// The paths that an update may change, for the maintenance of indexes.
#[test]
fn touched_paths() {
    let update = case(r#"{$set: {"a.b.$[].c": 1}, $rename: {d: "e.f"}}"#).compile().unwrap();
    for (path, touched) in [
        ("a", true),
        ("a.b", true),
        ("a.b.c", true),
        ("a.x", false),
        ("d", true),
        ("e", true),
        ("f", false),
    ] {
        assert_eq!(update.may_change(path), touched, "{path}");
    }
}

/// The paths that an operator removes by name.
#[test]
fn removed_paths() {
    let removing = r#"{$unset: {"a.b": 1, "l.0.x": 1, "m.$[].y": 1, "5.o": 1}, $rename: {d: "e"}, $set: {f: 1}}"#;
    let update = case(removing).compile().unwrap();
    for (path, removed) in [
        ("a", true),
        ("a.b", true),
        ("a.b.c", false),
        ("a.x", false),
        ("l.x", true),
        ("l.y", false),
        ("m.y", true),
        ("o", false),
        ("5.o", true),
        ("m.x", false),
        ("d", true),
        ("e", false),
        ("f", false),
    ] {
        assert_eq!(update.removes(path), removed, "{path}");
    }
}

#[test]
fn long_lists_keep_order_and_first_of_equals() {
    let add =
        "{$addToSet: {a: {$each: [9, 3, 12, 3.0, 11, 10, 9, 8, 7, 6, 5, 20, 1, {x: 1}, {x: 1}]}}}";
    case(add).gives("{a: [1, 12.0]}", "{a: [1, 12.0, 9, 3, 11, 10, 8, 7, 6, 5, 20, {x: 1}]}");
    case(add).gives("{}", "{a: [9, 3, 12, 11, 10, 8, 7, 6, 5, 20, 1, {x: 1}]}");
    case("{$pullAll: {a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10.0]}}")
        .gives("{a: [10, \"x\", 3, 11, 1]}", "{a: [\"x\", 11]}");
}

#[test]
fn an_upsert_refuses_paths_within_each_other() {
    let update = case("{$set: {z: 1}}");
    update.upserts(
        "{_id: 1, \"a.b\": 1, \"a-b\": 2, \"a.c\": 3}",
        "{_id: 1, \"a-b\": 2, a: {b: 1, c: 3}, z: 1}",
    );
    for filter in ["{a: {$eq: 1}, \"a.b\": 2}", "{\"a.b.c\": 1, \"a.b\": 2}", "{\"a.b\": 1, a: 2}"]
    {
        assert_eq!(update.upsert(filter).unwrap_err().code().number(), 54, "{filter}");
    }
}
