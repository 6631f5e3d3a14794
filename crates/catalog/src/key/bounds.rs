//! Computes, from the test of one path, the intervals of index keys that can contain matches.

use super::collated;
use super::interval::{Interval, Intervals};
use quire_document::{
    Array, Binary, CodeWithScope, Collator, DbPointer, Doc, ObjectId, Timestamp, Type, Value,
    compare,
};
use quire_mql::filter::{Comparison, InList, Test};
use quire_mql::regex::Regex;
use quire_mql::type_set::TypeSet;

/// Whether a document with a key in the intervals is known to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tightness {
    /// Every document with a key in the intervals matches.
    Exact,
    /// The document may not match; the key suffices to decide it.
    InexactCovered,
    /// The document may not match; the document itself is needed to decide it.
    InexactFetch,
}

/// The intervals of a test, and their tightness.
pub type Bounds = (Intervals, Tightness);

/// Properties of the index that affect bounds.
#[derive(Clone, Copy, Default)]
pub struct Field<'c> {
    /// The index has only this field, and documents without it have no entry.
    pub sparse_single: bool,
    /// The last component of the path is a number: an array at the path is one key, and its
    /// elements have no keys of their own.
    pub whole_arrays: bool,
    /// The collation of the index; the strings in the intervals are sort keys.
    pub collator: Option<&'c dyn Collator>,
}

impl<'c> Field<'c> {
    /// Returns the properties of an index field with this collation.
    fn collated(collator: Option<&'c dyn Collator>) -> Self {
        Field { collator, ..Field::default() }
    }

    /// Calls `make` with the key value of `value`.
    fn keyed(&self, value: Value<'_>, make: impl FnOnce(Value<'_>) -> Bounds) -> Bounds {
        match self.collator {
            None => make(value),
            Some(collator) => make(collated::key_value(value, collator).as_value()),
        }
    }
}

/// Returns the bounds of a test, or of its negation. Returns `None` if no index can answer it.
pub fn bounds(test: &Test, negated: bool, field: Field<'_>) -> Option<Bounds> {
    if negated {
        return not_bounds(test, field.collator);
    }
    Some(match test {
        Test::Compare(Comparison::Eq, operand) => field.keyed(operand.value(), equality),
        Test::Compare(comparison, operand) => {
            field.keyed(operand.value(), |value| comparison_bounds(*comparison, value))
        }
        Test::In(list) if field.collator.is_none() && list.regexes().is_empty() => points(list),
        Test::In(list) => {
            let regexes = list.regexes().iter().map(|regex| regex_bounds(regex, field.collator));
            join(list.values().map(|value| field.keyed(value, equality)).chain(regexes))
        }
        Test::Regex(regex) => regex_bounds(regex, field.collator),
        Test::Mod(_) => (numbers(), Tightness::InexactCovered),
        Test::Exists if field.sparse_single => (Intervals::all(), Tightness::Exact),
        Test::Exists => (Intervals::all(), Tightness::InexactFetch),
        Test::Type(set) => types(set, field.collator),
        Test::Implied(comparison, operand) => {
            field.keyed(operand.value(), |value| implied_bounds(*comparison, value))
        }
        Test::ElemMatchValue(_) if field.whole_arrays => return None,
        Test::ElemMatchValue(tests) => {
            // An inner $elemMatch tests the elements of a nested array, which is one key as a
            // whole.
            let of_elements = |test: &&Test| {
                !matches!(test, Test::ElemMatchValue(_) | Test::ElemMatchObject(_) | Test::All(_))
            };
            let each = tests.iter().filter(of_elements);
            let each = each.filter_map(|test| bounds(test, false, Field::collated(field.collator)));
            let all = each.map(|(intervals, _)| intervals).reduce(|a, b| a.intersect(&b));
            (all?, Tightness::InexactFetch)
        }
        Test::Not(inner) => return not_bounds(inner, field.collator),
        Test::Size(_)
        | Test::Bits(_)
        | Test::ElemMatchObject(_)
        | Test::All(_)
        | Test::Open(_)
        | Test::Always(_) => return None,
    })
}

