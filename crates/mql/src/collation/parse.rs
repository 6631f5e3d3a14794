//! Parses a collation document into its specification: types, values and combinations, with
//! MongoDB's error codes and texts.

use super::locales::{Named, find, has_data};
use super::spec::{Alternate, CaseFirst, CollationSpec, MaxVariable, VERSION};
use crate::options::Options;
use quire_document::decimal::Rounding;
use quire_document::{Doc, DocBuf, Value, message};
use quire_error::{Error, ErrorCode, Result};

/// The fields of a document, before the locale's defaults are added.
#[derive(Default)]
pub(super) struct Given<'a> {
    locale: &'a str,
    case_level: Option<bool>,
    case_first: Option<CaseFirst>,
    strength: Option<u8>,
    numeric_ordering: Option<bool>,
    alternate: Option<Alternate>,
    max_variable: Option<MaxVariable>,
    normalization: Option<bool>,
    backwards: Option<bool>,
    version: Option<&'a str>,
}

impl<'a> Given<'a> {
    /// Parses the fields. Errors name the structure `owner`: `collation`, `create.collation`.
    pub fn read(doc: Doc<'a>, owner: &str) -> Result<Self> {
        let mut given = Given::default();
        let mut has_locale = false;
        let options = Options(owner);
        for field in options.fields(doc) {
            let (name, value) = field?;
            // Null means that the field is missing, except for `backwards`.
            if value.is_nullish() && name != "backwards" && FIELDS.contains(&name) {
                continue;
            }
            let field = Field { owner, name, value };
            match name {
                "locale" => {
                    given.locale = field.string()?;
                    has_locale = true;
                }
                "caseLevel" => given.case_level = Some(field.flag()?),
                "caseFirst" => given.case_first = Some(field.one_of(&CASE_FIRST)?),
                "strength" => given.strength = Some(field.strength()?),
                "numericOrdering" => given.numeric_ordering = Some(field.flag()?),
                "alternate" => given.alternate = Some(field.one_of(&ALTERNATE)?),
                "maxVariable" => given.max_variable = Some(field.one_of(&MAX_VARIABLE)?),
                "normalization" => given.normalization = Some(field.flag()?),
                "backwards" => given.backwards = Some(field.backwards()?),
                "version" => given.version = Some(field.string()?),
                _ => return Err(options.unknown(name)),
            }
        }
        if !has_locale {
            return Err(options.missing("locale"));
        }
        Ok(given)
    }

    /// Sets missing fields to the general defaults, whatever the locale's defaults are, as `create`
    /// does.
    pub fn with_general_defaults(mut self) -> Self {
        self.case_level.get_or_insert(false);
        self.case_first.get_or_insert(CaseFirst::Off);
        self.strength.get_or_insert(3);
        self.numeric_ordering.get_or_insert(false);
        self.alternate.get_or_insert(Alternate::NonIgnorable);
        self.max_variable.get_or_insert(MaxVariable::Punct);
        self.normalization.get_or_insert(false);
        self
    }

    /// Returns the fields that are set, in MongoDB's order.
    pub fn to_document(&self) -> DocBuf {
        DocBuf::build(|writer| {
            writer
                .append("locale", self.locale)
                .append_some("caseLevel", self.case_level.map(Value::Bool))
                .append_some("caseFirst", self.case_first.map(|v| Value::String(v.as_str())))
                .append_some("strength", self.strength.map(|v| Value::Int32(v.into())))
                .append_some("numericOrdering", self.numeric_ordering.map(Value::Bool))
                .append_some("alternate", self.alternate.map(|v| Value::String(v.as_str())))
                .append_some("maxVariable", self.max_variable.map(|v| Value::String(v.as_str())))
                .append_some("normalization", self.normalization.map(Value::Bool))
                .append_some("backwards", self.backwards.map(Value::Bool))
                .append_some("version", self.version.map(Value::String));
        })
    }

