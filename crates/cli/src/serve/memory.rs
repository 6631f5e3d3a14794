//! Limits the memory that the C library's allocator keeps. glibc gives threads up to eight arenas a
//! core, and returns only free memory at the end of an arena to the system. The engine's write
//! buffers and the blocks of its cache are filled by one thread and freed by another, and leave
//! holes of several times their size (docs/benchmarks.md). So there is one arena a core, and holes
//! are returned to the system: at once from [`HOLES_BYTES_MAX`] on, smaller ones some seconds later.
//! A process that is smaller than that keeps them.

/// The unused resident bytes from which on memory is returned right after the last return.
const HOLES_BYTES_MAX: u64 = 64 << 20;
/// The smallest limit: it is halved at each check that returns nothing.
const HOLES_BYTES_MIN: u64 = 8 << 20;
/// The page size in `/proc`, for systems with 4 KiB pages. On a system with larger pages the
/// resident memory looks smaller, and less memory is returned.
const PAGE_BYTES: u64 = 4096;
/// Checks between two calls that query the allocator, which walks its free lists for the answer.
const LOOKS: u32 = 2;

/// Returns memory to the system, after writes and after reads.
pub(crate) struct Trimmer {
    looks: u32,
    /// The unused bytes beyond `kept` from which on memory is returned.
    limit: u64,
    /// The resident bytes that stayed unused after the last return: text, stacks, pieces smaller
    /// than a page.
    kept: u64,
}

impl Default for Trimmer {
    fn default() -> Self {
        Trimmer { looks: 0, limit: HOLES_BYTES_MAX, kept: 0 }
    }
}

impl Trimmer {
    /// Checks the resident memory, and returns holes to the system if they are large.
    pub fn look(&mut self) {
        self.looks += 1;
        if self.looks < LOOKS {
            return;
        }
        self.looks = 0;
        if let Some(resident) = resident_bytes().filter(|bytes| *bytes > HOLES_BYTES_MAX) {
            let unused = |resident: u64| resident.saturating_sub(allocator::used_bytes());
            self.check(unused(resident), || {
                allocator::trim();
                unused(resident_bytes().unwrap_or(resident))
            });
        }
    }

    /// Calls `trim` if many of the resident bytes are unused. It returns how many are unused then.
    fn check(&mut self, unused: u64, trim: impl FnOnce() -> u64) {
        self.kept = self.kept.min(unused);
        if unused < self.kept + self.limit {
            self.limit = HOLES_BYTES_MIN.max(self.limit / 2);
            return;
        }
        self.kept = trim();
        self.limit = HOLES_BYTES_MAX;
    }
}

/// Returns the resident memory of this process; `None` if the system does not report it.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// Sets one arena a core for all threads that start later.
pub(crate) fn bound_arenas() {
    allocator::bound_arenas();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    /// The largest number of arenas: more arenas cost more memory than they save waiting.
    const ARENAS_MAX: usize = 8;

    pub fn bound_arenas() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = cores.clamp(2, ARENAS_MAX) as libc::c_int;
        // SAFETY: mallopt takes two numbers and locks the allocator while it changes its parameter.
        // A return of 0 leaves the default, which is correct too.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
    }

    /// Returns the number of allocated bytes.
    pub fn used_bytes() -> u64 {
        // SAFETY: mallinfo2 has no arguments, and locks each arena in turn while it counts.
        let info = unsafe { libc::mallinfo2() };
        (info.uordblks as u64).saturating_add(info.hblkhd as u64)
    }

    pub fn trim() {
        // SAFETY: malloc_trim takes a number, locks each arena in turn, and touches only free memory.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}

/// The allocators of other C libraries do not leave such holes, or cannot be controlled.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub fn bound_arenas() {}

    pub fn used_bytes() -> u64 {
        u64::MAX
    }

    pub fn trim() {}
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    const PIECE: usize = 8 << 10;
    const PIECES: usize = 24 << 10;
    /// One piece in this many stays in use, so that the C library returns nothing by itself.
    const KEPT: usize = 64;

    /// A regression test: memory of cache blocks and of rows that were read stayed with the
    /// process, because only writes returned memory.
    #[test]
    fn memory_that_reads_have_freed_goes_back_to_the_system() {
        let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![7; PIECE]).collect();
        let freed = (PIECE * (PIECES - PIECES / KEPT)) as u64;
        let mut number = 0;
        pieces.retain(|_| {
            number += 1;
            number % KEPT == 0
        });
        let before = resident_bytes().unwrap();
        let mut trimmer = Trimmer::default();
        (0..LOOKS).for_each(|_| trimmer.look());
        let after = resident_bytes().unwrap();
        assert!(after + freed / 2 < before, "{before} bytes resident before, {after} after");
        assert_eq!(pieces.len(), PIECES / KEPT);
    }

    /// A regression test: up to 64 MiB of holes stayed with the process for ever, so that its memory
    /// at rest depended on what it had done before.
    #[test]
    fn the_limit_falls_until_memory_is_returned() {
        let mut trimmer = Trimmer::default();
        let mut trims = |unused_mib: u64, left_mib: u64| {
            let mut trims = 0;
            trimmer.check(unused_mib << 20, || {
                trims += 1;
                left_mib << 20
            });
            trims
        };
        assert_eq!(trims(63, 0), 0);
        assert_eq!(trims(33, 20), 1);
        // 20 MiB are the base now, and the limit is 64 MiB again.
        assert_eq!([40, 40, 40, 40].map(|unused| trims(unused, 20)), [0, 0, 1, 0]);
        // The limit stays at 8 MiB above the base.
        assert_eq!((0..9).map(|_| trims(27, 20)).sum::<i32>(), 0);
        assert_eq!(trims(28, 20), 1);
        // Memory that is in use again lowers the base.
        assert_eq!([5, 5, 5, 5, 13].map(|unused| trims(unused, 5)), [0, 0, 0, 0, 1]);
    }
}
