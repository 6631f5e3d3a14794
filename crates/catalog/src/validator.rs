//! Document validation: the options `validator`, `validationLevel` and `validationAction` of a
//! collection, with the compiled filter.

use std::sync::{Arc, OnceLock};

use bumpalo::Bump;
use quire_document::{Doc, DocBuf, DocWriter, Timestamp, Value, doc};
use quire_error::{Error, ErrorClass, ErrorCode, Result};
use quire_mql::collation::{Collation, as_collator};
use quire_mql::context::InterruptCheck;
use quire_mql::filter::{Features, Filter, Reporter};
use quire_mql::{EvalContext, ParseContext, Shared};

use crate::partial::refuse_whole_document;

const VALIDATOR: &str = "validator";
const LEVEL: &str = "validationLevel";
const ACTION: &str = "validationAction";

/// The documents that a validator applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValidationLevel {
    /// No document at all.
    Off,
    /// All inserted and changed documents.
    #[default]
    Strict,
    /// All inserted documents, and changed documents that complied before the change.
    Moderate,
}

impl ValidationLevel {
    const ALL: [Self; 3] = [Self::Off, Self::Strict, Self::Moderate];

    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Strict => "strict",
            Self::Moderate => "moderate",
        }
    }
}

/// The time at which a document is written.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteTime {
    /// The value of `$$NOW`, in milliseconds.
    pub now_ms: u64,
    /// The value of `$$CLUSTER_TIME`.
    pub cluster_time: Timestamp,
}

/// What happens with a document that does not comply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValidationAction {
    /// It is refused.
    #[default]
    Error,
    /// It is written, with a line in the log.
    Warn,
    /// It is refused, with a line in the log.
    ErrorAndLog,
}

impl ValidationAction {
    const ALL: [Self; 3] = [Self::Error, Self::Warn, Self::ErrorAndLog];

    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::ErrorAndLog => "errorAndLog",
        }
    }

    /// Returns true if the document is refused.
    pub fn refuses(self) -> bool {
        self != Self::Warn
    }

    /// Returns true if the log gets a line.
    pub fn logs(self) -> bool {
        self != Self::Error
    }
}

/// The three options as `create` or `collMod` gives them; `None` for those that are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationOptions {
    /// The validator; an empty one is no validator.
    pub validator: Option<DocBuf>,
    /// The documents that the validator applies to.
    pub level: Option<ValidationLevel>,
    /// What happens with a document that does not comply.
    pub action: Option<ValidationAction>,
}

impl ValidationOptions {
    /// Takes an option of `command` if it is one of the three, and returns true then. Null is the
    /// same as absent.
    ///
    /// # Errors
    /// 14 TypeMismatch, 2 BadValue.
    pub fn take(&mut self, command: &str, name: &str, value: Value<'_>) -> Result<bool> {
        let wrong_type = |expected: &str| {
            Error::type_mismatch(format!(
                "BSON field '{command}.{name}' is the wrong type '{}', expected type '{expected}'",
                value.type_name()
            ))
        };
        let unknown = |given: &str| {
            let text = format!(
                "Enumeration value '{given}' for field '{command}.{name}' is not a valid value."
            );
            Error::bad_value(text)
        };
        match (name, value) {
            (VALIDATOR | LEVEL | ACTION, Value::Null | Value::Undefined) => {}
            (VALIDATOR, Value::Document(doc)) => self.validator = Some(doc.to_owned()),
            (VALIDATOR, _) => return Err(wrong_type("object")),
            (LEVEL, Value::String(given)) => {
                let found = ValidationLevel::ALL.into_iter().find(|level| level.name() == given);
                self.level = Some(found.ok_or_else(|| unknown(given))?);
            }
            (ACTION, Value::String(given)) => {
                let found = ValidationAction::ALL.into_iter().find(|action| action.name() == given);
                self.action = Some(found.ok_or_else(|| unknown(given))?);
            }
            (LEVEL | ACTION, _) => return Err(wrong_type("string")),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns true if none of the three is given.
    pub fn is_empty(&self) -> bool {
        *self == ValidationOptions::default()
    }
}

/// The validation of a collection.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    validator: Option<Arc<Validator>>,
    level: Option<ValidationLevel>,
    action: Option<ValidationAction>,
}

impl Validation {
    /// Compiles the options. `collation` is the collection's, under which the validator compares
    /// strings.
    ///
    /// # Errors
    /// The errors of an invalid filter; 2 BadValue for `$text` and `$where`, 224
    /// QueryFeatureNotAllowed for keywords of encryption if documents may be logged or are not all
    /// checked.
    pub fn compile(options: ValidationOptions, collation: Option<&Arc<Collation>>) -> Result<Self> {
        let ValidationOptions { validator, level, action } = options;
        let logs = action.unwrap_or_default().logs();
        let encryption = !logs && level != Some(ValidationLevel::Moderate);
        let features = Features { encryption, ..Features::VALIDATOR };
        let given = validator.filter(|validator| !validator.as_doc().is_empty());
        let compiled = given.map(|doc| Validator::compile(doc, collation, features)).transpose()?;
        Ok(Validation { validator: compiled.map(Arc::new), level, action })
    }

