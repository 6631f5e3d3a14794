//! The memory that this process may use: that of the machine, or less if a control group limits it.

use std::path::Path;

/// Returns the bytes of memory that the process may use; `None` if the system does not report it.
pub(crate) fn memory_bytes() -> Option<u64> {
    memory_bytes_in(Path::new("/"))
}

/// Does what [`memory_bytes`] does, with the system's files below `root`.
fn memory_bytes_in(root: &Path) -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let machine = read("proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
    });
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(|line| limits_of(root, line));
    machine.into_iter().chain(limits).min()
}

/// Returns the limits for a line of `/proc/self/cgroup` (`number:controllers:path`), of the group
/// and of all groups above it. (Kernel manual: "Control Group v2", "memory.max"; v1:
/// "memory.limit_in_bytes".)
fn limits_of(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        names if names.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let mount = root.join(mount);
    let group = mount.join(path.trim_start_matches('/'));
    let within = group.ancestors().take_while(|group| group.starts_with(&mount));
    let limit = |group: &Path| std::fs::read_to_string(group.join(file)).ok()?.trim().parse().ok();
    within.filter_map(limit).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_counts() {
        let directory = std::env::temp_dir().join(format!("quire-machine-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(memory_bytes_in(&directory), None);
        write("proc/meminfo", "MemFree: 1 kB\nMemTotal:  1000 kB\n");
        assert_eq!(memory_bytes_in(&directory), Some(1_024_000));
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(memory_bytes_in(&directory), Some(1_024_000));
        write("sys/fs/cgroup/a/memory.max", "500000\n");
        assert_eq!(memory_bytes_in(&directory), Some(500_000));
        write("proc/self/cgroup", "4:cpu,memory:/c\n3:pids:/a\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n");
        assert_eq!(memory_bytes_in(&directory), Some(400_000));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
