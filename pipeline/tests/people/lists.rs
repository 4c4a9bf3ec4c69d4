//! What is shown of runtimes and applications, for people and for programs.

use serde_json::{Value, json};

use crate::desk::{Desk, told};

/// A row of a table, by its cells.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect()
}

#[tokio::test]
async fn runtimes_and_applications_are_listed_in_every_form() {
    let desk = Desk::signed_in().await;
    let runtimes = desk.run(&["runtime", "list"]).await.done();
    let shown = rows(&runtimes);
    assert_eq!(
        (&shown[0][..3], &shown[1][..2]),
        (&["NAME", "STATUS", "LAST REPORT"][..], &["prod", "Healthy"][..])
    );
    assert_eq!(desk.run(&["runtime", "list", "-o", "name"]).await.done(), "prod\n");
    let one = desk.json(&["runtime", "get", "prod"]).await;
    assert_eq!(desk.json(&["runtime", "list"]).await, json!([one]));
    assert!(desk.run(&["runtime", "get", "prod"]).await.done().starts_with("Name:         prod\n"));

    let names = "prod/argocd/failing\nprod/argocd/store\n";
    assert_eq!(desk.run(&["app", "list", "-o", "name"]).await.done(), names);
    let listed = desk.run(&["app", "list"]).await.done();
    let shown = rows(&listed);
    assert_eq!(shown[0][..3], ["APPLICATION", "HEALTH", "SYNC"]);
    assert_eq!(shown[1][..3], ["prod/argocd/failing", "Missing", "OutOfSync"], "{listed}");
    let wide = desk.run(&["app", "list", "-o", "wide"]).await.done();
    assert!(wide.contains("PROJECT") && wide.contains("Grace Hopper"), "{wide}");
    assert!(!listed.contains("PROJECT"), "{listed}");
    let all = desk.json(&["app", "list"]).await;
    assert_eq!(all[1]["metadata"], json!({"runtime": "prod", "namespace": "argocd", "name": "store"}));
    let yaml = desk.run(&["app", "list", "-o", "yaml"]).await.done();
    assert!(yaml.starts_with("- ") && yaml.contains("\n  metadata:\n    name: failing\n"), "{yaml}");
    // Each way that an application can be named leads to it.
    for name in ["store", "argocd/store", "prod/argocd/store"] {
        assert_eq!(desk.json(&["app", "get", name]).await["metadata"], all[1]["metadata"]);
    }
    desk.stop().await;
}

