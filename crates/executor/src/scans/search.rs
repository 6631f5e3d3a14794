//! The stages of a search (`$text`, `$near`). GATHER runs the search of an index kind
//! (`quire_catalog::key::Searching`): it reads the keys and documents that each step asks for, and
//! returns the results with their metadata. CHECK tests the documents that were found.

use std::collections::VecDeque;
use std::sync::Arc;

use quire_catalog::key::{FoundKey, Searching, Step};
use quire_collections::{RecordId, StoredDoc};
use quire_document::{Doc, DocBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::SearchNode;
use quire_planner::explain::NodeStats;
use quire_storage::Version;

use crate::env::Run;
use crate::operators::{BoxedOperator, Filling, Operator, over};
use crate::row::{Extra, Row};
use crate::scans::index_scan::IndexScanOp;
use crate::table::Table;

/// The most bytes of a search in memory (MongoDB: 100 MB, and beyond them on disk).
const SEARCH_BYTES_MAX: usize = 100 << 20;

/// The most results whose documents are read together.
const RESULTS_MAX: usize = 64;

/// The results of a search, with their documents.
pub(crate) struct Gather {
    search: Arc<SearchNode>,
    table: Table,
    inputs: Vec<BoxedOperator>,
    running: Box<dyn Searching>,
    /// Rows of a scan, reused.
    rows: Vec<Row>,
    /// Results whose documents are not read yet.
    results: VecDeque<(RecordId, DocBuf)>,
    /// The version of the view on which the search began; `None` before.
    began_at: Option<Version>,
    done: bool,
    stats: NodeStats,
}

impl Gather {
    pub fn new(search: &Arc<SearchNode>, inputs: Vec<BoxedOperator>) -> Self {
        Gather {
            table: Table::new(&search.collection),
            inputs,
            running: search.method.begin(),
            search: Arc::clone(search),
            rows: Vec::new(),
            results: VecDeque::new(),
            began_at: None,
            done: false,
            stats: NodeStats::default(),
        }
    }

    /// Runs the search until it has given `wanted` results, or all.
    fn find(&mut self, run: &mut Run<'_>, wanted: usize) -> Result<()> {
        while self.results.len() < wanted && !self.done {
            match self.running.step()? {
                Step::Keys { scan, max } => self.read_keys(run, scan, max)?,
                Step::Open(part) => {
                    let scan = self.search.scan(part);
                    let filter = scan.filter.clone().map(quire_mql::filter::Filter::from_node);
                    let opened = IndexScanOp::new(Box::new(scan), filter, true, false);
                    self.inputs.push(Box::new(opened));
                }
                Step::Document(record) => {
                    let id = RecordId(record);
                    let found = run.view().get(self.table.resolve(run)?, id)?;
                    self.stats.docs_examined += 1;
                    let bytes = found.as_ref().map_or(0, |found| found.as_doc().len());
                    self.stats.bytes_read += bytes as u64;
                    self.running.document(record, found.as_ref().map(StoredDoc::as_doc))?;
                }
                Step::Row { record, metadata } => {
                    self.results.push_back((RecordId(record), metadata));
                }
                Step::End => self.done = true,
            }
        }
        Ok(())
    }

    /// Passes the next keys of a scan to the search.
    fn read_keys(&mut self, run: &mut Run<'_>, scan: usize, max: usize) -> Result<()> {
        let Some(input) = self.inputs.get_mut(scan) else {
            return Err(Error::internal("a search reads a scan that it has not opened"));
        };
        self.rows.clear();
        let more = run.wanting(max, |run| input.next(run, max, &mut self.rows))?;
        for row in self.rows.drain(..) {
            let Some((keys, entry)) = row.extra.as_ref().and_then(|extra| extra.key.as_ref())
            else {
                continue;
            };
            let key = FoundKey {
                record: row.record.0,
                keys,
                values: (!entry.is_shortened()).then_some(&entry.values),
                type_bits: &entry.type_bits,
            };
            self.running.key(scan, &key)?;
        }
        if !more {
            self.running.ended(scan);
        }
        if self.running.bytes() > SEARCH_BYTES_MAX {
            return Err(too_large());
        }
        Ok(())
    }

    /// Appends rows until there are `max` of them. Returns false at the end.
    fn fill(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        self.began_at.get_or_insert(run.view().version());
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            self.find(run, filling.rows_left().min(RESULTS_MAX))?;
            if self.results.is_empty() {
                self.stats.is_eof = true;
                return Ok(false);
            }
            self.push_rows(run, &mut filling)?;
        }
        self.stats.is_eof = self.done && self.results.is_empty();
        Ok(!self.stats.is_eof)
    }

    /// Reads the documents of the results, and appends their rows. After a commit since the search began
    /// a document may have changed, and is tested again.
    fn push_rows(&mut self, run: &mut Run<'_>, filling: &mut Filling<'_>) -> Result<()> {
        let count = self.results.len().min(filling.rows_left());
        let ids: Vec<RecordId> = self.results.iter().take(count).map(|found| found.0).collect();
        let mut docs = Vec::with_capacity(ids.len());
        if ids.is_empty() {
            return Ok(());
        }
        run.view().get_many(self.table.resolve(run)?, &ids, &mut docs)?;
        let is_stale = self.began_at != Some(run.view().version());
        for doc in docs {
            let Some((record, metadata)) = self.results.pop_front() else { break };
            let Some(doc) = doc else { continue };
            self.stats.docs_examined += 1;
            let doc = doc.into_bytes();
            self.stats.bytes_read += doc.len() as u64;
            if is_stale && !self.search.search.matches(Doc::from_valid_bytes(&doc))? {
                continue;
            }
            let extra = Extra { found: Some(metadata), ..Extra::default() };
            self.stats.returned += 1;
            filling.push(Row { record, doc: Some(doc), extra: Some(Box::new(extra)) });
        }
        Ok(())
    }
}

