//! The memory of the binary over time: sampled each second, drawn, and judged to be flat.

use std::time::Duration;

use loadtest_judge::outcome::Outcome;
use loadtest_sim::reporter::Reporter;

const MEBIBYTE: f64 = 1_048_576.0;
/// The mean of the last third may exceed that of the first by this part of it,
const GROWTH: f64 = 0.15;
/// and by this many MiB.
const SLACK: f64 = 8.0;
/// The part of the samples that belongs to the warm-up.
const WARM_UP: f64 = 0.1;

/// Samples of resident memory, in MiB.
#[derive(Debug, Default)]
pub(super) struct Curve {
    samples: Vec<f64>,
}

impl Curve {
    /// Samples each second until it is dropped.
    pub(super) async fn follow(&mut self, reporter: &Reporter) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        loop {
            ticks.tick().await;
            self.samples.push(reporter.usage()?.resident as f64 / MEBIBYTE);
        }
    }

    /// Draws it into the notes, and demands that it is flat.
    pub(super) fn judge(&self, outcome: &mut Outcome) {
        let [from, to] =
            [f64::min, f64::max].map(|pick| self.samples.iter().copied().reduce(pick).unwrap_or(0.0));
        let curve = sparkline(&self.samples);
        outcome
            .notes
            .push(format!("memory while away, a sample a second: {curve} ({from:.1} to {to:.1} MiB)"));
        outcome.demand(!self.samples.is_empty(), || "memory was not sampled".to_owned());
        let [first, last] = self.thirds();
        outcome.demand(last <= first * (1.0 + GROWTH) + SLACK, || {
            format!("memory grew: {first:.1} MiB in the first third, {last:.1} MiB in the last")
        });
    }

    /// The means of the first and the last third after the warm-up.
    fn thirds(&self) -> [f64; 2] {
        let warm = (self.samples.len() as f64 * WARM_UP).ceil() as usize;
        let warm = self.samples.get(warm..).unwrap_or_default();
        let third = warm.len().div_ceil(3);
        let last = warm.len().saturating_sub(third);
        [mean(warm.get(..third).unwrap_or_default()), mean(warm.get(last..).unwrap_or_default())]
    }
}

/// The mean of some numbers; 0 of none.
fn mean(numbers: &[f64]) -> f64 {
    if numbers.is_empty() { 0.0 } else { numbers.iter().sum::<f64>() / numbers.len() as f64 }
}

/// Numbers as a line of bars, from the least to the most of them.
fn sparkline(numbers: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = (most - least).max(f64::EPSILON);
    let bar = |number: &f64| {
        let place = ((number - least) / width * 7.0).round();
        // Between 0 and 7, whatever the numbers are.
        BARS[place.clamp(0.0, 7.0) as usize]
    };
    numbers.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(samples: Vec<f64>) -> Outcome {
        let mut outcome = Outcome::default();
        Curve { samples }.judge(&mut outcome);
        outcome
    }

    #[test]
    fn memory_that_grows_fails_and_a_warm_up_does_not() {
        assert!(judged(vec![20.0, 50.0, 50.0, 51.0, 52.0, 53.0, 52.0, 55.0, 54.0, 55.0]).is_good());
        let grown = judged((0..30).map(|second| 40.0 + f64::from(second)).collect());
        assert_eq!(grown.wrong, ["memory grew: 47.0 MiB in the first third, 65.0 MiB in the last"]);
        assert!(grown.notes[0].starts_with("memory while away, a sample a second: ▁"), "{:?}", grown.notes);
        assert_eq!(judged(Vec::new()).wrong, ["memory was not sampled"]);
    }

    #[test]
    fn numbers_are_drawn_between_the_least_and_the_most() {
        assert_eq!(sparkline(&[1.0, 4.5, 8.0]), "▁▅█");
        assert_eq!(sparkline(&[3.0, 3.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }
}
