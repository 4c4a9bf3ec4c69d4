//! What adopters of the other chart bring along, converted: installed on the node as it is, one file after another, and
//! uninstalled.
//!
//! takes: a cluster with a node - gives: what is wrong - calls: `helm`, `kubectl`, in a namespace of its own - fails: when Helm
//! refuses a file, or no pod of a router becomes ready. Other pods of theirs wait for Secrets, images or servers that only an
//! adopter has; a router has all that it needs.

use anyhow::Context as _;
use loadtest_cluster::objects::Reference;
use loadtest_cluster::progress::Progress;
use loadtest_judge::screen::say;
use serde_json::Value;

use crate::ground::{Ground, NAME, RELEASE};

const OWN: &str = "converted";
/// The files, and whether they have a router. The one with everything needs kinds of others; `loadtest cluster chart` has these.
const FILES: [(&str, &str, bool); 4] = [
    ("ingress", include_str!("../../../pipeline/doctor/tests/incumbent/ingress.out.yaml"), true),
    ("old", include_str!("../../../pipeline/doctor/tests/incumbent/old.out.yaml"), false),
    ("tunnel", include_str!("../../../pipeline/doctor/tests/incumbent/tunnel.out.yaml"), true),
    (
        "tunnel of a name with a dash",
        include_str!("../../../pipeline/doctor/tests/incumbent/tunnel-of-a-name-with-a-dash.out.yaml"),
        true,
    ),
];

/// Installs and uninstalls each.
pub(crate) async fn take(ground: &Ground) -> anyhow::Result<()> {
    ground.restricted(OWN).await?;
    for (name, text, has_router) in FILES {
        let values: Value = serde_saphyr::from_str(text).context("read converted values")?;
        // A hook would wait for what only an adopter has.
        let installing = ground.release(OWN, &values, &["--no-hooks"]);
        Progress.step(&format!("install of {name}, converted"), installing).await?;
        if has_router {
            let router = format!("deployment/{NAME}-router");
            // One of its pods: two that may each take a processor have no room beside all that runs on a small node.
            let is_there = "--for=jsonpath={.status.availableReplicas}";
            let waiting = ["wait", is_there, &router, "--namespace", OWN, "--timeout", "5m"];
            ground.tools.run("kubectl", &waiting).await.context("wait for the router of converted values")?;
        }
        let uninstall = ["uninstall", RELEASE, "--namespace", OWN, "--no-hooks", "--wait"];
        ground.tools.run("helm", &uninstall).await?;
    }
    say(&format!("  {} converted files installed on the node and uninstalled", FILES.len()));
    let namespace = Reference::new("v1", "Namespace", None, OWN);
    ground.objects.delete(&namespace).await.map(drop)
}
