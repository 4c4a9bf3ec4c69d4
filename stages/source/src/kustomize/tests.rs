use serde_json::{Value, json};

use super::made;
use crate::compiled::Compiled;
use crate::testing::repository;

const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n";

struct Built {
    objects: Vec<crate::made::Object>,
    gaps: Vec<String>,
}

fn built(files: &[(&str, &str)], directory: &str, settings: &Value) -> Built {
    let (_directory, repository, commit) = repository(files);
    let made = made(&repository.snapshot(commit).unwrap(), directory, settings).unwrap();
    Built { objects: made.objects, gaps: made.gaps }
}

impl Built {
    /// The files that make an object of the core's group or of `apps`.
    fn makers(&self, kind: &str, namespace: &str, name: &str) -> Vec<&str> {
        let group = if kind == "Deployment" { "apps" } else { "" };
        let compiled = Compiled {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Compiled::default()
        };
        let found = self.objects.iter().filter(|object| object.is(&compiled, "shop"));
        found.map(|object| object.origin.path.as_str()).collect()
    }
}

#[test]
fn prefixes_suffixes_and_namespaces_add_up_from_the_base_outwards() {
    let files = [
        ("base/kustomization.yaml", "resources: [web.yaml, ns.yaml]\nnameSuffix: -b\n"),
        ("base/web.yaml", WEB),
        ("base/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: old}\n"),
        ("prod/kustomization.yml", "bases: [../base]\nnamePrefix: prod-\nnamespace: live\nnameSuffix: -p\n"),
    ];
    let prod = built(&files, "prod", &Value::Null);
    assert_eq!(prod.makers("Deployment", "live", "prod-web-b-p"), ["base/web.yaml"]);
    assert_eq!(prod.makers("Deployment", "", "prod-web-b-p"), ["base/web.yaml"]);
    assert_eq!(prod.makers("Namespace", "", "live"), ["base/ns.yaml"]);
    for (namespace, name) in [("live", "web"), ("shop", "prod-web-b-p"), ("live", "prod-web-b")] {
        assert_eq!(prod.makers("Deployment", namespace, name), [""; 0], "{namespace}/{name}");
    }
    assert_eq!(prod.gaps, [""; 0]);
    // What the application sets stands in the place of the Kustomization's own.
    let set = built(&files, "prod", &json!({"namePrefix": "mine-", "namespace": "ours"}));
    assert_eq!(set.makers("Deployment", "ours", "mine-web-b-p"), ["base/web.yaml"]);
}

#[test]
fn a_component_changes_what_its_includer_has_and_adds_its_own() {
    let files = [
        ("prod/kustomization.yaml", "resources: [../web.yaml]\ncomponents: [../tls]\n"),
        ("web.yaml", WEB),
        ("tls/kustomization.yaml", "kind: Component\nresources: [cert.yaml]\nnamePrefix: tls-\n"),
        ("tls/cert.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cert}\n"),
        ("extra/kustomization.yaml", "kind: Component\nresources: [more.yaml]\n"),
        ("extra/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"),
    ];
    let prod = built(&files, "prod", &json!({"components": ["../extra"]}));
    assert_eq!(prod.makers("Deployment", "shop", "tls-web"), ["web.yaml"]);
    assert_eq!(prod.makers("ConfigMap", "shop", "tls-cert"), ["tls/cert.yaml"]);
    assert_eq!(prod.makers("ConfigMap", "shop", "more"), ["extra/more.yaml"]);
}