    /// Returns the validation that [`write`](Self::write) wrote into the options of a collection. A
    /// validator that this server cannot compile refuses all documents until `collMod` replaces it.
    pub(crate) fn restored(options: Doc<'_>, collation: Option<&Arc<Collation>>) -> Self {
        let mut stored = ValidationOptions::default();
        for (name, value) in options.fields() {
            // A value that is not known counts as absent: the strictest level and action apply.
            let _ = stored.take("create", name, value);
        }
        let validator = stored.validator.map(|doc| Arc::new(Validator::restored(doc, collation)));
        Validation { validator, level: stored.level, action: stored.action }
    }

    /// Appends the options as `listCollections` shows them.
    pub(crate) fn write(&self, writer: &mut DocWriter<'_>) {
        if let Some(validator) = &self.validator {
            writer.append(VALIDATOR, &validator.document);
        }
        writer.append_some(LEVEL, self.level.map(|level| Value::String(level.name())));
        writer.append_some(ACTION, self.action.map(|action| Value::String(action.name())));
    }

    /// Returns true for the name of one of the three options.
    pub(crate) fn is_option(name: &str) -> bool {
        matches!(name, VALIDATOR | LEVEL | ACTION)
    }

    /// Returns the options after a `collMod` with `change`: what it does not give stays, and level and
    /// action become explicit.
    pub(crate) fn changed(&self, change: &ValidationOptions) -> ValidationOptions {
        let own = || self.validator.as_ref().map(|validator| validator.document.clone());
        ValidationOptions {
            validator: change.validator.clone().or_else(own),
            level: Some(change.level.or(self.level).unwrap_or_default()),
            action: Some(change.action.or(self.action).unwrap_or_default()),
        }
    }

    /// Returns the validator, if there is one.
    pub fn validator(&self) -> Option<&Arc<Validator>> {
        self.validator.as_ref()
    }

    /// Returns the level.
    pub fn level(&self) -> ValidationLevel {
        self.level.unwrap_or_default()
    }

    /// Returns the action.
    pub fn action(&self) -> ValidationAction {
        self.action.unwrap_or_default()
    }
}

/// A compiled validator.
#[derive(Debug)]
pub struct Validator {
    document: DocBuf,
    collation: Option<Arc<Collation>>,
    /// The compiled filter; an error for a stored validator that this server cannot compile.
    filter: Result<Filter>,
    /// Explains why a document does not comply. Compiled for the first such document.
    reporter: OnceLock<Result<Reporter>>,
}

impl Validator {
    fn compile(
        document: DocBuf,
        collation: Option<&Arc<Collation>>,
        features: Features,
    ) -> Result<Self> {
        refuse_whole_document(document.as_doc())?;
        let filter = Filter::parse_with(document.as_doc(), &context(collation), features)?;
        let (collation, reporter) = (collation.cloned(), OnceLock::new());
        Ok(Validator { document, collation, filter: Ok(filter), reporter })
    }

    fn restored(document: DocBuf, collation: Option<&Arc<Collation>>) -> Self {
        let filter =
            Filter::parse_with(document.as_doc(), &context(collation), Features::VALIDATOR);
        let (collation, reporter) = (collation.cloned(), OnceLock::new());
        Validator { document, collation, filter, reporter }
    }

    /// Returns true if the document complies at the time `now`. A document for which
    /// an expression fails does not comply.
    ///
    /// # Errors
    /// The error of `interrupt`; 146 ExceededMemoryLimit if the evaluation was refused memory, which
    /// says nothing about the document; the error of a stored validator that cannot be compiled.
    pub fn accepts(
        &self,
        doc: Doc<'_>,
        now: WriteTime,
        interrupt: Option<&Arc<dyn InterruptCheck>>,
    ) -> Result<bool> {
        let filter = self.filter.as_ref().map_err(again)?;
        let (arena, shared) = (Bump::new(), self.shared(now, interrupt));
        match filter.matches(doc, &EvalContext::new(&arena, doc, &shared)) {
            Err(error) if is_about_the_document(&error) => Ok(false),
            outcome => outcome,
        }
    }

    /// Returns why the document does not comply: the fields of `errInfo`.
    ///
    /// # Errors
    /// As [`accepts`](Self::accepts).
    pub fn explain(
        &self,
        doc: Doc<'_>,
        now: WriteTime,
        interrupt: Option<&Arc<dyn InterruptCheck>>,
    ) -> Result<DocBuf> {
        let parse = || Reporter::parse(self.document.as_doc(), &context(self.collation.as_ref()));
        let reporter = self.reporter.get_or_init(parse).as_ref().map_err(again)?;
        let (arena, shared) = (Bump::new(), self.shared(now, interrupt));
        reporter.err_info(doc, &EvalContext::new(&arena, doc, &shared))
    }

