//! What is known of a chart without rendering it: which templates there are, and which files give values.

use serde::Serialize;
use serde_json::Value;
use stages_git::application::Source;
use stages_git::{GitError, Snapshot, join, yaml};

use crate::compiled::Compiled;
use crate::made::{Made, Origin};

/// The most bytes of a `Chart.yaml` that are read.
const MAX_FILE: usize = 1024 * 1024;
/// The most charts within one another.
const MAX_DEPTH: usize = 8;

/// A file of values, in the order in which they apply: a later one wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Values {
    /// Its path from the root of its repository, or its address.
    pub path: String,
    /// Whose file it is: the name of the source that it is taken of (`$name/path`), if it is of another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// The files of values of a chart in `directory`: its own, then those that the source names.
///
/// # Errors
/// The repository cannot be read.
pub(crate) fn values(
    files: &Snapshot<'_>,
    source: &Source,
    directory: &str,
) -> Result<Vec<Values>, GitError> {
    let here = |path: String| Values { path, reference: None };
    let mut all = Vec::new();
    if let Some(own) = join(directory, "values.yaml").filter(|_| source.chart.is_none())
        && is_there(files, &own)?
    {
        all.push(here(own));
    }
    let ignores_missing = source.settings()["helm"]["ignoreMissingValueFiles"] == Value::Bool(true);
    for named in
        source.settings()["helm"]["valueFiles"].as_array().into_iter().flatten().filter_map(Value::as_str)
    {
        if let Some((name, path)) = named.strip_prefix('$').and_then(|named| named.split_once('/')) {
            let path = join("", path).unwrap_or_else(|| path.to_owned());
            all.push(Values { path, reference: Some(name.to_owned()) });
        } else if named.contains("://") {
            all.push(here(named.to_owned()));
        } else if let Some(path) = join(directory, named)
            && (!ignores_missing || is_there(files, &path)?)
        {
            all.push(here(path));
        }
    }
    Ok(all)
}

/// The chart itself, which makes whatever no template is known for.
pub(crate) fn chart(directory: &str) -> Option<Origin> {
    Some(Origin {
        path: join(directory, "Chart.yaml")?,
        first_line: 0,
        last_line: 0,
        manifest: "".into(),
        file: "".into(),
    })
}

/// The template that Helm's comment names, as a file of the repository.
///
/// # Errors
/// The repository cannot be read.
pub(crate) fn template(
    files: &Snapshot<'_>,
    directory: &str,
    compiled: &Compiled,
) -> Result<Option<Origin>, GitError> {
    let Some(named) = &compiled.template else { return Ok(None) };
    // The first name is that of the chart, whatever its directory is called.
    let Some((_, below)) = named.split_once('/') else { return Ok(None) };
    let mut at = directory.to_owned();
    let mut rest = below;
    for _ in 0..MAX_DEPTH {
        let Some(after) = rest.strip_prefix("charts/") else { break };
        let Some((name, inner)) = after.split_once('/') else { return Ok(None) };
        let Some(within) = dependency(files, &at, name)? else { return Ok(None) };
        (at, rest) = (within, inner);
    }
    let Some(path) = join(&at, rest) else { return Ok(None) };
    let mut found = Made::default();
    let Some(text) = found.text(files, &path)? else { return Ok(None) };
    Ok(Some(Origin::whole_file(path, text.into())))
}

/// Where a chart that another depends on is in the repository: below it, or beside it.
fn dependency(files: &Snapshot<'_>, chart: &str, name: &str) -> Result<Option<String>, GitError> {
    if let Some(below) = join(chart, &format!("charts/{name}"))
        && files.is_directory(&below)?
    {
        return Ok(Some(below));
    }
    for file in ["Chart.yaml", "requirements.yaml"] {
        let Some(path) = join(chart, file) else { continue };
        let text = match files.text(&path, MAX_FILE) {
            Ok(text) => text.unwrap_or_default(),
            Err(error @ GitError::Read { .. }) => return Err(error),
            Err(_) => continue,
        };
        let Ok(chart_file) = yaml::first(&text) else { continue };
        for dependency in chart_file["dependencies"].as_array().into_iter().flatten() {
            let is_it = [&dependency["alias"], &dependency["name"]].into_iter().any(|value| value == name);
            let place = dependency["repository"].as_str().and_then(|place| place.strip_prefix("file://"));
            if let (true, Some(place)) = (is_it, place) {
                return Ok(join(chart, place));
            }
        }
    }
    Ok(None)
}

