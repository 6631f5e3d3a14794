//! `redactClientLogData`: lines of the log without what clients store and ask for. Names of fields,
//! collections and users stay, as in MongoDB; each value, and each text of an error, which can hold
//! values, becomes `###`. (Manual: "Log Redaction".)

use crate::frame::service::Service;
use quire_document::{Array, ArrayWriter, Doc, DocBuf, DocWriter, Value};
use quire_error::Error;

/// What stands in the log in place of a value.
const HIDDEN: &str = "###";

/// What the log shows of values and of texts that can hold values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// It shows them.
    Shown,
    /// It shows `###` in their place.
    Hidden,
}

impl Service {
    /// Returns what the log shows of values now.
    pub fn logged_values(&self) -> Values {
        match self.parameters.cached.redact_log() {
            true => Values::Hidden,
            false => Values::Shown,
        }
    }
}

impl Values {
    /// Returns the document as it is shown.
    pub fn of(self, doc: DocBuf) -> DocBuf {
        match self {
            Values::Shown => doc,
            Values::Hidden => DocBuf::build(|out| hide_fields(doc.as_doc(), out)),
        }
    }

    /// Returns a text that can hold values as it is shown.
    pub fn text(self, text: &str) -> &str {
        match self {
            Values::Shown => text,
            Values::Hidden => HIDDEN,
        }
    }

    /// Returns an error as it is shown: its text, or only the name of its code.
    pub fn error(self, error: &Error) -> String {
        match self {
            Values::Shown => error.to_string(),
            Values::Hidden => format!("{}: {HIDDEN}", error.code().name()),
        }
    }
}

fn hide_fields(doc: Doc<'_>, out: &mut DocWriter<'_>) {
    for (name, value) in doc.fields() {
        match value {
            Value::Document(inner) => hide_fields(inner, &mut out.document(name)),
            Value::Array(inner) => hide_values(inner, &mut out.array(name)),
            _ => {
                out.append(name, HIDDEN);
            }
        }
    }
}

fn hide_values(array: Array<'_>, out: &mut ArrayWriter<'_>) {
    for value in array.iter() {
        match value {
            Value::Document(inner) => hide_fields(inner, &mut out.document()),
            Value::Array(inner) => hide_values(inner, &mut out.array()),
            _ => {
                out.push(HIDDEN);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn names_stay_and_values_go() {
        let command = doc! {
            "find": "c", "filter": { "a": { "$in": [1, { "b": "x" }, [true]] } }, "limit": 1,
        };
        let hidden = doc! {
            "find": "###", "filter": { "a": { "$in": ["###", { "b": "###" }, ["###"]] } },
            "limit": "###",
        };
        assert_eq!(Values::Hidden.of(command.clone()), hidden);
        assert_eq!(Values::Shown.of(command.clone()), command);
        let error = Error::bad_value("x is wrong");
        assert_eq!(Values::Hidden.error(&error), "BadValue: ###");
        assert_eq!(Values::Shown.text("x"), "x");
    }
}
