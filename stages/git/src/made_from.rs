//! What Argo CD notes of a commit that it writes to a branch: which commit of people it made the manifests from.
//!
//! Its source hydrator writes `hydrator.metadata` at the root of the branch with each of its commits: `repoURL` and `drySha`, and, as of
//! Argo CD 3.1, `author`, `date` (RFC 3339), and the message as `subject` and `body`.

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::file_change::{BesideParent, FileContent};

/// The file in which it notes it.
pub(crate) const HYDRATED_FROM: &str = "hydrator.metadata";
/// Bytes of that file.
const MAX_FILE: usize = 64 * 1024;

/// A commit that manifests were made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeFrom {
    /// Where its repository is.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// Its id.
    pub revision: String,
    /// Who wrote it: `name <address>`; empty where it is not noted, as what follows.
    pub author: String,
    /// When, RFC 3339.
    pub date: String,
    /// What it says.
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Noted {
    #[serde(rename = "repoURL")]
    repo_url: String,
    #[serde(rename = "drySha")]
    dry_sha: String,
    author: String,
    date: String,
    subject: String,
    body: String,
}

impl MadeFrom {
    /// Reads the file; `None` where it names no commit.
    fn read(text: &str) -> Option<Self> {
        let Noted { repo_url, dry_sha, author, date, subject, body } = serde_json::from_str(text).ok()?;
        let is_commit = matches!(dry_sha.len(), 40 | 64) && dry_sha.bytes().all(|c| c.is_ascii_hexdigit());
        let message = if body.is_empty() { subject } else { format!("{subject}\n\n{body}") };
        is_commit.then_some(Self { repo_url, revision: dry_sha, author, date, message })
    }
}

impl BesideParent<'_> {
    /// What the commit was made from, where it is one that Argo CD noted it of: one that left the note as it was is another's.
    ///
    /// # Errors
    /// A tree or the note cannot be read.
    pub fn made_from(&self) -> Result<Option<MadeFrom>, GitError> {
        let [before, after] = self.file(HYDRATED_FROM)?;
        let Some(note) = after.filter(|note| before != Some(*note)) else { return Ok(None) };
        Ok(match self.content(note, MAX_FILE)? {
            FileContent::Text(text) => MadeFrom::read(&text),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::MadeFrom;
    use crate::testing::{file, link, repository};

    const SHA: &str = "4f2a91c04f2a91c04f2a91c04f2a91c04f2a91c0";

    #[test]
    fn a_note_of_argo_cd_names_the_commit_and_what_it_says() {
        let of = |text: &str| MadeFrom::read(&text.replace("SHA", SHA));
        let made_from = |author: &str, date: &str, message: &str| MadeFrom {
            repo_url: "https://x/y".to_owned(),
            revision: SHA.to_owned(),
            author: author.to_owned(),
            date: date.to_owned(),
            message: message.to_owned(),
        };
        assert_eq!(
            of(r#"{"repoURL": "https://x/y", "drySha": "SHA", "commands": ["helm template ."]}"#),
            Some(made_from("", "", "")),
            "before Argo CD 3.1"
        );
        let whole = r#"{"repoURL": "https://x/y", "drySha": "SHA", "author": "Ada <a@b>", "date": "2026-11-25T10:00:00Z",
            "subject": "Raise it", "body": "Because.", "references": [{"commit": {"sha": "x"}}]}"#;
        assert_eq!(of(whole), Some(made_from("Ada <a@b>", "2026-11-25T10:00:00Z", "Raise it\n\nBecause.")));
        for none in ["", "[]", "{}", r#"{"drySha": "n/a"}"#, r#"{"drySha": 7}"#, r#"{"drySha": "../../SHA"}"#]
        {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn the_note_is_a_file_at_the_root_of_the_repository() {
        let note = format!("{{\"drySha\": \"{SHA}\"}}");
        let found = |files: &[(&str, i32, &[u8])]| {
            let (_directory, repository, commit) = repository(files);
            let beside = repository.beside_parent(commit).unwrap();
            beside.made_from().unwrap().map(|found| found.revision)
        };
        assert_eq!(found(&[file("hydrator.metadata", &note)]), Some(SHA.to_owned()));
        assert_eq!(found(&[file("shop/hydrator.metadata", &note)]), None);
        let linked = [link("hydrator.metadata", "shop/note"), file("shop/note", &note)];
        assert_eq!(found(&linked), None, "nothing is followed");
    }
}
