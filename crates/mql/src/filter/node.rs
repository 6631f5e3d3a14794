//! The tree of a filter, which the planner reads.

use super::bits::BitTest;
use super::expr::ExprTest;
use super::in_list::InList;
use super::modulo::Modulo;
use super::operand::{Comparison, Operand};
use super::scope::Scope;
use super::type_set::TypeSet;
use crate::regex::Regex;
use crate::schema::Schema;
use quire_document::path::{Leaf, Path};
use std::sync::Arc;

/// A condition on a document.
#[derive(Clone, Debug)]
pub enum Node {
    /// All of them hold. Without children: always true (`{}`).
    And(Vec<Node>),
    /// One of them holds.
    Or(Vec<Node>),
    /// None of them holds.
    Nor(Vec<Node>),
    /// It does not hold. `$ne`, `$nin` and `$exists: false` are negations too.
    Not(Box<Node>),
    /// A test on the values at a path.
    Path(PathNode),
    /// An `$expr` of the whole document.
    Expr(ExprTest),
    /// A `$jsonSchema` of the whole document.
    JsonSchema(Arc<Schema>),
    /// `$sampleRate`: holds with that probability.
    SampleRate(f64),
    /// `$alwaysTrue`, `$alwaysFalse`, and what optimising finds out.
    Always(bool),
}

/// A path and the test on the values that it names.
#[derive(Clone, Debug)]
pub struct PathNode {
    /// The path whose values are tested.
    pub path: Path,
    /// The test; one value that passes is enough.
    pub test: Test,
    /// Which of its scope's top-level fields the path starts with.
    pub(super) slot: usize,
}

impl PathNode {
    /// A test on a path; a scope gives it its slot.
    pub fn new(path: Path, test: Test) -> PathNode {
        PathNode { path, test, slot: 0 }
    }
}

/// A test on one value (or on a missing one).
#[derive(Clone, Debug)]
pub enum Test {
    /// `$eq`, `$lt`, `$lte`, `$gt`, `$gte`.
    Compare(Comparison, Operand),
    /// `$in`: equal to one of a list.
    In(InList),
    /// `$regex`: a string that matches.
    Regex(Box<Regex>),
    /// `$exists: true`: there is a value.
    Exists,
    /// `$type`: of one of these types.
    Type(TypeSet),
    /// `$mod`: a number with this remainder.
    Mod(Modulo),
    /// `$size`: an array of this length.
    Size(i64),
    /// `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`.
    Bits(BitTest),
    /// `$elemMatch` with conditions on an element's fields.
    ElemMatchObject(Box<Scope>),
    /// `$elemMatch` with operators on the element itself; all must hold for one element.
    ElemMatchValue(Vec<Test>),
    /// The negation of a test on the same value (inside `$elemMatch` with operators).
    Not(Box<Test>),
    /// Several tests on the same value (inside `$not` or `$elemMatch` with operators).
    All(Vec<Test>),
    /// A test whose answer is known.
    Always(bool),
    /// What a `$expr` beside it says of the path, without type brackets. The planner reads it; it is
    /// never evaluated ([`Node::with_implied`]).
    Implied(Comparison, Operand),
}

impl Test {
    /// What an array at the end of the path yields for this test.
    pub(super) fn leaf(&self) -> Leaf {
        match self {
            Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => Leaf::Whole,
            _ => Leaf::Elements,
        }
    }

    /// The operator's name.
    pub fn operator(&self) -> &'static str {
        match self {
            Test::Compare(comparison, _) => comparison.operator(),
            Test::In(_) => "$in",
            Test::Regex(_) => "$regex",
            Test::Exists => "$exists",
            Test::Type(_) => "$type",
            Test::Mod(_) => "$mod",
            Test::Size(_) => "$size",
            Test::Bits(bits) => bits.kind.operator(),
            Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => "$elemMatch",
            Test::Not(_) => "$not",
            Test::All(_) => "$and",
            Test::Always(true) => "$alwaysTrue",
            Test::Always(false) => "$alwaysFalse",
            Test::Implied(comparison, _) => comparison.implied_operator(),
        }
    }
}

impl Node {
    /// A test on a path.
    pub fn path(path: &str, test: Test) -> Node {
        Node::Path(PathNode::new(Path::new(path), test))
    }

    /// The negation of `node`.
    pub fn negate(node: Node) -> Node {
        Node::Not(Box::new(node))
    }

    /// The conjunction of these, without needless nesting.
    pub fn all(mut children: Vec<Node>) -> Node {
        match children.len() {
            1 => children.remove(0),
            _ => Node::And(children),
        }
    }

    /// The children of the conjunction that it is, or itself.
    pub fn conjuncts(&self) -> &[Node] {
        match self {
            Node::And(children) => children,
            other => std::slice::from_ref(other),
        }
    }

    /// True for the filter that every document passes.
    pub fn is_always_true(&self) -> bool {
        match self {
            Node::Always(answer) => *answer,
            Node::And(children) => children.is_empty(),
            _ => false,
        }
    }

    /// True for the filter that no document passes.
    pub fn is_always_false(&self) -> bool {
        matches!(self, Node::Always(false))
    }

    /// The direct children of a logical node.
    pub fn children(&self) -> &[Node] {
        match self {
            Node::And(children) | Node::Or(children) | Node::Nor(children) => children,
            Node::Not(child) => std::slice::from_ref(child),
            _ => &[],
        }
    }

    /// True if its test may fail for some documents, as expressions may. Limits of memory, of time
    /// and of regular expressions don't count.
    pub fn can_fail(&self) -> bool {
        match self {
            Node::Expr(test) => test.expression().can_fail(),
            other => other.children().iter().any(Node::can_fail),
        }
    }

    /// Visits every path node below, those inside `$elemMatch` excepted.
    pub fn visit_paths<'n>(&'n self, visit: &mut dyn FnMut(&'n PathNode)) {
        match self {
            Node::Path(node) => visit(node),
            other => other.children().iter().for_each(|child| child.visit_paths(visit)),
        }
    }
}
