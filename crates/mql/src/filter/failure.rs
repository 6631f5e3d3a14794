//! Reports why a document does not match a filter: the details in a validator's error.
//!
//! The filter is processed clause by clause as the user wrote it (evaluation uses a simplified
//! form). Each clause that determines the result is reported with the values that it considered. A
//! negated clause is reported if it matched.
//!
//! A leaf shows at most ten values. A report of more than 12 MiB is made without the values and
//! without the clauses as the user wrote them.

use super::node::{Node, PathNode, Test};
use super::parse::is_operator_document;
use super::{Features, Filter};
use crate::context::{EvalContext, ParseContext};
use quire_document::path::{Found, Leaf as PathEnd, Path};
use quire_document::{Doc, DocBuf, DocWriter, Type, Value, ValueBuf};
use quire_error::{Error, ErrorClass, Result};
use std::ops::ControlFlow;

/// The most values that a leaf shows (MongoDB's `internalQueryMaxDocValidationErrorConsideredValues`).
const CONSIDERED_MAX: usize = 10;

/// The most bytes of a report with all its values.
const BYTES_MAX: usize = 12 << 20;

/// Why a document does not match.
#[derive(Debug)]
pub struct Report {
    /// The details, as in `errInfo.details`.
    pub details: DocBuf,
    /// True if the values are left out, because the details would be too large.
    pub truncated: bool,
}

/// A filter that can report why a document does not match.
#[derive(Debug)]
pub struct Reporter {
    root: Clause,
}

#[derive(Debug)]
enum Clause {
    /// The operator `$and`, `$or` or `$nor`, explicit or implicit.
    List(&'static str, Vec<Clause>),
    /// The negation of a clause.
    Not(Box<Clause>),
    /// An operator on a path.
    Leaf(Box<Leaf>),
}

#[derive(Debug)]
struct Leaf {
    operator: String,
    /// The clause as the user wrote it.
    specified: DocBuf,
    filter: Filter,
}

/// The outcome of a clause for which it is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Failed,
    Passed,
}

impl Outcome {
    fn inverted(self) -> Outcome {
        match self {
            Outcome::Failed => Outcome::Passed,
            Outcome::Passed => Outcome::Failed,
        }
    }
}

impl Reporter {
    /// Parses a validator.
    pub fn parse(filter: Doc<'_>, context: &ParseContext) -> Result<Reporter> {
        Ok(Reporter { root: clause(filter, context)? })
    }

