//! What the roles are given: settings that the program takes, the services of their namespace, credentials, and the bus.

use serde_json::{Value, json};

use crate::commands::run;
use crate::helm::{chart, object, objects, objects_of, pods, rendered, settings, values};

#[test]
fn the_settings_of_every_role_are_such_that_the_program_starts_with_them() {
    let mut seen = std::collections::BTreeSet::new();
    for file in values("good-") {
        for object in objects(&file) {
            let Some(settings) = object["data"]["config.yaml"].as_str() else { continue };
            let folder = tempfile::tempdir().unwrap();
            let config = folder.path().join("config.yaml");
            std::fs::write(&config, settings).unwrap();
            let checked = run(&["config", "check", config.to_str().unwrap()]);
            let said = String::from_utf8_lossy(&checked.stderr).into_owned();
            assert_eq!(checked.status.code(), Some(0), "{}: {said}\n{settings}", file.display());
            seen.insert(object["metadata"]["name"].as_str().unwrap().to_owned());
        }
    }
    for role in ["reporter", "platform", "router", "tunnel-client", "tunnel-server"] {
        assert!(seen.contains(&format!("prod-gitops-runtime-{role}")), "{role}: {seen:?}");
    }
}

/// The pod may reach what its settings name, and no other port.
#[test]
fn roles_find_services_of_their_namespace_without_an_account_of_kubernetes() {
    let objects = objects(&values("good-ingress-community").remove(0));
    let router = settings(&objects, "router");
    assert_eq!(router["router"]["appProxy"]["url"], "http://cap-app-proxy.runtime.svc:3017");
    assert_eq!(router["router"]["workflows"]["url"], "http://argo-server.runtime.svc:2746");
    assert_eq!(router["router"]["webhooks"]["allow"], json!(["runtime/*"]));
    let elsewhere = settings(&self::objects(&values("good-ingress-nginx").remove(0)), "router");
    assert_eq!(elsewhere["router"]["appProxy"]["url"], "https://app-proxy.example.com:3443");
    for (name, _, pod) in pods(&objects).into_iter().filter(|(name, ..)| name.ends_with("-router\"")) {
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
    }
    let objects = self::objects(&values("good-tunnel.yaml").remove(0));
    let client = settings(&objects, "tunnel-client");
    assert_eq!(client["tunnelClient"]["forward"], "http://internal-router.runtime.svc");
    assert_eq!(client["tunnelClient"]["name"], "0123456789abcdef01234567-prod");
    assert_eq!(client["tunnelClient"]["tokenFile"], "/etc/gitops-runtime/token/token");
    assert_eq!(client["tunnelClient"]["caFile"], "/etc/gitops-runtime/ca/ca.crt");
}

#[test]
fn a_source_server_that_asks_the_platform_has_its_token_and_may_reach_it() {
    let asking = objects(&values("good-source-server.yaml").remove(0));
    let alone = objects(&values("good-source-server-alone").remove(0));
    let told = settings(&asking, "source-server");
    assert_eq!(told["sourceServer"]["versions"]["askPlatform"], true);
    let callers = json!(["argocd/event-reporter", "runtime/prod-gitops-runtime-reporter=manifests"]);
    assert_eq!(told["sourceServer"]["callers"], json!({"accounts": callers}), "each may what it needs");
    assert_eq!(told["platform"]["tokenFile"], "/etc/gitops-runtime/platform/token");
    assert_eq!(told["platform"]["url"], "http://prod-gitops-runtime-platform.runtime.svc:8088");
    let secrets = |objects: &[Value]| -> Vec<Value> {
        let server = object(objects, "Deployment", "-source-server").unwrap();
        let volumes = server["spec"]["template"]["spec"]["volumes"].as_array().unwrap().clone();
        volumes.into_iter().filter(|volume| !volume["secret"].is_null()).collect()
    };
    let mounted = secrets(&asking);
    assert_eq!(mounted.len(), 1, "{mounted:?}");
    assert_eq!(mounted[0]["name"], "platform");
    assert_eq!(mounted[0]["secret"]["secretName"], "codefresh-token");
    assert!(secrets(&alone).is_empty(), "who does not ask has no token");
    let reaches = |objects: &[Value]| {
        let policy = object(objects, "NetworkPolicy", "-source-server").unwrap();
        policy["spec"]["egress"].to_string().contains("\"platform\"")
    };
    assert_eq!((reaches(&asking), reaches(&alone)), (true, false));
    for objects in [&asking, &alone] {
        let budget = object(objects, "PodDisruptionBudget", "-source-server").unwrap();
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
    }
}

