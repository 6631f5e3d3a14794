//! `$rand` and `$meta`, whose values do not come from the document; and operators for JavaScript
//! and encryption, which are refused.

use super::operator::Operator;
use super::tree::{Expression, Form};
use crate::context::{EvalContext, ParseContext};
use quire_document::{DocWriter, Value};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::form("$rand", parse_rand)
        .doc("A random double between 0 (included) and 1 (not included).")
        .since("4.4.2")
        .volatile(),
    Operator::form("$meta", parse_meta).doc("Metadata of a document."),
    Operator::form("$function", refuse_script)
        .doc("Not supported: server-side JavaScript.")
        .since("4.4")
        .unstable(),
    Operator::form("$encStrContains", refuse_encryption).doc(ENCRYPTED).since("8.2").unstable(),
    Operator::form("$encStrEndsWith", refuse_encryption).doc(ENCRYPTED).since("8.2").unstable(),
    Operator::form("$encStrNormalizedEq", refuse_encryption).doc(ENCRYPTED).since("8.2").unstable(),
    Operator::form("$encStrStartsWith", refuse_encryption).doc(ENCRYPTED).since("8.2").unstable(),
];

const ENCRYPTED: &str = "Not supported: Queryable Encryption.";

fn refuse_encryption(
    operator: &'static Operator,
    _: Value<'_>,
    _: &ParseContext,
) -> Result<Expression> {
    Err(Error::not_built(&format!("{} (Queryable Encryption)", operator.name)))
}

fn refuse_script(
    operator: &'static Operator,
    _: Value<'_>,
    _: &ParseContext,
) -> Result<Expression> {
    Err(Error::not_built(&format!("{} (server-side JavaScript)", operator.name)))
}

#[derive(Debug)]
struct Rand;

fn parse_rand(_: &'static Operator, value: Value<'_>, _: &ParseContext) -> Result<Expression> {
    let empty = match value {
        Value::Document(doc) => doc.is_empty(),
        Value::Array(array) => array.is_empty(),
        other => {
            let text = format!(
                "invalid parameter: expected an object ($rand), found {}",
                other.type_name()
            );
            return Err(Error::location(10065, text));
        }
    };
    if !empty {
        return Err(Error::location(3040501, "$rand does not currently accept arguments"));
    }
    Ok(Expression::form(Box::new(Rand)))
}

impl Form for Rand {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        cx.shared.random_fraction().map(Value::Double).map(Some)
    }

    fn children<'e>(&'e self, _: &mut dyn FnMut(&'e Expression)) {}

    fn children_mut(&mut self, _: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        Ok(())
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        writer.document("$rand");
    }

    fn is_volatile(&self) -> bool {
        true
    }
}

/// The kinds of metadata that MongoDB has.
const KINDS: &[&str] = &[
    "textScore",
    "searchScore",
    "searchHighlights",
    "geoNearDistance",
    "geoNearPoint",
    "recordId",
    "randVal",
    "indexKey",
    "sortKey",
    "searchScoreDetails",
    "searchSequenceToken",
    "vectorSearchScore",
    "timeseriesBucketMinTime",
    "timeseriesBucketMaxTime",
    "score",
    "scoreDetails",
];

#[derive(Debug)]
struct Meta {
    kind: Box<str>,
}

fn parse_meta(_: &'static Operator, value: Value<'_>, cx: &ParseContext) -> Result<Expression> {
    let Value::String(kind) = value else {
        return Err(Error::location(17307, "$meta only supports string arguments"));
    };
    if !KINDS.contains(&kind) {
        return Err(Error::location(17308, format!("Unsupported argument to $meta: {kind}")));
    }
    let missing = match kind {
        kind if cx.metadata.contains(&kind) => {
            return Ok(Expression::form(Box::new(Meta { kind: kind.into() })));
        }
        "textScore" => "text score",
        "geoNearDistance" => "$geoNear distance",
        "geoNearPoint" => "$geoNear point",
        "score" if cx.place.as_deref().is_some_and(|place| !place.has_score) => "score",
        "scoreDetails" if cx.place.as_deref().is_some_and(|place| !place.has_score_details) => {
            "scoreDetails"
        }
        _ => return Ok(Expression::form(Box::new(Meta { kind: kind.into() }))),
    };
    Err(unavailable(missing))
}

/// Returns the error 40218, for metadata that neither the filter nor an earlier stage provides.
pub(crate) fn unavailable(metadata: &str) -> Error {
    let text = format!("query requires {metadata} metadata, but it is not available");
    Error::location(40218, text)
}

impl Form for Meta {
    fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        Ok(cx.metadata.and_then(|metadata| metadata.get(&self.kind)))
    }

    fn children<'e>(&'e self, _: &mut dyn FnMut(&'e Expression)) {}

    fn children_mut(&mut self, _: &mut dyn FnMut(&mut Expression) -> Result<()>) -> Result<()> {
        Ok(())
    }

    fn serialize(&self, writer: &mut DocWriter<'_>) {
        writer.append("$meta", &*self.kind);
    }

    fn metadata(&self) -> Option<&str> {
        Some(&self.kind)
    }
}
