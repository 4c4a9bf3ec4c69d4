//! Which revision each source of an application stands at, and which it stood at before.
//!
//! The rules are those of `argocd-monorepo-controller`, but for four: an operation that succeeded counts though the
//! application is out of sync again; the newest entry of the history is the sync itself only if it is of the same revision,
//! which it is not after a sync of some resources alone; a sync that is asked for counts once it has begun, so that each is
//! told of once, with the time at which it began; and a dry run is no sync.

use pipeline_redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_git::{Address, SyncedSources, has_commits, synced_sources};

/// What was told of one source last: kept in the record of its application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportedSync {
    /// As it may be shown.
    repo_url: String,
    revision: String,
    /// When the sync began that it was told of.
    #[serde(default)]
    started_at: Option<String>,
}

impl ReportedSync {
    /// What was kept once may hold a password.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        self.repo_url = redactor.text(&self.repo_url).into_owned();
    }
}

/// One source of an application, and between which revisions it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// Its place in the application.
    pub index: usize,
    /// Where its repository is.
    pub repo_url: String,
    /// Whether its revisions are commits.
    pub has_commits: bool,
    /// The revision it stands at; `None` when it was never synced.
    pub current: Option<String>,
    /// The revision it stood at before; `None` when there was none.
    pub previous: Option<String>,
    /// The revisions that the application's history has of it, the oldest first; `None` where Argo CD keeps no history.
    history: Option<Vec<String>>,
}

impl Synced {
    /// The revision whose changes were told last, as long as the history still has it or there is none: a sync that nobody watched
    /// is told together with the one after it. Else the one before. Another sync of the revision that was told brings nothing new.
    pub(crate) fn since(
        &self,
        told: Option<&ReportedSync>,
        started_at: Option<&str>,
        redactor: &Redactor,
    ) -> Option<String> {
        let is_again = |told: &ReportedSync| {
            self.current.as_ref() == Some(&told.revision)
                && told.started_at.as_deref().zip(started_at).is_some_and(|(told, now)| told != now)
        };
        let is_before = |told: &ReportedSync| {
            self.current.as_ref() != Some(&told.revision)
                && self.history.as_ref().is_none_or(|history| history.contains(&told.revision))
        };
        let repo_url = redactor.text(&self.repo_url);
        let told = told.filter(|told| told.repo_url == repo_url && (is_before(told) || is_again(told)));
        told.map(|told| told.revision.clone()).or_else(|| self.previous.clone())
    }

    /// What is remembered once this is told.
    pub(crate) fn told(&self, started_at: Option<&str>, redactor: &Redactor) -> Option<ReportedSync> {
        let revision = self.current.clone()?;
        let (repo_url, started_at) = (redactor.text(&self.repo_url), started_at.map(str::to_owned));
        Some(ReportedSync { repo_url: repo_url.into_owned(), revision, started_at })
    }
}

/// Whether a sync is asked for and has not begun. Of the operation before it nothing is left then, so that it is not known which
/// one brought the sources where they are.
pub(crate) fn waits_to_begin(application: &Value) -> bool {
    let phase = &application["status"]["operationState"]["phase"];
    application["operation"]["sync"].is_object() && phase != "Running" && phase != "Terminating"
}

/// Whether what Argo CD does or did last is a dry run: that brings nothing anywhere, and of the sync before it nothing is left but its
/// entry in the history.
pub(crate) fn is_dry_run(application: &Value) -> bool {
    let did = &application["status"]["operationState"]["operation"]["sync"];
    [did, &application["operation"]["sync"]].iter().any(|sync| sync["dryRun"] == true)
}

/// When the sync began that brought the sources where they are; `None` where it has not begun, or is not known any more.
pub(crate) fn started_at(application: &Value, all: &[Synced]) -> Option<String> {
    if is_dry_run(application) {
        return None;
    }
    let operation = &application["status"]["operationState"];
    let SyncedSources { all: sources, are_several: is_multiple, .. } = synced_sources(&application["spec"]);
    let brought = |holder: &Value| {
        let of = |synced: &Synced| {
            let place = Place { index: synced.index, source: &sources[synced.index], is_multiple };
            place.brought(holder) == synced.current
        };
        all.iter().any(|synced| synced.current.is_some()) && all.iter().all(of)
    };
    let is_its = brought(&operation["syncResult"]) || brought(&operation["operation"]["sync"]);
    operation["startedAt"].as_str().filter(|_| is_its).map(str::to_owned)
}

