//! The choice of an index without statistics about the data: in random collections, whose values
//! are spread evenly, follow Zipf's law, depend on each other, or come in runs, the chosen plan
//! examines little more than the best candidate.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, doc};
use quire_executor::{ExecParams, explain, open};
use quire_planner::{FindRequest, ReadRequest, Verbosity};

const NAME: &str = "d.skewed";
/// The number of collections, and of queries on each.
const COLLECTIONS: u64 = 20;
const QUERIES: u64 = 20;
const DOCUMENTS: u64 = 4000;
/// How many times more a plan may examine than the best: a dive does not read all keys.
const FACTOR: i64 = 2;
const SLACK: i64 = 150;

/// The distribution of the values of a field.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Even: the number of values.
    Even(u64),
    /// Zipf's law, the nth value n times rarer than the first: the number of values.
    Zipf(u64),
    /// Nearly always 0: one document in this number has another value.
    Almost(u64),
    /// Equal to the field before in three of four documents: the number of values in the others.
    Follows(u64),
    /// Rising with the `_id`: the number of adjacent documents that share a value.
    Runs(u64),
}

impl Spread {
    fn pick(random: &mut Generator) -> Spread {
        let count = 2 + random.below(2000);
        match random.below(5) {
            0 => Spread::Even(count),
            1 => Spread::Zipf(count),
            2 => Spread::Almost(count),
            3 => Spread::Follows(2 + random.below(4)),
            _ => Spread::Runs(1 + count / 4),
        }
    }

    fn value(self, id: u64, before: u64, random: &mut Generator) -> u64 {
        match self {
            Spread::Even(count) => random.below(count),
            // The inverse of the distribution function, which grows like the logarithm.
            Spread::Zipf(count) => {
                let share = random.below(1 << 20) as f64 / (1u64 << 20) as f64;
                ((count as f64).powf(share) - 1.0) as u64
            }
            Spread::Almost(count) if random.one_in(count) => 1 + random.below(count),
            Spread::Almost(_) => 0,
            Spread::Follows(few) if random.one_in(4) => random.below(few),
            Spread::Follows(_) => before,
            Spread::Runs(length) => id / length,
        }
    }
}

/// Returns a collection and its documents, from which queries take their values.
fn collection(random: &mut Generator) -> (Arc<Store>, Vec<[u64; 3]>, [Spread; 3]) {
    let spreads = [Spread::pick(random), Spread::pick(random), Spread::pick(random)];
    let rows: Vec<[u64; 3]> = (0..DOCUMENTS)
        .map(|id| {
            let mut before = id % 7;
            spreads.map(|spread| {
                before = spread.value(id, before, random);
                before
            })
        })
        .collect();
    let store = store();
    let docs: Vec<DocBuf> = rows
        .iter()
        .zip(0..)
        .map(|([a, b, c], id)| doc! { "_id": id, "a": *a as i64, "b": *b as i64, "c": *c as i64 })
        .collect();
    insert_all(&store, NAME, docs.iter().map(DocBuf::as_doc));
    let mut specs = vec![
        doc! { "key": { "a": 1 }, "name": "a" },
        doc! { "key": { "b": 1 }, "name": "b" },
        doc! { "key": { "c": 1 }, "name": "c" },
    ];
    if random.one_in(2) {
        specs.push(doc! { "key": { "a": 1, "c": -1 }, "name": "a_c" });
    }
    create_indexes(&store, NAME, specs.iter().map(DocBuf::as_doc)).unwrap();
    (store, rows, spreads)
}

fn condition(name: &str, value: u64, random: &mut Generator) -> DocBuf {
    let value = value as i64;
    match random.below(5) {
        0 => doc! { (name): { "$gte": value, "$lte": (value + random.below(20) as i64) } },
        1 => doc! { (name): { "$in": [value, value + 1, value + 7] } },
        2 => doc! { (name): { "$gt": value } },
        // No document has this value.
        3 if random.one_in(6) => doc! { (name): -1 },
        _ => doc! { (name): value },
    }
}

fn request(rows: &[[u64; 3]], random: &mut Generator) -> FindRequest {
    let row = rows[random.below(rows.len() as u64) as usize];
    let mut conditions = Vec::new();
    for (name, value) in ["a", "b", "c"].into_iter().zip(row) {
        if !random.one_in(3) {
            conditions.push(condition(name, value, random));
        }
    }
    if conditions.is_empty() {
        conditions.push(doc! { "b": row[1] as i64 });
    }
    let filter: ArrayBuf = conditions.iter().collect();
    FindRequest {
        namespace: NAME.into(),
        filter: doc! { "$and": &filter },
        ..FindRequest::default()
    }
}

/// Returns the keys and documents that a plan examines; `None` if there is no such candidate.
fn examined(store: &Arc<Store>, request: &FindRequest, considered: Option<usize>) -> Option<i64> {
    let params = || ExecParams { considered, ..params() };
    open(request, &FreshViews::new(store).unwrap(), params()).ok()?;
    let mut views = FreshViews::new(store).unwrap();
    let request = ReadRequest::Find(request);
    let plan = explain(request, None, Verbosity::ExecutionStats, &mut views, params()).unwrap();
    let stats = plan.get("executionStats").and_then(|stats| stats.as_document()).unwrap();
    let number = |name| match stats.get(name) {
        Some(Value::Int32(number)) => i64::from(number),
        other => panic!("{name} is {other:?}"),
    };
    Some(number("totalKeysExamined") + number("totalDocsExamined"))
}

#[test]
fn the_chosen_plan_examines_little_more_than_the_best() {
    let mut random = Generator::new(77);
    let (mut choices, mut chosen, mut best) = (0, 0, 0);
    for _ in 0..COLLECTIONS {
        let (store, rows, spreads) = collection(&mut random);
        for _ in 0..QUERIES {
            let request = request(&rows, &mut random);
            let own = examined(&store, &request, None).unwrap();
            let others: Vec<i64> =
                (0..).map_while(|at| examined(&store, &request, Some(at))).collect();
            let Some(least) = others.iter().copied().min() else { continue };
            let least = least.min(own);
            assert!(
                own <= least * FACTOR + SLACK,
                "{own} of {least}, {spreads:?}, {:?}",
                request.filter
            );
            (choices, chosen, best) = (choices + 1, chosen + own, best + least);
        }
    }
    assert!(choices >= 200, "{choices}");
    assert!(chosen * 10 <= best * 11, "{chosen} examined, the best plans {best}");
}
