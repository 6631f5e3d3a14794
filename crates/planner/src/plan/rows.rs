//! How the rows of a node are read: what the nodes above need of them besides their documents, who owns
//! their bytes, and which nodes run together with a scan. The builder of operators asks here.

use super::{Node, Reshape};
use quire_mql::stage::{Sort, Stage, StageBody};

/// What the nodes above need of a node's rows besides their documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowNeeds {
    /// True if index keys are read: by a covered projection, a sort of keys, `returnKey`.
    pub keys: bool,
    /// True if `$meta: "sortKey"` is read.
    pub sort_keys: bool,
    /// True if a stage reads any `$meta`.
    pub metadata: bool,
}

/// The metadata that a stage reads: noted when the stage is planned, because a plan inside of a join is
/// built for each document.
#[derive(Clone, Copy, Debug)]
pub struct MetadataRead {
    keys: bool,
    sort_keys: bool,
    any: bool,
}

impl MetadataRead {
    pub(crate) fn of(stage: &Stage) -> Self {
        let kinds = stage.needs().reads.metadata;
        MetadataRead {
            keys: kinds.contains("indexKey"),
            sort_keys: kinds.contains("sortKey"),
            any: !kinds.is_empty(),
        }
    }
}

impl RowNeeds {
    /// Returns the needs of a stage's input. `self` are the needs of the stage's output.
    fn below_stage(self, stage: &Stage, reads: MetadataRead) -> RowNeeds {
        // These stages pass no metadata on.
        let ends = matches!(stage, Stage::Group(_) | Stage::HideMetadata(_));
        let above = if ends { RowNeeds::default() } else { self };
        RowNeeds {
            keys: above.keys || reads.keys,
            sort_keys: above.sort_keys || reads.sort_keys,
            metadata: above.metadata || reads.any,
        }
    }

    /// Returns the needs of the node below [`Node::chain`]. `self` are those of the chain's output.
    #[must_use]
    pub fn below_chain(self, node: &Node) -> RowNeeds {
        let (mut node, mut needs) = (node, self);
        while let Node::Stage { stage, input, .. } = node
            && stage.streams()
        {
            needs = needs.below(node);
            node = input;
        }
        needs
    }

    /// Returns the needs of the inputs of a node. `self` are the needs of its output.
    #[must_use]
    pub fn below(self, node: &Node) -> RowNeeds {
        match node {
            Node::Stage { stage, reads, .. } => self.below_stage(stage, *reads),
            Node::Gather { .. } | Node::SortMerge { .. } => RowNeeds { keys: true, ..self },
            Node::Sort { presorted: true, .. } => RowNeeds { metadata: true, ..self },
            Node::Sort { simple, .. } => RowNeeds { keys: self.keys || !simple, ..self },
            Node::ReturnKey { sort_keys, .. } => {
                RowNeeds { keys: true, sort_keys: self.sort_keys || !sort_keys.is_empty(), ..self }
            }
            Node::Projection { spec, input, .. } => self.below_projection(spec, input),
            _ => self,
        }
    }

    fn below_projection(self, spec: &Reshape, input: &Node) -> RowNeeds {
        let by_keys = self.keys || !input.gives_documents();
        let Some(projection) = &spec.projection else { return RowNeeds { keys: by_keys, ..self } };
        let metadata = projection.metadata();
        RowNeeds {
            keys: by_keys || metadata.contains("indexKey"),
            sort_keys: self.sort_keys || metadata.contains("sortKey"),
            metadata: self.metadata,
        }
    }
}

/// What the first stages of a branch of a `$facet` keep of the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The groups of a `$group`.
    Groups,
    /// The first documents in an order: a `$sort` with a limit.
    Best,
    /// The first documents, at most this number.
    First(u64),
}

/// The first stages of a branch of a `$facet` that keep less than all documents: they can take the
/// documents while the input is read.
pub struct BranchHead<'n> {
    /// The stages that process each document separately.
    pub before: Vec<&'n Stage>,
    /// The stage behind them, which decides what is kept.
    pub stage: &'n Stage,
    /// What is kept.
    pub kept: Kept,
}

impl Node {
    /// Returns the head of a branch of a `$facet`. `None` if the branch keeps all documents or reads
    /// metadata.
    pub fn branch_head(&self) -> Option<BranchHead<'_>> {
        let mut stages = self.stages().into_iter().map(|(stage, _)| stage).peekable();
        let mut before = Vec::new();
        while let Some(stage) = stages.next_if(|stage| stage.streams()) {
            before.push(stage);
        }
        let (stage, next) = (stages.next()?, stages.next());
        let mut read = before.iter().copied().chain([stage]);
        if read.any(|stage| !stage.needs().reads.metadata.is_empty()) {
            return None;
        }
        let kept = match (stage, next) {
            (Stage::Group(_), _) => Kept::Groups,
            (Stage::Sort(Sort { limit: 1.., .. }), _) => Kept::Best,
            (Stage::Limit(limit), _) => Kept::First(limit.0),
            (Stage::Skip(skip), Some(Stage::Limit(limit))) => {
                Kept::First(skip.0.saturating_add(limit.0))
            }
            _ => return None,
        };
        Some(BranchHead { before, stage, kept })
    }

    /// Returns true if its rows own their bytes, because a projection made them or a sort keeps them.
    pub fn owns_rows(&self) -> bool {
        match self {
            Node::Projection { spec, .. } => spec.projection.is_some(),
            Node::Sort { presorted: false, input, .. } => input.gives_documents(),
            Node::Stage { stage: Stage::Sort(_), .. } => true,
            _ => false,
        }
    }

    /// Returns the scan of a collection that the node consists of, or the scan and the projection above
    /// it that only keeps the fields that later stages read. The stages above can then run in the
    /// scan, without rows in between.
    pub fn bare_scan(&self) -> Option<(&Node, Option<&Reshape>)> {
        match self {
            Node::CollScan { tails: false, .. } => Some((self, None)),
            Node::Projection { spec, input, .. } if spec.narrows => match &**input {
                scan @ Node::CollScan { tails: false, .. } => Some((scan, Some(spec))),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the node below the stages at the top that process each document separately, and these
    /// stages, the first one first. They run as one chain.
    pub fn chain(&self) -> (&Node, Vec<&Stage>) {
        let (mut node, mut stages) = (self, Vec::new());
        while let Node::Stage { stage, input, .. } = node
            && stage.streams()
        {
            stages.push(stage);
            node = input;
        }
        stages.reverse();
        (node, stages)
    }
}
