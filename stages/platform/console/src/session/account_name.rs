//! Names of accounts.

/// Characters of the longest.
pub(crate) const LONGEST: usize = 60;

/// Whether somebody may be called so.
pub(crate) fn may_be(name: &str) -> bool {
    (1..=LONGEST).contains(&name.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_60_characters_however_many_bytes_they_take() {
        assert!(may_be("a") && may_be(&"\u{10400}".repeat(60)));
        assert!(!may_be("") && !may_be(&"a".repeat(61)));
    }
}
