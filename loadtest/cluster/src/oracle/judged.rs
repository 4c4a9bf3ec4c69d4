//! What was told of an application, against what it is.

use serde_json::Value;

use super::manifest;
use super::told::{Told, is_one};
use super::truth::{self, Application};
use super::witness::Life;
use loadtest_judge::oracle::{self, LastState};
use loadtest_judge::report::{Report, text};
use loadtest_sim::platform::ResourceKey;

/// Everything that differs, a line each.
pub(super) fn differences(application: &Application, told: &Told) -> Vec<String> {
    let name = format!("{}/{}", application.namespace, application.name);
    let Some(life) = application.lives.last() else {
        return vec![format!("{name}: there never was such an application")];
    };
    if let Some(lag) = lag(application, life) {
        return vec![format!("{name}: {lag}")];
    }
    let mut found: Vec<String> =
        application.troubles.iter().map(|trouble| format!("{name}: {trouble}")).collect();
    if (told.kept.len() as u64) < told.reports() {
        found.push(format!("{name}: not all of its {} reports were kept", told.reports()));
    }
    let state = LastState {
        object: Some(application.object.as_ref().unwrap_or(&life.object)),
        deleted: application.object.is_none(),
        managed: application.managed.as_ref(),
        tree: application.tree.as_ref(),
    };
    let expected = oracle::expected_of(&state);
    found.extend(oracle::check(&expected, &told.last).iter().map(ToString::to_string));
    found.extend(oracle::order(&told.kept).iter().map(ToString::to_string));
    found.extend(unended(application, told).map(|what| format!("{name}: {what}")));
    found.extend(strangers(application, told).map(|what| format!("{name}: {what}")));
    if let Some(object) = &application.object {
        let whole = of_itself(application, object, told);
        found.extend(whole.into_iter().map(|what| format!("{name}: {what}")));
        for (key, entry) in application.entries() {
            let whole = of_resource(application, object, &key, entry, told);
            let resource = format!("{} {}/{}", key.kind, key.namespace, key.name);
            found.extend(whole.into_iter().map(|what| format!("{name} {resource}: {what}")));
        }
    }
    found
}

/// What the witness has yet to see of what was just read, or the other way round.
fn lag(application: &Application, life: &Life) -> Option<String> {
    let version =
        |object: &Value| text(object.pointer("/metadata/resourceVersion")).parse::<u64>().unwrap_or_default();
    match &application.object {
        None if !life.gone => Some("it is gone, and the watch has not told".to_owned()),
        None => None,
        Some(object) => {
            let is_known = text(object.pointer("/metadata/uid")) == life.uid
                && !life.gone
                && version(object) == version(&life.object);
            (!is_known).then(|| "it changes while it is looked at".to_owned())
        }
    }
}

/// Lives that ended without a report that says so. While an application is being deleted each of its states is reported
/// as one that ends: what counts is one as new as what was watched last, or that names no state.
fn unended(application: &Application, told: &Told) -> impl Iterator<Item = String> {
    let own = told.kept.iter().filter(|kept| kept.entity.resource.is_none());
    let ended: Vec<(String, Option<u64>)> = own
        .filter_map(|kept| Report::open(&kept.payload))
        .filter(|report| {
            report.object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
                && report.source("actualManifest").is_empty()
        })
        .map(|report| {
            let named = report.object.pointer("/metadata/resourceVersion").is_some();
            (text(report.object.pointer("/metadata/uid")), named.then(|| truth::version(&report.object)))
        })
        .collect();
    let is_told = |life: &Life| {
        let last = truth::version(&life.object);
        ended.iter().any(|(uid, version)| *uid == life.uid && version.is_none_or(|version| version >= last))
    };
    let gone = application.lives.iter().filter(|life| life.gone);
    let unended: Vec<String> = gone
        .filter(|life| !is_told(life))
        .map(|life| format!("no report says that {} was deleted", life.uid))
        .collect();
    unended.into_iter()
}

