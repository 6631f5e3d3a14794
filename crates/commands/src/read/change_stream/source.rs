//! A change stream as the source of a cursor: each event passes through the rest of the pipeline.

use super::event::Event;
use super::split::split;
use super::stream::{EventStream, fatal};
use crate::frame::service::Service;
use quire_collections::{Store, from_storage};
use quire_document::{ArrayWriter, DocBuf, Value};
use quire_error::Result;
use quire_executor::{
    Awaits, BatchEnd, BatchLimits, ExecParams, Execution, Feed, Follows, Views, open_fed,
};
use quire_mql::stage::ResumeToken;
use quire_planner::AggregateRequest;
use quire_session::Source;
use quire_storage::{Interrupt, Version};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a batch looks for its first document before it is returned empty, with the position that
/// was reached.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// The source of the batches of a change stream.
pub(super) struct ChangeStreamSource {
    stream: EventStream,
    /// The rest of the pipeline; `None` if there is none.
    pipeline: Option<(Slot, Execution)>,
    /// Documents that did not fit into the last batch, with their tokens.
    pending: VecDeque<(ResumeToken, DocBuf)>,
    /// The token after the documents that were returned; `None` after the end of the stream.
    token: Option<ResumeToken>,
    cuts: bool,
    /// True if the last batch has a token, also if the event that ended the stream is not shown.
    keeps_token: bool,
    store: Arc<Store>,
    service: Arc<Service>,
}

/// The event that the pipeline reads next.
#[derive(Clone, Default)]
struct Slot(Arc<Mutex<Option<DocBuf>>>);

impl Slot {
    fn put(&self, doc: DocBuf) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(doc);
    }
}

impl Feed for Slot {
    fn next(&mut self, _: usize, _: &Arc<Interrupt>, out: &mut Vec<DocBuf>) -> Result<Follows> {
        out.extend(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
        Ok(Follows::NothingYet { past: Version::default() })
    }
}

impl ChangeStreamSource {
    /// Returns a source over `stream`. `request` has the stages after it.
    ///
    /// # Errors
    /// The errors of these stages.
    pub fn new(
        stream: EventStream,
        request: &AggregateRequest,
        cuts: bool,
        (views, params): (&dyn Views, ExecParams),
        service: Arc<Service>,
    ) -> Result<Self> {
        let store = Arc::clone(&service.store);
        let slot = Slot::default();
        let pipeline = match request.pipeline.is_empty() {
            true => None,
            false => Some((slot.clone(), open_fed(request, Box::new(slot), views, params)?)),
        };
        let token = Some(stream.mark());
        let pending = VecDeque::new();
        let keeps_token = false;
        Ok(ChangeStreamSource {
            stream,
            pipeline,
            pending,
            token,
            cuts,
            keeps_token,
            store,
            service,
        })
    }

    /// Gives the last batch a token in any case: a job goes on behind the end of the stream.
    pub fn keeping_token(mut self, keeps_token: bool) -> Self {
        self.keeps_token = keeps_token;
        self
    }

