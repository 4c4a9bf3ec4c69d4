//! Columns of tables in text that are secret: `name,password` in the first line, `ada,x` in those below.

use std::ops::Range;

use super::super::names::{self, Class};
use super::super::prose;
use super::super::scan::Found;
use super::{LINE, Scan, is_quote_letter};

/// What parts columns.
const SIGNS: [char; 3] = [',', ';', '\t'];

impl Scan<'_> {
    /// Tables whose first line holds one of the names at `marks`. Each line is read once.
    pub(super) fn tables(&self, marks: &[usize], found: &mut Vec<Found>) {
        let mut done = 0;
        for at in marks {
            if *at < done {
                continue;
            }
            let start = at - self.line_before(*at, LINE).len();
            let mut end = self.line_end(*at);
            done = end;
            let Some(head) = self.text.get(start..end).filter(|head| head.len() <= LINE) else { continue };
            let Some(sign) = head.chars().find(|letter| SIGNS.contains(letter)) else { continue };
            let names = head.split(sign).map(|name| name.trim().trim_matches(is_quote_letter));
            if head.contains(", ") || !names.clone().all(is_column) {
                continue;
            }
            let columns: Vec<(&str, Class)> = names.map(|name| (name, names::classify(name))).collect();
            if columns.iter().all(|(_, class)| *class == Class::Plain) {
                continue;
            }
            while let Some((cells, next)) = self.cells(end, sign, columns.len()) {
                for (cell, (name, class)) in cells.into_iter().zip(&columns) {
                    let text = self.text.get(cell.clone()).unwrap_or_default();
                    if class.holds(name, text) && !prose::is_state(text) {
                        found.push(Found::new(cell, "value of a column"));
                    }
                }
                end = next;
                done = next;
            }
        }
    }

    /// The cells of the line below `end`, where it has as many as the table has columns, and where it ends.
    fn cells(&self, end: usize, sign: char, columns: usize) -> Option<(Vec<Range<usize>>, usize)> {
        let start = end + usize::from(self.byte(end) == Some(b'\r')) + 1;
        let stop = self.within(start, LINE, |byte| matches!(byte, b'\r' | b'\n'));
        let line = self.text.get(start..stop).filter(|line| !line.trim().is_empty())?;
        let mut cells = Vec::new();
        let mut from = start;
        for cell in line.split(sign) {
            let bare = cell.trim().trim_matches(is_quote_letter);
            let at = from + cell.find(bare).unwrap_or_default();
            cells.push(at..at + bare.len());
            from += cell.len() + sign.len_utf8();
        }
        (cells.len() == columns).then_some((cells, stop))
    }
}

/// Whether a text can be the name of a column.
fn is_column(name: &str) -> bool {
    (1..=40).contains(&name.len())
        && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
        && name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == '#')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-. #".contains(&byte))
        && name.split(' ').count() <= 3
}
