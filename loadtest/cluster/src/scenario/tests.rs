use std::path::Path;
use std::time::Duration;

use super::*;

fn refused(text: &str) -> String {
    format!("{:#}", Scenario::read("shop", text).unwrap_err())
}

fn with(steps: &str) -> String {
    format!("about: A shop\napplications: [shop, shop-one]\nsteps:\n{steps}")
}

#[test]
fn the_scenarios_of_this_repository_can_be_read() {
    let scenarios = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")).unwrap();
    assert!(scenarios.len() >= 25, "only {} scenarios", scenarios.len());
    for scenario in &scenarios {
        let filled = scenario.filled("http://127.0.0.1:1/x.git").unwrap();
        let text = format!("{:?}", filled.steps);
        assert!(!text.contains("$REPO") && !text.contains("$NAMESPACE"), "{}", scenario.name);
    }
}

#[test]
fn a_scenario_is_read_with_its_defaults() {
    let text = with("  - create: {spec: {source: {path: plain}}}\n  - sync: {application: '*'}\n");
    let scenario = Scenario::read("shop", &text).unwrap();
    assert_eq!(scenario.applications, ["shop", "shop-one"]);
    assert!(!scenario.alone && scenario.controllers.is_empty());
    let Some(Step::Sync(sync)) = scenario.steps.get(1) else { panic!("{:?}", scenario.steps) };
    assert_eq!((sync.ends, sync.within), (Ends::Succeeded, Duration::from_secs(300)));
    assert_eq!(scenario.selected(None), ["shop"]);
    assert_eq!(scenario.selected(Some("*")), ["shop", "shop-one"]);
    assert_eq!(scenario.selected(Some("shop-one")), ["shop-one"]);
}

#[test]
fn placeholders_are_filled_in_and_others_refused() {
    let text = with("  - apply: 'a: $REPO $NAMESPACE $values'\n");
    let scenario = Scenario::read("shop", &text).unwrap().filled("http://h/shop.git").unwrap();
    let Some(Step::Apply(yaml)) = scenario.steps.first() else { panic!("{:?}", scenario.steps) };
    assert_eq!(yaml, "a: http://h/shop.git shop $values");
    assert_eq!(
        refused(&with("  - apply: $REPOSITORY\n")),
        "read scenario shop: line 4: unknown placeholder $REPOSITORY, expected $REPO, $NAMESPACE, \
         $APPLICATION or $ROUND"
    );
}

