//! `saslStart` and `saslContinue`: a login by SCRAM, step by step. Its first step can be inside a
//! `hello`, which saves drivers a round trip. (Specification: "Driver Authentication".)
//!
//! A failure never says why: a name that does not exist has a constant salt of its own, and the
//! login fails at the same step as with a wrong password.

use crate::frame::args::{Arg, fields, missing};
use crate::frame::context::Context;
use crate::frame::log::{LogLine, Severity};
use crate::frame::login::{Login, Step};
use crate::frame::metrics::{LoginMetrics, Metrics};
use crate::frame::service::now_ms;
use crate::users::arguments::iterations;
use crate::users::{authenticate, mechanisms};
use quire_access::scram::{ClientFirst, Credential, failed};
use quire_access::{Mechanism, User, UserName, origin};
use quire_document::{Binary, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::time::{Duration, Instant};

/// How long the reply to a failed login is delayed, to slow down a client that guesses passwords.
const FAILURE_PAUSE: Duration = Duration::from_millis(10);
/// The longest delay, after many failures on one connection.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(2);
/// The characters of a name that the log shows.
const NAME_CHARACTERS_MAX: usize = 128;
/// The characters that the log shows of the name of a failed login if no user has the name.
const UNKNOWN_NAME_CHARACTERS: usize = 2;

/// The fields of `saslStart`.
struct Start<'a> {
    mechanism: &'a str,
    payload: &'a [u8],
    skips_empty: bool,
}

/// Runs the command `saslStart`.
pub fn start(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let start = parse_start(body)?;
    let db = cx.db.to_owned();
    begin(cx, &db, &start, false, reply)
}

/// Runs the first step inside a `hello`. Appends nothing if it fails or the attempt is not a login;
/// then the driver logs in with commands.
pub fn speculative(cx: &mut Context<'_>, attempt: Doc<'_>, reply: &mut DocWriter<'_>) {
    let db = attempt.get("db").and_then(|db| db.as_str());
    let mut done = Ok(());
    let answer = match attempt.first().map(|first| first.key()) {
        Some("saslStart") => DocBuf::build(|out| {
            let db = db.unwrap_or("admin").to_owned();
            done = parse_start(attempt).and_then(|start| begin(cx, &db, &start, true, out));
        }),
        Some("authenticate") => DocBuf::build(|out| {
            done = authenticate::log_in(cx, db.unwrap_or("$external"), attempt, true, out);
        }),
        _ => return,
    };
    // The login that the driver begins next reports the failure.
    if done.is_ok() {
        reply.append("speculativeAuthenticate", &answer);
    }
}

/// Runs the command `saslContinue`.
pub fn proceed(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut conversation, mut payload) = (None, None);
    for arg in fields("saslContinue", body).skip(1).filter(|arg| !is_generic(arg)) {
        match arg.name() {
            "conversationId" => conversation = Some(arg.integer()?),
            "payload" => payload = Some(bytes(&arg)?),
            _ => return Err(arg.unknown()),
        }
    }
    let conversation = conversation.ok_or_else(|| missing("saslContinue", "conversationId"))?;
    let payload = payload.ok_or_else(|| missing("saslContinue", "payload"))?;
    let Some(login) = cx.connection.login.take() else {
        let text = "No SASL session state found";
        return Err(Error::new(ErrorCode::ProtocolError, text));
    };
    if conversation != CONVERSATION {
        let text = "sasl: Mismatched conversation id";
        return Err(Error::new(ErrorCode::ProtocolError, text));
    }
    let Login { user, stored, mechanism, step, skips_empty, speculative } = *login;
    match step {
        Step::Proof(exchange) => {
            let proof = match exchange.finish(payload) {
                Ok(proof) => proof,
                Err(error) => return Err(refuse(cx, &user, mechanism.text(), error)),
            };
            // A decoy's proof cannot be correct, so the user is stored.
            let stored = stored.ok_or_else(failed)?;
            if skips_empty {
                admit(cx, &stored, mechanism, speculative)?;
            } else {
                let (stored, step) = (Some(stored), Step::Empty);
                let login = Login { user, stored, mechanism, step, skips_empty, speculative };
                cx.connection.login = Some(Box::new(login));
            }
            write_step(reply, skips_empty, proof.as_bytes());
        }
        Step::Empty if payload.is_empty() => {
            admit(cx, &stored.ok_or_else(failed)?, mechanism, speculative)?;
            write_step(reply, true, b"");
        }
        Step::Empty => return Err(refuse(cx, &user, mechanism.text(), failed())),
    }
    Ok(())
}

