//! What parsing and evaluating need from outside: variables, clock, collation, memory, interrupts.
//!
//! `mql` asks no clock, no random source and no thread; whoever runs it passes them in here.

use crate::expression::{Column, Folding};
use crate::rounds::Landmarks;
use crate::stage::Place;
use crate::work::{ELEMENTS_AT_ONCE, units};
use bumpalo::Bump;
use quire_document::memory::{self, Refused};
use quire_document::{
    Array, ArrayWriter, Doc, DocBuf, DocWriter, Timestamp, Value, ValueBuf, limits,
};
use quire_error::{Error, ErrorCode, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub use quire_document::Collator;

/// How deep an expression or a value may nest (MongoDB's BSON depth limit).
pub const EXPRESSION_DEPTH_MAX: u32 = 200;

/// Bytes one evaluation may hold before it answers `ExceededMemoryLimit` (146).
pub const MEMORY_BYTES_MAX: usize = 100 * 1024 * 1024;

/// Copies up to this length go into an arena without a look at the limit: so many of them as
/// matter take long, and loops look at it.
const UNCHARGED_BYTES: usize = 1024;

/// Arrays of up to this many bytes go into a vector without a look at the limit: counting their
/// elements would take as long as reading them, and such a vector has less than 256 KiB.
const UNCHARGED_ARRAY_BYTES: usize = 16 * 1024;

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
    /// Constants are not folded (tests compare with and without).
    pub no_folding: bool,
    /// What folding the request's constants has taken.
    pub(crate) folding: Folding,
    /// Variables bound by enclosing expressions.
    scope: Arc<HashMap<Box<str>, Slot>>,
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
    /// A value.
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
pub struct Slot(u32);

/// What a variable's name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// `$$ROOT`, and `$$CURRENT` where nothing rebinds it.
    Root,
    /// Bound by an enclosing expression.
    Scoped(Slot),
    /// Given with the command or stage: an index into `EvalContext::variables`.
    User(usize),
    /// `$$NOW`.
    Now,
    /// `$$CLUSTER_TIME`.
    ClusterTime,
    /// `$$REMOVE`: always missing.
    Remove,
    /// `$$DESCEND`, `$$PRUNE`, `$$KEEP`: a string that `$redact` knows.
    Redact(&'static str),
    /// `$$USER_ROLES`.
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
        let scope = Arc::make_mut(&mut inner.scope);
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
        if let Some(slot) = self.scope.get(name) {
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

/// A source of random 64-bit words.
pub type RandomSource = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Answers an error once the operation was killed or its deadline passed.
pub type InterruptCheck = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// What all evaluations of one command share.
#[derive(Clone)]
pub struct Shared {
    /// `$$NOW` in milliseconds since the epoch: one reading for the whole command.
    pub now_ms: i64,
    /// `$$CLUSTER_TIME`.
    pub cluster_time: Option<Timestamp>,
    /// `$$USER_ROLES`: an array of role documents.
    pub user_roles: Option<ValueBuf>,
    /// Compares strings.
    pub collator: Option<Arc<dyn Collator>>,
    /// Bytes one evaluation may take from its arena.
    pub memory_bytes_max: usize,
    random: Option<RandomSource>,
    interrupt: Option<InterruptCheck>,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            now_ms: 0,
            cluster_time: None,
            user_roles: None,
            collator: None,
            memory_bytes_max: MEMORY_BYTES_MAX,
            random: None,
            interrupt: None,
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("now_ms", &self.now_ms).finish_non_exhaustive()
    }
}

impl Shared {
    /// A shared context whose `$$NOW` is `now_ms`.
    pub fn new(now_ms: i64) -> Self {
        Shared { now_ms, ..Shared::default() }
    }

    /// The same with a random source (`$rand`, `$sampleRate`).
    pub fn with_random(mut self, random: RandomSource) -> Self {
        self.random = Some(random);
        self
    }

    /// The same with an interrupt check; loops over long input call it.
    pub fn with_interrupt(mut self, interrupt: InterruptCheck) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// The same with a collation.
    pub fn with_collator(mut self, collator: Option<Arc<dyn Collator>>) -> Self {
        self.collator = collator;
        self
    }

    /// A random word; an error where no source was given.
    pub fn random(&self) -> Result<u64> {
        match &self.random {
            Some(random) => Ok(random()),
            None => Err(Error::internal("no random source in this context")),
        }
    }

    /// Fails if the operation was killed or its deadline passed.
    pub fn check_interrupt(&self) -> Result<()> {
        self.interrupt.as_ref().map_or(Ok(()), |check| check())
    }
}

/// The variables that one expression bound during evaluation; a linked list, innermost first.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    /// The slot of the first; the others follow.
    first: Slot,
    values: &'a [Option<Value<'a>>],
    outer: Option<&'a Frame<'a>>,
}

