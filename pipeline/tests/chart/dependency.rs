//! A new Argo CD as a dependency: declared, not vendored, and found by the reporter.

use std::path::Path;

use serde_json::Value;

use crate::helm::{NAMESPACE, chart, object, objects_of, template};
use crate::texts::copy;

const NEW: &str = "global.runtime.name=prod,argo-cd.enabled=true";

/// What the published chart makes with the values that it is given, as far as the reporter sees it.
const STAND_IN: &str = r#"apiVersion: v1
kind: Service
metadata:
  name: {{ .Values.fullnameOverride }}-server
  namespace: {{ .Release.Namespace }}
  annotations: {insecure: {{ index .Values.configs.params "server.insecure" | quote }}}
spec:
  ports: [{port: 80}]
"#;

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_checkout_says_what_it_lacks() {
    let output = template(&chart(), &["--set", NEW]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    let wanted = "argo-cd.enabled: a checkout holds no Argo CD; package the chart with `.ci/chart`, which fetches it, and \
                  install target/chart/gitops-runtime-*.tgz";
    assert!(said.contains(wanted), "{said}");
    let declared = &yaml(&chart().join("Chart.yaml"))["dependencies"][0];
    let stands_in = yaml(&chart().join("charts/argo-cd/Chart.yaml"));
    assert_eq!((&declared["name"], &declared["version"]), (&stands_in["name"], &stands_in["version"]));
    assert_eq!(declared["condition"], "argo-cd.enabled");
}

#[test]
fn a_new_argo_cd_is_found_by_its_service_and_logged_in_to() {
    let folder = tempfile::tempdir().unwrap();
    copy(&chart(), folder.path());
    let templates = folder.path().join("charts/argo-cd/templates");
    std::fs::remove_file(templates.join("absent.yaml")).unwrap();
    std::fs::write(templates.join("server.yaml"), STAND_IN).unwrap();
    let objects = objects_of(folder.path(), &["--set", NEW]).unwrap();
    let server = object(&objects, "Service", "argocd-server").unwrap();
    // Plain HTTP, as the reporter speaks at port 80.
    assert_eq!(server["metadata"]["annotations"]["insecure"], "true");
    let settings = |objects: &[Value]| {
        object(objects, "ConfigMap", "-reporter").unwrap()["data"]["config.yaml"].as_str().unwrap().to_owned()
    };
    let new = settings(&objects);
    let name = server["metadata"]["name"].as_str().unwrap();
    for line in [
        format!("url: http://{name}.{NAMESPACE}.svc:80\n"),
        "username: admin\n".to_owned(),
        "passwordFile: /etc/gitops-runtime/argocd/password\n".to_owned(),
    ] {
        assert!(new.contains(&line), "{line}: {new}");
    }
    // By another name as well, but for one that is given here.
    let called = format!("{NEW},argo-cd.fullnameOverride=ours");
    let ours = settings(&objects_of(folder.path(), &["--set", &called]).unwrap());
    assert!(ours.contains(&format!("url: http://ours-server.{NAMESPACE}.svc:80\n")), "{ours}");
    // As the published chart makes its names, where nobody gives a whole one: of the release and of its own.
    for (values, name) in [
        ("argo-cd.fullnameOverride=,argo-cd.nameOverride=cd", "prod-cd-server"),
        ("argo-cd.fullnameOverride=", "prod-argocd-server"),
        ("argo-cd.fullnameOverride=,argo-cd.nameOverride=pro", "prod-server"),
        ("argo-cd.server.name=api", "argocd-api"),
    ] {
        let found = settings(&objects_of(folder.path(), &["--set", &format!("{NEW},{values}")]).unwrap());
        assert!(found.contains(&format!("url: http://{name}.{NAMESPACE}.svc:80\n")), "{values}: {found}");
    }
    let elsewhere = format!("{NEW},argo-cd.namespaceOverride=argocd");
    let elsewhere = settings(&objects_of(folder.path(), &["--set", &elsewhere]).unwrap());
    assert!(elsewhere.contains("url: http://argocd-server.argocd.svc:80\n"), "{elsewhere}");
    let given = format!("{called},global.integrations.argo-cd.server.svc=another");
    let another = settings(&objects_of(folder.path(), &["--set", &given]).unwrap());
    assert!(another.contains(&format!("url: http://another.{NAMESPACE}.svc:80\n")), "{another}");
    // A token that somebody gives is taken.
    let given = "global.integrations.argo-cd.server.auth.tokenSecretKeyRef.name=reporter";
    let given = settings(&objects_of(folder.path(), &["--set", NEW, "--set", given]).unwrap());
    assert!(given.contains("tokenFile: /etc/gitops-runtime/argocd/token\n"), "{given}");
}
