//! The closed set of predicates that deliberate differences are made of.

use pipeline_redact::Redactor;
use serde::Deserialize;
use serde_json::Value;

use super::compare::is_same_yaml;
use super::memory::is_same;
use super::said::timeless;
use loadtest_judge::diff::Difference;
use loadtest_judge::view::View;
use loadtest_sim::platform::ResourceKey;

/// A report and the span of its "now".
pub(super) type Predecessor = (View, (String, String));

/// What a predicate may look at beside the two values.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    /// The object of the watch event.
    pub(super) watched: &'a Value,
    /// The event says that the application is gone.
    pub(super) deleted: bool,
    /// The earliest and the latest second that "now" may be.
    pub(super) now: (&'a str, &'a str),
    /// The product's own "now".
    pub(super) our_now: &'a str,
    /// Our report, as a whole.
    pub(super) ours: Option<&'a View>,
    /// The recorded report, as a whole.
    pub(super) theirs: Option<&'a View>,
    /// The recorded report of the same entity before this one, with its own span of "now".
    pub(super) predecessor: Option<&'a Predecessor>,
    /// Reports that newer states of the application give.
    pub(super) newer: &'a [View],
    /// The round read a parent, and could not.
    pub(super) parent_unreadable: bool,
    /// The recorded reporter posted nothing in the round.
    pub(super) silent: bool,
    /// The recorded reporter reported this entry before, as it is now, for the revision that is now the latest.
    pub(super) remembered: bool,
    /// The product's last report of the entity says what theirs says.
    pub(super) said: bool,
    /// Nothing that decides about a report of the entity has changed since the product's last one.
    pub(super) unchanged: bool,
    /// The recorded reporter took the event up again later, and posted a report of the entity then.
    pub(super) taken_up_again: bool,
    pub(super) redactor: &'a Redactor,
}

/// Accepts a pair of values at a path, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Predicate {
    /// Equal once empty members are dropped, and ours has no member that was not watched.
    EqualButForEmptyMembers,
    /// As `equal-but-for-empty-members`, with theirs redacted, which changes it.
    RedactedAndEqualButForEmptyMembers,
    /// Theirs lacks what ours has as it was watched.
    DroppedThoughWatched,
    /// Theirs is now; ours is when the condition with this message changed.
    TransitionTimeInsteadOfNow,
    /// Ours is now, and theirs absent, where an object went that was not marked for deletion.
    NowWhereDeletedWithoutFinalizer,
    /// Ours is empty, and theirs the reported object, where an object went that was not marked for deletion.
    EmptyWhereDeletedWithoutFinalizer,
    /// Only theirs: a resource, of an application that is gone.
    ResourceOfDeletedApplication,
    /// Only ours: an application, in a root's shape, or a resource of it, in a round that could not read the
    /// parent and posted nothing.
    ChildOfUnreadableParent,
    /// Ours is empty, and theirs a manifest, where a child application went that was not marked for deletion.
    EmptyWhereChildDeletedWithoutFinalizer,
    /// Only theirs: it says what the report of the same entity before it says, theirs or ours.
    EqualToItsPredecessor,
    /// Only theirs: what it tells of is as it was when the product last reported it.
    ReportedBeforeAsItIs,
    /// Ours is a file, and theirs the folder of the Kustomization that it is made through.
    FileInsteadOfFolder,
    /// Ours is a text that makes the object, under its name or one that ends up in it, and theirs is none.
    TextThatMakesIt,
    /// Only ours: theirs came when the event was taken up again.
    PostedWhenTakenUpAgain,
    /// Only ours: a resource whose entry was reported before for the revision that is the latest again.
    RememberedFromBeforeARollback,
    /// Theirs is what a newer state of the application gives in a Rollout's report.
    OfANewerWatchedState,
    /// Ours is theirs, redacted.
    TheirsRedacted,
}

