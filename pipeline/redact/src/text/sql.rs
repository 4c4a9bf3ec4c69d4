//! Values of columns that are secret: `INSERT INTO users (name, password) VALUES ('a', 'x')`.

use std::ops::Range;

use super::super::names::{self, Class};
use super::super::scan::Found;
use super::{NAME, Scan, is_quote, is_quote_letter};

impl Scan<'_> {
    pub(super) fn inserts(&self, marks: &[usize], found: &mut Vec<Found>) {
        let mut done = 0;
        for at in marks {
            let open = self.within(*at, NAME, |byte| matches!(byte, b'(' | b';'));
            if *at < done || self.byte(open) != Some(b'(') {
                continue;
            }
            let (columns, mut end) = self.items(open);
            let classes: Vec<(&str, Class)> = columns
                .into_iter()
                .filter_map(|column| self.text.get(column))
                .map(|column| (column, names::classify(column)))
                .collect();
            let values = self.within(end, 64, |byte| byte == b'(');
            let told =
                self.text.get(end..values).is_some_and(|text| text.trim().eq_ignore_ascii_case("values"));
            if told && classes.iter().any(|(_, class)| *class != Class::Plain) {
                end = values;
                while self.byte(end) == Some(b'(') {
                    let (items, after) = self.items(end);
                    for (item, (name, class)) in items.into_iter().zip(&classes) {
                        if self.text.get(item.clone()).is_some_and(|text| class.holds(name, text)) {
                            found.push(Found::new(item, "value of a column"));
                        }
                    }
                    end = self.until(after, |byte| !(byte.is_ascii_whitespace() || byte == b','));
                }
            }
            done = end;
        }
    }

    /// What stands between commas in the bracket that opens at `open`, quotes taken off, and where it ends.
    fn items(&self, open: usize) -> (Vec<Range<usize>>, usize) {
        let mut items = Vec::new();
        let (mut from, mut at, mut depth) = (open + 1, open + 1, 1_usize);
        while let Some(byte) = self.byte(at) {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                quote if is_quote(quote) => at = self.close(at + 1, quote),
                _ => {}
            }
            if depth == 0 || byte == b',' && depth == 1 {
                let text = self.text.get(from..at).unwrap_or_default();
                let start = from + text.len() - text.trim_start().trim_start_matches(is_quote_letter).len();
                let end = from + text.trim_end().trim_end_matches(is_quote_letter).len();
                items.push(start..end.max(start));
                from = at + 1;
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        (items, at)
    }
}
