//! The objects of a directory, as Argo CD takes its files.

use globset::GlobMatcher;
use serde_json::Value;
use stages_git::{GitError, Snapshot, file_pattern, shown};

use crate::made::Made;

/// Files that are read of one directory.
const MAX_FILES: usize = 5_000;
/// Directories below one another.
const MAX_DEPTH: usize = 32;
/// Names that are looked at, of files and directories: a few objects may make more directories than anybody can count.
const MAX_NAMES: usize = 100_000;

/// Which files of a directory count.
struct FileFilter {
    recurse: bool,
    include: Option<GlobMatcher>,
    exclude: Option<GlobMatcher>,
}

/// The files that count, and how many more names are looked at.
struct CollectedFiles {
    paths: Vec<String>,
    left: usize,
}

/// The objects of the files in `directory`; `settings` are those of the source (`spec.source.directory`).
///
/// # Errors
/// The repository cannot be read.
pub(crate) fn made(files: &Snapshot<'_>, directory: &str, settings: &Value) -> Result<Made, GitError> {
    let mut made = Made::default();
    let mut pattern = |name: &str| {
        let text = settings[name].as_str().filter(|text| !text.is_empty())?;
        let pattern = file_pattern(text);
        if pattern.is_none() {
            made.gap(format!("directory.{name} is no pattern: {text:?}"));
        }
        pattern
    };
    let (include, exclude) = (pattern("include"), pattern("exclude"));
    let chosen = FileFilter { recurse: settings["recurse"].as_bool().unwrap_or_default(), include, exclude };
    if !made.gaps.is_empty() {
        return Ok(made);
    }
    if !files.is_directory(directory)? {
        made.gap(format!("the directory {} is not there", shown(directory)));
        return Ok(made);
    }
    let mut collected = CollectedFiles { paths: Vec::new(), left: MAX_NAMES };
    collect(files, (directory, directory), &chosen, 0, &mut collected, &mut made)?;
    for path in collected.paths {
        made.file(files, &path)?;
    }
    Ok(made)
}

