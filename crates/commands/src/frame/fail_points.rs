//! Fail points: faults for tests, which `configureFailPoint` switches. They exist only with
//! `enableTestCommands`. (MongoDB wiki: "The failCommand fail point".)

use crate::frame::args::{Arg, fields, whole};
use crate::frame::context::Context;
use crate::frame::reply;
use crate::frame::service::application_name;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorClass, ErrorCode, Label, Result};
use quire_storage::Interruption;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Fails a command before it runs, or adds a write concern error to its reply.
pub const FAIL_COMMAND: &str = "failCommand";
/// Fails a getMore after it has taken its cursor.
pub const FAIL_GET_MORE: &str = "failGetMoreAfterCursorCheckout";
/// Fails a write with a transaction number before it commits, or drops its reply.
pub const FAIL_WRITE: &str = "onPrimaryTransactionalWrite";

/// Makes every operation with a time limit exceed it at once.
const TIME_ALWAYS_OUT: &str = "maxTimeAlwaysTimeOut";
/// Disables the time limits of all operations.
const TIME_NEVER_OUT: &str = "maxTimeNeverTimeOut";

/// Makes pipelines run as written, without rewrites.
const NO_OPTIMIZATION: &str = "disablePipelineOptimization";

const NAMES: [&str; 6] =
    [FAIL_COMMAND, FAIL_GET_MORE, FAIL_WRITE, TIME_ALWAYS_OUT, TIME_NEVER_OUT, NO_OPTIMIZATION];
const ERROR_LABELS: &str = "errorLabels";

/// The largest `data` of a fail point in bytes. Each command searches the list of command names,
/// and the labels and details are in each reply.
const DATA_BYTES_MAX: usize = 64 * 1024;

/// All fail points of a server.
#[derive(Default)]
pub struct FailPoints {
    /// True if any fail point is on. While none is, a command reads only this.
    any: AtomicBool,
    points: [Mutex<FailPoint>; NAMES.len()],
}

#[derive(Default)]
struct FailPoint {
    mode: Mode,
    fault: Arc<Fault>,
    /// How many times it has triggered.
    entered: i64,
}

/// When a fail point triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mode {
    #[default]
    Off,
    AlwaysOn,
    /// This number of times.
    Times(i64),
    /// Always, after this number of chances has passed.
    Skip(i64),
    /// With this probability.
    Sometimes(f64),
}

/// The fault and the commands to which it applies: the fail point's `data`.
#[derive(Debug, Default)]
pub struct Fault {
    commands: Vec<String>,
    all_commands: bool,
    app_name: Option<String>,
    thread_name: Option<String>,
    namespace: Option<String>,
    close_connection: bool,
    fail_before_commit: Option<ErrorCode>,
    error_code: Option<ErrorCode>,
    error_details: DocBuf,
    block: Option<Duration>,
    write_concern_error: Option<DocBuf>,
    /// `{errorLabels: [..]}`, which is added to a reply.
    labels: Option<DocBuf>,
}

impl FailPoints {
    /// Switches a fail point. Returns how many times it has triggered so far.
    ///
    /// # Errors
    /// `FailPointSetFailed` for an unknown name; `BadValue` for data of more than `DATA_BYTES_MAX`;
    /// the errors of the mode and the data.
    pub fn configure(&self, name: &str, mode: Value<'_>, data: Doc<'_>) -> Result<i64> {
        let Some(at) = NAMES.iter().position(|known| *known == name) else {
            let text = format!("the fail point {name} is not known");
            return Err(Error::new(ErrorCode::FailPointSetFailed, text));
        };
        if data.len() > DATA_BYTES_MAX {
            let text = format!("'data' of a fail point may have at most {DATA_BYTES_MAX} bytes");
            return Err(Error::bad_value(text));
        }
        let (mode, fault) = (Mode::parse(mode)?, Arc::new(Fault::parse(name, data)?));
        let count = {
            let mut point = self.points[at].lock().unwrap_or_else(PoisonError::into_inner);
            (point.mode, point.fault) = (mode, fault);
            point.entered
        };
        let on = |point: &Mutex<FailPoint>| {
            point.lock().unwrap_or_else(PoisonError::into_inner).mode != Mode::Off
        };
        self.any.store(self.points.iter().any(on), Ordering::Release);
        Ok(count)
    }

