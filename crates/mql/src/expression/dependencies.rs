//! What an expression reads: the planner fetches no more than that.

use super::tree::{Expression, ExpressionNode};
use crate::context::Binding;
use std::collections::BTreeSet;

/// What expressions read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Dotted paths of the root document.
    pub paths: BTreeSet<String>,
    /// The root document as a whole is read (`$$ROOT`).
    pub whole_document: bool,
    /// User variables, by index.
    pub variables: BTreeSet<usize>,
    /// Kinds of metadata (`$meta`).
    pub metadata: BTreeSet<String>,
    /// The result differs from call to call (`$rand`).
    pub volatile: bool,
}

impl Expression {
    /// What it reads.
    pub fn dependencies(&self) -> Dependencies {
        let mut needed = Dependencies::default();
        self.add_dependencies(&mut needed);
        needed
    }

    /// Adds what it reads to `needed`.
    pub fn add_dependencies(&self, needed: &mut Dependencies) {
        match self.node() {
            ExpressionNode::Path(path) => {
                needed.paths.insert(path.to_string());
            }
            ExpressionNode::Variable(variable) => match variable.binding {
                Binding::Root => needed.whole_document = true,
                Binding::User(index) => {
                    needed.variables.insert(index);
                }
                _ => {}
            },
            ExpressionNode::Call(call) => needed.volatile |= call.operator.volatile,
            ExpressionNode::Form(form) => {
                needed.volatile |= form.is_volatile();
                needed.metadata.extend(form.metadata().map(str::to_owned));
            }
            _ => {}
        }
        self.children(&mut |child| child.add_dependencies(needed));
    }
}

impl Dependencies {
    /// Adds what an expression depends on that is evaluated on another root document than the
    /// input, as the `n` of an accumulator is: its paths are no paths of the input.
    pub fn add_without_root(&mut self, expression: &Expression) {
        let reads = expression.dependencies();
        self.variables.extend(reads.variables);
        self.volatile |= reads.volatile;
    }
}
