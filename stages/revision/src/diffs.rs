//! What a commit changed in the files of an application, as lines. What is secret in a file is replaced before it is compared: what
//! stands around a changed line tells what it is.

mod others;

use std::collections::HashMap;
use std::rc::Rc;

use pipeline_redact::{Redactor, WITHHELD};
use stages_git::{BesideParent, FileContent, FileId, GitError, GitRepository, Oid, unified};

use self::others::Others;
use crate::report::Untold;
use crate::{FileDiff, ShownChange};

/// Files of one commit that are compared.
const FILES: usize = 20;
/// Bytes of a file that is compared.
const FILE: usize = 256 * 1024;
/// Bytes of one file's difference.
const DIFF: usize = 16 * 1024;
/// Bytes of files that are read for one source of one application.
const READ: usize = 8 * 1024 * 1024;
/// How many times longer a file may become when what is secret in it is replaced: its anchors are written out.
const LONGER: usize = 4;
/// Bytes of what is told of a file beside its path and its difference.
const ENTRY: usize = 64;
/// Bytes of files that are remembered: applications of one repository share some, and a commit has what the next one changes.
const REMEMBERED: usize = 8 * 1024 * 1024;

/// A file without its secrets.
type Redacted = Result<Rc<str>, Untold>;

/// Compares files of one repository.
pub(crate) struct Diffs<'r> {
    repository: &'r GitRepository,
    redactor: &'r Redactor,
    known: HashMap<FileId, Redacted>,
    remembered: usize,
}

/// What one source of one application may still have.
struct Room {
    /// Bytes of differences.
    told: usize,
    /// Bytes of files.
    read: usize,
}

impl<'r> Diffs<'r> {
    pub(crate) fn new(repository: &'r GitRepository, redactor: &'r Redactor) -> Self {
        Self { repository, redactor, known: HashMap::new(), remembered: 0 }
    }

    /// Tells of each change what differs in its files, in the order in which they are told, until so many bytes are full.
    pub(crate) fn tell(&mut self, changes: &mut [ShownChange], most: usize) {
        let mut room = Room { told: most, read: READ };
        for change in changes {
            if room.told == 0 || room.read == 0 {
                return;
            }
            let beside = Oid::from_str(&change.revision).ok();
            let Some(beside) = beside.and_then(|commit| self.repository.beside_parent(commit).ok()) else {
                continue;
            };
            let mut others = Others::new(&beside, change.paths.iter().take(FILES).map(String::as_str));
            for path in change.paths.iter().take(FILES) {
                if room.told == 0 || room.read == 0 {
                    return;
                }
                let shown = self.redactor.text(path).into_owned();
                let Some(left) = room.told.checked_sub(shown.len() + ENTRY) else { return };
                room.told = left;
                let told = self.compare(&mut others, path, &mut room);
                change.diffs.push(match told {
                    Ok((text, cut)) => FileDiff { path: shown, text, untold: None, cut },
                    Err(untold) => FileDiff { path: shown, untold: Some(untold), ..FileDiff::default() },
                });
            }
        }
    }

    fn compare(
        &mut self,
        others: &mut Others<'_, '_>,
        path: &str,
        room: &mut Room,
    ) -> Result<(String, bool), Untold> {
        let lost = |_: GitError| Untold::Lost;
        let beside = others.beside;
        let [before, after] = beside.file(path).map_err(lost)?;
        if before.is_none() && after.is_none() {
            return Err(Untold::Lost);
        }
        let is_manifest = is_manifest(path) && !others.may_read(path, FILE).map_err(lost)?;
        let mut text = |file: Option<FileId>| match file {
            Some(file) if is_manifest || file.is_submodule() => self.redacted(beside, file, room),
            Some(file) => self.redacted(beside, file, room).and(Err(Untold::Unreadable)),
            None => Ok(Rc::from("")),
        };
        let both = before.is_some() && after.is_some();
        let (before, after) = (text(before)?, text(after)?);
        // What became a Secret, or was one, stands in the clear on the other side.
        if both && secrets(&before) != secrets(&after) {
            return Err(Untold::Unreadable);
        }
        let (text, cut) = unified(&before, &after, room.told.min(DIFF)).map_err(lost)?;
        if text.is_empty() && !cut {
            return Err(Untold::Same);
        }
        // What did not fit in anywhere leaves no room for anything else.
        room.told = if text.is_empty() { 0 } else { room.told - text.len() };
        Ok((text, cut))
    }

    fn redacted(&mut self, beside: &BesideParent<'_>, file: FileId, room: &mut Room) -> Redacted {
        if let Some(known) = self.known.get(&file) {
            return known.clone();
        }
        let (read, redacted) = match beside.content(file, FILE) {
            Ok(FileContent::Text(text)) => (text.len(), self.without_secrets(&text)),
            Ok(FileContent::Submodule(text)) => (text.len(), Ok(Rc::from(text))),
            Ok(FileContent::Binary) => (FILE, Err(Untold::Binary)),
            Ok(FileContent::Large) => (0, Err(Untold::Large)),
            Err(_) => (0, Err(Untold::Lost)),
        };
        room.read = room.read.saturating_sub(read);
        let bytes = redacted.as_ref().map_or(0, |text| text.len());
        if self.remembered + bytes > REMEMBERED {
            self.known.clear();
            self.remembered = 0;
        }
        self.remembered += bytes;
        self.known.insert(file, redacted.clone());
        redacted
    }

    fn without_secrets(&self, text: &str) -> Redacted {
        let redacted = self.redactor.raw(text);
        if redacted.strip_prefix("# withheld: ").is_some_and(|rest| rest.starts_with(WITHHELD)) {
            return Err(Untold::Unreadable);
        }
        if redacted.len() > LONGER * FILE {
            return Err(Untold::Large);
        }
        Ok(Rc::from(&*redacted))
    }
}

/// Whether a path is one of manifests: what is secret in anything else is known by its looks alone.
fn is_manifest(path: &str) -> bool {
    let of = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    of.is_some_and(|of| ["yaml", "yml", "json"].contains(&&*of))
}

/// How many Secrets a text holds, by the lines that say so.
fn secrets(text: &str) -> usize {
    let is_kind = |line: &&str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.any(|word| word == "kind") && words.any(|word| word.ends_with("Secret"))
    };
    text.lines().filter(is_kind).count()
}

#[cfg(test)]
mod tests;
