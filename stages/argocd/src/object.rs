//! Texts of reported objects.

use std::io;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter};
use serde_json::{Map, Value, json};

use crate::application::{Application, child};
use crate::payload::{self, ObjectText};
use crate::plan::ResourceRef;
use crate::responses::Commit;

const REVISIONS_ANNOTATION: &str = "app.meta.revisions-metadata";

/// A revision and, where it is a commit that could be looked up, who made it.
pub(crate) type Revision = (String, Option<Commit>);

/// The commits that an application's object is marked with.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Marks {
    /// `None` where a look-up failed, or there is none.
    pub(crate) synced: Option<Vec<Revision>>,
    /// As `synced`.
    pub(crate) changed: Option<Vec<Revision>>,
    /// Which of `synced` the labels tell of.
    pub(crate) first: usize,
}

impl Marks {
    /// The commit of the first source that has manifests.
    pub(crate) fn commit(&self) -> Option<&Commit> {
        self.synced.as_ref()?.get(self.first)?.1.as_ref()
    }

    /// The members in the order that receivers know.
    fn annotation(&self) -> String {
        let list = |revisions: &Option<Vec<Revision>>| {
            revisions.as_ref().map(|revisions| revisions.iter().map(MarkedRevision::of).collect())
        };
        text(&Annotation { sync_revisions: list(&self.synced), change_revisions: list(&self.changed) })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotation {
    sync_revisions: Option<Vec<MarkedRevision>>,
    change_revisions: Option<Vec<MarkedRevision>>,
}

#[derive(Serialize)]
struct MarkedRevision {
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<MarkMetadata>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MarkMetadata {
    #[serde(skip_serializing_if = "String::is_empty")]
    author: String,
    date: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    signature_info: String,
}

impl MarkedRevision {
    fn of((revision, commit): &Revision) -> Self {
        let metadata = commit.as_ref().map(|commit| MarkMetadata {
            author: commit.author.clone(),
            date: payload::time(&commit.date),
            tags: commit.tags.clone(),
            message: commit.message.clone(),
            signature_info: commit.signature.clone(),
        });
        Self { revision: revision.clone(), metadata }
    }
}

/// The application as watched, with the members that always stand. `gone`: its deletion is marked as of now
/// if no finalizer marked it before.
pub(crate) fn application(app: &Application, marks: Option<&Marks>, gone: Option<Timestamp>) -> ObjectText {
    let mut object = Members::of(&app.object);
    if let Some(marks) = marks {
        add_marks(object.change("metadata"), marks);
    }
    match gone.filter(|_| !app.deleting) {
        None => object.text().into(),
        Some(now) => {
            let mut dated = |at: String| {
                object.change("metadata").insert("deletionTimestamp".to_owned(), at.into());
                object.text()
            };
            let timeless = Some(dated(String::new()));
            ObjectText { text: dated(payload::seconds(now)), timeless }
        }
    }
}

/// An application's members, and those that stand in place of its own: nearly always its status is passed on as it is, and
/// that is most of it.
struct Members<'a> {
    own: &'a Map<String, Value>,
    changed: Map<String, Value>,
}

impl<'a> Members<'a> {
    /// Struct members of the wire format stand even where the object has none.
    fn of(own: &'a Map<String, Value>) -> Self {
        let mut members = Self { own, changed: Map::new() };
        members.changed.insert("kind".to_owned(), "Application".into());
        members.changed.insert("apiVersion".to_owned(), "argoproj.io/v1alpha1".into());
        if !is_whole(own.get("spec"), &[&["destination"]], &[&["project"]]) {
            complete_spec(members.change("spec"));
        }
        let maps: [&[&str]; 3] = [&["health"], &["summary"], &["sync", "comparedTo", "destination"]];
        let others: [&[&str]; 2] = [&["sync", "status"], &["sync", "comparedTo", "source", "repoURL"]];
        if !is_whole(own.get("status"), &maps, &others) {
            complete_status(members.change("status"));
        }
        members
    }

    /// A member that is an object, to be changed.
    fn change(&mut self, name: &str) -> &mut Map<String, Value> {
        if !self.changed.contains_key(name)
            && let Some(own) = self.own.get(name)
        {
            self.changed.insert(name.to_owned(), own.clone());
        }
        child(&mut self.changed, name)
    }

    /// Members in the order in which an Application is declared; maps below are sorted.
    fn text(&self) -> String {
        const ORDER: [&str; 6] = ["kind", "apiVersion", "metadata", "spec", "status", "operation"];
        let mut out = Vec::with_capacity(8 * 1024);
        let others = self.own.iter().filter(|(name, _)| !ORDER.contains(&name.as_str()));
        let others = others.map(|(name, value)| (name.as_str(), value));
        let ordered = ORDER.into_iter().filter_map(|name| {
            let value = self.changed.get(name).or_else(|| self.own.get(name))?;
            Some((name, value))
        });
        for (name, value) in ordered.chain(others) {
            out.push(if out.is_empty() { b'{' } else { b',' });
            write(&mut out, name);
            out.push(b':');
            write(&mut out, value);
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Whether an object has something at each of these paths, and objects at each of `maps`.
fn is_whole(section: Option<&Value>, maps: &[&[&str]], others: &[&[&str]]) -> bool {
    let at = |path: &&[&str]| path.iter().try_fold(section?, |of, name| of.as_object()?.get(*name));
    maps.iter().all(|path| at(path).is_some_and(Value::is_object))
        && others.iter().all(|path| at(path).is_some())
}

fn complete_spec(spec: &mut Map<String, Value>) {
    child(spec, "destination");
    spec.entry("project").or_insert_with(|| "".into());
}

fn complete_status(status: &mut Map<String, Value>) {
    child(status, "health");
    child(status, "summary");
    let sync = child(status, "sync");
    sync.entry("status").or_insert_with(|| "".into());
    let compared = child(sync, "comparedTo");
    child(compared, "source").entry("repoURL").or_insert_with(|| "".into());
    child(compared, "destination");
}

fn add_marks(metadata: &mut Map<String, Value>, marks: &Marks) {
    child(metadata, "annotations").insert(REVISIONS_ANNOTATION.to_owned(), marks.annotation().into());
    if let Some(commit) = marks.commit() {
        let labels = child(metadata, "labels");
        if let Some(date) = payload::time(&commit.date) {
            let date = format!("{}.000Z", date.trim_end_matches('Z'));
            labels.insert("app.meta.commit-date".to_owned(), date.into());
        }
        labels.insert("app.meta.commit-author".to_owned(), commit.author.clone().into());
        labels.insert("app.meta.commit-message".to_owned(), commit.message.clone().into());
    }
}

/// The object of a resource that has no live state: the desired one in the resource's namespace.
pub(crate) fn desired(json: &str, resource: &ResourceRef) -> Option<String> {
    let mut value: Value = serde_json::from_str(json).ok()?;
    let object = value.as_object_mut()?;
    let metadata = child(object, "metadata");
    if resource.namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".to_owned(), resource.namespace.clone().into());
    }
    Some(text(&value) + "\n")
}

/// The object of a resource of which no state is known.
pub(crate) fn stub(resource: &ResourceRef) -> String {
    let api_version = match resource.group.as_str() {
        "" => resource.version.clone(),
        group => format!("{group}/{}", resource.version),
    };
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), resource.name.clone().into());
    if !resource.namespace.is_empty() {
        metadata.insert("namespace".to_owned(), resource.namespace.clone().into());
    }
    text(&json!({"apiVersion": api_version, "kind": resource.kind, "metadata": metadata})) + "\n"
}

/// JSON text with the escapes that receivers of Go's encoder know.
pub(crate) fn text<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = Vec::with_capacity(1024);
    write(&mut out, value);
    String::from_utf8(out).unwrap_or_default()
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // A value always makes JSON, and memory takes it.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(out, HtmlSafe));
}

/// Escapes `<`, `>`, `&` and the two line separators of JavaScript.
struct HtmlSafe;

impl Formatter for HtmlSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        // The separators begin with this byte. Nearly no text holds any of these, and bytes are found faster.
        if !fragment.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut rest = fragment;
        while let Some(at) = rest.find(special) {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut chars = after.chars();
            if let Some(c) = chars.next() {
                write!(writer, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        serde_json::ser::CompactFormatter.write_char_escape(writer, escape)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Objects of a few names, among them those that must stand.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), "[a-c<>&]{0,3}".prop_map(Value::from), Just(json!(["x"]))];
        leaf.prop_recursive(5, 64, 8, |inner| {
            let names = "metadata|spec|status|operation|kind|other|health|summary|sync|comparedTo|source|repoURL|destination|project|labels";
            prop::collection::btree_map(names, inner, 0..8).prop_map(|map| map.into_iter().collect())
        })
    }

