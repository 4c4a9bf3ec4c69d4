//! What stands around every page.

use maud::{DOCTYPE, Markup, html};
use stages_platform_store::Term;

use crate::assets;

/// A place that the navigation leads to, with its second key after `g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Home,
    Applications,
    Deployments,
    Resources,
    Runtimes,
    Settings,
    /// None of them.
    Nowhere,
}

const SECTIONS: [(Section, &str, &str, &str); 6] = [
    (Section::Home, "Home", "/", "h"),
    (Section::Applications, "Applications", "/applications", "a"),
    (Section::Deployments, "Deployments", "/deployments", "d"),
    (Section::Resources, "Resources", "/resources", "r"),
    (Section::Runtimes, "Runtimes", "/runtimes", "t"),
    (Section::Settings, "Settings", "/settings", "s"),
];

const HELP: &[(&[&str], &str)] = &[
    (&["g", "h"], "home; g a applications, g d deployments, g r resources, g t runtimes, g s settings"),
    (&["/"], "filter this list"),
    (&["Ctrl", "K"], "find anything"),
    (&[":"], "run a command: its name, then Enter"),
    (&["j", "k"], "next and previous row"),
    (&["Enter"], "open the row"),
    (&["["], "previous of the filter, from inside an application"),
    (&["]"], "next of the filter"),
    (&["s"], "sync this application, once you have seen what changes"),
    (&["y"], "copy a link to this moment"),
    (&["Esc"], "close, leave the rows, or go back to where you were"),
    (&["?"], "this help"),
];

/// A page, before it stands in its frame.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) section: Section,
    /// What stands in the bar at the top.
    pub(crate) bar: Markup,
    pub(crate) body: Markup,
}

fn head(title: &str) -> Markup {
    let base = assets::base();
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · gitops-runtime" }
            link rel="icon" type="image/svg+xml" href={(base) "/icon.svg"};
            link rel="stylesheet" href={(base) "/console.css"};
            script type="module" src={(base) "/console.js"} {}
        }
    }
}

/// A page in its frame, for somebody who is signed in; `lapsed` is the provider that they have not come in by for so long that nothing
/// counts any more of what it gave them.
pub(crate) fn shell(page: &Page, (user, lapsed): (&str, Option<&str>), theme: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme] {
            (head(&page.title))
            body data-user=(user) {
                a.skip href="#main" { "Skip to content" }
                nav.side aria-label="Console" {
                    a.brand href="/" { span aria-hidden="true" { "◆ " } "gitops-runtime" }
                    ul {
                        @for (section, name, path, key) in SECTIONS {
                            li {
                                a href=(path) data-go=(key) aria-current=[(section == page.section).then_some("page")] {
                                    span { (name) }
                                    kbd aria-hidden="true" { "g " (key) }
                                }
                            }
                        }
                    }
                    ul.below {
                        li { button type="button" data-theme-switch { span { "Dark or light" } } }
                        li { button type="button" data-help { span { "Help" } kbd aria-hidden="true" { "?" } } }
                        li {
                            form method="post" action="/sign-out" {
                                button { span.mute { "Sign out " (user) } }
                            }
                        }
                    }
                }
                header.bar {
                    (page.bar)
                    noscript { span.warn { "Without JavaScript a page shows what it showed when it was opened, and nothing is done from it." } }
                    span.live data-live role="status" data-state="connecting" {
                        span aria-hidden="true" {} span { "connecting" } a href="/sign-in" hidden { "You are signed out: sign in" }
                    }
                }
                main #main tabindex="-1" aria-label=(page.title) {
                    @if let Some(issuer) = lapsed {
                        p.warn role="status" {
                            "You last came in by " (issuer) " more than 30 days ago, and what its groups gave you does not count any more: "
                            // Scripts leave this page for that one alone: of a provider's own they may ask nothing.
                            a href="/sign-in" { "sign in by it again" } "."
                        }
                    }
                    (page.body)
                }
                (help())
                dialog #palette aria-label="Find anything" {
                    input type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-label="Find applications, runtimes and commands"
                        autocomplete="off" spellcheck="false" placeholder="Find an application, or : for a command";
                    ul #found role="listbox" aria-label="Found" {}
                }
                div #said.toast role="status" {}
            }
        }
    }
}

fn help() -> Markup {
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl {
                @for (keys, what) in HELP {
                    dt { @for key in *keys { kbd { (key) } " " } }
                    dd { (what) }
                }
            }
            h2 { "Filters" }
            p.examples { @for (_, example) in Term::KEYS { code { (example) } " " } }
            p {
                label {
                    input type="checkbox" checked;
                    " Letters and signs act; without them arrows, Enter, Esc and Ctrl K still do"
                }
            }
            form method="dialog" { button autofocus { "Close " kbd aria-hidden="true" { "Esc" } } }
        }
    }
}

/// A page for somebody who is not signed in.
pub(crate) fn outside(title: &str, theme: Option<&str>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme] {
            (head(title))
            body.outside {
                main #main {
                    p.brand { span aria-hidden="true" { "◆ " } "gitops-runtime" }
                    (body)
                }
            }
        }
    }
}

/// The field of a page that is searched by one text, which is called so, with an example of what is typed.
pub(crate) fn search_bar(path: &str, label: &str, example: &str, text: &str) -> Markup {
    html! {
        form.filter role="search" action=(path) data-filter {
            label.field {
                kbd aria-hidden="true" { "/" }
                input type="text" name="q" value=(text) aria-label=(label) autocomplete="off" spellcheck="false" placeholder=(example);
                kbd aria-hidden="true" { "Esc" }
            }
            noscript { button { "Search" } }
        }
    }
}

/// The bar of pages that have no field of their own: a field that finds anything.
pub(crate) fn find_bar() -> Markup {
    html! {
        button.field type="button" data-find {
            kbd aria-hidden="true" { "/" }
            span { "Search applications, images, commits, resources…" }
            kbd aria-hidden="true" { "Ctrl K" }
        }
    }
}
