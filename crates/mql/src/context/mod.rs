//! The inputs of parsing and evaluation: variables, time, collation, memory, interrupts.
//!
//! `mql` reads no clock and draws no random numbers; its caller passes them in here.

mod parse;
mod shared;

use crate::expression::Column;
use crate::rounds::LoopCache;
use crate::work::{ELEMENTS_AT_ONCE, units};
use bumpalo::Bump;
use quire_document::memory::{self, Refused};
use quire_document::{Array, ArrayWriter, Doc, DocBuf, DocWriter, Value, limits};
use quire_error::{Error, ErrorCode, Result};
use std::cell::RefCell;

pub use parse::{Binding, EXPRESSION_DEPTH_MAX, Known, ParseContext, Slot, UserVariable};
pub use quire_document::Collator;
pub use shared::{InterruptCheck, MEMORY_BYTES_MAX, Shared};

/// Copies up to this length go into an arena without a check of the memory limit. To exceed the limit
/// with such copies takes a loop, and loops check it.
const UNCHARGED_BYTES: usize = 1024;

/// Arrays of up to this many bytes go into a vector without a look at the limit: counting their
/// elements would take as long as reading them, and such a vector has less than 256 KiB.
const UNCHARGED_ARRAY_BYTES: usize = 16 * 1024;

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
    /// The document that `$$ROOT` stands for.
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
    pub(crate) loop_cache: Option<&'a LoopCache<'a>>,
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
            loop_cache: None,
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
    pub(crate) fn with_loop_cache(self, loop_cache: &'a LoopCache<'a>) -> Self {
        EvalContext { loop_cache: Some(loop_cache), ..self }
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
        memory::reserve(wanted).map_err(|refused| self.shared.refused(refused))
    }

    /// Fails if a result under construction has grown past the memory limit, or was not allowed to
    /// grow: what a loop writes after that is left out, so that the loop may as well end.
    pub fn check_size(&self, bytes: usize) -> Result<()> {
        let past = (bytes > self.shared.memory_bytes_max).then_some(Refused::Evaluation);
        match past.or_else(memory::refused) {
            None => Ok(()),
            Some(refused) => Err(self.shared.refused(refused)),
        }
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
                Err(refused) => return Err(self.shared.refused(refused)),
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