#[test]
fn credentials_of_repositories_are_mounted_from_secrets_of_the_release_for_those_who_fetch() {
    let objects = objects(&values("good-git-credentials").remove(0));
    let mounted = |role: &str| -> Vec<(String, String)> {
        let deployment = object(&objects, "Deployment", &format!("-{role}")).unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let of = |volume: &Value| {
            let is_it = |mount: &&Value| mount["name"] == volume["name"];
            let mount = pod["containers"][0]["volumeMounts"].as_array().unwrap().iter().find(is_it).unwrap();
            assert_eq!(mount["readOnly"], true);
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&volume["secret"]["secretName"]), text(&mount["mountPath"]))
        };
        let volumes = pod["volumes"].as_array().unwrap();
        volumes.iter().filter(|volume| !volume["secret"].is_null()).map(of).collect()
    };
    let at = |secret: &str, path: &str| (secret.to_owned(), format!("/etc/gitops-runtime/{path}"));
    let ca = at("git-ca", "git-ca");
    assert_eq!(
        mounted("source-server"),
        [ca, at("git-team", "git/git-team"), at("git-shop", "git/git-shop")]
    );
    let hosts = at("git-hosts", "git-hosts");
    let platform = at("codefresh-token", "platform");
    assert_eq!(mounted("change-revision"), [hosts, platform, at("git-team", "git/git-team")]);
    let server = &settings(&objects, "source-server")["sourceServer"]["git"]["repositories"];
    let directories = ["/etc/gitops-runtime/git/git-team", "/etc/gitops-runtime/git/git-shop"];
    assert_eq!(server["credentials"], json!(directories));
    assert_eq!(server["caFile"], "/etc/gitops-runtime/git-ca/ca.crt");
    assert_eq!((&server["knownHostsFile"], &server["argocdSecrets"]), (&Value::Null, &json!(false)));
    let changes = &settings(&objects, "change-revision")["changeRevision"]["repositories"];
    assert_eq!(changes["credentials"], json!(["/etc/gitops-runtime/git/git-team"]));
    assert_eq!(changes["knownHostsFile"], "/etc/gitops-runtime/git-hosts/known_hosts");
}

#[test]
fn authorities_of_git_providers_are_mounted_for_the_app_proxy() {
    let objects = objects(&values("good-app-proxy.yaml").remove(0));
    let pod = &object(&objects, "Deployment", "-app-proxy").unwrap()["spec"]["template"]["spec"];
    let is_it = |one: &&Value| one["name"] == "git-ca";
    let volume = pod["volumes"].as_array().unwrap().iter().find(is_it).unwrap();
    assert_eq!(volume["secret"]["secretName"], "git-authorities");
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    assert_eq!(mounts.iter().find(is_it).unwrap()["mountPath"], "/etc/gitops-runtime/git-ca");
    assert_eq!(settings(&objects, "app-proxy")["appProxy"]["gitCaFile"], "/etc/gitops-runtime/git-ca/ca.crt");
}

