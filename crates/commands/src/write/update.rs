//! `update`: changes documents, statement by statement.

use crate::frame::args::{Arg, arguments, fields, missing};
use crate::frame::context::Context;
use crate::frame::query_args::{flag, hint};
use crate::frame::tally::Tally;
use crate::frame::usage::Class;
use crate::write::repeated;
use crate::write::write_reply::{
    IdRoom, WriteErrors, WriteOptions, Written, statements, write_target,
};
use crate::write::writes::check_single;
use quire_catalog::Namespace;
use quire_collections::EmptyTimestamps;
use quire_document::{Doc, DocBuf, DocWriter, Value, ValueBuf};
use quire_error::{Error, Result};
use quire_executor::ExecParams;
use quire_executor::modify::{UpdateOutcome, UpdateRequest, update};
use quire_mql::collation::AskedCollation;
use quire_mql::stage::row_of;
use quire_planner::Hint;
use quire_session::Unit;
use std::time::Instant;

/// One element of `updates`.
#[derive(Default)]
pub struct UpdateStatement<'a> {
    /// `q`: the documents to update.
    pub filter: Doc<'a>,
    /// `u`: the change.
    pub update: Option<Value<'a>>,
    /// `c`: constants of a pipeline.
    pub constants: Option<Doc<'a>>,
    /// `arrayFilters`: the elements that `$[name]` selects.
    pub array_filters: Vec<Doc<'a>>,
    /// `multi`: updates all matching documents.
    pub multi: bool,
    /// `upsert`: insert a document if none matches.
    pub upsert: bool,
    /// `upsertSupplied`: an upsert inserts the constant `new`, not what the pipeline makes.
    pub upsert_supplied: bool,
    /// `sort`: the order that decides which document is updated.
    pub sort: Doc<'a>,
    /// `hint`: the index to use.
    pub hint: Option<Hint>,
    /// `collation`; its errors are errors of the statement.
    pub collation: Doc<'a>,
}

