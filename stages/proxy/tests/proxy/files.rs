//! Repositories, their files, and commits: with the token of whoever asks, at a real Git server that knows them.

use futures::future::join_all;
use serde_json::{Value, json};
use stages_platform_store::{Account, Role, Scope};

use crate::provider::{TOKEN, git};
use crate::support::{Running, by, now};

/// An app proxy of a registered runtime with the integrations `hub` and `lab`.
pub(crate) async fn integrated() -> Running {
    let running = Running::start().await;
    running.register().await;
    running.cluster.remove(crate::cluster::GIT);
    for (name, provider) in [("hub", "GITHUB"), ("lab", "GITLAB")] {
        let add = format!(
            r#"mutation {{ addGitIntegration(args: {{name: "{name}", provider: {provider}, apiUrl: "{}", sharingPolicy: ALL_USERS_IN_ACCOUNT}}) {{ name }} }}"#,
            running.provider.url
        );
        running.data(&running.admin, &add).await;
    }
    running
}

/// The same with the repository `team/mono`.
pub(crate) async fn running(text: &str) -> (Running, std::path::PathBuf) {
    let mut running = integrated().await;
    let bare = running.provider.with_repository("a.yaml", text);
    (running, bare)
}

pub(crate) async fn register(running: &Running, key: &str, (name, token): (&str, &str)) {
    let register = format!(
        r#"mutation {{ registerToGitIntegration(args: {{name: "{name}", token: "{token}"}}) {{ name }} }}"#
    );
    running.data(key, &register).await;
}

