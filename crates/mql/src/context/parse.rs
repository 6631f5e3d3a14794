//! What parsing needs to know: the variables that are in scope, and what they stand for.

use super::InterruptCheck;
use crate::expression::Folding;
use crate::stage::Place;
use quire_document::{Collator, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// How deep an expression or a value may nest (MongoDB's BSON depth limit).
pub const EXPRESSION_DEPTH_MAX: u32 = 200;

/// What parsing an expression needs to know. Cheap to clone; a nested scope is a clone.
#[derive(Clone, Default)]
pub struct ParseContext {
    /// Compares strings; part of what constant folding must know.
    pub collator: Option<Arc<dyn Collator>>,
    /// The user variables (command `let`, `$lookup.let`): the one at `i` reads
    /// `EvalContext::variables[i]`.
    pub variables: Arc<Vec<UserVariable>>,
    /// `$$NOW` and `$$CLUSTER_TIME` have no value here (`count`, `distinct`, filters of listings);
    /// using them answers 51144.
    pub no_clock: bool,
    /// `$$CLUSTER_TIME` is known (the server is a replica set).
    pub cluster_time: bool,
    /// `$$DESCEND`, `$$PRUNE` and `$$KEEP` exist (inside `$redact` only).
    pub redact: bool,
    /// `apiStrict: true`: operators outside the stable API answer `APIStrictError` (323).
    pub api_strict: bool,
    /// The pipeline that is being parsed; `None` outside of pipelines.
    pub place: Option<Arc<Place>>,
    /// Whether the operation that the request belongs to goes on. Parsing and optimising look at
    /// it once in a while: a request can have millions of parts.
    pub interrupt: Option<Arc<dyn InterruptCheck>>,
    /// Constants are not folded (tests compare with and without).
    pub no_folding: bool,
    /// The stages of pipelines run in the order in which they are written, none of them joined with
    /// another (tests compare with and without).
    pub as_written: bool,
    /// What folding the request's constants has taken.
    pub(crate) folding: Folding,
    /// Variables bound by enclosing expressions; `None` where there are none.
    scope: Option<Arc<HashMap<Box<str>, Slot>>>,
    next_slot: u32,
    depth: u32,
}

/// A variable that comes with a command or stage.
#[derive(Clone, Debug, PartialEq)]
pub struct UserVariable {
    /// The name without dollar signs.
    pub name: Box<str>,
    /// Its value, where that is known before anything runs: then it is a constant.
    pub known: Option<Known>,
}

/// What a variable is known to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// `$$REMOVE`, or what evaluates to it.
    Missing,
    /// A value that the request gives.
    Value(ValueBuf),
}

impl UserVariable {
    /// The value, `None` if it is missing or not known.
    pub fn value(&self) -> Option<Value<'_>> {
        match &self.known {
            Some(Known::Value(value)) => Some(value.as_value()),
            Some(Known::Missing) | None => None,
        }
    }
}

impl fmt::Debug for ParseContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParseContext").field("variables", &self.variables).finish_non_exhaustive()
    }
}

/// Identifies a variable that an expression binds (`$let`, `$map`, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub(super) u32);

/// What a variable's name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// `$$ROOT`, and `$$CURRENT` where nothing rebinds it.
    Root,
    /// Bound by an enclosing expression.
    Scoped(Slot),
    /// Given with the command or stage: an index into `EvalContext::variables`.
    User(usize),
    /// The time of `$$NOW`.
    Now,
    /// The time of `$$CLUSTER_TIME`.
    ClusterTime,
    /// `$$REMOVE`: always missing.
    Remove,
    /// `$$DESCEND`, `$$PRUNE`, `$$KEEP`: a string that `$redact` knows.
    Redact(&'static str),
    /// The roles of `$$USER_ROLES`.
    UserRoles,
}

impl ParseContext {
    /// A context with the user variables `names`.
    pub fn with_user_variables<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let variables = names.into_iter();
        let variables: Vec<_> = variables
            .map(|name| UserVariable { name: name.as_ref().into(), known: None })
            .collect();
        ParseContext { variables: Arc::new(variables), ..ParseContext::default() }
    }

    /// The same context, with constants left as they are.
    pub fn without_folding(mut self) -> Self {
        self.no_folding = true;
        self
    }

    /// The same context in the pipeline at `place`.
    pub fn at(&self, place: Place) -> Self {
        let mut inner = self.clone();
        inner.place = Some(Arc::new(place));
        inner
    }

    /// The same context inside an expression that binds `name`.
    pub fn bind(&self, name: &str) -> (Self, Slot) {
        self.bind_all(std::iter::once(name))
    }

    /// The same inside an expression that binds `names`: their slots follow each other from the
    /// one that is given back.
    pub fn bind_all<'n>(&self, names: impl Iterator<Item = &'n str>) -> (Self, Slot) {
        let mut inner = self.clone();
        let first = Slot(inner.next_slot);
        let scope = Arc::make_mut(inner.scope.get_or_insert_default());
        for name in names {
            scope.insert(name.into(), Slot(inner.next_slot));
            inner.next_slot += 1;
        }
        (inner, first)
    }

    /// The same context one level deeper; answers `Overflow` (15) past the limit.
    pub fn deeper(&self) -> Result<Self> {
        if self.depth >= EXPRESSION_DEPTH_MAX {
            let text = format!("Expression exceeded the maximum depth of {EXPRESSION_DEPTH_MAX}");
            return Err(Error::new(ErrorCode::Overflow, text));
        }
        let mut inner = self.clone();
        inner.depth += 1;
        Ok(inner)
    }

    /// True outside of any expression: here parsing ends with folding.
    pub(crate) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// What `$$name` stands for here; 17276 if it is unknown.
    pub fn resolve(&self, name: &str) -> Result<Binding> {
        if let Some(slot) = self.scope.as_ref().and_then(|scope| scope.get(name)) {
            return Ok(Binding::Scoped(*slot));
        }
        if let Some(index) = self.variables.iter().rposition(|known| *known.name == *name) {
            return Ok(Binding::User(index));
        }
        match name {
            "ROOT" | "CURRENT" => return Ok(Binding::Root),
            "REMOVE" => return Ok(Binding::Remove),
            "NOW" | "CLUSTER_TIME" if self.no_clock => {
                let text = format!("Builtin variable '$${name}' is not available");
                return Err(Error::location(51144, text));
            }
            "NOW" => return Ok(Binding::Now),
            "CLUSTER_TIME" if self.cluster_time => return Ok(Binding::ClusterTime),
            "CLUSTER_TIME" => {
                let text = "Builtin variable '$$CLUSTER_TIME' is not available";
                return Err(Error::location(10071200, text));
            }
            "USER_ROLES" => return Ok(Binding::UserRoles),
            "DESCEND" if self.redact => return Ok(Binding::Redact("descend")),
            "PRUNE" if self.redact => return Ok(Binding::Redact("prune")),
            "KEEP" if self.redact => return Ok(Binding::Redact("keep")),
            _ => {}
        }
        Err(Error::location(17276, format!("Use of undefined variable: {name}")))
    }
}
