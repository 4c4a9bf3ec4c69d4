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
        (0..20).map(|_| changed(&leaves(), "a", &mut random)).collect::<Vec<_>>()
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
    assert!(made(1).iter().all(|values| values["a"].is_object()), "one of the group");
}

#[test]
fn the_groups_are_those_that_files_set_something_of_each_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    let (one, two) = (file("one.yaml", "a: {b: 2}\nothers: 1\n"), file("two.yaml", "a: {c: {}}\nd: []\n"));
    let found = groups(&[one.clone(), two.clone()], &leaves()).unwrap();
    assert_eq!(found, [("a".to_owned(), vec![one, two.clone()]), ("d".to_owned(), vec![two])]);
    let error = groups(&[file("none.yaml", "others: 1\n")], &leaves()).unwrap_err();
    assert_eq!(error.to_string(), "there are no good files of values");
}

#[test]
fn only_a_finding_is_one_and_an_end_without_one_is_a_fault() {
    let ended = |code: i32, said: &str| {
        let script = format!("echo '{said}'; exit {code}");
        judgement(&std::process::Command::new("sh").args(["-c", &script]).output().unwrap())
    };
    assert_eq!(ended(0, "0 errors").unwrap(), None);
    assert_eq!(ended(1, "error GR0010 values.yaml: global.runtime.name").unwrap(), Some(Verdict::Found));
    for (code, said) in [(1, "0 errors"), (101, "error GR0010"), (2, "error GR0010")] {
        assert!(ended(code, said).is_err(), "{code} {said}");
    }
}
