//! What stands on a terminal of so many columns, letter by letter, and a page that shows it.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// What may stand before a word: how far what is told of an application stands in.
const BESIDE: usize = 16;

/// A letter in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    letter: char,
    /// Columns that it takes.
    wide: usize,
    /// One of a terminal's sixteen colours.
    colour: Option<u8>,
    is_bold: bool,
}

/// A row, and whether the terminal began it because the one before had no room.
#[derive(Debug, Default, Clone)]
struct Row {
    places: Vec<Place>,
    is_folded: bool,
}

/// What stands on a terminal.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: usize,
    rows: Vec<Row>,
}

/// The sixteen colours of a theme, its ground, and what is written where no colour is said.
struct Theme {
    ground: &'static str,
    text: &'static str,
    colours: [&'static str; 16],
}

/// As VS Code has them.
const DARK: Theme = Theme {
    ground: "#1e1e1e",
    text: "#cccccc",
    colours: [
        "#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5", "#666666",
        "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#e5e5e5",
    ],
};
const LIGHT: Theme = Theme {
    ground: "#ffffff",
    text: "#333333",
    colours: [
        "#000000", "#cd3131", "#107c10", "#949800", "#0451a5", "#bc05bc", "#0598bc", "#555555", "#666666",
        "#cd3131", "#14ce14", "#b5ba00", "#0451a5", "#bc05bc", "#0598bc", "#a5a5a5",
    ],
};

impl Grid {
    /// Reads what a command wrote: letters, ends of lines, colours and bold letters, and nothing else.
    pub(crate) fn of(text: &str, columns: usize) -> Self {
        let (mut rows, mut row) = (Vec::new(), Row::default());
        let (mut colour, mut is_bold) = (None, false);
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\n' => rows.push(std::mem::take(&mut row)),
                '\u{1b}' => {
                    assert_eq!(letters.next(), Some('['), "another escape in {text:?}");
                    let said: String = letters.by_ref().take_while(|letter| *letter != 'm').collect();
                    match said.split(';').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u8>>()[..] {
                        [0] => (colour, is_bold) = (None, false),
                        [1] => is_bold = true,
                        [4 | 24] => {}
                        [22] => is_bold = false,
                        [39] => colour = None,
                        [one @ 30..=37] => colour = Some(one - 30),
                        [one @ 90..=97] => colour = Some(one - 82),
                        [38, 5, one @ 0..=15] => colour = Some(one),
                        _ => assert!(said.is_empty(), "the escape {said:?} in {text:?}"),
                    }
                }
                letter => {
                    let wide = letter.width().unwrap_or_default();
                    assert!(wide > 0, "{letter:?} in {text:?}");
                    if row.width() + wide > columns {
                        rows.push(std::mem::take(&mut row));
                        row.is_folded = true;
                    }
                    row.places.push(Place { letter, wide, colour, is_bold });
                }
            }
        }
        if !row.places.is_empty() {
            rows.push(row);
        }
        Self { columns, rows }
    }

    /// Rows that the terminal folded, though their words had room.
    pub(crate) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut line = String::new();
        for row in &self.rows {
            if !row.is_folded {
                line.clear();
            }
            line += &row.text();
            // A word that has no room beside what it is of is left to the terminal.
            let has_room = |word: &str| {
                word.chars().filter_map(|letter| letter.width()).sum::<usize>() + BESIDE <= self.columns
            };
            if row.is_folded && line.split_whitespace().all(has_room) {
                broken.push(line.clone());
            }
        }
        broken
    }

    /// What stands there, without colours.
    pub(crate) fn text(&self) -> String {
        self.rows.iter().map(|row| row.text() + "\n").collect()
    }

    /// Colours that are used.
    pub(crate) fn colours(&self) -> Vec<u8> {
        let mut all: Vec<u8> =
            self.rows.iter().flat_map(|row| &row.places).filter_map(|place| place.colour).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// How many points a picture of it is wide and high.
    pub(crate) fn size(&self) -> (u32, u32) {
        let points = |count: usize, of: u32| u32::try_from(count).unwrap() * of + 32;
        (points(self.columns, 10), points(self.rows.len(), 20))
    }

    /// A page that shows it on a dark or a light ground.
    pub(crate) fn page(&self, is_dark: bool) -> String {
        let Theme { ground, text, colours } = if is_dark { DARK } else { LIGHT };
        let mut page = format!(
            "<!doctype html><meta charset=utf-8><style>html{{overflow:hidden}}body{{margin:16px;background:{ground};color:{text}}}\
             div{{font:16px/20px 'DejaVu Sans Mono',monospace;height:20px;white-space:pre}}\
             i{{font-style:normal;display:inline-block;height:20px;overflow:hidden;vertical-align:top}}</style>"
        );
        for row in &self.rows {
            page += "<div>";
            for place in &row.places {
                let colour = place.colour.map_or(text, |colour| colours[usize::from(colour)]);
                let weight = if place.is_bold { 700 } else { 400 };
                let letter = match place.letter {
                    '<' => "&lt;".to_owned(),
                    '&' => "&amp;".to_owned(),
                    letter => letter.to_string(),
                };
                let wide = place.wide * 10;
                write!(page, "<i style='width:{wide}px;color:{colour};font-weight:{weight}'>{letter}</i>")
                    .unwrap();
            }
            page += "</div>";
        }
        page
    }
}

impl Row {
    fn width(&self) -> usize {
        self.places.iter().map(|place| place.wide).sum()
    }

    fn text(&self) -> String {
        self.places.iter().map(|place| place.letter).collect()
    }
}