/// Returns the error of a search that holds more memory than it may.
fn too_large() -> Error {
    Error::new(
        ErrorCode::ExceededMemoryLimit,
        format!("A search exceeded the memory limit of {SEARCH_BYTES_MAX} bytes"),
    )
}

impl Operator for Gather {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let env = run.env;
        env.always_interruptible(|| self.fill(run, max, out))
    }

    fn rest(&mut self) {
        self.rows = Vec::new();
        self.inputs.iter_mut().for_each(|input| input.rest());
    }

    fn stats(&self) -> NodeStats {
        let inputs = self.inputs.iter().map(|input| input.stats()).collect();
        NodeStats { inputs, held_bytes: self.running.bytes() as u64, ..self.stats.clone() }
    }
}

/// The documents that pass the test of a search.
pub(crate) struct Check {
    search: Arc<SearchNode>,
    input: BoxedOperator,
    rows: Vec<Row>,
    stats: NodeStats,
}

impl Check {
    pub fn new(search: &Arc<SearchNode>, input: BoxedOperator) -> Self {
        let (search, rows) = (Arc::clone(search), Vec::new());
        Check { search, input, rows, stats: NodeStats::default() }
    }
}

impl Check {
    fn fill(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            self.rows.clear();
            let more = self.input.next(run, filling.rows_left(), &mut self.rows)?;
            for mut row in self.rows.drain(..) {
                run.env.check_interrupt()?;
                if self.search.method.check(row.doc())? {
                    // As in MongoDB, the result of a search has no index key.
                    if let Some(extra) = &mut row.extra {
                        extra.key = None;
                    }
                    self.stats.returned += 1;
                    filling.push(row);
                }
            }
            if !more {
                self.stats.is_eof = true;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Operator for Check {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let env = run.env;
        env.always_interruptible(|| self.fill(run, max, out))
    }

    fn rest(&mut self) {
        self.rows = Vec::new();
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
