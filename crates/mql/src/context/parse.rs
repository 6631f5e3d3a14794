//! The input of parsing: the variables in scope, and their meaning.

use super::{Folding, InterruptCheck, Place};
use quire_document::{Collator, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The most levels of nesting of an expression or a value (MongoDB's BSON depth limit).
pub const EXPRESSION_DEPTH_MAX: u32 = 200;

/// The input of parsing an expression. Cheap to clone; a nested scope is a clone.
#[derive(Clone, Default)]
pub struct ParseContext {
    /// The collator for strings, which constant folding uses too.
    pub collator: Option<Arc<dyn Collator>>,
    /// The user variables (`let` of a command, `$lookup.let`). The one at `i` has the value
    /// `EvalContext::variables[i]`.
    pub variables: Arc<Vec<UserVariable>>,
    /// True if `$$NOW` and `$$CLUSTER_TIME` have no value here (in `count`, `distinct` and filters
    /// of listings). Their use fails with 51144.
    pub no_clock: bool,
    /// True if `$$CLUSTER_TIME` has a value, because the server is a replica set.
    pub cluster_time: bool,
    /// True inside `$redact`, where `$$DESCEND`, `$$PRUNE` and `$$KEEP` exist.
    pub redact: bool,
    /// True for `apiStrict: true`: operators outside the stable API fail with 323 APIStrictError.
    pub api_strict: bool,
    /// The kinds of metadata that a search in the filter gives to documents, by their names in
    /// `$meta`.
    pub metadata: &'static [&'static str],
    /// The place in the pipeline that is being parsed; `None` outside pipelines.
    pub place: Option<Arc<Place>>,
    /// Tells whether the operation may continue. Parsing and optimisation check it from time to
    /// time, because a request can have millions of parts.
    pub interrupt: Option<Arc<dyn InterruptCheck>>,
    /// True if constants are not folded. (Tests compare the results with and without folding.)
    pub no_folding: bool,
    /// True if the stages of a pipeline run in the written order, and none is merged with another.
    /// (Tests compare the results with and without.)
    pub as_written: bool,
    /// The memory and work of folding the request's constants so far.
    pub(crate) folding: Folding,
    /// The variables that enclosing expressions have bound; `None` if there are none.
    scope: Option<Arc<HashMap<Box<str>, Slot>>>,
    next_slot: u32,
    depth: u32,
}

/// A variable of a command or a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct UserVariable {
    /// The name without dollar signs.
    pub name: Box<str>,
    /// The value, if it is known before execution; the variable is then a constant.
    pub known: Option<Known>,
}

/// The known value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Known {
    /// The missing value: `$$REMOVE`, or an expression that evaluates to it.
    Missing,
    /// A value from the request.
    Value(ValueBuf),
}

impl UserVariable {
    /// Returns the value; `None` if it is missing or not known.
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

/// The slot of a variable that an expression binds (`$let`, `$map`, ...).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub(super) u32);

/// The meaning of a variable's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// `$$ROOT`, or `$$CURRENT` unless it is bound to another value.
    Root,
    /// A variable that an enclosing expression has bound.
    Scoped(Slot),
    /// A variable of the command or stage: an index into `EvalContext::variables`.
    User(usize),
    /// The time of `$$NOW`.
    Now,
    /// The time of `$$CLUSTER_TIME`.
    ClusterTime,
    /// `$$REMOVE`: always missing.
    Remove,
    /// `$$DESCEND`, `$$PRUNE` or `$$KEEP`: a string with a meaning for `$redact`.
    Redact(&'static str),
    /// The roles of `$$USER_ROLES`.
    UserRoles,
}

impl ParseContext {
    /// Returns a context with the user variables `names`.
    pub fn with_user_variables<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let variables = names.into_iter();
        let variables: Vec<_> = variables
            .map(|name| UserVariable { name: name.as_ref().into(), known: None })
            .collect();
        ParseContext { variables: Arc::new(variables), ..ParseContext::default() }
    }

    /// Returns the context for documents that a search has found, which gives these kinds of metadata.
    #[must_use]
    pub fn with_metadata(&self, metadata: &'static [&'static str]) -> Self {
        ParseContext { metadata, ..self.clone() }
    }

    /// Returns the context without constant folding.
    pub fn without_folding(mut self) -> Self {
        self.no_folding = true;
        self
    }

    /// Returns the context for another statement: the limits on a request's parts and constants count
    /// from zero. A stage that compiles a statement of its own for each document needs it.
    pub fn restarted(&self) -> Self {
        ParseContext { folding: Folding::default(), ..self.clone() }
    }

    /// Returns the context for the pipeline at `place`.
    pub fn at(&self, place: Place) -> Self {
        let mut inner = self.clone();
        inner.place = Some(Arc::new(place));
        inner
    }

    /// Returns the context inside an expression that binds `name`, and the slot of the variable.
    pub fn bind(&self, name: &str) -> (Self, Slot) {
        self.bind_all(std::iter::once(name))
    }

    /// Returns the context inside an expression that binds `names`, and the slot of the first. The
    /// others have the next slots.
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

    /// Returns the context one level deeper. Fails with 15 Overflow beyond the limit.
    pub fn deeper(&self) -> Result<Self> {
        if self.depth >= EXPRESSION_DEPTH_MAX {
            let text = format!("Expression exceeded the maximum depth of {EXPRESSION_DEPTH_MAX}");
            return Err(Error::new(ErrorCode::Overflow, text));
        }
        let mut inner = self.clone();
        inner.depth += 1;
        Ok(inner)
    }

    /// Returns true outside any expression. Parsing an expression there ends with constant folding.
    pub(crate) fn is_outermost(&self) -> bool {
        self.depth == 0
    }

    /// Returns the meaning of `$$name`. Fails with 17276 if it is unknown.
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
