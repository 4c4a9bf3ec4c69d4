//! Tables, spans of time and numbers as text.

use comfy_table::{CellAlignment, Table};
use pipeline_core::Timestamp;

/// A table without borders; the first `texts` columns stand to the left, the others to the right. An empty header is
/// not shown.
pub(crate) fn table(texts: usize, header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if !header.is_empty() {
        table.set_header(header.iter().copied());
    }
    for row in rows {
        table.add_row(row.iter());
    }
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default().max(header.len());
    for index in texts..columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// A table of properties, each behind its name.
pub(super) fn property_table<const N: usize>(properties: [(&str, String); N]) -> String {
    table(2, &[], &properties.map(|(name, text)| vec![name.to_owned(), text]))
}

/// A span of time in the unit that suits it.
pub(super) fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    match seconds {
        s if s < 0.001 => "under 1 ms".to_owned(),
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3_600.0 => format!("{:.0} h", s / 3_600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// Bytes in the unit that suits them.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        b if b < 10_000 => format!("{b} B"),
        b if b < 10_000_000 => format!("{} kB", b / 1_000),
        b => format!("{} MB", b / 1_000_000),
    }
}

/// How many of something; the plural is made with s.
pub(crate) fn count(number: u64, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// A label of a closed set, with blanks for underscores.
pub(super) fn word(word: &str) -> String {
    word.replace('_', " ")
}

/// Seconds from one time to another.
pub(super) fn between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

/// How long ago a time is.
pub(super) fn ago(at: Timestamp) -> String {
    format!("{} ago", span(between(at, Timestamp::now())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes_are_in_the_unit_that_suits_them() {
        for (seconds, shown) in [
            (0.0, "under 1 ms"),
            (0.34, "340 ms"),
            (0.9996, "1.0 s"),
            (2.54, "2.5 s"),
            (30.0, "30 s"),
            (300.0, "5 min"),
            (7_200.0, "2 h"),
            (172_800.0, "2 d"),
            (-1.0, "under 1 ms"),
        ] {
            assert_eq!(span(seconds), shown);
        }
        assert_eq!([size(512), size(120_000), size(20_000_000)], ["512 B", "120 kB", "20 MB"]);
        assert_eq!([count(0, "report"), count(1, "report")], ["0 reports", "1 report"]);
    }

    #[test]
    fn a_table_has_no_borders_and_no_spaces_at_its_end() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bb".to_owned(), "22".to_owned()]];
        assert_eq!(table(1, &["NAME", "N"], &rows), " NAME   N\n a      1\n bb    22\n");
        assert_eq!(table(2, &[], &rows), " a   1\n bb  22\n");
    }
}
