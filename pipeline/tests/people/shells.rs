//! Completions as shells have them, and manual pages.

use std::process::Stdio;

use serde_json::json;

use crate::app_proxy::AppProxy;
use crate::desk::{Desk, Said};
use crate::platform::{PROGRAM, SOON};

/// What Bash offers for a line, once it has read the script.
async fn offered(desk: &Desk, line: &str) -> Vec<String> {
    let script = r#"
        source <("$1" completion bash)
        read -ra COMP_WORDS <<< "$2"
        [[ "$2" == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMP_LINE="$2"; COMP_POINT=${#2}
        function=$(complete -p gitops-runtime | sed 's/.*-F \([^ ]*\).*/\1/')
        "$function" gitops-runtime "${COMP_WORDS[$COMP_CWORD]}" "${COMP_WORDS[$COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let said = shell(desk, "bash", &["--norc", "-c", script, "bash", PROGRAM, line]).await;
    said.done().lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

async fn shell(desk: &Desk, shell: &str, arguments: &[&str]) -> Said {
    let mut command = desk.command(shell);
    let command = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// Waits until Bash offers this for a line: the platform has a moment alone to answer in, which a busy machine may not give it.
async fn offers(desk: &Desk, line: &str, expected: &[&str]) {
    let offering = async { while offered(desk, line).await != expected {} };
    let in_time = tokio::time::timeout(SOON, offering).await;
    if in_time.is_err() {
        assert_eq!(offered(desk, line).await, expected, "{line}");
    }
}

#[tokio::test]
async fn bash_completes_commands_and_names_that_the_platform_knows() {
    let mut desk = Desk::signed_in().await;
    offers(&desk, "gitops-runtime app li", &["list"]).await;
    offers(&desk, "gitops-runtime app get st", &["store"]).await;
    offers(&desk, "gitops-runtime app get argocd/f", &["argocd/failing"]).await;
    offers(&desk, "gitops-runtime app get prod/argocd/", &["prod/argocd/failing", "prod/argocd/store"]).await;
    offers(&desk, "gitops-runtime app get --runtime prod st", &["store"]).await;
    offers(&desk, "gitops-runtime app sync st", &["store"]).await;
    offers(&desk, "gitops-runtime rollout promote st", &["store"]).await;
    offers(&desk, "gitops-runtime runtime get p", &["prod"]).await;
    offers(&desk, "gitops-runtime app list --runtime p", &["prod"]).await;
    offers(&desk, "gitops-runtime app list --context p", &["prod"]).await;
    offers(&desk, "gitops-runtime app list --namespace a", &["argocd"]).await;
    let all = desk.json(&["app", "list"]).await;
    let goes_to = all[1]["destinationNamespace"].as_str().unwrap();
    let begin = format!("gitops-runtime workflow list --runtime prod -n {goes_to}");
    offers(&desk, &begin, &[goes_to]).await;
    assert_eq!(offered(&desk, "gitops-runtime app get --runtime eu1 st").await, [""; 0]);
    assert_eq!(offered(&desk, "gitops-runtime app list --context none --runtime p").await, [""; 0]);
    // A platform that is away keeps nobody waiting, and leaves no line.
    desk.platform.stop().await;
    assert_eq!(offered(&desk, "gitops-runtime app get st").await, [""; 0]);
    assert_eq!(offered(&desk, "gitops-runtime context use p").await, ["prod"]);
}

#[tokio::test]
async fn what_a_runtime_has_is_completed_as_its_app_proxy_tells_it() {
    let (mut desk, proxy) = (Desk::signed_in().await, AppProxy::start().await);
    desk.platform.register(&proxy.url).await;
    let node = |group: &str, kind: &str, namespace: &str, name: &str| json!({"group": group, "kind": kind, "namespace": namespace, "name": name, "parentRefs": []});
    let nodes = [
        node("apps", "Deployment", "a", "web"),
        node("", "Service", "a", "web"),
        node("", "Service", "b", "web"),
        node("argoproj.io", "Rollout", "a", "api"),
    ];
    proxy.answers("resourceTree", &[json!({"nodes": nodes})]);
    let action =
        |name: &str, disabled: bool| json!({"name": name, "displayName": null, "disabled": disabled});
    proxy.answers("resourceActions", &[json!([action("restart", false), action("resume", true)])]);
    let entry = |id: u32| {
        json!({
            "id": id, "revision": "v1", "revisions": [], "deployStartedAt": null, "deployedAt": null, "initiatedBy": null,
            "automated": true,
        })
    };
    proxy.answers("applicationHistory", &[json!([entry(17), entry(16), entry(15)])]);
    let workflow = json!({
        "metadata": {"name": "build-2", "namespace": "ci"}, "uid": "w", "phase": "Running", "message": null, "progress": null,
        "workflowTemplate": "build", "suspended": false, "createdAt": null, "startedAt": null, "finishedAt": null,
    });
    let mut other = workflow.clone();
    other["metadata"]["name"] = json!("test-7");
    proxy.answers("workflows", &[json!([workflow, other])]);
    proxy.answers("gitIntegrations", &[json!([{"name": "default", "apiUrl": "https://api.github.com"}])]);
    for (line, expected) in [
        ("app logs store Dep", &["Deployment/web"][..]),
        ("app logs store a/S", &["a/Service/web"]),
        ("app sync store --resource b/", &["b/Service/web"]),
        ("app action store Deployment/web re", &["restart"]),
        ("app rollback store 1", &["16", "15"]),
        ("rollout promote store a", &["api"]),
        ("rollout get --runtime prod store a", &["api"]),
        ("workflow get --runtime prod -n ci b", &["build-2"]),
        ("workflow submit --runtime prod -n ci b", &["build"]),
        ("git integration edit --runtime prod --name d", &["default"]),
    ] {
        offers(&desk, &format!("gitops-runtime {line}"), expected).await;
    }
    assert_eq!(offered(&desk, "gitops-runtime app logs none Dep").await, [""; 0]);
    desk.platform.stop().await;
    assert_eq!(offered(&desk, "gitops-runtime app logs store Dep").await, [""; 0]);
}

/// What the Z shell offers for a line: its own completion hands over what the script found, which is printed in its place.
async fn offered_by_zsh(desk: &Desk, line: &str) -> String {
    let script = r#"
        function compdef { completer=$1 }
        function _describe { print -rl -- "${(@P)3}" }
        source <("$1" completion zsh)
        words=("${(@s: :)2}")
        CURRENT=${#words}
        $completer
    "#;
    shell(desk, "zsh", &["-f", "-c", script, "zsh", PROGRAM, line]).await.out
}

/// What fish offers for a line.
async fn offered_by_fish(desk: &Desk, line: &str) -> String {
    let script = "$argv[1] completion fish | source; complete --do-complete $argv[2]";
    shell(desk, "fish", &["--no-config", "-c", script, PROGRAM, line]).await.out
}

#[tokio::test]
async fn zsh_and_fish_complete_commands_and_names_with_what_they_are() {
    let mut desk = Desk::signed_in().await;
    assert_eq!(offered_by_zsh(&desk, "gitops-runtime app li").await, "list:List applications\n");
    assert_eq!(offered_by_fish(&desk, "gitops-runtime app li").await, "list\tList applications\n");
    for (line, name) in [("gitops-runtime app get st", "store"), ("gitops-runtime runtime get p", "prod")] {
        // The platform has a moment alone to answer in, which a busy machine may not give it.
        let both = async {
            while offered_by_zsh(&desk, line).await.trim() != name
                || offered_by_fish(&desk, line).await.trim() != name
            {}
        };
        if tokio::time::timeout(SOON, both).await.is_err() {
            let found = [offered_by_zsh(&desk, line).await, offered_by_fish(&desk, line).await];
            assert_eq!(found, [name, name], "{line}");
        }
    }
    desk.platform.stop().await;
}

#[tokio::test]
async fn a_shell_that_is_not_known_is_refused() {
    let desk = Desk::start().await;
    let wrong = desk.run(&["completion", "tcsh"]).await;
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("[possible values: bash, zsh, fish]"), "{wrong:?}");
    desk.stop().await;
}

#[tokio::test]
async fn every_command_for_people_has_a_manual_page_and_help_with_examples() {
    let desk = Desk::start().await;
    let folder = desk.file("man1");
    let said = desk.run(&["man", &folder.display().to_string()]).await.done();
    assert!(
        said.ends_with(&format!(" manual pages are in {}: `man -l` shows one\n", folder.display())),
        "{said}"
    );
    let pages: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    let of_people =
        ["login", "context", "runtime", "app", "rollout", "workflow", "git", "seal", "completion", "man"];
    let commands: Vec<&str> = pages
        .iter()
        .filter_map(|page| page.strip_prefix("gitops-runtime-")?.strip_suffix(".1"))
        .filter(|command| of_people.contains(&command.split('-').next().unwrap()))
        .collect();
    assert!(commands.len() > 12, "{commands:?}");
    for command in commands {
        let page = std::fs::read_to_string(folder.join(format!("gitops-runtime-{command}.1"))).unwrap();
        // Those of a few words are shown by the command that they are of.
        let is_small =
            ["context-", "git-integration-", "git-token-"].iter().any(|of| command.starts_with(of));
        assert!(is_small || page.contains("Examples:"), "{command} has no examples");
    }
    desk.stop().await;
}
