//! `gitops-runtime git`: what it prints of a repository, its exit codes, and what it refuses.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use git2::{Oid, Repository, Signature, Time};
use tempfile::TempDir;

/// A repository whose branch `pr` leaves `main` after the first commit; each did something since.
struct Monorepo {
    directory: TempDir,
}

const APPLICATIONS: &str = "\
apiVersion: v1
kind: List
items:
- {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {namespace: argocd, name: web}, spec: {source: {repoURL: 'https://git.example.com/mono.git', path: apps/web}}}
- {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {namespace: argocd, name: api}, spec: {source: {repoURL: 'git@git.example.com:mono', path: apps/api, targetRevision: main}}}
- {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {namespace: argocd, name: old}, spec: {source: {repoURL: 'https://git.example.com/mono', path: apps/web, targetRevision: release-1}}}
- {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {namespace: argocd, name: elsewhere}, spec: {source: {repoURL: 'https://git.example.com/other', path: apps/web}}}
";

impl Monorepo {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        repository.remote("origin", "https://git.example.com/mono.git").unwrap();
        let first =
            commit(&repository, "main", &[("apps/web/a.yaml", "1"), ("apps/api/a.yaml", "1")], &[], "First");
        let files = [("apps/web/a.yaml", "2"), ("apps/api/a.yaml", "1")];
        let one = commit(&repository, "pr", &files, &[first], "Web | <b>2</b> @team");
        let files = [("apps/web/a.yaml", "2"), ("apps/api/a.yaml", "9")];
        let two = commit(&repository, "pr", &files, &[one], "Api, tried");
        let files = [("apps/web/a.yaml", "2"), ("apps/api/a.yaml", "1")];
        commit(&repository, "pr", &files, &[two], "Api, undone");
        let files = [("apps/web/a.yaml", "1"), ("apps/api/a.yaml", "7")];
        commit(&repository, "main", &files, &[first], "Main goes on");
        Self { directory }
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        run(self.directory.path(), arguments, input)
    }

    fn id(&self, revision: &str) -> String {
        let repository = Repository::open(self.directory.path()).unwrap();
        repository.revparse_single(revision).unwrap().id().to_string()
    }
}

fn commit(
    repository: &Repository,
    branch: &str,
    files: &[(&str, &str)],
    parents: &[Oid],
    message: &str,
) -> Oid {
    let mut tree = git2::build::TreeUpdateBuilder::new();
    for (path, content) in files {
        tree.upsert(*path, repository.blob(content.as_bytes()).unwrap(), git2::FileMode::Blob);
    }
    let empty = repository.find_tree(repository.treebuilder(None).unwrap().write().unwrap()).unwrap();
    let tree = repository.find_tree(tree.create_updated(repository, &empty).unwrap()).unwrap();
    let parents: Vec<_> = parents.iter().map(|id| repository.find_commit(*id).unwrap()).collect();
    let time = Time::new(1_700_000_000 + i64::try_from(parents.len()).unwrap(), 0);
    let who = Signature::new("Ada", "ada@example.com", &time).unwrap();
    let made =
        repository.commit(None, &who, &who, message, &tree, &parents.iter().collect::<Vec<_>>()).unwrap();
    repository.reference(&format!("refs/heads/{branch}"), made, true, "test").unwrap();
    made
}