    /// Returns why a document does not match, as `errInfo` shows it. A filter that has no details
    /// gives a note instead.
    ///
    /// # Errors
    /// The error of an interrupt.
    pub fn err_info(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<DocBuf> {
        let report = match self.report(doc, cx) {
            Err(error) if error.code().is_a(ErrorClass::Interruption) => return Err(error),
            report => report,
        };
        Ok(DocBuf::build(|writer| {
            writer.append_some("failingDocumentId", doc.get("_id"));
            match report {
                Ok(Report { details, truncated }) => {
                    if truncated {
                        writer.append("truncated", true);
                    }
                    writer.append("details", &details);
                }
                Err(error) => {
                    writer.append("note", "failed to generate document validation error");
                    write_error(&error, &mut writer.document("details"));
                }
            }
        }))
    }

    /// Returns the report for a document that does not match. Fails with 4994600 for a filter that
    /// has no details.
    pub fn report(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<Report> {
        let mut bytes = Vec::new();
        let mut writer = DocWriter::new(&mut bytes);
        self.root.write(doc, Outcome::Failed, cx, &mut writer)?;
        writer.finish();
        let details = DocBuf::from_valid_bytes(bytes);
        Ok(match details.as_doc().len() > BYTES_MAX {
            true => Report { details: without_values(details.as_doc()), truncated: true },
            false => Report { details, truncated: false },
        })
    }
}

/// Returns the details without the parts whose size depends on the user's values.
fn without_values(details: Doc<'_>) -> DocBuf {
    const VALUES: [&str; 3] = ["specifiedAs", "consideredValue", "consideredValues"];
    DocBuf::build(|writer| {
        for (name, value) in details.fields().filter(|(name, _)| !VALUES.contains(name)) {
            match value {
                Value::Document(inner) => {
                    writer.append(name, &without_values(inner));
                }
                Value::Array(list) => {
                    let mut shown = writer.array(name);
                    list.iter().for_each(|value| match value {
                        Value::Document(inner) => {
                            shown.push(without_values(inner).as_doc());
                        }
                        other => {
                            shown.push(other);
                        }
                    });
                }
                other => {
                    writer.append(name, other);
                }
            }
        }
    })
}

/// Returns the clause of a filter document. Several conditions are an `$and`.
fn clause(filter: Doc<'_>, context: &ParseContext) -> Result<Clause> {
    let mut clauses = Vec::new();
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$comment", _) => {}
            ("$and", Value::Array(array)) => clauses.push(list("$and", array, context)?),
            ("$or", Value::Array(array)) => clauses.push(list("$or", array, context)?),
            ("$nor", Value::Array(array)) => clauses.push(list("$nor", array, context)?),
            (path, Value::Document(operators)) if is_operator_document(operators) => {
                if path.starts_with('$') {
                    clauses.push(leaf(path, filter_of(path, value), context)?);
                } else {
                    clauses.extend(operator_clauses(path, operators, context)?);
                }
            }
            (name, value) => {
                let operator = match value {
                    _ if name.starts_with('$') => name,
                    Value::Regex(_) => "$regex",
                    _ => "$eq",
                };
                clauses.push(leaf(operator, filter_of(name, value), context)?);
            }
        }
    }
    Ok(joined(clauses))
}

fn joined(mut clauses: Vec<Clause>) -> Clause {
    match clauses.len() {
        1 => clauses.remove(0),
        _ => Clause::List("$and", clauses),
    }
}

fn list(
    operator: &'static str,
    array: quire_document::Array<'_>,
    context: &ParseContext,
) -> Result<Clause> {
    let clauses = array.iter().filter_map(|value| value.as_document());
    let clauses = clauses.map(|doc| clause(doc, context)).collect::<Result<Vec<_>>>()?;
    Ok(Clause::List(operator, clauses))
}

fn operator_clauses(path: &str, operators: Doc<'_>, context: &ParseContext) -> Result<Vec<Clause>> {
    let mut clauses = Vec::new();
    for (operator, value) in operators.fields() {
        clauses.push(match (operator, value) {
            ("$options", _) => continue,
            ("$not", Value::Document(inner)) => {
                Clause::Not(Box::new(joined(operator_clauses(path, inner, context)?)))
            }
            ("$not", value) => {
                Clause::Not(Box::new(leaf("$regex", filter_of(path, value), context)?))
            }
            (operator, value) => {
                let filter = DocBuf::build(|writer| {
                    let mut field = writer.document(path);
                    field.append(operator, value);
                    if operator == "$regex" {
                        field.append_some("$options", operators.get("$options"));
                    }
                });
                leaf(operator, filter, context)?
            }
        });
    }
    Ok(clauses)
}

fn filter_of(name: &str, value: Value<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append(name, value);
    })
}

fn leaf(operator: &str, specified: DocBuf, context: &ParseContext) -> Result<Clause> {
    let filter = Filter::parse_exact(specified.as_doc(), context, Features::ALL)?;
    Ok(Clause::Leaf(Box::new(Leaf { operator: operator.to_owned(), specified, filter })))
}

