//! What the server has counted: since its start, and in the present hour. Both have a bounded
//! number of shapes; the least recently used leave, and it is counted how much left with them.

use super::Recorded;
use super::known::Known;
use super::windows::{self, HOUR_MS, News, hour_of};
use quire_advisor::workload::{Forgotten, Measures, ShapeUse};
use quire_collections::Store;
use quire_error::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of shapes, each of one client, that are kept since the start.
pub const SHAPES_MAX: usize = 1000;
/// The number of shapes of a window of an hour.
pub const WINDOW_SHAPES_MAX: usize = 500;

/// The windows of earlier hours that wait to be stored.
const CLOSING_MAX: usize = 4;

/// The counts of the server.
pub(super) struct Book {
    /// The beginning of the counts, in milliseconds since 1970.
    since_ms: i64,
    totals: HashMap<u64, Entry<Arc<Known>>>,
    forgotten: Forgotten,
    window: Window,
    /// What was not stored yet of the hours before.
    closing: Vec<News>,
}

/// An entry with the turn at which it was used last.
struct Entry<K> {
    of: K,
    measures: Measures,
    turn: u64,
    /// True if it changed since it was stored.
    is_new: bool,
}

/// The counts of one hour.
pub(super) struct Window {
    /// The hours since 1970.
    pub hour: u32,
    entries: HashMap<u64, Entry<ShapeUse>>,
    /// The keys of entries that left and may be stored.
    gone: Vec<u64>,
    pub forgotten: Forgotten,
    turn: u64,
}

impl Book {
    pub fn new(now_ms: i64) -> Book {
        Book {
            since_ms: now_ms,
            totals: HashMap::new(),
            forgotten: Forgotten::default(),
            window: Window::new(hour_of(now_ms)),
            closing: Vec::new(),
        }
    }

    pub fn since_ms(&self) -> i64 {
        self.since_ms
    }

    /// Adds the rows that an earlier process stored for the present hour.
    pub fn continue_window(&mut self, store: &Arc<Store>) -> Result<()> {
        self.window.load(store)
    }

    /// Adds what was counted for a shape.
    pub fn add(&mut self, known: &Arc<Known>, measures: &Measures, now_ms: i64) {
        self.turn_to(now_ms);
        let turn = self.window.turn + 1;
        self.window.turn = turn;
        let entry = self.totals.entry(known.client_key).or_insert_with(|| Entry {
            of: Arc::clone(known),
            measures: Measures::default(),
            turn,
            is_new: true,
        });
        entry.measures.merge(measures);
        entry.turn = turn;
        evict(&mut self.totals, SHAPES_MAX, &mut self.forgotten, |_| {});
        self.window.add(known, measures, turn);
    }

    /// Begins the window of the hour, if it is not the present one.
    pub fn turn_to(&mut self, now_ms: i64) {
        let hour = hour_of(now_ms);
        if hour != self.window.hour {
            let turn = self.window.turn;
            let mut begun = Window::new(hour);
            begun.turn = turn;
            let mut closed = std::mem::replace(&mut self.window, begun);
            let ends_ms = i64::from(closed.hour + 1) * HOUR_MS;
            self.closing.extend(closed.take_news(ends_ms));
            // They pile up only while the disk is full for hours.
            let excess = self.closing.len().saturating_sub(CLOSING_MAX);
            self.closing.drain(..excess);
        }
    }

    pub fn recorded(&self) -> (Vec<Recorded>, Forgotten) {
        let one = |entry: &Entry<Arc<Known>>| Recorded {
            known: Arc::clone(&entry.of),
            measures: entry.measures.clone(),
        };
        (self.totals.values().map(one).collect(), self.forgotten)
    }

    /// Returns what is to be stored, and takes it for stored.
    pub fn take_news(&mut self, now_ms: i64) -> Vec<News> {
        let mut news = std::mem::take(&mut self.closing);
        news.extend(self.window.take_news(now_ms));
        news
    }

