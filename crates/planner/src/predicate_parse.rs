//! Reading a filter into its normalised tree.

use crate::predicate::{Comparison, Expr, Filter, Leaf, Predicate, Test};
use quire_document::{Doc, Type, Value, ValueBuf, compare};

/// Reads and normalises a filter that `mql` has accepted.
pub fn parse(filter: Doc<'_>) -> Filter {
    let root = normalise(Predicate::And(conjunction(filter)));
    let root = match root {
        Predicate::AlwaysTrue => Predicate::everything(),
        root => root,
    };
    Filter { source: filter.to_owned(), root }
}

pub(crate) fn conjunction(filter: Doc<'_>) -> Vec<Predicate> {
    let mut out = Vec::new();
    for (name, value) in filter.fields() {
        match name.strip_prefix('$') {
            Some(operator) => top_level(operator, value, &mut out),
            None => field(name, value, &mut out),
        }
    }
    out
}

fn top_level(operator: &str, value: Value<'_>, out: &mut Vec<Predicate>) {
    let branches = || match value {
        Value::Array(array) => array
            .iter()
            .filter_map(|branch| branch.as_document())
            .map(|branch| Predicate::And(conjunction(branch)))
            .collect(),
        _ => Vec::new(),
    };
    match operator {
        "and" => out.push(Predicate::And(branches())),
        "or" => out.push(Predicate::Or(branches())),
        "nor" => out.push(Predicate::Nor(branches())),
        "comment" => {}
        "alwaysTrue" => out.push(Predicate::AlwaysTrue),
        "alwaysFalse" => out.push(Predicate::AlwaysFalse),
        "expr" => {
            let printed = crate::expr_rewrite::print(value);
            let source = ValueBuf::new(value);
            let rewritten = crate::expr_rewrite::comparisons(value);
            out.push(Predicate::Expr(Expr { source, printed }));
            out.extend(rewritten);
        }
        _ => out.push(Predicate::Opaque {
            name: format!("${operator}"),
            argument: ValueBuf::new(value),
        }),
    }
}

/// True if a field's value is an expression of operators, not a document to compare with.
pub(crate) fn is_operators(doc: Doc<'_>) -> bool {
    doc.first().is_some_and(|first| {
        let name = first.key();
        name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db")
    })
}

fn field(path: &str, value: Value<'_>, out: &mut Vec<Predicate>) {
    match value {
        Value::Regex(regex) => out.push(regex_leaf(path, regex.pattern, regex.options)),
        Value::Document(doc) if is_operators(doc) => operators(path, doc, out),
        value => out.push(Predicate::leaf(path, Test::Eq(ValueBuf::new(value)))),
    }
}

fn regex_leaf(path: &str, pattern: &str, options: &str) -> Predicate {
    let mut letters: Vec<char> = options.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    let options = letters.into_iter().collect();
    Predicate::leaf(path, Test::Regex { pattern: pattern.to_owned(), options })
}

fn operators(path: &str, doc: Doc<'_>, out: &mut Vec<Predicate>) {
    for (name, value) in doc.fields() {
        operator(path, name, value, doc, out);
    }
}

fn operator(path: &str, name: &str, value: Value<'_>, all: Doc<'_>, out: &mut Vec<Predicate>) {
    let owned = || ValueBuf::new(value);
    match name {
        "$eq" => out.push(Predicate::leaf(path, Test::Eq(owned()))),
        "$ne" => out.push(negated(Predicate::leaf(path, Test::Eq(owned())))),
        "$lt" => out.push(Predicate::leaf(path, Test::Compare(Comparison::Lt, owned()))),
        "$lte" => out.push(Predicate::leaf(path, Test::Compare(Comparison::Lte, owned()))),
        "$gt" => out.push(Predicate::leaf(path, Test::Compare(Comparison::Gt, owned()))),
        "$gte" => out.push(Predicate::leaf(path, Test::Compare(Comparison::Gte, owned()))),
        "$in" => out.push(in_leaf(path, value)),
        "$nin" => out.push(negated(in_leaf(path, value))),
        "$not" => out.push(not(path, value)),
        "$exists" => {
            let exists = Predicate::leaf(path, Test::Exists);
            out.push(if truthy(value) { exists } else { negated(exists) });
        }
        "$type" => out.push(type_leaf(path, value)),
        "$mod" => out.push(mod_leaf(path, value)),
        "$size" => out.push(Predicate::leaf(path, Test::Size(integer(value)))),
        "$all" => all_of(path, value, out),
        "$elemMatch" => out.push(elem_match(path, value)),
        "$regex" => {
            let given = all.get("$options").and_then(|options| options.as_str());
            out.push(match value {
                Value::Regex(regex) => {
                    regex_leaf(path, regex.pattern, given.unwrap_or(regex.options))
                }
                _ => regex_leaf(path, value.as_str().unwrap_or(""), given.unwrap_or("")),
            });
        }
        "$options" | "$comment" => {}
        _ if name.starts_with("$bits") => {
            let argument = crate::predicate_print::bit_positions(value);
            out.push(Predicate::leaf(path, Test::Opaque { name: name.to_owned(), argument }));
        }
        _ => out
            .push(Predicate::leaf(path, Test::Opaque { name: name.to_owned(), argument: owned() })),
    }
}

