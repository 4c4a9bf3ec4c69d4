//! The colours of the lines: which reporter has which, by light and by dark.
//!
//! A chart carries the colour by light as an attribute, which every viewer of SVG understands; the page's style
//! replaces it by dark and adds a pattern, so that lines differ without colours too.

use maud::{Markup, html};
use plotters::style::RGBColor;

pub(super) struct Colour {
    pub(super) light: RGBColor,
    dark: &'static str,
    /// Lengths of dashes and gaps; empty for a line that is whole.
    dashes: &'static str,
}

/// One for each line of a chart; they differ for eyes that do not tell red from green, too.
pub(super) const COLOURS: [Colour; 8] = [
    Colour { light: RGBColor(0x0B, 0x5C, 0xAD), dark: "#6CB6FF", dashes: "" },
    Colour { light: RGBColor(0xB8, 0x46, 0x00), dark: "#FFA657", dashes: "14 6" },
    Colour { light: RGBColor(0x00, 0x73, 0x5A), dark: "#4CD4B0", dashes: "4 5" },
    Colour { light: RGBColor(0x8A, 0x2D, 0x8F), dark: "#E2A0F0", dashes: "14 5 4 5" },
    Colour { light: RGBColor(0x7A, 0x62, 0x00), dark: "#F2D45C", dashes: "24 6" },
    Colour { light: RGBColor(0xC2, 0x1F, 0x4B), dark: "#FF8FA3", dashes: "8 4 2 4" },
    Colour { light: RGBColor(0x3B, 0x3F, 0x46), dark: "#D0D7DE", dashes: "2 4" },
    Colour { light: RGBColor(0x45, 0x3A, 0xB8), dark: "#B3A6FF", dashes: "20 4 6 4" },
];

/// A colour as a chart's attribute has it.
pub(super) fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The style that dashes the lines, and lightens them by dark.
pub(super) fn rules() -> String {
    let mut rules = String::new();
    for Colour { light, dashes, .. } in COLOURS.iter().filter(|colour| !colour.dashes.is_empty()) {
        rules.push_str(&format!("svg [stroke=\"{}\"]{{stroke-dasharray:{dashes}}}\n", hex(*light)));
    }
    rules.push_str("@media screen and (prefers-color-scheme:dark){\n");
    for Colour { light, dark, .. } in &COLOURS {
        let light = hex(*light);
        rules.push_str(&format!(
            "svg [stroke=\"{light}\"]{{stroke:{dark}}}svg [fill=\"{light}\"]{{fill:{dark}}}\n"
        ));
    }
    rules.push_str("}\n");
    rules
}

/// A piece of the line, for a legend.
pub(super) fn swatch(at: usize) -> Markup {
    html! {
        svg.swatch viewBox="0 0 48 12" width="48" height="12" aria-hidden="true" {
            line x1="0" y1="6" x2="48" y2="6" stroke=(hex(COLOURS[at % COLOURS.len()].light)) stroke-width="4" {}
        }
    }
}
