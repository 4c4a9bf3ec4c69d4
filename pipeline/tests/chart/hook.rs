//! The doctor as the chart's hook: what it is given, what it may do, and what it says.

use serde_json::{Value, json};

use crate::commands::run;
use crate::helm::{chart, template, texts_below, values as files};

const SETS: &str = "validation.enabled=true,reporter.extraEnv.PASS=not-to-be-shown,global.other.key=not-to-be-shown,\
                    global.httpsProxy=http://u:not-to-be-shown@proxy:1,global.codefresh.tls.caCerts.secret.content=-----BEGIN \
                    PRIVATE KEY-----not-to-be-shown,reporter.config.platform.tokenFile=/not-to-be-shown";

fn rendered(arguments: &[&str]) -> Vec<Value> {
    let output = template(&chart(), arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
    let is_hook =
        |object: &Value| object["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade";
    documents.into_iter().filter(is_hook).collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

#[test]
fn the_hook_is_given_no_secret_and_judges_what_it_is_given() {
    let file = files("bad-inline-secrets").remove(0);
    let objects = rendered(&["--values", file.to_str().unwrap(), "--set", SETS]);
    let map = of_kind(&objects, "ConfigMap");
    for object in &objects {
        let mut object = object.clone();
        // As the reporter's, its pod has the proxy as it is; the values do not.
        if let Some(env) = object.pointer_mut("/spec/template/spec/containers/0/env") {
            env.take();
        }
        assert!(!object.to_string().contains("not-to-be-shown"), "{object}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (given, words) = (folder.path().join("values.yaml"), folder.path().join("words"));
    std::fs::write(&given, map["data"]["values.yaml"].as_str().unwrap()).unwrap();
    let judged = |how: &str, more: &[&str]| {
        let words = format!("--termination-log={}", words.display());
        let arguments = ["validate", "-f", given.to_str().unwrap(), "--skip", "network", how, &words];
        let output = run(&[&arguments[..], more].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = judged("--hook=warn", &[]);
    assert_eq!(code, Some(0), "{text}");
    // Secrets that stand in the values are told of though they are masked; settings and certificates too.
    for code in ["warning GR0033", "error GR0035"] {
        assert!(text.contains(code), "{code}: {text}");
    }
    assert!(!text.contains("GR0002") && !text.contains("GR0004"), "{text}");
    assert!(text.contains("not measured GR0108: Helm 3.8 or newer (a hook is run by Helm)"), "{text}");
    assert_eq!(judged("--hook=enforce", &[]).0, Some(1));
    let said = std::fs::read_to_string(&words).unwrap();
    assert!(said.starts_with("1 error, ") && said.len() <= 4_096, "{said}");
    assert!(said.lines().nth(1).unwrap().starts_with("error GR0035 global.codefresh.tls."), "{said}");
    // What was masked is asked of nobody.
    let (_, text) = judged("--hook=warn", &["--skip", "static"]);
    assert!(text.contains("\n0 errors, 0 warnings, "), "{text}");
}

#[test]
fn the_hook_may_read_what_the_values_name_and_nothing_else() {
    let file = files("good-validated").remove(0);
    let objects = rendered(&["--values", file.to_str().unwrap()]);
    let rules = |kind: &str| of_kind(&objects, kind)["rules"].clone();
    assert_eq!(
        rules("Role"),
        json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"],
            "resourceNames": ["argocd-token", "codefresh-token", "user"]}])
    );
    assert_eq!(
        rules("ClusterRole"),
        json!([{"apiGroups": ["networking.k8s.io"], "resources": ["ingressclasses"], "verbs": ["get"],
            "resourceNames": ["internal"]}])
    );
    let job = of_kind(&objects, "Job");
    // It asks whom the values name, also where nothing is let through that no policy names, and is there before the pod.
    let policy = of_kind(&objects, "NetworkPolicy");
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    for (key, value) in policy["spec"]["podSelector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&labels[key], value, "{key}");
    }
    let allowed = (&policy["spec"]["policyTypes"], &policy["spec"]["ingress"], &policy["spec"]["egress"]);
    assert_eq!(allowed, (&json!(["Ingress", "Egress"]), &Value::Null, &json!([{}])));
    let weight = |object: &Value| {
        object["metadata"]["annotations"]["helm.sh/hook-weight"].as_str().unwrap().parse::<i32>().unwrap()
    };
    assert!(weight(policy) < weight(job));
    // Nothing of a mesh goes on beside it when it has ended.
    assert_eq!(labels["sidecar.istio.io/inject"], "false");
    assert_eq!(job["spec"]["template"]["metadata"]["annotations"]["linkerd.io/inject"], "disabled");
    let log = &job["metadata"]["annotations"]["helm.sh/hook-output-log-policy"];
    assert_eq!(log, "hook-succeeded,hook-failed");
    let pod = &job["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["terminationMessagePolicy"], "FallbackToLogsOnError");
    assert_eq!(job["spec"]["backoffLimit"], 0);
    let arguments: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert!(arguments.contains(&"--hook=enforce") && arguments.contains(&"--skip=static"), "{arguments:?}");
    // The program takes them: with the values of the ConfigMap, and without a cluster.
    let folder = tempfile::tempdir().unwrap();
    let given = folder.path().join("values.yaml");
    std::fs::write(&given, of_kind(&objects, "ConfigMap")["data"]["values.yaml"].as_str().unwrap()).unwrap();
    let own = format!("--values={}", given.display());
    let words = format!("--termination-log={}", folder.path().join("words").display());
    let swapped = arguments.iter().map(|argument| match *argument {
        one if one.starts_with("--values") => own.as_str(),
        one if one.starts_with("--termination-log") => words.as_str(),
        one => one,
    });
    let output = run(&swapped.chain(["--skip", "network"]).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    // A runtime that keeps to its namespace has no right beyond it.
    let alone =
        rendered(&["--values", file.to_str().unwrap(), "--set", "global.runtime.singleNamespace=true"]);
    assert!(alone.iter().all(|object| !object["kind"].as_str().unwrap().starts_with("ClusterRole")));
}

/// Every place of the chart's values where a Secret is named by `{name, key}`.
fn references(value: &Value, path: &str) -> Vec<String> {
    let entries = value.as_object().into_iter().flatten();
    entries
        .flat_map(|(key, value)| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match key.ends_with("ecretKeyRef") {
                true => vec![path],
                false => references(value, &path),
            }
        })
        .collect()
}

#[test]
fn the_hook_may_read_every_secret_that_the_values_can_name() {
    let values = std::fs::read_to_string(chart().join("values.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&values).unwrap();
    let all = references(&values, "");
    assert!(all.len() > 15, "{all:?}");
    let file = files("good-validated").remove(0);
    for (path, number) in all.iter().zip(1..) {
        let mut sets = vec!["validation.enabled=true".to_owned(), format!("{path}.name=named-{number}")];
        sets.push(format!("{path}.key=key"));
        if path.contains("passwordSecretKeyRef") {
            sets.push("global.integrations.argo-cd.server.auth.type=password".to_owned());
        }
        let sets = sets.join(",");
        let objects = rendered(&["--values", file.to_str().unwrap(), "--set", &sets]);
        let names = &of_kind(&objects, "Role")["rules"][0]["resourceNames"];
        assert!(names.as_array().unwrap().contains(&json!(format!("named-{number}"))), "{path}: {names}");
    }
}

#[test]
fn nothing_else_of_the_chart_depends_on_the_hook() {
    let file = files("good-validated").remove(0);
    let all = |set: &str| {
        let output = template(&chart(), &["--values", file.to_str().unwrap(), "--set", set]);
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
        documents
            .into_iter()
            .filter(|object| object["metadata"]["annotations"]["helm.sh/hook"] != "pre-install,pre-upgrade")
            .collect::<Vec<_>>()
    };
    assert_eq!(all("validation.enabled=true"), all("validation.enabled=false"));
}

#[test]
fn of_a_new_argo_cd_the_hook_is_given_what_its_rules_read_and_no_secret_by_whichever_name() {
    const SECRET: &str = "not-to-be-shown";
    let values = json!({
        "global": {"runtime": {"name": "prod", "ingressUrl": "https://runtime.example.com"}},
        "validation": {"enabled": true},
        "argo-cd": {
            "fullnameOverride": "ours",
            "namespaceOverride": "argo",
            "crds": {"install": false, "annotations": {"a": SECRET}},
            "server": {"name": "api", "certificateSecret": {"key": SECRET}},
            "configs": {
                "params": {"server.insecure": false, "server.rootpath": "/argo", "a": SECRET},
                "tls": {"certificates": {"git.example.com": "no certificate"}},
                "clusterCredentials": {"east": {"config": {"tlsClientConfig": {"keyData": SECRET}}}},
                "secret": {"extra": {"slack": SECRET}},
                "credentialTemplates": {"github": {"githubAppPrivateKey": SECRET}},
                "cm": {"dex.config": format!("clientSecret: {SECRET}"), "oidc.config": format!("clientSecret: {SECRET}")},
            },
        },
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values.to_string()).unwrap();
    let objects = rendered(&["--values", file.to_str().unwrap()]);
    let given = of_kind(&objects, "ConfigMap")["data"]["values.yaml"].as_str().unwrap();
    assert!(!given.contains(SECRET), "{given}");
    let given: Value = serde_saphyr::from_str(given).unwrap();
    assert_eq!(
        given["argo-cd"],
        json!({
            "enabled": false,
            "fullnameOverride": "ours",
            "namespaceOverride": "argo",
            "crds": {"install": false},
            "server": {"name": "api"},
            "configs": {
                "params": {"server.insecure": false, "server.rootpath": "/argo"},
                "tls": {"certificates": {"git.example.com": "no certificate"}},
            },
        })
    );
}

/// The paths of values of a new Argo CD that stand in quotes in a text, without `argo-cd.`.
fn paths_of_argocd(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split('"').filter_map(|part| part.strip_prefix("argo-cd."));
    parts.filter(|path| {
        path.split('.').all(|name| !name.is_empty() && name.chars().all(char::is_alphanumeric))
    })
}

#[test]
fn what_the_rules_read_of_a_new_argo_cd_is_what_the_hook_is_given() {
    let template = std::fs::read_to_string(chart().join("templates/validation.yaml")).unwrap();
    let rules = texts_below(std::path::Path::new(crate::helm::ROOT).join("pipeline/doctor/src/rules"));
    let read = rules.iter().flat_map(|(_, text)| paths_of_argocd(text));
    let read: std::collections::BTreeSet<&str> = read.collect();
    assert!(read.len() >= 6, "{read:?}");
    for path in read {
        let last = path.rsplit('.').next().unwrap();
        assert!(template.contains(&format!("\"{last}\"")), "argo-cd.{path}");
    }
}
