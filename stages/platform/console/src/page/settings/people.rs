//! Users: who may come in, as what, and in which teams.

use maud::{Markup, html};
use stages_platform_store::{Person, Role, Rule};

use super::identity::{self, Linked};
use super::{Said, above, day, settings, tabs};
use crate::page::link::with;
use crate::page::shell::Page;

const ROLES: [(Role, &str); 2] =
    [(Role::Member, "member: what the rules of their teams grant"), (Role::Admin, "admin: everything")];

/// Who looks, and when.
pub(crate) struct Looks<'a> {
    /// Their name.
    pub(crate) own: &'a str,
    /// In milliseconds since 1970.
    pub(crate) now: i64,
}

/// `chosen` is whose form stands beside the list and `linked` who they are at the provider.
pub(crate) fn page(
    people: &[Person],
    rules: &[Rule],
    (chosen, linked): (&str, Option<&Linked<'_>>),
    looks: &Looks<'_>,
    said: &Said<'_>,
) -> Page {
    let chosen = people.iter().find(|one| one.name == chosen);
    let mut teams: Vec<&str> = people
        .iter()
        .flat_map(|one| &one.teams)
        .chain(rules.iter().flat_map(|one| &one.teams))
        .map(|team| &**team)
        .collect();
    teams.sort_unstable();
    teams.dedup();
    settings(
        "Users",
        html! {
            h1 { "Settings" }
            (tabs("/settings/users", true))
            (above(said, &html! { "Send this link to whom it is for: it is shown this once, sets their password once, and ends after three days." }))
            div.with-side {
                section.panel.list aria-label="Users" {
                    table data-rows {
                        thead { tr { th scope="col" { "name" } th scope="col" { "role" } th scope="col" { "teams" } th.narrow-away scope="col" { "since" } } }
                        tbody {
                            @for one in people {
                                tr data-key={"user/" (one.name)} data-row aria-selected=[chosen.is_some_and(|it| it.name == one.name).then_some("true")] {
                                    td.what {
                                        a href=(of(&one.name)) { (one.name) }
                                        @if one.disabled { " " span.tag { "disabled" } }
                                        @if one.has_lapsed(looks.now) { " " span.tag { "lapsed" } }
                                    }
                                    td { (one.role.name()) }
                                    td.mute { (one.teams.join(", ")) }
                                    td.mute.narrow-away { (day(one.created_at)) }
                                }
                            }
                        }
                    }
                }
                aside.panel.form aria-label=(chosen.map_or("Invite somebody", |_| "Change somebody")) {
                    datalist #teams-known { @for team in &teams { option value=(team) {} } }
                    @match chosen {
                        Some(one) => { (change(one, linked, looks)) },
                        None => { (invite()) },
                    }
                }
            }
        },
    )
}

fn of(name: &str) -> String {
    with(
        "/settings/users",
        &url::form_urlencoded::Serializer::new(String::new()).append_pair("name", name).finish(),
    )
}

fn fields(role: Role, teams: &str) -> Markup {
    html! {
        label for="role" { "Role" }
        select #role name="role" {
            @for (one, what) in ROLES { option value=(one.name()) selected[one == role] { (what) } }
        }
        label for="teams" { "Teams" }
        input #teams type="text" name="teams" value=(teams) list="teams-known" autocomplete="off" spellcheck="false" aria-describedby="teams-rule";
        p.mute #teams-rule { "Between commas. A team is there as soon as somebody is in it or a rule names it." }
    }
}

fn invite() -> Markup {
    html! {
        h2 { "Invite somebody" }
        form.fields method="post" action="/settings/users" {
            label for="name" { "Name" }
            input #name type="text" name="name" required maxlength="60" autocomplete="off" spellcheck="false";
            (fields(Role::Member, ""))
            button.primary { "Make their link" }
        }
    }
}

fn change(one: &Person, linked: Option<&Linked<'_>>, looks: &Looks<'_>) -> Markup {
    let (name, has_lapsed) = (&*one.name, one.has_lapsed(looks.now));
    let acts = [
        (
            "link",
            "New link",
            format!("{name} gets a link to set another password; a link before it is good no more."),
            true,
        ),
        (
            "sign-out",
            "End sessions",
            format!("Every browser that {name} is signed in with is signed out. Keys go on."),
            true,
        ),
        (
            "keep-admin",
            "Keep as admin",
            format!(
                "{name} is an admin by a group of {} and stays one without it, until a person makes them a member.",
                one.admin_by
            ),
            !one.admin_by.is_empty() && !has_lapsed,
        ),
        (
            "disable",
            "Disable",
            format!(
                "{name} is signed out at once, and neither password, links nor keys are good until they are let in again."
            ),
            !one.disabled,
        ),
        ("enable", "Let in again", format!("Password and keys of {name} are good again."), one.disabled),
        (
            "remove",
            "Remove",
            format!("{name} is gone with their keys and teams; what they did stays in the audit log."),
            true,
        ),
    ];
    html! {
        h2 { (name) }
        @if has_lapsed {
            p.warn {
                (name) " last came in by the provider more than 30 days ago: "
                @if one.role == Role::Admin { "the role admin" } @else { "a team" }
                " that a group of it gave does not count until they come in by it again."
            }
        }
        form.fields method="post" action="/settings/users/change" {
            input type="hidden" name="name" value=(name);
            (fields(one.role, &one.teams.join(", ")))
            button.primary { "Save" }
        }
        div.acts {
            @for (act, title, what, shown) in &acts {
                @if *shown {
                    form method="post" action="/settings/users/act" data-confirm=(what) {
                        input type="hidden" name="name" value=(name);
                        input type="hidden" name="act" value=(act);
                        button title=(what) { (title) }
                    }
                }
            }
        }
        @if let Some(linked) = linked { (identity::of_another(linked, name)) }
        @if name == looks.own { p.mute { "This is you." } }
        p { a href="/settings/users" { "Invite somebody else" } }
    }
}
