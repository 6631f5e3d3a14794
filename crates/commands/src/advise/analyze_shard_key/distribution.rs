//! How the sampled queries would be routed by a shard key: to one shard, to some, or to all; and how the
//! ranges of the key would share the work.

use super::key::ShardKey;
use crate::frame::context::Context;
use crate::read::analyze_schema::ServerCollections;
use quire_advisor::{Extent, Source};
use quire_catalog::Collection;
use quire_catalog::key::{Interval, Intervals, Predicate};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;
use quire_mql::collation::Collation;
use quire_mql::filter::{Filter, Node};
use std::sync::Arc;

/// The ranges of the key. MongoDB: `analyzeShardKeyNumRanges`.
const RANGES: usize = 100;
/// The documents that are read for each range. MongoDB: `analyzeShardKeyNumSamplesPerRange`.
const PER_RANGE: usize = 10;
/// The values of an `$in` that are told apart; more of them count as the range between them.
const POINTS_MAX: usize = 1000;

const READS: [&str; 4] = ["find", "aggregate", "count", "distinct"];
const WRITES: [&str; 3] = ["update", "delete", "findAndModify"];

/// How a query is routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// By one value of the key.
    One,
    /// By several values or by a range of it.
    Some,
    /// By nothing: all shards are asked.
    All,
}

/// The queries of one kind: reads, or writes.
#[derive(Default)]
struct Routed {
    /// The queries by their command.
    counts: Vec<u64>,
    one: u64,
    some: u64,
    all: u64,
    /// The queries by the range that they ask.
    by_range: Vec<u64>,
}

/// What else is counted of writes.
#[derive(Default)]
struct Changes {
    of_key: u64,
    single_without_key: u64,
    multi_without_key: u64,
}

/// A sampled write.
struct Write<'r> {
    filter: Doc<'r>,
    /// The update, if it is one.
    update: Option<Value<'r>>,
    is_multi: bool,
    collation: Option<Doc<'r>>,
}

/// Appends `readDistribution` and `writeDistribution`.
///
/// # Errors
/// Those of the documents that are read.
pub fn write(
    cx: &Context<'_>,
    collection: &Arc<Collection>,
    key: &ShardKey,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let splits = splits(cx, collection, key)?;
    let routing = Routing { cx, collection, key, splits };
    let (mut reads, mut writes) = (routing.nothing(READS.len()), routing.nothing(WRITES.len()));
    let mut changes = Changes::default();
    for row in cx.service.recorder.samples().list(Some(collection.namespace.as_str())) {
        cx.check_interrupt()?;
        let name = row.get("cmdName").and_then(|name| name.as_str()).unwrap_or_default();
        let command = row.get("cmd").and_then(|command| command.as_document()).unwrap_or_default();
        if let Some(at) = READS.iter().position(|read| *read == name) {
            let filter = command.get("filter").and_then(|filter| filter.as_document());
            let collation = command.get("collation").and_then(|found| found.as_document());
            let regions = routing.regions(filter.unwrap_or_default(), collation);
            reads.add(at, regions.as_ref(), &routing);
        } else if let Some(at) = WRITES.iter().position(|write| *write == name)
            && let Some(write) = sampled_write(name, command)
        {
            let regions = routing.regions(write.filter, write.collation);
            let route = writes.add(at, regions.as_ref(), &routing);
            changes.add(&write, route, key);
        }
    }
    reads.write("Reads", &READS, &mut reply.document("readDistribution"));
    let mut out = reply.document("writeDistribution");
    writes.write("Writes", &WRITES, &mut out);
    let total: u64 = writes.counts.iter().sum();
    if total > 0 {
        let percent = |count: u64| count as f64 * 100.0 / total as f64;
        out.append("percentageOfShardKeyUpdates", percent(changes.of_key));
        let single = percent(changes.single_without_key);
        out.append("percentageOfSingleWritesWithoutShardKey", single);
        out.append("percentageOfMultiWritesWithoutShardKey", percent(changes.multi_without_key));
    }
    Ok(())
}

