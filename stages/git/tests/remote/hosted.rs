//! Servers of the field, each by what it wants that others do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use stages_git::remote::{Access, Credential};

use crate::support::{Cache, Forge, Serving, backend, commit, git, serve, status};

/// As Azure DevOps does: the first version of the protocol is spoken, and with those alone who know `multi_ack`.
async fn wants_multi_ack(State(serving): State<Serving>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let asked = String::from_utf8_lossy(&body);
    if asked.contains("want ") && !asked.lines().next().unwrap().contains(" multi_ack") {
        return status(StatusCode::BAD_REQUEST);
    }
    backend(State(serving), Request::from_parts(head, Body::from(body))).await
}

/// As AWS CodeCommit does: the first version with few capabilities, and nothing said to those who know none of the one way to
/// acknowledge.
async fn wants_multi_ack_detailed(State(serving): State<Serving>, request: Request) -> Response {
    const KNOWN: &str = "multi_ack_detailed shallow side-band-64k thin-pack allow-tip-sha1-in-want";
    let is_greeting = request.uri().path().ends_with("/info/refs");
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let asked = String::from_utf8_lossy(&body);
    if asked.contains("want ") && !asked.lines().next().unwrap().contains(" multi_ack_detailed") {
        return status(StatusCode::OK);
    }
    let answer = backend(State(serving), Request::from_parts(head, Body::from(body))).await;
    if !is_greeting {
        return answer;
    }
    let (head, body) = answer.into_parts();
    let text = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let text = std::str::from_utf8(&text).unwrap();
    // A packet begins with its length, and of the first reference the capabilities stand behind a zero.
    let (before, rest) = text.split_once("0000").unwrap();
    let (_, rest) = rest.split_at(4);
    let (reference, rest) = rest.split_once('\0').unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let first = format!("{reference}\0{KNOWN}\n");
    let text = format!("{before}0000{:04x}{first}{rest}", first.len() + 4);
    let mut answer = Response::from_parts(head, Body::from(text));
    answer.headers_mut().remove("content-length");
    answer
}

