//! The rule of a collection that declares patterns of one kind: each pattern completes the document that
//! the one before it has completed, and then each checks the result.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_catalog::patterns::Pattern;
use quire_document::DocBuf;
use quire_error::Result;

use crate::failure::Attempt;
use crate::rules::{Proposal, Rule, RuleWriter};

/// A pattern of one kind, compiled for the collection that declares it.
pub(in crate::rules) trait Declared: Send + Sync + Sized + 'static {
    /// The name of the kind's rule.
    const RULE: &'static str;

    /// Returns the compiled pattern; `None` for another kind of pattern.
    fn new(pattern: &Arc<Pattern>) -> Option<Self>;

    /// Returns the document as [`Rule::complete`] does.
    ///
    /// # Errors
    /// An error refuses the write.
    fn complete(
        &self,
        proposal: &Proposal<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>>;

    /// Checks the document as [`Rule::check`] does.
    ///
    /// # Errors
    /// An error refuses the write.
    fn check(&self, proposal: &Proposal<'_>) -> Result<()> {
        let _ = proposal;
        Ok(())
    }
}

/// The patterns of one kind that a collection declares; at least one.
struct Each<P>(Vec<P>);

/// Returns the rule of a collection that declares patterns of a kind.
pub(in crate::rules) fn compile<P: Declared>(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let declared: Vec<P> = collection.patterns.declared.iter().filter_map(P::new).collect();
    (!declared.is_empty()).then(|| Arc::new(Each(declared)) as Arc<dyn Rule>)
}

impl<P: Declared> Rule for Each<P> {
    fn name(&self) -> &'static str {
        P::RULE
    }

    fn complete(
        &self,
        proposal: &Proposal<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>> {
        let mut completed: Option<DocBuf> = None;
        for pattern in &self.0 {
            let after = completed.as_ref().map_or(proposal.after, DocBuf::as_doc);
            if let Some(next) = pattern.complete(&Proposal { after, ..*proposal }, writer)? {
                completed = Some(next);
            }
        }
        Ok(completed)
    }

    fn check(&self, proposal: &Proposal<'_>) -> Result<()> {
        self.0.iter().try_for_each(|pattern| pattern.check(proposal))
    }
}
