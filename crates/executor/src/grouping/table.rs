//! The groups of a `$group` in memory: keys are found by their hash, the states of each accumulator
//! are in one table, and documents are added in batches.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use hashbrown::HashTable;
use quire_document::key::{self, TypeBits};
use quire_document::{Collator, Doc, Value, ValueBuf, equal};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::accumulator::{GroupRun, State, Table};
use quire_mql::column::{Column, OwnedColumn};
use quire_mql::stage::Group;

use crate::columns::{Columns, Grouping, KeyRuns};
use crate::env::Env;

/// The bytes that a group takes besides its key and its states.
const GROUP_BYTES: usize = 64;

/// Keys that are sorted between two checks of the interrupt.
const PART_KEYS: usize = 8192;

/// Groups, numbered in the order of their first documents.
pub(crate) struct GroupTable {
    index: HashTable<u32>,
    /// The first key of each group, with its hash.
    keys: Vec<(u64, ValueBuf)>,
    key_bytes: usize,
    tables: Vec<Box<dyn Table>>,
    /// The group of each document of a batch.
    groups: Vec<u32>,
    /// The runs of a batch.
    runs: Vec<GroupRun>,
    /// True if a batch can be added accumulator by accumulator.
    by_column: bool,
}

/// An encoded key and the number of its group.
type NumberedKey = (Vec<u8>, usize);

/// Encoded keys with the numbers of their groups, in order: a merge of sorted parts.
pub(crate) struct SortedKeys {
    parts: Vec<std::vec::IntoIter<NumberedKey>>,
    /// The least key of each part that has more, with the number of the part.
    heads: BinaryHeap<Reverse<(NumberedKey, usize)>>,
}

impl SortedKeys {
    fn new(mut parts: Vec<std::vec::IntoIter<NumberedKey>>) -> Self {
        let heads = parts.iter_mut().enumerate();
        let heads =
            heads.filter_map(|(number, part)| Some(Reverse((part.next()?, number)))).collect();
        Self { parts, heads }
    }
}

impl Iterator for SortedKeys {
    type Item = NumberedKey;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((key, number)) = self.heads.pop()?;
        if let Some(next) = self.parts.get_mut(number)?.next() {
            self.heads.push(Reverse((next, number)));
        }
        Some(key)
    }
}

impl GroupTable {
    pub fn new(group: &Group, collator: Option<&Arc<dyn Collator>>) -> Self {
        GroupTable {
            index: HashTable::new(),
            keys: Vec::new(),
            key_bytes: 0,
            tables: group.new_tables(collator),
            groups: Vec::new(),
            runs: Vec::new(),
            by_column: group.is_infallible(),
        }
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns an estimate of the bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.key_bytes + self.tables.iter().map(|table| table.bytes()).sum::<usize>()
    }

    /// Returns the key of a group.
    pub fn key(&self, at: usize) -> Option<&ValueBuf> {
        self.keys.get(at).map(|(_, key)| key)
    }

    /// Returns the states of a group, one for each accumulator.
    pub fn states(&self, at: usize) -> impl Iterator<Item = &dyn State> {
        self.tables.iter().filter_map(move |table| table.state(at))
    }

    /// Returns the groups in the order of their encoded keys, by which runs on disk are merged. Sorts
    /// them in parts, between which it checks the interrupt.
    pub fn sorted(&self, collator: Option<&dyn Collator>, env: &Env) -> Result<SortedKeys> {
        let encoded = |value: &ValueBuf| {
            let mut encoded = Vec::with_capacity(16);
            let bits = &mut TypeBits::new();
            key::append_full(value.as_value(), false, collator, &mut encoded, bits);
            encoded
        };
        let mut parts = Vec::with_capacity(self.keys.len().div_ceil(PART_KEYS));
        for (number, part) in self.keys.chunks(PART_KEYS).enumerate() {
            env.check_interrupt()?;
            let keys = part.iter().map(|(_, value)| encoded(value)).zip(number * PART_KEYS..);
            let mut sorted: Vec<NumberedKey> = keys.collect();
            sorted.sort_unstable();
            parts.push(sorted.into_iter());
        }
        Ok(SortedKeys::new(parts))
    }

    /// Removes all groups.
    pub fn clear(&mut self) {
        self.index = HashTable::new();
        self.keys = Vec::new();
        self.key_bytes = 0;
        self.tables.iter_mut().for_each(|table| table.clear());
    }

    /// Adds the document `cx.root` to its group.
    pub fn add(&mut self, grouping: &Grouping, cx: &EvalContext<'_>) -> Result<()> {
        let group = &grouping.group;
        let cx = &group.extract(cx)?;
        let key = group.key().eval(cx)?;
        let at = self.find_or_open(group, grouping.hash(key, cx.collator()), key, cx)?;
        group.add(&mut self.tables, at as usize, cx)
    }

