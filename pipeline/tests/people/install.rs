//! Installing and uninstalling: the helm that is found is run, and the platform is looked at.

use std::os::unix::fs::PermissionsExt as _;

use loadtest::sim::wait_for;
use serde_json::{Value, json};

use crate::desk::{Desk, told};

/// A helm that writes down what it was asked for, and then does as `then` says.
fn helm(desk: &Desk, then: &str) -> String {
    let file = desk.file("helm");
    std::fs::write(&file, format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > asked\n{then}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
}

fn asked(desk: &Desk) -> String {
    std::fs::read_to_string(desk.file("asked")).unwrap().replace('\n', " ")
}

#[tokio::test]
async fn the_command_is_printed_as_a_shell_takes_it_and_not_run() {
    let desk = Desk::signed_in().await;
    let url = desk.platform.url();
    let install =
        ["runtime", "install", "eu1", "--chart", "helm/gitops-runtime", "-f", "my values.yaml", "--print"];
    let expected = format!(
        "helm upgrade eu1 helm/gitops-runtime --namespace gitops-runtime --install --create-namespace \
         --set-string global.runtime.name=eu1 --set-string global.codefresh.url={url} -f 'my values.yaml'\n"
    );
    assert_eq!(desk.run(&install).await.done(), expected);
    let upgrade =
        ["runtime", "upgrade", "eu1", "--chart", "c", "--kube-context", "eu", "--release", "r", "--print"];
    let expected = "helm upgrade r c --namespace gitops-runtime --kube-context eu --reset-then-reuse-values --wait --timeout 600s\n";
    assert_eq!(desk.run(&upgrade).await.done(), expected);
    let uninstall = ["runtime", "uninstall", "eu1", "--namespace", "n", "--print"];
    assert_eq!(desk.run(&uninstall).await.done(), "helm uninstall eu1 --namespace n --wait\n");
    desk.stop().await;
}

#[tokio::test]
async fn an_installation_is_waited_for_until_the_runtime_reports() {
    let desk = Desk::signed_in().await;
    let url = desk.platform.url();
    let program = helm(&desk, "echo installed");
    let install = ["runtime", "install", "prod", "--chart", "c", "--helm", &program];
    let (said, ()) = tokio::join!(desk.run(&install), async {
        wait_for("Helm to be started", async || desk.file("asked").exists(), |is_there| *is_there).await;
        desk.platform.report(&first("1")).await;
    });
    assert_eq!((said.code, said.out), (0, format!("installed\nprod reports to {url}\n")), "{}", said.err);
    assert!(asked(&desk).starts_with("upgrade prod c --namespace gitops-runtime --install "));
    let late = desk.run(&[&install[..], &["--timeout", "1s"]].concat()).await;
    let end = "it has not taken effect within 1 s: nothing was reported yet\n";
    assert!(late.code == 3 && late.err.ends_with(end), "{late:?}");
    desk.stop().await;
}

/// What a runtime reports of an application.
fn first(version: &str) -> Value {
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "first", "namespace": "argocd", "uid": "first", "resourceVersion": version},
    });
    json!({"object": object, "source": {"syncStatus": "Synced"}})
}

#[tokio::test]
async fn what_is_reported_while_helm_waits_for_the_new_pods_is_not_of_these() {
    let desk = Desk::signed_in().await;
    let program = helm(&desk, "while [ ! -f reported ]; do sleep 0.05; done");
    let upgrade = ["runtime", "upgrade", "prod", "--chart", "c", "--helm", &program, "--timeout", "1s"];
    let (said, ()) = tokio::join!(desk.run(&upgrade), async {
        wait_for("Helm to be started", async || desk.file("asked").exists(), |is_there| *is_there).await;
        desk.platform.report(&first("1")).await;
        std::fs::write(desk.file("reported"), "").unwrap();
    });
    let end = "it has not taken effect within 1 s: it was not heard of since\n";
    assert!(said.code == 3 && said.err.ends_with(end), "{said:?}");
    assert!(asked(&desk).contains("--wait --timeout 1s"));
    desk.stop().await;
}

