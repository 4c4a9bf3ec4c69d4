//! Commits of people, pushed to a real server that knows them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use futures::future::join_all;
use stages_git::remote::{CommitError, Committed, Credential};
use stages_git::{Content, NewCommit, NewFile};
use tokio::sync::Notify;

use crate::support::{Cache, Forge, Person, Serving, address, backend, commit, git, serve, status};

/// A server with people: `ada` and twenty more may write, `lin` may read.
pub(crate) fn serving(forge: &Forge) -> Serving {
    let named = |name: String, may_write| (basic(&name), Person { name, may_write });
    let mut people: Vec<_> = (0..20).map(|number| named(format!("person{number}"), true)).collect();
    people.extend([named("ada".to_owned(), true), named("lin".to_owned(), false)]);
    Serving { people: Arc::new(people.into_iter().collect()), ..Serving::new(forge) }
}

fn basic(name: &str) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{name}:canary-of-{name}"));
    format!("Basic {text}")
}

pub(crate) fn who(name: &str) -> Credential {
    Credential {
        from: format!("{name}'s token"),
        username: Some(name.to_owned()),
        password: Some(format!("canary-of-{name}").into()),
        ..Credential::default()
    }
}

pub(crate) fn written(path: &str, text: &str) -> NewFile {
    NewFile { path: path.to_owned(), content: Content::Written(text.into()), revision: None }
}

pub(crate) fn deleted(path: &str) -> NewFile {
    NewFile { path: path.to_owned(), content: Content::Deleted, revision: None }
}

pub(crate) fn change(files: Vec<NewFile>) -> NewCommit {
    NewCommit {
        branch: "main".to_owned(),
        base: None,
        files,
        message: "Change it\n".to_owned(),
        name: "Ada L.".to_owned(),
        email: "ada@example.com".to_owned(),
        seconds: 1_750_000_000,
        force: false,
        allow_empty: false,
    }
}

/// A repository, its server's address, and a cache.
pub(crate) struct Scene {
    pub(crate) repository: PathBuf,
    pub(crate) url: String,
    cache: Cache,
    forge: Forge,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let forge = Forge::new();
        let repository = forge.repository("team/mono");
        Self::of(forge, repository).await
    }

    /// Of a repository without any commit.
    pub(crate) async fn empty() -> Self {
        let forge = Forge::new();
        let repository = forge.folder.path().join("team/mono.git");
        git(forge.folder.path(), &["init", "-q", "--bare", "-b", "main", repository.to_str().unwrap()]);
        Self::of(forge, repository).await
    }

    async fn of(forge: Forge, repository: PathBuf) -> Self {
        let url = format!("{}/team/mono.git", serving(&forge).http().await);
        Self { repository, url, cache: Cache::new(|_| {}).await, forge }
    }

    /// For another server of the same.
    pub(crate) fn serving(&self) -> Serving {
        serving(&self.forge)
    }

    pub(crate) async fn commit(&self, name: &str, new: NewCommit) -> Result<Committed, CommitError> {
        self.cache.checkouts.commit_as(&address(&self.url), &who(name), new).await
    }

    async fn refused(&self, name: &str, new: NewCommit) -> String {
        let before = git(&self.repository, &["rev-parse", "main"]);
        let error = self.commit(name, new).await.unwrap_err().to_string();
        assert_eq!(git(&self.repository, &["rev-parse", "main"]), before, "{error}");
        error
    }

    fn show(&self, path: &str) -> String {
        git(&self.repository, &["show", &format!("main:{path}")])
    }
}

