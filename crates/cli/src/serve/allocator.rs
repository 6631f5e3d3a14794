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

/// Sets an option that is a `bool`. A failure leaves it as it is, which is correct too.
#[cfg(not(target_env = "msvc"))]
fn set(name: &std::ffi::CStr, mut value: bool) {
    let none = std::ptr::null_mut();
    let (new, size) = ((&raw mut value).cast(), size_of::<bool>());
    // SAFETY: jemalloc reads the name up to its zero byte and copies the value. It writes nothing,
    // since the pointers for the old value are null.
    let _ = unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), none, none.cast(), new, size) };
}

#[cfg(target_env = "msvc")]
fn set(_name: &std::ffi::CStr, _value: bool) {}
