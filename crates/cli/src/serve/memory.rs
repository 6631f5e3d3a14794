//! What the C library's allocator may keep. glibc gives threads up to eight arenas a core, and gives
//! back only what is free at an arena's end: the engine's write buffers, filled by connections and
//! freed by its own threads, leave holes of several times their size (docs/benchmarks.md). So there
//! is one arena a core, and holes go back to the system after every [`TRIM_AFTER_BYTES`] of writes.

use quire_storage::EngineStats;

/// Bytes written after which it does.
const TRIM_AFTER_BYTES: u64 = 64 << 20;

/// Gives memory back as writes go on.
#[derive(Default)]
pub(crate) struct Trimmer {
    /// What the engine had written at the last time.
    written: u64,
}

impl Trimmer {
    /// Gives holes back to the system if enough was written since the last time.
    pub fn look(&mut self, stats: &EngineStats) {
        let written = stats.written_bytes;
        if written.saturating_sub(self.written) >= TRIM_AFTER_BYTES {
            self.written = written;
            allocator::trim();
        }
    }
}

/// One arena a core for all threads that start from now on.
pub(crate) fn bound_arenas() {
    allocator::bound_arenas();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    /// The most arenas: beyond it a core more costs more memory than it saves waiting.
    const ARENAS_MAX: usize = 8;

    pub fn bound_arenas() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = cores.clamp(2, ARENAS_MAX) as libc::c_int;
        // SAFETY: mallopt takes two numbers and locks the allocator while it changes its parameter.
        // An answer of 0 would leave the default, which is correct too.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
    }

    pub fn trim() {
        // SAFETY: malloc_trim takes a number, locks each arena in turn, and touches only free memory.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}

/// Other C libraries' allocators leave no such holes behind, or cannot be told.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub fn bound_arenas() {}

    pub fn trim() {}
}
