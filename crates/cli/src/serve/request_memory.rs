//! The memory that all requests of the server may hold together.

/// The memory of the machine that is assumed if the system does not report it.
const FALLBACK_BYTES: usize = 1 << 30;

/// The smallest budget: two requests at their own limits.
const BUDGET_BYTES_MIN: usize = 256 << 20;

/// Returns half of the memory that the process may use: that of the machine, or of its control
/// group if that is less. The rest is for the engine, whose cache has its own limit.
pub(super) fn budget_bytes() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let memory = [machine, group].into_iter().flatten().min().unwrap_or(FALLBACK_BYTES);
    (memory / 2).max(BUDGET_BYTES_MIN)
}

/// Returns the bytes of `MemTotal` in the text of /proc/meminfo.
fn total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_total_is_read() {
        assert_eq!(super::total("MemTotal:        2048 kB\nMemFree: 5 kB\n"), Some(2 << 20));
        assert_eq!(super::total("MemFree: 5 kB\n"), None);
        assert!(super::budget_bytes() >= super::BUDGET_BYTES_MIN);
    }
}
