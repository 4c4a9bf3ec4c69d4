//! One table of requests and roles over everything that a platform serves: a route without a row fails, and so does an answer
//! that is another than its row says. `UPDATE=1` writes the table anew.

use std::fmt::Write as _;

use jiff::Timestamp;
use loadtest_sim::local_client;
use pipeline_core::ExposeSecret as _;
use reqwest::redirect;
use sha2::Digest as _;
use stages_platform_store::{Account, By, CommitOf, Role, Scope, SourceChange};

use crate::platform::{Platform, by};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/routes.txt");
const HEAD: &str = "# Status of each request: of nobody, of an unknown key, of a member's page, of an admin's page, of a page of\n\
    # another site with an admin's session, of a member's key, of an admin's that reads, of an admin's, of a runtime's token.\n";

/// What every answer carries, whoever asks; a policy of its own each has that is a page.
const GUARDS: &[(&str, &str)] = &[
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", ""),
    ("referrer-policy", ""),
    ("cache-control", ""),
];

#[tokio::test]
async fn every_route_answers_each_role_as_the_table_says() {
    let platform = Platform::new().await;
    let (store, now) = (&platform.store, Timestamp::now().as_millisecond());
    let end = now + 86_400_000;
    for (name, role) in [("admin", Role::Admin), ("lin", Role::Member)] {
        let account = Account { name: name.to_owned(), password: "none".to_owned(), role };
        assert!(store.add_person(&by(), &account, now).await.unwrap());
    }
    let key = async |who: &str, scope| {
        let by = By { who: who.to_owned(), how: "session" };
        store.add_key(&by, "test", scope, end, now).await.unwrap().expose_secret().to_owned()
    };
    let keys = [
        format!("goak_{}", "0".repeat(64)),
        key("lin", Scope::Full).await,
        key("admin", Scope::Read).await,
        key("admin", Scope::Full).await,
        store.add_token(&by(), "prod", now).await.unwrap().unwrap().expose_secret().to_owned(),
    ];
    let commit = CommitOf { revision: "3f9c1e2".to_owned(), ..CommitOf::default() };
    let brought = SourceChange { commits: vec![commit], ..SourceChange::default() };
    let prod = store.runtime_named("prod").await.unwrap().unwrap();
    store.keep_changes(prod, ("argocd", "shop"), 1_764_000_000_000, vec![brought]).await.unwrap();
    let client = local_client().redirect(redirect::Policy::none()).build().unwrap();
    let mut routes: Vec<(&str, &str)> = stages_platform_ingest::table().to_vec();
    routes.extend(stages_platform_api::table());
    routes.extend(stages_platform_console::table().into_iter().map(|(method, path, _)| (method, path)));
    let mut table = HEAD.to_owned();
    let mut sessions = 0;
    for (method, path) in routes {
        let known = [
            ("runtime", "prod"),
            ("namespace", "argocd"),
            ("days", "28"),
            ("figure", "failures"),
            ("version", "none"),
            ("began", "1764000000000"),
            ("revision", "3f9c1e2"),
        ];
        let filled = known
            .iter()
            .fold(path.to_owned(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value));
        // What is named alike in two places: a runtime, and an application.
        let filled =
            filled.replace("{name}", if path.starts_with("/api/argo-runtime") { "prod" } else { "shop" });
        let url = format!("{}{filled}", platform.url);
        let ask = || client.request(method.parse().unwrap(), &url);
        let mut asked = vec![ask(), ask().header("authorization", &keys[0])];
        for (who, site) in [("lin", "same-origin"), ("admin", "same-origin"), ("admin", "cross-site")] {
            // Each has a session of its own: one of the routes ends it.
            sessions += 1;
            let session = format!("session-{sessions}");
            let digest = sha2::Sha256::digest(session.as_bytes()).into();
            store.keep_session(digest, who, now, end).await.unwrap();
            asked.push(ask().header("cookie", format!("session={session}")).header("sec-fetch-site", site));
        }
        asked.extend(keys[1..].iter().map(|key| ask().header("authorization", key)));
        write!(table, "{method:4} {path:60}").unwrap();
        for request in asked {
            let response = request.send().await.unwrap();
            for (name, value) in GUARDS {
                let found = response.headers().get(*name).map(|value| value.to_str().unwrap());
                let is_said = found.is_some_and(|found| value.is_empty() || found == *value);
                assert!(is_said, "{method} {path} answers with {name}: {found:?}");
            }
            write!(table, " {}", response.status().as_u16()).unwrap();
        }
        table.push('\n');
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(TABLE, &table).unwrap();
    }
    let kept = std::fs::read_to_string(TABLE).unwrap();
    for (found, expected) in table.lines().zip(kept.lines()) {
        assert_eq!(found, expected, "`UPDATE=1` writes the table anew: look at what changed");
    }
    assert_eq!(table, kept);
}

/// Whether an address is one of a route.
pub(crate) fn is_of_route(route: &str, address: &str) -> bool {
    let path = address.split('?').next().unwrap();
    let (route, path): (Vec<_>, Vec<_>) = (route.split('/').collect(), path.split('/').collect());
    let is = |(part, own): (&&str, &&str)| part.starts_with('{') || part == own;
    route.len() == path.len() && route.iter().zip(&path).all(is)
}