/// A connection has only one conversation at a time.
const CONVERSATION: i64 = 1;

fn begin(
    cx: &mut Context<'_>,
    db: &str,
    start: &Start<'_>,
    speculative: bool,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    cx.connection.login = None;
    let mechanism = mechanisms::scram(cx, start.mechanism).inspect_err(|error| {
        let name = shortened(start.mechanism, NAME_CHARACTERS_MAX);
        cx.connection.audit_login(&UserName::new("", db), &name, error.code().number());
    })?;
    mechanism.counts(&cx.service.metrics).begin(speculative);
    wait_for_turn(cx);
    let first = match ClientFirst::parse(start.payload) {
        Ok(first) => first,
        Err(error) => return Err(refuse(cx, &UserName::new("", db), mechanism.text(), error)),
    };
    let user = UserName::new(&first.user, db);
    let stored = cx.service.find_user(&user)?;
    let known = stored.as_ref().and_then(|stored| stored.credential(mechanism)).cloned();
    if speculative && stored.is_some() && known.is_none() {
        // The client guessed a mechanism that `saslSupportedMechs` in the same reply does not list:
        // it logs in again with one that is listed.
        return Err(failed());
    }
    let credential = known.unwrap_or_else(|| {
        let secret = &cx.service.access.secret;
        Credential::decoy(mechanism, secret, &user.id(), iterations(cx, mechanism))
    });
    let (exchange, answer) = first.answer(mechanism, credential)?;
    let (step, skips_empty) = (Step::Proof(Box::new(exchange)), start.skips_empty);
    cx.connection.login =
        Some(Box::new(Login { user, stored, mechanism, step, skips_empty, speculative }));
    write_step(reply, false, answer.as_bytes());
    Ok(())
}

/// Waits if many logins from the client's address have failed.
fn wait_for_turn(cx: &Context<'_>) {
    let Some(peer) = cx.connection.info.peer else { return };
    let failed = &cx.service.access.failed_logins;
    let pause = failed.pause(origin(peer.ip()), Instant::now());
    if !pause.is_zero() {
        // Ends early only with the operation itself.
        let _ = cx.interrupt.wait(Some(pause), || false);
    }
}

fn write_step(reply: &mut DocWriter<'_>, done: bool, payload: &[u8]) {
    reply.append("conversationId", CONVERSATION as i32).append("done", done);
    reply.append("payload", Value::Binary(Binary { subtype: 0, bytes: payload }));
}

