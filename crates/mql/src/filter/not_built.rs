//! Operators that are known but not built: geometry, JavaScript.

use super::node::Node;
use super::parse::{Argument, Level, Parser};
use super::registry::{Parse, QueryOperator};
use quire_error::{Error, ErrorCode, Result};

macro_rules! geo {
    ($($name:literal, $doc:literal, $since:literal;)*) => {
        &[
            $(QueryOperator {
                name: $name,
                parse: Parse::Field(|parser, argument| geometry($name, parser, argument)),
                doc: $doc,
                since: $since,
            },)*
            QueryOperator {
                name: "$where",
                parse: Parse::Top(|parser, _| {
                    check_whole_document("$where", parser)?;
                    Err(Error::not_built("$where"))
                }),
                doc: "A JavaScript condition. Answers CommandNotSupported.",
                since: "1.0",
            },
        ]
    };
}

/// The registry rows of these operators.
pub(super) const OPERATORS: &[QueryOperator] = geo! {
    "$geoWithin", "Geometry within another. Answers CommandNotSupported.", "2.4";
    "$within", "Old name of `$geoWithin`. Answers CommandNotSupported.", "1.0";
    "$geoIntersects", "Geometry that meets another. Answers CommandNotSupported.", "2.4";
    "$near", "Nearest first, on a plane or a sphere. Answers CommandNotSupported.", "1.0";
    "$nearSphere", "Nearest first, on a sphere. Answers CommandNotSupported.", "1.8";
    "$geoNear", "Old name of `$near`. Answers CommandNotSupported.", "2.4";
};

fn geometry(name: &str, parser: &Parser<'_>, _: Argument<'_>) -> Result<Node> {
    let sorts = matches!(name, "$near" | "$nearSphere" | "$geoNear");
    if sorts && (!parser.features.near || parser.level == Level::Element) {
        let text = "$geoNear, $near, and $nearSphere are not allowed in this context";
        return Err(Error::location(5626500, text));
    }
    Err(Error::not_built(name))
}

/// Checks that an operator on whole documents is allowed here.
///
/// # Errors
/// 2 BadValue inside `$elemMatch` and, for `$where`, where it is not allowed; 224
/// QueryFeatureNotAllowed for the others.
pub(super) fn check_whole_document(name: &str, parser: &Parser<'_>) -> Result<()> {
    if parser.level == Level::Element {
        let text = format!("{name} can only be applied to the top-level document");
        return Err(Error::bad_value(text));
    }
    if !parser.features.whole_document {
        let text = format!("{name} is not allowed in this context");
        let code =
            if name == "$where" { ErrorCode::BadValue } else { ErrorCode::QueryFeatureNotAllowed };
        return Err(Error::new(code, text));
    }
    Ok(())
}