pub(crate) fn commit(integration: &str, path: &str, data: &str, more: &str) -> String {
    format!(
        r#"mutation {{ commitFiles(args: {{integrationName: "{integration}", repo: "team/mono", files: [{{path: "{path}", data: {}{more}}}]}}) {{ sha message committer {{ name email }} }} }}"#,
        Value::from(data)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_branches_and_files_are_read_as_whoever_asks() {
    let (running, bare) = running("a: 1\n").await;
    let main = git(&bare, &["rev-parse", "main"]);
    git(&bare, &["update-ref", "refs/heads/feature/x", "main"]);
    git(&bare, &["tag", "v1", "main"]);
    let admin = &running.admin;
    let none = "'ada' has no token registered with the Git integration hub";
    let list = r#"{ gitRepositories(args: {integrationName: "hub"}) { page count hasNext data { id provider fullName isRepoPrivate openIssues ownerLogin org defaultBranch isRepoAdmin } } }"#;
    running.refuses(admin, list, none, "NOT_FOUND").await;
    for name in ["hub", "lab"] {
        register(&running, admin, (name, TOKEN)).await;
    }
    let found = running.data(admin, list).await;
    assert_eq!(
        found["gitRepositories"],
        json!({"page": 1, "count": 1, "hasNext": false, "data": [{
            "id": "1", "provider": "GITHUB", "fullName": "team/mono", "isRepoPrivate": true, "openIssues": 3,
            "ownerLogin": "team", "org": "team", "defaultBranch": "main", "isRepoAdmin": false,
        }]})
    );
    let second = list.replace("hub\"", "hub\", page: 2, limit: 1000");
    assert_eq!(running.data(admin, &second).await["gitRepositories"]["hasNext"], true);
    let of_lab = running.data(admin, &list.replace("hub", "lab")).await;
    let first = &of_lab["gitRepositories"]["data"][0];
    assert_eq!(
        (&first["provider"], &first["fullName"], &first["org"]),
        (&"GITLAB".into(), &"team/mono".into(), &"team".into())
    );
    for (name, organization) in [("hub", "team"), ("lab", "team/sub")] {
        let asked = format!(r#"{{ gitOrganizations(args: {{integrationName: "{name}"}}) {{ name }} }}"#);
        let found = running.data(admin, &asked).await;
        assert_eq!(found["gitOrganizations"], json!([{"name": organization}]));
        let asked = format!(
            r#"{{ repositoryBranchesAndTags(args: {{integrationName: "{name}", repo: "team/mono"}}) {{ branches tags }} }}"#
        );
        let found = running.data(admin, &asked).await;
        assert_eq!(
            found["repositoryBranchesAndTags"],
            json!({"branches": ["feature/x", "main"], "tags": ["v1"]})
        );
        let read = |at: &str, path: &str| {
            format!(
                r#"{{ readFile(args: {{integrationName: "{name}", repo: "team/mono", ref: "{at}", path: "{path}"}}) {{ path revision data }} }}"#
            )
        };
        for at in ["main", "feature/x", "v1", &main] {
            let found = running.data(admin, &read(at, "a.yaml")).await;
            assert_eq!(found["readFile"], json!({"path": "a.yaml", "revision": main, "data": "a: 1\n"}));
        }
        let missing = "there is no b.yaml in the repository";
        running.refuses(admin, &read("main", "b.yaml"), missing, "NOT_FOUND").await;
        assert_eq!(running.refused(admin, &read("other", "a.yaml")).await.1, "NOT_FOUND");
        let asked = format!(
            r#"{{ repositoryFiles(args: {{integrationName: "{name}", repo: "team/mono", ref: "main"}}) {{ revision files {{ path isDirectory }} }} }}"#
        );
        let found = running.data(admin, &asked).await;
        assert_eq!(
            found["repositoryFiles"],
            json!({"revision": main, "files": [{"path": "a.yaml", "isDirectory": false}]})
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_that_of_whoever_asks_and_stands_in_the_audit_log() {
    let (running, bare) = running("a: 1\n").await;
    running.allow("CREATE", "gitContexts", "").await;
    register(&running, &running.member, ("hub", "of-lin")).await;
    register(&running, &running.admin, ("lab", TOKEN)).await;
    let done = running.data(&running.member, &commit("hub", "deep/b.yaml", "b: 1\n", "")).await;
    let done = &done["commitFiles"];
    assert_eq!(done["message"], "Change deep/b.yaml\n");
    let email = "7+lin@users.noreply.127.0.0.1";
    assert_eq!(done["committer"], json!({"name": "lin", "email": email}));
    assert_eq!(git(&bare, &["rev-parse", "main"]), done["sha"].as_str().unwrap());
    assert_eq!(git(&bare, &["log", "-1", "--format=%an <%ae>", "main"]), format!("lin <{email}>"));
    assert_eq!(git(&bare, &["show", "main:deep/b.yaml"]), "b: 1");
    let delete = r#"mutation { deleteFiles(args: {integrationName: "lab", repo: "team/mono", branchName: "main", paths: ["deep/b.yaml"], msg: "Away", description: "It is not needed."}) { message } }"#;
    let deleted = running.data(&running.admin, delete).await;
    assert_eq!(deleted["deleteFiles"]["message"], "Away\n\nIt is not needed.\n");
    assert_eq!(git(&bare, &["ls-tree", "-r", "--name-only", "main"]), "a.yaml");
    assert_eq!(git(&bare, &["log", "-1", "--format=%an", "main"]), "ada.lovelace");
    let of = |who: &str, act: &str, what: &str| (who.to_owned(), act.to_owned(), what.to_owned());
    let rows = running.audit(6).await;
    assert_eq!(rows[0], of("ada", "deleteFiles", "prod/Git integration lab repository team/mono: done"));
    assert!(rows.contains(&of("lin", "commitFiles", "prod/Git integration hub repository team/mono: done")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_committed_is_refused_and_the_branch_stays() {
    let (running, bare) = running("a: 1\n").await;
    let admin = &running.admin;
    register(&running, admin, ("hub", TOKEN)).await;
    let old = git(&bare, &["rev-parse", "main"]);
    running.data(admin, &commit("hub", "a.yaml", "a: 2\n", "")).await;
    let now = git(&bare, &["rev-parse", "main"]);
    let refused = async |query: &str, said: &str, code: &str| {
        assert_eq!(running.refused(admin, query).await, (said.to_owned(), code.to_owned()));
        assert_eq!(git(&bare, &["rev-parse", "main"]), now);
    };
    let of_old = format!(r#", revision: "{old}""#);
    let conflict = "others have changed a.yaml meanwhile, and both changes do not go together: read it again";
    refused(&commit("hub", "a.yaml", "a: 3\n", &of_old), conflict, "CONFLICT").await;
    let nothing = "the files are so already: there is nothing to commit";
    refused(&commit("hub", "a.yaml", "a: 2\n", ""), nothing, "BAD_REQUEST").await;
    let outside = "../a cannot be written: it is not relative to the root of the repository";
    refused(&commit("hub", "../a", "", ""), outside, "BAD_REQUEST").await;
    let named = "a repository is named by its owner and its name, such as team/mono";
    let commits = commit("hub", "b", "", "");
    for repo in ["mono", "../mono", "team/mono/more", "https://git.example/team/mono.git"] {
        refused(&commits.replace("team/mono", repo), named, "BAD_REQUEST").await;
    }
    let none = "there is no repository team/other, or the token may not see it";
    refused(&commits.replace("team/mono", "team/other"), none, "NOT_FOUND").await;
    let none = "'ada' has no token registered with the Git integration lab";
    refused(&commit("lab", "b", "", ""), none, "NOT_FOUND").await;
    *running.provider.elsewhere.lock().unwrap() = Some("http://evil.example/git".to_owned());
    let elsewhere = "the provider says that the repository is at evil.example, and a token of 127.0.0.1 is not sent there";
    refused(&commits, elsewhere, "BAD_REQUEST").await;
    *running.provider.elsewhere.lock().unwrap() = None;
    register(&running, admin, ("hub", "fetches")).await;
    let reads = format!(
        "{}/git/team/mono.git takes no commits with the credentials of 'ada': they are wrong, expired, or may only read it",
        running.provider.url
    );
    refused(&commits, &reads, "PEER_REFUSED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_people_who_commit_to_one_file_at_once_none_is_lost() {
    let text = |own: &dyn Fn(usize) -> usize| -> String {
        (0..20).map(|number| format!("person{number}: {}\n#\n#\n#\n", own(number))).collect()
    };
    let (running, bare) = running(&text(&|_| 0)).await;
    let old = git(&bare, &["rev-parse", "main"]);
    let of_old = format!(r#", revision: "{old}""#);
    let mut asked = Vec::new();
    for number in 0..20 {
        let name = format!("person{number}");
        let account = Account { name: name.clone(), password: "$made-up".to_owned(), role: Role::Admin };
        assert!(running.store.add_person(&by("ada"), &account, now()).await.unwrap());
        let end = now() + 3_600_000;
        let key = running.store.add_key(&by(&name), "test", Scope::Full, end, now()).await.unwrap();
        let key = pipeline_core::ExposeSecret::expose_secret(&key).to_owned();
        register(&running, &key, ("hub", &format!("of-{name}"))).await;
        let own = text(&|of| usize::from(of == number));
        asked.push((key, commit("hub", "a.yaml", &own, &of_old)));
    }
    let done = join_all(asked.iter().map(|(key, query)| running.data(key, query))).await;
    let told: Vec<_> = done.iter().map(|done| done["commitFiles"]["sha"].as_str().unwrap()).collect();
    let log = git(&bare, &["rev-list", "main"]);
    assert_eq!(log.lines().count(), 21);
    assert!(told.iter().all(|sha| log.contains(sha)), "somebody was told of a commit that is not there");
    assert_eq!(format!("{}\n", git(&bare, &["show", "main:a.yaml"])), text(&|_| 1));
    let people = git(&bare, &["log", "-20", "--format=%an", "main"]);
    assert!((0..20).all(|number| people.lines().any(|line| line == format!("person{number}"))));
    // Nothing of a token is kept in a clone.
    let mut grep = std::process::Command::new("grep");
    let found =
        grep.args(["-rE", "of-person|canary"]).arg(running.folder.path().join("clones")).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
}
