//! The plan of a `$text`: a scan for each term, with equal values of the fields before it.

use std::any::Any;
use std::sync::Arc;

use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::filter::{
    Comparison, Node as Condition, PathNode, Search, TEXT_METADATA, Test, TextQuery,
};
use quire_mql::fulltext::{Language, TextMatcher};

use super::running::{Running, metadata};
use super::{TextIndex, is_long, options, stored_term};
use crate::IndexSpec;
use crate::key::bounds::compares_strings;
use crate::key::ordinary::field_bounds;
use crate::key::{
    Answer, Bounds, Intervals, KeySpec, Predicate, SearchMethod, SearchPlan, SearchScan, Searched,
    Searches, Searching, Tightness,
};

/// The operator that text indexes answer.
pub(super) const SEARCHES: Searches = Searches {
    operator: "$text",
    answers: |_, _| true,
    choose: |_, _| Ok(None),
    bind,
    plan,
    wrong_number,
};

/// A `$text` of a text index.
#[derive(Debug)]
struct BoundText {
    matcher: Arc<TextMatcher>,
}

fn wrong_number(indexes: usize) -> Option<Error> {
    let text = match indexes {
        0 => "text index required for $text query",
        1 => return None,
        _ => "more than one text index found for $text query",
    };
    Some(Error::new(ErrorCode::IndexNotFound, text))
}

fn bind(spec: &IndexSpec, search: &dyn Search) -> Result<Arc<dyn Search>> {
    let any = search.as_any();
    let query = any.downcast_ref::<TextQuery>();
    let query =
        query.or_else(|| any.downcast_ref::<BoundText>().map(|bound| bound.matcher.query()));
    let (Some(query), Some(fields)) = (query, options::text_fields(spec)) else {
        return Err(Error::internal("a text index without its options"));
    };
    let language = match query.language.as_str() {
        "" => fields.language,
        name => Language::named(name, fields.version).ok_or_else(|| {
            Error::bad_value(format!(
                "unsupported language: \"{name}\" for text index version {}",
                fields.version as i32 + 1
            ))
        })?,
    };
    let matcher = Arc::new(TextMatcher::new(fields, query.clone(), language)?);
    Ok(Arc::new(BoundText { matcher }))
}

impl BoundText {
    /// Returns the name of the language as explain shows it.
    fn language(&self) -> &str {
        match self.matcher.query().language.as_str() {
            "" => self.matcher.language().name(),
            name => name,
        }
    }
}

impl Search for BoundText {
    fn operator(&self) -> &'static str {
        SEARCHES.operator
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        self.matcher.matches(doc)
    }

    fn metadata(&self) -> &'static [&'static str] {
        TEXT_METADATA
    }

    fn metadata_of(&self, doc: Doc<'_>) -> Result<DocBuf> {
        Ok(self.matcher.score(doc)?.map_or_else(DocBuf::new, metadata))
    }

    fn write(&self, writer: &mut DocWriter<'_>) {
        self.matcher.query().write_with(self.language(), writer);
    }

    fn describe(&self) -> String {
        self.matcher.query().describe_with(self.language())
    }
}

/// Returns the bounds of a test of a field beside the term; `None` if the index cannot serve it.
fn bounds_of(
    keys: &KeySpec,
    field: usize,
    (node, negated): (&PathNode, bool),
    searched: &Searched<'_>,
) -> Option<Bounds> {
    let (test, path) = (&node.test, node.path.as_str());
    if searched.collation.is_some() && compares_strings(test) {
        return None;
    }
    let collation = searched.collation;
    field_bounds(keys, field, &Predicate { test, negated, path, multikey: false, collation })
}

/// Returns the bounds that an equality gives to a field before the term.
fn equality(
    keys: &KeySpec,
    field: usize,
    condition: &Condition,
    searched: &Searched<'_>,
) -> Option<Bounds> {
    let Condition::Path(node) = condition else { return None };
    let fits = matches!(node.test, Test::Compare(Comparison::Eq, _))
        && keys.fields().get(field)?.path == node.path.as_str();
    if fits { bounds_of(keys, field, (node, false), searched) } else { None }
}

/// Returns true if a scan can test the keys with a condition on a field after the term.
fn by_key(keys: &KeySpec, after: usize, condition: &Condition, searched: &Searched<'_>) -> bool {
    let (node, negated) = match condition {
        Condition::Path(node) => (node, false),
        Condition::Not(child) => match &**child {
            Condition::Path(node) => (node, true),
            _ => return false,
        },
        _ => return false,
    };
    let Some(field) = keys.field(node.path.as_str()).filter(|field| *field >= after) else {
        return false;
    };
    let bounds = bounds_of(keys, field, (node, negated), searched);
    bounds.is_some_and(|(_, tightness)| tightness != Tightness::InexactFetch)
}

