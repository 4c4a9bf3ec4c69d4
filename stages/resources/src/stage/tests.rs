use pipeline_core::{Change, Key, Settled, Timestamp};

use super::*;
use crate::application::{ObjectPart, ObjectReader, Tracking};
use crate::known;
use crate::pointer::{self, Pointer};

const SHOWN: ReportOptions = ReportOptions { managed_fields: true, largest: 1 << 20 };

fn stage() -> Enricher {
    stage_of(None, SHOWN)
}

/// With a filter of Rollouts.
fn stage_of(filter: Option<&str>, shown: ReportOptions) -> Enricher {
    let of = |resource: &str, filter: Option<&str>| ReportedKind {
        known: known(resource),
        filter: filter.map(|text| Filter::compile(text).unwrap()),
    };
    let kinds =
        [of("rollouts.argoproj.io", filter), of("replicasets.apps", None), of("workflows.argoproj.io", None)];
    Arc::into_inner(ResourceEnrichment::new(kinds, shown, Redactor::new(b"k")).inner).unwrap()
}

fn event(kind: &str, version: u64, object: &Value) -> Event {
    let resource = match kind {
        "rollout" => "rollouts.argoproj.io",
        "workflow" => "workflows.argoproj.io",
        _ => "replicasets.apps",
    };
    let key = Key::of_kind(kind, "shop", "web").unwrap();
    let change = Change::Applied { body: object.to_string().into() };
    let event = Event::watched(key, "1".into(), Version(version), change, Timestamp::UNIX_EPOCH);
    Event { fact: fact_of(&known(resource), object), trace: 1, ..event }
}

/// The phase and step that an object shows.
fn fact_of(kind: &KnownKind, object: &Value) -> Option<Fact> {
    let status = object.get("status")?;
    kind.fact(&serde_json::from_value(status.clone()).unwrap(), &Redactor::new(b"k"))
}

fn rollout(phase: &str, at: u64) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": at.to_string()},
        "status": {"phase": phase, "conditions": [{"lastUpdateTime": at}]},
    })
}

/// What the record says once everything was acknowledged.
fn acknowledged(known: Option<Record>, enriched: &Enriched) -> Option<Record> {
    let known = enriched.reports.iter().fold(known, Record::acknowledge);
    match &enriched.settle {
        Some(settle) => Some(Record::checkpoint(known, settle)),
        None => known,
    }
}

/// What comes of an event.
fn worked(stage: &Enricher, event: &Event, known: Option<&Record>) -> Result<Enriched, StageError> {
    stage.work(event, known).map(|worked| worked.enriched)
}

fn bodies(enriched: &Enriched) -> Vec<Value> {
    enriched.reports.iter().map(|report| serde_json::from_slice(&report.body).unwrap()).collect()
}

#[test]
fn an_object_is_reported_as_it_is_and_again_when_a_person_would_call_it_a_change() {
    let stage = stage();
    let first = worked(&stage, &event("rollout", 5, &rollout("Healthy", 5)), None).unwrap();
    assert_eq!(bodies(&first), [json!({"object": rollout("Healthy", 5)})]);
    let known = acknowledged(None, &first);
    let again = |version, phase: &str| {
        worked(&stage, &event("rollout", version, &rollout(phase, version)), known.as_ref()).unwrap()
    };
    assert_eq!(again(5, "Healthy").filtered, Some(Filtered::Unchanged));
    assert_eq!(again(6, "Healthy").filtered, Some(labels::HEARTBEAT));
    assert_eq!(again(4, "Degraded").filtered, Some(Filtered::Stale));
    assert_eq!(bodies(&again(7, "Degraded")), [json!({"object": rollout("Degraded", 7)})]);
}

#[test]
fn what_was_acknowledged_and_not_settled_when_the_process_was_killed_is_settled_and_not_told_again() {
    let stage = stage();
    let healthy = event("rollout", 5, &rollout("Healthy", 5));
    let first = worked(&stage, &healthy, None).unwrap();
    let known = Record::acknowledge(None, &first.reports[0]);
    assert_eq!(known.as_ref().unwrap().settled, Settled::Never);
    let again = worked(&stage, &healthy, known.as_ref()).unwrap();
    assert_eq!((again.reports.len(), again.filtered), (0, Some(Filtered::Unchanged)));
    let settled = acknowledged(known.clone(), &again);
    assert_eq!(settled, acknowledged(None, &first), "as if the process had lived a moment longer");
    // Another state, though nobody would call it a change, and what may not have arrived, are reported.
    let other = worked(&stage, &event("rollout", 6, &rollout("Healthy", 6)), known.as_ref()).unwrap();
    assert_eq!(bodies(&other), [json!({"object": rollout("Healthy", 6)})]);
    let in_doubt = Record::sending(settled, &first.reports[0], None);
    assert_eq!(worked(&stage, &healthy, in_doubt.as_ref()).unwrap().reports.len(), 1);
}

