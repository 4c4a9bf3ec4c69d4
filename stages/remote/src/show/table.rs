//! Tables: on a terminal as wide as that, elsewhere as wide as what stands in them.
//!
//! On a terminal that is too narrow the columns go that matter least, and then a part of long texts.

use crossterm::style::{Color, Stylize as _};

use super::screen::Screen;
use super::text::{begin, end, width};
use super::{plain, word};

/// The narrowest that a column of long texts becomes.
const LEAST: usize = 8;
/// What such a column has before others go for it.
const EASE: usize = 3 * LEAST;
/// Between two columns.
const GAP: usize = 2;

/// Which part of a text is cut away where there is no room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Long {
    Never,
    End,
    Begin,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    header: &'static str,
    /// Shown where more is asked for.
    wide: bool,
    /// Goes first where there is no room: the highest number does; 0 never goes.
    rank: u8,
    long: Long,
    right: bool,
}

impl Column {
    /// One that is always shown whole.
    pub(crate) const fn new(header: &'static str) -> Self {
        Self { header, wide: false, rank: 0, long: Long::Never, right: false }
    }

    /// One that goes where there is no room, those of higher rank first.
    pub(crate) const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// One of long texts, whose ends may be cut away.
    pub(crate) const fn long(self) -> Self {
        Self { long: Long::End, ..self }
    }

    /// One of long texts whose ends tell them apart: their beginnings may be cut away.
    pub(crate) const fn path(self) -> Self {
        Self { long: Long::Begin, ..self }
    }

    /// One of numbers.
    pub(crate) const fn right(self) -> Self {
        Self { right: true, ..self }
    }

    /// One that is shown where more is asked for.
    pub(crate) const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    fn is_long(&self) -> bool {
        self.long != Long::Never
    }
}

/// What stands in a place of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    width: usize,
    colour: Option<Color>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::of(plain(&text), None)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::of(plain(text), None)
    }
}

/// In which colour a state tells how good it is: of the sixteen that a terminal's theme makes readable on its ground.
pub(super) fn colour(state: &str) -> Option<Color> {
    match state {
        "Healthy" | "Synced" | "Succeeded" | "Completed" => Some(Color::DarkGreen),
        "Degraded" | "Failed" | "Error" | "Missing" | "Terminated" => Some(Color::DarkRed),
        "OutOfSync" | "Suspended" | "Warning" | "Paused" | "Silent" => Some(Color::DarkYellow),
        "Progressing" | "Syncing" | "Running" | "InProgress" | "Terminating" => Some(Color::DarkCyan),
        _ => None,
    }
}

impl Cell {
    fn of(text: String, colour: Option<Color>) -> Self {
        Self { width: width(&text), text, colour }
    }

    /// A state by its name in the schema or of a peer, in the colour that tells how good it is.
    pub(crate) fn state(name: &str) -> Self {
        let text = if name.chars().any(char::is_lowercase) { plain(name) } else { word(&plain(name)) };
        let colour = colour(&text);
        Self::of(text, colour)
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
    let mut layout = Layout::of(columns, rows, wide, header);
    if let Some(width) = screen.width {
        layout.fit(width.into());
    }
    let mut text = String::new();
    if header {
        let headers = |place: usize| (columns[place].header, columns[place].header.len(), None);
        layout.line(&mut text, screen.colour, true, headers);
    }
    for row in rows {
        let cell = |place: usize| {
            row.get(place).map_or(("", 0, None), |cell| (&*cell.text, cell.width, cell.colour))
        };
        layout.line(&mut text, screen.colour, false, cell);
    }
    text
}

/// Which columns are shown, and how wide each is.
struct Layout<'c> {
    columns: &'c [Column],
    shown: Vec<usize>,
    widths: Vec<usize>,
}

impl<'c> Layout<'c> {
    /// As wide as what stands in them.
    fn of(columns: &'c [Column], rows: &[Vec<Cell>], wide: bool, header: bool) -> Self {
        let cells = |place: usize| rows.iter().filter_map(move |row| row.get(place));
        let width = |place: usize| {
            let widest = cells(place).map(|cell| cell.width).max();
            widest.unwrap_or_default().max(if header { columns[place].header.len() } else { 0 })
        };
        // A column that says nothing of any row takes no room, unless there is no row at all.
        let says = |place: usize| {
            let said = cells(place).any(|cell| !cell.text.is_empty());
            rows.is_empty() || said || columns[place].rank == 0
        };
        let is_shown = |place: &usize| (wide || !columns[*place].wide) && says(*place);
        Self {
            columns,
            shown: (0..columns.len()).filter(is_shown).collect(),
            widths: (0..columns.len()).map(width).collect(),
        }
    }

    /// What the columns that are shown take, where each takes so much.
    fn takes(&self, of: impl Fn(usize) -> usize) -> usize {
        let own: usize = self.shown.iter().map(|place| of(*place)).sum();
        own + GAP * self.shown.len().saturating_sub(1)
    }