#[tokio::test]
async fn labels_runtimes_and_limits_choose_what_is_listed() {
    let desk = Desk::signed_in().await;
    let names = async |arguments: &[&str]| {
        let said = desk.run(&[&["app", "list", "-o", "name"], arguments].concat()).await;
        assert_eq!(said.code, 0);
        (
            said.out.lines().map(|line| line.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>(),
            said.err,
        )
    };
    let all = desk.json(&["app", "list"]).await;
    let labels = all[1]["labels"].as_array().unwrap();
    assert!(!labels.is_empty(), "{all}");
    let label =
        |label: &Value| format!("{}={}", label["key"].as_str().unwrap(), label["value"].as_str().unwrap());
    let own = label(&labels[0]);
    assert!(names(&["-l", &own]).await.0.contains(&"store".to_owned()));
    assert!(names(&["-l", &format!("{own},none=such")]).await.0.is_empty());
    assert!(names(&["-l", &format!("{own}, {own}")]).await.0.contains(&"store".to_owned()));
    assert!(names(&["-l", "none=such"]).await.0.is_empty());
    assert_eq!(names(&["--runtime", "prod"]).await.0, ["failing", "store"]);
    assert!(names(&["--runtime", "eu1"]).await.0.is_empty());
    assert!(names(&["--namespace", "none"]).await.0.is_empty());
    let (first, more) = names(&["--limit", "1"]).await;
    assert_eq!(
        (first, more),
        (vec!["failing".to_owned()], told("there are more than 1: --limit shows more"))
    );
    let none = desk.run(&["app", "list", "--runtime", "eu1"]).await;
    assert_eq!(
        (none.code, none.out, none.err),
        (0, String::new(), told("there is no such application that you see"))
    );
    desk.stop().await;
}

#[tokio::test]
async fn applications_are_listed_by_the_words_that_the_console_takes() {
    let desk = Desk::signed_in().await;
    let names = async |words: &[&str]| {
        let said = desk.run(&[&["app", "list", "-o", "name"], words].concat()).await;
        assert_eq!(said.code, 0, "{said:?}");
        let names: Vec<String> =
            said.out.lines().map(|line| line.rsplit('/').next().unwrap().to_owned()).collect();
        (names, said.err)
    };
    let cases: [(&[&str], &[&str]); 8] = [
        (&["stor"], &["store"]),
        (&["health:missing"], &["failing"]),
        (&["health:missing,healthy"], &["failing", "store"]),
        (&["health:missing", "stor"], &[]),
        (&["sync:outofsync", "--runtime", "prod"], &["failing"]),
        (&["by:Grace Hopper", "health:missing"], &["failing"]),
        (&["by:Grace Nobody"], &[]),
        (&["runtime:eu1"], &[]),
    ];
    for (words, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names(words).await, (expected, String::new()), "{words:?}");
    }
    let value = "'health:bad' is no value of health:, and is searched for as text; one is health:degraded";
    assert_eq!(names(&["health:bad"]).await, (Vec::new(), told(value)));
    let (none, said) = names(&["owner:ada"]).await;
    let key =
        "gitops-runtime: there is no key owner:, and 'owner:ada' is searched for as text; keys are env, ";
    assert!(none.is_empty() && said.starts_with(key), "{said}");
    desk.stop().await;
}

#[tokio::test]
async fn lists_of_several_pages_are_whole() {
    let desk = Desk::start().await;
    let names: Vec<String> = (0..600).map(|number| format!("app-{number:04}")).collect();
    for name in &names {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "uid": name, "resourceVersion": "1", "labels": {"team": "shop"}},
            "spec": {"project": "default", "destination": {"namespace": "shop"}, "source": {"repoURL": "https://git.example.com"}},
        });
        desk.platform
            .report(&json!({"object": object, "source": {"syncStatus": "Synced", "healthStatus": "Healthy"}}))
            .await;
    }
    let url = desk.platform.url();
    desk.typed(&["login", &url], &desk.key).await.done();
    let listed = desk.run(&["app", "list", "-o", "name", "-l", "team=shop"]).await.done();
    let expected: String = names.iter().map(|name| format!("prod/argocd/{name}\n")).collect();
    assert_eq!(listed, expected);
    for limit in [333, 500, 555] {
        let some = desk.run(&["app", "list", "--limit", &limit.to_string(), "-o", "name"]).await;
        let expected: String = names.iter().take(limit).map(|name| format!("prod/argocd/{name}\n")).collect();
        let more = told(&format!("there are more than {limit}: --limit shows more"));
        assert_eq!((some.code, some.out, some.err), (0, expected, more));
    }
    let all = desk.json(&["app", "list"]).await;
    let all: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(all, names);
    desk.stop().await;
}

