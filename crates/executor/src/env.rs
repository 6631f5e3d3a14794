//! The state that all stages of an execution share: variables, clock, limits, and views.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use bumpalo::Bump;
use parking_lot::Mutex;
use quire_catalog::Collection;
use quire_collections::{RecordId, View, Workspace, from_interruption};
use quire_document::{Doc, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::as_collator;
use quire_mql::context::{self, InterruptCheck};
use quire_mql::{Collation, EvalContext, Expression, Known, ParseContext, Shared, UserVariable};
use quire_storage::{Interrupt, Version};

use crate::params::ExecParams;
use crate::views::Views;

/// How long a scan keeps its view.
const VIEW_AGE_MAX: Duration = Duration::from_millis(100);

/// The interrupt of the command that runs now.
struct CurrentInterrupt(Mutex<Arc<Interrupt>>);

impl InterruptCheck for CurrentInterrupt {
    fn check(&self) -> Result<()> {
        self.0.lock().check().map_err(from_interruption)
    }
}

/// The environment of an execution; it does not change while the execution runs.
pub(crate) struct Env {
    pub params: ExecParams,
    /// The state that expressions share.
    pub shared: Shared,
    /// The context for parsing, with the variables and their values.
    pub parse: ParseContext,
    interrupt: Arc<CurrentInterrupt>,
    /// True if blocking stages may spill to disk.
    pub may_spill: bool,
    /// The number of queries that the planner has planned for the execution.
    pub queries_planned: AtomicU64,
}

impl Env {
    /// Evaluates the variables of `let`. `collation` compares strings.
    pub fn new(
        params: ExecParams,
        collation: Option<&Arc<Collation>>,
        let_vars: Doc<'_>,
        allow_disk_use: bool,
    ) -> Result<Self> {
        let interrupt = Arc::new(CurrentInterrupt(Mutex::new(Arc::clone(&params.interrupt))));
        let mut shared = Shared::new(params.now_ms)
            .with_random(quire_storage::rng::word)
            .with_interrupt(Arc::clone(&interrupt) as Arc<dyn InterruptCheck>);
        shared.cluster_time = params.cluster_time;
        shared.user_roles = params.user_roles.clone();
        shared.collator = as_collator(collation);
        let mut parse = ParseContext::default();
        parse.collator = as_collator(collation);
        parse.cluster_time = params.cluster_time.is_some();
        parse.api_strict = params.api_strict;
        parse.as_written = params.as_written;
        parse.interrupt = Some(Arc::clone(&interrupt) as Arc<dyn InterruptCheck>);
        if !let_vars.is_empty() {
            parse.variables = evaluate(let_vars, &parse, &shared)?;
        }
        let may_spill = allow_disk_use && params.spill_directory.is_some();
        let queries_planned = AtomicU64::new(0);
        Ok(Env { params, shared, parse, interrupt, may_spill, queries_planned })
    }

    /// Sets the interrupt of the command that runs next.
    pub fn set_interrupt(&self, interrupt: &Arc<Interrupt>) {
        *self.interrupt.0.lock() = Arc::clone(interrupt);
    }

    /// Runs `work`, which ends also within a long string under the collation of the request if the
    /// command must stop. Helper threads begin each of their parts with it.
    pub fn interruptible<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.shared.collator.is_none() { work() } else { self.always_interruptible(work) }
    }

    /// Runs `work`, which ends also within a long string, or where it counts its steps by
    /// `count_work`, if the command must stop. Writes need it because their indexes have collations of
    /// their own, searches because one document can have a million words or vertices.
    pub fn always_interruptible<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let interrupt = Arc::clone(&self.interrupt) as Arc<dyn InterruptCheck>;
        context::interruptible(&interrupt, work)
    }

    /// Returns the interrupt of the command that runs now.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt.0.lock())
    }

    /// Fails if the command must stop.
    pub fn check_interrupt(&self) -> Result<()> {
        self.interrupt.check()
    }

    /// Returns the directory in which a blocking stage may spill; `None` if it must not.
    pub fn spill_directory(&self) -> Option<&Path> {
        self.params.spill_directory.as_deref().filter(|_| self.may_spill)
    }

    /// Returns the workspace in which a blocking stage may spill; `None` if it must not.
    pub fn workspace(&self) -> Option<Workspace<'_>> {
        self.spill_directory().map(|directory| Workspace {
            directory,
            bytes_max: self.params.stage_bytes_max,
            interrupt: &*self.interrupt,
        })
    }

    /// Returns the error of a blocking stage that exceeds its memory and must not spill.
    pub fn memory_error(&self, stage: &str) -> Error {
        Error::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            format!(
                "{stage} exceeded memory limit of {} bytes, but did not opt in to external sorting. Aborting operation. Pass allowDiskUse:true to opt in.",
                self.params.stage_bytes_max
            ),
        )
    }

    /// Returns the values of the variables, for expressions.
    pub fn variable_values(&self) -> Vec<Option<Value<'_>>> {
        values(&self.parse.variables)
    }
}

