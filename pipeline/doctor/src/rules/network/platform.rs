//! What the platform says: of the runtime by its own token, or of the user who registers it.

use serde_json::{Value as Json, json};

use super::{Asking, Request, Token, Way, said};
use crate::rules::{Judged, Severity};

const USER: &str = "global.codefresh.userToken";
const RUNTIME: &str = "global.codefresh.runtimeToken.secretKeyRef";
const ME: &str = "query me { me { id name isAdmin activeAccount { id name gitProvider gitApiUrl } } }";
const NAMED: &str = "query Runtime($name: String!) { runtime(name: $name) { metadata { name } } }";
const LIMITS: &str = "query limits { me { activeAccount { features { gitopsPlanEnforcement } } } \
                      limitsStatus { usage { clusters applications } limits { clusters applications } } }";

/// The Git server of an account.
pub(super) struct Account {
    pub(super) provider: String,
    pub(super) api: String,
}

pub(super) fn check(judged: &mut Judged, asking: &mut Asking<'_>) -> Option<Account> {
    let account = asked(judged, asking);
    if account.is_none() {
        asking.unmeasured("GR0204", "the platform was not asked as a user who registers a runtime");
    }
    account
}

fn asked(judged: &mut Judged, asking: &mut Asking<'_>) -> Option<Account> {
    let url = judged.text("global.codefresh.url").trim_end_matches('/').to_owned();
    if judged.is_skipped("GR0202") || url.is_empty() {
        return None;
    }
    if judged.truth("platform.enabled") {
        asking.unmeasured("GR0202", "the platform is installed by these values");
        return None;
    }
    let mut peer = Peer { url, way: authorities(judged, asking) };
    let request = Request::get(format!("{}/api/ping", peer.url), Vec::new(), &peer.way);
    asking.ask(judged, "GR0202", "global.codefresh.url", &request)?;
    // A runtime that is registered has a token of its own.
    if let Ok(token) = asking.token(judged, None, RUNTIME) {
        registered(judged, asking, &peer, &token);
        return None;
    }
    match asking.token(
        judged,
        Some("global.codefresh.userToken.token"),
        "global.codefresh.userToken.secretKeyRef",
    ) {
        Ok(token) => user(judged, asking, &mut peer, &token),
        Err(why) => {
            asking.unmeasured("GR0202", why);
            None
        }
    }
}

struct Peer {
    url: String,
    way: Way,
}

/// The authorities that the values give for the platform.
fn authorities(judged: &Judged, asking: &Asking<'_>) -> Way {
    let group = "global.codefresh.tls.caCerts";
    let inline = judged.text(&format!("{group}.secret.content"));
    let authorities = if judged.truth(&format!("{group}.secret.create")) {
        Some(inline.to_owned())
    } else {
        asking.token(judged, None, &format!("{group}.secretKeyRef")).ok().map(|pem| pem.text().to_owned())
    };
    Way { authorities, ..asking.way() }
}

/// What the platform says to a question. An error is what it says against it.
fn ask(
    judged: &mut Judged,
    asking: &mut Asking<'_>,
    peer: &Peer,
    token: &Token,
    question: (&str, &Json),
) -> Option<Result<Json, String>> {
    let request = Request {
        method: "POST",
        url: format!("{}/2.0/api/graphql", peer.url),
        headers: vec![("authorization", token.text().to_owned())],
        body: Some(json!({"query": question.0, "variables": question.1})),
        way: &peer.way,
    };
    let mut answer = asking.ask(judged, "GR0202", "global.codefresh.url", &request)?;
    let messages = answer.body["errors"].as_array().into_iter().flatten();
    let messages: Vec<&str> = messages.filter_map(|error| error["message"].as_str()).collect();
    Some(if !messages.is_empty() {
        Err(said(&messages.join("; "), token))
    } else if answer.status >= 400 {
        Err(format!("status {}", answer.status))
    } else {
        Ok(answer.body["data"].take())
    })
}

