use serde_json::{Value, json};

use super::{Application, applications};
use crate::Address;
use crate::testing::{file, link, repository};

fn application(annotation: Option<&str>, spec: &Value) -> Application {
    let mut metadata = json!({"namespace": "argocd", "name": "shop"});
    if let Some(annotation) = annotation {
        metadata["annotations"] = json!({"argocd.argoproj.io/manifest-generate-paths": annotation});
    }
    let object = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec});
    Application::read(&object).unwrap()
}

fn paths(application: &Application, source: usize, files: &[(&str, i32, &[u8])]) -> Vec<String> {
    let (_directory, repository, commit) = repository(files);
    application.paths(source, &repository.snapshot(commit).unwrap()).unwrap().all.into_iter().collect()
}

#[test]
fn the_annotation_says_which_paths_and_nothing_else_does() {
    let spec = json!({"source": {"repoURL": "https://x/y", "path": "apps/shop", "helm": {"valueFiles": ["v.yaml"]}}});
    let cases = [
        (".", vec!["apps/shop"]),
        ("/shared;.;../base", vec!["apps/base", "apps/shop", "shared"]),
        ("/", vec![""]),
        ("../../../out", vec![]),
        (" . ; /apps/*/x.yaml ", vec!["apps/*/x.yaml", "apps/shop"]),
    ];
    for (annotation, expected) in cases {
        assert_eq!(paths(&application(Some(annotation), &spec), 0, &[]), expected, "{annotation}");
    }
}

#[test]
fn value_files_and_charts_elsewhere_in_the_repository_belong_to_a_source() {
    let helm = json!({
        "valueFiles": ["values.yaml", "../../env/prod.yaml", "/shared.yaml", "https://x/v.yaml", "$other/v.yaml"],
        "fileParameters": [{"name": "a", "path": "a.txt"}],
    });
    let shop = application(
        None,
        &json!({"source": {"repoURL": "https://x/y", "path": "charts/shop", "helm": helm}}),
    );
    let files = [
        file(
            "charts/shop/Chart.yaml",
            "dependencies:\n- {name: a, repository: 'file://../lib'}\n- {name: b, repository: 'https://x'}\n",
        ),
        file("charts/lib/Chart.yaml", "dependencies:\n- {name: c, repository: 'file://../deeper'}\n"),
        file("charts/deeper/Chart.yaml", "dependencies:\n- {name: c, repository: 'file://../shop'}\n"),
    ];
    assert_eq!(
        paths(&shop, 0, &files),
        [
            "charts/deeper",
            "charts/lib",
            "charts/shop",
            "charts/shop/a.txt",
            "charts/shop/values.yaml",
            "env/prod.yaml",
            "shared.yaml",
            // What nothing is called by is a variable that is empty.
            "v.yaml"
        ]
    );
}

#[test]
fn variables_in_paths_of_values_stand_for_what_argo_cd_puts_there() {
    let helm = json!({
        "valueFiles": ["env/$ARGOCD_APP_NAME.yaml", "$ARGOCD_APP_PROJECT_NAME/${ARGOCD_APP_NAMESPACE}.yaml",
            "/at/$ARGOCD_APP_REVISION_SHORT/v.yaml", "../$ARGOCD_APP_SOURCE_TARGET_REVISION.yaml", "$NONE", "a$$b.yaml",
            "$ARGOCD_APP_SOURCE_REPO_URL/v.yaml", "$values/$ARGOCD_APP_SOURCE_PATH/$ARGOCD_APP_NAME.yaml"],
        "fileParameters": [{"name": "a", "path": "/$ARGOCD_APP_SOURCE_PATH.txt"}],
    });
    let shop = application(
        None,
        &json!({"destination": {"namespace": "prod"}, "sources": [
            {"repoURL": "https://x/y", "path": "charts/web", "targetRevision": "main", "helm": helm},
            {"repoURL": "https://x/y", "ref": "values", "targetRevision": "stable"},
        ]}),
    );
    assert_eq!(
        paths(&shop, 0, &[]),
        [
            "at/*/v.yaml",
            "charts/main.yaml",
            "charts/web",
            "charts/web.txt",
            "charts/web/a$b.yaml",
            "charts/web/default/prod.yaml",
            // An application that stands elsewhere than Argo CD is called so.
            "charts/web/env/argocd_shop.yaml",
            "charts/web/env/shop.yaml",
        ]
    );
    assert_eq!(paths(&shop, 1, &[]), ["charts/web/argocd_shop.yaml", "charts/web/shop.yaml"]);
}

