//! The results of a session's retryable writes. The commits of the writes store them, and they are
//! read when a statement is repeated (docs/format.md, "Retryable writes").

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;
use quire_storage::{Page, ScanRequest, Snapshot, Space};

use crate::failure::from_storage;
use crate::layout::damaged;
use crate::meta::meta_doc;

/// The first byte of every key.
pub(crate) const SESSION: u8 = b's';
/// The largest number of old rows that the first commit of a number deletes.
const STALE_ROWS_MAX: u32 = 1000;
/// The length of the header of a session's first row: number and time.
const HEADER_BYTES: usize = 16;
/// How many bytes longer the key of a later row is than that of the first.
const ROW_SUFFIX_BYTES: usize = 12;

/// The key of a session's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionKey(Vec<u8>);

/// The effect of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Inserted a document.
    Insert,
    /// Changed a document.
    Update,
    /// Deleted a document.
    Delete,
    /// Committed a transaction: the statement is the `commitTransaction`.
    Commit,
}

/// The document that is stored with a statement.
#[derive(Debug, Clone, Copy)]
pub enum Keep<'d> {
    /// No document is kept.
    Nothing,
    /// The `_id` of the inserted document.
    Id(Value<'d>),
    /// The document before the change.
    Before(Doc<'d>),
    /// The document after the change.
    After(Doc<'d>),
}

/// Which document is stored with a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// `{_id}` of the inserted document.
    Id,
    /// The document before the change.
    Before,
    /// The document after the change.
    After,
}

/// The stored result of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// The effect of the statement.
    pub effect: Effect,
    /// The document that is stored with it.
    pub image: Option<(Image, DocBuf)>,
}

/// The results of a session's writes under its newest transaction number.
#[derive(Debug)]
pub struct RetryLog {
    key: SessionKey,
    /// The newest number; `None` before the first.
    number: Option<i64>,
    /// The time of the next record, in milliseconds.
    now_ms: i64,
    /// The row of each statement that had an effect.
    executed: HashMap<i32, u32>,
    /// The number of rows written under this number.
    rows: u32,
    /// Rows of earlier numbers, which the next commit deletes.
    stale: Vec<Bytes>,
    /// True if the newest number is that of a committed transaction.
    transaction: bool,
}

/// The row that a commit writes.
#[derive(Debug)]
pub(crate) struct RetryRow {
    pub key: Bytes,
    pub value: Vec<u8>,
    /// The statements in the row.
    pub statements: Vec<i32>,
    /// The keys that the commit deletes.
    pub stale: Vec<Bytes>,
}

impl SessionKey {
    /// Returns the key of a session: its UUID, and its user's digest if it has a user.
    pub fn new(id: &[u8; 16], user: Option<&[u8; 32]>) -> Self {
        let mut key = Vec::with_capacity(50);
        key.push(SESSION);
        key.extend_from_slice(id);
        key.push(u8::from(user.is_some()));
        key.extend_from_slice(user.map_or(&[], |digest| digest.as_slice()));
        SessionKey(key)
    }

    /// Parses the session at the beginning of a stored key. Returns it with its length in bytes.
    pub(crate) fn parse(key: &[u8]) -> Option<([u8; 16], Option<[u8; 32]>, usize)> {
        let id = key.get(1..17)?.try_into().ok()?;
        match key.get(17)? {
            0 => Some((id, None, 18)),
            1 => Some((id, Some(key.get(18..50)?.try_into().ok()?), 50)),
            _ => None,
        }
    }

    fn row(&self, number: i64, row: u32) -> Bytes {
        let mut key = Vec::with_capacity(self.0.len() + ROW_SUFFIX_BYTES);
        key.extend_from_slice(&self.0);
        if row > 0 {
            key.extend_from_slice(&number.to_be_bytes());
            key.extend_from_slice(&row.to_be_bytes());
        }
        key.into()
    }
}

/// Returns the number and the row in a later row's key after the session.
pub(crate) fn parse_suffix(suffix: &[u8]) -> Option<(i64, u32)> {
    let (number, row) = suffix.split_at_checked(8)?;
    Some((i64::from_be_bytes(number.try_into().ok()?), u32::from_be_bytes(row.try_into().ok()?)))
}

