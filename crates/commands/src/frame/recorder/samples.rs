//! Sampled queries: whole reads and writes of the collections for which a client asked with
//! `configureQueryAnalyzer`. They stay in memory, because they contain values.

use super::lock;
use crate::frame::account::Ended;
use crate::frame::service::now_ms;
use crate::frame::usage::Class;
use quire_catalog::{Catalog, Namespace, Uuid};
use quire_document::{Binary, Doc, DocBuf, Value};
use quire_storage::rng;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The samples that are kept, and their bytes. The oldest leave.
const SAMPLES_MAX: usize = 10_000;
const SAMPLES_BYTES_MAX: usize = 16 << 20;
/// How long a sample is kept. MongoDB: `queryAnalysisSampleExpirationSecs`, 7 days.
const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// The sampling of a server.
#[derive(Default)]
pub struct Samples {
    /// True if a collection is sampled.
    any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    analyzers: HashMap<String, Analyzer>,
    taken: VecDeque<Sampled>,
    bytes: usize,
}

/// The sampling of one collection.
struct Analyzer {
    uuid: Uuid,
    per_second: f64,
    /// The samples that may be taken now: at most those of a second.
    credit: f64,
    refilled: Instant,
}

struct Sampled {
    namespace: String,
    expires_ms: i64,
    row: DocBuf,
}

impl Samples {
    /// Samples a collection with this rate, or with `None` no longer. Returns the rate before.
    pub fn configure(
        &self,
        namespace: &Namespace,
        uuid: Uuid,
        per_second: Option<f64>,
    ) -> Option<f64> {
        let mut state = lock(&self.state);
        let name = namespace.as_str().to_owned();
        let before = match per_second {
            None => state.analyzers.remove(&name),
            Some(per_second) => {
                let refilled = Instant::now();
                let credit = per_second.max(1.0);
                state.analyzers.insert(name, Analyzer { uuid, per_second, credit, refilled })
            }
        };
        self.any.store(!state.analyzers.is_empty(), Ordering::Release);
        before.filter(|before| before.uuid == uuid).map(|before| before.per_second)
    }

    /// Returns true if a collection is sampled.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Takes a sample of a statement that has ended, if its collection is sampled and its rate
    /// allows it. A collection that was dropped or renamed is not sampled any more.
    pub fn note(&self, catalog: &Catalog, ended: &Ended<'_>) {
        let Some((name, command)) = sampled_command(ended) else { return };
        let mut state = lock(&self.state);
        let Some(analyzer) = state.analyzers.get_mut(ended.namespace) else { return };
        let Ok(namespace) = Namespace::parse(ended.namespace) else { return };
        if catalog.lookup(&namespace).is_none_or(|found| found.uuid != analyzer.uuid) {
            state.analyzers.remove(ended.namespace);
            self.any.store(!state.analyzers.is_empty(), Ordering::Release);
            return;
        }
        if !analyzer.may_take() {
            return;
        }
        let (uuid, expires_ms) = (analyzer.uuid, now_ms() + KEPT_MS);
        let row = DocBuf::build(|row| {
            row.append("_id", Value::Binary(Binary { subtype: 4, bytes: &rng::uuid() }));
            row.append("ns", ended.namespace);
            row.append("collectionUuid", Value::Binary(Binary { subtype: 4, bytes: &uuid.0 }));
            row.append("cmdName", name).append("cmd", &command);
            row.append("expireAt", Value::Date(expires_ms));
        });
        state.bytes += row.as_bytes().len();
        let namespace = ended.namespace.to_owned();
        state.taken.push_back(Sampled { namespace, expires_ms, row });
        state.trim();
    }

    /// Returns the samples of a collection, or of all, oldest first.
    pub fn list(&self, namespace: Option<&str>) -> Vec<DocBuf> {
        let mut state = lock(&self.state);
        state.trim();
        let is_of = |one: &&Sampled| namespace.is_none_or(|wanted| wanted == one.namespace);
        state.taken.iter().filter(is_of).map(|one| one.row.clone()).collect()
    }
}

impl Analyzer {
    fn may_take(&mut self) -> bool {
        let now = Instant::now();
        let since = now.saturating_duration_since(self.refilled).as_secs_f64();
        self.refilled = now;
        self.credit = (self.credit + since * self.per_second).min(self.per_second.max(1.0));
        let may = self.credit >= 1.0;
        if may {
            self.credit -= 1.0;
        }
        may
    }
}

impl State {
    /// Removes what is too old or too much.
    fn trim(&mut self) {
        let now = now_ms();
        while self.taken.len() > SAMPLES_MAX
            || self.bytes > SAMPLES_BYTES_MAX
            || self.taken.front().is_some_and(|first| first.expires_ms <= now)
        {
            let Some(first) = self.taken.pop_front() else { return };
            self.bytes -= first.row.as_bytes().len();
        }
    }
}

/// Returns the name of the command and the part of it that is kept; `None` for one that is not
/// sampled.
fn sampled_command(ended: &Ended<'_>) -> Option<(&'static str, DocBuf)> {
    let command = ended.command;
    let reads = |filter: Doc<'_>| {
        DocBuf::build(|out| {
            out.append("filter", filter);
            out.append_some("collation", command.get("collation"));
            out.append_some("let", command.get("let"));
        })
    };
    let part =
        |name: &str| command.get(name).and_then(|part| part.as_document()).unwrap_or(Doc::empty());
    let statement = |name: &str, list: &str| {
        let coll = ended.namespace.split_once('.').map_or("", |(_, coll)| coll);
        DocBuf::build(|out| {
            out.append(name, coll);
            out.array(list).push(command);
        })
    };
    Some(match (ended.op, command.first()?.key()) {
        (Class::Update, _) => ("update", statement("update", "updates")),
        (Class::Remove, _) => ("delete", statement("delete", "deletes")),
        (_, "find") => ("find", reads(part("filter"))),
        (_, "count") => ("count", reads(part("query"))),
        (_, "distinct") => ("distinct", reads(part("query"))),
        (_, "aggregate") => {
            let first = command.get("pipeline")?.as_array()?.get(0);
            let filter = first.and_then(|stage| stage.as_document()?.get("$match")?.as_document());
            ("aggregate", reads(filter.unwrap_or(Doc::empty())))
        }
        (_, "findAndModify") => {
            let kept = command.iter().filter(|one| !["lsid", "$clusterTime"].contains(&one.key()));
            let kept = DocBuf::build(|out| {
                kept.for_each(|element| {
                    out.append_element(element);
                });
            });
            ("findAndModify", kept)
        }
        _ => return None,
    })
}
