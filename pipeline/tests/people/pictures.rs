//! The views that people have most, on terminals of every width: nothing is folded that could be told otherwise, and whoever wants
//! to look has pictures of them. `PEOPLE_SHOTS` names a folder for those, on a dark and on a light ground.

use std::path::Path;

use loadtest_browser::Browser;
use serde_json::json;

use crate::app_proxy::AppProxy;
use crate::desk::Desk;
use crate::grid::Grid;
use crate::terminal::on_terminal;

/// A letter of these takes two columns.
const WIDE: &str = "注文サービスが起動しません: コンテナが停止しました";

/// Applications with long names, wide letters, and every state.
async fn applications(desk: &Desk) {
    let all = [
        ("checkout", "Healthy", "Synced", ""),
        (
            "recommendations-of-products-by-what-others-bought-eu-west-1",
            "Progressing",
            "OutOfSync",
            "Waiting for rollout to finish: 1 out of 3 new replicas have been updated",
        ),
        ("orders", "Degraded", "Synced", WIDE),
        ("search", "Suspended", "OutOfSync", ""),
        ("inventory", "Unknown", "Unknown", ""),
    ];
    for (number, (name, health, sync, said)) in all.into_iter().enumerate() {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": "1", "labels": {"team": "shop", "tier": "backend"}},
            "spec": {
                "project": "default", "destination": {"name": "production-eu-west-1", "namespace": "shop"},
                "source": {"repoURL": "https://git.example.com/platform-team/deployments.git", "path": format!("apps/{name}/overlays/production")},
            },
            "status": {
                "sync": {"status": sync, "revision": "8c4e0a0c566c7c9701de161e47749a2e708e2af7"},
                "health": {"status": health, "message": said},
            },
        });
        let source = json!({
            "syncStatus": sync, "healthStatus": health, "healthMessage": said, "commitAuthor": "Grace Hopper",
            "commitMessage": "orders: take payments of 2027 as well",
        });
        let at = format!("2026-11-20T10:00:{number:02}.000Z");
        desk.platform.report(&json!({"timestamp": at, "object": object, "source": source})).await;
    }
}

/// What a runtime tells of its Rollouts and workflows.
fn runtime(proxy: &AppProxy) {
    let node = json!({"group": "argoproj.io", "version": "v1alpha1", "kind": "Rollout", "namespace": "shop", "name": "checkout", "parentRefs": []});
    proxy.answers("resourceTree", &[json!({"nodes": [node]})]);
    let revision = |number: u32, image: &str, replicas: u32| {
        json!({
            "revision": number, "replicaSet": format!("checkout-7d9c6b8f4{number}"), "images": [image], "createdAt": "2026-11-20T10:00:00Z",
            "replicas": replicas,
        })
    };
    let image = "registry.example.com/platform-team/checkout-service-with-a-long-name";
    let rollout = json!({
        "metadata": {"name": "checkout", "namespace": "shop"}, "uid": "o", "phase": "Paused",
        "message": "CanaryPauseStep: the second of five steps waits for somebody who looks at the dashboards and promotes it",
        "paused": true, "aborted": false, "strategy": "canary", "currentStepIndex": 1, "steps": 5, "revision": 12, "stableRevision": "x",
        "replicas": 6, "readyReplicas": 6, "updatedReplicas": 2, "availableReplicas": 6,
        "revisions": [
            revision(12, &format!("{image}:v2.14.0"), 2), revision(11, &format!("{image}:v2.13.4"), 4), revision(10, &format!("{image}:v2.13.3"), 0),
        ],
    });
    proxy.answers("rollout", &[rollout]);
    let workflow = |name: &str, phase: &str, message: Option<&str>| {
        json!({
            "metadata": {"name": name, "namespace": "ci"}, "uid": name, "phase": phase, "message": message, "progress": "3/7",
            "workflowTemplate": "build-and-publish", "suspended": false, "createdAt": "2026-11-20T10:00:00Z",
            "startedAt": "2026-11-20T10:00:03Z", "finishedAt": (phase != "Running").then_some("2026-11-20T10:04:03Z"),
        })
    };
    let workflows = [
        workflow("build-and-publish-checkout-service-x7k2p", "Running", None),
        workflow(
            "build-and-publish-orders-9q4zz",
            "Failed",
            Some("child 'build-and-publish-orders-9q4zz-1734' failed"),
        ),
        workflow("nightly-1734", "Succeeded", None),
        workflow("店舗-nightly", "Error", Some(WIDE)),
    ];
    proxy.answers("workflows", &[json!(workflows)]);
    let object = |replicas: u32, image: &str| {
        let manifest = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "checkout", "namespace": "shop"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
        });
        manifest.to_string()
    };
    let difference = json!({
        "group": "apps", "kind": "Deployment", "namespace": "shop", "name": "checkout",
        "live": object(3, "registry.example.com/checkout:v2.13.4"), "target": object(6, "registry.example.com/checkout:v2.14.0"),
    });
    proxy.answers("applicationDiff", &[json!([difference])]);
    let event = |seconds: u32, kind: &str, reason: &str, of: &str, message: &str| {
        json!({
            "type": kind, "reason": reason, "message": message, "count": 3, "firstTimestamp": null,
            "lastTimestamp": format!("2026-11-20T10:00:{seconds:02}Z"), "involvedObject": {"kind": "Pod", "namespace": "shop", "name": of},
            "source": null,
        })
    };
    let events = [
        event(
            9,
            "Warning",
            "FailedScheduling",
            "checkout-7d9c6b8f412-x2v9k",
            "0/3 nodes are available: 3 Insufficient memory.",
        ),
        event(
            4,
            "Normal",
            "Pulled",
            "checkout-7d9c6b8f411-8m2xq",
            "Container image is already present on the machine",
        ),
    ];
    proxy.answers("applicationEvents", &[json!(events)]);
}

