//! Files of values, good and bad, with exactly what the doctor says of each; and those of the incumbent's chart, with
//! what becomes of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod converted;
mod on_cluster;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pipeline_doctor::{
    Around, Chart, Cluster, File, Finding, Format, Node, Report, Severity, Tiers, Unreadable, Value, codes,
    convert, convert_all, validate,
};
use serde_json::{Value as Json, json};

const VALUES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/values");
const INCUMBENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/incumbent");

/// Nobody to ask.
const ALONE: Around<'static> = Around {
    settings: &|_| Vec::new(),
    cluster: None,
    network: None,
    helm: Err("no helm on the PATH"),
    is_hook: false,
    namespace: None,
};

/// The files of a folder that end so.
fn cases(folder: &str) -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .filter(|path| !path.to_str().unwrap().ends_with(".out.yaml"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty(), "{folder} holds no case");
    cases
}

fn name(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

fn judge(name: &str, text: &str) -> Report {
    validate(&[(format!("{name}.yaml"), File::read(&format!("{name}.yaml"), text))], Tiers::default(), ALONE)
}

/// Compares with what is committed; UPDATE=1 rewrites it.
fn expect(path: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(path, found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} (UPDATE=1 rewrites it)", path.display());
}

#[test]
fn each_file_of_values_has_exactly_its_findings() {
    let mut seen = BTreeSet::new();
    assert!(cases(VALUES).len() >= 60);
    for case in cases(VALUES) {
        let report = judge(name(&case), &std::fs::read_to_string(&case).unwrap());
        let is_good = name(&case).starts_with("good-");
        assert_eq!(report.findings.is_empty(), is_good, "{}", report.write(Format::Table));
        seen.extend(report.findings.iter().map(|finding| finding.code));
        seen.extend(report.unmeasured.iter().map(|unmeasured| unmeasured.code));
        let text = report.write(Format::Table);
        for text in [&text, &report.write(Format::Json), &report.write(Format::Sarif)] {
            assert!(!text.contains("not-to-be-shown") && !text.contains("not_to_be_shown"), "{text}");
        }
        expect(&case.with_extension("txt"), &text);
    }
    let sarif: serde_json::Value = serde_json::from_str(&judge("x", "").write(Format::Sarif)).unwrap();
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    // What the reporter says of its own settings, only the program knows; what is installed and these peers tell in tests of
    // their own.
    let elsewhere = ["GR0067", "GR0113", "GR0114", "GR0207", "GR0208", "GR0209"];
    let known =
        rules.iter().map(|rule| rule["id"].as_str().unwrap()).filter(|code| !elsewhere.contains(code));
    let unseen: Vec<_> = known.filter(|code| !seen.contains(code)).collect();
    assert!(unseen.is_empty(), "no file of values brings {unseen:?}");
}

#[test]
fn a_report_for_programs_names_file_line_and_path() {
    let report = judge("values", "global:\n  runtime:\n    nmae: prod\n");
    let json: serde_json::Value = serde_json::from_str(&report.write(Format::Json)).unwrap();
    let unknown =
        json["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == "GR0002").unwrap();
    let expected = serde_json::json!(["values.yaml", 3, "global.runtime.nmae", "name"]);
    assert_eq!(
        serde_json::json!([unknown["file"], unknown["line"], unknown["path"], unknown["meant"]]),
        expected
    );
    let sarif: serde_json::Value = serde_json::from_str(&report.write(Format::Sarif)).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let result = results.iter().find(|result| result["ruleId"] == "GR0002").unwrap();
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "values.yaml");
    assert_eq!(place["region"]["startLine"], 3);
    let text = "global.runtime.nmae: found an unknown key, wanted a key that is known (did you mean 'name'?); correct the key, or take it away";
    assert_eq!(result["message"]["text"], text);
    // A scanner takes no name with a space for a reference, and no result without a place.
    let files =
        [("release prod".to_owned(), File::read("release prod", "global: {runtime: {name: prod}}\n"))];
    let report = validate(&files, Tiers::default(), Around { helm: Ok("v3.7.2"), ..ALONE });
    let sarif: serde_json::Value = serde_json::from_str(&report.write(Format::Sarif)).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let old = results.iter().find(|result| result["ruleId"] == "GR0108").unwrap();
    assert!(
        old["message"]["text"].as_str().unwrap().starts_with("Helm 3.8 or newer: found Helm 3.7"),
        "{old}"
    );
    for result in results {
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"];
        assert_eq!(place["uri"], "release%20prod", "{result}");
    }
}

#[test]
fn what_many_are_not_measured_for_is_said_once() {
    let text = judge("values", "global: {runtime: {name: prod}}\n").write(Format::Table);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("not measured")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].contains("GR0101, GR0102, ") && lines[0].ends_with("(offline: no cluster was asked)"),
        "{text}"
    );
    assert_eq!(lines[1], "not measured GR0108: Helm 3.8 or newer (no helm on the PATH)");
    assert!(text.ends_with(", 18 not measured\n"), "{text}");
}

