//! The settings, through the built binary: what is refused and how, what is printed, and that no secret ever is.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CANARY: &str = "canary-7f3a9c";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn update() -> bool {
    std::env::var_os("UPDATE").is_some_and(|value| value == "1")
}

/// Runs the binary in the repository with these variables and no other.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gitops-runtime"))
        .args(arguments)
        .current_dir(root())
        .env_clear()
        .env("HOSTNAME", "host")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The YAML files of a folder of `config/`, never none.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("config").join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty(), "config/{folder} holds no case");
    files.iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

/// Compares with a file that is committed, or writes it.
fn same(path: &Path, text: &str) {
    let path = root().join(path);
    if update() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} (UPDATE=1 rewrites it)", path.display());
}

#[test]
fn every_invalid_file_is_refused_with_its_message() {
    for file in files("invalid") {
        let output = run(&["config", "check", file.to_str().unwrap()], &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{}: {said}", file.display());
        assert_eq!(stdout(&output), "");
        assert!(!said.contains("canary") && !said.contains("secret@"), "{}: {said}", file.display());
        same(&file.with_extension("txt"), &said);
    }
}

#[test]
fn every_example_is_valid_and_so_are_the_defaults() {
    for file in files("examples").into_iter().chain([PathBuf::from("config/default.yaml")]) {
        let output = run(&["config", "check", file.to_str().unwrap()], &[]);
        assert_eq!(stderr(&output), "");
        assert_eq!(stdout(&output), format!("config: {}: ok\n", file.display()));
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn the_schema_is_the_committed_one() {
    let output = run(&["config", "schema"], &[]);
    assert_eq!(output.status.code(), Some(0));
    same(Path::new("config/schema.json"), &stdout(&output));
}

#[test]
fn print_tells_the_origin_of_each_value_and_the_stronger_source_wins() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.yaml");
    let settings =
        "log: {level: error, format: json}\nreporter: {queue: {events: 1, bytes: 2Mi}, lanes: {reads: 3}}\n";
    std::fs::write(&file, settings).unwrap();
    let name = file.to_str().unwrap();
    let variables = [
        ("GITOPS_RUNTIME_CONFIG", name),
        ("LOG_LEVEL", "debug"),
        ("APP_QUEUE_SIZE", "2"),
        ("GITOPS_RUNTIME_REPORTER__QUEUE__EVENTS", "3"),
        ("GITOPS_RUNTIME_REPORTER__LANES__READS", "4"),
    ];
    let output = run(&["config", "print", "--set", "reporter.lanes.reads=5"], &variables);
    let text = stdout(&output);
    assert_eq!(stderr(&output), "");
    for line in [
        "  level: debug  # from environment variable LOG_LEVEL".to_owned(),
        format!("  format: json  # from {name}"),
        "    events: 3  # from environment variable GITOPS_RUNTIME_REPORTER__QUEUE__EVENTS".to_owned(),
        format!("    bytes: 2Mi  # from {name}"),
        "    reads: 5  # from --set".to_owned(),
        "    shards: auto".to_owned(),
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in\n{text}");
    }
}

#[test]
fn what_is_printed_can_be_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first.yaml"), directory.path().join("second.yaml"));
    let odd = [
        "reporter.sink.file.path=/a b/#c: \"d\"",
        "argocd.instanceLabelKey=no",
        "kubernetes.context=12",
        "kubernetes.applicationNamespaces=team-*,x",
        "serve.address=[::1]:80",
    ];
    let mut arguments = vec!["config", "print"];
    odd.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let output = run(&arguments, &[]);
    assert_eq!(stderr(&output), "");
    std::fs::write(&first, &output.stdout).unwrap();
    let again = run(&["config", "print", "--config", first.to_str().unwrap()], &[]);
    assert_eq!(stderr(&again), "");
    std::fs::write(&second, &again.stdout).unwrap();
    let value =
        |text: &str| text.lines().map(|line| line.split("  # from ").next().unwrap().to_owned()).collect();
    let values: Vec<String> = value(&stdout(&output));
    assert_eq!(values, value(&stdout(&again)) as Vec<String>);
    assert!(values.contains(&"      path: \"/a b/#c: \\\"d\\\"\"".to_owned()), "{values:#?}");
}

#[test]
fn the_defaults_are_printed_as_default_yaml_has_them() {
    let printed = stdout(&run(&["config", "print"], &[]));
    let written = std::fs::read_to_string(root().join("config/default.yaml")).unwrap();
    let bare = |text: &str| {
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(bare(&printed), bare(&written));
    assert!(!printed.contains('#'));
}

/// It says something, and not the secret.
fn says_no_secret(arguments: &[&str], variables: &[(&str, &str)], of: &str) {
    let output = run(arguments, variables);
    let said = stdout(&output) + &stderr(&output);
    assert!(!said.is_empty() && !said.contains(CANARY), "{arguments:?} of {of}: {said}");
}

/// However a variable with a secret is written.
fn says_no_secret_of(variable: &str, text: &str) {
    for arguments in [&["config", "print"][..], &["config", "check"], &["reporter", "--sink", "x"]] {
        says_no_secret(arguments, &[(variable, text)], variable);
    }
}

/// However a setting that is a secret is written, in a file or as its variable.
fn is_printed_nowhere(path: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.yaml");
    let (group, name) = path.split_once('.').unwrap();
    for content in [
        format!("{group}: {{{name}: {CANARY}}}\n"),
        format!("{group}: {{{name}: [{CANARY}]}}\n"),
        format!("{group}: {{{name}: {{{CANARY}x: 1}}}}\n").replace(&format!("{CANARY}x"), "x"),
        format!("{group}: {{{name}: '{CANARY} {CANARY}'}}\n"),
        format!("{group}: {{{name}: '{CANARY}\n"),
        format!("{group}: {{{name}: !!binary {CANARY}}}\n"),
        format!("{group}: {{url: 'https://x:{CANARY}@y', {name}: *{CANARY}}}\n"),
    ] {
        std::fs::write(&file, &content).unwrap();
        let name = file.to_str().unwrap();
        for arguments in [
            &["config", "print", "--config", name][..],
            &["config", "check", "--config", name],
            &["config", "check", name],
            &["reporter", "--config", name, "--set", "log.level=x"],
        ] {
            says_no_secret(arguments, &[], &content);
        }
    }
    let own = format!("GITOPS_RUNTIME_{}", path.to_uppercase().replace('.', "__"));
    for text in [CANARY.to_owned(), format!("{CANARY} {CANARY}")] {
        says_no_secret_of(&own, &text);
    }
}

#[test]
fn no_secret_is_ever_printed() {
    let secrets =
        ["kubernetes.token", "argocd.token", "platform.token", "admin.token", "bus.token", "bus.password"];
    // Each takes some thirty processes.
    std::thread::scope(|threads| {
        for path in secrets {
            threads.spawn(move || is_printed_nowhere(path));
        }
    });
    for (variable, text) in [
        ("ARGOCD_TOKEN", CANARY.to_owned()),
        ("CODEFRESH_TOKEN", format!("{CANARY}\u{7}")),
        ("REDIS_PASSWORD", CANARY.to_owned()),
        ("CODEFRESH_URL", format!("https://x:{CANARY}@y")),
    ] {
        says_no_secret_of(variable, &text);
    }
    let printed = stdout(&run(&["config", "print"], &[("CODEFRESH_TOKEN", CANARY)]));
    let line = "  token: \"********\"  # from environment variable CODEFRESH_TOKEN";
    assert!(printed.lines().any(|known| known == line), "{printed}");
}

#[test]
fn what_traces_are_sent_with_is_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.yaml");
    let headers = format!("x-tenant=a,x-key={CANARY}");
    let settings =
        format!("traces: {{otlp: {{url: 'http://collector', token: {CANARY}, headers: '{headers}'}}}}\n");
    std::fs::write(&file, settings).unwrap();
    let name = file.to_str().unwrap();
    let printed = stdout(&run(&["config", "print", "--config", name], &[]));
    for line in ["    token: \"********\"", "    headers: \"********\""] {
        assert!(printed.lines().any(|known| known.starts_with(line)), "{printed}");
    }
    assert!(!printed.contains(CANARY), "{printed}");
    let printed = stdout(&run(&["config", "print"], &[("GITOPS_RUNTIME_TRACES__OTLP__HEADERS", &headers)]));
    assert!(printed.contains("headers: \"********\"") && !printed.contains(CANARY), "{printed}");
    let output = run(&["config", "check", "--set", &format!("traces.otlp.headers={headers}")], &[]);
    let refused = "config: traces.otlp.headers: a secret does not belong on the command line, where others can see \
                   it; use the variable GITOPS_RUNTIME_TRACES__OTLP__HEADERS (from --set)";
    assert_eq!(stderr(&output).lines().next(), Some(refused));
}

#[test]
fn a_secret_on_the_command_line_is_refused() {
    let setting = format!("platform.token={CANARY}");
    let others = ["--set", "platform.tokn=1", "--set", "argocd=3"];
    let output = run(&[&["config", "check", "--set", &setting][..], &others].concat(), &[]);
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "config: platform.token: a secret does not belong on the command line, where others can see it; use \
             platform.tokenFile or the variable GITOPS_RUNTIME_PLATFORM__TOKEN (from --set)",
            "config: platform.tokn: unknown setting; did you mean 'token'? (from --set)",
            "config: argocd: is a section: set one of its settings, such as argocd.NAME (`config print` lists them) (from --set)",
        ]
    );
    assert!(!said.contains(CANARY), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_incumbents_environment_is_enough() {
    let chart = [
        ("APP_QUEUE_SIZE", "1000"),
        ("ARGOCD_APPLICATION_NAMESPACES", "team-*"),
        ("ARGOCD_SERVER", "argo-cd-server:80/argo-cd"),
        ("ARGOCD_SERVER_ROOTPATH", "/argo-cd"),
        ("ARGO_CD_TOKEN_SECRET_NAME", "argocd-token"),
        ("ARGO_CD_TOKEN_SECRET_KEY", "token"),
        ("BINARY_NAME", "event-reporter"),
        ("CODEFRESH_SSL_CERT_PATH", ""),
        ("CODEFRESH_TOKEN", CANARY),
        ("CODEFRESH_URL", "https://platform.example.com"),
        ("EVENT_REPORTER_REPLICAS", "1"),
        ("HTTP_PROXY", ""),
        ("MAX_APP_RETRIES", "5"),
        ("REDIS_PASSWORD", CANARY),
        ("REDIS_SERVER", "argo-cd-redis:6379"),
        ("REPORTER_MODE", "app"),
        ("REPO_SERVER", "argo-cd-repo-server:8081"),
        ("RUNTIME_VERSION", "1.0.0"),
        ("THREADINESS", "100"),
    ];
    let output = run(&["config", "check"], &chart);
    assert_eq!(stderr(&output), "");
    let said = stdout(&output);
    assert!(said.ends_with("config: ok\n"), "{said}");
    let line = "config: REDIS_SERVER is not needed: what was reported is remembered in the ledger";
    assert!(said.lines().any(|known| known == line), "{said}");
    assert_eq!(said.lines().count(), 10, "{said}");
}

#[test]
fn without_arguments_the_incumbents_name_of_the_role_is_followed() {
    // Each says what it lacks before it starts, which no other role does.
    let of_reporter = "config: argocd.token: not set";
    let of_resources = "the resource reporter shares its work with no other process";
    let of_sources = "no repository is configured: say where each is";
    for (name, mode, lacks, lacks_not) in [
        ("event-reporter", "", of_reporter, of_sources),
        ("event-reporter", "app", of_reporter, of_sources),
        ("event-reporter-server", "", of_reporter, of_sources),
        ("event-reporter", "resource", of_resources, of_reporter),
        ("argo-gateway", "", of_sources, of_reporter),
        ("sources-server", "", of_sources, of_reporter),
    ] {
        let bus = ("GITOPS_RUNTIME_BUS__URL", "nats://127.0.0.1:1");
        let output = run(&[], &[("BINARY_NAME", name), ("REPORTER_MODE", mode), bus]);
        let said = stderr(&output);
        assert!(said.contains(lacks) && !said.contains(lacks_not), "{name} {mode}: {said}");
        assert_eq!(output.status.code(), Some(1), "{name} {mode}");
    }
    // Who names the reporter does not get a second one of applications in the place of one of resources.
    let output = run(&["reporter", "--sink", "stdout"], &[("REPORTER_MODE", "resource")]);
    let said = stderr(&output);
    assert!(
        said.contains("config: REPORTER_MODE: resource is of the role resource-reporter: run that instead"),
        "{said}"
    );
    let output = run(&[], &[("BINARY_NAME", "repo-server")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("BINARY_NAME=repo-server names no role of this binary"));
    let output = run(&[], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Usage: gitops-runtime <COMMAND>"), "{}", stderr(&output));
}

#[test]
fn what_is_missing_is_asked_for_before_anything_starts() {
    let output = run(&["reporter", "--sink", "stdout"], &[]);
    let first = "config: argocd.token: not set; set argocd.tokenFile (--argocd-token-file), argocd.tokenSecret.name, \
                 or the variable ARGOCD_TOKEN to the token of an account that may read applications, or \
                 argocd.username and argocd.passwordFile to log in";
    let said = stderr(&output);
    let last = "config: 1 problem; gitops-runtime config print shows every setting";
    assert_eq!(said.lines().collect::<Vec<_>>(), [first, last]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn help_shows_how_each_command_is_used() {
    for command in [
        &["--help"][..],
        &["reporter", "--help"],
        &["config", "--help"],
        &["explain", "--help"],
        &["parked", "--help"],
        &["replay", "--help"],
        &["status", "--help"],
        &["tail", "--help"],
        &["verify", "--help"],
        &["bus", "--help"],
        &["bus", "check", "--help"],
        &["bus", "show", "--help"],
        &["tap", "--help"],
    ] {
        let output = run(command, &[("GITOPS_RUNTIME_PLATFORM__TOKEN", CANARY)]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0));
        assert!(text.contains("Examples:\n  "), "{text}");
        assert!(!text.contains(CANARY));
        let is_first = command == ["--help"];
        assert!(!is_first || text.contains("\nExit codes: 0 done, 1 "), "{text}");
    }
    let version = stdout(&run(&["--version"], &[]));
    assert_eq!(version, format!("gitops-runtime {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let output = run(&["config", "check", "config/nowhere.yaml"], &[]);
    let first = "config: config/nowhere.yaml: cannot be read: No such file or directory (os error 2)";
    assert_eq!(stderr(&output).lines().next(), Some(first));
    let named = run(&["config", "check"], &[("GITOPS_RUNTIME_CONFIG", "config/nowhere.yaml")]);
    assert_eq!(stderr(&named).lines().next(), Some(first));
    // What the file would have set is not called missing.
    let started = run(&["reporter", "--config", "config/nowhere.yaml"], &[]);
    let all = format!("{first}\nconfig: 1 problem; gitops-runtime config print shows every setting\n");
    assert_eq!(stderr(&started), all);
    let nothing = run(&["config", "print"], &[("GITOPS_RUNTIME_CONFIG", "")]);
    assert_eq!(stderr(&nothing), "");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("large.yaml");
    std::fs::write(&file, "#".repeat((1 << 20) + 1)).unwrap();
    let output = run(&["config", "check", file.to_str().unwrap()], &[]);
    let first = format!("config: {}: cannot be read: it is larger than 1 MiB", file.display());
    assert_eq!(stderr(&output).lines().next(), Some(first.as_str()));
    std::fs::write(&file, "# nothing but a comment\n").unwrap();
    let output = run(&["config", "check", file.to_str().unwrap()], &[]);
    assert_eq!(stdout(&output), format!("config: {}: ok\n", file.display()));
}

#[test]
fn a_file_that_is_checked_alone_stands_beside_no_other_setting() {
    for more in
        [&["--set", "log.level=loud"][..], &["--config", "config/nowhere.yaml"], &["--log-level", "loud"]]
    {
        let output = run(&[&["config", "check", "config/default.yaml"], more].concat(), &[]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{more:?}");
        let text = stderr(&output);
        assert!(text.contains("cannot be used with") && text.contains("'[FILE]'"), "{text}");
    }
}

#[test]
fn a_variable_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let output = Command::new(env!("CARGO_BIN_EXE_gitops-runtime"))
        .args(["config", "print"])
        .env_clear()
        .env("CODEFRESH_TOKEN", std::ffi::OsStr::from_bytes(b"canary-\xff"))
        .output()
        .unwrap();
    let first = "config: platform.token: is not text (from environment variable CODEFRESH_TOKEN)";
    assert_eq!(stderr(&output).lines().next(), Some(first));
    assert!(!stdout(&output).contains("canary"));
}

#[test]
fn listening_elsewhere_leaves_the_usual_port_of_metrics_alone() {
    let printed = stdout(&run(&["config", "print", "--listen", "127.0.0.1:0"], &[]));
    for line in ["  address: 127.0.0.1:0  # from --listen", "  metricsAddress: \"\"  # from --listen"] {
        assert!(printed.lines().any(|known| known == line), "{printed}");
    }
}

#[test]
fn a_file_for_reports_chooses_the_sink_file_and_may_stand_beside_it() {
    for arguments in [&["--output", "x.ndjson"][..], &["--sink", "file", "--output", "x.ndjson"]] {
        let printed = stdout(&run(&[&["config", "print"], arguments].concat(), &[]));
        for line in ["kind: file  # from --output", "path: x.ndjson  # from --output"] {
            assert!(printed.lines().any(|known| known.trim() == line), "{arguments:?}: {printed}");
        }
    }
}

#[test]
fn a_file_for_reports_beside_another_sink_is_refused_whatever_the_command() {
    for sink in ["stdout", "platform"] {
        for command in [&["reporter"][..], &["config", "check"], &["rbac", "print", "--role", "reporter"]] {
            let output = run(&[command, &["--output", "x.ndjson", "--sink", sink]].concat(), &[]);
            assert!(!output.status.success(), "{command:?}");
            let line = format!(
                "config: reporter.sink.kind: {sink} by --sink and file by --output: give one of them"
            );
            assert!(stderr(&output).lines().any(|known| known == line), "{command:?}: {}", stderr(&output));
        }
    }
}

/// The sources of a folder, but for tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_configuration_has_defaults_beside_default_yaml() {
    // Of how content is worked on there are no settings.
    let without_settings = Path::new("src/content.rs");
    let mut found = Vec::new();
    for folder in ["pipeline", "stages"] {
        sources(&root().join(folder), &mut found);
    }
    assert!(found.len() > 100, "{}", found.len());
    for path in found.iter().filter(|path| !path.ends_with(without_settings)) {
        let text = std::fs::read_to_string(path).unwrap();
        for (before, _) in text.match_indices("impl Default for Config {").map(|(at, _)| text.split_at(at)) {
            assert!(before.ends_with("#[cfg(test)]\n"), "{} has defaults of its own", path.display());
        }
    }
}
