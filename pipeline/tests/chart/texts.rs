//! What the chart says: its notes, and the images that it needs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::helm::{ROOT, chart, expect, objects, pods, template, texts_below, values};

/// The notes with these values. `helm template` leaves them out, so a copy of the chart renders them as an object.
pub(crate) fn notes(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    copy(&chart(), folder.path());
    let template_of_notes = "notes: {{ include \"gitops-runtime.notes\" . | quote }}\n";
    std::fs::write(folder.path().join("templates/notes.yaml"), template_of_notes).unwrap();
    let given = [&["--show-only", "templates/notes.yaml"], arguments].concat();
    let output = template(folder.path(), &given);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_saphyr::from_slice(&output.stdout).unwrap();
    document["notes"].as_str().unwrap().to_owned()
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A copy of the chart whose Chart.yaml is changed so.
pub(crate) fn described(change: impl FnOnce(&str) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&chart(), folder.path());
    let file = folder.path().join("Chart.yaml");
    let described = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, change(&described)).unwrap();
    folder
}

#[test]
fn the_notes_list_what_is_left_to_do_for_these_values() {
    let plain = notes(&["--set", "global.runtime.name=prod"]);
    assert!(
        plain.contains("the Secret codefresh-token must hold the runtime's token under the key token"),
        "{plain}"
    );
    assert!(plain.contains("the Secret argocd-token must hold a token of Argo CD"), "{plain}");
    assert!(!plain.contains("without effect") && !plain.contains("appProxy.register"), "{plain}");
    // Whoever has the user's token and an app proxy need not fetch another.
    let user =
        "global.runtime.name=prod,global.codefresh.userToken.secretKeyRef.name=user,appProxy.enabled=true";
    assert!(
        notes(&["--set", user]).contains("set appProxy.register: it does so with global.codefresh.userToken")
    );
    let registers = "global.codefresh.userToken.secretKeyRef.key=token,appProxy.register=true";
    assert!(!notes(&["--set", user, "--set", registers]).contains("set appProxy.register"));
    let file = values("bad-inline-secrets").remove(0);
    let inline = notes(&["--values", file.to_str().unwrap()]);
    assert!(!inline.contains("not-to-be-shown") && !inline.contains("argocd-token"), "{inline}");
    assert_eq!(inline.matches("holds a secret in plain text").count(), 3, "{inline}");
    let file = values("good-trial").remove(0);
    let trial = notes(&["--values", file.to_str().unwrap()]);
    for said in [
        "reports go to standard output alone",
        "a new pod reports everything again",
        "grant the rights",
        "no NetworkPolicies",
    ] {
        assert!(trial.contains(said), "{said}: {trial}");
    }
    let roles = ["appProxy", "changeRevision", "resourceReporter", "sourceServer"];
    let runs = roles.map(|role| format!("{role}.enabled=true")).join(",");
    let more = format!("{runs},sourceServer.argocdCredentials=true");
    let all = notes(&["--values", file.to_str().unwrap(), "--set", &more]);
    for role in ["reporter", "app-proxy", "change-revision", "resource-reporter", "source-server"] {
        let said = format!("rbac print --role {role} --config /dev/stdin --service-account runtime/prod-");
        assert!(all.contains(&said), "{role}: {all}");
    }
    let file = values("good-ingress.yaml").remove(0);
    let ingress = notes(&["--values", file.to_str().unwrap()]);
    assert!(
        ingress.contains("without effect in this version:\n  - global.codefresh.accountId\n"),
        "{ingress}"
    );
}

#[test]
fn the_images_of_all_modes_are_listed() {
    let mut images = BTreeSet::new();
    for file in values("good-").iter().filter(|file| !file.ends_with("good-private.yaml")) {
        for (_, _, pod) in pods(&objects(file)) {
            let named = |container: &serde_json::Value| container["image"].as_str().unwrap().to_owned();
            images.extend(pod["containers"].as_array().unwrap().iter().map(named));
        }
    }
    let text: String = images.iter().map(|image| format!("{image}\n")).collect();
    expect(&chart().join("images.txt"), &text);
}

/// What Helm renders otherwise at another time, in another cluster or at another try; Argo CD and Flux would show a difference, or
/// make one.
const UNSTEADY: [&str; 20] = [
    "lookup",
    "now",
    "date",
    "ago",
    "uuidv4",
    "randAlpha",
    "randAlphaNum",
    "randNumeric",
    "randAscii",
    "randBytes",
    "randInt",
    "genCA",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSignedCert",
    "htpasswd",
    "bcrypt",
    "getHostByName",
    "IsInstall",
    "Revision",
];

/// The words of a template's actions, without what stands in quotes and comments.
fn words(text: &str) -> BTreeSet<String> {
    let actions = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    let code = actions.filter(|action| !action.trim_start_matches('-').trim_start().starts_with("/*"));
    let parts = code.flat_map(|action| action.split('"').step_by(2));
    let words = parts.flat_map(|part| part.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn no_template_depends_on_the_cluster_the_moment_or_chance() {
    assert!(words("a {{- lookup \"v1\" }} b").contains("lookup"));
    assert!(!words("lookup {{/* lookup */}} {{ print \"lookup\" }}").contains("lookup"));
    let mut all = 0;
    for (path, text) in texts_below(chart().join("templates")) {
        let words = words(&text);
        let unsteady: Vec<&str> = UNSTEADY.into_iter().filter(|word| words.contains(*word)).collect();
        assert!(unsteady.is_empty(), "{}: {unsteady:?}", path.display());
        all += words.len();
    }
    assert!(all > 1_000, "{all} words");
}

#[test]
fn values_are_validated_for_the_namespace_that_they_are_then_installed_in() {
    let mut seen = 0;
    for file in ["README.md", "helm/gitops-runtime/README.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
        for block in text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            let namespace = |line: &str| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words.windows(2).find(|pair| pair[0] == "--namespace").map(|pair| pair[1].to_owned())
            };
            let of = |command: &str| block.lines().filter(|line| line.contains(command)).collect::<Vec<_>>();
            let Some(install) = of("helm install").first().copied() else { continue };
            for validate in of("gitops-runtime validate") {
                assert_eq!(namespace(validate), namespace(install), "{file}: {validate}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn each_file_of_alerts_is_applied_under_a_name_of_its_own() {
    let text = std::fs::read_to_string(chart().join("../README.md")).unwrap();
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let script = blocks.filter(|block| block.contains("PrometheusRule")).collect::<String>();
    let script = script.replace("kubectl apply -f -", "cat");
    let output = std::process::Command::new("sh").arg("-c").arg(script).current_dir(ROOT).output().unwrap();
    let rules: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(std::str::from_utf8(&output.stdout).unwrap()).unwrap();
    let names: BTreeSet<&str> = rules.iter().map(|rule| rule["metadata"]["name"].as_str().unwrap()).collect();
    let files = std::fs::read_dir(chart().join("alerts")).unwrap();
    let files = files.filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
    assert_eq!((names.len(), rules.len()), (files, files), "{names:?}");
    assert!(rules.iter().all(|rule| rule["spec"]["groups"].is_array()));
}
