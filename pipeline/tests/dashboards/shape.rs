//! Dashboards are what Grafana takes, and what a person can use.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::files::{Dashboard, dashboards};

/// Kinds of panels in use.
const TYPES: &[&str] = &["heatmap", "stat", "state-timeline", "timeseries"];
/// Grafana's names of the units in use.
const UNITS: &[&str] = &["bytes", "cps", "none", "percentunit", "reqps", "s"];
/// Columns of Grafana's grid.
const COLUMNS: u64 = 24;

fn text<'a>(value: &'a Value, what: &str) -> &'a str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("{what}"))
}

/// The squares of the grid that a panel covers.
fn squares(panel: &Value, what: &str) -> Vec<(u64, u64)> {
    let side = |name: &str| panel["gridPos"][name].as_u64().unwrap_or_else(|| panic!("{what}: {name}"));
    let (x, y, w, h) = (side("x"), side("y"), side("w"), side("h"));
    assert!(w > 0 && h > 0 && x + w <= COLUMNS, "{what} does not fit into the grid");
    (x..x + w).flat_map(|column| (y..y + h).map(move |row| (column, row))).collect()
}

fn check_panel(panel: &Value, what: &str) {
    assert!(TYPES.contains(&text(&panel["type"], what)), "{what}: {}", panel["type"]);
    let description = text(&panel["description"], what);
    assert!(description.len() >= 40 && description.ends_with('.'), "{what}: {description}");
    assert_eq!(panel["datasource"], json!({"type": "prometheus", "uid": "${datasource}"}), "{what}");
    let defaults = &panel["fieldConfig"]["defaults"];
    let unit = text(&defaults["unit"], what);
    assert!(UNITS.contains(&unit), "{what}: {unit}");
    if panel["type"] == "stat" {
        let steps = defaults["thresholds"]["steps"].as_array().expect(what);
        assert!(
            steps[0]["value"].is_null() && steps[0]["color"].is_string(),
            "{what}: the first step is the rest"
        );
        let values: Vec<f64> = steps[1..].iter().map(|step| step["value"].as_f64().expect(what)).collect();
        assert!(values.is_sorted(), "{what}: {values:?}");
    }
    let targets = panel["targets"].as_array().expect(what);
    let names: BTreeSet<&str> = targets.iter().map(|target| text(&target["refId"], what)).collect();
    assert!(!targets.is_empty() && names.len() == targets.len(), "{what}: {names:?}");
    for target in targets {
        let expr = text(&target["expr"], what);
        text(&target["legendFormat"], what);
        assert_eq!(target["instant"] == true, panel["type"] == "stat", "{what}: {expr}");
        assert!(expr.contains("job=~\"$job\""), "{what} shows other jobs too: {expr}");
        // Every series is there from the start: a query that needs this names one that is not.
        assert!(!expr.contains("vector("), "{what}: {expr}");
    }
}

fn check(dashboard: &Dashboard) {
    let (name, json) = (&dashboard.name, &dashboard.json);
    assert_eq!(text(&json["uid"], name), format!("gitops-runtime-{name}"));
    assert!(text(&json["title"], name).starts_with("GitOps runtime / "), "{name}");
    text(&json["description"], name);
    assert_eq!(json["tags"], json!(["gitops-runtime"]), "{name}");
    assert!(json["schemaVersion"].as_u64() >= Some(36), "{name}");
    assert!(json.get("id").is_none(), "{name}: an id is given by each Grafana itself");
    let variables: Vec<&str> =
        dashboard.variables().iter().map(|variable| text(&variable["name"], name)).collect();
    assert_eq!(variables, ["datasource", "job", "instance"], "{name}");
    assert_eq!(dashboard.variables()[0]["type"], "datasource", "{name}");

    let (mut ids, mut titles, mut covered) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    assert!(!dashboard.panels().is_empty(), "{name} has no panels");
    for panel in dashboard.panels() {
        let title = text(&panel["title"], name);
        let what = format!("{name}, {title}");
        assert!(ids.insert(panel["id"].as_u64().expect(&what)), "{what}: its id stands twice");
        let kind = panel["type"].as_str().unwrap_or_default();
        assert!(titles.insert((kind, title)), "{what}: its title stands twice");
        for square in squares(panel, &what) {
            assert!(covered.insert(square), "{what} lies over another panel at {square:?}");
        }
        check_panel(panel, &what);
    }
}

#[test]
fn dashboards_are_well_formed_and_explain_themselves() {
    let dashboards = dashboards();
    let names: Vec<&str> = dashboards.iter().map(|dashboard| dashboard.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "acts",
            "argocd-pressure",
            "event-reporter",
            "git",
            "kinds",
            "loss-budget",
            "overview",
            "platform",
            "ways-in"
        ]
    );
    dashboards.iter().for_each(check);
}
