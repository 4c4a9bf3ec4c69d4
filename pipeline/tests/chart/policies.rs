//! What the chart's policies let each role reach, and who may reach it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::helm::{ROLES, object, objects, rendered, values};

#[test]
fn the_resource_reporter_reaches_the_receivers_of_its_routes() {
    let ports = |file: &str| -> Vec<Value> {
        let objects = objects(&values(file).remove(0));
        let policy = object(&objects, "NetworkPolicy", "-resource-reporter").unwrap();
        let egress = policy["spec"]["egress"].as_array().unwrap();
        // Names, the API server and the platform come before.
        egress.iter().skip(3).map(|rule| rule["ports"].clone()).collect()
    };
    let of_routes = [4222, 4333, 443].map(|port| json!({"protocol": "TCP", "port": port}));
    assert_eq!(ports("good-resource-reporter-of-routes"), [json!(of_routes)]);
    assert_eq!(ports("good-resource-reporter.yaml"), [] as [Value; 0]);
}

#[test]
fn policies_let_each_role_reach_what_it_needs_and_be_reached_by_whom_the_values_say() {
    let objects = objects(&values("good-tunnel.yaml").remove(0));
    let policy = |component: &str| {
        object(&objects, "NetworkPolicy", &format!("-{component}")).unwrap()["spec"].clone()
    };
    let client = policy("tunnel-client");
    let egress = client["egress"].as_array().unwrap();
    assert_eq!(egress.len(), 3, "names, the server, the router: {client}");
    assert_eq!(egress[1], json!({"ports": [{"protocol": "TCP", "port": 443}]}));
    let component = &egress[2]["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"];
    assert_eq!((component, &egress[2]["ports"][0]["port"]), (&json!("router"), &json!(8080)));
    let router = policy("router");
    let from = router["ingress"][1]["from"].as_array().unwrap();
    assert_eq!(from[0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"], "tunnel-client");
    assert_eq!(
        from.last().unwrap()["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
        "ingress"
    );
    assert_eq!(
        router["egress"][1]["to"],
        json!([
            {"podSelector": {}},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ci"}}},
            {"ipBlock": {"cidr": "10.96.0.0/12"}},
        ])
    );
    let server = self::objects(&values("good-tunnel-server.yaml").remove(0));
    let server = &object(&server, "NetworkPolicy", "-tunnel-server").unwrap()["spec"];
    assert_eq!(server["ingress"][1], json!({"ports": [{"protocol": "TCP", "port": 8080}]}));
    let to = &server["egress"][1]["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"];
    assert_eq!(to, "platform");
}

#[test]
fn the_platform_reaches_the_provider_that_people_sign_in_by_at_each_of_its_ports() {
    let platform = objects(&values("good-platform.yaml").remove(0));
    let policy = &object(&platform, "NetworkPolicy", "-platform").unwrap()["spec"];
    let ports = json!([{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 8443}]);
    // Names, runtimes by their addresses, what leads to those of this release, and the provider.
    let egress = policy["egress"].as_array().unwrap();
    assert_eq!(egress.len(), 4, "{policy}");
    let runtimes = json!([{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 80}]);
    assert_eq!(egress[1], json!({"ports": runtimes}));
    let component =
        |at: usize| egress[2]["to"][at]["podSelector"]["matchLabels"]["app.kubernetes.io/component"].clone();
    assert_eq!((component(0), component(1)), (json!("tunnel-server"), json!("router")));
    assert_eq!(egress[3], json!({"ports": ports}), "the issuer's is given twice, and allowed once");
}

/// The rules of egress of a component.
fn egress(objects: &[Value], component: &str) -> Vec<Value> {
    let policy = object(objects, "NetworkPolicy", &format!("gitops-runtime-{component}")).unwrap();
    policy["spec"]["egress"].as_array().unwrap().clone()
}

/// The ports at which a component may reach whomever it likes.
fn open_ports(objects: &[Value], component: &str) -> Vec<u64> {
    let rules = egress(objects, component).into_iter().filter(|rule| rule["to"].is_null());
    let ports = rules.flat_map(|rule| rule["ports"].as_array().unwrap().clone());
    ports.filter(|port| port["protocol"] == "TCP").map(|port| port["port"].as_u64().unwrap()).collect()
}

#[test]
fn argo_cd_is_reached_by_the_labels_that_its_manifests_and_its_chart_give_its_pods() {
    let objects = rendered(&json!({
        "global": {"runtime": {"name": "prod"}, "integrations": {"argo-cd": {"namespace": "argocd"}}},
        "appProxy": {"enabled": true},
    }));
    let peer = |labels: Value| {
        json!({
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "argocd"}},
            "podSelector": {"matchLabels": labels},
        })
    };
    let of_manifests = json!({"app.kubernetes.io/name": "argocd-server"});
    let of_chart = json!({"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"});
    for component in ["reporter", "app-proxy"] {
        let rules = egress(&objects, component);
        let argocd = rules.iter().find(|rule| rule["to"].to_string().contains("argocd")).unwrap();
        assert_eq!(
            *argocd,
            json!({"to": [peer(of_manifests.clone()), peer(of_chart.clone())]}),
            "{component}"
        );
    }
}

#[test]
fn an_argo_cd_of_its_operator_is_reached_by_the_one_label_of_its_pods_the_name_of_its_service() {
    let server = json!({"svc": "openshift-gitops-server", "port": 443});
    let objects = rendered(&json!({
        "global": {
            "runtime": {"name": "prod"},
            "integrations": {"argo-cd": {"namespace": "openshift-gitops", "server": server}},
        },
        "appProxy": {"enabled": true},
    }));
    let peer = json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-gitops"}},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "openshift-gitops-server"}},
    });
    for component in ["reporter", "app-proxy"] {
        let peers: Vec<Value> = egress(&objects, component)
            .iter()
            .flat_map(|rule| rule["to"].as_array().cloned().unwrap_or_default())
            .collect();
        assert!(peers.contains(&peer), "{component}: {peers:?}");
    }
}

