//! The doctor's network, of real servers: what it says of each, in its exact words, and that no token is shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{any, get, post};
use loadtest::sim::Listen;
use loadtest::sim::account::Account;
use loadtest::sim::certificate::{Authority, Identity, of_itself};
use loadtest::sim::server::Server;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Runtime;

use crate::commands::run;

const SECRET: &str = "not-to-be-shown";

fn runtime() -> Runtime {
    Runtime::new().unwrap()
}

async fn serve(router: Router) -> Server {
    Server::start(router, Listen::default()).await.unwrap()
}

/// What the network tier says of values, without its first lines about files; and the exit code.
fn judged(values: &str) -> (Option<i32>, String) {
    said(values, &["--skip", "static", "--skip", "cluster"])
}

fn said(values: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).unwrap();
    let output = run(&[&["validate", "-f", file.to_str().unwrap()], arguments].concat());
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    (
        output.status.code(),
        text.replace(folder.path().to_str().unwrap(), "").replace("/values.yaml", "values.yaml"),
    )
}

/// The lines that are not about the cluster, which is skipped.
fn of_network(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("(skipped by --skip cluster)"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// An Argo CD that knows one token.
fn argocd(version: &'static str) -> Router {
    let userinfo = async |headers: HeaderMap| {
        let is_known = headers.get("authorization").is_some_and(|value| value == "Bearer not-to-be-shown");
        axum::Json(json!({"loggedIn": is_known}))
    };
    Router::new()
        .route("/argo/api/version", get(async move || axum::Json(json!({"Version": version}))))
        .route("/argo/api/v1/session/userinfo", get(userinfo))
}

/// A NATS server, as far as its greeting.
async fn nats(info: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("nats://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(format!("INFO {info}\r\n").as_bytes()).await;
        }
    });
    address
}

/// A GitHub Enterprise whose token has these scopes, and ends then.
fn github(scopes: &'static str, ends: &'static str) -> Router {
    let head = async move |headers: HeaderMap| {
        let is_known = headers.get("authorization").is_some_and(|value| value == "token not-to-be-shown");
        let status = if is_known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        (status, [("x-oauth-scopes", scopes), ("github-authentication-token-expiration", ends)])
    };
    Router::new().route("/api/v3", get(head))
}

struct Addresses<'a> {
    platform: &'a str,
    argocd: &'a str,
    own: &'a str,
    nats: &'a str,
}

/// Values with all tokens in them.
fn values(to: &Addresses<'_>) -> String {
    let Addresses { platform, argocd, own, nats } = to;
    format!(
        "global:
  codefresh:
    url: {platform}
    accountId: account-1
    userToken: {{token: {SECRET}}}
  runtime:
    name: prod
    ingressUrl: {own}
    gitCredentials: {{username: ada, password: {{value: {SECRET}}}}}
  integrations:
    argo-cd:
      server: {{url: {argocd}, rootpath: /argo, auth: {{token: {SECRET}}}}}
nats: {{mode: existing, url: '{nats}'}}
"
    )
}

const GOOD_NATS: &str = r#"{"version":"2.11.4","jetstream":true}"#;

#[test]
fn peers_that_are_as_they_should_be_bring_nothing() {
    let runtime = runtime();
    let (platform, argocd, git, own, nats) = runtime.block_on(async {
        let git = serve(github("repo, admin:repo_hook", "2999-01-01 00:00:00 UTC")).await;
        let account = Account {
            user_token: SECRET.to_owned(),
            git_provider: "GITHUB_ENTERPRISE".to_owned(),
            git_api: git.url(),
            clusters: Some((1, 2)),
            ..Account::default()
        };
        let own = serve(Router::new()).await;
        (serve(account.routes()).await, serve(argocd("v3.2.0+abc")).await, git, own, nats(GOOD_NATS).await)
    });
    let to = Addresses { platform: &platform.url(), argocd: &argocd.url(), own: &own.url(), nats: &nats };
    let (code, text) = judged(&values(&to));
    assert_eq!(
        (code, of_network(&text).as_str()),
        (Some(0), "0 errors, 0 warnings, 12 not measured\n"),
        "{text}"
    );
    drop(git);
}