fn registered(judged: &mut Judged, asking: &mut Asking<'_>, peer: &Peer, token: &Token) {
    let name = judged.text("global.runtime.name").to_owned();
    let answer = ask(judged, asking, peer, token, (NAMED, &json!({"name": name})));
    let why = match answer {
        Some(Ok(data)) if data["runtime"].is_null() => format!("the platform knows no runtime {name}"),
        Some(Err(why)) => format!("the platform refuses the runtime's token: {why}"),
        Some(Ok(_)) | None => return,
    };
    let todo = "give the token that the registration of this very runtime made";
    judged.told(Severity::Error, "GR0202", RUNTIME, why, "the token of this runtime", todo);
}

fn user(judged: &mut Judged, asking: &mut Asking<'_>, peer: &mut Peer, token: &Token) -> Option<Account> {
    let me = match ask(judged, asking, peer, token, (ME, &json!({})))? {
        Ok(mut data) => data["me"].take(),
        Err(why) => {
            let found = format!("the platform refuses the user's token: {why}");
            let todo = "make a new API key of a user who is an administrator of the account";
            judged.told(Severity::Error, "GR0202", USER, found, "a token that the platform takes", todo);
            return None;
        }
    };
    let account = &me["activeAccount"];
    let text = |value: &Json| value.as_str().map_or_else(String::new, |text| said(text, token));
    let (user, id, title) = (text(&me["name"]), text(&account["id"]), text(&account["name"]));
    if me["isAdmin"] != true {
        let found = format!("the user {user} is no administrator of the account {title}");
        let todo = "take the API key of one who is";
        judged.told(Severity::Error, "GR0202", USER, found, "the token of an administrator", todo);
    }
    let path = "global.codefresh.accountId";
    let given = judged.text(path).to_owned();
    if !given.is_empty() && given != id {
        let found = format!("\"{given}\", and the user's token is of the account {id} ({title})");
        let todo = "correct the id, or switch the user to that account and make a new API key";
        judged.told(Severity::Error, "GR0202", path, found, "the id of the token's account", todo);
    }
    exists(judged, asking, peer, token);
    limits(judged, asking, peer, token);
    Some(Account { provider: text(&account["gitProvider"]), api: text(&account["gitApiUrl"]) })
}

/// Whether the name is taken.
fn exists(judged: &mut Judged, asking: &mut Asking<'_>, peer: &Peer, token: &Token) {
    let path = "global.runtime.name";
    let name = judged.text(path).to_owned();
    if name.is_empty() {
        return;
    }
    let found = match ask(judged, asking, peer, token, (NAMED, &json!({"name": name}))) {
        Some(Ok(data)) if !data["runtime"].is_null() => format!("the account has a runtime {name} already"),
        Some(Err(why)) if !why.contains("does not exist") => {
            format!("the platform does not say whether {name} is free: {why}")
        }
        _ => return,
    };
    let todo =
        "choose another name, or remove that runtime; one that was registered here has codefresh-token";
    judged.told(Severity::Error, "GR0202", path, found, "a name that no runtime of the account has", todo);
}

/// What the account's plan allows: a cluster more must fit in, and its applications must.
fn limits(judged: &mut Judged, asking: &mut Asking<'_>, peer: &Peer, token: &Token) {
    if judged.is_skipped("GR0204") {
        return;
    }
    let data = match ask(judged, asking, peer, token, (LIMITS, &json!({}))) {
        Some(Ok(data)) => data,
        Some(Err(why)) => return asking.unmeasured("GR0204", format!("the platform tells no limits: {why}")),
        None => return asking.unmeasured("GR0204", "the platform was not reached"),
    };
    if data["me"]["activeAccount"]["features"]["gitopsPlanEnforcement"] != true {
        return;
    }
    let (usage, limits) = (&data["limitsStatus"]["usage"], &data["limitsStatus"]["limits"]);
    for (name, more) in [("applications", 0), ("clusters", 1)] {
        let Some(limit) = limits[name].as_i64() else { continue };
        let found = match usage[name].as_i64() {
            None => format!("the platform tells a limit of {name}, and no usage"),
            Some(used) if used + more > limit => format!("{used} {name} of {limit}"),
            Some(_) => continue,
        };
        let wanted = if more > 0 { "room for one more" } else { "no more than the plan allows" };
        let todo = "remove some, or ask for a larger plan; --skip network does not look, nor does the hook with \
                    validation.skip: [network]";
        judged.told(Severity::Error, "GR0204", "", found, wanted, todo);
    }
}
