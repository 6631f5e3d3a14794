//! The parameters of the cluster, which `setClusterParameter` sets durably. The table says what each
//! one does on a server that is a whole replica set.

use crate::frame::args::whole;
use crate::frame::context::Context;
use crate::frame::service::Service;
use quire_access::{Action, Target};
use quire_collections::Store;
use quire_document::{Doc, DocBuf, DocWriter, Timestamp, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::find_stage;
use quire_storage::CommitOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The name of the stored setting.
const SETTING: &str = "clusterParameters";
/// The options of change streams.
const CHANGE_STREAM_OPTIONS: &str = "changeStreamOptions";
/// The time limit of reads.
const DEFAULT_MAX_TIME: &str = "defaultMaxTimeMS";

/// A parameter of the cluster.
pub struct ClusterParameter {
    /// The name in MongoDB's spelling.
    pub name: &'static str,
    /// One sentence that says what it does here.
    pub summary: &'static str,
    /// Returns the complete value for a given one; an empty document gives the default.
    parse: fn(Doc<'_>) -> Result<DocBuf>,
}

/// Every parameter, by name.
pub static CLUSTER_PARAMETERS: &[ClusterParameter] = &[
    ClusterParameter {
        name: CHANGE_STREAM_OPTIONS,
        summary: "How long change streams show the images of changed documents, at most as long as the change log has them.",
        parse: |given| {
            only("changeStreamOptions", given, &["preAndPostImages"], ErrorCode::BadValue)?;
            let images = match given.get("preAndPostImages") {
                None => Doc::empty(),
                Some(Value::Document(images)) => images,
                Some(other) => return Err(wrong("preAndPostImages", other)),
            };
            only("preAndPostImages", images, &["expireAfterSeconds"], ErrorCode::BadValue)?;
            let kept = match images.get("expireAfterSeconds") {
                None | Some(Value::Null) | Some(Value::String("off")) => Value::String("off"),
                Some(number) if number.is_number() => Value::Int64(positive(number)?),
                Some(other) => return Err(wrong("expireAfterSeconds", other)),
            };
            Ok(doc! { "preAndPostImages": { "expireAfterSeconds": kept } })
        },
    },
    ClusterParameter {
        name: "changeStreams",
        summary: "No effect: how long a server with tenants keeps changes.",
        parse: |given| {
            only("changeStreams", given, &["expireAfterSeconds"], ErrorCode::IDLUnknownField)?;
            let kept = match given.get("expireAfterSeconds") {
                None | Some(Value::Null) => 3600,
                Some(number) if number.is_number() => positive(number)?,
                Some(other) => return Err(mismatch("changeStreams.expireAfterSeconds", other)),
            };
            Ok(doc! { "expireAfterSeconds": kept })
        },
    },
    ClusterParameter {
        name: DEFAULT_MAX_TIME,
        summary: "The time limit of reads that name none; 0 for no limit.",
        parse: |given| {
            only(DEFAULT_MAX_TIME, given, &["readOperations"], ErrorCode::IDLUnknownField)?;
            let limit = match given.get("readOperations") {
                None | Some(Value::Null) => 0,
                Some(number) if number.is_number() => whole(number).unwrap_or(0),
                Some(other) => return Err(mismatch("defaultMaxTimeMS.readOperations", other)),
            };
            if !(0..=i64::from(i32::MAX)).contains(&limit) {
                let text = format!("readOperations is {limit}, which no time limit can be");
                return Err(Error::bad_value(text));
            }
            Ok(doc! { "readOperations": limit })
        },
    },
    ClusterParameter {
        name: "fleDisableSubstringPreviewParameterLimits",
        summary: "No effect: a limit of encrypted queries by substring.",
        parse: |given| flag("fleDisableSubstringPreviewParameterLimits", given, "shouldDisable"),
    },
    ClusterParameter {
        name: "pauseMigrationsDuringMultiUpdates",
        summary: "No effect: there are no shards to migrate between.",
        parse: |given| flag("pauseMigrationsDuringMultiUpdates", given, "enabled"),
    },
];

/// A value that was set, and when.
#[derive(Clone)]
struct Set {
    value: DocBuf,
    time: Timestamp,
}

/// The values that were set, as they are stored.
pub struct ClusterParameters {
    set: Mutex<BTreeMap<String, Set>>,
    /// A copy of `defaultMaxTimeMS.readOperations`, which every read needs.
    read_limit_ms: AtomicI64,
}

impl ClusterParameters {
    /// Reads the stored values.
    ///
    /// # Errors
    /// The errors of the storage.
    pub fn load(store: &Arc<Store>) -> Result<Self> {
        let stored = store.setting(SETTING)?.unwrap_or_else(DocBuf::new);
        let entry = |(name, entry): (&str, Value<'_>)| {
            let entry = entry.as_document()?;
            let time = match entry.get("time")? {
                Value::Timestamp(time) => time,
                _ => return None,
            };
            let value = entry.get("value")?.as_document()?.to_owned();
            Some((name.to_owned(), Set { value, time }))
        };
        let set = stored.as_doc().fields().filter_map(entry).collect();
        let parameters =
            ClusterParameters { set: Mutex::new(set), read_limit_ms: AtomicI64::new(0) };
        parameters.copy_limit();
        Ok(parameters)
    }

    /// Returns the time limit in milliseconds of reads that name none; 0 for no limit.
    pub fn read_limit_ms(&self) -> i64 {
        self.read_limit_ms.load(Ordering::Relaxed)
    }

    /// Returns how long change streams show images, in milliseconds; `None` for as long as they exist.
    pub fn images_kept_ms(&self) -> Option<i64> {
        let options = self.get(CHANGE_STREAM_OPTIONS)?;
        let images = options.get("preAndPostImages")?.as_document()?;
        let seconds = images.get("expireAfterSeconds")?.exact_i64()?;
        Some(seconds.saturating_mul(1000))
    }

    /// Sets a parameter, durably.
    ///
    /// # Errors
    /// 4 NoSuchKey for an unknown name; the errors of the value and of the commit.
    pub fn set(&self, service: &Service, name: &str, given: Value<'_>) -> Result<()> {
        let row = find(name)?;
        let given = given.as_document().ok_or_else(|| wrong(name, given))?;
        if let Some((field, _)) = given.fields().find(|(field, _)| field.starts_with('$')) {
            let text = format!("Field names may not start with '$'. Field: {field}");
            return Err(Error::new(ErrorCode::DollarPrefixedFieldName, text));
        }
        if row.name == "changeStreamOptions" && given.is_empty() {
            return Err(Error::bad_value("changeStreamOptions needs the field preAndPostImages"));
        }
        if given.is_empty() {
            return Ok(());
        }
        let value = (row.parse)(given)?;
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = set.clone();
        next.insert(row.name.to_owned(), Set { value, time: service.clock.tick() });
        let stored = DocBuf::build(|stored| {
            for (name, Set { value, time }) in &next {
                stored.document(name).append("value", value).append("time", *time);
            }
        });
        service.store.put_setting(SETTING, stored.as_doc(), CommitOptions::synced())?;
        *set = next;
        drop(set);
        self.copy_limit();
        Ok(())
    }

    /// Returns the value of a parameter that is in the table.
    pub fn get(&self, name: &str) -> Option<DocBuf> {
        let row = CLUSTER_PARAMETERS.iter().find(|row| row.name == name)?;
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        set.get(name).map(|set| set.value.clone()).or_else(|| (row.parse)(Doc::empty()).ok())
    }

    /// Appends a parameter as `getClusterParameter` shows it.
    ///
    /// # Errors
    /// 4 NoSuchKey for an unknown name.
    pub fn write(&self, name: &str, row: &mut DocWriter<'_>) -> Result<()> {
        find(name)?;
        let time = {
            let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
            set.get(name).map_or_else(Timestamp::default, |set| set.time)
        };
        row.append("_id", name).append("clusterParameterTime", time);
        if let Some(value) = self.get(name) {
            row.append_all(value.as_doc());
        }
        Ok(())
    }

    fn copy_limit(&self) {
        let value = self.get(DEFAULT_MAX_TIME);
        let limit = value.and_then(|value| value.get("readOperations")?.exact_i64());
        self.read_limit_ms.store(limit.unwrap_or(0), Ordering::Relaxed);
    }
}

impl Context<'_> {
    /// Gives a read that names no time limit the one of `defaultMaxTimeMS`. A pipeline that writes,
    /// and users with the privilege `bypassDefaultMaxTimeMS`, have none.
    pub fn limit_read(&self, body: Doc<'_>) {
        let limit_ms = self.service.cluster_parameters.read_limit_ms();
        if limit_ms == 0 || !self.command.takes_read_concern() || body.contains("maxTimeMS") {
            return;
        }
        let stages = body.get("pipeline").and_then(|stages| stages.as_array());
        let last = stages.and_then(|stages| stages.iter().last()?.as_document()?.first());
        let writes =
            last.and_then(|last| find_stage(last.key())).is_some_and(|row| row.facts.writes);
        let has_accounts = self.service.access.enforced;
        if writes || has_accounts && self.may(Target::Cluster, Action::BypassDefaultMaxTimeMS) {
            return;
        }
        let limit = Duration::from_millis(limit_ms.unsigned_abs());
        self.interrupt.set_deadline(Some(Instant::now() + limit));
    }
}

fn find(name: &str) -> Result<&'static ClusterParameter> {
    CLUSTER_PARAMETERS.iter().find(|row| row.name == name).ok_or_else(|| {
        Error::new(ErrorCode::NoSuchKey, format!("Unknown server parameter: {name}"))
    })
}

