//! A kind of index for tests: it answers an operator of its own with a score and an order. It is this file
//! and one row of `KINDS`, as every kind that answers an operator.
//!
//! The index `{a: "toy"}` has one key for each document, the number in `a`. `$toy: 5` finds all documents
//! with a number, the one nearest to 5 first, with the distance as metadata: it scans the keys from 5
//! upwards and, as a second scan that it opens later, from 5 downwards.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use quire_document::{Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, Result};
use quire_mql::filter::{Node as Condition, Search};

use super::kind::Kind;
use super::{
    Answer, Arena, FoundKey, Interval, Intervals, KeyField, KeySpec, Part, SearchMethod,
    SearchPlan, SearchScan, Searched, Searches, Searching, Step, ordinary,
};
use crate::IndexSpec;
use crate::index_pattern::plugin_of;

pub(super) const KIND: Kind = Kind {
    name: "toy",
    doc: "The nearest number first, for tests.",
    fits: |pattern| plugin_of(pattern) == Some("toy"),
    complete: |_, _| Ok(()),
    check: |_| Ok(()),
    fields: |spec| {
        let path = spec.key.as_doc().fields().next().map(|(path, _)| path.to_owned());
        vec![KeyField { path: path.unwrap_or_default(), descending: false, part: Part::Computed }]
    },
    generate: |keys, doc, _, out| {
        out.values
            .extend(doc.get(&keys.fields()[0].path).filter(|value| value.is_number()).map(Some));
        Ok(())
    },
    is_touched: ordinary::is_touched,
    bounds: |_, _, _| None,
    tracks_arrays: false,
    needs_hash: false,
    shows_bounds: true,
    collates: false,
    is_alone: false,
    searches: Some(&SEARCHES),
    options: &[],
    same_keys: |_, _| true,
    state: |_| None,
    views: None,
};

const SEARCHES: Searches = Searches {
    operator: "$toy",
    answers: |_, _| true,
    choose: |_, _| Ok(None),
    bind: |spec, search| match search.as_any().downcast_ref::<Toy>() {
        Some(toy) => {
            let path = spec.key.as_doc().fields().next().map(|(path, _)| path.to_owned());
            Ok(Arc::new(Toy { from: toy.from, path }))
        }
        None => Err(Error::internal("another search")),
    },
    plan: |_, searched| {
        let toy = searched.search.as_any().downcast_ref::<Toy>()?;
        Some(SearchPlan {
            answers: vec![Answer::None; searched.beside.len()],
            scans: vec![upwards(toy.from)],
            method: Arc::new(Method(toy.from)),
        })
    },
    wrong_number: |indexes| (indexes == 0).then(|| Error::bad_value("no toy index")),
};

/// A search for the numbers nearest to `from`.
#[derive(Debug)]
struct Toy {
    from: f64,
    /// The path of the bound index.
    path: Option<String>,
}

impl Search for Toy {
    fn operator(&self) -> &'static str {
        "$toy"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        let path = self.path.as_deref().ok_or_else(|| Error::internal("not bound"))?;
        Ok(doc.get(path).is_some_and(|value| value.is_number()))
    }

    fn metadata_of(&self, _: Doc<'_>) -> Result<DocBuf> {
        Ok(DocBuf::new())
    }

    fn metadata(&self) -> &'static [&'static str] {
        &["geoNearDistance"]
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append("$toy", self.from);
    }

    fn describe(&self) -> String {
        "TOY".into()
    }
}

fn upwards(from: f64) -> SearchScan {
    let bounds = vec![Intervals::of(Interval::new(from, true, f64::INFINITY, true))];
    SearchScan { bounds, backward: false }
}

fn downwards(from: f64) -> SearchScan {
    let bounds = vec![Intervals::of(Interval::new(f64::NEG_INFINITY, true, from, false))];
    SearchScan { bounds, backward: true }
}

#[derive(Debug)]
struct Method(f64);

impl SearchMethod for Method {
    fn check_stage(&self) -> Option<&'static str> {
        None
    }

    fn write_facts(&self, _: &mut DocWriter<'_>) {}

    fn check(&self, _: Doc<'_>) -> Result<bool> {
        Ok(true)
    }

    fn gather_stage(&self) -> &'static str {
        "TOY"
    }

    fn order(&self) -> Option<&'static str> {
        Some("geoNearDistance")
    }

    fn always_gathers(&self) -> bool {
        true
    }

    fn begin(&self) -> Box<dyn Searching> {
        Box::new(Nearest {
            from: self.0,
            opened: false,
            heads: Default::default(),
            ended: [false; 2],
        })
    }
}

/// Merges the two scans by distance.
struct Nearest {
    from: f64,
    opened: bool,
    heads: [VecDeque<(f64, u64)>; 2],
    ended: [bool; 2],
}

