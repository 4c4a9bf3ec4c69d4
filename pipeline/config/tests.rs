use std::path::Path;
use std::time::Duration;

use pipeline_core::ExposeSecret as _;

use super::*;
use crate::config::catalogue::{Catalogue, Setting};
use crate::config::layers::Layers;
use crate::config::problem::Origin;

pub(super) fn host() -> Host {
    Host {
        name: Some("event-reporter-3".to_owned()),
        namespace: Some("runtime".to_owned()),
        state: vec!["/state".into()],
    }
}

/// The defaults and what nothing starts without, then `flags`.
pub(super) fn resolve(flags: &[(&str, &str)], host: &Host) -> Result<Config, Problems> {
    let mut layers = Layers::default();
    let needed = [("argocd.tokenFile", "/argocd"), ("platform.tokenFile", "/platform")];
    for (path, text) in needed.iter().chain(flags) {
        layers.flag(path, "--set", text);
    }
    Config::resolve(&mut layers, host)
}

/// The first line of what is wrong.
pub(super) fn wrong(flags: &[(&str, &str)]) -> String {
    let problems = resolve(flags, &host()).unwrap_err().to_string();
    problems.lines().next().unwrap_or_default().trim_start_matches("config: ").to_owned()
}

/// Each setting refuses this text so, with its path before it; where another setting of the group is told of, its path stands here.
pub(super) fn refused(texts: &[(&str, &str, &str)]) {
    for &(path, text, why) in texts {
        let (group, _) = path.split_once('.').unwrap();
        let is_of_another = why.starts_with(&format!("{group}."));
        let whole = if is_of_another { why.to_owned() } else { format!("{path}: {why}") };
        assert_eq!(wrong(&[(path, text)]).trim_end_matches(" (from --set)"), whole);
    }
}

#[test]
fn the_defaults_are_those_of_the_house() {
    let config = resolve(&[], &host()).unwrap();
    let reporter = &config.reporter;
    let (sharding, queue) = (&reporter.sharding, &reporter.queue);
    assert_eq!((sharding.shards(), sharding.shard(), queue.events), (5, None, 1_000));
    assert_eq!((queue.bytes.0, reporter.lanes.reads), (8 << 20, 16));
    assert!(!reporter.rate_limit.enabled);
    assert_eq!((config.argocd.retries, config.argocd.max_body.0), (3, 64 << 20));
    assert_eq!(*config.argocd.timeout, Duration::from_secs(30));
    assert_eq!(*config.argocd.event_timeout, Duration::from_secs(120));
    assert_eq!(config.serve.address.unwrap().port(), 8088);
    assert_eq!(config.serve.metrics_address.unwrap().port(), 8087);
    let metrics = |flags: &[(&str, &str)]| *resolve(flags, &host()).unwrap().serve.metrics_address;
    assert_eq!(metrics(&[("serve.metricsAddress", "0.0.0.0:8088")]), None);
    assert_eq!(metrics(&[("serve.metricsAddress", "")]), None);
    assert_eq!(*config.kubernetes.namespace, "runtime");
    assert_eq!(*resolve(&[], &Host::default()).unwrap().kubernetes.namespace, "argocd");
}

#[test]
fn the_path_of_argo_cd_may_be_given_in_its_address_or_on_its_own_or_both() {
    let root = |url: &str, path: &str| {
        let config = resolve(&[("argocd.url", url), ("argocd.rootPath", path)], &host()).unwrap();
        (config.argocd.url.as_ref().unwrap().to_string(), config.argocd.root_path.0.clone())
    };
    let is = |root: &str| ("http://argocd:80/".replace(":80", ""), root.to_owned());
    assert_eq!(root("http://argocd:80", ""), is(""));
    assert_eq!(root("http://argocd:80/", "/"), is(""));
    assert_eq!(root("http://argocd:80/argo-cd/", ""), is("/argo-cd"));
    assert_eq!(root("http://argocd:80", "argo-cd"), is("/argo-cd"));
    assert_eq!(root("http://argocd:80/argo-cd", "/argo-cd"), is("/argo-cd"));
    assert_eq!(root("http://argocd:80/proxy", "/argo-cd"), is("/proxy/argo-cd"));
}