/// What evaluating an expression for one document needs. `Copy` and covariant in `'a`, so a
/// context may be narrowed to a shorter-lived arena (`with_arena`).
#[derive(Clone, Copy, Debug)]
pub struct EvalContext<'a> {
    /// Where results that stand nowhere else are built.
    pub arena: &'a Bump,
    /// Bytes that the arenas around this one hold: those of the loops that this evaluation is in.
    outer_bytes: usize,
    /// `$$ROOT`.
    pub root: Doc<'a>,
    /// Values of the user variables, in the order of `ParseContext::variables`.
    pub variables: &'a [Option<Value<'a>>],
    /// Per-document metadata for `$meta`: a field for each kind ("textScore", "recordId", ...).
    pub metadata: Option<Doc<'a>>,
    /// What the whole command shares.
    pub shared: &'a Shared,
    frames: Option<&'a Frame<'a>>,
    extracted: Extracted<'a>,
    /// What the loops around this evaluation remember.
    pub(crate) landmarks: Option<&'a Landmarks<'a>>,
}

/// What an `Extractor` has taken from the root document.
#[derive(Clone, Copy, Debug)]
enum Extracted<'a> {
    Nothing,
    /// A value for each slot.
    Values(&'a [Option<Value<'a>>]),
    /// A row of a batch's columns, one for each slot.
    Row(&'a [Column<'a>], usize),
}

impl<'a> EvalContext<'a> {
    /// A context for one document, without user variables and metadata.
    pub fn new(arena: &'a Bump, root: Doc<'a>, shared: &'a Shared) -> Self {
        EvalContext {
            arena,
            outer_bytes: 0,
            root,
            variables: &[],
            metadata: None,
            shared,
            frames: None,
            extracted: Extracted::Nothing,
            landmarks: None,
        }
    }

    /// The same for another document.
    pub fn with_root(self, root: Doc<'a>) -> Self {
        EvalContext { root, extracted: Extracted::Nothing, ..self }
    }

