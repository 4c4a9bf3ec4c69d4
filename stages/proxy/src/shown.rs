//! What others say or name, as it is shown.

/// At most so many characters of a text, and none that controls a terminal.
pub(crate) fn shown(text: &str, most: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(most).collect()
}
