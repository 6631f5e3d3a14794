//! Converts filters to BSON, as in explain's `parsedQuery`.

use super::in_list::InList;
use super::node::{Node, PathNode, Test};
use crate::regex::Regex;
use quire_document::{DocWriter, Regex as RegexValue, Value};

/// Writes the condition's fields as mongod's explain shows them.
pub(super) fn write(node: &Node, writer: &mut DocWriter<'_>) {
    match node {
        Node::And(children) if children.is_empty() => {}
        Node::And(children) => write_list("$and", children, writer),
        Node::Or(children) => write_list("$or", children, writer),
        Node::Nor(children) => write_list("$nor", children, writer),
        Node::Not(child) => write_not(child, writer),
        Node::Path(PathNode { path, test, .. }) => {
            write_test(test, &mut writer.document(path.as_str()));
        }
        Node::Expr(test) => {
            writer.append("$expr", test.expression().to_bson().as_value());
        }
        Node::JsonSchema(schema) => {
            writer.append("$jsonSchema", schema.source());
        }
        Node::SampleRate(rate) => {
            writer.append("$sampleRate", *rate);
        }
        Node::Search(search) => search.write(writer),
        Node::Always(true) => {
            writer.append("$alwaysTrue", 1);
        }
        Node::Always(false) => {
            writer.append("$alwaysFalse", 1);
        }
    }
}

fn write_list(operator: &str, children: &[Node], writer: &mut DocWriter<'_>) {
    let mut list = writer.array(operator);
    for child in children {
        write(child, &mut list.document());
    }
}

/// Writes `{path: {$not: {...}}}` if one path is negated, otherwise `{$nor: [...]}`.
fn write_not(child: &Node, writer: &mut DocWriter<'_>) {
    let of_one_path = match child {
        Node::Path(node) => Some(node.path.as_str()),
        Node::And(children) => common_path(children),
        _ => None,
    };
    let Some(path) = of_one_path else {
        return write_list("$nor", std::slice::from_ref(child), writer);
    };
    let mut field = writer.document(path);
    let mut not = field.document("$not");
    for node in if let Node::And(children) = child { children } else { std::slice::from_ref(child) }
    {
        if let Node::Path(node) = node {
            write_test(&node.test, &mut not);
        }
    }
}

fn common_path(children: &[Node]) -> Option<&str> {
    let mut paths = children.iter().map(|child| match child {
        Node::Path(node) => Some(node.path.as_str()),
        _ => None,
    });
    let first = paths.next()??;
    paths.all(|path| path == Some(first)).then_some(first)
}

fn write_test(test: &Test, writer: &mut DocWriter<'_>) {
    match test {
        Test::Compare(_, operand) | Test::Implied(_, operand) => {
            writer.append(test.operator(), operand.value());
        }
        Test::In(list) => write_in(list, writer),
        Test::Regex(regex) => {
            writer.append("$regex", regex.pattern());
            if !regex.options().is_empty() {
                writer.append("$options", regex.options());
            }
        }
        Test::Exists => {
            writer.append("$exists", true);
        }
        Test::Type(set) => set.write(&mut writer.array("$type")),
        Test::Mod(modulo) => {
            let mut pair = writer.array("$mod");
            pair.push(modulo.divisor).push(modulo.remainder);
        }
        Test::Size(size) => {
            match i32::try_from(*size) {
                Ok(size) => writer.append("$size", size),
                Err(_) => writer.append("$size", *size),
            };
        }
        Test::Bits(bits) => bits.write(writer),
        Test::ElemMatchObject(scope) => write(&scope.node, &mut writer.document("$elemMatch")),
        Test::ElemMatchValue(tests) => {
            let mut inner = writer.document("$elemMatch");
            tests.iter().for_each(|test| write_test(test, &mut inner));
        }
        Test::Not(test) => write_test(test, &mut writer.document("$not")),
        Test::All(tests) => tests.iter().for_each(|test| write_test(test, writer)),
        Test::Open(test) => test.write(writer),
        Test::Always(answer) => {
            writer.append(if *answer { "$alwaysTrue" } else { "$alwaysFalse" }, 1);
        }
    }
}

fn write_in(list: &InList, writer: &mut DocWriter<'_>) {
    if list.to_come().is_some() {
        writer.array("$in").push("<key>");
        return;
    }
    let mut values = writer.array("$in");
    for value in list.values() {
        values.push(value);
    }
    for regex in list.regexes() {
        values.push(regex_value(regex));
    }
}

fn regex_value(regex: &Regex) -> Value<'_> {
    Value::Regex(RegexValue { pattern: regex.pattern(), options: regex.options() })
}