    /// Makes it fit.
    fn fit(&mut self, most: usize) {
        let eased = |layout: &Self, place: usize| match layout.columns[place].is_long() {
            true => layout.widths[place].min(EASE),
            false => layout.widths[place],
        };
        while self.takes(|place| eased(self, place)) > most {
            let goes = self.shown.iter().copied().filter(|place| self.columns[*place].rank > 0);
            let Some(goes) = goes.max_by_key(|place| self.columns[*place].rank) else { break };
            self.shown.retain(|place| *place != goes);
        }
        let fixed = self.takes(|place| if self.columns[place].is_long() { 0 } else { self.widths[place] });
        let mut long: Vec<usize> =
            self.shown.iter().copied().filter(|place| self.columns[*place].is_long()).collect();
        let mut room = most.saturating_sub(fixed);
        // Those that need less than their share leave the rest of it to the others.
        while !long.is_empty() {
            let share = (room / long.len()).max(LEAST);
            let narrow: Vec<usize> =
                long.iter().copied().filter(|place| self.widths[*place] <= share).collect();
            if narrow.is_empty() {
                let more = room.saturating_sub(share * long.len());
                for (number, place) in long.iter().enumerate() {
                    self.widths[*place] = share + usize::from(number < more);
                }
                break;
            }
            room = room.saturating_sub(narrow.iter().map(|place| self.widths[*place]).sum());
            long.retain(|place| !narrow.contains(place));
        }
        // What is still too wide is cut where it is widest.
        while self.takes(|place| self.widths[place]) > most {
            let widest = self.shown.iter().copied().max_by_key(|place| self.widths[*place]);
            let Some(widest) = widest.filter(|place| self.widths[*place] > LEAST) else { break };
            self.widths[widest] -= 1;
        }
    }

    /// Adds a line: texts by the places of their columns, with their widths and colours.
    fn line<'t>(
        &self,
        to: &mut String,
        coloured: bool,
        is_header: bool,
        text: impl Fn(usize) -> (&'t str, usize, Option<Color>),
    ) {
        for (number, place) in self.shown.iter().enumerate() {
            let (column, most) = (&self.columns[*place], self.widths[*place]);
            let (text, wide, colour) = text(*place);
            let cut = (wide > most).then(|| match column.long {
                Long::Begin => end(text, most),
                _ => begin(text, most),
            });
            let rest = most.saturating_sub(cut.as_deref().map_or(wide, width));
            let (gap, text) = (if number == 0 { 0 } else { GAP }, cut.as_deref().unwrap_or(text));
            let (before, behind) = if column.right { (gap + rest, 0) } else { (gap, rest) };
            to.extend(std::iter::repeat_n(' ', before));
            match colour.filter(|_| coloured) {
                _ if text.is_empty() => {}
                Some(colour) => *to += &text.with(colour).to_string(),
                None if coloured && is_header => *to += &text.bold().to_string(),
                None => *to += text,
            }
            to.extend(std::iter::repeat_n(' ', behind));
        }
        to.truncate(to.trim_end_matches(' ').len());
        to.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column::new("NAME").path(),
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
    fn a_narrow_terminal_loses_what_matters_least_and_parts_of_long_texts() {
        for width in [40, 50, 60, 80, 100] {
            let shown = table(COLUMNS, &rows(), false, true, &screen(Some(width), false));
            assert_eq!(shown.lines().count(), 3, "{shown}");
            for line in shown.lines() {
                assert!(super::width(line) <= usize::from(width), "{width}: {line}");
            }
            assert!(shown.contains("Degraded"), "{shown}");
        }
        let shown = table(COLUMNS, &rows(), false, true, &screen(Some(40), false));
        let expected = "\
NAME                       HEALTH    AGE
prod/argocd/shop           Healthy    3m
…g-name-of-an-application  Degraded  12d
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn letters_that_take_two_columns_move_nothing_that_stands_behind_them() {
        let row = |name: &str| vec![Cell::from(name), Cell::state("HEALTHY"), "3m".into()];
        let rows = [row("商店"), row("shop"), row("prod/argocd/商店商店商店商店商店商店")];
        let whole = table(COLUMNS, &rows, false, true, &screen(None, false));
        let at = |line: &str| width(line.split("Healthy").next().unwrap());
        let places: Vec<usize> = whole.lines().skip(1).map(at).collect();
        assert_eq!(places, [38, 38, 38], "{whole}");
        for width in [40, 41] {
            let narrow = table(COLUMNS, &rows, false, true, &screen(Some(width), false));
            assert!(narrow.lines().all(|line| super::width(line) <= usize::from(width)), "{narrow}");
            let places: Vec<usize> = narrow.lines().skip(1).map(at).collect();
            assert!(places.iter().all(|place| *place == places[0]), "{narrow}");
        }
    }

    #[test]
    fn what_no_column_can_give_up_is_cut_where_it_is_widest() {
        const FIXED: &[Column] = &[Column::new("AT"), Column::new("PHASE"), Column::new("REVISION")];
        let rows = [vec!["2026-11-26 10:00:00Z".into(), Cell::state("Succeeded"), "0123456789".into()]];
        let shown = table(FIXED, &rows, false, false, &screen(Some(40), false));
        assert_eq!(shown, "2026-11-26 10:00…  Succeeded  0123456789\n");
    }

    #[test]
    fn colours_tell_how_good_a_state_is_and_are_nowhere_else() {
        let shown = table(COLUMNS, &rows(), false, true, &screen(Some(100), true));
        assert!(shown.contains("\u{1b}["), "{shown:?}");
        assert_eq!(
            shown.lines().map(|line| line.matches("\u{1b}[38").count()).collect::<Vec<_>>(),
            [0, 1, 1]
        );
        let shown = table(COLUMNS, &rows(), false, true, &screen(Some(100), false));
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
}
