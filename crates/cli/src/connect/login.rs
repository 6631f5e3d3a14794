//! Logs in to a running server by SCRAM or by certificate, and reads the password: from the URI, a
//! file, or a prompt.

use super::integer;
use super::socket::Socket;
use super::uri::{Login, X509};
use quire_access::Mechanism;
use quire_access::scram::ClientLogin;
use quire_document::{Binary, DocBuf, Value, doc};
use std::io::IsTerminal;
use std::path::Path;

/// Returns the password in a file, without the line break.
///
/// # Errors
/// A message for people.
pub(crate) fn password_of_file(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the password in {}: {error}", path.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks for the password of a user, or of a key, at the terminal, without showing it.
///
/// # Errors
/// A message for people, if there is no terminal.
pub(crate) fn prompt(user: &str) -> Result<String, String> {
    if !std::io::stdin().is_terminal() {
        return Err(format!("the password of '{user}' is missing: --passwordFile names a file"));
    }
    rpassword::prompt_password(format!("Password of {user}: ")).map_err(|error| error.to_string())
}

/// Logs in by the certificate of the connection.
fn log_in_by_certificate(socket: &mut Socket, login: &Login) -> Result<(), String> {
    let mut command = doc! { "authenticate": 1, "mechanism": X509 };
    if !login.user.is_empty() {
        command.append("user", login.user.as_str());
    }
    command.append("$db", login.source.as_str());
    step(socket, command).map(drop)
}

/// Logs a connection in.
///
/// # Errors
/// A message for people: the server's reply.
pub(crate) fn log_in(socket: &mut Socket, login: &Login, password: &str) -> Result<(), String> {
    if login.mechanism.as_deref() == Some(X509) {
        return log_in_by_certificate(socket, login);
    }
    let name = login.mechanism.as_deref().unwrap_or(Mechanism::Sha256.name());
    let mechanism = Mechanism::parse(name)
        .ok_or_else(|| format!("the mechanism '{name}' is not supported here"))?;
    let text = |error: quire_error::Error| error.message().to_owned();
    let client = ClientLogin::new(mechanism, &login.user, password).map_err(text)?;
    let first = client.first();
    let reply = step(
        socket,
        doc! {
            "saslStart": 1, "mechanism": name, "payload": binary(first.as_bytes()),
            "options": { "skipEmptyExchange": true }, "$db": login.source.as_str(),
        },
    )?;
    let (proof, last) = client.prove(payload(&reply)?).map_err(text)?;
    let conversation = reply.get("conversationId").and_then(integer).unwrap_or(1);
    let reply = step(
        socket,
        doc! {
            "saslContinue": 1, "conversationId": conversation as i32,
            "payload": binary(last.as_bytes()), "$db": login.source.as_str(),
        },
    )?;
    proof
        .check(payload(&reply)?)
        .map_err(|_| "the server did not prove that it knows the password".to_owned())?;
    if reply.get("done").and_then(|done| done.as_bool()) != Some(true) {
        step(
            socket,
            doc! {
                "saslContinue": 1, "conversationId": conversation as i32,
                "payload": binary(b""), "$db": login.source.as_str(),
            },
        )?;
    }
    Ok(())
}

fn step(socket: &mut Socket, command: DocBuf) -> Result<DocBuf, String> {
    let reply = socket.call(command, None)?;
    if reply.get("ok").and_then(integer) == Some(1) {
        return Ok(reply);
    }
    let why = reply.get("errmsg").and_then(|text| text.as_str()).unwrap_or("no reason given");
    Err(format!("the login failed: {why}"))
}

fn binary(bytes: &[u8]) -> Value<'_> {
    Value::Binary(Binary { subtype: 0, bytes })
}

fn payload(reply: &DocBuf) -> Result<&[u8], String> {
    match reply.get("payload") {
        Some(Value::Binary(binary)) => Ok(binary.bytes),
        _ => Err("the server's answer to the login is malformed".to_owned()),
    }
}
