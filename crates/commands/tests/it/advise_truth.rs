//! `adviseIndexes` on random schemas and queries: what it says is true once its commands have run, its
//! intervals from samples contain the truth, and no other set of indexes is better.

use crate::what_if::{Schema, create, explain, insert, seeds, unpaced};
use crate::{Client, at, number};
use quire_advisor::indexes::Measured;
use quire_document::testing::Generator;
use quire_document::{ArrayBuf, Doc, DocBuf, doc};

/// Returns the advice about the collection `t`.
fn advise(client: &mut Client, commands: &[DocBuf], options: &DocBuf) -> DocBuf {
    let commands: ArrayBuf = commands.iter().collect();
    let mut command = doc! { "adviseIndexes": "t", "workload": { "commands": &commands } };
    options.as_doc().fields().for_each(|(name, value)| {
        command.append(name, value);
    });
    command.append("$db", "test");
    let reply = client.works(command);
    at(&reply, "collections.0").unwrap().as_document().unwrap().to_owned()
}

/// Creates the indexes of the advice and hides those that can go. Returns how many were created.
fn apply(client: &mut Client, advice: &DocBuf) -> usize {
    for list in ["create", "remove"] {
        for one in at(advice, list).unwrap().as_array().unwrap().iter() {
            // One that is hidden already has no command.
            let Some(command) = one.as_document().unwrap().get("apply") else { continue };
            let mut command = command.as_document().unwrap().to_owned();
            command.append("$db", "test");
            client.works(command);
        }
    }
    at(advice, "create").unwrap().as_array().unwrap().count()
}

/// Returns what a command really examines with the indexes that the collection has.
fn truth(client: &mut Client, command: &DocBuf) -> Measured {
    let explained = explain(client, command, None);
    Measured::of_explanation(explained.as_doc()).unwrap_or_else(|| panic!("{explained:?}"))
}

/// Returns the parts of a run in the advice, of the request at a position.
fn told(advice: &DocBuf, place: usize, run: &str, path: &str) -> Option<u64> {
    let told = number(advice, &format!("requests.{place}.{run}.{path}"))?;
    Some(told.try_into().unwrap())
}

/// Returns the commands of the advice, which leaves out those that do not read.
fn asked(advice: &DocBuf) -> Vec<DocBuf> {
    let requests = at(advice, "requests").unwrap().as_array().unwrap();
    let command = |one: Doc<'_>| one.get("command").unwrap().as_document().unwrap().to_owned();
    requests.iter().map(|one| command(one.as_document().unwrap())).collect()
}