pub(crate) fn count(repository: &Path) -> usize {
    git(repository, &["rev-list", "--count", "main"]).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_arrives_whole_and_as_whoever_made_it() {
    let scene = Scene::new().await;
    commit(&scene.repository, "main", "run.sh", "true\n");
    let old = git(&scene.repository, &["rev-parse", "main"]);
    let files = vec![
        written("a.yaml", "a: 2\n"),
        written("deep/down/b.yaml", "b: 1\n"),
        deleted("run.sh"),
        written("empty", ""),
    ];
    let done = scene.commit("ada", change(files)).await.unwrap();
    assert_eq!(done.rebased, 0);
    assert_eq!(git(&scene.repository, &["rev-parse", "main"]), done.id.to_string());
    assert_eq!(git(&scene.repository, &["rev-parse", "main~1"]), old);
    let said = git(&scene.repository, &["log", "-1", "--format=%an|%ae|%cn|%at|%s", "main"]);
    assert_eq!(said, "Ada L.|ada@example.com|Ada L.|1750000000|Change it");
    let all = git(&scene.repository, &["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(all, "a.yaml\ndeep/down/b.yaml\nempty");
    assert_eq!(scene.show("a.yaml"), "a: 2");
    git(&scene.repository, &["fsck", "--strict", "--full"]);
    // The last file of a directory takes the directory with it.
    scene.commit("ada", change(vec![deleted("deep/down/b.yaml")])).await.unwrap();
    assert_eq!(git(&scene.repository, &["ls-tree", "-r", "-t", "--name-only", "main"]), "a.yaml\nempty");
    // Nothing of a credential is kept beside what was fetched.
    let mut grep = std::process::Command::new("grep");
    let found = grep.args(["-r", "canary"]).arg(scene.cache.folder.path()).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_of_a_file_stays_and_a_link_is_not_written_through() {
    let scene = Scene::new().await;
    let work = tempfile::tempdir().unwrap();
    git(work.path(), &["clone", "-q", scene.repository.to_str().unwrap(), "."]);
    std::fs::write(work.path().join("run.sh"), "true\n").unwrap();
    std::os::unix::fs::symlink("a.yaml", work.path().join("link")).unwrap();
    git(work.path(), &["add", "."]);
    git(work.path(), &["update-index", "--chmod=+x", "run.sh"]);
    git(work.path(), &["commit", "-q", "-m", "More"]);
    git(work.path(), &["push", "-q", "origin", "main"]);
    scene.commit("ada", change(vec![written("run.sh", "false\n")])).await.unwrap();
    assert!(git(&scene.repository, &["ls-tree", "main", "run.sh"]).starts_with("100755 "));
    for (path, why) in [
        ("link", "it is a symbolic link, or behind one"),
        ("link/x", "it is a symbolic link, or behind one"),
        ("a.yaml/x", "a file stands where it wants a directory"),
        ("", "a path has between one and 1,024 bytes"),
        ("/etc/passwd", "it is not relative to the root of the repository"),
        ("a/../../b", "it is not relative to the root of the repository"),
        ("a\\b", "it holds a backslash or a control character"),
        ("x/.GIT/config", "it is a part of Git's own"),
        ("x/.git. /config", "it is a part of Git's own"),
        ("GIT~1/config", "it is a part of Git's own"),
    ] {
        let said = scene.refused("ada", change(vec![written(path, "x")])).await;
        assert_eq!(said, format!("{path} cannot be written: {why}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_committed_is_refused_and_says_why() {
    let scene = Scene::new().await;
    let url = &scene.url;
    let same = || vec![written("a.yaml", "a: 1\n")];
    let nothing = "the files are so already: there is nothing to commit";
    assert_eq!(scene.refused("ada", change(same())).await, nothing);
    assert_eq!(
        scene.refused("ada", change(vec![deleted("b.yaml")])).await,
        "b.yaml is not there to be deleted"
    );
    let none = "a commit changes between one and 1000 files";
    assert_eq!(scene.refused("ada", change(Vec::new())).await, none);
    let twice = vec![written("b", "1"), written("b", "2")];
    assert_eq!(scene.refused("ada", change(twice)).await, "b cannot be written: it is named twice");
    let other = NewCommit { branch: "other".to_owned(), ..change(vec![written("b", "1")]) };
    assert_eq!(
        scene.refused("ada", other).await,
        format!("{url} has no branch, tag or commit refs/heads/other")
    );
    assert_eq!(
        scene.refused("lin", change(vec![written("b", "1")])).await,
        format!(
            "{url} takes no commits with the credentials of lin's token: they are wrong, expired, or may only read it"
        )
    );
    let strange = "the credentials of eve's token: they are wrong, expired, or may not read it";
    assert_eq!(
        scene.refused("eve", change(vec![written("b", "1")])).await,
        format!("{url} refused {strange}")
    );
    // What somebody else has fetched is here, and is not for those who may not fetch it.
    let found = scene.cache.checkouts.checkout_as(&address(url), "main", &who("eve")).await;
    assert_eq!(found.unwrap_err().to_string(), format!("{url} refused {strange}"));
    let empty = NewCommit { allow_empty: true, ..change(same()) };
    scene.commit("ada", empty).await.unwrap();
    assert_eq!(count(&scene.repository), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_move_a_branch_is_told_in_its_words() {
    let scene = Scene::new().await;
    let hook = scene.repository.join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho 'main is protected: open a request' >&2\nexit 1\n").unwrap();
    let mut mode = std::fs::metadata(&hook).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&hook, mode).unwrap();
    let host = address(&scene.url).host();
    assert_eq!(
        scene.refused("ada", change(vec![written("b", "1")])).await,
        format!(
            "{host} does not take the commit: pre-receive hook declined (main is protected: open a request)"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_changed_is_merged_or_a_conflict_and_never_written_over() {
    let scene = Scene::new().await;
    let lines = |first: &str, last: &str| format!("first: {first}\n1\n2\n3\n4\nlast: {last}\n");
    let old = commit(&scene.repository, "main", "b.yaml", &lines("a", "a"));
    commit(&scene.repository, "main", "b.yaml", &lines("b", "a"));
    let of_old = |text: String| NewFile { revision: Some(old.clone()), ..written("b.yaml", &text) };
    scene.commit("ada", change(vec![of_old(lines("a", "c"))])).await.unwrap();
    assert_eq!(format!("{}\n", scene.show("b.yaml")), lines("b", "c"));
    let conflict = "others have changed b.yaml meanwhile, and both changes do not go together: read it again";
    assert_eq!(scene.refused("ada", change(vec![of_old(lines("d", "a"))])).await, conflict);
    let gone = NewFile { revision: Some(old.clone()), ..deleted("b.yaml") };
    assert_eq!(scene.refused("ada", change(vec![gone])).await, conflict);
    let forced = NewCommit { force: true, ..change(vec![of_old(lines("d", "a"))]) };
    scene.commit("ada", forced).await.unwrap();
    assert_eq!(format!("{}\n", scene.show("b.yaml")), lines("d", "a"));
    // What others made meanwhile is theirs.
    let made = NewFile { revision: Some(old.clone()), ..written("new", "mine") };
    commit(&scene.repository, "main", "new", "theirs");
    let conflict = conflict.replace("b.yaml", "new");
    assert_eq!(scene.refused("ada", change(vec![made])).await, conflict);
}

/// Twenty people commit at once, five in each of four processes' caches.
async fn twenty(scene: &Scene, new: impl Fn(usize) -> NewCommit) -> Vec<Result<Committed, CommitError>> {
    let mut caches = Vec::new();
    for _ in 0..4 {
        caches.push(Cache::new(|_| {}).await);
    }
    let url = address(&scene.url);
    let all = (0..20).map(|number| {
        let (cache, url, new) = (&caches[number % 4], &url, new(number));
        async move { cache.checkouts.commit_as(url, &who(&format!("person{number}")), new).await }
    });
    join_all(all).await
}

fn lines(own: impl Fn(usize) -> String) -> String {
    (0..20).map(|number| format!("person{number}: {}\n#\n#\n#\n", own(number))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_who_change_one_file_at_once_each_has_a_commit_and_none_is_lost() {
    let scene = Scene::new().await;
    let old = commit(&scene.repository, "main", "all.yaml", &lines(|_| "0".to_owned()));
    let before = count(&scene.repository);
    let done = twenty(&scene, |number| {
        let own = lines(|of| if of == number { "1".to_owned() } else { "0".to_owned() });
        let file = NewFile { revision: Some(old.clone()), ..written("all.yaml", &own) };
        NewCommit { message: format!("Of {number}\n"), ..change(vec![file]) }
    })
    .await;
    for done in &done {
        assert!(done.is_ok(), "{done:?}");
    }
    assert_eq!(count(&scene.repository), before + 20);
    assert_eq!(format!("{}\n", scene.show("all.yaml")), lines(|_| "1".to_owned()));
    let said = git(&scene.repository, &["log", "-20", "--format=%s", "main"]);
    for number in 0..20 {
        assert_eq!(said.lines().filter(|line| *line == format!("Of {number}")).count(), 1);
    }
    git(&scene.repository, &["fsck", "--strict", "--full"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_who_change_one_line_at_once_one_has_a_commit_and_the_others_are_told() {
    let scene = Scene::new().await;
    let old = git(&scene.repository, &["rev-parse", "main"]);
    let done = twenty(&scene, |number| {
        let text = format!("a: {}\n", number + 2);
        change(vec![NewFile { revision: Some(old.clone()), ..written("a.yaml", &text) }])
    })
    .await;
    let (done, refused): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), count(&scene.repository)), (1, 2));
    for refused in refused {
        assert_eq!(
            refused.unwrap_err().to_string(),
            "others have changed a.yaml meanwhile, and both changes do not go together: read it again"
        );
    }
}

/// What is done with a push.
#[derive(Clone)]
pub(crate) struct Meddling {
    pub(crate) serving: Serving,
    /// Pushes that are answered with an error.
    pub(crate) broken: Arc<AtomicUsize>,
    /// Whether the repository's server sees those.
    pub(crate) passes: bool,
}

pub(crate) async fn meddle(State(meddling): State<Meddling>, request: Request) -> Response {
    let is_push = request.uri().path().ends_with("/git-receive-pack");
    let breaks = is_push
        && meddling
            .broken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
    if breaks && !meddling.passes {
        return status(StatusCode::BAD_GATEWAY);
    }
    let answer = backend(State(meddling.serving), request).await;
    if breaks { status(StatusCode::BAD_GATEWAY) } else { answer }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_breaks_off_is_one_commit_whether_or_not_it_arrived() {
    for passes in [false, true] {
        let forge = Forge::new();
        let repository = forge.repository("a");
        let broken = Arc::new(AtomicUsize::new(2));
        let meddling = Meddling { serving: serving(&forge), broken: broken.clone(), passes };
        let server = serve(axum::Router::new().fallback(meddle).with_state(meddling)).await;
        let cache = Cache::new(|_| {}).await;
        let url = address(&format!("{server}/a.git"));
        let new = change(vec![written("b", "1")]);
        let done = cache.checkouts.commit_as(&url, &who("ada"), new).await.unwrap();
        assert_eq!(git(&repository, &["rev-parse", "main"]), done.id.to_string());
        assert_eq!(count(&repository), 2, "passes: {passes}");
        assert_eq!(broken.load(Ordering::SeqCst), usize::from(passes));
    }
}

/// A server that stops at one request, before or after it did what was asked.
#[derive(Clone)]
struct Stopping {
    serving: Serving,
    left: Arc<AtomicUsize>,
    first: bool,
    reached: Arc<Notify>,
}

async fn stop(State(stopping): State<Stopping>, request: Request) -> Response {
    let last = stopping
        .left
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        .is_ok_and(|left| left == 1);
    if last && !stopping.first {
        let _ = backend(State(stopping.serving.clone()), request).await;
    } else if !last {
        return backend(State(stopping.serving), request).await;
    }
    stopping.reached.notify_one();
    std::future::pending().await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_stopped_at_any_moment_of_fifty_leaves_a_whole_commit_or_none() {
    let forge = Forge::new();
    let repository = forge.repository("a");
    let cache = Cache::new(|_| {}).await;
    let serving = serving(&forge);
    let mut arrived = 0;
    for number in 0..50 {
        let before = count(&repository);
        let reached = Arc::new(Notify::new());
        let left = Arc::new(AtomicUsize::new(1 + number / 2 % 8));
        let (first, serving) = (number % 2 == 0, serving.clone());
        let stopping = Stopping { serving, left, first, reached: reached.clone() };
        let server = serve(axum::Router::new().fallback(stop).with_state(stopping)).await;
        let url = address(&format!("{server}/a.git"));
        let (new, ada) = (change(vec![written("b", &format!("{number}\n"))]), who("ada"));
        tokio::select! {
            done = cache.checkouts.commit_as(&url, &ada, new) => drop(done.unwrap()),
            () = reached.notified() => {}
        }
        let after = count(&repository);
        match after - before {
            0 => {}
            1 => {
                assert_eq!(git(&repository, &["show", "main:b"]), number.to_string());
                arrived += 1;
            }
            more => panic!("{more} commits of one"),
        }
    }
    assert!((1..50).contains(&arrived), "{arrived} of 50 arrived");
    git(&repository, &["fsck", "--strict", "--full"]);
    let url = address(&format!("{}/a.git", serving.http().await));
    let new = change(vec![written("b", "the last\n")]);
    cache.checkouts.commit_as(&url, &who("ada"), new).await.unwrap();
    assert_eq!(git(&repository, &["show", "main:b"]), "the last");
}
