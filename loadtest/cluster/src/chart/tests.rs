//! Values that are made at random, without a cluster.

use super::*;

fn leaves() -> Vec<Leaf> {
    let mut leaves = Vec::new();
    collect(&json!({"a": {"b": 1, "c": {}}, "d": ["x"]}), &mut Vec::new(), &mut leaves);
    leaves
}

#[test]
fn leaves_are_values_and_empty_groups() {
    let path = |path: &[&str]| path.iter().map(ToString::to_string).collect::<Vec<_>>();
    let expected =
        [(path(&["a", "b"]), json!(1)), (path(&["a", "c"]), json!({})), (path(&["d"]), json!(["x"]))];
    assert_eq!(leaves(), expected);
}

#[test]
fn one_seed_makes_the_same_values_and_another_one_others() {
    let made = |seed: u64| {
        let mut random = Rng::with_seed(seed);
        (0..20).map(|_| changed(&leaves(), &mut random)).collect::<Vec<_>>()
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
    assert!(made(1).iter().all(|values| !values.as_object().unwrap().is_empty()));
}
