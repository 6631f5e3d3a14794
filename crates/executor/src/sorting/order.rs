//! The order of the keys of many rows. Eight bytes of each key are sorted as numbers, in which rows
//! move as sixteen bytes and no key is looked at. Rows in which these bytes are the same are sorted by
//! the eight bytes behind what their keys have in common, and so on. Many rows are first dealt out by
//! samples of their numbers (samplesort: Frazer and McKellar, "Samplesort", 1970), so that each part
//! fits into a cache, threads share the parts, and an interrupt is noticed between two of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use quire_collections::{Helpers, order_digits};
use quire_error::Result;

use super::batch::{KeyedBatch, shared_bytes};
use crate::env::Env;

/// Rows that are sorted as one part.
const PART_ROWS: usize = 8192;
/// Samples taken for each part.
const SAMPLES_EACH: usize = 16;
/// The most parts.
const PARTS_MAX: usize = 256;
/// Rows from which on several threads sort.
const LONG_ROWS: usize = 32 * 1024;

/// A row in the order: eight bytes of its key as a number, the number of its batch, and its number in
/// the batch. So rows with the same bytes stay in the order in which they came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ordered(u128);

impl Ordered {
    fn new(digits: u64, batch: usize, row: usize) -> Self {
        Ordered(u128::from(digits) << 64 | (batch as u128) << 32 | row as u128)
    }

    fn digits(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The row's batch, and its place there.
    pub fn place(self) -> (usize, usize) {
        ((self.0 as u64 >> 32) as usize, self.0 as u32 as usize)
    }
}

/// Batches whose rows are sorted.
struct Keys<'k> {
    batches: &'k [KeyedBatch],
    env: &'k Env,
}

/// Returns all rows of the batches in the order of their keys.
///
/// # Errors
/// What the interrupt says.
pub(super) fn in_order(batches: &[KeyedBatch], env: &Env) -> Result<Vec<Ordered>> {
    let keys = Keys { batches, env };
    let shared = keys.shared_by_all();
    let mut rows = Vec::with_capacity(batches.iter().map(KeyedBatch::len).sum());
    for (number, batch) in batches.iter().enumerate() {
        env.check_interrupt()?;
        let digits = |row| Ordered::new(order_digits(batch.key(row), shared), number, row);
        rows.extend((0..batch.len()).map(digits));
    }
    if rows.len() <= PART_ROWS {
        keys.sort(&mut rows, shared)?;
        return Ok(rows);
    }
    // Rows with the same number stay in one part, which sorts them by the rest of their keys.
    let (mut dealt, ends) = deal(&rows, |row| row.digits());
    drop(rows);
    let parts = split_at_ends(&mut dealt, &ends);
    keys.sort_parts(parts, shared)?;
    Ok(dealt)
}

