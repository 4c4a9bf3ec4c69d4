//! Tables: on a terminal as wide as that, elsewhere as wide as what stands in them.
//!
//! On a terminal that is too narrow the columns go that matter least, and then the ends of long texts.

use comfy_table::{CellAlignment, Color, ColumnConstraint, ContentArrangement, Row, Table, Width};

use super::screen::Screen;
use super::{plain, word};

/// The narrowest that a column of long texts becomes.
const LEAST: u16 = 8;
/// Between two columns.
const GAP: u16 = 2;

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    header: &'static str,
    /// Shown where more is asked for.
    wide: bool,
    /// Goes first where there is no room: the highest number does; 0 never goes.
    rank: u8,
    /// The end of what stands here may be cut.
    long: bool,
    right: bool,
}

impl Column {
    /// One that is always shown whole.
    pub(crate) const fn new(header: &'static str) -> Self {
        Self { header, wide: false, rank: 0, long: false, right: false }
    }

    /// One that goes where there is no room, those of higher rank first.
    pub(crate) const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// One of long texts.
    pub(crate) const fn long(self) -> Self {
        Self { long: true, ..self }
    }

    /// One of numbers.
    pub(crate) const fn right(self) -> Self {
        Self { right: true, ..self }
    }

    /// One that is shown where more is asked for.
    pub(crate) const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }
}

/// What stands in a place of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    colour: Option<Color>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text: plain(&text), colour: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// A state by its name in the schema or of a peer, in the colour that tells how good it is.
    pub(crate) fn state(name: &str) -> Self {
        let text = if name.chars().any(char::is_lowercase) { plain(name) } else { word(&plain(name)) };
        let colour = match &*text {
            "Healthy" | "Synced" | "Succeeded" | "Completed" => Some(Color::Green),
            "Degraded" | "Failed" | "Error" | "Missing" | "Terminated" => Some(Color::Red),
            "OutOfSync" | "Suspended" | "Warning" => Some(Color::Yellow),
            "Progressing" | "Syncing" | "Running" | "InProgress" | "Terminating" => Some(Color::Cyan),
            _ => None,
        };
        Self { text, colour }
    }

    fn width(&self) -> usize {
        // As the table counts: what is wider than it has letters is rare, and costs the end of a text.
        self.text.chars().count()
    }
}

/// A table with a header, or without one.
pub(crate) fn table(
    columns: &[Column],
    rows: &[Vec<Cell>],
    wide: bool,
    header: bool,
    screen: &Screen,
) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(Cell::width).max();
            cells.unwrap_or_default().max(column.header.len())
        })
        .collect();
    // A column that says nothing of any row takes no room, unless there is no row at all.
    let says = |index: usize| {
        let said = rows.iter().filter_map(|row| row.get(index)).any(|cell| !cell.text.is_empty());
        rows.is_empty() || said || columns[index].rank == 0
    };
    let mut shown: Vec<usize> =
        (0..columns.len()).filter(|index| (wide || !columns[*index].wide) && says(*index)).collect();
    if let Some(width) = screen.width.map(usize::from) {
        let needs = |shown: &[usize]| {
            let of = |index: &usize| match columns[*index].long {
                true => widths[*index].min(usize::from(LEAST) * 3),
                false => widths[*index],
            };
            shown.iter().map(of).sum::<usize>() + usize::from(GAP) * shown.len().saturating_sub(1)
        };
        while needs(&shown) > width {
            let goes = shown.iter().copied().filter(|index| columns[*index].rank > 0);
            let Some(goes) = goes.max_by_key(|index| columns[*index].rank) else { break };
            shown.retain(|index| *index != goes);
        }
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_truncation_indicator("…");
    if let Some(width) = screen.width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    if screen.colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    if header {
        table.set_header(shown.iter().map(|index| columns[*index].header));
    }
    for row in rows {
        let cells = shown.iter().filter_map(|index| row.get(*index)).map(|cell| {
            let shown = comfy_table::Cell::new(&cell.text);
            match cell.colour {
                Some(colour) => shown.fg(colour),
                None => shown,
            }
        });
        let mut row = Row::from(cells.collect::<Vec<_>>());
        row.max_height(1);
        table.add_row(row);
    }
    let last = shown.len().saturating_sub(1);
    for (place, index) in shown.iter().enumerate() {
        let Some(column) = table.column_mut(place) else { continue };
        column.set_padding((0, if place == last { 0 } else { GAP }));
        if columns[*index].right {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_constraint(match columns[*index].long {
            true => ColumnConstraint::LowerBoundary(Width::Fixed(LEAST)),
            false => ColumnConstraint::ContentWidth,
        });
    }
    table.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column::new("NAME").long(),
        Column::new("HEALTH"),
        Column::new("AGE").rank(1).right(),
        Column::new("MESSAGE").rank(2).long(),
        Column::new("PROJECT").wide().rank(3),
    ];

    fn screen(width: Option<u16>, colour: bool) -> Screen {
        Screen { is_terminal: width.is_some(), width, colour }
    }

    fn rows() -> Vec<Vec<Cell>> {
        let row = |name: &str, health: &str, age: &str, message: &str| {
            vec![name.into(), Cell::state(health), age.into(), message.into(), "default".into()]
        };
        vec![
            row("prod/argocd/shop", "HEALTHY", "3m", ""),
            row("prod/argocd/a-very-long-name-of-an-application", "DEGRADED", "12d", "back-off restarting"),
        ]
    }

    #[test]
    fn elsewhere_than_on_a_terminal_everything_stands_whole() {
        let expected = "\
NAME                                            HEALTH    AGE  MESSAGE
prod/argocd/shop                                Healthy    3m
prod/argocd/a-very-long-name-of-an-application  Degraded  12d  back-off restarting
";
        assert_eq!(table(COLUMNS, &rows(), false, true, &screen(None, false)), expected);
        let wide = table(COLUMNS, &rows(), true, true, &screen(None, false));
        assert!(wide.starts_with("NAME ") && wide.contains("MESSAGE              PROJECT\n"), "{wide}");
        let bare = table(COLUMNS, &rows()[..1], false, false, &screen(None, false));
        assert_eq!(bare, "prod/argocd/shop  Healthy  3m\n");
    }

    #[test]
    fn a_narrow_terminal_loses_what_matters_least_and_the_ends_of_long_texts() {
        for width in [40, 50, 60, 80, 100] {
            let shown = table(COLUMNS, &rows(), false, true, &screen(Some(width), false));
            assert_eq!(shown.lines().count(), 3, "{shown}");
            for line in shown.lines() {
                assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
            }
            assert!(shown.contains("Degraded"), "{shown}");
        }
        let shown = table(COLUMNS, &rows(), false, true, &screen(Some(40), false));
        assert!(!shown.contains("MESSAGE") && shown.contains('…'), "{shown}");
    }

    #[test]
    fn colours_tell_how_good_a_state_is_and_are_nowhere_else() {
        let shown = table(COLUMNS, &rows(), false, true, &screen(Some(100), true));
        assert!(shown.contains("\u{1b}["), "{shown:?}");
        let shown = table(COLUMNS, &rows(), false, true, &screen(Some(100), false));
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
}
