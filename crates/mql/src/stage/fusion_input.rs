//! The last stage of an input pipeline of `$rankFusion` or `$scoreFusion`, which adds the rank or
//! the score to each document.

use super::fusion::{DOCUMENT, OF, RAW, Requirement};
use super::{Modified, Needs, StageBody};
use crate::context::Collator;
use crate::expression::Dependencies;
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter, Value, ValueBuf, equal};

/// Wraps each document in an envelope `{doc, of: {name: {...}}}`.
#[derive(Debug)]
pub struct FusionInput {
    name: Box<str>,
    requirement: Requirement,
}

/// The rank of the latest document of a pipeline. Documents with equal sort keys have the same
/// rank, and the next rank counts all of them.
#[derive(Debug, Default)]
pub struct Ranks {
    last: Option<ValueBuf>,
    rank: u64,
    documents: u64,
}

impl Ranks {
    /// Returns the rank of the next document.
    fn next(&mut self, sort_key: Option<Value<'_>>, collator: Option<&dyn Collator>) -> u64 {
        self.documents += 1;
        let ties = match (&self.last, sort_key) {
            (Some(last), Some(key)) => equal(last.as_value(), key, collator),
            _ => false,
        };
        if !ties {
            self.rank = self.documents;
            self.last = sort_key.map(ValueBuf::new);
        }
        self.rank
    }
}

impl FusionInput {
    pub(super) fn new(name: &str, requirement: Requirement) -> Self {
        FusionInput { name: name.into(), requirement }
    }

    /// Returns the envelope of the next document.
    pub fn envelope(
        &self,
        doc: Doc<'_>,
        metadata: Doc<'_>,
        ranks: &mut Ranks,
        collator: Option<&dyn Collator>,
    ) -> DocBuf {
        let score = metadata.get("score");
        let details = metadata.get("scoreDetails").and_then(|details| details.as_document());
        let details = details.unwrap_or_default();
        DocBuf::build(|writer| {
            writer.append(DOCUMENT, doc);
            if self.requirement == Requirement::Score {
                writer.append_some(RAW, score);
            }
            let mut of = writer.document(OF);
            let mut data = of.document(&self.name);
            if self.requirement == Requirement::Order {
                let rank = ranks.next(metadata.get("sortKey"), collator);
                match i32::try_from(rank) {
                    Ok(rank) => data.append("rank", rank),
                    Err(_) => data.append("rank", rank as i64),
                };
            }
            data.append_some("score", score);
            data.append_some("description", details.get("description"));
            match details.get("details") {
                Some(inner) => data.append("details", inner),
                None => data.append("details", &ArrayBuf::new()),
            };
        })
    }
}

impl StageBody for FusionInput {
    fn name(&self) -> &'static str {
        "$_internalFusionInput"
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies { whole_document: true, ..Dependencies::default() };
        let ranks = (self.requirement == Requirement::Order).then_some("sortKey");
        let kinds = ["score", "scoreDetails"].into_iter().chain(ranks);
        reads.metadata.extend(kinds.map(str::to_owned));
        Needs::only(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(self.name());
        inner.append("inputPipelineName", &*self.name);
        let by = match self.requirement {
            Requirement::Order => "rank",
            Requirement::Score => "score",
        };
        inner.append("by", by);
    }
}
