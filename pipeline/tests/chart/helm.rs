//! A real Helm, and what it renders.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use loadtest::sim::installed;
use serde_json::Value;

pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// What `.ci/setup` installs.
const VERSION: &str = "3.22.0";
pub(crate) const NAMESPACE: &str = "runtime";

/// The roles: the group of their values, and what their objects are called.
pub(crate) const ROLES: [(&str, &str); 9] = [
    ("appProxy", "app-proxy"),
    ("changeRevision", "change-revision"),
    ("platform", "platform"),
    ("reporter", "reporter"),
    ("resourceReporter", "resource-reporter"),
    ("router", "router"),
    ("sourceServer", "source-server"),
    ("tunnelClient", "tunnel-client"),
    ("tunnelServer", "tunnel-server"),
];

/// The chart's folder.
pub(crate) fn chart() -> PathBuf {
    Path::new(ROOT).join("helm/gitops-runtime")
}

/// The text of every file in a folder and in those below it, with its path.
pub(crate) fn texts_below(folder: PathBuf) -> Vec<(PathBuf, String)> {
    let (mut folders, mut texts) = (vec![folder], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                texts.push((path, text));
            }
        }
    }
    texts
}

/// The doctor's files of values that begin so.
pub(crate) fn values(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(ROOT).join("pipeline/doctor/tests/values");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(kind))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there is no file of values {kind}*");
    files
}

pub(crate) fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("CHART_HELM") {
        return named.into();
    }
    let program = installed::folder().expect("HOME is set").join(format!("helm-{VERSION}/bin/helm"));
    assert!(program.exists(), "{} is missing: run .ci/setup", program.display());
    program
}

/// Runs `helm template` on a chart.
pub(crate) fn template(chart: &Path, arguments: &[&str]) -> Output {
    template_of("prod", chart, arguments)
}

/// The same, of a release of this name.
pub(crate) fn template_of(release: &str, chart: &Path, arguments: &[&str]) -> Output {
    // It takes 70 MB in all: to give any of it back is a quarter of its time.
    Command::new(program())
        .env("GOGC", "off")
        .args(["template", release])
        .arg(chart)
        .args(["--namespace", NAMESPACE, "--kube-version", "1.31.0"])
        .args(arguments)
        .output()
        .unwrap()
}

/// What a file of values renders to.
pub(crate) struct Rendered {
    pub(crate) text: String,
    objects: Vec<Value>,
}

impl Rendered {
    /// Most tests look at the same files, each of which is rendered once.
    fn of(file: &Path) -> Arc<OnceLock<Self>> {
        static ALL: LazyLock<Mutex<HashMap<PathBuf, Arc<OnceLock<Rendered>>>>> =
            LazyLock::new(Mutex::default);
        let rendered = ALL.lock().unwrap().entry(file.to_owned()).or_default().clone();
        rendered.get_or_init(|| Self::anew(file));
        rendered
    }

    /// The same, whatever was rendered before.
    pub(crate) fn anew(file: &Path) -> Self {
        let output = template(&chart(), &["--values", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", file.display());
        let text = String::from_utf8(output.stdout).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let objects = documents.into_iter().filter(|document| !document.is_null()).collect();
        Self { text, objects }
    }
}

/// The text of what a file of values renders to.
pub(crate) fn text(file: &Path) -> String {
    Rendered::of(file).get().unwrap().text.clone()
}

/// The objects that a chart, or an archive of one, renders to; `None` where it refuses the arguments.
pub(crate) fn objects_of(chart: &Path, arguments: &[&str]) -> Option<Vec<Value>> {
    let output = template(chart, arguments);
    let documents: Vec<Value> = serde_saphyr::from_multiple(str::from_utf8(&output.stdout).unwrap()).unwrap();
    let objects = documents.into_iter().filter(|document| !document.is_null()).collect();
    output.status.success().then_some(objects)
}

/// What these values render to.
pub(crate) fn rendered(values: &Value) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values.to_string()).unwrap();
    objects_of(&chart(), &["--values", file.to_str().unwrap()]).unwrap()
}

/// The settings of a role.
pub(crate) fn settings(objects: &[Value], component: &str) -> Value {
    let map = object(objects, "ConfigMap", &format!("-{component}")).unwrap();
    serde_saphyr::from_str(map["data"]["config.yaml"].as_str().unwrap()).unwrap()
}

/// Packages the chart into a folder as `<version>.tgz`, unless that is there.
pub(crate) fn package(chart: &Path, folder: &Path) {
    let text = std::fs::read_to_string(chart.join("Chart.yaml")).unwrap();
    let described: Value = serde_saphyr::from_str(&text).unwrap();
    let (name, version) = (described["name"].as_str().unwrap(), described["version"].as_str().unwrap());
    let archive = folder.join(format!("{version}.tgz"));
    if archive.exists() {
        return;
    }
    std::fs::create_dir_all(folder).unwrap();
    let made = tempfile::tempdir().unwrap();
    let output = Command::new(program())
        .arg("package")
        .arg(chart)
        .arg("--destination")
        .arg(made.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::copy(made.path().join(format!("{name}-{version}.tgz")), archive).unwrap();
}

/// The objects that a file of values renders to.
pub(crate) fn objects(file: &Path) -> Vec<Value> {
    Rendered::of(file).get().unwrap().objects.clone()
}

/// The one object of a kind whose name ends so, where there is one.
pub(crate) fn object<'a>(objects: &'a [Value], kind: &str, end: &str) -> Option<&'a Value> {
    let mut found = objects.iter().filter(|object| {
        object["kind"] == kind && object["metadata"]["name"].as_str().unwrap().ends_with(end)
    });
    let first = found.next();
    assert!(found.next().is_none(), "several objects of kind {kind} end in {end}");
    first
}

/// The pods that objects make: the name of each object, and the pod's metadata and spec.
pub(crate) fn pods(objects: &[Value]) -> Vec<(String, &Value, &Value)> {
    let mut pods = Vec::new();
    for object in objects {
        let template = &object["spec"]["template"];
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        if object["kind"] == "Pod" {
            pods.push((name, &object["metadata"], &object["spec"]));
        } else if template["spec"].is_object() {
            pods.push((name, &template["metadata"], &template["spec"]));
        }
    }
    pods
}

/// Compares with what is committed; UPDATE=1 rewrites it.
pub(crate) fn expect(path: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(path, found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{} (UPDATE=1 rewrites it)", path.display());
}
