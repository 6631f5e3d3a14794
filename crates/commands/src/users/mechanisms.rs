//! The mechanisms that logins may use: those that are built and listed in the server parameter
//! `authenticationMechanisms`.

use crate::frame::context::Context;
use crate::frame::parameters::table::AUTHENTICATION_MECHANISMS;
use quire_access::Mechanism;
use quire_error::{Error, ErrorCode, Result};

/// Returns true if logins may use the mechanism with this name.
pub fn is_enabled(cx: &Context<'_>, name: &str) -> bool {
    let listed = cx.service.parameters.get(AUTHENTICATION_MECHANISMS);
    let listed = listed.as_ref().and_then(|list| list.as_value().as_array());
    listed.is_some_and(|list| list.iter().any(|one| one.as_str() == Some(name)))
}

/// Returns the enabled SCRAM mechanisms: a new user gets a credential for each, unless the command
/// names others.
pub fn enabled(cx: &Context<'_>) -> Vec<Mechanism> {
    let all = Mechanism::ALL.iter().copied();
    all.filter(|mechanism| is_enabled(cx, mechanism.name())).collect()
}

/// Returns the SCRAM mechanism with this name.
///
/// # Errors
/// 334 MechanismUnavailable for an unknown or disabled mechanism, or one that needs a directory or
/// a cloud service.
pub fn scram(cx: &Context<'_>, name: &str) -> Result<Mechanism> {
    let known = Mechanism::parse(name);
    if let Some(known) = known.filter(|_| is_enabled(cx, name)) {
        return Ok(known);
    }
    let text = match name {
        "PLAIN" | "GSSAPI" | "MONGODB-OIDC" | "MONGODB-AWS" => {
            format!("the authentication mechanism {name} is not supported")
        }
        _ if known.is_some() => {
            format!("Received authentication for mechanism {name} which is not enabled")
        }
        _ => format!("Unsupported mechanism on authentication database: {name}"),
    };
    Err(Error::new(ErrorCode::MechanismUnavailable, text))
}
