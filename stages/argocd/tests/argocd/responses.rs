//! What each answer of Argo CD means.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, LOCATION, RETRY_AFTER};
use axum::response::{IntoResponse, Response as HttpResponse};
use futures::StreamExt as _;
use pipeline_core::{Key, ObjectIndex, Outcome, Reason};
use stages_argocd::client;
use stages_argocd::fetch;
use stages_argocd::plan::{Fetch, ResourceRef, Response};
use stages_client::Token;
use tokio::sync::Barrier;
use tokio::time::Instant;

use crate::support::{Rig, Server, app, body, budget, commit, managed, manifests, parent, refusal, see};

fn tree(name: &str) -> Fetch {
    Fetch::ResourceTree { app: app(name), paced: false }
}

fn resource(name: &str) -> Fetch {
    let resource =
        ResourceRef { version: "v1".into(), kind: "Pod".into(), name: "x".into(), ..<_>::default() };
    Fetch::Resource { app: app(name), resource }
}

/// Asks once of a server that always answers the same; gives the answer and how many calls it took.
async fn once<R: IntoResponse>(
    fetch: &Fetch,
    response: impl Fn() -> R + Clone + Send + Sync + 'static,
) -> (Response, usize) {
    let server = Server::new(move |_, _| response()).await;
    let rig = Rig::of(&server).await;
    see(&rig.seen, "apps", "store", 1);
    let response = rig.fetch(fetch).await;
    assert_eq!(rig.samples.outcomes().len(), server.asked().len());
    (response, server.asked().len())
}

#[tokio::test]
async fn not_found_in_the_text_is_an_answer_whatever_the_status() {
    for (status, code, text) in [
        (404, 5, r#"applications.argoproj.io \"store\" not found"#),
        (400, 3, "Service  beta not found as part of application store"),
        (500, 2, "revision 1234 Not Found in the repository"),
    ] {
        for fetch in [managed("store"), tree("store"), resource("store"), commit("store", "r", "v")] {
            let response = move || (StatusCode::from_u16(status).unwrap(), refusal(code, text));
            assert_eq!(once(&fetch, response).await, (Response::NotFound, 1), "{status} {fetch:?}");
        }
    }
    let unresolved = || (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, "revision main must be resolved"));
    assert_eq!(once(&commit("store", "r", "main"), unresolved).await, (Response::NotFound, 1));
}

#[tokio::test]
async fn a_404_that_is_not_of_argo_cd_is_a_failure() {
    assert_eq!(once(&managed("store"), || StatusCode::NOT_FOUND).await, (Response::NotFound, 1));
    assert_eq!(once(&managed("store"), || (StatusCode::NOT_FOUND, "{}")).await, (Response::NotFound, 1));
    for text in ["default backend - 404", "404 page not found", "<html>404 Not Found</html>"] {
        let response = once(&managed("store"), move || (StatusCode::NOT_FOUND, text)).await;
        assert_eq!(response, (Response::Failed(Reason::NotFound), 1), "{text}");
    }
}

#[tokio::test]
async fn a_generation_error_is_an_answer() {
    for text in
        ["Manifest generation error (cached): x: app path does not exist", "x: no such path", "not found"]
    {
        let response = move || (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, text));
        assert_eq!(once(&manifests("u", "v"), response).await, (Response::GenerationError, 1), "{text}");
    }
    let missing = || (StatusCode::NOT_FOUND, refusal(5, "applications.argoproj.io not found"));
    assert_eq!(once(&manifests("u", "v"), missing).await, (Response::NotFound, 1));
    // Of another call, or of Argo CD's own making, it is none.
    let unknown = || (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, "x: no such path"));
    assert_eq!(once(&managed("store"), unknown).await, (Response::Failed(Reason::ServerError), 3));
    let internal = || (StatusCode::INTERNAL_SERVER_ERROR, refusal(13, "redis is gone"));
    assert_eq!(once(&manifests("u", "v"), internal).await, (Response::Failed(Reason::ServerError), 3));
}

#[tokio::test]
async fn why_an_application_is_not_compared_is_an_answer_whatever_is_not_found() {
    for why in [
        "InvalidSpecError: application repo https://git.example.com/a is not permitted in project 'web'",
        "ComparisonError: failed to list refs: repository not found",
    ] {
        for (fetch, what) in [(managed("store"), "managed resources"), (tree("store"), "resource tree")] {
            let text = format!("error getting cached app {what}: {why}");
            let response = move || (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, &text));
            assert_eq!(once(&fetch, response).await, (Response::NotCompared, 1), "{why}");
        }
    }
    // Of one resource it says nothing. That the cache is empty may pass, and is told at once: Argo CD has had it filled before.
    let of_resource = || (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, "ComparisonError: x"));
    assert_eq!(once(&resource("store"), of_resource).await, (Response::Failed(Reason::ServerError), 3));
    let missing = || {
        let text = "error getting cached app managed resources: cache: key is missing";
        (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, text))
    };
    for fetch in [managed("store"), tree("store"), resource("store")] {
        assert_eq!(once(&fetch, missing).await, (Response::NotHeld, 1), "{fetch:?}");
    }
}

