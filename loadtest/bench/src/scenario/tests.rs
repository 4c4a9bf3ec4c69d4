use super::*;

const LEAST: &str = "about: x\napplications: 5\nfigures: []\n";

fn read(more: &str) -> anyhow::Result<Scenario> {
    Scenario::read("mine", &format!("{LEAST}{more}"), false)
}

#[test]
fn a_scenario_needs_little_and_the_rest_has_defaults() {
    let scenario = read("").unwrap();
    assert_eq!((scenario.resources, scenario.replicas, scenario.seed), (10, 1, 1));
    assert_eq!((scenario.line, scenario.arrive), (Line::V3, Arrive::Listed));
    assert_eq!((scenario.patience().as_secs(), scenario.look.0.as_secs()), (30, 1));
    assert!(scenario.changes.is_empty() && !scenario.has_hot() && !scenario.only_refreshes());
}

#[test]
fn a_scenario_is_read_whole() {
    let scenario = read(
        "resources: 3\nline: v2\nseed: 7\narrive: watched\nreplicas: 2\nbus: true\nlook: 15ms\npatience: 2s\n\
         peers: {argocd: {latency: 20ms}, platform: {latency: 1ms}}\n\
         mix: {drift: 1, commit: 0, reconcile: 3}\n\
         settings: {reporter: {queue: {events: 9}}}\n\
         changes: [{rate: max, seconds: 2, outstanding: 4}, {rate: half, seconds: 1.5},\n\
         \x20 {rate: 12.5, seconds: 1, hot: 100, pairs: 3}]\n",
    )
    .unwrap();
    assert_eq!((scenario.line, scenario.arrive, scenario.replicas), (Line::V2, Arrive::Watched, 2));
    assert_eq!(scenario.peers.argocd.latency.0.as_millis(), 20);
    assert_eq!((scenario.mix.drift, scenario.mix.commit, scenario.mix.reconcile), (1, 0, 3));
    let rates: Vec<Rate> = scenario.changes.iter().map(|changes| changes.rate).collect();
    assert_eq!(rates, [Rate::Max, Rate::Half, Rate::PerSecond(12.5)]);
    assert_eq!((scenario.changes[0].outstanding, scenario.changes[1].outstanding), (4, 128));
    assert_eq!((scenario.changes[2].hot, scenario.changes[2].pairs), (Some(100.0), Some(3)));
    assert!(scenario.has_hot());
    assert_eq!(scenario.settings["reporter"]["queue"]["events"], 9);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let refused = |more: &str| format!("{:#}", read(more).unwrap_err());
    for (more, told) in [
        ("peers: {argocd: {latency: fast}}", "peers.argocd.latency: a time is written as 5ms, 20ms or 1s"),
        ("peers: {argocd: {latency: -1s}}", "peers.argocd.latency: a time is written as 5ms, 20ms or 1s"),
        ("peers: {argo: {}}", "peers.argo: unknown field `argo`, expected `argocd` or `platform`"),
        (
            "changes: [{rate: often, seconds: 1}]",
            "changes[0].rate: a rate is max, half, or a number of changes a second above 0",
        ),
        (
            "changes: [{rate: 0, seconds: 1}]",
            "changes[0].rate: a rate is max, half, or a number of changes a second above 0",
        ),
        ("changes: [{rate: 1, seconds: 0}]", "changes[0]: from 0 to 3,600 seconds"),
        ("changes: [{rate: max, seconds: 1, outstanding: 0}]", "changes[0]: nothing would be under way"),
        (
            "changes: [{rate: half, seconds: 1}]",
            "changes[0]: there is no window with rate max before it to take half of",
        ),
        (
            "mix: {drift: 0, commit: 0, reconcile: 1}\nchanges: [{rate: max, seconds: 1}]",
            "changes[0]: nothing is reported of a refresh, so that rate max has no end; give a number",
        ),
        (
            "changes: [{rate: 1, seconds: 1, hot: 0}]",
            "changes[0]: hot is a number of changes a second above 0",
        ),
        (
            "changes: [{rate: 1, seconds: 1, pairs: 2}]",
            "changes[0]: pairs are windows without and with a hot application; give hot as well",
        ),
        ("resources: 1001", "resources: from 1 to 1,000"),
        ("replicas: 0", "replicas: from 1 to 64"),
        ("replicas: 2", "replicas: only on a bus are there several"),
        ("look: 0s", "look: longer than 0"),
        ("line: v4", "line: unknown variant `v4`, expected `v2` or `v3`"),
    ] {
        assert_eq!(refused(more), format!("read the scenario mine: {told}"), "{more}");
    }
    assert!(
        refused("speed: 3")
            .starts_with("read the scenario mine: speed: unknown field `speed`, expected one of ")
    );
    let figures = |text: &str| {
        let text = format!("about: x\napplications: 5\nfigures: [{text}]");
        format!("{:#}", Scenario::read("mine", &text, false).unwrap_err())
    };
    assert!(
        figures("{what: haste}")
            .starts_with("read the scenario mine: figures[0].what: unknown variant `haste`"),
    );
    assert_eq!(
        figures("{what: p99, within: 2}"),
        "read the scenario mine: figures[0]: within and of belong together"
    );
    let none = Scenario::read("mine", "about: x\napplications: 0\nfigures: []", false).unwrap_err();
    assert_eq!(format!("{none:#}"), "read the scenario mine: applications: from 1 to 100,000");
    let hot = "about: x\napplications: 1\nfigures: []\nchanges: [{rate: 1, seconds: 1, hot: 9}]";
    assert_eq!(
        format!("{:#}", Scenario::read("mine", hot, false).unwrap_err()),
        "read the scenario mine: changes[0]: a hot application needs another one beside it"
    );
}

