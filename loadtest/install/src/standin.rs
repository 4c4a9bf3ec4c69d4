//! A chart of Argo CD in place of the published one, which no package registry holds: the manifests of Argo CD's Go module, with an
//! image of the programs that the cluster's own Argo CD runs.
//!
//! takes: the chart of the runtime, a node - gives: a copy of that chart whose dependency is this one, and the image on the node
//! calls: `go` for the module, `ldd` - fails: when a program is not there, or the module is another one than this expects
//!
//! As in the published one, what `configs.params` says is given to Argo CD's programs, and the names of its Services begin with
//! `fullnameOverride`. Neither ApplicationSets, single sign-on nor notifications are in it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use loadtest_cluster::git::files_of;
use loadtest_cluster::modules;
use loadtest_cluster::progress::Progress;
use serde_json::{Value, json};

use crate::ground::{CHART, Ground};
use crate::image;

const MODULE: &str = "github.com/argoproj/argo-cd/v3";
/// The image that its pods run.
const IMAGE: &str = "docker.io/library/argocd:test";
/// The program that is the servers and the controller of Argo CD, by the name that it is called by.
const SERVERS: &str = "argocd-servers";
const PROGRAMS: [&str; 3] = ["argocd-server", "argocd-repo-server", "argocd-application-controller"];
/// Where programs are in the image; those of the system in the other one.
const OWN: &str = "usr/local/bin";
const SYSTEM: &str = "usr/bin";
/// The folders of the module's manifests that make it up.
const FOLDERS: [&str; 8] = [
    "base/config",
    "base/redis",
    "base/repo-server",
    "base/server",
    "base/application-controller",
    "base/application-controller-roles",
    "cluster-rbac/server",
    "cluster-rbac/application-controller",
];
/// What Helm puts the namespace of the release in the place of.
const RELEASED_IN: &str = "{{ .Release.Namespace }}";
/// What Argo CD's programs are set to, which this chart makes of its values; and the password of Redis, which a program that is
/// not here makes elsewhere.
const OF_VALUES: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.fullnameOverride }}-cmd-params-cm
  labels: {app.kubernetes.io/name: argocd-cmd-params-cm, app.kubernetes.io/part-of: argocd}
data:
  {{- range $name, $value := .Values.configs.params }}
  {{ $name }}: {{ $value | toString | quote }}
  {{- end }}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-redis}
stringData: {auth: known-to-nobody}
"#;

/// Makes both, and gives the folder of the chart.
pub(crate) async fn make(ground: &Ground) -> anyhow::Result<PathBuf> {
    let programs = programs(&ground.binaries.program(SERVERS))?;
    let archive = ground.folder.join("argocd.tar");
    let made = tokio::task::spawn_blocking(move || {
        programs.build()?.write_archive(&archive)?;
        anyhow::Ok(archive)
    });
    let archive = made.await.context("make the image of Argo CD")??;
    Progress.step("import of argocd", ground.node()?.import(&archive)).await?;
    let module = Progress.step("Argo CD's module", modules::of_program("argocd", MODULE)).await?;

    let folder = ground.folder.join("chart-with-argocd");
    for (path, text) in files_of(Path::new(CHART))? {
        write(&folder.join(path), &text)?;
    }
    let templates = folder.join("charts/argo-cd/templates");
    std::fs::remove_file(templates.join("absent.yaml")).context("take away what stands for no chart")?;
    let mut kinds = Vec::new();
    for place in FOLDERS {
        for (name, text) in files_of(&module.join("manifests").join(place))? {
            if ["kustomization.yaml", "argocd-cmd-params-cm.yaml"].contains(&name.as_str()) {
                continue;
            }
            ensure!(!text.contains("{{"), "{name} of Argo CD's module would be a template");
            let object: Value =
                serde_saphyr::from_str(&text).with_context(|| format!("read {name} of {MODULE}"))?;
            kinds.push(object["kind"].as_str().unwrap_or_default().to_owned());
            let object = changed(object).with_context(|| format!("use {name} of {MODULE}"))?;
            // JSON is YAML.
            write(&templates.join(name), &object.to_string())?;
        }
    }
    write(&templates.join("of-values.yaml"), OF_VALUES)?;
    let workloads =
        kinds.iter().filter(|kind| ["Deployment", "StatefulSet"].contains(&kind.as_str())).count();
    ensure!(workloads == 4, "Argo CD's module has {workloads} workloads and not 4");
    Ok(folder)
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let folder = file.parent().context("find the folder of a file")?;
    std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    std::fs::write(file, text).with_context(|| format!("write {}", file.display()))
}

