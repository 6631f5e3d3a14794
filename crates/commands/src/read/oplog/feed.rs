//! Reads the log for a cursor, forward or backward, and stays open at its end if the cursor tails.

use super::bounds::TimeBounds;
use super::entries::{Entries, beginning};
use quire_collections::{
    ChangePlace, LogBeginning, LogReader, Store, View, from_interruption, history_lost,
};
use quire_document::{DocBuf, Timestamp, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{Awaits, Feed, Follows};
use quire_storage::{ClusterTime, Interrupt, Reach, Snapshot, Version, Watched};
use std::collections::VecDeque;
use std::sync::Arc;

/// The changes that are read at a time. Each can be as large as a document.
const READ_AT_ONCE: usize = 64;

/// The source of the entries.
pub(super) struct OplogFeed {
    store: Arc<Store>,
    bounds: TimeBounds,
    is_forward: bool,
    tails: bool,
    position: Position,
    entries: Entries,
}

/// How far the feed has come.
enum Position {
    /// It has read nothing.
    Start,
    /// The log is read forward.
    Forward(LogReader),
    /// The log is read backward: the next commit is the last one before this version.
    Backward(u64),
    /// There is nothing more.
    End,
}

/// What a step of reading has found.
enum Step {
    /// Some of the log was read, which can have made entries.
    Read,
    /// The end of the log, at this version.
    Dry(Version),
}

impl OplogFeed {
    pub fn new(store: Arc<Store>, bounds: TimeBounds, is_forward: bool, tails: bool) -> Self {
        let entries = Entries::default();
        OplogFeed { store, bounds, is_forward, tails, position: Position::Start, entries }
    }

    /// Reads the next part of the log into `entries`.
    fn read(&mut self, view: &View<'_>) -> Result<Step> {
        let Some(begins) = LogBeginning::read(view.snapshot())? else {
            self.position = Position::End;
            return Ok(Step::Dry(view.version()));
        };
        match &mut self.position {
            Position::Start => self.begin(view, &begins)?,
            Position::Forward(_) => return self.read_forward(view),
            Position::Backward(before) => {
                let before = *before;
                self.read_backward(view, &begins, before)?;
            }
            Position::End => return Ok(Step::Dry(view.version())),
        }
        Ok(Step::Read)
    }

    fn begin(&mut self, view: &View<'_>, begins: &LogBeginning) -> Result<()> {
        if !self.is_forward {
            self.position = Position::Backward(view.version().as_u64() + 1);
            return Ok(());
        }
        let from = ClusterTime(self.bounds.from);
        let place = if from <= begins.time {
            self.entries.ready.push_back(beginning(begins));
            ChangePlace::of_version(begins.version.as_u64())
        } else {
            let after = ChangePlace::of_version(view.version().as_u64() + 1);
            begins.seek(view.snapshot(), from)?.unwrap_or(after)
        };
        self.position = Position::Forward(LogReader::at(place));
        Ok(())
    }

    fn read_forward(&mut self, view: &View<'_>) -> Result<Step> {
        let Position::Forward(reader) = &mut self.position else { return Ok(Step::Read) };
        let mut found = VecDeque::new();
        let until = view.version();
        let is_dry = reader.read(view.snapshot(), until, &|_| true, READ_AT_ONCE, &mut found);
        let is_dry = is_dry.map_err(lost_position)?;
        for entry in &found {
            if entry.time.0 > self.bounds.to {
                self.position = Position::End;
                break;
            }
            self.entries.add(entry);
        }
        if is_dry || matches!(self.position, Position::End) {
            self.entries.end_commit();
        }
        Ok(if is_dry { Step::Dry(until) } else { Step::Read })
    }

    /// Reads the last commit before the version `before`.
    fn read_backward(&mut self, view: &View<'_>, begins: &LogBeginning, before: u64) -> Result<()> {
        let last = begins.last_before(view.snapshot(), before)?;
        let Some((version, time)) = last.filter(|(_, time)| time.0 >= self.bounds.from) else {
            if begins.time.0 >= self.bounds.from {
                self.entries.ready.push_back(beginning(begins));
            }
            self.position = Position::End;
            return Ok(());
        };
        self.position = Position::Backward(version);
        if time.0 <= self.bounds.to {
            let commit = commit(view.snapshot(), version)?;
            self.entries.ready.extend(commit.into_iter().rev());
        } else if self.bounds.to <= begins.time.0 {
            self.position = Position::Backward(begins.version.as_u64());
        } else if let Some(place) =
            begins.seek(view.snapshot(), ClusterTime(self.bounds.to.saturating_add(1)))?
        {
            // Passes over everything that is too late.
            self.position = Position::Backward(place.version);
        }
        Ok(())
    }
}

/// Returns the entries of one commit.
fn commit(snapshot: &dyn Snapshot, version: u64) -> Result<VecDeque<DocBuf>> {
    let mut reader = LogReader::at(ChangePlace::of_version(version));
    let (mut entries, until) = (Entries::default(), Version::from_u64(version));
    loop {
        let mut found = VecDeque::new();
        let is_dry = reader.read(snapshot, until, &|_| true, READ_AT_ONCE, &mut found);
        let is_dry = is_dry.map_err(lost_position)?;
        found.iter().for_each(|entry| entries.add(entry));
        if is_dry {
            entries.end_commit();
            return Ok(entries.ready);
        }
    }
}

/// Returns the error of a cursor whose next entry is gone, as of one on a capped collection.
fn lost_position(error: Error) -> Error {
    match error.code() == history_lost().code() {
        true => Error::new(
            ErrorCode::CappedPositionLost,
            "CollectionScan died due to position in capped collection being deleted. The change log has removed the next entry",
        ),
        false => error,
    }
}

impl Feed for OplogFeed {
    fn next(
        &mut self,
        max: usize,
        interrupt: &Arc<Interrupt>,
        out: &mut Vec<DocBuf>,
    ) -> Result<Follows> {
        loop {
            let bounds = self.bounds;
            let in_bounds = |entry: &DocBuf| match entry.get("ts") {
                Some(Value::Timestamp(time)) => {
                    (bounds.from..=bounds.to).contains(&Timestamp::to_u64(time))
                }
                _ => true,
            };
            let many = self.entries.ready.len().min(max);
            out.extend(self.entries.ready.drain(..many).filter(in_bounds));
            if !out.is_empty() || !self.entries.ready.is_empty() {
                return Ok(Follows::Rows);
            }
            if matches!(self.position, Position::End) {
                return Ok(Follows::End);
            }
            interrupt.check().map_err(from_interruption)?;
            let view = self.store.read_view()?;
            if let Step::Dry(past) = self.read(&view.view())?
                && self.entries.ready.is_empty()
            {
                return Ok(match self.tails && !matches!(self.position, Position::End) {
                    true => Follows::NothingYet { past },
                    false => Follows::End,
                });
            }
        }
    }

    fn awaits(&self) -> Option<Awaits> {
        self.tails.then_some(Awaits { watched: Watched::Everything, reach: Reach::Visible })
    }
}
