//! The arrows between the workspace's crates: a new one is a design change and is argued in its commit.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Crate, then the workspace crates it may depend on (outside of its tests).
const ARROWS: &[(&str, &[&str])] = &[
    (
        "gitops-runtime",
        &[
            "pipeline-bus",
            "pipeline-core",
            "pipeline-doctor",
            "pipeline-engine",
            "pipeline-http",
            "pipeline-ledger",
            "pipeline-observe",
            "pipeline-ownership",
            "pipeline-redact",
            "stages-argocd",
            "stages-client",
            "stages-git",
            "stages-kube",
            "stages-platform-api",
            "stages-platform-console",
            "stages-platform-ingest",
            "stages-platform-oidc",
            "stages-platform-store",
            "stages-proxy",
            "stages-remote",
            "stages-report",
            "stages-resources",
            "stages-revision",
            "stages-router",
            "stages-source",
            "stages-tunnel",
        ],
    ),
    (
        "loadtest",
        &[
            "loadtest-bench",
            "loadtest-cluster",
            "loadtest-install",
            "loadtest-judge",
            "loadtest-sim",
            "pipeline-core",
            "pipeline-redact",
            "stages-argocd",
            "stages-git",
            "stages-source",
        ],
    ),
    // What people see is measured in a browser.
    ("loadtest-bench", &["loadtest-browser", "loadtest-judge", "loadtest-sim", "pipeline-core"]),
    ("loadtest-browser", &[]),
    ("loadtest-cluster", &["loadtest-judge", "loadtest-sim"]),
    ("loadtest-image", &[]),
    // It installs on a cluster what it made an image of, and looks at it in a browser.
    (
        "loadtest-install",
        &["loadtest-browser", "loadtest-cluster", "loadtest-image", "loadtest-judge", "loadtest-sim"],
    ),
    ("loadtest-judge", &["loadtest-sim"]),
    ("loadtest-sim", &["pipeline-core"]),
    ("pipeline-bus", &["pipeline-core", "pipeline-ownership", "pipeline-trust"]),
    ("pipeline-core", &[]),
    // Values are judged before anything runs: it needs nobody.
    ("pipeline-doctor", &[]),
    (
        "pipeline-engine",
        &["pipeline-bus", "pipeline-core", "pipeline-ledger", "pipeline-observe", "pipeline-ownership"],
    ),
    (
        "pipeline-http",
        &["pipeline-core", "pipeline-engine", "pipeline-ledger", "pipeline-observe", "pipeline-ownership"],
    ),
    ("pipeline-ledger", &["pipeline-bus", "pipeline-core", "pipeline-ownership"]),
    ("pipeline-observe", &["pipeline-core", "pipeline-ledger"]),
    ("pipeline-ownership", &["pipeline-core"]),
    ("pipeline-redact", &[]),
    // Sealing takes a certificate and nothing else.
    ("pipeline-seal", &[]),
    // Whom TLS trusts is one rule for the bus and for peers over HTTP, and knows neither.
    ("pipeline-trust", &[]),
    ("stages-argocd", &["pipeline-core", "pipeline-redact", "stages-client"]),
    ("stages-client", &["pipeline-core", "pipeline-trust"]),
    // Servers of repositories are peers as others are: one way to set up TLS serves all.
    ("stages-git", &["stages-client"]),
    ("stages-kube", &["pipeline-core"]),
    // What somebody asks of a runtime is sent on to it.
    ("stages-platform-api", &["pipeline-core", "stages-client", "stages-platform-store"]),
    // Pages over traits, and the store behind them; people come in by a password, or sent by a provider. Which sources of an
    // Application count it knows as all do who read one.
    (
        "stages-platform-console",
        &["pipeline-core", "stages-client", "stages-platform-oidc", "stages-platform-store"],
    ),
    // A digest speaks of the shard that an application is in, which the platform works out as the reporter does; its answers are
    // data as those of the API are.
    (
        "stages-platform-ingest",
        &["pipeline-core", "pipeline-ownership", "stages-client", "stages-platform-store"],
    ),
    // A provider is a peer as others are, and knows nobody of the store.
    ("stages-platform-oidc", &["pipeline-core", "stages-client"]),
    ("stages-platform-store", &["pipeline-core"]),
    // What people ask for is done through the API server too, by the one client of it that there is; what they commit goes
    // through the one library of Git.
    (
        "stages-proxy",
        &["pipeline-core", "pipeline-redact", "pipeline-seal", "stages-client", "stages-git", "stages-kube"],
    ),
    // What people type against a platform somewhere: it speaks HTTP alone, so that it can say nothing that the printed
    // schema does not. A Secret is sealed where it is typed.
    ("stages-remote", &["pipeline-core", "pipeline-seal", "stages-client"]),
    // A subject of NATS is reached as the bus is: one way to say who asks, and to follow its files.
    ("stages-report", &["pipeline-bus", "pipeline-core", "stages-client"]),
    ("stages-resources", &["pipeline-core", "pipeline-redact"]),
    // What changed an application stands on what a repository is.
    ("stages-revision", &["pipeline-core", "pipeline-redact", "stages-git"]),
    ("stages-router", &["pipeline-core", "stages-client"]),
    // What Git says stands on what a repository is.
    ("stages-source", &["pipeline-core", "stages-client", "stages-git"]),
    ("stages-tunnel", &["pipeline-core", "stages-client"]),
];

