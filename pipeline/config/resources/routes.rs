//! Which objects go where: what the sink of `reporter` takes of them, and further routes with sinks of their own.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use stages_kube::Selector;
use url::Url;

use super::nats_sink::NatsSink;
use super::{KindName, Resources};
use crate::config::listed::Listed;
use crate::config::problem::Problems;
use crate::config::reporter::{EventMode, EventSource, Sink, SinkKind};
use crate::config::units::{As, Pattern, UrlPath};
use crate::config::{Config, Platform, Target, ToEvents, Token};

/// Routes beside the one of `reporter`.
const MOST: usize = 8;
/// Characters of a route's name.
const LONGEST: usize = 32;
/// What the route of `reporter` is called.
const DEFAULT: &str = "default";

/// Which objects a route takes: those to which all applies that is said.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Matching {
    /// Only of these kinds, each as plural.group; they are among `resources.kinds` or the preset's.
    kinds: Vec<As<KindName>>,
    /// Patterns of the only namespaces.
    namespaces: Vec<As<Pattern>>,
    /// A label selector, such as team=a or tier notin (test).
    label_selector: String,
    /// Patterns of the only applications, by their names.
    applications: Vec<As<Pattern>>,
    /// Patterns of the only projects of applications.
    projects: Vec<As<Pattern>>,
}

impl Matching {
    /// The kinds, as keys call them; none for all.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.kinds.iter().map(|kind| stages_resources::known(&kind.resource()).name).collect()
    }

    /// Patterns of namespaces; none for all.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        texts(&self.namespaces)
    }

    /// What it says of labels; nothing where that was refused.
    pub(crate) fn selector(&self) -> Selector {
        Selector::new(&self.label_selector, "").unwrap_or_default()
    }

    /// Patterns of applications, and of their projects; none for all.
    pub(crate) fn applications(&self) -> (Vec<String>, Vec<String>) {
        (texts(&self.applications), texts(&self.projects))
    }

    fn check(&self, at: &str, of: &Resources, problems: &mut Problems) {
        let known: BTreeSet<String> = of.kinds().iter().map(|kind| kind.kind.resource()).collect();
        for kind in &self.kinds {
            if kind.version.is_some() {
                let text = format!("'{}' is enough: the version stands in resources.kinds", kind.resource());
                problems.add(format!("{at}.kinds"), text);
            } else if !known.contains(&kind.resource()) {
                let text = format!("{} is not among resources.kinds", kind.resource());
                problems.add(format!("{at}.kinds"), text);
            }
        }
        if let Err(error) = Selector::new(&self.label_selector, "") {
            problems.add(format!("{at}.labelSelector"), error.to_string());
        }
        for (name, patterns) in [("applications", &self.applications), ("projects", &self.projects)] {
            if !patterns.is_empty() && !of.applications {
                let text = "takes resources.applications, which finds the application of each object";
                problems.add(format!("{at}.{name}"), text);
            }
        }
    }
}

fn texts(patterns: &[As<Pattern>]) -> Vec<String> {
    patterns.iter().map(|pattern| pattern.0.clone()).collect()
}

/// One route: which objects, and where they go.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteRules {
    /// Its name, in metrics and commands: lower-case letters, digits and -. Its ledger is called so, too: under another name
    /// everything is reported once more.
    pub(crate) name: String,
    /// Which objects it takes; all where nothing is said.
    #[serde(default, rename = "match")]
    pub(crate) matching: Matching,
    /// Where they go.
    sink: RouteSink,
}

/// A sink of a route's own. What is not said is as it stands in `platform` and `reporter.sink`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum RouteSink {
    /// A platform: that of `platform`, or another one with a token of its own.
    Platform {
        url: Option<As<Option<Url>>>,
        token_file: Option<As<Option<PathBuf>>>,
        ca_file: Option<As<Option<PathBuf>>>,
        path: Option<As<UrlPath>>,
    },
    /// A receiver of CloudEvents.
    CloudEvents {
        url: As<Option<Url>>,
        token_file: Option<As<Option<PathBuf>>>,
        ca_file: Option<As<Option<PathBuf>>>,
        source: Option<As<EventSource>>,
        mode: Option<EventMode>,
    },
    /// A subject of NATS that a stream takes.
    Nats(NatsSink),
    /// A file that reports are appended to.
    File { path: As<Option<PathBuf>> },
    /// Standard output.
    Stdout {},
}

impl RouteSink {
    fn kind(&self) -> SinkKind {
        match self {
            Self::Platform { .. } => SinkKind::Platform,
            Self::CloudEvents { .. } => SinkKind::CloudEvents,
            Self::Nats(_) => SinkKind::Nats,
            Self::File { .. } => SinkKind::File,
            Self::Stdout {} => SinkKind::Stdout,
        }
    }