#[test]
fn any_directories_in_a_path_of_values_are_all_of_the_one_above() {
    let helm =
        json!({"valueFiles": ["env/**/v.yaml", "/all/*.yaml", "$values/a/b**/c/*.yaml", "$values/**"]});
    let spec = json!({"sources": [
        {"repoURL": "https://x/y", "path": "charts/web", "helm": helm}, {"repoURL": "https://x/y", "ref": "values"},
    ]});
    let shop = application(None, &spec);
    assert_eq!(paths(&shop, 0, &[]), ["all/*.yaml", "charts/web", "charts/web/env"]);
    assert_eq!(paths(&shop, 1, &[]), ["", "a"]);
}

#[test]
fn what_a_kustomization_is_made_of_belongs_to_a_source() {
    let shop = application(None, &json!({"source": {"repoURL": "https://x/y", "path": "env/prod"}}));
    let files = [
        file(
            "env/prod/kustomization.yaml",
            "resources: [../../base, https://x/y]\ncomponents: [../../parts/tls]\npatches:\n- path: ../patch.yaml\n- patch: |\n    a: b\n\
             configMapGenerator:\n- files: [../conf.txt, name=../named.txt]\n  envs: [../e.env]\n",
        ),
        file("base/kustomization.yml", "resources: [../deeper, x.yaml]\n"),
        file("deeper/Kustomization", "resources: [../env/prod]\n"),
        file("parts/tls/kustomization.yaml", "no: [yaml\n"),
    ];
    assert_eq!(
        paths(&shop, 0, &files),
        [
            "base",
            "base/x.yaml",
            "deeper",
            "env/conf.txt",
            "env/e.env",
            "env/named.txt",
            "env/patch.yaml",
            "env/prod",
            "parts/tls"
        ]
    );
}

#[test]
fn of_more_paths_than_are_kept_those_below_others_go_first_and_the_source_s_own_never() {
    let helm = json!({"valueFiles": ["/zones/prod.yaml"]});
    let web = application(
        None,
        &json!({"source": {"repoURL": "https://x/y", "path": "services/web", "helm": helm}}),
    );
    let kustomization = |names: &dyn Fn(usize) -> String| {
        let names: Vec<String> = (0..=super::MAX_PATHS).map(names).collect();
        format!("resources:\n- {}\n", names.join("\n- "))
    };
    let web_of = file("services/web/kustomization.yaml", "resources: [../../base]\n");
    let below = kustomization(&|n| format!("{n}.yaml"));
    let files = [web_of, file("base/kustomization.yaml", &below)];
    assert_eq!(paths(&web, 0, &files), ["base", "services/web", "zones/prod.yaml"]);
    let beside = kustomization(&|n| format!("../base-{n}.yaml"));
    let files = [web_of, file("base/kustomization.yaml", &beside)];
    let found = paths(&web, 0, &files);
    assert_eq!(found.len(), super::MAX_PATHS);
    for own in ["base", "base-0.yaml", "services/web", "zones/prod.yaml"] {
        assert!(found.iter().any(|path| path == own), "{own}");
    }
}

#[test]
fn what_others_take_of_a_source_is_kept_of_more_paths_than_there_is_room_for() {
    let names: Vec<String> = (0..super::MAX_PATHS).map(|n| format!("../a-{n}.yaml")).collect();
    let many = format!("resources:\n- {}\n", names.join("\n- "));
    let shop = application(
        None,
        &json!({"sources": [
            {"repoURL": "https://charts", "chart": "shop", "helm": {"valueFiles": ["$values/zones/prod.yaml"]}},
            {"repoURL": "https://x/y", "ref": "values", "path": "web"},
        ]}),
    );
    let found = paths(&shop, 1, &[file("web/kustomization.yaml", &many)]);
    assert_eq!(found.len(), super::MAX_PATHS);
    assert_eq!(&found[found.len() - 2..], ["web", "zones/prod.yaml"]);
}

