//! The events of a stream in order, from the place at which it begins.

use super::early::EarlyFilter;
use super::event::{Event, Events, token_of};
use super::scope::Scope;
use quire_catalog::Namespace;
use quire_collections::{ChangeEntry, ChangePlace, LogBeginning, LogReader, View, history_lost};
use quire_error::{Error, ErrorCode, Label, Result};
use quire_executor::Awaits;
use quire_mql::stage::{
    BeforeChange, ChangeStream, FullDocument, ResumeToken, StreamStart, TokenKind,
};
use quire_storage::{ClusterTime, Interrupt, Reach, Version, Watched};
use std::collections::VecDeque;

/// The changes that are read at a time. Each can be as large as two documents.
const READ_AT_ONCE: usize = 16;

/// The events of a stream.
pub(super) struct EventStream {
    scope: Scope,
    spec: ChangeStream,
    /// What decides whether documents are looked up for an event.
    early: Option<EarlyFilter>,
    reader: LogReader,
    /// Changes that were read and are no events yet.
    entries: VecDeque<ChangeEntry>,
    events: VecDeque<Event>,
    /// Earlier changes are no events of the stream.
    from: ClusterTime,
    /// The event after which the stream was resumed, until it is found.
    resumed: Option<ResumeToken>,
    /// A position up to which there are no more events.
    mark: ResumeToken,
    /// The version up to which the mark holds.
    marked: Version,
    /// The images of changes before this time have expired, in milliseconds since 1970.
    images_from_ms: i64,
    /// True if an event has ended the stream.
    ended: bool,
    /// True if the pipeline can cut events.
    cuts: bool,
}

impl EventStream {
    /// Returns a stream that begins where `spec` says.
    ///
    /// # Errors
    /// 260 InvalidResumeToken, 280 ChangeStreamFatalError, 286 ChangeStreamHistoryLost.
    pub fn open(view: &View<'_>, scope: Scope, spec: ChangeStream, cuts: bool) -> Result<Self> {
        let beginning = LogBeginning::read(view.snapshot())?.ok_or_else(history_lost)?;
        let now = Begin::after(view, &beginning)?;
        let begin = match spec.start {
            None => now,
            Some(StreamStart::AtTime(time)) => {
                Begin::at_time(view, &beginning, ResumeToken::high_water_mark(time.to_u64(), 0))?
            }
            Some(StreamStart::ResumeAfter(token)) if token.kind == TokenKind::Invalidate => {
                let text = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.";
                return Err(Error::new(ErrorCode::InvalidResumeToken, text));
            }
            Some(StreamStart::ResumeAfter(token) | StreamStart::StartAfter(token)) => {
                Begin::after_token(view, &beginning, token)?
            }
        };
        if begin.resumed.is_some_and(|token| token.fragment > 0) && !cuts {
            return Err(fatal(
                "To resume from a split event, the resuming pipeline must include a $changeStreamSplitLargeEvent stage",
            ));
        }
        Ok(EventStream {
            scope,
            spec,
            early: None,
            reader: LogReader::at(begin.place),
            entries: VecDeque::new(),
            events: VecDeque::new(),
            from: begin.from,
            resumed: begin.resumed,
            mark: begin.mark,
            marked: Version::default(),
            images_from_ms: 0,
            ended: false,
            cuts,
        })
    }

    /// Looks up no documents for events that the filter refuses.
    pub fn with_early(mut self, early: Option<EarlyFilter>) -> Self {
        self.early = early;
        self
    }

    /// Makes images of changes before a time, in milliseconds since 1970, count as missing.
    pub fn forget_images_before(&mut self, time_ms: i64) {
        self.images_from_ms = time_ms;
    }