#[test]
fn a_phase_that_was_coalesced_is_told_before_the_newest_and_once() {
    let stage = stage();
    let first = worked(&stage, &event("rollout", 5, &rollout("Healthy", 5)), None).unwrap();
    let known = acknowledged(None, &first);
    let paused = event("rollout", 6, &rollout("Paused", 6)).fact.unwrap();
    let mut newest = event("rollout", 9, &rollout("Healthy", 9));
    newest.coalesced = vec![paused.clone()];
    let told = worked(&stage, &newest, known.as_ref()).unwrap();
    let phases: Vec<Value> =
        bodies(&told).iter().map(|body| body["object"]["status"]["phase"].clone()).collect();
    assert_eq!(phases, ["Paused", "Healthy"]);
    assert_eq!(told.reports[0].fact, Some(paused.id));
    let after = Record::acknowledge(known, &told.reports[0]).unwrap();
    assert_eq!(after.settled, Settled::Before);
    let rest = worked(&stage, &newest, Some(&after)).unwrap();
    assert_eq!(rest.reports.len(), 1, "what was told is not told again");
}

/// As a Rollout that is paused at one step and, after a promotion, at the next as far as these members tell.
#[test]
fn coalesced_phases_that_their_times_alone_tell_apart_are_told_once() {
    let stage = stage();
    let first = worked(&stage, &event("rollout", 5, &rollout("Healthy", 5)), None).unwrap();
    let known = acknowledged(None, &first);
    let at = |phase: &str, time: &str| {
        let mut object = rollout(phase, 6);
        object["status"]["restartedAt"] = time.into();
        event("rollout", 6, &object).fact.unwrap()
    };
    let mut newest = event("rollout", 9, &rollout("Healthy", 9));
    newest.coalesced = vec![
        at("Healthy", "1"),
        at("Paused", "2"),
        at("Paused", "3"),
        at("Healthy", "4"),
        at("Healthy", "5"),
    ];
    let told = bodies(&worked(&stage, &newest, known.as_ref()).unwrap());
    let phases: Vec<&Value> = told.iter().map(|body| &body["object"]["status"]["phase"]).collect();
    assert_eq!(phases, ["Healthy", "Paused", "Healthy"]);
}

#[test]
fn a_deletion_shows_the_last_state_or_else_a_stub_and_what_was_never_told_of_is_not_ended() {
    let stage = stage();
    let first = worked(&stage, &event("rollout", 5, &rollout("Healthy", 5)), None).unwrap();
    let known = acknowledged(None, &first);
    let gone =
        |body| Event { change: Change::Deleted { body }, ..event("rollout", 9, &rollout("Healthy", 9)) };
    let last = rollout("Healthy", 9);
    let ended = worked(&stage, &gone(Some(last.to_string().into())), known.as_ref()).unwrap();
    assert_eq!(bodies(&ended), [json!({"object": last, "deleted": true})]);
    assert!(ended.reports[0].ends);
    let stub = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
    });
    let ended = worked(&stage, &gone(None), known.as_ref()).unwrap();
    assert_eq!(bodies(&ended), [json!({"object": stub, "deleted": true})]);
    assert_eq!(worked(&stage, &gone(None), None).unwrap().filtered, Some(Filtered::NeverReported));
    // A later life under the same name ends the earlier one first.
    let later = Event { uid: "2".into(), ..event("rollout", 12, &rollout("Healthy", 12)) };
    let both = worked(&stage, &later, known.as_ref()).unwrap();
    let deleted: Vec<_> = bodies(&both).iter().map(|body| body["deleted"] == true).collect();
    assert_eq!((deleted, &*both.reports[0].uid), (vec![true, false], "1"));
}

