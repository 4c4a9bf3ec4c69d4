//! Commits to new branches and to empty repositories, and pull requests: as whoever asks, at providers that answer as they document.

use std::path::Path;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::files::{commit, register, running};
use crate::provider::{Pull, TOKEN, git};
use crate::support::Running;

/// A commit to a new branch of `main`.
fn branched(integration: &str, branch: &str, path: &str) -> String {
    commit(integration, path, "x: 1\n", "")
        .replace("repo:", &format!(r#"branchName: "{branch}", baseRef: "main", repo:"#))
}

fn pull(integration: &str, head: &str, more: &str) -> String {
    format!(
        r#"mutation {{ createPullRequest(args: {{integrationName: "{integration}", repo: "team/mono", head: "{head}", title: "Feature", {more}}}) {{ number title url head base isNew }} }}"#
    )
}

/// What was opened, but for the number and who did.
async fn opened(running: &Running, key: &str, query: &str) -> Value {
    let mut found = running.data(key, query).await["createPullRequest"].clone();
    assert!(found["url"].as_str().unwrap().starts_with(&running.provider.url), "{found}");
    found.as_object_mut().unwrap().remove("url");
    found
}

fn refs(bare: &Path) -> String {
    git(bare, &["for-each-ref"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_to_a_new_branch_becomes_a_pull_request_of_whoever_asks() {
    let (running, bare) = running("a: 1\n").await;
    running.allow("CREATE", "gitContexts", "").await;
    register(&running, &running.member, ("hub", "of-lin")).await;
    register(&running, &running.member, ("lab", "all")).await;
    let main = git(&bare, &["rev-parse", "main"]);
    for (name, by, path) in [("hub", "lin", "pull/1"), ("lab", "ada.lovelace", "-/merge_requests/2")] {
        let branch = format!("feature/{name}");
        let done = running.data(&running.member, &branched(name, &branch, "b.yaml")).await;
        let sha = done["commitFiles"]["sha"].as_str().unwrap().to_owned();
        assert_eq!(git(&bare, &["rev-parse", &branch]), sha);
        assert_eq!(git(&bare, &["rev-parse", &format!("{branch}~1")]), main);
        let found = running
            .data(&running.member, &pull(name, &branch, r#"description: "It is needed.""#))
            .await["createPullRequest"]
            .clone();
        let number = if name == "hub" { 1 } else { 2 };
        assert_eq!(
            found,
            json!({
                "number": number, "title": "Feature", "head": branch, "base": "main", "isNew": true,
                "url": format!("{}/team/mono/{path}", running.provider.url),
            })
        );
        let pull = Pull {
            number,
            by: by.to_owned(),
            title: "Feature".to_owned(),
            description: "It is needed.".to_owned(),
            head: branch.clone(),
            base: "main".to_owned(),
        };
        assert_eq!(running.provider.pulls.lock().unwrap().last(), Some(&pull));
        // Two integrations and two tokens came before.
        let told = running.audit(if name == "hub" { 6 } else { 8 }).await;
        let place = format!("prod/Git integration {name} repository team/mono branch {branch}: done");
        assert!(told.contains(&("lin".to_owned(), "createPullRequest".to_owned(), place)), "{told:?}");
    }
    assert_eq!(git(&bare, &["rev-parse", "main"]), main);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_that_is_there_for_the_same_branches_is_given_instead_of_another() {
    let (running, _) = running("a: 1\n").await;
    let admin = &running.admin;
    for name in ["hub", "lab"] {
        register(&running, admin, (name, "all")).await;
        let branch = format!("feature-{name}");
        running.data(admin, &branched(name, &branch, "b.yaml")).await;
        let other = format!("other-{name}");
        running.data(admin, &branched(name, &other, "c.yaml")).await;
        let number = running.provider.pulls.lock().unwrap().len() + 1;
        let of = |is_new| json!({"number": number, "title": "Feature", "head": branch, "base": "main", "isNew": is_new});
        assert_eq!(opened(&running, admin, &pull(name, &branch, "")).await, of(true));
        let again = pull(name, &branch, "").replace("Feature", "Another");
        assert_eq!(opened(&running, admin, &again).await, of(false));
        // Somebody else was faster, after it was looked for.
        running.provider.unseen.store(1, Ordering::SeqCst);
        assert_eq!(opened(&running, admin, &again).await, of(false));
        // Into another branch it is another.
        let into = pull(name, &branch, &format!(r#"base: "{other}""#));
        assert_eq!(opened(&running, admin, &into).await["number"], number + 1);
        // Its answer was lost: it is there, once.
        running.provider.loses.store(true, Ordering::SeqCst);
        let lost = opened(&running, admin, &pull(name, &other, "")).await;
        assert_eq!((&lost["number"], &lost["head"]), (&json!(number + 2), &json!(other)));
        assert_eq!(running.provider.pulls.lock().unwrap().len(), number + 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_request_that_cannot_be_opened_is_refused_and_says_why() {
    let (running, bare) = running("a: 1\n").await;
    let admin = &running.admin;
    let none = "'ada' has no token registered with the Git integration hub";
    let refused = async |query: &str, said: &str, code: &str| {
        assert_eq!(running.refused(admin, query).await, (said.to_owned(), code.to_owned()));
        assert!(running.provider.pulls.lock().unwrap().is_empty());
    };
    refused(&pull("hub", "feature", ""), none, "NOT_FOUND").await;
    register(&running, admin, ("hub", "all")).await;
    register(&running, admin, ("lab", TOKEN)).await;
    running.data(admin, &branched("hub", "feature", "b.yaml")).await;
    git(&bare, &["branch", "same", "main"]);
    let same = "head and base are the same branch: there is nothing to merge";
    refused(&pull("hub", "main", ""), same, "BAD_REQUEST").await;
    let gone = "there is no branch gone in the repository";
    refused(&pull("hub", "gone", ""), gone, "NOT_FOUND").await;
    refused(&pull("lab", "feature", r#"base: "gone""#), gone, "NOT_FOUND").await;
    let nothing = "the Git provider refused to open the pull request (422): No commits between main and same";
    refused(&pull("hub", "same", ""), nothing, "PEER_REFUSED").await;
    let less =
        "GITLAB does not take this token: it has ended, or is that of another server, or may too little";
    refused(&pull("lab", "feature", ""), less, "BAD_REQUEST").await;
    let title = "a title is one line of at most 255 characters";
    for text in ["", "  ", "two\\nlines", &"x".repeat(256)] {
        refused(&pull("hub", "feature", "").replace("Feature", text), title, "BAD_REQUEST").await;
    }
    let long = format!(r#"description: "{}""#, "x".repeat(32_769));
    let description = "a description has at most 32768 bytes, none of them 0";
    refused(&pull("hub", "feature", &long), description, "BAD_REQUEST").await;
    let none = "there is no repository team/other, or the token may not see it";
    refused(&pull("hub", "feature", "").replace("team/mono", "team/other"), none, "NOT_FOUND").await;
    let may_not = "'lin' may not: no rule of a team of theirs allows CREATE of gitContexts";
    running.refuses(&running.member, &pull("hub", "feature", ""), may_not, "FORBIDDEN").await;
    assert!(running.provider.pulls.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_committed_for_a_pull_request_that_nothing_takes() {
    let (running, bare) = running("a: 1\n").await;
    let admin = &running.admin;
    for name in ["hub", "lab"] {
        register(&running, admin, (name, "all")).await;
    }
    let main = git(&bare, &["rev-parse", "main"]);
    let short = git(&bare, &["rev-parse", "--short=7", "main"]);
    git(&bare, &["tag", "v1", "main"]);
    git(&bare, &["tag", "-a", "-m", "Two", "v2", "main"]);
    git(&bare, &["branch", "feature", "main"]);
    // A branch may be called like a commit or a tag: then it is one.
    for called in ["abcdef1", "both"] {
        git(&bare, &["branch", called, "main"]);
    }
    git(&bare, &["tag", "both", "main"]);
    let before = refs(&bare);
    let of = |what: &str| {
        format!(
            "{what}, and a pull request is merged into a branch: commit to the branch that it was made of, and have the application \
             follow that branch, or what is tagged of it next"
        )
    };
    let none = "there is no branch gone in the repository".to_owned();
    for (target, said, code) in [
        ("v1", of("v1 is a tag"), "BAD_REQUEST"),
        ("v2", of("v2 is a tag"), "BAD_REQUEST"),
        (&main, of(&format!("{main} is a commit")), "BAD_REQUEST"),
        (&short, of(&format!("{short} is a commit")), "BAD_REQUEST"),
        ("gone", none, "NOT_FOUND"),
    ] {
        for name in ["hub", "lab"] {
            let to = format!(r#"targetBranch: "{target}", repo:"#);
            let delete = r#"mutation { deleteFiles(args: {integrationName: "hub", repo: "team/mono", branchName: "away", baseRef: "main", paths: ["a.yaml"]}) { sha } }"#;
            for query in [
                branched(name, "change", "b.yaml").replace("repo:", &to),
                delete.replace("repo:", &to),
                pull(name, "feature", &format!(r#"base: "{target}""#)),
            ] {
                let refused = running.refused(admin, &query).await;
                assert_eq!(refused, (said.clone(), code.to_owned()), "{query}");
            }
        }
        assert_eq!(refs(&bare), before, "{target}");
    }
    assert!(running.provider.pulls.lock().unwrap().is_empty());
    for (number, target) in ["main", "abcdef1", "both"].into_iter().enumerate() {
        let branch = format!("change-{number}");
        let query = branched("hub", &branch, "b.yaml");
        let query = query.replace("repo:", &format!(r#"targetBranch: "{target}", repo:"#));
        let done = running.data(admin, &query).await;
        assert_eq!(
            git(&bare, &["rev-parse", &format!("refs/heads/{branch}")]),
            done["commitFiles"]["sha"].as_str().unwrap()
        );
        // The provider here asks Git for what has two names.
        if target != "both" {
            let base = format!(r#"base: "{target}""#);
            assert_eq!(opened(&running, admin, &pull("hub", &branch, &base)).await["base"], target);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_branch_that_cannot_be_made_is_refused_and_no_branch_changes() {
    let (running, bare) = running("a: 1\n").await;
    let admin = &running.admin;
    register(&running, admin, ("hub", TOKEN)).await;
    let before = refs(&bare);
    let refused = async |query: &str, said: &str, code: &str| {
        assert_eq!(running.refused(admin, query).await, (said.to_owned(), code.to_owned()));
        assert_eq!(refs(&bare), before);
    };
    let there = "there is a branch main already: commit to it as it is, or name another one";
    refused(&branched("hub", "main", "b.yaml"), there, "CONFLICT").await;
    let called = "branchName is to say how the new branch is called";
    refused(&branched("hub", "x", "b.yaml").replace(r#"branchName: "x", "#, ""), called, "BAD_REQUEST").await;
    let none = format!("{}/git/team/mono.git has no branch, tag or commit gone", running.provider.url);
    refused(&branched("hub", "x", "b.yaml").replace(r#""main""#, r#""gone""#), &none, "NOT_FOUND").await;
    refused(&branched("hub", "a..b", "b.yaml"), "a..b cannot be the name of a branch", "BAD_REQUEST").await;
    let delete = r#"mutation { deleteFiles(args: {integrationName: "hub", repo: "team/mono", branchName: "away", baseRef: "main", paths: ["a.yaml"]}) { sha } }"#;
    running.data(admin, delete).await;
    assert_eq!(git(&bare, &["ls-tree", "-r", "--name-only", "away"]), "");
    assert_eq!(git(&bare, &["ls-tree", "-r", "--name-only", "main"]), "a.yaml");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_commit_of_an_empty_repository_is_made_as_any_other() {
    let running = crate::files::integrated().await;
    let bare = running.provider.with_empty_repository();
    let admin = &running.admin;
    register(&running, admin, ("hub", TOKEN)).await;
    let done = running.data(admin, &commit("hub", "deep/b.yaml", "b: 1\n", "")).await;
    assert_eq!(git(&bare, &["rev-parse", "main"]), done["commitFiles"]["sha"].as_str().unwrap());
    assert_eq!(git(&bare, &["rev-list", "--count", "main"]), "1");
    running.data(admin, &commit("hub", "c.yaml", "c: 1\n", "")).await;
    assert_eq!(git(&bare, &["ls-tree", "-r", "--name-only", "main"]), "c.yaml\ndeep/b.yaml");
    git(&bare, &["fsck", "--strict", "--full"]);
}