    /// Returns the next event of the commits up to `until`; `None` if there is none.
    ///
    /// # Errors
    /// 47 NoMatchingDocument, 280 ChangeStreamFatalError, 286 ChangeStreamHistoryLost; the error of
    /// the interrupt.
    pub fn next(
        &mut self,
        view: &View<'_>,
        until: Version,
        interrupt: &Interrupt,
    ) -> Result<Option<Event>> {
        loop {
            while let Some(event) = self.events.pop_front() {
                if let Some(event) = self.after_resumption(event)? {
                    self.ended |= event.ends;
                    return Ok(Some(event));
                }
            }
            if self.ended {
                return Ok(None);
            }
            let Some(mut entry) = self.entries.pop_front() else {
                interrupt.check().map_err(quire_collections::from_interruption)?;
                if self.read(view, until)? && self.entries.is_empty() {
                    self.raise_mark(view, until)?;
                    return Ok(None);
                }
                continue;
            };
            if i64::try_from(entry.wall_ms).is_ok_and(|wall_ms| wall_ms < self.images_from_ms) {
                entry.forget_images();
            }
            if entry.time >= self.from {
                let made = self.events_of(&entry, view)?;
                self.events.extend(made);
            }
        }
    }

    /// Returns the events of a change. That after which the stream was resumed is not returned to
    /// the client, so that it needs no documents.
    fn events_of(&self, entry: &ChangeEntry, view: &View<'_>) -> Result<Vec<Event>> {
        let (scope, spec) = (&self.scope, &self.spec);
        let known = self.resumed.filter(|token| token.fragment == 0 || !self.cuts);
        let bare = || {
            let spec = ChangeStream {
                full_document: FullDocument::Default,
                before_change: BeforeChange::Off,
                ..spec.clone()
            };
            Events { scope, spec: &spec }.of(entry, view)
        };
        if known.is_some_and(|token| {
            token_of(entry, token.kind) == ResumeToken { fragment: 0, ..token }
        }) {
            return bare();
        }
        if let Some(early) = &self.early {
            let mut events = bare()?;
            events.iter_mut().for_each(|event| event.refused = early.refuses(event.doc.as_doc()));
            if events.iter().all(|event| event.refused) {
                return Ok(events);
            }
        }
        Events { scope, spec }.of(entry, view)
    }

    fn read(&mut self, view: &View<'_>, until: Version) -> Result<bool> {
        let scope = &self.scope;
        let wants = |namespace: &str| scope.has(namespace);
        self.reader.read(view.snapshot(), until, &wants, READ_AT_ONCE, &mut self.entries)
    }

    /// Checks the first event of a resumed stream. Returns `None` for the event that the client has
    /// already.
    fn after_resumption(&mut self, mut event: Event) -> Result<Option<Event>> {
        let Some(token) = self.resumed.take() else { return Ok(Some(event)) };
        let whole = ResumeToken { fragment: 0, ..token };
        if event.token != whole {
            let shown = quire_catalog::debug_doc(token.to_doc().as_doc());
            let text = format!("cannot resume stream; the resume token was not found. {shown}");
            return Err(fatal(&text));
        }
        if token.fragment == 0 || !self.cuts {
            self.ended |= event.ends;
            return Ok(None);
        }
        event.returned = token.fragment;
        Ok(Some(event))
    }

    /// Notes that there are no more events up to `until`.
    fn raise_mark(&mut self, view: &View<'_>, until: Version) -> Result<()> {
        if self.resumed.is_some() || until <= self.marked {
            return Ok(());
        }
        let Some(beginning) = LogBeginning::read(view.snapshot())? else { return Ok(()) };
        let mark = mark_at(view, &beginning, until)?;
        (self.mark, self.marked) = (self.mark.max(mark), until);
        Ok(())
    }

    /// Returns the token of a position up to which all events were returned. Valid after
    /// [`next`](Self::next) has returned `None`.
    pub fn mark(&self) -> ResumeToken {
        self.resumed.unwrap_or(self.mark)
    }

    /// Returns true if no event follows ever.
    pub fn has_ended(&self) -> bool {
        self.ended && self.events.is_empty()
    }

    /// Returns the commits that can add events.
    pub fn awaits(&self, catalog: &quire_catalog::Catalog) -> Awaits {
        let watched = match &self.scope {
            Scope::Collection(name) => {
                let name = Namespace::parse(name).ok();
                let found = name.and_then(|name| catalog.lookup(&name).map(|found| found.id.0));
                found.map_or(Watched::Catalog, Watched::Collection)
            }
            Scope::Database(_) | Scope::Cluster => Watched::Everything,
        };
        Awaits { watched, reach: Reach::Durable }
    }

