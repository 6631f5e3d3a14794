//! What the C library's allocator may keep: glibc gives threads up to eight arenas a core, and what
//! many writes have filled and freed in one is not used by the next. With one arena a core the
//! process levels off where the engine's buffers do (docs/benchmarks.md).

/// The most arenas: beyond it a core more costs more memory than it saves waiting.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS_MAX: usize = 8;

/// One arena a core for all threads that start from now on.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn bound_arenas() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let arenas = cores.clamp(2, ARENAS_MAX) as libc::c_int;
    // SAFETY: mallopt takes two numbers and locks the allocator while it changes its parameter. An
    // answer of 0 would leave the default, which is correct too.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
}

/// Other C libraries' allocators have no arenas for threads to leave behind.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn bound_arenas() {}