fn negated(predicate: Predicate) -> Predicate {
    Predicate::Not(Box::new(predicate))
}

fn not(path: &str, value: Value<'_>) -> Predicate {
    let mut inner = Vec::new();
    match value {
        Value::Regex(regex) => inner.push(regex_leaf(path, regex.pattern, regex.options)),
        Value::Document(doc) => operators(path, doc, &mut inner),
        _ => {}
    }
    negated(Predicate::And(inner))
}

fn in_leaf(path: &str, value: Value<'_>) -> Predicate {
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for value in value.as_array().unwrap_or(quire_document::Array::empty()).iter() {
        match value {
            Value::Regex(_) => regexes.push(ValueBuf::new(value)),
            _ => values.push(ValueBuf::new(value)),
        }
    }
    Predicate::leaf(path, Test::In { values, regexes })
}

fn all_of(path: &str, value: Value<'_>, out: &mut Vec<Predicate>) {
    let Value::Array(array) = value else { return };
    let mut any = false;
    for value in array.iter() {
        any = true;
        match value {
            Value::Regex(regex) => out.push(regex_leaf(path, regex.pattern, regex.options)),
            Value::Document(doc) if doc.first().is_some_and(|f| f.key() == "$elemMatch") => {
                operators(path, doc, out);
            }
            value => out.push(Predicate::leaf(path, Test::Eq(ValueBuf::new(value)))),
        }
    }
    if !any {
        out.push(Predicate::AlwaysFalse);
    }
}

fn elem_match(path: &str, value: Value<'_>) -> Predicate {
    let doc = value.as_document().unwrap_or(Doc::empty());
    let logical = doc.first().is_some_and(|first| {
        matches!(first.key(), "$and" | "$or" | "$nor" | "$where" | "$expr" | "$jsonSchema")
    });
    let path = path.to_owned();
    if is_operators(doc) && !logical {
        let mut inner = Vec::new();
        operators("", doc, &mut inner);
        Predicate::ElemMatchValue { path, inner }
    } else {
        Predicate::ElemMatchObject { path, inner: Box::new(Predicate::And(conjunction(doc))) }
    }
}

fn type_leaf(path: &str, value: Value<'_>) -> Predicate {
    let (mut number, mut numbers) = (false, Vec::new());
    let mut add = |value: Value<'_>| match value {
        Value::String("number") => number = true,
        Value::String(alias) => {
            let found = ALL_TYPES.iter().find(|kind| kind.alias() == alias);
            numbers.extend(found.map(|kind| kind.number()));
        }
        other => numbers.push(integer(other) as i32),
    };
    match value {
        Value::Array(array) => array.iter().for_each(&mut add),
        value => add(value),
    }
    numbers.sort_unstable();
    numbers.dedup();
    Predicate::leaf(path, Test::Type { number, numbers })
}

/// Every type that `$type` can name.
pub(crate) const ALL_TYPES: [Type; 21] = [
    Type::Double,
    Type::String,
    Type::Document,
    Type::Array,
    Type::Binary,
    Type::Undefined,
    Type::ObjectId,
    Type::Bool,
    Type::Date,
    Type::Null,
    Type::Regex,
    Type::DbPointer,
    Type::Code,
    Type::Symbol,
    Type::CodeWithScope,
    Type::Int32,
    Type::Timestamp,
    Type::Int64,
    Type::Decimal,
    Type::MaxKey,
    Type::MinKey,
];

fn mod_leaf(path: &str, value: Value<'_>) -> Predicate {
    let operands: Vec<i64> =
        value.as_array().map_or(Vec::new(), |array| array.iter().map(integer).collect());
    let at = |index: usize| operands.get(index).copied().unwrap_or(0);
    Predicate::leaf(path, Test::Mod(at(0), at(1)))
}

/// The number, truncated.
pub(crate) fn integer(value: Value<'_>) -> i64 {
    quire_mql::filter::truncated(value).unwrap_or(0)
}