/// Returns the number and the time of a session's first row, and the bytes of its statements.
pub(crate) fn parse_header(value: &[u8]) -> Result<(i64, i64, &[u8])> {
    let parsed = value.split_at_checked(HEADER_BYTES).and_then(|(header, rest)| {
        let (number, time) = header.split_at(8);
        let number = i64::from_be_bytes(number.try_into().ok()?);
        Some((number, i64::from_be_bytes(time.try_into().ok()?), rest))
    });
    parsed.ok_or_else(|| damaged("a record of retryable writes"))
}

impl RetryLog {
    /// Reads the stored results of a session.
    pub fn load(snapshot: &dyn Snapshot, key: SessionKey) -> Result<Self> {
        let mut log = RetryLog {
            key,
            number: None,
            now_ms: 0,
            executed: HashMap::new(),
            rows: 0,
            stale: Vec::new(),
            transaction: false,
        };
        let first = snapshot.get(Space::Meta, &log.key.0).map_err(from_storage)?;
        let Some(first) = first else { return Ok(log) };
        let (number, _, statements) = parse_header(&first)?;
        log.number = Some(number);
        log.note(statements, 0)?;
        log.rows = 1;
        let (start, end) = (log.key.row(number, 1), log.key.row(number, u32::MAX));
        let (mut from, mut page) = (start.clone(), Page::default());
        loop {
            let request = ScanRequest::new(Space::Meta, &from, &end);
            snapshot.scan(&request, &mut page).map_err(from_storage)?;
            for (key, value) in &page.rows {
                let suffix = key.get(log.key.0.len()..).and_then(parse_suffix);
                let (_, row) = suffix.ok_or_else(|| damaged("a key of retryable writes"))?;
                log.note(value, row)?;
                log.rows = log.rows.max(row + 1);
            }
            match page.resume.take() {
                Some(resume) => from = resume,
                None => return Ok(log),
            }
        }
    }

    fn note(&mut self, statements: &[u8], row: u32) -> Result<()> {
        for_each_statement(statements, |statement, (effect, _)| {
            self.transaction |= effect == Effect::Commit;
            self.executed.insert(statement, row);
        })
    }

    /// Returns the newest number; `None` before the first.
    pub fn number(&self) -> Option<i64> {
        self.number
    }

    /// Begins a number that is not older than the newest, or continues the newest.
    pub fn begin(&mut self, number: i64, now_ms: i64) {
        self.now_ms = now_ms;
        if self.number == Some(number) {
            return;
        }
        if let Some(before) = self.number {
            let rows = (1..self.rows).take(STALE_ROWS_MAX as usize);
            self.stale = rows.map(|row| self.key.row(before, row)).collect();
        }
        self.number = Some(number);
        self.transaction = false;
        self.executed = HashMap::new();
        self.rows = 0;
    }

    /// Returns true if the newest number is that of a committed transaction.
    pub fn is_transaction(&self) -> bool {
        self.transaction
    }

    /// Notes that the commit of a transaction, with its record, was successful.
    pub fn committed_transaction(&mut self, statements: &[i32]) {
        self.transaction |= !statements.is_empty();
        self.committed(statements);
    }

    /// Returns true if the statement had an effect before.
    pub fn is_executed(&self, statement: i32) -> bool {
        self.executed.contains_key(&statement)
    }

    /// Returns the stored result of the statement, if it had an effect.
    pub fn find(&self, snapshot: &dyn Snapshot, statement: i32) -> Result<Option<Remembered>> {
        let (Some(row), Some(number)) = (self.executed.get(&statement), self.number) else {
            return Ok(None);
        };
        let key = self.key.row(number, *row);
        let value = snapshot.get(Space::Meta, &key).map_err(from_storage)?;
        let value = value.ok_or_else(|| damaged("a record of retryable writes is missing"))?;
        let statements = if *row == 0 { parse_header(&value)?.2 } else { &value };
        let mut found = None;
        for_each_statement(statements, |other, remembered| {
            if other == statement {
                found = Some(Remembered {
                    effect: remembered.0,
                    image: remembered.1.map(|(image, doc)| (image, doc.to_owned())),
                });
            }
        })?;
        Ok(found)
    }