#[tokio::test]
async fn a_dry_run_tells_object_by_object_what_helm_would_change_and_no_secret() {
    let desk = Desk::signed_in().await;
    let has = "---\n# Source: a.yaml\nkind: Deployment\nmetadata:\n  name: web\n  namespace: rt\nspec:\n  replicas: 1\n---\n\
               kind: Secret\nmetadata:\n  name: keys\n  annotations:\n    helm.sh/resource-policy: keep\ndata:\n  a: Y2FuYXJ5MQ==\n";
    let planned = has.replace("replicas: 1", "replicas: 2").replace("Y2FuYXJ5MQ==", "Y2FuYXJ5Mg==");
    std::fs::write(desk.file("has.yaml"), has).unwrap();
    let release = json!({"name": "prod", "manifest": planned, "config": {"password": "canary3"}});
    std::fs::write(desk.file("planned.json"), release.to_string()).unwrap();
    let program = helm(
        &desk,
        r#"case "$1 $*" in "get "*) cat has.yaml;; "upgrade "*" --dry-run "*) cat planned.json;; *) exit 9;; esac"#,
    );
    let upgrade = ["runtime", "upgrade", "prod", "--chart", "c", "-n", "rt", "--helm", &program, "--dry-run"];
    let said = desk.run(&upgrade).await;
    let expected = "would upgrade the release prod in the namespace rt\n\
        --- live Deployment/web in rt\n+++ desired Deployment/web in rt\n@@ -3,4 +3,4 @@\n   name: web\n   namespace: rt\n spec:\n\
        -  replicas: 1\n+  replicas: 2\n\
        --- live Secret/keys\n+++ desired Secret/keys\n";
    assert!(said.code == 0 && said.out.starts_with(expected), "{said:?}");
    let secret = "-  a: (not shown)\n+  a: (not shown, another than before)\n";
    assert!(
        said.out.contains(secret) && !said.out.contains("anary") && !said.out.contains("Y2Fu"),
        "{said:?}"
    );
    assert_eq!(said.err, told("2 objects would be changed"));
    assert_eq!(
        asked(&desk),
        "upgrade prod c --namespace rt --reset-then-reuse-values --wait --timeout 600s --dry-run --output json "
    );

    let uninstall = ["runtime", "uninstall", "prod", "-n", "rt", "--helm", &program, "--dry-run"];
    let expected = "would uninstall the release prod in the namespace rt, and take the runtime prod and its tokens from the platform\n  \
                    Deployment/web in rt\n  Secret/keys, which stays\n";
    assert_eq!(desk.run(&uninstall).await.done(), expected);
    assert_eq!(asked(&desk), "get manifest prod --namespace rt ", "it only looked");
    assert_eq!(desk.run(&["runtime", "list", "-o", "name"]).await.done(), "prod\n");

    // Of a release that is not there all is new; what helm says of a failure is seen.
    let none = r#"case "$1" in get) echo "Error: release: not found" >&2; exit 1;; upgrade) cat planned.json;; esac"#;
    let program = helm(&desk, none);
    let install = ["runtime", "install", "prod", "--chart", "c", "-n", "rt", "--helm", &program, "--dry-run"];
    let said = desk.run(&install).await;
    let first = "would install the release prod in the namespace rt\n--- live Deployment/web in rt, which is not there\n";
    assert!(said.code == 0 && said.out.starts_with(first), "{said:?}");
    let gone = ["runtime", "uninstall", "prod", "-n", "rt", "--helm", &program, "--dry-run"];
    let refused = desk.run(&gone).await.refused();
    let said = "there is no release prod in the namespace rt: --record-only has the platform alone forget the runtime";
    assert_eq!(refused, (1, told(said)));
    let program = helm(&desk, "echo 'Error: no cluster' >&2; exit 1");
    let refused = desk
        .run(&["runtime", "upgrade", "prod", "--chart", "c", "--helm", &program, "--dry-run"])
        .await
        .refused();
    assert_eq!(refused, (1, format!("Error: no cluster\n{}", told("helm ended with 1: it said why above"))));
    let both = desk.run(&[&install[..], &["--print"]].concat()).await;
    assert_eq!(both.code, 2, "{both:?}");
    desk.stop().await;
}

