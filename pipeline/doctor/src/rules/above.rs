//! Files for a chart above, which has this one as a dependency: what it gives is judged, and named as it stands there.

use std::borrow::Cow;

use super::{Finding, Severity};
use crate::tree::{Dependency, File, Node, Value};
use crate::unreadable::Unreadable;

/// The keys of charts above that values of this one stand below, each once.
pub(super) fn keys(files: &[(String, Result<File, Unreadable>)]) -> Vec<String> {
    let mut keys = Vec::new();
    for below in files.iter().filter_map(|(_, file)| file.as_ref().ok()).flat_map(File::dependencies) {
        if !keys.iter().any(|key| key == below.key) {
            keys.push(below.key.to_owned());
        }
    }
    keys
}

/// What stands in a file below a key of a chart above.
fn below<'a>(file: &'a File, key: Option<&str>) -> Option<Dependency<'a>> {
    file.dependencies().into_iter().find(|below| key.is_some_and(|key| key == below.key))
}

/// The values that a file gives this chart: what stands below its key in a chart above, under what that one says for all.
pub(super) fn values<'a>(file: &'a File, key: Option<&str>) -> Cow<'a, Node> {
    let Some(below) = below(file, key) else { return Cow::Borrowed(&file.root) };
    let mut values = below.values.clone();
    if let Some(global) = file.root.get("global") {
        let all = Node { value: Value::Map(vec![("global".to_owned(), global.clone())]), ..values.clone() };
        values.join(&all);
    }
    Cow::Owned(values)
}

/// Sets the key of a chart above before the path of what stands below it, and says that it was taken for one.
pub(super) fn name(
    findings: &mut Vec<Finding>,
    files: &[(String, Result<File, Unreadable>)],
    key: Option<&str>,
) {
    for file in files.iter().filter_map(|(_, file)| file.as_ref().ok()) {
        let Some(below) = below(file, key) else { continue };
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

/// Tells of several runtimes of one chart above, which would stand in one namespace.
pub(super) fn several(
    findings: &mut Vec<Finding>,
    files: &[(String, Result<File, Unreadable>)],
    keys: &[String],
) {
    let given = |key: &str| {
        let below = files.iter().rev().find_map(|(_, file)| below(file.as_ref().ok()?, Some(key)))?;
        let is_off = below.values.get("enabled").is_some_and(|node| node.value == Value::Bool(false));
        (!is_off).then_some((key.to_owned(), below.values))
    };
    let on: Vec<_> = keys.iter().filter_map(|key| given(key)).collect();
    let [(first, _), others @ ..] = on.as_slice() else { return };
    for (key, values) in others {
        findings.push(Finding {
            code: "GR0079",
            severity: Severity::Warning,
            file: values.file.clone(),
            line: values.line,
            path: key.clone(),
            found: format!("a second runtime beside {first}"),
            wanted: "one in a release: codefresh-cm, codefresh-token and the router's Service are called so in each".to_owned(),
            meant: None,
            todo: "make a release of each, in a namespace of its own".to_owned(),
        });
    }
}
