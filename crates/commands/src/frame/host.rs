//! Facts about the machine that several replies show.

/// Returns the machine's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the number after `label` in a file of `/proc` (in kB for sizes); 0 if it is missing.
pub fn proc_number(file: &str, label: &str) -> i64 {
    let text = read(file);
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the name of the operating system with its release.
pub fn os_name() -> String {
    let text = read("/etc/os-release");
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.map_or_else(|| std::env::consts::OS.to_owned(), |name| name.trim_matches('"').to_owned())
}

/// Returns the release of the kernel.
pub fn kernel_version() -> String {
    read("/proc/sys/kernel/osrelease").trim().to_owned()
}

/// Returns the content of a file of the system; empty if it cannot be read.
pub fn read(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}