#[test]
fn an_account_of_argo_cd_that_sees_no_cluster_is_told_where_an_app_proxy_tells_of_them() {
    let runtime = runtime();
    let found = |clusters: (StatusCode, serde_json::Value), may: &'static str, values: &str| {
        let list = async move || (clusters.0, axum::Json(clusters.1.clone()));
        let may = async move || axum::Json(json!({"value": may}));
        let argocd = argocd("v3.2.0")
            .route("/argo/api/v1/clusters", get(list))
            .route("/argo/api/v1/account/can-i/clusters/get/{*all}", get(may));
        let (argocd, platform) =
            runtime.block_on(async { (serve(argocd).await, serve(Account::default().routes()).await) });
        let server = format!("url: '{}', rootpath: /argo, auth: {{token: {SECRET}}}", argocd.url());
        let platform = format!("{{url: '{}'}}", platform.url());
        let given = format!(
            "global: {{codefresh: {platform}, runtime: {{name: prod}}, integrations: {{argo-cd: {{server: {{{server}}}}}}}}}\nreporter: {{sink: stdout}}\n{values}"
        );
        let (_, text) = judged(&given);
        text.lines()
            .skip_while(|line| !line.contains("GR0205"))
            .take(4)
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let acts = "appProxy: {enabled: true}\n";
    let said = |status: u16| {
        format!(
            "warning GR0205 values.yaml:1: global.integrations.argo-cd.server.auth.token
    found  an account that sees no cluster of Argo CD (status {status})
    wanted an account that may get clusters, of which the app proxy tells the platform
    do     grant it clusters, get: a line such as p, role:runtime, clusters, get, *, allow in policy.csv of argocd-rbac-cm
"
        )
    };
    for none in [json!({"items": null}), json!({"items": []}), json!({})] {
        assert_eq!(found((StatusCode::OK, none.clone()), "no", acts), said(200));
        // It may get any, and there is none: the own cluster is none (cluster.inClusterEnabled), and no other was added.
        assert_eq!(found((StatusCode::OK, none), "yes", acts), "");
    }
    assert_eq!(found((StatusCode::FORBIDDEN, json!({"code": 7})), "no", acts), said(403));
    let some = json!({"items": [{"server": "https://kubernetes.default.svc"}]});
    assert_eq!(found((StatusCode::OK, some), "no", acts), "");
    assert_eq!(found((StatusCode::OK, json!({"items": null})), "no", ""), "");
}

