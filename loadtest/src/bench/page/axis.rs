//! Axes: where a value stands, and which marks stand beside it.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::number::number;

/// Beyond this the arithmetic of an axis is not safe, and no figure means anything.
const MOST: f64 = 1e300;
/// Less than this is as good as nothing.
const TINY: f64 = 1e-9;
/// Quantiles with more nines than this are drawn as if they had so many.
const NINES: f64 = 9.0;
/// Values that are less stand at the lower end of a logarithmic axis.
const LEAST: f64 = 1e-3;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    /// Each power of ten takes the same room.
    Decades,
    /// Each nine of a quantile takes the same room; the maximum stands beyond the last.
    Nines,
}

/// One axis of a chart.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    scale: Scale,
    /// First and last place.
    ends: (f64, f64),
    /// Values, and what is written beside them.
    marks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0 to the last moment.
    pub(super) fn seconds(last: f64) -> Self {
        let last = if last > TINY { last.min(MOST) } else { 1.0 };
        let step = step(last, 6);
        Self { scale: Scale::Linear, ends: (0.0, last), marks: marks(last, step) }
    }

    /// From 0 to a round number that is not less than any of the values.
    pub(super) fn upward(values: impl Iterator<Item = f64>) -> Self {
        let most = values.fold(0.0, f64::max).min(MOST);
        let most = if most > TINY { most } else { 1.0 };
        let step = step(most, 5);
        let end = (most / step).ceil() * step;
        Self { scale: Scale::Linear, ends: (0.0, end), marks: marks(end, step) }
    }

    /// As [`Axis::upward`], or by powers of ten where the values are far apart: the fast beside the slow would
    /// be flat on the ground else.
    pub(super) fn upward_by_need(values: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = values.clone().filter(|value| *value >= LEAST).map(|value| value.min(MOST));
        let (least, most) =
            positive.fold((f64::INFINITY, 0.0), |(least, most), value| (value.min(least), value.max(most)));
        if most < 20.0 * least {
            return Self::upward(values);
        }
        let ends = (least.log10().floor(), most.log10().ceil());
        let every = ((ends.1 - ends.0) / 6.0).ceil().max(1.0);
        let count = ((ends.1 - ends.0) / every).floor() as u32;
        let decades = (0..=count).map(|index| 10_f64.powf(ends.0 + f64::from(index) * every));
        Self { scale: Scale::Decades, ends, marks: decades.map(|value| (value, number(value))).collect() }
    }

    /// Quantiles: 50 %, 90 %, 99 % and so on, each nine as wide as the one before; the maximum at the end. Marks
    /// that would run into one another are left out, `glyph` being the part of the axis that one letter takes.
    pub(super) fn nines(quantiles: impl Iterator<Item = f64> + Clone, glyph: f64) -> Self {
        let furthest = quantiles.clone().filter(|quantile| *quantile < 1.0).map(nines).fold(1.0, f64::max);
        let has_most = quantiles.into_iter().any(|quantile| quantile >= 1.0);
        let end = if has_most { furthest + 0.5 } else { furthest };
        let mut axis = Self { scale: Scale::Nines, ends: (0.0, end), marks: Vec::new() };
        // A hair more: the nines of 0.999 are not quite three in binary.
        let whole = (1..=(furthest + 1e-6).floor() as i32).map(|nines| 1.0 - 10_f64.powi(-nines));
        let mut wanted: Vec<(f64, String)> =
            [0.5].into_iter().chain(whole).map(|q| (q, percent(q))).collect();
        if has_most {
            wanted.push((1.0, "max".to_owned()));
        }
        let mut free = f64::INFINITY;
        for (value, text) in wanted.into_iter().rev() {
            let (at, half) = (axis.fraction(value), glyph * (text.len() as f64 / 2.0 + 0.5));
            if at + half <= free {
                free = at - half;
                axis.marks.push((value, text));
            }
        }
        axis.marks.reverse();
        axis
    }

    /// Whether values are placed by their logarithm.
    pub(super) fn is_logarithmic(&self) -> bool {
        self.scale == Scale::Decades
    }

    /// Letters of the widest mark.
    pub(super) fn widest(&self) -> usize {
        self.marks.iter().map(|(_, text)| text.len()).max().unwrap_or_default()
    }

    /// Where a value stands, from 0 to 1.
    fn fraction(&self, value: f64) -> f64 {
        let (from, to) = self.ends;
        let place = match self.scale {
            Scale::Linear => value,
            Scale::Decades => value.max(LEAST).log10(),
            Scale::Nines if value >= 1.0 => to,
            Scale::Nines => nines(value),
        };
        ((place - from) / (to - from)).clamp(0.0, 1.0)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (self.fraction(*value) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.marks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let mark = self.marks.iter().find(|(own, _)| own == value);
        mark.map(|(_, text)| text.clone()).unwrap_or_default()
    }
}