#[test]
fn ranges_of_names_are_written_out() {
    assert_eq!(names(&["a-{08..10}".to_owned()]).unwrap(), ["a-08", "a-09", "a-10"]);
    for bad in ["a-{1..x}", "a-{2..1}", "a-{1}", "a-{0..999}"] {
        let error = names(&[bad.to_owned()]).unwrap_err().to_string();
        assert_eq!(error, format!("{bad} is no range of at most 200 names, such as name-{{00..39}}"));
    }
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let cases = [
        ("about: ' '\napplications: [shop]\nsteps: [platform: away]", "about is empty"),
        ("about: A\napplications: []\nsteps: [check: {}]", "it has no applications"),
        ("about: A\napplications: [shop]\nsteps: []", "it has no steps"),
        (
            "about: A\napplications: [shopping]\nsteps: [check: {}]",
            "application shopping is neither shop nor shop-...",
        ),
        ("about: A\napplications: [shop, shop]\nsteps: [check: {}]", "application shop stands twice"),
        (
            "about: A\napplications: [shop]\nalone: yes\nsteps: [check: {}]",
            "invalid boolean (strict mode expects true/false) at line 3, column 8",
        ),
        (
            "about: A\napplication: [shop]\nsteps: [check: {}]",
            "unknown field `application`, expected one of about, applications, \
             controllers, alone, steps at line 2, column 1",
        ),
        (
            "about: A\napplications: [shop]\ncontrollers: [events]\nsteps: [check: {}]",
            "unknown variant `events`, expected one of rollouts, workflows at line 3, column 15",
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(refused(text), format!("read scenario shop: {wanted}"), "{text}");
    }
    let error = Scenario::read("Shop", &with("  - check: {}\n")).unwrap_err();
    assert_eq!(format!("{error:#}"), "read scenario Shop: its name is no DNS label");
}

#[test]
fn what_is_wrong_with_a_step_is_told() {
    let cases = [
        ("- sync: {application: other}", "step 1, sync: there is no application other"),
        ("- platform: away", "step 1, platform: only a scenario that is alone may take the platform away"),
        ("- reporter: kill", "step 1, reporter: only a scenario that is alone may stop the reporter"),
        ("- create: {spec: {}}", "step 1, create: spec needs either source or sources"),
        (
            "- create: {spec: {source: {}, sources: []}}",
            "step 1, create: spec needs either source or sources",
        ),
        ("- commit: {message: m}", "step 1, commit: it needs files or edits"),
        (
            "- commit: {author: me, message: m, files: {a: b}}",
            "step 1, commit: author \"me\" is not of the form Name <address>",
        ),
        ("- wait: {}", "step 1, wait: it needs either something to wait for, or gone: true"),
        (
            "- wait: {gone: true, head: true}",
            "step 1, wait: it needs either something to wait for, or gone: true",
        ),
        (
            "- observe: {object: {apiVersion: v1, kind: Pod, name: a}, is: 1}",
            "step 1, observe: it needs pointer and is, or gone: true, or none of them",
        ),
        (
            "- patch: {object: {apiVersion: v1, kind: Pod, name: a}}",
            "step 1, patch: it needs either merge or json",
        ),
        (
            "- patch: {object: {apiVersion: v1, kind: Pod, name: a}, merge: {}, rounds: 101}",
            "step 1, patch: rounds is no number from 1 to 100",
        ),
        ("- delete: {}", "step 1, delete: it needs either cascade for an application, or an object"),
        ("- wait: {health: Healthy, within: 90}", "\"90\" is no time from 1s to 600s at line 4, column 37"),
        (
            "- wait: {helth: Healthy}",
            "unknown field `helth`, expected one of application, health, sync, phase, \
             resources, head, condition, message, gone, within at line 4, column 12",
        ),
        (
            "- synch: {}",
            "unknown variant `synch`, expected one of create, apply, commit, refresh, \
             sync, rollback, terminate, wait, observe, patch, delete, platform, reporter, check at line 4, column 5",
        ),
    ];
    for (step, wanted) in cases {
        assert_eq!(refused(&with(&format!("  {step}\n"))), format!("read scenario shop: {wanted}"), "{step}");
    }
}

#[test]
fn a_reporter_that_is_down_is_started_before_anything_is_judged() {
    let steps = |steps: &str| {
        let text = format!("about: A\napplications: [shop]\nalone: true\nsteps: [{steps}]");
        Scenario::read("shop", &text).map(drop).map_err(|error| format!("{error:#}"))
    };
    assert_eq!(steps("reporter: kill, reporter: start, check: {}, reporter: stop, reporter: start"), Ok(()));
    for (bad, wanted) in [
        ("reporter: start", "step 1, reporter: the reporter runs"),
        ("reporter: stop, reporter: kill", "step 2, reporter: the reporter is down"),
        ("reporter: kill, check: {}", "step 2, check: the reporter is down"),
        ("reporter: kill", "it leaves the reporter down"),
    ] {
        assert_eq!(steps(bad), Err(format!("read scenario shop: {wanted}")), "{bad}");
    }
}

#[test]
fn a_folder_without_scenarios_or_with_two_owners_of_a_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    assert_eq!(load(folder.path()).unwrap_err().to_string(), format!("there is no scenario in {place}"));
    std::fs::write(folder.path().join("shop.yaml"), with("  - check: {}\n")).unwrap();
    let other = "about: A\napplications: [shop-one]\nsteps: [check: {}]";
    std::fs::write(folder.path().join("shop-one.yaml"), other).unwrap();
    assert_eq!(
        load(folder.path()).unwrap_err().to_string(),
        "application shop-one belongs to scenarios shop and shop-one"
    );
}
