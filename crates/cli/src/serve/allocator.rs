//! What the server changes in jemalloc while it runs (docs/adr/0021-jemalloc.md). The options that
//! hold from the start are in `.cargo/config.toml`.

/// Starts threads that return unused memory to the system also while nothing is allocated. Some
/// systems have none; memory goes back with later allocations there.
pub(super) fn return_memory_when_idle() {
    set(c"background_thread", true);
}

/// Turns the cache of the calling thread off, which frees what is in it, or on again. With a cache
/// the thread takes and frees memory without a lock; those of thousands of idle connections would
/// keep much.
pub(super) fn on_rest(rests: bool) {
    set(c"thread.tcache.enabled", !rests);
}

/// The milliseconds after which unused pages go back to the system: usually, as
/// `.cargo/config.toml` has it, and while memory is scarce.
const DECAY_MS: isize = 10_000;
const DECAY_SCARCE_MS: isize = 250;

/// Returns unused pages to the system sooner while the memory of requests is scarce. Large pieces
/// that are taken and freed all the time would otherwise keep as many pages again (measured:
/// 1,761 MiB with 761 in use).
pub(super) fn on_scarcity(is_scarce: bool) {
    let decay_ms = if is_scarce { DECAY_SCARCE_MS } else { DECAY_MS };
    for arena in 0..arenas() {
        let name = std::ffi::CString::new(format!("arena.{arena}.dirty_decay_ms"));
        if let Ok(name) = name {
            set(&name, decay_ms);
        }
    }
}

/// Returns the number of arenas that threads use. One more has the pieces of at least 8 MiB; it
/// returns their pages at once, as jemalloc has set it up.
#[cfg(not(target_env = "msvc"))]
fn arenas() -> u32 {
    let (mut arenas, mut size) = (0_u32, size_of::<u32>());
    let (old, none) = ((&raw mut arenas).cast(), std::ptr::null_mut());
    // SAFETY: jemalloc reads the name up to its zero byte and writes a `u32`, the type of this
    // option, if `size` is that of the type. Otherwise it writes at most `size` bytes.
    let _ =
        unsafe { tikv_jemalloc_sys::mallctl(c"opt.narenas".as_ptr(), old, &raw mut size, none, 0) };
    arenas
}

#[cfg(target_env = "msvc")]
fn arenas() -> u32 {
    0
}

/// Sets an option of this type. A failure leaves it as it is, which is correct too.
#[cfg(not(target_env = "msvc"))]
fn set<T: Copy>(name: &std::ffi::CStr, mut value: T) {
    let none = std::ptr::null_mut();
    let (new, size) = ((&raw mut value).cast(), size_of::<T>());
    // SAFETY: jemalloc reads the name up to its zero byte and copies the value if `size` is that of
    // the option. It writes nothing, since the pointers for the old value are null.
    let _ = unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), none, none.cast(), new, size) };
}

#[cfg(target_env = "msvc")]
fn set<T: Copy>(_name: &std::ffi::CStr, _value: T) {}