#[test]
fn an_argo_cd_that_is_named_by_the_address_of_its_service_is_reached_at_the_port_of_its_pods() {
    let of = |server: Value, config: Value| {
        let objects = rendered(&json!({
            "global": {"runtime": {"name": "prod"}, "integrations": {"argo-cd": {"server": server}}},
            "reporter": {"config": config, "sink": "stdout"},
            "appProxy": {"enabled": true, "sealingUrl": ""},
        }));
        let reached = |component: &str| {
            let ports = open_ports(&objects, component);
            ports
                .into_iter()
                .filter(|port| ![53, 5353, 443, 6443, 8443, 16443].contains(port))
                .collect::<Vec<_>>()
        };
        assert_eq!(reached("app-proxy"), reached("reporter"));
        reached("reporter")
    };
    let none = json!({});
    for url in [
        "http://argocd-server.argocd.svc",
        "http://argocd-server.argocd.svc.cluster.local/argo",
        "http://argocd-server",
    ] {
        assert_eq!(of(json!({"url": url}), none.clone()), [80, 8080], "{url}");
        assert_eq!(of(json!({}), json!({"argocd": {"url": url}})), [80, 8080], "{url}");
    }
    assert_eq!(of(json!({"url": "https://argocd-server.argocd.svc"}), none.clone()), [8080]);
    assert_eq!(of(json!({"url": "http://argocd.example.com:8080"}), none.clone()), [8080]);
    assert_eq!(of(json!({"url": "http://argocd.example.com"}), none), [80]);
}

#[test]
fn the_router_reaches_pods_of_the_namespace_of_a_service_that_its_addresses_name() {
    let egress = |url: &str| {
        let objects = rendered(&json!({
            "global": {"runtime": {"name": "prod", "ingressUrl": "https://runtime.example.com"}},
            "router": {"appProxyUrl": url},
        }));
        let rules = egress(&objects, "router");
        (rules[1]["to"].clone(), open_ports(&objects, "router"))
    };
    let own = json!({"podSelector": {}});
    let other = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}});
    assert_eq!(egress("http://cap-app-proxy.runtime.svc:3017"), (json!([own]), vec![53, 5353]));
    assert_eq!(egress("http://cap-app-proxy.other.svc:3017"), (json!([own, other]), vec![53, 5353]));
    assert_eq!(egress("https://proxy.example.com:3443"), (json!([own]), vec![53, 5353, 3443]));
}

#[test]
fn a_source_server_reaches_what_it_may_fetch_at_the_ports_that_are_said() {
    let objects = rendered(&json!({
        "global": {"runtime": {"name": "prod"}},
        "sourceServer": {"enabled": true, "allowed": [
            "https://git.example.com:8443/team", "ssh://git@git.example.com:7999", "https://[2001:db8::1]:9443/a",
            "git@git.example.com:2022", "https://git.example.com",
        ]},
    }));
    assert_eq!(open_ports(&objects, "source-server")[6..], [443, 80, 22, 8443, 7999, 9443]);
}

