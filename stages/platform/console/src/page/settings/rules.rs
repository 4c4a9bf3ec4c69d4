//! Rules: what the members of teams may do, to what; as sentences, with an editor and what a rule would do.

use maud::{Markup, html};
use stages_platform_store::{Action, Attribute, AttributeName, Entity, Rule, name_of};

use super::{Said, above, settings, tabs};
use crate::page::pieces::number;
use crate::page::shell::Page;

const ENTITIES: [(Entity, &str); 13] = [
    (Entity::GitopsApplications, "applications"),
    (Entity::Clusters, "clusters"),
    (Entity::Environments, "environments"),
    (Entity::ExecutionContext, "execution contexts"),
    (Entity::GitContexts, "Git contexts"),
    (Entity::HelmCharts, "Helm charts"),
    (Entity::Pipelines, "pipelines"),
    (Entity::Products, "products"),
    (Entity::Projects, "projects"),
    (Entity::PromotionFlows, "promotion flows"),
    (Entity::SharedConfiguration, "shared configuration"),
    (Entity::Workflows, "workflows"),
    (Entity::WorkflowTemplates, "workflow templates"),
];

/// Together as people think of them.
const ACTIONS: [(&str, &[(Action, &str)]); 5] = [
    (
        "See",
        &[
            (Action::View, "view"),
            (Action::ViewPodLogs, "view logs of pods"),
            (Action::AccessLogs, "access logs"),
            (Action::AccessArtifacts, "access artifacts"),
        ],
    ),
    (
        "Sync",
        &[
            (Action::Sync, "sync"),
            (Action::TerminateSync, "terminate a sync"),
            (Action::Refresh, "refresh"),
            (Action::AppRollback, "roll back"),
        ],
    ),
    (
        "Rollouts",
        &[
            (Action::RolloutPromoteFull, "promote fully"),
            (Action::RolloutPause, "pause"),
            (Action::RolloutResume, "resume"),
            (Action::RolloutAbort, "abort"),
            (Action::RolloutRetry, "retry"),
            (Action::RolloutRestart, "restart a rollout"),
            (Action::RolloutSkipCurrentStep, "skip a step"),
        ],
    ),
    (
        "Resources",
        &[
            (Action::DeleteResource, "delete a resource"),
            (Action::Restart, "restart"),
            (Action::ExecToPod, "execute in pods"),
        ],
    ),
    (
        "Workflows and promotion",
        &[
            (Action::Create, "create"),
            (Action::Resubmit, "resubmit"),
            (Action::Stop, "stop"),
            (Action::Terminate, "terminate"),
            (Action::PromoteTo, "promote to"),
            (Action::TriggerPromotion, "trigger a promotion"),
            (Action::RetryRelease, "retry a release"),
        ],
    ),
];

const ATTRIBUTES: [(AttributeName, &str); 8] = [
    (AttributeName::Runtime, "runtime"),
    (AttributeName::Namespace, "namespace"),
    (AttributeName::Cluster, "cluster"),
    (AttributeName::EnvironmentName, "environment"),
    (AttributeName::EnvironmentKind, "kind of environment"),
    (AttributeName::GitSource, "Git source"),
    (AttributeName::Label, "label"),
    (AttributeName::ProductName, "product"),
];

/// Empty rows for attributes that stand below those that there are.
const MORE: usize = 2;

/// A rule as it is being written.
pub(crate) struct Draft {
    /// Zero: it is new.
    pub(crate) id: i64,
    pub(crate) entity: String,
    pub(crate) teams: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) actions: Vec<String>,
    /// Name, key and value.
    pub(crate) attributes: Vec<(String, String, String)>,
}

/// What a rule would do now.
pub(crate) struct Effect {
    /// Whom it lets do something.
    pub(crate) who: Vec<String>,
    /// Teams that nobody is in.
    pub(crate) empty: Vec<String>,
    /// How many applications it is about.
    pub(crate) matching: u64,
    /// The first of the applications that it is about.
    pub(crate) names: Vec<String>,
}

/// What is being written, and what it would do, or what is missing.
pub(crate) struct Edited {
    pub(crate) draft: Draft,
    pub(crate) effect: Result<Effect, &'static str>,
}

