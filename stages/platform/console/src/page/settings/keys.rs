//! Keys for programs.

use maud::html;
use stages_platform_store::Key;

use super::identity::{self, Linked};
use super::{Said, above, day, settings, tabs};
use crate::page::shell::Page;

/// The keys of somebody, with the form that makes one, and who they are at the provider.
pub(crate) fn page(keys: &[Key], linked: Option<&Linked<'_>>, is_admin: bool, said: &Said<'_>) -> Page {
    settings(
        "API keys",
        html! {
            h1 { "Settings" }
            (tabs("/settings", is_admin))
            (above(said, &html! { "This key is shown this once. A program sends it in the header " code { "Authorization" } "." }))
            section.panel.list aria-label="Your API keys" {
                table {
                    thead { tr { th scope="col" { "name" } th scope="col" { "begins with" } th scope="col" { "may" } th scope="col" { "ends" } th scope="col" { span.hidden { "act" } } } }
                    tbody {
                        @for key in keys {
                            tr {
                                td.what { (key.name) }
                                td { code { (key.prefix) "…" } }
                                td { (key.scope.name()) }
                                td.mute { (day(key.until)) }
                                td.act {
                                    form method="post" action="/settings/keys/remove"
                                        data-confirm={"Programs that send " (key.name) " are refused at once. It does not come back: another is made below."} {
                                        input type="hidden" name="id" value=(key.id);
                                        button aria-label={"Take back " (key.name)} { "Take back" }
                                    }
                                }
                            }
                        }
                        @if keys.is_empty() { tr { td.mute colspan="5" { "You have no key yet: make one below for a program that asks the API." } } }
                    }
                }
            }
            form.panel.form method="post" action="/settings/keys" {
                h2 { "Make a key" }
                label for="name" { "What it is for" }
                input #name type="text" name="name" required maxlength="100" autocomplete="off";
                label for="scope" { "What it may" }
                select #scope name="scope" { option value="read" { "read" } option value="full" { "read and change, as you may" } }
                label for="days" { "Days until it ends" }
                input #days type="number" name="days" min="1" max="365" value="90" required;
                button.primary { "Make the key" }
            }
            @if let Some(linked) = linked { (identity::own(linked)) }
        },
    )
}