#[test]
fn receivers_that_settings_alone_name_are_reached_by_every_role() {
    let mut values = json!({
        "global": {"runtime": {"name": "prod"}, "codefresh": {"accountId": "acme"}},
        "tunnelClient": {"to": "https://register.example.com", "domain": "tunnels.example.com"},
        "tunnelServer": {"domain": "tunnels.example.com"},
        "sourceServer": {"argocdCredentials": true},
    });
    for (group, _) in ROLES {
        values[group]["enabled"] = json!(true);
        values[group]["config"] = json!({"traces": {"otlp": {"url": "http://collector.example.com:4318"}}});
    }
    values["reporter"]["config"]["reporter"] =
        json!({"sink": {"kind": "cloudevents", "cloudevents": {"url": "https://broker.example.com:8443/a"}}});
    let objects = rendered(&values);
    for (_, component) in ROLES {
        assert!(open_ports(&objects, component).contains(&4318), "{component}");
    }
    assert!(open_ports(&objects, "reporter").contains(&8443));
    values["appProxy"]["config"]["appProxy"] = json!({
        "workflows": {"url": "https://argo-server.argo:2746"}, "sealedSecrets": {"url": "http://sealed:8081"},
    });
    let open = open_ports(&rendered(&values), "app-proxy");
    assert!(open.contains(&2746) && open.contains(&8081), "{open:?}");
}

#[test]
fn an_address_that_only_settings_name_is_let_through_whatever_it_is_of() {
    let open = |group: &str, component: &str, config: &Value| {
        let mut values = json!({
            "global": {"runtime": {"name": "prod"}, "codefresh": {"accountId": "acme"}},
            "tunnelClient": {"to": "https://register.example.com", "domain": "tunnels.example.com"},
            "router": {"enabled": true},
        });
        values[group]["enabled"] = json!(true);
        values[group]["config"] = config.clone();
        open_ports(&rendered(&values), component)
    };
    let platform = json!({"platform": {"url": "https://platform.example.com:9443"}});
    for (group, component) in [("reporter", "reporter"), ("appProxy", "app-proxy")] {
        assert!(open(group, component, &platform).contains(&9443), "{component}");
    }
    let bus = json!({"bus": {"url": "nats://user:pass@a.example.com:4333, b.example.com:4334"}});
    let reporter = open("reporter", "reporter", &bus);
    assert!(reporter.contains(&4333) && reporter.contains(&4334), "{reporter:?}");
    let router = json!({"router": {"workflows": {"url": "HTTP://argo-server.argo.svc:3746"}}});
    assert!(open("router", "router", &router).contains(&3746));
}

#[test]
fn a_text_in_settings_that_is_no_address_opens_nothing_and_is_rendered() {
    let texts = [
        "ssh://git@git.example.com:team/x",
        "https://host:PORT/a",
        "https://{host}/a",
        "http://[a-z]+.example:9",
        "urn://{kind}",
        "https://[::1/{x}",
        "file:///x",
        "no address: http://",
    ];
    let policies = |config: Value| {
        let values = json!({"global": {"runtime": {"name": "prod"}}, "reporter": {"config": config}});
        open_ports(&rendered(&values), "reporter")
    };
    let none = policies(json!({}));
    let own =
        json!({"source": "https://source.example.com:7443", "externalUrl": "https://own.example.com:7444"});
    assert_eq!(policies(json!({"some": {"texts": texts}, "own": own, "number": 1})), none);
    let odd =
        policies(json!({"some": ["https://a.example.com:7445/%zz?{x}", [["ssh://git@b.example.com/%"]]]}));
    assert_eq!(odd, [&none[..], &[22, 7445]].concat());
}

#[test]
fn a_service_that_settings_name_is_reached_at_whichever_port_its_pods_have() {
    let config = json!({"traces": {"otlp": {"url": "http://collector.tracing.svc:80"}}});
    let values = json!({"global": {"runtime": {"name": "prod"}}, "reporter": {"config": config}});
    let objects = rendered(&values);
    let policy = object(&objects, "NetworkPolicy", "-reporter").unwrap();
    let last = policy["spec"]["egress"].as_array().unwrap().last().unwrap();
    let tracing = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "tracing"}}});
    assert_eq!(*last, json!({"to": [tracing]}));
    let config = json!({"traces": {"otlp": {"url": "http://collector:80"}}});
    let values = json!({"global": {"runtime": {"name": "prod"}}, "reporter": {"config": config}});
    let objects = rendered(&values);
    let policy = object(&objects, "NetworkPolicy", "-reporter").unwrap();
    assert_eq!(
        *policy["spec"]["egress"].as_array().unwrap().last().unwrap(),
        json!({"to": [{"podSelector": {}}]})
    );
}

