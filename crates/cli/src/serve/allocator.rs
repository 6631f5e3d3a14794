//! What the allocator caches for the thread of a connection: freed pieces of memory, which the thread
//! can take again without a lock (docs/adr/0021-jemalloc.md). Thousands of idle connections would
//! keep that memory.

/// Turns the cache of the calling thread off, which frees what is in it, or on again.
pub(super) fn on_rest(rests: bool) {
    set_cache(!rests);
}

#[cfg(not(target_env = "msvc"))]
fn set_cache(mut enabled: bool) {
    let (value, size) = ((&raw mut enabled).cast(), size_of::<bool>());
    let none = std::ptr::null_mut();
    // SAFETY: the name ends with a zero byte, and this option is a `bool`, which jemalloc copies. It
    // writes nothing, since the pointers for the old value are null. A failure leaves the cache as
    // it is, which is correct too.
    let _ = unsafe {
        let name = c"thread.tcache.enabled".as_ptr();
        tikv_jemalloc_sys::mallctl(name, none, none.cast(), value, size)
    };
}

#[cfg(target_env = "msvc")]
fn set_cache(_enabled: bool) {}
