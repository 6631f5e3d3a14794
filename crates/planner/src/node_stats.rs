//! What the stages of a plan did when they ran.

/// What one stage did, and its inputs in the order of [`Node::inputs`](crate::Node::inputs).
#[derive(Debug, Clone, Default)]
pub struct NodeStats {
    /// Rows it gave.
    pub returned: u64,
    /// It has nothing more to give.
    pub is_eof: bool,
    /// Index keys looked at.
    pub keys_examined: u64,
    /// Documents looked at.
    pub docs_examined: u64,
    /// Times an index was positioned.
    pub seeks: u64,
    /// Record ids that were looked up among those already given.
    pub dups_tested: u64,
    /// Record ids that had been given already.
    pub dups_dropped: u64,
    /// Bytes that went through a sort.
    pub bytes_sorted: u64,
    /// Times a sort wrote what it held to disk.
    pub spills: u64,
    /// Rows that a count or a skip left out.
    pub skipped: u64,
    /// Rows that were counted and not returned.
    pub counted: u64,
    /// A write found nothing and would insert a document.
    pub upserted: bool,
    /// What it failed with: code and message.
    pub failure: Option<(i32, String)>,
    /// Time spent in it and below, in milliseconds.
    pub millis: u64,
    /// What a join found in its other collection.
    pub joined: Option<Box<JoinStats>>,
    /// What it held in memory at most, for stages that tell.
    pub memory: Option<Box<MemoryUse>>,
    /// Bytes of documents and of groups that it holds in memory between two batches, roughly.
    pub held_bytes: u64,
    /// Of what it reads from.
    pub inputs: Vec<NodeStats>,
}

/// How a join finds foreign documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JoinStrategy {
    /// It reads through them for documents of the input.
    #[default]
    NestedLoop,
    /// It has them in memory, found by the hash of a key.
    Hash,
    /// By an index.
    Index,
}

impl JoinStrategy {
    /// Returns MongoDB's name of it.
    pub fn name(self) -> &'static str {
        match self {
            JoinStrategy::NestedLoop => "NestedLoopJoin",
            JoinStrategy::Hash => "HashJoin",
            JoinStrategy::Index => "IndexedLoopJoin",
        }
    }
}

/// What a join did with its other collection.
#[derive(Debug, Clone, Default)]
pub struct JoinStats {
    /// How it found documents.
    pub strategy: JoinStrategy,
    /// Documents looked at.
    pub docs_examined: u64,
    /// Index keys looked at.
    pub keys_examined: u64,
    /// Times that a whole collection was read.
    pub collection_scans: u64,
    /// The names of the indexes that were read.
    pub indexes_used: Vec<String>,
}

/// What a stage with several functions held in memory at most.
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
    /// Index keys looked at, here and below.
    pub fn total_keys(&self) -> u64 {
        self.keys_examined + self.inputs.iter().map(NodeStats::total_keys).sum::<u64>()
    }

    /// Documents looked at, here and below.
    pub fn total_docs(&self) -> u64 {
        self.docs_examined + self.inputs.iter().map(NodeStats::total_docs).sum::<u64>()
    }

    /// Returns the statistics of a node above this one that passes its rows on as they are.
    pub(crate) fn passed_on(&self) -> NodeStats {
        let inputs = vec![self.clone()];
        NodeStats { returned: self.returned, is_eof: self.is_eof, inputs, ..NodeStats::default() }
    }

    /// Rough number of steps it took, as MongoDB's `works`.
    pub(crate) fn works(&self) -> u64 {
        self.returned.max(self.keys_examined).max(self.docs_examined) + u64::from(self.is_eof)
    }
}
