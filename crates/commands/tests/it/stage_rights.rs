//! The privileges that each stage requires, after MongoDB's manual ("Access Control" of each
//! stage): each stage of the registry is tested alone and in the pipelines of the stages that have
//! pipelines. A stage without a row here fails the test, and so does a stage that runs without an
//! action that the manual names.

use super::access::guarded;
use super::{Client, code};
use quire_access::Mechanism;
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use quire_mql::stage::{Pipelines, Reads, STAGES};

/// The resource of an action.
#[derive(Clone, Copy, PartialEq)]
enum On {
    /// The collection of the pipeline.
    Source,
    /// The server.
    Cluster,
    /// The collection that the stage names.
    Named,
}
use On::{Cluster, Named, Source};

/// A stage, its specification with the collection that it names, and the actions that it requires
/// as the first stage.
type Row = (&'static str, fn(&str) -> DocBuf, &'static [(On, &'static str)]);

/// Stages that require only `find` on what they read.
const PLAIN: &str = "$addFields $bucket $bucketAuto $changeStreamSplitLargeEvent $count $densify $facet $fill \
    $geoNear $group $limit $match $project $rankFusion $redact $replaceRoot $replaceWith $sample $schemaStats \
    $score $scoreFusion $search $searchBeta $searchMeta $set $setWindowFields $skip $sort $sortByCount $unset $unwind \
    $vectorSearch";

const OTHERS: &[Row] = &[
    ("$changeStream", |_| doc! {}, &[(Source, "find"), (Source, "changeStream")]),
    ("$collStats", |_| doc! { "$collStats": { "count": {} } }, &[(Source, "collStats")]),
    ("$currentOp", |_| doc! { "$currentOp": { "allUsers": true } }, &[(Cluster, "inprog")]),
    ("$documents", |_| doc! { "$documents": [{}] }, &[]),
    (
        "$graphLookup",
        |named| {
            doc! { "$graphLookup": {
                "from": named, "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "g"
            } }
        },
        &[(Source, "find"), (Named, "find")],
    ),
    ("$indexStats", |_| doc! { "$indexStats": {} }, &[(Source, "indexStats")]),
    ("$listCatalog", |_| doc! {}, &[(Cluster, "listDatabases"), (Source, "listCollections")]),
    ("$listClusterCatalog", |_| doc! {}, &[(Cluster, "listClusterCatalog")]),
    (
        "$listLocalSessions",
        |_| doc! { "$listLocalSessions": { "allUsers": true } },
        &[(Cluster, "listSessions")],
    ),
    ("$listSampledQueries", |_| doc! {}, &[(Cluster, "inprog")]),
    ("$listSearchIndexes", |_| doc! {}, &[(Source, "listSearchIndexes")]),
    (
        "$listSessions",
        |_| doc! { "$listSessions": { "users": [{ "user": "root", "db": "admin" }] } },
        &[(Cluster, "listSessions")],
    ),
    (
        "$lookup",
        |named| {
            doc! { "$lookup": { "from": named, "localField": "a", "foreignField": "a", "as": "j" } }
        },
        &[(Source, "find"), (Named, "find")],
    ),
    (
        "$merge",
        |named| doc! { "$merge": { "into": { "db": "shop", "coll": named } } },
        &[(Source, "find"), (Named, "insert"), (Named, "update")],
    ),
    (
        "$out",
        |named| doc! { "$out": named },
        &[(Source, "find"), (Named, "insert"), (Named, "remove")],
    ),
    ("$planCacheStats", |_| doc! {}, &[(Source, "planCacheRead")]),
    ("$querySettings", |_| doc! {}, &[(Cluster, "querySettings")]),
    ("$queryStats", |_| doc! {}, &[(Cluster, "queryStatsRead")]),
    ("$shardedDataDistribution", |_| doc! {}, &[(Cluster, "shardedDataDistribution")]),
    ("$statusHistory", |_| doc! {}, &[(Cluster, "serverStatus")]),
    (
        "$unionWith",
        |named| doc! { "$unionWith": { "coll": named } },
        &[(Source, "find"), (Named, "find")],
    ),
];

/// Returns the stage with the collection `named`, and its requirements as the first stage.
fn row(name: &'static str, named: &str) -> (DocBuf, &'static [(On, &'static str)]) {
    let found = OTHERS.iter().find(|(of, ..)| *of == name);
    let (stage, needs) = match found {
        Some((_, stage, needs)) => (stage(named), *needs),
        None => {
            let is_plain = PLAIN.split_whitespace().any(|plain| plain == name);
            assert!(is_plain, "{name}: what does it need? Add it here and to its row.");
            (doc! {}, &[(Source, "find")][..])
        }
    };
    // The operand of most stages does not matter: a user without the right does not learn what is
    // wrong with it.
    if stage.as_doc().is_empty() { (doc! { name: {} }, needs) } else { (stage, needs) }
}

/// Returns a stage with `inner` as its inner pipeline, over `shop.second` if it names a collection.
fn around(name: &str, inner: &DocBuf) -> DocBuf {
    let inner: ArrayBuf = [Value::from(inner)].into_iter().collect();
    match name {
        "$facet" => doc! { "$facet": { "a": [], "b": &inner } },
        "$lookup" => doc! { "$lookup": { "from": "second", "pipeline": &inner, "as": "j" } },
        "$unionWith" => doc! { "$unionWith": { "coll": "second", "pipeline": &inner } },
        "$rankFusion" | "$scoreFusion" => {
            doc! { name: { "input": { "pipelines": { "a": &inner } } } }
        }
        _ => panic!("{name} has pipelines: how is it written?"),
    }
}

/// A privilege as its resource and action.
type Need = (DocBuf, String);

fn on_collection(collection: &str, action: &str) -> Need {
    (doc! { "db": "shop", "collection": collection }, action.to_owned())
}

/// Returns the privileges of a stage over `source` that names `named`.
fn resolved(needs: &[(On, &str)], source: &str, named: &str) -> Vec<Need> {
    let one = |(on, action): &(On, &str)| match on {
        Source => on_collection(source, action),
        Named => on_collection(named, action),
        Cluster => (doc! { "cluster": true }, (*action).to_owned()),
    };
    needs.iter().map(one).collect()
}

struct Walk {
    root: Client,
    tester: Client,
    wrong: Vec<String>,
}

impl Walk {
    fn grant(&mut self, needs: &[Need]) {
        let privileges: Vec<DocBuf> = needs
            .iter()
            .map(|(resource, action)| doc! { "resource": resource, "actions": [action.as_str()] })
            .collect();
        let privileges: ArrayBuf = privileges.iter().map(Value::from).collect();
        self.root.works(doc! { "updateRole": "tested", "privileges": &privileges, "$db": "admin" });
    }

    fn is_refused(&mut self, command: &DocBuf) -> bool {
        code(&self.tester.run(command.clone())) == 13
    }

    /// Checks that the command requires exactly these privileges.
    fn check(&mut self, what: &str, command: &DocBuf, needs: &[Need]) {
        self.grant(needs);
        if self.is_refused(command) {
            self.wrong.push(format!("{what} is refused with {needs:?}"));
        }
        for missing in 0..needs.len() {
            let mut fewer = needs.to_vec();
            let without = fewer.remove(missing);
            if fewer.contains(&without) {
                continue;
            }
            self.grant(&fewer);
            if !self.is_refused(command) {
                self.wrong.push(format!("{what} runs without {without:?}"));
            }
        }
    }

    /// Checks a pipeline of one stage in `aggregate`, in its `explain` and as the definition of a view.
    fn check_stage(&mut self, what: &str, stage: &DocBuf, needs: &[Need]) {
        let aggregate = doc! { "aggregate": "first", "pipeline": [stage], "cursor": {} };
        let mut command = aggregate.clone();
        command.append("$db", "shop");
        self.check(what, &command, needs);
        let command = doc! { "explain": &aggregate, "$db": "shop" };
        self.check(&format!("explain of {what}"), &command, needs);
        let command =
            doc! { "create": "made", "viewOn": "first", "pipeline": [stage], "$db": "shop" };
        let making = [on_collection("made", "createCollection"), on_collection("first", "find")];
        let needs: Vec<Need> = making.into_iter().chain(needs.iter().cloned()).collect();
        self.check(&format!("a view with {what}"), &command, &needs);
    }
}

#[test]
fn each_stage_needs_the_privileges_of_the_manual_at_every_position() {
    let (server, mut root) = guarded();
    root.works(doc! { "createRole": "tested", "roles": [], "privileges": [], "$db": "admin" });
    root.works(doc! { "createUser": "t", "pwd": "p", "roles": ["tested"], "$db": "admin" });
    let mut tester = server.client(2);
    assert_eq!(tester.log_in("admin", "t", "p", Mechanism::Sha256), 0);
    let mut walk = Walk { root, tester, wrong: Vec::new() };
    for stage in STAGES {
        let (alone, needs) = row(stage.name, "second");
        walk.check_stage(stage.name, &alone, &resolved(needs, "first", "second"));
        for outer in STAGES.iter().filter(|outer| outer.facts.pipelines != Pipelines::None) {
            let (inner, needs) = row(stage.name, "third");
            let joins = outer.facts.reads == Reads::OtherCollection;
            let mut all = vec![on_collection("first", "find")];
            // A branch processes the documents of the outer stage.
            all.extend(
                resolved(needs, "second", "third")
                    .into_iter()
                    .zip(needs)
                    .filter_map(|(need, (on, _))| (joins || *on == Named).then_some(need)),
            );
            let what = format!("{} in {}", stage.name, outer.name);
            walk.check_stage(&what, &around(outer.name, &inner), &all);
        }
    }
    assert!(walk.wrong.is_empty(), "{}", walk.wrong.join("\n"));
}
