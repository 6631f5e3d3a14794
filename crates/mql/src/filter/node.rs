//! The tree of a filter, which the planner uses too.

use super::bits::BitTest;
use super::expr::ExprTest;
use super::in_list::InList;
use super::modulo::Modulo;
use super::open::{Search, ValueTest};
use super::operand::{Comparison, Operand};
use super::scope::Scope;
use crate::regex::Regex;
use crate::schema::Schema;
use crate::type_set::TypeSet;
use quire_document::path::{Leaf, Path};
use quire_error::Result;
use std::sync::Arc;

/// Returns the search that replaces another one.
pub type Bind<'b> = dyn Fn(&dyn Search) -> Result<Arc<dyn Search>> + 'b;

/// A condition on a document.
#[derive(Clone, Debug)]
pub enum Node {
    /// True if all children are. Without children it is always true (`{}`).
    And(Vec<Node>),
    /// True if one of the children is.
    Or(Vec<Node>),
    /// True if none of the children is.
    Nor(Vec<Node>),
    /// True if the child is not. `$ne`, `$nin` and `$exists: false` are negations too.
    Not(Box<Node>),
    /// A test of the values at a path.
    Path(PathNode),
    /// An `$expr` for the whole document.
    Expr(ExprTest),
    /// A `$jsonSchema` for the whole document.
    JsonSchema(Arc<Schema>),
    /// `$sampleRate`: true with this probability.
    SampleRate(f64),
    /// A search of whole documents, which an index answers.
    Search(Arc<dyn Search>),
    /// `$alwaysTrue`, `$alwaysFalse`, or the result of an optimisation.
    Always(bool),
}

/// A path, and the test of the values at it.
#[derive(Clone, Debug)]
pub struct PathNode {
    /// The path of the values.
    pub path: Path,
    /// The test. One value that passes suffices.
    pub test: Test,
    /// The index, in its scope, of the top-level field with which the path begins.
    pub(super) slot: usize,
}

impl PathNode {
    /// Returns a test of a path. A scope assigns its slot later.
    pub fn new(path: Path, test: Test) -> PathNode {
        PathNode { path, test, slot: 0 }
    }
}

/// A test of one value, which may be missing.
#[derive(Clone, Debug)]
pub enum Test {
    /// `$eq`, `$lt`, `$lte`, `$gt`, `$gte`.
    Compare(Comparison, Operand),
    /// `$in`: equals one of a list.
    In(InList),
    /// `$regex`: a string that matches.
    Regex(Box<Regex>),
    /// `$exists: true`: there is a value.
    Exists,
    /// `$type`: has one of these types.
    Type(TypeSet),
    /// `$mod`: a number with this remainder.
    Mod(Modulo),
    /// `$size`: an array of this length.
    Size(i64),
    /// `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`.
    Bits(BitTest),
    /// `$elemMatch` with conditions on an element's fields.
    ElemMatchObject(Box<Scope>),
    /// `$elemMatch` with operators on the element itself. One element must pass all tests.
    ElemMatchValue(Vec<Test>),
    /// The negation of a test on the same value (inside `$elemMatch` with operators).
    Not(Box<Test>),
    /// Several tests on the same value (inside `$not` or `$elemMatch` with operators).
    All(Vec<Test>),
    /// A test that its operator defines.
    Open(Arc<dyn ValueTest>),
    /// A test with a known result.
    Always(bool),
    /// A comparison of the path that a `$expr` implies, without type bracketing. The planner uses
    /// it; it is never evaluated ([`Node::with_implied`]).
    Implied(Comparison, Operand),
}

impl Test {
    /// Returns how this test treats an array at the end of the path.
    pub(super) fn leaf(&self) -> Leaf {
        match self {
            Test::Size(_) | Test::ElemMatchObject(_) | Test::ElemMatchValue(_) => Leaf::Whole,
            Test::Open(test) => test.leaf(),
            _ => Leaf::Elements,
        }
    }

    /// Returns the operator's name.
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
            Test::Open(test) => test.operator(),
            Test::Always(true) => "$alwaysTrue",
            Test::Always(false) => "$alwaysFalse",
            Test::Implied(comparison, _) => comparison.implied_operator(),
        }
    }
}

impl Node {
    /// Returns a test of a path.
    pub fn path(path: &str, test: Test) -> Node {
        Node::Path(PathNode::new(Path::new(path), test))
    }

    /// Returns the negation of `node`.
    pub fn negate(node: Node) -> Node {
        Node::Not(Box::new(node))
    }

    /// Returns the conjunction of the children, without unnecessary nesting.
    pub fn all(mut children: Vec<Node>) -> Node {
        match children.len() {
            1 => children.remove(0),
            _ => Node::And(children),
        }
    }

    /// Returns the children of a conjunction, or otherwise the node itself.
    pub fn conjuncts(&self) -> &[Node] {
        match self {
            Node::And(children) => children,
            other => std::slice::from_ref(other),
        }
    }

    /// Returns true for the filter that matches every document.
    pub fn is_always_true(&self) -> bool {
        match self {
            Node::Always(answer) => *answer,
            Node::And(children) => children.is_empty(),
            _ => false,
        }
    }

    /// Returns true for the filter that matches no document.
    pub fn is_always_false(&self) -> bool {
        matches!(self, Node::Always(false))
    }

    /// Returns the direct children of a logical node.
    pub fn children(&self) -> &[Node] {
        match self {
            Node::And(children) | Node::Or(children) | Node::Nor(children) => children,
            Node::Not(child) => std::slice::from_ref(child),
            _ => &[],
        }
    }

    /// Returns the number of conditions, without those inside `$elemMatch`.
    pub fn size(&self) -> usize {
        self.children().iter().fold(1, |sum, child| sum + child.size())
    }

    /// Returns true if the test may fail for some documents, as an expression may. Limits on
    /// memory, time and regular expressions do not count.
    pub fn can_fail(&self) -> bool {
        match self {
            Node::Expr(test) => test.expression().can_fail(),
            other => other.children().iter().any(Node::can_fail),
        }
    }

    /// Calls `visit` for every path node of the tree, except those inside `$elemMatch`.
    pub fn visit_paths<'n>(&'n self, visit: &mut dyn FnMut(&'n PathNode)) {
        match self {
            Node::Path(node) => visit(node),
            other => other.children().iter().for_each(|child| child.visit_paths(visit)),
        }
    }

    /// Returns true if every condition in the tree tests the values at a path.
    pub fn reads_only_paths(&self) -> bool {
        match self {
            Node::Path(_) | Node::Always(_) => true,
            Node::And(_) | Node::Or(_) | Node::Nor(_) | Node::Not(_) => {
                self.children().iter().all(Node::reads_only_paths)
            }
            Node::Expr(_) | Node::JsonSchema(_) | Node::SampleRate(_) | Node::Search(_) => false,
        }
    }

    /// Returns the first search in the tree; `None` if there is none.
    pub fn search(&self) -> Option<&Arc<dyn Search>> {
        match self {
            Node::Search(search) => Some(search),
            other => other.children().iter().find_map(Node::search),
        }
    }

    /// Replaces each search in the tree by what `bind` makes of it.
    ///
    /// # Errors
    /// The first error of `bind`.
    pub fn bind_search(&mut self, bind: &Bind<'_>) -> Result<()> {
        match self {
            Node::Search(search) => *search = bind(&**search)?,
            Node::And(children) | Node::Or(children) | Node::Nor(children) => {
                children.iter_mut().try_for_each(|child| child.bind_search(bind))?;
            }
            Node::Not(child) => child.bind_search(bind)?,
            _ => {}
        }
        Ok(())
    }
}
