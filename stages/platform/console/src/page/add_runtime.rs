//! How to add a runtime: the form, and then what installs it.

use maud::{Markup, html};
use url::{Host, Url, form_urlencoded};

use super::link::with;
use super::pieces::{command, counted};
use super::shell::{Page, Section, find_bar};
use crate::installation::{Installation, Left};
use crate::view::runtime::RuntimeRow;

/// What names of adopted runtimes are made of, as browsers check it.
const ADOPTED: &str = r"[A-Za-z0-9]([A-Za-z0-9_.\-]*[A-Za-z0-9])?";

/// The form, with what was typed already, and why a field of it was refused.
pub(crate) fn form(typed: &Installation, refused: Option<(&str, &str)>) -> Page {
    let field = |name: &'static str, label: &'static str, value: &str, required: bool, rule: &Markup| {
        let why = refused.filter(|(field, _)| *field == name).map(|(_, why)| why);
        let described = format!("{name}-rule");
        html! {
            label for=(name) { (label) }
            input id=(name) type="text" name=(name) value=(value) required[required] autocomplete="off" spellcheck="false"
                autofocus[name == "name"] pattern=[(name == "name").then_some(ADOPTED)] maxlength=[(name == "name").then_some("63")]
                aria-describedby=(described) aria-invalid=[why.map(|_| "true")];
            p.mute id=(described) { (rule) }
            // The address that it was sent to is that of the list of runtimes.
            @if let Some(why) = why { p.bad data-once role="alert" { (why) } }
        }
    };
    let body = html! {
        h1.question { "Add a runtime" }
        form.panel.form method="post" action="/runtimes" {
            (field("name", "Name", &typed.name, true, &html! { "Begins with a lower-case letter, then lower-case letters and digits; at most 38." }))
            label.tick { input type="checkbox" name="adopted" checked[typed.is_adopted] aria-describedby="adopted-rule"; " It is called so already" }
            p.mute #adopted-rule { "An adopted runtime keeps its name, also one with " code { "-" } ", " code { "_" } ", " code { "." } " or capitals, and gets an id beside, of letters and digits, which its release and its tunnel are named by." }
            (field("namespace", "Namespace", &typed.namespace, true, &html! { "Where it is installed, in the cluster of Argo CD." }))
            (field("argocd", "Argo CD's namespace", &typed.argo_cd, true, &html! { "Where Argo CD stands already." }))
            (field("registry", "Registry of the image (optional)", &typed.registry, false, &html! { "Where you pushed what " code { ".ci/image" } " builds, such as registry.example.com." }))
            (field("repository", "Git repository of the chart (optional)", &typed.repository, false, &html! { "Where Argo CD finds your copy of it, if Argo CD is to install the runtime." }))
            button.primary { "Make its token" }
        }
    };
    Page { title: "Add a runtime".to_owned(), section: Section::Runtimes, bar: find_bar(), body }
}

/// What installs it; the token is here once. `platform` is this platform's own address.
pub(crate) fn added(runtime: &Installation, token: &str, platform: &str) -> Page {
    let name = &runtime.name;
    let body = html! {
        h1.question data-once { "Install " (name) }
        @if runtime.id() != *name { p { "Its id is " code { (runtime.id()) } ": its release and its tunnel are named by it, and addresses of the console take it as well." } }
        p { "The token is shown this once. It goes into a Secret; then the chart installs the runtime beside Argo CD." }
        @if is_loopback(platform) {
            p.warn { "Pods do not reach " code { (platform) } ": write the address that your cluster knows this platform by in its place below, and set " code { "platformServer.externalUrl" } " to it." }
        }
        h2 { "1. Its token" } (command(&runtime.secret(token)))
        h2 { "2. An account of Argo CD" }
        p { "It may read applications and nothing else. The last line needs " code { "argocd login" } " as somebody who may make tokens." }
        (command(&runtime.account()))
        h2 { "3. The runtime" }
        div.ways {
            details name="way" open { summary { "With Helm" } p { "In a checkout of the chart's repository:" } (command(&runtime.helm(platform))) }
            details name="way" { summary { "With Argo CD" } p { "An Application, for " code { "kubectl apply -f -" } " or for Git:" } (command(&runtime.argo_cd(platform))) }
            details name="way" { summary { "With Terraform" } p { "With the provider hashicorp/helm; the two Secrets above stay out of its state:" } (command(&runtime.terraform(platform))) }
        }
        (waits(runtime, None))
        p { a href="/runtimes" { "All runtimes" } }
    };
    Page { title: format!("Install {name}"), section: Section::Runtimes, bar: find_bar(), body }
}