/// Returns true if a document without the field may match.
pub fn wants_null(test: &Test) -> bool {
    match test {
        Test::Compare(Comparison::Eq, operand) => operand.value().is_nullish(),
        Test::Compare(_, operand) => {
            operand.value().is_nullish() || matches!(operand.value(), Value::MinKey | Value::MaxKey)
        }
        Test::In(list) => list.values().any(|value| value.is_nullish()),
        // An expression compares a missing field as less than any value except MinKey.
        Test::Implied(Comparison::Lt | Comparison::Lte, _) => true,
        Test::Implied(_, operand) => {
            operand.value().is_nullish() || matches!(operand.value(), Value::MinKey)
        }
        _ => false,
    }
}

/// Returns true if a collation can change what the test matches: it compares with a string, or
/// with a document or an array, which may hold strings.
pub(super) fn compares_strings(test: &Test) -> bool {
    let collates = |value: Value<'_>| {
        matches!(value, Value::String(_) | Value::Symbol(_) | Value::Document(_) | Value::Array(_))
    };
    match test {
        Test::Compare(_, operand) | Test::Implied(_, operand) => collates(operand.value()),
        Test::In(list) => list.values().any(collates),
        Test::Not(inner) => compares_strings(inner),
        Test::ElemMatchValue(tests) | Test::All(tests) => tests.iter().any(compares_strings),
        Test::ElemMatchObject(_) => true,
        Test::Regex(_)
        | Test::Exists
        | Test::Type(_)
        | Test::Mod(_)
        | Test::Size(_)
        | Test::Bits(_)
        | Test::Open(_)
        | Test::Always(_) => false,
    }
}

/// Returns the bounds of a list of values, which are sorted. Builds them without a sort if each
/// value has an interval of its own.
fn points(list: &InList) -> Bounds {
    let alone = |value: Value<'_>| match value {
        Value::Array(_) | Value::Null | Value::Undefined => None,
        value => Some(Interval::point(value)),
    };
    match list.values().map(alone).collect::<Option<Vec<Interval>>>() {
        Some(points) => (Intervals::from(points), Tightness::Exact),
        None => join(list.values().map(equality)),
    }
}

/// Returns the bounds of a disjunction: the union of the intervals, with the worst tightness.
fn join(all: impl IntoIterator<Item = Bounds>) -> Bounds {
    let mut worst = Tightness::Exact;
    let intervals = Intervals::union_of(all.into_iter().map(|(intervals, tightness)| {
        worst = worst.max(tightness);
        intervals
    }));
    (intervals, worst)
}

/// Returns the bounds of a negated test. Negated regular expressions, types and arrays have none.
fn not_bounds(test: &Test, collator: Option<&dyn Collator>) -> Option<Bounds> {
    match test {
        Test::Exists => return Some((Intervals::point(Value::Null), Tightness::InexactFetch)),
        Test::Compare(_, operand)
            if !matches!(operand.value(), Value::Array(_) | Value::Regex(_)) => {}
        Test::In(list)
            if list.regexes().is_empty()
                && !list.values().any(|value| matches!(value, Value::Array(_))) => {}
        _ => return None,
    }
    let (intervals, _) = bounds(test, false, Field::collated(collator))?;
    // Null does not match undefined, although its intervals have the key of undefined.
    let equals_null = match test {
        Test::Compare(_, operand) => operand.value().is_nullish(),
        Test::In(list) => list.has_null(),
        _ => false,
    };
    let intervals = match equals_null {
        true => intervals.intersect(&Intervals::point(Value::Undefined).complement()),
        false => intervals,
    };
    Some((intervals.complement(), Tightness::Exact))
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
            Comparison::Eq | Comparison::Lte | Comparison::Gte => {
                (nulls(), Tightness::InexactFetch)
            }
            Comparison::Lt | Comparison::Gt => exact(Intervals::none()),
        },
        Value::MinKey | Value::MaxKey => exact(any_type_range(comparison, value)),
        number if number.as_number().is_some_and(|number| number.is_nan()) => match comparison {
            Comparison::Eq | Comparison::Lte | Comparison::Gte => exact(Intervals::point(value)),
            Comparison::Lt | Comparison::Gt => exact(Intervals::none()),
        },
        _ => exact(typed_range(comparison, value)),
    }
}

