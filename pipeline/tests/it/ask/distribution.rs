//! The preview of what replicas would own: of a running reporter, and of names from elsewhere.

use std::process::{Output, Stdio};

use loadtest::sim::Simulation;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::{answer, ask, reported};
use crate::runtime::{PROGRAM, SOON};

/// Exit code, standard output and standard error of `distribution`, which reads `names`.
async fn distribution(arguments: &[&str], names: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(PROGRAM);
    command.arg("distribution").args(arguments).env_clear().kill_on_drop(true);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let write = async {
        // One that is refused before it reads anything closes it.
        let _ = input.write_all(names.as_bytes()).await;
        drop(input);
    };
    let both = async { tokio::join!(write, child.wait_with_output()).1 };
    let Output { status, stdout, stderr } = tokio::time::timeout(SOON, both).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn sum(found: &Value, of: &str) -> u64 {
    found["replicas"].as_array().unwrap().iter().map(|own| own[of].as_u64().unwrap()).sum()
}

async fn of_reporter(simulation: &Simulation, arguments: &[&str]) -> Value {
    let text = answer(simulation, &[&["distribution", "--output", "json"], arguments].concat()).await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_applications_of_a_reporter_are_distributed_with_their_resources() {
    let names = ["shop", "web", "api"];
    let (simulation, runtime) = reported(&names).await;
    let found = of_reporter(&simulation, &["--replicas", "2", "--from", "1"]).await;
    assert_eq!(
        (&found["way"], &found["objects"], &found["uncounted"]),
        (&json!("leases"), &json!(3), &json!(0))
    );
    assert_eq!((sum(&found, "objects"), sum(&found, "resources")), (3, 6), "two resources each");
    assert_eq!(found["moved"]["objects"], found["replicas"][1]["objects"], "only the new one takes");
    let (status, page) = runtime.page("/app-distribution?replicas=2&from=1").await;
    assert_eq!(
        (status, serde_json::from_str::<Value>(&page).unwrap()),
        (200, found),
        "the page says the same"
    );

    let table = answer(&simulation, &["distribution", "--replicas", "2", "--from", "1"]).await;
    assert!(table.starts_with(" REPLICA  SHARDS  APPLICATIONS"), "{table}");
    assert!(table.contains("\n3 applications, 6 resources\nfrom 1 to 2 replicas: "), "{table}");
    runtime.stop().await;
    let (code, out, error) = ask(&simulation, &["distribution", "--replicas", "2"]).await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(error.starts_with("gitops-runtime: no reporter answers at "), "{error}");
}

#[tokio::test]
async fn a_sixth_replica_moves_at_most_seventeen_percent_of_names_from_elsewhere() {
    let names: String = (0..50_000).map(|n| format!("argocd/team-{}-app-{n} {}\n", n % 37, n % 9)).collect();
    for (way, least, most) in [("leases", 0.15, 0.17), ("fnv-modulo", 0.82, 0.85)] {
        let arguments = ["--replicas", "6", "--from", "5", "--way", way, "--names", "-", "--output", "json"];
        let (code, out, error) = distribution(&arguments, &names).await;
        assert_eq!((code, error.as_str()), (Some(0), ""));
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((sum(&found, "objects"), &found["resources"]), (50_000, &json!(199_990)));
        let part = found["moved"]["part"].as_f64().unwrap();
        assert!((least..=most).contains(&part), "{way}: {part}");
    }
}

#[tokio::test]
async fn what_cannot_be_distributed_is_said() {
    for (arguments, names, said) in [
        (
            &["--replicas", "3", "--way", "jump", "--shards", "8", "--names", "-"][..],
            "a",
            "`shards` is for the way `leases`: by the others there are as many shards as replicas",
        ),
        (&["--replicas", "3", "--names", "-"], "", "read names from standard input: there is none"),
        (
            &["--replicas", "3", "--names", "-"],
            "shop many\n",
            "read names from standard input: line 1: 'many' is not the number of resources of an application",
        ),
        (
            &["--replicas", "3", "--names", "/there/is/none"],
            "",
            "read names from /there/is/none: No such file or directory (os error 2)",
        ),
    ] {
        let expected = (Some(1), String::new(), format!("gitops-runtime: {said}\n"));
        assert_eq!(distribution(arguments, names).await, expected, "{arguments:?}");
    }
    for (arguments, said) in [
        (&["--names", "-"][..], "required arguments were not provided:\n  --replicas <NUMBER>"),
        (&["--replicas", "0"], "invalid value '0' for '--replicas <NUMBER>': 0 is not in 1..=256"),
        (&["--replicas", "3", "--from", "many"], "invalid value 'many' for '--from <NUMBER>': invalid digit"),
        (&["--replicas", "3", "--way", "modulo"], "[possible values: leases, jump, fnv-modulo]"),
        (&["--replicas", "3", "--output", "yaml"], "[possible values: table, json]"),
        (&["--replicas", "3", "--names", "-", "--socket", "s"], "cannot be used with '--socket <PATH>'"),
    ] {
        let (code, out, error) = distribution(arguments, "").await;
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    let (code, help, _) = distribution(&["--help"], "").await;
    assert_eq!(code, Some(0));
    assert!(
        help.contains("Examples:") && help.contains("gitops-runtime distribution --replicas 6 --from 5"),
        "{help}"
    );
}

/// A static replica that does not know its number must not report nothing, or everything.
#[tokio::test]
async fn replicas_without_an_ordinal_are_refused() {
    let run = |hostname: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["config", "check"]).env_clear().kill_on_drop(true).stdin(Stdio::null());
        command
            .env("EVENT_REPORTER_REPLICAS", "3")
            .env("HOSTNAME", hostname)
            .env("ARGOCD_SERVER", "argocd:80");
        command.env("GITOPS_RUNTIME_REPORTER__SINK__KIND", "stdout").env("ARGOCD_TOKEN", "t");
        command.output()
    };
    let output = run("reporter-6c9f7d8b5-x2x7k").await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let missing = "reporter.sharding.shard: the host's name 'reporter-6c9f7d8b5-x2x7k' does not end in - and a number, \
                   as those of a StatefulSet do; set the number of the shard (EVENT_REPORTER_SHARD), or all";
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(missing), "{said}");
    let output = run("reporter-2").await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
