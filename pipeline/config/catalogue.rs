//! The settings there are: path, type, default and comment of each, read from `config/default.yaml` and the
//! schema of [`Config`]. Everything that walks over settings (files, variables, flags, `config print`, the JSON
//! schema) walks over this list, so that a new setting is added in two places and nowhere else.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use pipeline_core::SecretString;
use schemars::generate::SchemaSettings;
use serde::Deserialize as _;
use serde_json::Value;

use super::Config;
use super::problem::did_you_mean;
use super::traces::Headers;
use super::units::Unit;

/// The embedded defaults.
pub(crate) const DEFAULT: &str = include_str!("../../config/default.yaml");

/// Settings that there were, and what to do instead.
const REMOVED: [(&str, &str); 1] = [(
    "bus.leases.store",
    "; it was removed: leases are kept on the bus, so leave it out, and take back the rights to Lease objects",
)];

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Such as `reporter.queue.events`.
    pub(crate) path: String,
    /// The name of the variable that sets it.
    pub(crate) variable: String,
    /// Its comment in `default.yaml`, as one line.
    pub(crate) comment: String,
    /// What it is when nobody says otherwise.
    pub(crate) default: Value,
    /// What may be written.
    schema: Value,
}

/// All settings.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// In the order of `default.yaml`.
    pub(crate) settings: Vec<Setting>,
    /// The comments of the groups, by path; the top is `""`.
    pub(crate) groups: BTreeMap<String, String>,
    defaults: Value,
    schema: Value,
}

impl Catalogue {
    /// The one there is.
    pub(crate) fn get() -> &'static Self {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(Self::read)
    }

    /// The setting at `path`.
    pub(crate) fn setting(&self, path: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.path == path)
    }

    /// The names one level below the group at `path` (`""` is the top).
    pub(crate) fn names_in(&self, path: &str) -> Vec<&str> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
        let mut names: Vec<&str> = Vec::new();
        for setting in &self.settings {
            let name = setting.path.strip_prefix(&prefix).and_then(|rest| rest.split('.').next());
            if let Some(name) = name
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// What to say of the unknown `name` in the group at `path`: what replaced it, else the nearest sibling, else a
    /// setting elsewhere that is called so.
    pub(crate) fn nearest(&self, path: &str, name: &str) -> String {
        if let Some((_, instead)) = REMOVED.iter().find(|(at, _)| *at == format!("{path}.{name}")) {
            return (*instead).to_owned();
        }
        let near = did_you_mean(name, self.names_in(path));
        if !near.is_empty() {
            return near;
        }
        let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
        let mut elsewhere = self.settings.iter().map(|setting| &setting.path).chain(self.groups.keys());
        match elsewhere.find(|path| last(path) == name) {
            Some(path) => format!("; did you mean '{path}'?"),
            None => String::new(),
        }
    }

    /// The JSON schema of a file: every setting may be left out; defaults and comments are those of
    /// `default.yaml`.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = self.schema.clone();
        let groups = self.groups.iter().map(|(path, comment)| (path, comment, None));
        let settings = self.settings.iter().map(|it| (&it.path, &it.comment, Some(&it.default)));
        for (path, comment, default) in groups.chain(settings) {
            let node = schema.pointer_mut(&pointer(path, "/properties/")).and_then(Value::as_object_mut);
            let Some(node) = node else { continue };
            node.remove("required");
            node.insert("description".to_owned(), comment.as_str().into());
            node.extend(default.map(|default| ("default".to_owned(), default.clone())));
        }
        schema
    }

    /// The settings with these values of some, by path; all others are as `default.yaml` has them.
    pub(crate) fn config<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<Config, serde_json::Error> {
        let mut tree = self.defaults.clone();
        for (path, value) in values {
            if let Some(place) = tree.pointer_mut(&pointer(path, "/")) {
                place.clone_from(value);
            }
        }
        Config::deserialize(tree)
    }

    #[expect(clippy::expect_used, reason = "the embedded file is ours, and a test reads it")]
    fn read() -> Self {
        let defaults: Value = serde_saphyr::from_str(DEFAULT).expect("default.yaml is YAML");
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
        let top = (String::new(), "The settings of gitops-runtime; every one may be left out.".to_owned());
        let (mut settings, mut groups) = (Vec::new(), BTreeMap::from([top]));
        for (path, comment) in comments(DEFAULT) {
            let default = defaults.pointer(&pointer(&path, "/")).expect("a key that was read").clone();
            if default.is_object() {
                groups.insert(path, comment);
                continue;
            }
            let schema = schema.pointer(&pointer(&path, "/properties/")).expect("a setting of the schema");
            let schema = schema.clone();
            settings.push(Setting { variable: variable(&path), path, comment, default, schema });
        }
        Self { settings, groups, defaults, schema }
    }
}

impl Setting {
    /// Brings a value from a file into the form that is kept, or says what it should have been.
    pub(crate) fn accept(&self, value: Value) -> Result<Value, String> {
        if let Some(words) = self.schema.get("enum").and_then(Value::as_array) {
            let text = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            let given = text(&value);
            return words.iter().find(|word| text(word) == given).cloned().ok_or_else(|| {
                let words: Vec<String> = words.iter().map(text).collect();
                let near = did_you_mean(value.as_str().unwrap_or_default(), words.iter().map(String::as_str));
                format!("must be one of {}{near}", words.join(", "))
            });
        }
        let limit = |name| self.schema.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (min, max) = (limit("minimum"), limit("maximum"));
        match (&self.default, &value) {
            (Value::Bool(_), Value::Bool(_)) => {}
            (Value::Bool(_), _) => return Err("must be true or false".to_owned()),
            (Value::Number(_), given) if given.as_u64().is_some_and(|it| (min..=max).contains(&it)) => {}
            (Value::Number(_), _) => return Err(format!("must be a whole number from {min} to {max}")),
            (Value::Array(_), Value::Array(_)) => {}
            (Value::Array(_), _) => return Err("must be a list such as [a, b]".to_owned()),
            _ => {}
        }
        let read = Catalogue::get().config([(self.path.as_str(), &value)]);
        read.map_err(|error| error.to_string())?;
        Ok(if self.default.is_string() && value.is_number() { value.to_string().into() } else { value })
    }

