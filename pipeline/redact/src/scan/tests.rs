//! Each row's samples, and that no text makes the work more than linear.

use super::super::table::ROWS;
use super::*;

fn rows(text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    Marks::of(text).rows(text, &mut found);
    found.into_iter().map(|found| found.rule).collect()
}

#[test]
fn every_row_finds_its_samples_and_not_the_others() {
    for row in ROWS {
        assert!(!row.from.is_empty(), "{} says where it comes from", row.name);
        for text in row.yes {
            assert!(rows(text).contains(&row.name), "{} does not find {text}", row.name);
        }
        for text in row.no {
            assert!(!rows(text).contains(&row.name), "{} finds {text}", row.name);
        }
    }
}

#[test]
fn every_row_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> = ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), ROWS.len());
}

/// What was handed to the libraries for `one` repeated to `length` bytes, and what may be.
fn handed(one: &str, length: usize) -> (usize, usize) {
    let text = one.repeat(length / one.len());
    let mut marks = Marks::of(&text);
    let mut hit: Vec<usize> = marks.rows.iter().map(|hits| hits.row).collect();
    hit.sort_unstable();
    hit.dedup();
    marks.rows(&text, &mut Vec::new());
    (marks.handed, (hit.len() + 1) * text.len())
}

#[test]
fn the_bytes_that_are_searched_are_at_most_the_text_for_each_row_that_is_hit_and_once_more() {
    for row in ROWS {
        for mark in row.marks {
            for apart in ["", "-", ".", " ", "://", "--------------------------------"] {
                let (bytes, most) = handed(&format!("{mark}{apart}"), 64_000);
                assert!(bytes <= most, "{mark}{apart}: {bytes} bytes, {most} at most");
            }
        }
        let mark = row.marks.first().copied().unwrap_or_default();
        let (bytes, most) = handed(&format!("{mark}-"), 8_000_000);
        assert!(bytes <= most && bytes >= 7_999_900, "{mark}: {bytes} bytes of 8 MB, {most} at most");
    }
}

#[test]
fn no_pattern_has_more_than_five_times_as_much_searched_as_plain_yaml() {
    let yaml = "  containers:\n  - name: web\n    image: registry.example/shop/web:1.2.3\n    resources:\n      limits: {cpu: 500m, memory: 256Mi}\n    ports: [{containerPort: 8080, protocol: TCP}]\n";
    let per_byte = |one: &str| {
        let (bytes, _) = handed(one, 50_000);
        (bytes, 50_000 / one.len() * one.len())
    };
    let (plain, length) = per_byte(yaml);
    assert_eq!(plain, length, "plain YAML is read once");
    for row in ROWS {
        for mark in row.marks {
            for apart in ["-", " ", "\n", "=", ": x ", "/", "a1B2c3D4"] {
                let one = format!("{mark}{apart}");
                let (bytes, length) = per_byte(&one);
                assert!(bytes <= 5 * length, "{one:?}: {bytes} of {length} bytes");
            }
        }
    }
}

#[test]
fn so_many_that_are_no_secret_hide_none_behind_them() {
    let found = |before: usize| {
        let text = format!("{}auth('app', 'thistle')", "auth('app', '$PASSWORD') ".repeat(before));
        let mut found = Vec::new();
        Marks::of(&text).rows(&text, &mut found);
        found
            .into_iter()
            .filter(|found| text.get(found.range.clone()).is_some_and(|text| text.contains("thistle")))
            .count()
    };
    for before in [0, 1, 4, 6, 9, 40, 400] {
        assert!(found(before) > 0, "behind {before}");
    }
}

#[test]
fn a_long_run_of_little_but_marks_goes_whole_and_unsearched() {
    let text = format!("before {} after", "AKCp-".repeat(1000));
    let mut marks = Marks::of(&text);
    let mut found = Vec::new();
    marks.rows(&text, &mut found);
    assert_eq!(found, [Found::new(7..5007, "azure-devops-or-artifact-key")]);
    assert_eq!(marks.handed, text.len());
    // With as much between them they are searched.
    let text = "AKCp-----".repeat(1000);
    let mut marks = Marks::of(&text);
    marks.rows(&text, &mut found);
    assert_eq!((found.len(), marks.handed), (1, 2 * text.len()));
}
