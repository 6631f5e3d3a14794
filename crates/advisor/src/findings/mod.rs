//! What is wrong with a database, and the command that mends it: named problems with the numbers
//! that were measured.
//!
//! [`advise`] runs every rule of [`RULES`] over an [`Input`]: a profile of the data, and a workload if
//! one was recorded. A rule is one file in `rules`. It reports what it has measured, never a threshold
//! alone, and its costs are those of this data and this workload. `relations` answers for each
//! reference whether to embed or to refer; `tried` replaces the estimate of a missing index by what a
//! laboratory measured; `totals` says which totals answer a `$group`; `report` writes everything down (docs/advise.md).

pub mod input;
pub mod labels;
pub mod mongosh;
pub mod relations;
pub mod report;
mod rules;
pub mod totals;
pub mod tried;

use crate::profile::is_queryable;

pub use input::{Input, Statement};
pub use relations::{Relation, RelationForm};
pub use rules::RULES;

/// A text in the languages of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text in English.
    pub en: &'static str,
    /// The text in simplified Chinese.
    pub zh: &'static str,
}

/// A language of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The text in English.
    English,
    /// The text in simplified Chinese.
    Chinese,
}

impl Text {
    /// Returns the text in a language.
    pub fn in_language(self, language: Language) -> &'static str {
        match language {
            Language::English => self.en,
            Language::Chinese => self.zh,
        }
    }
}

/// A rule: what it looks for, and what to do about it.
pub struct Rule {
    /// The identifier, such as `A1`. It never changes, so that a rule can be silenced.
    pub id: &'static str,
    /// The problem in a few words.
    pub title: Text,
    /// Why it costs, and what to do.
    pub advice: Text,
    /// What else the remedy changes.
    pub effects: Text,
    /// Looks for the problem.
    pub check: fn(&Input<'_>, &mut Vec<Finding>),
}

/// How urgent a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It costs little, or it only could be better.
    Low,
    /// It costs a noticeable part.
    Medium,
    /// It costs a large part, nears a hard limit, or makes answers wrong.
    High,
}

impl Severity {
    /// Returns the name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }
}

/// How sure the numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Confidence {
    /// Counted on all documents, or by the server for all statements.
    Measured,
    /// Counted on a uniform sample.
    Sampled {
        /// The documents that were read.
        read: u64,
        /// The documents of the collection.
        of: u64,
    },
    /// The statements were run in a laboratory with the change made, over a copy of the collection.
    Executed {
        /// The documents of the copy.
        copied: u64,
        /// The documents of the collection.
        of: u64,
    },
    /// The cost after the change comes from the cost formula of docs/rules.md.
    Modelled,
}

/// Costs for each second, and the bytes that are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Documents examined each second.
    pub docs_examined: f64,
    /// Bytes of documents read each second.
    pub bytes_read: f64,
    /// Bytes of documents and index entries written each second.
    pub bytes_written: f64,
    /// The bytes that are stored.
    pub storage: f64,
}

impl Cost {
    /// Returns one number for comparisons, roughly microseconds of work each second: a document
    /// examined takes 1, 2 KB read 1, 500 bytes written 1, and 1 MB stored 1.
    pub fn weight(&self) -> f64 {
        self.docs_examined
            + self.bytes_read / 2_000.0
            + self.bytes_written / 500.0
            + self.storage / 1_000_000.0
    }
}

/// A measured number, or a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count of things.
    Count(f64),
    /// A number of bytes.
    Bytes(f64),
    /// From 0 to 1.
    Share(f64),
    /// A share that a sample tells, with the interval that holds the true one in 95 % of samples.
    Interval(f64, f64, f64),
    /// A rate for each second.
    PerSecond(f64),
    /// A rate for each day.
    PerDay(f64),
    /// A number of days.
    Days(f64),
    /// A name or a value of the data.
    Name(String),
}

