//! The kinds of jobs: one row each.

use super::expiry::{ENABLED, IN_BATCHES};
use crate::frame::job_kind::{JobKind, Work};
use crate::frame::lane_name::shown;
use crate::frame::service::now_ms;
use crate::job_commands;
use quire_catalog::{CollectionId, Uuid};
use quire_collections::{Deferred, build_pattern_step, derive_step, expire_step};
use quire_document::Value;
use std::time::Duration;

/// The deletion of expired documents: a job for each index that has some.
pub(super) const TTL: &str = "ttl";
/// What the rules of collections have to write after the commit that caused it.
pub(super) const DERIVED: &str = "derived";
/// The build of a declared pattern.
const PATTERN_BUILD: &str = "patternBuild";
/// The deletion of the results of old retryable writes.
const RETRY_RECORDS: &str = "retryRecords";

/// All kinds of the server itself.
pub(super) static KINDS: &[JobKind] = &[
    JobKind {
        name: TTL,
        summary: "Deletes the documents of an index, or of a clustered collection, that have expired.",
        thread: "TTLMonitor",
        op: "remove",
        step_time_max: Duration::from_secs(1),
        may_run: |service| service.parameters.flag(ENABLED) && !service.write_block.is_on(),
        namespace: |service, job| {
            let number = job.parameter("collection").and_then(|number| u32::try_from(number).ok());
            let catalog = service.store.catalog();
            let found = number.and_then(|number| catalog.by_id(CollectionId(number)));
            found.map(|found| found.namespace.to_string()).unwrap_or_default()
        },
        work: Work::Step(|cx, writer, job| {
            let in_batches = cx.service.parameters.flag(IN_BATCHES);
            expire_step(writer, job, if in_batches { cx.rows_max } else { 1 })
        }),
        count: |service, deleted| service.metrics.ttl_deleted.add(deleted),
    },
    JobKind {
        name: DERIVED,
        summary: "Writes other documents for a rule of a collection, beyond what one commit may.",
        thread: "DerivedWriter",
        op: "update",
        step_time_max: Duration::from_secs(5),
        may_run: |_| true,
        namespace: |service, job| {
            let uuid = Deferred::decode(job.parameters.as_doc()).map(|task| task.collection);
            let catalog = service.store.catalog();
            let found = uuid.ok().and_then(|uuid| catalog.by_uuid(&uuid).cloned());
            found.map(|found| found.namespace.to_string()).unwrap_or_default()
        },
        work: Work::Step(|_, writer, job| derive_step(writer, job)),
        count: |_, _| {},
    },
    JobKind {
        name: PATTERN_BUILD,
        summary: "Applies a declared pattern to the documents of its collection.",
        thread: "PatternBuilder",
        op: "update",
        step_time_max: Duration::from_secs(5),
        may_run: |_| true,
        namespace: |service, job| {
            let Some(Value::Binary(uuid)) = job.parameters.get("collection") else {
                return String::new();
            };
            let uuid = uuid.bytes.try_into().map(Uuid);
            let catalog = service.store.catalog();
            let found = uuid.ok().and_then(|uuid| catalog.by_uuid(&uuid).cloned());
            found.map(|found| found.namespace.to_string()).unwrap_or_default()
        },
        work: Work::Step(|cx, writer, job| build_pattern_step(writer, job, cx.rows_max)),
        count: |_, _| {},
    },
    JobKind {
        name: RETRY_RECORDS,
        summary: "Deletes the stored results of the writes of sessions that have ended.",
        thread: "LogicalSessionCacheReap",
        op: "remove",
        step_time_max: Duration::from_secs(1),
        may_run: |_| true,
        namespace: |_, _| "config.transactions".to_owned(),
        work: Work::Step(|cx, writer, job| {
            cx.service.reap_step(writer, job, now_ms(), cx.rows_max)
        }),
        count: |_, _| {},
    },
    JobKind {
        name: job_commands::KIND,
        summary: "A job that a user has created: on a schedule, or on changes.",
        thread: "UserJobs",
        op: "command",
        step_time_max: Duration::from_secs(600),
        may_run: |service| !service.write_block.is_on(),
        namespace: |_, job| shown(&job.id.name),
        work: Work::Whole(job_commands::step),
        count: |_, _| {},
    },
];
