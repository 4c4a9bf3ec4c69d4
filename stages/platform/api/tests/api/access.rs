//! Who may ask what.

use pipeline_core::ExposeSecret as _;
use serde_json::json;
use stages_platform_store::{API_KEYS, Scope, VersionSource};

use crate::served::{Credential, Served, by, still, told};

const RULE: &str = r#"mutation { createAbacRule(rule: {entityType: "gitopsApplications", teams: ["shop"], actions: ["VIEW"], attributes: [{name: "RUNTIME", value: "prod"}]}) }"#;

/// Each operation, with what is said to an admin's key, to one that reads only, to a member, and to a runtime; empty: it is
/// answered.
const OPERATIONS: &[(&str, [&str; 4])] = &[
    ("{ me { name } }", ["", "", "", ""]),
    ("{ runtimes { edges { node { metadata { name } } } } }", ["", "", "", ""]),
    (r#"{ runtime(name: "prod") { metadata { name } } }"#, ["", "", "", ""]),
    ("{ applications { edges { cursor } } }", ["", "", "", ""]),
    (r#"{ application(runtime: "prod", namespace: "a", name: "b") { uid } }"#, ["", "", "", ""]),
    (
        r#"{ promotionTemplateByRuntime(runtime: "prod", applicationMetadata: {name: "shop"}) { versionSource { file } } }"#,
        ["", "", "", ""],
    ),
    ("{ gitSources { edges { cursor } } }", ["", "", "", ""]),
    ("{ clusters { edges { cursor } } }", ["", "", "", ""]),
    ("{ limitsStatus { usage { clusters applications } } }", ["", "", "", ""]),
    (
        r#"{ promotionTemplate(runtime: "prod", namespace: "a", name: "b") { versionSource { file } } }"#,
        ["", "", "", ""],
    ),
    ("{ shouldBeImplicitConfigurationRuntime }", [PROXY, PROXY, PROXY, ""]),
    (r#"{ getSealingKey(id: "none") }"#, [PROXY, PROXY, PROXY, "this runtime has no sealing key of that id"]),
    ("{ latestCliRelease }", ["", "", "", ""]),
    (r#"{ components(runtime: "prod") { edges { cursor } } }"#, ["", "", "", ""]),
    ("{ productComponentsList(filters: {hasPendingPullRequests: true}) { id } }", ["", "", "", ""]),
    ("{ workflows { edges { cursor } } }", ["", "", "", ""]),
    (r#"{ workflow(uid: "a") { projects } }"#, ["", "", "", ""]),
    ("{ pipelines { edges { cursor } } }", ["", "", "", ""]),
    (r#"{ pipeline(runtime: "prod", name: "ci") { projects } }"#, ["", "", "", ""]),
    ("subscription { applicationsChanged { sequence } }", ["", "", "", ""]),
    (
        r#"subscription { applicationChanged(runtime: "prod", namespace: "a", name: "b") { sequence } }"#,
        ["", "", "", ""],
    ),
    ("{ users { name } }", ["", "", ADMIN, PERSON]),
    ("{ abacRules { id } }", ["", "", ADMIN, PERSON]),
    ("{ apiKeys { id } }", ["", "", "", PERSON]),
    ("{ auditLog { id } }", ["", "", ADMIN, PERSON]),
    (
        r#"mutation { createRuntime(installationArgs: {runtimeName: "eu1"}) { name } }"#,
        ["", READS, ADMIN, PERSON],
    ),
    (r#"mutation { deleteRuntime(name: "eu1") }"#, ["", READS, ADMIN, PERSON]),
    (
        r#"mutation { deleteManagedRuntime(name: "prod") }"#,
        ["runtime 'prod' is not managed: deleteRuntime takes it away", READS, ADMIN, PERSON],
    ),
    (
        r#"mutation { migrateRuntime(runtimeName: "none") }"#,
        ["there is no runtime 'none'", READS, ADMIN, PERSON],
    ),
    (
        r#"mutation { updateCsdpSettings(gitProvider: GITHUB, gitApiUrl: "", sharedConfigRepo: "https://github.com/a/b.git") }"#,
        ["", READS, ADMIN, PERSON],
    ),
    ("mutation { updateRuntimeClusters(clusters: []) }", [PROXY, PROXY, PROXY, ""]),
    (
        r#"mutation { saveSealingKey(privateKey: "made-up") }"#,
        [PROXY, PROXY, PROXY, "a sealing key is a private key in PEM, or base64 of that"],
    ),
    (
        r#"mutation { suggestIscRepo(suggestedSharedConfigRepo: "https://github.com/a/b.git") }"#,
        ["", READS, ADMIN, ""],
    ),
    (
        r#"mutation { reportRuntimeErrors(reportErrorsArgs: {runtime: "prod", errors: []}) }"#,
        ["", READS, ADMIN, ""],
    ),
    (
        r#"mutation { reportRuntimeVersion(reportVersionArgs: {runtime: "prod", runtimeVersion: "1.2.3"}) }"#,
        ["", READS, ADMIN, ""],
    ),
    (r#"mutation { createApiKey(name: "ci", scope: "read") { key } }"#, ["", READS, "", PERSON]),
    ("mutation { removeApiKey(id: 999) }", ["you have no key 999", READS, "you have no key 999", PERSON]),
    (r#"mutation { setUserRole(name: "lin", role: "member") }"#, ["", READS, ADMIN, PERSON]),
    (r#"mutation { setUserTeams(name: "lin", teams: ["shop"]) }"#, ["", READS, ADMIN, PERSON]),
    (
        r#"mutation { setVersionSource(runtime: "prod", source: {file: "Chart.yaml", jsonPath: "$.version"}) }"#,
        ["", READS, ADMIN, PERSON],
    ),
    (r#"mutation { setUserDisabled(name: "lin", disabled: false) }"#, ["", READS, ADMIN, PERSON]),
    (RULE, ["", READS, ADMIN, PERSON]),
    ("mutation { removeAbacRule(id: 999) }", ["there is no rule 999", READS, ADMIN, PERSON]),
    (r#"mutation { endSessions(name: "ada") }"#, ["", READS, ADMIN, PERSON]),
    (
        r#"mutation { removeUser(name: "nobody") }"#,
        [
            "there is no user 'nobody', or it is the last admin whom a person made one: an admin by a group of a provider does not count",
            READS,
            ADMIN,
            PERSON,
        ],
    ),
];
const ADMIN: &str = "only an admin may do this";
const PERSON: &str = "only a person may do this: send an API key instead of the token of a runtime";
const PROXY: &str = "only the app proxy of a runtime may ask this: send the runtime's token";
const READS: &str = "this key may only read: make one of the scope 'full'";

#[tokio::test]
async fn every_operation_answers_each_role_as_the_table_says() {
    let served = Served::new().await;
    // Every field of the schema is in the table.
    let introspection = "{ __schema { queryType { fields { name } } mutationType { fields { name } } subscriptionType { fields { name } } } }";
    let schema = served.data(&served.admin, introspection, json!({})).await;
    for kind in ["queryType", "mutationType", "subscriptionType"] {
        for field in schema["__schema"][kind]["fields"].as_array().unwrap() {
            let name = field["name"].as_str().unwrap();
            let listed = OPERATIONS.iter().any(|(query, _)| {
                let asked = query.trim_start_matches("mutation").trim_start_matches("subscription");
                let asked = asked.trim_start_matches([' ', '{']);
                asked.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '(']))
            });
            assert!(listed, "{name} is not in the table of operations");
        }
    }
    for (query, answers) in OPERATIONS {
        let roles = [&served.admin, &served.admin_reads, &served.member, &served.runtime];
        // Who may least comes first, so that what an admin takes away is there until then.
        for (role, said) in roles.into_iter().zip(answers).rev() {
            match said.is_empty() {
                true if query.starts_with("subscription") => {
                    drop(served.stream(role, query, json!({})).await.data().await);
                }
                true => drop(served.data(role, query, json!({})).await),
                false => assert_eq!(served.refused(role, query, json!({})).await, *said, "{query}"),
            }
        }
    }
}

/// Each route, with the status for nobody, an unknown key, a member, an admin's key that reads, an admin's, a runtime's token, and an
/// admin's session.
const ROUTES: &[(&str, &str, [u16; 7])] = &[
    // A session asks no query of its own.
    ("POST", "/2.0/api/graphql", [401, 401, 200, 200, 200, 200, 403]),
    // The member sees nothing of the runtime, which has no address.
    ("POST", "/2.0/api/runtimes/{runtime}/app-proxy/graphql", [401, 401, 404, 409, 409, 403, 403]),
    // What is sent is of another form.
    ("POST", "/2.0/api/authorize", [401, 401, 403, 403, 403, 400, 403]),
    ("POST", "/2.0/api/audit", [401, 401, 403, 403, 403, 400, 403]),
    ("GET", "/api/ping", [200, 200, 200, 200, 200, 200, 200]),
    ("POST", "/api/argo-runtime", [401, 401, 403, 403, 200, 403, 200]),
    ("GET", "/api/argo-runtime/{name}/storeKey", [401, 401, 403, 403, 200, 200, 200]),
];

#[tokio::test]
async fn every_route_answers_each_role_as_the_table_says() {
    let listed: Vec<_> = ROUTES.iter().map(|(method, path, _)| (*method, *path)).collect();
    assert_eq!(stages_platform_api::table(), listed);
    let served = Served::new().await;
    // The runtime has a token, and is registered now.
    let now = still().as_millisecond();
    served.store.register(&by("ada"), "prod", "{}", true, now).await.unwrap().unwrap();
    let unknown = ("authorization", format!("goak_{}", "0".repeat(64)));
    let nobody = ("x-nothing", String::new());
    let (member, reads, admin) = (&served.member, &served.admin_reads, &served.admin);
    let roles = [&nobody, &unknown, member, reads, admin, &served.runtime, &served.session];
    for (method, path, answers) in ROUTES {
        for (role, expected) in roles.iter().zip(answers) {
            let url =
                format!("{}{}", served.url, path.replace("{name}", "prod").replace("{runtime}", "prod"));
            let asked = served.client.request(method.parse().unwrap(), url).header(role.0, &role.1);
            let asked = asked.header("sec-fetch-site", "same-origin");
            let body = r#"{"query": "{ me { name } }", "name": "prod"}"#;
            let status = asked.body(body).send().await.unwrap().status().as_u16();
            assert_eq!(status, *expected, "{method} {path} of {}", role.1.get(..5).unwrap_or("nobody"));
        }
    }
}

#[tokio::test]
async fn nobody_is_answered_who_is_not_known() {
    let served = Served::new().await;
    let session = |more: &[(&'static str, &str)]| {
        let mut asked = served.ask(&served.session, "{ me { name } }", &json!({}));
        for (name, value) in more {
            asked = asked.header(*name, *value);
        }
        asked.send()
    };
    let none = "send an API key, or the token of a runtime, in the header Authorization\n";
    let unknown = "this key, token or session is not known, or has ended\n";
    let other = "this was sent from a page of another site; open the console itself, at the address of platformServer.externalUrl\n";
    let host = served.url.trim_start_matches("http://").to_owned();
    for (credential, said) in [
        (("x-nothing", String::new()), none),
        (("authorization", String::new()), none),
        (("cookie", "theme=dark".to_owned()), none),
        (("authorization", format!("goak_{}", "0".repeat(64))), unknown),
        (("authorization", "anything".to_owned()), unknown),
    ] {
        let response = served.ask(&credential, "{ me { name } }", &json!({})).send().await.unwrap();
        assert_eq!(told(response).await, (401, said.to_owned()), "{}", credential.0);
    }
    // A session counts for what a page of this very platform sent, and for nothing else.
    for more in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site"), ("origin", &*served.url)],
    ] {
        assert_eq!(told(session(more).await.unwrap()).await, (403, other.to_owned()), "{more:?}");
    }
    // That page is known by its session, and asks no query of its own.
    let unstored = "a session is good for the console's own queries, by their names: send an API key to ask in words of your own\n";
    for more in [
        &[("sec-fetch-site", "same-origin")][..],
        &[("origin", &*served.url)],
        // A proxy on the way asks for a password, or passes on who it let in.
        &[("sec-fetch-site", "same-origin"), ("authorization", "Basic YWRhOnNlY3JldA==")],
        &[("sec-fetch-site", "same-origin"), ("authorization", "Bearer eyJhbGciOiJSUzI1NiJ9.e30.AA")],
    ] {
        assert_eq!(told(session(more).await.unwrap()).await, (403, unstored.to_owned()), "{host}");
    }
    let ended = ("cookie", "session=of-nobody".to_owned());
    let asked = served.ask(&ended, "{ me { name } }", &json!({})).header("sec-fetch-site", "same-origin");
    assert_eq!(told(asked.send().await.unwrap()).await, (401, unknown.to_owned()));
    // Over https a session is in a cookie that no neighbour of this host can have set.
    let secure = Served::behind("https://platform.example.com", |config| config).await;
    for (cookies, said) in [
        ("session=of-ada", none),
        ("__Host-session=of-ada; __Host-session=of-ada", none),
        ("session=of-nobody; __Host-session=of-ada", unstored),
    ] {
        let asked = secure.ask(&("cookie", cookies.to_owned()), "{ me { name } }", &json!({}));
        let answer = asked.header("sec-fetch-site", "same-origin").send().await.unwrap();
        let status = if said == none { 401 } else { 403 };
        assert_eq!(told(answer).await, (status, said.to_owned()), "{cookies}");
    }
    // A proxy on the way changes the host, and over http a browser says nothing but the origin.
    let behind = Served::behind("http://platform.example.com/", |config| config).await;
    for (origin, said) in [("http://platform.example.com", unstored), ("http://evil.example", other)] {
        let asked = behind.ask(&behind.session, "{ me { name } }", &json!({})).header("origin", origin);
        assert_eq!(told(asked.send().await.unwrap()).await, (403, said.to_owned()), "{origin}");
    }
    // As it is, and after `Bearer`.
    let bearer = ("authorization", format!("Bearer {}", served.admin.1));
    assert_eq!(served.data(&bearer, "{ me { name } }", json!({})).await, json!({"me": {"name": "ada"}}));
}

#[tokio::test]
async fn a_key_that_is_taken_back_is_not_known_at_once_and_neither_is_that_of_somebody_who_is_gone() {
    let served = Served::new().await;
    let status = async |who: &Credential| {
        served.ask(who, "{ me { name } }", &json!({})).send().await.unwrap().status().as_u16()
    };
    let listed = served.data(&served.member, "{ apiKeys { id owner scope prefix } }", json!({})).await;
    let keys = listed["apiKeys"].as_array().unwrap();
    assert_eq!((keys.len(), &keys[0]["owner"], &keys[0]["scope"]), (1, &json!("lin"), &json!("full")));
    let now = still().as_millisecond();
    let key = served.store.add_key(&by("lin"), "ci", Scope::Read, now + 86_400_000, now).await.unwrap();
    let key = ("authorization", key.expose_secret().to_owned());
    assert_eq!(status(&key).await, 200);
    let taken = "mutation Take($id: Int!) { removeApiKey(id: $id) }";
    served.data(&served.member, taken, json!({"id": keys[0]["id"]})).await;
    assert_eq!((status(&served.member).await, status(&key).await), (401, 200));
    served.data(&served.admin, r#"mutation { removeUser(name: "lin") }"#, json!({})).await;
    assert_eq!(status(&key).await, 401);
}

#[tokio::test]
async fn members_see_what_the_rules_of_their_teams_grant_in_lists_and_alone() {
    let served = Served::new().await;
    for (runtime, application) in [("prod", "argocd/shop"), ("eu1", "argocd/shop"), ("prod", "team/cart")] {
        served.report(runtime, application).await;
    }
    let list = async |who: &Credential| {
        let query = "{ applications { edges { cursor } } runtimes { edges { cursor } } }";
        let data = served.data(who, query, json!({})).await;
        let of = |kind: &str| {
            let edges = data[kind]["edges"].as_array().unwrap();
            edges.iter().map(|edge| edge["cursor"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        (of("applications"), of("runtimes"))
    };
    let both = |applications: &str, runtimes: &str| (applications.to_owned(), runtimes.to_owned());
    let all = both("eu1/argocd/shop prod/argocd/shop prod/team/cart", "eu1 prod");
    assert_eq!(list(&served.admin).await, all);
    assert_eq!(list(&served.admin_reads).await, all);
    assert_eq!(list(&served.member).await, both("", ""));
    assert_eq!(list(&served.runtime).await, both("prod/argocd/shop prod/team/cart", "prod"));
    let now = still().as_millisecond();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    assert_eq!(list(&served.member).await, both("", ""), "a team without rules");
    served.data(&served.admin, RULE, json!({})).await;
    assert_eq!(list(&served.member).await, both("prod/argocd/shop prod/team/cart", "prod"));
    let one = async |who: &Credential, runtime: &str| {
        let query = "query One($r: String!) { application(runtime: $r, namespace: \"argocd\", name: \"shop\") { uid } runtime(name: $r) { metadata { name } } }";
        served.data(who, query, json!({"r": runtime})).await
    };
    let found = json!({"application": {"uid": "argocd/shop"}, "runtime": {"metadata": {"name": "prod"}}});
    let nothing = json!({"application": null, "runtime": null});
    assert_eq!(one(&served.member, "prod").await, found);
    assert_eq!(one(&served.member, "eu1").await, nothing);
    assert_eq!(one(&served.runtime, "eu1").await, nothing);
    served.store.set_teams(&by("ada"), "lin", &[], now).await.unwrap();
    assert_eq!(one(&served.member, "prod").await, nothing);
}

#[tokio::test]
async fn a_member_is_told_of_no_runtime_in_which_they_see_nothing_and_of_no_application_but_theirs() {
    let served = Served::new().await;
    for (runtime, application) in [("prod", "argocd/shop"), ("prod", "team/cart"), ("eu1", "team/cart")] {
        served.report(runtime, application).await;
    }
    let now = still().as_millisecond();
    let source = VersionSource { file: "Chart.yaml".to_owned(), json_path: "$.version".to_owned() };
    served.store.set_version_source(&by("ada"), ("prod", None), Some(&source), now).await.unwrap();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    let rule = r#"mutation { createAbacRule(rule: {entityType: "gitopsApplications", teams: ["shop"], actions: ["VIEW"], attributes: [{name: "NAMESPACE", value: "argocd"}]}) }"#;
    served.data(&served.admin, rule, json!({})).await;
    let told = async |who: &Credential, runtime: &str| {
        let query = "query One($r: String!) { runtime(name: $r) { id } components(runtime: $r) { edges { cursor } } runtimes { edges { cursor } } }";
        served.data(who, query, json!({"r": runtime})).await
    };
    let edges = |names: &[&str]| json!({"edges": names.iter().map(|name| json!({"cursor": name})).collect::<Vec<_>>()});
    let expected = |id: serde_json::Value, runtimes: &[&str]| json!({"runtime": id, "components": edges(&[]), "runtimes": edges(runtimes)});
    let one = |name: &str| json!({"id": name});
    assert_eq!(told(&served.member, "prod").await, expected(one("prod"), &["prod"]));
    assert_eq!(told(&served.member, "eu1").await, expected(json!(null), &["prod"]));
    assert_eq!(told(&served.admin, "eu1").await, expected(one("eu1"), &["eu1", "prod"]));
    for (runtime, status) in [("prod", 409), ("eu1", 404), ("none", 404)] {
        let url = format!("{}/2.0/api/runtimes/{runtime}/app-proxy/graphql", served.url);
        let asked = served.client.post(url).header(served.member.0, &served.member.1);
        let answer = asked.json(&json!({"query": "{ a }"})).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{runtime}");
    }
    let version = async |who: &Credential, namespace: &str, name: &str| {
        let query = "query Version($of: Object!) { promotionTemplateByRuntime(runtime: \"prod\", applicationMetadata: $of) { versionSource { file } } }";
        let of = json!({"of": {"namespace": namespace, "name": name}});
        let found = served.data(who, query, of).await["promotionTemplateByRuntime"].take();
        found["versionSource"]["file"].as_str().map(str::to_owned)
    };
    let set = Some("Chart.yaml".to_owned());
    assert_eq!(version(&served.member, "argocd", "shop").await, set);
    assert_eq!(version(&served.member, "team", "cart").await, None);
    assert_eq!(version(&served.member, "argocd", "none").await, None);
    assert_eq!(
        version(&served.admin, "argocd", "none").await,
        set,
        "whoever sees everything is told of what comes"
    );
}

#[tokio::test]
async fn somebody_has_so_many_keys_and_no_more() {
    let served = Served::new().await;
    let now = still().as_millisecond();
    // They have one.
    for _ in 1..API_KEYS {
        served.store.add_key(&by("lin"), "ci", Scope::Read, now + 1, now).await.unwrap();
    }
    let make = r#"mutation { createApiKey(name: "ci", scope: "read") { key } }"#;
    let said = "you have 50 keys: take one back first";
    assert_eq!(served.refused(&served.member, make, json!({})).await, said);
    served.data(&served.admin, make, json!({})).await;
    let keys = served.data(&served.member, "{ apiKeys { id } }", json!({})).await["apiKeys"].take();
    let remove = "mutation Remove($id: Int!) { removeApiKey(id: $id) }";
    served.data(&served.member, remove, json!({"id": keys[1]["id"]})).await;
    served.data(&served.member, make, json!({})).await;
}

#[tokio::test]
async fn a_key_makes_none_that_ends_later_than_it() {
    let served = Served::new().await;
    let (now, day) = (still().as_millisecond(), 86_400_000);
    let own = served.store.add_key(&by("lin"), "own", Scope::Full, now + 2 * day, now).await.unwrap();
    let own = ("authorization", own.expose_secret().to_owned());
    let mut told = Vec::new();
    for days in [1, 2, 3, 366] {
        let make = "mutation Make($name: String!, $days: Int!) { createApiKey(name: $name, scope: \"full\", days: $days) { endsAt } }";
        let made = served.data(&own, make, json!({"name": days.to_string(), "days": days})).await;
        told.push((days.to_string(), made["createApiKey"]["endsAt"].clone()));
    }
    let listed = served.data(&own, "{ apiKeys { name endsAt } }", json!({})).await;
    let ends = |name: &str| {
        let found = listed["apiKeys"].as_array().unwrap().iter().find(|key| key["name"] == name);
        found.unwrap()["endsAt"].clone()
    };
    assert_ne!(ends("1"), ends("own"));
    for name in ["2", "3", "366"] {
        assert_eq!(ends(name), ends("own"), "{name}");
    }
    for (name, said) in told {
        assert_eq!(said, ends(&name), "{name}");
    }
}

#[tokio::test]
async fn keys_that_were_made_with_a_key_are_none_once_it_is_taken_back() {
    let served = Served::new().await;
    let make = "mutation { createApiKey(name: \"next\", scope: \"full\") { key } }";
    let next = async |with: &Credential| {
        let made = served.data(with, make, json!({})).await;
        ("authorization", made["createApiKey"]["key"].as_str().unwrap().to_owned())
    };
    let first = next(&served.member).await;
    let second = next(&first).await;
    let third = next(&second).await;
    let listed = async || {
        let listed = served.data(&served.member, "{ apiKeys { id } }", json!({})).await;
        listed["apiKeys"].as_array().unwrap().iter().map(|key| key["id"].clone()).collect::<Vec<_>>()
    };
    let before = listed().await;
    assert_eq!(before.len(), 4);
    let remove = "mutation Remove($id: Int!) { removeApiKey(id: $id) }";
    served.data(&served.member, remove, json!({"id": before[1]})).await;
    assert_eq!(listed().await, before[..1]);
    for key in [first, second, third] {
        let response = served.ask(&key, make, &json!({})).send().await.unwrap();
        let said = "this key, token or session is not known, or has ended\n".to_owned();
        assert_eq!(told(response).await, (401, said));
    }
}
