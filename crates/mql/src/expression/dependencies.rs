//! The fields and variables that an expression depends on. The planner fetches only these.

use super::tree::{Expression, ExpressionNode};
use crate::context::Binding;
use std::collections::BTreeSet;

/// The dependencies of expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// Dotted paths in the root document.
    pub paths: BTreeSet<String>,
    /// True if the whole root document is read (`$$ROOT`).
    pub whole_document: bool,
    /// Indexes of user variables.
    pub variables: BTreeSet<usize>,
    /// Kinds of metadata (`$meta`).
    pub metadata: BTreeSet<String>,
    /// True if the result differs from call to call (`$rand`).
    pub volatile: bool,
}

impl Expression {
    /// Returns the dependencies of the expression.
    pub fn dependencies(&self) -> Dependencies {
        let mut needed = Dependencies::default();
        self.add_dependencies(&mut needed);
        needed
    }

    /// Adds the dependencies of the expression to `needed`.
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
    /// Adds the dependencies of an expression that is evaluated with another root document than the
    /// input, such as the `n` of an accumulator. Its paths are not paths of the input.
    pub fn add_without_root(&mut self, expression: &Expression) {
        let reads = expression.dependencies();
        self.variables.extend(reads.variables);
        self.volatile |= reads.volatile;
    }
}
