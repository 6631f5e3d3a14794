//! `findAndModify`: changes or deletes one document, and returns it as it was before or after.

use quire_catalog::{Collection, Namespace};
use quire_collections::{Effect, Image};
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::Result;
use quire_mql::collation::AskedCollation;
use quire_mql::update::UpdateSpec;
use quire_planner::Hint;
use quire_storage::Committed;

use crate::UnitOfWork;
use crate::examined::Examined;
use crate::modify::delete::delete_one;
use crate::modify::points::{gate_of, keeping_records};
use crate::modify::statement::{Applied, Query, Statement};
use crate::modify::time_series::check_series_update;
use crate::modify::update::change_one;
use crate::modify::upsert::{check_upsert_filter, upsert};
use crate::params::ExecParams;

/// The change of the document.
#[derive(Debug, Clone, Copy)]
pub enum FoundChange<'f> {
    /// Deletes the document.
    Remove,
    /// Updates the document.
    Update {
        /// Operators, a replacement or a pipeline.
        update: Value<'f>,
        /// `arrayFilters`: the elements that `$[name]` selects.
        array_filters: &'f [Doc<'f>],
        /// True to insert if none matches.
        upsert: bool,
    },
}

/// The arguments of a findAndModify.
#[derive(Debug, Clone)]
pub struct FindAndModifyRequest<'f> {
    /// The collection to write to.
    pub namespace: Namespace,
    /// `query`: the documents to choose from.
    pub filter: Doc<'f>,
    /// The order that decides which of them is changed.
    pub sort: Doc<'f>,
    /// The change of the document.
    pub change: FoundChange<'f>,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The variables of `let`.
    pub let_vars: Doc<'f>,
    /// True if the reply has the document after the change; a retry then needs that document too.
    pub answers_after: bool,
}

/// The result of a findAndModify. The command projects one of the documents.
#[derive(Debug, Default)]
pub struct FindAndModifyOutcome {
    /// The document before the change; `None` if none matched.
    pub before: Option<DocBuf>,
    /// The document after the change, also if nothing changed or it was inserted; `None` if it was
    /// deleted or there is none.
    pub after: Option<DocBuf>,
    /// The `_id` of the inserted document.
    pub upserted: Option<ValueBuf>,
    /// The commit, if something changed.
    pub committed: Option<Committed>,
    /// The keys and documents that it examined.
    pub examined: Examined,
}

/// Runs a findAndModify.
pub fn find_and_modify(
    unit: &mut dyn UnitOfWork,
    request: &FindAndModifyRequest<'_>,
    params: &ExecParams,
) -> Result<FindAndModifyOutcome> {
    let namespace = &request.namespace;
    let hint = request.hint.clone();
    let query = Query::new(
        namespace.as_str(),
        request.filter,
        request.sort,
        hint,
        &request.collation,
        true,
    );
    let (spec, upserts) = match request.change {
        FoundChange::Remove => (None, false),
        FoundChange::Update { update, array_filters, upsert } => {
            (Some(UpdateSpec { update, array_filters, multi: false }), upsert)
        }
    };
    if upserts {
        check_upsert_filter(request.filter)?;
    }
    let removes = spec.is_none();
    let collection = unit.collection(&request.namespace)?;
    let mut statement =
        Statement::new(query, spec, request.let_vars, collection.as_deref(), params)?;
    let kind = (false, upserts);
    check_series_update(collection.as_deref(), kind, request.filter, statement.update.as_ref())?;
    statement.id = unit.statements().first().copied();
    statement.image = Some(if request.answers_after { Image::After } else { Image::Before });
    let gate = gate_of(unit, collection.as_deref());
    keeping_records(gate, || {
        run(unit, request, (&mut statement, removes, upserts), collection.as_deref())
    })
}

fn run(
    unit: &mut dyn UnitOfWork,
    request: &FindAndModifyRequest<'_>,
    (statement, removes, upserts): (&mut Statement, bool, bool),
    collection: Option<&Collection>,
) -> Result<FindAndModifyOutcome> {
    let namespace = &request.namespace;
    loop {
        statement.line_up(collection);
        let change = change_found(unit, namespace, statement, removes)?;
        if let Some(((before, after), committed)) = change {
            return Ok(FindAndModifyOutcome {
                before: Some(before),
                after,
                upserted: None,
                committed,
                examined: statement.examined.clone(),
            });
        }
        if !upserts {
            let examined = statement.examined.clone();
            return Ok(FindAndModifyOutcome { examined, ..FindAndModifyOutcome::default() });
        }
        if let Some(inserted) = upsert(unit, namespace, statement, None)? {
            return Ok(FindAndModifyOutcome {
                before: None,
                after: Some(inserted.doc),
                upserted: Some(inserted.id),
                committed: inserted.committed,
                examined: statement.examined.clone(),
            });
        }
    }
}

/// The document before and after a change, and the commit.
type Found = ((DocBuf, Option<DocBuf>), Option<Committed>);

/// Removes or updates the first document that matches; `None` if none does.
fn change_found(
    unit: &mut dyn UnitOfWork,
    namespace: &Namespace,
    statement: &mut Statement,
    removes: bool,
) -> Result<Option<Found>> {
    if removes {
        return change_one(unit, namespace, statement, &mut |writer, collection, id, doc, of| {
            Ok(delete_one(writer, collection, id, doc, of)?.map(|()| (doc.to_owned(), None)))
        });
    }
    change_one(unit, namespace, statement, &mut |writer, collection, id, doc, statement| {
        match statement.apply(doc)? {
            Applied::NoMatch => Ok(None),
            Applied::Same => Ok(Some((doc.to_owned(), Some(doc.to_owned())))),
            Applied::Changed(new) => {
                statement.write(writer, collection, id, (doc, new.as_doc()))?;
                let new = writer.as_stored(collection, id, new)?;
                let after = Some(new.as_doc());
                statement.remember(writer, Effect::Update, Some(doc), after);
                Ok(Some((doc.to_owned(), Some(new))))
            }
        }
    })
}
