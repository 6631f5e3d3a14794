//! Opening a `find`.

use std::borrow::Cow;
use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter, Value, ValueBuf};
use quire_error::{Error, Result};
use quire_mql::Expression;
use quire_mql::filter::Filter;
use quire_planner::{FindRequest, plan_find};

use crate::build::{Needs, build};
use crate::env::Env;
use crate::execution::Execution;
use crate::params::ExecParams;
use crate::statistics::ViewStatistics;
use crate::views::Views;

/// Plans a `find` and makes it ready to run.
///
/// # Errors
/// What `mql` says about the filter, projection, sort and variables; what the planner says about
/// the hint, `min` and `max`.
pub fn open_find(
    request: &FindRequest,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    let disk = request.allow_disk_use.unwrap_or(true);
    let mut env = Env::new(params, request.let_vars.as_doc(), disk)?;
    env.filter = request.filter.clone();
    Filter::parse(request.filter.as_doc(), &env.parse)?;
    if !request.sort.as_doc().is_empty() && !request.sort.as_doc().contains("$natural") {
        quire_mql::sort::SortPattern::parse(request.sort.as_doc(), &env.parse)?;
    }
    check_natural(request.sort.as_doc())?;
    let view = views.view();
    let collection = find_collection(&request.namespace, views)?;
    let stats = ViewStatistics::new(view, collection.as_deref());
    let planned = folded(request, &env)?;
    let plan = plan_find(&planned, collection.as_deref(), &stats)?;
    let projects = !request.projection.as_doc().is_empty();
    let sort_keys = projects && wants_sort_key(request.projection.as_doc());
    if plan.missing && projects {
        crate::projection::compile(request.projection.as_doc(), &env)?;
    }
    let root = build(&plan.root, &env, Needs { keys: false, sort_keys })?;
    Ok(Execution::new(env, root, collection, Some(Arc::new(plan))))
}

/// The request with the constants of `$expr` computed and the variables of `let` put in, so that
/// the planner sees comparisons with values.
pub(crate) fn folded<'r>(request: &'r FindRequest, env: &Env) -> Result<Cow<'r, FindRequest>> {
    const NAME: &[u8] = b"$expr\0";
    let filter = request.filter.as_bytes();
    if !filter.windows(NAME.len()).any(|window| window == NAME) {
        return Ok(Cow::Borrowed(request));
    }
    let mut request = request.clone();
    request.filter = fold_filter(request.filter.as_doc(), env)?;
    Ok(Cow::Owned(request))
}

fn fold_filter(filter: Doc<'_>, env: &Env) -> Result<DocBuf> {
    let mut bytes = Vec::with_capacity(filter.len());
    let mut writer = DocWriter::new(&mut bytes);
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$expr", expression) => {
                let bound = bind_variables(expression, env);
                let folded = Expression::parse(bound.as_value(), &env.parse)?;
                writer.append("$expr", &folded.to_bson());
            }
            ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                let mut list = writer.array(name);
                for branch in branches.iter().filter_map(|branch| branch.as_document()) {
                    list.push(&fold_filter(branch, env)?);
                }
            }
            _ => {
                writer.append(name, value);
            }
        }
    }
    writer.finish();
    Ok(DocBuf::from_valid_bytes(bytes))
}

/// The expression with `$$name` replaced by the value of each variable of `let`.
fn bind_variables(expression: Value<'_>, env: &Env) -> ValueBuf {
    match expression {
        Value::String(text) => {
            let name = text.strip_prefix("$$").unwrap_or("");
            let known = env.parse.variables.iter().position(|known| **known == *name);
            match known.and_then(|at| env.variables.get(at)) {
                Some(Some(value)) => ValueBuf::from(DocBuf::build(|writer| {
                    writer.append("$const", value);
                })),
                _ => ValueBuf::new(expression),
            }
        }
        Value::Array(array) => {
            let items: Vec<ValueBuf> = array.iter().map(|item| bind_variables(item, env)).collect();
            ValueBuf::from(items.iter().collect::<ArrayBuf>())
        }
        Value::Document(doc) if doc.contains("$literal") || doc.contains("$const") => {
            ValueBuf::new(expression)
        }
        Value::Document(doc) => ValueBuf::from(DocBuf::build(|writer| {
            for (name, value) in doc.fields() {
                writer.append(name, &bind_variables(value, env));
            }
        })),
        other => ValueBuf::new(other),
    }
}

/// `$natural` stands alone in a sort.
fn check_natural(sort: quire_document::Doc<'_>) -> Result<()> {
    if sort.contains("$natural") && sort.count() > 1 {
        let shown = quire_catalog::debug_doc(sort);
        return Err(Error::bad_value(format!(
            "Cannot include '$natural' in compound sort: {shown}"
        )));
    }
    Ok(())
}

/// The collection of a `database.collection`.
pub(crate) fn find_collection(
    namespace: &str,
    views: &dyn Views,
) -> Result<Option<Arc<Collection>>> {
    let namespace = Namespace::parse(namespace)
        .map_err(|error| Error::new(error.code(), error.message().to_owned()))?;
    Ok(views.view().collection(&namespace).cloned())
}

pub(crate) fn wants_sort_key(projection: quire_document::Doc<'_>) -> bool {
    projection.fields().any(|(_, value)| {
        value
            .as_document()
            .and_then(|doc| doc.get("$meta"))
            .and_then(|kind| kind.as_str())
            .is_some_and(|kind| kind == "sortKey")
    })
}