#[test]
fn whatever_is_wrong_with_peers_is_said_at_once() {
    let runtime = runtime();
    let (platform, argocd, git, nats) = runtime.block_on(async {
        let git = serve(github("repo", "2020-01-01 00:00:00 UTC")).await;
        let account = Account {
            user_token: SECRET.to_owned(),
            runtimes: vec!["prod".to_owned()],
            is_admin: false,
            git_provider: "GITHUB".to_owned(),
            git_api: git.url(),
            clusters: Some((2, 2)),
            ..Account::default()
        };
        let old = nats(r#"{"version":"2.9.10","jetstream":true}"#).await;
        (serve(account.routes()).await, serve(argocd("v2.8.1")).await, git, old)
    });
    let own = format!("http://127.0.0.1:{}", loadtest::sim::port::free().unwrap());
    let to = Addresses { platform: &platform.url(), argocd: &argocd.url(), own: &own, nats: &nats };
    let text = values(&to).replace("account-1", "account-2");
    let text = text.replace(&format!("auth: {{token: {SECRET}}}"), "auth: {token: another}");
    let (code, found) = judged(&text);
    assert_eq!(code, Some(1), "{found}");
    let expected = format!(
        "error GR0202 values.yaml:4: global.codefresh.accountId
    found  \"account-2\", and the user's token is of the account account-1 (acme)
    wanted the id of the token's account
    do     correct the id, or switch the user to that account and make a new API key
error GR0202 values.yaml:5: global.codefresh.userToken
    found  the user ada is no administrator of the account acme
    wanted the token of an administrator
    do     take the API key of one who is
error GR0202 values.yaml:7: global.runtime.name
    found  the account has a runtime prod already
    wanted a name that no runtime of the account has
    do     choose another name, or remove that runtime; one that was registered here has codefresh-token
error GR0207 values.yaml:8: global.runtime.ingressUrl
    found  {own}: the connection is refused
    wanted an address that answers
    do     correct the address, or open the way there; --skip network does not look
warning GR0203 values.yaml:9: global.runtime.gitCredentials.password.value
    found  a token without the scope admin:repo_hook
    wanted a token of the account's Git server with the scopes that the documentation names
    do     make such a token, and give it; appProxy.config.appProxy.skipGitPermissionValidation: true does not look
warning GR0203 values.yaml:9: global.runtime.gitCredentials.password.value
    found  a Git token that ends in the past
    wanted a token that stays
    do     make a new one, and give it
warning GR0205 values.yaml:12: global.integrations.argo-cd.server.url
    found  Argo CD 2.8
    wanted 2.12 to 3.3, which were tried
    do     upgrade it, or try this one with reporter.sink stdout first
error GR0205 values.yaml:12: global.integrations.argo-cd.server.auth.token
    found  Argo CD does not know the token (status 200)
    wanted a token of an account
    do     make one: argocd account generate-token --account NAME
error GR0206 values.yaml:13: nats.url
    found  {nats} is NATS 2.9
    wanted NATS 2.11 or newer, with JetStream
    do     upgrade it, or set nats.mode to embedded
error GR0204 what the account's plan allows
    found  2 clusters of 2
    wanted room for one more
    do     remove some, or ask for a larger plan; --skip network does not look, nor does the hook with validation.skip: [network]
not measured GR0201: the runtime's own address ({own} was not reached)
7 errors, 3 warnings, 13 not measured
"
    );
    let sorted = |text: &str| {
        let mut blocks: Vec<String> = Vec::new();
        for line in text.lines() {
            match blocks.last_mut().filter(|_| line.starts_with(' ')) {
                Some(block) => block.push_str(line),
                None => blocks.push(line.to_owned()),
            }
        }
        blocks.sort();
        blocks
    };
    assert_eq!(sorted(&of_network(&found)), sorted(&expected), "{found}");
    drop(git);
}

#[test]
fn a_route_leads_to_a_server_that_keeps_streams() {
    let runtime = runtime();
    let [good, plain] = [GOOD_NATS, r#"{"version":"2.10.1"}"#].map(|info| runtime.block_on(nats(info)));
    let platform = runtime.block_on(serve(Account::default().routes()));
    let to = platform.url();
    let routes = |urls: &[&str], enabled: bool| {
        let route = |(at, url): (usize, &&str)| json!({"name": format!("r{at}"), "sink": {"kind": "nats", "url": url, "subject": "gitops"}});
        let routes: Vec<_> = urls.iter().enumerate().map(route).collect();
        format!(
            "global: {{codefresh: {{url: '{to}'}}, runtime: {{name: prod}}}}\nreporter: {{enabled: false}}\nresourceReporter: {}\n",
            json!({"enabled": enabled, "sink": "stdout", "config": {"resources": {"routes": routes}}})
        )
    };
    let (code, text) = judged(&routes(&[&good], true));
    assert_eq!(code, Some(0), "{text}");
    let both = format!("{good}, {plain}");
    assert_eq!(judged(&routes(&[&good, &both], false)).0, Some(0));
    let (code, text) = judged(&routes(&[&good, &both], true));
    let expected = format!(
        "error GR0209 values.yaml:3: resourceReporter.config.resources.routes[1].sink.url
    found  {plain} has no JetStream
    wanted NATS 2.2 or newer, with JetStream
    do     start it with JetStream: what plain NATS is given nobody acknowledges
"
    );
    assert!(code == Some(1) && text.contains(&expected), "{text}");
    let nowhere = format!("nats://127.0.0.1:{}", loadtest::sim::port::free().unwrap());
    let (code, text) = judged(&routes(&[&good, &nowhere], true));
    assert_eq!(code, Some(1), "{text}");
    let unmeasured = format!(
        "not measured GR0209: a route leads to a NATS server without streams ({nowhere} was not reached)\n"
    );
    assert!(text.contains("error GR0207") && text.contains(&unmeasured), "{text}");
    // One that says its first word in TLS closes to whoever says none.
    let silent = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tls://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        address
    });
    let (code, text) = judged(&routes(&[&good, &silent], true));
    let unmeasured = format!(
        "not measured GR0209: a route leads to a NATS server without streams ({silent} says nothing before TLS)\n"
    );
    assert!(code == Some(0) && text.contains(&unmeasured), "{text}");
}