/// As servers of JGit do: those who want no progress are told nothing while it counts, which may take longer than anybody waits.
async fn wants_progress(State(serving): State<Serving>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    if String::from_utf8_lossy(&body).contains("no-progress") {
        return status(StatusCode::GATEWAY_TIMEOUT);
    }
    backend(State(serving), Request::from_parts(head, Body::from(body))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_tells_progress_alone_while_it_counts_is_asked_for_it() {
    let forge = Forge::new();
    forge.repository("a");
    for first_version in [true, false] {
        let serving = Serving { first_version, ..Serving::new(&forge) };
        let server = serve(Router::new().fallback(wants_progress).with_state(serving)).await;
        Cache::new(|_| {}).await.checkout(&format!("{server}/a.git"), "main").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_knows_multi_ack_detailed_alone_is_fetched_from_at_first_and_again() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let serving = Serving { first_version: true, ..Serving::new(&forge) };
    let server = serve(Router::new().fallback(wants_multi_ack_detailed).with_state(serving)).await;
    let cache = Cache::new(|_| {}).await;
    let url = format!("{server}/a.git");
    cache.checkout(&url, "main").await.unwrap();
    for n in 2..4 {
        let new = commit(&path, "main", "a.yaml", &format!("a: {n}\n"));
        assert_eq!(cache.checkout(&url, "main").await.unwrap().commit.to_string(), new);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_serves_those_alone_who_know_multi_ack_is_fetched_from_at_first_and_again() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let serving = Serving { first_version: true, ..Serving::new(&forge) };
    let server = serve(Router::new().fallback(wants_multi_ack).with_state(serving)).await;
    let cache = Cache::new(|_| {}).await;
    let url = format!("{server}/a.git");
    let old = cache.checkout(&url, "main").await.unwrap();
    // What is here is named now, and each commit of it is answered with a line.
    for n in 2..5 {
        commit(&path, "main", "a.yaml", &format!("a: {n}\n"));
        cache.checkout(&url, "main").await.unwrap();
    }
    let side = commit(&path, "side", "b.yaml", "b: 1\n");
    git(&path, &["update-ref", "refs/heads/main", &old.commit.to_string()]);
    let new = commit(&path, "main", "a.yaml", "a: 5\n");
    for (revision, wanted) in [("main", &new), ("side", &side)] {
        assert_eq!(cache.checkout(&url, revision).await.unwrap().commit.to_string(), *wanted);
    }
}

/// As GitHub and GitLab do: whoever asks too often is told for how long to wait, or not even that.
async fn asked_too_often(State(asked): State<Arc<AtomicUsize>>, request: Request) -> Response {
    asked.fetch_add(1, Ordering::SeqCst);
    let path = request.uri().path();
    if path.starts_with("/silent") {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    }
    let code = if path.starts_with("/often") { 429 } else { 403 };
    (StatusCode::from_u16(code).unwrap(), [("retry-after", "3600")], "wait").into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_asked_too_often_is_left_alone_for_as_long_as_it_says_unless_access_changes() {
    let asked = Arc::new(AtomicUsize::new(0));
    let server = serve(Router::new().fallback(asked_too_often).with_state(asked.clone())).await;
    let host = server.trim_start_matches("http://");
    for (n, (path, code)) in [("often", 429), ("silent", 429), ("forbidden", 403)].into_iter().enumerate() {
        let cache = Cache::new(|_| {}).await;
        let url = format!("{server}/{path}/a.git");
        let wanted = format!("{host} answered with {code}: try again later, or ask its operator");
        for _ in 0..3 {
            let error = cache.checkout(&url, "main").await.err().unwrap();
            assert_eq!(error.to_string(), wanted);
            assert!(error.is_transient());
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2 * n + 1, "{path}");
        cache.checkouts.set_access(Access::default());
        assert_eq!(cache.refusal(&url, "main").await, wanted);
        assert_eq!(asked.load(Ordering::SeqCst), 2 * n + 2, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_in_words_why_it_refuses_credentials_is_quoted() {
    const WORDS: &str = "Although you appear to have the correct authorization credentials, the `acme` organization has an IP allow \
                         list enabled";
    let allows = async || (StatusCode::FORBIDDEN, format!("\n{WORDS}\nSee https://git.example/token\n"));
    let page = async || (StatusCode::FORBIDDEN, axum::response::Html("<html>no</html>"));
    let app = Router::new().route("/page/info/refs", axum::routing::get(page)).fallback(allows);
    let server = serve(app).await;
    let cache = Cache::new(|_| {}).await;
    cache.give(Credential {
        from: "the Secret argocd/repo".to_owned(),
        url: server.clone(),
        is_prefix: true,
        bearer: Some("right".to_owned().into()),
        ..Credential::default()
    });
    let refused = |path: &str| {
        format!(
            "{server}/{path} refused the credentials of the Secret argocd/repo: they are wrong, expired, or may not read it"
        )
    };
    assert_eq!(cache.refusal(&format!("{server}/page"), "main").await, refused("page"));
    let wanted = format!("{}; it says: {WORDS}", refused("a"));
    assert_eq!(cache.refusal(&format!("{server}/a"), "main").await, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_to_sign_in_is_told_as_such_and_not_as_the_address_of_the_repository() {
    let signs_in = async || Redirect::temporary("https://login.example/oauth?rd=%2Fa");
    let server = serve(Router::new().fallback(signs_in)).await;
    let refusal = Cache::new(|_| {}).await.refusal(&format!("{server}/a.git"), "main").await;
    let host = server.trim_start_matches("http://");
    assert_eq!(
        refusal,
        format!(
            "{host} does not answer as a Git server does: it sends whoever asks to a page of https://login.example, such as one to \
             sign in: give credentials that it takes, or let this process past what stands before it"
        )
    );
}

/// As servers of JGit do: a branch is pushed to after it was named, and what it was named with is not sent any more.
async fn pushed_to_meanwhile(
    State((serving, refuses)): State<(Serving, Arc<AtomicBool>)>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    if String::from_utf8_lossy(&body).contains("want ") && refuses.swap(false, Ordering::SeqCst) {
        commit(&serving.folder.join("a.git"), "main", "a.yaml", "a: 2\n");
        let words = "ERR want 1234 not valid";
        let kind = [("content-type", "application/x-git-upload-pack-result")];
        return (kind, format!("{:04x}{words}", words.len() + 4)).into_response();
    }
    backend(State(serving), Request::from_parts(head, Body::from(body))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_pushed_to_while_it_is_fetched_is_fetched_where_it_points_then() {
    for first_version in [true, false] {
        let forge = Forge::new();
        let path = forge.repository("a");
        let serving = Serving { first_version, ..Serving::new(&forge) };
        let state = (serving, Arc::new(AtomicBool::new(true)));
        let server = serve(Router::new().fallback(pushed_to_meanwhile).with_state(state)).await;
        let found = Cache::new(|_| {}).await.checkout(&format!("{server}/a.git"), "main").await.unwrap();
        assert_eq!(found.commit.to_string(), git(&path, &["rev-parse", "main"]));
    }
}