#[test]
fn with_a_whole_copy_the_advice_is_what_is_true_after_the_build() {
    let (mut compared, mut created) = (0, 0);
    for seed in 0..seeds(8) {
        let mut random = Generator::new(2000 + seed);
        let server = unpaced();
        let mut client = server.client(1);
        let schema = Schema::new(&mut random);
        insert(&mut client, &schema.documents(600, &mut random));
        create(&mut client, &schema.indexes(&mut random));
        let commands: Vec<DocBuf> = (0..8).map(|_| schema.command(&mut random)).collect();
        let before: Vec<Measured> =
            commands.iter().map(|command| truth(&mut client, command)).collect();
        let advice = advise(&mut client, &commands, &doc! {});
        let asked = asked(&advice);
        assert_eq!(asked, commands, "seed {seed}");
        created += apply(&mut client, &advice);
        for (place, (command, before)) in commands.iter().zip(&before).enumerate() {
            let after = truth(&mut client, command);
            for (run, truth) in [("before", before), ("after", &after)] {
                let shown = at(&advice, &format!("requests.{place}.{run}"));
                let said = format!("seed {seed}, {run} of {command:?}: {shown:?}, not {truth:?}");
                let examined = told(&advice, place, run, "documentsExamined.estimate");
                assert_eq!(examined, Some(truth.documents), "{said}");
                let keys = told(&advice, place, run, "keysExamined.estimate");
                assert_eq!(keys, Some(truth.keys), "{said}");
                let low = told(&advice, place, run, "documentsExamined.low");
                let high = told(&advice, place, run, "documentsExamined.high");
                assert_eq!((low, high), (examined, examined), "{said}");
                let indexes = at(&advice, &format!("requests.{place}.{run}.indexes")).unwrap();
                let indexes = indexes.as_array().unwrap();
                let indexes: Vec<&str> = indexes.iter().filter_map(|name| name.as_str()).collect();
                assert_eq!(indexes, truth.indexes, "{said}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100 && created > 8, "{compared} runs compared, {created} indexes created");
}

#[test]
fn intervals_of_the_advice_from_samples_contain_the_truth() {
    let (mut intervals, mut missed) = (0, Vec::new());
    for seed in 0..seeds(6) {
        let mut random = Generator::new(3000 + seed);
        let server = unpaced();
        let mut client = server.client(1);
        let schema = Schema::new(&mut random);
        insert(&mut client, &schema.documents(2500, &mut random));
        let commands: Vec<DocBuf> = (0..8).map(|_| schema.command(&mut random)).collect();
        let before: Vec<Measured> =
            commands.iter().map(|command| truth(&mut client, command)).collect();
        let sampled = doc! { "sampleSize": 300, "seed": seed as i64 };
        let advice = advise(&mut client, &commands, &sampled);
        let smaller = number(&advice, "smallerCopy.documents").unwrap();
        assert!((30..150).contains(&smaller), "a second size, about a fourth: {smaller}");
        apply(&mut client, &advice);
        for (place, command) in commands.iter().enumerate() {
            let after = truth(&mut client, command);
            for (run, truth) in [("before", &before[place]), ("after", &after)] {
                let counts = [("documents", truth.documents), ("keys", truth.keys)];
                for (part, truth) in counts {
                    let end =
                        |end: &str| told(&advice, place, run, &format!("{part}Examined.{end}"));
                    let (Some(low), Some(high)) = (end("low"), end("high")) else { continue };
                    intervals += 1;
                    if !(low..=high).contains(&truth) {
                        missed.push(format!(
                            "seed {seed}, {run}: {part} {truth} not in {low}..{high}: {command:?}"
                        ));
                    }
                }
            }
        }
    }
    let share = 1.0 - missed.len() as f64 / f64::from(intervals);
    assert!(intervals > 150 && share >= 0.95, "{share} of {intervals}: {missed:#?}");
}

/// The weights of the reply: a document 1, a key 0.25, a row sorted 0.5, and 1 for each run.
fn cost(run: &Measured) -> f64 {
    let sorted = if run.sorts > 0 { run.documents.max(run.returned) as f64 } else { 0.0 };
    1.0 + run.documents as f64 + run.keys as f64 * 0.25 + sorted * 0.5
}

/// Returns the cost of all commands with these indexes, where an index counts for a command only if
/// it at least halves its cost.
fn cost_with(client: &mut Client, commands: &[DocBuf], keys: &[&DocBuf], today: &[f64]) -> f64 {
    let specs: Vec<DocBuf> = keys.iter().map(|key| doc! { "key": *key }).collect();
    let specs: ArrayBuf = specs.iter().collect();
    let what_if = doc! { "create": &specs };
    let mut total = 0.0;
    for (command, today) in commands.iter().zip(today) {
        let explained = explain(client, command, Some(&what_if));
        let tried = at(&explained, "whatIf.explanation").unwrap().as_document().unwrap();
        let with = cost(&Measured::of_explanation(tried).unwrap());
        total += if with <= today * 0.5 { with } else { *today };
    }
    total
}

/// Every set of at most two indexes over two fields is really tried, and none is better than the set
/// of the advice.
#[test]
fn the_chosen_set_is_that_of_an_exhaustive_search() {
    let keys = [doc! { "a": 1 }, doc! { "b": 1 }, doc! { "a": 1, "b": 1 }, doc! { "b": 1, "a": 1 }];
    for seed in 0..seeds(5) {
        let mut random = Generator::new(4000 + seed);
        let server = unpaced();
        let mut client = server.client(1);
        let values = [[20, 300], [5, 1000], [60, 60]][random.below(3) as usize];
        let documents: Vec<DocBuf> = (0..600)
            .map(|id| {
                let mut value = |at: usize| random.below(values[at]) as i32;
                doc! { "_id": id, "a": value(0), "b": value(1) }
            })
            .collect();
        insert(&mut client, &documents);
        let filter = |at: usize, random: &mut Generator| {
            let value = random.below(values[at]) as i32;
            match random.below(3) {
                0 => doc! { "$gte": value, "$lt": value + values[at] as i32 / 10 },
                _ => doc! { "$eq": value },
            }
        };
        let commands: Vec<DocBuf> = (0..3)
            .map(|_| {
                let filter = match random.below(3) {
                    0 => doc! { "a": &filter(0, &mut random) },
                    1 => doc! { "b": &filter(1, &mut random) },
                    _ => doc! { "a": &filter(0, &mut random), "b": &filter(1, &mut random) },
                };
                doc! { "find": "t", "filter": &filter }
            })
            .collect();
        let today: Vec<f64> =
            commands.iter().map(|command| cost(&truth(&mut client, command))).collect();
        // With `_id` two indexes more.
        let budget = doc! { "budget": { "maxIndexes": 3 } };
        let advice = advise(&mut client, &commands, &budget);
        let advised: Vec<DocBuf> = at(&advice, "create")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                one.as_document().unwrap().get("key").unwrap().as_document().unwrap().to_owned()
            })
            .collect();
        let advised: Vec<&DocBuf> = advised.iter().collect();
        let found = cost_with(&mut client, &commands, &advised, &today);
        let mut least = (cost_with(&mut client, &commands, &[], &today), Vec::new());
        for (at, one) in keys.iter().enumerate() {
            let alone = std::iter::once(vec![one]);
            let pairs = keys[at + 1..].iter().map(|other| vec![one, other]);
            for set in alone.chain(pairs) {
                let cost = cost_with(&mut client, &commands, &set, &today);
                if cost < least.0 {
                    least = (cost, set);
                }
            }
        }
        assert!(
            found <= least.0 * 1.02,
            "seed {seed}: {advised:?} costs {found}, {least:?} less, for {commands:?}"
        );
    }
}
