//! The options of the audit log: their combinations, and the filter.

use super::given::Given;
use crate::exit::Failure;
use quire_commands::AuditOptions;
use quire_document::{DocBuf, literal};
use quire_server::AuditFile;
use std::path::PathBuf;
use std::sync::Arc;

/// Options that need an audit log.
const NEED_DESTINATION: &[&str] = &["auditFormat", "auditPath", "auditFilter"];

/// The requested audit log; its file is not open yet.
#[derive(Clone, Debug)]
pub(crate) struct AuditSettings {
    path: PathBuf,
    filter: Option<DocBuf>,
}

impl AuditSettings {
    /// Reads the options; `None` if there is no audit log.
    pub(crate) fn new(given: &Given) -> Result<Option<AuditSettings>, Failure> {
        match given.text("auditDestination") {
            None => {
                return match NEED_DESTINATION.iter().find(|name| given.flag(name)) {
                    Some(name) => {
                        Err(Failure::options(format!("--{name} needs --auditDestination")))
                    }
                    None => Ok(None),
                };
            }
            Some("file") => {}
            Some(other @ ("syslog" | "console")) => return Err(refused("Destination", other)),
            Some(other) => return Err(unknown("Destination", other)),
        }
        match given.text("auditFormat") {
            Some("JSON") => {}
            Some("BSON") => return Err(refused("Format", "BSON")),
            Some(other) => return Err(unknown("Format", other)),
            None => return Err(missing("auditFormat")),
        }
        let path = given.text("auditPath").ok_or_else(|| missing("auditPath"))?;
        let path = std::path::absolute(path)
            .map_err(|error| Failure::options(format!("{path}: {error}")))?;
        let filter = given.text("auditFilter").map(filter).transpose()?;
        Ok(Some(AuditSettings { path, filter }))
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<AuditOptions, Failure> {
        let file = AuditFile::open(&self.path).map_err(|error| {
            let path = self.path.display();
            Failure::new(1, format!("cannot open the file of the audit log {path}: {error}"))
        })?;
        Ok(AuditOptions { sink: Arc::new(file), filter: self.filter.clone() })
    }
}

/// Parses a filter in the shell's notation: names need no quotation marks.
fn filter(text: &str) -> Result<DocBuf, Failure> {
    let bad = |error: String| Failure::options(format!("--auditFilter is not a filter: {error}"));
    let filter = literal::parse_doc(text).map_err(|error| bad(error.to_string()))?;
    quire_mql::filter::Filter::parse(filter.as_doc(), &Default::default())
        .map_err(|error| bad(error.message().to_owned()))?;
    Ok(filter)
}

fn missing(name: &str) -> Failure {
    Failure::options(format!("--{name} is needed with --auditDestination file"))
}

fn refused(option: &str, value: &str) -> Failure {
    let why = "the audit log is a file of JSON documents in MongoDB's own schema";
    Failure::options(format!("--audit{option} {value} is refused: {why}"))
}

fn unknown(option: &str, value: &str) -> Failure {
    Failure::options(format!("invalid value for --audit{option}: '{value}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn settings(words: &[&str]) -> Result<Option<AuditSettings>, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let given = Given::from_words(&words, "quire serve").unwrap_or_default();
        AuditSettings::new(&given).map_err(|failure| failure.message)
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        assert!(settings(&[]).unwrap().is_none());
        let with = |more: &[&str]| settings(&[&["--auditDestination", "file"], more].concat());
        let all = ["--auditFormat", "JSON", "--auditPath", "a.json"];
        let refused = |more: &[&str]| with(more).unwrap_err();
        assert!(with(&all).unwrap().is_some());
        assert!(refused(&all[2..]).contains("--auditFormat is needed"));
        assert!(refused(&all[..2]).contains("--auditPath is needed"));
        assert!(refused(&["--auditFormat", "BSON"]).contains("--auditFormat BSON is refused"));
        assert!(refused(&["--auditFormat", "XML"]).contains("invalid value"));
        let more = |more: [&'static str; 2]| [&all[..], &more[..]].concat();
        assert!(refused(&more(["--auditFilter", "{ atype: "])).contains("is not a filter"));
        assert!(refused(&more(["--auditFilter", "{ $nope: 1 }"])).contains("is not a filter"));
        let filter = ["--auditFilter", "{ atype: { $in: [ \"dropUser\", \"logout\" ] } }"];
        assert!(with(&more(filter)).unwrap().unwrap().filter.is_some());
        let lonely = settings(&["--auditPath", "a.json"]).unwrap_err();
        assert!(lonely.contains("--auditPath needs --auditDestination"));
        let syslog = settings(&["--auditDestination", "syslog"]).unwrap_err();
        assert!(syslog.contains("syslog is refused"));
    }
}
