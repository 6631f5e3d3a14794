//! A safe interface to PCRE2. Only this file calls the C library.
//!
//! The library is called directly, because the crate `pcre2` supports neither limits for a match
//! nor callouts.

use pcre2_sys::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

unsafe extern "C" {
    /// Sets the function that is called at each item of a pattern compiled with
    /// `PCRE2_AUTO_CALLOUT`. The crate `pcre2-sys` does not declare it.
    fn pcre2_set_callout_8(
        context: *mut pcre2_match_context_8,
        callout: Option<unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> c_int;
}

/// The number of offset pairs in a thread's match data. A match that needs more allocates them.
const PAIRS_KEPT: usize = 16;

/// The largest stack for compiled code in bytes, for a match that exceeds the machine's stack.
const STACK_BYTES_MAX: usize = 8 << 20;

/// The most memory of one interpreted match, in KiB.
const HEAP_KIB_MAX: u32 = 64 << 10;

/// The options of one match.
pub(super) struct Limits<'w> {
    /// The most backtracking points at one starting position (PCRE2's match limit).
    pub steps_max: u32,
    /// The most nested backtracking points of an interpreted match.
    pub depth_max: u32,
    /// The last byte offset at which a match may begin; `None` for the end of the text.
    pub last_start: Option<usize>,
    /// The way in which the match is executed.
    pub mode: Mode,
    /// Called at each item of code that was compiled with `Code::watched`. If it returns true, the
    /// match ends with `PCRE2_ERROR_CALLOUT`.
    pub watch: Option<&'w mut dyn FnMut() -> bool>,
}

/// The way in which a match is executed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Compiled code on the machine's stack (32 KiB of it).
    Fast,
    /// Compiled code on a separate stack of at most `STACK_BYTES_MAX` bytes.
    LargeStack,
    /// The interpreter of PCRE2.
    Interpreter,
}

/// A pattern that PCRE2 refuses, with the library's message.
#[derive(Debug)]
pub(super) struct CompileError(pub String);

/// A compiled pattern.
pub(super) struct Code(NonNull<pcre2_code_8>);

// SAFETY: PCRE2 code is read-only after `compile` has returned, and the library documents that
// several threads may match with the same code at the same time.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `pcre2_compile_8` and is freed once.
        unsafe { pcre2_code_free_8(self.0.as_ptr()) }
    }
}

impl Code {
    /// Compiles `pattern` with PCRE2's option bits, to machine code if the platform supports that.
    pub fn compile(pattern: &str, options: u32) -> Result<Code, CompileError> {
        let (mut error, mut offset) = (0, 0);
        let options = options | PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT;
        // SAFETY: the length is that of the pattern, and the library copies what it needs.
        let code = unsafe {
            pcre2_compile_8(
                pattern.as_ptr(),
                pattern.len(),
                options,
                &mut error,
                &mut offset,
                ptr::null_mut(),
            )
        };
        let code = Code(NonNull::new(code).ok_or_else(|| CompileError(message(error)))?);
        // SAFETY: the code is valid, and no other thread has it yet. If a pattern cannot be
        // compiled to machine code, PCRE2 interprets it.
        unsafe { pcre2_jit_compile_8(code.0.as_ptr(), PCRE2_JIT_COMPLETE) };
        Ok(code)
    }

    /// Compiles the pattern with a callout before each item.
    pub fn watched(pattern: &str, options: u32) -> Result<Code, CompileError> {
        Code::compile(pattern, options | PCRE2_AUTO_CALLOUT)
    }

    /// Returns the number of groups, without the whole match.
    pub fn group_count(&self) -> usize {
        self.info(PCRE2_INFO_CAPTURECOUNT) as usize
    }

    /// Returns true if a match must begin at the first position.
    pub fn is_anchored(&self) -> bool {
        self.info(PCRE2_INFO_ALLOPTIONS) & PCRE2_ANCHORED != 0
    }