/// Returns the interval for a comparison with an array. The comparison also matches elements, so
/// one end is the smaller (or larger) of the array and its first element, and the other end is
/// open.
fn array_range(comparison: Comparison, array: Array<'_>) -> Intervals {
    let Some(first) = array.get(0) else { return Intervals::all() };
    let whole = Value::Array(array);
    let (smaller, larger) =
        if compare(first, whole, None).is_le() { (first, whole) } else { (whole, first) };
    Intervals::of(match comparison {
        Comparison::Gt | Comparison::Gte => Interval::new(smaller, true, Value::MaxKey, true),
        Comparison::Eq | Comparison::Lt | Comparison::Lte => {
            Interval::new(Value::MinKey, true, larger, true)
        }
    })
}

fn any_type_range(comparison: Comparison, value: Value<'_>) -> Intervals {
    Intervals::of(match comparison {
        Comparison::Eq => Interval::new(value, true, value, true),
        Comparison::Gt => Interval::new(value, false, Value::MaxKey, true),
        Comparison::Gte => Interval::new(value, true, Value::MaxKey, true),
        Comparison::Lt => Interval::new(Value::MinKey, true, value, false),
        Comparison::Lte => Interval::new(Value::MinKey, true, value, true),
    })
}

/// Returns the interval for a comparison with a scalar or a document, limited to the value's type.
fn typed_range(comparison: Comparison, value: Value<'_>) -> Intervals {
    let bracket = type_bracket(value.kind());
    let low = if value.is_number() { Value::Double(f64::NEG_INFINITY) } else { bracket.low };
    Intervals::of(match comparison {
        Comparison::Eq => Interval::new(value, true, value, true),
        Comparison::Gt => Interval::new(value, false, bracket.high, bracket.high_inclusive),
        Comparison::Gte => Interval::new(value, true, bracket.high, bracket.high_inclusive),
        Comparison::Lt => Interval::new(low, true, value, false),
        Comparison::Lte => Interval::new(low, true, value, true),
    })
}

fn implied_bounds(comparison: Comparison, value: Value<'_>) -> Bounds {
    if value.is_nullish() {
        let intervals = match comparison {
            Comparison::Eq => nulls(),
            Comparison::Lt | Comparison::Lte => {
                Intervals::of(Interval::new(Value::MinKey, true, Value::Null, true))
            }
            Comparison::Gt | Comparison::Gte => {
                Intervals::of(Interval::new(Value::Undefined, true, Value::MaxKey, true))
            }
        };
        return (intervals, Tightness::InexactFetch);
    }
    (any_type_range(comparison, value), Tightness::Exact)
}

/// Returns the bounds of a regular expression. Under a collation they include all strings, because
/// a sort key does not contain the characters of its string.
fn regex_bounds(regex: &Regex, collator: Option<&dyn Collator>) -> Bounds {
    let found = regex.prefix();
    let itself = Intervals::point(Value::Regex(quire_document::Regex {
        pattern: regex.pattern(),
        options: regex.options(),
    }));
    if collator.is_some() {
        return (bracket_of(Type::String).union(itself), Tightness::InexactFetch);
    }
    let strings = match after(&found.text) {
        Some(end) if !found.text.is_empty() => {
            Intervals::of(Interval::new(found.text.as_str(), true, end.as_str(), false))
        }
        _ => bracket_of(Type::String),
    };
    let tightness = if found.exact { Tightness::Exact } else { Tightness::InexactCovered };
    (strings.union(itself), tightness)
}

