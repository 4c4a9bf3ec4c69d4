//! Users: invited, given a role and teams, kept out, let in again, taken away.

use axum::response::{IntoResponse as _, Redirect, Response};
use jiff::SignedDuration;
use stages_platform_store::{Account, Identity, Role, check_team};
use url::form_urlencoded;

use super::{SignedInRequest, identity};
use crate::console::handlers::HandlerResult;
use crate::page::settings::{Said, people as page};
use crate::session::{account_name, token};

/// A link by which somebody sets a password is good for so long.
const LINK_HOURS: i64 = 72;
/// Teams that somebody is in, and how long a name of one is.
const TEAMS: usize = 50;
const TEAM: usize = 100;
/// How long a subject of a provider is.
const SUBJECT: usize = 255;

async fn listed(request: &SignedInRequest, chosen: &str, said: &Said<'_>) -> HandlerResult {
    let people = request.stored(request.store().people()).await?;
    let rules = request.stored(request.store().rules()).await?;
    let linked = request.stored(identity::of(&request.console, chosen)).await?;
    let looks = page::Looks { own: &request.session.user, now: request.now() };
    Ok(request.shown(&page::page(&people, &rules, (chosen, linked.as_ref()), &looks, said)))
}

fn to(name: &str) -> Response {
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    Redirect::to(&format!("/settings/users?name={name}")).into_response()
}

fn wrong_teams(teams: &[String]) -> Option<&'static str> {
    let well = teams.len() <= TEAMS && teams.iter().all(|team| team.chars().count() <= TEAM);
    if !well {
        return Some("Somebody is in at most 50 teams, each of a name of at most 100 characters.");
    }
    let wrong = teams.iter().any(|team| check_team(team).is_err());
    wrong.then_some("The name of a team has no comma, no control character and no white space around it.")
}

pub(crate) async fn list(request: SignedInRequest) -> HandlerResult {
    listed(&request, &request.person(), &Said::Nothing).await
}

pub(crate) async fn invite(request: SignedInRequest) -> HandlerResult {
    let (name, teams) = (request.value("name").to_lowercase(), request.names("teams"));
    let wrong = if !account_name::may_be(&name) {
        Some("A name has 1 to 60 characters.")
    } else {
        wrong_teams(&teams)
    };
    let (Some(role), None) = (Role::named(&request.value("role")), wrong) else {
        return listed(&request, "", &Said::Refused(wrong.unwrap_or("A role is 'admin' or 'member'."))).await;
    };
    let (link, kept) = link(&request).map_err(|error| request.unread(error))?;
    // No password fits what is no hash.
    let account = Account { name: name.clone(), password: String::new(), role };
    let (store, by, now) = (request.store(), request.by(), request.now());
    match request.stored(store.invite(&by, &account, &teams, kept, now)).await? {
        true => listed(&request, &name, &Said::Made(&link)).await,
        false => listed(&request, "", &Said::Refused("Somebody has that name: choose another.")).await,
    }
}

/// A fresh link, and what is kept of it.
fn link(request: &SignedInRequest) -> Result<(String, ([u8; 32], i64)), getrandom::Error> {
    let token = token::fresh()?;
    let until = request.console.now() + SignedDuration::from_hours(LINK_HOURS);
    let external = request.console.0.settings.external.trim_end_matches('/');
    let link = format!("{external}/welcome?token={token}");
    Ok((link, (token::digest(&token), until.as_millisecond())))
}

pub(crate) async fn change(request: SignedInRequest) -> HandlerResult {
    let (name, teams) = (request.person(), request.names("teams"));
    let people = request.stored(request.store().people()).await?;
    let Some(person) = people.into_iter().find(|one| one.name == name) else {
        return listed(&request, "", &Said::Refused("There is nobody of that name (any more).")).await;
    };
    let (Some(role), None) = (Role::named(&request.value("role")), wrong_teams(&teams)) else {
        let why = wrong_teams(&teams).unwrap_or("A role is 'admin' or 'member'.");
        return listed(&request, &name, &Said::Refused(why)).await;
    };
    if role != person.role
        && !request.stored(request.store().set_role(&request.by(), &name, role, request.now())).await?
    {
        let why = "This is the last admin who may come in and whom a person made one: make somebody else one first. An admin by a \
                   group of the provider counts once a person keeps them as one.";
        return listed(&request, &name, &Said::Refused(why)).await;
    }
    let mut sorted = teams.clone();
    sorted.sort();
    if sorted != person.teams {
        request.stored(request.store().set_teams(&request.by(), &name, &teams, request.now())).await?;
    }
    Ok(to(&name))
}

pub(crate) async fn act(request: SignedInRequest) -> HandlerResult {
    let (store, by, now, name) = (request.store(), request.by(), request.now(), request.person());
    let last = "There is nobody of that name (any more), or it is the last admin who may come in and whom a person made one: an admin \
                by a group of the provider does not count.";
    let (done, otherwise) = match &*request.value("act") {
        "link" => {
            let (link, kept) = link(&request).map_err(|error| request.unread(error))?;
            let made = store.keep_link_for(&by, &name, kept, now).await;
            if made.map_err(|error| request.unread(error))? {
                return listed(&request, &name, &Said::Made(&link)).await;
            }
            (Ok(false), "There is nobody of that name (any more).")
        }
        "disable" => (store.set_disabled(&by, &name, true, now).await, last),
        "enable" => (store.set_disabled(&by, &name, false, now).await, last),
        "keep-admin" => (
            store.keep_admin(&by, &name, now).await,
            "They are no admin by a group of the provider (any more), or have not come in by it for 30 days.",
        ),
        "sign-out" => (store.end_sessions(&by, &name, now).await, "They have no session."),
        "remove" => (store.remove_person(&by, &name, now).await, last),
        act @ ("link-identity" | "unlink-identity") => match &request.console.0.settings.oidc {
            None => (Ok(false), "This platform has no provider to sign in by."),
            Some(oidc) => {
                let (issuer, subject) = (oidc.provider.issuer().as_str(), request.value("subject"));
                if act == "unlink-identity" {
                    let digest = request.session.digest;
                    (store.unlink_identity(&by, &name, issuer, digest, now).await, "They are not linked.")
                } else if subject.is_empty() || subject.len() > SUBJECT {
                    (Ok(false), "A subject has 1 to 255 characters.")
                } else {
                    let identity = Identity { issuer: issuer.to_owned(), subject };
                    let taken = "Somebody is linked to that subject, or they to another.";
                    (store.link_identity(&by, &name, &identity, now).await, taken)
                }
            }
        },
        _ => (Ok(false), "There is no such act."),
    };
    match done.map_err(|error| request.unread(error))? {
        true => Ok(to(&name)),
        false => listed(&request, &name, &Said::Refused(otherwise)).await,
    }
}
