//! The queue of the statements that change one document and commit together (`write/line.rs`): who leads,
//! who waits, and how what the leader writes with is passed on and given back. It does not know what is
//! passed.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use quire_catalog::CollectionId;
use quire_document::{Value, key};
use quire_error::Error;
use quire_storage::{Committed, Interrupt, Interruption};

/// The most statements that one commit has besides the leader's.
const CREW_MAX: usize = 64;

/// What the leader passes to the others: its writer.
pub(crate) type Baton = Box<dyn Any + Send>;

/// The line of one document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LineId {
    collection: CollectionId,
    /// The key of the document's `_id`.
    document: Vec<u8>,
}

impl LineId {
    /// Returns the line of the document of `collection` with this `_id`.
    pub fn new(collection: CollectionId, id: Value<'_>) -> Self {
        LineId { collection, document: key::encode(id) }
    }
}

/// A line of commits of one durability.
pub(crate) type Key = (LineId, bool);

/// The lines of a store that have a leader, each with the seats behind it.
#[derive(Default)]
pub(crate) struct Lines(Mutex<HashMap<Key, VecDeque<Arc<Seat>>>>);

/// The place of a statement in a line.
pub(crate) struct Seat {
    state: Mutex<State>,
    changed: Condvar,
    interrupt: Arc<Interrupt>,
}

pub(crate) enum State {
    /// The statement waits.
    Waiting,
    /// The statement was interrupted before it had written.
    Gone,
    /// The statement leads the line from now on.
    Leads,
    /// The statement may write.
    Writes(Baton),
    /// The statement writes.
    Writing,
    /// The statement has written; `None` if it has lost the baton in a panic.
    Gives(Option<Baton>),
    /// The statement waits for the commit.
    Written,
    /// The commit has ended.
    Ended(Outcome),
}

/// What has become of a commit.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// It has succeeded; `None` if no statement had written anything.
    Committed(Option<Committed>),
    /// Nothing was written: the statement runs again.
    Again,
    /// It is unknown whether it has succeeded.
    Failed(Arc<Error>),
}

/// What becomes of a baton that was passed to a statement.
pub(crate) enum Passed {
    Written(Baton),
    Gone(Baton),
    Lost,
}

impl Seat {
    /// Waits until the statement is called, or interrupted.
    ///
    /// # Errors
    /// The interruption.
    pub fn wait(&self) -> Result<(), Interruption> {
        let is_called = || !matches!(*self.state.lock(), State::Waiting);
        self.interrupt.wait(None, is_called).map(drop)
    }

    fn set(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_all();
        self.interrupt.notify();
    }

    /// Passes the baton to the statement, and waits until it has written.
    pub fn pass(&self, baton: Baton) -> Passed {
        {
            let mut state = self.state.lock();
            if matches!(*state, State::Gone) {
                return Passed::Gone(baton);
            }
            *state = State::Writes(baton);
        }
        self.changed.notify_all();
        self.interrupt.notify();
        let mut state = self.state.lock();
        loop {
            match mem::replace(&mut *state, State::Written) {
                State::Gives(Some(baton)) => return Passed::Written(baton),
                State::Gives(None) => return Passed::Lost,
                other => *state = other,
            }
            self.changed.wait(&mut state);
        }
    }

    /// Waits until the leader wants something of the statement. What it wants cannot be refused, so
    /// an interruption does not end this wait.
    pub fn next(&self) -> State {
        let mut state = self.state.lock();
        loop {
            match mem::replace(&mut *state, State::Writing) {
                called @ (State::Leads | State::Writes(_) | State::Ended(_)) => return called,
                other => *state = other,
            }
            self.changed.wait(&mut state);
        }
    }

    /// Does `work` with the baton, and gives it back. A panic loses it.
    pub fn write<T>(&self, mut baton: Baton, work: impl FnOnce(&mut Baton) -> T) -> T {
        struct Giving<'s>(&'s Seat, Option<Baton>);
        impl Drop for Giving<'_> {
            fn drop(&mut self) {
                self.0.set(State::Gives(self.1.take()));
            }
        }
        let mut giving = Giving(self, None);
        let done = work(&mut baton);
        giving.1 = Some(baton);
        done
    }
}

impl Lines {
    /// Enters a line. Returns a seat behind its leader; `None` if the caller leads.
    pub fn enter(&self, key: &Key, interrupt: &Arc<Interrupt>) -> Option<Arc<Seat>> {
        let mut lines = self.0.lock();
        let Some(line) = lines.get_mut(key) else {
            lines.insert(key.clone(), VecDeque::new());
            return None;
        };
        let seat = Arc::new(Seat {
            state: Mutex::new(State::Waiting),
            changed: Condvar::new(),
            interrupt: Arc::clone(interrupt),
        });
        line.push_back(Arc::clone(&seat));
        Some(seat)
    }

    /// Leaves a line after an interruption. Gives back what the leader has passed meanwhile.
    pub fn leave(&self, key: &Key, seat: &Seat) {
        let mut state = seat.state.lock();
        let leads = matches!(*state, State::Leads);
        *state = match mem::replace(&mut *state, State::Gone) {
            State::Writes(baton) => State::Gives(Some(baton)),
            _ => State::Gone,
        };
        drop(state);
        seat.changed.notify_all();
        if leads {
            self.pass_on(key);
        }
    }

    /// Makes the next statement that waits the leader, or ends the line.
    fn pass_on(&self, key: &Key) {
        let mut lines = self.0.lock();
        let Some(line) = lines.get_mut(key) else { return };
        while let Some(seat) = line.pop_front() {
            let mut state = seat.state.lock();
            if matches!(*state, State::Waiting) {
                *state = State::Leads;
                drop(state);
                drop(lines);
                seat.changed.notify_all();
                seat.interrupt.notify();
                return;
            }
        }
        lines.remove(key);
    }
}

/// The statements that write in one commit with the leader's. Dropped before the commit has ended, they
/// run again.
pub(crate) struct Crew(pub Vec<Arc<Seat>>);

impl Crew {
    /// Tells all statements what has become of the commit.
    pub fn end(&mut self, outcome: &Outcome) {
        self.end_from(0, outcome);
    }

    /// Lets the statements at `at` and behind it, which have not written, run again.
    pub fn release(&mut self, at: usize) {
        self.end_from(at, &Outcome::Again);
    }

    fn end_from(&mut self, at: usize, outcome: &Outcome) {
        for seat in self.0.drain(at..) {
            let is_gone = matches!(*seat.state.lock(), State::Gone);
            if !is_gone {
                seat.set(State::Ended(outcome.clone()));
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end(&Outcome::Again);
    }
}

/// The lead of a line. Dropped, it passes to the next statement.
pub(crate) struct Leading<'l> {
    pub lines: &'l Lines,
    pub key: Key,
}

impl Leading<'_> {
    /// Adds the statements that wait now, as far as the commit has room.
    pub fn take(&self, crew: &mut Crew) {
        let mut lines = self.lines.0.lock();
        if let Some(line) = lines.get_mut(&self.key) {
            let room = CREW_MAX.saturating_sub(crew.0.len());
            let count = room.min(line.len());
            crew.0.extend(line.drain(..count));
        }
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.lines.pass_on(&self.key);
    }
}