#[test]
fn each_switch_of_the_incumbent_keeps_its_part_from_being_asked() {
    let values = "global:
  codefresh: {url: 'http://127.0.0.1:1', userToken: {token: not-to-be-shown}}
  runtime: {name: prod, ingressUrl: 'http://127.0.0.1:1', ingress: {skipValidation: true}}
installer: {skipValidation: true}
";
    let (code, text) = judged(values);
    assert_eq!(code, Some(0), "{text}");
    for line in [
        "not measured GR0201: the runtime's own address (skipped by global.runtime.ingress.skipValidation)",
        "not measured GR0202, GR0203, GR0204, GR0205, GR0206 (skipped by installer.skipValidation)",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let usage = values.replace("skipValidation: true}\n", "skipUsageValidation: true}\n");
    let (_, text) = judged(&usage);
    assert!(text.contains("(skipped by installer.skipUsageValidation)"), "{text}");
}

#[test]
fn a_token_that_the_platform_refuses_is_said_and_not_shown() {
    let runtime = runtime();
    let platform = runtime.block_on(serve(Account::default().routes()));
    let values = format!(
        "global: {{codefresh: {{url: '{}', userToken: {{token: {SECRET}}}}}, runtime: {{name: prod}}}}\nreporter: {{enabled: false}}\n",
        platform.url()
    );
    let (code, text) = judged(&values);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("found  the platform refuses the user's token: status 401"), "{text}");
}

fn only_platform(url: &str, more: &str) -> String {
    format!(
        "global: {{codefresh: {{url: '{url}'}}, runtime: {{name: prod}}{more}}}\nreporter: {{enabled: false}}\n"
    )
}

fn trusting(url: &str, pem: &str) -> String {
    let pem = json!(pem);
    format!(
        "global:\n  codefresh:\n    url: {url}\n    tls: {{caCerts: {{secret: {{create: true, content: {pem}}}}}}}\n  runtime: \
         {{name: prod}}\nreporter: {{enabled: false}}\n"
    )
}

#[test]
fn a_platform_is_trusted_whose_own_certificate_the_values_give_as_its_authority() {
    let runtime = runtime();
    let (pem, tls) = of_itself().unwrap();
    let listen = Listen::default().with_tls(tls);
    let platform =
        runtime.block_on(async { Server::start(Account::default().routes(), listen).await.unwrap() });
    let unknown = judged(&only_platform(&platform.url(), "")).1;
    assert!(unknown.contains("does not verify"), "{unknown}");
    let (code, text) = judged(&trusting(&platform.url(), &pem));
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn which_certificate_does_not_verify_and_how() {
    let runtime = runtime();
    let authority = Authority::new().unwrap();
    let served = |identity: Identity| {
        let listen = Listen::default().with_tls(authority.server(identity).unwrap());
        runtime.block_on(async { Server::start(Account::default().routes(), listen).await.unwrap() })
    };
    let (good, expired, elsewhere) =
        (served(Identity::Good), served(Identity::Expired), served(Identity::WrongHost));
    let unknown = judged(&only_platform(&good.url(), "")).1;
    assert!(
        unknown.contains(&format!(
            "found  {}: the certificate of CN=simulator is signed by CN=simulated authority, which is not trusted here \
             and not shown",
            good.url()
        )),
        "{unknown}"
    );
    let trusted = |url: &str| judged(&trusting(url, &authority.pem()));
    let (code, text) = trusted(&good.url());
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains(
            "not measured GR0202: the platform's account, user and runtime (no global.codefresh.userToken)"
        ),
        "{text}"
    );
    let soon = served(Identity::Ending);
    let (code, text) = trusted(&soon.url());
    assert_eq!(code, Some(0), "{text}");
    let line = format!(
        "warning GR0208 values.yaml:3: global.codefresh.url\n    found  {} shows the certificate of CN=simulator, which ends in",
        soon.url()
    );
    assert!(text.contains(&line), "{text}");
    for (server, found) in [
        (&expired, "the certificate of CN=simulator expired at 2021-01-01T00:00:00Z"),
        (&elsewhere, "the certificate of CN=simulator is for another host"),
    ] {
        let (code, text) = trusted(&server.url());
        assert_eq!(code, Some(1), "{text}");
        let line = format!(
            "error GR0207 values.yaml:3: global.codefresh.url\n    found  {}: {found}\n",
            server.url()
        );
        assert!(text.contains(&line), "{text}");
    }
}