fn truthy(value: Value<'_>) -> bool {
    match value {
        Value::Bool(flag) => flag,
        Value::Int32(number) => number != 0,
        Value::Int64(number) => number != 0,
        Value::Double(number) => number != 0.0,
        Value::Decimal(number) => !number.is_zero(),
        Value::Null | Value::Undefined => false,
        _ => true,
    }
}

/// Flattens, simplifies and sorts a tree, children first.
pub(crate) fn normalise(node: Predicate) -> Predicate {
    match node {
        Predicate::And(children) => normalise_and(children),
        Predicate::Or(children) => normalise_or(children),
        Predicate::Nor(children) => {
            let mut children: Vec<_> = children.into_iter().map(normalise).collect();
            if children.len() == 1 {
                return normalise(negated(children.remove(0)));
            }
            children.sort_by(Predicate::sibling_order);
            Predicate::Nor(children)
        }
        Predicate::Not(child) => match normalise(*child) {
            Predicate::AlwaysFalse => Predicate::AlwaysTrue,
            Predicate::AlwaysTrue => Predicate::AlwaysFalse,
            child => negated(child),
        },
        Predicate::ElemMatchObject { path, inner } => {
            Predicate::ElemMatchObject { path, inner: Box::new(normalise(*inner)) }
        }
        Predicate::ElemMatchValue { path, inner } => {
            let mut inner: Vec<_> = inner.into_iter().map(normalise).collect();
            inner.sort_by(Predicate::sibling_order);
            Predicate::ElemMatchValue { path, inner }
        }
        Predicate::Leaf(leaf) => normalise_leaf(leaf),
        other => other,
    }
}

fn normalise_and(children: Vec<Predicate>) -> Predicate {
    let mut flat = Vec::with_capacity(children.len());
    for child in children {
        match normalise(child) {
            Predicate::And(inner) => flat.extend(inner),
            Predicate::AlwaysTrue => {}
            Predicate::AlwaysFalse => return Predicate::AlwaysFalse,
            other => flat.push(other),
        }
    }
    flat.sort_by(Predicate::sibling_order);
    Predicate::all(flat)
}

fn normalise_or(children: Vec<Predicate>) -> Predicate {
    let mut flat = Vec::with_capacity(children.len());
    for child in children {
        match normalise(child) {
            Predicate::Or(inner) => flat.extend(inner),
            Predicate::AlwaysFalse => {}
            Predicate::AlwaysTrue => return Predicate::AlwaysTrue,
            Predicate::And(inner) if inner.is_empty() => return Predicate::AlwaysTrue,
            other => flat.push(other),
        }
    }
    if flat.is_empty() {
        return Predicate::AlwaysFalse;
    }
    if let Some(merged) = merge_equalities(&flat) {
        return normalise(merged);
    }
    flat.sort_by(Predicate::sibling_order);
    match flat.len() {
        1 => flat.remove(0),
        _ => Predicate::Or(flat),
    }
}

/// `{$or: [{a: 1}, {a: 2}]}` is `{a: {$in: [1, 2]}}`.
fn merge_equalities(branches: &[Predicate]) -> Option<Predicate> {
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    let mut path: Option<&str> = None;
    for branch in branches {
        let Predicate::Leaf(leaf) = branch else { return None };
        match &leaf.test {
            Test::Eq(value) if !matches!(value.as_value(), Value::Regex(_)) => {
                values.push(value.clone());
            }
            Test::In { values: more, regexes: rest } => {
                values.extend(more.iter().cloned());
                regexes.extend(rest.iter().cloned());
            }
            Test::Regex { pattern, options } => {
                let regex = quire_document::Regex { pattern, options };
                regexes.push(ValueBuf::new(Value::Regex(regex)));
            }
            _ => return None,
        }
        if *path.get_or_insert(&leaf.path) != leaf.path {
            return None;
        }
    }
    (branches.len() > 1).then(|| Predicate::leaf(path.unwrap_or(""), Test::In { values, regexes }))
}

fn normalise_leaf(leaf: Leaf) -> Predicate {
    let Leaf { path, test } = leaf;
    let Test::In { mut values, regexes } = test else {
        return Predicate::Leaf(Leaf { path, test });
    };
    values.sort_by(|a, b| compare(a.as_value(), b.as_value(), None));
    values.dedup_by(|a, b| compare(a.as_value(), b.as_value(), None).is_eq());
    match (values.len(), regexes.len()) {
        (0, 0) => Predicate::AlwaysFalse,
        (1, 0) => Predicate::leaf(path, Test::Eq(values.remove(0))),
        (0, 1) => match regexes[0].as_value() {
            Value::Regex(regex) => regex_leaf(&path, regex.pattern, regex.options),
            _ => Predicate::AlwaysFalse,
        },
        _ => Predicate::leaf(path, Test::In { values, regexes }),
    }
}