/// The sources of an Application, in its order.
pub fn synced(application: &Value) -> Vec<Synced> {
    let SyncedSources { all, are_several: is_multiple, .. } = synced_sources(&application["spec"]);
    let sources = all.iter().enumerate().filter(|(_, source)| source.is_object());
    sources.map(|(index, source)| Place { index, source, is_multiple }.read(application)).collect()
}

struct Place<'a> {
    index: usize,
    source: &'a Value,
    is_multiple: bool,
}

impl Place<'_> {
    fn read(&self, application: &Value) -> Synced {
        let status = &application["status"];
        let entries = status["history"].as_array().map(Vec::as_slice).unwrap_or_default();
        let stood = |entry| self.in_history(entry).or_else(|| self.in_its_place(entry));
        let history: Vec<Option<String>> = entries.iter().map(stood).collect();
        let current = match entries.last() {
            Some(last) if is_dry_run(application) => self.in_history(last),
            last => self.current(application, last.is_some()),
        };
        let before = match history.split_last() {
            Some((last, before)) if *last == current => before,
            _ => &history,
        };
        let text = |name: &str| Self::text(self.source, name);
        Synced {
            index: self.index,
            repo_url: text("repoURL").to_owned(),
            has_commits: has_commits(text("repoURL"), text("chart")),
            previous: before.last().cloned().flatten(),
            current,
            history: (!entries.is_empty()).then(|| history.into_iter().flatten().collect()),
        }
    }

    /// The revision of the source at a place in what holds `revision` or `revisions`.
    fn of(&self, holder: &Value, index: usize) -> Option<String> {
        Self::revision(holder, index, self.is_multiple)
    }

    fn revision(holder: &Value, index: usize, is_multiple: bool) -> Option<String> {
        let found = if is_multiple { &holder["revisions"][index] } else { &holder["revision"] };
        found.as_str().filter(|revision| !revision.is_empty()).map(str::to_owned)
    }

    fn current(&self, application: &Value, has_history: bool) -> Option<String> {
        let (status, asked) = (&application["status"], &application["operation"]["sync"]);
        let is_synced = status["sync"]["status"] == "Synced";
        let operation = &status["operationState"];
        let result = &operation["syncResult"];
        let is_done = is_synced || (operation["phase"] == "Succeeded" && !asked.is_object());
        if is_done && has_history && result.is_object() {
            let brought = self.brought(result);
            if brought.is_some() || !is_synced {
                return brought;
            }
        }
        let asked = self.brought(asked).filter(|_| asked["dryRun"] != true);
        asked.or_else(|| is_synced.then(|| self.of(&status["sync"], self.index)).flatten())
    }

    /// The revision of the source in what a sync brought, or was asked for: by what it says of the sources, else by place.
    fn brought(&self, holder: &Value) -> Option<String> {
        match holder["source"].is_object() || holder["sources"].is_array() {
            true => self.in_history(holder),
            false => self.of(holder, self.index),
        }
    }

    /// What an entry of the history has of the source. An application may have had another one beside it then, or none.
    fn in_history(&self, entry: &Value) -> Option<String> {
        let several = entry["sources"].as_array().filter(|sources| !sources.is_empty());
        let Some(sources) = several else {
            let is_it = match self.is_multiple {
                true => self.is_same(&entry["source"]),
                false => self.is_of_repository(&entry["source"]),
            };
            return is_it.then(|| Self::revision(entry, 0, false)).flatten();
        };
        let place = match sources.get(self.index) {
            Some(other) if self.is_same(other) => Some(self.index),
            _ => sources.iter().position(|other| self.is_same(other)),
        };
        Self::revision(entry, place?, true)
    }

    /// What an entry of the history has at the place of the source, if that was of the same repository: it may have had another
    /// directory then.
    fn in_its_place(&self, entry: &Value) -> Option<String> {
        let other = entry["sources"].get(self.index).filter(|of| !Self::text(of, "repoURL").is_empty())?;
        let is_it =
            Self::text(other, "chart") == Self::text(self.source, "chart") && self.is_of_repository(other);
        is_it.then(|| Self::revision(entry, self.index, true)).flatten()
    }

    /// Whether another source is of the same repository, or does not say of which.
    fn is_of_repository(&self, other: &Value) -> bool {
        let other = Self::text(other, "repoURL");
        other.is_empty() || Address::read(other) == Address::read(Self::text(self.source, "repoURL"))
    }

    /// Whether another source is of the same repository, and the same of it.
    fn is_same(&self, other: &Value) -> bool {
        let url = |of: &Value| Address::read(Self::text(of, "repoURL"));
        url(other) == url(self.source)
            && ["path", "chart", "ref"]
                .iter()
                .all(|name| Self::text(other, name) == Self::text(self.source, name))
    }

    /// Argo CD writes nothing to the history for what is empty.
    fn text<'v>(of: &'v Value, name: &str) -> &'v str {
        of[name].as_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Redactor, ReportedSync, is_dry_run, started_at, synced, waits_to_begin};

    fn between(application: &Value) -> Vec<(Option<String>, Option<String>)> {
        synced(application).into_iter().map(|of| (of.current, of.previous)).collect()
    }

    fn redactor() -> Redactor {
        Redactor::new(b"0123456789abcdef0123456789abcdef")
    }

    fn pair(current: &str, previous: &str) -> (Option<String>, Option<String>) {
        let of = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        (of(current), of(previous))
    }

    #[test]
    fn one_source_went_from_the_sync_before_to_the_last_one() {
        let mut application = json!({
            "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
            "status": {
                "sync": {"status": "Synced", "revision": "c"},
                "operationState": {"syncResult": {"revision": "c"}},
                "history": [{"revision": "a"}, {"revision": "b"}, {"revision": "c"}],
            },
        });
        assert_eq!(between(&application), [pair("c", "b")]);
        // A sync that was asked for goes from the last one.
        application["status"]["sync"]["status"] = "OutOfSync".into();
        assert_eq!(between(&application), [pair("", "c")]);
        application["operation"] = json!({"sync": {"revision": "d"}});
        assert_eq!(between(&application), [pair("d", "c")]);
        application["status"] = json!({"sync": {"status": "Synced", "revision": "c"}});
        application["operation"] = Value::Null;
        assert_eq!(between(&application), [pair("c", "")]);
        application["status"] = json!({});
        assert_eq!(between(&application), [pair("", "")]);
        application["status"] = json!({
            "sync": {"status": "Synced"},
            "operationState": {"syncResult": {"revision": "a"}},
            "history": [{"revision": "a"}],
        });
        assert_eq!(between(&application), [pair("a", "")]);
    }

    #[test]
    fn a_sync_counts_though_it_is_out_of_sync_again_or_was_of_some_resources_alone() {
        let mut application = json!({
            "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
            "status": {
                "sync": {"status": "OutOfSync", "revision": "d"},
                "operationState": {"phase": "Succeeded", "syncResult": {"revision": "c"}},
                "history": [{"revision": "b"}, {"revision": "c"}],
            },
        });
        assert_eq!(between(&application), [pair("c", "b")]);
        application["status"]["operationState"]["syncResult"]["revision"] = "d".into();
        assert_eq!(between(&application), [pair("d", "c")]);
        application["status"]["operationState"]["phase"] = "Failed".into();
        assert_eq!(between(&application), [pair("", "c")]);
    }

    #[test]
    fn what_was_told_last_is_where_the_next_begins_as_long_as_the_history_has_it() {
        let application = json!({
            "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
            "status": {
                "sync": {"status": "Synced", "revision": "d"},
                "operationState": {"syncResult": {"revision": "d"}},
                "history": [{"revision": "a"}, {"revision": "b"}, {"revision": "c"}, {"revision": "d"}],
            },
        });
        let of = &synced(&application)[0];
        let told = |repo: &str, revision: &str| ReportedSync {
            repo_url: repo.to_owned(),
            revision: revision.to_owned(),
            started_at: Some("one".to_owned()),
        };
        let here = "https://example.com/a";
        let now = Some("one");
        assert_eq!(of.since(Some(&told(here, "b")), now, &redactor()).as_deref(), Some("b"));
        for other in [None, Some(told(here, "d")), Some(told(here, "gone")), Some(told("https://other", "b"))]
        {
            assert_eq!(of.since(other.as_ref(), now, &redactor()).as_deref(), Some("c"), "{other:?}");
        }
        assert_eq!(of.told(now, &redactor()), Some(told(here, "d")));
        // The same once more brings nothing; of what was told before it had begun nobody knows that.
        assert_eq!(of.since(Some(&told(here, "d")), Some("two"), &redactor()).as_deref(), Some("d"));
        let before = ReportedSync { started_at: None, ..told(here, "d") };
        assert_eq!(of.since(Some(&before), Some("two"), &redactor()).as_deref(), Some("c"));
    }

    #[test]
    fn a_sync_has_begun_when_its_operation_is_of_the_revisions_that_it_brought() {
        let mut application = json!({
            "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
            "status": {
                "sync": {"status": "Synced", "revision": "d"},
                "operationState": {"startedAt": "2026-11-25T10:00:00Z", "syncResult": {"revision": "d"}},
                "history": [{"revision": "c"}, {"revision": "d"}],
            },
        });
        let begun = |application: &Value| started_at(application, &synced(application));
        assert_eq!(begun(&application).as_deref(), Some("2026-11-25T10:00:00Z"));
        assert!(!waits_to_begin(&application));
        // The next is asked for, and the operation is still that of the last.
        application["operation"] = json!({"sync": {"revision": "e"}});
        application["status"]["sync"]["status"] = "OutOfSync".into();
        assert_eq!(synced(&application)[0].current.as_deref(), Some("e"));
        assert_eq!(begun(&application), None);
        assert!(waits_to_begin(&application));
        application["status"]["operationState"] =
            json!({"startedAt": "2026-11-25T11:00:00Z", "operation": {"sync": {"revision": "e"}}});
        assert_eq!(begun(&application).as_deref(), Some("2026-11-25T11:00:00Z"));
        for (phase, waits) in [("Running", false), ("Terminating", false), ("Failed", true), ("", true)] {
            application["status"]["operationState"]["phase"] = phase.into();
            assert_eq!(waits_to_begin(&application), waits, "{phase}");
        }
        application["status"] = json!({});
        application["operation"] = json!({});
        assert_eq!(begun(&application), None);
        let several = json!({
            "spec": {"sources": [{"repoURL": "https://example.com/a"}, {"repoURL": "https://example.com/b"}]},
            "status": {
                "sync": {"status": "Synced"},
                "operationState": {"startedAt": "2026-11-25T10:00:00Z", "syncResult": {"revisions": ["a", "b"]}},
                "history": [{"revisions": ["a", "b"]}],
            },
        });
        assert_eq!(begun(&several).as_deref(), Some("2026-11-25T10:00:00Z"));
    }

    #[test]
    fn of_several_sources_each_is_found_in_the_history_by_its_place_or_by_what_it_is() {
        let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": "x"});
        let application = json!({
            "spec": {"sources": [source("a"), source("b"), source("new")]},
            "status": {
                "sync": {"status": "Synced"},
                "operationState": {"syncResult": {"revisions": ["a2", "b2", "n1"]}},
                "history": [
                    {"revisions": ["b1", "a1"], "sources": [source("b"), source("a")]},
                    {"revisions": ["a2", "b2", "n1"], "sources": [source("a"), source("b"), source("new")]},
                ],
            },
        });
        assert_eq!(between(&application), [pair("a2", "a1"), pair("b2", "b1"), pair("n1", "")]);
    }

    #[test]
    fn what_is_hydrated_stands_at_a_revision_of_the_branch_that_argo_cd_writes_to() {
        let mut application = json!({
            "spec": {"sourceHydrator": {
                "drySource": {"repoURL": "https://example.com/a", "path": "charts/x", "targetRevision": "main"},
                "syncSource": {"targetBranch": "environments/dev", "path": "x"},
            }},
            "status": {
                "sync": {"status": "Synced", "revision": "wet2"},
                "operationState": {"startedAt": "2026-11-25T10:00:00Z", "syncResult": {"revision": "wet2"}},
                "history": [{"revision": "wet1"}, {"revision": "wet2"}],
                "sourceHydrator": {"lastSuccessfulOperation": {"drySHA": "dry3", "hydratedSHA": "wet3"}},
            },
        });
        let of = |application: &Value| {
            let all = synced(application);
            let begun = started_at(application, &all);
            (all.into_iter().map(|of| (of.repo_url, of.current, of.previous)).collect::<Vec<_>>(), begun)
        };
        let stands =
            vec![("https://example.com/a".to_owned(), Some("wet2".to_owned()), Some("wet1".to_owned()))];
        let expected = (stands, Some("2026-11-25T10:00:00Z".to_owned()));
        assert_eq!(of(&application), expected);
        // What else stands there Argo CD passes over.
        application["spec"]["source"] = json!({"repoURL": "https://example.com/old"});
        application["spec"]["sources"] =
            json!([{"repoURL": "https://example.com/b"}, {"repoURL": "https://example.com/c"}]);
        assert_eq!(of(&application), expected);
    }

    #[test]
    fn another_source_beside_one_takes_nothing_from_its_history() {
        let (app, values) = (
            json!({"repoURL": "https://example.com/a", "path": "x"}),
            json!({"repoURL": "https://example.com/b", "ref": "values"}),
        );
        let sync = |revisions: Value| json!({"sync": {"status": "Synced"}, "operationState": {"syncResult": revisions}});
        let mut several = json!({
            "spec": {"sources": [values, app]},
            "status": sync(json!({"revisions": ["v1", "a2"]})),
        });
        several["status"]["history"] = json!([
            {"revision": "a1", "source": app},
            {"revisions": ["v1", "a2"], "sources": [values, app]},
        ]);
        assert_eq!(between(&several), [pair("v1", ""), pair("a2", "a1")]);
        // And back.
        let mut single = json!({"spec": {"source": app}, "status": sync(json!({"revision": "a3"}))});
        single["status"]["history"] = json!([
            {"revisions": ["v1", "a2"], "sources": [values, app]},
            {"revision": "a3", "source": app},
        ]);
        assert_eq!(between(&single), [pair("a3", "a2")]);
        // Of one source it does not matter where it stood then, and another repository's revisions are told to be unknown.
        single["status"]["history"][0] =
            json!({"revision": "a2", "source": {"repoURL": "https://example.com/a", "path": "y"}});
        assert_eq!(between(&single), [pair("a3", "a2")]);
    }

    #[test]
    fn where_one_source_stood_in_another_repository_is_not_where_it_goes_from() {
        let source = |url: &str| json!({"repoURL": url, "path": "x"});
        let mut application = json!({
            "spec": {"source": source("https://example.com/a")},
            "status": {
                "sync": {"status": "Synced", "revision": "a1"},
                "operationState": {"phase": "Succeeded", "syncResult": {"revision": "a1", "source": source("https://example.com/a")}},
                "history": [{"revision": "o1", "source": source("https://example.com/old")},
                    {"revision": "a1", "source": source("https://example.com/a")}],
            },
        });
        assert_eq!(between(&application), [pair("a1", "")]);
        application["status"]["history"][0]["source"] = source("git@example.com:a.git");
        assert_eq!(between(&application), [pair("a1", "o1")], "it is the same, written otherwise");
        // It was moved elsewhere and is not synced from there yet.
        application["spec"]["source"] = source("https://example.com/new");
        application["status"]["sync"]["status"] = "OutOfSync".into();
        assert_eq!(between(&application), [pair("", "")]);
    }

    #[test]
    fn of_sources_that_were_put_in_another_order_and_not_synced_since_each_stands_where_the_last_sync_brought_it()
     {
        let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": "x"});
        let mut application = json!({
            "spec": {"sources": [source("b"), source("a"), source("new")]},
            "status": {
                "sync": {"status": "OutOfSync", "revisions": ["b2", "a2", "n1"]},
                "operationState": {"phase": "Succeeded", "startedAt": "2026-11-25T10:00:00Z",
                    "syncResult": {"revisions": ["a1", "b1"], "source": {"repoURL": ""}, "sources": [source("a"), source("b")]}},
                "history": [{"revisions": ["a1", "b1"], "sources": [source("a"), source("b")]}],
            },
        });
        assert_eq!(between(&application), [pair("b1", ""), pair("a1", ""), pair("", "")]);
        let begun = |application: &Value| started_at(application, &synced(application));
        assert_eq!(begun(&application).as_deref(), Some("2026-11-25T10:00:00Z"));
        // What is the same as what lives counts without a sync.
        application["status"]["sync"]["status"] = "Synced".into();
        assert_eq!(between(&application), [pair("b1", ""), pair("a1", ""), pair("n1", "")]);
    }

    #[test]
    fn of_several_sources_one_that_is_written_otherwise_or_has_another_directory_goes_from_where_it_stood() {
        let source = |(url, path): (&str, &str)| json!({"repoURL": url, "path": path});
        let values = json!({"repoURL": "https://example.com/v", "ref": "values"});
        for (before, now) in [
            (("https://example.com/a", "x"), ("https://example.com/a.git", "x")),
            (("https://example.com/a", "x"), ("git@example.com:a.git", "x")),
            (("https://example.com/a", "x"), ("https://example.com/a", "y")),
        ] {
            let mut application = json!({
                "spec": {"sources": [source(now), values]},
                "status": {
                    "sync": {"status": "Synced"},
                    "operationState": {"syncResult": {"revisions": ["a2", "v1"], "sources": [source(now), values]}},
                    "history": [
                        {"revisions": ["a1", "v1"], "sources": [source(before), values]},
                        {"revisions": ["a2", "v1"], "sources": [source(now), values]},
                    ],
                },
            });
            assert_eq!(between(&application), [pair("a2", "a1"), pair("v1", "v1")], "{now:?}");
            // It is not synced since: where it stands is known of what is written otherwise, not of another directory.
            application["status"] = json!({
                "sync": {"status": "OutOfSync"},
                "operationState": {"phase": "Succeeded",
                    "syncResult": {"revisions": ["a1", "v1"], "sources": [source(before), values]}},
                "history": [{"revisions": ["a1", "v1"], "sources": [source(before), values]}],
            });
            let expected = if before.1 == now.1 { pair("a1", "") } else { pair("", "a1") };
            assert_eq!(between(&application), [expected.clone(), pair("v1", "")], "{now:?}");
            // A dry run brings nothing anywhere.
            application["operation"] = json!({"sync": {"dryRun": true}});
            assert_eq!(between(&application), [expected, pair("v1", "")], "{now:?}");
        }
        // Another repository at its place is not where it goes from.
        let new = source(("https://example.com/a", "x"));
        let application = json!({
            "spec": {"sources": [new, values]},
            "status": {
                "sync": {"status": "Synced"},
                "operationState": {"syncResult": {"revisions": ["a1", "v2"], "sources": [new, values]}},
                "history": [
                    {"revisions": ["v1"], "sources": [values]},
                    {"revisions": ["a1", "v2"], "sources": [new, values]},
                ],
            },
        });
        assert_eq!(between(&application), [pair("a1", ""), pair("v2", "v1")]);
    }

    #[test]
    fn what_is_empty_in_a_source_is_as_what_is_not_there_in_the_history() {
        let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": "x"});
        let mut written = source("a");
        written["chart"] = "".into();
        written["ref"] = Value::Null;
        let application = json!({
            "spec": {"sources": [written, source("b")]},
            "status": {
                "sync": {"status": "Synced"},
                "operationState": {"syncResult": {"revisions": ["a2", "b2"]}},
                "history": [
                    {"revisions": ["a1", "b1"], "sources": [source("a"), source("b")]},
                    {"revisions": ["a2", "b2"], "sources": [source("a"), source("b")]},
                ],
            },
        });
        assert_eq!(between(&application), [pair("a2", "a1"), pair("b2", "b1")]);
    }

    #[test]
    fn where_argo_cd_keeps_no_history_the_next_begins_at_what_was_told_last() {
        let mut application = json!({
            "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}, "revisionHistoryLimit": 0},
            "status": {
                "sync": {"status": "Synced", "revision": "b"},
                "operationState": {"phase": "Succeeded", "syncResult": {"revision": "b"}},
            },
        });
        let told = ReportedSync {
            repo_url: "https://example.com/a".to_owned(),
            revision: "a".to_owned(),
            started_at: Some("one".to_owned()),
        };
        let of = |application: &Value, told: &ReportedSync| {
            let all = synced(application);
            (all[0].current.clone(), all[0].since(Some(told), Some("two"), &redactor()))
        };
        assert_eq!(of(&application, &told), pair("b", "a"));
        let elsewhere = ReportedSync { repo_url: "https://example.com/b".to_owned(), ..told.clone() };
        assert_eq!(of(&application, &elsewhere), pair("b", ""), "another repository's revision");
        application["status"]["history"] = json!([{"revision": "b"}]);
        assert_eq!(of(&application, &told), pair("b", ""), "a history that has it no more");
    }

    #[test]
    fn a_dry_run_leaves_the_sources_where_the_last_sync_brought_them() {
        let mut application = json!({
            "spec": {"source": {"repoURL": "https://example.com/a", "path": "x"}},
            "status": {
                "sync": {"status": "OutOfSync", "revision": "c"},
                "operationState": {"phase": "Succeeded", "startedAt": "2026-11-25T10:00:00Z",
                    "operation": {"sync": {"revision": "c", "dryRun": true}}, "syncResult": {"revision": "c"}},
                "history": [{"revision": "a"}, {"revision": "b"}],
            },
        });
        let of = |application: &Value| (between(application), started_at(application, &synced(application)));
        for phase in ["Succeeded", "Running", "Failed"] {
            application["status"]["operationState"]["phase"] = phase.into();
            assert!(is_dry_run(&application));
            assert_eq!(of(&application), (vec![pair("b", "a")], None), "{phase}");
        }
        application["status"].as_object_mut().unwrap().remove("operationState");
        application["operation"] = json!({"sync": {"revision": "c", "dryRun": true}});
        assert_eq!(of(&application), (vec![pair("b", "a")], None), "it is asked for");
        application["status"].as_object_mut().unwrap().remove("history");
        assert_eq!(of(&application), (vec![pair("", "")], None), "nothing was ever synced");
        application["operation"]["sync"]["dryRun"] = false.into();
        assert!(!is_dry_run(&application));
        assert_eq!(of(&application).0, [pair("c", "")]);
    }

    #[test]
    fn a_source_that_cannot_be_read_keeps_its_place_among_the_revisions() {
        let source = |name: &str| json!({"repoURL": format!("https://example.com/{name}"), "path": name});
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "odd"},
            "spec": {"sources": [source("a"), null, source("b")]},
            "status": {
                "sync": {"status": "Synced"},
                "operationState": {"syncResult": {"revisions": ["a1", "x", "b1"]}},
                "history": [{"revisions": ["a1", "x", "b1"], "sources": [source("a"), {}, source("b")]}],
            },
        });
        let application = stages_git::application::Application::read(&object).unwrap();
        let all = synced(&object);
        let paths: Vec<&str> = all.iter().map(|of| &*application.sources[of.index].path).collect();
        assert_eq!(paths, ["a", "b"]);
        assert_eq!(all.iter().map(|of| of.current.as_deref()).collect::<Vec<_>>(), [Some("a1"), Some("b1")]);
    }
}