/// The image of its programs, and of those that they run: git, and the cache of all.
fn programs(servers: &Path) -> anyhow::Result<loadtest_image::Image> {
    let mut made = image::of(servers, IMAGE, &format!("{OWN}/{SERVERS}"))?;
    made.state = None;
    for name in ["git", "redis-server"] {
        made.further.push((format!("{SYSTEM}/{name}"), image::of_this_machine(name)?));
    }
    made.links = PROGRAMS.map(|name| (format!("{OWN}/{name}"), SERVERS.to_owned())).to_vec();
    Ok(made)
}

/// An object of the module as it stands in the chart.
fn changed(mut object: Value) -> anyhow::Result<Value> {
    if let Some(subjects) = object.get_mut("subjects").and_then(Value::as_array_mut) {
        for subject in subjects {
            subject["namespace"] = json!(RELEASED_IN);
        }
    }
    let Some(pod) = object.pointer_mut("/spec/template/spec") else { return Ok(object) };
    // They copy a program that is not here, and make the password that stands in the chart.
    pod.as_object_mut().context("read a pod")?.remove("initContainers");
    for container in pod["containers"].as_array_mut().context("find the containers of a pod")? {
        let is_redis = container["name"] == "redis";
        let args = container["args"].as_array_mut().context("find the arguments of a container")?;
        let program = match args.first().and_then(Value::as_str) {
            // The image of the module runs what its arguments begin with.
            Some(program) if program.starts_with(&format!("/{OWN}/")) => args.remove(0),
            _ if is_redis => json!(format!("/{SYSTEM}/redis-server")),
            other => anyhow::bail!("a container runs {other:?}"),
        };
        container["command"] = json!([program]);
        container["image"] = json!(IMAGE);
        container["imagePullPolicy"] = json!("IfNotPresent");
        let variables = container["env"].as_array_mut().context("find the variables of a container")?;
        variables.push(json!({"name": "PATH", "value": format!("/{SYSTEM}:/{OWN}")}));
        // There is no gpg.
        variables.push(json!({"name": "ARGOCD_GPG_ENABLED", "value": "false"}));
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(container: &Value) -> Value {
        json!({"kind": "Deployment", "spec": {"template": {"spec": {
            "initContainers": [{"name": "copyutil"}], "containers": [container],
        }}}})
    }

    #[test]
    fn a_pod_runs_the_program_that_its_arguments_name_and_no_other_one_before() {
        let server = json!({"name": "argocd-server", "image": "a", "env": [],
            "args": ["/usr/local/bin/argocd-server", "--port=8080"]});
        let made = changed(pod(&server)).unwrap();
        let spec = &made["spec"]["template"]["spec"];
        assert_eq!(spec["initContainers"], Value::Null);
        assert_eq!(spec["containers"][0]["command"], json!(["/usr/local/bin/argocd-server"]));
        assert_eq!(spec["containers"][0]["args"], json!(["--port=8080"]));
        assert_eq!(spec["containers"][0]["image"], IMAGE);
        let redis = json!({"name": "redis", "image": "a", "env": [], "args": ["--save", ""]});
        let made = changed(pod(&redis)).unwrap();
        let container = &made["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["command"], json!(["/usr/bin/redis-server"]));
        assert_eq!(container["args"], json!(["--save", ""]));
        let other = json!({"name": "dex", "env": [], "args": ["rundex"]});
        assert_eq!(changed(pod(&other)).unwrap_err().to_string(), "a container runs Some(\"rundex\")");
    }

    #[test]
    fn accounts_are_those_of_the_namespace_that_is_installed_into() {
        let binding = json!({"kind": "RoleBinding", "subjects": [{"kind": "ServiceAccount", "name": "a"}]});
        let made = changed(binding).unwrap();
        assert_eq!(made["subjects"][0]["namespace"], "{{ .Release.Namespace }}");
        let account = json!({"kind": "ServiceAccount"});
        assert_eq!(changed(account.clone()).unwrap(), account);
    }
}