#[test]
fn later_files_stand_above_earlier_ones_and_keep_their_places() {
    let read = |name: &str, text: &str| (name.to_owned(), File::read(name, text));
    let files = [
        read("a.yaml", "global:\n  runtime:\n    name: prod\n"),
        read("b.yaml", "reporter:\n  replicaCount: 3\n"),
        read("c.yaml", "nats: {mode: embedded}\n"),
    ];
    let codes = |count: usize| -> Vec<_> {
        let report = validate(&files[..count], Tiers::default(), ALONE);
        report.findings.iter().map(|finding| (finding.code, finding.file.clone(), finding.line)).collect()
    };
    assert!(codes(2).contains(&("GR0060", Some("b.yaml".into()), 2)), "{:?}", codes(2));
    assert!(codes(3).iter().all(|(code, ..)| *code != "GR0060"), "{:?}", codes(3));
}

#[test]
fn what_is_skipped_is_said_to_be() {
    let files = [("a.yaml".to_owned(), File::read("a.yaml", "reporter: {replicaCount: 3}\n"))];
    let tiers = Tiers { files: false, cluster: false, network: true };
    let report = validate(&files, tiers, ALONE);
    assert!(report.findings.is_empty());
    let why = |code: &str| report.unmeasured.iter().find(|one| one.code == code).unwrap().why.clone();
    assert_eq!(why("GR0101"), "skipped by --skip cluster");
    assert_eq!(why("GR0202"), "offline: no network was asked");
}

/// A cluster that holds these objects, by their paths, and refuses these rights: everywhere, or in one namespace.
struct SimulatedCluster {
    objects: BTreeMap<&'static str, Json>,
    refused: BTreeSet<&'static str>,
}

impl Cluster for SimulatedCluster {
    fn get(&self, path: &str) -> Result<Option<Json>, String> {
        match self.objects.get(path) {
            Some(Json::String(why)) => Err(why.clone()),
            object => Ok(object.cloned()),
        }
    }

    fn metadata(&self, path: &str) -> Result<Option<Json>, String> {
        self.get(path)
    }

    fn may(&self, verb: &str, _: &str, resource: &str, namespace: Option<&str>) -> Result<bool, String> {
        let right = format!("{verb} {resource}");
        let here = format!("{right} in {}", namespace.unwrap_or("the cluster"));
        Ok(![right, here].iter().any(|right| self.refused.contains(right.as_str())))
    }
}

fn asked(held: &SimulatedCluster, text: &str) -> Report {
    let files = [("a.yaml".to_owned(), File::read("a.yaml", text))];
    validate(&files, Tiers::default(), Around { cluster: Some(held), ..ALONE })
}

const WITH_A_CLUSTER: &str = "global:
  codefresh: {userToken: {secretKeyRef: {name: user, key: token}}}
  runtime: {name: prod, ingress: {enabled: true, className: internal, hosts: [runtime.example.com]}}
";

