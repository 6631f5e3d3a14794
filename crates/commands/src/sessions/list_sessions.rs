//! `$listSessions` and `$listLocalSessions`: the recently used sessions. A single server knows only
//! its own, so that both stages return the same.

use super::{documents, user_name};
use crate::frame::args::fields;
use crate::frame::context::Context;
use quire_document::{DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::AggregateRequest;

/// The users whose sessions are listed.
enum Whose {
    Everybodys,
    Own,
    Of(Vec<[u8; 32]>),
}

/// Returns the rows of `$listLocalSessions`.
pub fn local(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    let whose = parse(cx, "$listLocalSessions", operand)?;
    if !request.namespace.ends_with(".$cmd.aggregate") {
        let text = "$listLocalSessions must be run against the database with {aggregate: 1}, not a collection";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(rows(cx, &whose))
}

/// Returns the rows of `$listSessions`.
pub fn all(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    let whose = parse(cx, "$listSessions", operand)?;
    if request.namespace != "config.system.sessions" {
        let text = "$listSessions may only be run against config.system.sessions";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(rows(cx, &whose))
}

fn parse(cx: &Context<'_>, stage: &'static str, operand: Value<'_>) -> Result<Whose> {
    let Value::Document(options) = operand else {
        let found = operand.type_name();
        let text = format!("{stage} options must be specified in an object, but found: {found}");
        return Err(Error::type_mismatch(text));
    };
    let (mut users, mut named_any, mut everybody) = (Vec::new(), false, false);
    for arg in fields(stage, options) {
        match arg.name() {
            "users" | "allUsers" if arg.is_null() => {}
            "allUsers" => everybody = arg.bool()?,
            "users" => {
                for named in documents(arg)? {
                    named_any = true;
                    users.extend(user_name(stage, named?)?.owner(cx.service)?);
                }
            }
            _ => return Err(arg.unknown()),
        }
    }
    match (everybody, !named_any) {
        (true, false) => {
            let text = format!("{stage} may not specify {{allUsers: true}} and {{users: [...]}}");
            Err(Error::new(ErrorCode::UnsupportedFormat, text))
        }
        (true, true) => Ok(Whose::Everybodys),
        (false, false) => Ok(Whose::Of(users)),
        (false, true) => Ok(Whose::Own),
    }
}

fn rows(cx: &Context<'_>, whose: &Whose) -> Vec<DocBuf> {
    let own = cx.owner();
    let is_meant = |user: &[u8; 32]| match whose {
        Whose::Everybodys => true,
        Whose::Own => *user == own,
        Whose::Of(users) => users.contains(user),
    };
    let sessions = cx.service.sessions.list();
    let meant = sessions.into_iter().filter(|(id, _)| is_meant(&id.user));
    let row = |(id, last_use): (quire_session::SessionId, i64)| {
        DocBuf::build(|row| {
            id.write(&mut row.document("_id"));
            row.append("lastUse", Value::Date(last_use));
        })
    };
    meant.map(row).collect()
}