impl<'a> UpdateStatement<'a> {
    /// Reads a field that every command with updates has. Returns false for another field.
    pub fn read(&mut self, arg: &Arg<'a>) -> Result<bool> {
        match arg.name() {
            "arrayFilters" | "sort" if arg.is_null() => {}
            "arrayFilters" => self.array_filters = array_filters(arg)?,
            "multi" => self.multi = flag(arg)?,
            "upsert" => self.upsert = flag(arg)?,
            "upsertSupplied" => self.upsert_supplied = flag(arg)?,
            "sort" => self.sort = arg.document()?,
            "hint" => self.hint = hint(arg)?,
            "collation" if arg.is_null() => {}
            "collation" => self.collation = arg.document()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fails if a sort is given and all matching documents change.
    pub fn check_sort(&self) -> Result<()> {
        if self.multi && !self.sort.is_empty() {
            return Err(Error::failed_to_parse("Cannot specify sort with multi=true"));
        }
        Ok(())
    }

    /// Returns the document that an upsert inserts instead of what the update makes, if there is one.
    ///
    /// # Errors
    /// 9 FailedToParse if `upsertSupplied` stands without `upsert`, a pipeline or the document.
    fn supplied(&self) -> Result<Option<Doc<'a>>> {
        if !self.upsert_supplied {
            return Ok(None);
        }
        if !self.upsert || !matches!(self.update, Some(Value::Array(_))) {
            let text = "upsertSupplied: true needs upsert: true and a pipeline as the update";
            return Err(Error::failed_to_parse(text));
        }
        match self.constants.and_then(|constants| constants.get("new")) {
            Some(Value::Document(new)) => Ok(Some(new)),
            _ => {
                let text =
                    "the parameter $upsertSupplied is set to 'true', but no document was supplied";
                Err(Error::failed_to_parse(text))
            }
        }
    }

    /// Fails if constants are given and the update is not a pipeline.
    pub fn check_constants(&self) -> Result<()> {
        if self.constants.is_some() && !matches!(self.update, Some(Value::Array(_))) {
            let text = "Constant values may only be specified for pipeline updates";
            return Err(Error::location(51198, text));
        }
        Ok(())
    }
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut options, mut updates, mut let_vars) = (WriteOptions::default(), None, DocBuf::new());
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "updates" => updates = Some(arg),
            "let" => let_vars = crate::frame::query_args::owned(&arg)?,
            _ if options.read(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = write_target(cx, body)?;
    let updates = statements(cx, "updates", updates)?;
    let parsed: Vec<UpdateStatement<'_>> =
        updates.iter().map(|doc| parse(*doc)).collect::<Result<_>>()?;
    let (mut matched, mut modified) = (0, 0);
    let mut upserted: Vec<(usize, ValueBuf)> = Vec::new();
    let (mut errors, mut room) = (WriteErrors::default(), IdRoom::default());
    let mut unit =
        cx.write_unit(parsed.len(), &options.statements, parsed.len(), options.policy)?;
    for (at, (statement, doc)) in parsed.iter().zip(&updates).enumerate() {
        cx.service.metrics.updates.add(1);
        let forms = &cx.service.metrics.update_forms;
        forms.note(statement.update, !statement.array_filters.is_empty());
        let began = Instant::now();
        let ended = match unit.repeated(at)? {
            Some(before) => Ok(repeated::update(&before)?),
            None => room.check().and_then(|()| {
                let mut params = cx.exec_params();
                params.keeps_empty_timestamps = options.timestamps == EmptyTimestamps::Kept;
                run_one(cx, &namespace, statement, let_vars.as_doc(), (&mut unit, at, &params))
            }),
        };
        cx.end_statement(Class::Update, &namespace, *doc, began, ended.as_ref().map(tally));
        match ended {
            Ok(outcome) => {
                matched += outcome.matched + u64::from(outcome.upserted.is_some());
                modified += outcome.modified;
                if let Some(id) = outcome.upserted {
                    room.take(&id);
                    upserted.push((at, id));
                }
            }
            Err(error) => {
                let error = cx.without_values(&namespace, error);
                if errors.note(at, error, options.ordered || cx.in_transaction())? {
                    break;
                }
            }
        }
    }
    let repeated = cx.finish_writes(unit)?;
    cx.service.metrics.documents_updated.add(modified);
    let (count, modified) = (matched as i32, Some(modified as i32));
    let written = Written { count, modified, upserted: &upserted, errors, repeated: &repeated };
    written.write(cx, reply);
    Ok(())
}

/// Returns the counts of a statement.
pub fn tally(outcome: &UpdateOutcome) -> Tally {
    Tally {
        examined: Some(outcome.examined.clone()),
        matched: Some(outcome.matched),
        modified: Some(outcome.modified),
        upserted: outcome.upserted.as_ref().map(|_| 1),
        ..Tally::default()
    }
}

/// Runs the statement at this position of a command.
pub fn run_one(
    cx: &Context<'_>,
    namespace: &Namespace,
    statement: &UpdateStatement<'_>,
    let_vars: Doc<'_>,
    (unit, place, params): (&mut Unit, usize, &ExecParams),
) -> Result<UpdateOutcome> {
    statement.check_constants()?;
    check_single(unit, statement.multi, "multi=true")?;
    let update_value = statement.update.ok_or_else(|| missing("update.updates", "u"))?;
    let variables = variables(let_vars, statement.constants);
    let request = UpdateRequest {
        namespace: namespace.clone(),
        filter: statement.filter,
        update: update_value,
        array_filters: &statement.array_filters,
        multi: statement.multi,
        upsert: statement.upsert,
        supplied: statement.supplied()?,
        sort: statement.sort,
        hint: statement.hint.clone(),
        collation: AskedCollation::parse(statement.collation)?,
        let_vars: variables.as_doc(),
    };
    cx.begin_statements(unit, place..place + 1)?;
    let outcome = update(unit, &request, params)?;
    unit.note(outcome.committed.as_ref());
    Ok(outcome)
}

/// Returns the variables of the command with the constants of one statement, which take precedence.
pub fn variables(let_vars: Doc<'_>, constants: Option<Doc<'_>>) -> DocBuf {
    let Some(constants) = constants else { return let_vars.to_owned() };
    DocBuf::build(|writer| {
        let kept = let_vars.iter().filter(|element| !constants.contains(element.key()));
        kept.for_each(|element| {
            writer.append_element(element);
        });
        // A constant is a value, not an expression.
        constants.fields().for_each(|(name, value)| {
            writer.document(name).append("$literal", value);
        });
    })
}

/// Reads one element of `updates`.
pub fn parse(doc: Doc<'_>) -> Result<UpdateStatement<'_>> {
    const OWNER: &str = "update.updates";
    let mut statement = UpdateStatement::default();
    let mut has_filter = false;
    for arg in fields(OWNER, doc) {
        match arg.name() {
            "q" => {
                statement.filter = arg.document()?;
                has_filter = true;
            }
            "u" => statement.update = Some(checked_update(&arg)?),
            "c" if !arg.is_null() => statement.constants = Some(arg.document()?),
            "c" => {}
            _ if statement.read(&arg)? => {}
            "sampleId" | "allowShardKeyUpdatesWithoutFullShardKeyInQuery" => {
                return Err(Error::not_built(&format!("{OWNER}.{}", arg.name())));
            }
            _ => return Err(arg.unknown()),
        }
    }
    if !has_filter {
        return Err(missing(OWNER, "q"));
    }
    if statement.update.is_none() {
        return Err(missing(OWNER, "u"));
    }
    statement.check_sort()?;
    Ok(statement)
}

/// Returns operators, a replacement or a pipeline; fails for another value.
pub fn checked_update<'a>(arg: &Arg<'a>) -> Result<Value<'a>> {
    match arg.value() {
        Value::Array(stages) => {
            stages.iter().try_for_each(|stage| row_of(stage).map(|_| ()))?;
            Ok(arg.value())
        }
        value @ Value::Document(_) => Ok(value),
        _ => Err(Error::failed_to_parse("Update argument must be either an object or an array")),
    }
}

/// Returns the documents of `arrayFilters`.
pub fn array_filters<'a>(arg: &Arg<'a>) -> Result<Vec<Doc<'a>>> {
    let mut filters = Vec::new();
    for (at, value) in arg.array()?.iter().enumerate() {
        let Value::Document(filter) = value else {
            let found = value.type_name();
            return Err(Error::type_mismatch(format!(
                "BSON field 'update.updates.arrayFilters.{at}' is the wrong type '{found}', expected type 'object'"
            )));
        };
        filters.push(filter);
    }
    Ok(filters)
}
