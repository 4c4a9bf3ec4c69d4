//! Signing in, and setting the first password.

use maud::{Markup, html};

/// The form to sign in with.
pub(crate) fn sign_in(failed: Option<&str>, next: &str, any_user: bool) -> Markup {
    html! {
        h1 { "Sign in" }
        @if !any_user {
            p { "Nobody has an account yet. When the platform starts it prints a link that makes the first one; it lasts 15 minutes, and each start prints a new one:" }
            (super::pieces::command("kubectl logs -n gitops-runtime deploy/platform | grep welcome"))
        } @else {
            @if let Some(why) = failed { p.bad role="alert" { (why) } }
            form method="post" action="/sign-in" {
                input type="hidden" name="next" value=(next);
                label for="name" { "Name" }
                input #name type="text" name="name" autocomplete="username" required autofocus spellcheck="false";
                label for="password" { "Password" }
                input #password type="password" name="password" autocomplete="current-password" required;
                button.primary { "Sign in" }
            }
        }
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
                    input #name type="text" name="name" autocomplete="username" required autofocus spellcheck="false" value="admin";
                },
            }
            label for="password" { "Password" }
            input #password type="password" name="password" autocomplete="new-password" required minlength="12" aria-describedby="rule" autofocus[whose.is_some()];
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