#[test]
fn a_cluster_that_has_all_brings_no_finding_and_nothing_of_it_is_unmeasured() {
    let secret = json!({"data": {"token": "bm90LXRvLWJlLXNob3du"}});
    let held = SimulatedCluster {
        objects: BTreeMap::from([
            ("/version", json!({"major": "1", "minor": "31+"})),
            (
                "/api/v1/nodes?limit=100",
                json!({"items": [{"status": {"allocatable": {"cpu": "4", "memory": "16Gi"}}}]}),
            ),
            ("/api/v1/namespaces/prod/secrets/codefresh-token", secret.clone()),
            ("/api/v1/namespaces/prod/secrets/argocd-token", secret.clone()),
            ("/api/v1/namespaces/prod/secrets/user", secret),
            ("/api/v1/namespaces/prod/services/argocd-server", json!({})),
            ("/apis/argoproj.io/v1alpha1", json!({})),
            ("/apis/networking.k8s.io/v1/ingressclasses/internal", json!({})),
            (
                "/apis/storage.k8s.io/v1/storageclasses",
                json!({"items": [{"metadata": {"annotations":
                    {"storageclass.beta.kubernetes.io/is-default-class": "true"}}}]}),
            ),
        ]),
        refused: BTreeSet::new(),
    };
    let report = asked(&held, WITH_A_CLUSTER);
    let text = report.write(Format::Table);
    assert!(report.findings.is_empty(), "{text}");
    let unmeasured: Vec<_> = report.unmeasured.iter().filter(|one| one.tier == "cluster").collect();
    assert_eq!(unmeasured.iter().map(|one| one.code).collect::<Vec<_>>(), ["GR0108"], "{text}");
}

#[test]
fn a_git_token_that_nothing_uses_stops_nobody_whatever_is_wrong_with_it() {
    let held = SimulatedCluster { objects: BTreeMap::new(), refused: BTreeSet::new() };
    let secrets = "secretKeyRef: {name: git, key: token}";
    for password in [secrets, "secretKeyRef: {name: git}", "value: github_pat_not_to_be_shown"] {
        let given = format!(
            "global: {{runtime: {{name: prod, gitCredentials: {{username: '', password: {{{password}}}}}}}}}\n"
        );
        let text = asked(&held, &given).write(Format::Table);
        let told =
            |of: &str, what: &str| text.lines().any(|line| line.starts_with(of) && line.contains(what));
        assert!(!told("error", "gitCredentials"), "{text}");
        assert!(told("warning GR0083", "gitCredentials.password"), "{text}");
    }
}

#[test]
fn what_a_cluster_lacks_is_found_and_what_it_does_not_tell_is_unmeasured() {
    let held = SimulatedCluster {
        objects: BTreeMap::from([
            ("/version", json!({"major": "1", "minor": "22"})),
            ("/api/v1/nodes?limit=100", json!("the API server answered 403")),
            (
                "/api/v1/namespaces/prod/secrets/codefresh-token",
                json!({"data": {"other": "bm90LXRvLWJlLXNob3du"}}),
            ),
            (
                "/api/v1/namespaces/prod/configmaps/codefresh-cm",
                json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "cf"}}}),
            ),
        ]),
        refused: BTreeSet::from(["create deployments", "escalate roles", "watch applications"]),
    };
    let report = asked(&held, WITH_A_CLUSTER);
    let text = report.write(Format::Table);
    for found in [
        "no Secret argocd-token in namespace prod",
        "no key token in the Secret codefresh-token in namespace prod",
        "no Secret user in namespace prod",
        "no right to create deployments.apps in namespace prod",
        "no right to watch applications.argoproj.io in namespace prod",
        "Kubernetes 1.22",
        "no default storage class in the cluster",
        "no Service argocd-server in namespace prod",
        "no kind of argoproj.io/v1alpha1 in the cluster",
        "a ConfigMap codefresh-cm of the release cf",
        "an IngressClass that the cluster has",
    ] {
        assert!(text.contains(found), "{found}: {text}");
    }
    assert!(
        text.contains("not measured GR0105: 2 CPU and 5,000 MB of nodes (the API server answered 403)"),
        "{text}"
    );
    assert!(!text.contains("bm90"), "{text}");
    let skipped = asked(&held, &format!("{WITH_A_CLUSTER}installer: {{skipValidation: true}}\n"));
    assert!(skipped.findings.iter().all(|finding| !finding.code.starts_with("GR01")));
}