/// Refuses fields that a value does not have.
fn only(owner: &str, given: Doc<'_>, known: &[&str], code: ErrorCode) -> Result<()> {
    match given.fields().find(|(name, _)| !known.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let text = format!("BSON field '{owner}.{name}' is an unknown field.");
            Err(Error::new(code, text))
        }
    }
}

fn positive(number: Value<'_>) -> Result<i64> {
    let seconds = whole(number).unwrap_or(0);
    match seconds > 0 {
        true => Ok(seconds),
        false => Err(Error::bad_value("expireAfterSeconds must be a positive whole number")),
    }
}

/// Returns the value of a parameter with one boolean field, false by default.
fn flag(owner: &str, given: Doc<'_>, field: &str) -> Result<DocBuf> {
    only(owner, given, &[field], ErrorCode::IDLUnknownField)?;
    match given.get(field) {
        None | Some(Value::Null) => Ok(doc! { field: false }),
        Some(Value::Bool(flag)) => Ok(doc! { field: flag }),
        Some(other) => Err(mismatch(&format!("{owner}.{field}"), other)),
    }
}

fn wrong(name: &str, value: Value<'_>) -> Error {
    Error::bad_value(format!("{name} cannot be a {}", value.type_name()))
}

fn mismatch(path: &str, value: Value<'_>) -> Error {
    Error::type_mismatch(format!("BSON field '{path}' is the wrong type '{}'", value.type_name()))
}
