use super::*;

/// What each variable is set to, and what the setting is then.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("ARGOCD_APPLICATION_NAMESPACES", "team-*, ops", r#"["team-*","ops"]"#),
    ("EVENT_REPORTER_APPLICATION_SERVER", "argocd:80", r#""http://argocd:80""#),
    ("ARGOCD_SERVER", "argo-cd-server:80/argo-cd", r#""http://argo-cd-server:80/argo-cd""#),
    ("ARGOCD_SERVER_ROOTPATH", "/argo-cd", r#""/argo-cd""#),
    ("ARGOCD_TOKEN", "canary", r#""canary""#),
    ("ARGO_CD_TOKEN_SECRET_NAME", "argocd-token", r#""argocd-token""#),
    ("ARGO_CD_TOKEN_SECRET_KEY", "key", r#""key""#),
    ("CODEFRESH_URL", "https://platform.example.com", r#""https://platform.example.com""#),
    ("CODEFRESH_TOKEN", "canary", r#""canary""#),
    ("CODEFRESH_SSL_CERT_PATH", "/app/config/ca.crt", r#""/app/config/ca.crt""#),
    ("CODEFRESH_TLS_INSECURE", "True", "true"),
    ("EVENT_REPORTER_LISTEN_ADDRESS", "127.0.0.1", r#""127.0.0.1:8088""#),
    ("LISTEN_ADDRESS", "::1", r#""[::1]:8088""#),
    ("EVENT_REPORTER_METRICS_LISTEN_ADDRESS", "localhost", r#""127.0.0.1:8087""#),
    ("METRICS_LISTEN_ADDRESS", "127.0.0.1:9000", r#""127.0.0.1:9000""#),
    ("EVENT_REPORTER_LOG_LEVEL", "DEBUG", r#""debug""#),
    ("LOG_LEVEL", "warning", r#""warn""#),
    ("EVENT_REPORTER_LOGFORMAT", "JSON", r#""json""#),
    ("LOG_FORMAT", "json", r#""json""#),
    ("EVENT_REPORTER_SHARDING_ALGORITHM", "legacy", r#""fnv-modulo""#),
    ("SHARDING_ALGORITHM", "jump", r#""jump""#),
    ("APP_QUEUE_SIZE", "500", "500"),
    ("RATE_LIMITER_ENABLED", "true", "true"),
    ("RATE_LIMITER_BUCKET_SIZE", "9223372036854775807", "4294967295"),
    ("RATE_LIMITER_DURATION", "1d12h", r#""1d12h""#),
    ("RATE_LIMITER_LEARNING_MODE_ENABLED", "true", "true"),
];

fn variables(given: &[(&str, &str)]) -> Variables {
    given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn laid(given: &[(&str, &str)]) -> Layers {
    let mut layers = Layers::default();
    incumbent(&mut layers, &variables(given));
    own(&mut layers, &variables(given));
    layers
}

fn value(layers: &Layers, path: &str) -> (String, Origin) {
    let (value, origin) = layers.value(Catalogue::get().setting(path).unwrap());
    (value.to_string(), origin.clone())
}

#[test]
fn every_variable_of_the_table_has_its_effect() {
    let mut tried = 0;
    for (name, meaning) in INCUMBENT {
        match meaning {
            Same(path) | As(path, _) => {
                let example = EXAMPLES.iter().find(|(known, ..)| known == name);
                let (_, text, expected) = example.unwrap_or_else(|| panic!("no example of {name}"));
                let layers = laid(&[(name, text)]);
                let origin = Origin::Variable((*name).to_owned());
                assert_eq!(value(&layers, path), ((*expected).to_owned(), origin), "{name}");
                assert!(layers.problems.is_empty(), "{name}: {}", layers.problems);
                assert!(layers.ignored.is_empty());
            }
            Joint => continue,
        }
        let untouched = laid(&[(name, "")]);
        assert!(untouched.ignored.is_empty() && untouched.problems.is_empty(), "{name} set to nothing");
        tried += 1;
    }
    assert_eq!(tried + 4, INCUMBENT.len());
    let idle =
        NOT_NEEDED.iter().flat_map(|(why, names)| names.split_whitespace().map(move |name| (name, why)));
    for (name, why) in idle.clone() {
        let layers = laid(&[(name, "anything")]);
        assert_eq!(layers.ignored, [Ignored { name: name.to_owned(), why }]);
        assert!(layers.problems.is_empty());
        assert!(laid(&[(name, "")]).ignored.is_empty(), "{name} set to nothing");
    }
    let all = INCUMBENT.iter().map(|(name, _)| *name).chain(idle.clone().map(|(name, _)| name));
    let names: std::collections::BTreeSet<&str> = all.collect();
    assert_eq!(names.len(), INCUMBENT.len() + idle.count(), "a variable stands twice");
}

#[test]
fn replicas_are_shards_and_each_owns_the_one_of_its_number() {
    let sharding = |given: &[(&str, &str)]| {
        let layers = laid(given);
        assert!(layers.problems.is_empty(), "{}", layers.problems);
        let ignored: Vec<String> = layers.ignored.iter().map(|ignored| ignored.name.clone()).collect();
        let setting = |name: &str| value(&layers, &format!("reporter.sharding.{name}")).0;
        (setting("shards"), setting("shard"), ignored.join(","))
    };
    let is = |shards: &str, shard: &str, ignored: &str| {
        (format!("\"{shards}\""), format!("\"{shard}\""), ignored.to_owned())
    };
    assert_eq!(sharding(&[]), is("auto", "auto", ""));
    let one = [("EVENT_REPORTER_REPLICAS", "1")];
    assert_eq!(sharding(&one), is("auto", "auto", "EVENT_REPORTER_REPLICAS"));
    let three = [("EVENT_REPORTER_REPLICAS", "3")];
    assert_eq!(sharding(&three), is("3", "hostname", ""));
    let second = [("EVENT_REPORTER_REPLICAS", "3"), ("EVENT_REPORTER_SHARD", "1")];
    assert_eq!(sharding(&second), is("3", "1", ""));
    let unsaid = [("EVENT_REPORTER_REPLICAS", "3"), ("EVENT_REPORTER_SHARD", "-1")];
    assert_eq!(sharding(&unsaid), is("3", "hostname", ""));
    let alone = [("EVENT_REPORTER_REPLICAS", "1"), ("EVENT_REPORTER_SHARD", "2")];
    assert_eq!(sharding(&alone), is("auto", "auto", "EVENT_REPORTER_REPLICAS,EVENT_REPORTER_SHARD"));
    assert_eq!(sharding(&[("EVENT_REPORTER_SHARD", "2")]), is("auto", "2", ""));
}

#[test]
fn the_reporter_of_resources_does_not_become_a_second_one_of_applications() {
    assert_eq!(laid(&[("REPORTER_MODE", "app")]).ignored.len(), 1);
    assert_eq!(laid(&[("REPORTER_MODE", "combined")]).ignored.len(), 1);
    let of_resources = laid(&[("REPORTER_MODE", "resource")]);
    assert_eq!((of_resources.ignored.len(), of_resources.problems.is_empty()), (1, true));
    let text = laid(&[("REPORTER_MODE", "another")]).problems.to_string();
    assert!(
        text.starts_with("config: REPORTER_MODE: only app, combined and resource are understood\n"),
        "{text}"
    );
}

#[test]
fn a_runtime_of_one_namespace_has_its_objects_reported_alone() {
    let namespaces = |given: &[(&str, &str)]| {
        let layers = laid(given);
        assert!(layers.problems.is_empty() && layers.ignored.is_empty(), "{}", layers.problems);
        value(&layers, "resources.namespaces").0
    };
    assert_eq!(namespaces(&[("IS_NAMESPACED_RUNTIME", "true")]), "[]");
    for elsewhere in ["false", ""] {
        assert_eq!(namespaces(&[("IS_NAMESPACED_RUNTIME", elsewhere)]), r#"["*"]"#);
    }
    let own = ("GITOPS_RUNTIME_RESOURCES__NAMESPACES", "team-*");
    assert_eq!(namespaces(&[("IS_NAMESPACED_RUNTIME", "true"), own]), r#"["team-*"]"#);
}

#[test]
fn a_file_that_names_namespaces_is_kept_to_by_a_runtime_of_one() {
    let mut layers = Layers::default();
    let file = Origin::File("config.yaml".to_owned());
    layers.lay(serde_json::json!({"resources": {"namespaces": ["team-a"]}}), "", &file);
    incumbent(&mut layers, &variables(&[("IS_NAMESPACED_RUNTIME", "true")]));
    assert!(layers.problems.is_empty(), "{}", layers.problems);
    assert_eq!(value(&layers, "resources.namespaces"), (r#"["team-a"]"#.to_owned(), file));
    let ignored: Vec<&str> = layers.ignored.iter().map(|ignored| ignored.name.as_str()).collect();
    assert_eq!(ignored, ["IS_NAMESPACED_RUNTIME"]);
}

#[test]
fn bad_values_are_told_with_the_variable_and_never_with_a_secret() {
    let first = |name: &str, text: &str| {
        let problems = laid(&[(name, text)]).problems.to_string();
        problems.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        first("RATE_LIMITER_DURATION", "soon"),
        "config: reporter.rateLimit.window: 'soon' is not a duration such as 500ms, 30s, 2m, 24h or 7d (from \
         environment variable RATE_LIMITER_DURATION)"
    );
    assert_eq!(
        first("CODEFRESH_TLS_INSECURE", "yes"),
        "config: platform.insecure: must be true or false (from environment variable CODEFRESH_TLS_INSECURE)"
    );
    assert_eq!(
        first("ARGOCD_APPLICATION_NAMESPACES", "team-*,/team-(/"),
        "config: kubernetes.applicationNamespaces: '/team-(/' is not a pattern of namespaces such as team-*, nor a \
         regular expression such as /^team-/ (from environment variable ARGOCD_APPLICATION_NAMESPACES)"
    );
    assert_eq!(
        first("CODEFRESH_TOKEN", "canary canary"),
        "config: platform.token: must hold no space and no control character (from environment variable \
         CODEFRESH_TOKEN)"
    );
}

#[test]
fn our_own_variables_stand_above_the_incumbents_and_unknown_ones_are_refused() {
    let layers = laid(&[("LOG_LEVEL", "debug"), ("GITOPS_RUNTIME_LOG__LEVEL", "warn")]);
    assert_eq!(value(&layers, "log.level").0, "\"warn\"");
    let problems = laid(&[("GITOPS_RUNTIME_REPORTER__QUEUE__EVNTS", "5")]).problems.to_string();
    assert_eq!(
        problems.lines().next(),
        Some(
            "config: GITOPS_RUNTIME_REPORTER__QUEUE__EVNTS: unknown variable; did you mean \
             'GITOPS_RUNTIME_REPORTER__QUEUE__EVENTS'?"
        )
    );
    let first = |name: &str| laid(&[(name, "1")]).problems.to_string().lines().next().map(str::to_owned);
    let unlike = "config: GITOPS_RUNTIME_BANANAS: unknown variable";
    assert_eq!(first("GITOPS_RUNTIME_BANANAS"), Some(unlike.to_owned()));
    let removed = first("GITOPS_RUNTIME_BUS__LEASES__STORE").unwrap();
    assert!(removed.contains(": unknown variable; it was removed: leases are kept on the bus"), "{removed}");
    let file = "config: GITOPS_RUNTIME_CONFIGS: unknown variable; did you mean 'GITOPS_RUNTIME_CONFIG'?";
    assert_eq!(first("GITOPS_RUNTIME_CONFIGS"), Some(file.to_owned()));
    assert!(laid(&[(FILE, "/etc/gitops-runtime.yaml")]).problems.is_empty());
}

#[test]
fn what_kubernetes_says_of_a_service_called_like_us_is_not_taken_for_settings() {
    let links = [
        "GITOPS_RUNTIME_SERVICE_HOST",
        "GITOPS_RUNTIME_SERVICE_PORT",
        "GITOPS_RUNTIME_SERVICE_PORT_HTTP",
        "GITOPS_RUNTIME_PORT",
        "GITOPS_RUNTIME_PORT_8088_TCP",
        "GITOPS_RUNTIME_PORT_8088_TCP_ADDR",
        "GITOPS_RUNTIME_PORT_8088_TCP_PORT",
        "GITOPS_RUNTIME_PORT_8088_TCP_PROTO",
        "GITOPS_RUNTIME_REPORTER_SERVICE_HOST",
        "GITOPS_RUNTIME_REPORTER_PORT_8087_TCP_PORT",
    ];
    for name in links {
        let problems = laid(&[(name, "tcp://10.0.0.1:8088")]).problems;
        assert!(problems.is_empty(), "{problems}");
        assert!(Catalogue::get().settings.iter().all(|setting| setting.variable != name));
    }
    for name in ["GITOPS_RUNTIME_PORT_X_TCP", "GITOPS_RUNTIME_PORTS", "GITOPS_RUNTIME_SERVE__PORT_8088"] {
        assert!(!laid(&[(name, "1")]).problems.is_empty(), "{name}");
    }
}