#[tokio::test]
async fn what_keeps_helm_from_it_is_told_with_what_to_do() {
    let desk = Desk::signed_in().await;
    let url = desk.platform.url();
    let none =
        desk.run(&["runtime", "install", "prod", "--chart", "c", "--helm", "/none/helm"]).await.refused();
    let said = "there is no /none/helm: install Helm 3.14 or newer, or name it with --helm; --print shows the command";
    assert_eq!(none, (1, told(said)));
    let failing = helm(&desk, "exit 4");
    let failed =
        desk.run(&["runtime", "install", "prod", "--chart", "c", "--helm", &failing]).await.refused();
    assert_eq!(failed, (1, told("helm ended with 4: it said why above")));
    let unknown =
        desk.run(&["runtime", "install", "eu1", "--chart", "c", "--helm", &failing]).await.refused();
    let said = format!(
        "there is no runtime 'eu1' that you see: add it on the page Runtimes of {url}, which shows how its token becomes the \
         Secret codefresh-token in the namespace gitops-runtime; then install it"
    );
    assert_eq!(unknown, (1, told(&said)));
    let meant = desk.run(&["runtime", "uninstall", "prod", "--helm", &failing]).await.refused();
    let said = "this would uninstall the release prod in the namespace gitops-runtime, and take the runtime prod and its tokens \
                from the platform: give --yes, since nobody can be asked";
    assert_eq!(meant, (2, told(said)));
    let failed = desk.run(&["runtime", "uninstall", "prod", "--yes", "--helm", &failing]).await.refused();
    assert_eq!(failed, (1, told("helm ended with 4: it said why above")));
    assert_eq!(
        desk.run(&["runtime", "list", "-o", "name"]).await.done(),
        "prod\n",
        "the platform still knows it"
    );
    desk.stop().await;
}

#[tokio::test]
async fn a_runtime_that_is_uninstalled_is_forgotten_and_what_stays_is_named() {
    let desk = Desk::signed_in().await;
    desk.platform.register("https://runtime.example.com").await;
    let program = helm(&desk, "");
    let said =
        desk.run(&["runtime", "uninstall", "prod", "-n", "rt", "--yes", "--helm", &program]).await.done();
    assert_eq!(asked(&desk), "uninstall prod --namespace rt --wait ");
    let expected = "the release prod is uninstalled\n\
                    the platform forgot the runtime prod and its tokens\n\
                    what the chart leaves, so that nothing is lost, is still in the namespace rt:\n  \
                    the Secret codefresh-token, which is of no use any more\n  \
                    the Secret prod-gitops-runtime-generated\n  \
                    the claims of its ledger and of its bus: kubectl get pvc --namespace rt\n\
                    kubectl delete namespace rt takes all of it, where nothing else is in there\n\
                    nothing of the chart has a finalizer; Applications that another chart made for its own use keep theirs, which \
                    Argo CD alone ends: kubectl get applications.argoproj.io --all-namespaces --selector codefresh.io/internal=true\n";
    assert_eq!(said, expected);
    desk.stop().await;
}

#[tokio::test]
async fn a_runtime_of_which_nothing_is_installed_any_more_is_forgotten_without_helm() {
    let desk = Desk::signed_in().await;
    desk.platform.register("https://runtime.example.com").await;
    let program = helm(&desk, "exit 9");
    let base = ["runtime", "uninstall", "prod", "--record-only", "--helm", &program];
    let run = async |more: &[&str]| desk.run(&[&base[..], more].concat()).await;
    let does = "take the runtime prod and its tokens from the platform";
    assert_eq!(run(&["--dry-run"]).await.done(), format!("would {does}\n"));
    let meant = format!("this would {does}: give --yes, since nobody can be asked");
    assert_eq!(run(&[]).await.refused(), (2, told(&meant)));
    assert_eq!(desk.run(&["runtime", "list", "-o", "name"]).await.done(), "prod\n");
    assert_eq!(run(&["--yes"]).await.done(), "the platform forgot the runtime prod and its tokens\n");
    assert!(!desk.file("asked").exists(), "helm was not run");
    assert_eq!(desk.run(&["runtime", "list", "-o", "name"]).await.done(), "");
    desk.stop().await;
}