impl Searching for Nearest {
    fn step(&mut self) -> Result<Step> {
        if !self.opened {
            self.opened = true;
            return Ok(Step::Open(downwards(self.from)));
        }
        if let Some(scan) = (0..2).find(|scan| self.heads[*scan].is_empty() && !self.ended[*scan]) {
            return Ok(Step::Keys { scan, max: 2 });
        }
        let first = |scan: usize| self.heads[scan].front().map_or(f64::INFINITY, |head| head.0);
        let nearer = if first(0) <= first(1) { 0 } else { 1 };
        Ok(match self.heads[nearer].pop_front() {
            Some((distance, record)) => {
                Step::Row { record, metadata: doc! { "geoNearDistance": distance } }
            }
            None => Step::End,
        })
    }

    fn key(&mut self, scan: usize, key: &FoundKey<'_>) -> Result<()> {
        let number = key.number(0)?.ok_or_else(|| Error::internal("a key without its number"))?;
        self.heads[scan].push_back(((number - self.from).abs(), key.record));
        Ok(())
    }

    fn ended(&mut self, scan: usize) {
        self.ended[scan] = true;
    }

    fn document(&mut self, _: u64, _: Option<Doc<'_>>) -> Result<()> {
        Err(Error::internal("it asks for no document"))
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// The encoded keys of an index, with their type bits.
type Entries = BTreeMap<(Vec<u8>, u64), Vec<u8>>;

/// Runs a search on the entries, as the executor does. Returns records and distances.
fn run(keys: &KeySpec, entries: &Entries, plan: &SearchPlan) -> Vec<(u64, f64)> {
    let within = |part: &SearchScan| {
        let interval = &part.bounds[0].0[0];
        let end = |value: Value<'_>| {
            let mut bytes = Vec::new();
            keys.append_bound(0, value, &mut bytes);
            bytes
        };
        let (low, high) = (end(interval.low.as_value()), end(interval.high.as_value()));
        let inside = |key: &[u8]| {
            (key > low.as_slice() || key == low && interval.low_inclusive)
                && (key < high.as_slice() || key == high && interval.high_inclusive)
        };
        let mut found: Vec<_> = entries.iter().filter(|((key, _), _)| inside(key)).collect();
        if part.backward {
            found.reverse();
        }
        VecDeque::from(found)
    };
    let mut scans: Vec<_> = plan.scans.iter().map(within).collect();
    let (mut running, mut rows) = (plan.method.begin(), Vec::new());
    loop {
        match running.step().unwrap() {
            Step::Keys { scan, max } => {
                for _ in 0..max {
                    let Some(((key, record), type_bits)) = scans[scan].pop_front() else { break };
                    let values = Some(key.as_slice());
                    let key = FoundKey { record: *record, keys, values, type_bits };
                    running.key(scan, &key).unwrap();
                }
                if scans[scan].is_empty() {
                    running.ended(scan);
                }
            }
            Step::Open(part) => scans.push(within(&part)),
            Step::Row { record, metadata } => {
                rows.push((record, metadata.get("geoNearDistance").unwrap().to_f64().unwrap()));
            }
            Step::Document(_) => running.document(0, None).unwrap(),
            Step::End => return rows,
        }
    }
}

#[test]
fn a_kind_answers_an_operator_of_its_own_with_a_score_and_an_order() {
    let spec = doc! { "key": { "a": "toy" }, "name": "x" };
    let spec = IndexSpec::parse(spec.as_doc(), false).unwrap();
    let keys = KeySpec::new(&spec);
    let documents =
        [doc! { "a": 9 }, doc! { "a": 4.5 }, doc! { "b": 5 }, doc! { "a": "x" }, doc! { "a": -1 }];
    let mut entries = Entries::new();
    let arena = Arena::new();
    for (record, doc) in documents.iter().enumerate() {
        for key in keys.generate(doc.as_doc(), &arena).unwrap().keys() {
            let (mut bytes, mut bits) = (Vec::new(), quire_document::key::TypeBits::default());
            keys.append(key, &mut bytes, &mut bits);
            entries.insert((bytes, record as u64), bits.as_bytes().to_vec());
        }
    }
    let unbound: Arc<dyn Search> = Arc::new(Toy { from: 5.0, path: None });
    assert!(unbound.matches(documents[0].as_doc()).is_err());
    let searches = keys.searches(&*unbound).unwrap();
    let bound = (searches.bind)(&spec, &*unbound).unwrap();
    let matches: Vec<bool> =
        documents.iter().map(|doc| bound.matches(doc.as_doc()).unwrap()).collect();
    assert_eq!(matches, [true, true, false, false, true]);
    let beside = Condition::Always(true);
    let searched =
        Searched { search: &*bound, beside: &[&beside], collation: None, long_keys: false };
    let plan = (searches.plan)(&keys, &searched).unwrap();
    assert_eq!(plan.answers, [Answer::None]);
    assert_eq!(run(&keys, &entries, &plan), [(1, 0.5), (0, 4.0), (4, 6.0)]);
}

#[test]
fn a_search_without_an_index_has_the_error_of_its_kind() {
    let mut condition = Condition::Search(Arc::new(Toy { from: 5.0, path: None }));
    let error = crate::bind_searches(&mut condition, None).unwrap_err();
    assert_eq!(error.message(), "no toy index");
}