/// Returns the smallest string that is larger than every string with the prefix `text`: its last
/// character is incremented.
fn after(text: &str) -> Option<String> {
    let mut chars: Vec<char> = text.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last as u32 + 1 {
            0xD800 => 0xE000,
            next => next,
        };
        if let Some(next) = char::from_u32(next) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

fn numbers() -> Intervals {
    Intervals::of(Interval::new(f64::NAN, true, f64::INFINITY, true))
}

fn types(set: &TypeSet, collator: Option<&dyn Collator>) -> Bounds {
    if set.contains(Type::Array) {
        return (Intervals::all(), Tightness::InexactFetch);
    }
    let kinds = set.types().iter().map(|kind| {
        let tightness = match kind {
            Type::Null | Type::Undefined => Tightness::InexactFetch,
            Type::String | Type::Symbol if collator.is_some() => Tightness::InexactFetch,
            Type::String | Type::Symbol => Tightness::InexactCovered,
            kind if kind.is_number() => Tightness::InexactCovered,
            _ => Tightness::Exact,
        };
        (bracket_of(*kind), tightness)
    });
    let numbers = set.has_numbers().then(|| (numbers(), Tightness::Exact));
    join(kinds.chain(numbers))
}

fn bracket_of(kind: Type) -> Intervals {
    let bracket = type_bracket(kind);
    Intervals::of(Interval::new(bracket.low, true, bracket.high, bracket.high_inclusive))
}

/// The smallest value of a type, and its upper end: the largest value of the type or the smallest
/// value of the next type.
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
        Type::Regex => {
            open(Value::Regex(quire_document::Regex { pattern: "", options: "" }), pointer)
        }
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
    use quire_document::literal::parse_doc;
    use quire_mql::filter::{Filter, Node};

    fn text(filter: &str) -> Option<(String, Tightness)> {
        let filter = Filter::parse(parse_doc(filter).unwrap().as_doc(), &Default::default());
        let root = filter.unwrap().into_node();
        let mut all = Intervals::all();
        let mut worst = Tightness::Exact;
        for conjunct in root.conjuncts() {
            let (node, negated) = match conjunct {
                Node::Not(child) => (&**child, true),
                other => (other, false),
            };
            let Node::Path(node) = node else { return None };
            let (intervals, tightness) = bounds(&node.test, negated, Field::default())?;
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
            ("{a: {$ne: null}}", "[MinKey, null) (null, MaxKey]", Exact),
            ("{a: {$nin: [null, 3]}}", "[MinKey, null) (null, 3) (3, MaxKey]", Exact),
            ("{a: {$not: {$gte: null}}}", "[MinKey, null) (null, MaxKey]", Exact),
            ("{a: {$not: {$gt: 5}}}", "[MinKey, 5] (inf.0, MaxKey]", Exact),
            ("{a: {$exists: true}}", "[MinKey, MaxKey]", InexactFetch),
            ("{a: {$exists: false}}", "[null, null]", InexactFetch),
            ("{a: /^ab/}", "[\"ab\", \"ac\") [/^ab/, /^ab/]", Exact),
            ("{a: /b/}", "[\"\", {}) [/b/, /b/]", InexactCovered),
            ("{a: {$type: \"bool\"}}", "[false, true]", Exact),
            ("{a: {$mod: [4, 1]}}", "[nan.0, inf.0]", InexactCovered),
            ("{a: [1, 2]}", "[1, 1] [[ 1, 2 ], [ 1, 2 ]]", InexactFetch),
            ("{a: {$elemMatch: {$gt: 3, $lt: 6}}}", "(3, 6)", InexactFetch),
            ("{a: {$elemMatch: {$elemMatch: {$gt: 3}, $lt: 6}}}", "[-inf.0, 6)", InexactFetch),
            ("{a: {$gte: MinKey}}", "[MinKey, MaxKey]", Exact),
            ("{a: {$gt: 5, $lt: 3}}", "", Exact),
        ];
        for (filter, intervals, tightness) in cases {
            assert_eq!(text(filter), Some((intervals.into(), tightness)), "{filter}");
        }
        let unbounded = [
            "{a: {$size: 2}}",
            "{a: {$not: /x/}}",
            "{a: {$bitsAllSet: 1}}",
            "{a: {$elemMatch: {$elemMatch: {$gt: 3}}}}",
        ];
        for filter in unbounded {
            assert_eq!(text(filter), None, "{filter}");
        }
    }
    #[test]
    fn the_end_of_a_prefix() {
        assert_eq!(after("az").as_deref(), Some("a{"));
        assert_eq!(after("é").as_deref(), Some("ê"));
    }
}