#[test]
fn an_annotation_of_more_paths_than_are_kept_is_the_source_s_directory() {
    let spec = json!({"sources": [
        {"repoURL": "https://charts", "chart": "shop", "helm": {"valueFiles": ["$values/env/prod.yaml"]}},
        {"repoURL": "https://x/y", "path": "apps/shop"},
        {"repoURL": "https://x/y", "ref": "values"},
    ]});
    let of = |count: usize| {
        let entries: Vec<String> = (0..count).map(|n| format!("/shared/{n}")).collect();
        application(Some(&entries.join(";")), &spec)
    };
    assert_eq!(paths(&of(super::MAX_PATHS), 1, &[]).len(), super::MAX_PATHS);
    let many = of(super::MAX_PATHS + 1);
    assert_eq!(paths(&many, 1, &[]), ["apps/shop"]);
    assert_eq!(paths(&many, 2, &[]), ["env/prod.yaml"]);
}

#[test]
fn libraries_of_jsonnet_belong_to_a_source_from_the_root_of_the_repository() {
    let directory =
        json!({"recurse": true, "jsonnet": {"libs": ["vendor", "./lib/k", "/shared", "../out", 7]}});
    let shop = application(
        None,
        &json!({"source": {"repoURL": "https://x/y", "path": "apps/shop", "directory": directory}}),
    );
    assert_eq!(paths(&shop, 0, &[]), ["apps/shop", "lib/k", "shared", "vendor"]);
}

#[test]
fn what_jsonnet_imports_from_elsewhere_in_the_repository_belongs_to_a_source() {
    let of = |source: Value| {
        let mut whole = json!({"repoURL": "https://x/y", "path": "apps/shop"});
        whole.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        application(None, &json!({"source": whole}))
    };
    let files = [
        file("apps/shop/deep/main.jsonnet", "(import '../../lib/web.libsonnet') + import 'dep/x.libsonnet'"),
        file("apps/shop/none.jsonnet", "// import '../unused.libsonnet'\nimport '../missing.libsonnet'"),
        file(
            "apps/lib/web.libsonnet",
            "importstr '../texts/motd.txt' + import '/etc/passwd' + import '../../../out'",
        ),
        file("apps/texts/motd.txt", "import '../unused.libsonnet'"),
        file("apps/unused.libsonnet", "{}"),
        file("vendor/dep/x.libsonnet", "import '../../shared/y.libsonnet'"),
        file("shared/y.libsonnet", "import '../apps/shop/deep/main.jsonnet'"),
    ];
    let outside = ["apps/lib/web.libsonnet", "apps/shop", "apps/texts/motd.txt"];
    let jsonnet = json!({"directory": {"jsonnet": {"libs": ["vendor"]}}});
    assert_eq!(paths(&of(json!({})), 0, &files), outside);
    assert_eq!(
        paths(&of(jsonnet), 0, &files),
        [
            "apps/lib/web.libsonnet",
            "apps/shop",
            "apps/shop/deep/main.jsonnet",
            "apps/texts/motd.txt",
            "shared/y.libsonnet",
            "vendor",
            "vendor/dep/x.libsonnet"
        ]
    );
    // A plugin may read it, and other tools make nothing of it.
    assert_eq!(paths(&of(json!({"plugin": {}})), 0, &files), outside);
    assert_eq!(paths(&of(json!({"helm": {"releaseName": "a"}})), 0, &files), ["apps/shop"]);
    // What is looked for has an end: of eleven thousand imports between the first and the last file, that of one is found.
    let (many, names) =
        ("import 'none' + ".repeat(256), (0..43).map(|name| format!("apps/shop/{name}.jsonnet")));
    let names: Vec<String> = names.collect();
    let mut hostile: Vec<_> = names.iter().map(|name| file(name, &many)).collect();
    hostile.push(file("apps/shop/-first.jsonnet", "import '../lib/web.libsonnet'"));
    hostile.push(file("apps/shop/z-last.jsonnet", "import '../texts/motd.txt'"));
    hostile.extend([file("apps/lib/web.libsonnet", "{}"), file("apps/texts/motd.txt", "")]);
    assert_eq!(paths(&of(json!({})), 0, &hostile).len(), 2);
    let mut chart = files.to_vec();
    chart.push(file("apps/shop/Chart.yaml", "name: shop"));
    assert_eq!(paths(&of(json!({})), 0, &chart), ["apps/shop"]);
}