#[test]
fn a_shard_is_a_number_or_that_of_the_host() {
    assert_eq!(resolve(&[], &host()).unwrap().reporter.sharding.shard(), None);
    let shard = |text: &str, shards: &str| {
        let flags = [("reporter.sharding.shard", text), ("reporter.sharding.shards", shards)];
        resolve(&flags, &host()).map(|config| config.reporter.sharding.shard())
    };
    assert_eq!(shard("all", "5"), Ok(None));
    assert_eq!(shard("4", "5"), Ok(Some(4)));
    assert_eq!(shard("hostname", "5"), Ok(Some(3)));
    assert_eq!(
        wrong(&[("reporter.sharding.shard", "5")]),
        "reporter.sharding.shard: 5 is not one of the 5 shards, 0 to 4"
    );
    let host = Host { name: Some("reporter-6c9f7d8b5-x2x7k".to_owned()), ..host() };
    let problems = resolve(&[("reporter.sharding.shard", "hostname")], &host).unwrap_err().to_string();
    assert_eq!(
        problems.lines().next(),
        Some(
            "config: reporter.sharding.shard: the host's name 'reporter-6c9f7d8b5-x2x7k' does not end in - and a \
             number, as those of a StatefulSet do; set the number of the shard (EVENT_REPORTER_SHARD), or all"
        )
    );
}

#[test]
fn the_ledger_is_kept_unless_reports_go_to_standard_output() {
    let state = |flags: &[(&str, &str)]| resolve(flags, &host()).unwrap().state;
    let kept = state(&[]);
    assert!(kept.keep_ledger);
    assert_eq!(kept.directories, [Path::new("/state")]);
    assert_eq!(kept.ledger_name, "reporter-ledger.redb");
    let stdout = ("reporter.sink.kind", "stdout");
    assert!(!state(&[stdout]).keep_ledger);
    assert!(state(&[stdout, ("reporter.ledger.storage", "file")]).keep_ledger);
    assert!(state(&[stdout, ("reporter.ledger.path", "/l")]).keep_ledger);
    assert!(!state(&[("reporter.ledger.storage", "memory")]).keep_ledger);
    assert_eq!(state(&[("state.directory", "/mine")]).directories, [Path::new("/mine")]);
    assert_eq!(state(&[("reporter.sharding.shard", "2")]).ledger_name, "reporter-ledger-2-of-5.redb");
}

#[test]
fn what_excludes_each_other_is_refused_where_it_is_said_at_once() {
    let mut layers = Layers::default();
    layers.text(setting("platform.token"), "a", Origin::Variable("CODEFRESH_TOKEN".to_owned()));
    layers.flag("argocd.tokenFile", "--argocd-token-file", "/a");
    layers.text(setting("platform.tokenFile"), "/b", Origin::Variable("X".to_owned()));
    let problems = Config::resolve(&mut layers, &host()).unwrap_err().to_string();
    assert_eq!(
        problems.lines().next(),
        Some("config: platform.token: excludes platform.tokenFile: give one of them")
    );
    assert_eq!(
        wrong(&[("kubernetes.tokenFile", "/t")]),
        "kubernetes.token: is for kubernetes.server, which is not set"
    );
    let both =
        [("kubernetes.server", "https://k"), ("kubernetes.tokenFile", "/t"), ("kubernetes.kubeconfig", "/k")];
    assert_eq!(wrong(&both), "kubernetes.server: excludes kubernetes.kubeconfig: give one of them");
}

#[test]
fn a_stronger_source_replaces_the_other_ways_to_give_a_token() {
    let mut layers = Layers::default();
    layers.text(
        setting("argocd.tokenSecret.name"),
        "s",
        Origin::Variable("ARGO_CD_TOKEN_SECRET_NAME".to_owned()),
    );
    layers.text(setting("platform.token"), "t", Origin::Variable("CODEFRESH_TOKEN".to_owned()));
    let own = "GITOPS_RUNTIME_ARGOCD__TOKEN_FILE".to_owned();
    layers.text(setting("argocd.tokenFile"), "/own", Origin::Variable(own));
    layers.flag("platform.tokenFile", "--platform-token-file", "/flag");
    let config = Config::resolve(&mut layers, &host()).unwrap();
    assert!(matches!(config.argocd.access().secret(), Token::File(path) if path == Path::new("/own")));
    assert!(matches!(config.platform.token(), Token::File(path) if path == Path::new("/flag")));
}

