//! What the kernel knows of this process, under the names that every Prometheus client library gives it.
//!
//! Where there is no `/proc`, both stay at zero.

use std::sync::{Mutex, PoisonError};

use pipeline_core::Families;
use prometheus::{Counter, IntGauge};

use super::figures::set_gauge;

/// The unit of processor time in `/proc`: `USER_HZ`, 100 on every architecture Linux runs on today.
const TICKS_A_SECOND: f64 = 100.0;

/// Memory and processor time.
pub(super) struct ProcessSeries {
    resident: IntGauge,
    cpu: Counter,
    /// What the counter says: scrapes that meet must not both add the difference.
    shown: Mutex<f64>,
}

impl ProcessSeries {
    pub(super) fn new(make: &Families) -> Self {
        let make = make.beginning("process_");
        Self {
            resident: make.gauge("resident_memory_bytes", "Resident memory of the process."),
            cpu: make.amount("cpu_seconds_total", "Processor time of the process, of all threads."),
            shown: Mutex::default(),
        }
    }

    /// Reads the figures anew.
    pub(super) fn read(&self) {
        if let Some(resident) = resident_bytes() {
            set_gauge(&self.resident, resident);
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seconds) = cpu_seconds() {
            self.cpu.inc_by((seconds - *shown).max(0.0));
            *shown = seconds.max(*shown);
        }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Fields 14 and 15 of `/proc/self/stat`, counted behind the program's name, which may hold spaces.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / TICKS_A_SECOND)
}
