//! Rules: listed, edited, tried out before they hold, taken away.

use axum::response::{IntoResponse as _, Redirect};
use serde::de::DeserializeOwned;
use stages_platform_store::{Action, Attribute, AttributeName, Entity, GroupBy, Rule, Selection, SortBy};
use url::form_urlencoded;

use super::Desk;
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
fn draft(desk: &Desk) -> (Draft, Result<Rule, &'static str>) {
    let pairs = || form_urlencoded::parse(desk.form.as_bytes());
    let all = |name: &'static str| {
        pairs().filter(move |(key, _)| key == name).map(|(_, value)| value.trim().to_owned())
    };
    let id = desk.value("id").parse().unwrap_or_default();
    let mut attributes: Vec<(String, String, String)> = all("attribute")
        .zip(all("key"))
        .zip(all("value"))
        .map(|((name, key), value)| (name, key, value))
        .filter(|(name, _, value)| !name.is_empty() || !value.is_empty())
        .collect();
    attributes.truncate(50);
    let draft = Draft {
        id,
        entity: desk.value("entity"),
        teams: desk.names("teams"),
        tags: desk.names("tags"),
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
async fn effect(desk: &Desk, rule: &Rule) -> Result<Effect, axum::response::Response> {
    let people = desk.store().people().await.map_err(|error| desk.unread(error))?;
    let within = |teams: &[String]| rule.teams.iter().any(|team| teams.contains(team));
    let who = people.iter().filter(|one| within(&one.teams)).map(|one| one.name.clone()).collect();
    let empty = rule.teams.iter().filter(|team| !people.iter().any(|one| one.teams.contains(team)));
    let selection = Selection { conditions: Vec::new(), group_by: GroupBy::Nothing, sort_by: SortBy::Name };
    let found = desk.store().list(&rule.matches(), &selection, 0, NAMED).await;
    let found = found.map_err(|error| desk.unread(error))?;
    let names = found.rows.into_iter().map(|one| format!("{}/{}", one.name.runtime, one.name.name));
    Ok(Effect { who, empty: empty.cloned().collect(), matching: found.matching, names: names.collect() })
}

async fn shown(desk: &Desk, draft: Option<Draft>, said: &Said<'_>) -> HandlerResult {
    let rules = desk.store().rules().await.map_err(|error| desk.unread(error))?;
    let edited = match draft {
        Some(draft) => {
            let effect = match rule(&draft) {
                Ok(rule) => Ok(effect(desk, &rule).await?),
                Err(why) => Err(why),
            };
            Some(Edited { draft, effect })
        }
        None => None,
    };
    Ok(desk.shown(&page::page(&rules, edited.as_ref(), said)))
}

pub(crate) async fn list(desk: Desk) -> HandlerResult {
    let edit = desk.value("edit");
    let draft = match edit.parse::<i64>() {
        Ok(id) => {
            let rules = desk.store().rules().await.map_err(|error| desk.unread(error))?;
            rules.into_iter().find(|rule| rule.id == id).map(|rule| Draft::of(&rule))
        }
        Err(_) => (edit == "new").then(Draft::fresh),
    };
    shown(&desk, draft, &Said::Nothing).await
}

pub(crate) async fn preview(desk: Desk) -> HandlerResult {
    let (draft, _) = draft(&desk);
    shown(&desk, Some(draft), &Said::Nothing).await
}

pub(crate) async fn keep(desk: Desk) -> HandlerResult {
    let (draft, rule) = draft(&desk);
    let rule = match rule {
        Ok(rule) => rule,
        Err(why) => return shown(&desk, Some(draft), &Said::Refused(why)).await,
    };
    let (kept, otherwise) = match rule.id {
        0 => (
            desk.store().add_rule(&desk.by(), &rule, desk.now()).await,
            "There are 500 rules, and no more may be.",
        ),
        _ => (
            desk.store().change_rule(&desk.by(), &rule, desk.now()).await,
            "This rule is not there any more.",
        ),
    };
    match kept.map_err(|error| desk.unread(error))? {
        true => Ok(Redirect::to("/settings/rules").into_response()),
        false => shown(&desk, Some(draft), &Said::Refused(otherwise)).await,
    }
}

pub(crate) async fn remove(desk: Desk) -> HandlerResult {
    let id = desk.value("id").parse().unwrap_or_default();
    let removed = desk.store().remove_rule(&desk.by(), id, desk.now()).await;
    match removed.map_err(|error| desk.unread(error))? {
        true => Ok(Redirect::to("/settings/rules").into_response()),
        false => shown(&desk, None, &Said::Refused("There is no such rule (any more).")).await,
    }
}
