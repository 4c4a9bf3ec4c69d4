//! Values with the place in the file that each was read from.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number};
use serde_saphyr::{Location, NonFiniteFloatPolicy, Spanned};

use crate::unreadable::Unreadable;

/// A value, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// The line of the file, from 1; 0 where that is not known.
    pub line: u64,
    /// The file; `None`: the chart's own values.
    pub file: Option<Arc<str>>,
}

/// What stands at a place.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(String, Node)>),
}

/// A file that was read.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name, as it was given.
    pub name: Arc<str>,
    /// What it holds.
    pub root: Node,
}

impl File {
    /// Reads a file of values; anchors and merge keys are expanded, as Helm does.
    ///
    /// # Errors
    /// When it is no YAML, holds more than one document that is not empty, a key twice, or no mapping.
    pub fn read(name: &str, text: &str) -> Result<Self, Unreadable> {
        let name: Arc<str> = name.into();
        // Helm reads 0400 as octal, as YAML 1.1 has it.
        let options = serde_saphyr::options! {
            with_snippet: false, legacy_octal_numbers: true, non_finite_float_policy: NonFiniteFloatPolicy::PassThrough
        };
        let text = without_empty_end(text);
        let read = serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options);
        let read = read.map_err(|error| {
            let line = error.location().map_or(0, |location| location.line());
            let why = match error.without_snippet() {
                serde_saphyr::Error::DuplicateMappingKey { .. } => "a key stands twice",
                serde_saphyr::Error::MultipleDocuments { .. } => "more than one document",
                _ => return cause(text, line).unwrap_or(Unreadable { line, why: "no YAML" }),
            };
            Unreadable { line, why }
        })?;
        let mut root = Written { file: &name, text }.node(read)?;
        if root.value == Value::Null {
            root.value = Value::Map(Vec::new());
        }
        if let Value::Map(entries) = &mut root.value {
            entries.retain(|(key, node)| !(HEADINGS.contains(&key.as_str()) && node.value == Value::Null));
        }
        if let (Some(_), Some(kind)) = (root.get("apiVersion"), root.get("kind")) {
            return Err(Unreadable { line: kind.line, why: OBJECT });
        }
        if let Some(mark) = root.get("sops").filter(|mark| mark.get("version").is_some()) {
            return Err(Unreadable { line: mark.line, why: ENCRYPTED });
        }
        match root.value {
            Value::Map(_) => Ok(Self { name, root }),
            _ => Err(Unreadable { line: root.line, why: "no mapping of values" }),
        }
    }

    /// The values of this chart, where the file is one for a chart that has it as a dependency; several times, where that has several of
    /// it under names of their own.
    #[must_use]
    pub fn dependencies(&self) -> Vec<Dependency<'_>> {
        let is_marked = |node: &Node| {
            let global = node.get("global");
            MARKS.iter().any(|mark| node.get(mark).is_some())
                || ["codefresh", "runtime"]
                    .iter()
                    .any(|key| global.is_some_and(|global| global.get(key).is_some()))
        };
        if MARKS.iter().any(|mark| self.root.get(mark).is_some()) {
            return Vec::new();
        }
        let marked = self.root.entries().iter().filter(|(key, node)| key != "global" && is_marked(node));
        marked.map(|(key, values)| Dependency { key, values }).collect()
    }
}

/// What a chart above gives this one.
#[derive(Debug)]
pub struct Dependency<'a> {
    /// The key that it stands below: the name of the dependency, or its alias.
    pub key: &'a str,
    /// What stands there.
    pub values: &'a Node,
}

/// What `helm get values` sets above the values, which is none of them.
const HEADINGS: [&str; 2] = ["USER-SUPPLIED VALUES", "COMPUTED VALUES"];

/// What is said of a file that is no values, but may hold some.
const OBJECT: &str = "an object of Kubernetes: give the values in it, such as what stands under spec.values";

/// What is said of a file that only whoever has a key can read.
const ENCRYPTED: &str = "a file that SOPS encrypted: give what `sops --decrypt` prints, such as by `-f -`";

/// Components that no other chart has, of this one and of the incumbent's.
const MARKS: &[&str] = &[
    "app-proxy",
    "appProxy",
    "argo-gateway",
    "cf-argocd-extras",
    "changeRevision",
    "event-reporters",
    "gitops-operator",
    "internal-router",
    "resourceReporter",
    "sourceServer",
    "tunnel-client",
    "tunnelClient",
];

