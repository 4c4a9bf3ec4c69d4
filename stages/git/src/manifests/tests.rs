use super::{Manifests, manifests};
use crate::testing::{file, link, repository};

fn found(files: &[(&str, i32, &[u8])], path: &str, recurse: bool) -> Manifests {
    let (_directory, repository, commit) = repository(files);
    manifests(&repository.snapshot(commit).unwrap(), path, recurse).unwrap()
}

fn shown(found: &Manifests) -> Vec<String> {
    let each = found.manifests.iter();
    each.map(|of| {
        format!(
            "{}/{} {}/{} {}:{}-{}",
            of.group, of.kind, of.namespace, of.name, of.path, of.first_line, of.last_line
        )
    })
    .collect()
}

#[test]
fn each_object_has_its_file_and_lines() {
    let text = "# a comment alone\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n--- # next\n\
                apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n\
                ---\njust: values\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-}\n";
    let files = [
        file("a/all.yaml", text),
        file(
            "a/one.json",
            "{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"web\"}}",
        ),
        file("a/notes.txt", "kind: x"),
        file("a/below/x.yml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"),
    ];
    let expected = [
        "apps/Deployment shop/web a/all.yaml:3-5",
        "/ConfigMap /a a/all.yaml:7-11",
        "/ConfigMap /b a/all.yaml:7-11",
        "batch/Job /migrate- a/all.yaml:15-17",
        "/Service /web a/one.json:1-1",
    ];
    assert_eq!(shown(&found(&files, "a", false)), expected);
    let all = found(&files, "/a/", true);
    assert_eq!(shown(&all).len(), 6);
    assert_eq!(shown(&found(&files, "a/below/x.yml", false)), ["/Secret /s a/below/x.yml:1-3"]);
    assert_eq!(
        &*all.manifests[0].manifest,
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"
    );
    assert_eq!(found(&files, "none", true), Manifests::default());
}

#[test]
fn what_a_hostile_repository_holds_is_refused_and_named() {
    let lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    let large = "a".repeat(super::MAX_FILE + 1);
    let files = [
        link("a/absolute.yaml", "/etc/passwd"),
        file("a/broken.yaml", "a: 1\n---\n{{ template }}: [\n"),
        link("a/circle.yaml", "circle.yaml"),
        file("a/large.yaml", &large),
        file("a/lfs.yaml", lfs),
        file("a/new\nline.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\n[\n"),
        link("a/out.yaml", "../../out.yaml"),
        link("a/well.yaml", "../b/well.yaml"),
        file("b/well.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: linked}\n"),
    ];
    let found = found(&files, "a", true);
    let unread: Vec<String> =
        found.unread.iter().map(|unread| format!("{}: {}", unread.path, unread.why)).collect();
    assert_eq!(
        unread,
        [
            "a/absolute.yaml: a/absolute.yaml leads out of the repository",
            "a/broken.yaml: no YAML at line 1 of the document in lines 3 to 3",
            "a/circle.yaml: a/circle.yaml is behind more than 8 symbolic links",
            "a/large.yaml: a/large.yaml has 10485761 bytes, and no more than 10485760 are read",
            "a/lfs.yaml: the content of a/lfs.yaml is not in the repository: it is kept with Git LFS",
            "a/new\\nline.yaml: no YAML at line 1 of the document in lines 5 to 5",
            "a/out.yaml: a/out.yaml leads out of the repository",
        ]
    );
    assert_eq!(shown(&found), ["/Pod /p a/new\nline.yaml:1-3", "/Pod /linked a/well.yaml:1-3"]);
}

#[test]
fn a_path_in_a_submodule_or_out_of_the_repository_is_refused() {
    let (_directory, repository, commit) = repository(&[("sub", 0o160_000, b"")]);
    let files = repository.snapshot(commit).unwrap();
    let why = |path: &str| manifests(&files, path, true).unwrap_err().to_string();
    assert_eq!(why("sub/x"), "sub/x is in a submodule, which is another repository");
    assert_eq!(why("a/../../b"), "a/../../b leads out of the repository");
}
