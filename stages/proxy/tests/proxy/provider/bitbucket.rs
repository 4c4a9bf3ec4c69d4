//! What Bitbucket Cloud answers, as Atlassian's description of its REST API 2.0 and its changelog (CHANGE-2770, CHANGE-3022) have
//! it.

use serde_json::{Value, json};

use super::{Asked, Provider, Pull, Said, TOKEN};

fn refused(status: u16, message: &str) -> Said {
    Said::new(status, json!({"type": "error", "error": {"message": message}}))
}

fn page(values: &Value) -> Said {
    let size = values.as_array().unwrap().len();
    Said::new(200, json!({"pagelen": 50, "page": 1, "size": size, "values": values}))
}

/// Answers whoever the token is of, who has said a name.
pub(super) fn answer(provider: &Provider, asked: &Asked, token: &str, name: &str) -> Said {
    if !matches!(name, "ada@example.com" | "ada") {
        return refused(401, "Token is invalid, expired, or not supported for this endpoint.");
    }
    match (&*asked.method, &*asked.path) {
        ("GET", "/user") => {
            let user =
                json!({"account_id": "557058:7", "display_name": "Ada L.", "uuid": "{7}", "type": "user"});
            match token {
                "silent" => Said::new(200, user),
                "reads" => Said::new(200, user).with("x-oauth-scopes", "account, team, repository, webhook"),
                TOKEN => Said::new(200, user).with(
                    "x-oauth-scopes",
                    "read:user:bitbucket, read:workspace:bitbucket, admin:repository:bitbucket, \
                     write:repository:bitbucket, write:pullrequest:bitbucket, write:webhook:bitbucket",
                ),
                _ => Said::new(200, user)
                    .with("x-oauth-scopes", "account, team, webhook, repository:admin, pullrequest:write"),
            }
        }
        ("GET", "/user/workspaces") => {
            let access = |slug: &str| json!({"type": "workspace_access", "administrator": false, "workspace": {"slug": slug}});
            page(&json!([access("team"), access("alone")]))
        }
        ("GET", "/repositories/alone" | "/repositories/team") if asked.value("role") != "member" => {
            refused(400, "those of everybody are not meant")
        }
        ("GET", "/repositories/alone") => page(&json!([])),
        ("GET", "/repositories/team") => page(&json!([repository(provider)])),
        ("GET", "/repositories/team/mono") => Said::new(200, repository(provider)),
        ("GET", "/repositories/team/mono/pullrequests") => {
            let branches = asked.value("q").strip_prefix("state=\"OPEN\" AND source.branch.name=\"");
            let branches = branches.and_then(|rest| rest.strip_suffix('"'));
            let branches = branches.and_then(|rest| rest.split_once("\" AND destination.branch.name=\""));
            let Some((head, base)) = branches else { return refused(400, "Invalid query string") };
            let fork = side("feature", "{9}");
            let fork = json!({
                "id": 90, "title": "Of a fork", "source": fork, "destination": side(base, "{5}"), "links": {},
            });
            let own = provider.pulls_of(head, base);
            page(&[fork].into_iter().chain(own.iter().map(|pull| told(provider, pull))).collect())
        }
        ("POST", "/repositories/team/mono/pullrequests") => open(provider, asked),
        _ => refused(404, "There is no API hosted at this URL."),
    }
}

fn open(provider: &Provider, asked: &Asked) -> Said {
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    let branch = |side: &str| body[side]["branch"]["name"].as_str().unwrap_or_default().to_owned();
    let (head, base, title) = (branch("source"), branch("destination"), asked.text("title"));
    if title.is_empty() || head.is_empty() {
        return refused(400, "title: required key not provided");
    }
    if !provider.has_branch(&head) || !provider.has_branch(&base) {
        return refused(400, "source: branch not found");
    }
    if provider.is_merged(&head, &base) {
        return refused(400, "There are no changes to be pulled");
    }
    // Of one that is there it makes that one anew.
    let there =
        provider.pulls.lock().unwrap().iter().find(|pull| pull.head == head && pull.base == base).cloned();
    let pull = there.unwrap_or_else(|| {
        let description = asked.text("description");
        provider.open(Pull { number: 0, by: "Ada L.".to_owned(), title, description, head, base })
    });
    Said::new(201, told(provider, &pull))
}

fn side(branch: &str, repository: &str) -> Value {
    json!({"branch": {"name": branch}, "repository": {"uuid": repository, "full_name": "team/mono"}})
}

fn told(provider: &Provider, pull: &Pull) -> Value {
    let Pull { number, by, title, description, head, base } = pull;
    json!({
        "id": number, "state": "OPEN", "title": title, "description": description,
        "author": {"display_name": by}, "source": side(head, "{5}"), "destination": side(base, "{5}"),
        "links": {"html": {"href": format!("{}/team/mono/pull-requests/{number}", provider.url)}},
    })
}

fn repository(provider: &Provider) -> Value {
    // The name of whoever asks stands in the address that is cloned.
    let clone = provider.clone_url().replacen("http://", "http://ada@", 1);
    json!({
        "uuid": "{5}", "full_name": "team/mono", "is_private": true, "updated_on": "2026-11-01T10:00:00Z",
        "mainbranch": {"type": "branch", "name": "main"}, "project": {"key": "SHOP"},
        "links": {
            "html": {"href": "https://git.example/team/mono"}, "avatar": {"href": "https://git.example/a.png"},
            "clone": [
                {"name": "https", "href": clone}, {"name": "ssh", "href": "git@git.example:team/mono.git"},
            ],
        },
    })
}
