//! The `$group` stages that explain shows in the plan of the query. MongoDB 8 runs them there, as
//! `GROUP` above the scan, and shows only the stages after them as a pipeline.

use super::{Node, Plan};
use quire_mql::stage::Stage;

impl Plan {
    /// Returns the number of `$group` stages directly above [`Plan::cursor`] that belong to the
    /// plan of the query. A `$group` that takes the first document of each group is a scan, not a
    /// `GROUP`.
    pub fn groups(&self) -> usize {
        let cursor = self.cursor();
        let reads = !matches!(
            cursor,
            Node::Eof
                | Node::OneDocument
                | Node::Served(_)
                | Node::Feed { .. }
                | Node::RandomPicks { .. }
        );
        if !reads || cursor.reads_distinct_keys() {
            return 0;
        }
        let stages = self.stages();
        stages.into_iter().take_while(|stage| matches!(stage, Stage::Group(_))).count()
    }

    /// Returns the part of the tree that explain shows as the plan of the query: [`Plan::cursor`]
    /// with its [`Plan::groups`].
    pub fn planned(&self) -> &Node {
        let mut node = &self.root;
        for _ in self.groups()..self.stages().len() {
            if let Node::Stage { input, .. } = node {
                node = input;
            }
        }
        node
    }
}

impl Node {
    /// Returns true if it only reads the first key of each group.
    pub fn reads_distinct_keys(&self) -> bool {
        match self {
            Node::DistinctScan { each, .. } => *each == 1,
            Node::Projection { input, .. } | Node::Fetch { input, .. } => {
                input.reads_distinct_keys()
            }
            _ => false,
        }
    }
}