    fn info(&self, what: u32) -> u32 {
        let mut found: u32 = 0;
        // SAFETY: both requested values have the type `uint32_t`.
        unsafe { pcre2_pattern_info_8(self.0.as_ptr(), what, ptr::from_mut(&mut found).cast()) };
        found
    }

    /// Searches `text` from byte `start`, which must be the start of a character. If there is a
    /// match, calls `see` with the offsets of the first `pairs` groups; the pattern must have that
    /// many. The error is PCRE2's result code.
    pub fn search<T>(
        &self,
        text: &str,
        start: usize,
        pairs: usize,
        limits: Limits<'_>,
        see: impl FnOnce(&Pairs<'_>) -> T,
    ) -> Result<Option<T>, i32> {
        if !text.is_char_boundary(start) {
            return Err(PCRE2_ERROR_BADUTFOFFSET);
        }
        // An interpreted match leaves its frames in the match data, which is therefore not reused.
        if pairs > PAIRS_KEPT || limits.mode == Mode::Interpreter {
            return Scratch::new(pairs)?.search(self, text, start, pairs, limits, see);
        }
        SCRATCH.with(|place| {
            let mut scratch = place.take().map_or_else(|| Scratch::new(PAIRS_KEPT), Ok)?;
            let result = scratch.search(self, text, start, pairs, limits, see);
            place.set(Some(scratch));
            result
        })
    }
}

/// The byte offsets of a match and its groups.
pub(super) struct Pairs<'s>(&'s [usize]);

impl Pairs<'_> {
    /// Returns start and end of the group; `None` if it is not part of the match.
    pub fn get(&self, group: usize) -> Option<(usize, usize)> {
        let (start, end) = (*self.0.get(2 * group)?, *self.0.get(2 * group + 1)?);
        (start != usize::MAX && end != usize::MAX).then_some((start, end))
    }
}

thread_local! {
    /// The memory that a thread's matches reuse.
    static SCRATCH: Cell<Option<Scratch>> = const { Cell::new(None) };
}

/// The memory that a match needs besides code and text.
struct Scratch {
    context: NonNull<pcre2_match_context_8>,
    /// The settings of the context, if known. Setting them for each match would take longer than a
    /// short match.
    set: Option<Settings>,
    data: NonNull<pcre2_match_data_8>,
}

/// The limits of a match without callout and separate stack.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Settings {
    steps_max: u32,
    depth_max: u32,
    last_start: Option<usize>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: both come from their `create` functions and are freed once.
        unsafe {
            pcre2_match_data_free_8(self.data.as_ptr());
            pcre2_match_context_free_8(self.context.as_ptr());
        }
    }
}

impl Scratch {
    fn new(pairs: usize) -> Result<Scratch, i32> {
        // SAFETY: a null general context stands for malloc and free.
        let context = unsafe { pcre2_match_context_create_8(ptr::null_mut()) };
        let context = NonNull::new(context).ok_or(PCRE2_ERROR_NOMEMORY)?;
        // SAFETY: as above. The library takes 1 to 65,535 pairs; a pattern has fewer groups.
        let data = unsafe { pcre2_match_data_create_8(pairs as u32, ptr::null_mut()) };
        let Some(data) = NonNull::new(data) else {
            // SAFETY: the context was created above and nothing else knows it.
            unsafe { pcre2_match_context_free_8(context.as_ptr()) };
            return Err(PCRE2_ERROR_NOMEMORY);
        };
        // SAFETY: the context is valid.
        unsafe { pcre2_set_heap_limit_8(context.as_ptr(), HEAP_KIB_MAX) };
        Ok(Scratch { context, set: None, data })
    }

