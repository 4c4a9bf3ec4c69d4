use super::{Dependencies, VersionSource, Versions, versions};
use crate::testing::repository;

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 0.3.0\nappVersion: \"2.7.1\"\n";

fn told(files: &[(&str, &str)], source: Option<(&str, &str)>) -> Result<Option<Versions>, String> {
    let (_directory, repository, commit) = repository(files);
    let source =
        source.map(|(file, path)| VersionSource { file: file.to_owned(), json_path: path.to_owned() });
    let snapshot = repository.snapshot(commit).unwrap();
    versions(&snapshot, "app", source.as_ref()).map_err(|error| error.to_string())
}

fn version(files: &[(&str, &str)], file: &str, path: &str) -> String {
    told(files, Some((file, path))).unwrap().unwrap().app_version
}

#[test]
fn a_chart_says_its_version_and_its_dependencies_word_for_word() {
    let files = [
        ("app/Chart.yaml", CHART),
        ("app/Chart.lock", "digest: x\n"),
        ("app/requirements.yaml", "dependencies: []\n"),
    ];
    let expected = Versions {
        app_version: "2.7.1".to_owned(),
        dependencies: Dependencies {
            lock: Some("digest: x\n".to_owned()),
            deps: Some(CHART.to_owned()),
            requirements: Some("dependencies: []\n".to_owned()),
        },
    };
    assert_eq!(told(&files, None), Ok(Some(expected)));
    let alone = told(&files[..1], None).unwrap().unwrap();
    let text = serde_json::to_string(&alone).unwrap();
    assert_eq!(text, serde_json::json!({"appVersion": "2.7.1", "dependencies": {"deps": CHART}}).to_string());
}

#[test]
fn numbers_of_yaml_are_texts_and_those_of_json_are_none() {
    for (yaml, text) in [
        ("3", "3"),
        ("-12", "-12"),
        ("1.10", "1.1"),
        ("2.0", "2"),
        ("1e21", "1000000000000000000000"),
        ("18446744073709551615", "18446744073709551615"),
        ("'1.10'", "1.10"),
        ("v1", "v1"),
        ("true", ""),
        ("null", ""),
        ("{a: 1}", ""),
        ("[1, 2]", "1"),
        ("[[1]]", ""),
    ] {
        let content = format!("appVersion: {yaml}\n");
        for (name, file) in [("app/v.yaml", "v.yaml"), ("app/v.yml", "v.yml")] {
            assert_eq!(version(&[(name, &content)], file, "$.appVersion"), text, "{yaml}");
        }
    }
    for (json, text) in [("3", ""), ("\"3\"", "3"), ("[\"a\", 1]", "a"), ("[1, \"a\"]", ""), ("null", "")] {
        let content = format!("{{\"version\": {json}}}");
        assert_eq!(version(&[("app/package.json", &content)], "package.json", "{.version}"), text, "{json}");
    }
}

#[test]
fn a_missing_file_is_nothing_only_where_nobody_said_that_it_is_there() {
    assert_eq!(told(&[("app/x.yaml", "")], None), Ok(None));
    let missing = |file: &str| format!("read the version in app/{file}: there is no such file");
    for file in ["Chart.yaml", "deep/version.json"] {
        assert_eq!(told(&[], Some((file, "$.appVersion"))), Err(missing(file)));
    }
    // No match, on the other hand, is no error.
    assert_eq!(version(&[("app/Chart.yaml", "name: a\n")], "Chart.yaml", "$.appVersion"), "");
}

#[test]
fn every_refusal_says_what_is_wrong() {
    let files = [
        ("app/v.toml", "a = 1"),
        ("app/keys.yaml", "1: a\n2: b\nappVersion: x\n"),
        ("app/broken.yaml", "a: [\n"),
        ("app/broken.json", "{\n\"a\": }"),
        ("app/Chart.yaml", CHART),
    ];
    for (file, path, why) in [
        ("v.toml", "$.a", "read the version in app/v.toml: only .yaml, .yml and .json are read"),
        ("none", "$.a", "read the version in app/none: only .yaml, .yml and .json are read"),
        ("broken.yaml", "$.a", "read the version in app/broken.yaml: no YAML at line 1"),
        ("broken.json", "$.a", "read the version in app/broken.json: no JSON at line 2"),
        ("keys.yaml", "$.appVersion", "read the version in app/keys.yaml: a key of it is no text"),
        (
            "Chart.yaml",
            "appVersion",
            "read the version in app/Chart.yaml: it is no JSON path: write it like $.appVersion",
        ),
        ("../../x.yaml", "$.a", "read the version in ../../x.yaml: it leads out of the repository"),
    ] {
        assert_eq!(told(&files, Some((file, path))), Err(why.to_owned()), "{file}");
    }
    let large = format!("a: {}", "x".repeat(super::MAX_FILE));
    assert_eq!(
        told(&[("app/large.yaml", &large)], Some(("large.yaml", "$.a"))),
        Err("read the version in app/large.yaml".to_owned())
    );
}

#[test]
fn the_file_may_be_anywhere_below_or_beside() {
    let files = [("app/deep/v.yaml", "tag: v9\n"), ("shared/v.yaml", "tag: v8\n")];
    assert_eq!(version(&files, "deep/v.yaml", "$.tag"), "v9");
    assert_eq!(version(&files, "../shared/v.yaml", "$.tag"), "v8");
}