fn word<T: PartialEq>(all: &[(T, &'static str)], one: &T) -> &'static str {
    all.iter().find(|(known, _)| known == one).map_or("?", |(_, word)| word)
}

fn action(one: Action) -> &'static str {
    ACTIONS
        .iter()
        .flat_map(|(_, all)| all.iter())
        .find(|(known, _)| *known == one)
        .map_or("?", |(_, word)| word)
}

impl Draft {
    pub(crate) fn fresh() -> Self {
        Self {
            id: 0,
            entity: name_of(&Entity::GitopsApplications),
            teams: Vec::new(),
            tags: Vec::new(),
            actions: vec![name_of(&Action::View)],
            attributes: Vec::new(),
        }
    }

    pub(crate) fn of(rule: &Rule) -> Self {
        let attribute =
            |one: &Attribute| (name_of(&one.name), one.key.clone().unwrap_or_default(), one.value.clone());
        Self {
            id: rule.id,
            entity: name_of(&rule.entity_type),
            teams: rule.teams.clone(),
            tags: rule.tags.clone(),
            actions: rule.actions.iter().map(name_of).collect(),
            attributes: rule.attributes.iter().map(attribute).collect(),
        }
    }
}

/// One after another, with "and" or "or" before the last.
fn list(words: &[String], between: &str) -> Markup {
    html! {
        @for (index, word) in words.iter().enumerate() {
            @if index > 0 { (if index + 1 == words.len() { format!(" {between} ") } else { ", ".to_owned() }) }
            b { (word) }
        }
    }
}

/// A rule as a sentence.
fn sentence(rule: &Rule) -> Markup {
    let actions: Vec<String> = rule.actions.iter().map(|one| action(*one).to_owned()).collect();
    let mut wanted: Vec<(String, Vec<String>)> = Vec::new();
    for Attribute { name, key, value } in &rule.attributes {
        let what = match key {
            Some(key) => format!("{} {key}", word(&ATTRIBUTES, name)),
            None => word(&ATTRIBUTES, name).to_owned(),
        };
        match wanted.iter_mut().find(|(known, _)| *known == what) {
            Some((_, values)) => values.push(value.clone()),
            None => wanted.push((what, vec![value.clone()])),
        }
    }
    html! {
        "Members of " (list(&rule.teams, "or")) " may " (list(&actions, "and")) " "
        @if wanted.is_empty() { "all " (word(&ENTITIES, &rule.entity_type)) } @else {
            (word(&ENTITIES, &rule.entity_type)) " whose "
            @for (index, (what, values)) in wanted.iter().enumerate() {
                @if index > 0 { " and whose " }
                (what) " is " (list(values, "or"))
            }
        }
        "."
    }
}

pub(crate) fn page(rules: &[Rule], edited: Option<&Edited>, said: &Said<'_>) -> Page {
    settings(
        "Rules",
        html! {
            div.title { h1 { "Settings" } span.grow {} @if edited.is_none() { a.button href="/settings/rules?edit=new" { "New rule" } } }
            (tabs("/settings/rules", true))
            (above(said, &html! {}))
            @if let Some(edited) = edited { (editor(edited)) }
            section.panel aria-label="Rules" {
                ul.rules {
                    @for rule in rules {
                        li {
                            p { (sentence(rule)) @for tag in &rule.tags { " " span.tag { (tag) } } }
                            a.button href={"/settings/rules?edit=" (rule.id)} aria-label={"Edit rule " (rule.id)} { "Edit" }
                            form method="post" action="/settings/rules/remove" data-confirm="Whoever may something by this rule alone may it no more, at once." {
                                input type="hidden" name="id" value=(rule.id);
                                button aria-label={"Remove rule " (rule.id)} { "Remove" }
                            }
                        }
                    }
                    @if rules.is_empty() {
                        li { p.mute { "There is no rule yet: members see nothing, and admins everything. A rule lets the members of teams see or do something." } }
                    }
                }
            }
        },
    )
}

fn editor(edited: &Edited) -> Markup {
    let draft = &edited.draft;
    html! {
        form.panel.editor method="post" action="/settings/rules" data-preview="/settings/rules/preview" {
            h2 { (if draft.id == 0 { "A new rule" } else { "Change a rule" }) }
            input type="hidden" name="id" value=(draft.id);
            div.fields {
                label for="rule-teams" { "Members of the teams" }
                input #rule-teams type="text" name="teams" required value=(draft.teams.join(", ")) autocomplete="off" spellcheck="false" placeholder="between commas";
                label for="rule-entity" { "may do this to" }
                select #rule-entity name="entity" {
                    @for (one, what) in &ENTITIES { @let name = name_of(one); option value=(name) selected[name == draft.entity] { (what) } }
                }
                label for="rule-tags" { "Tags, to find it by" }
                input #rule-tags type="text" name="tags" value=(draft.tags.join(", ")) autocomplete="off";
            }
            div.actions {
                @for (title, all) in ACTIONS {
                    fieldset {
                        legend { (title) }
                        @for (one, what) in all {
                            @let name = name_of(one);
                            label { input type="checkbox" name="action" value=(name) checked[draft.actions.contains(&name)]; " " (what) }
                        }
                    }
                }
            }
            fieldset.attributes {
                legend { "Only those with: several values of one attribute are alternatives, and no attribute means all" }
                @for index in 0..draft.attributes.len() + MORE { (attribute(draft.attributes.get(index), index)) }
            }
            div #preview role="status" { (effect(&edited.effect, draft)) }
            div.acts {
                button.primary { "Save" }
                button formaction="/settings/rules/preview" formnovalidate { "What it does" }
                a.button href="/settings/rules" { "Leave it" }
            }
        }
    }
}

fn attribute(one: Option<&(String, String, String)>, index: usize) -> Markup {
    let (name, key, value) = one.map_or(("", "", ""), |(name, key, value)| (name, key, value));
    let nth = index + 1;
    html! {
        div.attribute {
            select name="attribute" aria-label={"Attribute " (nth)} {
                option value="" { "—" }
                @for (one, what) in &ATTRIBUTES { @let it = name_of(one); option value=(it) selected[it == name] { (what) } }
            }
            input type="text" name="key" value=(key) aria-label={"Key of label " (nth)} placeholder="key, of a label" autocomplete="off" spellcheck="false";
            input type="text" name="value" value=(value) aria-label={"Value " (nth)} placeholder="value" autocomplete="off" spellcheck="false";
        }
    }
}

/// Who may then do what.
fn effect(effect: &Result<Effect, &'static str>, draft: &Draft) -> Markup {
    let effect = match effect {
        Ok(effect) => effect,
        Err(why) => return html! { p.mute { "Not a rule yet: " (why) "." } },
    };
    let is_about_applications = draft.entity == name_of(&Entity::GitopsApplications);
    let unknown = [AttributeName::EnvironmentKind, AttributeName::GitSource]
        .iter()
        .map(name_of)
        .any(|name| draft.attributes.iter().any(|(of, ..)| *of == name));
    let sees = draft.actions.contains(&name_of(&Action::View));
    html! {
        p {
            @if effect.who.is_empty() { "Nobody gains anything yet" } @else { (list(&effect.who, "and")) " gain" @if effect.who.len() == 1 { "s" } " this" }
            @if is_about_applications {
                ", for " b { (number(effect.matching)) (if effect.matching == 1 { " application" } else { " applications" }) }
                @if !effect.names.is_empty() { ": " span.mute { (effect.names.join(", ")) @if effect.matching > effect.names.len() as u64 { ", …" } } }
            }
            "."
        }
        @if !effect.empty.is_empty() { p.warn { "Nobody is in " (effect.empty.join(", ")) " yet." } }
        @if is_about_applications && !sees { p.warn { "They see these applications only if another rule lets them view them." } }
        @if unknown { p.warn { "Of no application its Git source or the kind of its environment is known: such a rule is about none." } }
        @if !is_about_applications { p.mute { "Nothing in this console shows these; the app proxy of a runtime asks by such rules where it knows them." } }
    }
}