fn run(directory: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gitops-runtime"))
        .arg("git")
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        // What lies above a test's directory is not the test's.
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may be done before it has read all.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

fn printed(output: &Output) -> (Option<i32>, String) {
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap())
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_pull_request_changes_what_differs_in_the_end_and_the_exit_code_says_so() {
    let mono = Monorepo::new();
    let all = ["changed", "--base", "main", "--head", "pr", "-f", "-"];
    let with = |more: &[&str]| printed(&mono.run(&[&all, more].concat(), APPLICATIONS));
    let (first, api) = (mono.id("pr~2"), mono.id("pr~1"));
    let (code, table) = with(&["--into", "main"]);
    assert_eq!(code, Some(0));
    let web = first.get(..8).unwrap();
    assert_eq!(
        table,
        format!(
            " APPLICATION  PATHS            COMMITS   AUTHORS\n argocd/web   apps/web/a.yaml  {web}  Ada\n\
             1 of 2 applications is changed; 2 have nothing here\n"
        )
    );
    assert_eq!(with(&["--exit-code"]).0, Some(3));
    let (_, markdown) = with(&["--into", "main", "-o", "markdown"]);
    assert_eq!(
        markdown,
        format!(
            "**1 of 2 applications is changed**; 2 have nothing here\n\n| Application | Paths | Commits | Authors |\n\
             | --- | --- | --- | --- |\n| argocd/web | `apps/web/a.yaml` | {web} | Ada |\n"
        )
    );
    let (_, json) = with(&["-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["mergeBase"], mono.id("main~1"));
    let changed = json["changed"].as_array().unwrap();
    let names: Vec<&str> = changed.iter().map(|change| change["application"].as_str().unwrap()).collect();
    assert_eq!(names, ["argocd/old", "argocd/web"]);
    assert_eq!(changed[1]["commits"][0]["revision"], first.as_str());
    assert!(!json.to_string().contains(&api), "what is undone changed nothing");
    let (_, yaml) = with(&["-o", "yaml"]);
    assert!(yaml.contains("changed:\n- application: argocd/old\n"), "{yaml}");
    let same =
        mono.run(&["changed", "--base", "pr", "--head", "main~1", "-f", "-", "--exit-code"], APPLICATIONS);
    assert_eq!(
        printed(&same),
        (Some(0), "none of 3 applications is changed; 1 has nothing here\n".to_owned())
    );
}

#[test]
fn an_application_whose_manifests_argo_cd_writes_lives_where_they_are_made_from() {
    let mono = Monorepo::new();
    let hydrated = |name: &str, path: &str| {
        format!(
            "- {{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {{name: {name}}}, spec: {{sourceHydrator: {{drySource: {{repoURL: 'https://git.example.com/mono', path: {path}, targetRevision: refs/heads/main}}, syncSource: {{targetBranch: environments/dev, path: {name}}}}}}}}}\n"
        )
    };
    let input = format!(
        "apiVersion: v1\nkind: List\nitems:\n{}{}",
        hydrated("web", "apps/web"),
        hydrated("api", "apps/api")
    );
    let into = |branch: &str| {
        let all = ["changed", "--base", "main", "--head", "pr", "-f", "-", "--into", branch];
        mono.run(&all, &input)
    };
    let (_, table) = printed(&into("main"));
    assert!(table.ends_with("1 of 2 applications is changed\n") && table.contains(" web "), "{table}");
    let refusal = "gitops-runtime: none of the applications has a source in git.example.com/mono; --url says how they call this repository\n";
    assert_eq!(refused(&into("environments/dev")), refusal);
    let commits = ["commits", "--revision", "pr", "--since", "main", "-f", "-", "-o", "json"];
    let (_, json) = printed(&mono.run(&commits, &input));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["applications"][0]["commits"][0]["paths"], serde_json::json!(["apps/web/a.yaml"]));
}

#[test]
fn commits_are_listed_of_paths_and_of_applications() {
    let mono = Monorepo::new();
    let (_, table) =
        printed(&mono.run(&["commits", "--revision", "pr", "--since", "main", "--path", "apps/api"], ""));
    let lines: Vec<&str> = table.lines().map(str::trim_end).collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[1].ends_with("Ada <ada@example.com>  Api, undone  apps/api/a.yaml"), "{table}");
    let all = ["commits", "--revision", "pr", "--since", "pr", "-f", "-", "-o", "json"];
    let (_, json) = printed(&mono.run(&all, APPLICATIONS));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let applications = json["applications"].as_array().unwrap();
    assert_eq!(applications.len(), 3);
    assert_eq!(applications[0]["noneIsNew"], true);
    assert_eq!(applications[0]["commits"][0]["revision"], mono.id("pr~2").as_str());
    assert_eq!(applications[0]["commits"][0]["author"], "Ada <ada@example.com>");
    let markdown = ["commits", "--revision", "pr", "--path", "apps/web", "-o", "markdown", "--limit", "1"];
    let (_, markdown) = printed(&mono.run(&markdown, ""));
    assert!(markdown.contains(r"| Web \| &lt;b&gt;2&lt;/b&gt; &#64;team | apps/web/a.yaml |"), "{markdown}");
    assert!(markdown.ends_with("\napps/web: there are more; --limit shows them\n"), "{markdown}");
}

#[test]
fn manifests_are_listed_with_their_lines() {
    let directory = tempfile::tempdir().unwrap();
    let repository = Repository::init_bare(directory.path()).unwrap();
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    commit(&repository, "main", &[("a/all.yaml", text)], &[], "First");
    let (_, table) = printed(&run(directory.path(), &["manifests", "--revision", "main", "--path", "a"], ""));
    assert_eq!(
        table,
        " KIND             NAMESPACE  NAME  FILE\n Deployment.apps             web   a/all.yaml:1-3\n \
         Service                     web   a/all.yaml:5-7\n"
    );
    let refusal = refused(&run(directory.path(), &["manifests", "--revision", "main", "--path", "b"], ""));
    assert_eq!(
        refusal,
        "gitops-runtime: nothing is at \"b\" in main: neither a manifest nor a directory that holds one\n"
    );
}

#[test]
fn what_cannot_be_told_is_refused_with_what_to_do() {
    let mono = Monorepo::new();
    let changed = |more: &[&str], input: &str| {
        refused(&mono.run(&[&["changed", "--base", "main", "--head", "pr"], more].concat(), input))
    };
    assert_eq!(
        changed(&[], ""),
        "gitops-runtime: -f names no file of applications; kubectl get applications -A -o yaml makes one\n"
    );
    assert_eq!(
        changed(&["-f", "-"], "kind: x\n"),
        "gitops-runtime: standard input holds no Argo CD Application\n"
    );
    assert_eq!(
        changed(&["-f", "-", "--url", "https://git.example.com/third"], APPLICATIONS),
        "gitops-runtime: none of the applications has a source in git.example.com/third; --url says how they call this repository\n"
    );
    assert_eq!(
        refused(&mono.run(&["commits", "--revision", "none", "--path", "a"], "")),
        "gitops-runtime: no commit is named none: neither a branch, a tag nor an object of the repository is\n"
    );
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(
        refused(&run(empty.path(), &["commits", "--path", "a"], "")),
        "gitops-runtime: no Git repository is at ., nor in a directory above it: run this in a clone, or name one with \
         --repo, or a repository elsewhere, such as --repo https://git.example.com/team/mono.git\n"
    );
    let repository = Repository::init_bare(empty.path()).unwrap();
    commit(&repository, "main", &[("a", "1")], &[], "One");
    commit(&repository, "other", &[("a", "2")], &[], "Another root");
    let both = ["changed", "--base", "main", "--head", "other", "-f", "-"];
    let refusal = refused(&run(empty.path(), &both, APPLICATIONS));
    assert!(refusal.starts_with("gitops-runtime: a clone without its whole history does not show what a pull request changes: fetch it with --unshallow: "), "{refusal}");
    let refusal = refused(&run(empty.path(), &["commits", "--revision", "main", "-f", "-"], APPLICATIONS));
    assert_eq!(
        refusal,
        "gitops-runtime: the repository has no remote origin: --url says how applications call it\n"
    );
}

#[test]
fn a_repository_elsewhere_is_fetched_into_a_cache() {
    let mono = Monorepo::new();
    let cache = tempfile::tempdir().unwrap();
    let at = cache.path().join("clones");
    let url = format!("file://{}", mono.directory.path().display());
    let asked = |more: &[&str]| {
        let place = ["--repo", &url, "--cache", at.to_str().unwrap()];
        run(cache.path(), &[more, &place].concat(), "")
    };
    let (code, text) = printed(&asked(&["commits", "--revision", "pr", "--path", "apps/web"]));
    assert_eq!(code, Some(0));
    assert!(text.contains("apps/web/a.yaml") && text.contains("First"), "{text}");
    let refusal = refused(&asked(&["commits", "--revision", "none", "--path", "apps/web"]));
    assert_eq!(refusal, format!("gitops-runtime: {url} has no branch, tag or commit none\n"));
    let refusal = refused(&run(
        cache.path(),
        &["commits", "--repo", "https://me:hidden@git.example.com/a", "--path", "a"],
        "",
    ));
    assert_eq!(
        refusal,
        "gitops-runtime: the address of the repository is refused: it holds a password: give it in a Secret, a file or the environment\n"
    );
}

#[test]
fn a_repository_over_ssh_is_asked_with_a_key_and_known_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("clones");
    let url = "ssh://git@127.0.0.1:1/a.git";
    let asked = |more: &[&str]| {
        let place = ["commits", "--path", "a", "--repo", url, "--cache", at.to_str().unwrap()];
        refused(&run(folder.path(), &[&place, more].concat(), ""))
    };
    assert_eq!(
        asked(&[]),
        format!("gitops-runtime: {url} wants credentials: give a private key with --ssh-key-file\n")
    );
    assert_eq!(
        asked(&["--known-hosts-file", "none"]),
        "gitops-runtime: read none: No such file or directory (os error 2)\n"
    );
    std::fs::write(folder.path().join("key"), "nonsense").unwrap();
    assert_eq!(
        asked(&["--ssh-key-file", "key"]),
        "gitops-runtime: the credentials of key cannot be used: its SSH key is none: give a private key, which begins with a line such as -----BEGIN OPENSSH PRIVATE KEY-----\n"
    );
}
