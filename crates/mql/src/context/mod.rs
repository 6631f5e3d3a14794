//! The inputs of parsing and evaluation: variables, time, collation, memory limits, interrupts.
//!
//! `mql` reads no clock and draws no random numbers; its caller provides both.

mod folding;
mod interruptible;
mod loop_cache;
mod parse;
mod place;
mod shared;
pub(crate) mod work;

use crate::column::Column;
use bumpalo::Bump;
use quire_document::memory::{self, Refused};
use quire_document::{Array, ArrayWriter, Doc, DocBuf, DocWriter, Element, Value, limits};
use quire_error::{Error, ErrorCode, Result};
use std::cell::RefCell;
use work::{ELEMENTS_AT_ONCE, bytes_of};
pub use work::{sort_by, units};

pub(crate) use folding::Folding;
pub(crate) use interruptible::work_or_unwind;
pub use interruptible::{count_work, current_interrupt, interruptible, stoppable};
pub(crate) use loop_cache::{Constants, LoopCache};
pub use parse::{Binding, EXPRESSION_DEPTH_MAX, Known, ParseContext, Slot, UserVariable};
pub use place::{Inside, Place, ViewStages};
pub use quire_document::Collator;
pub use shared::{InterruptCheck, MEMORY_BYTES_MAX, Shared};

/// Copies of at most this length go into an arena without a check of the memory limit. Only a loop
/// can exceed the limit with such copies, and loops check it.
const UNCHARGED_BYTES: usize = 1024;

/// Arrays of at most this many bytes go into a vector without a check of the memory limit: counting
/// their elements would take as long as reading them, and such a vector has less than 256 KiB.
const UNCHARGED_ARRAY_BYTES: usize = 16 * 1024;

/// The largest number of variables whose values are measured or searched.
const KEPT_MAX: usize = 64;

/// The variables that one expression has bound during evaluation. A linked list, innermost first.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    /// The slot of the first variable; the others have the next slots.
    first: Slot,
    values: &'a [Option<Value<'a>>],
    outer: Option<&'a Frame<'a>>,
}

/// The input of evaluating an expression for one document. It is `Copy` and covariant in `'a`, so
/// it can be narrowed to an arena with a shorter life (`with_arena`).
#[derive(Clone, Copy, Debug)]
pub struct EvalContext<'a> {
    /// The arena for results that are not part of the document.
    pub arena: &'a Bump,
    /// The bytes in the arenas of the enclosing loops.
    outer_bytes: usize,
    /// The document of `$$ROOT`.
    pub root: Doc<'a>,
    /// The values of the user variables, in the order of `ParseContext::variables`.
    pub variables: &'a [Option<Value<'a>>],
    /// The document's metadata for `$meta`, with a field for each kind ("textScore", "recordId",
    /// ...).
    pub metadata: Option<Doc<'a>>,
    /// The part that all evaluations of the command share.
    pub shared: &'a Shared,
    frames: Option<&'a Frame<'a>>,
    extracted: Extracted<'a>,
    /// The cache of the enclosing loops.
    pub(crate) loop_cache: Option<&'a LoopCache<'a>>,
}

/// The values that an `Extractor` has read from the root document.
#[derive(Clone, Copy, Debug)]
enum Extracted<'a> {
    Nothing,
    /// A value for each slot.
    Values(&'a [Option<Value<'a>>]),
    /// A row of a batch, with one column for each slot.
    Row(&'a [Column<'a>], usize),
}

impl<'a> EvalContext<'a> {
    /// Returns a context for one document, without user variables and metadata.
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

    /// Returns the context for another document.
    pub fn with_root(self, root: Doc<'a>) -> Self {
        EvalContext { root, extracted: Extracted::Nothing, ..self }
    }

