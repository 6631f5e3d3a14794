//! COMPATIBILITY.md and docs/options.md, generated from the registries: what works, what is missing,
//! and which options have no effect.

use crate::connect::uri::PASSED_OVER;
use crate::serve::options::{OPTIONS, Status};
use quire_commands::{CLUSTER_PARAMETERS, COMMANDS, PARAMETERS};
use quire_mql::accumulator::ACCUMULATORS;
use quire_mql::stage::STAGES;
use quire_mql::window::WINDOW_FUNCTIONS;
use quire_mql::{expression, filter, update};
use std::fmt::Write;

const HEAD: &str = "# Compatibility

Quire follows the behaviour of MongoDB 8.2. This page is generated from the registries of the source
(`cargo xtask compatibility`); a test compares the two. A feature that is listed as missing returns
`CommandNotSupported` (115) or the command's own error, which names the feature.

Missing as a whole: time-series collections,
geospatial indexes, server-side JavaScript (`$where`, `$function`, `$accumulator`: not planned).
";

const DIFFERENCES: &str = "
## Differences

- Collations use the data of a newer ICU than MongoDB's 57.1 (docs/adr/0008-collation.md): the no-break space counts as a space, not as
  punctuation; strings compare as if they were normalized, whatever `normalization` says; the variants `search`, `searchjl`, `big5han`
  and `gb2312han` are missing. A `$expr` that is a `$in` of a path in constants compares bytes, as in MongoDB 8.2; inside another
  expression such a `$in` uses the collation.
- Sessions are kept in memory: `$listSessions` shows the same as `$listLocalSessions`, the sessions used since the start. The
  results of retryable writes are stored, so that a retry is recognised after a restart. Without `--auth` no session belongs to a named
  user.
- Reads with read concern `majority`, `snapshot` and `linearizable` return the same as with `local`, and wait until it is on disk;
  `available` is `local`. A `snapshot` read and its cursor stay at one time. `atClusterTime` can be any time of the last 60 seconds
  (`minSnapshotHistoryWindowInSeconds`, 300 in MongoDB), unless more than 8 MB, 10,000 groups of commits or 64 changes of the
  catalog came after it: then the error is `SnapshotTooOld`.
- Search indexes: the server has no search service, so the four commands and `$search`, `$searchMeta`,
  `$vectorSearch` and `$listSearchIndexes` return `SearchNotEnabled`, as in a mongod without one.
- `wtimeout` limits how long a write of documents waits for the disk. Changes of the catalog wait without a limit.
- A default write concern must have a `w` that a single member can satisfy.
- Accepted without effect: `allowPartialResults`, `oplogReplay` and `mirrored` of find, `commitQuorum` of one member.
- `storageEngine` and `indexOptionDefaults` of `create`, and `storageEngine` of an index, are checked, stored and shown as in MongoDB,
  and have no effect, because they are for another storage engine.
- Tailable cursors read in the order of insertion, whatever index a `hint` names; `min` and `max` are refused. `maxTimeMS: 0` of a
  `getMore` on an `awaitData` cursor does not wait. A document is returned after all inserts that began before it have ended.
- While `convertToCapped` copies the documents, writes to the collection return `ConflictingOperationInProgress`.
- `serverStatus` has a section `wiredTiger` with the fields that tools read. Its values are those of Quire's engine, whose
  name is `lsm` (or `memory`).
- `system.profile` is an ordinary collection with an `_id` index, which the profiler keeps below 1 MiB by deleting the oldest
  entries. While `fsync` blocks writes, nothing is recorded. A `bulkWrite` has one entry. Entries and slow-query lines have no
  `keysInserted`, `keysDeleted` and `queryHash`; `locks` and `storage` are empty.
- `fsync` with `lock` flushes and blocks writes. The engine may still rewrite its files: copy a directory with
  `quire backup`, not with `cp`.
- `currentOp` and `$currentOp` show running operations and idle transactions: `idleConnections` and `idleCursors` add
  nothing.
