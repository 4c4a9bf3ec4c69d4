//! Over HTTP and HTTPS.

use std::collections::BTreeMap;

use axum::Router;
use axum::http::StatusCode;
use axum::response::Redirect;
use base64::Engine as _;
use stages_git::remote::{Access, Credential, Credentials};

use crate::support::{Authority, Cache, Forge, Serving, commit, git, serve, status, text};

/// What a Secret of Argo CD holds.
fn of_secret(kind: &str, url: &str, data: &[(&str, &str)]) -> Credential {
    let url = ("url", url);
    let data = data.iter().chain([&url]);
    let data = data.map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    Credential::of_argo_cd("argocd/repo", kind, &data).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_a_tag_and_a_commit_are_fetched_in_both_versions_of_the_protocol() {
    for first_version in [false, true] {
        let forge = Forge::new();
        let path = forge.repository("team/mono");
        let old = git(&path, &["rev-parse", "main"]);
        git(&path, &["-c", "user.name=A", "-c", "user.email=a@b", "tag", "-a", "-m", "One", "v1", "main"]);
        let serving = Serving { first_version, ..Serving::new(&forge) };
        let url = format!("{}/team/mono.git", serving.http().await);
        let cache = Cache::new(|_| {}).await;
        let at = cache.checkout(&url, "main").await.unwrap();
        assert_eq!(at.commit.to_string(), old);
        assert_eq!(text(&at, "a.yaml").await.as_deref(), Some("a: 1\n"));
        let new = commit(&path, "main", "a.yaml", "a: 2\n");
        let side = commit(&path, "feature/x", "b.yaml", "b: 1\n");
        for (revision, wanted) in [
            ("HEAD", &new),
            ("", &new),
            ("main", &new),
            ("refs/heads/main", &new),
            ("feature/x", &side),
            ("v1", &old),
            ("refs/tags/v1", &old),
            (old.as_str(), &old),
            (side.as_str(), &side),
            (side.get(..10).unwrap(), &side),
        ] {
            let found = cache.checkout(&url, revision).await.unwrap();
            assert_eq!(found.commit.to_string(), *wanted, "{revision}");
        }
        let tags = at.read(|repository, commit| repository.tagged(commit).unwrap().tags).await.unwrap();
        assert_eq!(tags, ["v1"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_tags_object_means_the_commit_that_the_tag_names() {
    // Argo CD from 2.11 on is synced to one where an application follows an annotated tag.
    for first_version in [false, true] {
        let forge = Forge::new();
        let path = forge.repository("a");
        let tagged = git(&path, &["rev-parse", "main"]);
        git(&path, &["tag", "-a", "-m", "One", "v1", "main"]);
        git(&path, &["tag", "-a", "-m", "One again", "again", "v1"]);
        commit(&path, "main", "a.yaml", "a: 2\n");
        let serving = Serving { first_version, ..Serving::new(&forge) };
        let url = format!("{}/a.git", serving.http().await);
        let cache = Cache::new(|_| {}).await;
        for tag in ["again", "v1"] {
            let id = git(&path, &["rev-parse", tag]);
            assert_ne!(id, tagged);
            let at = cache.checkout(&url, &id).await.unwrap();
            assert_eq!(
                (at.commit.to_string(), text(&at, "a.yaml").await),
                (tagged.clone(), Some("a: 1\n".to_owned()))
            );
            // It is here now, so that nobody is asked.
            let before = serving.requests();
            assert_eq!(cache.checkout(&url, &id).await.unwrap().commit.to_string(), tagged);
            assert_eq!(serving.requests(), before);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_that_were_moved_or_deleted_name_nothing_that_they_named_before() {
    for way in ["the second version", "the first version", "this machine"] {
        let forge = Forge::new();
        let path = forge.repository("a");
        let old = git(&path, &["rev-parse", "main"]);
        for tag in ["gone", "moved", "stays"] {
            git(&path, &["tag", tag, "main"]);
            git(&path, &["tag", "-a", "-m", "One", &format!("{tag}-annotated"), "main"]);
        }
        let serving = Serving { first_version: way == "the first version", ..Serving::new(&forge) };
        let url = match way {
            "this machine" => format!("file://{}", path.display()),
            _ => format!("{}/a.git", serving.http().await),
        };
        let cache = Cache::new(|config| config.files = true).await;
        let at = cache.checkout(&url, "main").await.unwrap();
        assert_eq!(at.commit.to_string(), old);
        let tags = || at.read(|repository, commit| repository.tagged(commit).unwrap().tags);
        assert_eq!(tags().await.unwrap().len(), 6, "{way}");
        // Of a branch that nobody asks for.
        commit(&path, "aside", "b.yaml", "b: 1\n");
        git(&path, &["tag", "-f", "moved", "aside"]);
        git(&path, &["tag", "-f", "-a", "-m", "Two", "moved-annotated", "aside"]);
        git(&path, &["tag", "-d", "gone", "gone-annotated"]);
        cache.checkout(&url, "main").await.unwrap();
        assert_eq!(tags().await.unwrap(), ["stays", "stays-annotated"], "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_no_branch_points_at_is_found_by_what_branches_follow() {
    for first_version in [false, true] {
        let forge = Forge::new();
        let path = forge.repository("a");
        let old = git(&path, &["rev-parse", "main"]);
        commit(&path, "main", "a.yaml", "a: 2\n");
        let serving = Serving { first_version, ..Serving::new(&forge) };
        let url = format!("{}/a.git", serving.http().await);
        let cache = Cache::new(|_| {}).await;
        assert_eq!(cache.checkout(&url, &old).await.unwrap().commit.to_string(), old);
        // It is here now, so that nobody is asked.
        let before = serving.requests();
        cache.checkout(&url, &old).await.unwrap();
        assert_eq!(serving.requests(), before);
        let none = "0123456789012345678901234567890123456789";
        let refusal = cache.refusal(&url, none).await;
        assert_eq!(refusal, format!("{url} has no branch, tag or commit {none}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_not_found_on_as_many_branches_as_are_looked_through_may_be_on_another() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let main = git(&path, &["rev-parse", "main"]);
    let names: String = (0..1_000).map(|n| format!("{main} refs/heads/b{n}\n")).collect();
    std::fs::write(path.join("packed-refs"), names).unwrap();
    let url = format!("{}/a.git", Serving::new(&forge).http().await);
    let cache = Cache::new(|_| {}).await;
    let none = "0123456789012345678901234567890123456789";
    assert_eq!(
        cache.refusal(&url, none).await,
        format!(
            "{url} has no branch, tag or commit {none} that its server sends by its id or that its first 1000 branches follow: name the branch or tag that follows it"
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_asked_for_is_fetched() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let side = commit(&path, "side", "b.yaml", "b: 1\n");
    let url = format!("{}/a.git", Serving::new(&forge).http().await);
    let cache = Cache::new(|_| {}).await;
    let at = cache.checkout(&url, "main").await.unwrap();
    let has = at.read(move |repository, _| repository.resolve(&side).is_ok()).await.unwrap();
    assert!(!has, "a branch that nobody named was fetched");
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_pull_requests_a_server_of_the_first_version_names_its_branches_are_fetched() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let head = git(&path, &["rev-parse", "main"]);
    let mut packed = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    packed.extend((0..200_001).map(|number| format!("{head} refs/pull/{number:06}/merge\n")));
    std::fs::write(path.join("packed-refs"), packed).unwrap();
    git(&path, &["-c", "user.name=A", "-c", "user.email=a@b", "tag", "-a", "-m", "One", "v1", "main"]);
    let serving = Serving { first_version: true, ..Serving::new(&forge) };
    let url = format!("{}/a.git", serving.http().await);
    let cache = Cache::new(|_| {}).await;
    for revision in ["main", "v1", "refs/pull/000007/merge"] {
        assert_eq!(cache.checkout(&url, revision).await.unwrap().commit.to_string(), head, "{revision}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_of_sha_256_is_named_as_such_in_both_versions_of_the_protocol() {
    let forge = Forge::new();
    let folder = forge.folder.path();
    git(folder, &["init", "-q", "--bare", "-b", "main", "--object-format=sha256", "a.git"]);
    let path = folder.join("a.git");
    let tree = git(&path, &["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let commit = git(&path, &["commit-tree", "-m", "One", &tree]);
    git(&path, &["update-ref", "refs/heads/main", &commit]);
    assert_eq!(commit.len(), 64);
    for first_version in [false, true] {
        let server = Serving { first_version, ..Serving::new(&forge) }.http().await;
        let cache = Cache::new(|_| {}).await;
        let refusal = cache.refusal(&format!("{server}/a.git"), "main").await;
        let host = server.trim_start_matches("http://");
        let wanted = format!(
            "{host} does not answer as a Git server does: its repository names objects by SHA-256, which is not supported"
        );
        assert_eq!(refusal, wanted, "first version: {first_version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_was_pushed_over_is_followed() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let url = format!("{}/a.git", Serving::new(&forge).http().await);
    let cache = Cache::new(|_| {}).await;
    commit(&path, "main", "a.yaml", "a: 2\n");
    cache.checkout(&url, "main").await.unwrap();
    git(&path, &["update-ref", "refs/heads/main", "main~1"]);
    let new = commit(&path, "main", "a.yaml", "a: 3\n");
    assert_eq!(cache.checkout(&url, "main").await.unwrap().commit.to_string(), new);
    // A branch becomes the directory of others.
    git(&path, &["update-ref", "refs/heads/x", "main"]);
    cache.checkout(&url, "x").await.unwrap();
    git(&path, &["update-ref", "-d", "refs/heads/x"]);
    let below = commit(&path, "x/y", "b.yaml", "b: 1\n");
    assert_eq!(cache.checkout(&url, "x/y").await.unwrap().commit.to_string(), below);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_shown_where_they_are_configured_and_nowhere_else() {
    let forge = Forge::new();
    forge.repository("a");
    let serving = Serving::new(&forge);
    let basic = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode("ada:right"));
    let serving = Serving { authorization: Some(basic), ..serving };
    let server = serving.http().await;
    let url = format!("{server}/a.git");
    let cache = Cache::new(|_| {}).await;
    let none = format!(
        "{url} wants credentials and none are configured for it: a Secret labelled argocd.argoproj.io/secret-type, a file or the environment gives them"
    );
    assert_eq!(cache.refusal(&url, "main").await, none);
    let of = |password: &str| Credential {
        from: "the Secret argocd/repo".to_owned(),
        url: server.clone(),
        is_prefix: true,
        username: Some("ada".to_owned()),
        password: Some(password.to_owned().into()),
        ..Credential::default()
    };
    cache.give(of("wrong"));
    let refused = cache.refusal(&url, "main").await;
    assert_eq!(
        refused,
        format!(
            "{url} refused the credentials of the Secret argocd/repo: they are wrong, expired, or may not read it"
        )
    );
    cache.give(of("right"));
    cache.checkout(&url, "main").await.unwrap();
    // Nothing of them is kept beside what was fetched.
    let found =
        std::process::Command::new("grep").args(["-rE", "right|ada:"]).arg(cache.folder.path()).output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_argo_cd_s_secrets_hold_is_shown_as_argo_cd_shows_it() {
    let forge = Forge::new();
    forge.repository("a");
    let basic = |of: &str| format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(of));
    for (authorization, data) in [
        (basic("x-access-token:a:b/c@d e"), &[("password", "a:b/c@d e")][..]),
        (
            basic("ada@example.com:p\u{e4}\u{df}%20+#"),
            &[("username", "ada@example.com"), ("password", "p\u{e4}\u{df}%20+#")],
        ),
        // What `echo` wrote before it was encoded.
        (
            basic("ada:right"),
            &[
                ("username", "ada\n"),
                ("password", "right\r\n"),
                ("type", "git\n"),
                ("forceHttpBasicAuth", "true"),
            ],
        ),
        ("Bearer right".to_owned(), &[("bearerToken", "right\n")]),
        ("Bearer right".to_owned(), &[("bearerToken", "right"), ("username", "ada"), ("password", "other")]),
    ] {
        let server = Serving { authorization: Some(authorization), ..Serving::new(&forge) }.http().await;
        let cache = Cache::new(|_| {}).await;
        cache.give(of_secret("repo-creds", &server, data));
        let found = cache.checkout(&format!("{server}/a.git"), "main").await;
        assert!(found.is_ok(), "{data:?}: {:?}", found.err().map(|error| error.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_argo_cd_s_secrets_hold_and_cannot_be_used_is_named() {
    const INSTEAD: &str =
        "which is not supported here: a file or the environment gives a token or an SSH key instead";
    let forge = Forge::new();
    forge.repository("a");
    let server =
        Serving { authorization: Some("Bearer right".to_owned()), ..Serving::new(&forge) }.http().await;
    let url = format!("{server}/a.git");
    let cache = Cache::new(|_| {}).await;
    let of_one = rcgen::generate_simple_self_signed(vec!["ada".to_owned()]).unwrap();
    let certificate = of_one.cert.pem();
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let locked = include_str!("keys/locked_pkcs8");
    for (data, why) in [
        (
            &[("githubAppID", "1"), ("githubAppInstallationID", "2"), ("githubAppPrivateKey", "key")][..],
            "its githubAppPrivateKey is no key in PEM: give the whole file that GitHub gave, with its line breaks"
                .to_owned(),
        ),
        (
            &[("githubAppPrivateKey", "key")],
            "they are those of a GitHub App without its githubAppID: add the number that stands on the app's page"
                .to_owned(),
        ),
        (&[("gcpServiceAccountKey", "{}")], format!("they are those of a Google service account, {INSTEAD}")),
        (
            &[("useAzureWorkloadIdentity", "true")],
            format!("they are those of an Azure workload identity, {INSTEAD}"),
        ),
        (
            &[("sshPrivateKey", "key")],
            "they are an SSH key, and the address is one of HTTP: give a password or a token, or the address of SSH"
                .to_owned(),
        ),
        (
            &[("bearerToken", "one\ntwo")],
            "its bearer token holds a line break or what else no header takes".to_owned(),
        ),
        (
            &[("tlsClientCertData", &certificate), ("tlsClientCertKey", "key")],
            "its client certificate and key are not PEM".to_owned(),
        ),
        (
            &[("tlsClientCertData", &certificate), ("tlsClientCertKey", locked)],
            "the key of its client certificate has a passphrase: give one without".to_owned(),
        ),
        (
            &[("tlsClientCertData", &certificate), ("tlsClientCertKey", &other)],
            "its client certificate and its key do not belong together".to_owned(),
        ),
    ] {
        cache.give(of_secret("repository", &url, data));
        let wanted = format!("the credentials of the Secret argocd/repo cannot be used: {why}");
        assert_eq!(cache.refusal(&url, "main").await, wanted);
    }
    // An open repository is had without them, and one of another credential with that.
    let open = format!("{}/a.git", Serving::new(&forge).http().await);
    let app = [("githubAppPrivateKey", "key")];
    cache.give(of_secret("repository", &open, &app));
    cache.checkout(&open, "main").await.unwrap();
    let both = vec![
        of_secret("repository", &url, &app),
        of_secret("repo-creds", &server, &[("bearerToken", "right")]),
    ];
    cache.checkouts.set_access(Access { credentials: Credentials::new(both), ..Access::default() });
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_gone_round_for_the_hosts_that_the_secret_names() {
    let forge = Forge::new();
    forge.repository("a");
    let server = Serving::new(&forge).http().await;
    let url = format!("{server}/a.git");
    let cache = Cache::new(|_| {}).await;
    let nowhere = ("proxy", "http://127.0.0.1:1\n");
    cache.give(of_secret("repository", &url, &[nowhere]));
    let refusal = cache.refusal(&url, "main").await;
    assert!(refusal.starts_with("cannot connect to 127.0.0.1:"), "{refusal}");
    cache.give(of_secret("repository", &url, &[nowhere, ("noProxy", ".example.com,127.0.0.1\n")]));
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_another_host_is_named_and_not_followed() {
    let forge = Forge::new();
    forge.repository("a");
    let serving = Serving::new(&forge);
    let other = serving.http().await;
    let to = format!("{other}/a.git/info/refs?service=git-upload-pack");
    let server = serve(Router::new().fallback(async move || Redirect::permanent(&to))).await;
    let cache = Cache::new(|_| {}).await;
    let refusal = cache.refusal(&format!("{server}/a.git"), "main").await;
    let wanted = format!(
        "{server}/a.git is answered with a redirect to {other}, which is not followed: give that address instead"
    );
    assert_eq!(refusal, wanted);
    assert_eq!(serving.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_moved_on_its_host_is_followed() {
    let forge = Forge::new();
    forge.repository("new");
    let backend = Serving::new(&forge).router();
    let moved = "/new.git/info/refs?service=git-upload-pack";
    let moves = async || Redirect::permanent(moved);
    let server =
        serve(Router::new().route("/old.git/info/refs", axum::routing::get(moves)).merge(backend)).await;
    let cache = Cache::new(|_| {}).await;
    cache.checkout(&format!("{server}/old.git"), "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_must_be_trusted() {
    let forge = Forge::new();
    forge.repository("a");
    let authority = Authority::new();
    let server = authority.serve(Serving::new(&forge).router()).await;
    let host = server.trim_start_matches("https://").to_owned();
    let url = format!("{server}/a.git");
    let cache = Cache::new(|_| {}).await;
    let trust = |pem: &str| Access {
        authorities: BTreeMap::from([("localhost".to_owned(), pem.to_owned())]),
        ..Access::default()
    };
    // Of somebody else, so that this machine needs no authorities of its own.
    cache.checkouts.set_access(trust(&Authority::new().pem));
    let refusal = cache.refusal(&url, "main").await;
    assert!(
        refusal.starts_with(&format!("the certificate of {host} is not trusted (invalid peer certificate")),
        "{refusal}"
    );
    let what = "): add its authority to the ConfigMap argocd-tls-certs-cm under the key localhost, or to the file of authorities";
    assert!(refusal.ends_with(what), "{refusal}");
    cache.checkouts.set_access(trust(&authority.pem));
    cache.checkout(&url, "main").await.unwrap();
    cache.checkouts.set_access(trust("nothing"));
    let refusal = cache.refusal(&url, "HEAD").await;
    assert!(refusal.contains("what is configured for it holds no certificate in PEM"), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_trusted_whose_own_certificate_was_given_as_its_authority_and_with_another_of_its_name_it_is_not()
 {
    let forge = Forge::new();
    forge.repository("a");
    let (own, other) = (Authority::itself(), Authority::itself());
    let server = own.serve(Serving::new(&forge).router()).await;
    let url = format!("{server}/a.git");
    let trust = |pem: &str, credentials: Vec<Credential>| Access {
        authorities: BTreeMap::from([("localhost".to_owned(), pem.to_owned())]),
        credentials: Credentials::new(credentials),
        ..Access::default()
    };
    let of_client = rcgen::generate_simple_self_signed(vec!["ada".to_owned()]).unwrap();
    let shown = format!("{}{}", of_client.cert.pem(), of_client.signing_key.serialize_pem());
    let with_client =
        Credential { url: url.clone(), client_certificate: Some(shown.into()), ..Credential::default() };
    for credentials in [Vec::new(), vec![with_client]] {
        let cache = Cache::new(|_| {}).await;
        cache.checkouts.set_access(trust(&other.pem, credentials.clone()));
        let refusal = cache.refusal(&url, "main").await;
        assert!(refusal.contains("CaUsedAsEndEntity"), "{refusal}");
        cache.checkouts.set_access(trust(&own.pem, credentials));
        cache.checkout(&url, "main").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_goes_unverified_where_the_repository_s_secret_says_so() {
    let forge = Forge::new();
    forge.repository("a");
    let server = Authority::new().serve(Serving::new(&forge).router()).await;
    let url = format!("{server}/a.git");
    let cache = Cache::new(|_| {}).await;
    cache.give(Credential { url: url.clone(), insecure: true, ..Credential::default() });
    cache.checkout(&url, "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_vanished_leaves_what_is_here_and_others_alone() {
    let forge = Forge::new();
    let (gone, other) = (forge.repository("gone"), forge.repository("other"));
    let server = Serving::new(&forge).http().await;
    let url = format!("{server}/gone.git");
    let cache = Cache::new(|_| {}).await;
    let at = cache.checkout(&url, "main").await.unwrap();
    std::fs::remove_dir_all(&gone).unwrap();
    let refusal = cache.refusal(&url, "main").await;
    assert_eq!(
        refusal,
        format!("no repository is at {url}: it was moved or deleted, or the credentials may not see it")
    );
    assert_eq!(cache.checkout(&url, &at.commit.to_string()).await.unwrap().commit, at.commit);
    commit(&other, "main", "a.yaml", "a: 2\n");
    cache.checkout(&format!("{server}/other.git"), "main").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_git_server_is_named() {
    let page = serve(Router::new().fallback(async || "a page")).await;
    let busy = serve(Router::new().fallback(async || status(StatusCode::SERVICE_UNAVAILABLE))).await;
    let cache = Cache::new(|_| {}).await;
    let host = |url: &str| url.trim_start_matches("http://").to_owned();
    assert_eq!(
        cache.refusal(&format!("{page}/a"), "main").await,
        format!(
            "{} does not answer as a Git server does: what is at this address is a page, or files without a server of Git's protocol",
            host(&page)
        )
    );
    assert_eq!(
        cache.refusal(&format!("{busy}/a"), "main").await,
        format!("{} answered with 503: try again later, or ask its operator", host(&busy))
    );
    let refusal = cache.refusal("http://127.0.0.1:1/a", "main").await;
    assert!(refusal.starts_with("cannot connect to 127.0.0.1:1: "), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_of_this_machine_are_read_only_where_that_is_allowed() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let url = format!("file://{}", path.display());
    let cache = Cache::new(|_| {}).await;
    assert_eq!(
        cache.refusal(&url, "main").await,
        format!("{url} is on this machine, where repositories are read only if `files` allows it")
    );
    let cache = Cache::new(|config| config.files = true).await;
    let old = cache.checkout(&url, "main").await.unwrap().commit.to_string();
    let new = commit(&path, "main", "a.yaml", "a: 2\n");
    for (revision, wanted) in [("HEAD", &new), ("main", &new), (&old, &old)] {
        assert_eq!(cache.checkout(&url, revision).await.unwrap().commit.to_string(), *wanted, "{revision}");
    }
    assert_eq!(cache.refusal(&url, "nothing").await, format!("{url} has no branch, tag or commit nothing"));
    git(&path, &["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    let other = Cache::new(|config| config.files = true).await;
    assert_eq!(other.checkout(&url, "main").await.unwrap().commit.to_string(), new);
    let none = format!("file://{}/none.git", forge.folder.path().display());
    assert_eq!(
        cache.refusal(&none, "main").await,
        format!("no repository is at {none}: it was moved or deleted, or the credentials may not see it")
    );
}