    /// Returns the fault to inject into this command, if any. Each call is one chance to trigger.
    pub fn strike(&self, name: &str, cx: &Context<'_>, body: Doc<'_>) -> Option<Arc<Fault>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let at = NAMES.iter().position(|known| *known == name)?;
        let mut point = self.points[at].lock().unwrap_or_else(PoisonError::into_inner);
        let meant = name != FAIL_COMMAND || point.fault.names(cx);
        if point.mode == Mode::Off || !meant || !point.fault.concerns(cx, body) {
            return None;
        }
        point.mode.strikes(quire_storage::rng::word).then(|| {
            point.entered += 1;
            Arc::clone(&point.fault)
        })
    }
}

impl Mode {
    fn parse(value: Value<'_>) -> Result<Mode> {
        let options = match value {
            Value::String("off") => return Ok(Mode::Off),
            Value::String("alwaysOn") => return Ok(Mode::AlwaysOn),
            Value::String(other) => {
                return Err(Error::bad_value(format!("unknown mode of a fail point: {other}")));
            }
            Value::Document(options) => options,
            other => {
                let found = other.type_name();
                let text = format!("'mode' must be a string or an object, not {found}");
                return Err(Error::type_mismatch(text));
            }
        };
        let Some((name, value)) = options.fields().next().filter(|_| options.iter().count() == 1)
        else {
            let text = "'mode' must have one of 'times', 'skip' and 'activationProbability'";
            return Err(Error::bad_value(text));
        };
        match name {
            "times" => match Mode::chances(name, value)? {
                0 => Ok(Mode::Off),
                chances => Ok(Mode::Times(chances)),
            },
            "skip" => Ok(Mode::Skip(Mode::chances(name, value)?)),
            "activationProbability" => match value {
                Value::Double(share) if (0.0..=1.0).contains(&share) => Ok(Mode::Sometimes(share)),
                Value::Int32(share @ 0..=1) => Ok(Mode::Sometimes(share.into())),
                Value::Int64(share @ 0..=1) => Ok(Mode::Sometimes(share as f64)),
                _ => Err(Error::bad_value("'activationProbability' must be between 0.0 and 1.0")),
            },
            _ => Err(Error::bad_value(format!("unknown mode of a fail point: {name}"))),
        }
    }

    fn chances(name: &str, value: Value<'_>) -> Result<i64> {
        match whole(value) {
            Some(number) if (0..=i64::from(i32::MAX)).contains(&number) => Ok(number),
            Some(_) => {
                Err(Error::bad_value(format!("'{name}' must be between 0 and {}", i32::MAX)))
            }
            None => Err(Error::type_mismatch(format!("'{name}' must be a number"))),
        }
    }

    /// Counts one chance. Returns true if the fail point triggers.
    fn strikes(&mut self, random: impl FnOnce() -> u64) -> bool {
        match self {
            Mode::Off => false,
            Mode::AlwaysOn | Mode::Skip(0) => true,
            Mode::Times(left) => {
                *left -= 1;
                if *left == 0 {
                    *self = Mode::Off;
                }
                true
            }
            Mode::Skip(left) => {
                *left -= 1;
                false
            }
            Mode::Sometimes(share) => (random() as f64 / u64::MAX as f64) < *share,
        }
    }
}