impl Clause {
    fn holds(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<bool> {
        let count = |clauses: &[Clause]| -> Result<usize> {
            clauses.iter().try_fold(0, |sum, clause| Ok(sum + clause.holds(doc, cx)? as usize))
        };
        Ok(match self {
            Clause::List("$and", clauses) => count(clauses)? == clauses.len(),
            Clause::List("$or", clauses) => count(clauses)? > 0,
            Clause::List(_, clauses) => count(clauses)? == 0,
            Clause::Not(clause) => !clause.holds(doc, cx)?,
            Clause::Leaf(leaf) => unless_failed(leaf.filter.matches(doc, cx))?,
        })
    }

    fn write(
        &self,
        doc: Doc<'_>,
        outcome: Outcome,
        cx: &EvalContext<'_>,
        writer: &mut DocWriter<'_>,
    ) -> Result<()> {
        match self {
            Clause::List(operator, clauses) => {
                writer.append("operatorName", *operator);
                // A `$nor` fails because of clauses that match.
                let inner = if *operator == "$nor" { outcome.inverted() } else { outcome };
                let name = match inner {
                    Outcome::Failed => "clausesNotSatisfied",
                    Outcome::Passed => "clausesSatisfied",
                };
                let mut entries = writer.array(name);
                for (index, clause) in clauses.iter().enumerate() {
                    if clause.holds(doc, cx)? == (inner == Outcome::Passed) {
                        let mut entry = entries.document();
                        entry.append("index", index as i32);
                        clause.write(doc, inner, cx, &mut entry.document("details"))?;
                    }
                }
                Ok(())
            }
            Clause::Not(clause) => {
                writer.append("operatorName", "$not");
                clause.write(doc, outcome.inverted(), cx, &mut writer.document("details"))
            }
            Clause::Leaf(leaf) => leaf.write(doc, outcome, cx, writer),
        }
    }
}

impl Leaf {
    fn write(
        &self,
        doc: Doc<'_>,
        outcome: Outcome,
        cx: &EvalContext<'_>,
        writer: &mut DocWriter<'_>,
    ) -> Result<()> {
        match self.filter.root() {
            Node::JsonSchema(schema) => {
                match outcome {
                    Outcome::Failed => schema.write_failure(doc, cx.shared, writer)?,
                    Outcome::Passed => {
                        writer.append("operatorName", "$jsonSchema");
                        writer.append("reason", "schema matched");
                    }
                }
                return Ok(());
            }
            Node::Always(_) if self.operator.starts_with("$always") => {
                let text = format!(
                    "Cannot generate validation error details: no annotation found for expression \
                     {}",
                    crate::text::show_doc(self.specified.as_doc())
                );
                return Err(Error::location(4994600, text));
            }
            _ => {}
        }
        writer.append("operatorName", self.operator.as_str());
        writer.append("specifiedAs", &self.specified);
        match self.filter.root() {
            Node::Expr(test) => write_expression(test.result(doc, cx), outcome, writer),
            Node::Not(inner) => self.write_node(inner, doc, outcome.inverted(), cx, writer),
            node => self.write_node(node, doc, outcome, cx, writer),
        }
    }

