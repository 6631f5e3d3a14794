//! From a test of one path to the intervals of index keys that can hold its matches.

use crate::interval::{Interval, Intervals};
use crate::predicate::{Comparison, Predicate, Test};
use crate::regex_prefix::{after, prefix};
use quire_document::{
    Array, Binary, CodeWithScope, DbPointer, Doc, ObjectId, Regex, Timestamp, Type, Value, compare,
};

/// How much the intervals say about a document whose keys lie in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tightness {
    /// It matches.
    Exact,
    /// The test must be repeated; the key is enough for that.
    InexactCovered,
    /// The test must be repeated on the document.
    InexactFetch,
}

/// The intervals of a test and how tight they are.
pub type Bounds = (Intervals, Tightness);

/// Facts about the index that change bounds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Field {
    /// The index has only this field and leaves out documents without it.
    pub sparse_single: bool,
}

/// The bounds of a predicate on one path: a leaf, a negated leaf, or `$elemMatch` on values.
/// `None` if no index can serve it.
pub fn bounds(predicate: &Predicate, field: Field) -> Option<Bounds> {
    match predicate {
        Predicate::Leaf(leaf) => leaf_bounds(&leaf.test, field),
        Predicate::Not(child) => not_bounds(child),
        Predicate::ElemMatchValue { inner, .. } => {
            let mut all: Option<Intervals> = None;
            for child in inner {
                if let Some((intervals, _)) = bounds(child, Field::default()) {
                    all = Some(all.map_or(intervals.clone(), |all| all.intersect(&intervals)));
                }
            }
            Some((all?, Tightness::InexactFetch))
        }
        _ => None,
    }
}

fn leaf_bounds(test: &Test, field: Field) -> Option<Bounds> {
    Some(match test {
        Test::Eq(value) => equality(value.as_value()),
        Test::Compare(comparison, value) => comparison_bounds(*comparison, value.as_value()),
        Test::In { values, regexes } => {
            let mut out = (Intervals::none(), Tightness::Exact);
            for value in values {
                out = join(out, equality(value.as_value()));
            }
            for regex in regexes {
                if let Value::Regex(regex) = regex.as_value() {
                    out = join(out, regex_bounds(regex.pattern, regex.options));
                }
            }
            out
        }
        Test::Regex { pattern, options } => regex_bounds(pattern, options),
        Test::Mod(..) => (numbers(), Tightness::InexactCovered),
        Test::Exists if field.sparse_single => (Intervals::all(), Tightness::Exact),
        Test::Exists => (Intervals::all(), Tightness::InexactFetch),
        Test::Type { number, numbers } => types(*number, numbers),
        Test::InternalExpr(comparison, value) => expr_bounds(*comparison, value.as_value()),
        Test::Size(_) | Test::Opaque { .. } => return None,
    })
}

fn join(a: Bounds, b: Bounds) -> Bounds {
    (a.0.union(b.0), a.1.max(b.1))
}

/// What a negation leaves over. Negated regular expressions, types and arrays have no bounds.
fn not_bounds(child: &Predicate) -> Option<Bounds> {
    let Predicate::Leaf(leaf) = child else { return None };
    match &leaf.test {
        Test::Exists => Some((Intervals::point(Value::Null), Tightness::InexactFetch)),
        Test::Eq(value) | Test::Compare(_, value)
            if !matches!(value.as_value(), Value::Array(_) | Value::Regex(_)) =>
        {
            let (intervals, _) = leaf_bounds(&leaf.test, Field::default())?;
            Some((intervals.complement(), Tightness::Exact))
        }
        Test::In { values, regexes } => {
            let plain = |value: Value<'_>| !matches!(value, Value::Array(_));
            if !regexes.is_empty() || !values.iter().all(|value| plain(value.as_value())) {
                return None;
            }
            let (intervals, _) = leaf_bounds(&leaf.test, Field::default())?;
            Some((intervals.complement(), Tightness::Exact))
        }
        _ => None,
    }
}

fn nulls() -> Intervals {
    Intervals::point(Value::Undefined).union(Intervals::point(Value::Null))
}

fn equality(value: Value<'_>) -> Bounds {
    match value {
        Value::Array(array) => {
            let first = array.get(0).unwrap_or(Value::Undefined);
            let points = Intervals::point(first).union(Intervals::point(value));
            (points, Tightness::InexactFetch)
        }
        Value::Null | Value::Undefined => (nulls(), Tightness::InexactFetch),
        _ => (Intervals::point(value), Tightness::Exact),
    }
}

