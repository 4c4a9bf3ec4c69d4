//! The figures that a run can give.

use serde::Deserialize;

/// One figure; they are told in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    /// Applications that were reported, with every resource, from their arrival alone.
    Reported,
    /// Applications that were not.
    Lost,
    /// Those reported a second.
    FirstReports,
    /// Calls to Argo CD for each.
    CallsPerFirstReport,
    /// Reads of single objects at the API server for each.
    ReadsPerFirstReport,
    /// Reports for each.
    ReportsPerFirstReport,
    /// Processor time of the reporter for each.
    CpuPerFirstReport,
    /// Changes that were acknowledged a second.
    Changes,
    /// Calls to Argo CD for a change, but for the one that the metadata of a new commit takes.
    CallsPerChange,
    /// Calls for the metadata of a commit, for each new one.
    CallsPerCommit,
    /// Reads of single objects at the API server for a change.
    ReadsPerChange,
    /// Reports for a change.
    ReportsPerChange,
    /// Changes that are known only through a newer state of the same application.
    Coalesced,
    /// From the moment a change was due to the acknowledgement of its last report.
    P50,
    /// The same.
    P99,
    /// The same, of the others beside a hot application.
    P99BesideHot,
    /// That over the same without a hot application: the median of the pairs.
    P99BesideHotRatio,
    /// Processor time of the reporter for a change.
    CpuPerChange,
    /// That over the time it takes to parse and to compress the same bytes alone.
    CpuPerChangeRatio,
    /// The same of simulators and driver.
    SimulatorCpuPerChange,
    /// Processor time of the reporter for 1,000 events that bring nothing new.
    CpuFiltered,
    /// That over the time it takes to parse the JSON of the same events alone.
    CpuFilteredRatio,
    /// Calls to Argo CD for 1,000 of them.
    CallsFiltered,
    /// Reads of single objects at the API server for 1,000 of them.
    ReadsFiltered,
    /// Events that bring nothing new and that the reporter tells nothing of.
    Unseen,
    /// Resident memory at its most, of all processes together.
    Resident,
    /// Samples at `/metrics`.
    Series,
    /// Looks at the reporter's own figures in which an event was missing or counted twice.
    Unaccounted,
    /// The most events that waited in one queue.
    Queued,
    /// Events that found the queue full, and were marked to be read again.
    Overflowed,
}

impl Measure {
    /// What it is called.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Reported => "applications reported at the start",
            Self::Lost => "applications lost at the start",
            Self::FirstReports => "first reports a second",
            Self::CallsPerFirstReport => "Argo CD calls a first report",
            Self::ReadsPerFirstReport => "API server reads a first report",
            Self::ReportsPerFirstReport => "reports a first report",
            Self::CpuPerFirstReport => "CPU a first report",
            Self::Changes => "changes a second",
            Self::CallsPerChange => "Argo CD calls a change, but one a new commit",
            Self::CallsPerCommit => "calls for commit metadata a new commit",
            Self::ReadsPerChange => "API server reads a change",
            Self::ReportsPerChange => "reports a change",
            Self::Coalesced => "changes known only through a newer state",
            Self::P50 => "p50 from due to acknowledged",
            Self::P99 => "p99 from due to acknowledged",
            Self::P99BesideHot => "p99 of the others beside a hot application",
            Self::P99BesideHotRatio => "the same over a run without it",
            Self::CpuPerChange => "CPU a change",
            Self::CpuPerChangeRatio => "the same over parsing and compressing its bytes alone",
            Self::SimulatorCpuPerChange => "CPU a change of simulators and driver",
            Self::CpuFiltered => "CPU for 1,000 filtered events",
            Self::CpuFilteredRatio => "the same over parsing their JSON alone",
            Self::CallsFiltered => "Argo CD calls for 1,000 filtered events",
            Self::ReadsFiltered => "API server reads for 1,000 filtered events",
            Self::Unseen => "filtered events that it does not tell of",
            Self::Resident => "resident memory, most",
            Self::Series => "series exposed",
            Self::Unaccounted => "looks with an event unaccounted for",
            Self::Queued => "most events in one queue",
            Self::Overflowed => "did not fit, marked to be read again",
        }
    }

    /// Its unit; empty for a plain number.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::P50
            | Self::P99
            | Self::P99BesideHot
            | Self::CpuPerChange
            | Self::SimulatorCpuPerChange
            | Self::CpuPerFirstReport
            | Self::CpuFiltered => "ms",
            Self::P99BesideHotRatio | Self::CpuPerChangeRatio | Self::CpuFilteredRatio => "x",
            Self::Resident => "MiB",
            _ => "",
        }
    }

    /// Whether a busy machine or an unoptimised build moves it: such a figure is not judged in the short form.
    pub(crate) fn is_speed(self) -> bool {
        matches!(
            self,
            Self::FirstReports
                | Self::CpuPerFirstReport
                | Self::Changes
                | Self::Coalesced
                | Self::P50
                | Self::P99
                | Self::P99BesideHot
                | Self::P99BesideHotRatio
                | Self::CpuPerChange
                | Self::CpuPerChangeRatio
                | Self::SimulatorCpuPerChange
                | Self::CpuFiltered
                | Self::CpuFilteredRatio
                | Self::Resident
        )
    }
}