/// A text without the empty documents at its end. At its beginning an empty one counts: Helm reads the first.
fn without_empty_end(text: &str) -> &str {
    let is_mark = |line: &str| line.strip_prefix("---").is_some_and(is_blank);
    let mut rest = text;
    for line in text.split_inclusive('\n').rev() {
        rest = rest.strip_suffix(line).unwrap_or(rest);
        match is_mark(line) {
            true if !rest.trim().is_empty() => return without_empty_end(rest),
            true => return text,
            false if is_blank(line) || line.trim_end() == "..." => {}
            false => return text,
        }
    }
    text
}

/// Whether nothing but a comment stands in a line.
fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// What people often write that is no YAML, where it stands at a line or beside it.
fn cause(text: &str, line: u64) -> Option<Unreadable> {
    let near = |number: u64| number > 0 && number + 1 >= line && number <= line + 1;
    let lines = (1_u64..).zip(text.lines()).filter(|(number, _)| near(*number));
    lines.into_iter().find_map(|(line, text)| {
        let why = match text.trim_start_matches(' ') {
            rest if rest.starts_with('\t') => "a tab where spaces are wanted",
            rest if rest.contains("{{") => "a template that is not rendered yet",
            _ => return None,
        };
        Some(Unreadable { line, why })
    })
}

impl Node {
    /// The same in no line: of values that no file holds.
    #[must_use]
    pub fn without_lines(mut self) -> Self {
        self.line = 0;
        self.value = match self.value {
            Value::Map(entries) => {
                Value::Map(entries.into_iter().map(|(key, node)| (key, node.without_lines())).collect())
            }
            Value::List(items) => Value::List(items.into_iter().map(Self::without_lines).collect()),
            value => value,
        };
        self
    }

    /// What stands at a path of keys with dots between them.
    #[must_use]
    pub fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// What stands under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The text, where it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The entries of a mapping; none for anything else.
    #[must_use]
    pub fn entries(&self) -> &[(String, Self)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none for anything else.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The whole number, where it is one.
    #[must_use]
    pub fn whole(&self) -> Option<i64> {
        match &self.value {
            Value::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    /// The same without places.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(truth) => (*truth).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Self::json).collect(),
            Value::Map(entries) => serde_json::Value::Object(
                entries.iter().map(|(key, node)| (key.clone(), node.json())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// Joins a later file to this one as Helm does: mappings are merged, all else is replaced. A null stays until all of them are laid
    /// over the chart's own values.
    pub fn join(&mut self, later: &Self) {
        let (Value::Map(entries), Value::Map(others)) = (&mut self.value, &later.value) else {
            self.clone_from(later);
            return;
        };
        for (key, other) in others {
            match entries.iter_mut().find(|(name, _)| name == key) {
                Some((_, node)) => node.join(other),
                None => entries.push((key.clone(), other.clone())),
            }
        }
        self.line = later.line;
        self.file.clone_from(&later.file);
    }

    /// Lays what is given over the chart's own values as Helm does: mappings are merged, null takes a key away, all else is replaced.
    pub fn lay(&mut self, over: &Self) {
        let (Value::Map(entries), Value::Map(others)) = (&mut self.value, &over.value) else {
            self.clone_from(over);
            return;
        };
        for (key, other) in others {
            let known = entries.iter().position(|(name, _)| name == key);
            match (known, &other.value) {
                (Some(at), Value::Null) => drop(entries.remove(at)),
                (None, Value::Null) => {}
                (Some(at), _) => {
                    if let Some((_, node)) = entries.get_mut(at) {
                        node.lay(other);
                    }
                }
                (None, _) => entries.push((key.clone(), other.clone())),
            }
        }
        self.line = over.line;
        self.file.clone_from(&over.file);
    }
}

/// A number as Helm has it, to which 1.0 and 1e3 are whole ones.
fn whole(number: Number) -> Number {
    /// Up to here a float tells one whole number from the next.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) if float.fract() == 0.0 && float.abs() < MOST => {
            format!("{float:.0}").parse().unwrap_or(number)
        }
        _ => number,
    }
}

/// A file as it was written.
struct Written<'a> {
    file: &'a Arc<str>,
    text: &'a str,
}

impl Written<'_> {
    fn node(&self, spanned: Spanned<Raw>) -> Result<Node, Unreadable> {
        let line = spanned.referenced.line();
        let value = match spanned.value {
            Raw::Null => Value::Null,
            Raw::Bool(truth) => Value::Bool(truth),
            Raw::Number(number) => Value::Number(whole(number)),
            Raw::Boundless => {
                let text = self.number(&spanned.defined);
                Value::Text(text.ok_or(Unreadable { line, why: "a number that is none" })?)
            }
            Raw::Text(text) => Value::Text(text),
            Raw::List(items) => {
                Value::List(items.into_iter().map(|item| self.node(item)).collect::<Result<_, Unreadable>>()?)
            }
            Raw::Map(entries) => {
                let entry = |(key, spanned): (Spanned<String>, Spanned<Raw>)| -> Result<_, Unreadable> {
                    // A key is what people look for; a mapping begins below it.
                    let line = key.referenced.line();
                    let mut node = self.node(spanned)?;
                    if line > 0 {
                        node.line = line;
                    }
                    Ok((key.value, node))
                };
                Value::Map(entries.into_iter().map(entry).collect::<Result<_, _>>()?)
            }
        };
        Ok(Node { value, line, file: Some(Arc::clone(self.file)) })
    }

    /// What stands there, where it is a number beyond all that a computer counts, such as the id 5078e19018: Helm takes it for a text.
    fn number(&self, at: &Location) -> Option<String> {
        let place = |number: u64| usize::try_from(number).ok()?.checked_sub(1);
        let line = self.text.lines().nth(place(at.line())?)?;
        let rest: String = line.chars().skip(place(at.column())?).collect();
        // An anchor or a tag may stand before it.
        let word = rest.split_whitespace().find(|word| !word.starts_with(['&', '!']))?;
        let is_part = |c: &char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        let text: String = word.chars().take_while(is_part).collect();
        text.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit()).then_some(text)
    }
}

