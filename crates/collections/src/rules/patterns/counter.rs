//! Counters (`quire_catalog::patterns::Counter`): a number of a document that changes only by what it
//! is. `$inc`, `$mul`, `$min` and `$max` change it; what else a client writes to the path would undo
//! the increments of others, so it is ignored or rejected as the pattern says. That increments of one
//! document commit together is the work of `write/line.rs`.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_catalog::patterns::{Pattern, PatternKind};
use quire_document::{Doc, DocBuf, Path, Value, ValueBuf, identical};
use quire_error::Result;

use super::declared::Declared;
use super::{Upkeep, client_wrote, refused, values};
use crate::WritePolicy;
use crate::failure::Attempt;
use crate::rules::{Proposal, RuleWriter};

/// A counter with its path.
pub(in crate::rules) struct Counted {
    pattern: Arc<Pattern>,
    path: [Path; 1],
}

impl Counted {
    fn path(&self) -> &Path {
        let [path] = &self.path;
        path
    }

    /// Returns the document with the stored number, if a client has written another one.
    fn kept(&self, proposal: &Proposal<'_>) -> Attempt<Option<DocBuf>> {
        let after = proposal.after;
        let stored = proposal.before.and_then(|before| values::at(before, self.path()));
        let Some(stored) = stored.filter(|stored| stored.is_number()) else { return Ok(None) };
        let written = values::at(after, self.path());
        let is_counted =
            |update: &quire_mql::update::Update| update.is_relative(self.path().as_str());
        if written.is_some_and(|written| identical(written, stored))
            || proposal.update.is_some_and(is_counted)
        {
            return Ok(None);
        }
        let is_removed = proposal.update.is_some_and(|update| update.removes(self.path().as_str()));
        if written.is_some() || is_removed || values::is_blocked(after, self.path()) {
            client_wrote(&self.pattern, proposal.collection, self.path().as_str())?;
        }
        Ok(values::with_values(after, &self.path, &[Some(ValueBuf::new(stored))]))
    }

    /// Returns why a document cannot be counted in, if it cannot.
    fn obstacle(&self, doc: Doc<'_>) -> Option<String> {
        let path = self.path().as_str();
        let not_a_number = |found: Value<'_>| {
            let found = quire_catalog::debug_value(found);
            format!("a counter is a number, and the document has {path}: {found}")
        };
        match values::at(doc, self.path()) {
            Some(value) if value.is_number() => None,
            Some(value) => Some(not_a_number(value)),
            None if values::is_reachable(doc, self.path()) => None,
            None => Some(format!("the path '{path}' leads through a value that is no document")),
        }
    }
}

impl Declared for Counted {
    const RULE: &'static str = "counter";

    fn new(pattern: &Arc<Pattern>) -> Option<Self> {
        let PatternKind::Counter(counter) = &pattern.kind else { return None };
        Some(Counted { pattern: Arc::clone(pattern), path: [Path::new(&counter.path)] })
    }

    fn complete(&self, proposal: &Proposal<'_>, _: &mut dyn RuleWriter) -> Attempt<Option<DocBuf>> {
        match proposal.policy {
            WritePolicy::Client | WritePolicy::Bypassing => self.kept(proposal),
            WritePolicy::Derived | WritePolicy::Internal => Ok(None),
        }
    }

    fn check(&self, proposal: &Proposal<'_>) -> Result<()> {
        if proposal.policy != WritePolicy::Client || !self.pattern.is_strict() {
            return Ok(());
        }
        let Some(why) = self.obstacle(proposal.after) else { return Ok(()) };
        // A document that was there before the pattern may be changed elsewhere.
        if proposal.before.is_some_and(|before| self.obstacle(before).is_some()) {
            return Ok(());
        }
        Err(refused(proposal.collection, &self.pattern, self.path().as_str(), &why))
    }
}

impl Upkeep for Counted {
    fn recomputed(
        &self,
        _: &Collection,
        _: Doc<'_>,
        _: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        Ok(None)
    }

    fn problem(
        &self,
        _: &Collection,
        doc: Doc<'_>,
        _: &mut dyn RuleWriter,
    ) -> Attempt<Option<String>> {
        Ok(self.obstacle(doc))
    }
}