#[test]
fn what_is_of_no_use_is_reported_once_when_it_becomes_so() {
    let stage = stage();
    let set = |version: u64, wanted: u64, revision: &str| {
        let object = json!({
            "metadata": {"name": "web", "namespace": "shop", "annotations": {"revision": revision}},
            "spec": {"replicas": wanted}, "status": {"replicas": wanted},
        });
        event("replicaset", version, &object)
    };
    assert_eq!(worked(&stage, &set(1, 0, "1"), None).unwrap().filtered, Some(labels::IDLE));
    let used = acknowledged(None, &worked(&stage, &set(2, 3, "1"), None).unwrap());
    let becomes = worked(&stage, &set(3, 0, "1"), used.as_ref()).unwrap();
    assert_eq!(becomes.reports.len(), 1);
    let known = acknowledged(used, &becomes);
    assert_eq!(worked(&stage, &set(4, 0, "2"), known.as_ref()).unwrap().filtered, Some(labels::IDLE));
}

#[test]
fn a_filter_takes_what_it_says_ends_what_was_told_before_and_tells_phases_it_would_have_taken() {
    let stage = stage_of(Some("object.status.phase in ['Degraded', 'Paused']"), SHOWN);
    let enrich = |version, phase: &str, known: Option<&Record>| {
        worked(&stage, &event("rollout", version, &rollout(phase, version)), known).unwrap()
    };
    assert_eq!(enrich(1, "Healthy", None).filtered, Some(labels::EXCLUDED));
    let known = acknowledged(None, &enrich(2, "Degraded", None));
    // What was told before is brought up to date once.
    let left = enrich(3, "Healthy", known.as_ref());
    assert_eq!(bodies(&left), [json!({"object": rollout("Healthy", 3)})]);
    let known = acknowledged(known, &left);
    assert_eq!(enrich(4, "Progressing", known.as_ref()).filtered, Some(labels::EXCLUDED));
    // Of states that were folded those are told that it takes.
    let mut newest = event("rollout", 9, &rollout("Healthy", 9));
    newest.coalesced =
        ["Paused", "Progressing"].map(|phase| event("rollout", 6, &rollout(phase, 6)).fact.unwrap()).into();
    let told = worked(&stage, &newest, None).unwrap();
    let phases: Vec<Value> =
        bodies(&told).iter().map(|body| body["object"]["status"]["phase"].clone()).collect();
    assert_eq!(phases, ["Paused", "Healthy"]);
    let gone = Event {
        change: Change::Deleted { body: Some(rollout("Healthy", 9).to_string().into()) },
        ..event("rollout", 9, &rollout("Healthy", 9))
    };
    assert_eq!(worked(&stage, &gone, None).unwrap().filtered, Some(labels::EXCLUDED));
    let odd = stage_of(Some("object.metadata.name > 7"), SHOWN);
    let unanswered = worked(&odd, &event("rollout", 1, &rollout("Healthy", 1)), None).unwrap();
    assert_eq!(unanswered.filtered, Some(labels::UNANSWERED));
}

#[test]
fn compressed_nodes_are_shown_and_redacted_and_never_pass_as_they_are() {
    let stage = stage();
    let nodes = json!({"a": {"phase": "Failed", "message": "login with password=hunter2-hunter2 failed"}});
    let packed = nodes::tests::packed(&nodes);
    let workflow = |status: Value| json!({"kind": "Workflow", "metadata": {"name": "web"}, "status": status});
    let told = |status: Value| {
        let enriched = worked(&stage, &event("workflow", 1, &workflow(status)), None).unwrap();
        bodies(&enriched).pop().unwrap()
    };
    let body = told(json!({"phase": "Failed", "compressedNodes": packed}));
    assert_eq!(
        (&body["nodes"], &body["object"]["status"]["nodes"]["a"]["phase"]),
        (&json!("decompressed"), &json!("Failed"))
    );
    assert!(!body.to_string().contains("hunter2") && !body.to_string().contains("compressedNodes"), "{body}");
    let broken = told(json!({"phase": "Failed", "compressedNodes": "H4sI"}));
    assert_eq!(broken, json!({"object": workflow(json!({"phase": "Failed"})), "nodes": "unreadable"}));
    let offloaded = json!({"phase": "Failed", "offloadNodeStatusVersion": "fnv:7"});
    assert_eq!(told(offloaded.clone()), json!({"object": workflow(offloaded), "nodes": "offloaded"}));
}

