//! `$merge`: merges the documents of a pipeline into a collection.

use super::facts::Facts;
use super::out::{INTERNAL, may_be_namespace, own_db};
use super::registry::StageRow;
use super::rights::{Names, On, Right, StageAction, When, on_source};
use super::sub_pipeline::stages_of;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::ParseContext;
use crate::expression::{Expression, FieldPath, check_variable_name};
use crate::options::Options;
use quire_document::limits::INDEX_FIELDS_MAX;
use quire_document::{Array, ArrayBuf, Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const MERGE: StageRow = StageRow {
    name: "$merge",
    since: "4.2",
    doc: "Inserts, updates or replaces documents in a collection.",
    facts: Facts { names: Names::Field("into"), rights: RIGHTS, ..Facts::WRITER },
    parse: |_, value, cx| Ok(vec![Stage::Merge(Arc::new(parse(value, cx)?))]),
};

/// By default `$merge` inserts documents without a match and updates those with one.
const RIGHTS: &[Right] = &[
    on_source(StageAction::Find),
    Right {
        action: StageAction::Insert,
        on: On::Named,
        when: When::Unless("whenNotMatched", &["discard", "fail"]),
    },
    Right {
        action: StageAction::Update,
        on: On::Named,
        when: When::Unless("whenMatched", &["keepExisting", "fail"]),
    },
];

/// The variable of a `whenMatched` pipeline for the incoming document.
const NEW: &str = "new";

/// A parsed `$merge`.
#[derive(Debug)]
pub struct Merge {
    /// The database of the target.
    pub db: String,
    /// The target collection.
    pub collection: String,
    /// The fields that identify matching documents, sorted; empty if not given (the default is
    /// `_id`).
    pub on: BTreeSet<String>,
    /// The action for a document with a match.
    pub when_matched: WhenMatched,
    /// The action for a document without a match.
    pub when_not_matched: WhenNotMatched,
}

/// The action for a document of the target that an incoming document matches.
#[derive(Debug)]
pub enum WhenMatched {
    /// Replace it by the incoming document.
    Replace,
    /// Keep it unchanged.
    KeepExisting,
    /// Set the fields of the incoming document in it.
    Merge,
    /// Fail, which ends the pipeline.
    Fail,
    /// Update it with a pipeline.
    Pipeline {
        /// The stages, as the user wrote them.
        stages: ArrayBuf,
        /// The variables of the stages, with `$$new`. Their expressions are evaluated for the
        /// incoming document.
        variables: Vec<(Box<str>, Expression)>,
    },
}

/// The action for an incoming document without a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// Insert it into the target.
    Insert,
    /// Ignore it and continue.
    Discard,
    /// Fail, which ends the pipeline.
    Fail,
}

const OPTIONS: Options<'_> = Options("$merge");

/// The fields of the operand during parsing.
#[derive(Default)]
struct Fields<'v> {
    into: Option<(String, String)>,
    on: Option<BTreeSet<String>>,
    let_vars: Option<Doc<'v>>,
    matched: Option<Value<'v>>,
    not_matched: Option<&'v str>,
}

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Merge> {
    let fields = match value {
        Value::String(name) => {
            Fields { into: Some((own_db(cx), name.to_owned())), ..Fields::default() }
        }
        Value::Document(spec) => read(spec, cx)?,
        other => {
            let found = other.type_name();
            let text = format!("$merge requires a string or object argument, but found {found}");
            return Err(Error::type_mismatch(text));
        }
    };
    let Some((db, collection)) = fields.into else {
        return Err(OPTIONS.missing("into"));
    };
    check_target(&db, &collection)?;
    let when_not_matched = not_matched(fields.not_matched)?;
    let when_matched = matched(fields.matched, fields.let_vars, cx)?;
    let refused = when_not_matched != WhenNotMatched::Insert
        && matches!(when_matched, WhenMatched::KeepExisting | WhenMatched::Fail);
    if refused {
        let (matched, not_matched) = (when_matched.name(), when_not_matched.name());
        let text = format!(
            "Combination of $merge modes 'whenMatched: {matched}' and 'whenNotMatched: {not_matched}' is not supported"
        );
        return Err(Error::location(51181, text));
    }
    let on = fields.on.unwrap_or_default();
    Ok(Merge { db, collection, on, when_matched, when_not_matched })
}

