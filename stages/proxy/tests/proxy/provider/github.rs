//! What GitHub, and a server of GitHub Enterprise, answers: the operations that its own description has, as that has them.

use serde_json::{Value, json};

use super::description::operation;
use super::{Asked, Provider, Pull, Said};

/// Answers whoever the token is of: their name, and their scopes where GitHub says them.
pub(super) fn answer(provider: &Provider, asked: &Asked, login: &str, scopes: Option<&str>) -> Said {
    let of = match operation((&asked.method, &asked.path), &asked.query, &asked.body) {
        Ok(of) => of,
        Err((status, message)) => return refused(status, &message),
    };
    let said = of_operation(provider, asked, login, scopes);
    if said.status == of.success {
        of.answers(&said.body);
    }
    said
}

fn refused(status: u16, message: &str) -> Said {
    Said::new(status, json!({"message": message, "documentation_url": "https://docs.github.com/rest"}))
}

fn of_operation(provider: &Provider, asked: &Asked, login: &str, scopes: Option<&str>) -> Said {
    match (&*asked.method, &*asked.path) {
        ("GET", "/user") => {
            let said = Said::new(200, json!({"id": 7, "login": login, "email": null}));
            let said = match provider.ends.lock().unwrap().as_deref() {
                Some(day) => {
                    said.with("github-authentication-token-expiration", &format!("{day} 00:00:00 UTC"))
                }
                None => said,
            };
            scopes.map_or(said.clone(), |scopes| said.with("x-oauth-scopes", scopes))
        }
        ("GET", "/user/orgs") => Said::new(200, json!([{"login": "team", "id": 3}])),
        ("GET", "/user/repos") => {
            let said = Said::new(200, json!([repository(provider)]));
            match (asked.value("page"), asked.value("per_page"), asked.value("sort")) {
                ("2", "100", "full_name") => {
                    let link = r#"<https://git.example/api/v3/user/repos?page=3>; rel="next", <https://git.example/api/v3/user/repos?page=9>; rel="last""#;
                    said.with("link", link)
                }
                ("1", "30", "full_name") => said,
                _ => refused(400, "another page was meant"),
            }
        }
        ("GET", "/repos/team/mono") => Said::new(200, repository(provider)),
        ("GET", "/repos/team/mono/pulls") => {
            let Some(head) = asked.value("head").strip_prefix("team:") else {
                // Without an owner GitHub takes the filter for none at all.
                return refused(400, "head is to be an owner and a branch");
            };
            let found = provider.pulls_of(head, asked.value("base"));
            Said::new(200, found.iter().map(|pull| told(provider, pull)).collect())
        }
        ("POST", "/repos/team/mono/pulls") => {
            let (head, base) = (asked.text("head"), asked.text("base"));
            let invalid =
                |error: Value| Said::new(422, json!({"message": "Validation Failed", "errors": [error]}));
            let custom = |message: String| {
                invalid(json!({"resource": "PullRequest", "code": "custom", "message": message}))
            };
            for (field, branch) in [("head", &head), ("base", &base)] {
                if !provider.has_branch(branch) {
                    return invalid(json!({"resource": "PullRequest", "field": field, "code": "invalid"}));
                }
            }
            if provider.is_open(&head, &base) {
                return custom(format!("A pull request already exists for team:{head}."));
            }
            if provider.is_merged(&head, &base) {
                return custom(format!("No commits between {base} and {head}"));
            }
            let pull = provider.open(Pull {
                number: 0,
                by: login.to_owned(),
                title: asked.text("title"),
                description: asked.text("body"),
                head,
                base,
            });
            Said::new(201, told(provider, &pull))
        }
        _ => refused(404, "Not Found"),
    }
}

fn told(provider: &Provider, pull: &Pull) -> Value {
    let Pull { number, by, title, description, head, base } = pull;
    json!({
        "number": number, "state": "open", "title": title, "body": description, "user": {"login": by},
        "head": {"ref": head, "label": format!("team:{head}")}, "base": {"ref": base},
        "html_url": format!("{}/team/mono/pull/{number}", provider.url),
    })
}

fn repository(provider: &Provider) -> Value {
    json!({
        "id": 1, "full_name": "team/mono", "private": true, "pushed_at": "2026-11-01T10:00:00Z",
        "open_issues_count": 3, "clone_url": provider.clone_url(), "ssh_url": "git@git.example:team/mono.git",
        "owner": {"login": "team", "avatar_url": "https://git.example/a.png", "type": "Organization"},
        "default_branch": "main", "permissions": {"admin": false, "push": true},
        "html_url": "https://git.example/team/mono",
    })
}
