//! The definition of a job: when it runs, what a run does, and what happens when one fails.

use super::lanes::Lanes;
use super::schedule::{Schedule, number};
use super::slots;
use crate::frame::args::{Arg, arguments, fields};
use quire_access::UserName;
use quire_catalog::Namespace;
use quire_document::{Binary, Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::row_of;
use std::time::Duration;

/// The attempts of a run before it is given up.
const ATTEMPTS: u32 = 5;
/// The longest duration of one step of a run.
const TIME_MAX: Duration = Duration::from_secs(600);
/// The longest time that a definition may allow a step.
const TIME_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The most events that one transaction of a trigger handles.
const BATCH: u32 = 100;

/// A job as `admin.system.jobs` has it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The database in which it runs.
    pub db: String,
    pub name: String,
    /// A new one for each `createJob`, so that a job is told from an earlier one of its name.
    pub uuid: [u8; 16],
    /// With whose rights it runs; `None` if it was made without access control.
    pub owner: Option<UserName>,
    pub created_ms: i64,
    /// The fields of the command that define it.
    pub given: DocBuf,
    pub plan: JobPlan,
}

/// The parsed fields of a definition.
#[derive(Clone, Debug)]
pub struct JobPlan {
    pub when: When,
    pub action: Action,
    /// What happens with a due time that has passed while the server did not run.
    pub skips_missed: bool,
    /// The attempts of a run, or for an event, before it is given up.
    pub attempts: u32,
    /// The collection of what was given up.
    pub dead_letters: Option<String>,
    pub time_max: Duration,
    /// The most documents that one run may write by its pipeline.
    pub documents_max: Option<u64>,
}

/// When a job runs.
#[derive(Clone, Debug)]
pub enum When {
    Schedule(Schedule),
    Changes(Changes),
}

/// The changes that make a job run.
#[derive(Clone, Debug)]
pub struct Changes {
    /// `None` for all collections of the database.
    pub collection: Option<String>,
    /// The options of `$changeStream`.
    pub options: DocBuf,
    /// The stages behind it.
    pub stages: Vec<DocBuf>,
    /// The time from which on changes count; `None` for now.
    pub start: Option<u64>,
    /// Whose changes do not count.
    pub ignores: Ignored,
    /// True to begin anew if the change log has removed the next changes; false to stop.
    pub restarts: bool,
    pub batch: u32,
    /// How events are divided among rows that run in parallel.
    pub lanes: Lanes,
}

/// The jobs whose changes do not make a job run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    None,
    Own,
    AllJobs,
}

/// What a run does.
#[derive(Clone, Debug)]
pub enum Action {
    /// The commands, in order.
    Writes(Vec<DocBuf>),
    Pipeline(Pipeline),
}

/// A pipeline that writes its results.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// `None` for a pipeline that makes its documents itself.
    pub collection: Option<String>,
    /// The stages without the last.
    pub stages: Vec<DocBuf>,
    /// `$merge` or `$out`.
    pub last: DocBuf,
}

/// The fields of a command that are no part of a definition.
const OUTSIDE: &[&str] = &["paused"];

impl Definition {
    /// Returns the key in `admin.system.jobs`, and the name in the table of jobs.
    pub fn key(&self) -> String {
        key(&self.db, &self.name)
    }

    /// Decodes a stored definition.
    ///
    /// # Errors
    /// Those of [`JobPlan::parse`]; 2 for a document that no job has.
    pub fn of_stored(stored: Doc<'_>) -> Result<Self> {
        let text = |name: &str| Some(stored.get(name)?.as_str()?.to_owned());
        let uuid = match stored.get("uuid") {
            Some(Value::Binary(Binary { bytes, .. })) => <[u8; 16]>::try_from(bytes).ok(),
            _ => None,
        };
        let created = match stored.get("created") {
            Some(Value::Date(created)) => Some(created),
            _ => None,
        };
        let given = stored.get("definition").and_then(|given| given.as_document());
        let (Some(db), Some(name), Some(uuid), Some(created_ms), Some(given)) =
            (text("db"), text("name"), uuid, created, given)
        else {
            return Err(Error::bad_value("a document of admin.system.jobs defines no job"));
        };
        let owner = stored.get("owner").map(|owner| UserName::parse(owner, &db)).transpose()?;
        let plan = JobPlan::parse(given, &db, created_ms)?;
        Ok(Definition { db, name, uuid, owner, created_ms, given: given.to_owned(), plan })
    }
}

/// Returns the key of the job with this name.
pub fn key(db: &str, name: &str) -> String {
    format!("{db}.{name}")
}

/// Returns the fields of a command that define the job.
pub fn given(body: Doc<'_>) -> DocBuf {
    DocBuf::build(|given| {
        for arg in arguments("createJob", body) {
            if !OUTSIDE.contains(&arg.name()) {
                given.append(arg.name(), arg.value());
            }
        }
        // Of other commands it is the limit of the command itself.
        given.append_some("maxTimeMS", body.get("maxTimeMS"));
    })
}