#[test]
fn generated_objects_are_made_by_the_kustomization_and_carry_a_hash() {
    let files = [
        (
            "base/kustomization.yaml",
            "configMapGenerator:\n- name: conf\n  literals: [a=b]\nsecretGenerator:\n- name: key\n  options: {disableNameSuffixHash: true}\n",
        ),
        (
            "prod/kustomization.yaml",
            "resources: [../base]\nnamePrefix: p-\nconfigMapGenerator:\n- name: conf\n  behavior: merge\n- name: own\n",
        ),
    ];
    let prod = built(&files, "prod", &Value::Null);
    assert_eq!(prod.makers("ConfigMap", "shop", "p-conf-6ct58987ht"), ["base/kustomization.yaml"]);
    assert_eq!(prod.makers("ConfigMap", "shop", "p-own-6ct58987ht"), ["prod/kustomization.yaml"]);
    assert_eq!(prod.makers("Secret", "shop", "p-key"), ["base/kustomization.yaml"]);
    assert_eq!(prod.makers("ConfigMap", "shop", "p-conf"), [""; 0]);
    assert_eq!(prod.objects[0].origin.last_line, 6);
}

#[test]
fn what_keeps_its_name_in_kustomize_keeps_it_here() {
    let files = [
        ("a/kustomization.yaml", "resources: [crd.yaml]\nnamePrefix: p-\n"),
        (
            "a/crd.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.y}\n",
        ),
    ];
    let built = built(&files, "a", &Value::Null);
    let compiled = Compiled {
        group: "apiextensions.k8s.io".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        name: "x.y".to_owned(),
        ..Compiled::default()
    };
    assert!(built.objects[0].is(&compiled, "shop"));
}

#[test]
fn what_is_not_followed_is_a_gap_and_a_name_that_may_change_is_not_known() {
    let files = [
        (
            "a/kustomization.yaml",
            "resources: ['https://github.com/x/y', web.yaml, ../../out.yaml, none.yaml, ../b, ../empty]\nhelmCharts: [{name: redis}]\n",
        ),
        ("a/web.yaml", WEB),
        ("b/kustomization.yaml", "resources: [../a]\n"),
        ("empty/x.txt", ""),
        (
            "patched/kustomization.yaml",
            "resources: [../web]\npatches: [{path: p.yaml, options: {allowNameChange: true}}]\n",
        ),
        (
            "replaced/kustomization.yaml",
            "resources: [../web]\nreplacements: [{targets: [{fieldPaths: [metadata.name]}]}]\n",
        ),
        ("transformed/kustomization.yaml", "resources: [../web]\ntransformers: [t.yaml]\n"),
        (
            "kept/kustomization.yaml",
            "resources: [../web]\npatches: [{path: p.yaml}]\nreplacements: [{targets: [{fieldPaths: [spec.x]}]}]\n",
        ),
        ("web/kustomization.yaml", "resources: [web.yaml]\n"),
        ("web/web.yaml", WEB),
        ("broken/kustomization.yaml", "a: [\n"),
    ];
    let a = built(&files, "a", &Value::Null);
    assert_eq!(
        a.gaps,
        [
            "a is made of another repository",
            "../../out.yaml of a leads out of the repository",
            "a/none.yaml is not there",
            "the Kustomization in a is made of itself",
            "there is no Kustomization in empty",
            "what helmCharts of a/kustomization.yaml makes is not known",
        ]
    );
    assert_eq!(a.makers("Deployment", "shop", "web"), ["a/web.yaml"]);
    for directory in ["patched", "replaced", "transformed"] {
        assert_eq!(
            built(&files, directory, &Value::Null).makers("Deployment", "shop", "web"),
            [""; 0],
            "{directory}"
        );
    }
    assert_eq!(built(&files, "kept", &Value::Null).makers("Deployment", "shop", "web"), ["web/web.yaml"]);
    assert_eq!(
        built(&files, "broken", &Value::Null).gaps,
        ["broken/kustomization.yaml: no YAML at line 1", "there is no Kustomization in broken"]
    );
}

