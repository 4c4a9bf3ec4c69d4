//! Settings as the product's own reporter told them.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::platform::parse;
use crate::recordings::ReportLine;

/// Tracking method and instance label key that most of the last reports tell, of each entity one; `None` where none does.
///
/// A scenario that gives the settings back may be over before the last of all is told: that one alone says nothing.
pub(super) fn by_most<'a>(reports: impl Iterator<Item = &'a ReportLine>) -> Option<(String, String)> {
    let mut reports: Vec<_> = reports.collect();
    reports.sort_by(|left, right| left.t.total_cmp(&right.t));
    let last: HashMap<_, _> = reports
        .into_iter()
        .filter_map(|report| Some((parse(&report.data.to_string())?.entity, report)))
        .collect();
    let mut votes = BTreeMap::<_, usize>::new();
    for settings in last.values().filter_map(|report| told(&report.data)) {
        *votes.entry(settings).or_default() += 1;
    }
    votes.into_iter().max_by_key(|(_, count)| *count).map(|(settings, _)| settings)
}

fn told(data: &Value) -> Option<(String, String)> {
    let text = |name: &str| Some(data.get("source")?.get(name)?.as_str()?.to_owned());
    Some((text("trackingMethod")?, text("appInstanceLabelKey")?))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    fn report(t: f64, name: &str, method: &str) -> ReportLine {
        let object = STANDARD.encode(json!({"kind": "Service", "metadata": {"name": name}}).to_string());
        let source = json!({"trackingMethod": method, "appInstanceLabelKey": format!("key of {method}")});
        ReportLine { n: 0, t, data: json!({"object": object, "source": source}) }
    }

    #[test]
    fn the_last_report_of_each_entity_has_one_vote() {
        let reports = [
            report(1.0, "a", "annotation"),
            report(2.0, "b", "annotation"),
            report(3.0, "c", "annotation"),
            report(4.0, "a", "label"),
            report(5.0, "b", "label"),
            report(9.0, "d", "annotation"),
            report(6.0, "c", "label"),
        ];
        assert_eq!(by_most(reports[..0].iter()), None);
        assert_eq!(by_most(reports.iter()), Some(("label".to_owned(), "key of label".to_owned())));
    }
}