impl Predicate {
    pub(super) fn holds(
        self,
        path: &str,
        ours: Option<&Value>,
        theirs: Option<&Value>,
        scene: &Scene<'_>,
    ) -> bool {
        let unmarked = scene.deleted && scene.watched.pointer("/metadata/deletionTimestamp").is_none();
        let application = |view: Option<&View>| view.is_some_and(View::is_application);
        match self {
            Self::EqualButForEmptyMembers => match (ours, theirs) {
                (Some(ours), Some(theirs)) => is_as_watched(ours, theirs, scene.watched),
                _ => false,
            },
            Self::RedactedAndEqualButForEmptyMembers => match (ours, theirs) {
                (Some(ours), Some(theirs)) => {
                    let (mut redacted, mut watched) = (theirs.clone(), scene.watched.clone());
                    scene.redactor.value(&mut watched);
                    scene.redactor.value(&mut redacted) && is_as_watched(ours, &redacted, &watched)
                }
                _ => false,
            },
            Self::DroppedThoughWatched => match (ours, theirs) {
                (Some(ours), None) => watched_at(path, scene.watched) == Some(ours),
                _ => false,
            },
            Self::TransitionTimeInsteadOfNow => {
                let (Some(ours), Some(Value::String(theirs))) = (ours, theirs) else { return false };
                is_now(theirs, scene.now) && is_condition_time(path, ours, scene)
            }
            Self::NowWhereDeletedWithoutFinalizer => {
                unmarked && theirs.is_none() && ours.and_then(Value::as_str) == Some(scene.our_now)
            }
            Self::EmptyWhereDeletedWithoutFinalizer => {
                let their_object = scene.theirs.map(View::object);
                // A child's has no marks.
                let unmarked_object = || without_empty(&without_marks(their_object?));
                unmarked
                    && ours.and_then(Value::as_str) == Some("")
                    && theirs.is_some_and(|theirs| {
                        Some(theirs) == their_object || without_empty(theirs) == unmarked_object()
                    })
                    && application(scene.ours)
            }
            Self::EmptyWhereChildDeletedWithoutFinalizer => {
                let is_child = scene.ours.is_some_and(|ours| {
                    ours.is_application() && ours.at("source.appName").is_some_and(|name| name != "")
                });
                unmarked && is_child && ours.and_then(Value::as_str) == Some("") && theirs.is_some()
            }
            Self::ResourceOfDeletedApplication => {
                scene.deleted && scene.ours.is_none() && scene.theirs.is_some() && !application(scene.theirs)
            }
            Self::ChildOfUnreadableParent => {
                let root = |ours: &View| ours.at("source.appName").and_then(Value::as_str) == Some("");
                scene.parent_unreadable
                    && scene.silent
                    && scene.theirs.is_none()
                    && scene.ours.is_some_and(|ours| !ours.is_application() || root(ours))
            }
            Self::EqualToItsPredecessor => match (scene.ours, scene.theirs, scene.predecessor) {
                (None, Some(_), _) if scene.said => true,
                (None, Some(theirs), Some((before, span))) => {
                    let (theirs, before) = timeless((theirs, scene.now), (before, (&span.0, &span.1)));
                    theirs == before
                }
                _ => false,
            },
            Self::ReportedBeforeAsItIs => scene.ours.is_none() && scene.theirs.is_some() && scene.unchanged,
            Self::FileInsteadOfFolder => match (ours, theirs) {
                (Some(Value::String(ours)), Some(Value::String(theirs))) => {
                    !theirs.is_empty() && is_manifest_file(ours) && is_folder(theirs)
                }
                _ => false,
            },
            Self::TextThatMakesIt => match (ours, theirs, scene.ours) {
                (Some(Value::String(ours)), Some(Value::String(theirs)), Some(view)) => {
                    let ResourceKey { kind, name, .. } = view.identity();
                    makes(ours, &kind, &name) == Some(true) && makes(theirs, &kind, &name) == Some(false)
                }
                _ => false,
            },
            Self::PostedWhenTakenUpAgain => {
                scene.theirs.is_none() && scene.ours.is_some() && scene.taken_up_again
            }
            Self::RememberedFromBeforeARollback => {
                scene.remembered && scene.theirs.is_none() && scene.ours.is_some() && !application(scene.ours)
            }
            Self::OfANewerWatchedState => {
                // Whichever field this is about, the whole report must be that of one newer state.
                let is_rollout = scene.ours.is_some_and(|ours| ours.identity().kind == "Rollout");
                let is_it = |view: &View, theirs: &View| {
                    is_same((view, scene.now), (theirs, scene.now), scene.redactor)
                };
                is_rollout
                    && scene.theirs.is_some_and(|theirs| scene.newer.iter().any(|view| is_it(view, theirs)))
            }
            Self::TheirsRedacted => match (ours, theirs) {
                (Some(Value::String(ours)), Some(Value::String(theirs))) => {
                    let redactor = scene.redactor;
                    let all = [redactor.raw(theirs), redactor.text(theirs), redactor.manifest(theirs)];
                    all.iter().filter(|redacted| *redacted != theirs).any(|redacted| {
                        let (path, theirs) = (path.to_owned(), Some(Value::String(redacted.to_string())));
                        let difference = Difference { path, ours: Some(ours.as_str().into()), theirs };
                        *redacted == *ours || is_same_yaml(&difference)
                    })
                }
                (Some(ours), Some(theirs)) => {
                    let mut redacted = theirs.clone();
                    scene.redactor.value(&mut redacted) && redacted == *ours
                }
                _ => false,
            },
        }
    }
}

fn is_manifest_file(path: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end))
}

