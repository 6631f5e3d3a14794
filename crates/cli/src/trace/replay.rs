//! `quire replay`: runs the statements of a trace again and compares how long they take.
//!
//! The statements of a session keep their order and their pauses. A trace in which no two statements
//! overlap comes from one thread; it is replayed by one thread, so that the order of all statements
//! is the same and so are the data afterwards.

use super::file;
use crate::call::{Call, print};
use crate::connect::{self, CallError, Client, Door, Target};
use crate::exit::{FAILED, Failure};
use crate::words::{Word, Words};
use quire_advisor::trace::{Entry, Values};
use quire_advisor::workload::Histogram;
use quire_document::{Binary, DocBuf, Value};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The most threads. More sessions than that share them.
const LANES_MAX: usize = 256;

fn help() -> String {
    format!(
        "Usage: quire replay FILE [OPTIONS]

Runs the statements of a trace again that 'quire record --values keep' wrote, on Quire or
MongoDB, and shows their times beside the recorded ones. The statements of a session keep
their order and their pauses. It changes data as the recorded statements did.

  --speed FACTOR       2 halves the pauses. Default: 1.
  --noPauses           Runs each statement as soon as the one before of its session has ended.
                       Statements of different sessions then come in any order.
  --quiet              Shows no table.
  -h, --help           Shows this help.

Server:
{}",
        connect::server_help()
    )
}

struct Options {
    target: Target,
    file: PathBuf,
    /// By how much pauses are divided; `None` for no pauses.
    speed: Option<f64>,
    quiet: bool,
}

/// The statements of a shape: how long they took when they were recorded, and now.
#[derive(Default)]
struct Compared {
    recorded: Histogram,
    replayed: Histogram,
    /// Statements that failed now and not then, or the reverse.
    differ: u64,
}

type Table = BTreeMap<String, Compared>;

/// Runs `quire replay`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = parse(call)? else {
        print(&help());
        return Ok(());
    };
    let (head, entries) = file::read(&options.file)?;
    if head.values != Values::Keep {
        let text = "the trace has no values; record it with --values keep to replay it";
        return Err(Failure::new(FAILED, text));
    }
    let door = options.target.open_server("quire replay")?;
    let lanes = lanes(&entries);
    let table = replay(&door, &lanes, options.speed)?;
    door.close()?;
    if !options.quiet {
        print(&shown(&table));
    }
    Ok(())
}

/// Divides the commands among threads: all of a session go to one.
fn lanes(entries: &[Entry]) -> Vec<Vec<&Entry>> {
    let mut sorted: Vec<&Entry> = entries.iter().filter(|entry| entry.command.is_some()).collect();
    sorted.sort_by_key(|entry| entry.at_micros);
    let follows = |pair: &[&Entry]| match pair {
        [before, after] => before.at_micros + before.micros <= after.at_micros,
        _ => true,
    };
    if sorted.windows(2).all(follows) {
        return vec![sorted];
    }
    let (mut lanes, mut of_session) = (Vec::new(), HashMap::new());
    for entry in sorted {
        let next = of_session.len() % LANES_MAX;
        let lane: usize = *of_session.entry(entry.session).or_insert(next);
        if lane >= lanes.len() {
            lanes.push(Vec::new());
        }
        if let Some(lane) = lanes.get_mut(lane) {
            lane.push(entry);
        }
    }
    lanes
}

fn replay(door: &Door, lanes: &[Vec<&Entry>], speed: Option<f64>) -> Result<Table, Failure> {
    let mut clients = Vec::new();
    for _ in lanes {
        clients.push(door.client()?);
    }
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = lanes
            .iter()
            .zip(clients)
            .map(|(lane, client)| scope.spawn(move || Lane::new(client, speed, began).run(lane)))
            .collect();
        let mut table = Table::new();
        for thread in threads {
            let part = thread.join().map_err(|_| Failure::new(FAILED, "a thread panicked"))??;
            for (name, compared) in part {
                let all = table.entry(name).or_default();
                all.recorded.merge(&compared.recorded);
                all.replayed.merge(&compared.replayed);
                all.differ += compared.differ;
            }
        }
        Ok(table)
    })
}

/// A thread that runs statements one after the other.
struct Lane {
    client: Client,
    speed: Option<f64>,
    began: Instant,
    /// The cursors of this run, by the recorded ones.
    cursors: HashMap<i64, i64>,
    /// The logical sessions of this run, by the recorded ones.
    sessions: HashMap<u64, [u8; 16]>,
    table: Table,
}

impl Lane {
    fn new(client: Client, speed: Option<f64>, began: Instant) -> Lane {
        let (cursors, sessions) = (HashMap::new(), HashMap::new());
        Lane { client, speed, began, cursors, sessions, table: Table::new() }
    }

    fn run(mut self, entries: &[&Entry]) -> Result<Table, Failure> {
        for entry in entries {
            if let Some(speed) = self.speed {
                let due = Duration::from_micros((entry.at_micros as f64 / speed) as u64);
                std::thread::sleep(due.saturating_sub(self.began.elapsed()));
            }
            self.step(entry)?;
        }
        Ok(self.table)
    }