    /// Notes that something could not be stored.
    pub fn give_back(&mut self, news: News) {
        if news.hour != self.window.hour {
            self.closing.push(news);
            return;
        }
        for (key, _) in &news.rows {
            if let Some(entry) = self.window.entries.get_mut(key) {
                entry.is_new = true;
            }
        }
        self.window.gone.extend(news.gone);
    }

    /// Forgets what was counted since the start. The windows stay.
    pub fn reset(&mut self, now_ms: i64) {
        self.totals.clear();
        self.forgotten = Forgotten::default();
        self.since_ms = now_ms;
    }
}

impl Window {
    fn new(hour: u32) -> Window {
        Window {
            hour,
            entries: HashMap::new(),
            gone: Vec::new(),
            forgotten: Forgotten::default(),
            turn: 0,
        }
    }

    /// Returns what changed since the last call; `None` if nothing did.
    fn take_news(&mut self, ends_ms: i64) -> Option<News> {
        let mut rows = Vec::new();
        for (key, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.is_new) {
            entry.is_new = false;
            rows.push((*key, ShapeUse { measures: entry.measures.clone(), ..entry.of.clone() }));
        }
        let (hour, forgotten) = (self.hour, self.forgotten);
        let gone = std::mem::take(&mut self.gone);
        let any = !rows.is_empty() || !gone.is_empty();
        any.then_some(News { hour, ends_ms, rows, gone, forgotten })
    }

    fn load(&mut self, store: &Arc<Store>) -> Result<()> {
        let (rows, forgotten) = windows::read_hour(store, self.hour)?;
        self.forgotten = forgotten;
        for (key, of) in rows {
            let measures = of.measures.clone();
            self.entries.insert(key, Entry { of, measures, turn: 0, is_new: false });
        }
        Ok(())
    }

    fn add(&mut self, known: &Known, measures: &Measures, turn: u64) {
        let entry = self.entries.entry(known.key).or_insert_with(|| Entry {
            of: known.shape_use(Measures::default()),
            measures: Measures::default(),
            turn,
            is_new: true,
        });
        entry.measures.merge(measures);
        (entry.turn, entry.is_new) = (turn, true);
        let gone = &mut self.gone;
        evict(&mut self.entries, WINDOW_SHAPES_MAX, &mut self.forgotten, |key| gone.push(key));
    }
}

