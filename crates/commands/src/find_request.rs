//! The arguments that reading commands share: hints, limits, variables, collation, and the ones
//! of `find` itself.

use crate::args::{Arg, arguments, fields, whole};
use quire_catalog::debug_value;
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, Result};
use quire_planner::{FindRequest, Hint};

/// What a find asks for besides its plan: how the result is cut into batches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batching {
    /// Documents in the first batch; `None` for the default of 101.
    pub batch_size: Option<u64>,
    /// Close the cursor after the first batch.
    pub single_batch: bool,
    /// Never close the cursor for being idle.
    pub no_timeout: bool,
    /// Wait for what is inserted later; only capped collections have such cursors.
    pub tailable: bool,
}

/// Reads the arguments of `find`.
pub fn parse_find(namespace: String, body: Doc<'_>) -> Result<(FindRequest, Batching)> {
    let mut request = FindRequest { namespace, ..FindRequest::default() };
    let (mut batching, mut await_data) = (Batching::default(), false);
    for arg in arguments("FindCommandRequest", body) {
        match arg.name() {
            "filter" => request.filter = arg.document()?.to_owned(),
            "projection" => request.projection = arg.document()?.to_owned(),
            "sort" => request.sort = arg.document()?.to_owned(),
            "min" => request.min = arg.document()?.to_owned(),
            "max" => request.max = arg.document()?.to_owned(),
            "let" => request.let_vars = owned(&arg)?,
            "hint" => request.hint = hint(&arg)?,
            "collation" => collation(&arg)?,
            "skip" if !arg.is_null() => request.skip = arg.integer_from(0)? as u64,
            "limit" if !arg.is_null() => request.limit = arg.integer_from(0)? as u64,
            "batchSize" if !arg.is_null() => {
                batching.batch_size = Some(arg.integer_from(0)? as u64);
            }
            "singleBatch" => batching.single_batch = flag(&arg)?,
            "returnKey" => request.return_key = flag(&arg)?,
            "showRecordId" => request.show_record_id = flag(&arg)?,
            "allowDiskUse" if !arg.is_null() => request.allow_disk_use = Some(flag(&arg)?),
            "noCursorTimeout" => batching.no_timeout = flag(&arg)?,
            "tailable" => batching.tailable = flag(&arg)?,
            "awaitData" => await_data = flag(&arg)?,
            "oplogReplay" | "allowPartialResults" | "allowSpeculativeMajorityRead" | "mirrored" => {
                flag(&arg)?;
            }
            "skip" | "limit" | "batchSize" | "allowDiskUse" => {}
            "term" | "readOnce" | "resumeAfter" | "startAt" | "requestResumeToken"
            | "ntoreturn" => {
                return Err(Error::not_built(&format!("find.{}", arg.name())));
            }
            "includeQueryStatsMetrics" => {
                arg.bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    if let (Some(Hint::Natural(forward)), Some(order)) =
        (&request.hint, request.sort.get("$natural").and_then(whole))
        && *forward != (order > 0)
    {
        let text = "$natural hint must be in the same direction as $natural sort order";
        return Err(Error::bad_value(text));
    }
    if await_data && !batching.tailable {
        let text = "Cannot set 'awaitData' without also setting 'tailable'";
        return Err(Error::failed_to_parse(text));
    }
    Ok((request, batching))
}

/// A document argument of which null means "not given".
pub fn owned(arg: &Arg<'_>) -> Result<DocBuf> {
    match arg.is_null() {
        true => Ok(DocBuf::new()),
        false => Ok(arg.document()?.to_owned()),
    }
}

/// A boolean argument of which null means false.
pub fn flag(arg: &Arg<'_>) -> Result<bool> {
    match arg.is_null() {
        true => Ok(false),
        false => arg.bool(),
    }
}

/// A hint: an index by name or key, or `{$natural: 1}`.
pub fn hint(arg: &Arg<'_>) -> Result<Option<Hint>> {
    match arg.value() {
        Value::String(name) => Ok(Some(Hint::Name(name.to_owned()))),
        Value::Document(doc) if doc.is_empty() => Ok(None),
        Value::Document(doc) => match doc.get("$natural") {
            None => Ok(Some(Hint::Pattern(without_decimals(doc)))),
            Some(_) if doc.count() > 1 => {
                Err(Error::bad_value("$natural cannot be combined with other fields in a hint"))
            }
            Some(direction) => match direction.exact_i64() {
                Some(1) => Ok(Some(Hint::Natural(true))),
                Some(-1) => Ok(Some(Hint::Natural(false))),
                _ => Err(Error::bad_value("$natural hint must be either 1 or -1")),
            },
        },
        _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
    }
}

/// A key pattern whose directions are no decimals: `1` of any numeric type is the same direction.
fn without_decimals(pattern: Doc<'_>) -> DocBuf {
    DocBuf::build(|writer| {
        for (name, direction) in pattern.fields() {
            match direction {
                Value::Decimal(number) => writer.append(name, number.to_f64()),
                other => writer.append(name, other),
            };
        }
    })
}

/// A collation: only the simple one is built. Its document is checked all the same.
pub fn collation(arg: &Arg<'_>) -> Result<()> {
    if arg.is_null() {
        return Ok(());
    }
    let doc = arg.document()?;
    if doc.is_empty() {
        return Ok(());
    }
    for field in fields("collation", doc) {
        match field.name() {
            "locale" | "caseFirst" | "alternate" | "maxVariable" => {
                field.string()?;
            }
            "caseLevel" | "numericOrdering" | "normalization" | "backwards" => {
                field.safe_bool()?;
            }
            "strength" => {
                if !matches!(field.integer()?, 1..=5) {
                    let text = "Collation 'strength' must be an integer 1 through 5";
                    return Err(Error::failed_to_parse(text));
                }
            }
            "version" => {
                field.string()?;
            }
            _ => return Err(field.unknown()),
        }
    }
    match doc.get("locale") {
        Some(Value::String("simple")) => Ok(()),
        Some(Value::String(locale)) if !plausible_locale(locale) => {
            let text = format!("Field 'locale' is invalid in: {{ locale: \"{locale}\" }}");
            Err(Error::bad_value(text))
        }
        Some(_) => Err(Error::not_built("collation")),
        None => Err(crate::args::missing("collation", "locale")),
    }
}

/// True for what has the shape of a locale: a language of two or three letters, then parts.
fn plausible_locale(locale: &str) -> bool {
    let (name, options) = locale.split_once('@').unwrap_or((locale, ""));
    let mut parts = name.split('_');
    let language = parts.next().unwrap_or_default();
    (2..=3).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_lowercase())
        && parts.all(|part| (2..=8).contains(&part.len()))
        && options.is_ascii()
}

/// The limit of `count`: a negative one counts as its absolute value.
pub fn count_limit(arg: &Arg<'_>) -> Result<u64> {
    let value = arg.value();
    if !value.is_number() {
        return Err(Error::bad_value("limit value is not a valid number"));
    }
    match value.exact_i64() {
        None => Err(Error::failed_to_parse(format!(
            "Expected an integer: limit: {}",
            debug_value(value)
        ))),
        Some(i64::MIN) => Err(Error::bad_value("limit value is out of range")),
        Some(number) => Ok(number.unsigned_abs()),
    }
}

/// A comment as plans keep it.
pub fn comment(value: Option<Value<'_>>) -> Option<ValueBuf> {
    value.map(ValueBuf::new)
}
