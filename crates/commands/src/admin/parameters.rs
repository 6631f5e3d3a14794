//! `getParameter`, `setParameter` and the table of server parameters. A parameter stands in the
//! table if something here reads it, or if tools read it and its value tells the truth.

use crate::args::{Arg, fields, is_generic, whole};
use crate::context::Context;
use quire_document::{Doc, DocWriter, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// The name of the parameter with a fast path.
const SLOW_MS: &str = "slowMs";

/// How long the past is kept.
const HISTORY_SECS: &str = "minSnapshotHistoryWindowInSeconds";

/// When a parameter may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settable {
    /// At the start and later.
    Always,
    /// At the start only.
    Startup,
    /// Never: it tells how this server is.
    Never,
}

/// The type, default and range of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A boolean.
    Bool(bool),
    /// A 32-bit number, with its least and greatest value.
    Int(i32, i32, i32),
    /// A 64-bit number, with its least and greatest value.
    Long(i64, i64, i64),
    /// A text.
    Text(&'static str),
    /// A list of texts.
    Texts(&'static [&'static str]),
}

/// One server parameter.
pub struct Parameter {
    /// MongoDB's name.
    pub name: &'static str,
    /// Type, default, range.
    pub default: Kind,
    /// When it may be set.
    pub settable: Settable,
    /// One sentence.
    pub summary: &'static str,
}

const fn row(
    name: &'static str,
    default: Kind,
    settable: Settable,
    summary: &'static str,
) -> Parameter {
    Parameter { name, default, settable, summary }
}

use Kind::{Bool, Int, Long, Text, Texts};
use Settable::{Always, Never, Startup};

/// Every parameter, by name.
pub static PARAMETERS: &[Parameter] = &[
    row(
        "authenticationMechanisms",
        Texts(&["SCRAM-SHA-1", "SCRAM-SHA-256", "MONGODB-X509"]),
        Startup,
        "Mechanisms that logins may use.",
    ),
    row(
        "cursorTimeoutMillis",
        Long(600_000, i64::MIN, i64::MAX),
        Always,
        "Idle time after which a cursor is closed.",
    ),
    row("enableTestCommands", Bool(false), Startup, "Turns on commands for tests."),
    row(
        "featureCompatibilityVersion",
        Text("8.2"),
        Never,
        "The version whose behaviour is followed.",
    ),
    row(
        "internalQueryExecYieldIterations",
        Int(1000, i32::MIN, i32::MAX),
        Always,
        "Documents between two checks for interruption.",
    ),
    row(
        "internalQueryFacetBufferSizeBytes",
        Int(104_857_600, 1, i32::MAX),
        Always,
        "Memory limit of $facet.",
    ),
    row(
        "internalQueryMaxBlockingSortMemoryUsageBytes",
        Int(104_857_600, 0, i32::MAX),
        Always,
        "Memory limit of a sort.",
    ),
    row(
        "internalDocumentSourceGroupMaxMemoryBytes",
        Long(104_857_600, 1, i64::MAX),
        Always,
        "Memory limit of $group.",
    ),
    row(
        "localLogicalSessionTimeoutMinutes",
        Int(30, 1, i32::MAX),
        Startup,
        "Idle time after which a session ends.",
    ),
    row("logLevel", Int(0, 0, 5), Always, "How much is logged."),
    row(
        "maxIndexBuildMemoryUsageMegabytes",
        Int(200, 50, i32::MAX),
        Always,
        "Memory limit of an index build.",
    ),
    row(
        "maxTransactionLockRequestTimeoutMillis",
        Int(5, i32::MIN, i32::MAX),
        Always,
        "How long a transaction waits for a lock.",
    ),
    row(
        HISTORY_SECS,
        Int(60, 0, i32::MAX),
        Always,
        "How long a snapshot read may ask for a time of the past, if not much is written.",
    ),
    row("notablescan", Bool(false), Always, "Refuses queries without an index."),
    row("quiet", Bool(false), Always, "Logs less."),
    row("requireApiVersion", Bool(false), Always, "Refuses commands without apiVersion."),
    row("scramIterationCount", Int(10_000, 5000, i32::MAX), Always, "Iterations of SCRAM-SHA-1."),
    row(
        "scramSHA256IterationCount",
        Int(15_000, 5000, i32::MAX),
        Always,
        "Iterations of SCRAM-SHA-256.",
    ),
    row(SLOW_MS, Long(100, -1, i64::MAX), Always, "Operations that take longer are logged."),
    row(
        "transactionLifetimeLimitSeconds",
        Int(60, 1, i32::MAX),
        Always,
        "How long a transaction may be open.",
    ),
    row("ttlMonitorEnabled", Bool(true), Always, "Removes expired documents."),
    row("ttlMonitorSleepSecs", Int(60, 1, i32::MAX), Always, "Time between two removals."),
];

