//! Which revision each source of an application stands at, and which it stood at before.
//!
//! The rules are those of `argocd-monorepo-controller`, but for four: an operation that succeeded counts though the
//! application is out of sync again; the newest entry of the history is the sync itself only if it is of the same revision,
//! which it is not after a sync of some resources alone; a sync that is asked for counts once it has begun, so that each is
//! told of once, with the time at which it began; and a dry run is no sync.

use pipeline_redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_git::{Address, MAX_SOURCES, SyncedSources, has_commits, synced_sources};

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

/// The sources of an Application, in its order; of more than [`MAX_SOURCES`] the first.
pub fn synced(application: &Value) -> Vec<Synced> {
    let SyncedSources { all, are_several: is_multiple, .. } = synced_sources(&application["spec"]);
    let sources = all.iter().take(MAX_SOURCES).enumerate().filter(|(_, source)| source.is_object());
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
            _ => sources.iter().take(MAX_SOURCES).position(|other| self.is_same(other)),
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
mod tests;
