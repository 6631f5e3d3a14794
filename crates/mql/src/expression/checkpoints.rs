//! Checkpoints in large expressions, at which evaluation checks the interrupt.
//!
//! Loops count their iterations as work (`work.rs`). But an expression can take long without a
//! loop: 50,000 operators, each on an array of a million numbers, are one evaluation of minutes.
//! Counting at each operator would slow down short expressions, which are common, by more than one
//! percent. Therefore parsing divides an expression of many nodes into groups and makes the first
//! node of each a checkpoint. Before the group is evaluated, the checkpoint counts what all of its
//! nodes may read. A short expression has no checkpoint.

use super::tree::Expression;
use crate::context::EvalContext;
use crate::context::work::{LOOK_UNITS, units};
use quire_document::Value;
use quire_error::Result;
use smallvec::SmallVec;

/// The approximate number of nodes in a group; the least, except for a last group.
const GROUP_NODES: u32 = 32;

/// A checkpoint: the first node of a group.
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) first: Expression,
    /// The number of nodes in the group, without those of nested groups.
    nodes: u32,
}

impl Checkpoint {
    /// Counts the work of the group and evaluates its first node.
    #[cold]
    #[inline(never)]
    pub(super) fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        self.pass(cx)?;
        self.first.eval(cx)
    }

    /// Counts the work that the group may do.
    #[cold]
    #[inline(never)]
    pub(super) fn pass(&self, cx: &EvalContext<'_>) -> Result<()> {
        cx.shared.work(cx.units_of_kept().saturating_mul(self.nodes))
    }
}

impl Expression {
    /// Adds checkpoints to an expression that is parsed and optimised and has none yet.
    pub(super) fn divide(&mut self) {
        let mut left = GROUP_NODES;
        if self.has_nodes(&mut left) {
            self.divide_children();
        }
    }

    /// Makes the top node a checkpoint, for a small expression that is one of many.
    pub(crate) fn guard(&mut self) {
        self.put_checkpoint(|first| Checkpoint { first, nodes: GROUP_NODES });
    }

    /// Returns true if the expression has at least `left` nodes.
    fn has_nodes(&self, left: &mut u32) -> bool {
        *left = left.saturating_sub(1);
        self.children(&mut |child| {
            if *left > 0 {
                child.has_nodes(left);
            }
        });
        *left == 0
    }

    /// Divides the descendants into groups. Returns the number of nodes in no group: this node, and
    /// those of a last group that is too small.
    ///
    /// An operator evaluates its children in order and may skip some, but not the first. So the
    /// first child of a group counts for the whole group.
    fn divide_children(&mut self) -> u32 {
        let mut sizes: SmallVec<[u32; 8]> = SmallVec::new();
        let _ = self.children_mut(&mut |child| {
            sizes.push(child.divide_children());
            Ok(())
        });
        let (mut rest, mut at) = (0, sizes.len());
        // From the last child to the first, `sizes` becomes the number of nodes that a checkpoint
        // at the child counts, or 0 for no checkpoint.
        while let Some(before) = at.checked_sub(1) {
            at = before;
            rest += sizes[at];
            let is_full = rest >= GROUP_NODES;
            sizes[at] = if is_full { std::mem::take(&mut rest) } else { 0 };
        }
        let mut sizes = sizes.into_iter();
        let _ = self.children_mut(&mut |child| {
            if let Some(nodes) = sizes.next().filter(|nodes| *nodes > 0) {
                child.put_checkpoint(|first| Checkpoint { first, nodes });
            }
            Ok(())
        });
        rest + 1
    }
}

impl EvalContext<'_> {
    /// Counts the work of one small expression, before it is evaluated as one of many.
    ///
    /// # Errors
    /// The operation was killed or its deadline passed; 146 ExceededMemoryLimit if memory was
    /// refused.
    #[inline(always)]
    pub fn pass(&self) -> Result<()> {
        if self.root.len() <= FREE_BYTES && self.variables.is_empty() {
            return Ok(());
        }
        self.pass_large()
    }

    #[cold]
    #[inline(never)]
    fn pass_large(&self) -> Result<()> {
        self.shared.work(self.units_of_kept())
    }

    /// Returns the work of reading the document and all variables once. With very many variables
    /// that is as much as there may be between two checks.
    fn units_of_kept(&self) -> u32 {
        self.kept_bytes().map_or(LOOK_UNITS, units)
    }
}

/// A small expression is not counted if its document has at most this many bytes.
const FREE_BYTES: usize = 4096;
