//! `quire eject`: writes the patterns of a database as a script for mongosh, which keeps them in a plain
//! MongoDB, so that users can leave and keep them. The aggregations come from the definitions
//! (`quire_catalog::patterns::Plain`); `worker.js` runs them.

use crate::call::{Call, print};
use crate::connect::{self, Client, Target, batch};
use crate::exit::Failure;
use crate::words::{Word, Words};
use quire_catalog::patterns::{CopyMode, OnDelete, Pattern, PatternKind};
use quire_document::extjson::{self, Format};
use quire_document::{ArrayBuf, Doc, DocBuf, doc};

/// The part of the script that is the same for all databases.
const WORKER: &str = include_str!("worker.js");

fn help() -> String {
    format!(
        "Usage: quire eject [DB] [OPTIONS]

Prints the patterns of the database DB, or of that in the URI, as a script for mongosh
(docs/patterns). With it a plain MongoDB checks and keeps what the patterns keep here:

  quire eject shop > shop.js
  MODE=check mongosh URI shop.js    lists what differs
  MODE=repair mongosh URI shop.js   writes it
  MODE=watch mongosh URI shop.js    keeps it, by change streams

Data:
{}

Output:
  --remove             Also removes the patterns from DB. What they have written stays.
  -h, --help           Shows this help.",
        connect::HELP
    )
}

struct EjectOptions {
    target: Target,
    db: String,
    remove: bool,
}

impl EjectOptions {
    /// Parses the command line; `None` if help was requested.
    fn parse(call: &Call) -> Result<Option<EjectOptions>, Failure> {
        let mut target = Target::default();
        let (mut remove, mut db) = (false, None);
        let mut words = Words::of(call, help());
        while let Some(word) = words.next(&mut target)? {
            match word {
                Word::Help => return Ok(None),
                Word::Long(name) if name == "remove" => remove = true,
                Word::Value(value) if db.is_none() => db = Some(words.text_of(value)?),
                other => return Err(words.unexpected(other)),
            }
        }
        let db = match db {
            Some(db) => Some(db),
            None => target.database()?,
        };
        let db = db.ok_or_else(|| words.wrong("name the database, here or in --uri"))?;
        Ok(Some(EjectOptions { target, db, remove }))
    }
}

/// Runs `quire eject`.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let Some(options) = EjectOptions::parse(call)? else {
        print(&help());
        return Ok(());
    };
    let door = options.target.open("quire eject")?;
    let mut client = door.client()?;
    let done = eject(&mut client, &options);
    drop(client);
    door.close()?;
    print(&done?);
    Ok(())
}

fn eject(client: &mut Client, options: &EjectOptions) -> Result<String, Failure> {
    let declared = declared(client, &options.db)?;
    if declared.is_empty() {
        let text = format!("the database '{}' has no patterns", options.db);
        return Err(Failure::new(crate::exit::FAILED, text));
    }
    let script = script(&options.db, &declared);
    if options.remove {
        for (collection, pattern) in &declared {
            let removal = doc! { "name": pattern.name.as_str(), "remove": true };
            let command = doc! { "collMod": collection.as_str(), "patterns": [&removal] };
            let failed = format!("cannot remove the pattern '{pattern}' of {collection}");
            client.call(&options.db, command, None).map_err(|error| error.failure(&failed))?;
        }
    }
    Ok(script)
}

/// Returns the patterns of a database, each with the name of the collection that declares it.
fn declared(client: &mut Client, db: &str) -> Result<Vec<(String, Pattern)>, Failure> {
    let mut call = |command: DocBuf| {
        client.call(db, command, None).map_err(|error| error.failure("cannot list collections"))
    };
    let (mut reply, mut name) = (call(doc! { "listCollections": 1 })?, "firstBatch");
    let mut found = Vec::new();
    loop {
        let (id, rows) = batch(&reply, name)?;
        for row in rows.iter().filter_map(|row| row.as_document()) {
            patterns_of(row, &mut found)?;
        }
        if id == 0 {
            break;
        }
        reply = call(doc! { "getMore": id, "collection": "$cmd.listCollections" })?;
        name = "nextBatch";
    }
    found.sort_by(|a, b| (&a.0, &a.1.name).cmp(&(&b.0, &b.1.name)));
    Ok(found)
}

