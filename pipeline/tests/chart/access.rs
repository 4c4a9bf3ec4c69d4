//! The ways in: exactly one is rendered, in the order in which the platform is told of them, each with what its controller
//! needs; and what the notes say is left to do for it.

use std::path::Path;

use serde_json::{Value, json};

use crate::commands::run;
use crate::helm::{ROOT, chart, object, objects, objects_of, rendered, settings, template, values};
use crate::texts::notes;

/// What the platform is told of the runtime.
fn told(objects: &[Value]) -> &Value {
    &object(objects, "ConfigMap", "codefresh-cm").unwrap()["data"]
}

/// The kinds that lead in, and the components that do.
fn ways(objects: &[Value]) -> Vec<String> {
    let kinds = ["Ingress", "HTTPRoute", "VirtualService"];
    let of_kind = objects.iter().filter(|object| kinds.contains(&object["kind"].as_str().unwrap()));
    let mut ways: Vec<String> = of_kind.map(|object| object["kind"].as_str().unwrap().to_owned()).collect();
    ways.extend(object(objects, "Deployment", "-tunnel-client").map(|_| "tunnel".to_owned()));
    ways
}

#[test]
fn the_platform_is_told_which_components_run() {
    let mut values = json!({
        "global": {"runtime": {"name": "prod", "ingressUrl": "https://own.example.com"}},
        "sourceServer": {"argocdCredentials": true},
    });
    let components = |values: &Value| told(&rendered(values))["components"].as_str().unwrap().to_owned();
    assert_eq!(components(&values), "- runtime-event-reporter\n- internal-router\n");
    for component in ["appProxy", "resourceReporter", "sourceServer"] {
        values[component]["enabled"] = json!(true);
    }
    let all = "- cluster-event-reporter\n- runtime-event-reporter\n- argo-gateway\n- app-proxy\n- internal-router\n";
    assert_eq!(components(&values), all);
}

#[test]
fn the_first_way_that_is_given_is_rendered_and_no_other() {
    let mut values = json!({
        "global": {
            "codefresh": {"accountId": "acme"},
            "runtime": {
                "name": "prod",
                "ingress": {"enabled": true, "hosts": ["ingress.example.com"]},
                "httpRoute": {"enabled": true, "hostnames": ["route.example.com"], "parentRefs": [{"name": "public"}]},
                "virtualService": {"enabled": true, "hosts": ["mesh.example.com"], "gateways": ["istio/public"]},
                "ingressUrl": "https://own.example.com",
            },
        },
        "tunnelClient": {"to": "https://register.example.com", "domain": "tunnels.example.com"},
    });
    let off = |values: &mut Value, at: &str| *values.pointer_mut(at).unwrap() = json!(false);
    // What leads in from outside keeps its connections for an hour, and the router keeps them longer.
    let keeps = |objects: &[Value]| settings(objects, "router")["router"]["keepAlive"].clone();
    for (way, address, next) in [
        ("Ingress", "https://ingress.example.com", "/global/runtime/ingress/enabled"),
        ("HTTPRoute", "https://route.example.com", "/global/runtime/httpRoute/enabled"),
        ("tunnel", "https://acme-prod.tunnels.example.com", ""),
        ("VirtualService", "https://mesh.example.com", "/global/runtime/virtualService/enabled"),
    ] {
        let objects = rendered(&values);
        assert_eq!(ways(&objects), [way]);
        assert_eq!(told(&objects)["ingressHost"], address);
        let components = told(&objects)["components"].as_str().unwrap();
        assert_eq!(components.contains("- codefresh-tunnel-client"), way == "tunnel", "{components}");
        assert!(components.contains("- internal-router"), "{components}");
        assert_eq!(keeps(&objects), if way == "tunnel" { Value::Null } else { json!("65m") }, "{way}");
        match next {
            "" => values["tunnelClient"]["to"] = json!(""),
            next => off(&mut values, next),
        }
    }
    let objects = rendered(&values);
    assert!(ways(&objects).is_empty());
    assert_eq!(told(&objects)["ingressHost"], "https://own.example.com");
    assert_eq!(keeps(&objects), "65m");
    assert!(
        object(&objects, "Deployment", "-router").is_some(),
        "a gateway of one's own leads to the router"
    );
    values["global"]["runtime"]["ingressUrl"] = json!("");
    let objects = rendered(&values);
    assert!(object(&objects, "Deployment", "-router").is_none(), "nothing leads to the router");
    assert_eq!(told(&objects)["ingressHost"], "");
}