- Validators check the writes of clients and what rules derive from them, not those of the server itself (a rename to another
  database, users, views, the profiler). A stored validator that this version cannot compile refuses every document. Lines of the
  log for `warn` and `errorAndLog` show about 4 KiB of the document.
- `validate` reads one snapshot while other clients write. It also compares the counters; if writes to the collection never
  pause, it returns a warning instead.
- `lockInfo` and `serverStatus.locks` show only the lock of `fsync`: document locks do not outlive a statement.
- `freeStorageSize` of `dbStats` and `collStats` is 0: compaction frees the space of deleted documents.
- A write with `w` above 1 is executed and returns `UnsatisfiableWriteConcern` at once.
- Every command accepts `$readPreference` without effect: the only member is the primary.
- Transactions: `maxTransactionLockRequestTimeoutMillis` limits how long a statement waits for a change of the catalog that itself waits
  for other transactions; a statement never waits for a document. If the engine has to close the snapshot of a transaction (many long
  ones under load, docs/limits.md), the transaction fails with 246 SnapshotUnavailable. A transaction that is larger than the engine can
  commit at once fails with 257. Outside of a transaction, `count` counts only committed documents. A change of the catalog waits for
  transactions that used the collection.
- Documents of a clustered collection have record ids like all others (`$recordId` is not the `_id`). `_id`s that agree in their first 1,024
  encoded bytes are adjacent, in no defined order. `CLUSTERED_IXSCAN` visits the values of an `$in` one by one.
- The index bounds and counters of `explain` are exact; `works`, `advanced` and `needTime` follow from them, `needYield`, `saveState`
  and `restoreState` are 0. A `$group` directly after the query is in the plan as `GROUP`, with `explainVersion` 2,
  `winningPlan.queryPlan` and `planNodeId`; there is no `slotBasedPlan`, and `executionStages` shows the stages of the plan. A
  `$lookup` that 8.2 shows as `EQ_LOOKUP` is in `stages`, with its strategy, index and counters.
- `AND_SORTED` is chosen if two equalities have few common documents; in MongoDB it is only among the rejected plans. There is no
  `AND_HASH`.
- Plans are chosen by index dives, not by trials; the plan cache keeps the index that won (docs/adr/0029-plan-cache.md). Requests for which
  fewer than two indexes compete are not cached, also with `$or`. In `$planCacheStats`, `works` counts keys, and `creationExecStats` has
  `totalKeysExamined` for each plan. Index filters work as in MongoDB.
- `queryFramework` of query settings is stored and shown; there is one framework. The shape of a request is written as MongoDB shows it, but its
  `queryShapeHash` is not the hash that mongod computes. Settings by hash therefore do not move between the two; settings by query do.
- A test that holds for a missing field, such as `{\"a.0\": null}`, uses no index of a path with an array position: the entry of
  `[{}]` does not show that the document in it has no field `0`. mongod uses the index and misses the document.
- A view may not contain `$rankFusion` or `$scoreFusion`. `$group` returns a key that is code, `MinKey` or `MaxKey` unchanged.
- `internalQueryExecYieldIterations` and `internalQueryFacetBufferSizeBytes` can be read and set, and have
  no effect: reads do not yield, and `$facet` has the limits in docs/limits.md.
";

/// Returns the page in Markdown.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    commands(&mut page);
    let built = STAGES.iter().filter(|row| row.is_built());
    table(&mut page, "Aggregation stages", built.map(|row| (row.name, row.since, row.doc)));
    let missing: Vec<String> = STAGES
        .iter()
        .filter(|row| !row.is_built() && !row.needs_search())
        .map(|row| format!("`{}`", row.name))
        .collect();
    let _ = writeln!(page, "\nMissing: {}.", missing.join(", "));
    table(
        &mut page,
        "Query operators",
        filter::operators().map(|row| (row.name, row.since, row.doc)),
    );
    table(
        &mut page,
        "Update operators",
        update::OPERATORS.iter().map(|row| (row.name, row.since, row.doc)),
    );
    table(
        &mut page,
        "Expression operators",
        expression::operators().map(|row| (row.name, row.since, row.doc)),
    );
    table(&mut page, "Accumulators", ACCUMULATORS.iter().map(|row| (row.name, row.since, row.doc)));
    table(
        &mut page,
        "Window functions",
        WINDOW_FUNCTIONS.iter().map(|row| (row.name, row.since, row.doc)),
    );
    parameters(&mut page);
    page.push_str(
        "\n## Options of the server\n\n[docs/options.md](docs/options.md) lists them all.\n",
    );
    uri_options(&mut page);
    page.push_str(DIFFERENCES);
    page
}

