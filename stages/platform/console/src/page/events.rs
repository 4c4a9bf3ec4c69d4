//! Events of Kubernetes: where a script puts what the runtime reads in its cluster, and of what.

use maud::{Markup, html};
use url::form_urlencoded;

use super::application::{Asked, Tab};
use super::link::{application_key, application_path};
use super::pieces::empty;
use crate::view::application::Application;
use crate::view::resource::ResourceKey;

pub(super) fn tab(asked: &Asked, application: &Application) -> Markup {
    if application.deleted {
        return empty(
            "It is deleted: its events are no longer asked for",
            &html! { p { "What was reported of it stays under Timeline." } },
        );
    }
    let ResourceKey { group, kind, namespace, name } = asked.resource.clone().unwrap_or_default();
    let title = if kind.is_empty() { application.row.id.name.clone() } else { format!("{kind}/{name}") };
    html! {
        (choice(asked, application))
        section.panel.list.asked aria-label={"Events of " (title)} data-kept={"events/" (application_key(&application.row.id)) "/" (title) "/" (namespace)}
            data-events data-title=(title) data-group=(group) data-kind=(kind) data-within=(namespace) data-of=(name) {
            noscript { p.mute.pad { "Events are asked of the runtime by a script." } }
        }
    }
}

/// Of what: the application itself, or one of its resources.
fn choice(asked: &Asked, application: &Application) -> Markup {
    let kept = Asked { tab: Tab::Events, resource: None, ..asked.clone() }.query();
    html! {
        form.question action=(application_path(&asked.id)) {
            @for (name, value) in form_urlencoded::parse(kept.as_bytes()) { input type="hidden" name=(name) value=(value); }
            label for="of" { "Events of" }
            select #of name="r" {
                option value="" { "the application " (application.row.id.name) }
                @for one in &application.resources {
                    option value=(one.key) selected[Some(&one.key) == asked.resource.as_ref()] { (one.key.kind) "/" (one.key.name) }
                }
            }
            button { "Show" }
        }
    }
}
