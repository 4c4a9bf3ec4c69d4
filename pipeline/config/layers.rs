//! Lays the sources of settings over each other: the defaults, then the file, the incumbent's variables, our
//! own, and the flags. Each value is checked where it is laid, so that every problem is found at once and is
//! told with the path and the origin of the value.

use std::collections::BTreeMap;
use std::path::Path;

use pipeline_doctor::Unreadable;
use serde_json::Value;

use super::Config;
use super::catalogue::{Catalogue, Setting};
use super::environment::Ignored;
use super::problem::{Origin, Problems};

/// The largest file that is read.
const FILE_LIMIT: u64 = 1 << 20;

/// The flag that gives any setting; one of its own stands above it.
const SET: &str = "--set";

/// Settings that are different ways to say one thing.
const ALTERNATIVES: [&[&str]; 10] = [
    &["kubernetes.kubeconfig", "kubernetes.server"],
    &["kubernetes.token", "kubernetes.tokenFile"],
    &[
        "argocd.token",
        "argocd.tokenFile",
        "argocd.tokenSecret.name",
        "argocd.password",
        "argocd.passwordFile",
        "argocd.passwordSecret.name",
    ],
    &["platform.token", "platform.tokenFile"],
    &[
        "platformServer.store.path",
        "platformServer.store.postgresUrl",
        "platformServer.store.postgresUrlFile",
    ],
    &["platformServer.oidc.clientSecret", "platformServer.oidc.clientSecretFile"],
    &["tunnelClient.token", "tunnelClient.tokenFile"],
    &["admin.token", "admin.tokenFile"],
    &["traces.otlp.token", "traces.otlp.tokenFile"],
    &[
        "bus.password",
        "bus.passwordFile",
        "bus.token",
        "bus.tokenFile",
        "bus.credentialsFile",
        "bus.nkeyFile",
    ],
];

/// The settings as they are laid so far. Not to be printed: secrets are among them.
#[derive(Default)]
pub(crate) struct Layers {
    over: BTreeMap<&'static str, (Value, Origin)>,
    /// What is wrong so far.
    pub(crate) problems: Problems,
    /// Whether the file could not be read: what it would have said is not missing then.
    pub(crate) is_unread: bool,
    /// Variables that are known and not needed.
    pub(crate) ignored: Vec<Ignored>,
}

impl Layers {
    /// Lays the file at `path`.
    pub(crate) fn file(&mut self, path: &Path) {
        let name = path.display().to_string();
        let origin = Origin::File(name.clone());
        match read(path) {
            Ok(text) => match parse(&text) {
                Ok(value) => self.lay(value, "", &origin),
                Err(problem) => self.problems.add(name, problem),
            },
            Err(error) => {
                self.is_unread = true;
                self.problems.add(name, format!("cannot be read: {error}"));
            }
        }
    }

    /// Lays the text of a flag.
    pub(crate) fn flag(&mut self, path: &str, flag: &str, text: &str) {
        let catalogue = Catalogue::get();
        let Some(setting) = catalogue.setting(path) else {
            if catalogue.groups.contains_key(path) {
                let problem = format!(
                    "is a section: set one of its settings, such as {path}.NAME (`config print` lists them)"
                );
                return self.problems.said(path, problem, Origin::Flag(flag.to_owned()));
            }
            let (group, name) = path.rsplit_once('.').unwrap_or(("", path));
            let near = catalogue.nearest(group, name);
            return self.problems.said(path, format!("unknown setting{near}"), Origin::Flag(flag.to_owned()));
        };
        if setting.is_secret() {
            let file = catalogue.setting(&format!("{path}File"));
            let file = file.map_or_else(String::new, |file| format!("{} or ", file.path));
            let problem = format!(
                "a secret does not belong on the command line, where others can see it; use {file}the variable {}",
                setting.variable
            );
            return self.problems.said(path, problem, Origin::Flag(flag.to_owned()));
        }
        let (known, origin) = self.value(setting);
        if let (Origin::Flag(other), Some(known)) = (origin, known.as_str())
            && other != flag
            && other != SET
            && known != text
        {
            let problem = format!("{known} by {other} and {text} by {flag}: give one of them");
            return self.problems.add(path, problem);
        }
        self.text(setting, text, Origin::Flag(flag.to_owned()));
    }

    /// Lays the text of a variable or a flag.
    pub(crate) fn text(&mut self, setting: &'static Setting, text: &str, origin: Origin) {
        if text.contains(char::REPLACEMENT_CHARACTER) {
            return self.problems.said(&setting.path, "is not text", origin);
        }
        match setting.read(text) {
            Ok(value) => self.put(setting, value, origin),
            Err(problem) => self.problems.said(&setting.path, problem, origin),
        }
    }

    /// The value of a setting, and whose it is.
    pub(crate) fn value<'a>(&'a self, setting: &'a Setting) -> (&'a Value, &'a Origin) {
        match self.over.get(setting.path.as_str()) {
            Some((value, origin)) => (value, origin),
            None => (&setting.default, &Origin::Default),
        }
    }

    /// All settings, as they are read.
    pub(crate) fn read(&mut self) -> Option<Config> {
        let values = self.over.iter().map(|(path, (value, _))| (*path, value));
        let read = Catalogue::get().config(values);
        read.map_err(|error| self.problems.add("the settings", error.to_string())).ok()
    }

    /// Puts a value over the weaker ones. One of several ways to say the same replaces the other ways, where
    /// those were said by a weaker source: a token in the environment stands above a token file in the file.
    fn put(&mut self, setting: &'static Setting, value: Value, origin: Origin) {
        if value.as_str().is_some_and(|text| !text.is_empty()) {
            for group in ALTERNATIVES.iter().filter(|group| group.contains(&setting.path.as_str())) {
                self.over.retain(|path, (_, known)| !group.contains(path) || known.rank() >= origin.rank());
            }
        }
        self.over.insert(&setting.path, (value, origin));
    }

    /// Lays a mapping of settings, or a part of one.
    pub(crate) fn lay(&mut self, value: Value, path: &str, origin: &Origin) {
        let catalogue = Catalogue::get();
        if value.is_null() {
            return;
        }
        if let Some(setting) = catalogue.setting(path) {
            match setting.accept(value) {
                Ok(value) => self.put(setting, value, origin.clone()),
                Err(problem) => self.problems.said(path, problem, origin.clone()),
            }
            return;
        }
        let names = catalogue.names_in(path);
        let Value::Object(map) = value else {
            let at = match origin {
                Origin::File(name) if path.is_empty() => name,
                _ => path,
            };
            self.problems.add(at, format!("must be a mapping with {}", names.join(", ")));
            return;
        };
        for (name, value) in map {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if names.contains(&name.as_str()) {
                self.lay(value, &below, origin);
            } else {
                self.problems.add(below, format!("unknown key{}", catalogue.nearest(path, &name)));
            }
        }
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(std::io::Error::other("it is larger than 1 MiB"));
    }
    Unreadable::text(bytes).map_err(|error| {
        let place = if error.line == 0 { String::new() } else { format!("line {}: ", error.line) };
        std::io::Error::other(format!("{place}{}; {}", error.why, error.todo()))
    })
}

/// Parses YAML. The error tells where it is, and nothing of what stands there: it may be a secret.
fn parse(text: &str) -> Result<Value, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let what = match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { .. } => "a key stands twice",
            serde_saphyr::Error::MultipleDocuments { .. } => "holds more than one document",
            _ => "is not YAML",
        };
        match error.location() {
            Some(location) => format!("{what}, at line {} column {}", location.line(), location.column()),
            None => what.to_owned(),
        }
    })
}