    /// As `Members` would have it, on a copy of the whole.
    fn on_a_copy(own: &Map<String, Value>, labelled: bool) -> Vec<(String, Value)> {
        let mut object = own.clone();
        object.insert("kind".to_owned(), "Application".into());
        object.insert("apiVersion".to_owned(), "argoproj.io/v1alpha1".into());
        complete_spec(child(&mut object, "spec"));
        complete_status(child(&mut object, "status"));
        if labelled {
            child(child(&mut object, "metadata"), "labels").insert("a".to_owned(), "b".into());
        }
        let place = |name: &str| {
            let order = ["kind", "apiVersion", "metadata", "spec", "status", "operation"];
            order.iter().position(|other| *other == name).unwrap_or(order.len())
        };
        let mut members: Vec<(String, Value)> = object.into_iter().collect();
        members.sort_by_key(|(name, _)| place(name));
        members
    }

    proptest! {
        #[test]
        fn an_application_is_passed_on_as_a_changed_copy_would_be(
            own in prop::collection::btree_map("metadata|spec|status|operation|kind|other", value(), 0..6),
            labelled in any::<bool>(),
        ) {
            let own: Map<String, Value> = own.into_iter().collect();
            let mut members = Members::of(&own);
            if labelled {
                child(members.change("metadata"), "labels").insert("a".to_owned(), "b".into());
            }
            let expected: Vec<String> = on_a_copy(&own, labelled)
                .iter()
                .map(|(name, value)| format!("{}:{}", text(name), text(value)))
                .collect();
            prop_assert_eq!(members.text(), format!("{{{}}}", expected.join(",")));
        }
    }

    #[test]
    fn a_whole_status_is_not_copied() {
        let own = json!({
            "spec": {"destination": {}, "project": ""},
            "status": {"health": {}, "summary": {}, "sync": {
                "status": "", "comparedTo": {"source": {"repoURL": ""}, "destination": {}}}},
        });
        let whole = own.as_object().unwrap();
        let changed =
            |own: &Map<String, Value>| Members::of(own).changed.keys().cloned().collect::<Vec<String>>();
        assert_eq!(changed(whole), ["apiVersion", "kind"]);
        let mut lacking = whole.clone();
        lacking["status"]["sync"]["comparedTo"]["source"] = json!(null);
        assert_eq!(changed(&lacking), ["apiVersion", "kind", "status"]);
        lacking["spec"]["destination"] = json!("here");
        assert_eq!(changed(&lacking), ["apiVersion", "kind", "spec", "status"]);
    }
}