fn parse_start(body: Doc<'_>) -> Result<Start<'_>> {
    let (mut mechanism, mut payload, mut skips_empty) = (None, None, false);
    for arg in fields("saslStart", body).skip(1).filter(|arg| !is_generic(arg)) {
        match arg.name() {
            "mechanism" => mechanism = Some(arg.string()?),
            "payload" => payload = Some(bytes(&arg)?),
            "options" => {
                let skip = arg.document()?.get("skipEmptyExchange");
                skips_empty = skip.and_then(|skip| skip.as_bool()).unwrap_or(false);
            }
            "autoAuthorize" | "db" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let mechanism = mechanism.ok_or_else(|| missing("saslStart", "mechanism"))?;
    let payload = payload.ok_or_else(|| missing("saslStart", "payload"))?;
    Ok(Start { mechanism, payload, skips_empty })
}

fn is_generic(arg: &Arg<'_>) -> bool {
    crate::frame::args::is_generic(arg.name().as_bytes())
}

fn bytes<'a>(arg: &Arg<'a>) -> Result<&'a [u8]> {
    match arg.value() {
        Value::Binary(binary) => Ok(binary.bytes),
        _ => Err(arg.wrong_type("binData")),
    }
}

/// Logs in a user who has proved the identity with the credentials of `user`, unless the user was
/// removed or got other credentials meanwhile, or the restrictions forbid this address.
pub fn admit(
    cx: &mut Context<'_>,
    user: &User,
    mechanism: impl MechanismName,
    speculative: bool,
) -> Result<()> {
    if let Some(known) = &cx.connection.identity
        && known.name != user.name
    {
        let text =
            "Each client connection may only be authenticated once. Previously authenticated as: ";
        return Err(Error::location(5626701, format!("{text}{}", known.name)));
    }
    let now = cx.service.identify(&user.name)?.filter(|(now, _)| now.is_still(user));
    let identity = now.map(|(_, identity)| identity);
    let Some(identity) = identity.filter(|known| known.may_come_from(&cx.connection.info)) else {
        return Err(refuse(cx, &user.name, mechanism.text(), failed()));
    };
    log(cx, 20250, "Successful authentication", &user.name, mechanism.text());
    mechanism.counts(&cx.service.metrics).succeed(speculative);
    cx.connection.failed_logins = 0;
    cx.connection.identity = Some(std::sync::Arc::new(identity));
    cx.connection.login_ms = now_ms();
    cx.connection.audit_login(&user.name, mechanism.text(), 0);
    Ok(())
}

/// Logs and counts a failed login, waits, and returns `error`, which must not reveal why the login
/// failed.
pub fn refuse(cx: &mut Context<'_>, user: &UserName, mechanism: &str, error: Error) -> Error {
    let (user, mechanism) = (shown_name(cx, user), shortened(mechanism, NAME_CHARACTERS_MAX));
    log(cx, 5286307, "Failed to authenticate", &user, &mechanism);
    cx.connection.audit_login(&user, &mechanism, error.code().number());
    if let Some(peer) = cx.connection.info.peer {
        cx.service.access.failed_logins.note(origin(peer.ip()), Instant::now());
    }
    let failures = &mut cx.connection.failed_logins;
    *failures = failures.saturating_add(1);
    let pause = FAILURE_PAUSE.saturating_mul(1 << (*failures).min(8)).min(FAILURE_PAUSE_MAX);
    // Ends early only with the operation itself.
    let _ = cx.interrupt.wait(Some(pause), || false);
    error
}

/// A mechanism for the log and the counters.
pub trait MechanismName: Copy {
    /// Returns the name on the wire.
    fn text(self) -> &'static str;

    /// Returns the counters of the mechanism.
    fn counts(self, metrics: &Metrics) -> &LoginMetrics;
}

impl MechanismName for Mechanism {
    fn text(self) -> &'static str {
        self.name()
    }

    fn counts(self, metrics: &Metrics) -> &LoginMetrics {
        match self {
            Mechanism::Sha1 => &metrics.scram_sha1,
            Mechanism::Sha256 => &metrics.scram_sha256,
        }
    }
}

/// Returns the name of a failed login in the form for the log: at most [`NAME_CHARACTERS_MAX`]
/// characters, without control characters. If no user has the name, only its beginning, because it
/// may be a password that was typed in the wrong field. The subject of a certificate is not a
/// secret.
fn shown_name(cx: &Context<'_>, given: &UserName) -> UserName {
    let is_proved = cx.connection.info.certificate_subject.as_deref() == Some(&given.user);
    let is_known = is_proved || matches!(cx.service.find_user(given), Ok(Some(_)));
    let characters = if is_known { NAME_CHARACTERS_MAX } else { UNKNOWN_NAME_CHARACTERS };
    UserName::new(&shortened(&given.user, characters), &shortened(&given.db, NAME_CHARACTERS_MAX))
}

/// Returns the first `characters_max` characters of a text, with control characters escaped, and
/// its length if it is longer.
fn shortened(text: &str, characters_max: usize) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(characters_max) {
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    if text.chars().nth(characters_max).is_some() {
        shown.push_str(&format!("... ({} bytes)", text.len()));
    }
    shown
}

fn log(cx: &Context<'_>, id: u32, message: &'static str, user: &UserName, mechanism: &str) {
    let attributes = DocBuf::build(|out| {
        out.append("user", &user.user).append("db", &user.db).append("mechanism", mechanism);
        out.append_some("client", cx.connection.remote().as_deref().map(Value::String));
    });
    let context = cx.connection.name();
    cx.service.log().write(LogLine {
        severity: Severity::Info,
        component: "ACCESS",
        id,
        context,
        message,
        attributes,
    });
}
