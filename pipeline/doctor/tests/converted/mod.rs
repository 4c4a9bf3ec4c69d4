//! Files of values of the incumbent's chart, and what becomes of them.

use super::*;

/// Every path with a value that is no mapping, or an empty one.
fn leaves(node: &Node, path: &str, found: &mut Vec<String>) {
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => {
            for (key, node) in entries {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(node, &below, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

fn converts_without_loss(name: &str, text: &str) -> (String, Report) {
    let file = File::read(name, text).unwrap();
    let converted = convert(&file);
    let mut all = Vec::new();
    leaves(&file.root, "", &mut all);
    for path in all {
        let covers = |at: &str| path == at || path.starts_with(&format!("{at}."));
        let kept = converted.kept.iter().any(|(from, _)| covers(from));
        let noted = converted.notes.iter().any(|note| covers(&note.path));
        assert!(kept || noted, "{name}: {path} is neither taken over nor named");
    }
    let yaml = converted.yaml().unwrap();
    let report = judge(name, &yaml);
    let refused = ["GR0001", "GR0002", "GR0003", "GR0004", "GR0006", "GR0040", "GR0060", "GR0064"];
    let is_wrong = |finding: &&Finding| finding.severity > Severity::Note && refused.contains(&finding.code);
    let wrong: Vec<_> = report.findings.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{name}: {wrong:?}\n{yaml}");
    (yaml, report)
}

#[test]
fn files_of_the_incumbent_are_converted_without_loss() {
    for case in cases(INCUMBENT) {
        let (yaml, _) = converts_without_loss(name(&case), &std::fs::read_to_string(&case).unwrap());
        expect(&case.with_extension("out.yaml"), &yaml);
    }
    // Further files, where there are some.
    if let Some(folder) = std::env::var_os("DOCTOR_INCUMBENT_VALUES") {
        for case in cases(folder.to_str().unwrap()) {
            converts_without_loss(name(&case), &std::fs::read_to_string(&case).unwrap());
        }
    }
}

#[test]
fn files_of_values_for_this_chart_are_left_as_they_are() {
    for case in cases(VALUES).iter().filter(|case| name(case).starts_with("good-")) {
        let file = File::read("x", &std::fs::read_to_string(case).unwrap()).unwrap();
        let mut global = convert(&file).values["global"].clone();
        let given = file.root.get("global").unwrap().json();
        // The other chart calls the Service of Argo CD otherwise, and a file of what both have may be of either.
        if given.get("integrations").is_none() {
            global.as_object_mut().unwrap().remove("integrations");
        }
        assert_eq!(global, given, "{}", case.display());
    }
}

#[test]
fn values_for_a_chart_above_are_converted_below_its_keys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (name, text) in
        [("above", include_str!("../above.yaml")), ("several", include_str!("../several.yaml"))]
    {
        let (yaml, report) = converts_without_loss(name, text);
        assert!(!report.is_wrong(), "{}", report.write(Format::Table));
        expect(&folder.join(format!("{name}.out.yaml")), &yaml);
    }
}

#[test]
fn what_was_converted_is_left_as_it_is() {
    for case in cases(INCUMBENT) {
        let first = convert(&File::read("x", &std::fs::read_to_string(&case).unwrap()).unwrap());
        let again = convert(&File::read("x", &first.yaml().unwrap()).unwrap());
        assert_eq!(again.values, first.values, "{}", case.display());
    }
}

#[test]
fn files_that_helm_is_given_together_are_converted_as_one() {
    let read = |name: &str, text: &str| File::read(name, text).unwrap();
    let base = read(
        "base.yaml",
        "global:\n  codefresh: {userToken: {secretKeyRef: {name: user, key: token}}}\n  integrations:\n    argo-cd:\n      server: \
         {svc: argocd-server, auth: {type: token, tokenSecretKeyRef: {name: a, key: b}}}\nargo-cd: {enabled: false}\ntunnel-client: \
         {enabled: false}\napp-proxy: {replicaCount: 1, image: {tag: a}}\n",
    );
    let above = read(
        "prod.yaml",
        "global: {runtime: {name: prod, ingress: {enabled: true, hosts: [a.example.com]}}}\napp-proxy: {replicaCount: 2, image: {tag: b}}\n",
    );
    let converted = convert_all(base, &[above]);
    let at = |path: &str| converted.values.pointer(path);
    assert_eq!(at("/global/integrations/argo-cd/server/svc"), Some(&json!("argocd-server")));
    assert_eq!(at("/global/integrations/argo-cd/server/auth/type"), Some(&json!("token")));
    assert_eq!(at("/appProxy/replicaCount"), Some(&json!(2)));
    assert_eq!(at("/tunnelClient/enabled"), Some(&json!(false)));
    let text = converted.yaml().unwrap();
    let line = "#   app-proxy.image (prod.yaml, line 2): the image is this runtime's: `image`\n";
    assert!(text.contains(line), "{text}");
    assert!(!judge("x", &text).is_wrong(), "{text}");
}

#[test]
fn what_the_other_chart_runs_where_nothing_is_said_runs_here_too() {
    let of = |runtime: &str, others: &str| {
        let text = format!(
            "global:\n  codefresh: {{accountId: 0123456789abcdef01234567, userToken: {{token: a}}}}\n  runtime: {{name: prod{runtime}}}\n{others}"
        );
        convert(&File::read("x", &text).unwrap()).values
    };
    let (ours, theirs) = (json!(["cf-*"]), json!({"enabled": true, "argocdCredentials": true}));
    for (others, sources, namespaces) in [
        ("", Some(&theirs), Some(&ours)),
        ("app-proxy: {replicaCount: 1}\n", Some(&theirs), Some(&ours)),
        ("argo-cd: {configs: {params: {server.insecure: true}}}\n", Some(&theirs), Some(&ours)),
        // What is said of it stands, and of an Argo CD that is not the other chart's nothing is known.
        ("argo-cd: {configs: {params: {application.namespaces: ''}}}\n", Some(&theirs), Some(&json!([]))),
        ("argo-cd: {configs: {params: {application.namespaces: null}}}\n", Some(&theirs), None),
        ("argo-cd: {enabled: false}\n", Some(&theirs), None),
        ("argo-gateway: {enabled: false}\n", Some(&json!({"enabled": false})), Some(&ours)),
        // Nobody else asks for sources.
        ("event-reporters: {runtime-event-reporter: {enabled: false}}\n", None, None),
        (
            "event-reporters: {runtime-event-reporter: {enabled: false}}\nargo-gateway: {replicaCount: 2}\n",
            Some(&json!({"enabled": false, "replicaCount": 2})),
            None,
        ),
    ] {
        let values = of("", others);
        assert_eq!(values.pointer("/resourceReporter"), Some(&json!({"enabled": true})), "{others}");
        assert_eq!(values.pointer("/sourceServer"), sources, "{others}");
        assert_eq!(values.pointer("/reporter/applicationNamespaces"), namespaces, "{others}");
    }
    let values = of(", singleNamespace: true", "");
    assert_eq!(values.pointer("/resourceReporter"), Some(&json!({"enabled": true, "namespaces": []})));
    assert_eq!(values.pointer("/reporter/applicationNamespaces"), None);
}
