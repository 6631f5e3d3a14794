//! The conditions of a stream's first `$match` that an event meets or fails without the documents
//! that are looked up for it, so that no document is looked up for an event that fails them.

use bumpalo::Bump;
use quire_document::{Doc, DocBuf, Value};
use quire_mql::collation::as_collator;
use quire_mql::context::Shared;
use quire_mql::stage::{BeforeChange, ChangeStream, FullDocument};
use quire_mql::{EvalContext, Filter, ParseContext};
use quire_planner::AggregateRequest;

/// The fields of an event whose documents are looked up.
const LOOKED_UP: [&str; 2] = ["fullDocument", "fullDocumentBeforeChange"];

/// The conditions, compiled.
pub(super) struct EarlyFilter {
    filter: Filter,
    shared: Shared,
}

impl EarlyFilter {
    /// Returns the conditions of the first stage of `request`, which follows `$changeStream`. `None`
    /// if the stage is another one, has no such condition, or has one that is not valid: the pipeline
    /// reports that. `None` also if no document is looked up for the stream.
    pub fn of(
        request: &AggregateRequest,
        spec: &ChangeStream,
        context: &ParseContext,
    ) -> Option<Self> {
        let looks_up =
            spec.full_document != FullDocument::Default || spec.before_change != BeforeChange::Off;
        let first = request.pipeline.first()?.as_doc().first()?;
        let ("$match", Value::Document(written)) = (first.key(), first.value()) else {
            return None;
        };
        if !looks_up || !request.let_vars.as_doc().is_empty() {
            return None;
        }
        let mut context = context.clone();
        context.collator = as_collator(request.collation.or(None));
        let early = DocBuf::build(|early| {
            let conditions = written.iter().filter(|element| {
                let alone = DocBuf::build(|alone| _ = alone.append_element(*element));
                let parsed = Filter::parse(alone.as_doc(), &context);
                parsed.is_ok_and(|filter| !may_read_looked_up(&filter))
            });
            conditions.for_each(|element| _ = early.append_element(element));
        });
        if early.as_doc().is_empty() {
            return None;
        }
        let filter = Filter::parse(early.as_doc(), &context).ok()?;
        let shared = Shared::default().with_collator(context.collator.clone());
        Some(EarlyFilter { filter, shared })
    }

    /// Returns true if an event fails the conditions. It may lack the documents that are looked up.
    pub fn refuses(&self, event: Doc<'_>) -> bool {
        let arena = Bump::new();
        let context = EvalContext::new(&arena, event, &self.shared);
        self.filter.matches(event, &context).is_ok_and(|matches| !matches)
    }
}

fn may_read_looked_up(filter: &Filter) -> bool {
    let head = |path: &str| path.split('.').next().is_some_and(|head| LOOKED_UP.contains(&head));
    filter.paths().is_none_or(|paths| paths.into_iter().any(head))
}
