//! The statistics of the stages of a plan.

/// The statistics of one stage. The inputs are in the order of
/// [`Node::inputs`](crate::Node::inputs).
#[derive(Debug, Clone, Default)]
pub struct NodeStats {
    /// Rows that were returned.
    pub returned: u64,
    /// True if it has no more rows.
    pub is_eof: bool,
    /// Index keys that were examined.
    pub keys_examined: u64,
    /// Documents that were examined.
    pub docs_examined: u64,
    /// Bytes of the documents that were examined.
    pub bytes_read: u64,
    /// Buckets of a time-series collection that were unpacked.
    pub buckets_read: u64,
    /// Buckets that were not unpacked, because none of their points can match or because they were only counted.
    pub buckets_skipped: u64,
    /// How many times an index was positioned.
    pub seeks: u64,
    /// Record ids that were looked up among those already returned.
    pub dups_tested: u64,
    /// Record ids that had been returned already.
    pub dups_dropped: u64,
    /// Bytes that were sorted.
    pub bytes_sorted: u64,
    /// How many times a sort wrote its rows to disk.
    pub spills: u64,
    /// Rows that a count or a skip dropped.
    pub skipped: u64,
    /// Rows that were counted and not returned.
    pub counted: u64,
    /// True if a write found nothing and would insert a document.
    pub upserted: bool,
    /// The error with which it failed: code and message.
    pub failure: Option<(i32, String)>,
    /// The time spent in it and in its inputs, in milliseconds.
    pub millis: u64,
    /// The statistics of a join about its other collection.
    pub joined: Option<Box<JoinStats>>,
    /// The largest memory of a stage that reports it.
    pub memory: Option<Box<MemoryUse>>,
    /// An estimate of the bytes of documents and groups that it holds in memory between two
    /// batches.
    pub held_bytes: u64,
    /// The statistics of its inputs.
    pub inputs: Vec<NodeStats>,
}

/// How a join finds foreign documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JoinStrategy {
    /// By a scan of the foreign documents for each batch of the input.
    #[default]
    NestedLoop,
    /// By a hash table of the foreign documents in memory.
    Hash,
    /// By an index.
    Index,
    /// Not at all: the foreign collection does not exist.
    Missing,
}

impl JoinStrategy {
    /// Returns MongoDB's name of the strategy.
    pub fn name(self) -> &'static str {
        match self {
            JoinStrategy::NestedLoop => "NestedLoopJoin",
            JoinStrategy::Hash => "HashJoin",
            JoinStrategy::Index => "IndexedLoopJoin",
            JoinStrategy::Missing => "NonExistentForeignCollection",
        }
    }
}

/// The statistics of a join about its other collection.
#[derive(Debug, Clone, Default)]
pub struct JoinStats {
    /// The strategy that was used.
    pub strategy: JoinStrategy,
    /// True if documents were found by the keys of the join.
    pub by_keys: bool,
    /// True if all documents were read, with or without looking up keys before.
    pub read_all: bool,
    /// Documents that were examined.
    pub docs_examined: u64,
    /// Index keys that were examined.
    pub keys_examined: u64,
    /// How many times a whole collection was read.
    pub collection_scans: u64,
    /// The names of the indexes that were read.
    pub indexes_used: Vec<String>,
}

/// The largest memory of a stage with several functions.
#[derive(Debug, Clone, Default)]
pub struct MemoryUse {
    /// The largest number of bytes of each function, by its output field.
    pub functions: Vec<(Box<str>, u64)>,
    /// The largest number of bytes of the stage.
    pub total: u64,
}

impl MemoryUse {
    /// Notes the bytes that each function holds now.
    pub fn note(&mut self, bytes: impl Iterator<Item = usize>) {
        for ((_, most), bytes) in self.functions.iter_mut().zip(bytes) {
            *most = (*most).max(bytes as u64);
        }
    }
}

impl NodeStats {
    /// Returns the index keys read by it and its inputs.
    pub fn total_keys(&self) -> u64 {
        self.keys_examined + self.inputs.iter().map(NodeStats::total_keys).sum::<u64>()
    }

    /// Returns the documents read by it and its inputs.
    pub fn total_docs(&self) -> u64 {
        self.docs_examined + self.inputs.iter().map(NodeStats::total_docs).sum::<u64>()
    }

    /// Returns the bytes of the documents read by it and its inputs.
    pub fn total_bytes(&self) -> u64 {
        self.bytes_read + self.inputs.iter().map(NodeStats::total_bytes).sum::<u64>()
    }

    /// Returns the statistics of a node above this one that passes its rows on unchanged.
    pub(crate) fn passed_on(&self) -> NodeStats {
        let inputs = vec![self.clone()];
        NodeStats { returned: self.returned, is_eof: self.is_eof, inputs, ..NodeStats::default() }
    }

    /// Returns an estimate of the number of steps, as MongoDB's `works`.
    pub(crate) fn works(&self) -> u64 {
        self.returned.max(self.keys_examined).max(self.docs_examined) + u64::from(self.is_eof)
    }
}
