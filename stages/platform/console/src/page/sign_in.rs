//! Signing in, and setting the first password.

use maud::{Markup, html};

/// The page to sign in.
pub(crate) struct SignIn<'a> {
    /// Why somebody is not signed in who tried to.
    pub(crate) failed: Option<&'a str>,
    /// The name that they gave.
    pub(crate) name: &'a str,
    /// Where they go in the end.
    pub(crate) next: &'a str,
    /// Whether anybody has an account yet.
    pub(crate) any_user: bool,
    /// How else than by a password.
    pub(crate) offer: Option<Offer<'a>>,
}

/// A provider to sign in by.
#[derive(Clone)]
pub(crate) struct Offer<'a> {
    /// What stands on its button.
    pub(crate) button: &'a str,
    /// What is to be known before somebody goes there.
    pub(crate) note: Option<String>,
}

/// The form to sign in with.
pub(crate) fn sign_in(shown: &SignIn<'_>) -> Markup {
    let SignIn { failed, name, next, any_user, offer } = shown;
    html! {
        h1 { "Sign in" }
        @if let Some(why) = failed { p.bad role="alert" { (why) } }
        @if !*any_user {
            p { "Nobody has an account yet. When the platform starts it prints a link that makes the first one; it lasts 15 minutes, and each start prints a new one:" }
            (super::pieces::command("kubectl logs -n gitops-runtime deploy/platform | grep welcome"))
        } @else {
            @if let Some(offer) = offer {
                @if let Some(note) = &offer.note { p.warn role="status" { (note) } }
                a.button.provider href={"/login/oidc?next=" (encoded(next))} { (offer.button) }
                p.or { "or with a password" }
            }
            form method="post" action="/sign-in" {
                input type="hidden" name="next" value=(next);
                label for="name" { "Name" }
                input #name type="text" name="name" autocomplete="username" required autofocus[name.is_empty()] spellcheck="false" value=[(!name.is_empty()).then_some(name)];
                label for="password" { "Password" }
                input #password type="password" name="password" autocomplete="current-password" required autofocus[!name.is_empty()];
                button.primary { "Sign in" }
            }
        }
    }
}

fn encoded(next: &str) -> String {
    url::form_urlencoded::byte_serialize(next.as_bytes()).collect()
}

/// On the way to the provider, for somebody who links an identity.
pub(crate) fn going(host: &str, url: &str) -> Markup {
    html! {
        h1 { "On the way to " (host) }
        p { "You come back here once " (host) " knows you." }
        p { a.button href=(url) { "Go on" } }
    }
}

/// An identity was not linked.
pub(crate) fn not_linked(why: &str) -> Markup {
    html! {
        h1 { "Not linked" }
        p.bad role="alert" { (why) }
        p { a.button href="/settings" { "Settings" } }
    }
}

/// The form that makes the first user, or sets the password of somebody who was invited.
pub(crate) fn welcome(token: &str, whose: Option<&str>, failed: Option<&str>) -> Markup {
    html! {
        h1 { "Welcome" @if let Some(name) = whose { ", " (name) } }
        p { (if whose.is_some() { "This sets your password, by which you sign in from now on. The link works once." } else { "This makes the first account. The link works once." }) }
        @if let Some(why) = failed { p.bad role="alert" { (why) } }
        form method="post" action="/welcome" {
            input type="hidden" name="token" value=(token);
            @match whose {
                // Managers of passwords keep the name beside it.
                Some(name) => { input type="hidden" name="name" autocomplete="username" value=(name); },
                None => {
                    label for="name" { "Name" }
                    input #name type="text" name="name" autocomplete="username" required spellcheck="false" value="admin";
                },
            }
            label for="password" { "Password" }
            input #password type="password" name="password" autocomplete="new-password" required minlength="12" aria-describedby="rule" autofocus;
            p.mute #rule { "At least 12 characters." }
            button.primary { (if whose.is_some() { "Set the password" } else { "Make the account" }) }
        }
    }
}

/// A link that is not good (any more).
pub(crate) fn stale() -> Markup {
    html! {
        h1 { "This link is not good any more" }
        p { "It works once, and ends: the one of the first account after 15 minutes, and each start of the platform prints a new one while nobody has an account; an invitation after three days, and an admin makes another." }
        p { a.button href="/sign-in" { "Sign in" } }
    }
}