fn commands(page: &mut String) {
    page.push_str("\n## Commands\n\n| command | what it does |\n| --- | --- |\n");
    let mut rows: Vec<_> = COMMANDS.iter().filter(|row| row.run.is_some()).collect();
    rows.sort_by_key(|row| row.name.to_lowercase());
    for row in rows {
        let _ = writeln!(page, "| `{}` | {} |", row.name, row.summary);
    }
    let mut missing: Vec<_> = COMMANDS.iter().filter(|row| row.run.is_none()).collect();
    missing.sort_by_key(|row| row.name.to_lowercase());
    let missing: Vec<String> = missing.iter().map(|row| format!("`{}`", row.name)).collect();
    let _ = writeln!(page, "\nMissing: {}.", missing.join(", "));
}

fn table(
    page: &mut String,
    title: &str,
    rows: impl Iterator<Item = (&'static str, &'static str, &'static str)>,
) {
    let _ = write!(page, "\n## {title}\n\n| name | since | what it does |\n| --- | --- | --- |\n");
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| row.0);
    for (name, since, text) in rows {
        let _ = writeln!(page, "| `{name}` | {since} | {} |", text.replace('|', "\\|"));
    }
}

fn parameters(page: &mut String) {
    page.push_str("\n## Server parameters\n\n| parameter | what it does |\n| --- | --- |\n");
    for row in PARAMETERS {
        let _ = writeln!(page, "| `{}` | {} |", row.name, row.summary);
    }
    page.push_str(
        "\n## Parameters of the cluster\n\n| parameter | what it does |\n| --- | --- |\n",
    );
    for row in CLUSTER_PARAMETERS {
        let _ = writeln!(page, "| `{}` | {} |", row.name, row.summary);
    }
}

fn uri_options(page: &mut String) {
    let passed_over: Vec<String> = PASSED_OVER.iter().map(|name| format!("`{name}`")).collect();
    let _ = write!(
        page,
        "\n## Connection strings of the tools\n\n`authMechanism`, `authSource`, `replicaSet`, `appName`, \
         `directConnection`, `connectTimeoutMS`, `socketTimeoutMS`, `tls` (or `ssl`), `tlsCAFile`, \
         `tlsCertificateKeyFile`, `tlsCertificateKeyFilePassword`, `tlsAllowInvalidHostnames`, \
         `tlsAllowInvalidCertificates` and `tlsInsecure` work. Accepted without effect, because a tool sends \
         one command after the other over one connection: {}. Others are refused.\n",
        passed_over.join(", ")
    );
}

/// Returns docs/options.md: every option of the server.
pub fn options() -> String {
    let mut page = String::from(
        "# Options of the server\n\nThis page is generated (`cargo xtask compatibility`). `quire serve --help` shows the \
         usual options, `--help-all` every one. The names are mongod's; the second column is the path in a \
         configuration file (`--config FILE`, YAML). An option in the command line replaces the one in the file.\n\n\
         | option | configuration file | state | what it does |\n| --- | --- | --- | --- |\n",
    );
    for row in OPTIONS {
        let (state, text) = match row.status {
            Status::Works => ("works", row.summary.to_owned()),
            Status::NoEffect(why) => ("no effect", format!("{} Accepted: {why}.", row.summary)),
            Status::Refused(why) => ("refused", format!("{} Refused: {why}.", row.summary)),
        };
        let path = match row.config {
            "" => String::new(),
            path => format!("`{path}`"),
        };
        let _ = writeln!(page, "| `--{}` | {path} | {state} | {text} |", row.name);
    }
    page
}