impl JobPlan {
    /// Parses the fields of a definition.
    ///
    /// # Errors
    /// 2 for fields that exclude each other or make no sense, 40415 for an unknown field, 14 for a
    /// wrong type.
    pub fn parse(given: Doc<'_>, db: &str, created_ms: i64) -> Result<Self> {
        let (mut when, mut writes, mut stages, mut slots) = (None, None, None, None);
        let mut collection = None;
        let mut plan = Options::default();
        for arg in fields("createJob", given) {
            match arg.name() {
                "schedule" if when.is_none() => {
                    when = Some(When::Schedule(Schedule::parse(arg.document()?, created_ms)?));
                }
                "changes" if when.is_none() => {
                    when = Some(When::Changes(changes(arg.document()?)?))
                }
                "schedule" | "changes" => return Err(one_of("schedule", "changes")),
                "writes" => writes = Some(documents(&arg)?),
                "collection" => collection = Some(arg.string()?.to_owned()),
                "pipeline" => stages = Some(documents(&arg)?),
                "slots" => slots = Some(arg.document()?),
                "comment" => {}
                _ if plan.read(&arg)? => {}
                _ => return Err(arg.unknown()),
            }
        }
        let when = when.ok_or_else(|| one_of("schedule", "changes"))?;
        let action = match (writes, stages, slots) {
            (Some(writes), None, None) if collection.is_none() => {
                if writes.is_empty() {
                    return Err(Error::bad_value("'writes' of a job is empty"));
                }
                writes.iter().try_for_each(|write| check_write(db, write.as_doc()))?;
                Action::Writes(writes)
            }
            (None, Some(stages), None) => Action::Pipeline(split(collection, stages)?),
            (None, None, Some(slots)) if collection.is_none() => {
                let made = slots::pipeline(slots)?;
                Action::Pipeline(split(made.collection, made.stages)?)
            }
            _ => {
                return Err(Error::bad_value(
                    "a job has exactly one of the fields 'writes', 'pipeline' (with 'collection') and 'slots'",
                ));
            }
        };
        let plan = plan.complete(when, action);
        plan.check_loop(db)?;
        Ok(plan)
    }

    /// Refuses a trigger that would run for its own changes, unless it ignores them.
    fn check_loop(&self, db: &str) -> Result<()> {
        let When::Changes(changes) = &self.when else { return Ok(()) };
        let meets = |(of, collection): (String, String)| {
            of == db && changes.collection.as_ref().is_none_or(|watched| *watched == collection)
        };
        if changes.ignores != Ignored::None || !self.targets(db)?.into_iter().any(meets) {
            return Ok(());
        }
        let text = "the job would run for its own changes: set changes.ignore to 'own' or 'jobs', or write to another collection";
        Err(Error::bad_value(text))
    }

    /// Returns the number of rows that the job has while it is active.
    pub fn rows(&self) -> u32 {
        match &self.when {
            When::Schedule(_) => 1,
            When::Changes(changes) => changes.lanes.count,
        }
    }

    /// Returns the collections that a run writes, as database and collection.
    ///
    /// # Errors
    /// Those of a malformed last stage.
    pub fn targets(&self, db: &str) -> Result<Vec<(String, String)>> {
        match &self.action {
            Action::Writes(writes) => {
                let named = |write: &DocBuf| {
                    let first = write.as_doc().first()?;
                    Some((db.to_owned(), first.value().as_str()?.to_owned()))
                };
                Ok(writes.iter().filter_map(named).collect())
            }
            Action::Pipeline(pipeline) => pipeline.target(db).map(|target| vec![target]),
        }
    }
}

/// The options of a definition that all jobs have.
struct Options {
    skips_missed: bool,
    attempts: u32,
    dead_letters: Option<String>,
    time_max: Duration,
    documents_max: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            skips_missed: false,
            attempts: ATTEMPTS,
            dead_letters: None,
            time_max: TIME_MAX,
            documents_max: None,
        }
    }
}

