//! What GitLab answers, as its documentation has it (`doc/api/` of its repository: users, personal access tokens, projects, groups,
//! merge requests): what a field is called, and which are required.

use serde_json::{Value, json};

use super::{Asked, Provider, Pull, Said};

/// Answers whoever the token is of.
pub(super) fn answer(provider: &Provider, asked: &Asked, token: &str, scopes: &str) -> Said {
    match (&*asked.method, &*asked.path) {
        ("GET", "/personal_access_tokens/self") => {
            let scopes: Vec<&str> = scopes.split(", ").collect();
            let day = provider.ends.lock().unwrap().clone();
            Said::new(
                200,
                json!({"id": 4, "name": "mine", "active": true, "scopes": scopes, "expires_at": day}),
            )
        }
        ("GET", "/user") => {
            let (bot, name) = match token {
                "project" => (true, "project_7_bot_4ffca233d8298ea1"),
                _ => (false, "ada.lovelace"),
            };
            Said::new(200, json!({"id": 7, "username": name, "bot": bot}))
        }
        ("GET", "/projects") => {
            let query: Vec<_> = asked.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
            match &*query.join("&") {
                "page=1&per_page=30&membership=true&order_by=path&sort=asc" => {
                    Said::new(200, json!([project(provider)])).with("x-next-page", "")
                }
                _ => Said::new(400, json!({"message": "another page was meant"})),
            }
        }
        ("GET", "/projects/team%2Fmono") => Said::new(200, project(provider)),
        ("GET", "/groups") => Said::new(200, json!([{"full_path": "team/sub", "id": 3}])),
        ("GET", "/projects/2/merge_requests") => {
            if asked.value("state") != "opened" {
                return Said::new(400, json!({"error": "state does not have a valid value"}));
            }
            let found = provider.pulls_of(asked.value("source_branch"), asked.value("target_branch"));
            // That of a fork is listed as well.
            let fork = json!({
                "id": 90, "iid": 90, "title": "Of a fork", "web_url": "https://git.example/90",
                "source_project_id": 3, "target_project_id": 2,
            });
            Said::new(200, [fork].into_iter().chain(found.iter().map(|pull| told(provider, pull))).collect())
        }
        ("POST", "/projects/2/merge_requests") => open(provider, asked, scopes),
        _ => Said::new(404, json!({"message": "404 Not found"})),
    }
}

fn open(provider: &Provider, asked: &Asked, scopes: &str) -> Said {
    if !scopes.split(", ").any(|scope| scope == "api") {
        let more = "The request requires higher privileges than provided by the access token.";
        return Said::new(
            403,
            json!({"error": "insufficient_scope", "error_description": more, "scope": "api"}),
        );
    }
    let fields = ["title", "source_branch", "target_branch"];
    if let Some(field) = fields.into_iter().find(|field| asked.text(field).is_empty()) {
        return Said::new(400, json!({"error": format!("{field} is missing")}));
    }
    let (head, base) = (asked.text("source_branch"), asked.text("target_branch"));
    if provider.is_open(&head, &base) {
        let said = "Another open merge request already exists for this source branch: !1";
        return Said::new(409, json!({"message": [said]}));
    }
    let (title, description) = (asked.text("title"), asked.text("description"));
    let pull = Pull { number: 0, by: "ada.lovelace".to_owned(), title, description, head, base };
    Said::new(201, told(provider, &provider.open(pull)))
}

fn told(provider: &Provider, pull: &Pull) -> Value {
    let Pull { number, by, title, description, head, base } = pull;
    json!({
        "id": 1000 + number, "iid": number, "state": "opened", "title": title, "description": description,
        "author": {"username": by}, "source_branch": head, "target_branch": base,
        "source_project_id": 2, "target_project_id": 2,
        "web_url": format!("{}/team/mono/-/merge_requests/{number}", provider.url),
    })
}

fn project(provider: &Provider) -> Value {
    json!({
        "id": 2, "path_with_namespace": "team/mono", "visibility": "private",
        "last_activity_at": "2026-11-01T10:00:00Z", "open_issues_count": 4,
        "http_url_to_repo": provider.clone_url(), "ssh_url_to_repo": "git@git.example:team/mono.git",
        "default_branch": "main", "namespace": {"full_path": "team", "kind": "group", "avatar_url": null},
        "web_url": "https://git.example/team/mono",
    })
}