    /// Adds the locale's defaults and checks the combination of options. Returns `None` for the
    /// simple collation, whose other options are not checked. Errors show the document `shown`.
    pub fn complete(&self, shown: Doc<'_>) -> Result<Option<CollationSpec>> {
        if self.locale == "simple" {
            return Ok(None);
        }
        let invalid = |why: &str| {
            let shown = message(shown);
            Err(Error::bad_value(format!("Field 'locale' {why} in: {shown}")))
        };
        let (locale, variant) = match find(self.locale) {
            _ if self.locale.is_empty() => return invalid("cannot be the empty string"),
            Named::Known(locale, variant) => (locale, variant),
            Named::Unknown => return invalid("is invalid"),
            Named::Fallback(name) => {
                let shown = message(shown);
                return Err(Error::bad_value(format!(
                    "Field 'locale' is invalid in: {shown}. Did you mean '{name}'?"
                )));
            }
        };
        if variant.is_some_and(|variant| !has_data(variant)) {
            return Err(Error::not_built(&format!("the collation '{}'", self.locale)));
        }
        if let Some(version) = self.version.filter(|version| *version != VERSION) {
            let text = format!(
                "Requested collation version {version} but the only available collator version was {VERSION}. Requested collation spec: {}",
                message(shown)
            );
            return Err(Error::new(ErrorCode::IncompatibleCollationVersion, text));
        }
        let spec = CollationSpec {
            locale: self.locale.into(),
            case_level: self.case_level.unwrap_or(false),
            case_first: self.case_first.unwrap_or_else(|| locale.case_first()),
            strength: self.strength.unwrap_or(3),
            numeric_ordering: self.numeric_ordering.unwrap_or(false),
            alternate: self.alternate.unwrap_or_else(|| locale.alternate()),
            max_variable: self.max_variable.unwrap_or(MaxVariable::Punct),
            normalization: self.normalization.unwrap_or(locale.normalization),
            backwards: self.backwards.unwrap_or_else(|| locale.backwards()),
        };
        check_combination(&spec, shown)?;
        Ok(Some(spec))
    }
}

fn check_combination(spec: &CollationSpec, shown: Doc<'_>) -> Result<()> {
    if spec.backwards && spec.strength == 1 {
        return Err(Error::bad_value(format!(
            "'backwards' is invalid with 'strength' of 1 in: {}",
            message(shown)
        )));
    }
    if spec.case_first != CaseFirst::Off && !spec.case_level && spec.strength < 3 {
        return Err(Error::bad_value(format!(
            "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: {}",
            message(shown)
        )));
    }
    Ok(())
}

const FIELDS: [&str; 10] = [
    "locale",
    "caseLevel",
    "caseFirst",
    "strength",
    "numericOrdering",
    "alternate",
    "maxVariable",
    "normalization",
    "backwards",
    "version",
];
const CASE_FIRST: [(&str, CaseFirst); 3] =
    [("upper", CaseFirst::Upper), ("lower", CaseFirst::Lower), ("off", CaseFirst::Off)];
const ALTERNATE: [(&str, Alternate); 2] =
    [("non-ignorable", Alternate::NonIgnorable), ("shifted", Alternate::Shifted)];
const MAX_VARIABLE: [(&str, MaxVariable); 2] =
    [("punct", MaxVariable::Punct), ("space", MaxVariable::Space)];

/// A field of a collation document.
struct Field<'a, 'o> {
    owner: &'o str,
    name: &'a str,
    value: Value<'a>,
}

impl<'a> Field<'a, '_> {
    fn wrong_type(&self, expected: &str) -> Error {
        let (owner, name, found) = (self.owner, self.name, self.value.type_name());
        Error::type_mismatch(format!(
            "BSON field '{owner}.{name}' is the wrong type '{found}', expected {expected}"
        ))
    }

    fn not_a_value(&self, shown: impl std::fmt::Display) -> Error {
        let (owner, name) = (self.owner, self.name);
        Error::bad_value(format!(
            "Enumeration value '{shown}' for field '{owner}.{name}' is not a valid value."
        ))
    }

    fn string(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong_type("type 'string'"))
    }

    fn flag(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("type 'bool'"))
    }

    fn backwards(&self) -> Result<bool> {
        self.value.as_bool().ok_or_else(|| {
            Error::type_mismatch(format!(
                "Field 'backwards' should be a boolean value, but found: {}",
                self.value.type_name()
            ))
        })
    }

    fn one_of<T: Copy>(&self, values: &[(&str, T)]) -> Result<T> {
        let text = self.string()?;
        let found = values.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| *value).ok_or_else(|| self.not_a_value(text))
    }

    /// Returns the strength as an integer. Truncates a double, and rounds a decimal half to even.
    fn strength(&self) -> Result<u8> {
        let number = match self.value {
            Value::Int32(number) => i64::from(number),
            Value::Int64(number) => number,
            Value::Double(number) => number as i64,
            Value::Decimal(number) => {
                number.to_i64_rounded(Rounding::HalfEven).unwrap_or(number.to_f64() as i64)
            }
            _ => return Err(self.wrong_type("types '[long, int, decimal, double']")),
        };
        match u8::try_from(number) {
            Ok(strength @ 1..=5) => Ok(strength),
            _ => Err(self.not_a_value(number)),
        }
    }
}