#[test]
fn a_tunnel_is_named_by_the_id_of_a_runtime_whose_name_no_tunnel_has() {
    let (long, dashes) = ("a".repeat(39), format!("{}z", "a-".repeat(20)));
    for (name, adopted) in [
        ("prod", "prod"),
        ("prod-eu", "prod-eu"),
        ("a--b1", "a--b1"),
        (&*long, ""),
        (&*dashes, ""),
        ("Prod_EU.2", ""),
        ("7", "7"),
    ] {
        let mut values = json!({
            "global": {"codefresh": {"accountId": "acme"}, "runtime": {"name": name}},
            "tunnelClient": {"to": "https://register.example.com", "domain": "tunnels.example.com"},
        });
        let id = stages_platform_store::runtime_id(name);
        let address = format!("https://acme-{id}.tunnels.example.com");
        assert_eq!(told(&rendered(&values))["ingressHost"], address, "{name}");
        // A server of the frp family knows no ids of ours, but where no host is called by the name.
        values["tunnelClient"]["protocol"] = json!("frp");
        let adopted = if adopted.is_empty() { &*id } else { adopted };
        let address = format!("https://acme-{adopted}.tunnels.example.com");
        assert_eq!(told(&rendered(&values))["ingressHost"], address, "{name}");
    }
}

#[test]
fn an_adopters_name_is_taken_as_it_is_and_no_object_is_called_by_what_none_may_be() {
    for name in ["prod", "prod-eu", "prod.eu-1", "Prod_EU.2", "1st", "7", "1e3", "true", "a.-b"] {
        let values =
            json!({"global": {"runtime": {"name": name, "gitCredentials": {"password": {"value": "x"}}}}});
        let objects = rendered(&values);
        let secrets = objects.iter().filter(|object| object["kind"] == "Secret");
        let secret = secrets.filter_map(|object| object["metadata"]["name"].as_str());
        let called: Vec<&str> = secret.filter_map(|name| name.strip_suffix("-git-password")).collect();
        let is_taken = ["prod", "prod-eu", "prod.eu-1", "1st", "7", "1e3", "true"].contains(&name);
        let id = stages_platform_store::runtime_id(name);
        assert_eq!(called, [if is_taken { name } else { &*id }]);
        assert!(objects.iter().all(|object| {
            object["metadata"]["labels"].get("codefresh.io/runtime-name").is_none_or(|label| label == name)
        }));
    }
    for name in ["-a", "a-", "a b", "a/b", "\u{e9}", &"a".repeat(64)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values.yaml");
        std::fs::write(&file, json!({"global": {"runtime": {"name": name}}}).to_string()).unwrap();
        let output = template(&chart(), &["--values", file.to_str().unwrap()]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("pattern"), "{name}: {error}");
    }
}

#[test]
fn every_way_leads_the_prefixes_that_are_served_to_the_service_of_the_router() {
    for file in values("good-") {
        let objects = objects(&file);
        let Some(router) = object(&objects, "Deployment", "-router") else { continue };
        let component = router["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"].clone();
        assert_eq!(component, "router");
        let service = objects
            .iter()
            .find(|object| {
                object["kind"] == "Service"
                    && object["spec"]["selector"]["app.kubernetes.io/component"] == "router"
            })
            .unwrap();
        let name = &service["metadata"]["name"];
        let port = &service["spec"]["ports"][0];
        assert_eq!(
            (&port["name"], &port["port"], &port["targetPort"]),
            (&json!("http"), &json!(80), &json!("http"))
        );
        let has_workflows = settings(&objects, "router")["router"]["workflows"]["url"] != "";
        let mut prefixes = vec!["/webhooks"];
        prefixes.extend(has_workflows.then_some("/workflows"));
        prefixes.push("/app-proxy");
        let mut led = 0;
        for object in &objects {
            let paths: Vec<(&Value, &Value)> = match object["kind"].as_str().unwrap() {
                "Ingress" => {
                    let rules = object["spec"]["rules"].as_array().unwrap().iter();
                    let paths = rules.flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
                    let paths = paths.filter(|path| path["path"] != "/");
                    paths.map(|path| (&path["path"], &path["backend"]["service"]["name"])).collect()
                }
                "HTTPRoute" => {
                    let rule = &object["spec"]["rules"][0];
                    let matches = rule["matches"].as_array().unwrap().iter();
                    matches.map(|path| (&path["path"]["value"], &rule["backendRefs"][0]["name"])).collect()
                }
                "VirtualService" => {
                    let http = &object["spec"]["http"][0];
                    let matches = http["match"].as_array().unwrap().iter();
                    matches
                        .map(|path| (&path["uri"]["prefix"], &http["route"][0]["destination"]["host"]))
                        .collect()
                }
                _ => continue,
            };
            for (number, (path, to)) in paths.iter().enumerate() {
                assert_eq!(
                    (*path, *to),
                    (&json!(prefixes[number % prefixes.len()]), name),
                    "{}",
                    file.display()
                );
                led += 1;
            }
        }
        assert_eq!(led % prefixes.len(), 0, "{}", file.display());
    }
}