fn read<'v>(spec: Doc<'v>, cx: &ParseContext) -> Result<Fields<'v>> {
    let mut fields = Fields::default();
    for field in OPTIONS.fields(spec) {
        let (name, value) = field?;
        match name {
            "into" => fields.into = Some(into(value, cx)?),
            "on" => fields.on = Some(on(value)?),
            "let" | "whenNotMatched" if value.is_nullish() => {}
            "let" => {
                let wrong = || OPTIONS.wrong_type(name, value, "object");
                fields.let_vars = Some(value.as_document().ok_or_else(wrong)?);
            }
            "whenMatched" => fields.matched = Some(value),
            "whenNotMatched" => {
                let wrong = || OPTIONS.wrong_type(name, value, "string");
                fields.not_matched = Some(value.as_str().ok_or_else(wrong)?);
            }
            _ => return Err(OPTIONS.unknown(name)),
        }
    }
    Ok(fields)
}

fn into(value: Value<'_>, cx: &ParseContext) -> Result<(String, String)> {
    let spec = match value {
        Value::String("") => {
            return Err(Error::location(5786800, "$merge 'into' field cannot be an empty string"));
        }
        Value::String(name) => return Ok((own_db(cx), name.to_owned())),
        Value::Document(spec) => spec,
        other => {
            let found = other.type_name();
            let text = format!(
                "$merge 'into' field  must be either a string or an object, but found {found}"
            );
            return Err(Error::location(51178, text));
        }
    };
    let (mut db, mut collection) = (None, None);
    const OPTIONS: Options<'_> = Options("into");
    for field in OPTIONS.fields(spec) {
        let (name, value) = field?;
        let field = match name {
            "db" => &mut db,
            "coll" => &mut collection,
            _ => return Err(OPTIONS.unknown(name)),
        };
        *field = match value {
            Value::String(text) => Some(text.to_owned()),
            Value::Null | Value::Undefined => None,
            other => return Err(OPTIONS.wrong_type(name, other, "string")),
        };
    }
    let missing = "$merge 'into.coll' field must be specified and cannot be null or undefined";
    let collection = collection.ok_or_else(|| Error::location(5786801, missing))?;
    let db = db.filter(|db| !db.is_empty()).unwrap_or_else(|| own_db(cx));
    Ok((db, collection))
}

fn check_target(db: &str, collection: &str) -> Result<()> {
    if !may_be_namespace(db, collection) {
        let text = format!("Invalid $merge target namespace: '{db}.{collection}'");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if INTERNAL.contains(&db) {
        return Err(Error::location(31320, format!("Cannot $merge to internal database: {db}")));
    }
    if collection.starts_with("system.") {
        let text = format!("Cannot $merge to special collection: {collection}");
        return Err(Error::location(31319, text));
    }
    Ok(())
}

impl Merge {
    /// Returns the error of a `$merge` whose fields have no unique index.
    pub fn no_index() -> Error {
        Error::location(51183, "Cannot find index to verify that join fields will be unique")
    }
}

fn on(value: Value<'_>) -> Result<BTreeSet<String>> {
    let names: Vec<&str> = match value {
        Value::String(name) => vec![name],
        Value::Array(names) => {
            let name = |value: Value<'_>| {
                let found = value.type_name();
                let text = format!("$merge 'on' array elements must be strings, but found {found}");
                Error::location(51134, text)
            };
            let names = names.iter().map(|value| match value {
                Value::String(text) => Ok(text),
                other => Err(name(other)),
            });
            names.collect::<Result<_>>()?
        }
        other => {
            let found = other.type_name();
            let text = format!(
                "$merge 'on' field  must be either a string or an array of strings, but found {found}"
            );
            return Err(Error::location(51186, text));
        }
    };
    if names.is_empty() {
        let text = "If explicitly specifying $merge 'on', must include at least one field";
        return Err(Error::location(51187, text));
    }
    // A longer list has no unique index.
    if names.len() > INDEX_FIELDS_MAX {
        return Err(Merge::no_index());
    }
    let mut paths = BTreeSet::new();
    for name in names {
        FieldPath::parse(name)?;
        if !paths.insert(name.to_owned()) {
            return Err(Error::location(31465, format!("Found a duplicate field '{name}'")));
        }
    }
    Ok(paths)
}