#[test]
fn what_argo_cd_writes_to_a_branch_are_the_manifests_in_the_directory_it_is_synced_from() {
    let of = |annotation: Option<&str>, path: &str| {
        let dry = json!({"repoURL": "https://x/y", "path": "charts/shop", "targetRevision": "main"});
        let synced = json!({"targetBranch": "environments/dev", "path": path});
        let spec = json!({
            "source": {"repoURL": "https://x/old", "path": "old"}, "sources": [{"repoURL": "https://x/old", "path": "old"}],
            "sourceHydrator": {"drySource": dry, "syncSource": synced, "hydrateTo": {"targetBranch": "next"}},
        });
        application(annotation, &spec)
    };
    let shop = of(None, "shop");
    let [source] = &*shop.sources else { panic!("{:?}", shop.sources) };
    assert_eq!(
        (&*source.repo_url, &*source.path, &*source.target_revision),
        ("https://x/y", "shop", "environments/dev")
    );
    assert_eq!(shop.of(&Address::read("https://x/y.git")).collect::<Vec<_>>(), [0]);
    // Of each commit it notes there what it made that from, and how, though no manifest changed.
    let made_from = "{\"drySha\": \"c0ffee\"}\n";
    let written = [
        file("hydrator.metadata", made_from),
        file("shop/README.md", "git checkout c0ffee\n"),
        file("shop/hydrator.metadata", made_from),
        file("shop/manifest.yaml", "kind: Service\n"),
    ];
    let manifests = |directory: &str| {
        ["*.json", "*.jsonnet", "*.yaml", "*.yml", "manifest.yaml"].map(|name| format!("{directory}{name}"))
    };
    // An annotation is of the branch that they are made from.
    for annotation in [None, Some("."), Some("/charts/shop;/charts/lib")] {
        for path in ["shop", "./shop/", "/shop"] {
            assert_eq!(
                paths(&of(annotation, path), 0, &written),
                manifests("shop/"),
                "{annotation:?}, {path}"
            );
        }
    }
    assert_eq!(paths(&of(None, "."), 0, &written), manifests(""));
    // What something else wrote is a directory like any other.
    let kustomized = [file("shop/kustomization.yaml", "resources: [../base]\n")];
    assert_eq!(paths(&of(Some("."), "shop"), 0, &kustomized), ["base", "shop"]);
    let elsewhere = [link("shop/hydrator.metadata", "/etc/passwd")];
    assert_eq!(paths(&of(None, "shop"), 0, &elsewhere), ["shop"]);
}

