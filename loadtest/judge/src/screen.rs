//! What commands print: plain text on standard output, and progress on standard error where that is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};

/// Prints a line on standard output. A reader that has gone away is no error of ours: the exit code tells.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Whether standard error is a terminal that shows progress.
#[must_use]
pub fn is_live() -> bool {
    std::io::stderr().is_terminal()
}

/// The text in green (good) or red, where standard output is a terminal and `NO_COLOR` does not forbid it.
#[must_use]
pub fn judged(text: &str, good: bool) -> String {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if forbidden || !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    let colour = if good { 32 } else { 31 };
    format!("\u{1b}[{colour}m{text}\u{1b}[0m")
}

/// A table without borders; all columns but the first `texts` stand to the right.
#[must_use]
pub fn table(texts: usize, header: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header.iter().copied());
    for row in rows {
        table.add_row(row.iter());
    }
    for index in texts..header.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A progress bar on standard error, hidden where that is no terminal.
#[must_use]
pub fn bar(length: u64, about: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    bar.set_style(style("{prefix} [{bar:40.green}] {pos}/{len} {elapsed} {msg}"));
    bar.set_prefix(about.to_owned());
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// A style of a bar; a template that cannot be read gives the plain one.
#[must_use]
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bcd".to_owned(), "1,000".to_owned()]];
        assert_eq!(table(1, &["name", "n"], &rows), " name      n\n a         1\n bcd   1,000");
    }
}