#[test]
fn an_object_over_the_budget_is_cut_and_says_so_and_managed_fields_go_by_choice() {
    let mut object = rollout("Healthy", 5);
    object["metadata"]["managedFields"] = json!([{"manager": "x".repeat(200)}]);
    let told = |shown: ReportOptions| {
        let enriched = worked(&stage_of(None, shown), &event("rollout", 5, &object), None).unwrap();
        bodies(&enriched).pop().unwrap()
    };
    assert_eq!(told(SHOWN), json!({"object": object}));
    assert_eq!(
        told(ReportOptions { managed_fields: false, ..SHOWN }),
        json!({"object": rollout("Healthy", 5)})
    );
    let cut = json!({"object": rollout("Healthy", 5), "cut": ["/metadata/managedFields"]});
    assert_eq!(told(ReportOptions { largest: 300, ..SHOWN }), cut);
}

#[test]
fn what_is_no_object_is_rejected_and_an_object_without_secrets_keeps_its_text() {
    let stage = stage();
    let mut odd = event("rollout", 1, &json!({}));
    odd.change = Change::Applied { body: "[1]".into() };
    let error = worked(&stage, &odd, None).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.is_retry()), ("the object cannot be read as JSON", false));
    let text = r#"{ "z": 1.0, "a": "b" }"#;
    odd.change = Change::Applied { body: text.into() };
    let told = worked(&stage, &odd, None).unwrap();
    assert_eq!(told.reports[0].body, format!("{{\"object\":{text}}}").as_bytes());
}

/// Objects that the controllers of Argo Rollouts and Argo Workflows wrote, one state after the other.
const RECORDED: &str = include_str!("../../tests/objects/recorded.jsonl");

const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

#[test]
fn what_real_controllers_wrote_passes_unharmed_and_is_told_by_what_a_person_would_call_a_change() {
    let lines = RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let states: Vec<(KnownKind, Value)> =
        lines.map(|line| (known(line["resource"].as_str().unwrap()), line["object"].clone())).collect();
    let all = states.iter().map(|(known, _)| ReportedKind { known: known.clone(), filter: None });
    let enrichment = ResourceEnrichment::new(all, SHOWN, Redactor::new(b"k"));
    let stage = Arc::into_inner(enrichment.inner).unwrap();
    let mut records: HashMap<String, Option<Record>> = HashMap::new();
    let mut phases: HashMap<String, (Value, Digest)> = HashMap::new();
    let mut outcomes: std::collections::BTreeMap<String, Vec<&str>> = std::collections::BTreeMap::new();
    for (kind, object) in &states {
        let text = |name: &str| object["metadata"][name].as_str().unwrap().to_owned();
        let uid = text("uid");
        let fact = fact_of(kind, object);
        let event = Event {
            key: Key::of_kind(&kind.name, &text("namespace"), &text("name")).unwrap(),
            uid: uid.as_str().into(),
            version: Version::of_number(text("resourceVersion").parse().unwrap()),
            fact: fact.clone(),
            ..self::event("rollout", 1, object)
        };
        let shown = json!([object["status"]["phase"], object["status"]["currentStepIndex"]]);
        if let (Some(fact), Some((before, id))) = (&fact, phases.get(&uid)) {
            assert!(
                *before == shown || *id != fact.id,
                "{}: a change of phase is a fact of its own",
                event.key
            );
        }
        phases.extend(fact.map(|fact| (uid.clone(), (shown, fact.id))));
        let known = records.entry(uid).or_default();
        let enriched = worked(&stage, &event, known.as_ref()).unwrap();
        let outcome = enriched.filtered.map_or("reported", Filtered::as_str);
        outcomes.entry(kind.name.clone()).or_default().push(outcome);
        if enriched.filtered.is_none() {
            let body = bodies(&enriched).pop().unwrap();
            assert!(!body.to_string().contains("canary-env"), "{}", event.key);
            // What differs is what the rules of secrets took out: a password, and the text that quotes it.
            let plain = |object: &Value| {
                let mut object = object.clone();
                for text in ["/spec/template/spec/containers/*/env/*/value", LAST_APPLIED] {
                    let pointer: Pointer = serde_json::from_value(json!(text)).unwrap();
                    pointer::remove(pointer.parts(), &mut object);
                }
                object
            };
            assert_eq!(plain(&body["object"]), plain(object), "{}", event.key);
            *known = acknowledged(known.take(), &enriched);
        }
    }
    let count = |kind: &str, outcome: &str| outcomes[kind].iter().filter(|is| **is == outcome).count();
    let counted: Vec<_> = outcomes
        .iter()
        .map(|(kind, all)| {
            let [reported, heartbeat, idle] = ["reported", "heartbeat", "idle"].map(|name| count(kind, name));
            assert_eq!(reported + heartbeat + idle, all.len(), "{kind}: {all:?}");
            format!("{kind} {reported} {heartbeat} {idle}")
        })
        .collect();
    // Kind, and how many were reported, were heartbeats, were idle.
    let expected = [
        "analysisrun 6 0 0",
        "cronworkflow 3 0 0",
        "replicaset 5 1 4",
        "rollout 14 0 0",
        "workflow 11 0 0",
        "workflowtemplate 1 0 0",
    ];
    assert_eq!(counted, expected);
}

