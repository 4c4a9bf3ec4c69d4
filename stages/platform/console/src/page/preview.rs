//! An application at a glance, beside the list.

use jiff::Timestamp;
use maud::{Markup, html};

use super::link::application_path;
use super::pieces::{first_line, health, name, outcome, plain, short};
use super::strip;
use crate::time::{clock, relative, since};
use crate::view::application::Application;
use crate::view::state::SyncStatus;

/// How it is, behind its name.
fn now_in_words(application: &Application) -> String {
    let row = &application.row;
    if application.deleted {
        return "deleted".to_owned();
    }
    match row.sync {
        SyncStatus::OutOfSync => format!("{}, and out of sync", row.health.word()),
        _ => row.health.word().to_owned(),
    }
}

pub(crate) fn fragment(application: &Application, now: Timestamp) -> Markup {
    let row = &application.row;
    html! {
        h2 data-now=(now_in_words(application)) { (health(row.health)) " " (row.id.name) }
        p.mute { @if !row.environment.is_empty() { (row.environment) " · " } (row.id.runtime) " · as of " (since(application.as_of, now)) }
        @if let Some(cause) = &application.cause { p.bad { (cause.message) } }
        h3 { "Last 24 hours" }
        (strip::small(&application.life))
        p.ends.faint { (clock(application.life.from)) span { "now" } }
        @if !application.life.deployments.is_empty() {
            h3 { "Deployments" }
            ul.deployments {
                @for one in application.life.deployments.iter().rev().take(4) {
                    li {
                        (outcome(one.outcome))
                        div {
                            bdi { (plain(first_line(&one.change.message))) }
                            small.mute { code { (short(&one.change.revision)) } " · " bdi { (plain(name(&one.change.author))) } " · " (relative(one.at, now)) }
                        }
                    }
                }
            }
            @if let Some(last) = application.life.deployments.last() { @if !last.images.is_empty() {
                h3 { "Images" }
                ul.images {
                    @for image in &last.images {
                        li { code {
                            (image.name) " "
                            @match &image.before {
                                Some(before) if *before != image.after => { span.faint { (before) " → " } },
                                Some(_) => { span.faint { "unchanged " } },
                                None => { span.faint { "new " } },
                            }
                            (image.after)
                        } }
                    }
                }
            } }
        }
        p.acts {
            a.button href=(application_path(&row.id)) { "Open " kbd aria-hidden="true" { "↵" } }
            a.button href={(application_path(&row.id)) "?tab=compare"} { "Compare" }
        }
    }
}