    /// Reads the text of a variable or a flag.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        let word = text.trim();
        self.accept(match &self.default {
            Value::Number(_) => word.parse::<u64>().map_or(Value::Null, Value::from),
            Value::Bool(_) => word.to_ascii_lowercase().parse::<bool>().map_or(Value::Null, Value::from),
            Value::Array(_) => text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect(),
            _ => text.into(),
        })
    }

    /// Whether the value must never be shown.
    pub(crate) fn is_secret(&self) -> bool {
        let format = self.schema.get("format").and_then(Value::as_str);
        format.is_some_and(|format| [Option::<SecretString>::FORMAT, Headers::FORMAT].contains(&format))
    }
}

/// What to say of the unknown variable `name` if it set something that was removed.
pub(crate) fn removed(name: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(path, _)| variable(path) == name).map(|(_, instead)| *instead)
}

/// The variable of the setting at `path`: `GITOPS_RUNTIME_REPORTER__RATE_LIMIT__BUCKET`.
fn variable(path: &str) -> String {
    let mut name = String::from(super::environment::PREFIX);
    for c in path.chars() {
        match c {
            '.' => name.push_str("__"),
            c if c.is_ascii_uppercase() => {
                name.push('_');
                name.push(c);
            }
            c => name.push(c.to_ascii_uppercase()),
        }
    }
    name
}

/// The JSON pointer of the setting at `path`, where `above` stands before each name.
fn pointer(path: &str, above: &str) -> String {
    path.split('.').filter(|name| !name.is_empty()).map(|name| format!("{above}{name}")).collect()
}

/// Every key of `default.yaml`, in order, with the comment above it.
fn comments(yaml: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for line in yaml.lines() {
        let text = line.trim_start();
        if let Some(comment) = text.strip_prefix('#') {
            above.push(comment.trim());
        } else if let Some((name, _)) = text.split_once(':') {
            names.truncate((line.len() - text.len()) / 2);
            names.push(name);
            found.push((names.join("."), std::mem::take(&mut above).join(" ")));
        } else {
            above.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(schema: &Value, path: &str, found: &mut Vec<String>) {
        match schema.get("properties").and_then(Value::as_object) {
            None => found.push(path.to_owned()),
            Some(properties) => {
                for (name, child) in properties {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    leaves(child, &path, found);
                }
            }
        }
    }

    #[test]
    fn default_yaml_holds_every_setting_with_its_comment() {
        let catalogue = Catalogue::get();
        let mut known = Vec::new();
        leaves(&catalogue.schema, "", &mut known);
        let mut written: Vec<String> = catalogue.settings.iter().map(|s| s.path.clone()).collect();
        known.sort();
        written.sort();
        assert_eq!(known, written);
        assert!(written.len() > 50);
        for setting in &catalogue.settings {
            assert!(!setting.comment.is_empty(), "{} has no comment", setting.path);
            assert_eq!(setting.accept(setting.default.clone()), Ok(setting.default.clone()));
        }
        for (path, comment) in &catalogue.groups {
            assert!(!comment.is_empty(), "{path} has no comment");
        }
    }

    #[test]
    fn every_setting_has_a_variable_of_its_own() {
        let settings = &Catalogue::get().settings;
        let names: std::collections::BTreeSet<&str> = settings.iter().map(|s| s.variable.as_str()).collect();
        assert_eq!(names.len(), settings.len());
        assert!(names.contains("GITOPS_RUNTIME_REPORTER__LANES__REPORT_CONCURRENCY"));
    }

    #[test]
    fn an_unknown_name_is_looked_for_beside_it_and_then_everywhere() {
        let catalogue = Catalogue::get();
        assert_eq!(catalogue.nearest("reporter.queue", "evnts"), "; did you mean 'events'?");
        assert_eq!(catalogue.nearest("", "gzipLevel"), "; did you mean 'reporter.sink.platform.gzipLevel'?");
        assert_eq!(catalogue.nearest("", "queue"), "; did you mean 'reporter.queue'?");
        assert_eq!(catalogue.nearest("", "bananas"), "");
    }

    #[test]
    fn text_of_variables_becomes_values() {
        let read = |path: &str, text: &str| Catalogue::get().setting(path).unwrap().read(text);
        let [retries, insecure, algorithm] =
            ["argocd.retries", "argocd.insecure", "reporter.sharding.algorithm"];
        assert_eq!(read(retries, " 7 "), Ok(7.into()));
        assert_eq!(read(retries, "11"), Err("must be a whole number from 1 to 10".to_owned()));
        assert_eq!(read(retries, "-1"), Err("must be a whole number from 1 to 10".to_owned()));
        assert_eq!(read(insecure, "True"), Ok(true.into()));
        assert_eq!(read(insecure, "yes"), Err("must be true or false".to_owned()));
        let near = "must be one of jump, fnv-modulo; did you mean 'jump'?";
        assert_eq!(read(algorithm, "jmp"), Err(near.to_owned()));
        assert_eq!(read("reporter.digest.enabled", "true"), Ok(true.into()));
        let size = Catalogue::get().setting("reporter.queue.bytes").unwrap();
        assert_eq!(size.accept(2_097_152.into()), Ok("2097152".into()));
    }
}