/// How far a runtime is that was added, and what is left to do; `known` is what is known of it.
pub(crate) fn progress(runtime: &Installation, known: Option<&RuntimeRow>) -> Page {
    let body = html! {
        h1.question { "How far " (runtime.name) " is" }
        (waits(runtime, known))
        p { "Its token was shown once. Where it was lost: " a href="/settings/tokens" { "make another" } "." }
        p { a href="/runtimes" { "All runtimes" } }
    };
    Page { title: format!("How far {} is", runtime.name), section: Section::Runtimes, bar: find_bar(), body }
}

/// What it has come to, read again by the browser until it reports applications; then what is left, each with the next step.
fn waits(runtime: &Installation, known: Option<&RuntimeRow>) -> Markup {
    let heard = known.filter(|row| row.heard.is_some());
    let reports = heard.is_some_and(|row| row.applications > 0);
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("namespace", &runtime.namespace)
        .append_pair("argocd", &runtime.argo_cd)
        .finish();
    let address = with(&format!("/runtimes/add/{}", runtime.id()), &query);
    let runs = |role: &str| heard.is_some_and(|row| row.roles.iter().any(|one| one.role == role));
    let version = heard.and_then(|row| row.version.as_deref()).map(|version| format!(", version {version}"));
    html! {
        section #progress data-wait=[(!reports).then_some(address)] {
            p role="status" {
                @match heard {
                    None => { span.glyph.still aria-hidden="true" { "◌" } " Waiting to hear of it; this turns green by itself." },
                    Some(row) => {
                        span.glyph.ok aria-hidden="true" { "●" } " " b { (runtime.name) " is heard of" (version.unwrap_or_default()) } ". "
                        @if reports { "It reports " (counted(row.applications, "application")) ": "
                            a href={"/applications?q=runtime%3A" (runtime.name)} { "look at them" } "." }
                        @else { "It has reported no application yet. Where there are some, its account of Argo CD may not read them:" }
                    },
                }
            }
            @if heard.is_some() && !reports { (command(&runtime.looks())) }
            h2 { @if heard.is_some() { "What is left" } @else { "What is left then" } }
            p { "As Helm is told it. Where Argo CD or Terraform installed it, what " code { "--set" } " says goes into its values." }
            ul.left {
                @for Left { what, command: how, role } in runtime.left() {
                    @match role.filter(|role| runs(role)) {
                        Some(role) => li { p { span.glyph.ok role="img" aria-label="done" { "✓" } " " (what) span.mute { " Done: " (role) " runs." } } },
                        None => li { p { (what) } (command(&how)) },
                    }
                }
            }
        }
    }
}

/// Whether an address leads to this machine alone.
fn is_loopback(address: &str) -> bool {
    Url::parse(address).is_ok_and(|address| match address.host() {
        Some(Host::Ipv4(host)) => host.is_loopback(),
        Some(Host::Ipv6(host)) => host.is_loopback(),
        Some(Host::Domain(host)) => host == "localhost",
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_alone_is_said_to_be_none_for_pods() {
        let runtime = Installation { name: "eu1".to_owned(), ..Installation::default() };
        let said = |platform: &str| {
            added(&runtime, "gort_x", platform).body.into_string().contains("Pods do not reach")
        };
        for (platform, alone) in [
            ("http://127.0.0.1:8088", true),
            ("http://localhost:8088", true),
            ("http://[::1]:8088", true),
            ("https://platform.example.com", false),
            ("http://10.0.0.7:8088", false),
        ] {
            assert_eq!(said(platform), alone, "{platform}");
        }
    }
}
