//! What a commit made of files: their texts in it and in its first parent, and the lines that differ.

use git2::{DiffLineType, DiffOptions, ObjectType, Oid, Patch, Repository, Tree};

use crate::error::GitError;

/// So many bytes are looked at to tell a text from what is none, as git does.
const LOOKED_AT: usize = 8_000;
/// Lines around each change.
const CONTEXT: u32 = 3;

/// What stands at a path. Of a link that is its target, and of a submodule its commit: nothing is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    id: Oid,
    is_submodule: bool,
}

impl FileId {
    /// Whether it is the commit of a submodule.
    #[must_use]
    pub const fn is_submodule(&self) -> bool {
        self.is_submodule
    }
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// Text.
    Text(String),
    /// The commit of a submodule, as git writes it.
    Submodule(String),
    /// What is no text.
    Binary,
    /// More than is read.
    Large,
}

/// A commit beside its first parent.
pub struct BesideParent<'r> {
    repository: &'r Repository,
    before: Option<Tree<'r>>,
    after: Tree<'r>,
}

impl<'r> BesideParent<'r> {
    /// A commit whose parents are not there, as in a shallow clone, stands beside nothing.
    pub(crate) fn new(repository: &'r Repository, commit: Oid) -> Result<Self, GitError> {
        let failed = |source| GitError::Read { what: commit.to_string(), source };
        let of = repository.find_commit(commit).map_err(failed)?;
        let parent = of.parent_ids().find_map(|id| repository.find_commit(id).ok());
        let before = parent.map(|parent| parent.tree()).transpose().map_err(failed)?;
        Ok(Self { repository, before, after: of.tree().map_err(failed)? })
    }

    /// What stood at a path, and what stands there now; `None` where there is no file.
    ///
    /// # Errors
    /// A tree cannot be read.
    pub fn file(&self, path: &str) -> Result<[Option<FileId>; 2], GitError> {
        let before = self.before.as_ref().map(|tree| self.find(tree, path)).transpose()?.flatten();
        Ok([before, self.find(&self.after, path)?])
    }