impl Options {
    /// Reads a field. Returns false for a field that is none of these.
    fn read(&mut self, arg: &Arg<'_>) -> Result<bool> {
        match arg.name() {
            "missed" => {
                self.skips_missed = match arg.string()? {
                    "run" => false,
                    "skip" => true,
                    _ => return Err(Error::bad_value("'missed' is 'run' or 'skip'")),
                }
            }
            "attempts" => {
                let attempts = arg.integer_from(1)?;
                self.attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
            }
            "deadLetters" => self.dead_letters = Some(arg.string()?.to_owned()),
            "maxTimeMS" => {
                let ms = u64::try_from(arg.integer_from(1)?).unwrap_or(u64::MAX);
                self.time_max = Duration::from_millis(ms);
                if self.time_max > TIME_LIMIT {
                    return Err(Error::bad_value("'maxTimeMS' of a job is at most one day"));
                }
            }
            "maxDocuments" => {
                self.documents_max = u64::try_from(arg.integer_from(1)?).ok();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn complete(self, when: When, action: Action) -> JobPlan {
        let Options { skips_missed, attempts, dead_letters, time_max, documents_max } = self;
        JobPlan { when, action, skips_missed, attempts, dead_letters, time_max, documents_max }
    }
}

fn changes(given: Doc<'_>) -> Result<Changes> {
    let mut changes = Changes {
        collection: None,
        options: DocBuf::new(),
        stages: Vec::new(),
        start: None,
        ignores: Ignored::None,
        restarts: false,
        batch: BATCH,
        lanes: Lanes::default(),
    };
    for arg in fields("createJob.changes", given) {
        match arg.name() {
            "collection" => changes.collection = Some(arg.string()?.to_owned()),
            "pipeline" => changes.stages = documents(&arg)?,
            "fullDocument" | "fullDocumentBeforeChange" => {
                changes.options.append(arg.name(), arg.string()?);
            }
            "startAtOperationTime" => match arg.value() {
                Value::Timestamp(time) => changes.start = Some(time.to_u64()),
                _ => return Err(arg.wrong_type("timestamp")),
            },
            "ignore" => {
                changes.ignores = match arg.string()? {
                    "none" => Ignored::None,
                    "own" => Ignored::Own,
                    "jobs" => Ignored::AllJobs,
                    _ => return Err(Error::bad_value("'ignore' is 'none', 'own' or 'jobs'")),
                }
            }
            "onHistoryLost" => {
                changes.restarts = match arg.string()? {
                    "stop" => false,
                    "restart" => true,
                    _ => return Err(Error::bad_value("'onHistoryLost' is 'stop' or 'restart'")),
                }
            }
            "parallel" => changes.lanes = Lanes::parse(arg.document()?)?,
            "batchSize" => {
                let batch = arg.integer_from(1)?.min(1000);
                changes.batch = u32::try_from(batch).unwrap_or(BATCH);
            }
            _ => return Err(arg.unknown()),
        }
    }
    Ok(changes)
}

impl Pipeline {
    /// Returns the collection that the last stage names, as database and collection.
    ///
    /// # Errors
    /// 2 if it names none.
    pub fn target(&self, db: &str) -> Result<(String, String)> {
        let operand = self.last.as_doc().first().map(|first| first.value());
        let into = match operand {
            Some(Value::Document(operand)) if operand.contains("into") => operand.get("into"),
            other => other,
        };
        let text = |value: Option<Value<'_>>| value?.as_str().map(str::to_owned);
        let named = match into {
            Some(Value::String(collection)) => Some((db.to_owned(), collection.to_owned())),
            Some(Value::Document(into)) => text(into.get("db")).zip(text(into.get("coll"))),
            _ => None,
        };
        named.ok_or_else(|| Error::bad_value("the last stage names no collection"))
    }

    /// Returns true if the last stage replaces its collection.
    pub fn replaces(&self) -> bool {
        self.last.as_doc().contains("$out")
    }
}

fn split(collection: Option<String>, mut stages: Vec<DocBuf>) -> Result<Pipeline> {
    let last = stages.pop().unwrap_or_default();
    let writes = last.as_doc().contains("$merge") || last.as_doc().contains("$out");
    if !writes || last.as_doc().iter().count() != 1 {
        return Err(Error::bad_value("the last stage of a job's pipeline is $merge or $out"));
    }
    for stage in &stages {
        let (row, _) = row_of(Value::Document(stage.as_doc()))?;
        if row.facts.writes {
            return Err(Error::bad_value(format!("{} can only be the last stage", row.name)));
        }
    }
    Ok(Pipeline { collection, stages, last })
}

/// Checks a command of `writes`. Its statements are checked when they run.
fn check_write(db: &str, write: Doc<'_>) -> Result<()> {
    let first = write.first();
    let first = first.as_ref().map(|first| (first.key(), first.value()));
    let Some(("insert" | "update" | "delete" | "findAndModify", Value::String(name))) = first
    else {
        let text = "'writes' has commands insert, update, delete and findAndModify";
        return Err(Error::bad_value(text));
    };
    let target = Namespace::new(db, name)?;
    target.check_creatable()?;
    if name.starts_with("system.") {
        let text = format!("a job cannot write to {target}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let own = ["lsid", "txnNumber", "autocommit", "startTransaction", "$db", "writeConcern"];
    match own.iter().find(|field| write.contains(field)) {
        Some(field) => Err(Error::bad_value(format!("a write of a job has no field {field}"))),
        None => Ok(()),
    }
}

fn documents(arg: &Arg<'_>) -> Result<Vec<DocBuf>> {
    let array = arg.array()?.iter().enumerate();
    let document = |(at, value): (usize, Value<'_>)| {
        let found = value.as_document().map(Doc::to_owned);
        found.ok_or_else(|| arg.wrong_element(at, value, "object"))
    };
    array.map(document).collect()
}

fn one_of(first: &str, second: &str) -> Error {
    Error::bad_value(format!("a job has exactly one of the fields '{first}' and '{second}'"))
}

/// Returns the number of runs, or another counter, of a position.
pub fn counter(position: Doc<'_>, name: &str) -> i64 {
    number(position.get(name)).unwrap_or(0)
}
