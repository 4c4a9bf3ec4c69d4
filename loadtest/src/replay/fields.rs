//! How the fields that Git answers compare, one by one.

use loadtest_judge::diff::Difference;

use super::compare::is_below;
use super::predicates::Scene;

/// The fields that Git answers.
pub(super) const FIELDS: [&str; 3] = ["source.gitManifest", "source.path", "appVersions"];

/// How one field compares over many reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Field {
    /// The same in both.
    pub equal: usize,
    /// Different where a rule says so.
    pub on_purpose: usize,
    /// Different otherwise.
    pub different: usize,
}

impl Field {
    /// Adds what was found of others.
    pub(super) fn add(&mut self, other: Self) {
        self.equal += other.equal;
        self.on_purpose += other.on_purpose;
        self.different += other.different;
    }
}

/// Counts the fields of one pair of reports. `all` is where they differ, `left` is what no rule allows of it.
pub(super) fn count(fields: &mut [Field; 3], scene: &Scene<'_>, all: &[String], left: &[Difference]) {
    if scene.ours.is_none() || scene.theirs.is_none() {
        return;
    }
    for (name, field) in FIELDS.iter().zip(fields) {
        if left.iter().any(|difference| is_below(&difference.path, name)) {
            field.different += 1;
        } else if all.iter().any(|path| is_below(path, name)) {
            field.on_purpose += 1;
        } else {
            field.equal += 1;
        }
    }
}
