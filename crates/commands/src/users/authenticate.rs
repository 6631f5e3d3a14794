//! `authenticate`: the login with a TLS client certificate (MONGODB-X509). The name is the
//! certificate's subject, of a user of `$external`.

use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use crate::frame::metrics::{LoginMetrics, Metrics};
use crate::users::mechanisms;
use crate::users::sasl::{MechanismName, admit, refuse};
use quire_access::UserName;
use quire_access::scram::failed;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

/// The mechanism of this command.
#[derive(Clone, Copy)]
struct X509;

impl MechanismName for X509 {
    fn text(self) -> &'static str {
        "MONGODB-X509"
    }

    fn counts(self, metrics: &Metrics) -> &LoginMetrics {
        &metrics.x509
    }
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let db = cx.db.to_owned();
    log_in(cx, &db, body, false, reply)
}

/// Logs in, as a command or inside a `hello`.
pub fn log_in(
    cx: &mut Context<'_>,
    db: &str,
    body: Doc<'_>,
    speculative: bool,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let (mut mechanism, mut named) = (None, None);
    for arg in arguments("authenticate", body) {
        match arg.name() {
            "mechanism" => mechanism = Some(arg.string()?),
            "user" => named = Some(arg.string()?),
            "db" if speculative => {}
            _ => return Err(arg.unknown()),
        }
    }
    let mechanism = mechanism.ok_or_else(|| missing("authenticate", "mechanism"))?;
    if mechanism != X509.text() || !mechanisms::is_enabled(cx, mechanism) {
        // Logins with a password use other commands; here they fail like any login.
        let nobody = UserName::new(named.unwrap_or_default(), db);
        return Err(refuse(cx, &nobody, mechanism, failed()));
    }
    if db != "$external" {
        let text = "X.509 authentication must always use the $external database.";
        return Err(Error::new(ErrorCode::ProtocolError, text));
    }
    X509.counts(&cx.service.metrics).begin(speculative);
    let Some(subject) = cx.connection.info.certificate_subject.clone() else {
        let text = "No verified subject name available from client";
        let nobody = UserName::new(named.unwrap_or_default(), db);
        return Err(refuse(cx, &nobody, X509.text(), Error::new(failed().code(), text)));
    };
    let name = UserName::new(&subject, db);
    if named.is_some_and(|named| named != subject) {
        // The client knows its own certificate, so this reveals nothing about users.
        let text = "There is no x.509 client certificate matching the user.";
        return Err(refuse(cx, &name, X509.text(), Error::new(failed().code(), text)));
    }
    let Some(user) = cx.service.find_user(&name)? else {
        // The client has proved the name, so only the owner of the certificate learns that there is
        // no such user.
        let text = format!("Could not find user \"{subject}\" for db \"{db}\"");
        let error = Error::new(ErrorCode::UserNotFound, text);
        return Err(refuse(cx, &name, X509.text(), error));
    };
    admit(cx, &user, X509, speculative)?;
    reply.append("dbname", db).append("user", subject.as_str());
    Ok(())
}