#[test]
fn a_configuration_that_is_printed_for_debugging_shows_no_token() {
    let mut layers = Layers::default();
    for path in ["argocd.token", "platform.token", "admin.token"] {
        layers.text(setting(path), "canary", Origin::Variable("X".to_owned()));
    }
    layers.text(setting("admin.address"), "127.0.0.1:1", Origin::Variable("X".to_owned()));
    let config = Config::resolve(&mut layers, &host()).unwrap();
    assert!(matches!(config.platform.token(), Token::Value(token) if token.expose_secret() == "canary"));
    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn an_account_of_argo_cd_needs_a_name_and_a_password_and_no_token() {
    let problems = |given: &[(&str, &str)]| {
        let mut layers = Layers::default();
        for (path, text) in [&[("platform.tokenFile", "/platform")], given].concat() {
            layers.text(setting(path), text, Origin::File("f".to_owned()));
        }
        match Config::resolve(&mut layers, &host()) {
            Ok(config) => Ok(config),
            Err(problems) => Err(problems.to_string().lines().next().unwrap_or_default().to_owned()),
        }
    };
    let refused = |given: &[(&str, &str)]| problems(given).unwrap_err();
    let (name, file) = (("argocd.username", "reports"), ("argocd.passwordFile", "/p"));
    assert!(matches!(
        problems(&[name, file]).unwrap().argocd.access(),
        Access::Login { username, password: Token::File(path) } if username == "reports" && path == Path::new("/p")
    ));
    assert!(matches!(
        problems(&[name, ("argocd.passwordSecret.name", "admin")]).unwrap().argocd.access().secret(),
        Token::Secret { name, key } if name == "admin" && key == "password"
    ));
    assert_eq!(
        refused(&[name]),
        "config: argocd.password: not set, and argocd.username needs it; set argocd.passwordFile or \
         argocd.passwordSecret.name"
    );
    assert_eq!(refused(&[file]), "config: argocd.username: not set, and argocd.password needs it");
    assert_eq!(
        refused(&[name, file, ("argocd.tokenFile", "/t")]),
        "config: argocd.password: excludes argocd.token: give one of them"
    );
    assert_eq!(
        refused(&[name, file, ("argocd.password", "x")]),
        "config: argocd.password: excludes argocd.passwordFile: give one of them"
    );
    // A token of a stronger source stands above the login of a weaker one.
    let mut layers = Layers::default();
    for (path, text) in [("platform.tokenFile", "/platform"), name, file] {
        layers.text(setting(path), text, Origin::File("f".to_owned()));
    }
    layers.text(setting("argocd.token"), "t", Origin::Variable("ARGOCD_TOKEN".to_owned()));
    let config = Config::resolve(&mut layers, &host()).unwrap();
    assert!(matches!(config.argocd.access(), Access::Token(Token::Value(_))));
}

#[test]
fn what_cannot_be_done_without_is_asked_for_with_the_way_to_give_it() {
    let missing = |path: &str| {
        let mut layers = Layers::default();
        let problems = Config::resolve(&mut layers, &host()).unwrap_err().to_string();
        let line = problems.lines().find(|line| line.contains(path)).map(str::to_owned);
        line.unwrap_or_default()
    };
    assert_eq!(
        missing("config: argocd.token:"),
        "config: argocd.token: not set; set argocd.tokenFile (--argocd-token-file), argocd.tokenSecret.name, or the \
         variable ARGOCD_TOKEN to the token of an account that may read applications, or argocd.username and \
         argocd.passwordFile to log in"
    );
    assert_eq!(
        missing("config: platform.token:"),
        "config: platform.token: not set; set platform.tokenFile (--platform-token-file) or the variable \
         CODEFRESH_TOKEN, or choose another sink: --sink stdout needs no platform"
    );
    assert_eq!(
        wrong(&[("reporter.sink.kind", "file")]),
        "reporter.sink.file.path: not set, and the sink file needs it; set --output FILE"
    );
    assert_eq!(
        wrong(&[("kubernetes.server", "https://k")]),
        "kubernetes.token: not set, and kubernetes.server needs it; set kubernetes.tokenFile, or leave \
         kubernetes.server empty to use a kubeconfig"
    );
}

#[test]
fn limits_that_depend_on_each_other() {
    assert_eq!(wrong(&[("argocd.timeout", "0s")]), "argocd.timeout: must be longer than 0");
    assert_eq!(
        wrong(&[("argocd.timeout", "5m")]),
        "argocd.eventTimeout: must not be shorter than argocd.timeout"
    );
    assert_eq!(
        wrong(&[("reporter.lanes.retry.min", "10m")]),
        "reporter.lanes.retry.max: must not be shorter than reporter.lanes.retry.min"
    );
    assert_eq!(wrong(&[("reporter.queue.bytes", "1Ki")]), "reporter.queue.bytes: must be at least 1Mi");
    assert_eq!(wrong(&[("argocd.maxBody", "0")]), "argocd.maxBody: must be at least 1Ki");
}

#[test]
fn an_admin_address_is_loopback_or_has_a_token() {
    let open = |flags: &[(&str, &str)]| resolve(flags, &host()).unwrap().admin;
    assert_eq!(*open(&[]).address, None);
    for own in ["127.0.0.1:8089", "[::1]:8089", "localhost:8089"] {
        assert!(open(&[("admin.address", own)]).address.unwrap().ip().is_loopback(), "{own}");
    }
    let others = open(&[("admin.address", "0.0.0.0:8089"), ("admin.tokenFile", "/token")]);
    assert!(matches!(others.token(), Token::File(_)) && others.address.is_some());
    for other in ["0.0.0.0:8089", "[::]:8089", "192.0.2.7:8089"] {
        let expected = format!(
            "admin.address: {other} can be reached from other hosts, and no token is given; set admin.tokenFile, or \
             take a loopback address such as 127.0.0.1:8089"
        );
        assert_eq!(wrong(&[("admin.address", other)]), expected);
    }
    let alone = wrong(&[("admin.tokenFile", "/token")]);
    assert_eq!(alone, "admin.token: is for admin.address, which is not set");
}

#[test]
fn a_digest_is_sent_to_a_platform_or_a_file_and_wherever_it_is_wanted() {
    let digest = |flags: &[(&str, &str)]| {
        let reporter = resolve(flags, &host()).unwrap().reporter;
        reporter.digest(reporter.sink.kind)
    };
    let minute = Some(Duration::from_secs(60));
    let file = [("reporter.sink.kind", "file"), ("reporter.sink.file.path", "/reports")];
    let stdout = ("reporter.sink.kind", "stdout");
    assert_eq!((digest(&[]), digest(&file), digest(&[stdout])), (minute, minute, None));
    assert_eq!(digest(&[stdout, ("reporter.digest.enabled", "true")]), minute);
    assert_eq!(digest(&[&file[..], &[("reporter.digest.enabled", "false")]].concat()), None);
    let both = [("reporter.digest.enabled", "true"), ("reporter.digest.interval", "5s")];
    assert_eq!(digest(&both), Some(Duration::from_secs(5)));
}

#[test]
fn the_socket_is_named_by_the_shard_where_processes_share_a_directory() {
    let state = |flags: &[(&str, &str)]| resolve(flags, &host()).unwrap().state;
    assert_eq!(state(&[]).sockets(), [Path::new("/state/admin.sock")]);
    let own = state(&[("reporter.sharding.shard", "3")]);
    assert_eq!(own.sockets(), [Path::new("/state/admin-3-of-5.sock")]);
    let given = [("admin.socket", "/run/s"), ("state.directory", "/d")];
    assert_eq!(state(&given).sockets(), [Path::new("/run/s")]);
    assert_eq!(state(&[("admin.socket", "")]).sockets(), [] as [&Path; 0]);
}

pub(super) fn setting(path: &str) -> &'static Setting {
    Catalogue::get().setting(path).unwrap()
}