#[test]
fn tunnel_servers_that_are_several_find_each_other_over_the_bus() {
    for (file, credentials) in [
        ("good-tunnel-servers.yaml", ("credentialsFile", "/etc/gitops-runtime/bus/user.creds")),
        ("good-tunnel-servers-embedded", ("tokenFile", "/etc/gitops-runtime/bus/nats-token")),
    ] {
        let objects = objects(&values(file).remove(0));
        let settings = settings(&objects, "tunnel-server");
        assert_eq!(settings["bus"][credentials.0], credentials.1, "{settings}");
        assert!(settings["tunnelServer"]["peers"]["listen"].as_str().unwrap().ends_with(":8081"));
        let server = object(&objects, "Deployment", "-tunnel-server").unwrap();
        let env = &server["spec"]["template"]["spec"]["containers"][0]["env"][0];
        assert_eq!(env["name"], "GITOPS_RUNTIME_TUNNEL_SERVER__PEERS__ADDRESS");
        assert_eq!(env["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
        let policy = &object(&objects, "NetworkPolicy", "-tunnel-server").unwrap()["spec"];
        let peers = &policy["ingress"][2];
        let from = &peers["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"];
        assert_eq!((&peers["ports"][0]["port"], from), (&json!(8081), &json!("tunnel-server")));
    }
}

#[test]
fn roles_that_need_the_bus_are_let_onto_it() {
    for (file, credentials) in [
        ("good-roles-on-bus", ("credentialsFile", "/etc/gitops-runtime/bus/user.creds")),
        ("good-roles-on-embedded-bus", ("tokenFile", "/etc/gitops-runtime/bus/nats-token")),
    ] {
        let objects = objects(&values(file).remove(0));
        let mut lets_in = Vec::new();
        for role in ["change-revision", "source-server"] {
            assert_eq!(settings(&objects, role)["bus"][credentials.0], credentials.1, "{file}: {role}");
            let deployment = object(&objects, "Deployment", &format!("-{role}")).unwrap();
            let pod = &deployment["spec"]["template"]["spec"];
            let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
            assert!(
                mounts.iter().any(|mount| mount["mountPath"] == "/etc/gitops-runtime/bus"),
                "{file}: {role}"
            );
            let policy = object(&objects, "NetworkPolicy", &format!("-{role}")).unwrap();
            let egress = policy["spec"]["egress"].as_array().unwrap();
            assert!(egress.iter().any(|rule| rule["ports"][0]["port"] == 4222), "{file}: {role}");
            lets_in
                .push(json!({"podSelector": {"matchLabels": deployment["spec"]["selector"]["matchLabels"]}}));
        }
        let callers = settings(&objects, "source-server")["sourceServer"]["callers"].clone();
        assert_eq!((&callers["bus"], &callers["busOperations"]), (&json!(true), &json!(["manifests"])));
        assert_eq!(
            settings(&objects, "gitops-runtime-reporter")["reporter"]["sources"],
            json!({"from": "bus"})
        );
        // Several have no volume, and come and go one after another.
        let changes = &object(&objects, "Deployment", "-change-revision").unwrap()["spec"];
        assert_eq!(
            (&changes["replicas"], &changes["strategy"]["type"]),
            (&json!(2), &json!("RollingUpdate"))
        );
        assert_eq!(object(&objects, "PersistentVolumeClaim", "-change-revision"), None);
        if let Some(server) = object(&objects, "NetworkPolicy", "-nats") {
            let from = server["spec"]["ingress"][0]["from"].as_array().unwrap();
            assert!(lets_in.iter().all(|role| from.contains(role)), "{from:?}");
        }
    }
}

#[test]
fn the_platform_has_more_than_an_hour_to_bring_its_store_to_the_form_of_a_new_version() {
    let objects = objects(&values("good-platform.yaml").remove(0));
    let of = &object(&objects, "Deployment", "-platform").unwrap()["spec"];
    let probe = &of["template"]["spec"]["containers"][0]["startupProbe"];
    assert_eq!(probe["httpGet"], json!({"path": "/healthz", "port": "http"}), "{probe}");
    let number = |name: &str| probe[name].as_u64().unwrap();
    let longest = number("periodSeconds") * number("failureThreshold");
    assert!(longest > 3_600, "{probe}");
    // Nor is it taken for one that does not come up.
    assert!(of["progressDeadlineSeconds"].as_u64().is_some_and(|deadline| deadline > longest), "{of}");
}

/// The port 8088 of whatever Services of a component have it, with the kind of each.
fn health_of<'a>(objects: &'a [Value], component: &str) -> Vec<(&'a str, Value)> {
    let services = objects.iter().filter(|object| object["kind"] == "Service");
    let of = |service: &&Value| service["spec"]["selector"]["app.kubernetes.io/component"] == component;
    let has = |service: &&Value| {
        service["spec"]["ports"].as_array().unwrap().iter().any(|port| port["port"] == 8088)
    };
    let named =
        |service: &'a Value| (service["metadata"]["name"].as_str().unwrap(), service["spec"]["type"].clone());
    services.filter(of).filter(has).map(named).collect()
}

#[test]
fn a_tunnel_server_that_is_reached_from_outside_shows_its_health_and_metrics_within_the_cluster_alone() {
    for kind in ["ClusterIP", "LoadBalancer", "NodePort"] {
        let objects = rendered(&json!({
            "global": {"runtime": {"name": "prod"}},
            "platform": {"enabled": true},
            "tunnelServer": {"enabled": true, "domain": "tunnels.example.com", "service": {"type": kind}},
            "metrics": {"serviceMonitor": {"enabled": true}},
        }));
        let health = health_of(&objects, "tunnel-server");
        let is_inside = kind == "ClusterIP";
        let name = format!("prod-gitops-runtime-tunnel-{}", if is_inside { "server" } else { "health" });
        assert_eq!(health, [(name.as_str(), json!("ClusterIP"))], "{kind}");
        let server = object(&objects, "Service", "-tunnel-server").unwrap();
        assert_eq!(server["spec"]["type"], kind);
        assert_eq!(server["spec"]["ports"].as_array().unwrap().len(), 1 + usize::from(is_inside));
        let test = object(&objects, "Pod", "-test-ready").unwrap().to_string();
        assert!(test.contains(&format!("http://{name}.runtime.svc:8088")), "{test}");
        let monitor = &object(&objects, "ServiceMonitor", "-tunnel-server").unwrap()["spec"];
        assert_eq!(monitor["endpoints"][0]["port"], "health");
        let labels = monitor["selector"]["matchLabels"].as_object().unwrap();
        let selected = &object(&objects, "Service", &name).unwrap()["metadata"]["labels"];
        assert!(labels.iter().all(|(key, value)| selected[key] == *value), "{selected}");
    }
}

#[test]
fn the_router_finds_the_app_proxy_of_the_chart_by_the_name_of_its_service() {
    let url = |more: Value| {
        let mut values =
            json!({"global": {"runtime": {"name": "prod", "ingressUrl": "https://runtime.example.com"}}});
        values.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        settings(&rendered(&values), "router")["router"]["appProxy"]["url"].as_str().unwrap().to_owned()
    };
    let called = json!({"enabled": true, "service": {"name": "proxy"}});
    assert_eq!(url(json!({"appProxy": called})), "http://proxy.runtime.svc:3017");
    assert_eq!(
        url(json!({"appProxy": called, "router": {"appProxyUrl": "http://other:80"}})),
        "http://other.runtime.svc:80"
    );
    assert_eq!(
        url(json!({"appProxy": {"service": {"name": "proxy"}}})),
        "http://cap-app-proxy.runtime.svc:3017"
    );
}

#[test]
fn no_pod_is_given_to_a_node_of_another_system_where_nobody_says_which_nodes_it_wants() {
    let objects = rendered(&json!({
        "global": {"runtime": {"name": "prod"}},
        "appProxy": {"enabled": true},
        "nats": {"mode": "embedded"},
        "platform": {"enabled": true},
        "validation": {"enabled": true},
    }));
    let backup = object(&objects, "CronJob", "-backup").unwrap();
    let backup = &backup["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let all: Vec<&Value> = pods(&objects).into_iter().map(|(_, _, pod)| pod).chain([backup]).collect();
    // Of reporter, platform, its backup, app proxy, bus, hook and test.
    assert_eq!(all.len(), 7);
    for pod in all {
        assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}), "{pod}");
    }
}

#[test]
fn a_pod_that_is_not_well_holds_no_node_up_where_kubernetes_can_be_told_so() {
    let set = "global.runtime.name=prod,nats.mode=embedded,appProxy.enabled=true,resourceReporter.enabled=true,\
               global.runtime.ingressUrl=https://runtime.example.com";
    let policies = |version: &str| -> Vec<Value> {
        let objects = objects_of(&chart(), &["--kube-version", version, "--set", set]).unwrap();
        let budgets = objects.iter().filter(|object| object["kind"] == "PodDisruptionBudget");
        budgets.map(|budget| budget["spec"]["unhealthyPodEvictionPolicy"].clone()).collect()
    };
    for version in ["1.27.0", "v1.33.5-gke.1162000"] {
        assert_eq!(policies(version), vec![json!("AlwaysAllow"); 5], "{version}");
    }
    // Helm refuses a field that the API server does not know, and Argo CD calls one a difference that it drops.
    for version in ["1.25.16", "1.26.15"] {
        assert_eq!(policies(version), vec![Value::Null; 5], "{version}");
    }
}
