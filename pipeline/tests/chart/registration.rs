//! What the app proxy is to tell the platform of its runtime.

use serde_json::{Value, json};

use crate::helm::{rendered, settings};

#[test]
fn a_runtime_that_registers_says_how_it_is_reached_and_what_installed_it() {
    let mut values = json!({
        "global": {
            "codefresh": {
                "accountId": "acme", "userToken": {"token": "any"},
                "runtimeToken": {"secretKeyRef": {"name": "codefresh-token", "key": "token"}},
            },
            "runtime": {
                "name": "prod", "ingress": {"enabled": true, "className": "nginx", "hosts": ["ingress.example.com"]},
            },
        },
        "appProxy": {"enabled": true, "register": true},
        "tunnelClient": {"to": "https://register.example.com", "domain": "tunnels.example.com"},
    });
    let said = |values: &Value| {
        let of = settings(&rendered(values), "app-proxy")["appProxy"]["registration"].clone();
        let fields = ["ingressHost", "accessMode", "ingressClass", "ingressController"];
        assert_eq!(of["chartVersion"], env!("CARGO_PKG_VERSION"));
        assert_eq!(of["externalArgoCd"], true);
        fields.map(|field| of[field].as_str().unwrap().to_owned())
    };
    assert_eq!(said(&values), ["https://ingress.example.com", "INGRESS", "nginx", "k8s.io/ingress-nginx"]);
    values["global"]["runtime"]["ingress"]["enabled"] = json!(false);
    assert_eq!(said(&values), ["https://acme-prod.tunnels.example.com", "TUNNEL", "", ""]);
}
