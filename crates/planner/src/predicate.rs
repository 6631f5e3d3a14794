//! The filter as the planner sees it: a normalised tree whose leaves can become index bounds.
//! It is read from a filter that `mql` has already accepted, so it validates nothing; what it
//! does not know becomes an opaque leaf, which no index serves and which prints as written.

use quire_document::{DocBuf, Value, ValueBuf};

/// A node of the normalised filter.
#[derive(Debug, Clone)]
pub enum Predicate {
    /// All of them; empty matches everything.
    And(Vec<Predicate>),
    /// One of them.
    Or(Vec<Predicate>),
    /// None of them.
    Nor(Vec<Predicate>),
    /// Not this one.
    Not(Box<Predicate>),
    /// A test of the values at a path.
    Leaf(Leaf),
    /// `{path: {$elemMatch: {...}}}` on documents.
    ElemMatchObject {
        /// The array's path.
        path: String,
        /// What one element must match; paths are relative to it.
        inner: Box<Predicate>,
    },
    /// `{path: {$elemMatch: {$gt: 1, ...}}}` on values.
    ElemMatchValue {
        /// The array's path.
        path: String,
        /// What one element must match; their paths are empty.
        inner: Vec<Predicate>,
    },
    /// Matches every document.
    AlwaysTrue,
    /// Matches no document.
    AlwaysFalse,
    /// `$expr`.
    Expr(Expr),
    /// Anything else, by its operator: `$text`, `$where`, `$jsonSchema`, ...
    Opaque {
        /// The operator.
        name: String,
        /// Its argument.
        argument: ValueBuf,
    },
}

/// A test of the values at a path.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The dotted path.
    pub path: String,
    /// The test.
    pub test: Test,
}

/// What a leaf tests.
#[derive(Debug, Clone)]
pub enum Test {
    /// `$eq`.
    Eq(ValueBuf),
    /// `$lt`, `$lte`, `$gt`, `$gte`.
    Compare(Comparison, ValueBuf),
    /// `$in`.
    In {
        /// Values in order, each once.
        values: Vec<ValueBuf>,
        /// Regular expressions, as values.
        regexes: Vec<ValueBuf>,
    },
    /// `$regex`.
    Regex {
        /// The pattern.
        pattern: String,
        /// Its option letters.
        options: String,
    },
    /// `$mod`, with its operands as printed.
    Mod(i64, i64),
    /// `$exists: true`.
    Exists,
    /// `$type`.
    Type {
        /// `"number"` is among them.
        number: bool,
        /// The type numbers, rising.
        numbers: Vec<i32>,
    },
    /// `$size`.
    Size(i64),
    /// The comparison that stands for a part of `$expr`: no type bracketing.
    InternalExpr(Option<Comparison>, ValueBuf),
    /// Anything else, by its operator: `$bitsAllSet`, `$geoWithin`, ...
    Opaque {
        /// The operator.
        name: String,
        /// Its argument as printed.
        argument: ValueBuf,
    },
}

/// The four inequalities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// `$lte`
    Lte,
    /// `$lt`
    Lt,
    /// `$gt`
    Gt,
    /// `$gte`
    Gte,
}

impl Comparison {
    /// The operator's name without its dollar.
    pub const fn name(self) -> &'static str {
        match self {
            Comparison::Lte => "lte",
            Comparison::Lt => "lt",
            Comparison::Gt => "gt",
            Comparison::Gte => "gte",
        }
    }

    /// The comparison with its sides exchanged.
    pub const fn flipped(self) -> Self {
        match self {
            Comparison::Lte => Comparison::Gte,
            Comparison::Lt => Comparison::Gt,
            Comparison::Gt => Comparison::Lt,
            Comparison::Gte => Comparison::Lte,
        }
    }
}

/// `$expr` and the comparisons of it that an index can serve.
#[derive(Debug, Clone)]
pub struct Expr {
    /// The expression as the client wrote it.
    pub source: ValueBuf,
    /// The expression as explain prints it.
    pub printed: ValueBuf,
}

impl Predicate {
    /// The predicate that matches everything.
    pub fn everything() -> Self {
        Predicate::And(Vec::new())
    }

    /// True if it matches every document.
    pub fn is_everything(&self) -> bool {
        matches!(self, Predicate::And(children) if children.is_empty())
            || matches!(self, Predicate::AlwaysTrue)
    }

    /// The conjunction of these, without needless nesting.
    pub fn all(mut children: Vec<Predicate>) -> Self {
        match children.len() {
            1 => children.pop().unwrap_or(Predicate::AlwaysTrue),
            _ => Predicate::And(children),
        }
    }

