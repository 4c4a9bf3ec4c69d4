use serde_json::{Value, json};
use stages_git::application::Source;

use super::{Provenance, SourceFiles, provenances};
use crate::compiled::Compiled;
use crate::testing::repository;

/// The answers for compiled objects of `sources`, all of one repository: `path:lines`, or why not.
fn told(files: &[(&str, &str)], sources: &[Value], compiled: &[&str]) -> Vec<String> {
    let (_directory, repository, commit) = repository(files);
    let snapshot = repository.snapshot(commit).unwrap();
    let sources: Vec<Source> = sources.iter().map(|source| Source::read(source.clone()).unwrap()).collect();
    let at: Vec<SourceFiles<'_, '_>> =
        sources.iter().map(|source| SourceFiles { source, files: Some(&snapshot) }).collect();
    let compiled: Vec<Compiled> = compiled.iter().map(|text| Compiled::read(text).unwrap()).collect();
    let answers = provenances(&at, "shop", &compiled).unwrap();
    answers
        .objects
        .iter()
        .map(|answer| match answer {
            Provenance::Made { source, origin, .. } => {
                format!("{source}: {}:{}-{}", origin.path, origin.first_line, origin.last_line)
            }
            Provenance::Unknown { unknown } => unknown.clone(),
        })
        .collect()
}

const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1}\n";

fn web(replicas: u32) -> String {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop",
        "annotations": {"argocd.argoproj.io/tracking-id": "x"}}, "spec": {"replicas": replicas}})
    .to_string()
}

#[test]
fn an_object_of_a_directory_is_told_by_file_and_lines() {
    let all = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-}\n";
    let files = [("a/all.yaml", all), ("a/web.yaml", WEB)];
    let service = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}"#;
    let job = r#"{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "migrate-"}}"#;
    let other = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other"}}"#;
    let source = json!({"path": "a"});
    assert_eq!(
        told(&files, &[source], &[service, job, &web(1), other]),
        ["0: a/all.yaml:1-3", "0: a/all.yaml:5-7", "0: a/web.yaml:1-4", "no file of its sources makes it"]
    );
}

#[test]
fn of_several_files_with_one_name_the_content_tells_and_else_the_last_counts() {
    let two = WEB.replace("replicas: 1", "replicas: 2");
    let files = [("a/1.yaml", WEB), ("a/2.yaml", &two)];
    let source = json!({"path": "a"});
    assert_eq!(
        told(&files, &[source], &[&web(1), &web(2), &web(3)]),
        ["0: a/1.yaml:1-4", "0: a/2.yaml:1-4", "0: a/2.yaml:1-4"]
    );
}

#[test]
fn a_namespace_that_the_manifest_names_tells_objects_apart() {
    let in_test = WEB.replace("name: web", "name: web, namespace: test");
    let files = [("a/1.yaml", WEB), ("a/2.yaml", &in_test)];
    let source = json!({"path": "a"});
    let compiled = web(5).replace("\"shop\"", "\"test\"");
    assert_eq!(
        told(&files, std::slice::from_ref(&source), &[&compiled, &web(5)]),
        ["0: a/2.yaml:1-4", "0: a/1.yaml:1-4"]
    );
    let elsewhere = web(1).replace("\"shop\"", "\"else\"");
    assert_eq!(told(&files, &[source], &[&elsewhere]), ["no file of its sources makes it"]);
}

#[test]
fn what_a_chart_makes_is_the_charts_unless_a_comment_names_the_template() {
    let files =
        [("chart/Chart.yaml", "name: c"), ("chart/templates/web.yaml", "{{ x }}\n"), ("a/web.yaml", WEB)];
    let chart = json!({"path": "chart"});
    let pod = "# Source: c/templates/web.yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";
    let plain = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";
    assert_eq!(
        told(&files, std::slice::from_ref(&chart), &[pod, plain]),
        ["0: chart/templates/web.yaml:1-1", "0: chart/Chart.yaml:0-0"]
    );
    let sources = [json!({"ref": "values"}), chart.clone(), json!({"path": "a"})];
    assert_eq!(told(&files, &sources, &[&web(1), plain]), ["2: a/web.yaml:1-4", "1: chart/Chart.yaml:0-0"]);
    assert_eq!(told(&files, &[chart.clone(), chart], &[plain]), ["more than one chart may make it"]);
}

