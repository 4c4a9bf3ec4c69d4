//! What a benchmark found, as JSON and as a table beside the incumbent.

use serde_json::{Value, json};

use super::Args;
use super::cold::Cold;
use super::steady::Steady;
use crate::reporter::Usage;
use crate::screen::{judged, table};
use crate::sim::platform::Totals;

/// The incumbent, measured on two cores with Argo CD answering after 20 ms, the platform after 5 ms, and 10
/// resources an application.
mod incumbent {
    pub(super) const CHANGES: f64 = 9.0;
    pub(super) const CALLS: f64 = 5.0;
    pub(super) const FIRST_CALLS: f64 = 15.0;
    pub(super) const FIRST_REPORTS: f64 = 2.6;
    pub(super) const CONDITIONS: (u32, u128, u128) = (10, 20, 5);

    /// Applications at the start; how many of them it reported; its memory then, in MB.
    pub(super) const STARTS: [(u32, u32, f64); 2] = [(2_500, 1_001, 172.0), (10_000, 1_001, 347.0)];
}

/// Least changes a second.
const CHANGES: f64 = 300.0;
/// Most calls to Argo CD for a change.
const CALLS: f64 = 3.0;
/// Less resident memory than this with up to 10,000 applications.
const RESIDENT: u64 = 64 << 20;

/// What a benchmark found.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was asked for.
    pub args: Args,
    /// The start.
    pub cold: Cold,
    /// As many changes as are reported; `None` where a rate was given.
    pub maximum: Option<Steady>,
    /// The window whose latencies are told: at half the maximum, or at the rate that was given.
    pub timed: Steady,
    /// Of the reporter, over the whole run.
    pub usage: Usage,
    /// Of simulators and driver, over the whole run.
    pub own: Usage,
    /// What the platform counted.
    pub totals: Totals,
    /// Reports of a state that had been reported before, under another key.
    pub repeated: u64,
    /// Applications and resources whose last report is not their last state.
    pub wrong: u64,
}

impl Measured {
    fn steady(&self) -> &Steady {
        self.maximum.as_ref().unwrap_or(&self.timed)
    }