/// Returns the keys at which the ranges begin, except the first range: quantiles of the keys of a random
/// sample. There are fewer where the documents have fewer different keys.
fn splits(cx: &Context<'_>, collection: &Collection, key: &ShardKey) -> Result<Vec<Vec<u8>>> {
    let namespace = &collection.namespace;
    let mut source = ServerCollections { cx, db: namespace.db(), named: None };
    let (mut keys, mut failed) = (Vec::new(), None);
    let extent = Extent::Sample((RANGES * PER_RANGE) as u64);
    source.read(namespace.collection(), extent, &mut |document| match key.encoded(document) {
        Ok(found) => keys.push(found),
        Err(error) => failed = Some(error),
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    keys.sort_unstable();
    let count = keys.len();
    let mut splits: Vec<Vec<u8>> =
        (1..RANGES).filter_map(|at| keys.get(at * count / RANGES).cloned()).collect();
    splits.dedup();
    // A range that begins with the smallest key would have an empty one before it.
    if splits.first() == keys.first() && !splits.is_empty() {
        splits.remove(0);
    }
    Ok(splits)
}

/// Finds the places of queries among the ranges.
struct Routing<'c> {
    cx: &'c Context<'c>,
    collection: &'c Collection,
    key: &'c ShardKey,
    splits: Vec<Vec<u8>>,
}

/// The keys that a query asks: encoded prefixes from the first to the last.
struct Region {
    low: Vec<u8>,
    high: Vec<u8>,
    is_point: bool,
}

impl Routing<'_> {
    fn nothing(&self, commands: usize) -> Routed {
        let by_range = vec![0; self.splits.len() + 1];
        Routed { counts: vec![0; commands], by_range, ..Routed::default() }
    }

    /// Returns the keys that a query asks; `None` if it does not name the first field of the key.
    fn regions(&self, filter: Doc<'_>, collation: Option<Doc<'_>>) -> Option<Vec<Region>> {
        // What cannot be parsed any more is asked of all.
        let parsed = Filter::parse(filter, &self.cx.parse_context()).ok()?;
        let own = collation.map(Collation::parse).transpose().ok()?;
        let collation = match &own {
            Some(own) => own.as_deref(),
            None => self.collection.options.collation().map(Arc::as_ref),
        };
        let mut regions = vec![Region { low: Vec::new(), high: Vec::new(), is_point: true }];
        for (field, path) in self.key.paths.iter().enumerate() {
            let intervals = self.intervals(parsed.root(), (field, path), collation);
            if intervals.is_all() {
                if field == 0 {
                    return None;
                }
                regions.iter_mut().for_each(|region| region.is_point = false);
                break;
            }
            let are_points = intervals.0.iter().all(Interval::is_point);
            let are_few = intervals.0.len().saturating_mul(regions.len()) <= POINTS_MAX;
            regions = match are_few {
                true => self.extended(&regions, &intervals, field),
                false => {
                    regions.iter().filter_map(|one| self.around(one, &intervals, field)).collect()
                }
            };
            if !are_points || !are_few {
                break;
            }
        }
        Some(regions)
    }

    /// Returns the intervals of a field that can contain matches.
    fn intervals(
        &self,
        node: &Node,
        (field, path): (usize, &str),
        collation: Option<&Collation>,
    ) -> Intervals {
        let test = |node: &Node, negated: bool| match node {
            Node::Path(tested) if tested.path.as_str() == path => {
                let test = &tested.test;
                let predicate = Predicate { test, negated, path, multikey: false, collation };
                let bounds = self.key.keys.bounds(field, &predicate);
                bounds.map_or_else(Intervals::all, |(intervals, _)| intervals)
            }
            _ => Intervals::all(),
        };
        let below = |node: &Node| self.intervals(node, (field, path), collation);
        match node {
            Node::And(children) => {
                let all = children.iter().map(below);
                all.fold(Intervals::all(), |found, next| found.intersect(&next))
            }
            Node::Or(children) => Intervals::union_of(children.iter().map(below)),
            Node::Not(child) => test(child, true),
            node => test(node, false),
        }
    }

    /// Returns each region with each interval of its next field.
    fn extended(&self, regions: &[Region], intervals: &Intervals, field: usize) -> Vec<Region> {
        let with = |region: &Region, low: Value<'_>, high: Value<'_>, is_point: bool| {
            let mut one = Region { low: region.low.clone(), high: region.high.clone(), is_point };
            self.key.keys.append_bound(field, low, &mut one.low);
            self.key.keys.append_bound(field, high, &mut one.high);
            one
        };
        let all = regions
            .iter()
            .flat_map(|region| intervals.0.iter().map(move |interval| (region, interval)));
        let all = all.map(|(region, interval)| {
            let (low, high) = (interval.low.as_value(), interval.high.as_value());
            with(region, low, high, region.is_point && interval.is_point())
        });
        all.collect()
    }

    /// Returns a region from the first to the last interval of its next field.
    fn around(&self, region: &Region, intervals: &Intervals, field: usize) -> Option<Region> {
        let (first, last) = (intervals.0.first()?, intervals.0.last()?);
        let (mut low, mut high) = (region.low.clone(), region.high.clone());
        self.key.keys.append_bound(field, first.low.as_value(), &mut low);
        self.key.keys.append_bound(field, last.high.as_value(), &mut high);
        Some(Region { low, high, is_point: false })
    }

    /// Returns the first and the last range of a region.
    fn ranges(&self, region: &Region) -> (usize, usize) {
        let first = self.splits.partition_point(|split| *split <= region.low);
        // The end is a prefix: keys that begin with it are within.
        let within = |split: &Vec<u8>| *split <= region.high || split.starts_with(&region.high);
        let last = self.splits.partition_point(within);
        (first.min(last), last)
    }
}