/// The quantile's nines: 1 for 0.9, 2 for 0.99.
fn nines(quantile: f64) -> f64 {
    (-(1.0 - quantile).log10()).clamp(0.0, NINES)
}

fn percent(quantile: f64) -> String {
    format!("{}%", (quantile * 1e11).round() / 1e9)
}

/// The least of 1, 2 and 5 times a power of ten that divides up to `last` into `most` parts or fewer.
fn step(last: f64, most: u32) -> f64 {
    let raw = last / f64::from(most);
    let power = 10_f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0].map(|times| times * power).into_iter().find(|step| *step >= raw).unwrap_or(10.0 * power)
}

fn marks(last: f64, step: f64) -> Vec<(f64, String)> {
    let count = (last / step + 1e-9).floor() as u32;
    (0..=count).map(|index| f64::from(index) * step).map(|value| (value, number(value))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.marks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn marks_are_round_and_cover_the_values() {
        assert_eq!(texts(&Axis::upward([3.0, 1_040.0].into_iter())), ["0", "500", "1,000", "1,500"]);
        assert_eq!(texts(&Axis::upward([2.02].into_iter())), ["0", "0.5", "1", "1.5", "2", "2.5"]);
        assert_eq!(texts(&Axis::upward(std::iter::empty())), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(texts(&Axis::seconds(15.2)), ["0", "5", "10", "15"]);
        for extreme in [f64::MAX, 1e300, 1e-300, 5e-324, 0.0, -1.0] {
            for axis in [Axis::upward([extreme].into_iter()), Axis::seconds(extreme)] {
                assert!((2..=8).contains(&axis.marks.len()), "{extreme}: {axis:?}");
                assert!((0.0..=1.0).contains(&axis.fraction(extreme)), "{extreme}: {axis:?}");
            }
        }
    }

    #[test]
    fn values_far_apart_are_placed_by_powers_of_ten() {
        let far = Axis::upward_by_need([12.0, 4_000.0].into_iter());
        assert!(far.is_logarithmic());
        assert_eq!(texts(&far), ["10", "100", "1,000", "10,000"]);
        assert_eq!(far.map(&100.0, (0, 300)), 100);
        assert_eq!(far.map(&0.0, (0, 300)), 0, "what has no logarithm stands at the lower end");
        assert!(!Axis::upward_by_need([12.0, 80.0].into_iter()).is_logarithmic());
        assert!(!Axis::upward_by_need(std::iter::empty()).is_logarithmic());
        assert!(Axis::upward_by_need([1e-3, f64::MAX].into_iter()).marks.len() < 9);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Whatever a file holds, a few marks stand inside of the axis, and so does every value.
        #[test]
        fn no_value_leaves_the_axis(values in vec(any::<f64>(), 0..8)) {
            let all = || values.iter().copied().filter(|value| !value.is_nan());
            let last = all().fold(0.0, f64::max);
            let axes =
                [Axis::seconds(last), Axis::upward(all()), Axis::upward_by_need(all()), Axis::nines(all(), 0.02)];
            for axis in axes {
                prop_assert!((1..=12).contains(&axis.marks.len()), "{axis:?}");
                for value in all().chain(axis.marks.iter().map(|(value, _)| *value)) {
                    prop_assert!((0.0..=1.0).contains(&axis.fraction(value)), "{value} on {axis:?}");
                }
            }
        }
    }

    #[test]
    fn each_nine_takes_the_same_room() {
        let axis = Axis::nines([0.0, 0.5, 0.9, 0.99, 0.999, 1.0].into_iter(), 0.02);
        assert_eq!(texts(&axis), ["50%", "90%", "99%", "99.9%", "max"]);
        assert_eq!(
            [0.0, 0.9, 0.99, 0.999, 1.0].map(|quantile| axis.map(&quantile, (0, 700))),
            [0, 200, 400, 600, 700]
        );
        let crowded = Axis::nines([0.999_999_9, 1.0].into_iter(), 0.05);
        assert_eq!(texts(&crowded).last(), Some(&"max"));
        assert!(crowded.marks.len() < 5, "{crowded:?}");
    }
}
