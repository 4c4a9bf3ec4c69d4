//! What a process has allocated, as the kernel counts it.

/// `RssAnon` of a process: what it allocated, without the files that it maps; `None` when it has ended.
pub(crate) fn anonymous_of(id: u32) -> Option<u64> {
    of(id, "RssAnon:")
}

/// `VmHWM` of a process: the most that it ever had in memory, files that it maps included; `None` when it has ended.
pub(crate) fn most_resident_of(id: u32) -> Option<u64> {
    of(id, "VmHWM:")
}

fn of(id: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
