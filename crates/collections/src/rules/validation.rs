//! The validator of a collection: the step *check*.
//!
//! A client's write is checked unless it bypasses validation. A derived write is always checked. A
//! write of the server itself is not: it copies documents that were checked when they were written
//! (a rename to another database), deletes (TTL), or writes collections that cannot have a
//! validator (users, views, the profiler's entries). A retry of a write that has run writes nothing.

use std::sync::Arc;

use quire_catalog::{Collection, ValidationAction, ValidationLevel, Validator, validation_error};
use quire_error::Result;
use quire_mql::context::current_interrupt;

use super::{Proposal, Rule};
use crate::{Violation, WritePolicy};

/// Returns the rule of a collection that has a validator.
pub(super) fn compile(collection: &Collection) -> Option<Arc<dyn Rule>> {
    let validation = collection.options.validation();
    let (level, action) = (validation.level(), validation.action());
    if level == ValidationLevel::Off {
        return None;
    }
    let validator = Arc::clone(validation.validator()?);
    Some(Arc::new(Validates { validator, level, action }))
}

struct Validates {
    validator: Arc<Validator>,
    level: ValidationLevel,
    action: ValidationAction,
}

impl Rule for Validates {
    fn name(&self) -> &'static str {
        "validation"
    }

    fn check(&self, proposal: &Proposal<'_>) -> Result<()> {
        match proposal.policy {
            WritePolicy::Client | WritePolicy::Derived => {}
            WritePolicy::Bypassing | WritePolicy::Internal => return Ok(()),
        }
        let (interrupt, now) = (current_interrupt(), proposal.store.write_time(proposal.now_ms));
        let accepts = |doc| self.validator.accepts(doc, now, interrupt.as_ref());
        if accepts(proposal.after)? {
            return Ok(());
        }
        if self.level == ValidationLevel::Moderate
            && let Some(before) = proposal.before
            && !accepts(before)?
        {
            return Ok(());
        }
        self.violated(proposal)
    }
}

impl Validates {
    fn violated(&self, proposal: &Proposal<'_>) -> Result<()> {
        let (interrupt, now) = (current_interrupt(), proposal.store.write_time(proposal.now_ms));
        let err_info = self.validator.explain(proposal.after, now, interrupt.as_ref())?;
        let refused = self.action.refuses();
        if self.action.logs() {
            let Proposal { collection, after: doc, .. } = *proposal;
            let violation = Violation { collection, doc, err_info: &err_info, refused };
            proposal.store.observers.violated(&violation);
        }
        if refused { Err(validation_error(&err_info)) } else { Ok(()) }
    }
}