    /// Adds documents to their groups, with the results and the errors of `add` for each of them.
    /// Returns false and adds none of them if one fails or they need too much memory together.
    pub fn add_batch(
        &mut self,
        grouping: &Grouping,
        docs: &[Doc<'_>],
        cx: &EvalContext<'_>,
    ) -> Result<bool> {
        let Ok(batch) = grouping.group.batch(docs, cx) else { return Ok(false) };
        let Ok((keys, arguments)) = grouping.group.columns(&batch, cx) else { return Ok(false) };
        let (keys, runs) = grouping.runs(keys, cx.collator());
        self.take(&grouping.group, (&keys, &runs), &arguments, cx)?;
        Ok(true)
    }

    /// Adds documents by their columns, like [`add_batch`](Self::add_batch).
    pub fn add_columns(
        &mut self,
        grouping: &Grouping,
        columns: &Columns,
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        let arguments: Vec<_> = columns.arguments.iter().map(OwnedColumn::as_column).collect();
        let keys = columns.keys.as_column();
        self.take(&grouping.group, (&keys, &columns.runs), &arguments, cx)
    }

    fn take(
        &mut self,
        group: &Group,
        keys: (&Column<'_>, &KeyRuns),
        arguments: &[Cow<'_, Column<'_>>],
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        match (self.by_column, keys.1.rows.is_empty()) {
            (true, true) => self.take_by_column(group, keys, arguments, cx),
            (true, false) => self.take_by_run(group, keys, arguments, cx),
            (false, _) => self.take_by_row(group, keys, arguments, cx),
        }
    }

    /// Adds the arguments of a batch to the groups, accumulator by accumulator.
    fn take_by_column(
        &mut self,
        group: &Group,
        (keys, runs): (&Column<'_>, &KeyRuns),
        arguments: &[Cow<'_, Column<'_>>],
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        self.groups.clear();
        for (row, hashed) in runs.hashes.iter().enumerate() {
            let key = keys.get(row).unwrap_or(Value::Null);
            let at = self.find_or_open(group, *hashed, key, cx)?;
            self.groups.push(at);
        }
        for (table, argument) in self.tables.iter_mut().zip(arguments) {
            table.add_column(&self.groups, argument)?;
        }
        Ok(())
    }

    /// Like [`take_by_column`](Self::take_by_column), for keys that are the same in many rows after one another.
    fn take_by_run(
        &mut self,
        group: &Group,
        (keys, runs): (&Column<'_>, &KeyRuns),
        arguments: &[Cow<'_, Column<'_>>],
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        self.runs.clear();
        for (run, (hashed, rows)) in runs.hashes.iter().zip(&runs.rows).enumerate() {
            let key = keys.get(run).unwrap_or(Value::Null);
            let at = self.find_or_open(group, *hashed, key, cx)?;
            self.runs.push(GroupRun { group: at, rows: *rows });
        }
        for (table, argument) in self.tables.iter_mut().zip(arguments) {
            table.add_runs(&self.runs, argument)?;
        }
        Ok(())
    }

    /// Adds the arguments of a batch to the groups, row by row.
    fn take_by_row(
        &mut self,
        group: &Group,
        (keys, runs): (&Column<'_>, &KeyRuns),
        arguments: &[Cow<'_, Column<'_>>],
        cx: &EvalContext<'_>,
    ) -> Result<()> {
        let mut row = 0;
        for (run, hashed) in runs.hashes.iter().enumerate() {
            let key = keys.get(run).unwrap_or(Value::Null);
            let at = self.find_or_open(group, *hashed, key, cx)?;
            for _ in 0..runs.rows.get(run).copied().unwrap_or(1) {
                for (table, argument) in self.tables.iter_mut().zip(arguments) {
                    table.add(at as usize, argument.get(row))?;
                }
                row += 1;
            }
        }
        Ok(())
    }

    /// Returns the group with this key; creates it if there is none.
    fn find_or_open(
        &mut self,
        group: &Group,
        hashed: u64,
        key: Value<'_>,
        cx: &EvalContext<'_>,
    ) -> Result<u32> {
        let same = |at: &u32| match self.keys.get(*at as usize) {
            Some((other, known)) => *other == hashed && equal(known.as_value(), key, cx.collator()),
            None => false,
        };
        if let Some(at) = self.index.find(hashed, same) {
            return Ok(*at);
        }
        group.open(&mut self.tables, key, cx)?;
        let at = self.keys.len() as u32;
        let key = ValueBuf::new(key);
        self.key_bytes += GROUP_BYTES + 2 * key.size();
        self.keys.push((hashed, key));
        let keys = &self.keys;
        let hash_at = |at: &u32| keys.get(*at as usize).map_or(0, |(hashed, _)| *hashed);
        self.index.insert_unique(hashed, at, hash_at);
        Ok(at)
    }
}