#[test]
fn what_argo_cd_writes_is_what_it_is_made_from_wherever_argo_cd_does_not_write() {
    let dry = json!({"repoURL": "https://x/y", "path": "shop", "targetRevision": "main", "helm": {"valueFiles": ["/env/shop.yaml"]}});
    let synced = json!({"targetBranch": "environments/dev", "path": "shop"});
    let hydrator = json!({"sourceHydrator": {"drySource": dry, "syncSource": synced}});
    let (plain, annotated) = (application(None, &hydrator), application(Some("/shop;/lib"), &hydrator));
    let standing = |shop: &Application, files: &[(&str, i32, &[u8])]| {
        let (_directory, repository, commit) = repository(files);
        let (files, none) = (repository.snapshot(commit).unwrap(), repository.snapshot(commit).unwrap());
        let shop = shop.standing_in(&[&files, &none]).unwrap();
        let [source] = &*shop.sources else { panic!("{:?}", shop.sources) };
        (source.target_revision.clone(), shop.paths(0, &files).unwrap().all.into_iter().collect())
    };
    let of = |revision: &str, paths: &[&str]| {
        (revision.to_owned(), paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    };
    let chart = [file("shop/Chart.yaml", "name: shop\n")];
    assert_eq!(standing(&plain, &chart), of("main", &["env/shop.yaml", "shop"]));
    assert_eq!(standing(&annotated, &chart), of("main", &["lib", "shop"]));
    let written = [file("shop/hydrator.metadata", "{}"), file("shop/manifest.yaml", "")];
    let manifests = ["shop/*.json", "shop/*.jsonnet", "shop/*.yaml", "shop/*.yml", "shop/manifest.yaml"];
    assert_eq!(standing(&annotated, &written), of("environments/dev", &manifests));
    assert_eq!(standing(&plain, &[file("a", "")]), of("environments/dev", &["shop"]), "it is in neither");
    let other = application(None, &json!({"source": {"repoURL": "https://x/y", "path": "shop"}}));
    assert_eq!(standing(&other, &chart), of("", &["shop"]));
}

#[test]
fn a_path_is_the_same_however_it_is_written() {
    for (path, expected) in
        [("", ""), (".", ""), ("./", ""), ("/x", "x"), ("x/", "x"), ("./x//y/../z/", "x/z")]
    {
        let spec = json!({"source": {"repoURL": "https://x/y", "path": path}});
        assert_eq!(paths(&application(None, &spec), 0, &[]), [expected], "{path:?}");
        let beside = if expected.is_empty() { "a".to_owned() } else { format!("{expected}/a") };
        assert_eq!(paths(&application(Some("a;./a;/b/"), &spec), 0, &[]), {
            let mut both = [beside, "b".to_owned()];
            both.sort();
            both
        });
    }
}

#[test]
fn a_source_that_others_refer_to_has_the_files_they_take() {
    let shop = application(
        None,
        &json!({"sources": [
            {"repoURL": "https://charts", "chart": "shop", "helm": {"valueFiles": ["$values/env/prod.yaml", "$none/x"]}},
            {"repoURL": "https://x/y", "ref": "values"},
            {"repoURL": "https://x/y", "path": "plain"},
        ]}),
    );
    assert_eq!(paths(&shop, 0, &[]), [] as [&str; 0]);
    assert_eq!(paths(&shop, 1, &[]), ["env/prod.yaml"]);
    assert_eq!(paths(&shop, 2, &[]), ["plain"]);
    assert_eq!(shop.of(&Address::read("git@x:y.git")).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn an_annotation_of_no_path_is_none_and_a_source_without_a_directory_is_not_the_whole_repository() {
    let spec = json!({"sources": [
        {"repoURL": "https://charts", "chart": "shop", "helm": {"valueFiles": ["$values/env/prod.yaml"]}},
        {"repoURL": "https://x/y", "ref": "values"},
        {"repoURL": "https://x/y", "ref": "more", "path": "more"},
    ]});
    for (annotation, values, more) in [
        (" ; ", vec!["env/prod.yaml"], vec!["more"]),
        (".", vec!["env/prod.yaml"], vec!["more"]),
        ("./;lib", vec!["env/prod.yaml", "lib"], vec!["more", "more/lib"]),
        ("/;..", vec![""], vec![""]),
    ] {
        let shop = application(Some(annotation), &spec);
        assert_eq!(
            (paths(&shop, 1, &[]), paths(&shop, 2, &[])),
            (strings(&values), strings(&more)),
            "{annotation}"
        );
    }
}

fn strings(of: &[&str]) -> Vec<String> {
    of.iter().map(|one| (*one).to_owned()).collect()
}

#[test]
fn what_stands_behind_links_belongs_to_a_source() {
    let at = |path: &str, helm: &Value| {
        application(None, &json!({"source": {"repoURL": "https://x/y", "path": path, "helm": helm}}))
    };
    // What is named there is seen from where it stands.
    let files = [
        link("apps/shop", "../deep/er/shop"),
        file("deep/er/shop/kustomization.yaml", "resources: [../base]\n"),
    ];
    let expected = ["apps/base", "apps/shop", "deep/er/base", "deep/er/shop"];
    assert_eq!(paths(&at("apps/shop", &Value::Null), 0, &files), expected);
    let files = [
        file("core/x", ""),
        link("env/now.yaml", "v2.yaml"),
        file("env/v2.yaml", ""),
        file("lib/Chart.yaml", "dependencies:\n- {name: a, repository: 'file://../core'}\n"),
        link("web/charts/lib", "../../lib"),
        link("web/circle", "circle"),
        link("web/none", "../none/yet"),
        link("web/out", "../../etc/passwd"),
    ];
    let web = at("web", &json!({"valueFiles": ["../env/now.yaml"]}));
    let expected = ["core", "env/now.yaml", "env/v2.yaml", "lib", "none/yet", "web", "web/circle"];
    assert_eq!(paths(&web, 0, &files), expected);
    let root = at("", &Value::Null);
    assert_eq!(paths(&root, 0, &files), [""], "everything is in it");
}

/// So many links in the directory `web`, each of which leads through a path of so many bytes.
fn many_links(count: usize, bytes: usize) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("web/{n}"), format!("../lib/{n:06}/{}", "a/".repeat(bytes / 2)))).collect()
}

