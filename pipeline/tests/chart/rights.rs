//! The rights of the chart are those that the program prints for the settings of the chart.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::commands::run;
use crate::helm::{NAMESPACE, ROLES, chart, object, objects, rendered, template, values};

/// The roles beside the reporter that have rights of their own.
const WITH_RIGHTS: [&str; 4] = ["app-proxy", "change-revision", "resource-reporter", "source-server"];

/// Roles and bindings without labels.
fn rights(objects: &[Value]) -> BTreeSet<String> {
    // The hook's are judged where it is.
    let of_rights = |object: &&Value| {
        object["kind"].as_str().unwrap().contains("Role")
            && object["metadata"]["annotations"]["helm.sh/hook"].is_null()
    };
    let bare = |object: &Value| {
        let metadata = &object["metadata"];
        json!([
            object["kind"],
            metadata["name"],
            metadata["namespace"],
            object["rules"],
            object["roleRef"],
            object["subjects"]
        ])
        .to_string()
    };
    objects.iter().filter(of_rights).map(bare).collect()
}

/// The rights that the program prints.
fn printed(arguments: &[&str]) -> BTreeSet<String> {
    let printed = run(&[&["rbac", "print"], arguments].concat());
    rights(&serde_saphyr::from_multiple::<Value>(&String::from_utf8(printed.stdout).unwrap()).unwrap())
}

/// The account of a role, and the rights that the program prints for its settings; `None` where the role is not.
fn of_role(objects: &[Value], role: &str) -> Option<(String, BTreeSet<String>)> {
    // The name of the resource reporter ends alike.
    let end = if role == "reporter" { "-runtime-reporter".to_owned() } else { format!("-{role}") };
    let (settings, deployment) = (object(objects, "ConfigMap", &end)?, object(objects, "Deployment", &end)?);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, settings["data"]["config.yaml"].as_str().unwrap()).unwrap();
    let account = deployment["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap();
    let account = format!("{NAMESPACE}/{account}");
    let config = config.to_str().unwrap();
    let rights = printed(&["--role", role, "--config", config, "--service-account", &account]);
    Some((account, rights))
}

#[test]
fn the_chart_grants_what_the_program_prints() {
    let mut granted = 0;
    for file in values("good-") {
        let objects = objects(&file);
        let Some((account, mut expected)) = of_role(&objects, "reporter") else { continue };
        if let Some(secret) = object(&objects, "Secret", "-generated") {
            let secret = secret["metadata"]["name"].as_str().unwrap();
            expected.extend(printed(&[
                "--role",
                "secrets",
                "--secret",
                secret,
                "--service-account",
                &account,
            ]));
        }
        for role in WITH_RIGHTS {
            expected.extend(of_role(&objects, role).into_iter().flat_map(|(_, rights)| rights));
        }
        let found = rights(&objects);
        if !found.is_empty() {
            assert_eq!(found, expected, "{}", file.display());
            granted += 1;
        }
    }
    assert!(granted >= 5, "{granted}");
}

#[test]
fn the_kinds_of_the_chart_are_those_of_the_program() {
    let printed = run(&["config", "print"]);
    let settings: Value = serde_saphyr::from_slice(&printed.stdout).unwrap();
    let chart = pipeline_doctor::Chart::get();
    for name in ["kinds", "namespaces", "preset", "applications"] {
        let value = chart.values.iter().find(|value| value.path == format!("resourceReporter.{name}"));
        assert_eq!(value.unwrap().default, settings["resources"][name], "{name}");
    }
}

#[test]
fn a_runtime_of_a_single_namespace_has_no_right_in_others_by_any_value() {
    for path in [
        "reporter.applicationNamespaces",
        "reporter.config.kubernetes.applicationNamespaces",
        "appProxy.namespaces",
        "appProxy.config.appProxy.namespaces",
        "changeRevision.config.kubernetes.applicationNamespaces",
        "resourceReporter.namespaces",
        "resourceReporter.config.resources.namespaces",
    ] {
        let component = path.split('.').next().unwrap();
        let set = format!("global.runtime.name=prod,{component}.enabled=true,{path}={{team-a}}");
        assert!(template(&chart(), &["--set", &set]).status.success(), "{path}");
        let output = template(&chart(), &["--set", &set, "--set", "global.runtime.singleNamespace=true"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = format!("{path}: excluded by global.runtime.singleNamespace");
        assert!(!output.status.success() && said.contains(&expected), "{path}: {said}");
    }
}

#[test]
fn an_account_that_is_there_is_taken_by_every_role_that_may_have_one_and_given_its_rights() {
    let mut given =
        json!({"global": {"runtime": {"name": "prod"}}, "sourceServer": {"argocdCredentials": true}});
    let may_have_one = |role: &str| !["router", "tunnel-client", "tunnel-server"].contains(&role);
    let roles: Vec<(&str, &str)> = ROLES.into_iter().filter(|(_, role)| may_have_one(role)).collect();
    for (group, role) in &roles {
        given[group]["enabled"] = json!(true);
        given[group]["serviceAccount"] = json!({"create": false, "name": format!("own-{role}")});
    }
    let objects = rendered(&given);
    assert!(objects.iter().all(|object| object["kind"] != "ServiceAccount"));
    for (_, role) in roles {
        let deployment = object(&objects, "Deployment", &format!("gitops-runtime-{role}")).unwrap();
        assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], format!("own-{role}"));
    }
    let granted = rights(&objects);
    for role in WITH_RIGHTS {
        let (_, printed) = of_role(&objects, role).unwrap();
        assert!(!printed.is_empty() && printed.is_subset(&granted), "{role}: {printed:?} {granted:?}");
    }
    // Made, they are called and annotated as the values say; a platform has none by default.
    given["platform"]["serviceAccount"] = json!({"create": true, "annotations": {"a": "b"}});
    let objects = rendered(&given);
    let account = object(&objects, "ServiceAccount", "gitops-runtime-platform").unwrap();
    assert_eq!(account["metadata"]["annotations"], json!({"a": "b"}));
    given["platform"]["serviceAccount"] = json!({});
    let objects = rendered(&given);
    let platform = object(&objects, "Deployment", "gitops-runtime-platform").unwrap();
    // Left out, Kubernetes would keep the one that the release made before, and has removed.
    assert_eq!(platform["spec"]["template"]["spec"]["serviceAccountName"], "default");
}

#[test]
fn an_account_of_two_roles_is_made_once_or_refused() {
    let set = "global.runtime.name=prod,appProxy.enabled=true,appProxy.serviceAccount.name=own,reporter.serviceAccount.name=own";
    let output = template(&chart(), &["--set", set]);
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = "reporter.serviceAccount: makes the account own, which appProxy.serviceAccount makes as well; set create to false";
    assert!(!output.status.success() && said.contains(expected), "{said}");
    let output = template(&chart(), &["--set", &format!("{set},reporter.serviceAccount.create=false")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("\nkind: ServiceAccount\n").count(), 1, "{text}");
}
