//! What happens, as data.

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One step, and what it is for whoever looks on.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Told {
    /// A sentence.
    pub(super) about: String,
    #[serde(flatten)]
    pub(super) step: Step,
}

/// One step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Step {
    /// Applies YAML documents, in which `$CHECK` is the address of what an analysis asks.
    Apply(String),
    /// Changes objects as the commands of their controllers do.
    Patch(Patch),
    /// Waits for what objects say.
    Until(Until),
    /// Ends what runs of a Workflow's pods, so many of them.
    Pods(Pods),
    /// Has a Workflow that failed run what failed once more.
    Retry(String),
    /// Makes the same Workflow again.
    Resubmit(String),
    /// Deletes an object.
    Delete(Named),
    /// Kills or starts the reporter.
    Reporter(Change),
}

/// An object of the story's namespace; of one whose name ends with `*` every one whose name begins so.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Named {
    pub(super) kind: String,
    pub(super) name: String,
}

/// A merge patch.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Patch {
    #[serde(flatten)]
    pub(super) named: Named,
    pub(super) merge: Value,
    #[serde(default)]
    pub(super) subresource: Option<String>,
}

/// What stands at these JSON pointers of one such object; null for nothing.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Until {
    #[serde(flatten)]
    pub(super) named: Named,
    pub(super) shows: Map<String, Value>,
}

/// How pods end.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pods {
    /// The Workflow whose they are; all whose names begin so, with `*`.
    pub(super) workflow: String,
    pub(super) count: usize,
    pub(super) ends: Ends,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Ends {
    Succeeded,
    Failed,
}

/// What is done to the reporter's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    /// SIGKILL.
    Kill,
    /// On what the one before has left.
    Start,
}

/// Reads a story; refuses one that ends without the reporter, or that stops it twice.
pub(super) fn read(text: &str) -> anyhow::Result<Vec<Told>> {
    let story: Vec<Told> = serde_saphyr::from_str(text).context("read the story")?;
    let mut runs = true;
    for (at, told) in story.iter().enumerate() {
        if let Step::Reporter(change) = &told.step {
            if runs != (*change == Change::Kill) {
                bail!("step {}: {}: the reporter is as the step wants it already", at + 1, told.about);
            }
            runs = *change == Change::Start;
        }
    }
    if !runs {
        bail!("the story ends without the reporter");
    }
    Ok(story)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_is_read_and_kills_the_reporter_more_than_once() {
        let story = read(super::super::STORY).unwrap();
        let kills = story.iter().filter(|told| matches!(told.step, Step::Reporter(Change::Kill))).count();
        assert!(kills >= 3 && story.len() > 30, "{kills} of {}", story.len());
        assert!(story.iter().all(|told| !told.about.is_empty()));
    }

    #[test]
    fn a_story_that_leaves_the_reporter_down_or_starts_it_twice_is_refused() {
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(refused("[{about: It goes, reporter: kill}]"), "the story ends without the reporter");
        assert_eq!(
            refused("[{about: It comes, reporter: start}]"),
            "step 1: It comes: the reporter is as the step wants it already"
        );
    }
}