    /// Where it writes on this machine, if it does.
    fn writes(&self) -> Option<String> {
        match self {
            Self::File { path } => path.as_ref().map(|path| path.display().to_string()),
            Self::Stdout {} => Some("standard output".to_owned()),
            Self::Platform { .. } | Self::CloudEvents { .. } | Self::Nats(_) => None,
        }
    }

    fn check(&self, at: &str, platform: &Platform, problems: &mut Problems) {
        match self {
            Self::Platform { url: None, token_file, ca_file, .. }
                if token_file.is_some() || ca_file.is_some() =>
            {
                let name = if token_file.is_some() { "tokenFile" } else { "caFile" };
                problems.add(format!("{at}.{name}"), "goes with an address of its own: set url");
            }
            Self::Platform { url: None, .. } => {
                if !platform.token().is_given() {
                    let next = "not set, and a route to the platform needs it; set platform.tokenFile";
                    problems.missing("platform.token", next);
                }
            }
            Self::Platform { url: Some(url), token_file, .. } => {
                if url.is_none() {
                    problems.add(format!("{at}.url"), "is empty: leave it out for platform.url");
                }
                if token_file.as_ref().is_none_or(|file| file.is_none()) {
                    let text = "not set: an address of its own is never sent the token of `platform`";
                    problems.add(format!("{at}.tokenFile"), text);
                }
            }
            Self::CloudEvents { url, .. } if url.is_none() => {
                problems.add(format!("{at}.url"), "is empty: set it to where events are taken");
            }
            Self::Nats(sink) => sink.check(at, problems),
            Self::File { path } if path.is_none() => {
                problems.add(format!("{at}.path"), "is empty: set it to a file");
            }
            Self::CloudEvents { .. } | Self::File { .. } | Self::Stdout {} => {}
        }
    }
}

impl RouteRules {
    /// What its sink is.
    pub(crate) fn kind(&self) -> SinkKind {
        self.sink.kind()
    }

    /// Where its reports go: what it says itself, and else what the process has for all.
    pub(crate) fn target<'a>(&'a self, config: &'a Config) -> Target<'a> {
        match &self.sink {
            RouteSink::Platform { url, token_file, ca_file, path } => {
                let mut to = config.to_platform();
                if let Some(url) = url {
                    // Nothing that proves who asks goes to another address.
                    let file = token_file.as_ref().and_then(|file| file.as_ref());
                    to.url = url.as_ref();
                    to.token = file.map_or(Token::None, |file| Token::File(file.clone()));
                    to.insecure = false;
                    to.ca_file = ca_file.as_ref().and_then(|file| file.as_deref());
                }
                to.path = path.as_deref().unwrap_or(to.path);
                Target::Platform(to)
            }
            RouteSink::CloudEvents { url, token_file, ca_file, source, mode } => {
                let of = config.to_events();
                Target::CloudEvents(ToEvents {
                    url: url.as_ref(),
                    token_file: token_file.as_ref().and_then(|file| file.as_deref()),
                    ca_file: ca_file.as_ref().and_then(|file| file.as_deref()),
                    source: source.as_deref().unwrap_or(of.source),
                    mode: mode.unwrap_or(of.mode),
                    ..of
                })
            }
            RouteSink::Nats(sink) => Target::Nats(sink.target(&self.name, config)),
            RouteSink::File { path } => Target::File(path.as_deref()),
            RouteSink::Stdout {} => Target::Stdout,
        }
    }
}

