//! The way in by a controller that really serves: Traefik leads visitors to the router, by the Ingress of the chart and by
//! its HTTPRoute.
//!
//! takes: a release whose app proxy and platform run - gives: what is wrong with the answers that a visitor is given, and
//! with what `check access` says
//! calls: Traefik as a pod of the node, by its Service; `helm`, `kubectl`, the program - fails: when it does not start, or
//! nobody answers in time

use std::process::Stdio;

use anyhow::{Context as _, ensure};
use loadtest_cluster::objects::Reference;
use loadtest_cluster::progress::Progress;
use loadtest_judge::screen::say;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::access::World;
use crate::ground::{Ground, NAMESPACE};
use crate::{image, until};

const MANIFESTS: &str = include_str!("traefik.yaml");
/// Where it runs, and what all of it is called.
const TRAEFIK: &str = "traefik";
/// The image that the manifests name.
const IMAGE: &str = "docker.io/library/traefik:test";
/// The host that the Ingress and the HTTPRoute take.
const HOST: &str = "prod.example.com";
/// The argument without which it tells no Ingress where it is.
const PUBLISHED: &str = "--providers.kubernetesIngress.ingressEndpoint.publishedService=traefik/traefik";
/// What a load balancer would say of its Service: an address that is nobody's.
const EXTERNAL: &str = r#"{"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}"#;
/// How `check access` names what that argument is in Traefik's chart.
const TRAP: &str = "providers.kubernetesIngress.publishedService.enabled=true";

/// Brings Traefik up, comes in by both ways, and takes it away.
pub(crate) async fn take(ground: &mut Ground, world: &World, key: &str) -> anyhow::Result<Vec<String>> {
    let applied = bring_up(ground).await?;
    let service = Reference::new("v1", "Service", Some(TRAEFIK), TRAEFIK);
    let service = ground.objects.get(&service).await?.context("find the Service of Traefik")?;
    let address = service["spec"]["clusterIP"].as_str().context("find the address of Traefik")?;
    let world = world.by(&format!("http://{address}"), HOST);
    let mut wrong = Vec::new();

    say("  by an Ingress");
    ground
        .upgrade(&json!({"global": {"runtime": {"ingress": {
            "enabled": true, "protocol": "http", "className": TRAEFIK, "hosts": [HOST],
        }}}}))
        .await?;
    wrong.extend(world.led().await?);
    wrong.extend(world.asked(key).await?);
    wrong.extend(checked(ground, |cures| cures.iter().any(|cure| cure.contains(TRAP))).await?);
    publish(ground).await?;
    wrong.extend(world.led().await?);
    wrong.extend(checked(ground, <[String]>::is_empty).await?);

    say("  by an HTTPRoute");
    ground
        .upgrade(&json!({"global": {"runtime": {
            "ingress": {"enabled": false},
            "httpRoute": {
                "enabled": true, "protocol": "http", "hostnames": [HOST],
                "parentRefs": [{"name": TRAEFIK, "namespace": TRAEFIK}],
            },
        }}}))
        .await?;
    wrong.extend(world.led().await?);
    wrong.extend(world.asked(key).await?);
    wrong.extend(checked(ground, <[String]>::is_empty).await?);
    ground.upgrade(&json!({"global": {"runtime": {"httpRoute": {"enabled": false}}}})).await?;

    for reference in applied.iter().rev() {
        ground.objects.delete(reference).await?;
    }
    Ok(wrong)
}

/// Starts it with all that it watches, and gives what was made for it.
async fn bring_up(ground: &Ground) -> anyhow::Result<Vec<Reference>> {
    let program = ground.binaries.further(TRAEFIK).await?;
    let archive = ground.folder.join("traefik.tar");
    let made = tokio::task::spawn_blocking(move || {
        image::of(&program, IMAGE, TRAEFIK)?.build()?.write_archive(&archive)?;
        anyhow::Ok(archive)
    });
    let archive = made.await.context("make the image of Traefik")??;
    Progress.step("import of traefik", ground.node()?.import(&archive)).await?;
    let routes = ground.binaries.share("routes");
    let defined = ground.objects.apply_folder(&routes, TRAEFIK);
    let mut applied = Progress.step("definitions of its kinds", defined).await?;
    applied.extend(ground.objects.apply(MANIFESTS, TRAEFIK).await?);
    Progress.step("traefik", rolled_out(ground)).await?;
    Ok(applied)
}

/// Gives it an external address, and makes it tell every Ingress so.
async fn publish(ground: &Ground) -> anyhow::Result<()> {
    let status =
        ["patch", "service", TRAEFIK, "--namespace", TRAEFIK, "--subresource=status", "--patch", EXTERNAL];
    ground.tools.run("kubectl", &status).await?;
    let add = json!([
        {"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": PUBLISHED},
    ])
    .to_string();
    let patch = ["patch", "deployment", TRAEFIK, "--namespace", TRAEFIK, "--type=json", "--patch", &add];
    ground.tools.run("kubectl", &patch).await?;
    rolled_out(ground).await?;
    let said = async || {
        let all = ["get", "ingress", "--namespace", NAMESPACE, "--output=json"];
        let all = ground.tools.json("kubectl", &all).await?;
        Ok(!all["items"][0]["status"]["loadBalancer"]["ingress"].is_null())
    };
    ensure!(until(said, |said| *said).await?, "Traefik never said in the Ingress where it is");
    Ok(())
}

async fn rolled_out(ground: &Ground) -> anyhow::Result<()> {
    let args = ["rollout", "status", "deployment", TRAEFIK, "--namespace", TRAEFIK, "--timeout=5m"];
    ground.tools.run("kubectl", &args).await.map(drop)
}

/// What is wrong with what `check access` finds inside the cluster: `is_right` is given what it advises to do about hops
/// that do not work as they should.
async fn checked(ground: &Ground, is_right: fn(&[String]) -> bool) -> anyhow::Result<Vec<String>> {
    let args = ["check", "access", "--namespace", NAMESPACE, "--skip", "network", "--format", "json"];
    let output = Command::new(&ground.program)
        .args(args)
        .env("KUBECONFIG", ground.kubeconfig())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("run check access")?;
    let found: Value = serde_json::from_slice(&output.stdout).context("read what check access found")?;
    let hops = found["hops"].as_array().context("find the hops of check access")?;
    let bad = hops.iter().filter(|hop| hop["verdict"] == "fails" || hop["verdict"] == "doubtful");
    let cures: Vec<String> = bad.map(|hop| hop["todo"].as_str().unwrap_or_default().to_owned()).collect();
    say(&format!("  check access looked at {} hops and advises: {cures:?}", hops.len()));
    Ok(if is_right(&cures) { Vec::new() } else { vec![format!("check access says {found}")] })
}