    /// Passes an event through the pipeline. Returns the resulting documents with their tokens.
    fn pass(
        &mut self,
        event: Event,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Vec<(ResumeToken, DocBuf)>> {
        let Event { token, doc, returned, refused, .. } = event;
        if refused {
            return Ok(Vec::new());
        }
        let passed = match &mut self.pipeline {
            None => Some(doc),
            Some((slot, execution)) => {
                slot.put(doc);
                execution.next_document(views, interrupt)?
            }
        };
        let Some(passed) = passed else { return Ok(Vec::new()) };
        check_token(&passed, token)?;
        if !self.cuts {
            return Ok(vec![(token, passed)]);
        }
        let fragments = split(passed, token)?;
        Ok(fragments.into_iter().skip(usize::from(returned)).collect())
    }

    /// Returns the next document. `None` if there is none, or none was found before `give_up`.
    fn next(
        &mut self,
        views: &mut dyn Views,
        until: Version,
        interrupt: &Arc<Interrupt>,
        give_up: Option<Instant>,
    ) -> Result<Found> {
        loop {
            if let Some(found) = self.pending.pop_front() {
                return Ok(Found::Document(found));
            }
            let Some(event) = self.stream.next(&views.view(), until, interrupt)? else {
                return Ok(if self.stream.has_ended() { Found::End } else { Found::NothingYet });
            };
            let token = event.token;
            let passed = self.pass(event, views, interrupt)?;
            self.pending.extend(passed);
            if self.pending.is_empty() {
                self.token = Some(token);
                if give_up.is_some_and(|give_up| Instant::now() >= give_up) {
                    return Ok(Found::Later);
                }
            }
        }
    }
}

/// The result of looking for a document.
enum Found {
    Document((ResumeToken, DocBuf)),
    /// None was found in the given time.
    Later,
    NothingYet,
    End,
}

impl Source for ChangeStreamSource {
    fn next_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        // The view is not older than what is durable, so that a look-up finds an event's document.
        let durable = self.store.engine().durable_version();
        let visible = views.view().version();
        let kept_ms = self.service.cluster_parameters.images_kept_ms();
        let expired = kept_ms.map_or(0, |kept_ms| self.service.wall_ms().saturating_sub(kept_ms));
        self.stream.forget_images_before(expired);
        let mut until = durable.min(visible);
        let give_up = Instant::now() + LOOK_MAX;
        let mut docs = 0;
        let follows = loop {
            if docs >= limits.docs_max {
                break Follows::Rows;
            }
            let give_up = (docs == 0).then_some(give_up);
            match self.next(views, until, interrupt, give_up)? {
                Found::Document((token, doc)) => {
                    if docs > 0 && out.len() + doc.as_bytes().len() > limits.bytes_max {
                        self.pending.push_front((token, doc));
                        break Follows::Rows;
                    }
                    quire_executor::check_size(doc.as_doc())?;
                    out.push(&doc);
                    docs += 1;
                    self.token = Some(token);
                }
                Found::Later => break Follows::Rows,
                Found::NothingYet if docs == 0 && until < visible => {
                    // A commit that is visible may be an event as soon as it is durable, and no
                    // later commit need come and wake the client.
                    self.store.engine().barrier(visible).map_err(from_storage)?;
                    until = visible;
                }
                Found::NothingYet => {
                    self.token = Some(self.stream.mark());
                    break Follows::NothingYet { past: until };
                }
                Found::End => {
                    self.token = self.token.filter(|_| docs > 0 || self.keeps_token);
                    break Follows::End;
                }
            }
        };
        Ok(BatchEnd { docs, follows })
    }

    fn held_bytes(&self) -> u64 {
        let pending = self.pending.iter().map(|(_, doc)| doc.as_bytes().len() as u64);
        self.stream.held_bytes() + pending.sum::<u64>()
    }

    fn awaits(&self) -> Option<Awaits> {
        Some(self.stream.awaits(&self.store.catalog()))
    }

    fn resume_token(&self) -> Option<DocBuf> {
        self.token.map(|token| token.to_doc())
    }
}

/// Fails if the pipeline has removed or changed the resume token, the `_id` of an event.
fn check_token(doc: &DocBuf, token: ResumeToken) -> Result<()> {
    let expected = token.to_doc();
    let found = doc.get("_id");
    if let Some(Value::Document(found)) = found
        && found.as_bytes() == expected.as_bytes()
    {
        return Ok(());
    }
    let found = found
        .map_or_else(String::new, |found| format!("_id: {}", quire_catalog::debug_value(found)));
    Err(fatal(&format!(
        "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain the unmodified _id field are allowed. Expected: {{ _id: {} }} but found: {{ {found} }}",
        quire_catalog::debug_doc(expected.as_doc())
    )))
}
