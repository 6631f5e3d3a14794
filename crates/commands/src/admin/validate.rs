//! `validate`: compares every document of a collection with every entry of its indexes, on one
//! snapshot, while other clients read and write.

use crate::frame::args::is_generic;
use crate::frame::context::Context;
use crate::frame::service::Topology;
use quire_catalog::Collection;
use quire_collections::{
    CheckOptions, CollectionCheck, Conformance, PatternCheck, Problem, Repair, check_collection,
    check_pattern,
};
use quire_document::{Binary, Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::interruptible;
use quire_mql::expression::is_true;
use std::sync::Arc;
use std::time::Duration;

/// The number of findings that the reply lists; the others are only counted.
const LISTED_MAX: usize = 1000;
/// The wait of a repair for running writes.
const PATIENCE: Duration = Duration::from_secs(90);

/// The parsed options.
#[derive(Default)]
struct Options {
    full: bool,
    background: bool,
    metadata: bool,
    repair: bool,
    fix_multikey: bool,
    conformance: bool,
    fast_count: bool,
    /// Compares the documents with the declared patterns.
    patterns: bool,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.target(body)?;
    let options = Options::read(body);
    let standalone = cx.service.options.topology == Topology::Standalone;
    options.check(standalone)?;
    let catalog = cx.service.store.catalog();
    if catalog.view(&namespace).is_some() {
        let text = "Cannot validate a view";
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
    }
    let Some(collection) = catalog.lookup(&namespace) else {
        let text = format!("Collection '{namespace}' does not exist to validate.");
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    };
    // A replica set repairs only patterns, as any client could.
    let repair = match (options.repair && standalone, options.fix_multikey) {
        (true, _) => Repair::All,
        (false, true) => Repair::Facts,
        (false, false) => Repair::Nothing,
    };
    let conformance = match options.conformance {
        true => Conformance::Full,
        false => Conformance::Values,
    };
    let check = || {
        let options = CheckOptions { repair, conformance, validation: true };
        interruptible(&cx.interrupt_check(), || {
            check_collection(&cx.service.store, collection, options, &cx.interrupt)
        })
    };
    let found = match (options.metadata, repair) {
        (true, _) => None,
        (false, Repair::Nothing) => Some(check()?),
        // Entries that are written meanwhile would count as surplus ones.
        (false, _) => {
            cx.service.write_gate.close(&cx.interrupt, PATIENCE)?;
            let found = check();
            cx.service.write_gate.open()?;
            Some(found?)
        }
    };
    let patterns = match options.patterns {
        true => check_patterns(cx, collection, options.repair)?,
        false => Vec::new(),
    };
    write(collection, (found.as_ref(), &patterns), repair, reply);
    Ok(())
}

impl Options {
    /// Reads the options. Like mongod it accepts any value for a flag, and any other field.
    fn read(body: Doc<'_>) -> Options {
        let mut options = Options::default();
        for element in body.iter().skip(1).filter(|element| !is_generic(element.key_bytes())) {
            let flag = is_true(Some(element.value()));
            match element.key() {
                "full" => options.full = flag,
                "background" => options.background = flag,
                "metadata" => options.metadata = flag,
                "repair" => options.repair = flag,
                "fixMultikey" => options.fix_multikey = flag,
                "checkBSONConformance" => options.conformance = flag,
                "enforceFastCount" => options.fast_count = flag,
                "patterns" => options.patterns = flag,
                _ => {}
            }
        }
        options
    }

    /// Refuses options that exclude each other.
    fn check(&self, standalone: bool) -> Result<()> {
        let repairs = self.repair || self.fix_multikey;
        let invalid = |text: &str| Err(Error::new(ErrorCode::InvalidOptions, text));
        let unsupported = |text: &str| Err(Error::new(ErrorCode::CommandNotSupported, text));
        if self.metadata
            && (self.full || repairs || self.conformance || self.background || self.fast_count)
        {
            return invalid(
                "Running the validate command with { metadata: true } is not supported with any other options",
            );
        }
        if self.conformance && repairs {
            return invalid(
                "Running the validate command with both { checkBSONConformance: true } and { repair: true } is not supported.",
            );
        }
        if self.background {
            for (on, what) in [
                (self.full, "{ background: true } and { full: true }"),
                (self.repair, "{background: true } and { repair: true }"),
                (self.fast_count, "{ background: true } and { enforceFastCount: true }"),
            ] {
                if on {
                    return unsupported(&format!(
                        "Running the validate command with both {what} is not supported."
                    ));
                }
            }
            if standalone {
                return unsupported(
                    "Running the validate command with { background: true } is not supported in standalone mode",
                );
            }
        }
        if self.patterns && self.background {
            return unsupported("{ background: true } does not compare patterns");
        }
        if (self.fix_multikey || self.repair && !self.patterns) && !standalone {
            let option = if self.repair { "repair" } else { "fixMultikey" };
            return unsupported(&format!(
                "Running the validate command with {{ {option}: true }} can only be performed in standalone mode."
            ));
        }
        Ok(())
    }
}

/// Compares the documents with every declared pattern. With `repair` those that differ are written.
fn check_patterns(
    cx: &Context<'_>,
    collection: &Arc<Collection>,
    repair: bool,
) -> Result<Vec<PatternCheck>> {
    let check = |pattern| {
        interruptible(&cx.interrupt_check(), || {
            check_pattern(&cx.service.store, (collection, pattern), repair, &cx.interrupt)
        })
    };
    collection.patterns.declared.iter().map(check).collect()
}

fn write_patterns(patterns: &[PatternCheck], reply: &mut DocWriter<'_>) {
    if patterns.is_empty() {
        return;
    }
    let mut shown = reply.document("patterns");
    for pattern in patterns {
        let mut entry = shown.document(&pattern.name);
        crate::frame::reply::number(&mut entry, "checked", pattern.checked as i64);
        crate::frame::reply::number(&mut entry, "drift", pattern.drift as i64);
        crate::frame::reply::number(&mut entry, "repaired", pattern.repaired as i64);
        let mut documents = entry.array("documents");
        for id in &pattern.documents {
            documents.push(id.as_value());
        }
    }
}

fn write(
    collection: &Arc<Collection>,
    (found, patterns): (Option<&CollectionCheck>, &[PatternCheck]),
    repair: Repair,
    reply: &mut DocWriter<'_>,
) {
    let uuid = Value::Binary(Binary { subtype: 4, bytes: &collection.uuid.0 });
    reply.append("ns", collection.namespace.as_str()).append("uuid", uuid);
    if let Some(found) = found {
        let invalid = found.problems(|problem| matches!(problem, Problem::InvalidDocument(_)));
        reply.append("nInvalidDocuments", invalid.count() as i32);
        let noncompliant = found.violations + found.noncompliant;
        crate::frame::reply::number(reply, "nNonCompliantDocuments", noncompliant as i64);
        crate::frame::reply::number(reply, "nrecords", found.documents as i64);
    }
    reply.append("nIndexes", collection.ready_indexes().count() as i32);
    {
        let mut keys = reply.document("keysPerIndex");
        for (index, entries) in found.iter().flat_map(|found| &found.entries) {
            crate::frame::reply::number(&mut keys, index, *entries as i64);
        }
    }
    {
        let mut details = reply.document("indexDetails");
        for index in collection.ready_indexes() {
            let sound = found.is_none_or(|found| found.is_sound(&index.name));
            let mut entry = details.document(&index.name);
            entry.append("valid", sound).append("spec", &index.to_document());
        }
    }
    let drifts = |pattern: &PatternCheck| pattern.drift > pattern.repaired;
    let valid = found.is_none_or(CollectionCheck::is_sound_now) && !patterns.iter().any(drifts);
    let repaired = found.is_some_and(CollectionCheck::is_repaired);
    reply.append("valid", valid).append("repaired", repaired);
    {
        let mut warnings = reply.array("warnings");
        if found.is_some_and(|found| !found.counted) {
            warnings.push(
                "The counters were not compared with the documents: the collection was written to all the time.",
            );
        }
        for index in found.iter().flat_map(|found| &found.narrowed) {
            warnings.push(&*format!("Unset multikey metadata for index '{index}'"));
        }
        if let Some(first) = found.and_then(|found| found.first_violation.as_ref()) {
            let text = format!(
                "Detected one or more documents in this collection not conformant to BSON specifications, the first is {first}"
            );
            warnings.push(&text[..]);
        }
        if let Some(first) = found.and_then(|found| found.first_noncompliant) {
            let text = format!(
                "Detected one or more documents not compliant with the collection's schema, the first is record {first}"
            );
            warnings.push(&text[..]);
        }
    }
    write_problems(found, patterns, reply);
    write_patterns(patterns, reply);
    let mode = match repair {
        Repair::Nothing => "None",
        Repair::Facts => "AdjustMultikey",
        Repair::All => "FixErrors",
    };
    reply.append("repairMode", mode);
}

fn write_problems(
    found: Option<&CollectionCheck>,
    patterns: &[PatternCheck],
    reply: &mut DocWriter<'_>,
) {
    {
        let mut errors = reply.array("errors");
        for pattern in patterns.iter().filter(|pattern| pattern.drift > pattern.repaired) {
            let (name, drift) = (&pattern.name, pattern.drift - pattern.repaired);
            let first = pattern.first_problem.as_deref();
            let why = first.map_or(String::new(), |first| format!(", the first: {first}"));
            let text = format!("{drift} documents differ from what the pattern '{name}' says{why}");
            errors.push(&text[..]);
        }
        let findings = found.iter().flat_map(|found| &found.findings);
        for finding in findings.filter(|finding| !finding.repaired).take(LISTED_MAX) {
            errors.push(finding.problem.as_str());
        }
    }
    let entries = |reply: &mut DocWriter<'_>, name: &str, missing: bool| {
        let mut list = reply.array(name);
        let wanted = found.iter().flat_map(|found| {
            found.problems(move |problem| match problem {
                Problem::MissingEntry { .. } => missing,
                Problem::SurplusEntry { .. } => !missing,
                _ => false,
            })
        });
        for problem in wanted.take(LISTED_MAX) {
            let (index, record) = match problem {
                Problem::MissingEntry { index, record } => (index, Some(*record)),
                Problem::SurplusEntry { index, record } => (index, *record),
                _ => continue,
            };
            let mut entry = list.document();
            entry.append("indexName", index.as_str());
            if let Some(record) = record {
                entry.append("recordId", record.0 as i64);
            }
        }
    };
    entries(reply, "extraIndexEntries", false);
    entries(reply, "missingIndexEntries", true);
    let mut corrupt = reply.array("corruptRecords");
    let records = found
        .iter()
        .flat_map(|found| found.problems(|problem| matches!(problem, Problem::InvalidDocument(_))));
    for problem in records.take(LISTED_MAX) {
        if let Problem::InvalidDocument(record) = problem {
            corrupt.push(record.0 as i64);
        }
    }
}