impl Fault {
    fn parse(point: &str, data: Doc<'_>) -> Result<Fault> {
        let mut fault = Fault { close_connection: point == FAIL_WRITE, ..Fault::default() };
        let (mut blocks, mut block_ms) = (false, None);
        for arg in fields("data", data) {
            match arg.name() {
                "failCommands" => fault.commands = texts(&arg)?,
                "failAllCommands" => fault.all_commands = arg.bool()?,
                // No client of this server is another member of a cluster, so these flags exclude
                // none.
                "failInternalCommands" | "failLocalClients" => drop(arg.bool()?),
                "appName" => fault.app_name = Some(arg.string()?.to_owned()),
                "threadName" => fault.thread_name = Some(arg.string()?.to_owned()),
                "namespace" => fault.namespace = Some(arg.string()?.to_owned()),
                "closeConnection" => fault.close_connection = arg.bool()?,
                "errorCode" => fault.error_code = Some(error_code(&arg)?),
                "failBeforeCommitExceptionCode" if point == FAIL_WRITE => {
                    fault.fail_before_commit = Some(error_code(&arg)?);
                }
                "errorExtraInfo" => fault.error_details = arg.document()?.to_owned(),
                ERROR_LABELS => {
                    let labels = texts(&arg)?;
                    fault.labels = Some(DocBuf::build(|writer| {
                        let mut list = writer.array(ERROR_LABELS);
                        labels.iter().for_each(|label| {
                            list.push(label.as_str());
                        });
                    }));
                }
                "blockConnection" => blocks = arg.bool()?,
                "blockTimeMS" => block_ms = Some(arg.integer_from(0)? as u64),
                "writeConcernError" => {
                    fault.write_concern_error = Some(arg.document()?.to_owned());
                }
                _ => return Err(arg.unknown()),
            }
        }
        fault.block = match (blocks, block_ms) {
            (true, None) => {
                let text = "must specify 'blockTimeMS' when 'blockConnection' is true";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            (true, Some(ms)) => Some(Duration::from_millis(ms)),
            (false, _) => None,
        };
        Ok(fault)
    }

    /// Returns true if `failCommands` contains the command, by any of its names.
    fn names(&self, cx: &Context<'_>) -> bool {
        let command = cx.command;
        let named = |name: &String| {
            name == command.name || command.aliases.iter().any(|alias| name == alias)
        };
        !command.outside_fail_points && (self.all_commands || self.commands.iter().any(named))
    }

    /// Returns true if the fault applies to this client and this namespace.
    fn concerns(&self, cx: &Context<'_>, body: Doc<'_>) -> bool {
        let unlike = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_some_and(|wanted| Some(wanted) != found)
        };
        let namespace = || {
            let first = body.first().and_then(|first| first.value().as_str());
            let collection = first.or_else(|| body.get("collection")?.as_str())?;
            Some(format!("{}.{collection}", cx.db))
        };
        // The first hello contains the name itself.
        let greeting = || application_name(body.get("client")?.as_document()?);
        let app_name = || cx.connection.app_name().or_else(greeting);
        (self.app_name.is_none() || !unlike(&self.app_name, app_name()))
            && !unlike(&self.thread_name, Some(cx.connection.name()))
            && (self.namespace.is_none() || !unlike(&self.namespace, namespace().as_deref()))
    }

    /// Injects the fault before the command: blocks, closes the connection, or fails.
    pub fn before(&self, cx: &mut Context<'_>) -> Result<()> {
        if let Some(block) = self.block {
            cx.interrupt.wait(Some(block), || false).map_err(reply::from_interruption)?;
        }
        if self.close_connection {
            cx.outcome.hang_up = true;
            let text = "the fail point closes the connection";
            return Err(Error::new(ErrorCode::FailPointEnabled, text));
        }
        let Some(code) = self.error_code else { return Ok(()) };
        let text = format!("Failing command via '{FAIL_COMMAND}' failpoint");
        let mut details = self.error_details.clone();
        if let Some(labels) = &self.labels {
            details = DocBuf::build(|writer| {
                writer.append_all(details.as_doc()).append_all(labels.as_doc());
            });
        }
        let error = Error::new(code, text);
        Err(if details.as_doc().is_empty() {
            error
        } else {
            error.with_details(details.into_bytes())
        })
    }

    /// Appends the injected write concern error, with its own labels or else those of its code.
    /// Returns false if there is none.
    pub fn after(&self, retryable: bool, reply: &mut DocWriter<'_>) -> bool {
        let Some(error) = &self.write_concern_error else { return false };
        reply.append("writeConcernError", error);
        if let Some(labels) = &self.labels {
            reply.append_all(labels.as_doc());
        } else if retryable && is_retriable(error.as_doc()) {
            reply.array(ERROR_LABELS).push(Label::RetryableWriteError.as_str());
        }
        true
    }
}

impl Context<'_> {
    /// Injects the fault of a retryable write: the connection closes after the command, and the
    /// write fails before its commit or continues.
    pub fn meet_write_fault(&self) -> Result<()> {
        let struck = self.service.fail_points.strike(FAIL_WRITE, self, Doc::empty());
        let Some(fault) = struck else { return Ok(()) };
        self.write_hangs_up.set(fault.close_connection);
        let text = format!("Failing a write before its commit via '{FAIL_WRITE}' failpoint");
        fault.fail_before_commit.map_or(Ok(()), |code| Err(Error::new(code, text)))
    }
}