#[test]
fn links_that_lead_through_more_than_is_followed_are_refused_with_what_to_do() {
    let web = application(None, &json!({"source": {"repoURL": "https://x/y", "path": "web"}}));
    let found = |links: &[(String, String)]| {
        let files: Vec<_> = links.iter().map(|(path, target)| link(path, target)).collect();
        let (_directory, repository, commit) = repository(&files);
        let snapshot = repository.snapshot(commit).unwrap();
        // What one application takes is not taken from another of the same commit.
        [(), ()].map(|()| web.paths(0, &snapshot).map(|paths| paths.all.len()).map_err(|why| why.to_string()))
    };
    let of_many = found(&many_links(4_000, 20));
    assert_eq!(of_many, [Ok(4_001), Ok(4_001)]);
    let of_long = found(&many_links(1_500, 4_000));
    assert_eq!(of_long, [Ok(1_501), Ok(1_501)]);
    for refused in found(&many_links(3_000, 4_000)) {
        let why = refused.unwrap_err();
        assert!(
            why.starts_with(
                "symbolic links lead through more than 8388608 bytes of paths, the last of them web/"
            ),
            "{why}"
        );
        let what_to_do = "name what the application is made of in its annotation argocd.argoproj.io/manifest-generate-paths";
        assert!(why.contains(what_to_do), "{why}");
    }
}

#[test]
fn paths_beyond_a_bound_are_not_looked_at_and_what_is_the_sources_own_stands_all_the_same() {
    let shop = |files: &[String]| {
        let source = json!({"repoURL": "https://x/y", "path": "web", "helm": {"valueFiles": files}});
        application(None, &json!({ "source": source }))
    };
    let many = |of: &str| {
        let names: Vec<String> = (0..15_000).map(|n| format!("../{of}/{n:040}")).collect();
        format!("resources:\n- {}\n- ../a/last-{of}\n", names.join("\n- "))
    };
    let directories = ["x", "y", "z"];
    let texts = directories.map(|of| (format!("parts/{of}/kustomization.yaml"), many(of)));
    let mut files: Vec<_> = texts.iter().map(|(path, text)| file(path, text)).collect();
    files.push(file("web/kustomization.yaml", "resources: [../parts/x, ../parts/y, ../parts/z]\n"));
    let found = paths(&shop(&["/env/prod.yaml".to_owned()]), 0, &files);
    let is_there = |path: &str| found.iter().any(|found| found == path);
    assert!(is_there("web") && is_there("env/prod.yaml") && is_there("parts/x"));
    // What two of them name is within the bound, and what all three name is not.
    let read_to_the_end = directories.iter().filter(|of| is_there(&format!("parts/a/last-{of}")));
    assert_eq!(read_to_the_end.count(), 2);
    let values: Vec<String> = (0..60_000).map(|n| format!("../values/{n:040}")).collect();
    assert!(paths(&shop(&values), 0, &[]).contains(&"web".to_owned()));
}

#[test]
fn an_annotation_stands_for_links_that_are_more_than_is_followed() {
    let spec = json!({"source": {"repoURL": "https://x/y", "path": "web"}});
    let links = many_links(3_000, 4_000);
    let files: Vec<_> = links.iter().map(|(path, target)| link(path, target)).collect();
    assert_eq!(paths(&application(Some(".;/lib"), &spec), 0, &files), ["lib", "web"]);
}

