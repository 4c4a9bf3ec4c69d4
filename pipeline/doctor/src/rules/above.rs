//! Files for a chart above, which has this one as a dependency: what it gives is judged, and named as it stands there.

use std::borrow::Cow;

use super::{Finding, Severity};
use crate::tree::{File, Node, Unreadable, Value};

/// The values that a file gives this chart: what stands below its key in a chart above, under what that one says for all.
pub(super) fn values(file: &File) -> Cow<'_, Node> {
    let Some(below) = file.dependency() else { return Cow::Borrowed(&file.root) };
    let mut values = below.values.clone();
    if let Some(global) = file.root.get("global") {
        let all = Node { value: Value::Map(vec![("global".to_owned(), global.clone())]), ..values.clone() };
        values.join(&all);
    }
    Cow::Owned(values)
}

/// Sets the key of a chart above before the path of what stands below it, and says that it was taken for one.
pub(super) fn name(findings: &mut Vec<Finding>, files: &[(String, Result<File, Unreadable>)]) {
    for file in files.iter().filter_map(|(_, file)| file.as_ref().ok()) {
        let Some(below) = file.dependency() else { continue };
        for finding in findings.iter_mut().filter(|finding| finding.file.as_ref() == Some(&file.name)) {
            let stands = |node: &Node, path: &str| {
                let path = path.split('[').next().unwrap_or_default();
                node.at(path).is_some_and(|node| node.line == finding.line)
            };
            let is_of_all = stands(&file.root, &finding.path);
            let is_below = stands(below.values, &finding.path) || !finding.path.starts_with("global");
            if !is_of_all && is_below && !finding.path.is_empty() {
                finding.path = format!("{}.{}", below.key, finding.path);
            }
        }
        findings.push(Finding {
            code: "GR0002",
            severity: Severity::Note,
            file: Some(file.name.clone()),
            line: below.values.line,
            path: below.key.to_owned(),
            found: "values of a chart above: by itself this chart takes what stands below the key".to_owned(),
            wanted: String::new(),
            meant: None,
            todo: String::new(),
        });
    }
}