/// Evaluates the variables of `let` in order: each may use those before it.
fn evaluate(
    let_vars: Doc<'_>,
    base: &ParseContext,
    shared: &Shared,
) -> Result<Arc<Vec<UserVariable>>> {
    // An expression in `let` may use earlier variables, but not the clock.
    let mut earlier = base.clone();
    earlier.no_clock = true;
    let arena = Bump::new();
    for (name, value) in let_vars.fields() {
        if matches!(name, "NOW" | "CLUSTER_TIME" | "USER_ROLES" | "JS_SCOPE" | "IS_MR") {
            let text = format!("Attempt to set system variable '{name}' as a let parameter");
            return Err(Error::location(4738901, text));
        }
        quire_mql::expression::check_variable_name(name, true)?;
        shared.check_interrupt()?;
        let expression = Expression::parse(value, &earlier)?;
        let reads = expression.dependencies();
        if reads.whole_document || !reads.paths.is_empty() {
            return Err(Error::location(
                4890500,
                "Command let Expression tried to access a field, but this is not allowed because Command let Expressions run before the query examines any documents.",
            ));
        }
        let value = {
            let needed = !reads.variables.is_empty();
            let values = if needed { values(&earlier.variables) } else { Vec::new() };
            let context = EvalContext::new(&arena, Doc::empty(), shared).with_variables(&values);
            let value = expression.eval(&context)?.map(ValueBuf::new);
            value.map_or(Known::Missing, Known::Value)
        };
        let variable = UserVariable { name: name.into(), known: Some(value) };
        // The list has no other reference, so it is not copied for each variable.
        Arc::make_mut(&mut earlier.variables).push(variable);
    }
    Ok(earlier.variables)
}

fn values(variables: &[UserVariable]) -> Vec<Option<Value<'_>>> {
    variables.iter().map(UserVariable::value).collect()
}

/// What evaluating an expression needs besides a document. All threads of a call share it.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'r> {
    pub env: &'r Env,
    /// The values of the user variables, in the order of `ParseContext::variables`.
    pub variables: &'r [Option<Value<'r>>],
}

/// One call of an execution: its views, its variables, and its environment.
pub(crate) struct Run<'r> {
    pub env: &'r Env,
    views: &'r mut dyn Views,
    variables: &'r [Option<Value<'r>>],
    /// Counts the replacements of the view. A leaf that was positioned on an older one repositions.
    pub generation: u64,
    /// An estimate of the rows that this call takes from the leaves: those of a batch, or all.
    pub wanted: usize,
    /// True if a statement writes the documents that are found.
    pub of_write: bool,
    /// Set by a leaf that follows commits, together with an answer that more rows follow: it has
    /// returned all rows of the commits up to this one. The stages above return without rows.
    pub nothing_yet: Option<Version>,
    /// Set by such a leaf if no commit can add rows.
    pub has_ended: bool,
    renewed: Instant,
}

impl<'r> Run<'r> {
    pub fn new(scope: Scope<'r>, views: &'r mut dyn Views, generation: u64) -> Self {
        let Scope { env, variables } = scope;
        Run {
            env,
            views,
            variables,
            generation,
            wanted: usize::MAX,
            of_write: false,
            nothing_yet: None,
            has_ended: false,
            renewed: Instant::now(),
        }
    }

    /// Returns what evaluating expressions needs in this call.
    pub fn scope(&self) -> Scope<'r> {
        Scope { env: self.env, variables: self.variables }
    }

    /// Returns the current view.
    pub fn view(&self) -> View<'_> {
        self.views.view()
    }

    /// Returns true if the counters of a collection may be newer than the view.
    pub fn may_be_old(&self) -> bool {
        self.views.may_be_old()
    }

    /// Runs `work` with these values of the variables, including those of the outer stages.
    pub fn bound<T>(
        &mut self,
        variables: &[Option<Value<'_>>],
        work: impl FnOnce(&mut Run<'_>) -> T,
    ) -> T {
        let mut inner = Run {
            env: self.env,
            views: &mut *self.views,
            variables,
            generation: self.generation,
            wanted: self.wanted,
            of_write: self.of_write,
            nothing_yet: None,
            has_ended: false,
            renewed: self.renewed,
        };
        let result = work(&mut inner);
        (self.generation, self.renewed) = (inner.generation, inner.renewed);
        result
    }

    /// Runs `work`, which reads its whole input.
    pub fn for_all<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.wanting(usize::MAX, work)
    }

    /// Runs `work`, which takes about `rows` rows from its input.
    pub fn wanting<T>(&mut self, rows: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let wanted = std::mem::replace(&mut self.wanted, rows);
        let result = work(self);
        self.wanted = wanted;
        result
    }

    /// Checks the interrupt, and replaces a view that has been held for long. Leaves call it before
    /// each page, while they hold no data of the view.
    pub fn pause(&mut self) -> Result<()> {
        self.env.check_interrupt()?;
        if self.renewed.elapsed() < VIEW_AGE_MAX || self.views.is_pinned() {
            return Ok(());
        }
        self.views.renew()?;
        self.note_renewal();
        Ok(())
    }

    /// Replaces the view by one that knows which record ids of a collection are settled, and returns
    /// their bound: [`View::settled_below`]. A pinned view has no bound.
    pub fn settle(&mut self, collection: &Collection) -> Result<RecordId> {
        self.env.check_interrupt()?;
        if !self.views.is_pinned() {
            self.views.renew_settled(collection)?;
            self.note_renewal();
        }
        Ok(self.view().settled_below(collection).unwrap_or(RecordId::MAX))
    }

    fn note_renewal(&mut self) {
        self.renewed = Instant::now();
        self.generation += 1;
    }
}
