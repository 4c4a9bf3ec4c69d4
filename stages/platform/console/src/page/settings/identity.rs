//! Who somebody is at a provider of OpenID Connect.

use maud::{Markup, html};

/// Somebody at a provider.
pub(crate) struct Linked<'a> {
    /// The provider.
    pub(crate) host: &'a str,
    /// Who they are there; `None`: nobody knows.
    pub(crate) subject: Option<String>,
}

/// One's own.
pub(crate) fn own(linked: &Linked<'_>) -> Markup {
    let Linked { host, subject } = linked;
    html! {
        form.panel.form #identity method="post" action="/settings/identity" {
            h2 { "Signing in by " (host) }
            @match subject {
                Some(subject) => {
                    p { "You are known there as " code { (subject) } "." }
                    button name="act" value="unlink" { "Unlink" }
                },
                None => {
                    p.mute { "Once you are linked, the button on the page to sign in brings you into this account." }
                    button name="act" value="link" { "Link who I am there" }
                },
            }
        }
    }
}

/// Another's, for an admin.
pub(crate) fn of_another(linked: &Linked<'_>, name: &str) -> Markup {
    let Linked { host, subject } = linked;
    html! {
        form.fields method="post" action="/settings/users/act" {
            input type="hidden" name="name" value=(name);
            @match subject {
                Some(subject) => {
                    p { "At " (host) ": " code { (subject) } }
                    button name="act" value="unlink-identity" { "Unlink" }
                },
                None => {
                    label for="subject" { "Subject at " (host) }
                    input #subject type="text" name="subject" maxlength="255" autocomplete="off" spellcheck="false" required aria-describedby="subject-rule";
                    p.mute #subject-rule { "The claim " code { "sub" } ", as the provider tells it: whoever has it comes in as " (name) "." }
                    button name="act" value="link-identity" { "Link" }
                },
            }
        }
    }
}
