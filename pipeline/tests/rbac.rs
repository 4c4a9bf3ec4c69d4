//! The rights of each role, as `gitops-runtime rbac print` prints them: what the role declares, and nothing else.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use stages_kube::{Kind, Right, Scope};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/pipeline/tests/rbac");

/// What the reporter watches.
const APPLICATIONS: Kind =
    Kind { group: "argoproj.io", version: "v1alpha1", plural: "applications", singular: "application" };

/// Runs the binary with these variables and no other.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gitops-runtime"))
        .args(arguments)
        .env_clear()
        .env("HOSTNAME", "host")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

/// What `rbac print --role reporter` prints with these flags.
fn printed(flags: &[&str], variables: &[(&str, &str)]) -> String {
    let output = run(&[&["rbac", "print", "--role", "reporter"], flags].concat(), variables);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{flags:?}");
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code of `rbac print` with these flags, and what it says instead of printing anything.
fn refused(flags: &[&str]) -> (Option<i32>, String) {
    let output = run(&[&["rbac", "print"], flags].concat(), &[]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// One verb on one resource: namespace (empty for all), group, resource, name (empty for all), verb.
type Grant = (String, String, String, String, String);

/// All that the bound roles of a manifest grant to an account.
fn granted(documents: &[Value], account: (&str, &str)) -> BTreeSet<Grant> {
    let subjects = json!([{"kind": "ServiceAccount", "namespace": account.0, "name": account.1}]);
    let bindings: Vec<&Value> = documents
        .iter()
        .filter(|document| document["kind"].as_str().unwrap().ends_with("Binding"))
        .inspect(|binding| assert_eq!(binding["subjects"], subjects))
        .collect();
    let mut grants = BTreeSet::new();
    for binding in bindings {
        let role = |document: &&Value| {
            document["kind"] == binding["roleRef"]["kind"]
                && document["metadata"]["name"] == binding["roleRef"]["name"]
                && document["metadata"]["namespace"] == binding["metadata"]["namespace"]
        };
        let role = documents.iter().find(role).unwrap();
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        assert_eq!(namespace.is_empty(), role["kind"] == "ClusterRole");
        for rule in role["rules"].as_array().unwrap() {
            let names = match &rule["resourceNames"] {
                Value::Null => vec![String::new()],
                names => texts(names),
            };
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        for name in &names {
                            grants.insert((
                                namespace.to_owned(),
                                group.clone(),
                                resource.clone(),
                                name.clone(),
                                verb.clone(),
                            ));
                        }
                    }
                }
            }
        }
    }
    grants
}

/// The same of what stages declare.
fn declared(rights: &[Right]) -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    for right in rights {
        let namespace = match &right.scope {
            Scope::Namespace(namespace) => namespace.as_str(),
            Scope::Cluster => "",
        };
        let names = if right.names.is_empty() { vec![String::new()] } else { right.names.clone() };
        for verb in right.verbs {
            for name in &names {
                grants.insert((
                    namespace.to_owned(),
                    right.group.to_owned(),
                    right.resource.to_owned(),
                    name.clone(),
                    (*verb).to_owned(),
                ));
            }
        }
    }
    grants
}

#[test]
fn what_is_printed_is_what_is_committed() {
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty(), "{CASES} holds no case");
    for case in cases {
        let text = printed(&["--config", case.join("in.yaml").to_str().unwrap()], &[]);
        let out = case.join("out.yaml");
        if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
            std::fs::write(&out, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&out).unwrap_or_default();
        assert_eq!(text, expected, "{} (UPDATE=1 rewrites it)", out.display());
    }
}

fn watch(namespace: &str, namespaces: &[&str]) -> stages_kube::Config {
    let namespaces = namespaces.iter().map(|&pattern| pattern.to_owned()).collect();
    stages_kube::Config::new(stages_kube::Cluster::Infer, namespace.to_owned(), namespaces, 100)
}

