//! What Gitea, and Forgejo, answer, as the comments of `routers/api/v1/` in Gitea's repository have it.

use serde_json::{Value, json};

use super::{Asked, Provider, Pull, Said};

fn refused(status: u16, message: &str) -> Said {
    Said::new(status, json!({"message": message, "url": "https://git.example/api/swagger"}))
}

fn lacks(scope: &str) -> Said {
    refused(403, &format!("token does not have at least one of required scope(s), required=[{scope}]"))
}

/// Answers whoever the token is of.
pub(super) fn answer(provider: &Provider, asked: &Asked, token: &str, login: &str) -> Said {
    match (&*asked.method, &*asked.path) {
        ("GET", "/user") if token == "silent" => lacks("read:user"),
        ("GET", "/user") => Said::new(
            200,
            json!({"id": 7, "login": login, "full_name": "Ada L.", "email": "ada@example.com"}),
        ),
        ("POST", "/repos/migrate") if token == "reads" => lacks("write:repository"),
        ("POST", "/repos/migrate") => {
            assert_eq!(asked.body, b"{}", "nothing may come of it");
            refused(422, "[CloneAddr]: Required")
        }
        ("GET", "/user/orgs") => Said::new(200, json!([{"id": 3, "name": "team", "username": "team"}])),
        ("GET", "/user/repos") => match (asked.value("page"), asked.value("limit")) {
            ("1", "30") => Said::new(200, json!([repository(provider)])),
            _ => refused(422, "another page was meant"),
        },
        ("GET", "/repos/team/mono") => Said::new(200, repository(provider)),
        ("GET", "/repos/team/mono/pulls") => match (asked.value("state"), asked.value("page")) {
            ("open", "1") => {
                let fork = json!({
                    "number": 90, "title": "Of a fork", "html_url": "https://git.example/90",
                    "head": {"ref": "feature", "repo_id": 9}, "base": {"ref": "main", "repo_id": 5},
                });
                let next = r#"<https://git.example/api/v1/repos/team/mono/pulls?page=2>; rel="next""#;
                Said::new(200, json!([fork])).with("link", next)
            }
            ("open", "2") => {
                Said::new(200, provider.looked_at().iter().map(|pull| told(provider, pull)).collect())
            }
            _ => refused(422, "another page was meant"),
        },
        ("POST", "/repos/team/mono/pulls") => open(provider, asked, login),
        _ => refused(404, "The target couldn't be found."),
    }
}

fn open(provider: &Provider, asked: &Asked, login: &str) -> Said {
    let (head, base) = (asked.text("head"), asked.text("base"));
    if head == base {
        return refused(422, "Invalid PullRequest: There are no changes between the head and the base");
    }
    if !provider.has_branch(&head) || !provider.has_branch(&base) {
        return refused(404, "The target couldn't be found.");
    }
    if provider.is_open(&head, &base) {
        return refused(409, "pull request already exists for these targets");
    }
    let (title, description) = (asked.text("title"), asked.text("body"));
    let pull = provider.open(Pull { number: 0, by: login.to_owned(), title, description, head, base });
    Said::new(201, told(provider, &pull))
}

fn told(provider: &Provider, pull: &Pull) -> Value {
    let Pull { number, by, title, description, head, base } = pull;
    json!({
        "id": 1000 + number, "number": number, "state": "open", "title": title, "body": description,
        "user": {"login": by}, "head": {"ref": head, "repo_id": 5}, "base": {"ref": base, "repo_id": 5},
        "html_url": format!("{}/team/mono/pulls/{number}", provider.url),
    })
}

fn repository(provider: &Provider) -> Value {
    json!({
        "id": 5, "full_name": "team/mono", "private": true, "updated_at": "2026-11-01T10:00:00Z",
        "open_issues_count": 3, "clone_url": provider.clone_url(), "ssh_url": "git@git.example:team/mono.git",
        "owner": {"id": 3, "login": "team", "avatar_url": "https://git.example/a.png"},
        "default_branch": "main", "permissions": {"admin": false, "push": true, "pull": true},
        "html_url": "https://git.example/team/mono", "empty": false,
    })
}