#[tokio::test]
async fn an_application_is_shown_with_its_resources_differences_deployments_and_events() {
    let desk = Desk::signed_in().await;
    let one = desk.run(&["app", "get", "failing"]).await.done();
    for part in [
        "Name:",
        "failing",
        "Health:       Missing",
        "Sync:         OutOfSync",
        "not well:",
        "Deployment/bad is Missing",
    ] {
        assert!(one.contains(part), "{part} is not in {one}");
    }
    let tree = desk.run(&["app", "tree", "failing"]).await.done();
    assert!(tree.contains("Application/failing") && tree.contains("Deployment/bad"), "{tree}");
    let names = desk.run(&["app", "tree", "failing", "-o", "name"]).await.done();
    assert!(names.lines().any(|line| line == "Deployment/bad"), "{names}");
    let events = desk.run(&["app", "events", "failing", "--limit", "3"]).await.done();
    assert_eq!(events.lines().count(), 4, "{events}");
    let events = desk.json(&["app", "events", "failing", "--limit", "1000"]).await;
    let ids: Vec<i64> = events.as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect();
    assert!(ids.len() > 3 && ids.is_sorted_by(|a, b| a > b), "the newest first, each once: {ids:?}");
    let history = desk.run(&["app", "history", "store"]).await.done();
    assert_eq!(rows(&history)[0][..3], ["STARTED", "AGE", "PHASE"], "{history}");

    let differs = desk.run(&["app", "diff", "failing"]).await;
    assert_eq!(differs.code, 0);
    assert!(differs.out.contains("+++ desired Deployment/bad in "), "{differs:?}");
    assert!(
        differs.err.ends_with(" of prod/argocd/failing differs\n")
            || differs.err.ends_with(" of prod/argocd/failing differ\n"),
        "{differs:?}"
    );
    assert_eq!(desk.run(&["app", "diff", "failing", "--exit-code"]).await.code, 3);
    let of_one = desk.run(&["app", "diff", "failing", "--resource", "deployment/bad"]).await.done();
    assert_eq!(of_one.matches("+++ desired").count(), 1, "{of_one}");
    let none = desk.run(&["app", "diff", "failing", "--resource", "Pod/none"]).await.refused();
    let said = "prod/argocd/failing has no resource 'Pod/none': `gitops-runtime app tree prod/argocd/failing` shows those that there are";
    assert_eq!(none, (1, told(said)));
    desk.stop().await;
}

#[tokio::test]
async fn what_is_not_there_or_not_meant_is_told_with_what_is() {
    let desk = Desk::signed_in().await;
    let cases: [(&[&str], i32, &str); 7] = [
        (
            &["app", "get", "sto"],
            1,
            "there is no application 'sto' that you see; there is prod/argocd/store: `gitops-runtime app list` shows those that there are",
        ),
        (
            &["app", "get", "none"],
            1,
            "there is no application 'none' that you see: `gitops-runtime app list` shows those that there are",
        ),
        (
            &["app", "get", "store", "--runtime", "eu1"],
            1,
            "there is no application 'store' of the runtime eu1 that you see: `gitops-runtime app list` shows those that there are",
        ),
        (
            &["app", "get", "eu1/argocd/store"],
            1,
            "there is no application 'eu1/argocd/store' that you see: `gitops-runtime app list` shows those that there are",
        ),
        (
            &["app", "get", "a/b/c/d"],
            2,
            "'a/b/c/d' is no name of an application: NAME, NAMESPACE/NAME or RUNTIME/NAMESPACE/NAME",
        ),
        (
            &["app", "get", "eu1/argocd/store", "--runtime", "prod"],
            2,
            "'eu1/argocd/store' is of the runtime eu1, and --runtime says another",
        ),
        (
            &["runtime", "get", "none"],
            1,
            "there is no runtime 'none' that you see: `gitops-runtime runtime list` shows those that there are",
        ),
    ];
    for (arguments, code, said) in cases {
        assert_eq!(desk.run(arguments).await.refused(), (code, told(said)));
    }
    // The same name in another namespace is another application.
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "store", "namespace": "team-a", "uid": "other", "resourceVersion": "1"},
    });
    desk.platform.report(&json!({"object": object, "source": {"syncStatus": "Synced"}})).await;
    let several = "there are several applications 'store': name prod/argocd/store or prod/team-a/store";
    assert_eq!(desk.run(&["app", "get", "store"]).await.refused(), (1, told(several)));
    let other = desk.json(&["app", "get", "team-a/store"]).await;
    assert_eq!(other["metadata"]["namespace"], "team-a");
    for (wrong, part) in
        [("team", "team"), ("=shop", "=shop"), ("team!=shop", "team!=shop"), ("team=shop,tier", "tier")]
    {
        let said = desk.run(&["app", "list", "-l", wrong]).await;
        let why =
            format!("error: invalid value '{part}' for '--selector <KEY=VALUE>': a label is KEY=VALUE\n");
        assert_eq!((said.code, said.err.split("\n\n").next()), (2, Some(why.trim_end())), "{wrong}");
    }
    desk.stop().await;
}