/// Each question has Argo CD compare the application, which the watch shows as a change of it.
#[tokio::test]
async fn an_application_of_which_nothing_is_held_is_not_asked_about_with_each_event() {
    let missing = |_: usize, path: &str| {
        let text = "error getting cached app resource tree: cache: key is missing";
        match path.contains("/store/") {
            true => (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, text)).into_response(),
            false => "{}".into_response(),
        }
    };
    let server = Server::new(missing).await;
    let rig = Rig::of(&server).await;
    for fetch in [tree("store"), managed("store"), tree("store")] {
        assert_eq!(rig.fetch(&fetch).await, Response::NotHeld, "{fetch:?}");
    }
    assert_eq!(server.asked().len(), 1);
    assert_eq!(rig.fetch(&tree("other")).await, body("{}"));
    let brief = fetch::Config { unheld_for: Duration::from_nanos(1), ..crate::support::kept() };
    let rig = Rig::new(server.config(), brief).await;
    for asked in 3..5 {
        assert_eq!(rig.fetch(&tree("store")).await, Response::NotHeld);
        assert_eq!(server.asked().len(), asked, "it is asked again after a while");
    }
}

/// As where the cache of Argo CD lost all that it held.
#[tokio::test]
async fn of_however_many_applications_nothing_is_held_none_is_asked_about_again_at_once() {
    let missing = |_: usize, _: &str| {
        let text = "error getting cached app resource tree: cache: key is missing";
        (StatusCode::INTERNAL_SERVER_ERROR, refusal(2, text))
    };
    let server = Server::new(missing).await;
    let long = fetch::Config { unheld_for: Duration::from_secs(86_400), ..crate::support::kept() };
    let rig = Rig::new(server.config(), long).await;
    let all: Vec<Fetch> = (0..5_000).map(|number| tree(&format!("app-{number}"))).collect();
    for _ in 0..2 {
        for fetch in &all {
            assert_eq!(rig.fetch(fetch).await, Response::NotHeld, "{fetch:?}");
        }
        assert_eq!(server.asked().len(), all.len());
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_three_times_and_nothing_else_is() {
    for (status, text, response) in [
        (408, "", (Reason::Timeout, 3)),
        (407, "", (Reason::ServerError, 3)),
        (429, "not found", (Reason::RateLimited, 3)),
        (500, "", (Reason::ServerError, 3)),
        (502, "", (Reason::ServerError, 3)),
        (503, "lookup argocd-repo-server: not found", (Reason::ServerError, 3)),
        (504, "", (Reason::ServerError, 3)),
        (403, "permission denied", (Reason::Forbidden, 3)),
        (400, "project does not allow it", (Reason::Refused, 1)),
        (401, "invalid session", (Reason::Unauthorized, 1)),
        (409, "", (Reason::Refused, 1)),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let (parsed, calls) = once(&managed("store"), move || (status, refusal(0, text))).await;
        assert_eq!((parsed, calls), (Response::Failed(response.0), response.1), "{status}");
    }
    let redirect = || (StatusCode::FOUND, [(LOCATION, "https://elsewhere.example/")]);
    assert_eq!(once(&managed("store"), redirect).await, (Response::Failed(Reason::Redirect), 1));
    let cut = || {
        let begun = futures::stream::iter([Ok(Bytes::from_static(b"{\"items\""))]);
        let cut = futures::stream::once(async {
            // What is there is sent before the connection breaks.
            tokio::task::yield_now().await;
            Err(std::io::Error::other("cut"))
        });
        Body::from_stream(begun.chain(cut))
    };
    assert_eq!(once(&managed("store"), cut).await, (Response::Failed(Reason::CutShort), 3));
    for nonsense in ["", "<html>", "[]", "null", "{\"items\": [", "{} {}", "\u{feff}{}"] {
        let parsed = once(&managed("store"), move || nonsense).await;
        assert_eq!(parsed, (Response::Failed(Reason::Malformed), 1), "{nonsense:?}");
    }
    let not_utf8 = || Bytes::from_static(b"{\"x\": \"\xff\"}");
    assert_eq!(once(&managed("store"), not_utf8).await, (Response::Failed(Reason::Malformed), 1));
}

#[tokio::test]
async fn a_call_that_recovers_is_an_answer_and_every_try_is_counted() {
    let server = Server::new(|n, _| match n {
        0 => (StatusCode::SERVICE_UNAVAILABLE, "").into_response(),
        1 => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "0")]).into_response(),
        _ => r#"{"items":[]}"#.into_response(),
    })
    .await;
    let rig = Rig::of(&server).await;
    assert_eq!(rig.argocd.last_success(), None);
    assert_eq!(rig.fetch(&managed("store")).await, body(r#"{"items":[]}"#));
    let failed = Outcome::Failed;
    assert_eq!(
        rig.samples.outcomes(),
        [failed(Reason::ServerError), failed(Reason::RateLimited), Outcome::Ok]
    );
    assert!(rig.argocd.last_success().is_some());
}

#[tokio::test]
async fn retry_after_is_waited_for_within_the_event_or_handed_on() {
    let limited = |seconds: &'static str| {
        move |n: usize, _: &str| match n {
            0 => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds)]).into_response(),
            _ => "{}".into_response(),
        }
    };
    let server = Server::new(limited("1")).await;
    let begun = Instant::now();
    assert_eq!(Rig::of(&server).await.fetch(&managed("store")).await, body("{}"));
    assert!(begun.elapsed() >= Duration::from_secs(1));

    let server = Server::new(limited("600")).await;
    let budget = budget();
    let rig = Rig::of(&server).await;
    let response = rig.fetcher.fetch(&managed("store"), &budget, "argocd").await;
    assert_eq!((response, server.asked().len()), (Response::Failed(Reason::RateLimited), 1));
    assert_eq!(budget.after(), Some(Duration::from_secs(600)));
}