fn matched(
    value: Option<Value<'_>>,
    let_vars: Option<Doc<'_>>,
    cx: &ParseContext,
) -> Result<WhenMatched> {
    let mode = match value {
        None => WhenMatched::Merge,
        Some(Value::Array(stages)) => return pipeline(stages, let_vars, cx),
        Some(Value::String("replace")) => WhenMatched::Replace,
        Some(Value::String("keepExisting")) => WhenMatched::KeepExisting,
        Some(Value::String("merge")) => WhenMatched::Merge,
        Some(Value::String("fail")) => WhenMatched::Fail,
        Some(Value::String(other)) => {
            let text = format!(
                "Enumeration value '{other}' for field 'whenMatched' is not a valid value."
            );
            return Err(Error::bad_value(text));
        }
        Some(other) => {
            let found = other.type_name();
            let text = format!(
                "$merge 'whenMatched' field  must be either a string or an array, but found {found}"
            );
            return Err(Error::location(51191, text));
        }
    };
    if let_vars.is_some() {
        let text = format!("Cannot use 'let' variables with 'whenMatched: {}' mode", mode.name());
        return Err(Error::location(51199, text));
    }
    Ok(mode)
}

fn pipeline(
    stages: Array<'_>,
    let_vars: Option<Doc<'_>>,
    cx: &ParseContext,
) -> Result<WhenMatched> {
    let stages = stages_of(Value::Array(stages))?;
    let mut variables = Vec::new();
    for (name, value) in let_vars.unwrap_or_default().fields() {
        if name == NEW && value.as_str() != Some("$$ROOT") {
            let text =
                "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'";
            return Err(Error::location(51273, text));
        }
        check_variable_name(name, name == NEW)?;
        variables.push((Box::from(name), Expression::parse(value, cx)?));
    }
    if !variables.iter().any(|(name, _)| &**name == NEW) {
        let root = Expression::parse(Value::String("$$ROOT"), cx)?;
        variables.push((Box::from(NEW), root));
    }
    Ok(WhenMatched::Pipeline { stages: stages.iter().collect(), variables })
}

fn not_matched(value: Option<&str>) -> Result<WhenNotMatched> {
    match value {
        None | Some("insert") => Ok(WhenNotMatched::Insert),
        Some("discard") => Ok(WhenNotMatched::Discard),
        Some("fail") => Ok(WhenNotMatched::Fail),
        Some(other) => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field '$merge.whenNotMatched' is not a valid value."
        ))),
    }
}

impl WhenMatched {
    fn name(&self) -> &'static str {
        match self {
            WhenMatched::Replace => "replace",
            WhenMatched::KeepExisting => "keepExisting",
            WhenMatched::Merge => "merge",
            WhenMatched::Fail => "fail",
            WhenMatched::Pipeline { .. } => "pipeline",
        }
    }
}

impl WhenNotMatched {
    fn name(self) -> &'static str {
        match self {
            WhenNotMatched::Insert => "insert",
            WhenNotMatched::Discard => "discard",
            WhenNotMatched::Fail => "fail",
        }
    }
}

impl StageBody for Merge {
    fn name(&self) -> &'static str {
        MERGE.name
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn modified(&self) -> Modified {
        Modified::Nothing
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut merge = writer.document(MERGE.name);
        {
            let mut into = merge.document("into");
            into.append("db", self.db.as_str()).append("coll", self.collection.as_str());
        }
        let on: Vec<&str> = self.on.iter().map(String::as_str).collect();
        match on.as_slice() {
            [] => merge.append("on", "_id"),
            [only] => merge.append("on", *only),
            several => merge.append("on", &several.iter().copied().collect::<ArrayBuf>()),
        };
        match &self.when_matched {
            WhenMatched::Pipeline { stages, variables } => {
                let mut printed = merge.document("let");
                for (name, expression) in variables {
                    printed.append(name, &expression.to_bson());
                }
                printed.finish();
                merge.append("whenMatched", stages);
            }
            mode => {
                merge.append("whenMatched", mode.name());
            }
        }
        merge.append("whenNotMatched", self.when_not_matched.name());
    }
}