fn is_there(files: &Snapshot<'_>, path: &str) -> Result<bool, GitError> {
    match files.read(path, 0) {
        Ok(found) => Ok(found.is_some()),
        Err(error @ GitError::Read { .. }) => Err(error),
        // A file that is too large to be read is there all the same.
        Err(GitError::TooLarge { .. } | GitError::Lfs { .. }) => Ok(true),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stages_git::application::Source;

    use super::{template, values};
    use crate::compiled::Compiled;
    use crate::testing::repository;

    #[test]
    fn the_template_of_the_comment_is_found_in_charts_below_and_beside() {
        let files = [
            (
                "deploy/shop/Chart.yaml",
                "name: shop\ndependencies:\n- {name: lib, alias: l, repository: 'file://../lib'}\n",
            ),
            ("deploy/shop/charts/redis/templates/r.yaml", "redis: 1\n"),
            ("deploy/shop/templates/sub/web.yaml", "a: 1\nb: 2\n"),
            ("deploy/lib/templates/l.yaml", "lib: 1\n"),
        ];
        let (_directory, repository, commit) = repository(&files);
        let snapshot = repository.snapshot(commit).unwrap();
        let found = |named: &str| {
            let compiled = Compiled { template: Some(named.to_owned()), ..Compiled::default() };
            template(&snapshot, "deploy/shop", &compiled).unwrap().map(|origin| origin.path)
        };
        for (named, path) in [
            ("shop/templates/sub/web.yaml", Some("deploy/shop/templates/sub/web.yaml")),
            ("shop/charts/redis/templates/r.yaml", Some("deploy/shop/charts/redis/templates/r.yaml")),
            ("shop/charts/l/templates/l.yaml", Some("deploy/lib/templates/l.yaml")),
            ("shop/charts/other/templates/l.yaml", None),
            ("shop/templates/none.yaml", None),
            ("shop/../../../etc/passwd", None),
            ("shop", None),
        ] {
            assert_eq!(found(named).as_deref(), path, "{named}");
        }
        assert_eq!(template(&snapshot, "deploy/shop", &Compiled::default()).unwrap(), None);
    }

    #[test]
    fn files_of_values_are_told_in_the_order_in_which_they_apply() {
        let files = [("chart/values.yaml", ""), ("chart/prod.yaml", "")];
        let (_directory, repository, commit) = repository(&files);
        let snapshot = repository.snapshot(commit).unwrap();
        let told = |helm| {
            let source = Source::read(json!({"path": "chart", "helm": helm})).unwrap();
            let all = values(&snapshot, &source, "chart").unwrap().into_iter();
            all.map(|values| {
                values.reference.map_or(values.path.clone(), |name| format!("${name}:{}", values.path))
            })
            .collect::<Vec<_>>()
        };
        let named = json!(["prod.yaml", "$vals/env/prod.yaml", "https://x/v.yaml", "none.yaml"]);
        assert_eq!(
            told(json!({"valueFiles": named})),
            [
                "chart/values.yaml",
                "chart/prod.yaml",
                "$vals:env/prod.yaml",
                "https://x/v.yaml",
                "chart/none.yaml"
            ]
        );
        assert_eq!(
            told(json!({"valueFiles": named, "ignoreMissingValueFiles": true})),
            ["chart/values.yaml", "chart/prod.yaml", "$vals:env/prod.yaml", "https://x/v.yaml"]
        );
    }
}
