//! What two lists have in common, and what only one has.

/// Two lists side by side.
#[derive(Debug)]
pub(super) struct Pairs<'a, T> {
    /// Of A and of B, in the order of A.
    pub(super) both: Vec<(&'a T, &'a T)>,
    pub(super) only_a: Vec<&'a T>,
    pub(super) only_b: Vec<&'a T>,
}

/// Pairs what has the same key: the first with the first, the second with the second.
pub(super) fn pair<'a, T, K: PartialEq>(
    a: impl IntoIterator<Item = &'a T>,
    b: impl IntoIterator<Item = &'a T>,
    key: impl Fn(&'a T) -> K,
) -> Pairs<'a, T> {
    let mut pairs = Pairs { both: Vec::new(), only_a: Vec::new(), only_b: b.into_iter().collect() };
    for own in a {
        match pairs.only_b.iter().position(|other| key(other) == key(own)) {
            Some(at) => pairs.both.push((own, pairs.only_b.remove(at))),
            None => pairs.only_a.push(own),
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_paired_in_their_order() {
        let (a, b) = ([("x", 1), ("y", 2), ("x", 3)], [("x", 4), ("z", 5), ("x", 6), ("x", 7)]);
        let pairs = pair(&a, &b, |(key, _)| *key);
        assert_eq!(pairs.both, [(&("x", 1), &("x", 4)), (&("x", 3), &("x", 6))]);
        assert_eq!(pairs.only_a, [&("y", 2)]);
        assert_eq!(pairs.only_b, [&("z", 5), &("x", 7)]);
    }
}
