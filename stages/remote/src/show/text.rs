//! How wide texts are on a terminal, and how they are made to fit one.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Stands where something was cut away.
const CUT: char = '…';

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The first of these letters that leave room for the sign of a cut.
fn kept(letters: impl Iterator<Item = char>, most: usize) -> Vec<char> {
    let mut room = most.saturating_sub(1);
    let fits = |letter: &char| match room.checked_sub(letter.width().unwrap_or(0)) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    letters.take_while(fits).collect()
}

/// A text of so many columns at most: its end is cut away.
pub(crate) fn begin(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let kept: String = kept(text.chars(), most).into_iter().collect();
    format!("{}{CUT}", kept.trim_end())
}

/// The same, of which the beginning is cut away: the end of a name tells it from others.
pub(crate) fn end(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let kept: String = kept(text.chars().rev(), most).into_iter().rev().collect();
    format!("{CUT}{}", kept.trim_start())
}

/// A line, of so many columns: words that have no room go on below, `indent` columns in. A word that has no room alone stays whole, so
/// that it can be copied; the terminal folds it.
pub(crate) fn fold(line: &str, most: Option<usize>, indent: usize) -> String {
    let Some(most) = most.filter(|most| width(line) > *most && *most > indent) else {
        return line.to_owned();
    };
    let own = line.chars().take_while(|letter| *letter == ' ').count();
    let (mut text, mut used, mut is_first) = (" ".repeat(own), own, true);
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let wide = width(word);
        if !is_first && used + 1 + wide > most {
            text += "\n";
            text += &" ".repeat(indent);
            (used, is_first) = (indent, true);
        }
        if !is_first {
            text.push(' ');
            used += 1;
        }
        text += word;
        (used, is_first) = (used + wide, false);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_by_the_columns_that_it_takes() {
        assert_eq!([begin("shop", 4), end("shop", 4)], ["shop", "shop"]);
        assert_eq!([begin("prod/shop", 6), end("prod/shop", 6)], ["prod/…", "…/shop"]);
        // Each of these letters takes two columns.
        assert_eq!([begin("商店商店", 6), end("商店商店", 6)], ["商店…", "…商店"]);
        assert_eq!([begin("商店商店", 4), end("商店商店", 4)], ["商…", "…店"]);
        assert_eq!([begin("back-off restarting", 10), end("a b", 2)], ["back-off…", "…b"]);
        assert_eq!([begin("shop", 1), end("shop", 0)], ["…", "…"]);
    }

    #[test]
    fn words_that_have_no_room_go_on_below_and_none_is_broken() {
        assert_eq!(fold("cannot read it", None, 2), "cannot read it");
        assert_eq!(fold("cannot read it", Some(14), 2), "cannot read it");
        assert_eq!(fold("cannot read it", Some(12), 2), "cannot read\n  it");
        assert_eq!(fold("see https://example.com/a now", Some(10), 1), "see\n https://example.com/a\n now");
        assert_eq!(fold("  the Secret a", Some(12), 4), "  the Secret\n    a");
        assert_eq!(fold("商店 商店", Some(8), 0), "商店\n商店");
    }
}
