//! The accumulators of one parent's children.

use super::bag::Bag;
use super::ranks::List;
use super::{Contribution, Kind, Rollup};
use crate::totals::ExactSum;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf, doc};
use quire_error::Result;

/// The most bytes of one accumulator that are stored. A larger one is stored as stale, and computed
/// from the children when the result is needed.
const STORED_BYTES_MAX: usize = 1 << 20;

/// The derived values of a parent: a path, and its value unless it is absent.
pub type Results<'r> = Vec<(&'r str, Option<ValueBuf>)>;

/// The accumulators of a roll-up over the children of one parent.
#[derive(Debug, Clone)]
pub struct ChildGroup {
    states: Vec<State>,
}

/// The state of one accumulator.
#[derive(Debug, Clone)]
enum State {
    /// The accumulator must be computed from the children.
    Stale,
    Sum(Box<ExactSum>),
    List(List),
    Bag(Bag),
}

impl ChildGroup {
    /// Returns the group without children.
    pub fn empty(rollup: &Rollup) -> Self {
        let state = |kind: &Kind| match kind {
            Kind::Sum | Kind::Mean => State::Sum(Box::default()),
            Kind::Ranked(_) => State::List(List::default()),
            Kind::Set => State::Bag(Bag::default()),
        };
        ChildGroup { states: rollup.fields.iter().map(|field| state(&field.kind)).collect() }
    }

    /// Returns a group of which nothing is known.
    pub fn stale(rollup: &Rollup) -> Self {
        ChildGroup { states: vec![State::Stale; rollup.fields.len()] }
    }

    /// Returns true if an accumulator must be computed from the children.
    pub fn is_stale(&self) -> bool {
        self.states.iter().any(|state| matches!(state, State::Stale))
    }

    /// Adds a child.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit if a list takes more than 64 MiB.
    pub fn add(&mut self, rollup: &Rollup, child: &Contribution) -> Result<()> {
        self.change(rollup, None, Some(child))
    }

    /// Replaces what a child gave by what it gives now; `None` for a child that was not or is no
    /// longer in the group. Accumulators that the difference does not determine become stale.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn change(
        &mut self,
        rollup: &Rollup,
        old: Option<&Contribution>,
        new: Option<&Contribution>,
    ) -> Result<()> {
        let value_of = |child: Option<&Contribution>, at: usize| {
            child.and_then(|child| child.values.get(at)?.clone())
        };
        for (at, (state, field)) in self.states.iter_mut().zip(&rollup.fields).enumerate() {
            let (gone, come) = (value_of(old, at), value_of(new, at));
            if same(gone.as_ref(), come.as_ref()) && old.is_some() == new.is_some() {
                continue;
            }
            if let (Some(child), Some(value)) = (old, &gone)
                && !state.take_away(&field.kind, child, value)
            {
                *state = State::Stale;
            }
            if let (Some(child), Some(value)) = (new, &come) {
                state.add(&field.kind, child, value)?;
            }
            if !state.is_enough(&field.kind) {
                *state = State::Stale;
            }
        }
        Ok(())
    }

    /// Takes the stale accumulators from a group that was computed from the children.
    pub fn refill(&mut self, fresh: ChildGroup) {
        for (state, fresh) in self.states.iter_mut().zip(fresh.states) {
            if matches!(state, State::Stale) {
                *state = fresh;
            }
        }
    }

    /// Returns the derived values of the parent.
    pub fn results<'r>(&self, rollup: &'r Rollup) -> Results<'r> {
        let fields = rollup.fields.iter().zip(&self.states);
        fields.map(|(field, state)| (field.path.as_str(), state.result(&field.kind))).collect()
    }

    /// Returns the group as a document that [`load`](Self::load) reads. An accumulator of more than
    /// 1 MiB is stored as stale.
    pub fn save(&self) -> DocBuf {
        let states: ArrayBuf =
            self.states.iter().map(State::save).collect::<Vec<_>>().iter().collect();
        doc! { "f": &states }
    }

    /// Reads a saved group; `None` if it is damaged or belongs to another definition.
    pub fn load(rollup: &Rollup, saved: Doc<'_>) -> Option<Self> {
        let states = saved.get("f")?.as_array()?.to_vec();
        if states.len() != rollup.fields.len() {
            return None;
        }
        let fields = rollup.fields.iter().zip(states);
        let states =
            fields.map(|(field, state)| State::load(&field.kind, state)).collect::<Option<_>>();
        Some(ChildGroup { states: states? })
    }
}

impl State {
    fn add(&mut self, kind: &Kind, child: &Contribution, value: &ValueBuf) -> Result<()> {
        match (self, kind) {
            (State::Sum(sum), _) => {
                sum.add(value.as_value());
                Ok(())
            }
            (State::List(list), Kind::Ranked(ranks)) => list.add(ranks, child, value),
            (State::Bag(bag), _) => bag.add(value.as_value()),
            (State::Stale | State::List(_), _) => Ok(()),
        }
    }

    /// Returns false if a child is not in the accumulator that must be in it.
    fn take_away(&mut self, kind: &Kind, child: &Contribution, value: &ValueBuf) -> bool {
        match (self, kind) {
            (State::Sum(sum), _) => sum.take_away(value.as_value()),
            (State::List(list), Kind::Ranked(ranks)) => list.take_away(ranks, child, value),
            (State::Bag(bag), _) => bag.take_away(value.as_value()),
            (State::Stale | State::List(_), _) => false,
        }
    }

    /// Returns false if the accumulator does not determine the result.
    fn is_enough(&self, kind: &Kind) -> bool {
        match (self, kind) {
            (State::List(list), Kind::Ranked(ranks)) => list.is_enough(ranks),
            _ => true,
        }
    }

    fn result(&self, kind: &Kind) -> Option<ValueBuf> {
        match (self, kind) {
            (State::Sum(sum), Kind::Mean) => sum.mean().map(ValueBuf::new),
            (State::Sum(sum), _) => Some(ValueBuf::new(sum.value())),
            (State::List(list), Kind::Ranked(ranks)) => list.result(ranks),
            (State::Bag(bag), _) => Some(bag.result()),
            (State::Stale | State::List(_), _) => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            State::Stale | State::Sum(_) => 0,
            State::List(list) => list.size(),
            State::Bag(bag) => bag.size(),
        }
    }

    fn save(&self) -> ValueBuf {
        match self {
            State::Sum(sum) => sum.save().into(),
            State::List(list) if self.size() <= STORED_BYTES_MAX => list.save(),
            State::Bag(bag) if self.size() <= STORED_BYTES_MAX => bag.save(),
            State::Stale | State::List(_) | State::Bag(_) => ValueBuf::new(Value::Null),
        }
    }

    fn load(kind: &Kind, saved: Value<'_>) -> Option<Self> {
        Some(match (kind, saved) {
            (_, Value::Null) => State::Stale,
            (Kind::Sum | Kind::Mean, Value::Document(sum)) => {
                State::Sum(Box::new(ExactSum::load(sum)?))
            }
            (Kind::Ranked(ranks), list) => State::List(List::load(ranks, list)?),
            (Kind::Set, bag) => State::Bag(Bag::load(bag)?),
            (Kind::Sum | Kind::Mean, _) => return None,
        })
    }
}

fn same(a: Option<&ValueBuf>, b: Option<&ValueBuf>) -> bool {
    quire_document::identical_or_absent(a.map(ValueBuf::as_value), b.map(ValueBuf::as_value))
}