/// Workspace crates that may be used by another's tests alone.
// The engine is asked through its admin interface in its own tests; what a secret must not come out as is judged in one
// place, for the redaction and for the whole program.
const TEST_ARROWS: &[(&str, &[&str])] = &[
    // Pictures of what commands show.
    ("gitops-runtime", &["loadtest", "loadtest-browser"]),
    ("pipeline-engine", &["pipeline-http", "pipeline-ledger"]),
    ("pipeline-redact", &["loadtest-judge"]),
    // A whole platform is served: an act goes from a page to a runtime, and one table has every route.
    // People come into it by a real provider.
    (
        "stages-platform-console",
        &["loadtest-browser", "loadtest-sim", "stages-platform-api", "stages-platform-ingest"],
    ),
    ("stages-platform-ingest", &["loadtest-sim"]),
    // A real server of NATS.
    ("stages-report", &["loadtest-sim"]),
    // One Git server, and what it answers, for all who fetch and push.
    ("stages-git", &["loadtest-sim"]),
    // Who may do what is asked of a real platform.
    ("stages-proxy", &["loadtest-sim", "stages-platform-api", "stages-platform-store"]),
];

/// Crates from elsewhere that the core must not know: it speaks of events, not of peers.
const NOT_IN_CORE: &[&str] = &["async-nats", "axum", "hyper", "k8s-openapi", "kube", "reqwest"];

fn metadata() -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Package name, then its dependencies of one kind.
fn dependencies(dev: bool) -> BTreeMap<String, BTreeSet<String>> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    metadata()["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let names = package["dependencies"].as_array().unwrap().iter();
            let names = names.filter(|dependency| (dependency["kind"] == "dev") == dev);
            (text(&package["name"]), names.map(|dependency| text(&dependency["name"])).collect())
        })
        .collect()
}

fn check(allowed: &[(&str, &[&str])], found: &BTreeMap<String, BTreeSet<String>>) {
    let members: BTreeSet<&String> = found.keys().collect();
    for (name, all) in found {
        let inside: BTreeSet<&str> =
            all.iter().filter(|other| members.contains(other)).map(String::as_str).collect();
        let may: BTreeSet<&str> =
            allowed.iter().filter(|(of, _)| of == name).flat_map(|(_, to)| to.iter().copied()).collect();
        let more: Vec<_> = inside.difference(&may).collect();
        assert!(more.is_empty(), "{name} must not depend on {more:?}");
    }
}

#[test]
fn arrows_point_one_way() {
    let found = dependencies(false);
    let listed: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let members: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(listed, members, "every crate of the workspace is listed, and no other");
    check(ARROWS, &found);
}

#[test]
fn tests_add_no_arrows_but_those_listed() {
    check(TEST_ARROWS, &dependencies(true));
}

#[test]
fn the_core_knows_no_peer() {
    let found = dependencies(false);
    for name in NOT_IN_CORE {
        assert!(!found["pipeline-core"].contains(*name), "pipeline-core must not depend on {name}");
    }
}

/// Crates that every function of the house shares, whatever it is about.
const KNOW_NO_FUNCTION: &[&str] = &["core", "bus", "ledger", "engine", "ownership"];

/// Words of Argo CD. `sync` alone is none: it is a word of Rust too.
const OF_ARGO_CD: &[&str] =
    &["argo", "application", "operationstate", "reconcil", "outofsync", "managed-resources"];

/// Where a word stands for something else, and how often at most: a media type.
const ELSE: &[(&str, &str, usize)] = &[("engine/tests/engine/replayed.rs", "application", 1)];

/// Files of a crate: sources, tests and its manifest.
fn files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn what_every_function_shares_knows_nothing_of_argo_cd() {
    let pipeline = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("pipeline");
    let mut all = Vec::new();
    KNOW_NO_FUNCTION.iter().for_each(|of| files(&pipeline.join(of), &mut all));
    assert!(all.len() > 200, "{} files are not all", all.len());
    let mut told = Vec::new();
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap().to_lowercase();
        let name = path.strip_prefix(&pipeline).unwrap().to_string_lossy().into_owned();
        for word in OF_ARGO_CD {
            let times = text.matches(word).count();
            let other = ELSE.iter().find(|(file, of, _)| *file == name && of == word);
            let may = other.map_or(0, |(_, _, times)| *times);
            if times > may {
                told.push(format!("{name}: {word} stands there {times} times, and may {may} times"));
            }
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
