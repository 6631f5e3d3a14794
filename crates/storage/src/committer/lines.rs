//! Lines of writers that wait for a key, first come, first served. A single write that lost a key
//! to another takes a place in the key's line and tries again when it is first, so a commit wakes
//! one writer and not all. A writer that did not wait in the line may still commit first. If the
//! first in the line loses in this way, it reserves the key: then no other single write commits
//! before it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::committer::keys::HashMapOfHashes;
use crate::contract::{KeyHash, LinePlace};
use crate::interrupt::Interrupt;

/// The lines of all keys for which writers wait.
#[derive(Default)]
pub(crate) struct Lines {
    lines: HashMapOfHashes<VecDeque<Waiter>>,
    joined: u64,
}

struct Waiter {
    number: u64,
    interrupt: Arc<Interrupt>,
    has_reserved: bool,
}

impl Lines {
    /// Returns true if no writer waits for any key.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes a place at the end of a key's line.
    pub fn join(&mut self, hash: KeyHash, interrupt: &Arc<Interrupt>) -> LinePlace {
        self.joined += 1;
        let number = self.joined;
        let interrupt = Arc::clone(interrupt);
        let line = self.lines.entry(hash).or_default();
        line.push_back(Waiter { number, interrupt, has_reserved: false });
        LinePlace { hash, number }
    }

    /// Returns true if no other place is before this one.
    pub fn is_first(&self, place: LinePlace) -> bool {
        self.front(place.hash).is_some_and(|first| first.number == place.number)
    }

    /// Returns the waiter to wake when a key may be written again.
    pub fn first(&self, hash: KeyHash) -> Option<Arc<Interrupt>> {
        self.front(hash).map(|first| Arc::clone(&first.interrupt))
    }

    /// Reserves the key for the first of its line, which has lost again. Until it leaves, other
    /// single writes of the key fail to commit.
    pub fn reserve(&mut self, place: LinePlace) {
        let first = self.lines.get_mut(&place.hash).and_then(VecDeque::front_mut);
        if let Some(first) = first.filter(|first| first.number == place.number) {
            first.has_reserved = true;
        }
    }

    /// Returns true if the key is reserved for another writer than the one at `place`.
    pub fn is_reserved_from(&self, hash: KeyHash, place: Option<LinePlace>) -> bool {
        !self.lines.is_empty()
            && self.front(hash).is_some_and(|first| {
                first.has_reserved && place != Some(LinePlace { hash, number: first.number })
            })
    }

    /// Leaves a place. Returns the waiter to wake if another is first now. Does nothing if the
    /// place was left before.
    pub fn leave(&mut self, place: LinePlace) -> Option<Arc<Interrupt>> {
        let line = self.lines.get_mut(&place.hash)?;
        let at = line.binary_search_by_key(&place.number, |waiter| waiter.number).ok()?;
        line.remove(at);
        if line.is_empty() {
            self.lines.remove(&place.hash);
            return None;
        }
        if at == 0 { self.first(place.hash) } else { None }
    }

    fn front(&self, hash: KeyHash) -> Option<&Waiter> {
        self.lines.get(&hash)?.front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served() {
        let mut lines = Lines::default();
        let interrupts = [Interrupt::new(), Interrupt::new(), Interrupt::new()];
        let [a, b, c] = [0, 1, 2].map(|at| lines.join(7, &interrupts[at]));
        let other = lines.join(8, &interrupts[0]);
        assert!(lines.is_first(a) && lines.is_first(other));
        assert!(!lines.is_first(b) && !lines.is_first(c));
        assert!(lines.leave(b).is_none(), "the first one stays the first");
        let woken = lines.leave(a).expect("there is another");
        assert!(Arc::ptr_eq(&woken, &interrupts[2]) && lines.is_first(c));
        assert!(lines.leave(a).is_none(), "a place is left once");
        assert!(lines.leave(c).is_none() && lines.leave(other).is_none());
        assert!(lines.is_empty());
    }

    #[test]
    fn only_the_first_reserves() {
        let mut lines = Lines::default();
        let interrupt = Interrupt::new();
        let [a, b] = [(); 2].map(|()| lines.join(7, &interrupt));
        assert!(!lines.is_reserved_from(7, None), "whoever is faster may pass");
        lines.reserve(b);
        assert!(!lines.is_reserved_from(7, None));
        lines.reserve(a);
        assert!(lines.is_reserved_from(7, None) && lines.is_reserved_from(7, Some(b)));
        assert!(!lines.is_reserved_from(7, Some(a)) && !lines.is_reserved_from(8, None));
        lines.leave(a);
        assert!(!lines.is_reserved_from(7, None));
    }
}