#[test]
fn without_any_network_nothing_is_wrong_and_nothing_is_measured() {
    // Names under .invalid never resolve.
    let values = "global:
  codefresh: {url: 'https://platform.invalid', userToken: {token: not-to-be-shown}}
  runtime: {name: prod, ingressUrl: 'https://runtime.invalid'}
  integrations: {argo-cd: {server: {url: 'https://argocd.invalid'}}}
nats: {mode: existing, url: 'nats://nats.invalid:4222'}
";
    let (code, text) = judged(values);
    assert_eq!(code, Some(0), "{text}");
    let expected = "not measured GR0201: the runtime's own address (offline: no address was reached)
not measured GR0202: the platform's account, user and runtime (offline: no address was reached)
not measured GR0204: what the account's plan allows (the platform was not asked as a user who registers a runtime)
not measured GR0205: Argo CD's version and token (offline: no address was reached)
not measured GR0206: the version of the existing bus (offline: no address was reached)
0 errors, 0 warnings, 17 not measured
";
    assert_eq!(of_network(&text), expected, "{text}");
    assert_eq!(said(values, &["--skip", "static", "--skip", "cluster", "--strict"]).0, Some(3));
}

#[test]
fn proxies_of_the_values_and_of_the_environment_are_heeded() {
    let runtime = runtime();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let answer = move |request: Request| {
        kept.lock().unwrap().push(request.uri().to_string());
        std::future::ready(StatusCode::OK)
    };
    let proxy = runtime.block_on(serve(Router::new().fallback(any(answer))));
    let values = only_platform("http://platform.invalid", &format!(", httpProxy: '{}'", proxy.url()));
    assert_eq!(judged(&values).0, Some(0));
    assert_eq!(*seen.lock().unwrap(), ["http://platform.invalid/api/ping"]);
    let direct = values.replace("httpProxy:", "noProxy: platform.invalid, httpProxy:");
    judged(&direct);
    assert_eq!(seen.lock().unwrap().len(), 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, only_platform("http://platform.invalid", "")).unwrap();
    let arguments = ["validate", "-f", file.to_str().unwrap(), "--skip", "cluster"];
    let ended = crate::commands::command(&arguments)
        .env("HTTP_PROXY", proxy.url())
        .env("http_proxy", proxy.url())
        .output();
    assert!(ended.is_ok());
    assert_eq!(seen.lock().unwrap().len(), 2);
}

/// What the doctor says of a Git token, at a server with such answers.
fn git(provider: &'static str, router: Router, token: &str) -> (Option<i32>, String) {
    let runtime = runtime();
    let (platform, server) = runtime.block_on(async {
        let server = serve(router).await;
        let account = Account {
            user_token: SECRET.to_owned(),
            git_provider: provider.to_owned(),
            git_api: server.url(),
            ..Account::default()
        };
        (serve(account.routes()).await, server)
    });
    let values = format!(
        "global:\n  codefresh: {{url: '{}', userToken: {{token: {SECRET}}}}}\n  runtime:\n    name: prod\n    gitCredentials: \
         {{username: ada, password: {{value: {token}}}}}\nreporter: {{enabled: false}}\n",
        platform.url()
    );
    let (code, text) = judged(&values);
    let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("    found  ")).collect();
    let found = found.join("\n").replace(&server.url(), "GIT");
    (code, found)
}

