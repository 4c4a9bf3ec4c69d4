use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Repository, Signature, Time};
use tempfile::TempDir;

use super::*;

const TAKE: usize = 1 << 20;

/// A path, and what is written there, if it is not deleted.
type Written<'a> = (&'a str, Option<&'a [u8]>);

struct Made {
    folder: TempDir,
    commits: Vec<Oid>,
}

/// A repository of these commits, each on the one before: what it writes, and deletes where nothing is written.
fn made(commits: &[&[Written<'_>]]) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let of = Repository::init_bare(folder.path()).unwrap();
    let who = Signature::new("Ada", "ada@example.com", &Time::new(1_700_000_000, 0)).unwrap();
    let mut made: Vec<Oid> = Vec::new();
    for files in commits {
        let parent = made.last().map(|id| of.find_commit(*id).unwrap());
        let base = match &parent {
            Some(parent) => parent.tree().unwrap(),
            None => of.find_tree(of.treebuilder(None).unwrap().write().unwrap()).unwrap(),
        };
        let mut update = TreeUpdateBuilder::new();
        for (path, content) in *files {
            match content {
                Some(content) => update.upsert(*path, of.blob(content).unwrap(), FileMode::Blob),
                None => update.remove(*path),
            };
        }
        let tree = of.find_tree(update.create_updated(&of, &base).unwrap()).unwrap();
        let parents: Vec<_> = parent.iter().collect();
        made.push(of.commit(None, &who, &who, "Change it\n", &tree, &parents).unwrap());
    }
    Made { folder, commits: made }
}

fn redactor() -> Redactor {
    Redactor::new(b"0123456789abcdef0123456789abcdef")
}

/// What is told of one commit's paths, with room for so many bytes.
fn told(made: &Made, commit: usize, paths: &[&str], most: usize) -> Vec<FileDiff> {
    let repository = GitRepository::open_bare(made.folder.path()).unwrap();
    let redactor = redactor();
    let mut changes = [change(made.commits[commit], paths)];
    Diffs::new(&repository, &redactor).tell(&mut changes, most);
    let [change] = changes;
    change.diffs
}

fn change(commit: Oid, paths: &[&str]) -> ShownChange {
    ShownChange {
        revision: commit.to_string(),
        author: String::new(),
        date: String::new(),
        message: String::new(),
        made_from: None,
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        more_paths: 0,
        diffs: Vec::new(),
    }
}

fn text(path: &str, text: &str) -> FileDiff {
    FileDiff { path: path.to_owned(), text: text.to_owned(), ..FileDiff::default() }
}

fn untold(path: &str, why: Untold) -> FileDiff {
    FileDiff { path: path.to_owned(), untold: Some(why), ..FileDiff::default() }
}

#[test]
fn lines_of_a_file_that_came_changed_and_went_are_told() {
    let made = made(&[
        &[("a.yaml", Some(b"replicas: 2\nimage: web:1\n"))],
        &[("a.yaml", Some(b"replicas: 3\nimage: web:1\n"))],
        &[("a.yaml", None)],
    ]);
    let came = text("a.yaml", "@@ -0,0 +1,2 @@\n+replicas: 2\n+image: web:1\n");
    assert_eq!(told(&made, 0, &["a.yaml"], TAKE), [came]);
    let changed = text("a.yaml", "@@ -1,2 +1,2 @@\n-replicas: 2\n+replicas: 3\n image: web:1\n");
    assert_eq!(told(&made, 1, &["a.yaml"], TAKE), [changed]);
    let went = text("a.yaml", "@@ -1,2 +0,0 @@\n-replicas: 3\n-image: web:1\n");
    assert_eq!(told(&made, 2, &["a.yaml"], TAKE), [went]);
    assert_eq!(told(&made, 2, &["none.yaml"], TAKE), [untold("none.yaml", Untold::Lost)]);
}

/// The line that says whose value it is stands far from the one that changed, so that the difference alone would not tell.
#[test]
fn a_secret_is_a_digest_on_both_sides_though_its_lines_alone_do_not_tell_that_it_is_one() {
    let secret = |value: &str| {
        let labels: String = (0..9).map(|n| format!("    label-{n}: x\n")).collect();
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  labels:\n{labels}stringData:\n  one: x\n  two: x\n  three: x\n  word: {value}\n"
        )
    };
    let (one, two) = (secret("first-hidden-word"), secret("second-hidden-word"));
    let made = made(&[&[("s.yaml", Some(one.as_bytes()))], &[("s.yaml", Some(two.as_bytes()))]]);
    let all = told(&made, 1, &["s.yaml"], TAKE);
    let lines: Vec<&str> = all[0].text.lines().collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    let digest = |value: &str| format!("  word: {}", redactor().digest(value.as_bytes()));
    assert_eq!(lines[4], format!("-{}", digest("first-hidden-word")));
    assert_eq!(lines[5], format!("+{}", digest("second-hidden-word")));
    assert!(!format!("{all:?}").contains("hidden-word"));
}

#[test]
fn what_cannot_be_shown_is_named_with_its_reason() {
    let large = vec![b'#'; FILE + 1];
    let before: &[Written<'_>] = &[
        ("notes.md", Some(b"the word is hidden-word\n")),
        ("image.png", Some(b"\x89PNG\0")),
        ("large.yaml", Some(&large)),
        ("broken.yaml", Some(b"a: [hidden-word\nb: }")),
    ];
    let after: &[Written<'_>] = &[
        ("notes.md", Some(b"the word is another-hidden-word\n")),
        ("image.png", None),
        ("large.yaml", Some(b"a: 1\n")),
        ("broken.yaml", Some(b"a: 1\n")),
    ];
    let made = made(&[before, after]);
    let paths = ["broken.yaml", "image.png", "large.yaml", "notes.md"];
    let all = told(&made, 1, &paths, TAKE);
    let reasons = [Untold::Unreadable, Untold::Binary, Untold::Large, Untold::Unreadable];
    let expected: Vec<FileDiff> = paths.iter().zip(reasons).map(|(path, why)| untold(path, why)).collect();
    assert_eq!(all, expected);
}

#[test]
fn what_another_file_may_make_a_secret_of_is_not_shown() {
    let before: &[Written<'_>] = &[
        ("app/kustomization.yaml", Some(b"secretGenerator:\n- name: a\n  files: [more/word.yaml]\n")),
        ("app/more/word.yaml", Some(b"greeting: hidden-word\n")),
        ("app/shown.yaml", Some(b"replicas: 1\n")),
        ("chart/Chart.yaml", Some(b"name: a\n")),
        ("chart/files/word.yaml", Some(b"greeting: hidden-word\n")),
        ("chart/templates/a.yaml", Some(b"replicas: 1\n")),
        ("chart/values.yaml", Some(b"replicas: 1\n")),
    ];
    let after: &[Written<'_>] = &[
        ("app/more/word.yaml", Some(b"greeting: other-hidden-word\n")),
        ("app/shown.yaml", Some(b"replicas: 2\n")),
        ("chart/files/word.yaml", Some(b"greeting: other-hidden-word\n")),
        ("chart/templates/a.yaml", Some(b"replicas: 2\n")),
        ("chart/values.yaml", Some(b"replicas: 2\n")),
    ];
    let made = made(&[before, after]);
    let paths: Vec<&str> = after.iter().map(|(path, _)| *path).collect();
    let all = told(&made, 1, &paths, TAKE);
    let reasons: Vec<Option<Untold>> = all.iter().map(|one| one.untold).collect();
    let hidden = Some(Untold::Unreadable);
    assert_eq!(reasons, [hidden, None, hidden, None, None]);
    assert!(!format!("{all:?}").contains("hidden-word"));
}

#[test]
fn a_kustomization_is_read_once_for_all_files_of_a_commit() {
    let kustomization = b"secretGenerator:\n- name: a\n  files: [word.yaml]\n";
    let made = made(&[&[
        ("app/kustomization.yaml", Some(kustomization)),
        ("app/word.yaml", Some(b"greeting: hidden-word\n")),
        ("app/shown.yaml", Some(b"replicas: 1\n")),
        ("other/word.yaml", Some(b"replicas: 1\n")),
    ]]);
    let repository = GitRepository::open_bare(made.folder.path()).unwrap();
    let beside = repository.beside_parent(made.commits[0]).unwrap();
    let paths = ["app/word.yaml", "app/shown.yaml", "other/word.yaml"];
    let mut others = Others::new(&beside, paths.into_iter());
    assert!(others.may_read(paths[0], FILE).unwrap());
    // It is not there any more, and nobody looks for it.
    let id = Oid::hash_object(git2::ObjectType::Blob, kustomization).unwrap().to_string();
    let (folder, file) = id.split_at(2);
    std::fs::remove_file(made.folder.path().join("objects").join(folder).join(file)).unwrap();
    assert_eq!(paths.map(|path| others.may_read(path, FILE).unwrap()), [true, false, false]);
    let mut late = Others::new(&beside, paths.into_iter());
    late.may_read(paths[1], FILE).unwrap_err();
}

#[test]
fn what_became_a_secret_is_not_shown_as_it_was() {
    let of = |kind: &str, data: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n{data}:\n  note: hidden-word\n")
    };
    let (plain, secret) = (of("ConfigMap", "data"), of("Secret", "stringData"));
    let made = made(&[&[("a.yaml", Some(plain.as_bytes()))], &[("a.yaml", Some(secret.as_bytes()))]]);
    assert_eq!(told(&made, 1, &["a.yaml"], TAKE), [untold("a.yaml", Untold::Unreadable)]);
}