    fn shared(&self, now: WriteTime, interrupt: Option<&Arc<dyn InterruptCheck>>) -> Shared {
        let mut shared = Shared::new(now.now_ms as i64)
            .with_collator(as_collator(self.collation.as_ref()))
            .with_random(quire_storage::rng::word);
        shared.cluster_time = Some(now.cluster_time);
        match interrupt {
            None => shared,
            Some(interrupt) => shared.with_interrupt(Arc::clone(interrupt)),
        }
    }
}

/// Returns true for an error of an evaluation that would come again for the same document.
fn is_about_the_document(error: &Error) -> bool {
    !error.code().is_a(ErrorClass::Interruption) && error.code() != ErrorCode::ExceededMemoryLimit
}

fn context(collation: Option<&Arc<Collation>>) -> ParseContext {
    let mut context = ParseContext::default();
    context.collator = as_collator(collation);
    context.cluster_time = true;
    context
}

/// Returns a copy of an error that is kept.
fn again(error: &Error) -> Error {
    Error::new(error.code(), error.message())
}

/// Returns 121 DocumentValidationFailure with the fields of `errInfo`.
pub fn validation_error(err_info: &DocBuf) -> Error {
    Error::new(ErrorCode::DocumentValidationFailure, "Document failed validation")
        .with_details(doc! { "errInfo": err_info }.into_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn compiled(validator: DocBuf) -> Result<Validation> {
        let options =
            ValidationOptions { validator: Some(validator), ..ValidationOptions::default() };
        Validation::compile(options, None)
    }

    #[test]
    fn accepts_and_refuses_what_mongod_does() {
        let code = |doc: DocBuf| compiled(doc).map_or_else(|e| e.code().number(), |_| 0);
        for validator in [
            doc! {},
            doc! { "$expr": { "$lte": ["$at", "$$NOW"] } },
            doc! { "a": { "$regex": "^a" }, "$nor": [{ "b": { "$elemMatch": { "c": 1 } } }] },
            doc! { "$jsonSchema": { "required": ["a"] } },
        ] {
            assert_eq!(code(validator.clone()), 0, "{validator:?}");
        }
        assert_eq!(code(doc! { "$text": { "$search": "x" } }), 2);
        assert_eq!(code(doc! { "$or": [{ "a": 1 }, { "$where": "true" }] }), 2);
        assert_eq!(code(doc! { "a": { "$near": [0, 0] } }), 5626500);
        assert_eq!(code(doc! { "a": { "$bogus": 1 } }), 2);
        assert_eq!(code(doc! { "$expr": { "$bogus": 1 } }), 168);
        assert_eq!(code(doc! { "a": { "$regex": ("a".repeat(16385).as_str()) } }), 51091);
    }

    #[test]
    fn a_stored_validator_that_cannot_be_compiled_refuses_every_document() {
        let stored = doc! { "validator": { "$fromTheFuture": 1 }, "validationLevel": "moderate" };
        let restored = Validation::restored(stored.as_doc(), None);
        assert_eq!(restored.level(), ValidationLevel::Moderate);
        let validator = restored.validator().unwrap();
        let refused = validator.accepts(Doc::empty(), WriteTime::default(), None).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::BadValue);
        let shown = DocBuf::build(|writer| restored.write(writer));
        assert_eq!(shown.as_bytes(), stored.as_bytes(), "collMod of another option keeps it");
    }

    #[test]
    fn memory_that_is_refused_says_nothing_about_the_document() {
        // Each step doubles the array, so the evaluation needs far more than it may have.
        let twice = doc! { "$concatArrays": ["$$value", "$$value"] };
        let steps: quire_document::ArrayBuf = (0..40).collect();
        let grow = doc! { "$reduce": { "input": &steps, "initialValue": ["$s"], "in": &twice } };
        let validation = compiled(doc! { "$expr": { "$ne": [&grow, 1] } }).unwrap();
        let validator = validation.validator().unwrap();
        let refused = validator.accepts(
            doc! { "s": "x".repeat(64).as_str() }.as_doc(),
            WriteTime::default(),
            None,
        );
        assert_eq!(refused.unwrap_err().code(), ErrorCode::ExceededMemoryLimit);
        // An expression that fails for the document refuses it.
        let validation = compiled(doc! { "$expr": { "$divide": [1, "$n"] } }).unwrap();
        let validator = validation.validator().unwrap();
        assert!(!validator.accepts(doc! { "n": 0 }.as_doc(), WriteTime::default(), None).unwrap());
    }

    #[test]
    fn a_change_keeps_what_it_does_not_give() {
        let validation = compiled(doc! { "a": 1 }).unwrap();
        let change = ValidationOptions {
            action: Some(ValidationAction::Warn),
            ..ValidationOptions::default()
        };
        let changed = validation.changed(&change);
        assert_eq!(changed.validator, Some(doc! { "a": 1 }));
        assert_eq!(changed.level, Some(ValidationLevel::Strict));
        assert_eq!(changed.action, Some(ValidationAction::Warn));
    }
}