fn gitlab(user: serde_json::Value, made: u16, ends: &'static str) -> Router {
    let made = StatusCode::from_u16(made).unwrap();
    Router::new()
        .route("/api/v4/user", get(async move || axum::Json(user)))
        .route("/api/v4/projects", post(async move || made))
        .route(
            "/api/v4/personal_access_tokens/self",
            get(async move || axum::Json(json!({"expires_at": ends}))),
        )
}

#[test]
fn a_git_token_is_tried_as_each_provider_wants_it() {
    let nothing = |answer: (Option<i32>, String)| assert_eq!(answer, (Some(0), String::new()));
    // Nothing here uses the token, so that what is wrong with it stops nobody.
    let found = |answer: (Option<i32>, String), text: &str| assert_eq!(answer, (Some(0), text.to_owned()));
    found(
        git("GITHUB", github("repo, admin:repo_hook", "2999-01-01"), "unknown"),
        "GIT does not take the token (status 401)",
    );
    found(
        git("GITHUB", Router::new().route("/api/v3", get(async || ())), SECRET),
        "GIT tells no scopes of the token",
    );

    let person = json!({"username": "ada"});
    nothing(git("GITLAB", gitlab(person.clone(), 400, "2999-01-01"), SECRET));
    found(
        git("GITLAB", gitlab(person.clone(), 403, "2999-01-01"), SECRET),
        "GIT does not take the token (status 403)",
    );
    found(
        git("GITLAB", gitlab(person.clone(), 201, "2999-01-01"), SECRET),
        "a token without the scope api (status 201)",
    );
    let project = json!({"username": "project_1_bot", "bot": true});
    found(git("GITLAB", gitlab(project, 400, ""), SECRET), "the token of a project, which reaches no other");
    let (code, text) = git("GITLAB", gitlab(person, 400, "2020-01-01"), SECRET);
    assert_eq!((code, text.as_str()), (Some(0), "a Git token that ends in the past"));

    let cloud = |scopes: &'static str| {
        let head = async move |headers: HeaderMap| {
            let is_known = headers
                .get("authorization")
                .is_some_and(|value| value == "Basic YWRhOm5vdC10by1iZS1zaG93bg==");
            let status = if is_known { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
            (status, [("x-oauth-scopes", scopes)])
        };
        Router::new().route("/api/2.0/user", get(head))
    };
    nothing(git("BITBUCKET", cloud("repository:admin, account:write, team, webhook"), SECRET));
    found(
        git("BITBUCKET", cloud("repository:admin, account:read"), SECRET),
        "a token without the scope team and webhook",
    );

    let server = |user: &'static str, made: u16| {
        let made = StatusCode::from_u16(made).unwrap();
        Router::new()
            .route("/rest/api/1.0/application-properties", get(async move || [("x-ausername", user)]))
            .route(
                "/rest/api/1.0/users/ada/repos",
                post(
                    async move |axum::Json(body): axum::Json<BTreeMap<String, String>>| {
                        if body["name"] == "!invalid" { made } else { StatusCode::CREATED }
                    },
                ),
            )
    };
    nothing(git("BITBUCKET_SERVER", server("ada", 400), SECRET));
    found(
        git("BITBUCKET_SERVER", server("ada", 201), SECRET),
        "a token that may make no repository (status 201)",
    );
    found(git("BITBUCKET_SERVER", server("../x", 400), SECRET), "GIT does not say whose token it is");
    found(git("SUBVERSION", Router::new(), SECRET), "the account's Git provider is SUBVERSION");
}

#[test]
fn a_name_of_the_cluster_is_not_held_against_whoever_asks_outside_of_it() {
    let runtime = runtime();
    let platform = runtime.block_on(serve(Account::default().routes()));
    let values = format!("global: {{codefresh: {{url: '{}'}}, runtime: {{name: prod}}}}\n", platform.url());
    let (code, text) = judged(&values);
    assert_eq!(code, Some(0), "{text}");
    let line = "not measured GR0205: Argo CD's version and token (offline: http://argocd-server.prod.svc:80 is a name of \
                the cluster, and this is asked outside of it)";
    assert!(text.contains(line), "{text}");
}