#[test]
fn kustomizations_that_include_each_other_many_times_come_to_an_end() {
    let names: Vec<String> = (0..12).map(|n| format!("l{n}/kustomization.yaml")).collect();
    let texts: Vec<String> = (0..12).map(|n| format!("resources: [../l{0}, ../l{0}]\n", n + 1)).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let built = built(&files, "l0", &Value::Null);
    assert!(
        built.gaps.iter().any(|gap| gap.starts_with("it is made of more than 256 Kustomizations")),
        "{:?}",
        built.gaps
    );
}

/// A Kustomization with these lines beside a comment of a mebibyte.
fn beside_a_long_comment(lines: &str) -> String {
    format!("# {}\n{lines}", "x".repeat(1024 * 1024))
}

const TOO_MUCH: &str = "its files have more than 64 MiB, each object counted with the text that it stands in: make several applications \
                        of it, or take out of its files what makes no object";

#[test]
fn generated_objects_share_the_text_of_their_kustomization_and_have_an_end() {
    let generators = "- name: conf\n".repeat(300);
    let text = beside_a_long_comment(&format!("configMapGenerator:\n{generators}"));
    let of = built(&[("a/kustomization.yaml", &text)], "a", &Value::Null);
    assert_eq!(of.objects[0].origin.manifest.as_ptr(), of.objects[1].origin.manifest.as_ptr());
    let bytes: usize = of.objects.iter().map(|object| object.origin.manifest.len()).sum();
    assert!(
        of.objects.len() > 50 && bytes <= 64 * 1024 * 1024,
        "{} objects of {bytes} bytes",
        of.objects.len()
    );
    assert_eq!(of.gaps, [TOO_MUCH]);
    // A text of an ordinary size makes all of them.
    let of =
        built(&[("a/kustomization.yaml", &format!("configMapGenerator:\n{generators}"))], "a", &Value::Null);
    assert_eq!((of.objects.len(), of.gaps), (300, Vec::new()));
}

#[test]
fn a_name_that_is_longer_than_any_name_is_not_made_and_said() {
    let generators = format!("configMapGenerator:\n{}", "- name: conf\n".repeat(300));
    let long = "x".repeat(1024 * 1024);
    for given in ["namePrefix", "nameSuffix", "namespace"] {
        let files = [
            ("a/kustomization.yaml", &*format!("resources: [../b]\n{given}: {long}\n")),
            ("b/kustomization.yaml", &*generators),
        ];
        let of = built(&files, "a", &Value::Null);
        let bytes = |object: &crate::made::Object| {
            object.name.text().len() + object.namespace.as_ref().map_or(0, String::len)
        };
        assert_eq!(of.objects.iter().map(bytes).sum::<usize>(), 300 * "conf".len(), "{given}");
        let gap = "a/kustomization.yaml gives names of more than 1024 bytes: shorten its prefix, suffix or namespace";
        assert_eq!(of.gaps, [gap]);
        assert_eq!(of.makers("ConfigMap", "shop", "conf-6ct58987ht"), [""; 0], "{given}");
    }
}

#[test]
fn the_objects_of_all_files_of_a_kustomization_are_counted_together() {
    let pods = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n".repeat(10_001);
    let files = [
        ("a/kustomization.yaml", "resources: [x.yaml, y.yaml]\n"),
        ("a/x.yaml", &*pods),
        ("a/y.yaml", &*pods),
    ];
    let of = built(&files, "a", &Value::Null);
    let gap = "it has more than 20000 objects: make several applications of it";
    assert_eq!((of.objects.len(), of.gaps), (20_000, vec![gap.to_owned()]));
}

#[test]
fn a_file_that_is_named_again_and_again_is_read_to_an_end() {
    let text = beside_a_long_comment(WEB);
    let files = [
        ("a/kustomization.yaml", &*format!("resources:\n{}", "- web.yaml\n".repeat(100))),
        ("a/web.yaml", &*text),
    ];
    let of = built(&files, "a", &Value::Null);
    assert!(of.objects.len() < 64, "{} objects", of.objects.len());
    assert_eq!(of.gaps, [TOO_MUCH]);
}