    fn write_node(
        &self,
        node: &Node,
        doc: Doc<'_>,
        outcome: Outcome,
        cx: &EvalContext<'_>,
        writer: &mut DocWriter<'_>,
    ) -> Result<()> {
        // `$all` is a conjunction of tests on one path; an empty `$in` has no path left.
        let (path, test) = match node {
            Node::Path(PathNode { path, test, .. }) => (path.clone(), Some(test)),
            Node::And(children) => match children.first() {
                Some(Node::Path(PathNode { path, .. })) => (path.clone(), None),
                _ => return Ok(()),
            },
            _ => match self.specified.as_doc().first() {
                Some(first) => (Path::new(first.key()), None),
                None => return Ok(()),
            },
        };
        if matches!(test, Some(Test::Exists)) {
            writer.append(
                "reason",
                match outcome {
                    Outcome::Failed => "path does not exist",
                    Outcome::Passed => "path does exist",
                },
            );
            return Ok(());
        }
        let leaf = match test {
            Some(Test::Open(_)) => PathEnd::Elements,
            Some(test) => test.leaf(),
            None => PathEnd::Whole,
        };
        let values = considered(&path, leaf, doc);
        if values.is_empty() {
            writer.append("reason", "field was missing");
            return Ok(());
        }
        if outcome == Outcome::Failed && write_type_mismatch(test, &values, writer) {
            return Ok(());
        }
        let reason = match test {
            Some(Test::Open(open)) => {
                let whole = considered(&path, open.leaf(), doc);
                open.reason(&whole, outcome == Outcome::Passed, cx.shared)?
            }
            test => reason(test, outcome),
        };
        writer.append("reason", reason);
        write_considered(&values, writer);
        if matches!(test, Some(Test::Type(_))) {
            write_types(&values, writer);
        }
        Ok(())
    }
}

/// Returns the outcome of a leaf. A document for which an expression fails does not match.
fn unless_failed(outcome: Result<bool>) -> Result<bool> {
    match outcome {
        Err(error) if !error.code().is_a(ErrorClass::Interruption) => Ok(false),
        outcome => outcome,
    }
}

fn write_expression(
    result: Result<Option<ValueBuf>>,
    outcome: Outcome,
    writer: &mut DocWriter<'_>,
) -> Result<()> {
    match result {
        Ok(value) => {
            let reason = match outcome {
                Outcome::Failed => "expression did not match",
                Outcome::Passed => "expression did match",
            };
            writer.append("reason", reason);
            writer.append_some("expressionResult", value.as_ref().map(ValueBuf::as_value));
            Ok(())
        }
        Err(error) if error.code().is_a(ErrorClass::Interruption) => Err(error),
        Err(error) => {
            writer.append("reason", "failed to evaluate aggregation expression");
            write_error(&error, &mut writer.document("details"));
            Ok(())
        }
    }
}

fn write_error(error: &Error, writer: &mut DocWriter<'_>) {
    writer.append("code", error.code().number());
    writer.append("codeName", &*error.code().name());
    writer.append("errmsg", error.message());
}

/// Returns the values at the path. Instead of an array returns its elements, if the operator tests
/// them.
fn considered<'a>(path: &Path, leaf: PathEnd, doc: Doc<'a>) -> Vec<Value<'a>> {
    let mut values = Vec::new();
    let mut before = 0;
    let _ = path.visit::<()>(doc, leaf, |Found { value, position }| {
        match value {
            // The array itself comes after its elements.
            Some(Value::Array(_))
                if leaf == PathEnd::Elements && values.len() > before && position.is_none() => {}
            Some(value) => values.push(value),
            None => {}
        }
        if position.is_none() {
            before = values.len();
        }
        ControlFlow::Continue(())
    });
    values
}