#[test]
fn each_controller_gets_the_annotations_that_it_needs_below_those_that_are_given() {
    let ingress = |file: &str, end: &str| -> (Value, Value) {
        let objects = objects(&values(file).remove(0));
        let ingress = object(&objects, "Ingress", end).unwrap().clone();
        (ingress, told(&objects).clone())
    };
    let (community, cm) = ingress("good-ingress-community", "-router");
    assert_eq!(
        community["metadata"]["annotations"],
        json!({
            "nginx.ingress.kubernetes.io/proxy-body-size": "100m",
            "nginx.ingress.kubernetes.io/proxy-buffering": "off",
            "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
            "nginx.ingress.kubernetes.io/proxy-send-timeout": "3600",
        })
    );
    assert_eq!(community["spec"]["tls"][0]["secretName"], "runtime-tls");
    assert_eq!(
        (&cm["ingressController"], &cm["ingressClassName"]),
        (&json!("k8s.io/ingress-nginx"), &json!("nginx"))
    );
    let (alb, cm) = ingress("good-ingress-alb", "-router");
    let annotations = &alb["metadata"]["annotations"];
    assert_eq!(annotations["alb.ingress.kubernetes.io/scheme"], "internal");
    assert_eq!(annotations["alb.ingress.kubernetes.io/target-type"], "ip");
    assert_eq!(annotations["alb.ingress.kubernetes.io/listen-ports"], r#"[{"HTTP": 80}, {"HTTPS": 443}]"#);
    assert!(annotations["alb.ingress.kubernetes.io/group.name"].is_null(), "an empty text takes it away");
    assert_eq!(cm["ingressController"], "ingress.k8s.aws/alb");
    for (file, controller) in [
        ("good-ingress-traefik", "traefik.io/ingress-controller"),
        ("good-ingress-ambassador", "getambassador.io/ingress-controller"),
        ("good-ingress.yaml", ""),
    ] {
        let (other, cm) = ingress(file, "-router");
        assert!(other["metadata"]["annotations"].is_null(), "{other}");
        assert_eq!(cm["ingressController"], controller);
    }
}

#[test]
fn nginx_takes_a_minion_with_the_paths_and_a_master_of_each_host_with_the_certificate() {
    let objects = objects(&values("good-ingress-nginx").remove(0));
    let minion = object(&objects, "Ingress", "-router").unwrap();
    let annotations = &minion["metadata"]["annotations"];
    assert_eq!(annotations["nginx.org/mergeable-ingress-type"], "minion");
    assert_eq!(annotations["nginx.org/websocket-services"], "entrance");
    assert!(minion["spec"]["tls"].is_null() && minion["metadata"]["labels"]["example.com/a"] == "b");
    for (end, host) in [("-master", "runtime.example.com"), ("-master-1", "hooks.example.com")] {
        let master = object(&objects, "Ingress", end).unwrap();
        assert_eq!(master["metadata"]["annotations"], json!({"nginx.org/mergeable-ingress-type": "master"}));
        assert_eq!(master["spec"]["tls"][0]["secretName"], "runtime-tls");
        assert_eq!(master["spec"]["rules"], json!([{"host": host}]));
    }
    let own = json!({"global": {"runtime": {"name": "prod", "ingress": {
        "enabled": true, "hosts": ["a.example.com"], "annotations": {"nginx.org/mergeable-ingress-type": ""},
        "tls": [{"hosts": ["a.example.com"], "secretName": "tls"}],
    }}}});
    let objects = rendered(&own);
    let alone = object(&objects, "Ingress", "-router").unwrap();
    assert_eq!(
        alone["metadata"]["annotations"]["nginx.org/proxy-buffering"], "False",
        "annotations tell whose it is"
    );
    assert_eq!(alone["spec"]["tls"][0]["secretName"], "tls");
}

#[test]
fn what_a_way_in_lacks_is_refused_with_what_it_needs() {
    for (set, said) in [
        ("global.runtime.ingress.enabled=true", "global.runtime.ingress.hosts: must be given for an Ingress"),
        ("global.runtime.httpRoute.enabled=true", "global.runtime.httpRoute: needs hostnames and parentRefs"),
        (
            "global.runtime.virtualService.enabled=true",
            "global.runtime.virtualService: needs hosts and gateways",
        ),
        (
            "tunnelClient.to=https://a.example.com",
            "global.codefresh.accountId: must be given for a tunnel, which is named after it",
        ),
        (
            "tunnelClient.to=https://a.example.com,tunnelClient.name=a-b-c",
            "tunnelClient.name: a-b-c is no name of a tunnel, which is ACCOUNT-RUNTIME of lower-case letters and digits; give one",
        ),
        (
            "tunnelClient.to=https://a.example.com,tunnelClient.name=a-b,router.enabled=false",
            "tunnelClient.forward: must be given where the router is off",
        ),
        (
            "tunnelClient.config.tunnelClient.token=x",
            "tunnelClient.config.tunnelClient.token: a secret does not belong in a ConfigMap; give \
             tunnelClient.tokenSecretKeyRef",
        ),
        ("tunnelServer.enabled=true", "tunnelServer.domain: must be given"),
        (
            "tunnelServer.enabled=true,tunnelServer.domain=a.example.com",
            "tunnelServer.tokensSecretKeyRef: must be given, or a platform of your own",
        ),
        (
            "tunnelServer.enabled=true,tunnelServer.ingress.enabled=true",
            "tunnelServer.ingress.host: must be given for an Ingress",
        ),
        (
            "tunnelServer.enabled=true,tunnelServer.httpRoute.enabled=true",
            "tunnelServer.httpRoute: needs host and parentRefs",
        ),
        (
            "tunnelServer.enabled=true,tunnelServer.httpRoute.enabled=true,tunnelServer.tls.secretName=own",
            "tunnelServer.tls.secretName: must be empty for an HTTPRoute; its Gateway ends TLS",
        ),
        (
            "tunnelServer.enabled=true,tunnelServer.domain=a.example.com,tunnelServer.replicaCount=2",
            "tunnelServer.replicaCount: more than one server needs a bus; set nats.mode",
        ),
        (
            "tunnelServer.enabled=true,tunnelServer.domain=a.example.com,tunnelServer.replicaCount=2,nats.mode=embedded,\
             reporter.enabled=false",
            "tunnelServer.replicaCount: embedded servers of the bus run beside the reporter alone; set nats.mode to existing",
        ),
        (
            "changeRevision.enabled=true,changeRevision.replicaCount=2",
            "changeRevision.replicaCount: more than one process needs a bus; set nats.mode",
        ),
        (
            "sourceServer.enabled=true,sourceServer.overBus=true",
            "sourceServer.overBus: needs a bus; set nats.mode",
        ),
        (
            "changeRevision.enabled=true,changeRevision.replicaCount=2,nats.mode=embedded,reporter.enabled=false",
            "changeRevision.replicaCount: embedded servers of the bus run beside the reporter alone; set nats.mode to existing",
        ),
        ("router.pdb.maxUnavailable=", "router.pdb: needs minAvailable or maxUnavailable"),
    ] {
        let output = template(&chart(), &["--set", &format!("global.runtime.name=prod,{set}")]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.lines().any(|line| line.trim() == said), "{set}: {error}");
    }
}

#[test]
fn the_notes_say_what_is_left_to_do_for_each_way_in() {
    for (file, said) in [
        (
            "good-ingress-alb",
            "make an alias record (Route 53: A, alias) from runtime.example.com to the load balancer",
        ),
        ("good-ingress-traefik", "providers.kubernetesIngress.publishedService.enabled"),
        (
            "good-ingress-traefik",
            "give global.runtime.ingress.tls the Secret of a certificate for runtime.example.com",
        ),
        ("good-ingress-nginx", "-report-ingress-status"),
        (
            "good-ingress-nginx",
            "its certificate is that of the master Ingress prod-gitops-runtime-router-master",
        ),
        ("good-ingress-nginx", "check access --namespace runtime --service entrance"),
        ("good-ingress-ambassador", "allow_upgrade: [websocket]"),
        ("good-ingress-community", "aws-load-balancer-backend-protocol: tcp"),
        ("good-ingress.yaml", "nothing is known of the class internal"),
        ("good-gateway", "see that a listener of the Gateway takes runtime.example.com"),
        ("good-gateway", "where the Gateway is GKE's, make a HealthCheckPolicy"),
        (
            "good-virtual-service",
            "see that a server of the Gateway istio-ingress/public takes runtime.example.com",
        ),
        (
            "good-tunnel.yaml",
            "by a tunnel to https://register-tunnels.example.com, at \
                              https://0123456789abcdef01234567-prod.tunnels.example.com; nothing is exposed",
        ),
        ("good-tunnel-adopted", "the tunnel speaks frp, which is weaker"),
        (
            "good-tunnel-adopted",
            "the tunnel opens with the runtime's token, under the key token of the Secret codefresh-token",
        ),
        (
            "good-minimal",
            "lead the prefixes /webhooks, /workflows, /app-proxy of https://runtime.example.com to the Service \
                          internal-router, port 80",
        ),
        ("good-minimal", "the router believes nobody's X-Forwarded-For"),
        (
            "good-tunnel-server.yaml",
            "make DNS records from *.tunnels.example.com and register-tunnels.example.com",
        ),
    ] {
        let file = values(file).remove(0);
        let notes = notes(&["--values", file.to_str().unwrap()]);
        assert!(notes.contains(said), "{}: {said}: {notes}", file.display());
    }
}

#[test]
fn what_the_incumbent_publishes_is_converted_into_values_that_render() {
    let folder = Path::new(ROOT).join("pipeline/doctor/tests/incumbent");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Further files, where there are some.
    if let Some(more) = std::env::var_os("DOCTOR_INCUMBENT_VALUES") {
        files.extend(std::fs::read_dir(more).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.sort();
    let mut seen = Vec::new();
    for file in files {
        let path = file.to_str().unwrap();
        if !path.ends_with(".yaml") || path.ends_with(".out.yaml") {
            continue;
        }
        let converted = run(&["values", "convert", path]);
        assert!(converted.status.success(), "{path}: {}", String::from_utf8_lossy(&converted.stderr));
        let folder = tempfile::tempdir().unwrap();
        let values = folder.path().join("values.yaml");
        std::fs::write(&values, &converted.stdout).unwrap();
        // A name that such a file leaves to who installs.
        let text = String::from_utf8(converted.stdout).unwrap();
        let tree: Value = serde_saphyr::from_str(&text).unwrap();
        let mut arguments = vec!["--values", values.to_str().unwrap()];
        if tree["global"]["runtime"]["name"].as_str().unwrap_or_default().is_empty() {
            arguments.extend(["--set", "global.runtime.name=prod,global.codefresh.accountId=acme"]);
        }
        let output = template(&chart(), &arguments);
        assert!(output.status.success(), "{path}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
        let objects = objects_of(&chart(), &arguments).unwrap();
        seen.push((file.file_stem().unwrap().to_str().unwrap().to_owned(), ways(&objects)));
    }
    let ways = |name: &str| seen.iter().find(|(file, _)| file == name).unwrap().1.clone();
    assert_eq!(ways("ingress"), ["Ingress"]);
    assert_eq!(ways("tunnel"), ["tunnel"]);
    assert_eq!(ways("tunnel-of-a-name-with-a-dash"), ["tunnel"]);
}