    fn step(&mut self, entry: &Entry) -> Result<(), Failure> {
        let Some(command) = &entry.command else { return Ok(()) };
        let db = command.get("$db").and_then(|db| db.as_str()).unwrap_or("test").to_owned();
        let body = self.body(entry, command);
        let began = Instant::now();
        let called = self.client.call(&db, body, None);
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let failed = match called {
            Ok(reply) => {
                let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document());
                let id = cursor.and_then(|cursor| cursor.get("id")?.exact_i64());
                if let Some(id) = id.filter(|_| entry.cursor != 0) {
                    self.cursors.insert(entry.cursor, id);
                }
                false
            }
            Err(CallError::Refused { .. }) => true,
            Err(gone) => return Err(gone.failure("cannot replay")),
        };
        let compared = self.table.entry(named(entry)).or_default();
        compared.recorded.note(entry.micros);
        compared.replayed.note(micros);
        compared.differ += u64::from(failed != entry.failed);
        Ok(())
    }

    /// Returns the command with the cursors and sessions of this run.
    fn body(&mut self, entry: &Entry, command: &DocBuf) -> DocBuf {
        let cursor = |recorded: Value<'_>| {
            let known = recorded.exact_i64().and_then(|id| self.cursors.get(&id));
            known.map(|id| Value::Int64(*id))
        };
        let mut body = DocBuf::build(|out| {
            for element in command.as_doc().iter() {
                match (element.key(), element.value()) {
                    ("$db", _) => {}
                    ("getMore", id) => drop(out.append("getMore", cursor(id).unwrap_or(id))),
                    ("cursors", Value::Array(ids)) => {
                        let mut list = out.array("cursors");
                        for id in ids.iter() {
                            list.push(cursor(id).unwrap_or(id));
                        }
                    }
                    _ => drop(out.append_element(element)),
                }
            }
        });
        if command.get("txnNumber").is_some() {
            let bytes = *self.sessions.entry(entry.session).or_insert_with(|| uuid(entry.session));
            let id = Value::Binary(Binary { subtype: 4, bytes: &bytes });
            body.extend(|out| {
                out.document("lsid").append("id", id);
            });
        }
        body
    }
}

/// Returns the id of a new logical session.
fn uuid(session: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&session.to_be_bytes());
    bytes[8..].copy_from_slice(&quire_storage::rng::word().to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// Returns the name of the statement's row: command, collection, and the paths of its filter.
fn named(entry: &Entry) -> String {
    let Some(kind) = entry.kind else { return format!("{} {}", entry.name, entry.namespace) };
    let used = quire_advisor::workload::ShapeUse {
        namespace: entry.namespace.clone(),
        kind,
        cause: quire_advisor::workload::Cause::Client,
        shape: entry.shape.clone(),
        samples: Vec::new(),
        measures: quire_advisor::workload::Measures::default(),
    };
    let mut paths: Vec<String> = used.parts().filtered.into_iter().map(|one| one.path).collect();
    paths.dedup();
    format!("{} {} {}", entry.name, entry.namespace, paths.join(", ")).trim_end().to_owned()
}

/// Returns the table: microseconds at the median and at the 99th percentile, then and now.
fn shown(table: &Table) -> String {
    let mut text = String::from(
        "     count   recorded: median       99 %   replayed: median       99 %  statement\n",
    );
    let mut differ = 0;
    for (name, compared) in table {
        differ += compared.differ;
        let of = |histogram: &Histogram, share| histogram.quantile(share).unwrap_or(0);
        text.push_str(&format!(
            "{:>10} {:>15} us {:>7} us {:>15} us {:>7} us  {name}\n",
            compared.recorded.count(),
            of(&compared.recorded, 0.5),
            of(&compared.recorded, 0.99),
            of(&compared.replayed, 0.5),
            of(&compared.replayed, 0.99),
        ));
    }
    text.push_str(&format!("{differ} statements failed now and not when recorded, or the reverse"));
    text
}

fn parse(call: &Call) -> Result<Option<Options>, Failure> {
    let (mut target, mut file, mut speed, mut quiet) = (Target::default(), None, Some(1.0), false);
    let mut words = Words::of(call, help());
    while let Some(word) = words.next(&mut target)? {
        match word {
            Word::Help => return Ok(None),
            Word::Long(name) if name == "quiet" => quiet = true,
            Word::Long(name) if name == "noPauses" => speed = None,
            Word::Long(name) if name == "speed" => {
                let value = words.text()?;
                let factor = value.parse().ok().filter(|factor| (0.001..=1e6).contains(factor));
                let text =
                    || words.wrong(format!("--speed takes a number from 0.001, not '{value}'"));
                speed = Some(factor.ok_or_else(text)?);
            }
            Word::Value(path) if file.is_none() => file = Some(PathBuf::from(path)),
            other => return Err(words.unexpected(other)),
        }
    }
    let file = file.ok_or_else(|| words.wrong("the file of the trace is missing"))?;
    Ok(Some(Options { target, file, speed, quiet }))
}