    /// Applications that were not reported whole at the start, and changes that were never reported.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let changes = self.maximum.as_ref().map_or(0, |steady| steady.lost) + self.timed.lost;
        u64::from(self.cold.applications - self.cold.reported) + changes
    }

    /// Reports that came twice, under the same key or another.
    #[must_use]
    pub fn duplicated(&self) -> u64 {
        self.totals.duplicates + self.repeated
    }

    /// Reports of an older state after a newer one.
    #[must_use]
    pub fn out_of_order(&self) -> u64 {
        self.totals.out_of_order + self.totals.resources_out_of_order
    }

    /// Whether nothing was lost, repeated, out of order or wrong, and something was measured at all.
    #[must_use]
    pub fn is_correct(&self) -> bool {
        self.lost() + self.duplicated() + self.out_of_order() + self.wrong == 0 && self.steady().done > 0
    }

    /// Whether speed, calls and memory are as they must be.
    #[must_use]
    pub fn meets_targets(&self) -> bool {
        self.maximum.as_ref().is_none_or(|maximum| maximum.per_second() >= CHANGES)
            && self.steady().calls_per_change() <= CALLS
            && (self.args.apps > 10_000 || self.usage.peak < RESIDENT)
    }

    /// All figures.
    #[must_use]
    pub fn json(&self) -> Value {
        let steady = self.steady();
        let window = |steady: &Steady| {
            json!({
                "changes_per_second": round(steady.per_second()), "asked_per_second": steady.rate.map(round),
                "changes": steady.done, "coalesced": steady.coalesced, "lost": steady.lost,
                "seconds": round(steady.window.as_secs_f64()),
                "argocd_calls_per_change": round(steady.calls_per_change()),
                "reports_per_change": round(per(steady.reports, steady.done)),
                "p50_ms": round(steady.milliseconds(0.5)), "p90_ms": round(steady.milliseconds(0.9)),
                "p99_ms": round(steady.milliseconds(0.99)), "max_ms": round(steady.milliseconds(1.0)),
                "reporter_cores": round(steady.cpu / steady.window.as_secs_f64()),
                "simulator_cores": round(steady.own_cpu / steady.window.as_secs_f64()),
            })
        };
        json!({
            "changes_per_second": round(steady.per_second()),
            "argocd_calls_per_change": round(steady.calls_per_change()),
            "lost": self.lost(),
            "duplicated": self.duplicated(),
            "out_of_order": self.out_of_order(),
            "wrong": self.wrong,
            "p50_ms": round(self.timed.milliseconds(0.5)),
            "p99_ms": round(self.timed.milliseconds(0.99)),
            "rss_bytes": self.usage.peak,
            "latency_at_changes_per_second": self.timed.rate.map(round),
            "closed_loop": self.maximum.as_ref().map(window),
            "open_loop": window(&self.timed),
            "cold_start": {
                "applications": self.cold.applications, "reported": self.cold.reported,
                "seconds": round(self.cold.seconds),
                "argocd_calls_per_application": round(self.cold.calls),
                "reports_per_application": round(self.cold.reports),
                "rss_bytes": self.cold.usage.resident, "rss_peak_bytes": self.cold.usage.peak,
                "reporter_cpu_seconds": round(self.cold.usage.cpu),
            },
            "rss_end_bytes": self.usage.resident,
            "simulator_rss_bytes": self.own.peak,
            "settings": {
                "applications": self.args.apps, "resources": self.args.resources,
                "argocd_latency_ms": self.args.argocd_latency.as_secs_f64() * 1e3,
                "platform_latency_ms": self.args.platform_latency.as_secs_f64() * 1e3,
                "outstanding": self.args.outstanding, "seconds": self.args.seconds, "seed": self.args.seed,
                "line": format!("{:?}", self.args.line).to_lowercase(),
            },
        })
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> String {
        let (cold, steady, timed) = (&self.cold, self.steady(), &self.timed);
        let start = incumbent::STARTS.iter().find(|(apps, ..)| *apps == cold.applications);
        let mut rows = Vec::new();
        let mut row = |what: &str, theirs: Option<f64>, ours: f64, unit: &str, more: bool, target: String| {
            let ratio = theirs.map(|theirs| if more { ours / theirs } else { theirs / ours });
            let told = |value: f64| format!("{}{unit}", number(value));
            rows.push(vec![
                what.to_owned(),
                theirs.map_or_else(|| "-".to_owned(), told),
                told(ours),
                ratio
                    .filter(|ratio| ratio.is_finite())
                    .map_or_else(String::new, |ratio| format!("{} x", number(ratio))),
                target,
            ]);
        };
        let reached = |good: bool, text: &str| format!("{text}: {}", if good { "reached" } else { "missed" });
        let about = if steady.rate.is_some() { "changes a second (asked for)" } else { "changes a second" };
        let target = match self.maximum {
            Some(_) => reached(steady.per_second() >= CHANGES, "300 or more"),
            None => String::new(),
        };
        row(about, Some(incumbent::CHANGES), steady.per_second(), "", true, target);
        let calls = steady.calls_per_change();
        row(
            "Argo CD calls a change",
            Some(incumbent::CALLS),
            calls,
            "",
            false,
            reached(calls <= CALLS, "3 or fewer"),
        );
        row("reports a change", Some(2.0), per(steady.reports, steady.done), "", false, String::new());
        let rate = number(timed.rate.unwrap_or_default());
        row(
            &format!("p50 at {rate} changes a second"),
            None,
            timed.milliseconds(0.5),
            " ms",
            false,
            String::new(),
        );
        row(
            &format!("p99 at {rate} changes a second"),
            None,
            timed.milliseconds(0.99),
            " ms",
            false,
            String::new(),
        );
        row(
            "Argo CD calls, first report",
            Some(incumbent::FIRST_CALLS),
            cold.calls,
            "",
            false,
            String::new(),
        );
        let first = f64::from(cold.reported) / cold.seconds.max(0.001);
        row("first reports a second", Some(incumbent::FIRST_REPORTS), first, "", true, String::new());
        let reported = start.map(|(_, reported, _)| f64::from(*reported));
        let what = format!("reported of {} at the start", cold.applications);
        row(&what, reported, f64::from(cold.reported), "", true, String::new());
        let dropped = start.map(|(apps, reported, _)| f64::from(apps - reported));
        let missing = f64::from(cold.applications - cold.reported);
        row("dropped of them", dropped, missing, "", false, reached(missing == 0.0, "0"));
        let memory = start.map(|(_, _, memory)| *memory);
        let peak = self.usage.peak as f64 / 1e6;
        let target = if self.args.apps > 10_000 {
            String::new()
        } else {
            reached(self.usage.peak < RESIDENT, "under 67.1 MB (64 MiB)")
        };
        row("resident memory, most", memory, peak, " MB", false, target);

        let header = ["", "incumbent", "this", "ratio", "target"];
        let mut text = format!("{}\n", table(1, &header, &rows));
        let correct = format!(
            "lost {}, duplicated {}, out of order {}, wrong at the end {}",
            self.lost(),
            self.duplicated(),
            self.out_of_order(),
            self.wrong
        );
        text.push_str(&format!("\n{}", judged(&correct, self.is_correct())));
        for phase in self.maximum.iter().chain([timed]) {
            text.push_str(&format!("\n{}", self.line(phase)));
        }
        text.push_str(&format!(
            "\ncold start: {:.1} s, {:.1} reports an application, {} MB resident afterwards, {:.1} s of processor time",
            cold.seconds,
            cold.reports,
            number(cold.usage.resident as f64 / 1e6),
            cold.usage.cpu
        ));
        let args = &self.args;
        let conditions = (args.resources, args.argocd_latency.as_millis(), args.platform_latency.as_millis());
        if conditions != incumbent::CONDITIONS {
            text.push_str(
                "\nthe incumbent was measured with 10 resources an application, Argo CD answering after 20 ms and \
                 the platform after 5 ms: the ratios above compare unlike things",
            );
        }
        text
    }

    fn line(&self, phase: &Steady) -> String {
        let seconds = phase.window.as_secs_f64();
        let how = match phase.rate {
            Some(rate) => format!("open loop at {} changes a second", number(rate)),
            None => format!("closed loop, {} changes under way", self.args.outstanding),
        };
        format!(
            "{how}: {} changes in {seconds:.1} s, {} coalesced (known only through a newer state, not counted), p50 \
             {} ms, p99 {} ms, cores used: reporter {:.2}, simulators and driver {:.2}",
            phase.done,
            phase.coalesced,
            number(phase.milliseconds(0.5)),
            number(phase.milliseconds(0.99)),
            phase.cpu / seconds,
            phase.own_cpu / seconds
        )
    }
}

fn per(what: u64, each: u64) -> f64 {
    what as f64 / each.max(1) as f64
}

/// Three places are more than any figure here is good for.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 || value >= 1_000.0 {
        format!("{value:.0}")
    } else if value >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
