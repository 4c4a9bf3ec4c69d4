//! What the objects promise: the restricted standard, labels that never change, no secret where others read.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::helm::{
    NAMESPACE, ROOT, Rendered, chart, expect, object, objects, objects_of, pods, rendered, template, text,
    values,
};
use crate::texts::described;

#[test]
fn every_good_file_renders_the_same_twice() {
    for file in values("good-") {
        assert_eq!(text(&file), Rendered::anew(&file).text, "{}", file.display());
    }
}

#[test]
fn what_helm_refuses_the_doctor_has_found() {
    let mut refused = 0;
    for file in values("") {
        if file.file_name().unwrap().to_str().unwrap().starts_with("good-") {
            // It is rendered for others too, and fails unless Helm says nothing.
            text(&file);
            continue;
        }
        let output = template(&chart(), &["--values", file.to_str().unwrap()]);
        let said = std::fs::read_to_string(file.with_extension("txt")).unwrap();
        let found = said.lines().any(|line| line.starts_with("error GR00"));
        assert!(
            output.status.success() || found,
            "{}: {}",
            file.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        refused += usize::from(!output.status.success());
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn every_object_stands_in_the_namespace_of_the_release_or_of_argo_cd() {
    for file in values("good-") {
        let objects = objects(&file);
        let mut names = BTreeSet::new();
        for object in &objects {
            let (kind, metadata) = (object["kind"].as_str().unwrap(), &object["metadata"]);
            let place = match &metadata["namespace"] {
                Value::Null => {
                    assert!(kind.starts_with("ClusterRole"), "{kind} {}", metadata["name"]);
                    ""
                }
                namespace => namespace.as_str().unwrap(),
            };
            assert!(["", NAMESPACE, "argocd"].contains(&place), "{kind} in {place}");
            let name = metadata["name"].as_str().unwrap();
            assert!(names.insert((kind, place.to_owned(), name)), "{kind} {name} is rendered twice");
        }
    }
}

#[test]
fn every_pod_keeps_to_the_restricted_standard_and_a_read_only_root() {
    let mut seen = BTreeSet::new();
    for file in values("good-") {
        for (name, _, pod) in pods(&objects(&file)) {
            let at = format!("{}: {name}", file.display());
            let security = &pod["securityContext"];
            assert_eq!(security["runAsNonRoot"], true, "{at}");
            assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault", "{at}");
            assert_ne!(security["runAsUser"], 0, "{at}");
            for host in ["hostNetwork", "hostPID", "hostIPC"] {
                assert!(pod[host].is_null(), "{at}");
            }
            let all = ["initContainers", "containers"].into_iter();
            for container in all.filter_map(|kind| pod[kind].as_array()).flatten() {
                let security = &container["securityContext"];
                assert_eq!(security["allowPrivilegeEscalation"], false, "{at}");
                assert_eq!(security["capabilities"], json!({"drop": ["ALL"]}), "{at}");
                assert_eq!(security["readOnlyRootFilesystem"], true, "{at}");
                assert!(
                    container["ports"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .all(|port| port["hostPort"].is_null())
                );
                assert!(container["resources"]["requests"]["memory"].is_string(), "{at}");
                assert!(container["resources"]["limits"]["memory"].is_string(), "{at}");
            }
            let allowed = ["configMap", "emptyDir", "persistentVolumeClaim", "secret"];
            for volume in pod["volumes"].as_array().into_iter().flatten() {
                let kinds = volume.as_object().unwrap().keys().filter(|key| *key != "name");
                assert!(kinds.into_iter().all(|kind| allowed.contains(&kind.as_str())), "{at}: {volume}");
            }
            seen.insert(name);
        }
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn every_claim_is_mounted_by_a_pod_that_runs() {
    let mut seen = 0;
    for file in values("good-") {
        let objects = objects(&file);
        let pods = objects
            .iter()
            .filter(|object| object["kind"] != "CronJob")
            .map(|object| &object["spec"]["template"]);
        let volumes = pods.filter_map(|pod| pod["spec"]["volumes"].as_array()).flatten();
        let mounted: BTreeSet<&str> =
            volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str()).collect();
        for claim in objects.iter().filter(|object| object["kind"] == "PersistentVolumeClaim") {
            // One that waits for its first pod is never bound else, and `helm --wait` waits for it.
            let name = claim["metadata"]["name"].as_str().unwrap();
            assert!(mounted.contains(name), "{}: {name}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn pull_secrets_proxies_and_places_reach_every_pod() {
    let file = values("good-private").remove(0);
    let objects = objects(&file);
    for (name, _, pod) in pods(&objects) {
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "regcred"}]), "{name}");
        assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}), "{name}");
        assert_eq!(pod["tolerations"][0]["key"], "dedicated", "{name}");
        let spread = &pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"];
        assert!(spread["app.kubernetes.io/component"].is_string(), "{name}");
        let image = pod["containers"][0]["image"].as_str().unwrap();
        assert!(image.starts_with("registry.example.com/mirror/gitops-runtime:0.1.0@sha256:"), "{image}");
        // OpenShift gives user and group.
        assert!(pod["securityContext"]["runAsUser"].is_null() && pod["securityContext"]["fsGroup"].is_null());
    }
    let reporter = object(&objects, "Deployment", "-runtime-reporter").unwrap();
    let env = reporter["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    let value = |name: &str| env.iter().find(|variable| variable["name"] == name).unwrap();
    assert_eq!(value("HTTPS_PROXY")["value"], "http://proxy.example.com:3128");
    let direct = value("NO_PROXY")["value"].as_str().unwrap();
    assert!(
        direct.starts_with("$(KUBERNETES_SERVICE_HOST),") && direct.ends_with(",.example.com"),
        "{direct}"
    );
    assert_eq!(value("B")["value"], "1");
    assert_eq!(value("POD")["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
}

#[test]
fn further_variables_and_volumes_reach_the_pod_of_every_role_and_a_budget_where_several_may_run() {
    let role = |more: Value| {
        let mut values = json!({
            "enabled": true,
            "extraEnv": {
                "A": "b", "N": 1, "MANY": 16_777_216, "HALF": 0.5, "IS": true, "NONE": null,
                "POD": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            },
            "extraVolumes": [{"name": "more", "emptyDir": {}}],
            "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        });
        values.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        values
    };
    let objects = rendered(&json!({
        "global": {
            "httpsProxy": "http://proxy.example.com:3128", "codefresh": {"accountId": "acme"}, "runtime": {"name": "prod"},
        },
        "reporter": role(json!({})),
        "platform": role(json!({})),
        "router": role(json!({})),
        "tunnelClient": role(json!({"to": "https://register.example.com", "domain": "tunnels.example.com"})),
        "tunnelServer": role(json!({"domain": "tunnels.example.com"})),
        "appProxy": role(json!({})),
        "resourceReporter": role(json!({})),
        "changeRevision": role(json!({})),
        "sourceServer": role(json!({"argocdCredentials": true})),
    }));
    let roles: Vec<_> =
        pods(&objects).into_iter().filter(|(name, ..)| name.starts_with("\"Deployment\"")).collect();
    assert_eq!(roles.len(), 9);
    for (name, _, pod) in roles {
        let container = &pod["containers"][0];
        let env = container["env"].as_array().unwrap();
        let value = |name: &str| env.iter().find(|variable| variable["name"] == name).unwrap();
        for (variable, text) in
            [("A", "b"), ("N", "1"), ("MANY", "16777216"), ("HALF", "0.5"), ("IS", "true")]
        {
            assert_eq!(value(variable)["value"], text, "{name}");
        }
        assert!(env.iter().all(|variable| variable["name"] != "NONE"), "{name}");
        assert_eq!(value("POD")["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name", "{name}");
        assert_eq!(value("HTTPS_PROXY")["value"], "http://proxy.example.com:3128", "{name}");
        let is_more = |one: &Value| one["name"] == "more";
        let mount = container["volumeMounts"].as_array().unwrap().iter().find(|one| is_more(one)).unwrap();
        assert_eq!(mount["mountPath"], "/more", "{name}");
        assert!(pod["volumes"].as_array().unwrap().iter().any(is_more), "{name}");
        let component = name.trim_end_matches('"').rsplit("gitops-runtime").next().unwrap();
        // One process writes the platform's store.
        let budget = object(&objects, "PodDisruptionBudget", &format!("gitops-runtime{component}"));
        assert_eq!(budget.is_some(), component != "-platform", "{name}");
    }
}

/// The group of the values that a component's are in.
fn group(component: &str) -> String {
    let mut words = component.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    let rest = words.map(|word| {
        let (head, tail) = word.split_at(1);
        head.to_uppercase() + tail
    });
    first + &rest.collect::<String>()
}

#[test]
fn the_doctor_knows_every_volume_that_the_chart_gives_to_pods() {
    let mut seen = 0;
    for file in values("good-") {
        let text = std::fs::read_to_string(&file).unwrap();
        let given: Value = serde_saphyr::from_str(&text).unwrap();
        for object in objects(&file).iter().filter(|object| object["kind"] == "Deployment") {
            let component = object["metadata"]["labels"]["app.kubernetes.io/component"].as_str().unwrap();
            let group = group(component);
            let further = given[&group]["extraVolumes"].as_array().cloned().unwrap_or_default();
            for volume in object["spec"]["template"]["spec"]["volumes"].as_array().unwrap() {
                let name = volume["name"].as_str().unwrap();
                let is_further = further.iter().any(|one| one["name"] == name);
                let is_own = pipeline_doctor::is_own_volume(&group, name);
                assert!(is_own != is_further, "{}: {name} of {group}", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn a_specific_registry_stands_above_the_global_one() {
    let set = "global.runtime.name=prod,global.imageRegistry=mirror.example.com,image.registry=own.example.com,\
               nats.mode=embedded";
    let output = template(&chart(), &["--set", set]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\"own.example.com/gitops-runtime:0.1.0\""), "{text}");
    assert!(text.contains("\"mirror.example.com/nats:"), "{text}");
    // Without any, no short name is left to CRI-O; a repository may have its own.
    let nats = |set: &str| {
        let objects = with(set);
        let pod = &object(&objects, "StatefulSet", "-nats").unwrap()["spec"]["template"]["spec"];
        pod["containers"][0]["image"].as_str().unwrap().rsplit_once(':').unwrap().0.to_owned()
    };
    assert_eq!(nats("nats.mode=embedded"), "docker.io/nats");
    assert_eq!(nats("nats.mode=embedded,nats.image.repository=quay.io/team/nats"), "quay.io/team/nats");
}

#[test]
fn what_workloads_select_by_never_changes() {
    let mut lines = BTreeSet::new();
    for file in values("good-") {
        for object in objects(&file) {
            let selector = match object["kind"].as_str().unwrap() {
                "Deployment" | "StatefulSet" => &object["spec"]["selector"]["matchLabels"],
                "Service" => &object["spec"]["selector"],
                _ => continue,
            };
            let mut line = format!("{} {}: {selector}", object["kind"], object["metadata"]["name"]);
            if object["kind"] == "StatefulSet" {
                let claim = &object["spec"]["volumeClaimTemplates"][0]["metadata"];
                let _ = write!(line, " {claim}");
                assert_eq!(object["spec"]["serviceName"], object["metadata"]["name"]);
            }
            lines.insert(line);
            // A selector selects its own pods.
            if let Some(labels) = object["spec"]["template"]["metadata"]["labels"].as_object() {
                let selects = |(key, value): (&String, &Value)| labels.get(key) == Some(value);
                assert!(selector.as_object().unwrap().iter().all(selects));
            }
        }
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    expect(&Path::new(ROOT).join("pipeline/tests/chart/selectors.txt"), &text);
}

#[test]
fn a_secret_stands_in_secrets_alone() {
    let file = values("bad-inline-secrets").remove(0);
    let objects = objects(&file);
    let mut secrets = Vec::new();
    for object in &objects {
        if object["kind"] == "Secret" {
            secrets.push(object["metadata"]["name"].as_str().unwrap());
        } else {
            assert!(!object.to_string().contains("not-to-be-shown"), "{object}");
        }
    }
    secrets.sort_unstable();
    assert_eq!(
        secrets,
        [
            "codefresh-user-token",
            "gitops-runtime-argo-cd-token",
            "prod-git-password",
            "prod-gitops-runtime-generated"
        ]
    );
}

/// What these values render to, beside a runtime's name.
pub(crate) fn with(set: &str) -> Vec<Value> {
    let set = format!("global.runtime.name=prod,{set}");
    let output = template(&chart(), &["--set", &set]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

#[test]
fn an_account_logs_in_by_a_password_that_stands_in_a_secret() {
    const AUTH: &str = "global.integrations.argo-cd.server.auth";
    let objects =
        with(&format!("{AUTH}.type=password,{AUTH}.password=not-to-be-shown,{AUTH}.username=reports"));
    let secret = object(&objects, "Secret", "gitops-runtime-argo-cd-password").unwrap();
    assert_eq!(secret["stringData"], json!({"token": "not-to-be-shown"}));
    let others = objects.iter().filter(|object| object["kind"] != "Secret");
    assert!(others.into_iter().all(|object| !object.to_string().contains("not-to-be-shown")));
    let settings =
        object(&objects, "ConfigMap", "-reporter").unwrap()["data"]["config.yaml"].as_str().unwrap();
    assert!(settings.contains("passwordFile: /etc/gitops-runtime/argocd/token\n"), "{settings}");
    assert!(settings.contains("username: reports\n") && !settings.contains("/argocd-token"), "{settings}");
    let by_reference = with(&format!("{AUTH}.type=password"));
    assert!(object(&by_reference, "Secret", "-password").is_none());
    let deployment = object(&by_reference, "Deployment", "-reporter").unwrap();
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let argocd = volumes.iter().find(|volume| volume["name"] == "argocd").unwrap();
    assert_eq!(argocd["secret"]["secretName"], "argocd-initial-admin-secret");
}

#[test]
fn a_token_of_the_bus_that_looks_like_a_number_is_one() {
    let objects = with("nats.mode=embedded");
    let nats = object(&objects, "ConfigMap", "-nats").unwrap()["data"]["nats.conf"].as_str().unwrap();
    let pod = &object(&objects, "StatefulSet", "-nats").unwrap()["spec"]["template"]["spec"];
    let told = |name: &str| {
        let all = pod["containers"][0]["env"].as_array().unwrap().iter();
        all.clone().find(|one| one["name"] == name).unwrap()["value"].as_str().unwrap().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nats.conf");
    std::fs::write(&file, nats).unwrap();
    for token in ["12e5ab34cd", "12345", "an ordinary token"] {
        let mut server = std::process::Command::new(loadtest::sim::nats::program().unwrap());
        let server = server.arg("-t").arg("-c").arg(&file).env("POD_NAME", "nats-0");
        let said = server.env("NATS_TOKEN", told("NATS_TOKEN").replace("$(TOKEN)", token)).output().unwrap();
        assert!(said.status.success(), "{token}: {}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn what_nobody_gives_is_made_in_one_secret_that_renders_empty_and_stays() {
    let objects = with("nats.mode=embedded");
    let secret = object(&objects, "Secret", "-generated").unwrap();
    assert!(secret["data"].is_null() && secret["stringData"].is_null(), "{secret}");
    assert_eq!(secret["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    let pod = &object(&objects, "Deployment", "-reporter").unwrap()["spec"]["template"]["spec"];
    let made = pod["initContainers"][0]["args"].as_array().unwrap();
    let keys: Vec<&Value> =
        made.iter().filter(|argument| argument.as_str().unwrap().starts_with("--key")).collect();
    assert_eq!(keys, ["--key=nats-token", "--key=redaction-key"]);
    // The servers read it of the same Secret, and hold no right at all.
    let nats = &object(&objects, "StatefulSet", "-nats").unwrap()["spec"]["template"]["spec"];
    assert_eq!(nats["automountServiceAccountToken"], false);
    assert!(nats["initContainers"].is_null() && nats["serviceAccountName"].is_null());
    let token = &nats["containers"][0]["env"][1]["valueFrom"]["secretKeyRef"];
    assert_eq!(*token, json!({"name": "prod-gitops-runtime-generated", "key": "nats-token"}));
    // Where all is given there is nothing to make, and no right to.
    let given = with(
        "nats.mode=embedded,nats.auth.tokenSecretKeyRef.name=bus,nats.auth.tokenSecretKeyRef.key=token,\
         reporter.redactionKey.secretKeyRef.name=key,reporter.redactionKey.secretKeyRef.key=key",
    );
    assert!(object(&given, "Secret", "-generated").is_none());
    assert!(given.iter().all(|object| !object.to_string().contains("generated")));
    let pod = &object(&given, "Deployment", "-reporter").unwrap()["spec"]["template"]["spec"];
    assert!(pod["initContainers"].is_null());
}

#[test]
fn a_mesh_is_told_that_servers_of_the_bus_speak_first() {
    // Also where a file of values has the key of the pods' annotations, and nothing behind it.
    for more in ["", ",nats.podAnnotations=null"] {
        let objects = with(&format!("nats.mode=embedded,nats.replicaCount=3{more}"));
        let service = object(&objects, "Service", "-nats").unwrap();
        let ports = service["spec"]["ports"].as_array().unwrap();
        assert!(ports.iter().all(|port| port["appProtocol"] == "tcp"), "{service}");
        let pod = &object(&objects, "StatefulSet", "-nats").unwrap()["spec"]["template"];
        let all: Vec<String> = ports.iter().map(|port| port["port"].to_string()).collect();
        for metadata in [&service["metadata"], &pod["metadata"]] {
            assert_eq!(metadata["annotations"]["config.linkerd.io/opaque-ports"], all.join(","));
        }
    }
}

#[test]
fn several_releases_share_no_name_in_a_cluster() {
    let names = |namespace: &str| -> BTreeSet<String> {
        let set = "global.runtime.name=prod,nats.mode=embedded,reporter.applicationNamespaces={team-*}";
        let output = template(&chart(), &["--namespace", namespace, "--set", set]);
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap();
        let everywhere = documents
            .iter()
            .filter(|object| object["kind"].as_str().is_some_and(|kind| kind.starts_with("Cluster")));
        everywhere.map(|object| format!("{} {}", object["kind"], object["metadata"]["name"])).collect()
    };
    let (first, second) = (names("one"), names("two"));
    assert_eq!(first.len(), 2, "{first:?}");
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
}

#[test]
fn with_ipv6_services_have_both_families_where_the_cluster_has_them_and_servers_listen_on_both() {
    let objects = with("ipv6.enabled=true,nats.mode=embedded");
    let services: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Service").collect();
    assert_eq!(services.len(), 2);
    for service in services {
        assert_eq!(service["spec"]["ipFamilyPolicy"], "PreferDualStack", "{service}");
    }
    let settings =
        object(&objects, "ConfigMap", "-reporter").unwrap()["data"]["config.yaml"].as_str().unwrap();
    assert!(settings.contains("address: '[::]:8088'"), "{settings}");
    let nats = object(&objects, "ConfigMap", "-nats").unwrap()["data"]["nats.conf"].as_str().unwrap();
    assert!(nats.contains("host: \"::\""), "{nats}");
    assert!(with("nats.mode=embedded").iter().all(|object| object["spec"]["ipFamilyPolicy"].is_null()));
}

#[test]
fn a_ledger_and_a_bus_exclude_each_other() {
    for file in values("good-") {
        let objects = objects(&file);
        let Some(reporter) = object(&objects, "Deployment", "-runtime-reporter") else { continue };
        let has_bus = object(&objects, "ConfigMap", "-runtime-reporter").unwrap()["data"]["config.yaml"]
            .as_str()
            .unwrap()
            .contains("\nbus:");
        let claim = object(&objects, "PersistentVolumeClaim", "-runtime-reporter");
        let strategy = reporter["spec"]["strategy"]["type"].as_str().unwrap();
        assert_eq!(strategy, if has_bus { "RollingUpdate" } else { "Recreate" }, "{}", file.display());
        assert!(!has_bus || claim.is_none(), "{}", file.display());
        if let Some(claim) = claim {
            assert_eq!(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
        }
    }
}

#[test]
fn no_hook_runs_but_the_test_and_the_doctor_where_it_is_asked_for() {
    for file in values("good-") {
        let is_asked = file.ends_with("good-validated.yaml");
        for object in objects(&file) {
            let hook = &object["metadata"]["annotations"]["helm.sh/hook"];
            assert!(hook.is_null() || hook == "test" || is_asked, "{object}");
        }
    }
}

#[test]
fn replicas_come_and_go_where_that_is_asked_for_and_no_upgrade_sets_their_number() {
    let scaled = |path: &str| format!("{path}.autoscaling.enabled=true,{path}.autoscaling.maxReplicas=7");
    let sets = ["reporter", "router", "sourceServer"].map(scaled).join(",");
    let more = "nats.mode=embedded,sourceServer.enabled=true,sourceServer.allowed={https://git.example.com/}";
    let with_way_in = "global.runtime.ingressUrl=https://runtime.example.com";
    let objects = with(&format!("{more},{with_way_in},{sets}"));
    let plain = with(&format!("{more},{with_way_in}"));
    assert!(plain.iter().all(|object| object["kind"] != "HorizontalPodAutoscaler"));
    let scalers: Vec<&Value> =
        objects.iter().filter(|object| object["kind"] == "HorizontalPodAutoscaler").collect();
    assert_eq!(scalers.len(), 3);
    for component in ["-reporter", "-router", "-source-server"] {
        let scaler = object(&objects, "HorizontalPodAutoscaler", component).unwrap();
        let deployment = object(&objects, "Deployment", component).unwrap();
        assert_eq!(scaler["spec"]["scaleTargetRef"]["name"], deployment["metadata"]["name"]);
        assert_eq!((&scaler["spec"]["minReplicas"], &scaler["spec"]["maxReplicas"]), (&json!(2), &json!(7)));
        assert!(deployment["spec"]["replicas"].is_null(), "{component}");
        assert_eq!(object(&plain, "Deployment", component).unwrap()["spec"]["replicas"], 1, "{component}");
    }
}

#[test]
fn a_version_that_holds_a_plus_is_written_as_labels_and_tags_take_it() {
    let of = |version: &str| {
        let line = |line: &str| match line.split_once(": ") {
            Some((key @ ("version" | "appVersion"), _)) => format!("{key}: {version}\n"),
            _ => format!("{line}\n"),
        };
        let folder = described(|chart| chart.lines().map(line).collect());
        objects_of(folder.path(), &["--set", "global.runtime.name=prod,platform.enabled=true"]).unwrap()
    };
    // As Flux writes the digest of a chart in a registry, and one that is cut where no label may end.
    let long = format!("0.1.1+{}c", "ab.".repeat(20));
    let cut = format!("gitops-runtime-0.1.1_{}ab", "ab.".repeat(13));
    for (version, expected) in
        [("0.1.1+0123456789ab", "gitops-runtime-0.1.1_0123456789ab"), (long.as_str(), cut.as_str())]
    {
        let objects = of(version);
        // Claims outlive a release, and name no version.
        let versioned = objects.iter().filter(|object| object["kind"] != "PersistentVolumeClaim");
        let labels: Vec<&Value> = versioned.map(|object| &object["metadata"]["labels"]).collect();
        assert!(labels.len() > 10);
        for labels in labels {
            assert_eq!(labels["helm.sh/chart"], expected, "{labels}");
            let product = labels["app.kubernetes.io/version"].as_str().unwrap();
            assert!(product.starts_with("0.1.1_") && product.len() <= 63, "{product}");
        }
        for (name, _, pod) in pods(&objects) {
            let image = pod["containers"][0]["image"].as_str().unwrap();
            assert_eq!(image, format!("gitops-runtime:{}", version.replace('+', "_")), "{name}");
        }
    }
}

#[test]
fn what_no_value_gives_resources_to_has_all_that_a_quota_may_want() {
    let objects = with("platform.enabled=true,validation.enabled=true");
    let of = |kind: &str, end: &str, containers: &str| {
        let found = object(&objects, kind, end).unwrap().pointer(containers).unwrap();
        found.as_array().unwrap().clone()
    };
    let fixed = [
        of("CronJob", "-backup", "/spec/jobTemplate/spec/template/spec/containers"),
        of("Deployment", "-reporter", "/spec/template/spec/initContainers"),
        of("Job", "-validation", "/spec/template/spec/containers"),
        of("Pod", "-test-ready", "/spec/containers"),
    ];
    for container in fixed.iter().flatten() {
        for (kind, of) in
            [("requests", "cpu"), ("requests", "memory"), ("limits", "cpu"), ("limits", "memory")]
        {
            assert!(container["resources"][kind][of].is_string(), "{kind} of {of}: {container}");
        }
    }
}
