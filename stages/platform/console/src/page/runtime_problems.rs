//! What a runtime says is wrong with it, under its row in the list of runtimes.

use jiff::Timestamp;
use maud::{Markup, html};

use super::pieces::prose;
use super::refused;
use crate::time::{absolute, lasting};
use crate::view::runtime::{RuntimeProblem, RuntimeRow};

/// A row of its own below the runtime's, across the list; nothing where nothing is wrong.
pub(crate) fn row(runtime: &RuntimeRow, now: Timestamp) -> Markup {
    let refused = refused::lines(&runtime.refused, now);
    html! {
        @if !runtime.problems.is_empty() || !refused.0.is_empty() {
            tr.wrong data-key={"problems/" (runtime.name)} {
                td colspan="8" {
                    ul.problems aria-label={"What is wrong with " (runtime.name)} {
                        @for one in &runtime.problems { (line(one, now)) }
                        (refused)
                    }
                }
            }
        }
    }
}

fn line(one: &RuntimeProblem, now: Timestamp) -> Markup {
    let (class, glyph, word) = if one.error { ("bad", "✕", "error") } else { ("warn", "▲", "warning") };
    html! {
        li {
            span class={"glyph " (class)} role="img" aria-label=(word) title=(word) { (glyph) }
            div {
                p { b { (one.title) } @if !one.message.is_empty() { ": " (one.message) } }
                p.cure { span.mute { "What to do: " } (prose(&one.suggestion)) }
                small.mute { (when(one, now)) }
            }
        }
    }
}

fn when(one: &RuntimeProblem, now: Timestamp) -> Markup {
    html! {
        @match (one.since, one.seen) {
            (Some(since), Some(seen)) => { "for " (lasting(since, now)) ", since " (absolute(since)) "; last seen " (absolute(seen)) },
            (Some(since), None) => { "for " (lasting(since, now)) ", since " (absolute(since)) },
            (None, Some(seen)) => { "last seen " (absolute(seen)) },
            (None, None) => { "when is not known" },
        }
    }
}