/// Appends the patterns of one row of `listCollections`.
fn patterns_of(row: Doc<'_>, found: &mut Vec<(String, Pattern)>) -> Result<(), Failure> {
    let name = row.get("name").and_then(|name| name.as_str()).unwrap_or_default();
    let info = row.get("info").and_then(|info| info.as_document()).unwrap_or_default();
    let patterns = info.get("patterns").and_then(|patterns| patterns.as_array());
    for shown in patterns.iter().flat_map(|patterns| patterns.iter()) {
        let shown = shown.as_document().unwrap_or_default();
        let definition = DocBuf::build(|writer| {
            let is_state = |name: &str| matches!(name, "state" | "generation" | "reason");
            for (name, value) in shown.fields().filter(|(name, _)| !is_state(name)) {
                writer.append(name, value);
            }
        });
        let pattern = Pattern::parse("pattern", definition.as_doc());
        let failed = |error: quire_error::Error| {
            let text = format!("this program does not know a pattern of {name}: {error}");
            Failure::new(crate::exit::FAILED, text)
        };
        found.push((name.to_owned(), pattern.map_err(failed)?));
    }
    Ok(())
}

/// Returns the script for the patterns of a database.
fn script(db: &str, declared: &[(String, Pattern)]) -> String {
    let mut script = format!(
        "// The patterns of the database '{db}', for mongosh. Written by quire eject.\n\
         const database = {};\nconst patterns = EJSON.parse(String.raw`[\n",
        extjson::print(db, Format::default())
    );
    let rows: Vec<String> = declared.iter().map(|(owner, pattern)| row(owner, pattern)).collect();
    script.push_str(&rows.join(",\n"));
    script.push_str("\n]`, { relaxed: false });\n\n");
    script.push_str(WORKER);
    script
}

/// Returns a pattern as the worker reads it, one line of Extended JSON.
fn row(owner: &str, pattern: &Pattern) -> String {
    let plain = pattern.plain(owner);
    let stages = |stages: &[DocBuf]| {
        ArrayBuf::build(|out| {
            for stage in stages {
                out.push(stage);
            }
        })
    };
    let row = DocBuf::build(|writer| {
        writer.append("name", pattern.name.as_str()).append("collection", owner);
        writer.append_some("from", pattern.from().map(quire_document::Value::String));
        match &pattern.kind {
            PatternKind::Reference(reference) => {
                writer.append("localField", reference.local_field.as_str());
                writer.append("foreignField", reference.foreign_field.as_str());
                let on_delete = match reference.on_delete {
                    OnDelete::SetNull => "setNull",
                    OnDelete::Cascade => "cascade",
                    OnDelete::Restrict => "restrict",
                    OnDelete::Keep => "keep",
                };
                writer.append("onDelete", on_delete);
                let snapshots = reference.fields.iter();
                let snapshots = snapshots.filter(|field| field.mode == CopyMode::Snapshot);
                let paths = ArrayBuf::build(|out| {
                    for field in snapshots {
                        out.push(&*format!("{}.{}", reference.into, field.name));
                    }
                });
                writer.append("snapshots", quire_document::Value::Array(paths.as_array()));
            }
            PatternKind::Rollup(rollup) => {
                writer.append("localField", rollup.local_field.as_str());
                writer.append("foreignField", rollup.foreign_field.as_str());
            }
            PatternKind::Counter(counter) => {
                writer.append("path", counter.path.as_str());
            }
        }
        for (name, part) in [
            ("compute", &plain.compute),
            ("write", &plain.write),
            ("refused", &plain.refused),
            ("release", &plain.release),
        ] {
            let part = stages(part);
            writer.append(name, quire_document::Value::Array(part.as_array()));
        }
    });
    let format = Format { canonical: true, ..Format::default() };
    // The text stands between backquotes.
    extjson::print(row.as_doc(), format).replace('`', "\\u0060").replace("${", "\\u0024{")
}