fn write_considered(values: &[Value<'_>], writer: &mut DocWriter<'_>) {
    match values {
        [value] => {
            writer.append("consideredValue", *value);
        }
        values => {
            {
                let mut list = writer.array("consideredValues");
                values.iter().take(CONSIDERED_MAX).for_each(|value| {
                    list.push(*value);
                });
            }
            if values.len() > CONSIDERED_MAX {
                writer.append("consideredValuesTruncated", true);
            }
        }
    }
}

fn write_types(values: &[Value<'_>], writer: &mut DocWriter<'_>) {
    let mut types: Vec<&str> = values.iter().map(Value::type_name).collect();
    types.sort_unstable();
    types.dedup();
    match types[..] {
        [only] => {
            writer.append("consideredType", only);
        }
        _ => {
            let mut list = writer.array("consideredTypes");
            types.iter().for_each(|name| {
                list.push(*name);
            });
        }
    }
}

/// Writes that the type did not match, for an operator that accepts only some types, if no value
/// has one of them. Returns true then.
fn write_type_mismatch(
    test: Option<&Test>,
    values: &[Value<'_>],
    writer: &mut DocWriter<'_>,
) -> bool {
    const NUMBERS: [Type; 4] = [Type::Decimal, Type::Double, Type::Int32, Type::Int64];
    let expected: &[Type] = match test {
        Some(Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_)) => &[Type::Array],
        Some(Test::Regex(_)) => &[Type::Regex, Type::String, Type::Symbol],
        Some(Test::Mod(_)) => &NUMBERS,
        Some(Test::Bits(_)) => {
            &[Type::Binary, Type::Decimal, Type::Double, Type::Int32, Type::Int64]
        }
        _ => return false,
    };
    if values.iter().any(|value| expected.contains(&value.kind())) {
        return false;
    }
    writer.append("reason", "type did not match");
    write_types(values, writer);
    match expected {
        [only] => {
            writer.append("expectedType", only.alias());
        }
        several => {
            let mut list = writer.array("expectedTypes");
            several.iter().for_each(|kind| {
                list.push(kind.alias());
            });
        }
    }
    write_considered(values, writer);
    true
}

fn reason(test: Option<&Test>, outcome: Outcome) -> &'static str {
    let (failed, passed) = match test {
        None => {
            ("array did not contain all specified values", "array did contain all specified values")
        }
        Some(Test::In(_) | Test::Always(_) | Test::Implied(..)) => {
            ("no matching value found in array", "matching value found in array")
        }
        Some(Test::Type(_)) => ("type did not match", "type did match"),
        Some(Test::Size(_)) => {
            ("array length was not equal to given size", "array length was equal to given size")
        }
        Some(Test::Regex(_)) => {
            ("regular expression did not match", "regular expression did match")
        }
        Some(Test::Mod(_)) => (
            "$mod did not evaluate to expected remainder",
            "$mod did evaluate to expected remainder",
        ),
        Some(Test::Bits(_)) => {
            ("bitwise operator failed to match", "bitwise operator matched successfully")
        }
        Some(Test::ElemMatchObject(_) | Test::ElemMatchValue(_)) => {
            ("array did not satisfy the child predicate", "array did satisfy the child predicate")
        }
        Some(Test::Exists) => ("path does not exist", "path does exist"),
        Some(Test::Compare(..) | Test::Not(_) | Test::All(_) | Test::Open(_)) => {
            ("comparison failed", "comparison succeeded")
        }
    };
    match outcome {
        Outcome::Failed => failed,
        Outcome::Passed => passed,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::context::Shared;
    use bumpalo::Bump;
    use quire_document::{ArrayBuf, doc};

    fn report(filter: &DocBuf, document: &DocBuf) -> Report {
        let (arena, shared) = (Bump::new(), Shared::new(0));
        let reporter = Reporter::parse(filter.as_doc(), &ParseContext::default()).unwrap();
        let cx = EvalContext::new(&arena, document.as_doc(), &shared);
        reporter.report(document.as_doc(), &cx).unwrap()
    }

    #[test]
    fn a_leaf_shows_ten_values() {
        let values = |count: i32| {
            let list = ArrayBuf::build(|writer| {
                (0..count).for_each(|n| {
                    writer.push(n);
                });
            });
            let document = doc! { "a": &list };
            let details = report(&doc! { "a": { "$lt": 0 } }, &document).details;
            let Some(Value::Array(shown)) = details.get("consideredValues") else {
                panic!("{details:?}")
            };
            (shown.iter().count(), details.get("consideredValuesTruncated").is_some())
        };
        assert_eq!(values(9), (9, false));
        assert_eq!(values(10), (10, false));
        assert_eq!(values(11), (10, true));
        assert_eq!(values(200), (10, true));
    }

    #[test]
    fn a_report_that_is_too_large_has_no_values() {
        let long = "x".repeat(7 << 20);
        let document = doc! { "a": long.as_str(), "b": long.as_str() };
        let filter = doc! { "a": 1, "$or": [{ "b": 2 }] };
        let Report { details, truncated } = report(&filter, &document);
        assert!(truncated);
        let expected = doc! {
            "operatorName": "$and",
            "clausesNotSatisfied": [
                { "index": 0, "details": { "operatorName": "$eq", "reason": "comparison failed" } },
                { "index": 1, "details": {
                    "operatorName": "$or",
                    "clausesNotSatisfied": [{ "index": 0, "details": {
                        "operatorName": "$eq", "reason": "comparison failed"
                    } }]
                } },
            ]
        };
        assert_eq!(details, expected);
        assert!(!report(&doc! { "a": 1 }, &document).truncated);
    }
}
