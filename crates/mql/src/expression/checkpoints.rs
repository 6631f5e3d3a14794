//! Checkpoints in large expressions, where evaluation looks at the interrupt.
//!
//! Loops count their rounds as work (`work.rs`). An expression can also be long without a loop:
//! 50,000 operators, each over one array of a million numbers, are one evaluation of minutes. To
//! count at each operator would cost the usual short expression more than a hundredth of its time.
//! So parsing divides an expression of many nodes into groups, and the first node of each becomes a
//! checkpoint: it counts what all nodes of its group may have to read, before they do. A short
//! expression has no checkpoint and pays nothing.

use super::tree::Expression;
use crate::context::EvalContext;
use crate::work::{bytes_of, units};
use quire_document::Value;
use quire_error::Result;
use smallvec::SmallVec;

/// How many nodes a group has, or a few more.
const GROUP_NODES: u32 = 32;

/// The first node of a group.
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) first: Expression,
    /// Nodes of the group, without those that belong to groups inside of it.
    nodes: u32,
}

impl Checkpoint {
    /// Evaluates the first node, after a look.
    #[cold]
    #[inline(never)]
    pub(super) fn eval<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Option<Value<'a>>> {
        self.pass(cx)?;
        self.first.eval(cx)
    }

    /// Counts what the group may read.
    #[cold]
    #[inline(never)]
    pub(super) fn pass(&self, cx: &EvalContext<'_>) -> Result<()> {
        cx.shared.work(cx.units_of_kept().saturating_mul(self.nodes))
    }
}

impl Expression {
    /// Puts checkpoints into an expression that is parsed and optimised, and has none yet.
    pub(super) fn divide(&mut self) {
        let mut left = GROUP_NODES;
        if self.has_nodes(&mut left) {
            self.divided();
        }
    }

    /// Makes a checkpoint of the top, for an expression of a few nodes that is one of many.
    pub(crate) fn guard(&mut self) {
        self.put_checkpoint(|first| Checkpoint { first, nodes: GROUP_NODES });
    }

    /// Whether it has at least `left` nodes.
    fn has_nodes(&self, left: &mut u32) -> bool {
        *left = left.saturating_sub(1);
        self.children(&mut |child| {
            if *left > 0 {
                child.has_nodes(left);
            }
        });
        *left == 0
    }

    /// Divides the children into groups, and returns how many nodes are in none of them: this
    /// node, and those of a last group that is too small.
    ///
    /// An operator evaluates its children in order and may leave some out, but not the first. So the
    /// first child of a group counts for the whole group.
    fn divided(&mut self) -> u32 {
        let mut sizes: SmallVec<[u32; 8]> = SmallVec::new();
        let _ = self.children_mut(&mut |child| {
            sizes.push(child.divided());
            Ok(())
        });
        let (mut rest, mut at) = (0, sizes.len());
        // From the last child to the first: `sizes` becomes what a checkpoint there counts.
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
    /// Counts what one expression of a few nodes may read, before it is evaluated as one of many.
    ///
    /// # Errors
    /// Those of an operation that was killed or whose deadline passed; 146 if memory was refused.
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

    /// What reading the document and all variables once counts as work.
    fn units_of_kept(&self) -> u32 {
        units(self.kept().map(bytes_of).fold(0, usize::saturating_add))
    }
}

/// An expression of a few nodes over a document of no more bytes is not counted.
const FREE_BYTES: usize = 4096;
