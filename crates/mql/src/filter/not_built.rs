//! Operators that are known but not built: JavaScript.

use super::parse::{Level, Parser};
use super::registry::{Parse, QueryOperator};
use quire_error::{Error, ErrorCode, Result};

/// The registry rows of these operators.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$where",
    parse: Parse::Top(|parser, _| {
        check_whole_document("$where", parser)?;
        Err(Error::not_built("$where"))
    }),
    doc: "A JavaScript condition. Answers CommandNotSupported.",
    since: "1.0",
}];

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
