//! The way to a runtime: each trap laid over a cluster and a visitor that are well, and all that is said of it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use pipeline_doctor::{
    Certificate, Cluster, PeerResponse, Unreached, Upgraded, Verdict, Visitor, Wanted, access,
};
use serde::Deserialize;
use serde_json::{Value as Json, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/access");
const NOW: i64 = 1_800_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    on: String,
    also: Option<String>,
    #[serde(default)]
    objects: BTreeMap<String, Json>,
    #[serde(default)]
    visitor: Scripted,
}

/// What a visitor meets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Scripted {
    addresses: Vec<IpAddr>,
    unreached: Option<String>,
    status: u16,
    body: Json,
    /// Days until the certificate's end.
    ends: i64,
    /// `echoed`, `silent` or a status.
    socket: Json,
    /// Milliseconds.
    first: Option<u64>,
    #[serde(skip)]
    asked: Cell<usize>,
}

impl Default for Scripted {
    fn default() -> Self {
        Self {
            addresses: vec!["198.51.100.7".parse().unwrap()],
            unreached: None,
            status: 200,
            body: json!({"router": "gitops-runtime"}),
            ends: 60,
            socket: json!("echoed"),
            first: Some(20),
            asked: Cell::new(0),
        }
    }
}

impl Visitor for Scripted {
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unreached> {
        match host {
            "runtime.example.com" if !self.addresses.is_empty() => Ok(self.addresses.clone()),
            _ => Err(Unreached::Unresolved),
        }
    }

    fn get(&self, url: &str) -> Result<PeerResponse, Unreached> {
        assert_eq!(url, "https://runtime.example.com/webhooks/_access/hop");
        match self.unreached.as_deref() {
            Some("refused") => Err(Unreached::Refused),
            Some("silent") => Err(Unreached::Silent),
            Some(why) => Err(Unreached::Certificate(why.to_owned())),
            None => Ok(PeerResponse {
                status: self.status,
                body: self.body.clone(),
                certificates: vec![Certificate { subject: "a".to_owned(), ends: NOW + self.ends * 86_400 }],
                ..PeerResponse::default()
            }),
        }
    }

    fn socket(&self, url: &str) -> Result<Upgraded, Unreached> {
        assert_eq!(url, "https://runtime.example.com/webhooks/_access/socket");
        Ok(match &self.socket {
            Json::Number(status) => Upgraded::Refused(u16::try_from(status.as_u64().unwrap()).unwrap()),
            socket if socket == "silent" => Upgraded::Silent,
            _ => Upgraded::Echoed,
        })
    }

    fn first(&self, url: &str) -> Result<Option<Duration>, Unreached> {
        assert_eq!(url, "https://runtime.example.com/webhooks/_access/events");
        self.asked.set(self.asked.get() + 1);
        Ok(self.first.map(Duration::from_millis))
    }

    fn now(&self) -> i64 {
        NOW
    }
}

/// Answers at these paths, `false` where there is nothing, a text for why it does not say.
struct Simulated(BTreeMap<String, Json>);

impl Cluster for Simulated {
    fn get(&self, path: &str) -> Result<Option<Json>, String> {
        assert!(!path.contains(".."), "{path} leads elsewhere");
        match self.0.get(path) {
            Some(Json::String(why)) => Err(why.clone()),
            None | Some(Json::Bool(_)) => Ok(None),
            Some(found) => Ok(Some(found.clone())),
        }
    }

    fn metadata(&self, path: &str) -> Result<Option<Json>, String> {
        self.get(path)
    }

    fn may(&self, _: &str, _: &str, _: &str, _: Option<&str>) -> Result<bool, String> {
        Ok(true)
    }
}

/// A JSON merge patch; an object over a list changes the items of its indexes.
fn merge(into: &mut Json, patch: &Json) {
    match (into, patch) {
        (Json::Array(items), Json::Object(changes)) => {
            for (index, change) in changes {
                merge(&mut items[index.parse::<usize>().unwrap()], change);
            }
        }
        (into @ Json::Object(_), Json::Object(changes)) => {
            for (key, change) in changes {
                match change {
                    Json::Null => drop(into.as_object_mut().unwrap().remove(key)),
                    change => merge(&mut into[key], change),
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

fn read<T: serde::de::DeserializeOwned>(file: &str) -> T {
    serde_saphyr::from_str(&std::fs::read_to_string(format!("{FOLDER}/{file}")).unwrap()).unwrap()
}

#[test]
fn each_trap_is_told_with_what_to_do_about_it() {
    let bases: BTreeMap<String, BTreeMap<String, Json>> = read("bases.yaml");
    let cases: Vec<Case> = read("cases.yaml");
    assert!(cases.len() >= 45, "{} cases are too few", cases.len());
    let mut told = String::new();
    for case in cases {
        let mut held = bases["all"].clone();
        for base in [Some(case.on.as_str()), case.also.as_deref()].into_iter().flatten() {
            held.extend(bases[base].clone());
        }
        for (path, patch) in &case.objects {
            merge(held.entry(path.clone()).or_insert(Json::Null), patch);
        }
        let cluster = Simulated(held);
        let found = access(&Wanted {
            namespace: Some("runtime"),
            service: "internal-router",
            url: None,
            cluster: Ok(&cluster),
            visitor: Ok(&case.visitor),
        });
        let table = found.table();
        // Where something is wrong, what works is left out.
        let is_well = found.hops.iter().all(|hop| hop.verdict == Verdict::Works);
        let lines = table.lines().filter(|line| is_well || !line.starts_with("  works "));
        told += &lines.fold(format!("== {}\n", case.name), |told, line| told + line + "\n");
        assert!(!told.contains("bm90LXRvLWJlLXNob3du"), "{}: a Secret's value is shown", case.name);
    }
    let path = format!("{FOLDER}/cases.out");
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &told).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(told, expected, "{path} (UPDATE=1 rewrites it)");
}

#[test]
fn whoever_was_slow_once_is_asked_again() {
    let visitor = Scripted { first: Some(9_000), ..Scripted::default() };
    let url = "https://runtime.example.com";
    let wanted = Wanted {
        namespace: None,
        service: "internal-router",
        url: Some(url),
        cluster: Err("there is no kubeconfig"),
        visitor: Ok(&visitor),
    };
    let found = access(&wanted);
    assert_eq!(visitor.asked.get(), 2);
    assert_eq!(found.failing().unwrap().hop, "events");
    let quick = Scripted::default();
    let found = access(&Wanted { visitor: Ok(&quick), ..wanted });
    assert_eq!(quick.asked.get(), 1);
    assert!(found.failing().is_none());
    assert!(found.table().starts_with("From inside out:\n  unmeasured  cluster: there is no kubeconfig\n"));
    assert!(found.table().ends_with("Nothing that was looked at fails.\n"));
    let read: Json = serde_json::from_str(&found.json()).unwrap();
    assert_eq!((&read["url"], &read["failing"]), (&json!(url), &Json::Null));
    assert_eq!(read["hops"][0]["verdict"], "unmeasured");
    assert!(!found.is_unmeasured());
    let nobody = access(&Wanted { visitor: Err("skipped by --skip network"), ..wanted });
    assert!(nobody.is_unmeasured() && nobody.failing().is_none());
    assert!(nobody.table().ends_with("Nothing could be looked at.\n"), "{}", nobody.table());
}
