//! What Bitbucket Server, now Data Center, answers, as Atlassian's description of its REST API has it.

use serde_json::{Value, json};

use super::{Asked, Provider, Pull, Said};

const PULLS: &str = "/projects/team/repos/mono/pull-requests";

fn refused(status: u16, message: &str) -> Said {
    let error = json!({"context": null, "message": message, "exceptionName": null});
    Said::new(status, json!({"errors": [error]}))
}

fn page(values: &Value) -> Said {
    let size = values.as_array().unwrap().len();
    Said::new(200, json!({"size": size, "limit": 100, "isLastPage": true, "start": 0, "values": values}))
}

/// Answers whoever the token is of.
pub(super) fn answer(provider: &Provider, asked: &Asked, token: &str, login: &str) -> Said {
    // A name may be an address: a header has it as an address of pages would, and paths have another.
    let slug = login.replace('@', "_");
    let probed = format!("/users/{slug}/repos");
    match (&*asked.method, &*asked.path) {
        // A token that it does not know is nobody's.
        ("HEAD", "/application-properties") if token == "silent" => Said::new(200, Value::Null),
        ("HEAD", "/application-properties") => {
            Said::new(200, Value::Null).with("x-ausername", &login.replace('@', "%40"))
        }
        ("POST", path) if path == probed && token == "reads" => {
            refused(401, "You are not permitted to access this resource")
        }
        ("POST", path) if path == probed => {
            assert_eq!(asked.text("name"), "!invalid", "nothing may come of it");
            refused(400, "Repository names must start with a letter or number.")
        }
        ("GET", "/users") => {
            let user = |name: &str, display: &str| json!({"name": name, "slug": name.replace('@', "_"), "displayName": display, "emailAddress": format!("{name}@example.com")});
            page(&json!([user("another", "Not them"), user(asked.value("filter"), "Ada L.")]))
        }
        ("GET", "/projects") => page(&json!([{"key": "team", "id": 3, "type": "NORMAL"}])),
        ("GET", "/repos") => match (asked.value("permission"), asked.value("start")) {
            ("REPO_READ", "0") => Said::new(
                200,
                json!({
                    "size": 1, "limit": 30, "isLastPage": false, "start": 0, "nextPageStart": 7,
                    "values": [repository(provider)],
                }),
            ),
            ("REPO_READ", "7") => page(&json!([])),
            _ => refused(400, "another page was meant"),
        },
        ("GET", "/projects/team/repos/mono") => Said::new(200, repository(provider)),
        ("GET", "/projects/team/repos/mono/branches/default") => {
            Said::new(200, json!({"id": "refs/heads/main", "displayId": "main", "isDefault": true}))
        }
        ("GET", PULLS) => {
            let head = asked.value("at").strip_prefix("refs/heads/").unwrap_or_default();
            if asked.value("direction") != "OUTGOING" || asked.value("state") != "OPEN" {
                return refused(400, "those of another direction are meant");
            }
            let fork = json!({
                "id": 90, "title": "Of a fork", "fromRef": side(head, 9), "toRef": side("main", 5), "links": {},
            });
            let all = provider.looked_at();
            let own = all.iter().filter(|pull| pull.head == head).map(|pull| told(provider, pull));
            page(&[fork].into_iter().chain(own).collect())
        }
        ("POST", PULLS) => open(provider, asked, login),
        _ => refused(404, "There is nothing here."),
    }
}

fn open(provider: &Provider, asked: &Asked, login: &str) -> Said {
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    let branch = |side: &str| {
        let side = &body[side];
        let is_here = side["repository"] == json!({"slug": "mono", "project": {"key": "team"}});
        side["id"]
            .as_str()
            .filter(|_| is_here)
            .and_then(|id| id.strip_prefix("refs/heads/"))
            .map(str::to_owned)
    };
    let (Some(head), Some(base)) = (branch("fromRef"), branch("toRef")) else {
        return refused(400, "Branches are to be named in full.");
    };
    if provider.is_open(&head, &base) {
        return refused(409, "Only one pull request may be open for a given source and target branch");
    }
    if provider.is_merged(&head, &base) {
        return refused(409, &format!("{head} is already up-to-date with branch {base}"));
    }
    let (title, description) = (asked.text("title"), asked.text("description"));
    let pull = provider.open(Pull { number: 0, by: login.to_owned(), title, description, head, base });
    Said::new(201, told(provider, &pull))
}

fn side(branch: &str, repository: u64) -> Value {
    json!({"id": format!("refs/heads/{branch}"), "displayId": branch, "repository": {"id": repository, "slug": "mono"}})
}

fn told(provider: &Provider, pull: &Pull) -> Value {
    let Pull { number, by, title, description, head, base } = pull;
    let page = format!("{}/projects/team/repos/mono/pull-requests/{number}", provider.url);
    json!({
        "id": number, "state": "OPEN", "title": title, "description": description,
        "author": {"user": {"name": by}}, "fromRef": side(head, 5), "toRef": side(base, 5),
        "links": {"self": [{"href": page}]},
    })
}

fn repository(provider: &Provider) -> Value {
    json!({
        "id": 5, "slug": "mono", "name": "mono", "public": false, "project": {"key": "team", "type": "NORMAL"},
        "links": {
            "self": [{"href": "https://git.example/projects/team/repos/mono/browse"}],
            "clone": [
                {"name": "ssh", "href": "ssh://git@git.example:7999/team/mono.git"},
                {"name": "http", "href": provider.clone_url()},
            ],
        },
    })
}