    /// Returns the context with the values that an `Extractor` has read from the root document.
    pub fn with_extracted(self, extracted: &'a [Option<Value<'a>>]) -> Self {
        EvalContext { extracted: Extracted::Values(extracted), ..self }
    }

    /// Returns the context with the extracted values of one document of a batch.
    pub(crate) fn with_row(self, columns: &'a [Column<'a>], row: usize) -> Self {
        EvalContext { extracted: Extracted::Row(columns, row), ..self }
    }

    /// Returns the extracted value for `slot`; `None` if nothing was extracted.
    #[inline]
    pub(crate) fn extracted(&self, slot: u32) -> Option<Option<Value<'a>>> {
        match self.extracted {
            Extracted::Nothing => None,
            Extracted::Values(values) => values.get(slot as usize).copied(),
            Extracted::Row(columns, row) => columns.get(slot as usize).map(|all| all.get(row)),
        }
    }

    /// Returns the context with values for the user variables.
    pub fn with_variables(self, variables: &'a [Option<Value<'a>>]) -> Self {
        EvalContext { variables, ..self }
    }

    /// Returns the context with metadata of the document.
    pub fn with_metadata(self, metadata: Option<Doc<'a>>) -> Self {
        EvalContext { metadata, ..self }
    }

    /// Returns the context with an arena that has a shorter life. A loop evaluates its body in a
    /// scratch arena, copies the results that it keeps (`EvalContext::copy` of the outer context),
    /// and resets the scratch arena.
    pub fn with_arena<'s>(self, arena: &'s Bump) -> EvalContext<'s>
    where
        'a: 's,
    {
        EvalContext { arena, outer_bytes: self.held(), ..self }
    }

    /// Returns the context with `bytes` more counted as held outside its arena.
    pub(crate) fn holding(self, bytes: usize) -> Self {
        EvalContext { outer_bytes: self.outer_bytes.saturating_add(bytes), ..self }
    }

    /// Returns the context with the cache of a loop.
    pub(crate) fn with_loop_cache(self, loop_cache: &'a LoopCache<'a>) -> Self {
        EvalContext { loop_cache: Some(loop_cache), ..self }
    }

    /// Returns the document and the values of the variables, the innermost first. They live longer
    /// than the results of this evaluation. At most [`KEPT_MAX`] of the variables are returned,
    /// because the callers ask for each field and for each iteration: with all variables, the work
    /// on a request would grow with the square of its length.
    pub(crate) fn kept(&self) -> impl Iterator<Item = Value<'a>> {
        [Value::Document(self.root)].into_iter().chain(self.bound().take(KEPT_MAX).flatten())
    }

    /// Returns the number of bytes of the document and the variables; `None` if there are more than
    /// [`KEPT_MAX`] variables.
    pub(crate) fn kept_bytes(&self) -> Option<usize> {
        match self.bound().nth(KEPT_MAX) {
            Some(_) => None,
            None => Some(self.kept().map(bytes_of).fold(0, usize::saturating_add)),
        }
    }

    fn bound(&self) -> impl Iterator<Item = Option<Value<'a>>> {
        let frames = std::iter::successors(self.frames, |frame| frame.outer);
        frames.map(|frame| frame.values).chain([self.variables]).flatten().copied()
    }

    /// Returns the context with a variable bound. The frame is allocated in the arena.
    pub fn bind(self, slot: Slot, value: Option<Value<'a>>) -> Self {
        self.bind_all(slot, self.arena.alloc([value]))
    }

    /// Returns the context with several variables bound; the first has the slot `first`.
    pub fn bind_all(self, first: Slot, values: &'a [Option<Value<'a>>]) -> Self {
        let frame = self.arena.alloc(Frame { first, values, outer: self.frames });
        EvalContext { frames: Some(frame), ..self }
    }

    /// Returns the value of a variable that an enclosing expression has bound.
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

    /// Returns the value of a variable.
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

    /// Returns the collator, if there is a collation.
    pub fn collator(&self) -> Option<&'a dyn Collator> {
        self.shared.collator.as_deref().map(|collator| collator as &dyn Collator)
    }

    /// Returns the bytes in this evaluation's arenas.
    fn held(&self) -> usize {
        self.outer_bytes + self.arena.allocated_bytes()
    }

    /// Fails if the operation was killed, or if the arenas exceed the memory limit. Loops call it
    /// every few thousand iterations, or after building a large value.
    pub fn check_limits(&self) -> Result<()> {
        self.charge(0)?;
        self.shared.check_interrupt()
    }

    /// Fails with 146 ExceededMemoryLimit if this evaluation may not use `bytes` more. Called
    /// before an allocation whose size depends on the input. Bytes in the arena count until it is
    /// freed; those of a temporary vector count only in this call.
    pub fn charge(&self, bytes: usize) -> Result<()> {
        let wanted = self.held().saturating_add(bytes);
        self.check_size(wanted)?;
        memory::reserve(wanted).map_err(|refused| self.shared.refused(refused))
    }

    /// Fails if a result under construction exceeds the memory limit, or was not allowed to grow. A
    /// loop that gets the error should end, because everything that it would write is left out.
    pub fn check_size(&self, bytes: usize) -> Result<()> {
        let past = (bytes > self.shared.memory_bytes_max).then_some(Refused::Evaluation);
        match past.or_else(memory::refused) {
            None => Ok(()),
            Some(refused) => Err(self.shared.refused(refused)),
        }
    }

    /// Fails with 15 Overflow if a result nests deeper than a reply may. Otherwise expressions and
    /// stages that use their own results could nest without limit, and comparing, hashing or
    /// printing a value recurses into it.
    pub fn check_depth(&self, value: Value<'_>) -> Result<()> {
        self.check_levels(value, limits::DEPTH_MAX)
    }

    /// Like `check_depth`, for a field of a result.
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

    /// Copies a string into the arena. Like all functions below, fails with 146 ExceededMemoryLimit
    /// beyond the memory limit.
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

    /// Returns the elements of an array in a vector, whose memory is charged before it is
    /// allocated.
    pub fn elements(&self, array: Array<'a>) -> Result<Vec<Value<'a>>> {
        self.charge_elements([array])?;
        Ok(array.to_vec())
    }

    /// Charges the memory of a vector of all elements of some arrays. Stops counting at the limit.
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

    /// Charges the memory of a vector of `count` values.
    pub fn charge_values(&self, count: usize) -> Result<()> {
        self.charge(count.saturating_mul(size_of::<Value<'_>>()))
    }

    /// Copies a value, with everything that it refers to, into this context's arena.
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

    /// Builds a document in the arena. `fill` may write as much as the memory limit leaves.
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

    /// Builds an array of copies of elements in the arena, without decoding them.
    pub(crate) fn array_of_elements<'v>(
        &self,
        elements: impl IntoIterator<Item = Element<'v>>,
    ) -> Result<Value<'a>> {
        self.array(|writer| self.push_elements(elements, writer)).map(Value::Array)
    }

    /// Appends all elements of an array.
    pub(crate) fn append(&self, array: Array<'_>, writer: &mut ArrayWriter<'_>) -> Result<()> {
        if writer.is_empty() {
            self.shared.work(work::units(array.as_bytes().len()))?;
            writer.append_all(array);
            return Ok(());
        }
        self.push_elements(array.as_doc().iter(), writer)
    }

    fn push_elements<'v>(
        &self,
        elements: impl IntoIterator<Item = Element<'v>>,
        writer: &mut ArrayWriter<'_>,
    ) -> Result<()> {
        for (at, element) in elements.into_iter().enumerate() {
            writer.push_element(element);
            if at % ELEMENTS_AT_ONCE == ELEMENTS_AT_ONCE - 1 {
                self.check_size(writer.len())?;
                self.shared.work(ELEMENTS_AT_ONCE as u32)?;
            }
        }
        Ok(())
    }

    /// Runs `write`, whose buffers may grow by what this evaluation may still hold.
    ///
    /// # Errors
    /// 146 ExceededMemoryLimit if a buffer was not allowed to grow.
    pub fn limited(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let left = self.shared.memory_bytes_max.saturating_sub(self.held());
        // If the limit refused memory, that is the error, whatever the result is.
        memory::limited(left, write).map_err(|refused| self.shared.refused(refused))?
    }

    fn build(&self, fill: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<&'a [u8]> {
        with_buffer(|buffer| {
            self.limited(|| fill(buffer))?;
            self.shared.work(units(buffer.len()))?;
            self.bytes(buffer)
        })
    }

    /// Copies an owned document into the arena.
    pub fn adopt(&self, doc: &DocBuf) -> Result<Doc<'a>> {
        self.bytes(doc.as_bytes()).map(Doc::from_valid_bytes)
    }
}

thread_local! {
    /// Buffers in which results grow, before they are copied to their arena with their final size.
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with an empty buffer of this thread. The buffer keeps its capacity for the next
/// call.
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