#[test]
fn a_token_that_embedded_servers_of_the_bus_take_otherwise_than_clients_do_is_found() {
    use base64::Engine as _;
    const NATS: &str = "nats: {mode: embedded, auth: {tokenSecretKeyRef: {name: bus, key: token}}}\nreporter: {replicaCount: 2}\n";
    let found = |token: &str, values: &str| {
        let token = base64::engine::general_purpose::STANDARD.encode(token);
        let bus = ("/api/v1/namespaces/prod/secrets/bus", json!({"data": {"token": token}}));
        let held = SimulatedCluster { objects: BTreeMap::from([bus]), refused: BTreeSet::new() };
        let report = asked(&held, &format!("{WITH_A_CLUSTER}{values}"));
        let text = report.write(Format::Table);
        assert!(!text.contains("not-to-be-shown"), "{text}");
        lines_of(&report, "GR0102").into_iter().filter(|line| line.contains("nats.auth")).collect::<Vec<_>>()
    };
    let line = "error nats.auth.tokenSecretKeyRef: a quote, a backslash, or white space at an end, in the key token of the \
                Secret bus";
    for token in ["not-to-be-shown\n", " not-to-be-shown", "not-to-\"be-shown", "not-to-\\be-shown"] {
        assert_eq!(found(token, NATS), [line], "{token:?}");
        // Existing servers may have settings of any kind.
        assert_eq!(found(token, &NATS.replace("embedded", "existing, url: 'nats://nats:4222'")), [""; 0]);
    }
    for token in ["not-to-be-shown", "12345", "not to be shown", "not-to-'be-shown"] {
        assert_eq!(found(token, NATS), [""; 0], "{token:?}");
    }
}

fn lines_of(report: &Report, code: &str) -> Vec<String> {
    let of = |finding: &pipeline_doctor::Finding| {
        let meant = finding.meant.as_ref().map(|meant| format!(" ({meant}?)")).unwrap_or_default();
        format!("{} {}: {}{meant}", finding.severity.name(), finding.path, finding.found)
    };
    report.findings.iter().filter(|finding| finding.code == code).map(of).collect()
}

#[test]
fn an_http_route_needs_the_gateway_api_and_its_gateways() {
    let values = "global: {runtime: {name: prod, httpRoute: {enabled: true, hostnames: [a.example.com], parentRefs: [{name: \
                  edge, namespace: infra}, {name: own}]}}}\n";
    let mut held = SimulatedCluster { objects: BTreeMap::new(), refused: BTreeSet::new() };
    let found = |held: &SimulatedCluster| lines_of(&asked(held, values), "GR0109");
    assert_eq!(found(&held), ["error global.runtime.httpRoute.enabled: no Gateway API in the cluster"]);
    held.objects.insert("/apis/gateway.networking.k8s.io/v1beta1", json!({}));
    held.objects.insert("/apis/gateway.networking.k8s.io/v1beta1/namespaces/infra/gateways/edge", json!({}));
    assert_eq!(found(&held), ["error global.runtime.httpRoute.parentRefs: no Gateway own in namespace prod"]);
    let platform = "global: {runtime: {name: prod}}\nplatform: {enabled: true, httpRoute: {enabled: true, host: a.example.com, \
                    parentRefs: [{name: gone}]}}\n";
    let found = lines_of(&asked(&held, platform), "GR0109");
    assert_eq!(found, ["error platform.httpRoute.parentRefs: no Gateway gone in namespace prod"]);
}

