//! One chart: lines over an axis, as SVG with a title and a description, and a legend.

use anyhow::Context as _;
use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

use super::axis::Axis;
use super::number::number;
use super::palette::{self, COLOURS};

/// The drawing's units; it is shown as large as there is room.
const SIZE: (u32, u32) = (800, 440);
const FONT: u32 = 23;
/// What one letter takes, about, on a phone: no font is measured.
const GLYPH: f64 = 15.0;
const RIGHT: u32 = 30;
const STROKE: u32 = 3;
const INK: RGBColor = RGBColor(0x3B, 0x42, 0x4C);
const GRID: RGBColor = RGBColor(0xDD, 0xE1, 0xE6);

/// What a chart shows.
#[derive(Debug)]
pub(super) struct Chart<'a> {
    /// Unique in the page.
    pub(super) id: String,
    /// What is drawn, e.g. `Queue`.
    pub(super) title: &'static str,
    /// The unit of the values, in words.
    pub(super) unit: &'static str,
    pub(super) x: Axis,
    /// What the values are told of, e.g. `seconds since the run began`.
    pub(super) along: &'static str,
    /// Whether values far apart may be placed by their logarithm.
    pub(super) by_need: bool,
    pub(super) lines: Vec<Line<'a>>,
}

/// What one reporter told.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    /// In the order of their place; `None` is a gap.
    pub(super) points: Vec<Option<(f64, f64)>>,
}

impl Line<'_> {
    fn told(&self) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        self.points.iter().flatten().copied()
    }

    fn summary(&self) -> String {
        let (count, least, most) =
            self.told().fold((0_u64, f64::INFINITY, 0.0), |(count, least, most), (_, y)| {
                (count + 1, f64::min(least, y), f64::max(most, y))
            });
        match count {
            0 => format!("{}: not told.", self.name),
            1 => format!("{}: one value, {}.", self.name, number(most)),
            _ => format!("{}: {count} values from {} to {}.", self.name, number(least), number(most)),
        }
    }
}

/// The part of a horizontal axis that one letter takes, for marks that shall not run into one another.
pub(super) fn glyph() -> f64 {
    GLYPH / f64::from(SIZE.0 - 120 - RIGHT)
}

impl Chart<'_> {
    /// The chart, or a note where nobody told anything.
    ///
    /// # Errors
    /// When it cannot be drawn.
    pub(super) fn figure(&self) -> anyhow::Result<Markup> {
        let values = || self.lines.iter().flat_map(|line| line.told().map(|(_, y)| y)).collect::<Vec<f64>>();
        let values = values();
        if values.is_empty() {
            return Ok(html! {
                figure.empty {
                    figcaption { (self.title) }
                    p.untold { "Not told: there is nothing to draw." }
                }
            });
        }
        let y = if self.by_need {
            Axis::upward_by_need(values.iter().copied())
        } else {
            Axis::upward(values.iter().copied())
        };
        let (title, about) = (format!("{}-t", self.id), format!("{}-d", self.id));
        let drawn =
            self.draw(&y).with_context(|| format!("draw the chart of {}", self.title.to_lowercase()))?;
        let summaries: Vec<String> = self.lines.iter().map(Line::summary).collect();
        Ok(html! {
            figure {
                figcaption {
                    (self.title) " "
                    small { (self.unit) @if y.is_logarithmic() { ", logarithmic" } }
                }
                svg.chart id=(self.id) role="img" viewBox={ "0 0 " (SIZE.0) " " (SIZE.1) }
                    aria-labelledby={ (title) " " (about) } xmlns="http://www.w3.org/2000/svg" {
                    title id=(title) { (self.title) ", " (self.unit) }
                    desc id=(about) { "Over " (self.along) ". " (summaries.join(" ")) }
                    (PreEscaped(drawn))
                }
                ul.legend {
                    @for (at, line) in self.lines.iter().enumerate().take(COLOURS.len()) {
                        li title=(line.name) {
                            (palette::swatch(at)) span { (line.name) }
                            @if line.told().next().is_none() { em { "not told" } }
                        }
                    }
                }
            }
        })
    }

    fn draw(&self, y: &Axis) -> anyhow::Result<String> {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            let left = (y.widest() as f64 * GLYPH) as u32 + 26;
            let mut chart = ChartBuilder::on(&area)
                .margin_top(16)
                .margin_right(RIGHT)
                .margin_bottom(6)
                .margin_left(4)
                .set_label_area_size(LabelAreaPosition::Left, left)
                .set_label_area_size(LabelAreaPosition::Bottom, 70)
                .build_cartesian_2d(self.x.clone(), y.clone())?;
            let label = ("sans-serif", FONT).into_font().color(&INK);
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(GRID)
                .axis_style(INK)
                .label_style(label)
                .x_desc(self.along)
                .draw()?;
            for (line, colour) in self.lines.iter().zip(&COLOURS) {
                let style = colour.light.stroke_width(STROKE);
                for part in line.points.split(Option::is_none) {
                    let part: Vec<(f64, f64)> = part.iter().flatten().copied().collect();
                    match part.as_slice() {
                        [] => {}
                        [alone] => {
                            let mark = Circle::new(*alone, STROKE + 2, colour.light.filled());
                            chart.draw_series([mark])?;
                        }
                        _ => {
                            chart.draw_series([PathElement::new(part, style)])?;
                        }
                    }
                }
            }
            area.present()?;
        }
        Ok(text)
    }
}
