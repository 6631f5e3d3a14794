//! The argument `patterns` of `create` and `collMod`: declares, changes and removes patterns of a
//! collection (docs/patterns).

use crate::frame::context::Context;
use crate::frame::reply::number;
use quire_catalog::Namespace;
use quire_catalog::patterns::{PatternChange, PatternState};
use quire_collections::{PatternCost, Quantiles, build_pattern, from_interruption, pattern_cost};
use quire_document::DocWriter;
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::interruptible;
use quire_session::Changed;
use std::sync::Arc;
use std::time::Duration;

/// The pause between two looks at a pattern that is being built.
const BUILD_LOOK: Duration = Duration::from_millis(5);

/// Changes the patterns of a collection, for `collMod`, or says what it would cost.
pub(super) fn change_patterns(
    cx: &Context<'_>,
    namespace: &Namespace,
    changes: &[PatternChange],
    dry_run: bool,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    cx.service.store.check_patterns(namespace, changes)?;
    if dry_run {
        return write_costs(cx, namespace, changes, reply);
    }
    declare_patterns(cx, namespace, changes)
}

/// Writes what the build of each new pattern would change: documents, bytes, how many documents a
/// change of one document would change, and of how many documents a roll-up would be computed. All are
/// 0 while the collection does not exist.
pub(super) fn write_costs(
    cx: &Context<'_>,
    namespace: &Namespace,
    changes: &[PatternChange],
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let catalog = cx.service.store.catalog();
    let collection = catalog.lookup(namespace);
    let mut costs = reply.document("patterns");
    for change in changes {
        let PatternChange::Declare(pattern) = change else { continue };
        let pattern = Arc::new(pattern.clone());
        let cost = match collection {
            None => PatternCost::of_empty(&pattern),
            Some(collection) => interruptible(&cx.interrupt_check(), || {
                pattern_cost(&cx.service.store, (collection, &pattern), &cx.interrupt)
            })?,
        };
        let mut shown = costs.document(&pattern.name);
        number(&mut shown, "documents", cost.documents as i64);
        number(&mut shown, "bytes", cost.bytes);
        write_quantiles("fanout", &cost.fanout, &mut shown);
        if let Some(children) = &cost.children {
            write_quantiles("children", children, &mut shown);
        }
    }
    Ok(())
}

fn write_quantiles(name: &str, quantiles: &Quantiles, shown: &mut DocWriter<'_>) {
    let mut parts = shown.document(name);
    for (name, percent) in [("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)] {
        number(&mut parts, name, i64::from(quantiles.at(percent)));
    }
}

/// Makes the indexes that the patterns need, changes the patterns, and waits until they are built, as
/// `createIndexes` waits. If the client goes away, the build goes on.
pub(super) fn declare_patterns(
    cx: &Context<'_>,
    namespace: &Namespace,
    changes: &[PatternChange],
) -> Result<()> {
    let collections = concerned(cx, namespace, changes);
    cx.service.store.check_patterns(namespace, changes)?;
    cx.service.bound_builds();
    cx.change_catalog(|store, commit| {
        store.create_pattern_indexes(namespace, changes, &cx.interrupt, commit)
    })?;
    {
        let _change = cx.await_transactions(Changed::Collections(collections))?;
        cx.change_catalog(|store, commit| store.change_patterns(namespace, changes, commit))?;
    }
    changes.iter().try_for_each(|change| await_build(cx, namespace, change.name()))
}

/// Returns the names of the collections whose writes the patterns change.
fn concerned(cx: &Context<'_>, namespace: &Namespace, changes: &[PatternChange]) -> Vec<String> {
    let catalog = cx.service.store.catalog();
    let owner = catalog.lookup(namespace);
    let known = owner.into_iter().flat_map(|owner| &owner.patterns.declared);
    let known = known.filter_map(|pattern| pattern.from().map(str::to_owned));
    let new = changes.iter().filter_map(|change| match change {
        PatternChange::Declare(pattern) => pattern.from().map(str::to_owned),
        PatternChange::Remove(_) => None,
    });
    let read = known.chain(new).map(|from| format!("{}.{from}", namespace.db()));
    std::iter::once(namespace.to_string()).chain(read).collect()
}

/// Waits until a pattern is ready. Fails with the reason if its build has stopped.
fn await_build(cx: &Context<'_>, namespace: &Namespace, name: &str) -> Result<()> {
    loop {
        let catalog = cx.service.store.catalog();
        let owner = catalog.lookup(namespace);
        let pattern = owner.and_then(|owner| owner.patterns.named(name));
        if let (Some(owner), Some(pattern)) = (owner, pattern) {
            build_pattern(&cx.service.store, (owner, pattern), &cx.interrupt)?;
        }
        let catalog = cx.service.store.catalog();
        let owner = catalog.lookup(namespace);
        let pattern = owner.and_then(|owner| owner.patterns.named(name));
        match pattern.map(|pattern| &pattern.state) {
            None | Some(PatternState::Ready) => return Ok(()),
            Some(PatternState::Stopped(reason)) => {
                let text = format!("the build of the pattern '{name}' has stopped: {reason}");
                return Err(Error::new(ErrorCode::DocumentValidationFailure, text));
            }
            Some(PatternState::Building | PatternState::Checking) => {}
        }
        cx.interrupt.wait(Some(BUILD_LOOK), || false).map_err(from_interruption)?;
    }
}
