//! The Ingresses beside that of the router: of a platform and of a server of tunnels.

use serde_json::{Value, json};

use crate::helm::{object, rendered, settings};

#[test]
fn the_ingresses_of_platform_and_tunnel_server_let_streams_and_large_bodies_through_as_well() {
    let annotations = |class: &str, controller: &str, tls: &str| -> [Value; 2] {
        let ingress =
            |host: &str| json!({"enabled": true, "className": class, "controller": controller, "host": host});
        let objects = rendered(&json!({
            "global": {"runtime": {"name": "prod", "ingressUrl": "https://runtime.example.com"}},
            "platform": {"enabled": true, "ingress": ingress("platform.example.com")},
            "tunnelServer": {
                "enabled": true, "domain": "tunnels.example.com", "tls": {"secretName": tls},
                "ingress": ingress("register.example.com"),
            },
        }));
        ["-platform", "-tunnel-server"]
            .map(|end| object(&objects, "Ingress", end).unwrap()["metadata"]["annotations"].clone())
    };
    let streaming = json!({
        "nginx.ingress.kubernetes.io/proxy-body-size": "100m",
        "nginx.ingress.kubernetes.io/proxy-buffering": "off",
        "nginx.ingress.kubernetes.io/proxy-read-timeout": "3600",
        "nginx.ingress.kubernetes.io/proxy-send-timeout": "3600",
    });
    assert_eq!(annotations("nginx", "", ""), [streaming.clone(), streaming.clone()]);
    let mut to_tls = streaming.clone();
    to_tls["nginx.ingress.kubernetes.io/backend-protocol"] = json!("HTTPS");
    assert_eq!(annotations("public", "ingress-nginx", "tls"), [streaming, to_tls]);
    let [platform, tunnels] = annotations("public", "nginx", "tls");
    assert_eq!(platform["nginx.org/websocket-services"], "prod-gitops-runtime-platform");
    assert!(
        platform["nginx.org/mergeable-ingress-type"].is_null()
            && platform["nginx.org/ssl-services"].is_null()
    );
    assert_eq!(tunnels["nginx.org/ssl-services"], "prod-gitops-runtime-tunnel-server");
    let [platform, tunnels] = annotations("alb", "", "");
    let alb = |name: &str| format!("alb.ingress.kubernetes.io/{name}");
    assert_eq!(
        (&platform[alb("healthcheck-path")], &tunnels[alb("success-codes")]),
        (&json!("/readyz"), &json!("404"))
    );
    for one in [&platform, &tunnels] {
        assert_eq!(one[alb("listen-ports")], r#"[{"HTTP": 80}]"#, "there is no certificate");
        assert!(one[alb("group.name")].is_null());
    }
    assert_eq!(annotations("traefik", "", "tls"), [Value::Null, Value::Null]);
    // Its router cuts what says nothing for thirty seconds.
    let lasting = json!({"haproxy.router.openshift.io/timeout": "3600s"});
    assert_eq!(annotations("openshift-default", "", ""), [lasting.clone(), lasting]);
}

/// Load balancers of AWS take certificates by an annotation, and others end TLS before an Ingress hears of it.
#[test]
fn an_ingress_whose_tls_ends_before_it_is_reached_over_https() {
    let rendered = |more: Value| {
        let mut ingress = json!({"enabled": true, "className": "alb", "host": "platform.example.com"});
        ingress.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let objects = rendered(&json!({
            "global": {"runtime": {"name": "prod", "ingressUrl": "https://runtime.example.com"}},
            "platform": {"enabled": true, "ingress": ingress},
        }));
        let settings = object(&objects, "ConfigMap", "-platform").unwrap()["data"].to_string();
        let ports = "alb.ingress.kubernetes.io/listen-ports";
        let ports =
            object(&objects, "Ingress", "-platform").unwrap()["metadata"]["annotations"][ports].clone();
        (settings.contains("externalUrl: https://platform.example.com"), ports.to_string().contains("443"))
    };
    let by_arn =
        json!({"annotations": {"alb.ingress.kubernetes.io/certificate-arn": "arn:aws:acm:1:certificate/1"}});
    let taken_away = json!({"annotations": {"alb.ingress.kubernetes.io/certificate-arn": ""}});
    // Whether it is told as https, and whether it listens so itself.
    for (more, expected) in [
        (json!({}), (false, false)),
        (by_arn, (true, true)),
        (taken_away, (false, false)),
        (json!({"protocol": "https"}), (true, false)),
        (json!({"tlsSecretName": "platform-tls"}), (true, true)),
        (json!({"tlsSecretName": "platform-tls", "protocol": "http"}), (false, true)),
    ] {
        assert_eq!(rendered(more.clone()), expected, "{more}");
    }
}

#[test]
fn a_gateway_leads_to_a_platform_which_is_told_its_address_by_it() {
    let parents = json!([{"name": "public", "namespace": "gateways"}]);
    let route = json!({"enabled": true, "host": "platform.example.com", "parentRefs": parents});
    let mut values = json!({
        "global": {"runtime": {"name": "prod"}},
        "platform": {"enabled": true, "httpRoute": route},
    });
    let objects = rendered(&values);
    let led = &object(&objects, "HTTPRoute", "-platform").unwrap()["spec"];
    assert_eq!(led["hostnames"], json!(["platform.example.com"]));
    assert_eq!(
        (&led["parentRefs"][0]["name"], &led["parentRefs"][0]["kind"]),
        (&json!("public"), &json!("Gateway"))
    );
    let to = &led["rules"][0]["backendRefs"][0];
    let service = object(&objects, "Service", "-platform").unwrap();
    assert_eq!(
        (&to["name"], &to["port"]),
        (&service["metadata"]["name"], &service["spec"]["ports"][0]["port"])
    );
    let told = |objects: &[Value]| settings(objects, "platform")["platformServer"]["externalUrl"].clone();
    assert_eq!(told(&objects), "https://platform.example.com");
    values["platform"]["httpRoute"]["protocol"] = json!("http");
    assert_eq!(told(&rendered(&values)), "http://platform.example.com");
    values["platform"]["ingress"] =
        json!({"enabled": true, "host": "ingress.example.com", "tlsSecretName": "tls"});
    assert_eq!(told(&rendered(&values)), "https://ingress.example.com");
}

#[test]
fn a_gateway_leads_clients_and_visitors_to_a_tunnel_server() {
    let route = json!({
        "enabled": true,
        "host": "register-tunnels.example.com",
        "parentRefs": [{"name": "public", "namespace": "gateways"}],
    });
    let objects = rendered(&json!({
        "global": {"runtime": {"name": "prod"}},
        "platform": {"enabled": true},
        "tunnelServer": {"enabled": true, "domain": "tunnels.example.com", "httpRoute": route},
    }));
    let led = &object(&objects, "HTTPRoute", "-tunnel-server").unwrap()["spec"];
    assert_eq!(led["hostnames"], json!(["register-tunnels.example.com", "*.tunnels.example.com"]));
    let parent = &led["parentRefs"][0];
    assert_eq!((&parent["name"], &parent["kind"]), (&json!("public"), &json!("Gateway")));
    let to = &led["rules"][0]["backendRefs"][0];
    let service = object(&objects, "Service", "-tunnel-server").unwrap();
    assert_eq!(
        (&to["name"], &to["port"]),
        (&service["metadata"]["name"], &service["spec"]["ports"][0]["port"])
    );
}