fn plan(keys: &KeySpec, searched: &Searched<'_>) -> Option<SearchPlan> {
    let index = TextIndex::in_keys(keys)?;
    let matcher = &searched.search.as_any().downcast_ref::<BoundText>()?.matcher;
    let mut answers = vec![Answer::None; searched.beside.len()];
    let mut bounds = vec![Intervals::all(); keys.fields().len()];
    let mut prefix = DocBuf::new();
    for (field, bound) in bounds.iter_mut().enumerate().take(index.at) {
        let mut found = searched.beside.iter().enumerate();
        let (place, (intervals, tightness)) = found.find_map(|(place, condition)| {
            Some((place, equality(keys, field, condition, searched)?))
        })?;
        *bound = intervals;
        if tightness == Tightness::Exact && !searched.long_keys {
            answers[place] = Answer::Exact;
        }
        if let Condition::Path(PathNode { test: Test::Compare(_, operand), .. }) =
            searched.beside[place]
        {
            prefix.append(&keys.fields()[field].path, operand.value());
        }
    }
    for (condition, answer) in searched.beside.iter().zip(&mut answers) {
        if !searched.long_keys && by_key(keys, index.at + 2, condition, searched) {
            *answer = Answer::ByKey;
        }
    }
    let is_ordered = !searched.long_keys && bounds.iter().take(index.at).all(Intervals::is_point);
    let terms = matcher.parsed().bounds.iter();
    let scans = terms.map(|term| {
        let mut bounds = bounds.clone();
        bounds[index.at] = Intervals::point(Value::String(&stored_term(term)));
        SearchScan { bounds, backward: false }
    });
    let scans: Vec<SearchScan> = scans.collect();
    let hashes = matcher.parsed().bounds.iter().any(|term| is_long(term));
    let method = TextMethod {
        matcher: Arc::clone(matcher),
        prefix,
        score_at: index.at + 1,
        scans: scans.len(),
        is_ordered,
        is_sure: !hashes && !searched.long_keys,
    };
    Some(SearchPlan { answers, scans, method: Arc::new(method) })
}

/// A planned `$text`.
#[derive(Debug)]
struct TextMethod {
    matcher: Arc<TextMatcher>,
    /// The values of the fields before the term.
    prefix: DocBuf,
    /// The position of the score in a key.
    score_at: usize,
    /// The number of scans.
    scans: usize,
    /// True if a scan meets the keys of its term in the order of their scores.
    is_ordered: bool,
    /// True if a key that the scans find has one of the terms, so that documents need no test for it.
    is_sure: bool,
}

impl SearchMethod for TextMethod {
    fn check_stage(&self) -> Option<&'static str> {
        Some("TEXT_MATCH")
    }

    fn write_facts(&self, out: &mut DocWriter<'_>) {
        out.append("indexPrefix", &self.prefix);
        let parsed = self.matcher.parsed();
        {
            let mut shown = out.document("parsedTextQuery");
            for (name, terms) in [("terms", &parsed.terms), ("negatedTerms", &parsed.negated_terms)]
            {
                let mut list = shown.array(name);
                for term in terms {
                    list.push(term.as_str());
                }
            }
            for (name, phrases) in
                [("phrases", &parsed.phrases), ("negatedPhrases", &parsed.negated_phrases)]
            {
                let mut list = shown.array(name);
                for phrase in phrases {
                    list.push(phrase.as_str());
                }
            }
        }
        out.append("textIndexVersion", self.matcher.version() as i32 + 1);
    }

    fn check(&self, doc: Doc<'_>) -> Result<bool> {
        if self.is_sure { self.matcher.passes(doc) } else { self.matcher.matches(doc) }
    }

    fn gather_stage(&self) -> &'static str {
        "TEXT_OR"
    }

    fn order(&self) -> Option<&'static str> {
        TEXT_METADATA.first().copied()
    }

    fn always_gathers(&self) -> bool {
        false
    }

    fn begin(&self) -> Box<dyn Searching> {
        let matcher = Arc::clone(&self.matcher);
        Box::new(Running::new(matcher, self.score_at, self.scans, self.is_ordered))
    }
}
