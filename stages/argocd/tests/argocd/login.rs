//! Logging in by name and password, against an Argo CD that keeps accounts as the real one does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response as HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pipeline_core::{Backoff, Outcome, Reason};
use serde_json::{Value, json};
use stages_argocd::client::{Access, CallBudget, Config, Login};
use stages_argocd::labels;
use stages_client::Token;
use tokio::time::Instant;

use crate::support::{Rig, Server, body, budget, kept, managed};

/// Refuses every login once so many were refused, as Argo CD does.
const LOCKED_AFTER: u32 = 5;
/// Longer than any test.
const NEVER: Backoff = Backoff { min: Duration::from_secs(3_600), max: Duration::from_secs(3_600) };
const SOON: Backoff = Backoff { min: Duration::from_millis(1), max: Duration::from_millis(2) };

struct State {
    password: String,
    /// Of the tokens that are taken; another one after a restart with another signing key.
    key: u32,
    /// Seconds that a session lives.
    life: u64,
    /// Whether sessions are given and then taken by nobody.
    takes_none: bool,
    /// What a login is answered, if not by what it gives.
    answer: Option<StatusCode>,
    given: u32,
    refused: u32,
}

#[derive(Clone)]
struct Accounts(Arc<Mutex<State>>);

impl Accounts {
    fn new(password: &str) -> Self {
        Self(Arc::new(Mutex::new(State {
            password: password.to_owned(),
            key: 1,
            life: 86_400,
            takes_none: false,
            answer: None,
            given: 0,
            refused: 0,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// Sessions that were given, and logins that were refused.
    fn logins(&self) -> (u32, u32) {
        self.with(|state| (state.given, state.refused))
    }

    async fn serve(&self) -> Server {
        let accounts = self.clone();
        Server::waiting(move |_, request| {
            let accounts = accounts.clone();
            Box::pin(async move { accounts.answer(request).await })
        })
        .await
    }

    async fn answer(&self, request: Request) -> HttpResponse {
        let header = request.headers().get("authorization").cloned();
        if (request.method(), request.uri().path()) != (&Method::POST, "/api/v1/session") {
            return self.with(|state| {
                let token = format!("Bearer {}", state.token());
                let is_taken = header.is_some_and(|header| header == token.as_str()) && !state.takes_none;
                if is_taken { "{}".into_response() } else { refusal() }
            });
        }
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let given: Value = serde_json::from_slice(&body).unwrap();
        self.with(|state| {
            if let Some(status) = state.answer {
                return status.into_response();
            }
            let is_right = given == json!({"username": "reporter", "password": state.password});
            if !is_right || state.refused >= LOCKED_AFTER {
                state.refused += 1;
                return refusal();
            }
            state.given += 1;
            axum::Json(json!({"token": state.token()})).into_response()
        })
    }
}

impl State {
    fn token(&self) -> String {
        let claims = json!({"iss": "argocd", "iat": 1_000, "exp": 1_000 + self.life, "jti": self.given});
        format!("e30.{}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()), self.key)
    }
}

fn refusal() -> HttpResponse {
    let text = "Invalid username or password";
    (StatusCode::UNAUTHORIZED, axum::Json(json!({"error": text, "code": 16, "message": text})))
        .into_response()
}

async fn rig(server: &Server, password: Token, retry: Backoff) -> Rig {
    let login = Login { username: "reporter".to_owned(), password, retry };
    Rig::new(Config { access: Access::Login(login), ..server.config() }, kept()).await
}

fn logins(rig: &Rig) -> Vec<Outcome> {
    let of_logins = rig.samples.all().into_iter().filter(|(call, _)| *call == labels::SESSION);
    of_logins.map(|(_, outcome)| outcome).collect()
}

#[tokio::test]
async fn many_calls_at_once_share_one_login() {
    let accounts = Accounts::new("secret");
    let server = accounts.serve().await;
    let rig = rig(&server, Token::literal("secret"), NEVER).await;
    let fetches: Vec<_> = (0..40).map(|n| managed(&n.to_string())).collect();
    for response in futures::future::join_all(fetches.iter().map(|fetch| rig.fetch(fetch))).await {
        assert_eq!(response, body("{}"));
    }
    assert_eq!(accounts.logins(), (1, 0));
    assert_eq!(logins(&rig), [Outcome::Ok]);
    assert_eq!(server.asked().iter().filter(|path| *path == "/api/v1/session").count(), 1);
}

#[tokio::test]
async fn a_restart_with_another_key_costs_one_login_and_no_event() {
    let accounts = Accounts::new("secret");
    let server = accounts.serve().await;
    let rig = rig(&server, Token::literal("secret"), NEVER).await;
    assert_eq!(rig.fetch(&managed("a")).await, body("{}"));
    accounts.with(|state| state.key = 2);
    let fetches: Vec<_> = (0..40).map(|n| managed(&n.to_string())).collect();
    for response in futures::future::join_all(fetches.iter().map(|fetch| rig.fetch(fetch))).await {
        assert_eq!(response, body("{}"));
    }
    assert_eq!(accounts.logins(), (2, 0));
}

#[tokio::test]
async fn a_session_is_renewed_before_it_ends() {
    let accounts = Accounts::new("secret");
    // It is time to renew such a session as soon as it is there, by what its token says of it: nine tenths of a
    // second that is over by the next call.
    accounts.with(|state| state.life = 1);
    let server = accounts.serve().await;
    let rig = rig(&server, Token::literal("secret"), NEVER).await;
    assert_eq!(rig.fetch(&managed("a")).await, body("{}"));
    let mut n = 0;
    while accounts.logins().0 < 3 {
        n += 1;
        assert_eq!(rig.fetch(&managed(&n.to_string())).await, body("{}"));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // No call was ever refused.
    let failed = rig.samples.outcomes().into_iter().filter(|outcome| *outcome != Outcome::Ok).count();
    assert_eq!((failed, accounts.logins().1), (0, 0));
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_and_another_one_at_once() {
    let accounts = Accounts::new("right");
    let server = accounts.serve().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "wrong\n").unwrap();
    let rig = rig(&server, Token::file(&file), NEVER).await;
    let fetches: Vec<_> = (0..40).map(|n| managed(&n.to_string())).collect();
    for response in futures::future::join_all(fetches.iter().map(|fetch| rig.fetch(fetch))).await {
        assert!(
            matches!(response, stages_argocd::plan::Response::Failed(Reason::Unauthorized)),
            "{response:?}"
        );
    }
    // Nothing but the one login was asked.
    assert_eq!(server.asked(), ["/api/v1/session"]);
    assert_eq!(logins(&rig), [Outcome::Failed(Reason::Unauthorized)]);
    let next = folder.path().join("next");
    std::fs::write(&next, "right\n").unwrap();
    std::fs::rename(&next, &file).unwrap();
    let changed = async {
        while rig.fetch(&managed("a")).await != body("{}") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), changed).await.unwrap();
    assert_eq!(accounts.logins(), (1, 1));
}

#[tokio::test]
async fn a_changed_password_ends_the_session_and_the_new_one_begins_another() {
    let accounts = Accounts::new("first");
    let server = accounts.serve().await;
    let (password, sender) = Token::told("first".into());
    let rig = rig(&server, password, NEVER).await;
    assert_eq!(rig.fetch(&managed("a")).await, body("{}"));
    accounts.with(|state| {
        state.password = "second".to_owned();
        state.key = 2;
    });
    // Until the new one is known here, the old one is refused once.
    for _ in 0..10 {
        assert_ne!(rig.fetch(&managed("a")).await, body("{}"));
    }
    assert_eq!(accounts.logins(), (1, 1));
    sender.send("second".into()).unwrap();
    assert_eq!(rig.fetch(&managed("b")).await, body("{}"));
    assert_eq!(accounts.logins(), (2, 1));
}

#[tokio::test]
async fn sessions_that_nobody_takes_are_no_reason_to_log_in_again_and_again() {
    let accounts = Accounts::new("secret");
    accounts.with(|state| state.takes_none = true);
    let server = accounts.serve().await;
    let rig = rig(&server, Token::literal("secret"), NEVER).await;
    for n in 0..20 {
        assert_ne!(rig.fetch(&managed(&n.to_string())).await, body("{}"));
    }
    assert_eq!(accounts.logins(), (2, 0));
    let error = rig.argocd.get(labels::SETTINGS, "/x", &crate::support::budget(), Ok).await.unwrap_err();
    let said = format!("cannot log in at {}: there is no session: the login was answered 401", server.host());
    assert_eq!(error.to_string(), said);
}

#[tokio::test]
async fn what_passes_is_tried_again_by_itself() {
    let accounts = Accounts::new("secret");
    accounts.with(|state| state.answer = Some(StatusCode::BAD_GATEWAY));
    let server = accounts.serve().await;
    let rig = rig(&server, Token::literal("secret"), SOON).await;
    assert_ne!(rig.fetch(&managed("a")).await, body("{}"));
    assert_eq!(logins(&rig).first(), Some(&Outcome::Failed(Reason::ServerError)));
    accounts.with(|state| state.answer = None);
    let back = async {
        while rig.fetch(&managed("a")).await != body("{}") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), back).await.unwrap();
    assert_eq!(accounts.logins(), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_of_four_replicas_never_locks_the_account_within_a_day() {
    // The waits alone: Argo CD forgets what it refused five minutes ago.
    let mut refused = Vec::new();
    for replica in 0..4 {
        // As far apart as Argo CD still counts them together, and the shortest waits that jitter makes.
        let mut now = Duration::from_secs(299 * replica);
        for failures in 1.. {
            refused.push(now);
            now += Login::RETRY.wait(failures, None, 0);
            if now > Duration::from_secs(86_400) {
                break;
            }
        }
    }
    refused.sort_unstable();
    let mut in_a_row = 0;
    for (n, at) in refused.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| refused[n]);
        in_a_row = match before {
            Some(before) if *at - before < Duration::from_secs(300) => in_a_row + 1,
            _ => 1,
        };
        assert!(in_a_row < LOCKED_AFTER, "{refused:?}");
    }
    assert!(refused.len() > 5 * 4, "{refused:?}");
}

#[tokio::test]
async fn a_login_that_outlives_the_call_that_began_it_is_heard_to_its_end() {
    let accounts = Accounts::new("right");
    let answers = Arc::new(tokio::sync::Semaphore::new(0));
    let (held, waits) = (accounts.clone(), answers.clone());
    let server = Server::waiting(move |_, request| {
        let (accounts, waits) = (held.clone(), waits.clone());
        Box::pin(async move {
            waits.acquire().await.unwrap().forget();
            accounts.answer(request).await
        })
    })
    .await;
    let rig = rig(&server, Token::literal("wrong"), NEVER).await;
    // Each of them gives up before the login is answered.
    for _ in 0..3 {
        let soon = CallBudget::until(Instant::now() + Duration::from_millis(200));
        let error = rig.argocd.get(labels::SETTINGS, "/x", &soon, Ok).await.unwrap_err();
        assert_eq!(error.reason(), Reason::Timeout, "{error}");
    }
    answers.add_permits(10);
    let refused = async {
        while logins(&rig).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), refused).await.unwrap();
    // One login was made, and its refusal is known: nobody asks again.
    let error = rig.argocd.get(labels::SETTINGS, "/x", &budget(), Ok).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Unauthorized, "{error}");
    assert_eq!((logins(&rig), accounts.logins()), (vec![Outcome::Failed(Reason::Unauthorized)], (0, 1)));
}
