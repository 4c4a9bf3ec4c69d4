//! Tokens by which runtimes report.

use maud::html;
use stages_platform_store::{Registration, Token};

use super::{Said, above, day, settings, tabs};
use crate::page::shell::Page;

pub(crate) fn page(tokens: &[Token], runtimes: &[Registration], said: &Said<'_>) -> Page {
    let alone = |token: &Token| tokens.iter().filter(|one| one.runtime == token.runtime).count() == 1;
    let what = |token: &Token| {
        let rest = if alone(token) {
            "; it is the only one, and the runtime is silent until it has another"
        } else {
            ""
        };
        format!(
            "What comes with {} is refused within 10 seconds{rest}. Reports wait at the runtime and are not lost.",
            token.name
        )
    };
    settings(
        "Runtime tokens",
        html! {
            h1 { "Settings" }
            (tabs("/settings/tokens", true))
            (above(said, &html! { "This token is shown this once. It goes into the Secret of the runtime; then take the one before it back." }))
            section.panel.list aria-label="Tokens of runtimes" {
                table {
                    thead { tr { th scope="col" { "runtime" } th scope="col" { "begins with" } th.narrow-away scope="col" { "made" } th scope="col" { span.hidden { "act" } } } }
                    tbody {
                        @for token in tokens {
                            tr {
                                td.what { (token.runtime) }
                                td { code { (token.name) "…" } }
                                td.mute.narrow-away { (day(token.created_at)) }
                                td.act {
                                    form method="post" action="/settings/tokens/remove" data-confirm=(what(token)) {
                                        input type="hidden" name="token" value=(token.name);
                                        button aria-label={"Take back " (token.name)} { "Take back" }
                                    }
                                }
                            }
                        }
                        @if tokens.is_empty() { tr { td.mute colspan="4" { "There is none yet: " a href="/runtimes/add" { "add a runtime" } ", and it gets its first." } } }
                    }
                }
            }
            @if !runtimes.is_empty() {
                form.panel.form method="post" action="/settings/tokens" {
                    h2 { "Make another token" }
                    label for="runtime" { "Of which runtime" }
                    select #runtime name="runtime" { @for one in runtimes { option value=(one.name) { (one.name) } } }
                    p.mute { "To change a token without a gap: make one, give it to the runtime, take the old one back." }
                    button.primary { "Make the token" }
                }
            }
        },
    )
}