impl Keys<'_> {
    fn key(&self, row: Ordered) -> &[u8] {
        let (batch, row) = row.place();
        self.batches.get(batch).map_or(&[], |batch| batch.key(row))
    }

    /// The number of bytes with which all keys begin.
    fn shared_by_all(&self) -> usize {
        let mut batches = self.batches.iter().filter(|batch| !batch.is_empty());
        let Some(first) = batches.next() else { return 0 };
        batches.fold(first.shared_bytes(), |shared, batch| {
            shared.min(batch.shared_bytes()).min(shared_bytes(first.key(0), batch.key(0)))
        })
    }

    /// Sorts parts, on several threads if they have many rows.
    fn sort_parts(&self, parts: Vec<&mut [Ordered]>, at: usize) -> Result<()> {
        let rows: usize = parts.iter().map(|part| part.len()).sum();
        let threads = if rows < LONG_ROWS { 1 } else { self.env.params.threads_max };
        let helpers = Helpers::acquire(threads.saturating_sub(1));
        let (parts, taken) = (parts.into_iter().map(Mutex::new), AtomicUsize::new(0));
        let parts: Vec<Mutex<&mut [Ordered]>> = parts.collect();
        let work = || {
            while let Some(part) = parts.get(taken.fetch_add(1, Ordering::Relaxed)) {
                self.env.check_interrupt()?;
                self.sort(&mut part.lock(), at)?;
            }
            Ok(())
        };
        let failed = Mutex::new(Ok(()));
        let help = || work().unwrap_or_else(|error| *failed.lock() = Err(error));
        helpers.run("sort", help, work)?;
        failed.into_inner()
    }

    /// Sorts rows by their numbers, which are the eight bytes of their keys from `at` on, and then by
    /// the bytes behind.
    fn sort(&self, rows: &mut [Ordered], at: usize) -> Result<()> {
        let mut todo = vec![(rows, at)];
        while let Some((rows, at)) = todo.pop() {
            self.sort_numbers(rows)?;
            for same in rows.chunk_by_mut(|a, b| a.digits() == b.digits()) {
                if same.len() > 1
                    && let Some(at) = self.renumber(same, at + size_of::<u64>())?
                {
                    todo.push((same, at));
                }
            }
        }
        Ok(())
    }

    /// Sorts rows by their numbers alone.
    fn sort_numbers(&self, rows: &mut [Ordered]) -> Result<()> {
        if rows.len() <= 2 * PART_ROWS {
            rows.sort_unstable();
            return Ok(());
        }
        let (mut dealt, ends) = deal(rows, |row| row.0);
        for part in split_at_ends(&mut dealt, &ends) {
            self.env.check_interrupt()?;
            part.sort_unstable();
        }
        rows.copy_from_slice(&dealt);
        Ok(())
    }

    /// Numbers rows by the first eight bytes in which their keys differ, and returns where these
    /// begin. `None` if the keys are equal. The first `known` bytes of all keys are the same.
    fn renumber(&self, rows: &mut [Ordered], known: usize) -> Result<Option<usize>> {
        let Some(first) = rows.first().and_then(|row| self.key(*row).get(known..)) else {
            return Ok(None);
        };
        let mut shared = first.len();
        for part in rows.chunks(PART_ROWS) {
            self.env.check_interrupt()?;
            for row in part {
                let other = self.key(*row).get(known..).unwrap_or_default();
                shared = shared_bytes(first, other).min(shared);
            }
        }
        if shared == first.len() {
            return Ok(None);
        }
        let at = known + shared;
        for part in rows.chunks_mut(PART_ROWS) {
            self.env.check_interrupt()?;
            for row in part {
                let (batch, place) = row.place();
                *row = Ordered::new(order_digits(self.key(*row), at), batch, place);
            }
        }
        Ok(Some(at))
    }
}

