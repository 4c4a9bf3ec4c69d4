//! As much of PromQL as finds the metrics that an expression names.

/// Of an expression, each selector of a metric of the program: its name, and its braces where it has some.
pub(crate) fn selectors(expr: &str) -> Vec<&str> {
    let in_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let mut found = Vec::new();
    let mut rest = expr;
    while let Some(at) = rest.find(in_name) {
        rest = rest.get(at..).unwrap();
        let name = rest.get(..rest.find(|letter| !in_name(letter)).unwrap_or(rest.len())).unwrap();
        let behind = rest.get(name.len()..).unwrap();
        let braces = if behind.starts_with('{') { behind.find('}').expect("a closed brace") + 1 } else { 0 };
        if name.starts_with("gitops_runtime_") || name.starts_with("process_") {
            found.push(rest.get(..name.len() + braces).unwrap());
        }
        rest = behind.get(braces..).unwrap();
    }
    found
}

/// The metric's name of a selector.
pub(crate) fn name(selector: &str) -> &str {
    selector.split_once('{').map_or(selector, |(name, _)| name)
}

#[test]
fn selectors_are_found_with_their_labels() {
    let expr = r#"histogram_quantile(0.9, sum by (le) (rate(gitops_runtime_a_bucket{x=~"$y", le="60"}[5m])))
        / process_b + on (job) up{job="x"} - gitops_runtime_c offset 5m"#;
    let found = selectors(expr);
    assert_eq!(found, [r#"gitops_runtime_a_bucket{x=~"$y", le="60"}"#, "process_b", "gitops_runtime_c"]);
    assert_eq!(
        found.into_iter().map(name).collect::<Vec<_>>(),
        ["gitops_runtime_a_bucket", "process_b", "gitops_runtime_c"]
    );
}
