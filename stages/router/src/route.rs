//! Which service a path is for.

use crate::config::Allowed;
use crate::probe::Probe;
use crate::refusal::Refusal;

/// How many characters a label of a DNS name may have.
const MAX_LABEL: usize = 63;
/// Below this path the router answers probes of the way to it.
const ACCESS_PREFIX: &str = "/webhooks/_access/";
/// What follows the name of an event source in that of its service.
const SERVICE_SUFFIX: &str = "-eventsource-svc";

/// A group of paths that has limits and metrics of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    AppProxy,
    Workflows,
    Webhooks,
    /// Paths that the router answers itself, and those that lead nowhere.
    Itself,
}

impl Route {
    pub(crate) const ALL: [Self; 4] = [Self::AppProxy, Self::Workflows, Self::Webhooks, Self::Itself];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::AppProxy => "app_proxy",
            Self::Workflows => "workflows",
            Self::Webhooks => "webhooks",
            Self::Itself => "itself",
        }
    }
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way<'a> {
    /// To `/healthz`, which is answered as long as the process runs.
    Alive,
    /// To `/readyz`, which is refused once the router is to stop.
    Ready,
    /// To a probe below `/webhooks/_access`.
    Probe(Probe),
    /// To the App Proxy, which sees the whole path.
    AppProxy,
    /// To Argo Workflows, which sees this path below its own.
    Workflows(&'a str),
    /// To the service of this name in this namespace, which sees the whole path.
    Webhook { namespace: &'a str, service: String },
}

/// The route of a path. Prefixes end with a segment: `/app-proxyx` is not below `/app-proxy`.
pub(crate) fn route(path: &str) -> Route {
    if path.starts_with(ACCESS_PREFIX) {
        return Route::Itself;
    }
    match path.split('/').nth(1) {
        Some("app-proxy") => Route::AppProxy,
        Some("workflows") => Route::Workflows,
        Some("webhooks") => Route::Webhooks,
        _ => Route::Itself,
    }
}

/// Where a path leads, if it leads anywhere; a webhook must be `allowed`.
pub(crate) fn way<'a>(path: &'a str, allowed: &[Allowed]) -> Result<Way<'a>, Refusal> {
    match path {
        "/healthz" => return Ok(Way::Alive),
        "/readyz" => return Ok(Way::Ready),
        _ => {}
    }
    match route(path) {
        Route::AppProxy => Ok(Way::AppProxy),
        Route::Workflows => {
            // Two slashes at its beginning would begin the name of a host.
            let rest = path.strip_prefix("/workflows").unwrap_or_default();
            Ok(Way::Workflows(rest.trim_start_matches('/')))
        }
        Route::Webhooks => webhook(path, allowed),
        Route::Itself => {
            let probe = path.strip_prefix(ACCESS_PREFIX).and_then(Probe::of);
            probe.map(Way::Probe).ok_or(Refusal::Nowhere)
        }
    }
}

fn webhook<'a>(path: &'a str, allowed: &[Allowed]) -> Result<Way<'a>, Refusal> {
    let mut segments = path.split('/').skip(2);
    let (Some(namespace), Some(name)) = (segments.next(), segments.next()) else {
        return Err(Refusal::WebhookName);
    };
    if !is_label(namespace) || !is_label(name) || name.len() + SERVICE_SUFFIX.len() > MAX_LABEL {
        return Err(Refusal::WebhookName);
    }
    if !allowed.iter().any(|one| one.takes(namespace, name)) {
        return Err(Refusal::WebhookNotAllowed);
    }
    Ok(Way::Webhook { namespace, service: format!("{name}{SERVICE_SUFFIX}") })
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=MAX_LABEL).contains(&bytes.len())
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any() -> [Allowed; 1] {
        [Allowed { namespace: Some("runtime".to_owned()), name: None }]
    }

    #[test]
    fn prefixes_end_with_a_segment() {
        for path in ["/app-proxy", "/app-proxy/", "/app-proxy/api/graphql"] {
            assert_eq!(way(path, &[]), Ok(Way::AppProxy), "{path}");
        }
        for path in
            ["/", "/app-proxyx", "/app-prox", "//app-proxy", "/x/app-proxy", "/healthz/x", "/App-Proxy"]
        {
            assert_eq!(way(path, &[]), Err(Refusal::Nowhere), "{path}");
        }
        assert_eq!(way("/healthz", &[]), Ok(Way::Alive));
        assert_eq!(way("/readyz", &[]), Ok(Way::Ready));
    }

    #[test]
    fn what_is_asked_of_the_way_in_takes_the_place_of_no_webhook() {
        let all = [Allowed { namespace: None, name: None }];
        assert_eq!(way("/webhooks/_access/hop", &[]), Ok(Way::Probe(Probe::Hop)));
        assert_eq!(way("/webhooks/_access/events", &[]), Ok(Way::Probe(Probe::Events)));
        assert_eq!(way("/webhooks/_access/socket", &[]), Ok(Way::Probe(Probe::Socket)));
        for path in ["/webhooks/_access/", "/webhooks/_access/hop/x", "/webhooks/_access/x"] {
            assert_eq!(way(path, &all), Err(Refusal::Nowhere), "{path}");
        }
        assert_eq!(way("/webhooks/_access", &all), Err(Refusal::WebhookName));
    }

    #[test]
    fn workflows_sees_what_follows_its_prefix() {
        for (path, seen) in [
            ("/workflows", ""),
            ("/workflows/", ""),
            ("/workflows/api/v1/events", "api/v1/events"),
            ("/workflows//evil.example/x", "evil.example/x"),
            ("/workflows/a//b/", "a//b/"),
        ] {
            assert_eq!(way(path, &[]), Ok(Way::Workflows(seen)), "{path}");
        }
        assert_eq!(way("/workflowsx", &[]), Err(Refusal::Nowhere));
    }

    #[test]
    fn a_webhook_is_named_by_two_labels_that_are_allowed() {
        let found = Way::Webhook { namespace: "runtime", service: "push-eventsource-svc".to_owned() };
        assert_eq!(way("/webhooks/runtime/push", &any()), Ok(found));
        assert!(way("/webhooks/runtime/push/github", &any()).is_ok());
        let long = format!("/webhooks/runtime/{}", "x".repeat(48));
        for path in [
            "/webhooks",
            "/webhooks/",
            "/webhooks/runtime",
            "/webhooks/runtime/",
            "/webhooks//push",
            "/webhooks/Runtime/push",
            "/webhooks/runtime/-push",
            "/webhooks/runtime/a.b",
            "/webhooks/a.b/push",
            "/webhooks/runtime/evil.com:80",
            "/webhooks/runtime/x@y",
            "/webhooks/run%74ime/push",
            &long,
        ] {
            assert_eq!(way(path, &any()), Err(Refusal::WebhookName), "{path}");
        }
        assert_eq!(way("/webhooks/kube-system/push", &any()), Err(Refusal::WebhookNotAllowed));
        assert_eq!(way("/webhooks/runtime/push", &[]), Err(Refusal::WebhookNotAllowed));
        let one = [Allowed { namespace: None, name: Some("push".to_owned()) }];
        assert!(way("/webhooks/other/push", &one).is_ok());
        assert_eq!(way("/webhooks/other/pull", &one), Err(Refusal::WebhookNotAllowed));
    }
}