enum Raw {
    Null,
    Bool(bool),
    Number(Number),
    /// One that is not finite.
    Boundless,
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(truth))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Number(number.into()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Raw, E> {
        Ok(Raw::Number(number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Raw, E> {
        Ok(Number::from_f64(number).map_or(Raw::Boundless, Raw::Number))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_line() {
        let text = "# a comment\na:\n  b: 1\n  c:\n    - x\n    - y: true\n";
        let file = File::read("values.yaml", text).unwrap();
        let line = |path: &str| file.root.at(path).unwrap().line;
        assert_eq!((line("a"), line("a.b"), line("a.c")), (2, 3, 4));
        let Value::List(items) = &file.root.at("a.c").unwrap().value else { panic!("no list") };
        assert_eq!(items.iter().map(|item| item.line).collect::<Vec<_>>(), [5, 6]);
    }

    #[test]
    fn anchors_and_merge_keys_are_expanded() {
        let text = "anchors:\n  - &a\n    X: '1'\nenv:\n  !!merge <<:\n    - *a\n  Y: 2\n";
        let file = File::read("values.yaml", text).unwrap();
        assert_eq!(file.root.at("env").unwrap().json(), serde_json::json!({"X": "1", "Y": 2}));
    }

    #[test]
    fn what_is_no_file_of_values_is_refused_with_its_line() {
        let why = |text: &str| File::read("x", text).map(|_| ()).unwrap_err();
        assert_eq!(why("a: [1\nb: 2\n").why, "no YAML");
        assert_eq!(why("a: 1\nb: 2\na: 3\n"), Unreadable { line: 3, why: "a key stands twice" });
        assert_eq!(why("- a\n").why, "no mapping of values");
        assert!(File::read("x", "").unwrap().root.entries().is_empty());
    }

    #[test]
    fn empty_documents_at_the_end_are_none() {
        for end in ["---", "---\n", "---\n---\n# end\n\n", "--- # end\n", "---\n...\n", "...\n", "---   \r\n"]
        {
            let file = File::read("x", &format!("---\n# a comment\na: 1\n{end}")).unwrap();
            assert_eq!(file.root.json(), serde_json::json!({"a": 1}), "{end:?}");
        }
        let two = Err(Unreadable { line: 4, why: "more than one document" });
        for end in ["---\nb: 2\n", "---\nb: 2\n---\n"] {
            assert_eq!(File::read("x", &format!("\na: 1\n{end}")).map(|_| ()), two, "{end:?}");
        }
        // Helm reads the first alone, which is empty.
        assert!(File::read("x", "---\n---\na: 1\n").is_err());
        let text = "a: |\n  b\n  ---\n";
        assert_eq!(File::read("x", text).unwrap().root.json(), serde_json::json!({"a": "b\n---\n"}));
        for text in ["", "---\n", "# nothing\n---\n"] {
            assert!(File::read("x", text).unwrap().root.entries().is_empty(), "{text:?}");
        }
    }

    #[test]
    fn numbers_and_truths_are_read_as_helm_reads_them() {
        let text = "mode: 0400\nother: 0o400\non: yes\noff: No\nquoted: 'yes'\nid: 612345678901234567890123\nlate: 08\n";
        let file = File::read("x", text).unwrap();
        let expected = serde_json::json!({
            "mode": 256, "other": 256, "on": true, "off": false, "quoted": "yes", "id": 6.123456789012346e23, "late": 8
        });
        assert_eq!(file.root.json(), expected);
    }

    #[test]
    fn what_is_often_written_instead_of_yaml_is_named() {
        let why = |text: &str| File::read("x", text).map(|_| ()).unwrap_err();
        let tab = Unreadable { line: 3, why: "a tab where spaces are wanted" };
        assert_eq!(why("global:\n  runtime:\n\tname: a\n"), tab);
        let template = Unreadable { line: 2, why: "a template that is not rendered yet" };
        assert_eq!(why("a: 1\nb: {{ .Values.b }}\nc: 2\n"), template);
        let encrypted = Unreadable { line: 2, why: ENCRYPTED };
        assert_eq!(
            why("global: {a: 'ENC[AES256_GCM,data:Zm9v]'}\nsops: {kms: [], version: 3.9.0}\n"),
            encrypted
        );
        let object = Unreadable { line: 2, why: OBJECT };
        assert_eq!(why("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {}\n"), object);
    }

    #[test]
    fn a_number_beyond_all_numbers_is_a_text_as_helm_has_it() {
        let text = "# An id.\nglobal: {ä: 5078e19018, b: [-1e999]}\nid: &id 1e400 # a comment\nsame: *id\nmost: 1e300\n";
        let json = File::read("x", text).unwrap().root.json();
        let expected = serde_json::json!({
            "global": {"ä": "5078e19018", "b": ["-1e999"]}, "id": "1e400", "same": "1e400", "most": 1e300
        });
        assert_eq!(json, expected);
        for text in [".inf", "-.inf", ".nan"] {
            let none = Unreadable { line: 2, why: "a number that is none" };
            assert_eq!(File::read("x", &format!("a: 1\nb: {text}\n")).map(|_| ()), Err(none));
        }
    }

    #[test]
    fn a_chart_above_has_this_ones_values_below_a_key_or_several() {
        let keys = |text: &str| -> Vec<String> {
            let file = File::read("x", text).unwrap();
            file.dependencies().iter().map(|below| below.key.to_owned()).collect()
        };
        assert_eq!(keys("global: {}\nnginx: {a: 1}\ncf: {app-proxy: {}}\n"), ["cf"]);
        assert_eq!(keys("cf: {global: {runtime: {name: a}}}\n"), ["cf"]);
        assert_eq!(keys("a: {tunnelClient: {}}\nother: {}\nb: {tunnelClient: {}}\n"), ["a", "b"]);
        for text in ["app-proxy: {app-proxy: 1}\n", "nginx: {a: 1}\n"] {
            assert_eq!(keys(text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn a_null_of_a_file_takes_away_what_the_chart_has_unless_a_later_file_gives_something() {
        let read = |text: &str| File::read("x", text).unwrap().root;
        let helm = |files: &[&str]| {
            let mut given = read("");
            files.iter().for_each(|text| given.join(&read(text)));
            let mut all = read("a: {b: {c: 0, d: 2}, e: 5}\n");
            all.lay(&given);
            all.json()
        };
        let (one, none, all_none, other) = ("a: {b: {c: 1}}\n", "a: {b: null}\n", "a:\n", "a: {b: {d: 7}}\n");
        // As Helm 3.22 says of a chart with these values.
        let whole = serde_json::json!({"a": {"b": {"c": 0, "d": 7}, "e": 5}});
        assert_eq!(helm(&[one, none]), serde_json::json!({"a": {"e": 5}}));
        assert_eq!(helm(&[none, other]), whole);
        assert_eq!(helm(&[all_none, other]), whole);
        assert_eq!(helm(&[one, none, other]), whole);
        for files in [&[all_none][..], &[one, all_none]] {
            assert_eq!(helm(files), serde_json::json!({}));
        }
    }

    #[test]
    fn numbers_and_headings_are_read_as_helm_has_them() {
        let read = |text: &str| File::read("x", text).unwrap().root.json();
        assert_eq!(
            read("a: 1.0\nb: 1e3\nc: 1.5\nd: -2.0\n").to_string(),
            r#"{"a":1,"b":1000,"c":1.5,"d":-2}"#
        );
        assert_eq!(read("USER-SUPPLIED VALUES:\na: 1\n"), serde_json::json!({"a": 1}));
        // A null is what it says, and so do all others.
        assert_eq!(
            read("USER-SUPPLIED VALUES: 1\nVALUES:\n").to_string(),
            r#"{"USER-SUPPLIED VALUES":1,"VALUES":null}"#
        );
    }

    #[test]
    fn values_are_laid_over_those_of_the_chart_as_helm_does() {
        let read = |text: &str| File::read("x", text).unwrap().root;
        let mut under = read("a: {b: 1, c: 2}\nd: [1, 2]\n");
        under.lay(&read("a: {b: null, e: 3}\nd: [4]\n"));
        assert_eq!(under.json(), serde_json::json!({"a": {"c": 2, "e": 3}, "d": [4]}));
    }
}