/// A part of the evidence: the key of its label, and what was measured.
pub type Evidence = (&'static str, Value);

/// A problem that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The identifier of its rule.
    pub rule: &'static str,
    /// How urgent it is.
    pub severity: Severity,
    /// The collection; for indexes and references, the one that has them.
    pub collection: String,
    /// The path, the name of the index, or the relation.
    pub path: String,
    /// What was measured.
    pub evidence: Vec<Evidence>,
    /// The cost now and after the change, if the workload or the data tell.
    pub cost: Option<(Cost, Cost)>,
    /// How sure the numbers are.
    pub confidence: Confidence,
    /// Commands for mongosh that mend it.
    pub apply: Vec<String>,
    /// Commands that undo these.
    pub undo: Vec<String>,
}

impl Finding {
    /// Returns the cost that the change saves, for the order of findings.
    pub fn worth(&self) -> f64 {
        self.cost.map_or(0.0, |(now, after)| now.weight() - after.weight())
    }

    /// Replaces the commands by a remark if no command can name the path.
    fn check_commands(&mut self) {
        if !is_queryable(&self.path) {
            let remark = "// no command: a field name that is empty, has a dot or [], or begins with $ cannot be \
                          named by a path; rename the field first, with $getField and $setField";
            self.apply = vec![remark.to_owned()];
            self.undo.clear();
        }
    }

    /// Returns `collection.path`, by which a finding can be silenced together with its rule.
    pub fn place(&self) -> String {
        match self.path.is_empty() {
            true => self.collection.clone(),
            false => format!("{}.{}", self.collection, self.path),
        }
    }
}

/// What to leave out: `A1` for a rule, `A1:orders` for a rule in a collection, `A1:orders.lines` for
/// a rule at a path.
#[derive(Clone, Debug, Default)]
pub struct Silenced(Vec<String>);

impl Silenced {
    /// The names that are proposed for one that does not exist.
    const PROPOSED: usize = 5;

    /// Adds an entry.
    ///
    /// # Errors
    /// A text for the user if there is no such rule.
    pub fn add(&mut self, entry: &str) -> Result<(), String> {
        let id = entry.split_once(':').map_or(entry, |(id, _)| id);
        if rule(id).is_some() {
            self.0.push(entry.to_owned());
            return Ok(());
        }
        let written = id.to_ascii_uppercase();
        let mut near: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        // The sort is stable, so that rules that are equally near stay in the order of their names.
        near.sort_by(|left, right| {
            let similar = |id: &str| strsim::jaro_winkler(&written, id);
            similar(right).total_cmp(&similar(left))
        });
        near.truncate(Silenced::PROPOSED);
        Err(format!("there is no rule '{id}'; near names are {}", near.join(", ")))
    }

    fn is_silent(&self, finding: &Finding) -> bool {
        self.0.iter().any(|entry| match entry.split_once(':') {
            None => entry == finding.rule,
            Some((rule, place)) => {
                let places = [finding.collection.clone(), finding.place()];
                rule == finding.rule && places.iter().any(|known| known == place)
            }
        })
    }
}

/// What was found.
pub struct Advice {
    /// The problems, the most worthwhile first.
    pub findings: Vec<Finding>,
    /// The answer for each reference: embed or refer.
    pub relations: Vec<Relation>,
    /// The findings that were silenced.
    pub silenced: usize,
}

impl Advice {
    /// Sorts the findings: by severity, then by what the change saves.
    fn rank(&mut self) {
        self.findings.sort_by(|left, right| {
            let order = right.severity.cmp(&left.severity);
            let order = order.then_with(|| right.worth().total_cmp(&left.worth()));
            order.then_with(|| (left.rule, left.place()).cmp(&(right.rule, right.place())))
        });
    }
}

/// Runs every rule.
pub fn advise(input: &Input<'_>, silenced: &Silenced) -> Advice {
    let mut findings = Vec::new();
    for rule in RULES {
        (rule.check)(input, &mut findings);
    }
    let all = findings.len();
    findings.iter_mut().for_each(Finding::check_commands);
    findings.retain(|finding| !silenced.is_silent(finding));
    let silenced = all - findings.len();
    let mut advice = Advice { findings, relations: relations::decide(input), silenced };
    advice.rank();
    advice
}

/// Returns the rule of a finding.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}