/// Removes the least recently used eighth of the entries if there are more than `max`, counts what
/// leaves, and tells `gone` their keys.
fn evict<K>(
    entries: &mut HashMap<u64, Entry<K>>,
    max: usize,
    forgotten: &mut Forgotten,
    mut gone: impl FnMut(u64),
) {
    if entries.len() <= max {
        return;
    }
    let mut turns: Vec<u64> = entries.values().map(|entry| entry.turn).collect();
    let place = max / 8;
    let (_, limit, _) = turns.select_nth_unstable(place);
    let limit = *limit;
    entries.retain(|key, entry| {
        let stays = entry.turn > limit;
        if !stays {
            forgotten.shapes += 1;
            forgotten.statements += entry.measures.count;
            gone(*key);
        }
        stays
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_advisor::workload::{Cause, Kind};
    use quire_document::DocBuf;

    fn known(at: u64) -> Arc<Known> {
        let name = format!("f{at}");
        let filter = DocBuf::build(|out| {
            out.append(&name, 1);
        });
        let known = Known::own(Kind::Delete, Cause::Client, "shop.orders", filter.as_doc());
        Arc::new(known)
    }

    fn one() -> Measures {
        Measures { count: 1, first_ms: 5, last_ms: 5, ..Measures::default() }
    }

    #[test]
    fn the_least_recently_used_leave_and_are_counted() {
        let mut book = Book::new(0);
        let first = known(0);
        for at in 1..=SHAPES_MAX as u64 + 50 {
            book.add(&known(at), &one(), 0);
            book.add(&first, &one(), 0);
        }
        let (recorded, forgotten) = book.recorded();
        assert!(recorded.len() <= SHAPES_MAX);
        assert!(book.window.entries.len() <= WINDOW_SHAPES_MAX);
        let kept: u64 = recorded.iter().map(|one| one.measures.count).sum();
        assert_eq!(kept + forgotten.statements, 2 * (SHAPES_MAX as u64 + 50));
        let still = recorded.iter().find(|one| one.known.key == first.key).unwrap();
        assert_eq!(still.measures.count, SHAPES_MAX as u64 + 50);
    }

    #[test]
    fn a_new_hour_begins_a_window_and_keeps_the_totals() {
        let mut book = Book::new(0);
        book.add(&known(1), &one(), 0);
        book.add(&known(1), &one(), HOUR_MS);
        assert_eq!(book.window.hour, 1);
        assert_eq!((book.closing[0].hour, book.closing[0].rows.len()), (0, 1));
        assert_eq!(book.recorded().0[0].measures.count, 2);
        book.reset(HOUR_MS + 1);
        assert!(book.recorded().0.is_empty() && !book.window.entries.is_empty());
        assert_eq!(book.since_ms(), HOUR_MS + 1);
        // What could not be stored is there again.
        let mut news = book.take_news(HOUR_MS + 2);
        assert_eq!(news.iter().map(|news| news.hour).collect::<Vec<_>>(), [0, 1]);
        assert!(book.take_news(HOUR_MS + 2).is_empty());
        news.drain(..).for_each(|news| book.give_back(news));
        assert_eq!(book.take_news(HOUR_MS + 2).len(), 2);
    }

    fn store() -> Arc<Store> {
        let engine = quire_storage::open_memory().unwrap();
        Store::open(engine, quire_collections::StoreOptions::default()).unwrap()
    }

    /// Returns how many statements of a shape the windows of these hours have counted.
    fn counted(store: &Arc<Store>, from_ms: i64, until_ms: i64) -> u64 {
        let workload = windows::read(store, from_ms, until_ms).unwrap();
        workload.shapes.iter().map(|used| used.measures.count).sum()
    }

    fn write(store: &Arc<Store>, book: &mut Book, now_ms: i64) {
        book.take_news(now_ms).iter().for_each(|news| windows::write(store, news).unwrap());
    }

    /// An hour rolls over, a second process continues its window, and a window ends after thirty days.
    #[test]
    fn windows_roll_over_go_on_after_a_restart_and_end() {
        const DAY_MS: i64 = 24 * HOUR_MS;
        // Half past an hour, long after 1970.
        let begun = 20_000 * DAY_MS + HOUR_MS / 2;
        let store = store();
        let mut book = Book::new(begun);
        book.add(&known(1), &one(), begun);
        write(&store, &mut book, begun);
        book.add(&known(1), &one(), begun + 1);
        // What was counted before the hour ended is stored after it.
        let later = begun + HOUR_MS;
        book.add(&known(1), &one(), later);
        write(&store, &mut book, later);
        assert_eq!(counted(&store, begun, begun), 2);
        assert_eq!(counted(&store, later, later), 1);
        assert_eq!(counted(&store, begun, later), 3);
        // The process ends without a word. The next one adds to the stored window of this hour.
        let mut book = Book::new(later);
        book.continue_window(&store).unwrap();
        book.add(&known(1), &one(), later + 1);
        book.add(&known(2), &one(), later + 1);
        write(&store, &mut book, later + 1);
        assert_eq!(counted(&store, later, later), 3);
        assert_eq!(book.recorded().0.iter().map(|one| one.measures.count).sum::<u64>(), 2);
        for (now, (first, second)) in [
            (begun + 30 * DAY_MS, (2, 3)),
            (begun + 30 * DAY_MS + HOUR_MS, (0, 3)),
            (begun + 31 * DAY_MS, (0, 0)),
        ] {
            windows::expire(&store, now).unwrap();
            assert_eq!(counted(&store, begun, begun), first, "{now}");
            assert_eq!(counted(&store, later, later), second, "{now}");
        }
    }
}