impl Routed {
    /// Counts a query, and returns its route.
    fn add(
        &mut self,
        command: usize,
        regions: Option<&Vec<Region>>,
        routing: &Routing<'_>,
    ) -> Route {
        if let Some(count) = self.counts.get_mut(command) {
            *count += 1;
        }
        let route = match regions.map(Vec::as_slice) {
            None => Route::All,
            Some([]) => Route::One,
            Some([region]) if region.is_point => Route::One,
            Some(_) => Route::Some,
        };
        match route {
            Route::One => self.one += 1,
            Route::Some => self.some += 1,
            Route::All => self.all += 1,
        }
        let mut asked = vec![regions.is_none(); self.by_range.len()];
        for region in regions.into_iter().flatten() {
            let (first, last) = routing.ranges(region);
            asked.iter_mut().take(last + 1).skip(first).for_each(|asked| *asked = true);
        }
        for (count, asked) in self.by_range.iter_mut().zip(asked) {
            *count += u64::from(asked);
        }
        route
    }

    fn write(&self, what: &str, commands: &[&str], out: &mut DocWriter<'_>) {
        let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let total: u64 = self.counts.iter().sum();
        {
            let mut size = out.document("sampleSize");
            size.append("total", long(total));
            for (name, count) in commands.iter().zip(&self.counts) {
                size.append(name, long(*count));
            }
        }
        if total == 0 {
            return;
        }
        for (route, count) in
            [("SingleShard", self.one), ("MultiShard", self.some), ("ScatterGather", self.all)]
        {
            let percent = count as f64 * 100.0 / total as f64;
            out.append(&format!("percentageOf{route}{what}"), percent);
        }
        let mut ranges = out.array(&format!("num{what}ByRange"));
        self.by_range.iter().for_each(|count| {
            ranges.push(long(*count));
        });
    }
}

impl Changes {
    fn add(&mut self, write: &Write<'_>, route: Route, key: &ShardKey) {
        let update = write.update;
        self.of_key += u64::from(update.is_some_and(|update| changes_key(update, write, key)));
        if route != Route::One {
            match write.is_multi {
                true => self.multi_without_key += 1,
                false => self.single_without_key += 1,
            }
        }
    }
}

/// Reads a sampled write.
fn sampled_write<'r>(name: &str, command: Doc<'r>) -> Option<Write<'r>> {
    let statement = |list: &str| command.get(list)?.as_array()?.get(0)?.as_document();
    let document = |doc: Doc<'r>, name: &str| doc.get(name).and_then(|found| found.as_document());
    Some(match name {
        "update" => {
            let statement = statement("updates")?;
            Write {
                filter: document(statement, "q")?,
                update: statement.get("u"),
                is_multi: statement.get("multi").and_then(|multi| multi.as_bool()) == Some(true),
                collation: document(statement, "collation"),
            }
        }
        "delete" => {
            let statement = statement("deletes")?;
            Write {
                filter: document(statement, "q")?,
                update: None,
                is_multi: statement.get("limit").and_then(|limit| limit.exact_i64()) != Some(1),
                collation: document(statement, "collation"),
            }
        }
        _ => Write {
            filter: document(command, "query").unwrap_or_default(),
            update: command.get("update"),
            is_multi: false,
            collation: document(command, "collation"),
        },
    })
}

/// Returns true if an update names a field of the key: an operator or a stage that changes it, or a
/// replacement with another value than the filter asks.
fn changes_key(update: Value<'_>, write: &Write<'_>, key: &ShardKey) -> bool {
    let touches = |path: &str| {
        key.paths.iter().any(|own| {
            let begins = |outer: &str, inner: &str| {
                inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            begins(own, path) || begins(path, own)
        })
    };
    match update {
        Value::Array(stages) => {
            stages.iter().filter_map(|stage| stage.as_document()).any(|stage| {
                let Some(first) = stage.first() else { return false };
                match first.value() {
                    Value::Document(fields) => fields.fields().any(|(path, _)| touches(path)),
                    Value::String(path) => touches(path),
                    Value::Array(paths) => {
                        paths.iter().any(|path| path.as_str().is_some_and(touches))
                    }
                    _ => false,
                }
            })
        }
        Value::Document(update) if update.first().is_some_and(|one| one.key().starts_with('$')) => {
            let operands = update.fields().filter_map(|(_, operand)| operand.as_document());
            operands
                .flat_map(|operand| operand.fields().collect::<Vec<_>>())
                .any(|(path, _)| touches(path))
        }
        Value::Document(replacement) => {
            let asked = DocBuf::build(|out| {
                let values = write.filter.fields().filter(|(path, _)| touches(path));
                values.for_each(|(path, value)| {
                    out.append(path, value);
                });
            });
            let mut values = asked.as_doc().fields();
            values.any(|(path, value)| {
                let new = replacement.get(path);
                new.is_none_or(|new| !quire_document::equal(new, value, None))
            })
        }
        _ => false,
    }
}