    /// Returns an estimate of the bytes that the stream holds.
    pub fn held_bytes(&self) -> u64 {
        let events = self.events.iter().map(|event| event.doc.as_bytes().len());
        let entries = self.entries.iter().map(ChangeEntry::held_bytes);
        (events.sum::<usize>() + entries.sum::<usize>()) as u64
    }
}

/// The place at which a stream begins.
struct Begin {
    place: ChangePlace,
    from: ClusterTime,
    resumed: Option<ResumeToken>,
    mark: ResumeToken,
}

impl Begin {
    /// Returns the place after everything that `view` shows.
    fn after(view: &View<'_>, beginning: &LogBeginning) -> Result<Self> {
        Ok(Begin {
            place: ChangePlace::of_version(view.version().as_u64() + 1),
            from: ClusterTime(view.cluster_time().0 + 1),
            resumed: None,
            mark: mark_at(view, beginning, view.version())?,
        })
    }

    /// Returns the place of the first event that is not earlier than a high-water mark.
    fn at_time(view: &View<'_>, beginning: &LogBeginning, mark: ResumeToken) -> Result<Self> {
        let from = ClusterTime(mark.time);
        let place = if from <= beginning.time {
            // Nothing was removed from the log if it is whole, so nothing is missed.
            if !beginning.whole {
                return Err(history_lost());
            }
            ChangePlace::of_version(beginning.version.as_u64())
        } else {
            // A mark names the last commit with changes before it.
            check_history(view, beginning, mark.version, |last| last.0 + 1 == mark.time)?;
            let after = ChangePlace::of_version(view.version().as_u64() + 1);
            beginning.seek(view.snapshot(), from)?.unwrap_or(after)
        };
        Ok(Begin { place, from, resumed: None, mark })
    }

    fn after_token(view: &View<'_>, beginning: &LogBeginning, token: ResumeToken) -> Result<Self> {
        if token.kind == TokenKind::HighWaterMark {
            return Begin::at_time(view, beginning, token);
        }
        let ResumeToken { version, index, offset, time, .. } = token;
        if version < beginning.version.as_u64() {
            return Err(history_lost());
        }
        let time = ClusterTime(time);
        check_history(view, beginning, version, |last| last == time)?;
        let place = ChangePlace { version, index, offset };
        let (place, resumed) = match token.kind {
            TokenKind::Invalidate => (place.next(), None),
            TokenKind::Event | TokenKind::HighWaterMark => (place, Some(token)),
        };
        Ok(Begin { place, from: time, resumed, mark: token })
    }
}

/// Returns the mark of the position after the commits up to `until`. It names the last one that has
/// changes, which tells it from a mark of another history.
fn mark_at(view: &View<'_>, beginning: &LogBeginning, until: Version) -> Result<ResumeToken> {
    let last = beginning.last_before(view.snapshot(), until.as_u64() + 1)?;
    let none = (beginning.version.as_u64().saturating_sub(1), beginning.time);
    let (version, time) = last.unwrap_or(none);
    Ok(ResumeToken::high_water_mark(time.0 + 1, version))
}

/// Fails unless the last commit with changes up to `version` has a time that `fits`: the token is that
/// of another history, from before a restore.
fn check_history(
    view: &View<'_>,
    beginning: &LogBeginning,
    version: u64,
    fits: impl Fn(ClusterTime) -> bool,
) -> Result<()> {
    let is_known = version <= view.version().as_u64();
    if is_known && (version == 0 || fits(beginning.time_at(view.snapshot(), version)?)) {
        return Ok(());
    }
    Err(history_lost())
}

/// Returns the error after which a stream cannot be resumed.
pub(super) fn fatal(text: &str) -> Error {
    Error::new(ErrorCode::ChangeStreamFatalError, text)
        .with_label(Label::NonResumableChangeStreamError)
}
