//! What the console tells somebody to run who adds a runtime.

use std::process::Command;

use serde_json::Value;
use stages_platform_console::{Installation, Left};

use crate::helm::{ROOT, program};

/// Renders in place of installing, as no cluster is there to ask its version of.
const TEMPLATE: &str = "\"$HELM\" template --kube-version 1.31.0";
const PLATFORM: &str = "https://platform.example.com:8443";

fn installation() -> Installation {
    Installation {
        name: "eu1".to_owned(),
        is_adopted: false,
        namespace: "team-a".to_owned(),
        argo_cd: "argo".to_owned(),
        registry: "registry.example.com/platform".to_owned(),
        repository: "git@git.example.com:platform/gitops-runtime.git".to_owned(),
    }
}

/// What a printed command of Helm's would install; a shell reads it, as it would a person's.
fn rendered(command: &str) -> Vec<Value> {
    let output =
        Command::new("sh").args(["-euc", command]).current_dir(ROOT).env("HELM", program()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
    serde_saphyr::from_multiple(str::from_utf8(&output.stdout).unwrap()).unwrap()
}

/// What values in YAML would install.
fn rendered_with(values: &str) -> Vec<Value> {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).unwrap();
    rendered(&format!("{TEMPLATE} eu1 helm/gitops-runtime --namespace team-a -f {}", file.display()))
}

#[test]
fn what_the_console_prints_installs_the_same_runtime_by_helm_argo_cd_and_terraform() {
    let runtime = installation();
    let printed = runtime.helm(PLATFORM);
    let by_helm = rendered(&printed.replacen("helm install", TEMPLATE, 1));

    let text = serde_json::to_string(&by_helm).unwrap();
    let names = [
        PLATFORM,
        "registry.example.com/platform/gitops-runtime:",
        "argocd-server.argo",
        "codefresh-token",
        "argocd-token",
    ];
    for one in names {
        assert!(text.contains(one), "{one} is not in what Helm renders");
    }
    let secrets = [runtime.secret("gort_x"), runtime.account()].concat();
    for one in [
        "-n team-a create secret generic codefresh-token \\\n  --from-literal=token=gort_x",
        "-n team-a create secret generic argocd-token",
    ] {
        assert!(secrets.contains(one), "{one} is not in {secrets}");
    }

    let application: Value = serde_saphyr::from_str(&runtime.argo_cd(PLATFORM)).unwrap();
    let of = |path: &str| application.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let said = [
        ("/metadata/name", "gitops-runtime-eu1"),
        ("/metadata/namespace", "argo"),
        ("/spec/destination/namespace", "team-a"),
        ("/spec/source/repoURL", "git@git.example.com:platform/gitops-runtime.git"),
        ("/spec/source/path", "helm/gitops-runtime"),
        ("/spec/source/helm/releaseName", "eu1"),
    ];
    for (path, expected) in said {
        assert_eq!(of(path), expected, "{path}");
    }
    assert_eq!(rendered_with(&application["spec"]["source"]["helm"]["valuesObject"].to_string()), by_helm);

    let release = runtime.terraform(PLATFORM);
    let values = release.split_once("<<-YAML\n").and_then(|(_, rest)| rest.split_once("YAML\n")).unwrap().0;
    assert_eq!(rendered_with(values), by_helm);
}

#[test]
fn what_is_left_once_a_runtime_reports_is_taken_by_helm_as_it_is_printed() {
    let runtime = installation();
    let installed = runtime.helm(PLATFORM);
    let values: Vec<&str> = installed.lines().skip(1).collect();
    let mut upgrades = 0;
    for Left { what, command, .. } in runtime.left() {
        let Some(upgrade) = command.strip_prefix("helm upgrade") else { continue };
        let upgrade = upgrade.replacen("--reset-then-reuse-values", &values.join("\n"), 1);
        let objects = rendered(&format!("{TEMPLATE}{upgrade}"));
        assert!(objects.len() > rendered(&installed.replacen("helm install", TEMPLATE, 1)).len(), "{what}");
        upgrades += 1;
    }
    assert_eq!(upgrades, 3);
}

/// What the patches of a printed command say.
fn patches(command: &str) -> Vec<Value> {
    let patch = |rest: &str| serde_json::from_str(rest.split_once('\'').unwrap().0).unwrap();
    command.split("-p '").skip(1).map(patch).collect()
}

/// Argo CD lists no cluster to an account that may not get it: the app proxy would tell the platform of none.
#[test]
fn whoever_acts_through_the_app_proxy_gives_its_account_what_that_takes_before_it_runs() {
    let left = installation().left();
    let commands: Vec<&str> = left.iter().map(|left| &*left.command).collect();
    let runs = commands.iter().position(|command| command.contains("appProxy.enabled=true")).unwrap();
    let policy = "p, gitops-runtime, applications, get, */*, allow\np, gitops-runtime, applications, sync, */*, allow\np, gitops-runtime, \
                  applications, action/*, */*, allow\np, gitops-runtime, logs, get, */*, allow\np, gitops-runtime, clusters, get, *, allow";
    let expected = serde_json::json!({"data": {"policy.gitops-runtime.csv": policy}});
    assert!(
        commands[runs - 1].starts_with("kubectl -n argo patch configmap argocd-rbac-cm "),
        "{commands:?}"
    );
    assert_eq!(patches(commands[runs - 1]), [expected]);
}

#[test]
fn the_rights_that_are_given_at_argo_cd_are_json_that_a_patch_takes() {
    let patches = patches(&installation().account());
    let expected = [
        serde_json::json!({"data": {"accounts.gitops-runtime": "apiKey"}}),
        serde_json::json!({"data": {"policy.gitops-runtime.csv": "p, gitops-runtime, applications, get, */*, allow"}}),
    ];
    assert_eq!(patches, expected);
}

#[test]
fn a_chart_without_a_registry_takes_the_image_of_the_node() {
    let runtime = Installation { registry: String::new(), ..installation() };
    let printed = runtime.helm(PLATFORM);
    assert!(!printed.contains("imageRegistry"), "{printed}");
    let objects = rendered(&printed.replacen("helm install", TEMPLATE, 1));
    assert!(serde_json::to_string(&objects).unwrap().contains("\"gitops-runtime:"));
}