fn comparison_bounds(comparison: Comparison, value: Value<'_>) -> Bounds {
    let exact = |intervals| (intervals, Tightness::Exact);
    match value {
        Value::Array(array) => (array_range(comparison, array), Tightness::InexactFetch),
        Value::Null | Value::Undefined => match comparison {
            Comparison::Lte | Comparison::Gte => (nulls(), Tightness::InexactFetch),
            Comparison::Lt | Comparison::Gt => exact(Intervals::none()),
        },
        Value::MinKey | Value::MaxKey => exact(any_type_range(comparison, value)),
        number if number.as_number().is_some_and(|number| number.is_nan()) => match comparison {
            Comparison::Lte | Comparison::Gte => exact(Intervals::point(value)),
            Comparison::Lt | Comparison::Gt => exact(Intervals::none()),
        },
        _ => exact(typed_range(comparison, value)),
    }
}

/// A comparison with an array also matches elements, so one end is the first element or open.
fn array_range(comparison: Comparison, array: Array<'_>) -> Intervals {
    let Some(first) = array.get(0) else { return Intervals::all() };
    let whole = Value::Array(array);
    let (smaller, larger) =
        if compare(first, whole, None).is_le() { (first, whole) } else { (whole, first) };
    Intervals::of(match comparison {
        Comparison::Gt | Comparison::Gte => Interval::new(smaller, true, Value::MaxKey, true),
        Comparison::Lt | Comparison::Lte => Interval::new(Value::MinKey, true, larger, true),
    })
}

fn any_type_range(comparison: Comparison, value: Value<'_>) -> Intervals {
    Intervals::of(match comparison {
        Comparison::Gt => Interval::new(value, false, Value::MaxKey, true),
        Comparison::Gte => Interval::new(value, true, Value::MaxKey, true),
        Comparison::Lt => Interval::new(Value::MinKey, true, value, false),
        Comparison::Lte => Interval::new(Value::MinKey, true, value, true),
    })
}

/// A comparison with a scalar or a document stays within the value's type.
fn typed_range(comparison: Comparison, value: Value<'_>) -> Intervals {
    let bracket = type_bracket(value.kind());
    let low = if value.is_number() { Value::Double(f64::NEG_INFINITY) } else { bracket.low };
    Intervals::of(match comparison {
        Comparison::Gt => Interval::new(value, false, bracket.high, bracket.high_inclusive),
        Comparison::Gte => Interval::new(value, true, bracket.high, bracket.high_inclusive),
        Comparison::Lt => Interval::new(low, true, value, false),
        Comparison::Lte => Interval::new(low, true, value, true),
    })
}

fn expr_bounds(comparison: Option<Comparison>, value: Value<'_>) -> Bounds {
    if value.is_nullish() {
        let intervals = match comparison {
            None => nulls(),
            Some(Comparison::Lt | Comparison::Lte) => {
                Intervals::of(Interval::new(Value::MinKey, true, Value::Null, true))
            }
            Some(Comparison::Gt | Comparison::Gte) => {
                Intervals::of(Interval::new(Value::Undefined, true, Value::MaxKey, true))
            }
        };
        return (intervals, Tightness::InexactFetch);
    }
    let intervals = match comparison {
        None => Intervals::point(value),
        Some(comparison) => any_type_range(comparison, value),
    };
    (intervals, Tightness::Exact)
}

fn regex_bounds(pattern: &str, options: &str) -> Bounds {
    let found = prefix(pattern, options);
    let itself = Intervals::point(Value::Regex(Regex { pattern, options }));
    let strings = match after(&found.text) {
        Some(end) if !found.text.is_empty() => {
            Intervals::of(Interval::new(found.text.as_str(), true, end.as_str(), false))
        }
        _ => bracket_of(Type::String),
    };
    let tightness = if found.exact { Tightness::Exact } else { Tightness::InexactCovered };
    (strings.union(itself), tightness)
}

fn numbers() -> Intervals {
    Intervals::of(Interval::new(f64::NAN, true, f64::INFINITY, true))
}

fn types(number: bool, codes: &[i32]) -> Bounds {
    if codes.contains(&Type::Array.number()) {
        return (Intervals::all(), Tightness::InexactFetch);
    }
    let mut out = (Intervals::none(), Tightness::Exact);
    if number {
        out.0 = numbers();
    }
    let kinds = crate::predicate_parse::ALL_TYPES;
    for kind in kinds.into_iter().filter(|kind| codes.contains(&kind.number())) {
        let tightness = match kind {
            Type::Null | Type::Undefined => Tightness::InexactFetch,
            Type::String | Type::Symbol => Tightness::InexactCovered,
            kind if kind.is_number() => Tightness::InexactCovered,
            _ => Tightness::Exact,
        };
        out = join(out, (bracket_of(kind), tightness));
    }
    out
}

fn bracket_of(kind: Type) -> Intervals {
    let bracket = type_bracket(kind);
    Intervals::of(Interval::new(bracket.low, true, bracket.high, bracket.high_inclusive))
}

/// The smallest value of a type, and the largest or the smallest of the next type.
struct Bracket {
    low: Value<'static>,
    high: Value<'static>,
    high_inclusive: bool,
}