impl Context<'_> {
    /// Returns true if a fail point disables the rewriting of pipelines.
    pub fn keeps_pipelines(&self) -> bool {
        self.service.fail_points.strike(NO_OPTIMIZATION, self, Doc::empty()).is_some()
    }

    /// Makes the command's time limit expire, or removes it, if a fail point says so.
    pub fn meet_time_fault(&self, body: Doc<'_>) -> Result<()> {
        let fail_points = &self.service.fail_points;
        if fail_points.strike(TIME_NEVER_OUT, self, body).is_some() {
            self.interrupt.set_deadline(None);
        }
        match fail_points.strike(TIME_ALWAYS_OUT, self, body) {
            Some(_) => Err(reply::from_interruption(Interruption::DeadlineExceeded)),
            None => Ok(()),
        }
    }
}

/// Returns true if a driver may repeat a write with this write concern error.
fn is_retriable(error: Doc<'_>) -> bool {
    let code = error.get("code").and_then(|code| code.as_number()?.exact_i64());
    let code = code.and_then(|code| i32::try_from(code).ok()).map(ErrorCode::location);
    code.is_some_and(|code| code.is_a(ErrorClass::RetriableError))
}

fn error_code(arg: &Arg<'_>) -> Result<ErrorCode> {
    let number = i32::try_from(arg.integer()?)
        .map_err(|_| Error::bad_value(format!("'{}' is out of range", arg.name())))?;
    Ok(ErrorCode::location(number))
}

fn texts(arg: &Arg<'_>) -> Result<Vec<String>> {
    let text = |value: Value<'_>| value.as_str().map(str::to_owned);
    let found: Option<Vec<String>> = arg.array()?.iter().map(text).collect();
    found.ok_or_else(|| Error::type_mismatch(format!("'{}' must hold strings only", arg.name())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn mode(text: DocBuf) -> Result<Mode> {
        Mode::parse(text.get("mode").unwrap_or(Value::Null))
    }

    fn struck(mut mode: Mode, chances: usize) -> Vec<bool> {
        (0..chances).map(|_| mode.strikes(|| u64::MAX / 2)).collect()
    }

    #[test]
    fn modes_strike_as_often_as_they_say() {
        assert_eq!(struck(Mode::Off, 2), [false, false]);
        assert_eq!(struck(Mode::AlwaysOn, 2), [true, true]);
        assert_eq!(struck(Mode::Times(2), 4), [true, true, false, false]);
        assert_eq!(struck(Mode::Skip(2), 4), [false, false, true, true]);
        assert_eq!(struck(Mode::Sometimes(0.4), 2), [false, false]);
        assert_eq!(struck(Mode::Sometimes(0.6), 2), [true, true]);
    }

    #[test]
    fn modes_are_read_and_refused() {
        assert_eq!(mode(doc! { "mode": "alwaysOn" }).ok(), Some(Mode::AlwaysOn));
        assert_eq!(mode(doc! { "mode": { "times": 0 } }).ok(), Some(Mode::Off));
        assert_eq!(mode(doc! { "mode": { "times": 3.0 } }).ok(), Some(Mode::Times(3)));
        assert_eq!(mode(doc! { "mode": { "skip": 1i64 } }).ok(), Some(Mode::Skip(1)));
        for refused in [
            doc! { "mode": "on" },
            doc! { "mode": { "times": -1 } },
            doc! { "mode": { "times": 1, "skip": 1 } },
            doc! { "mode": {} },
            doc! { "mode": { "activationProbability": 1.5 } },
        ] {
            assert_eq!(mode(refused).map_err(|error| error.code()), Err(ErrorCode::BadValue));
        }
        assert_eq!(mode(doc! {}).map_err(|error| error.code()), Err(ErrorCode::TypeMismatch));
    }

    #[test]
    fn data_is_checked_when_it_is_given() {
        let code = |data: DocBuf| {
            Fault::parse(FAIL_COMMAND, data.as_doc()).map_err(|error| error.code()).err()
        };
        assert_eq!(code(doc! { "blockConnection": true }), Some(ErrorCode::InvalidOptions));
        assert_eq!(code(doc! { "failCommands": "find" }), Some(ErrorCode::TypeMismatch));
        assert_eq!(code(doc! { "failCommands": [1] }), Some(ErrorCode::TypeMismatch));
        assert_eq!(code(doc! { "errorCodes": 1 }), Some(ErrorCode::IDLUnknownField));
    }
}
