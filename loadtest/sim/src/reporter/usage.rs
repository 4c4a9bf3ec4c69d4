//! What the kernel knows of a process: read from `/proc`.

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
        Some(Self { resident, peak, cpu: ticks_of(id)? as f64 / TICKS })
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

/// Processor time of a process, in ticks.
fn ticks_of(id: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before may hold blanks.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    Some(fields.get(11..15)?.iter().map(|field| field.parse::<u64>().unwrap_or(0)).sum())
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
}
