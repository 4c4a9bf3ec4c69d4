//! What is kept, under what, and what is asked for only once.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use pipeline_core::{Digest, Outcome, Reason, Version};
use stages_argocd::fetch;
use stages_argocd::labels;
use stages_argocd::plan::{Fetch, Purpose, Response};
use tokio::sync::Semaphore;

use crate::support::{Rig, Server, app, body, commit, managed, manifests, parent, refusal, see};

/// Asks each twice, in order; gives the paths that were called.
async fn twice(kept: fetch::Config, server: &Server, fetches: &[Fetch]) -> usize {
    let rig = Rig::new(server.config(), kept).await;
    for fetch in fetches.iter().chain(fetches) {
        rig.fetch(fetch).await;
    }
    server.asked().len()
}

#[tokio::test]
async fn manifests_are_kept_per_application_sources_and_revisions() {
    let server = Server::new(|n, _| format!("{{\"n\":{n}}}")).await;
    let rig = Rig::of(&server).await;
    let first = manifests("uid", "v1");
    let change = |change: &dyn Fn(&mut Fetch)| {
        let mut fetch = first.clone();
        change(&mut fetch);
        fetch
    };
    let others = [
        manifests("other", "v1"),
        manifests("uid", "v2"),
        change(&|fetch| {
            if let Fetch::Manifests { cache: Some(key), .. } = fetch {
                key.sources = Digest::of(b"others");
            }
        }),
        change(&|fetch| {
            if let Fetch::Manifests { revision, .. } = fetch {
                *revision = None;
            }
        }),
    ];
    assert_eq!(rig.fetch(&first).await, body("{\"n\":0}"));
    assert!(!format!("{:?}", rig.fetcher).contains("\\\"n\\\""), "what is kept is shown to nobody");
    for (n, other) in (1..).zip(&others) {
        assert_eq!(rig.fetch(other).await, body(&format!("{{\"n\":{n}}}")), "{other:?}");
    }
    // What it is wanted for does not matter, nor does what the application is called.
    let versions = change(&|fetch| {
        if let Fetch::Manifests { purpose, .. } = fetch {
            *purpose = Purpose::Versions;
        }
    });
    assert_eq!(rig.fetch(&versions).await, body("{\"n\":0}"));
    for (n, other) in (1..).zip(&others) {
        assert_eq!(rig.fetch(other).await, body(&format!("{{\"n\":{n}}}")), "{other:?}");
    }
    assert_eq!(server.asked().len(), 5);
    assert_eq!(rig.samples.all()[5..], [(labels::MANIFESTS, Outcome::Cached); 5]);
}

#[tokio::test]
async fn a_hard_refresh_drops_manifests_and_keeps_none() {
    let server = Server::new(|n, _| format!("{{\"n\":{n}}}")).await;
    let rig = Rig::of(&server).await;
    let fetch = manifests("uid", "v1");
    let mut refreshed = fetch.clone();
    if let Fetch::Manifests { fresh, .. } = &mut refreshed {
        *fresh = true;
    }
    assert_eq!(rig.fetch(&fetch).await, body("{\"n\":0}"));
    assert_eq!(rig.fetch(&refreshed).await, body("{\"n\":1}"));
    assert_eq!(rig.fetch(&refreshed).await, body("{\"n\":2}"));
    assert_eq!(rig.fetch(&fetch).await, body("{\"n\":3}"));
    assert_eq!(rig.fetch(&fetch).await, body("{\"n\":3}"));
}

#[tokio::test]
async fn manifests_of_revisions_that_are_not_resolved_are_not_kept() {
    let server = Server::new(|_, _| "{}").await;
    let mut fetch = manifests("uid", "HEAD");
    if let Fetch::Manifests { cache, .. } = &mut fetch {
        *cache = None;
    }
    assert_eq!(twice(crate::support::kept(), &server, &[fetch]).await, 2);
}