#[test]
fn an_account_that_two_roles_would_make_is_an_error() {
    let found = |more: &str| {
        let values = format!(
            "appProxy: {{enabled: true, serviceAccount: {{name: own}}}}\nreporter: {{serviceAccount: {{name: own{more}}}}}\n"
        );
        lines_of(&judge("a", &values), "GR0086")
    };
    assert_eq!(found(""), ["error reporter.serviceAccount.name: \"own\""]);
    assert_eq!(found(", create: false"), [""; 0]);
}

#[test]
fn a_route_needs_a_host_and_a_gateway_which_ends_tls() {
    for group in ["platform", "tunnelServer"] {
        let values = format!("{group}: {{enabled: true, httpRoute: {{enabled: true}}}}\n");
        let report = judge("a", &values);
        let found = ["GR0025", "GR0026"].map(|code| lines_of(&report, code).join("\n"));
        assert_eq!(
            found.map(|line| line.split(':').next().unwrap_or_default().to_owned()),
            ["parentRefs", "host"].map(|key| format!("error {group}.httpRoute.{key}"))
        );
    }
    let values = "tunnelServer: {enabled: true, domain: a.example.com, tls: {secretName: own}, httpRoute: {enabled: true}}\n";
    assert_eq!(
        lines_of(&judge("a", values), "GR0072"),
        ["error tunnelServer.tls.secretName: a value (masked)"]
    );
}

#[test]
fn an_old_helm_is_found_and_one_that_says_nothing_is_unmeasured() {
    let files = [("a.yaml".to_owned(), File::read("a.yaml", "{}"))];
    let judged = |helm| validate(&files, Tiers::default(), Around { helm, ..ALONE });
    assert_eq!(lines_of(&judged(Ok("v3.7.2")), "GR0108"), ["error : Helm 3.7"]);
    for (helm, why) in
        [(Ok("v3.22.0"), None), (Ok("?"), Some("helm version says none")), (Err("no helm"), Some("no helm"))]
    {
        let report = judged(helm);
        assert!(lines_of(&report, "GR0108").is_empty());
        let said = report.unmeasured.iter().find(|one| one.code == "GR0108").map(|one| one.why.as_str());
        assert_eq!(said, why);
    }
}

#[test]
fn a_file_that_is_not_there_is_not_to_be_corrected() {
    use std::io::ErrorKind;
    for (kind, todo) in [
        (ErrorKind::NotFound, "give the path of a file"),
        (ErrorKind::IsADirectory, "give the path of a file"),
        (ErrorKind::PermissionDenied, "let whoever runs this read it"),
        (ErrorKind::InvalidData, "correct the file"),
    ] {
        let files = [("a.yaml".to_owned(), Err(Unreadable::unopened(kind)))];
        assert_eq!(validate(&files, Tiers::default(), ALONE).findings[0].todo, todo);
    }
}

#[test]
fn parts_of_pods_and_policies_are_taken_as_kubernetes_takes_them() {
    let report = judge("parts", include_str!("parts.yaml"));
    assert!(report.findings.is_empty(), "{}", report.write(Format::Table));
}

#[test]
fn values_for_a_chart_above_are_judged_below_its_key() {
    let text = "global: {runtime: {name: prod, ingressUrl: 'https://runtime.example.com'}}\nother: {a: 1}\n\
                cf:\n  global: {codefresh: {userToken: {secretKeyRef: {name: a, key: b}}}}\n  reporter: {replicaCount: 1}\n";
    let report = judge("values", text);
    assert!(
        report.findings.iter().all(|finding| finding.severity == Severity::Note),
        "{}",
        report.write(Format::Table)
    );
    assert_eq!(report.findings.len(), 1);
    assert!(!report.is_wrong());
}

#[test]
fn the_schema_and_the_table_are_those_of_the_values() {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../helm/gitops-runtime");
    let schema = format!("{:#}\n", Chart::get().schema());
    expect(&chart.join("values.schema.json"), &schema);
    let path = chart.join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (head, _) = readme.split_once("<!-- codes -->\n").unwrap();
    let table = Chart::get().table();
    expect(&path, &format!("{head}<!-- codes -->\n{}\n## Values\n\n<!-- values -->\n{table}", codes()));
}
