//! Facts about the machine that several replies show.

/// The machine's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The number (in kB for sizes) behind `label` in a file of `/proc`, 0 where there is none.
pub fn proc_number(file: &str, label: &str) -> i64 {
    let text = read(file);
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The text of a file of the system, empty where it cannot be read.
pub fn read(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}
