//! Runs a `$text`: adds up the scores of the terms of each document, best documents first.
//!
//! Each scan meets the documents of one term in the order of their scores. With one term its keys are
//! the results. With several, the scans are read in turns, and a document is a result as soon as no other
//! document can have a better score ("no random access", R. Fagin, A. Lotem and M. Naor, Optimal
//! Aggregation Algorithms for Middleware, 2001). Where a document's score for a term is not known yet, it
//! may be computed from the document itself.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;
use quire_document::{Doc, DocBuf, doc};
use quire_error::Result;
use quire_mql::fulltext::TextMatcher;
use smallvec::SmallVec;

use crate::key::{FoundKey, Searching, Step};

/// The keys of the first read of a scan, and of the later ones.
const KEYS_FIRST: usize = 32;
const KEYS_MAX: usize = 1000;

/// The keys that are read for each document from which a score is computed: a document costs about as
/// much as that.
const KEYS_PER_DOCUMENT: usize = 64;

/// About the bytes of one document in the table of scores.
const ENTRY_BYTES: usize = 96;

/// A running `$text`.
pub(super) struct Running {
    matcher: Arc<TextMatcher>,
    /// The position of the score in a key.
    score_at: usize,
    scans: Vec<Scan>,
    /// True if each scan meets its keys in the order of their scores.
    is_ordered: bool,
    /// The results of a single scan in its order, to be given next.
    ready: VecDeque<(u64, f64)>,
    /// The documents that were met and not given yet.
    found: HashMap<u64, Found, RandomState>,
    /// These documents by the best score that each can have; may also have earlier estimates.
    best: BinaryHeap<Ranked>,
    /// The keys that were read, and the documents from which a score was computed.
    keys: usize,
    documents: usize,
}

/// A scan of one term.
#[derive(Debug, Clone, Copy)]
struct Scan {
    /// The best score that the keys after those read can have.
    left: f64,
    ended: bool,
    read_next: usize,
}

/// A document that was met.
#[derive(Debug, Default)]
struct Found {
    /// The scores that are known, by scan.
    scores: SmallVec<[(usize, f64); 2]>,
    /// True if the others were computed from the document.
    complete: bool,
    /// True if a key was too long to tell its score.
    truncated: bool,
    /// True if it was given, or is gone.
    given: bool,
}

/// A document with an estimate of its score.
#[derive(Debug, PartialEq)]
struct Ranked {
    score: f64,
    record: u64,
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    /// The better score first, and among equal ones the older record.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.record.cmp(&self.record))
    }
}

impl Running {
    pub fn new(matcher: Arc<TextMatcher>, score_at: usize, scans: usize, is_ordered: bool) -> Self {
        let scan = Scan { left: f64::INFINITY, ended: false, read_next: KEYS_FIRST };
        Running {
            matcher,
            score_at,
            scans: vec![scan; scans],
            is_ordered,
            ready: VecDeque::new(),
            found: HashMap::default(),
            best: BinaryHeap::new(),
            keys: 0,
            documents: 0,
        }
    }

    /// Returns true if the keys of the only scan are the results.
    fn is_direct(&self) -> bool {
        self.is_ordered && self.scans.len() == 1
    }

    /// Returns the next read: of the scan whose next keys can have the best score.
    fn read(&mut self) -> Option<Step> {
        let open = self.scans.iter().enumerate().filter(|(_, scan)| !scan.ended);
        let (scan, _) = open.max_by(|a, b| a.1.left.total_cmp(&b.1.left).then(b.0.cmp(&a.0)))?;
        let max = self.scans[scan].read_next;
        self.scans[scan].read_next = (max * 4).min(KEYS_MAX);
        Some(Step::Keys { scan, max })
    }

    /// Returns the best score that a document can have that no scan has met.
    fn unseen(&self) -> f64 {
        self.scans.iter().filter(|scan| !scan.ended).map(|scan| scan.left).sum()
    }