/// Whether the last part of a path has no ending, as those of files have.
fn is_folder(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|last| !last.contains('.'))
}

/// Whether a text of one document or many holds an object of this kind, under this name or one that a prefix or suffix makes
/// it of; `None` where it holds nothing, or is no YAML.
fn makes(text: &str, kind: &str, name: &str) -> Option<bool> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).ok().filter(|read: &Vec<_>| !read.is_empty())?;
    Some(documents.iter().any(|object| {
        let own = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        object.get("kind").and_then(Value::as_str) == Some(kind) && !own.is_empty() && name.contains(own)
    }))
}

fn is_as_watched(ours: &Value, theirs: &Value, watched: &Value) -> bool {
    ours.get("kind").and_then(Value::as_str) == Some("Application")
        && without_empty(ours) == without_empty(theirs)
        && adds_nothing(ours, watched)
}

/// Whether a second lies in the span that "now" may be.
pub(super) fn is_now(text: &str, (from, to): (&str, &str)) -> bool {
    // One form and one zone, so that texts order as moments do.
    text.len() == from.len() && text.ends_with('Z') && from <= text && text <= to
}

fn without_empty(value: &Value) -> Option<Value> {
    let kept = match value {
        Value::Null => return None,
        Value::Bool(flag) => return flag.then(|| value.clone()),
        Value::Number(number) => return (number.as_f64() != Some(0.0)).then(|| value.clone()),
        Value::String(text) => return (!text.is_empty()).then(|| value.clone()),
        Value::Array(list) => Value::Array(list.iter().filter_map(without_empty).collect()),
        Value::Object(object) => {
            let kept = object.iter().filter_map(|(name, value)| Some((name.clone(), without_empty(value)?)));
            Value::Object(kept.collect())
        }
    };
    let empty =
        kept.as_array().is_some_and(Vec::is_empty) || kept.as_object().is_some_and(serde_json::Map::is_empty);
    (!empty).then_some(kept)
}

/// Whether `ours` has nothing but what was watched, what always stands (and is empty), and the marks.
fn adds_nothing(ours: &Value, watched: &Value) -> bool {
    let mut ours = without_marks(ours);
    for (place, members) in [("/metadata", ["deletionTimestamp", ""]), ("", ["kind", "apiVersion"])] {
        if let Some(object) = ours.pointer_mut(place).and_then(Value::as_object_mut) {
            members.iter().for_each(|member| {
                object.remove(*member);
            });
        }
    }
    is_part(&without_empty(&ours).unwrap_or_default(), watched)
}

/// An application without what reports mark it with.
fn without_marks(application: &Value) -> Value {
    let mut application = application.clone();
    for (place, marks) in [
        ("/metadata/annotations", ["app.meta.revisions-metadata", "", ""]),
        ("/metadata/labels", ["app.meta.commit-date", "app.meta.commit-author", "app.meta.commit-message"]),
    ] {
        if let Some(object) = application.pointer_mut(place).and_then(Value::as_object_mut) {
            marks.iter().for_each(|mark| {
                object.remove(*mark);
            });
        }
    }
    application
}

fn is_part(ours: &Value, watched: &Value) -> bool {
    match (ours, watched) {
        (Value::Object(ours), Value::Object(watched)) => {
            ours.iter().all(|(name, value)| watched.get(name).is_some_and(|watched| is_part(value, watched)))
        }
        (Value::Array(ours), Value::Array(watched)) => {
            ours.len() <= watched.len()
                && ours.iter().all(|value| watched.iter().any(|watched| is_part(value, watched)))
        }
        // Values were compared with theirs; what matters here is that none was added.
        (ours, watched) => std::mem::discriminant(ours) == std::mem::discriminant(watched),
    }
}

/// What was watched at `object...` or `source.actualManifest...`.
fn watched_at<'a>(path: &str, watched: &'a Value) -> Option<&'a Value> {
    let below = path.strip_prefix("object").or_else(|| path.strip_prefix("source.actualManifest"))?;
    loadtest_judge::diff::at(watched, below)
}

/// Whether a condition that says what the error at `errors[n].lastSeen` says changed at `time`.
fn is_condition_time(path: &str, time: &Value, scene: &Scene<'_>) -> bool {
    let message = scene.ours.and_then(|ours| ours.at(&path.replace(".lastSeen", ".message")));
    let Some(message) = message.and_then(Value::as_str) else { return false };
    let conditions = scene.watched.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        let mut redacted = condition.clone();
        scene.redactor.value(&mut redacted);
        let says = |condition: &Value| {
            let text = condition.get("message").and_then(Value::as_str).unwrap_or("");
            scene.redactor.text(text) == message
        };
        condition.get("lastTransitionTime") == Some(time) && (says(condition) || says(&redacted))
    })
}