/// Deals rows out into parts of about the same size, each of which stands before the next one in the
/// order of `number`. Rows of one number are in one part. Returns the parts one after the other, and where each
/// of them ends.
fn deal<N: Ord>(rows: &[Ordered], number: impl Fn(&Ordered) -> N) -> (Vec<Ordered>, Vec<usize>) {
    let parts = (rows.len() / PART_ROWS).clamp(2, PARTS_MAX);
    let step = (rows.len() / (parts * SAMPLES_EACH)).max(1);
    let mut samples: Vec<Ordered> = rows.iter().step_by(step).copied().collect();
    samples.sort_unstable();
    let each = (samples.len() / parts).max(1);
    let splitters = samples.iter().skip(each).step_by(each).take(parts - 1);
    let splitters: Vec<N> = splitters.map(&number).collect();
    let part_of = |number: N| splitters.partition_point(|splitter| *splitter <= number);
    let places: Vec<u8> = rows.iter().map(|row| part_of(number(row)) as u8).collect();
    let mut ends = vec![0; splitters.len() + 1];
    for place in &places {
        ends[usize::from(*place)] += 1;
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    // While rows are dealt out, an end is the place of its part's next row.
    let mut dealt = vec![Ordered(0); rows.len()];
    for (row, place) in rows.iter().zip(&places) {
        let end = &mut ends[usize::from(*place)];
        dealt[*end] = *row;
        *end += 1;
    }
    (dealt, ends)
}

/// The parts between the ends.
fn split_at_ends<'r>(mut rows: &'r mut [Ordered], ends: &[usize]) -> Vec<&'r mut [Ordered]> {
    let (mut parts, mut start) = (Vec::with_capacity(ends.len()), 0);
    for end in ends {
        let (part, rest) = rows.split_at_mut(end - start);
        parts.push(part);
        (rows, start) = (rest, *end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ExecParams;
    use quire_collections::RecordId;
    use quire_document::testing::Generator;
    use quire_document::{Doc, key};
    use quire_error::ErrorCode;
    use quire_storage::Interrupt;

    fn env(threads: usize) -> Env {
        let params = ExecParams { threads_max: threads, ..ExecParams::new(Interrupt::new(), 0) };
        Env::new(params, None, Doc::empty(), true).unwrap()
    }

    /// The numbers of all rows, sorted by their keys; equal ones in their order.
    fn sorted(keys: &[Vec<u8>], batch_rows: usize, threads: usize) -> Vec<usize> {
        let batch = |(number, keys): (usize, &[Vec<u8>])| {
            let mut batch = KeyedBatch::default();
            for (row, key) in keys.iter().enumerate() {
                batch.push(key, RecordId((number * batch_rows + row) as u64), &[], None);
            }
            batch.end();
            batch
        };
        let batches: Vec<KeyedBatch> = keys.chunks(batch_rows).enumerate().map(batch).collect();
        let order = in_order(&batches, &env(threads)).unwrap();
        let record = |row: &Ordered| {
            let (batch, row) = row.place();
            batches[batch].record(row).0 as usize
        };
        order.iter().map(record).collect()
    }

    fn check(keys: &[Vec<u8>], name: &str) {
        let mut expected: Vec<usize> = (0..keys.len()).collect();
        expected.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
        for (batch_rows, threads) in [(7, 1), (500, 1), (2000, 3)] {
            assert!(
                sorted(keys, batch_rows, threads) == expected,
                "{name}, {batch_rows}, {threads}"
            );
        }
    }

    /// Keys that differ early, late, by length, or not at all; few rows, parts, and parts that several
    /// threads share.
    #[test]
    fn rows_are_in_the_order_of_their_keys() {
        let mut random = Generator::new(5);
        for rows in [0, 1, 5, 300, PART_ROWS + 1, LONG_ROWS + 5000] {
            let mut keys = |make: &mut dyn FnMut(&mut Generator) -> Vec<u8>| -> Vec<Vec<u8>> {
                (0..rows).map(|_| make(&mut random)).collect()
            };
            check(&keys(&mut |random| key::encode(random.below(1 << 40) as i64)), "numbers");
            check(&keys(&mut |random| key::encode(random.below(3) as i64)), "three numbers");
            check(&keys(&mut |_| key::encode("the same")), "one text");
            let text = |random: &mut Generator| {
                let shared = ["", "a shared beginning ", "a shared beginning, longer than that "];
                let first = *random.pick(&shared).unwrap();
                let middle = "m".repeat(random.below(20) as usize);
                key::encode(format!("{first}{middle}{}", random.below(500)).as_str())
            };
            check(&keys(&mut |random| text(random)), "texts");
            check(&keys(&mut |random| [key::encode(1), text(random)].concat()), "compound");
        }
    }

    /// The deepest way down: each row shares more with the last one than the row before.
    #[test]
    fn keys_that_part_one_by_one_are_sorted() {
        let text = |row: usize| format!("{}b", "aaaaaaaa".repeat(row));
        let keys: Vec<Vec<u8>> =
            (0..600).map(|row| key::encode(text(row * 7 % 600).as_str())).collect();
        check(&keys, "prefixes");
    }

    #[test]
    fn a_killed_operation_sorts_no_further() {
        let interrupt = Interrupt::new();
        let params = ExecParams { threads_max: 3, ..ExecParams::new(interrupt.clone(), 0) };
        let env = Env::new(params, None, Doc::empty(), true).unwrap();
        let mut batch = KeyedBatch::default();
        for row in 0..LONG_ROWS as u64 + 1 {
            batch.push(&key::encode((row * 7919 % 100_003) as i64), RecordId(row), &[], None);
        }
        batch.end();
        interrupt.kill(quire_storage::Interruption::Killed);
        let code = in_order(&[batch], &env).map(|order| order.len()).map_err(|error| error.code());
        assert_eq!(code, Err(ErrorCode::Interrupted));
    }
}