/// The parameters' values.
pub struct Parameters {
    values: RwLock<Vec<ValueBuf>>,
    /// `slowMs`, which every operation looks at.
    slow_ms: AtomicI64,
}

impl Parameters {
    /// The defaults, changed by what `--setParameter` said.
    pub fn new(given: &[(String, String)]) -> Result<Self> {
        let values = PARAMETERS.iter().map(|row| row.default.value()).collect();
        let parameters = Parameters { values: RwLock::new(values), slow_ms: AtomicI64::new(100) };
        for (name, text) in given {
            let at = position(name).ok_or_else(|| {
                Error::bad_value(format!("Illegal --setParameter parameter: \"{name}\""))
            })?;
            if PARAMETERS[at].settable == Never {
                return Err(Error::bad_value(format!(
                    "Cannot use --setParameter to set \"{name}\""
                )));
            }
            let value = PARAMETERS[at].default.parse(text).ok_or_else(|| {
                Error::bad_value(format!("Bad value for parameter \"{name}\": {text}"))
            })?;
            parameters.put(at, value);
        }
        Ok(parameters)
    }

    /// The value of a parameter that is in the table.
    pub fn get(&self, name: &str) -> Option<ValueBuf> {
        let at = position(name)?;
        self.values.read().unwrap_or_else(PoisonError::into_inner).get(at).cloned()
    }

    /// A boolean parameter.
    pub fn flag(&self, name: &str) -> bool {
        self.read(name, |value| value.as_bool()).unwrap_or(false)
    }

    /// A numeric parameter.
    pub fn number(&self, name: &str) -> i64 {
        self.read(name, whole).unwrap_or(0)
    }

    fn read<T>(&self, name: &str, read: impl Fn(Value<'_>) -> Option<T>) -> Option<T> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        values.get(position(name)?).and_then(|value| read(value.as_value()))
    }

    /// Whether commands must name an API version.
    pub fn require_api_version(&self) -> bool {
        self.flag("requireApiVersion")
    }

    /// Operations that take longer, in milliseconds, are logged.
    pub fn slow_ms(&self) -> i64 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    /// What `profile` sets: any number, also a negative one.
    pub fn set_slow_ms(&self, slow_ms: i32) {
        if let Some(at) = position(SLOW_MS) {
            self.put(at, ValueBuf::new(i64::from(slow_ms)));
        }
    }

    /// How long a snapshot read may ask for a time of the past.
    pub fn history_window(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.number(HISTORY_SECS)).unwrap_or(0))
    }

    fn put(&self, at: usize, value: ValueBuf) {
        if PARAMETERS.get(at).is_some_and(|row| row.name == SLOW_MS) {
            self.slow_ms.store(whole(value.as_value()).unwrap_or(100), Ordering::Relaxed);
        }
        if let Some(slot) = self.values.write().unwrap_or_else(PoisonError::into_inner).get_mut(at)
        {
            *slot = value;
        }
    }
}

impl Kind {
    fn value(&self) -> ValueBuf {
        match *self {
            Bool(flag) => ValueBuf::new(flag),
            Int(number, ..) => ValueBuf::new(number),
            Long(number, ..) => ValueBuf::new(number),
            Text(text) => ValueBuf::new(text),
            Texts(texts) => texts.iter().copied().collect::<quire_document::ArrayBuf>().into(),
        }
    }

    /// A value of `--setParameter name=text`.
    fn parse(&self, text: &str) -> Option<ValueBuf> {
        Some(match self {
            Bool(_) => ValueBuf::new(
                matches!(text, "true" | "1")
                    .then_some(true)
                    .or_else(|| matches!(text, "false" | "0").then_some(false))?,
            ),
            Int(_, least, most) => {
                let number: i32 = text.parse().ok()?;
                (*least..=*most).contains(&number).then(|| ValueBuf::new(number))?
            }
            Long(_, least, most) => {
                let number: i64 = text.parse().ok()?;
                (*least..=*most).contains(&number).then(|| ValueBuf::new(number))?
            }
            Text(_) => ValueBuf::new(text),
            Texts(_) => text.split(',').collect::<quire_document::ArrayBuf>().into(),
        })
    }

