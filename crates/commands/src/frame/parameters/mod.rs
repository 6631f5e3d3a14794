//! The values of the server parameters. The commands that read and set them are in
//! `admin/parameters.rs`.

mod cached;
pub mod log_verbosity;
pub mod table;

use crate::frame::args::whole;
use crate::frame::parameters::cached::Cached;
use crate::frame::parameters::table::ParameterKind::{
    self, Bool, Int, LogLevels, Long, Text, Texts,
};
use crate::frame::parameters::table::Settable::Never;
use crate::frame::parameters::table::{
    BUILD_MEGABYTES, HISTORY_SECS, PARAMETERS, SLOW_MS, TEXT_BYTES_MAX,
};
use quire_collections::Store;
use quire_document::{Doc, Value, ValueBuf, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::expression::is_true;
use quire_storage::CommitOptions;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The versions of MongoDB that `setFeatureCompatibilityVersion` accepts.
pub const FEATURE_COMPATIBILITY: [&str; 2] = ["8.0", "8.2"];

/// The name of the parameter that shows it, and of the stored setting.
pub const FEATURE_COMPATIBILITY_NAME: &str = "featureCompatibilityVersion";

/// The parameters' values.
pub struct Parameters {
    values: RwLock<Vec<ValueBuf>>,
    /// The copies that every operation reads.
    pub cached: Cached,
    /// True if every command is logged; `every_write` is the same for statements of writes.
    every_command: AtomicBool,
    every_write: AtomicBool,
}

impl Parameters {
    /// Returns the defaults, changed by the values of `--setParameter`.
    pub fn new(given: &[(String, String)]) -> Result<Self> {
        let values: Vec<ValueBuf> = PARAMETERS.iter().map(|row| row.default.value()).collect();
        let cached = Cached::default();
        for (row, value) in PARAMETERS.iter().zip(&values) {
            cached.note(row.name, value.as_value());
        }
        let parameters = Parameters {
            values: RwLock::new(values),
            cached,
            every_command: AtomicBool::new(false),
            every_write: AtomicBool::new(false),
        };
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

    /// Returns the value of a parameter that is in the table.
    pub fn get(&self, name: &str) -> Option<ValueBuf> {
        let at = position(name)?;
        self.values.read().unwrap_or_else(PoisonError::into_inner).get(at).cloned()
    }

    /// Returns a boolean parameter.
    pub fn flag(&self, name: &str) -> bool {
        self.read(name, |value| value.as_bool()).unwrap_or(false)
    }

    /// Returns a numeric parameter.
    pub fn number(&self, name: &str) -> i64 {
        self.read(name, whole).unwrap_or(0)
    }

    fn read<T>(&self, name: &str, read: impl Fn(Value<'_>) -> Option<T>) -> Option<T> {
        let values = self.values.read().unwrap_or_else(PoisonError::into_inner);
        values.get(position(name)?).and_then(|value| read(value.as_value()))
    }

    /// Sets the limit for `profile`: any number, also a negative one.
    pub fn set_slow_ms(&self, slow_ms: i32) {
        if let Some(at) = position(SLOW_MS) {
            self.put(at, ValueBuf::new(i64::from(slow_ms)));
        }
    }

    /// Returns how far in the past a snapshot read may be.
    pub fn history_window(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.number(HISTORY_SECS)).unwrap_or(0))
    }

    /// Returns the memory for the entries of one index build, in bytes.
    pub fn build_bytes(&self) -> usize {
        usize::try_from(self.number(BUILD_MEGABYTES)).unwrap_or(0).saturating_mul(1 << 20)
    }

    /// Returns true if operations are logged however short they are: statements of writes, or
    /// commands.
    pub fn logs_all(&self, is_statement: bool) -> bool {
        let every = if is_statement { &self.every_write } else { &self.every_command };
        every.load(Ordering::Relaxed)
    }

    /// Reads the stored feature compatibility version.
    ///
    /// # Errors
    /// The errors of the storage.
    pub(crate) fn load_feature_compatibility(&self, store: &Arc<Store>) -> Result<()> {
        let stored = store.setting(FEATURE_COMPATIBILITY_NAME)?;
        let version = stored.as_ref().and_then(|stored| stored.get("version")?.as_str());
        if let (Some(version), Some(at)) = (version, position(FEATURE_COMPATIBILITY_NAME)) {
            self.put(at, ValueBuf::new(version));
        }
        Ok(())
    }

    /// Sets the feature compatibility version.
    ///
    /// # Errors
    /// The errors of the commit.
    pub(crate) fn set_feature_compatibility(
        &self,
        store: &Arc<Store>,
        version: &str,
        options: CommitOptions,
    ) -> Result<()> {
        let stored = doc! { "version": version };
        store.put_setting(FEATURE_COMPATIBILITY_NAME, stored.as_doc(), options)?;
        if let Some(at) = position(FEATURE_COMPATIBILITY_NAME) {
            self.put(at, ValueBuf::new(version));
        }
        Ok(())
    }

    pub(crate) fn put(&self, at: usize, value: ValueBuf) {
        let name = PARAMETERS.get(at).map_or("", |row| row.name);
        self.cached.note(name, value.as_value());
        self.store(at, value);
        match name {
            log_verbosity::NAME => self.levels_changed(|levels, level| {
                *level = ValueBuf::new(log_verbosity::default_level(levels_of(levels)) as i32);
            }),
            log_verbosity::DEFAULT_LEVEL => self.levels_changed(|levels, level| {
                let level = whole(level.as_value()).unwrap_or(0);
                *levels = ValueBuf::from(log_verbosity::with_default(levels_of(levels), level));
            }),
            _ => {}
        }
    }

    fn store(&self, at: usize, value: ValueBuf) {
        if let Some(slot) = self.values.write().unwrap_or_else(PoisonError::into_inner).get_mut(at)
        {
            *slot = value;
        }
    }

    /// Keeps the levels of the log and the inherited level consistent after a change of one of
    /// them.
    fn levels_changed(&self, follow: impl FnOnce(&mut ValueBuf, &mut ValueBuf)) {
        let places = (position(log_verbosity::NAME), position(log_verbosity::DEFAULT_LEVEL));
        let (Some(levels_at), Some(level_at)) = places else { return };
        let found = (self.get(log_verbosity::NAME), self.get(log_verbosity::DEFAULT_LEVEL));
        let (Some(mut levels), Some(mut level)) = found else { return };
        follow(&mut levels, &mut level);
        for (every, component) in [(&self.every_command, "command"), (&self.every_write, "write")] {
            let effective = log_verbosity::effective(levels_of(&levels), component);
            every.store(effective > 0, Ordering::Relaxed);
        }
        self.store(levels_at, levels);
        self.store(level_at, level);
    }
}

impl ParameterKind {
    fn value(&self) -> ValueBuf {
        match *self {
            Bool(flag) => ValueBuf::new(flag),
            Int(number, ..) => ValueBuf::new(number),
            Long(number, ..) => ValueBuf::new(number),
            Text(text) => ValueBuf::new(text),
            LogLevels => ValueBuf::from(log_verbosity::defaults()),
            Texts(texts) => texts.iter().copied().collect::<quire_document::ArrayBuf>().into(),
        }
    }

    /// Parses a value of `--setParameter name=text`.
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
            LogLevels => {
                let given = quire_document::extjson::parse(text).ok()?;
                let defaults = log_verbosity::defaults();
                let levels = log_verbosity::changed(defaults.as_doc(), given.as_value());
                ValueBuf::from(levels.ok()?)
            }
            Texts(known) => {
                let mut named = text.split(',');
                let all_known = named.clone().all(|name| known.contains(&name));
                all_known.then(|| named.by_ref().collect::<quire_document::ArrayBuf>().into())?
            }
        })
    }

    /// Returns the value that the command `setParameter` sets; `was` is the previous value.
    pub(crate) fn accept(&self, name: &str, was: Value<'_>, value: Value<'_>) -> Result<ValueBuf> {
        match self {
            Bool(_) => Ok(ValueBuf::new(is_true(Some(value)))),
            Int(..)
                if name == log_verbosity::DEFAULT_LEVEL
                    && value.as_number().is_some_and(|number| number.is_nan()) =>
            {
                Err(Error::bad_value(format!("Failed setting {name}: the level is not a number")))
            }
            Int(_, least, most) => {
                let number = bounded(name, value, i64::from(*least), i64::from(*most))?;
                Ok(ValueBuf::new(number as i32))
            }
            Long(_, least, most) => Ok(ValueBuf::new(bounded(name, value, *least, *most)?)),
            Text(_) => match value.as_str() {
                Some(text) if text.len() > TEXT_BYTES_MAX => {
                    let text = format!("{name} takes at most {TEXT_BYTES_MAX} bytes");
                    Err(Error::new(ErrorCode::Overflow, text))
                }
                Some(_) => Ok(ValueBuf::new(value)),
                None => Err(Error::type_mismatch(format!(
                    "Failed setting {name}: expected a string, found {}",
                    value.type_name()
                ))),
            },
            LogLevels => {
                let levels = was.as_document().unwrap_or_else(Doc::empty);
                Ok(ValueBuf::from(log_verbosity::changed(levels, value)?))
            }
            Texts(_) if value.as_array().is_some() => Ok(ValueBuf::new(value)),
            Texts(_) => Err(Error::bad_value(format!(
                "Failed setting {name}: wrong type {}",
                value.type_name()
            ))),
        }
    }
}

fn bounded(name: &str, value: Value<'_>, least: i64, most: i64) -> Result<i64> {
    let number = whole(value).or_else(|| value.as_bool().map(i64::from)).ok_or_else(|| {
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

fn levels_of(value: &ValueBuf) -> Doc<'_> {
    value.as_value().as_document().unwrap_or_else(Doc::empty)
}

/// Returns the row of a parameter in the table.
pub(crate) fn position(name: &str) -> Option<usize> {
    PARAMETERS.iter().position(|row| row.name == name)
}
