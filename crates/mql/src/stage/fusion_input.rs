//! The last stage of an input pipeline of `$rankFusion` or `$scoreFusion`, which adds the rank or
//! the score to each document.

use super::fusion::{DOCUMENT, OF, RAW, Wanted};
use super::{Modified, Needs, StageBody};
use crate::context::Collator;
use crate::expression::Dependencies;
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter, Value, ValueBuf, equal};

/// Wraps each document in an envelope `{doc, of: {name: {...}}}`.
#[derive(Debug)]
pub struct FusionInput {
    name: Box<str>,
    wanted: Wanted,
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
    pub(super) fn new(name: &str, wanted: Wanted) -> Self {
        FusionInput { name: name.into(), wanted }
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
            if self.wanted == Wanted::Score {
                writer.append_some(RAW, score);
            }
            let mut of = writer.document(OF);
            let mut said = of.document(&self.name);
            if self.wanted == Wanted::Order {
                let rank = ranks.next(metadata.get("sortKey"), collator);
                match i32::try_from(rank) {
                    Ok(rank) => said.append("rank", rank),
                    Err(_) => said.append("rank", rank as i64),
                };
            }
            said.append_some("score", score);
            said.append_some("description", details.get("description"));
            match details.get("details") {
                Some(inner) => said.append("details", inner),
                None => said.append("details", &ArrayBuf::new()),
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
        let ranks = (self.wanted == Wanted::Order).then_some("sortKey");
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
        let by = match self.wanted {
            Wanted::Order => "rank",
            Wanted::Score => "score",
        };
        inner.append("by", by);
    }
}
