//! What the kernel knows of a process, and of those that it started: read from `/proc`.

use std::collections::HashMap;

/// Memory and processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Resident memory in bytes.
    pub resident: u64,
    /// The most it was since the start, in bytes.
    pub peak: u64,
    /// Processor time in seconds, of all threads, and of the children that have ended.
    pub cpu: f64,
}

/// Linux counts processor time in hundredths of a second towards programs, whatever its own clock.
const TICKS: f64 = 100.0;

impl Usage {
    /// Of one process; `None` when it has ended, or where there is no `/proc`.
    pub(super) fn of(id: u32) -> Option<Self> {
        // Of one moment: of two, what is resident may be more than what the most was.
        let status = status_of(id)?;
        let (resident, peak) = (bytes_of(&status, "VmRSS:")?, bytes_of(&status, "VmHWM:")?);
        Some(Self { resident, peak, cpu: Stat::of(id)?.ticks as f64 / TICKS })
    }

    /// Of a process and all that descend from it. Pages that they share are counted for each.
    #[must_use]
    pub fn of_tree(id: u32) -> Option<Self> {
        let mut sum = Self::of(id)?;
        let parents = parents();
        let mut known = vec![id];
        let mut at = 0;
        while let Some(parent) = known.get(at).copied() {
            at += 1;
            for (child, _) in parents.iter().filter(|(_, own)| **own == parent) {
                // One that has ended meanwhile is counted by its parent.
                if let Some(usage) = Self::of(*child) {
                    sum = sum.plus(usage);
                }
                known.push(*child);
            }
        }
        Some(sum)
    }

    /// What this process itself has used.
    #[must_use]
    pub fn own() -> Self {
        Self::of(std::process::id()).unwrap_or_default()
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            resident: self.resident + other.resident,
            peak: self.peak + other.peak,
            cpu: self.cpu + other.cpu,
        }
    }
}

/// Bytes of a process as `/proc/{id}/status` names them: `VmRSS:` is what is resident, `VmHWM:` the most that ever was, both with
/// the files that it maps, and `RssAnon:` what it allocated. `None` when it has ended.
#[must_use]
pub fn memory_of(id: u32, name: &str) -> Option<u64> {
    bytes_of(&status_of(id)?, name)
}

fn status_of(id: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{id}/status")).ok()
}

fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// What `/proc/{id}/stat` says.
struct Stat {
    parent: u32,
    ticks: u64,
}

impl Stat {
    fn of(id: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name before may hold blanks.
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().unwrap_or(0)).sum();
        Some(Self { parent: fields.get(1)?.parse().ok()?, ticks })
    }
}

/// The parent of each process there is.
fn parents() -> HashMap<u32, u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| Some((id, Stat::of(id)?.parent))).collect()
}

/// Processor seconds of the calling thread so far.
#[must_use]
pub fn of_this_thread() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_memory_and_time() {
        let own = Usage::own();
        assert!(own.resident > 1 << 20 && own.peak >= own.resident, "{own:?}");
        assert_eq!(Usage::of(u32::MAX), None);
    }

    #[test]
    fn the_time_of_a_thread_is_told() {
        let before = of_this_thread().unwrap();
        let mut sum = 0_u64;
        for number in 0..3_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
        }
        let after = of_this_thread().unwrap();
        assert!(after > before && sum != 1, "{before} {after}");
    }

    #[test]
    fn what_a_process_started_is_counted_with_it() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo started; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 7];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let own = Usage::of(child.id()).unwrap();
        let tree = Usage::of_tree(child.id()).unwrap();
        let grandchild = parents().into_iter().find(|(_, parent)| *parent == child.id()).unwrap().0;
        let killed = std::process::Command::new("kill").arg(grandchild.to_string()).status().unwrap();
        assert!(killed.success());
        child.wait().unwrap();
        assert!(tree.resident > own.resident, "{tree:?} {own:?}");
    }
}
