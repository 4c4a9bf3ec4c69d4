//! The settings there are: path, type, default and comment of each, read from `config/default.yaml` and the
//! schema of [`Raw`]. Everything that walks over settings (files, variables, flags, `config print`, the JSON
//! schema) walks over this list, so that a new setting is added in two places and nowhere else.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::problem::did_you_mean;
use super::raw::Raw;
use super::units::Format;

/// The embedded defaults.
pub(crate) const DEFAULT: &str = include_str!("../../config/default.yaml");

const QUOTE: &str = "must be text: put it in quotes";

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
    pub(crate) kind: Kind,
}

/// What may be written for a setting.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Text of a format.
    Text(Format),
    /// A whole number.
    Whole {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// True or false.
    Switch,
    /// One of a few words.
    Choice(Vec<String>),
    /// Several texts of a format.
    List(Format),
}

/// All settings.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// In the order of `default.yaml`.
    pub(crate) settings: Vec<Setting>,
    /// The comments of the groups, by path.
    pub(crate) groups: BTreeMap<String, String>,
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

    /// What to say of the unknown `name` in the group at `path`: the nearest sibling, else a setting elsewhere
    /// that is called so.
    pub(crate) fn nearest(&self, path: &str, name: &str) -> String {
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
        annotate(&mut schema, "", self);
        if let Some(top) = schema.as_object_mut() {
            top.insert("title".to_owned(), "gitops-runtime".into());
        }
        schema
    }

    #[expect(clippy::expect_used, reason = "the embedded file is ours, and a test reads it")]
    fn read() -> Self {
        let default: Value = serde_saphyr::from_str(DEFAULT).expect("default.yaml is YAML");
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let schema = settings.into_generator().into_root_schema_for::<Raw>().to_value();
        let mut catalogue = Self { settings: Vec::new(), groups: BTreeMap::new(), schema };
        for (path, comment) in comments(DEFAULT) {
            let node = at(&default, &path).expect("a key that was read");
            if node.is_object() {
                catalogue.groups.insert(path, comment);
                continue;
            }
            let default = node.clone();
            let kind = kind(&catalogue.schema, &path).expect("a setting of the schema");
            catalogue.settings.push(Setting { variable: variable(&path), path, comment, default, kind });
        }
        catalogue
    }
}

impl Kind {
    /// Brings a value from a file into the form that is kept, or says what it should have been.
    pub(crate) fn accept(&self, value: Value) -> Result<Value, String> {
        match (self, value) {
            (Self::Text(format), Value::Number(number)) if format.number => {
                self.accept(Value::String(number.to_string()))
            }
            (Self::Text(format), Value::String(text)) => (format.check)(&text).map(|()| text.into()),
            (Self::Text(format), Value::Number(number)) if !format.secret => {
                (format.check)(&number.to_string()).and(Err(QUOTE.to_owned()))
            }
            (Self::Text(_), Value::Number(_) | Value::Bool(_)) => Err(QUOTE.to_owned()),
            (Self::Text(_), _) => Err("must be text".to_owned()),
            (Self::Whole { min, max }, value) => match value.as_u64() {
                Some(number) if (*min..=*max).contains(&number) => Ok(value),
                _ => Err(format!("must be a whole number from {min} to {max}")),
            },
            (Self::Switch, value @ Value::Bool(_)) => Ok(value),
            (Self::Switch, _) => Err("must be true or false".to_owned()),
            (Self::Choice(words), Value::String(word)) if words.contains(&word) => Ok(choice(word)),
            (Self::Choice(words), Value::Bool(given)) if words.contains(&given.to_string()) => {
                Ok(given.into())
            }
            (Self::Choice(words), value) => {
                let near = did_you_mean(value.as_str().unwrap_or_default(), words.iter().map(String::as_str));
                Err(format!("must be one of {}{near}", words.join(", ")))
            }
            (Self::List(format), Value::Array(items)) => items
                .into_iter()
                .map(|item| Self::Text(*format).accept(item))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
            (Self::List(_), _) => Err("must be a list such as [a, b]".to_owned()),
        }
    }

    /// Reads the text of a variable or a flag.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        let value = match self {
            Self::Text(_) | Self::Choice(_) => text.into(),
            Self::Whole { .. } => text.trim().parse::<u64>().map_or(Value::Null, Value::from),
            Self::Switch if text.trim().eq_ignore_ascii_case("true") => true.into(),
            Self::Switch if text.trim().eq_ignore_ascii_case("false") => false.into(),
            Self::Switch => Value::Null,
            Self::List(_) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                items.map(Value::from).collect::<Vec<_>>().into()
            }
        };
        self.accept(value)
    }

    /// Whether the value must never be shown.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self, Self::Text(Format { secret: true, .. }))
    }
}

/// A word as it is kept: true and false are no texts.
fn choice(word: String) -> Value {
    match word.as_str() {
        "true" => true.into(),
        "false" => false.into(),
        _ => word.into(),
    }
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

/// The value at `path` of a tree of mappings.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
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

/// What the schema says of the setting at `path`.
fn kind(schema: &Value, path: &str) -> Option<Kind> {
    let leaf = path.split('.').try_fold(schema, |schema, name| schema.get("properties")?.get(name))?;
    let format = |schema: &Value| {
        let name = schema.get("format")?.as_str()?;
        Format::ALL.into_iter().find(|format| format.name == name)
    };
    if let Some(words) = leaf.get("enum").and_then(Value::as_array) {
        let word = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
        return Some(Kind::Choice(words.iter().map(word).collect()));
    }
    match leaf.get("type")?.as_str() {
        Some("boolean") => Some(Kind::Switch),
        Some("integer") => {
            let limit = |name| leaf.get(name).and_then(Value::as_u64);
            Some(Kind::Whole { min: limit("minimum")?, max: limit("maximum")? })
        }
        Some("array") => Some(Kind::List(format(leaf.get("items")?)?)),
        _ => Some(Kind::Text(format(leaf)?)),
    }
}

/// Makes the schema of the full settings one of a file, which may leave out anything.
fn annotate(schema: &mut Value, path: &str, catalogue: &Catalogue) {
    let Some(node) = schema.as_object_mut() else { return };
    node.remove("required");
    node.remove("title");
    let describe = |node: &mut Map<String, Value>, comment: &str| {
        node.insert("description".to_owned(), comment.into());
    };
    if let Some(setting) = catalogue.setting(path) {
        describe(node, &setting.comment);
        node.insert("default".to_owned(), setting.default.clone());
    } else {
        let top = "The settings of gitops-runtime; every one may be left out.".to_owned();
        describe(node, catalogue.groups.get(path).unwrap_or(&top));
        if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
            for (name, child) in properties {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                annotate(child, &path, catalogue);
            }
        }
    }
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
            assert_eq!(setting.kind.accept(setting.default.clone()), Ok(setting.default.clone()));
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
        let whole = Kind::Whole { min: 1, max: 9 };
        assert_eq!(whole.read(" 7 "), Ok(7.into()));
        assert_eq!(whole.read("10"), Err("must be a whole number from 1 to 9".to_owned()));
        assert_eq!(whole.read("-1"), Err("must be a whole number from 1 to 9".to_owned()));
        assert_eq!(Kind::Switch.read("True"), Ok(true.into()));
        assert_eq!(Kind::Switch.read("yes"), Err("must be true or false".to_owned()));
        let choice = Kind::Choice(vec!["jump".to_owned(), "fnv-modulo".to_owned()]);
        assert_eq!(
            choice.read("jmp"),
            Err("must be one of jump, fnv-modulo; did you mean 'jump'?".to_owned())
        );
    }
}