fn collect(
    files: &Snapshot<'_>,
    (root, at): (&str, &str),
    chosen: &FileFilter,
    depth: usize,
    collected: &mut CollectedFiles,
    made: &mut Made,
) -> Result<(), GitError> {
    for listed in files.list(at)? {
        let Some(left) = collected.left.checked_sub(1) else {
            made.gap(format!(
                "it has more than {MAX_NAMES} files and directories: name one with fewer as its path"
            ));
            return Ok(());
        };
        collected.left = left;
        let path = listed.path;
        if listed.is_directory {
            if chosen.recurse && depth < MAX_DEPTH {
                collect(files, (root, &path), chosen, depth + 1, collected, made)?;
            } else if chosen.recurse {
                made.gap(format!("{} is more than {MAX_DEPTH} directories below", shown(&path)));
            }
            continue;
        }
        let below = path.strip_prefix(root).unwrap_or(&path).trim_start_matches('/');
        let is_in = |pattern: &Option<GlobMatcher>| pattern.as_ref().map(|pattern| pattern.is_match(below));
        if is_in(&chosen.exclude) == Some(true) || is_in(&chosen.include) == Some(false) {
            continue;
        }
        if path.ends_with(".jsonnet") {
            made.gap(format!("what {} makes is not known: Jsonnet is not run", shown(&path)));
        } else if [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end)) {
            if collected.paths.len() >= MAX_FILES {
                made.gap(format!("it has more than {MAX_FILES} files"));
                return Ok(());
            }
            collected.paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CollectedFiles, FileFilter, MAX_FILES, MAX_NAMES, collect, made};
    use crate::made::Made;
    use crate::testing::repository;

    const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";

    fn found(files: &[(&str, &str)], settings: &Value) -> (Vec<String>, Vec<String>) {
        let (_directory, repository, commit) = repository(files);
        let made = made(&repository.snapshot(commit).unwrap(), "a", settings).unwrap();
        (made.objects.into_iter().map(|object| object.origin.path).collect(), made.gaps)
    }

    #[test]
    fn files_are_chosen_as_argo_cd_chooses_them() {
        let files = [
            ("a/b/deep/x.yaml", POD),
            ("a/b/x.yml", POD),
            ("a/config.json", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\"}}"),
            ("a/not.yaml.bak", POD),
            (
                "a/skipped.yaml",
                "# +argocd:skip-file-rendering\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
            ),
            ("a/x.yaml", POD),
        ];
        for (settings, expected) in [
            (json!(null), vec!["a/config.json", "a/x.yaml"]),
            (json!({"recurse": true}), vec!["a/b/deep/x.yaml", "a/b/x.yml", "a/config.json", "a/x.yaml"]),
            (json!({"recurse": true, "include": "*.yaml"}), vec!["a/b/deep/x.yaml", "a/x.yaml"]),
            (json!({"recurse": true, "exclude": "{config.json,b/*}"}), vec!["a/x.yaml"]),
            (json!({"recurse": true, "include": "b/*", "exclude": "*deep*"}), vec!["a/b/x.yml"]),
        ] {
            assert_eq!(found(&files, &settings).0, expected, "{settings}");
        }
    }

    #[test]
    fn what_is_not_known_of_a_directory_is_said() {
        let files = [("a/x.jsonnet", "{}"), ("a/broken.yaml", "a: [\n"), ("b/x.yaml", POD)];
        assert_eq!(
            found(&files, &Value::Null).1,
            [
                "what a/x.jsonnet makes is not known: Jsonnet is not run",
                "a/broken.yaml: no YAML at line 1 of the document in lines 1 to 1"
            ]
        );
        assert_eq!(found(&files[2..], &Value::Null).1, ["the directory a is not there"]);
        assert_eq!(found(&files, &json!({"include": "[a"})).1, ["directory.include is no pattern: \"[a\""]);
    }

    #[test]
    fn the_items_of_a_list_share_its_text_and_have_an_end() {
        let item = "- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n";
        let items = format!("apiVersion: v1\nkind: List\nitems:\n{}", item.repeat(100));
        let text = format!("# {}\n{items}", "x".repeat(1024 * 1024));
        let (_directory, repository, commit) = repository(&[("a/list.yaml", &text)]);
        let made = made(&repository.snapshot(commit).unwrap(), "a", &Value::Null).unwrap();
        let text_of = |n: usize| made.objects[n].origin.manifest.as_ptr();
        assert_eq!(text_of(0), text_of(1));
        let bytes: usize = made.objects.iter().map(|object| object.origin.manifest.len()).sum();
        assert!(bytes <= 64 * 1024 * 1024, "{bytes} bytes");
        assert!(made.gaps[0].starts_with("its files have more than 64 MiB"), "{:?}", made.gaps);
    }

    #[test]
    fn a_directory_of_more_directories_than_are_looked_at_is_not_known_whole() {
        let names: Vec<String> = (0..30).map(|n| format!("a/{}/{}/x.yaml", n / 5, n % 5)).collect();
        let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), POD)).collect();
        files.push(("a/x.txt", ""));
        let (_directory, repository, commit) = repository(&files);
        let snapshot = repository.snapshot(commit).unwrap();
        let chosen = FileFilter { recurse: true, include: None, exclude: None };
        let found = |limit: usize| {
            let mut collected = CollectedFiles { paths: Vec::new(), left: limit };
            let mut made = Made::default();
            collect(&snapshot, ("a", "a"), &chosen, 0, &mut collected, &mut made).unwrap();
            (collected.paths.len(), made.gaps)
        };
        // Six directories of five with a file each, and one file.
        assert_eq!(found(67), (30, Vec::new()));
        let gap = "it has more than 100000 files and directories: name one with fewer as its path";
        assert_eq!(found(66), (30, vec![gap.to_owned()]));
        assert_eq!(found(30), (13, vec![gap.to_owned()]));
    }

    #[test]
    fn a_directory_of_more_names_than_are_listed_is_refused() {
        let (directory, repository, _) = repository(&[("a/x.yaml", POD)]);
        let made_of = |count: usize| {
            let git = git2::Repository::open(directory.path()).unwrap();
            let (odb, file) = (git.odb().unwrap(), git.blob(b"x").unwrap());
            let write = |entries: &[(&str, String, git2::Oid)]| {
                let mut raw = Vec::new();
                for (mode, name, id) in entries {
                    raw.extend_from_slice(format!("{mode} {name}\0").as_bytes());
                    raw.extend_from_slice(id.as_bytes());
                }
                odb.write(git2::ObjectType::Tree, &raw).unwrap()
            };
            let names: Vec<_> = (0..count).map(|n| ("100644", format!("{n:06}"), file)).collect();
            let root = write(&[("40000", "a".to_owned(), write(&names))]);
            let text = format!("tree {root}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n");
            let commit = odb.write(git2::ObjectType::Commit, text.as_bytes()).unwrap();
            made(&repository.snapshot(commit).unwrap(), "a", &Value::Null).map(|made| made.gaps)
        };
        assert_eq!(made_of(MAX_NAMES).unwrap(), Vec::<String>::new());
        let refused = made_of(MAX_NAMES + 1).unwrap_err().to_string();
        assert_eq!(refused, "the directory /a holds more than 100000 files and directories");
    }

    #[test]
    fn a_directory_of_too_many_files_is_not_known_whole() {
        let names: Vec<String> = (0..=MAX_FILES).map(|n| format!("a/{n}.yaml")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let (_directory, repository, commit) = repository(&files);
        let snapshot = repository.snapshot(commit).unwrap();
        let chosen = FileFilter { recurse: false, include: None, exclude: None };
        let mut collected = CollectedFiles { paths: Vec::new(), left: MAX_NAMES };
        let mut made = Made::default();
        collect(&snapshot, ("a", "a"), &chosen, 0, &mut collected, &mut made).unwrap();
        assert_eq!(collected.paths.len(), MAX_FILES);
        assert_eq!(made.gaps, ["it has more than 5000 files"]);
    }
}