#[test]
fn the_short_form_lies_over_the_long_one_and_is_checked_too() {
    let text = format!(
        "{LEAST}settings: {{reporter: {{queue: {{events: 100}}, sharding: {{shards: 1}}}}}}\n\
         changes: [{{rate: max, seconds: 15}}, {{rate: half, seconds: 15}}]\n\
         short: {{applications: 2, settings: {{reporter: {{queue: {{events: 3}}}}}}, changes: [{{rate: 9, seconds: 1}}]}}\n"
    );
    let (long, short) =
        (Scenario::read("mine", &text, false).unwrap(), Scenario::read("mine", &text, true).unwrap());
    assert_eq!((long.applications, long.changes.len(), long.is_short), (5, 2, false));
    assert_eq!((short.applications, short.changes.len(), short.is_short), (2, 1, true));
    assert_eq!(short.settings["reporter"]["queue"]["events"], 3);
    assert_eq!(short.settings["reporter"]["sharding"]["shards"], 1);
    let bad = format!("{LEAST}short: {{changes: [{{rate: half, seconds: 1}}]}}\n");
    assert_eq!(
        format!("{:#}", Scenario::read("mine", &bad, true).unwrap_err()),
        "read the scenario mine: read the short form: changes[0]: there is no window with rate max before it to \
         take half of"
    );
}

#[test]
fn every_scenario_of_the_program_can_be_read_in_both_forms() {
    for short in [false, true] {
        let own = own(short).unwrap();
        assert_eq!(own.len(), FILES.len());
        for scenario in own {
            assert!(!scenario.about.is_empty() && !scenario.figures.is_empty(), "{}", scenario.name);
        }
    }
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios")).unwrap();
    assert_eq!(folder.count(), FILES.len(), "a scenario that is not embedded, or the other way round");
}

#[test]
fn scenarios_are_chosen_by_name_and_file_with_what_they_need() {
    let names = |given: &[&str]| -> Vec<String> {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        chosen(&given, true).unwrap().into_iter().map(|scenario| scenario.name).collect()
    };
    assert_eq!(names(&[]), ["steady", "sixty", "hot", "cold", "overload", "filtered", "few", "many"]);
    assert_eq!(names(&["many", "cold", "few"]), ["few", "many", "cold"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    std::fs::write(&file, LEAST).unwrap();
    assert_eq!(names(&["bus", file.to_str().unwrap()]), ["memory", "bus", "mine"]);

    let refused = |given: &str| format!("{:#}", chosen(&[given.to_owned()], false).unwrap_err());
    assert_eq!(
        refused("quick"),
        "there is neither a scenario nor a file \"quick\"; there are steady, sixty, hot, cold, overload, filtered, \
         few, many, memory, bus"
    );
    assert!(text("steady").unwrap().contains("figures:"));
    assert!(
        text("quick")
            .unwrap_err()
            .to_string()
            .starts_with("there is no scenario \"quick\"; there are steady, ")
    );
    std::fs::write(&file, "about: x\napplications: 5\nfigures: [{what: p99, within: 2, of: nobody}]\n")
        .unwrap();
    assert_eq!(
        refused(file.to_str().unwrap()),
        "read the scenario mine: there is no scenario \"nobody\" for its figures to stand beside"
    );
    std::fs::write(&file, "about: [").unwrap();
    assert!(refused(file.to_str().unwrap()).contains("read the scenario mine: "));
}
