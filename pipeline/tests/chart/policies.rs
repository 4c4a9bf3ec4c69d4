//! What the chart's policies let each role reach, and who may reach it.

use serde_json::{Value, json};

use crate::helm::{object, objects, values};

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
    assert_eq!(from[1]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], "ingress");
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
