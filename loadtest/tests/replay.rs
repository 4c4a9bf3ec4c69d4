//! The recordings inside this program, replayed through the product's own code.

use loadtest::replay::{Summary, replay};
use loadtest_sim::recordings::{Case, packed};

fn run(set: &str) -> anyhow::Result<(Vec<Case>, Summary)> {
    let cases = packed(set)?;
    let summary = replay(&cases)?;
    Ok((cases, summary))
}

#[test]
fn every_recorded_report_is_reproduced_or_differs_on_purpose() {
    let (cases, summary) = run("incumbent-2.12").unwrap();
    assert_eq!(summary.different, 0, "{}", summary.text);
    assert_eq!(summary.equal + summary.on_purpose, summary.reports);
    let recorded: usize = cases.iter().map(|case| case.reports.len()).sum();
    assert!(summary.reports >= recorded && recorded > 0, "{}", summary.text);
    assert!(summary.equal > summary.reports / 2, "{}", summary.text);
    assert_eq!(summary.unfiltered, 0, "what was filtered then is filtered now");
    assert_eq!((summary.pairs, summary.unequal_rounds), ((160, 163), 0));
    let last = format!(
        "replay: {} reports, {} equal, {} different on purpose, 0 different\n",
        summary.reports, summary.equal, summary.on_purpose
    );
    assert!(summary.text.ends_with(&last), "{}", summary.text);
    assert!(summary.is_good());
}

#[test]
fn every_change_of_argo_cd_3_is_reported_with_the_health_of_its_node() {
    let (_, summary) = run("argocd-3.2").unwrap();
    assert_eq!(summary.exceptions, 0, "{}", summary.text);
    assert!(summary.observed > 400, "{}", summary.text);
    assert!(summary.is_good());
}

#[test]
fn nothing_to_compare_is_not_good() {
    let summary = replay(&[]).unwrap();
    assert!(!summary.is_good());
}