fn type_bracket(kind: Type) -> Bracket {
    const ZERO_ID: ObjectId = ObjectId([0; 12]);
    let closed = |low, high| Bracket { low, high, high_inclusive: true };
    let open = |low, high| Bracket { low, high, high_inclusive: false };
    let pointer = Value::DbPointer(DbPointer { namespace: "", id: ZERO_ID });
    let scoped = Value::CodeWithScope(CodeWithScope { code: "", scope: Doc::empty() });
    match kind {
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal => {
            closed(Value::Double(f64::NAN), Value::Double(f64::INFINITY))
        }
        Type::String | Type::Symbol => open(Value::String(""), Value::Document(Doc::empty())),
        Type::Document => open(Value::Document(Doc::empty()), Value::Array(Array::empty())),
        Type::Array => {
            open(Value::Array(Array::empty()), Value::Binary(Binary { subtype: 0, bytes: &[] }))
        }
        Type::Binary => {
            open(Value::Binary(Binary { subtype: 0, bytes: &[] }), Value::ObjectId(ZERO_ID))
        }
        Type::ObjectId => closed(Value::ObjectId(ZERO_ID), Value::ObjectId(ObjectId([0xff; 12]))),
        Type::Bool => closed(Value::Bool(false), Value::Bool(true)),
        Type::Date => closed(Value::Date(i64::MIN), Value::Date(i64::MAX)),
        Type::Timestamp => closed(
            Value::Timestamp(Timestamp::from_u64(0)),
            Value::Timestamp(Timestamp::from_u64(u64::MAX)),
        ),
        Type::Regex => open(Value::Regex(Regex { pattern: "", options: "" }), pointer),
        Type::DbPointer => open(pointer, Value::Code("")),
        Type::Code => open(Value::Code(""), scoped),
        Type::CodeWithScope => open(scoped, Value::MaxKey),
        Type::Null => closed(Value::Null, Value::Null),
        Type::Undefined => closed(Value::Undefined, Value::Undefined),
        Type::MinKey => closed(Value::MinKey, Value::MinKey),
        Type::MaxKey => closed(Value::MaxKey, Value::MaxKey),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate_parse::parse;
    use quire_document::literal::parse_doc;

    fn text(filter: &str) -> Option<(String, Tightness)> {
        let filter = parse(parse_doc(filter).unwrap().as_doc());
        let mut all = Intervals::all();
        let mut worst = Tightness::Exact;
        for conjunct in filter.root.conjuncts() {
            let (intervals, tightness) = bounds(conjunct, Field::default())?;
            all = all.intersect(&intervals);
            worst = worst.max(tightness);
        }
        let texts: Vec<String> = all.0.iter().map(|interval| interval.text(false)).collect();
        Some((texts.join(" "), worst))
    }

    #[test]
    fn filters_give_bounds() {
        use Tightness::{Exact, InexactCovered, InexactFetch};
        let cases = [
            ("{a: 5}", "[5, 5]", Exact),
            ("{a: null}", "[undefined, undefined] [null, null]", InexactFetch),
            ("{a: {$gt: 1, $lte: 4}}", "(1, 4]", Exact),
            ("{a: {$lt: 1}}", "[-inf.0, 1)", Exact),
            ("{a: {$gt: \"m\"}}", "(\"m\", {})", Exact),
            ("{a: {$in: [3, 1, 1.0]}}", "[1, 1] [3, 3]", Exact),
            ("{a: {$ne: 3}}", "[MinKey, 3) (3, MaxKey]", Exact),
            ("{a: {$ne: null}}", "[MinKey, undefined) (null, MaxKey]", Exact),
            ("{a: {$not: {$gt: 5}}}", "[MinKey, 5] (inf.0, MaxKey]", Exact),
            ("{a: {$exists: true}}", "[MinKey, MaxKey]", InexactFetch),
            ("{a: {$exists: false}}", "[null, null]", InexactFetch),
            ("{a: /^ab/}", "[\"ab\", \"ac\") [/^ab/, /^ab/]", Exact),
            ("{a: /b/}", "[\"\", {}) [/b/, /b/]", InexactCovered),
            ("{a: {$type: \"bool\"}}", "[false, true]", Exact),
            ("{a: {$mod: [4, 1]}}", "[nan.0, inf.0]", InexactCovered),
            ("{a: [1, 2]}", "[1, 1] [[ 1, 2 ], [ 1, 2 ]]", InexactFetch),
            ("{a: {$elemMatch: {$gt: 3, $lt: 6}}}", "(3, 6)", InexactFetch),
            ("{a: {$gte: MinKey}}", "[MinKey, MaxKey]", Exact),
            ("{a: {$gt: 5, $lt: 3}}", "", Exact),
        ];
        for (filter, intervals, tightness) in cases {
            assert_eq!(text(filter), Some((intervals.into(), tightness)), "{filter}");
        }
        for filter in ["{a: {$size: 2}}", "{a: {$not: /x/}}", "{a: {$bitsAllSet: 1}}"] {
            assert_eq!(text(filter), None, "{filter}");
        }
    }
}