#[test]
fn of_a_directory_of_which_some_files_are_manifests_these_belong_to_a_source() {
    let directory = json!({"recurse": true, "include": "*/application.yaml"});
    let all = application(
        None,
        &json!({"source": {"repoURL": "https://x/y", "path": "apps", "directory": directory}}),
    );
    let found = |files: &[(&str, i32, &[u8])]| {
        let (_directory, repository, commit) = repository(files);
        let found = all.paths(0, &repository.snapshot(commit).unwrap()).unwrap();
        let some: Vec<_> = found.some.into_iter().map(|some| some.directory).collect();
        (found.all.into_iter().collect::<Vec<_>>(), some)
    };
    // Argo CD reads no Kustomization there.
    let files = [
        file("apps/kustomization.yaml", "resources: [../base]\n"),
        link("apps/a/application.yaml", "../../real.yaml"),
    ];
    assert_eq!(found(&files), (strings(&["real.yaml"]), strings(&["apps"])));
    assert_eq!(
        found(&[link("apps", "at/apps"), file("at/apps/x", "")]),
        (vec![], strings(&["at/apps", "apps"]))
    );
    let files = [file("apps/.argocd-source.yaml", "directory: {include: '*'}\n")];
    assert_eq!(found(&files), (strings(&["apps"]), vec![]));
}

#[test]
fn what_stands_beside_manifests_and_patches_of_an_application_name_files_as_well() {
    let kustomize =
        json!({"patches": [{"path": "../patch.yaml"}, {"patch": "a: b\n"}], "components": ["../tls"]});
    let shop = application(
        None,
        &json!({"source": {"repoURL": "https://x/y", "path": "env/prod", "kustomize": kustomize}}),
    );
    let files = [
        file("env/prod/.argocd-source.yaml", "helm: {valueFiles: [/all.yaml]}\n"),
        file("env/prod/.argocd-source-argocd_shop.yaml", "helm: {valueFiles: [$ARGOCD_APP_NAME.yaml]}\n"),
        file("env/prod/.argocd-source-other.yaml", "helm: {valueFiles: [other.yaml]}\n"),
    ];
    let expected = [
        "all.yaml",
        "env/patch.yaml",
        "env/prod",
        "env/prod/argocd_shop.yaml",
        "env/prod/shop.yaml",
        "env/tls",
    ];
    assert_eq!(paths(&shop, 0, &files), expected);
}

#[test]
fn what_cannot_be_read_of_a_chart_leaves_its_directory() {
    let shop = application(None, &json!({"source": {"repoURL": "https://x/y", "path": "chart"}}));
    let large = "a".repeat(super::MAX_FILE + 1);
    for files in [[link("chart/Chart.yaml", "../../../etc/passwd")], [file("chart/Chart.yaml", &large)]] {
        assert_eq!(paths(&shop, 0, &files), ["chart"]);
    }
}

#[test]
fn what_a_registry_holds_belongs_to_no_repository() {
    let sources = json!([
        {"repoURL": "https://git.example.com/team/web", "chart": "web", "path": "a"},
        {"repoURL": "oci://git.example.com/team/web", "path": "a"},
        {"repoURL": "https://git.example.com/team/web", "path": "a"},
    ]);
    let shop = application(None, &json!({ "sources": sources }));
    let repository = Address::read("https://git.example.com/team/web");
    assert_eq!(shop.of(&repository).collect::<Vec<_>>(), [2]);
    assert_eq!([0, 1, 2].map(|source| paths(&shop, source, &[])), [vec![], vec![], vec!["a".to_owned()]]);
}

#[test]
fn applications_are_read_from_lists_and_documents_and_other_kinds_are_passed_over() {
    let text = "# all\n---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {source: {repoURL: x}}\n\
                ---\napiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: p}\n---\napiVersion: v1\nkind: List\n\
                items:\n- {apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {namespace: n, name: b}}\n";
    let names = |text: &str| applications(text).unwrap().iter().map(Application::id).collect::<Vec<_>>();
    assert_eq!(names(text), ["a", "n/b"]);
    assert_eq!(
        names(
            r#"{"items": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "j"}}]}"#
        ),
        ["j"]
    );
    for (text, why) in [
        ("a: 1\n---\nkind: [", "the document in lines 3 to 3 is not valid: no YAML at line 1"),
        ("{\n\"a\": }", "the document in lines 1 to 2 is not valid: no JSON at line 2"),
        ("a: secret\na: secret", "the document in lines 1 to 2 is not valid: a key stands twice at line 2"),
    ] {
        assert_eq!(applications(text).unwrap_err().to_string(), why);
    }
}