/// Names of pictures, and the commands that they are of.
const VIEWS: [(&str, &str); 17] = [
    ("runtimes", "runtime list"),
    ("runtime", "runtime get prod"),
    ("apps", "app list"),
    ("apps-wide", "app list -o wide"),
    ("app", "app get orders"),
    ("app-long", "app get recommendations-of-products-by-what-others-bought-eu-west-1"),
    ("app-failing", "app get failing"),
    ("tree", "app tree failing"),
    ("events", "app events failing --limit 8"),
    ("events-live", "app events checkout --live"),
    ("history", "app history store"),
    ("diff", "app diff checkout --live"),
    ("rollout", "rollout get checkout"),
    ("workflows", "workflow list --runtime prod -n ci"),
    ("promote", "rollout promote checkout --dry-run"),
    ("missing", "app get nothing-that-is-there"),
    ("contexts", "context list"),
];
/// Those of which the lines are folded by the parser of the command line.
const HELP: [(&str, &str); 3] =
    [("help", "--help"), ("help-app", "app --help"), ("help-sync", "app sync --help")];

/// Shows a view, and keeps pictures of it where somebody wants to look.
async fn seen(
    desk: &Desk,
    browser: Option<(&Browser, &Path)>,
    (name, command): (&str, &str),
    columns: u16,
) -> Grid {
    let shown = on_terminal(desk, columns, command, &[], None).await;
    let (text, _) = shown.rsplit_once("code ").unwrap();
    let grid = Grid::of(text, columns.into());
    if let Some((browser, folder)) = browser {
        for (is_dark, scheme) in [(true, "dark"), (false, "light")] {
            let file = folder.join(format!("{name}-{columns}-{scheme}"));
            let page = file.with_extension("html");
            std::fs::write(&page, grid.page(is_dark)).unwrap();
            let (width, height) = grid.size();
            browser.client().set_window_size(width, height + 140).await.unwrap();
            browser.client().goto(&format!("file://{}", page.display())).await.unwrap();
            std::fs::write(file.with_extension("png"), browser.client().screenshot().await.unwrap()).unwrap();
            std::fs::remove_file(page).unwrap();
        }
    }
    grid
}

#[tokio::test]
async fn the_main_views_fit_terminals_of_every_width() {
    let (desk, proxy) = (Desk::signed_in().await, AppProxy::start().await);
    desk.platform.register(&proxy.url).await;
    applications(&desk).await;
    runtime(&proxy);
    let folder = std::env::var_os("PEOPLE_SHOTS").map(std::path::PathBuf::from);
    let browser = match &folder {
        Some(folder) => Some((Browser::open(800, 600).await.unwrap(), folder.as_path())),
        None => None,
    };
    let with = browser.as_ref().map(|(browser, folder)| (browser, *folder));
    for columns in [40, 80, 120, 180] {
        for view in VIEWS {
            let grid = seen(&desk, with, view, columns).await;
            let text = grid.text();
            // What differs is told line by line, as it stands.
            let is_told_whole = view.0 == "diff";
            assert!(
                is_told_whole || grid.broken().is_empty(),
                "{columns}: {view:?}: {:?}\n{text}",
                grid.broken()
            );
            // Neither black nor white, which are the ground of somebody, nor what is bright, which a light ground swallows.
            let readable = |colour: &u8| (1..=6).contains(colour);
            assert!(grid.colours().iter().all(readable), "{view:?}: {:?}", grid.colours());
        }
        for view in HELP {
            let grid = seen(&desk, with, view, columns).await;
            assert!(grid.text().contains("Usage: gitops-runtime"), "{}", grid.text());
        }
    }
    let narrow = seen(&desk, with, ("apps", "app list"), 40).await.text();
    // The end of a name tells it from others.
    for part in ["APPLICATION", "-eu-west-1  Progressing", "/orders ", "Degraded"] {
        assert!(narrow.contains(part), "{part} is not in\n{narrow}");
    }
    let coloured = seen(&desk, None, ("app", "app get orders"), 80).await;
    assert_eq!(coloured.colours(), [1, 2], "Degraded and Synced");
    let differs = seen(&desk, None, ("diff", "app diff checkout --live"), 80).await;
    assert_eq!(differs.colours(), [1, 2, 6]);
    if let Some((browser, _)) = browser {
        browser.close().await.unwrap();
    }
    desk.stop().await;
}

#[tokio::test]
async fn a_grid_is_what_a_terminal_makes_of_a_text() {
    let grid = Grid::of("ab\u{1b}[38;5;1mcd\u{1b}[39m\n商店s\n", 3);
    assert_eq!(grid.text(), "abc\nd\n商\n店s\n");
    assert_eq!((grid.colours(), grid.size()), (vec![1], (62, 112)));
    assert!(grid.page(true).contains("<i style='width:20px;color:#cccccc;font-weight:400'>商</i>"));
    assert_eq!(Grid::of("cannot read a file of it\n", 23).broken(), ["cannot read a file of it"]);
    assert!(Grid::of("https://example.com/a/b\n", 22).broken().is_empty());
}
