//! The views that somebody saved, above the list that each of them is a filter of.

use maud::{Markup, html};
use stages_platform_store::SavedView;

use super::link::with;
use crate::filter::Filter;

/// What stands above the list.
pub(crate) struct Views<'a> {
    /// Somebody's own.
    pub(crate) saved: &'a [SavedView],
    /// Why one was not saved or not removed.
    pub(crate) refused: Option<&'a str>,
}

/// Nothing where there is no view, and nothing to save either.
pub(crate) fn row(views: &Views<'_>, filter: &Filter) -> Markup {
    // The forms are sent to the address of the list itself: it is the filter, and what is shown again.
    let (here, own) = (with("/applications", &filter.query()), Filter { page: 0, ..filter.clone() }.query());
    let is_this = |view: &SavedView| Filter { page: 0, ..Filter::parse(&view.query) }.query() == own;
    let is_saved = views.saved.iter().any(is_this);
    html! {
        @if let Some(why) = views.refused { p.bad role="alert" { (why) } }
        @if !views.saved.is_empty() || !own.is_empty() {
            div.views {
                @if !views.saved.is_empty() {
                    nav aria-label="Saved views" {
                        ul {
                            @for view in views.saved {
                                li {
                                    a href=(with("/applications", &view.query)) aria-current=[is_this(view).then_some("page")] { (view.name) }
                                    form method="post" action=(here) data-confirm={"“" (view.name) "” goes from your views; what it shows stays."} {
                                        input type="hidden" name="act" value="remove";
                                        input type="hidden" name="name" value=(view.name);
                                        button aria-label={"Remove the view " (view.name)} { "×" }
                                    }
                                }
                            }
                        }
                    }
                }
                @if !is_saved && !own.is_empty() {
                    details data-fold="save-view" {
                        summary.button { "Save view" }
                        form method="post" action=(here) {
                            label.hidden for="view-name" { "Name of the view" }
                            input #view-name type="text" name="name" required maxlength="60" autocomplete="off" placeholder="Its name";
                            button.primary { "Save" }
                            span.mute { "A name that you have is given to this filter." }
                        }
                    }
                }
            }
        }
    }
}