#[tokio::test]
async fn manifests_that_cannot_be_read_are_not_kept() {
    let server = Server::new(|_, _| r#"{"manifests":5}"#).await;
    assert_eq!(twice(crate::support::kept(), &server, &[manifests("uid", "v1")]).await, 2);
}

#[tokio::test]
async fn generation_errors_are_kept_for_a_while() {
    let broken = |_: usize, _: &str| (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, "no such path"));
    let fetches = [manifests("uid", "v1")];
    assert_eq!(twice(crate::support::kept(), &Server::new(broken).await, &fetches).await, 1);
    let at_once = || fetch::Config { generation_error: Duration::ZERO, ..crate::support::kept() };
    assert_eq!(twice(at_once(), &Server::new(broken).await, &fetches).await, 2);
    // The time is theirs alone.
    assert_eq!(twice(at_once(), &Server::new(|_, _| "{}").await, &fetches).await, 1);
}

#[tokio::test]
async fn commits_are_kept_per_repository_and_revision_for_all_applications() {
    let server = Server::new(|_, _| r#"{"author":"x"}"#).await;
    let fetches = [
        commit("one", "https://git.example/a", "v1"),
        commit("two", "https://git.example/a", "v1"),
        commit("one", "https://git.example/b", "v1"),
        commit("one", "https://git.example/a", "v2"),
    ];
    assert_eq!(twice(crate::support::kept(), &server, &fetches).await, 3);
}

#[tokio::test]
async fn what_changes_without_notice_is_never_kept() {
    let server = Server::new(|_, _| "{}").await;
    let resource = <_>::default();
    let fetches = [
        managed("store"),
        Fetch::Resource { app: app("store"), resource },
        Fetch::ResourceTree { app: app("store"), paced: false },
    ];
    assert_eq!(twice(crate::support::kept(), &server, &fetches).await, 6);
}

#[tokio::test]
async fn failures_are_never_kept() {
    for status in [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::UNAUTHORIZED] {
        let server = Server::new(move |_, _| (status, refusal(0, "no"))).await;
        let rig = Rig::of(&server).await;
        see(&rig.seen, "argocd", "above", 1);
        for fetch in [manifests("uid", "v1"), commit("store", "r", "v1"), parent("", "above")] {
            let before = server.asked().len();
            let first = rig.fetch(&fetch).await;
            assert_eq!(rig.fetch(&fetch).await, first);
            assert_eq!(server.asked().len(), before + 2, "{status} {fetch:?}");
        }
    }
}

#[tokio::test]
async fn a_parent_is_read_once_per_version_seen() {
    let server = Server::new(|_, _| r#"{"metadata":{"resourceVersion":"7"}}"#).await;
    let rig = Rig::of(&server).await;
    let calls = async |fetch: &Fetch| {
        assert_eq!(rig.fetch(fetch).await, body(r#"{"metadata":{"resourceVersion":"7"}}"#));
        server.asked().len()
    };
    // Not seen: no version to keep it under.
    assert_eq!(calls(&parent("", "above")).await, 1);
    assert_eq!(calls(&parent("", "above")).await, 2);
    // Seen, in a state that has no number.
    see(&rig.seen, "unknown", "above", 0);
    assert_eq!(calls(&parent("unknown", "above")).await, 3);
    assert_eq!(calls(&parent("unknown", "above")).await, 4);
    see(&rig.seen, "argocd", "above", 6);
    assert_eq!(calls(&parent("", "above")).await, 5);
    assert_eq!(calls(&parent("", "above")).await, 5);
    // The same by its full name, though the call differs.
    assert_eq!(calls(&parent("argocd", "above")).await, 5);
    see(&rig.seen, "argocd", "above", 7);
    assert_eq!(calls(&parent("", "above")).await, 6);
    assert_eq!(calls(&parent("", "above")).await, 6);
    // The watch is ahead of Argo CD: used, and asked for again.
    see(&rig.seen, "argocd", "above", 8);
    assert_eq!(calls(&parent("", "above")).await, 7);
    assert_eq!(calls(&parent("", "above")).await, 8);
    // Another of that name in another namespace.
    see(&rig.seen, "team", "above", 7);
    assert_eq!(calls(&parent("team", "above")).await, 9);
    assert_eq!(calls(&parent("team", "above")).await, 9);
    // Versions went back: an answer says nothing of its era, and the very version that was seen is kept.
    see(&rig.seen, "restored", "above", Version(7).in_era(1).0);
    assert_eq!(calls(&parent("restored", "above")).await, 10);
    assert_eq!(calls(&parent("restored", "above")).await, 10);
    // One of a higher number may be of before.
    see(&rig.seen, "restored", "above", Version(6).in_era(2).0);
    assert_eq!(calls(&parent("restored", "above")).await, 11);
    assert_eq!(calls(&parent("restored", "above")).await, 12);
}

#[tokio::test]
async fn a_tree_of_an_unchanged_application_is_read_once_in_a_while() {
    let tree = |name: &str, paced| Fetch::ResourceTree { app: app(name), paced };
    let server = Server::new(|_, _| "{}").await;
    let rig = Rig::of(&server).await;
    assert_eq!(rig.fetch(&tree("store", true)).await, body("{}"));
    assert_eq!(rig.fetch(&tree("store", true)).await, Response::Skipped);
    assert_eq!(rig.fetch(&tree("store", false)).await, body("{}"));
    // An unpaced read counts, too.
    assert_eq!(rig.fetch(&tree("other", false)).await, body("{}"));
    assert_eq!(rig.fetch(&tree("other", true)).await, Response::Skipped);
    assert_eq!(server.asked().len(), 3);

    let brief = fetch::Config { look_every: Duration::from_nanos(1), ..crate::support::kept() };
    assert_eq!(twice(brief, &Server::new(|_, _| "{}").await, &[tree("store", true)]).await, 2);
}

#[tokio::test]
async fn who_asks_for_the_same_at_the_same_time_shares_one_call() {
    for (fetch, status) in [
        (manifests("uid", "v1"), StatusCode::OK),
        (commit("store", "r", "v1"), StatusCode::OK),
        (parent("", "above"), StatusCode::OK),
        // A failure is shared by those who wait for it, and by nobody after them.
        (commit("store", "r", "v1"), StatusCode::BAD_REQUEST),
    ] {
        static GATE: Semaphore = Semaphore::const_new(0);
        static ARRIVED: Semaphore = Semaphore::const_new(0);
        let server = Server::waiting(move |_, _| {
            Box::pin(async move {
                ARRIVED.add_permits(1);
                GATE.acquire().await.unwrap().forget();
                (status, r#"{"metadata":{"resourceVersion":"9"}}"#).into_response()
            })
        })
        .await;
        let rig = Rig::of(&server).await;
        see(&rig.seen, "argocd", "above", 9);
        // Both have asked before the server's answer can have come: they are polled one after the other.
        let open = async {
            ARRIVED.acquire().await.unwrap().forget();
            GATE.add_permits(2);
        };
        let (one, two, ()) = tokio::join!(rig.fetch(&fetch), rig.fetch(&fetch), open);
        assert_eq!(one, two);
        assert_eq!(server.asked().len(), 1, "{fetch:?}");
        assert_eq!(rig.samples.outcomes()[1..], [Outcome::Cached]);
        if status == StatusCode::BAD_REQUEST {
            assert_eq!(rig.fetch(&fetch).await, Response::Failed(Reason::Refused));
            assert_eq!(server.asked().len(), 2);
        } else {
            GATE.acquire().await.unwrap().forget();
        }
        ARRIVED.forget_permits(ARRIVED.available_permits());
    }
}

#[tokio::test]
async fn what_is_said_of_the_application_that_asked_first_is_not_said_of_others() {
    for (status, first) in [
        (StatusCode::NOT_FOUND, Response::NotFound),
        (StatusCode::FORBIDDEN, Response::Failed(Reason::Forbidden)),
    ] {
        let gate: &'static Semaphore = Box::leak(Box::new(Semaphore::const_new(0)));
        let server = Server::waiting(move |_, request| {
            let is_first = request.uri().path().contains("/gone/");
            Box::pin(async move {
                if is_first {
                    drop(gate.acquire().await.unwrap());
                    return (status, refusal(7, "no such application")).into_response();
                }
                r#"{"author":"x"}"#.into_response()
            })
        })
        .await;
        let rig = Rig::of(&server).await;
        see(&rig.seen, "apps", "gone", 1);
        let (gone, other) = (commit("gone", "r", "v1"), commit("store", "r", "v1"));
        // The second waits for the call of the first before that is answered.
        let open = async { gate.add_permits(1) };
        let (one, two, ()) = tokio::join!(rig.fetch(&gone), rig.fetch(&other), open);
        assert_eq!((one, two), (first, body(r#"{"author":"x"}"#)), "{status}");
        assert!(
            !rig.samples.outcomes().contains(&Outcome::Cached),
            "the second was not told what the first was"
        );
    }
}
