//! Rules: listed, edited, tried out before they hold, taken away.

use axum::response::{IntoResponse as _, Redirect};
use serde::de::DeserializeOwned;
use stages_platform_store::{Action, Attribute, AttributeName, Entity, GroupBy, Rule, Selection, SortBy};
use url::form_urlencoded;

use super::SignedInRequest;
use crate::console::handlers::HandlerResult;
use crate::page::settings::Said;
use crate::page::settings::rules::{self as page, Draft, Edited, Effect};

/// Applications that a preview names.
const NAMED: u32 = 8;

/// A value of a rule by the name that it has in it.
fn named<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(name.into()).ok()
}

/// What the form says; a rule only where all of it is known.
fn draft(request: &SignedInRequest) -> (Draft, Result<Rule, &'static str>) {
    let pairs = || form_urlencoded::parse(request.form.as_bytes());
    let all = |name: &'static str| {
        pairs().filter(move |(key, _)| key == name).map(|(_, value)| value.trim().to_owned())
    };
    let id = request.value("id").parse().unwrap_or_default();
    let mut attributes: Vec<(String, String, String)> = all("attribute")
        .zip(all("key"))
        .zip(all("value"))
        .map(|((name, key), value)| (name, key, value))
        .filter(|(name, _, value)| !name.is_empty() || !value.is_empty())
        .collect();
    attributes.truncate(50);
    let draft = Draft {
        id,
        entity: request.value("entity"),
        teams: request.names("teams"),
        tags: request.names("tags"),
        actions: all("action").collect(),
        attributes,
    };
    let rule = rule(&draft);
    (draft, rule)
}

fn rule(draft: &Draft) -> Result<Rule, &'static str> {
    let entity_type: Entity = named(&draft.entity).ok_or("say what the rule is about")?;
    let actions: Option<Vec<Action>> = draft.actions.iter().map(|name| named(name)).collect();
    let attribute = |(name, key, value): &(String, String, String)| {
        let name: AttributeName = named(name)?;
        Some(Attribute { name, key: (!key.is_empty()).then(|| key.clone()), value: value.clone() })
    };
    let attributes: Option<Vec<Attribute>> = draft.attributes.iter().map(attribute).collect();
    let rule = Rule {
        id: draft.id,
        entity_type,
        teams: draft.teams.clone(),
        tags: draft.tags.clone(),
        actions: actions.ok_or("there is no such action")?,
        attributes: attributes.ok_or("choose what an attribute is")?,
    };
    rule.check().map(|()| rule)
}

/// Who may then do what, to what.
async fn effect(request: &SignedInRequest, rule: &Rule) -> Result<Effect, axum::response::Response> {
    let people = request.stored(request.store().people()).await?;
    let within = |teams: &[String]| rule.teams.iter().any(|team| teams.contains(team));
    let who = people.iter().filter(|one| within(&one.teams)).map(|one| one.name.clone()).collect();
    let empty = rule.teams.iter().filter(|team| !people.iter().any(|one| one.teams.contains(team)));
    let selection = Selection { conditions: Vec::new(), group_by: GroupBy::Nothing, sort_by: SortBy::Name };
    let found = request.stored(request.store().list(&rule.matches(), &selection, 0, NAMED)).await?;
    let names = found.rows.into_iter().map(|one| format!("{}/{}", one.name.runtime, one.name.name));
    Ok(Effect { who, empty: empty.cloned().collect(), matching: found.matching, names: names.collect() })
}

async fn shown(request: &SignedInRequest, draft: Option<Draft>, said: &Said<'_>) -> HandlerResult {
    let rules = request.stored(request.store().rules()).await?;
    let edited = match draft {
        Some(draft) => {
            let effect = match rule(&draft) {
                Ok(rule) => Ok(effect(request, &rule).await?),
                Err(why) => Err(why),
            };
            Some(Edited { draft, effect })
        }
        None => None,
    };
    Ok(request.shown(&page::page(&rules, edited.as_ref(), said)))
}

pub(crate) async fn list(request: SignedInRequest) -> HandlerResult {
    let edit = request.value("edit");
    let draft = match edit.parse::<i64>() {
        Ok(id) => {
            let rules = request.stored(request.store().rules()).await?;
            rules.into_iter().find(|rule| rule.id == id).map(|rule| Draft::of(&rule))
        }
        Err(_) => (edit == "new").then(Draft::fresh),
    };
    shown(&request, draft, &Said::Nothing).await
}

pub(crate) async fn preview(request: SignedInRequest) -> HandlerResult {
    let (draft, _) = draft(&request);
    shown(&request, Some(draft), &Said::Nothing).await
}

pub(crate) async fn keep(request: SignedInRequest) -> HandlerResult {
    let (draft, rule) = draft(&request);
    let rule = match rule {
        Ok(rule) => rule,
        Err(why) => return shown(&request, Some(draft), &Said::Refused(why)).await,
    };
    let (store, by, now) = (request.store(), request.by(), request.now());
    let (kept, otherwise) = match rule.id {
        0 => (store.add_rule(&by, &rule, now).await, "There are 500 rules, and no more may be."),
        _ => (store.change_rule(&by, &rule, now).await, "This rule is not there any more."),
    };
    match kept.map_err(|error| request.unread(error))? {
        true => Ok(Redirect::to("/settings/rules").into_response()),
        false => shown(&request, Some(draft), &Said::Refused(otherwise)).await,
    }
}

pub(crate) async fn remove(request: SignedInRequest) -> HandlerResult {
    let id = request.value("id").parse().unwrap_or_default();
    match request.stored(request.store().remove_rule(&request.by(), id, request.now())).await? {
        true => Ok(Redirect::to("/settings/rules").into_response()),
        false => shown(&request, None, &Said::Refused("There is no such rule (any more).")).await,
    }
}