#[tokio::test]
async fn the_end_of_the_event_ends_its_calls() {
    let server = Server::waiting(|_, _| Box::pin(std::future::pending::<HttpResponse>())).await;
    let rig = Rig::of(&server).await;
    let budget = client::CallBudget::until(Instant::now() + Duration::from_secs(5));
    let response = rig.fetcher.fetch(&managed("store"), &budget, "argocd").await;
    assert_eq!((response, server.asked().len()), (Response::Failed(Reason::Timeout), 1));
    assert_eq!(rig.samples.outcomes(), [Outcome::Failed(Reason::Timeout)]);
    // And what comes after it is not even begun.
    assert_eq!(rig.fetcher.fetch(&tree("store"), &budget, "argocd").await, Response::Failed(Reason::Timeout));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn an_answer_over_the_limit_is_too_large() {
    let server = Server::new(|_, _| format!("{{\"x\":\"{}\"}}", "x".repeat(100))).await;
    let http = stages_client::Config { max_body: 100, ..server.config().http };
    let rig = Rig::new(client::Config { http, ..server.config() }, crate::support::kept()).await;
    assert_eq!(rig.fetch(&managed("store")).await, Response::Failed(Reason::TooLarge));
    assert_eq!(server.asked().len(), 1);
    assert!(!rig.argocd.is_news(Reason::TooLarge, "store"), "it was said");
    assert!(rig.argocd.is_news(Reason::TooLarge, "other"), "of no other application");
}

#[tokio::test]
async fn missing_rights_are_told_from_an_application_that_is_gone() {
    // Never seen: gone.
    let server = Server::new(|_, _| (StatusCode::FORBIDDEN, refusal(7, "permission denied"))).await;
    let rig = Rig::of(&server).await;
    assert_eq!(rig.fetch(&managed("store")).await, Response::NotFound);
    assert_eq!(server.asked().len(), 1);
    // Still there: missing rights, said once.
    see(&rig.seen, "apps", "store", 1);
    assert_eq!(rig.fetch(&managed("store")).await, Response::Failed(Reason::Forbidden));
    assert!(!rig.argocd.is_news(Reason::Forbidden, "default"), "it was said");
    assert!(rig.argocd.is_news(Reason::Forbidden, "other"), "of no other project");
    // Gone while it is being asked for.
    let seen = ObjectIndex::default();
    see(&seen, "apps", "store", 1);
    let forgetting = seen.clone();
    let server = Server::new(move |n, _| {
        if n == 1 {
            forgetting.forget(&Key::new("apps", "store").unwrap());
        }
        (StatusCode::FORBIDDEN, refusal(7, "permission denied"))
    })
    .await;
    let rig = Rig::with_seen(server.config(), crate::support::kept(), seen).await;
    assert_eq!(rig.fetch(&tree("store")).await, Response::NotFound);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_parent_that_may_not_be_read_is_gone() {
    let server = Server::new(|_, _| (StatusCode::FORBIDDEN, refusal(7, "permission denied"))).await;
    let rig = Rig::of(&server).await;
    assert_eq!(rig.fetch(&parent("", "above")).await, Response::NotFound);
    see(&rig.seen, "argocd", "above", 1);
    assert_eq!(rig.fetch(&parent("", "above")).await, Response::NotFound);
    assert_eq!(server.asked(), ["/api/v1/applications/above?appNamespace="; 2]);
    assert!(!rig.argocd.is_news(Reason::Forbidden, "argocd/above"), "it was said");
}

#[tokio::test]
async fn a_token_that_is_replaced_is_used_soon() {
    let server = Server::waiting(|_, request| {
        let is_new = request.headers().get(AUTHORIZATION).is_some_and(|value| value == "Bearer new");
        let status = if is_new { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        Box::pin(async move { (status, "{}").into_response() })
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "old").unwrap();
    let config = client::Config { access: client::Access::Token(Token::file(&path)), ..server.config() };
    let rig = Rig::new(config, crate::support::kept()).await;
    assert_eq!(rig.fetch(&managed("store")).await, Response::Failed(Reason::Unauthorized));
    std::fs::write(folder.path().join("next"), "new\n").unwrap();
    std::fs::rename(folder.path().join("next"), &path).unwrap();
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while rig.fetch(&managed("store")).await != body("{}") {
        assert!(std::time::Instant::now() < until, "the old token is still in use");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn names_are_escaped_below_the_root_path() {
    let server = Server::new(|_, _| "{}").await;
    let config = client::Config { root_path: "/argo-cd/".to_owned(), ..server.config() };
    let rig = Rig::new(config, crate::support::kept()).await;
    for fetch in [
        managed("a/b c?d&e#f%g"),
        commit("store", "https://git.example/r", "feature/ü&x=1"),
        resource("store"),
        parent("o&p", "above"),
    ] {
        assert_eq!(rig.fetch(&fetch).await, body("{}"));
    }
    assert_eq!(
        server.asked(),
        [
            "/argo-cd/api/v1/applications/a%2Fb%20c%3Fd%26e%23f%25g/managed-resources?appNamespace=apps&project=default",
            "/argo-cd/api/v1/applications/store/revisions/feature%2F%C3%BC%26x%3D1/metadata?appNamespace=apps&project=default&sourceIndex=0",
            "/argo-cd/api/v1/applications/store/resource?appNamespace=apps&namespace=&resourceName=x&version=v1&group=&kind=Pod&project=default",
            "/argo-cd/api/v1/applications/above?appNamespace=o%26p",
        ]
    );
    // What would address something else is not asked for: nothing has such a name.
    for fetch in [managed(".."), managed(""), commit("store", "r", ""), commit("store", "r", "..")] {
        assert_eq!(rig.fetch(&fetch).await, Response::NotFound, "{fetch:?}");
    }
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test]
async fn no_more_calls_than_allowed_are_under_way() {
    // Every call waits for a second one, so that two at a time get through, and a third would be seen.
    let pair = Arc::new(Barrier::new(2));
    let under_way = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let most = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (count, peak) = (under_way.clone(), most.clone());
    let server = Server::waiting(move |_, _| {
        let (pair, count, peak) = (pair.clone(), count.clone(), peak.clone());
        Box::pin(async move {
            let now = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            peak.fetch_max(now, std::sync::atomic::Ordering::SeqCst);
            pair.wait().await;
            count.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            "{}".into_response()
        })
    })
    .await;
    let config = client::Config { concurrency: 2, ..server.config() };
    let rig = Rig::new(config, crate::support::kept()).await;
    let fetches: Vec<Fetch> = (0..6).map(|n| managed(&format!("app-{n}"))).collect();
    let responses = futures::future::join_all(fetches.iter().map(|fetch| rig.fetch(fetch))).await;
    assert!(responses.iter().all(|response| *response == body("{}")));
    assert_eq!(most.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_argo_cd_that_is_not_there_is_unreachable() {
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", taken.local_addr().unwrap());
    let config = client::Config { backoff: crate::support::quick(), ..crate::support::calling(address) };
    let rig = Rig::new(config, crate::support::kept()).await;
    assert_eq!(rig.fetch(&managed("store")).await, Response::Failed(Reason::Unreachable));
    assert_eq!(rig.samples.outcomes(), [Outcome::Failed(Reason::Unreachable); 3]);
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for (url, root, message) in [
        (
            "argocd-server:443",
            "",
            "cannot address Argo CD: the address must begin with `http://` or `https://`",
        ),
        (
            "https://a.example",
            "../x",
            "cannot address Argo CD: an empty path segment, `.` and `..` cannot be addressed",
        ),
    ] {
        let config = client::Config { root_path: root.to_owned(), ..crate::support::calling(url) };
        let error = config.build(Arc::new(pipeline_core::NoMeter)).await.unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
