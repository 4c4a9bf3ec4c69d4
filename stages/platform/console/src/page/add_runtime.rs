//! How to add a runtime: the form, and then what installs it.

use maud::{Markup, html};
use url::{Host, Url};

use super::pieces::command;
use super::shell::{Page, Section, find_bar};
use crate::installation::Installation;

/// The form, with what was typed already, and why a field of it was refused.
pub(crate) fn form(typed: &Installation, refused: Option<(&str, &str)>) -> Page {
    let field = |name: &'static str, label: &'static str, value: &str, required: bool, rule: &Markup| {
        let why = refused.filter(|(field, _)| *field == name).map(|(_, why)| why);
        let described = format!("{name}-rule");
        html! {
            label for=(name) { (label) }
            input id=(name) type="text" name=(name) value=(value) required[required] autocomplete="off" spellcheck="false"
                autofocus[name == "name"] pattern=[(name == "name").then_some("[a-z][a-z0-9]{0,37}")]
                aria-describedby=(described) aria-invalid=[why.map(|_| "true")];
            p.mute id=(described) { (rule) }
            @if let Some(why) = why { p.bad role="alert" { (why) } }
        }
    };
    let body = html! {
        h1.question { "Add a runtime" }
        form.panel.form method="post" action="/runtimes" {
            (field("name", "Name", &typed.name, true, &html! { "Begins with a lower-case letter, then lower-case letters and digits; at most 38." }))
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
        h1.question { "Install " (name) }
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
        p data-wait={"runtime/" (name)} role="status" { span.glyph.still aria-hidden="true" { "◌" } " Waiting for its first report; this turns green by itself." }
        h2 { "What is left then" }
        p { "As Helm is told it. Where Argo CD or Terraform installed it, what " code { "--set" } " says goes into the values above." }
        ul.left { @for (what, how) in runtime.left() { li { p { (what) } (command(&how)) } } }
        p { a href="/runtimes" { "All runtimes" } }
    };
    Page { title: format!("Install {name}"), section: Section::Runtimes, bar: find_bar(), body }
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