#[test]
fn what_cannot_be_known_is_not_guessed() {
    let files = [("chart/Chart.yaml", "name: c"), ("a/x.jsonnet", "{}"), ("a/web.yaml", WEB)];
    let plain = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";
    for (sources, unknown) in [
        (vec![json!({"path": "a"})], "what a/x.jsonnet makes is not known: Jsonnet is not run"),
        (
            vec![json!({"path": "chart"}), json!({"path": "a"})],
            "what a/x.jsonnet makes is not known: Jsonnet is not run",
        ),
        (vec![json!({"path": "a", "plugin": {"name": "x"}})], "what a plugin makes is not known"),
        (vec![json!({"chart": "redis"})], "the chart is one of a Helm repository"),
        (
            vec![json!({"repoURL": "oci://registry.example.com/a", "path": "a"})],
            "the source is an artifact of an OCI registry",
        ),
        (vec![json!({"path": "../out"})], "../out leads out of the repository"),
        (vec![json!({"path": "gone"})], "the directory gone is not there"),
        (vec![json!({"path": "gone", "helm": {"releaseName": "x"}})], "the directory gone is not there"),
    ] {
        assert_eq!(told(&files, &sources, &[plain]), [unknown], "{sources:?}");
    }
}

#[test]
fn an_answer_is_written_with_what_made_it() {
    let (_directory, repository, commit) = repository(&[("a/web.yaml", WEB)]);
    let snapshot = repository.snapshot(commit).unwrap();
    let source = Source::read(json!({"path": "a"})).unwrap();
    let at = [SourceFiles { source: &source, files: Some(&snapshot) }];
    let compiled = [Compiled::read(&web(1)).unwrap(), Compiled::read("apiVersion: v1\nkind: Pod\n").unwrap()];
    let answers = provenances(&at, "shop", &compiled).unwrap();
    assert_eq!(answers.objects[0].origin().map(|origin| &*origin.file), Some(WEB));
    assert_eq!(
        serde_json::to_value(&answers).unwrap(),
        json!({"gaps": [], "objects": [
            {"source": 0, "tool": "directory", "path": "a/web.yaml", "firstLine": 1, "lastLine": 4, "manifest": WEB},
            {"unknown": "no file of its sources makes it"},
        ]})
    );
}

#[test]
fn objects_of_one_template_share_its_text_and_an_answer_has_an_end() {
    let template = format!("# {}\n", "x".repeat(1024 * 1024));
    let files = [("chart/Chart.yaml", "name: c"), ("chart/templates/web.yaml", &*template)];
    let (_directory, repository, commit) = repository(&files);
    let snapshot = repository.snapshot(commit).unwrap();
    let source = Source::read(json!({"path": "chart"})).unwrap();
    let at = [SourceFiles { source: &source, files: Some(&snapshot) }];
    let pod = "# Source: c/templates/web.yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";
    let pods: Vec<Compiled> = (0..100).map(|_| Compiled::read(pod).unwrap()).collect();
    let answers = provenances(&at, "shop", &pods).unwrap();
    let origins: Vec<_> = answers.objects.iter().filter_map(Provenance::origin).collect();
    assert_eq!(origins.len(), 100);
    assert!(origins.iter().all(|origin| origin.path == "chart/templates/web.yaml" && origin.last_line == 1));
    assert!(origins.iter().all(|origin| origin.file.as_ptr() == origins[0].file.as_ptr()));
    let bytes: usize = origins.iter().map(|origin| origin.manifest.len()).sum();
    assert!(bytes <= 64 * 1024 * 1024, "{bytes} bytes");
    let gap = "the texts of some objects are left out, of which there are more than 64 MiB: take them from the files, by their lines, or \
               ask about fewer objects at once";
    assert_eq!(answers.gaps, [gap]);
}