    /// Returns the score of a document, and whether it is known; otherwise it is the best that the
    /// document can have.
    fn estimate(&self, found: &Found) -> (f64, bool) {
        // In the order of the terms, so that the sum does not depend on the order of the reads.
        if found.truncated && !found.complete {
            return (f64::INFINITY, false);
        }
        let (mut known, mut sum) = (true, 0.0);
        for (at, scan) in self.scans.iter().enumerate() {
            match found.scores.iter().find(|(scan, _)| *scan == at) {
                Some((_, score)) => sum += score,
                None if found.complete || scan.ended => {}
                None => {
                    known = false;
                    sum += scan.left;
                }
            }
        }
        (sum, known)
    }

    /// Returns the next step of a search of several terms.
    fn ranked_step(&mut self) -> Step {
        let is_read = self.scans.iter().all(|scan| scan.ended);
        if !self.is_ordered && !is_read {
            return self.read().unwrap_or(Step::End);
        }
        let unseen = self.unseen();
        while let Some(top) = self.best.pop() {
            let Some(found) = self.found.get(&top.record).filter(|found| !found.given) else {
                continue;
            };
            let (score, known) = self.estimate(found);
            if score < top.score {
                self.best.push(Ranked { score, ..top });
                continue;
            }
            if known && (score >= unseen || is_read) {
                if let Some(found) = self.found.get_mut(&top.record) {
                    found.given = true;
                }
                return row(top.record, score);
            }
            let record = top.record;
            self.best.push(top);
            let pays = is_read || self.keys >= KEYS_PER_DOCUMENT * (self.documents + 1);
            if !known && score >= unseen && pays {
                self.documents += 1;
                return Step::Document(record);
            }
            break;
        }
        self.read().unwrap_or(Step::End)
    }
}

fn row(record: u64, score: f64) -> Step {
    Step::Row { record, metadata: metadata(score) }
}

/// Returns the metadata of a document with this score.
pub(super) fn metadata(score: f64) -> DocBuf {
    doc! { "textScore": score }
}

impl Searching for Running {
    fn step(&mut self) -> Result<Step> {
        if !self.is_direct() {
            return Ok(self.ranked_step());
        }
        Ok(match self.ready.pop_front() {
            Some((record, score)) => row(record, score),
            None => self.read().unwrap_or(Step::End),
        })
    }

    fn key(&mut self, scan: usize, key: &FoundKey<'_>) -> Result<()> {
        self.keys += 1;
        let score = key.number(self.score_at)?;
        if let (true, Some(score)) = (self.is_direct(), score) {
            // Keys are never truncated here.
            self.ready.push_back((key.record, score));
            return Ok(());
        }
        if let (Some(known), Some(score)) = (self.scans.get_mut(scan), score) {
            known.left = score;
        }
        let found = self.found.entry(key.record).or_default();
        found.truncated |= score.is_none();
        if let Some(score) = score
            && !found.complete
            && !found.scores.iter().any(|(known, _)| *known == scan)
        {
            found.scores.push((scan, score));
        }
        if found.scores.len() <= 1 && !found.complete {
            self.best.push(Ranked { score: f64::INFINITY, record: key.record });
        }
        Ok(())
    }

    fn ended(&mut self, scan: usize) {
        if let Some(scan) = self.scans.get_mut(scan) {
            (scan.ended, scan.left) = (true, 0.0);
        }
    }

    fn document(&mut self, record: u64, doc: Option<Doc<'_>>) -> Result<()> {
        let score = doc.map(|doc| self.matcher.term_scores(doc)).transpose()?;
        let Some(found) = self.found.get_mut(&record) else { return Ok(()) };
        match score {
            Some(scores) => {
                found.scores = scores.into();
                found.complete = true;
            }
            None => found.given = true,
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        (self.found.len() + self.best.len() + self.ready.len()) * ENTRY_BYTES
    }
}
