//! The audit events of the commands about users and roles: their arguments without passwords.
//! (MongoDB manual, "System Event Audit Messages".)

use crate::frame::accounts::write_roles;
use crate::frame::command::{AuditEvent, Command};
use quire_access::RoleName;
use quire_document::{Doc, DocBuf, Value, doc};

/// The arguments that an event contains.
const FIELDS: [&str; 4] = ["customData", "roles", "privileges", "authenticationRestrictions"];

/// Returns the event of a command about one user.
pub fn user(command: &Command, body: Doc<'_>) -> AuditEvent {
    let param = DocBuf::build(|out| {
        out.append("user", name(body)).append("db", db(body));
        if command.name == "updateUser" {
            out.append("passwordChanged", body.contains("pwd"));
        }
        arguments(body, out);
    });
    (command.name, param)
}

/// Returns the event of a command about one role.
pub fn role(command: &Command, body: Doc<'_>) -> AuditEvent {
    let param = DocBuf::build(|out| {
        out.append("role", name(body)).append("db", db(body));
        arguments(body, out);
    });
    (command.name, param)
}

/// Returns the event of a command about all users or roles of a database.
pub fn of_database(command: &Command, body: Doc<'_>) -> AuditEvent {
    (command.name, doc! { "db": db(body) })
}

/// Returns the event of a command that merges users and roles: the collections that they come from.
pub fn merge(command: &Command, body: Doc<'_>) -> AuditEvent {
    let param = DocBuf::build(|out| {
        for field in ["tempUsersCollection", "tempRolesCollection", "db", "drop"] {
            out.append_some(field, body.get(field));
        }
    });
    (command.name, param)
}

fn db(body: Doc<'_>) -> &str {
    body.get("$db").and_then(|db| db.as_str()).unwrap_or_default()
}

fn name(body: Doc<'_>) -> &str {
    body.first().and_then(|first| first.value().as_str()).unwrap_or_default()
}

/// Appends the arguments; each role with its database.
fn arguments(body: Doc<'_>, out: &mut quire_document::DocWriter<'_>) {
    for field in FIELDS {
        match body.get(field) {
            Some(Value::Array(roles)) if field == "roles" => {
                let roles = RoleName::parse_list(roles, db(body)).unwrap_or_default();
                write_roles(&roles, out.array(field));
            }
            Some(value) => _ = out.append(field, value),
            None => {}
        }
    }
}