#[test]
fn what_is_printed_is_what_the_watch_declares() {
    let argocd = watch("argocd", &[]);
    let found = granted(&documents(&printed(&[], &[])), ("argocd", "event-reporter"));
    assert_eq!(found, declared(&[argocd.watch_right(APPLICATIONS)]));
    // Said once more, without the declaration.
    let grant = |verb: &str| {
        (
            "argocd".to_owned(),
            "argoproj.io".to_owned(),
            "applications".to_owned(),
            String::new(),
            verb.to_owned(),
        )
    };
    assert_eq!(found, BTreeSet::from([grant("get"), grant("list"), grant("watch")]));

    let gitops = watch("gitops", &[]);
    let found = granted(&documents(&printed(&["--namespace", "gitops"], &[])), ("gitops", "event-reporter"));
    assert_eq!(found, declared(&[gitops.watch_right(APPLICATIONS)]));

    let many = watch("argocd", &["team-*"]);
    let flags = ["--application-namespaces", "team-*", "--service-account", "gitops/reporter.1"];
    let found = granted(&documents(&printed(&flags, &[])), ("gitops", "reporter.1"));
    assert_eq!(found, declared(&[many.watch_right(APPLICATIONS)]));
    assert!(found.iter().all(|(namespace, ..)| namespace.is_empty()));
}

#[test]
fn a_secret_is_granted_alone_by_name_and_only_when_it_is_asked_for() {
    let without = printed(&["--set", "argocd.tokenFile=/run/token"], &[]);
    assert!(!without.contains("secrets"), "{without}");
    let variables = [("ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"), ("ARGOCD_APPLICATION_NAMESPACES", "*")];
    let found = granted(&documents(&printed(&[], &variables)), ("argocd", "event-reporter"));
    let watch = watch("argocd", &["*"]);
    let rights = [watch.watch_right(APPLICATIONS), watch.secret_right("argocd-token")];
    assert_eq!(found, declared(&rights));
    let of_secrets: Vec<_> = found.iter().filter(|(_, _, resource, ..)| resource == "secrets").collect();
    let [(namespace, _, _, name, verb)] = of_secrets[..] else { panic!("{of_secrets:?}") };
    assert_eq!((namespace.as_str(), name.as_str(), verb.as_str()), ("argocd", "argocd-token", "get"));
}

#[test]
fn who_makes_what_nobody_gives_may_read_and_change_one_secret() {
    let account = ["--service-account", "runtime/prod-reporter"];
    let output = run(
        &[&["rbac", "print", "--role", "secrets", "--secret", "prod-generated"], &account[..]].concat(),
        &[],
    );
    assert_eq!(output.status.code(), Some(0));
    let found = granted(&documents(&String::from_utf8(output.stdout).unwrap()), ("runtime", "prod-reporter"));
    let grant = |verb: &str| ["runtime", "", "secrets", "prod-generated", verb].map(str::to_owned).into();
    assert_eq!(found, BTreeSet::<Grant>::from([grant("get"), grant("patch")]));
    let (code, text) = refused(&["--role", "secrets"]);
    assert_eq!(code, Some(2));
    assert!(text.contains("required arguments were not provided:\n  --secret <NAME>"), "{text}");
}

#[test]
fn names_that_yaml_would_take_for_something_else_stay_names() {
    for name in ["on", "no", "null", "123", "0x12", "1e3", "1-2"] {
        let account = format!("{name}/{name}");
        let text = printed(&["--namespace", name, "--service-account", &account], &[]);
        let documents = documents(&text);
        assert_eq!(documents.len(), 3);
        assert!(!granted(&documents, (name, name)).is_empty(), "{text}");
        for document in &documents {
            assert_eq!(document["metadata"]["namespace"], json!(name), "{text}");
        }
    }
}

#[test]
fn each_refusal_says_what_would_be_right() {
    let said = |flags: &[&str]| {
        let (code, text) = refused(flags);
        (code, text.lines().next().unwrap_or_default().to_owned())
    };
    let (code, text) = refused(&["--role", "reportr"]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("invalid value 'reportr' for '--role <ROLE>'\n  [possible values: reporter, resource-reporter, app-proxy, secrets, source-server, change-revision]"),
        "{text}"
    );
    assert!(text.contains("tip: a similar value exists: 'reporter'"), "{text}");
    let (code, text) = refused(&[]);
    assert_eq!(code, Some(2));
    assert!(text.contains("not provided:\n  --role <ROLE>"), "{text}");
    for (account, why) in [
        ("Argocd/reporter", "the part before / must be the name of a namespace, such as argocd"),
        ("argocd/a_b", "must be lower-case letters, digits, - and ., such as event-reporter"),
        ("", "must be lower-case letters, digits, - and ., such as event-reporter"),
    ] {
        let line =
            format!("error: invalid value '{account}' for '--service-account <[NAMESPACE/]NAME>': {why}");
        assert_eq!(said(&["--role", "reporter", "--service-account", account]), (Some(2), line));
    }
    for namespace in ["-", "Argocd", "a.b", "x\nkind: ClusterRole"] {
        let line = format!("config: kubernetes.namespace: '{namespace}' is not the name of a namespace: ");
        let (code, text) = refused(&["--role", "reporter", "--namespace", namespace]);
        assert!(code == Some(1) && text.starts_with(&line), "{text}");
    }
    let wrong = ["--role", "reporter", "--set", "kubernetes.namespac=x"];
    let line =
        "config: kubernetes.namespac: unknown setting; did you mean 'namespace'? (from --set)".to_owned();
    assert_eq!(said(&wrong), (Some(1), line));
    assert!(!refused(&wrong).1.contains("argocd.token"), "what only a start needs is not missed");
}