    /// Returns the number of statements in memory.
    pub fn len(&self) -> usize {
        self.executed.len()
    }

    /// Returns true if no statement is in memory.
    pub fn is_empty(&self) -> bool {
        self.executed.is_empty()
    }

    /// Returns an empty row for the next commit.
    pub(crate) fn next_row(&self) -> Option<RetryRow> {
        let number = self.number?;
        let mut value = Vec::with_capacity(HEADER_BYTES + 32);
        if self.rows == 0 {
            value.extend_from_slice(&number.to_be_bytes());
            value.extend_from_slice(&self.now_ms.to_be_bytes());
        }
        let key = self.key.row(number, self.rows);
        Some(RetryRow { key, value, statements: Vec::new(), stale: self.stale.clone() })
    }

    /// Notes that the row with these statements was committed.
    pub fn committed(&mut self, statements: &[i32]) {
        if statements.is_empty() {
            return;
        }
        self.executed.extend(statements.iter().map(|statement| (*statement, self.rows)));
        self.rows += 1;
        self.stale = Vec::new();
    }
}

impl RetryRow {
    /// Returns the state to which [`roll_back`](Self::roll_back) returns.
    pub fn mark(&self) -> (usize, usize) {
        (self.value.len(), self.statements.len())
    }

    /// Forgets the results that were added after a mark.
    pub fn roll_back(&mut self, (bytes, statements): (usize, usize)) {
        self.value.truncate(bytes);
        self.statements.truncate(statements);
    }

    /// Adds the result of a statement.
    pub fn add(&mut self, statement: i32, effect: Effect, keep: Keep<'_>) {
        self.statements.push(statement);
        self.value.extend_from_slice(&statement.to_be_bytes());
        let effect = match effect {
            Effect::Insert => 1,
            Effect::Update => 2,
            Effect::Delete => 3,
            Effect::Commit => 4,
        };
        let (image, doc) = match keep {
            Keep::Nothing => (0, None),
            Keep::Id(id) => {
                self.value.push(effect | 0x10);
                DocWriter::new(&mut self.value).append("_id", id);
                return;
            }
            Keep::Before(doc) => (0x20, Some(doc)),
            Keep::After(doc) => (0x30, Some(doc)),
        };
        self.value.push(effect | image);
        self.value.extend_from_slice(doc.map_or(&[], |doc| doc.as_bytes()));
    }
}

/// Calls `each` for every statement of a row.
fn for_each_statement(
    mut bytes: &[u8],
    mut each: impl FnMut(i32, (Effect, Option<(Image, Doc<'_>)>)),
) -> Result<()> {
    let broken = || damaged("a record of retryable writes");
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(5).ok_or_else(broken)?;
        let [a, b, c, d, what] = *head else { return Err(broken()) };
        let effect = match what & 0x0f {
            1 => Effect::Insert,
            2 => Effect::Update,
            3 => Effect::Delete,
            4 => Effect::Commit,
            _ => return Err(broken()),
        };
        let image = match what >> 4 {
            0 => None,
            1 => Some(Image::Id),
            2 => Some(Image::Before),
            3 => Some(Image::After),
            _ => return Err(broken()),
        };
        bytes = rest;
        let kept = match image {
            None => None,
            Some(image) => {
                let length = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
                let parts = length.and_then(|length| rest.split_at_checked(length));
                let (doc, rest) = parts.ok_or_else(broken)?;
                bytes = rest;
                Some((image, meta_doc(doc)?))
            }
        };
        each(i32::from_be_bytes([a, b, c, d]), (effect, kept));
    }
    Ok(())
}

/// Reads the log of a session from the newest snapshot of a store.
pub fn load_retry_log(store: &Arc<crate::Store>, key: SessionKey) -> Result<RetryLog> {
    let snapshot = store.engine().snapshot().map_err(from_storage)?;
    RetryLog::load(&*snapshot, key)
}
