//! The other providers: each is worked with as GitHub and GitLab are, and in its own words; and when tokens end.

use std::time::Duration;

use loadtest_sim::certificate::Authority;
use serde_json::{Value, json};
use stages_proxy::ProxyConfig;

use crate::files::{commit, register, running};
use crate::provider::{FINE_GRAINED, TOKEN, git};
use crate::support::Running;

/// What an integration with each is called here, and whether it wants to be told a name.
const OTHERS: [(&str, &str, bool); 3] =
    [("tea", "GITEA", false), ("cloud", "BITBUCKET", true), ("server", "BITBUCKET_SERVER", false)];

async fn add(running: &Running, (name, provider): (&str, &str)) -> Value {
    let add = format!(
        r#"mutation {{ addGitIntegration(args: {{name: "{name}", provider: {provider}, apiUrl: "{}", sharingPolicy: ALL_USERS_IN_ACCOUNT}}) {{ apiUrl }} }}"#,
        running.provider.url
    );
    running.data(&running.admin, &add).await["addGitIntegration"]["apiUrl"].clone()
}

fn registers((name, token): (&str, &str), username: Option<&str>) -> String {
    let username = username.map(|name| format!(r#", username: "{name}""#)).unwrap_or_default();
    format!(
        r#"mutation {{ registerToGitIntegration(args: {{name: "{name}", token: "{token}"{username}}}) {{ name }} }}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_files_commits_and_pull_requests_work_with_every_provider() {
    let (running, bare) = running("a: 1\n").await;
    let admin = &running.admin;
    let url = &running.provider.url;
    for (name, provider, is_named) in OTHERS {
        let root = match provider {
            "GITEA" => "/api/v1",
            "BITBUCKET" => "/2.0",
            _ => "/rest/api/1.0",
        };
        assert_eq!(add(&running, (name, provider)).await, json!(format!("{url}{root}")));
        running.data(admin, &registers((name, "all"), is_named.then_some("ada@example.com"))).await;
        let list = format!(
            r#"{{ gitRepositories(args: {{integrationName: "{name}"}}) {{ page count hasNext data {{ provider fullName isRepoPrivate ownerLogin webUrl }} }} gitOrganizations(args: {{integrationName: "{name}"}}) {{ name }} }}"#
        );
        let found = running.data(admin, &list).await;
        let page = &found["gitRepositories"];
        assert_eq!((&page["page"], &page["count"]), (&json!(1), &json!(1)), "{name}");
        assert_eq!(page["hasNext"], name == "server", "{name}");
        let first = &page["data"][0];
        assert_eq!(
            (&first["provider"], &first["fullName"], &first["isRepoPrivate"], &first["ownerLogin"]),
            (&json!(provider), &json!("team/mono"), &json!(true), &json!("team"))
        );
        let organizations: Vec<_> =
            found["gitOrganizations"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
        assert!(organizations.contains(&json!("team")), "{organizations:?}");
        let branches = format!(
            r#"{{ repositoryBranchesAndTags(args: {{integrationName: "{name}", repo: "team/mono"}}) {{ branches }} readFile(args: {{integrationName: "{name}", repo: "team/mono", ref: "main", path: "a.yaml"}}) {{ data }} repositoryFiles(args: {{integrationName: "{name}", repo: "team/mono", ref: "main"}}) {{ files {{ path }} }} }}"#
        );
        let found = running.data(admin, &branches).await;
        assert!(found["repositoryBranchesAndTags"]["branches"].as_array().unwrap().contains(&json!("main")));
        assert_eq!(found["readFile"]["data"], "a: 1\n");
        assert_eq!(found["repositoryFiles"]["files"][0]["path"], "a.yaml");
        let path = format!("{name}.yaml");
        let done = running.data(admin, &commit(name, &path, "x: 1\n", "")).await;
        assert_eq!(git(&bare, &["rev-parse", "main"]), done["commitFiles"]["sha"].as_str().unwrap());
        let said = git(&bare, &["log", "-1", "--format=%an <%ae>", "main"]);
        let email = if name == "server" { "ada-lovelace@example.com" } else { "ada@example.com" };
        assert_eq!(said, format!("Ada L. <{email}>"), "{name}");
        let branch = format!("feature-{name}");
        let branched = commit(name, "b.yaml", "b: 1\n", "")
            .replace("repo:", &format!(r#"branchName: "{branch}", baseRef: "main", repo:"#));
        running.data(admin, &branched).await;
        let pull = format!(
            r#"mutation {{ createPullRequest(args: {{integrationName: "{name}", repo: "team/mono", head: "{branch}", title: "Of {name}", description: "More"}}) {{ number title url head base isNew }} }}"#
        );
        let number = running.provider.pulls.lock().unwrap().len() + 1;
        let made = running.data(admin, &pull).await["createPullRequest"].clone();
        let page = match provider {
            "GITEA" => format!("{url}/team/mono/pulls/{number}"),
            "BITBUCKET" => format!("{url}/team/mono/pull-requests/{number}"),
            _ => format!("{url}/projects/team/repos/mono/pull-requests/{number}"),
        };
        let expected = json!({
            "number": number, "title": format!("Of {name}"), "url": page, "head": branch, "base": "main", "isNew": true,
        });
        assert_eq!(made, expected);
        let again = running.data(admin, &pull.replace("Of ", "Again ")).await["createPullRequest"].clone();
        assert_eq!(
            (&again["number"], &again["title"], &again["isNew"]),
            (&made["number"], &made["title"], &json!(false))
        );
        let kept = running.provider.pulls.lock().unwrap().last().cloned().unwrap();
        assert_eq!((kept.title, kept.description), (format!("Of {name}"), "More".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_any_provider_is_told_in_its_words() {
    let (running, bare) = running("a: 1\n").await;
    git(&bare, &["branch", "same", "main"]);
    let admin = &running.admin;
    for (name, provider, is_named) in OTHERS {
        add(&running, (name, provider)).await;
        running.data(admin, &registers((name, "all"), is_named.then_some("ada@example.com"))).await;
        let pull = format!(
            r#"mutation {{ createPullRequest(args: {{integrationName: "{name}", repo: "team/mono", head: "same", title: "None"}}) {{ number }} }}"#
        );
        let said = match provider {
            "BITBUCKET" => "(400): There are no changes to be pulled",
            "BITBUCKET_SERVER" => "(409): same is already up-to-date with branch main",
            // Gitea takes it, and shows that there is nothing.
            _ => continue,
        };
        let said = format!("the Git provider refused to open the pull request {said}");
        running.refuses(admin, &pull, &said, "PEER_REFUSED").await;
        let missing = pull.replace("team/mono", "team/other");
        let none = "there is no repository team/other, or the token may not see it";
        running.refuses(admin, &missing, none, "NOT_FOUND").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_too_little_is_refused_by_every_provider() {
    let (running, _) = running("a: 1\n").await;
    let refused = async |query: String, said: &str| {
        running.wrong(&query, said).await;
    };
    for (name, provider, is_named) in OTHERS {
        add(&running, (name, provider)).await;
        let username = is_named.then_some("ada");
        let gone = format!(
            "{provider} does not take this token: it has ended, or is that of another server, or may too little"
        );
        refused(registers((name, "nobodys"), username), &gone).await;
        let (reads, silent) = match provider {
            "GITEA" => (
                "it has not the scope write:repository",
                "the token may too little: it has not the scope read:user",
            ),
            "BITBUCKET" => ("it has not the scope repository:admin", "missing scopes header on response"),
            _ => ("it has not the permission of a project's admin", gone.as_str()),
        };
        refused(registers((name, "reads"), username), &format!("the token may too little: {reads}")).await;
        refused(registers((name, "silent"), username), silent).await;
    }
    let whose =
        "BITBUCKET wants to know whose the token is: give username, which is an address with an API token";
    for name in [None, Some(""), Some("a:b"), Some("a b")] {
        refused(registers(("cloud", "all"), name), whose).await;
    }
    let gone =
        "BITBUCKET does not take this token: it has ended, or is that of another server, or may too little";
    refused(registers(("cloud", "all"), Some("eve")), gone).await;
    // An API token has scopes of other names than an app password.
    running.data(&running.admin, &registers(("cloud", TOKEN), Some("ada@example.com"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_it_is_not_looked_what_tokens_may_each_that_is_known_is_taken() {
    let any = |config| ProxyConfig { takes_any_git_token: true, ..config };
    let running = Running::made(Duration::ZERO, any).await;
    running.register().await;
    *running.provider.ends.lock().unwrap() = Some("2027-01-31".to_owned());
    let with = |name, token, is_named: bool| registers((name, token), is_named.then_some("ada@example.com"));
    for (name, provider, is_named) in
        OTHERS.into_iter().chain([("hub", "GITHUB", false), ("lab", "GITLAB", false)])
    {
        add(&running, (name, provider)).await;
        running.data(&running.admin, &with(name, "reads", is_named)).await;
        let gone = format!(
            "{provider} does not take this token: it has ended, or is that of another server, or may too little"
        );
        running.wrong(&with(name, "nobodys", is_named), &gone).await;
    }
    running.data(&running.admin, &with("hub", FINE_GRAINED, false)).await;
    let asked = r#"{ gitToken(integrationName: "hub") { username expiresAt } }"#;
    let found = running.data(&running.admin, asked).await;
    assert_eq!(found["gitToken"], json!({"username": "ada-lovelace", "expiresAt": "2027-01-31T00:00:00Z"}));
    let update = format!(
        r#"mutation {{ updateRuntimeGitToken(args: {{provider: GITHUB, apiUrl: "{}", token: "{FINE_GRAINED}"}}) {{ username }} }}"#,
        running.provider.url
    );
    assert_eq!(
        running.data(&running.admin, &update).await["updateRuntimeGitToken"]["username"],
        "ada-lovelace"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_authority_is_of_its_own_is_called_where_that_is_trusted() {
    let (authority, folder) = (Authority::new().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("authorities.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    for ca_file in [None, Some(file)] {
        let is_trusted = ca_file.is_some();
        let trusting = |config| ProxyConfig { git_ca_file: ca_file, ..config };
        let running = Running::made(Duration::ZERO, trusting).await;
        let (secured, _server) = running.provider.secured(&authority).await;
        for provider in ["GITHUB", "GITLAB", "BITBUCKET_SERVER"] {
            let query = format!(
                r#"{{ validateGitProvider(args: {{provider: {provider}, apiUrl: "{}", token: "{TOKEN}"}}) {{ username }} }}"#,
                secured.url
            );
            match is_trusted {
                true => {
                    let found = running.data(&running.admin, &query).await;
                    assert!(found["validateGitProvider"]["username"].is_string(), "{provider}: {found}");
                }
                false => {
                    let (said, code) = running.refused(&running.admin, &query).await;
                    // A machine may have no authorities at all.
                    let is_away = matches!(&*code, "PEER_AWAY" | "BAD_REQUEST");
                    assert!(is_away && !said.contains(TOKEN), "{said} {code}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_said_when_a_token_ends() {
    let (running, _) = running("a: 1\n").await;
    let admin = &running.admin;
    *running.provider.ends.lock().unwrap() = Some("2027-01-31".to_owned());
    add(&running, ("tea", "GITEA")).await;
    for (name, username, ends) in [
        ("hub", "ada-lovelace", json!("2027-01-31T00:00:00Z")),
        ("lab", "ada.lovelace", json!("2027-01-31T00:00:00Z")),
        ("tea", "ada-lovelace", Value::Null),
    ] {
        register(&running, admin, (name, "all")).await;
        let asked = format!(
            r#"{{ gitToken(integrationName: "{name}") {{ userId username expiresAt }} gitIntegration(name: "{name}") {{ users {{ userId isValid expiresAt }} }} }}"#
        );
        let found = running.data(admin, &asked).await;
        assert_eq!(found["gitToken"], json!({"userId": "ada", "username": username, "expiresAt": ends}));
        let users = json!([{"userId": "ada", "isValid": true, "expiresAt": ends}]);
        assert_eq!(found["gitIntegration"]["users"], users);
    }
    let none = "'lin' has no token registered with the Git integration hub";
    running.allow("VIEW", "gitContexts", "").await;
    let asked = r#"{ gitToken(integrationName: "hub") { username } }"#;
    running.refuses(&running.member, asked, none, "NOT_FOUND").await;
}