    fn find(&self, tree: &Tree<'r>, path: &str) -> Result<Option<FileId>, GitError> {
        let mut within: Option<Tree<'r>> = None;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let entry =
                within.as_ref().unwrap_or(tree).get_name(name).map(|entry| (entry.id(), entry.kind()));
            match (entry, names.peek()) {
                (Some((id, Some(ObjectType::Tree))), Some(_)) => {
                    let failed = |source| GitError::Read { what: format!("the tree {id}"), source };
                    within = Some(self.repository.find_tree(id).map_err(failed)?);
                }
                (Some((id, Some(ObjectType::Blob))), None) => {
                    return Ok(Some(FileId { id, is_submodule: false }));
                }
                (Some((id, Some(ObjectType::Commit))), None) => {
                    return Ok(Some(FileId { id, is_submodule: true }));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// What a file holds, if that is no more than `limit` bytes.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn content(&self, file: FileId, limit: usize) -> Result<FileContent, GitError> {
        if file.is_submodule {
            return Ok(FileContent::Submodule(format!("Subproject commit {}\n", file.id)));
        }
        let failed = |source| GitError::Read { what: file.id.to_string(), source };
        let odb = self.repository.odb().map_err(failed)?;
        let (size, _) = odb.read_header(file.id).map_err(failed)?;
        if size > limit {
            return Ok(FileContent::Large);
        }
        let content = odb.read(file.id).map_err(failed)?.data().to_vec();
        if content.iter().take(LOOKED_AT).any(|byte| *byte == 0) {
            return Ok(FileContent::Binary);
        }
        Ok(String::from_utf8(content).map_or(FileContent::Binary, FileContent::Text))
    }
}

/// Two texts as a unified diff, without its head: each change under a line `@@ -from,lines +from,lines @@`, with three lines
/// around it, and each line after a blank, `-` or `+`. At most so many bytes, in whole lines; and whether there are more.
///
/// # Errors
/// The library cannot compare them.
pub fn unified(before: &str, after: &str, most: usize) -> Result<(String, bool), GitError> {
    let failed = |source| GitError::Read { what: "the difference of two files".to_owned(), source };
    let mut options = DiffOptions::new();
    options.context_lines(CONTEXT).force_text(true).indent_heuristic(true);
    let patch = Patch::from_buffers(before.as_bytes(), None, after.as_bytes(), None, Some(&mut options))
        .map_err(failed)?;
    let mut text = String::new();
    for number in 0..patch.num_hunks() {
        let (hunk, lines) = patch.hunk(number).map_err(failed)?;
        let [from, to] = [(hunk.old_start(), hunk.old_lines()), (hunk.new_start(), hunk.new_lines())];
        let head = format!("@@ -{},{} +{},{} @@\n", from.0, from.1, to.0, to.1);
        if text.len() + head.len() > most {
            return Ok((text, true));
        }
        text.push_str(&head);
        for index in 0..lines {
            let line = patch.line_in_hunk(number, index).map_err(failed)?;
            let sign = match line.origin_value() {
                DiffLineType::Context => ' ',
                DiffLineType::Addition => '+',
                DiffLineType::Deletion => '-',
                // That a file ends without an end of line is told of the line before.
                _ => continue,
            };
            let own = String::from_utf8_lossy(line.content());
            let own = own.strip_suffix('\n').unwrap_or(&own);
            if text.len() + own.len() + 2 > most {
                return Ok((text, true));
            }
            text.push(sign);
            text.push_str(own);
            text.push('\n');
        }
    }
    Ok((text, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{file, link, repository};

    const MANY: usize = 1 << 20;

    #[test]
    fn a_line_that_changed_stands_among_three_others_and_far_ones_apart() {
        let lines = |changed: &[usize]| -> String {
            (1..=30)
                .map(|n| if changed.contains(&n) { format!("new {n}\n") } else { format!("{n}\n") })
                .collect()
        };
        let (text, cut) = unified(&lines(&[]), &lines(&[5, 25]), MANY).unwrap();
        assert_eq!(
            text,
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+new 5\n 6\n 7\n 8\n\
             @@ -22,7 +22,7 @@\n 22\n 23\n 24\n-25\n+new 25\n 26\n 27\n 28\n"
        );
        assert!(!cut);
        assert_eq!(unified("same\n", "same\n", MANY).unwrap(), (String::new(), false));
        assert_eq!(unified("", "a\nb", MANY).unwrap().0, "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(unified("a\n", "", MANY).unwrap().0, "@@ -1,1 +0,0 @@\n-a\n");
        // What ends without an end of line, and then with one.
        assert_eq!(unified("a", "a\n", MANY).unwrap().0, "@@ -1,1 +1,1 @@\n-a\n+a\n");
    }

    #[test]
    fn what_is_longer_than_it_may_be_is_cut_between_lines_and_that_is_said() {
        let long: String = (0..100).map(|n| format!("line {n:03} é\n")).collect();
        let whole = unified("", &long, MANY).unwrap().0;
        for most in [0, 1, 15, 16, 40, 41, 42, 500] {
            let (text, cut) = unified("", &long, most).unwrap();
            assert!(cut && text.len() <= most && whole.starts_with(&text), "{most}: {text}");
            assert!(text.is_empty() || text.ends_with('\n'), "{most}: {text}");
        }
    }

    #[test]
    fn files_links_and_submodules_are_what_they_say_and_directories_are_none() {
        let (_directory, repository, commit) = repository(&[
            file("a.yaml", "a: 1\n"),
            ("b.bin", 0o100_644, b"a\0b"),
            ("c.txt", 0o100_644, &[0xff, 0xfe, b'a']),
            link("link", "../../etc/passwd"),
            ("sub", 0o160_000, b""),
            file("dir/x", "x"),
        ]);
        let beside = repository.beside_parent(commit).unwrap();
        let content = |path: &str, limit| {
            let [before, after] = beside.file(path).unwrap();
            assert_eq!(before, None, "it is the first commit");
            after.map(|file| beside.content(file, limit).unwrap())
        };
        let text = |text: &str| Some(FileContent::Text(text.to_owned()));
        assert_eq!(content("a.yaml", 5), text("a: 1\n"));
        assert_eq!(content("a.yaml", 4), Some(FileContent::Large));
        assert_eq!(content("b.bin", 100), Some(FileContent::Binary));
        assert_eq!(content("c.txt", 100), Some(FileContent::Binary));
        assert_eq!(content("link", 100), text("../../etc/passwd"));
        let submodule = format!("Subproject commit {}\n", "07".repeat(20));
        assert_eq!(content("sub", 100), Some(FileContent::Submodule(submodule)));
        for none in ["dir", "none", "a.yaml/x", "../a.yaml", "/a.yaml", "dir//x/y"] {
            assert_eq!(content(none, 100), None, "{none}");
        }
    }
}