/// Reports of what never was.
fn strangers(application: &Application, told: &Told) -> impl Iterator<Item = String> {
    let mut found: Vec<String> = Vec::new();
    for kept in &told.kept {
        let report = Report::open(&kept.payload);
        match &kept.entity.resource {
            None => {
                let uid =
                    report.map(|report| text(report.object.pointer("/metadata/uid"))).unwrap_or_default();
                if !application.lives.iter().any(|life| life.uid == uid) {
                    found.push(format!("reported with the uid {uid}, which it never had"));
                }
            }
            Some(resource) => {
                let uid = report.map(|report| report.source("appUID").to_owned()).unwrap_or_default();
                let mut of_uid = application.lives.iter().filter(|life| life.uid == uid);
                if !of_uid.any(|life| life.resources.iter().any(|listed| is_one(resource, listed))) {
                    let ResourceKey { kind, namespace, name, .. } = resource;
                    found.push(format!(
                        "{kind} {namespace}/{name} was reported, and never was a resource of it"
                    ));
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found.into_iter()
}

fn of_itself(application: &Application, object: &Value, told: &Told) -> Vec<String> {
    // That there is none is told with the facts.
    let Some(report) = told.of_itself() else { return Vec::new() };
    let mut found = manifest::of_application(&report.object, object);
    if let Some((author, message)) = &application.commit {
        for (label, is) in [("app.meta.commit-author", author), ("app.meta.commit-message", message)] {
            let reported = report.object.pointer("/metadata/labels").and_then(|labels| labels.get(label));
            if text(reported).trim() != is.trim() {
                found.push(format!("label {label} is {:?}, expected {is:?}", text(reported)));
            }
        }
    }
    let named = report.source("appName");
    match &application.parent {
        Some((parent, true)) if named != parent => {
            found.push(format!("reported as a resource of {named:?}, expected {parent:?}"));
        }
        // It may have been reported last while its parent was there, not when it changed after that.
        Some((parent, false))
            if named == parent
                && application.parent_end.is_some_and(|end| truth::version(&report.object) > end) =>
        {
            found.push(format!("reported as a resource of {named:?}, which was gone by then"));
        }
        _ => {}
    }
    found
}

fn of_resource(
    application: &Application,
    object: &Value,
    key: &ResourceKey,
    entry: &Value,
    told: &Told,
) -> Vec<String> {
    let live = application.live.get(key);
    let Some(report) = told.of_resource(key, live) else { return Vec::new() };
    let mut found = Vec::new();
    let uid = text(object.pointer("/metadata/uid"));
    if report.source("appUID") != uid {
        found.push(format!("reported for the application {:?}, expected {uid:?}", report.source("appUID")));
    }
    let may_be_withheld = entry["requiresPruning"] == true
        || object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string);
    // Which commit it was then is not compared: that of the application may have moved on without the resource.
    if application.commit.is_some() && report.source("commitAuthor").is_empty() {
        found.push("reported without the commit".to_owned());
    }
    let past = application.past.get(key);
    found
        .extend(of_live(&report, live, past, may_be_withheld).into_iter().map(|what| format!("live {what}")));
    // Hooks are no part of what is compared: their desired state is not told by Argo CD.
    if entry["hook"] != true {
        let desired = target(application.managed.as_ref(), key);
        let differ = of_desired(&report, desired.as_ref(), may_be_withheld);
        found.extend(differ.into_iter().map(|what| format!("desired {what}")));
    }
    found
}

fn of_live(
    report: &Report,
    live: Option<&Value>,
    past: Option<&Value>,
    may_be_withheld: bool,
) -> Vec<String> {
    let actual = report.source("actualManifest");
    let Some(live) = live else {
        let mut found = Vec::new();
        if report.object.pointer("/metadata/uid").is_some() {
            found.push("object was reported, and there is none".to_owned());
        }
        if !actual.is_empty() {
            found.push("manifest was reported, and there is none".to_owned());
        }
        return found;
    };
    let mut found = manifest::of_live(&report.object, live);
    if let Some(past) = past {
        let differ = manifest::of_state(&report.object, past);
        found.extend(differ.into_iter().map(|what| format!("as it was: {what}")));
    }
    if actual.is_empty() {
        if !may_be_withheld {
            found.push("manifest is empty".to_owned());
        }
    } else if serde_json::from_str::<Value>(actual).ok().as_ref() != Some(&report.object) {
        found.push("manifest is not the object beside it".to_owned());
    }
    found
}

fn of_desired(report: &Report, desired: Option<&Value>, may_be_withheld: bool) -> Vec<String> {
    let reported = report.source("desiredManifest");
    let Some(desired) = desired else {
        return if reported.is_empty() {
            Vec::new()
        } else {
            vec!["manifest was reported, and there is none".to_owned()]
        };
    };
    if reported.is_empty() {
        return if may_be_withheld { Vec::new() } else { vec!["manifest is empty".to_owned()] };
    }
    let Ok(reported) = serde_json::from_str::<Value>(reported) else {
        return vec!["manifest is no JSON".to_owned()];
    };
    let mut found = manifest::of_manifest(&reported, desired);
    let git = serde_saphyr::from_str::<Value>(report.source("gitManifest")).unwrap_or_default();
    let differ = manifest::differences(&git, &reported);
    found.extend(differ.into_iter().map(|what| format!("in git: {what}")));
    found
}

/// The desired state of a resource, as Argo CD compares it.
fn target(managed: Option<&Value>, key: &ResourceKey) -> Option<Value> {
    let group = key.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let is_it = |item: &&Value| {
        (text(item.get("group")), text(item.get("kind"))) == (group.to_owned(), key.kind.clone())
            && (text(item.get("namespace")), text(item.get("name")))
                == (key.namespace.clone(), key.name.clone())
    };
    let item = managed?.get("items")?.as_array()?.iter().find(is_it)?;
    let target: Value = serde_json::from_str(item.get("targetState")?.as_str()?).ok()?;
    target.is_object().then_some(target)
}