#[test]
fn help_shows_how_rights_are_granted() {
    for command in [&["rbac", "--help"][..], &["rbac", "print", "--help"]] {
        let text = String::from_utf8(run(command, &[]).stdout).unwrap();
        let example =
            "\n    gitops-runtime rbac print --role reporter --namespace argocd | kubectl apply -f -\n";
        assert!(text.contains(example), "{text}");
    }
}

#[test]
fn the_resource_reporter_may_read_the_kinds_that_are_configured_and_no_other() {
    let flags = [
        "rbac",
        "print",
        "--role",
        "resource-reporter",
        "--service-account",
        "ops/resources",
        "--set",
        "resources.kinds=rollouts.argoproj.io,replicasets.apps@v1",
    ];
    let grants = |more: &[&str]| {
        let output = run(&[&flags, more].concat(), &[]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        granted(&documents(&String::from_utf8(output.stdout).unwrap()), ("ops", "resources"))
    };
    let of = |namespace: &str, group: &str, kind: &str, verbs: &[&str]| -> Vec<Grant> {
        verbs.iter().map(|verb| [namespace, group, kind, "", verb].map(str::to_owned).into()).collect()
    };
    let watch = ["get", "list", "watch"];
    let kinds = |namespace: &str| -> BTreeSet<Grant> {
        let all = [("argoproj.io", "rollouts"), ("apps", "replicasets")];
        all.into_iter().flat_map(|(group, kind)| of(namespace, group, kind, &watch)).collect()
    };
    assert_eq!(grants(&["--set", "resources.applications=false"]), kinds(""));
    let alone = ["--set", "resources.applications=false", "--set", "resources.namespaces="];
    assert_eq!(grants(&alone), kinds("argocd"));
    // Whose an object is stands in applications and in owners.
    let mut linked = kinds("");
    linked.extend(of("", "argoproj.io", "applications", &["get"]));
    linked.extend(of("", "apps", "deployments", &["get"]));
    linked.extend(of("", "argoproj.io", "experiments", &["get"]));
    assert_eq!(grants(&[]), linked);
}

#[test]
fn the_app_proxy_may_change_rollouts_and_workflows_where_it_is_told_to_and_keep_tokens_in_three_secrets() {
    let grants = |more: &[&str]| {
        let flags = [
            "rbac",
            "print",
            "--role",
            "app-proxy",
            "--service-account",
            "ops/app-proxy",
            "--namespace",
            "ops",
        ];
        let output = run(&[&flags, more].concat(), &[]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        granted(&documents(&String::from_utf8(output.stdout).unwrap()), ("ops", "app-proxy"))
    };
    let expected = |places: &[&str]| -> BTreeSet<Grant> {
        let of = |namespace: &str, group: &str, resource: &str, name: &str, verbs: &[&str]| -> Vec<Grant> {
            let grant = |verb: &&str| [namespace, group, resource, name, verb].map(str::to_owned).into();
            verbs.iter().map(grant).collect()
        };
        let mut all = of("ops", "argoproj.io", "applications", "", &["get", "list"]);
        all.extend(of("ops", "", "pods", "", &["list"]));
        all.extend(of("ops", "", "pods/log", "", &["get"]));
        for secret in ["codefresh-token", "git-default-default", "runtime-repo-creds-secret"] {
            all.extend(of("ops", "", "secrets", secret, &["create", "get", "patch"]));
        }
        for place in places {
            all.extend(of(place, "apps", "replicasets", "", &["list"]));
            all.extend(of(place, "argoproj.io", "analysisruns", "", &["list"]));
            all.extend(of(place, "argoproj.io", "rollouts", "", &["get", "patch"]));
            all.extend(of(place, "argoproj.io", "rollouts/status", "", &["patch"]));
            all.extend(of(place, "argoproj.io", "workflows", "", &["create", "get", "list", "patch"]));
        }
        all.into_iter().collect()
    };
    assert_eq!(grants(&[]), expected(&["ops"]));
    assert_eq!(grants(&["--set", "appProxy.namespaces=shop,ops"]), expected(&["ops", "shop"]));
    assert_eq!(grants(&["--set", "appProxy.namespaces=*,shop"]), expected(&[""]));
    // What is Argo CD's it looks for where Argo CD is, and nowhere else.
    let moved = |grants: BTreeSet<Grant>| -> BTreeSet<Grant> {
        let is_argocds = |grant: &Grant| grant.2 == "applications" || grant.3 == "runtime-repo-creds-secret";
        let of = |grant: Grant| {
            if is_argocds(&grant) { ("argocd".to_owned(), grant.1, grant.2, grant.3, grant.4) } else { grant }
        };
        grants.into_iter().map(of).collect()
    };
    assert_eq!(grants(&["--set", "argocd.namespace=argocd"]), moved(expected(&["ops"])));
    assert_eq!(grants(&["--set", "argocd.namespace=ops"]), expected(&["ops"]));
}

#[test]
fn the_source_server_may_ask_whose_a_token_is_unless_callers_have_one_token() {
    let grants = |more: &[&str]| {
        let flags = ["rbac", "print", "--role", "source-server", "--service-account", "ops/sources"];
        let output = run(&[&flags[..], more].concat(), &[]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        granted(&documents(&String::from_utf8(output.stdout).unwrap()), ("ops", "sources"))
    };
    let review: Grant = ["", "authentication.k8s.io", "tokenreviews", "", "create"].map(str::to_owned).into();
    assert_eq!(grants(&[]), BTreeSet::from([review]));
    let one_token = ["--set", "sourceServer.callers.tokenFile=token"];
    assert_eq!(grants(&one_token), BTreeSet::new());
    let credentials = [
        "--set",
        "sourceServer.git.repositories.argocdSecrets=true",
        "--set",
        "sourceServer.git.repositories.argocdCertificates=true",
    ];
    let grant = |resource: &str, name: &str, verb: &str| -> Grant {
        let group = if resource == "appprojects" { "argoproj.io" } else { "" };
        ["argocd", group, resource, name, verb].map(str::to_owned).into()
    };
    let expected = BTreeSet::from([
        grant("appprojects", "", "list"),
        grant("configmaps", "argocd-cm", "get"),
        grant("configmaps", "argocd-ssh-known-hosts-cm", "get"),
        grant("configmaps", "argocd-tls-certs-cm", "get"),
        grant("secrets", "", "list"),
    ]);
    assert_eq!(grants(&[&one_token[..], &credentials].concat()), expected);
}

#[test]
fn who_says_what_changed_may_watch_applications_and_more_only_where_that_is_asked_for() {
    let grants = |more: &[&str]| {
        let flags = ["rbac", "print", "--role", "change-revision", "--service-account", "ops/changes"];
        let output = run(&[&flags[..], more].concat(), &[]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        granted(&documents(&String::from_utf8(output.stdout).unwrap()), ("ops", "changes"))
    };
    let grant = |group: &str, resource: &str, name: &str, verb: &str| -> Grant {
        ["argocd", group, resource, name, verb].map(str::to_owned).into()
    };
    let application = |verb: &str| grant("argoproj.io", "applications", "", verb);
    let mut expected: BTreeSet<Grant> = ["get", "list", "watch"].map(application).into();
    assert_eq!(grants(&[]), expected);
    expected.insert(application("patch"));
    assert_eq!(grants(&["--set", "changeRevision.annotations=true"]), expected);
    expected.insert(grant("", "secrets", "", "list"));
    expected.insert(grant("argoproj.io", "appprojects", "", "list"));
    expected.insert(grant("", "configmaps", "argocd-cm", "get"));
    expected.insert(grant("", "configmaps", "argocd-tls-certs-cm", "get"));
    expected.insert(grant("", "configmaps", "argocd-ssh-known-hosts-cm", "get"));
    let all = ["annotations", "repositories.argocdSecrets", "repositories.argocdCertificates"];
    let all: Vec<String> = all.iter().map(|of| format!("--set=changeRevision.{of}=true")).collect();
    assert_eq!(grants(&all.iter().map(String::as_str).collect::<Vec<_>>()), expected);
}