    /// The same with the values that an `Extractor` has taken from the root document.
    pub fn with_extracted(self, extracted: &'a [Option<Value<'a>>]) -> Self {
        EvalContext { extracted: Extracted::Values(extracted), ..self }
    }

    /// The same with those of one document of a batch.
    pub(crate) fn with_row(self, columns: &'a [Column<'a>], row: usize) -> Self {
        EvalContext { extracted: Extracted::Row(columns, row), ..self }
    }

    /// The value that was extracted for `slot`; `None` if nothing was extracted there.
    #[inline]
    pub(crate) fn extracted(&self, slot: u32) -> Option<Option<Value<'a>>> {
        match self.extracted {
            Extracted::Nothing => None,
            Extracted::Values(values) => values.get(slot as usize).copied(),
            Extracted::Row(columns, row) => columns.get(slot as usize).map(|all| all.get(row)),
        }
    }

    /// The same with values for the user variables.
    pub fn with_variables(self, variables: &'a [Option<Value<'a>>]) -> Self {
        EvalContext { variables, ..self }
    }

    /// The same with metadata of the document.
    pub fn with_metadata(self, metadata: Option<Doc<'a>>) -> Self {
        EvalContext { metadata, ..self }
    }

    /// The same with a shorter-lived arena: loops evaluate their body in a scratch arena, copy
    /// what they keep (`EvalContext::copy` of the outer context), and reset the scratch.
    pub fn with_arena<'s>(self, arena: &'s Bump) -> EvalContext<'s>
    where
        'a: 's,
    {
        EvalContext { arena, outer_bytes: self.held(), ..self }
    }

    /// The same where the evaluation around it holds `bytes` more outside of its arenas.
    pub(crate) fn holding(self, bytes: usize) -> Self {
        EvalContext { outer_bytes: self.outer_bytes.saturating_add(bytes), ..self }
    }

    /// The same within a loop that remembers.
    pub(crate) fn with_landmarks(self, landmarks: &'a Landmarks<'a>) -> Self {
        EvalContext { landmarks: Some(landmarks), ..self }
    }

    /// The document and the values of all variables: they outlive what is evaluated here.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Value<'a>> {
        let frames = std::iter::successors(self.frames, |frame| frame.outer);
        let values = frames.map(|frame| frame.values).chain([self.variables]);
        [Value::Document(self.root)].into_iter().chain(values.flatten().copied().flatten())
    }

    /// The same with a variable bound; the frame lives in the arena.
    pub fn bind(self, slot: Slot, value: Option<Value<'a>>) -> Self {
        self.bind_all(slot, self.arena.alloc([value]))
    }

    /// The same with several bound, the first of them at the slot `first`.
    pub fn bind_all(self, first: Slot, values: &'a [Option<Value<'a>>]) -> Self {
        let frame = self.arena.alloc(Frame { first, values, outer: self.frames });
        EvalContext { frames: Some(frame), ..self }
    }

    /// The value of a variable bound by an enclosing expression.
    pub fn scoped(&self, slot: Slot) -> Option<Value<'a>> {
        let mut frame = self.frames;
        while let Some(here) = frame {
            let place = slot.0.checked_sub(here.first.0);
            if let Some(value) = place.and_then(|place| here.values.get(place as usize)) {
                return *value;
            }
            frame = here.outer;
        }
        None
    }

    /// The value of a variable.
    pub fn variable(&self, binding: Binding) -> Option<Value<'a>> {
        match binding {
            Binding::Root => Some(Value::Document(self.root)),
            Binding::Scoped(slot) => self.scoped(slot),
            Binding::User(index) => self.variables.get(index).copied().flatten(),
            Binding::Now => Some(Value::Date(self.shared.now_ms)),
            Binding::ClusterTime => self.shared.cluster_time.map(Value::Timestamp),
            Binding::Remove => None,
            Binding::Redact(word) => Some(Value::String(word)),
            Binding::UserRoles => Some(match &self.shared.user_roles {
                Some(roles) => roles.as_value(),
                None => Value::Array(Array::empty()),
            }),
        }
    }

    /// The collation's order of strings, if there is one.
    pub fn collator(&self) -> Option<&'a dyn Collator> {
        self.shared.collator.as_deref().map(|collator| collator as &dyn Collator)
    }

    /// Bytes that this evaluation's arenas hold.
    fn held(&self) -> usize {
        self.outer_bytes + self.arena.allocated_bytes()
    }

    /// Fails if the operation was killed, or if the arenas hold more than they may.
    /// For loops: every few thousand rounds, or after building something big.
    pub fn check_limits(&self) -> Result<()> {
        self.charge(0)?;
        self.shared.check_interrupt()
    }

    /// Fails with 146 if this evaluation may not hold `bytes` more. Called before they are
    /// allocated, for allocations that grow with the input. The bytes count as long as they are in
    /// the arena; those of a temporary vector count in this call only.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        let wanted = self.held().saturating_add(bytes);
        self.check_size(wanted)?;
        memory::reserve(wanted).map_err(|refused| self.refused(refused))
    }

    /// Fails if a result under construction has grown past the memory limit, or was not allowed to
    /// grow: what a loop writes after that is left out, so that the loop may as well end.
    pub fn check_size(&self, bytes: usize) -> Result<()> {
        let past = (bytes > self.shared.memory_bytes_max).then_some(Refused::Evaluation);
        match past.or_else(memory::refused) {
            None => Ok(()),
            Some(refused) => Err(self.refused(refused)),
        }
    }

    #[cold]
    fn refused(&self, refused: Refused) -> Error {
        let text = match refused {
            Refused::Evaluation => format!(
                "Expression used too much memory. Memory limit: {} bytes",
                self.shared.memory_bytes_max
            ),
            Refused::Process => process_memory(),
        };
        Error::new(ErrorCode::ExceededMemoryLimit, text)
    }

    /// Fails with 15 Overflow if a result nests deeper than a reply may: expressions and stages
    /// that feed on their own results could go on for ever, and whatever compares, hashes or
    /// prints a value goes down into it.
    pub fn check_depth(&self, value: Value<'_>) -> Result<()> {
        self.check_levels(value, limits::DEPTH_MAX)
    }

    /// The same for a field of a result.
    pub(crate) fn check_field_depth(&self, value: Value<'_>) -> Result<()> {
        self.check_levels(value, limits::DEPTH_MAX - 1)
    }

    fn check_levels(&self, value: Value<'_>, levels: usize) -> Result<()> {
        let doc = match value {
            Value::Document(doc) => doc,
            Value::Array(array) => array.as_doc(),
            _ => return Ok(()),
        };
        if doc.nests_within(levels) {
            return Ok(());
        }
        let text = format!("a result exceeds the limit of {} levels of nesting", limits::DEPTH_MAX);
        Err(Error::new(ErrorCode::Overflow, text))
    }

    /// Copies a string into the arena. Fails with 146 past the memory limit, as all that follow.
    pub fn string(&self, text: &str) -> Result<Value<'a>> {
        self.text(text).map(Value::String)
    }

    fn text(&self, text: &str) -> Result<&'a str> {
        if text.len() > UNCHARGED_BYTES {
            self.charge(text.len())?;
        }
        Ok(self.arena.alloc_str(text))
    }

    /// Copies bytes into the arena.
    pub fn bytes(&self, bytes: &[u8]) -> Result<&'a [u8]> {
        if bytes.len() > UNCHARGED_BYTES {
            self.charge(bytes.len())?;
        }
        Ok(self.arena.alloc_slice_copy(bytes))
    }

    /// The elements of an array in a vector, charged before it is made.
    pub fn elements(&self, array: Array<'a>) -> Result<Vec<Value<'a>>> {
        self.charge_elements([array])?;
        Ok(array.to_vec())
    }

    /// Charges a vector of all elements of some arrays. Counts no further than the limit goes.
    pub fn charge_elements(
        &self,
        arrays: impl IntoIterator<Item = Array<'a>> + Clone,
    ) -> Result<()> {
        let bytes: usize = arrays.clone().into_iter().map(|array| array.as_bytes().len()).sum();
        if bytes <= UNCHARGED_ARRAY_BYTES {
            return Ok(());
        }
        let mut count = 0;
        for array in arrays {
            count += self.count(array)?;
            self.charge_values(count)?;
        }
        Ok(())
    }

    /// Charges a vector of `count` values.
    pub fn charge_values(&self, count: usize) -> Result<()> {
        self.charge(count.saturating_mul(size_of::<Value<'_>>()))
    }

    /// Copies a value (all that it refers to) into this context's arena.
    pub fn copy(&self, value: Value<'_>) -> Result<Value<'a>> {
        use quire_document::{Binary, CodeWithScope, DbPointer, Regex};
        Ok(match value {
            Value::String(s) => Value::String(self.text(s)?),
            Value::Code(s) => Value::Code(self.text(s)?),
            Value::Symbol(s) => Value::Symbol(self.text(s)?),
            Value::Document(doc) => {
                Value::Document(Doc::from_valid_bytes(self.bytes(doc.as_bytes())?))
            }
            Value::Array(array) => {
                Value::Array(Array::from_valid_bytes(self.bytes(array.as_bytes())?))
            }
            Value::Binary(binary) => {
                let bytes = self.bytes(binary.bytes)?;
                Value::Binary(Binary { subtype: binary.subtype, bytes })
            }
            Value::Regex(regex) => Value::Regex(Regex {
                pattern: self.text(regex.pattern)?,
                options: self.text(regex.options)?,
            }),
            Value::DbPointer(pointer) => Value::DbPointer(DbPointer {
                namespace: self.text(pointer.namespace)?,
                id: pointer.id,
            }),
            Value::CodeWithScope(code) => {
                let scope = Doc::from_valid_bytes(self.bytes(code.scope.as_bytes())?);
                Value::CodeWithScope(CodeWithScope { code: self.text(code.code)?, scope })
            }
            Value::Double(number) => Value::Double(number),
            Value::Undefined => Value::Undefined,
            Value::ObjectId(id) => Value::ObjectId(id),
            Value::Bool(flag) => Value::Bool(flag),
            Value::Date(ms) => Value::Date(ms),
            Value::Null => Value::Null,
            Value::Int32(number) => Value::Int32(number),
            Value::Timestamp(timestamp) => Value::Timestamp(timestamp),
            Value::Int64(number) => Value::Int64(number),
            Value::Decimal(decimal) => Value::Decimal(decimal),
            Value::MinKey => Value::MinKey,
            Value::MaxKey => Value::MaxKey,
        })
    }

    /// Builds a document in the arena. `fill` may write as much as the evaluation may still hold.
    pub fn document(&self, fill: impl FnOnce(&mut DocWriter<'_>) -> Result<()>) -> Result<Doc<'a>> {
        self.build(|buffer| fill(&mut DocWriter::new(buffer))).map(Doc::from_valid_bytes)
    }

    /// Builds an array in the arena, within the same limit.
    pub fn array(
        &self,
        fill: impl FnOnce(&mut ArrayWriter<'_>) -> Result<()>,
    ) -> Result<Array<'a>> {
        self.build(|buffer| fill(&mut ArrayWriter::new(buffer))).map(Array::from_valid_bytes)
    }

    /// Builds an array of values in the arena.
    pub fn array_of(&self, values: impl IntoIterator<Item = Value<'a>>) -> Result<Value<'a>> {
        let array = self.array(|writer| {
            for (at, value) in values.into_iter().enumerate() {
                writer.push(value);
                if at % ELEMENTS_AT_ONCE == ELEMENTS_AT_ONCE - 1 {
                    self.check_size(writer.len())?;
                    self.shared.work(ELEMENTS_AT_ONCE as u32)?;
                }
            }
            Ok(())
        });
        array.map(Value::Array)
    }

    fn build(&self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<&'a [u8]> {
        with_buffer(|buffer| {
            let left = self.shared.memory_bytes_max.saturating_sub(self.held());
            // What the limit refused is the error, whatever came of it.
            match memory::limited(left, || fill(buffer)) {
                Ok(filled) => filled?,
                Err(refused) => return Err(self.refused(refused)),
            }
            self.shared.work(units(buffer.len()))?;
            self.bytes(buffer)
        })
    }

    /// Takes a document that owns its bytes into the arena.
    pub fn adopt(&self, doc: &DocBuf) -> Result<Doc<'a>> {
        self.bytes(doc.as_bytes()).map(Doc::from_valid_bytes)
    }
}

/// The text of the error where the process has no memory left for a request.
pub fn process_memory() -> String {
    format!(
        "The requests of this server together use too much memory. Memory limit: {} bytes",
        memory::pool_bytes_max()
    )
}

thread_local! {
    /// Buffers in which results grow before they are copied to their arena at their final size.
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with an empty buffer of this thread, which keeps its capacity for the next.
fn with_buffer<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    const KEPT_BYTES_MAX: usize = 1 << 20;
    let mut buffer = BUFFERS.with(|free| free.borrow_mut().pop()).unwrap_or_default();
    buffer.clear();
    let result = work(&mut buffer);
    if buffer.capacity() <= KEPT_BYTES_MAX {
        BUFFERS.with(|free| free.borrow_mut().push(buffer));
    }
    result
}