#[test]
fn a_path_that_holds_a_secret_is_told_without_it() {
    let path = "https:/ada:hidden-word@git.example.com/a.yaml";
    let path = path.replace(":/", "://");
    // No tree has such a name; a hostile server's may.
    let made = made(&[&[("a.yaml", Some(b"a: 1\n"))]]);
    let all = told(&made, 0, &[&path], TAKE);
    assert_eq!(all[0].untold, Some(Untold::Lost));
    assert!(!all[0].path.contains("hidden-word"), "{}", all[0].path);
}

#[test]
fn bytes_and_files_are_bounded_the_newest_first_and_what_is_cut_is_said() {
    let long: String = (0..2_000).map(|n| format!("key-{n}: {n}\n")).collect();
    let names: Vec<String> = (0..FILES + 2).map(|n| format!("{n:03}.yaml")).collect();
    let mut files: Vec<Written<'_>> = names.iter().map(|name| (&**name, Some(&b"a: 1\n"[..]))).collect();
    files.push(("long.yaml", Some(long.as_bytes())));
    let made = made(&[&files]);
    let paths: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(told(&made, 0, &paths, TAKE).len(), FILES);
    let one = told(&made, 0, &["long.yaml"], TAKE).remove(0);
    assert!(one.cut && one.text.len() <= DIFF && one.text.len() > DIFF - 100, "{}", one.text.len());
    // Room for two and a half.
    let each = told(&made, 0, &paths[..1], TAKE)[0].text.len();
    let few = told(&made, 0, &paths, (paths[0].len() + ENTRY) * 3 + each * 5 / 2);
    let told_of: Vec<(usize, bool)> = few.iter().map(|one| (one.text.len(), one.cut)).collect();
    assert_eq!(told_of[..2], [(each, false), (each, false)]);
    assert!(few.len() == 3 && few[2].cut, "{few:?}");
    assert_eq!(told(&made, 0, &paths, 0), [], "nothing where nothing is to be told");
}
