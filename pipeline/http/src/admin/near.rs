//! Names that may have been meant by one that is not known.

use pipeline_core::Key;

/// How many names are offered.
const OFFERED: usize = 5;

/// The known applications whose name is nearest to that of `key`, the nearest first: the same name in another
/// namespace, a name with a few letters wrong, a name that holds it.
pub(super) fn near(key: &Key, known: impl IntoIterator<Item = Key>) -> Vec<String> {
    let asked = key.name().to_lowercase();
    let most = (asked.chars().count() / 3).max(1);
    let distance = |name: &str| {
        let name = name.to_lowercase();
        let wrong = strsim::damerau_levenshtein(&asked, &name);
        // A part of a long name is nearer than nothing, and further than a slip.
        let part = asked.chars().count() >= 3 && name.contains(&asked);
        (wrong <= most).then_some(wrong).or(part.then_some(most + 1))
    };
    let mut found: Vec<(usize, Key)> =
        known.into_iter().filter_map(|known| Some((distance(known.name())?, known))).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(OFFERED).map(|(_, key)| key.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_far_ones_not_at_all() {
        let known =
            ["team-a/shop", "argocd/shpo", "argocd/web-shop-front", "argocd/database", "argocd/shop-2"];
        let found = |asked: &str| {
            let known = known.iter().chain(["argocd/shpo"].iter());
            near(&Key::parse(asked).unwrap(), known.map(|known| Key::parse(known).unwrap()))
        };
        assert_eq!(
            found("argocd/shop"),
            ["team-a/shop", "argocd/shpo", "argocd/shop-2", "argocd/web-shop-front"]
        );
        assert_eq!(found("argocd/DATABSE"), ["argocd/database"]);
        assert_eq!(found("argocd/zzzzzz"), Vec::<String>::new());
    }
}