    /// A leaf.
    pub fn leaf(path: impl Into<String>, test: Test) -> Self {
        Predicate::Leaf(Leaf { path: path.into(), test })
    }

    /// The children of the conjunction that it is, or itself.
    pub fn conjuncts(&self) -> &[Predicate] {
        match self {
            Predicate::And(children) => children,
            other => std::slice::from_ref(other),
        }
    }

    /// Where MongoDB sorts this kind of node among its siblings.
    fn kind_rank(&self) -> u8 {
        match self {
            Predicate::And(_) => 0,
            Predicate::Or(_) => 1,
            Predicate::ElemMatchObject { .. } => 2,
            Predicate::ElemMatchValue { .. } => 3,
            Predicate::Leaf(leaf) => leaf.test.kind_rank(),
            Predicate::Not(_) => 30,
            Predicate::Nor(_) => 31,
            Predicate::Expr(_) => 40,
            Predicate::AlwaysFalse => 41,
            Predicate::AlwaysTrue => 42,
            Predicate::Opaque { name, .. } => match name.as_str() {
                "$where" => 39,
                "$text" => 44,
                _ => 43,
            },
        }
    }

    fn path(&self) -> &str {
        match self {
            Predicate::Leaf(leaf) => &leaf.path,
            Predicate::ElemMatchObject { path, .. } | Predicate::ElemMatchValue { path, .. } => {
                path
            }
            _ => "",
        }
    }

    fn children(&self) -> &[Predicate] {
        match self {
            Predicate::And(children) | Predicate::Or(children) | Predicate::Nor(children) => {
                children
            }
            Predicate::Not(child) => std::slice::from_ref(&**child),
            Predicate::ElemMatchObject { inner, .. } => std::slice::from_ref(&**inner),
            Predicate::ElemMatchValue { inner, .. } => inner,
            _ => &[],
        }
    }

    /// The order of siblings: by kind, path, then children.
    pub fn sibling_order(&self, other: &Predicate) -> std::cmp::Ordering {
        self.kind_rank()
            .cmp(&other.kind_rank())
            .then_with(|| self.path().cmp(other.path()))
            .then_with(|| {
                let (left, right) = (self.children(), other.children());
                for (a, b) in left.iter().zip(right) {
                    let order = a.sibling_order(b);
                    if order.is_ne() {
                        return order;
                    }
                }
                left.len().cmp(&right.len())
            })
    }
}

impl Test {
    fn kind_rank(&self) -> u8 {
        match self {
            Test::Size(_) => 4,
            Test::Eq(_) => 5,
            Test::Compare(Comparison::Lte, _) => 6,
            Test::Compare(Comparison::Lt, _) => 7,
            Test::Compare(Comparison::Gt, _) => 8,
            Test::Compare(Comparison::Gte, _) => 9,
            Test::Regex { .. } => 10,
            Test::Mod(..) => 11,
            Test::Exists => 12,
            Test::In { .. } => 13,
            Test::Opaque { name, .. } => match name.as_str() {
                "$bitsAllSet" => 14,
                "$bitsAllClear" => 15,
                "$bitsAnySet" => 16,
                "$bitsAnyClear" => 17,
                "$near" | "$nearSphere" | "$geoNear" => 43,
                _ => 36,
            },
            Test::Type { .. } => 35,
            Test::InternalExpr(None, _) => 50,
            Test::InternalExpr(Some(Comparison::Gt), _) => 51,
            Test::InternalExpr(Some(Comparison::Gte), _) => 52,
            Test::InternalExpr(Some(Comparison::Lt), _) => 53,
            Test::InternalExpr(Some(Comparison::Lte), _) => 54,
        }
    }

    /// True if a document without the field may pass.
    pub fn wants_null(&self) -> bool {
        match self {
            Test::Eq(value) => value.as_value().is_nullish(),
            Test::In { values, .. } => values.iter().any(|v| v.as_value().is_nullish()),
            Test::Compare(_, value) => matches!(
                value.as_value(),
                Value::Null | Value::Undefined | Value::MinKey | Value::MaxKey
            ),
            Test::InternalExpr(Some(Comparison::Lt | Comparison::Lte), _) => true,
            Test::InternalExpr(_, value) => value.as_value().is_nullish(),
            _ => false,
        }
    }
}

/// A filter in both forms: as the client wrote it and normalised.
#[derive(Debug, Clone)]
pub struct Filter {
    /// As written.
    pub source: DocBuf,
    /// Normalised.
    pub root: Predicate,
}
