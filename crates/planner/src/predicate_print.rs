//! Writing a normalised filter down: for explain as MongoDB prints it, for the executor as a
//! filter that `mql` compiles.

use crate::predicate::{Predicate, Test};
use quire_document::{ArrayBuf, DocBuf, DocWriter, Value, ValueBuf};

/// For whom a filter is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// For people: constants of `$expr` marked, the comparisons derived from it shown.
    Explain,
    /// For `mql`: what the client wrote.
    Executable,
}

/// The filter as a document.
pub fn print(predicate: &Predicate, style: Style) -> DocBuf {
    DocBuf::build(|writer| write(predicate, style, writer))
}

fn write(predicate: &Predicate, style: Style, out: &mut DocWriter<'_>) {
    match predicate {
        Predicate::And(children) if children.is_empty() => {}
        derived if style == Style::Executable && is_derived(derived) => {}
        Predicate::And(children) => write_list("$and", children, style, out),
        Predicate::Or(children) => write_list("$or", children, style, out),
        Predicate::Nor(children) => write_list("$nor", children, style, out),
        Predicate::Not(child) => write_not(child, style, out),
        Predicate::Leaf(leaf) => {
            write_test(&leaf.test, &mut out.document(&leaf.path));
        }
        Predicate::ElemMatchObject { path, inner } => {
            let mut field = out.document(path);
            write(inner, style, &mut field.document("$elemMatch"));
        }
        Predicate::ElemMatchValue { path, inner } => {
            let mut field = out.document(path);
            let mut operators = field.document("$elemMatch");
            inner.iter().for_each(|child| write_pathless(child, &mut operators));
        }
        Predicate::AlwaysTrue => {
            out.append("$alwaysTrue", 1);
        }
        Predicate::AlwaysFalse => {
            out.append("$alwaysFalse", 1);
        }
        Predicate::Expr(expr) => {
            let value = if style == Style::Explain { &expr.printed } else { &expr.source };
            out.append("$expr", value);
        }
        Predicate::Opaque { name, argument } => {
            out.append(name, argument);
        }
    }
}

fn write_list(name: &str, children: &[Predicate], style: Style, out: &mut DocWriter<'_>) {
    let mut list = out.array(name);
    for child in children {
        if style == Style::Explain || !is_derived(child) {
            write(child, style, &mut list.document());
        }
    }
}

/// True for what only comes from a `$expr` beside it and so says nothing of its own.
pub(crate) fn is_derived(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Leaf(leaf) => matches!(leaf.test, Test::InternalExpr(..)),
        Predicate::And(children) | Predicate::Or(children) => {
            !children.is_empty() && children.iter().all(is_derived)
        }
        _ => false,
    }
}

fn write_not(child: &Predicate, style: Style, out: &mut DocWriter<'_>) {
    match child {
        Predicate::Leaf(leaf) => {
            let mut field = out.document(&leaf.path);
            write_test(&leaf.test, &mut field.document("$not"));
        }
        Predicate::ElemMatchObject { path, .. } | Predicate::ElemMatchValue { path, .. } => {
            let inner = print(child, style);
            let mut field = out.document(path);
            let test = inner.get(path).unwrap_or(Value::Null);
            field.append("$not", test);
        }
        Predicate::And(children) if one_path(children).is_some() => {
            let mut field = out.document(one_path(children).unwrap_or(""));
            let mut not = field.document("$not");
            children.iter().for_each(|child| write_pathless(child, &mut not));
        }
        other => {
            let mut list = out.array("$nor");
            write(other, style, &mut list.document());
        }
    }
}

/// The path that all of these leaves share.
fn one_path(children: &[Predicate]) -> Option<&str> {
    let mut path = None;
    for child in children {
        let Predicate::Leaf(leaf) = child else { return None };
        if *path.get_or_insert(leaf.path.as_str()) != leaf.path {
            return None;
        }
    }
    path
}

/// The operators of a node inside `$elemMatch` or `$not`, where the path goes without saying.
fn write_pathless(predicate: &Predicate, out: &mut DocWriter<'_>) {
    match predicate {
        Predicate::Leaf(leaf) => write_test(&leaf.test, out),
        Predicate::Not(child) => {
            let mut not = out.document("$not");
            child.conjuncts().iter().for_each(|child| write_pathless(child, &mut not));
        }
        Predicate::ElemMatchObject { inner, .. } => {
            write(inner, Style::Executable, &mut out.document("$elemMatch"));
        }
        Predicate::ElemMatchValue { inner, .. } => {
            let mut operators = out.document("$elemMatch");
            inner.iter().for_each(|child| write_pathless(child, &mut operators));
        }
        other => write(other, Style::Executable, out),
    }
}

fn write_test(test: &Test, out: &mut DocWriter<'_>) {
    match test {
        Test::Eq(value) => {
            out.append("$eq", value);
        }
        Test::Compare(comparison, value) => {
            out.append(&format!("${}", comparison.name()), value);
        }
        Test::In { values, regexes } => {
            let mut list = out.array("$in");
            values.iter().chain(regexes).for_each(|value| {
                list.push(value);
            });
        }
        Test::Regex { pattern, options } => {
            out.append("$regex", pattern.as_str());
            if !options.is_empty() {
                out.append("$options", options.as_str());
            }
        }
        Test::Mod(divisor, remainder) => {
            out.array("$mod").push(*divisor).push(*remainder);
        }
        Test::Exists => {
            out.append("$exists", true);
        }
        Test::Type { number, numbers } => {
            let mut list = out.array("$type");
            if *number {
                list.push("number");
            }
            numbers.iter().for_each(|number| {
                list.push(*number);
            });
        }
        Test::Size(size) => match i32::try_from(*size) {
            Ok(size) => {
                out.append("$size", size);
            }
            Err(_) => {
                out.append("$size", *size);
            }
        },
        Test::InternalExpr(comparison, value) => {
            let name = match comparison {
                None => "Eq",
                Some(comparison) => match comparison {
                    crate::predicate::Comparison::Lte => "Lte",
                    crate::predicate::Comparison::Lt => "Lt",
                    crate::predicate::Comparison::Gt => "Gt",
                    crate::predicate::Comparison::Gte => "Gte",
                },
            };
            out.append(&format!("$_internalExpr{name}"), value);
        }
        Test::Opaque { name, argument } => {
            out.append(name, argument);
        }
    }
}

/// The positions that a `$bits*` operator tests, however it was written.
pub(crate) fn bit_positions(value: Value<'_>) -> ValueBuf {
    let positions: ArrayBuf = match value {
        Value::Array(array) => {
            let mut positions: Vec<i64> =
                array.iter().map(crate::predicate_parse::integer).collect();
            positions.sort_unstable();
            positions.dedup();
            positions.into_iter().map(|p| i32::try_from(p).unwrap_or(i32::MAX)).collect()
        }
        Value::Binary(binary) => {
            let mut positions = Vec::new();
            for (at, byte) in binary.bytes.iter().enumerate() {
                positions.extend(
                    (0..8).filter(|bit| byte >> bit & 1 == 1).map(|bit| (at * 8 + bit) as i32),
                );
            }
            positions.into_iter().collect()
        }
        other => {
            let mask = crate::predicate_parse::integer(other) as u64;
            (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
        }
    };
    ValueBuf::from(positions)
}