/// What policies of one namespace say of components: who is let out to whom, at which port, and whether that one lets it in.
fn passages(objects: &[Value]) -> BTreeMap<String, bool> {
    let component = |selector: &Value| {
        let labels = &selector["matchLabels"];
        let is_ours = labels["app.kubernetes.io/name"] == "gitops-runtime";
        labels["app.kubernetes.io/component"].as_str().filter(|_| is_ours).map(str::to_owned)
    };
    let rules = |policy: &Value, way: &str| policy["spec"][way].as_array().cloned().unwrap_or_default();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let policies = objects.iter().filter(|object| object["kind"] == "NetworkPolicy");
    let policies: BTreeMap<String, &Value> =
        policies.map(|policy| (component(&policy["spec"]["podSelector"]).unwrap(), policy)).collect();
    let lets_in = |to: &str, from: &str, port: &Value| {
        let Some(policy) = policies.get(to) else { return true };
        rules(policy, "ingress").iter().any(|rule| {
            let is_from = |peer: &Value| component(&peer["podSelector"]).as_deref() == Some(from);
            list(&rule["ports"]).contains(port)
                && (rule["from"].is_null() || list(&rule["from"]).iter().any(is_from))
        })
    };
    let mut passages = BTreeMap::new();
    for (from, policy) in &policies {
        for rule in rules(policy, "egress") {
            for to in list(&rule["to"]).iter().filter_map(|peer| component(&peer["podSelector"])) {
                for port in list(&rule["ports"]) {
                    let passage = format!("{from} to {to} at {}", port["port"]);
                    passages.insert(passage, lets_in(&to, from, &port));
                }
            }
        }
    }
    passages
}

#[test]
fn a_component_that_may_reach_another_is_let_in_there_whoever_else_is() {
    let strangers = json!([{"podSelector": {"matchLabels": {"app": "stranger"}}}]);
    let mut values = json!({
        "global": {"runtime": {"name": "prod"}, "codefresh": {"accountId": "acme"}},
        "appProxy": {"enabled": true},
        "changeRevision": {"enabled": true, "report": true},
        "nats": {"mode": "embedded", "replicaCount": 3},
        "platform": {"enabled": true},
        "resourceReporter": {"enabled": true},
        "sourceServer": {"enabled": true, "argocdCredentials": true, "askPlatform": true, "overBus": true},
        "tunnelClient": {"to": "http://prod-gitops-runtime-tunnel-server.runtime.svc", "domain": "tunnels.example.com"},
        "tunnelServer": {"enabled": true, "domain": "tunnels.example.com", "replicaCount": 2},
        "networkPolicy": {},
    });
    for from in ["metricsFrom", "platformFrom", "appProxyFrom", "sourceServerFrom", "routerFrom"] {
        values["networkPolicy"][from] = strangers.clone();
    }
    let all = passages(&rendered(&values));
    assert!(all.len() > 25, "{all:?}");
    let closed: Vec<_> = all.iter().filter(|(_, is_open)| !**is_open).collect();
    assert!(closed.is_empty(), "{closed:?}");
    for file in self::values("good-") {
        let closed: Vec<_> = passages(&objects(&file)).into_iter().filter(|(_, is_open)| !is_open).collect();
        assert!(closed.is_empty(), "{}: {closed:?}", file.display());
    }
}

#[test]
fn further_rules_of_egress_are_those_of_every_role_and_a_backup_is_left_alone_by_a_mesh() {
    let values = json!({
        "global": {"runtime": {"name": "prod"}, "codefresh": {"accountId": "acme"}},
        "appProxy": {"enabled": true},
        "changeRevision": {"enabled": true},
        "nats": {"mode": "embedded"},
        "networkPolicy": {"extraEgress": [{"ports": [{"protocol": "TCP", "port": 15012}]}]},
        "platform": {"enabled": true},
        "resourceReporter": {"enabled": true},
        "sourceServer": {"enabled": true, "argocdCredentials": true},
        "tunnelClient": {"to": "https://tunnels.example.com", "domain": "tunnels.example.com"},
        "tunnelServer": {"enabled": true, "domain": "tunnels.example.com"},
    });
    let objects = rendered(&values);
    let mut without = Vec::new();
    for policy in objects.iter().filter(|object| object["kind"] == "NetworkPolicy") {
        let egress = policy["spec"]["egress"].as_array().into_iter().flatten();
        if egress.filter(|rule| rule["ports"][0]["port"] == 15012).count() == 0 {
            let labels = &policy["spec"]["podSelector"]["matchLabels"];
            without.push(labels["app.kubernetes.io/component"].as_str().unwrap());
        }
    }
    without.sort_unstable();
    assert_eq!(without, ["platform-backup", "test"]);
    let backup = object(&objects, "CronJob", "-backup").unwrap();
    let metadata = &backup["spec"]["jobTemplate"]["spec"]["template"]["metadata"];
    assert_eq!(metadata["labels"]["sidecar.istio.io/inject"], "false");
    assert_eq!(metadata["annotations"]["linkerd.io/inject"], "disabled");
}