/// What is wrong with the routes.
pub(super) fn check(resources: &Resources, (platform, sink): (&Platform, &Sink), problems: &mut Problems) {
    resources.matching.check("resources.match", resources, problems);
    let Listed(routes) = &resources.routes;
    if routes.len() > MOST {
        problems.add("resources.routes", format!("at most {MOST} routes: {} are given", routes.len()));
    }
    let mut names = BTreeSet::from([DEFAULT]);
    let first = match sink.kind {
        SinkKind::File => sink.file.path.as_ref().map(|path| path.display().to_string()),
        SinkKind::Stdout => Some("standard output".to_owned()),
        SinkKind::Platform | SinkKind::CloudEvents | SinkKind::Nats => None,
    };
    let mut written: BTreeSet<String> = first.into_iter().collect();
    for (at, route) in routes.iter().enumerate() {
        let at = format!("resources.routes[{at}]");
        let name = &*route.name;
        if !is_name(name) {
            let text = format!(
                "'{name}' is not a name of at most {LONGEST} lower-case letters, digits and -, such as audit"
            );
            problems.add(format!("{at}.name"), text);
        } else if !names.insert(name) {
            let text = match name {
                DEFAULT => format!("'{DEFAULT}' is the route of reporter.sink"),
                _ => format!("'{name}' stands there twice"),
            };
            problems.add(format!("{at}.name"), text);
        }
        route.matching.check(&format!("{at}.match"), resources, problems);
        route.sink.check(&format!("{at}.sink"), platform, problems);
        if let Some(place) = route.sink.writes()
            && !written.insert(place.clone())
        {
            problems.add(format!("{at}.sink"), format!("another route writes to {place}"));
        }
    }
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.len() <= LONGEST && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::catalogue::Catalogue;

    fn config(sink: &Value) -> Config {
        let routes = json!([{"name": "audit", "sink": sink}]);
        let settings = [
            ("platform.token", json!("platform-token")),
            ("platform.caFile", json!("/platform-ca")),
            ("platform.insecure", json!(true)),
            ("reporter.sink.cloudevents.url", json!("https://events.example.com")),
            ("reporter.sink.cloudevents.tokenFile", json!("/events-token")),
            ("reporter.sink.cloudevents.source", json!("/clusters/one")),
            ("resources.routes", routes),
        ];
        Catalogue::get().config(settings.iter().map(|(path, value)| (*path, value))).unwrap()
    }

    #[test]
    fn what_is_not_said_of_the_platform_is_as_it_stands_there_and_another_one_gets_none_of_its_secrets() {
        let config = self::config(&json!({"kind": "platform", "path": "/own"}));
        let Target::Platform(to) = config.resources.routes()[0].target(&config) else { panic!() };
        assert_eq!(to.url.map(Url::as_str), Some("https://g.codefresh.io/"));
        assert!(matches!(to.token, Token::Value(_)) && to.insecure);
        assert_eq!((to.ca_file.unwrap().to_str(), &*to.path.0), (Some("/platform-ca"), "/own"));

        let own = json!({"kind": "platform", "url": "https://other.example.com", "tokenFile": "/other"});
        let config = self::config(&own);
        let Target::Platform(to) = config.resources.routes()[0].target(&config) else { panic!() };
        assert_eq!(to.url.map(Url::as_str), Some("https://other.example.com/"));
        assert!(matches!(&to.token, Token::File(file) if file.to_str() == Some("/other")));
        assert_eq!((to.ca_file, to.insecure, &*to.path.0), (None, false, "/2.0/api/events"));
    }

    #[test]
    fn a_receiver_of_events_gets_no_token_of_another_one() {
        let config = self::config(&json!({"kind": "cloudevents", "url": "https://own.example.com"}));
        let Target::CloudEvents(to) = config.resources.routes()[0].target(&config) else { panic!() };
        assert_eq!((to.token_file, to.ca_file, &*to.source.0), (None, None, "/clusters/one"));
        assert_eq!(to.url.map(Url::as_str), Some("https://own.example.com/"));
    }

    #[test]
    fn a_subject_of_nats_has_a_server_and_credentials_of_its_own() {
        use pipeline_bus::jetstream::{Credentials, Secret};
        let config = self::config(&json!({
            "kind": "nats", "url": "nats://a, tls://b:4333", "subject": "gitops.{kind}", "user": "runtime",
            "passwordFile": "/password", "caFile": "/ca", "format": "cloudevents", "timeout": "2s",
        }));
        let Target::Nats(to) = config.resources.routes()[0].target(&config) else { panic!() };
        assert_eq!((to.route, to.urls), ("audit", &["nats://a".to_owned(), "tls://b:4333".to_owned()][..]));
        assert_eq!((to.subject.as_str(), to.timeout), ("gitops.{kind}", std::time::Duration::from_secs(2)));
        assert_eq!(to.events.map(|source| &*source.0), Some("/clusters/one"));
        let Some(Credentials::Password { user, password: Secret::File(file) }) = to.access.credentials()
        else {
            panic!()
        };
        assert_eq!((user.as_str(), file.to_str()), ("runtime", Some("/password")));
        assert!(to.access.tls().is_some_and(|tls| tls.ca.is_some() && tls.identity.is_none()));

        let config = self::config(&json!({"kind": "nats", "url": "nats://a", "subject": "gitops"}));
        let Target::Nats(to) = config.resources.routes()[0].target(&config) else { panic!() };
        assert!(matches!(to.access.credentials(), Some(Credentials::None)) && to.access.tls().is_none());
        assert_eq!((to.events.is_none(), to.timeout), (true, std::time::Duration::from_secs(5)));
    }

    #[test]
    fn names_are_short_and_plain() {
        for (name, fits) in
            [("audit", true), ("a-1", true), ("", false), ("1a", false), ("Audit", false), ("a_b", false)]
        {
            assert_eq!(is_name(name), fits, "{name}");
        }
        assert!(is_name(&"a".repeat(LONGEST)) && !is_name(&"a".repeat(LONGEST + 1)));
    }
}