/// A cluster in which every application is that somebody asks for.
struct EveryApplication;

#[async_trait]
impl ObjectReader for EveryApplication {
    async fn read(&self, _: &str, _: ObjectPart) -> Result<Option<Value>, LookupError> {
        Ok(Some(json!({"spec": {"project": "retail"}})))
    }
}

#[tokio::test]
async fn a_new_life_of_a_name_is_judged_by_its_own_application_and_the_end_of_the_one_before_is_told() {
    let tracking = Tracking { label: Some("app".to_owned()), namespace: "argocd".to_owned() };
    let reported = ReportedKind { known: known("rollouts.argoproj.io"), filter: None };
    let all = ResourceEnrichment::new([reported], SHOWN, Redactor::new(b"k"))
        .linked(Applications::new(Arc::new(EveryApplication), tracking));
    let route = all.for_route(1, Some(Arc::new(|application: &Application| application.name == "shop")));
    let enriched = async |uid: &str, application: &str, known: Option<&Record>| {
        let mut object = rollout("Healthy", 5);
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["labels"] = json!({"app": application});
        let event = Event { uid: uid.into(), ..event("rollout", 5, &object) };
        route.enrich(&event, known, &Attempt::at(Timestamp::now())).await.unwrap()
    };
    let known = acknowledged(None, &enriched("1", "shop", None).await).unwrap();
    let moved = enriched("1", "other", Some(&known)).await;
    assert_eq!(moved.reports.len(), 1, "what was reported before is brought up to date");
    let next = enriched("2", "other", Some(&known)).await;
    let told: Vec<_> = next.reports.iter().map(|report| (&*report.uid, report.ends)).collect();
    assert_eq!((told, next.filtered), (vec![("1", true)], None));
    let after = acknowledged(Some(known.clone()), &next);
    let again = enriched("2", "other", after.as_ref()).await;
    assert_eq!((again.reports.len(), again.filtered), (0, Some(labels::OTHER_APPLICATION)));
    let taken = enriched("2", "shop", Some(&known)).await;
    let told: Vec<_> = taken.reports.iter().map(|report| (&*report.uid, report.ends)).collect();
    assert_eq!(told, [("1", true), ("2", false)]);
}

/// What waits for the sink of one route holds its own room alone.
#[tokio::test]
async fn a_route_takes_no_room_of_another() {
    let reported = ReportedKind { known: known("rollouts.argoproj.io"), filter: None };
    let shown = ReportOptions { largest: 8 << 20, ..SHOWN };
    let all = ResourceEnrichment::new([reported], shown, Redactor::new(b"k"));
    let (slow, quick) = (all.for_route(9, None), all.for_route(9, None));
    let mut object = rollout("Healthy", 5);
    object["spec"] = json!({"text": "x".repeat(4 << 20)});
    let event = event("rollout", 5, &object);
    let (held, more) = (Attempt::at(Timestamp::now()), Attempt::at(Timestamp::now()));
    assert_eq!(slow.enrich(&event, None, &held).await.unwrap().reports.len(), 1);
    let waiting = slow.enrich(&event, None, &more);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(20), waiting).await.is_err());
    assert_eq!(quick.enrich(&event, None, &more).await.unwrap().reports.len(), 1);
    drop(held);
    assert_eq!(slow.enrich(&event, None, &more).await.unwrap().reports.len(), 1);
}