    fn search<T>(
        &mut self,
        code: &Code,
        text: &str,
        start: usize,
        pairs: usize,
        limits: Limits<'_>,
        see: impl FnOnce(&Pairs<'_>) -> T,
    ) -> Result<Option<T>, i32> {
        match self.run(code, text, start, limits) {
            PCRE2_ERROR_NOMATCH => Ok(None),
            code if code >= 0 => Ok(Some(see(&self.pairs(pairs)))),
            code => Err(code),
        }
    }

    fn run(&mut self, code: &Code, text: &str, start: usize, mut limits: Limits<'_>) -> i32 {
        let (context, stack) = (self.context.as_ptr(), Stack::of(limits.mode));
        let mut watch = limits.watch.take();
        let data = watch.as_mut().map_or(ptr::null_mut(), |watch| ptr::from_mut(watch).cast());
        let callout = watch.is_some().then_some(call_watch as unsafe extern "C" fn(_, _) -> _);
        let options = match limits.mode {
            Mode::Interpreter => PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
            _ => PCRE2_NO_UTF_CHECK,
        };
        let Limits { steps_max, depth_max, last_start, .. } = limits;
        let plain = callout.is_none() && stack.0.is_null();
        let wanted = plain.then_some(Settings { steps_max, depth_max, last_start });
        if wanted.is_none() || self.set != wanted {
            // SAFETY: the context is valid. `watch` and `stack` outlive the match. If they are set,
            // the next match sets all settings again.
            unsafe {
                pcre2_set_match_limit_8(context, steps_max);
                pcre2_set_depth_limit_8(context, depth_max);
                pcre2_set_offset_limit_8(context, last_start.unwrap_or(usize::MAX));
                pcre2_set_callout_8(context, callout, data);
                pcre2_jit_stack_assign_8(context, None, stack.0.cast());
            }
            self.set = wanted;
        }
        // SAFETY: context, data and code are valid. The text is valid UTF-8 and `start` is the
        // start of a character, so the check can be omitted.
        unsafe {
            pcre2_match_8(
                code.0.as_ptr(),
                text.as_ptr(),
                text.len(),
                start,
                options,
                self.data.as_ptr(),
                context,
            )
        }
    }

    /// Returns the first `count` pairs. `count` must not exceed the groups of the pattern that
    /// matched.
    fn pairs(&self, count: usize) -> Pairs<'_> {
        // SAFETY: the library's vector has two offsets for each pair and belongs to the match data.
        // A successful match has set those of all groups of its pattern.
        unsafe {
            let known = pcre2_get_ovector_count_8(self.data.as_ptr()) as usize;
            let first = pcre2_get_ovector_pointer_8(self.data.as_ptr());
            Pairs(std::slice::from_raw_parts(first, 2 * count.min(known)))
        }
    }
}

/// A stack for compiled code; null means the machine's stack.
struct Stack(*mut pcre2_jit_stack_8);

impl Stack {
    fn of(mode: Mode) -> Stack {
        match mode {
            Mode::Fast | Mode::Interpreter => Stack(ptr::null_mut()),
            // SAFETY: a null general context means malloc and free. A null result means that there
            // is no memory, and then the machine's stack is used.
            Mode::LargeStack => Stack(unsafe {
                pcre2_jit_stack_create_8(32 << 10, STACK_BYTES_MAX, ptr::null_mut())
            }),
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the stack comes from its `create` function, and no match is using it.
            unsafe { pcre2_jit_stack_free_8(self.0) }
        }
    }
}

/// PCRE2's callout function. `data` points to the `watch` of the running match.
unsafe extern "C" fn call_watch(_block: *mut c_void, data: *mut c_void) -> c_int {
    // SAFETY: `Scratch::run` sets `data` to a `&mut dyn FnMut` that outlives the match, and the
    // library calls this function only during that match.
    let watch = unsafe { &mut *data.cast::<&mut dyn FnMut() -> bool>() };
    if watch() { PCRE2_ERROR_CALLOUT } else { 0 }
}

/// Returns the library's text for a compile error.
fn message(code: i32) -> String {
    let mut text = [0u8; 256];
    // SAFETY: the length is that of the buffer, and the library terminates the text with a zero.
    let length = unsafe { pcre2_get_error_message_8(code, text.as_mut_ptr(), text.len()) };
    let known = text.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    String::from_utf8_lossy(known).into_owned()
}