    /// A value of the command `setParameter`.
    fn accept(&self, name: &str, value: Value<'_>) -> Result<ValueBuf> {
        match self {
            Bool(_) => Ok(ValueBuf::new(truth(value))),
            Int(_, least, most) => {
                let number = bounded(name, value, i64::from(*least), i64::from(*most))?;
                Ok(ValueBuf::new(number as i32))
            }
            Long(_, least, most) => Ok(ValueBuf::new(bounded(name, value, *least, *most)?)),
            Text(_) if value.as_str().is_some() => Ok(ValueBuf::new(value)),
            Texts(_) if value.as_array().is_some() => Ok(ValueBuf::new(value)),
            Text(_) | Texts(_) => Err(Error::bad_value(format!(
                "Failed setting {name}: wrong type {}",
                value.type_name()
            ))),
        }
    }
}

fn bounded(name: &str, value: Value<'_>, least: i64, most: i64) -> Result<i64> {
    let number = whole(value).ok_or_else(|| {
        Error::bad_value(format!("Failed setting {name}: Unable to coerce value to integral type"))
    })?;
    if number < least {
        let text = format!(
            "Invalid value for parameter {name}: {number} is not greater than or equal to {least}"
        );
        return Err(Error::bad_value(text));
    }
    if number > most {
        let text = format!(
            "Invalid value for parameter {name}: {number} is not less than or equal to {most}"
        );
        return Err(Error::bad_value(text));
    }
    Ok(number)
}

/// Everything but false, zero, null and undefined is true.
pub(crate) fn truth(value: Value<'_>) -> bool {
    match value {
        Value::Bool(flag) => flag,
        Value::Null | Value::Undefined => false,
        other => whole(other) != Some(0),
    }
}

fn position(name: &str) -> Option<usize> {
    PARAMETERS.iter().position(|row| row.name == name)
}

/// `getParameter`.
pub fn get(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let first = body.first().map(|first| first.value());
    let (mut all, mut details) = (matches!(first, Some(Value::String("*"))), false);
    let mut set_at = None;
    if let Some(Value::Document(options)) = first {
        for arg in fields("getParameter", options) {
            match arg.name() {
                "showDetails" | "allParameters" | "setAt" if arg.is_null() => {}
                "showDetails" => details = arg.safe_bool()?,
                "allParameters" => all = arg.safe_bool()?,
                "setAt" => set_at = Some(time_of_setting(&arg)?),
                _ => return Err(arg.unknown()),
            }
        }
    }
    let shown = |row: &Parameter| match set_at {
        None => true,
        Some(Always) => row.settable == Always,
        Some(_) => row.settable != Never,
    };
    let mut found = false;
    for row in PARAMETERS {
        let named = || body.iter().skip(1).any(|element| element.key() == row.name);
        if !(all || named()) || !shown(row) {
            continue;
        }
        let Some(value) = cx.service.parameters.get(row.name) else { continue };
        found = true;
        if row.name == "featureCompatibilityVersion" {
            reply.document(row.name).append("version", &value);
        } else if details {
            let mut entry = reply.document(row.name);
            entry.append("value", &value);
            entry.append("settableAtRuntime", row.settable == Always);
            entry.append("settableAtStartup", row.settable != Never);
        } else {
            reply.append(row.name, &value);
        }
    }
    if found {
        return Ok(());
    }
    Err(Error::new(ErrorCode::InvalidOptions, "no option found to get"))
}

/// Which parameters `setAt` asks for: those that may be set at that time.
fn time_of_setting(arg: &Arg<'_>) -> Result<Settable> {
    match arg.string()? {
        "runtime" => Ok(Always),
        "startup" => Ok(Startup),
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field 'getParameter.setAt' is not a valid value."
        ))),
    }
}

/// `setParameter`.
pub fn set(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let wanted: Vec<_> =
        body.iter().skip(1).filter(|element| !is_generic(element.key_bytes())).collect();
    if wanted.is_empty() {
        let text = "no option found to set, use help:true to see options ";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let mut changes = Vec::new();
    for element in wanted {
        let name = element.key();
        let Some(at) = position(name) else {
            let text = format!(
                "attempted to set unrecognized parameter [{name}], use help:true to see options "
            );
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        };
        if PARAMETERS[at].settable != Always {
            let text = format!("not allowed to change [{name}] at runtime");
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        changes.push((at, PARAMETERS[at].default.accept(name, element.value())?));
    }
    let was = changes.last().and_then(|(at, _)| cx.service.parameters.get(PARAMETERS[*at].name));
    for (at, value) in changes {
        cx.service.parameters.put(at, value);
    }
    if let Some(was) = was {
        reply.append("was", &was);
    }
    Ok(())
}
