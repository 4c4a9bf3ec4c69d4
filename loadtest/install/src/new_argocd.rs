//! A new Argo CD by the chart (`argo-cd.enabled`): the reporter finds it by its Service, logs in as the administrator that it makes,
//! and reports what it does.
//!
//! takes: a cluster - gives: what is wrong with what the platform is told of an application of that Argo CD, and what is left of it
//! calls: `helm`, the API server, `git daemon`, which pods fetch the repository from - fails: when one of them does
//!
//! The published chart is not to be had here: one made of Argo CD's own manifests stands in for it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::Context as _;
use loadtest_cluster::git::{Commit, Repository};
use loadtest_cluster::objects::Reference;
use loadtest_judge::screen::say;
use loadtest_sim::PATIENCE;
use loadtest_sim::child::{Child, Spec};
use loadtest_sim::port;
use loadtest_sim::reporter::merge;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::Instant;

use crate::applications::{State, application, config_map, holds_number, told};
use crate::ground::{Ground, NAME, RELEASE};
use crate::neighbour::Neighbour;
use crate::{standin, until};

/// The namespace of the release, and so of its Argo CD and of the applications.
const OWN: &str = "runtime-new";
/// The application, its folder in the repository, and the namespace that it goes to.
const SHOP: &str = "shop-new";

/// Installs both, has an application made and changed, and takes all of it away.
pub(crate) async fn take(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let chart = standin::make(ground).await?;
    let mut neighbour = Neighbour::start(ground, OWN).await?;
    let trust = json!({"secret": {"create": true, "content": neighbour.authority}});
    merge(
        &mut neighbour.values,
        &json!({
            "argo-cd": {"enabled": true},
            // Nothing is said of where Argo CD is, nor how to log in.
            "global": {"codefresh": {"tls": {"caCerts": trust}}, "integrations": {"argo-cd": {"namespace": ""}}},
        }),
    );
    ground.release_of(&chart, OWN, &neighbour.values, &["--wait"]).await?;
    let pods = ["get", "pods", "--namespace", OWN, "--output=jsonpath={.items[*].metadata.name}"];
    say(&format!("  pods: {}", ground.tools.run("kubectl", &pods).await?));
    let mut wrong = settings(ground).await?;

    let repository = ground.cluster.git.repository(SHOP).await?;
    let (_serving, url) = served(ground, &repository).await?;
    let first = commit(&repository, 1).await?;
    ground.objects.apply_value(&application(SHOP, &url), OWN).await?;
    wrong.extend(reported(ground, &neighbour, &first, 1).await?);
    let second = commit(&repository, 2).await?;
    let refresh = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
    ground.objects.patch(&shop(), &refresh, None).await?;
    wrong.extend(reported(ground, &neighbour, &second, 2).await?);
    wrong.extend(neighbour.platform.totals().wrong());

    ground.objects.delete(&shop()).await?;
    ground.tools.run("helm", &["uninstall", RELEASE, "--namespace", OWN, "--wait"]).await?;
    let kept = [
        format!("PersistentVolumeClaim {OWN}/{NAME}-reporter"),
        format!("Secret {OWN}/{NAME}-generated"),
        // Argo CD made these by itself.
        format!("AppProject {OWN}/default"),
        format!("Secret {OWN}/argocd-initial-admin-secret"),
    ];
    wrong.extend(neighbour.gone(ground, |line| kept.iter().any(|kept| kept == line)).await?);
    Ok(wrong)
}

/// What is wrong with where the reporter looks for Argo CD, and as whom.
async fn settings(ground: &Ground) -> anyhow::Result<Vec<String>> {
    let reference = Reference::new("v1", "ConfigMap", Some(OWN), &format!("{NAME}-reporter"));
    let object = ground.objects.get(&reference).await?.with_context(|| format!("find {reference}"))?;
    let set = object["data"]["config.yaml"].as_str().context("find the settings of the reporter")?;
    let wanted = [format!("url: http://argocd-server.{OWN}.svc:80"), "username: admin".to_owned()];
    let lacking = wanted.iter().filter(|line| !set.lines().any(|other| other.trim() == *line));
    Ok(lacking.map(|line| format!("the reporter is not set to {line}")).collect())
}

/// Lets pods fetch a repository; where they do.
async fn served(ground: &Ground, repository: &Repository) -> anyhow::Result<(Child, String)> {
    let path = repository.url().strip_prefix("file://").context("find the folder of a repository")?;
    let path = Path::new(path);
    let (all, name) = path.parent().zip(path.file_name()).context("find the folder of all repositories")?;
    let address = SocketAddr::new(IpAddr::from(ground.node()?.network().host()), port::free()?);
    // Not by way of `git`, whose child would outlive it.
    let folder =
        Command::new("git").arg("--exec-path").output().await.context("ask git where its programs are")?;
    let folder = String::from_utf8(folder.stdout).context("read where git's programs are")?;
    let program = Path::new(folder.trim()).join("git-daemon");
    let spec = Spec::new("git-daemon", program, &ground.folder).args([
        format!("--listen={}", address.ip()),
        format!("--port={}", address.port()),
        format!("--base-path={}", all.display()),
        "--export-all".to_owned(),
        "--reuseaddr".to_owned(),
        all.display().to_string(),
    ]);
    let child = Child::start(&spec)?;
    child.ready(PATIENCE, async || TcpStream::connect(address).await.is_ok()).await?;
    Ok((child, format!("git://{address}/{}", name.to_string_lossy())))
}

async fn commit(repository: &Repository, number: u64) -> anyhow::Result<String> {
    let files = BTreeMap::from([config_map(SHOP, number)]);
    repository.commit(&Commit::of_ada(format!("Number {number}"), files)).await
}

fn shop() -> Reference {
    Reference::new("argoproj.io/v1alpha1", "Application", Some(OWN), SHOP)
}

/// Waits until the platform holds the application as Argo CD has synced it to a revision, and the object that it made; what it does
/// not hold in time.
async fn reported(
    ground: &Ground,
    neighbour: &Neighbour,
    revision: &str,
    number: u64,
) -> anyhow::Result<Vec<String>> {
    let began = Instant::now();
    let look = async || {
        let object = ground.objects.get(&shop()).await?.context("find the application")?;
        let real = State::of(&object);
        let held = told(&neighbour.platform, OWN, SHOP)?;
        if held.as_ref() == Some(&real)
            && real.is_synced(revision)
            && holds_number(&neighbour.platform, (OWN, SHOP), SHOP, &number.to_string())?
        {
            let after = began.elapsed().as_secs_f64();
            say(&format!("  number {number}: {real:?}, held by the platform after {after:.0} s"));
            return Ok(Vec::new());
        }
        let conditions = &object["status"]["conditions"];
        Ok(vec![format!(
            "of {SHOP} with {revision} the platform holds {held:?}, and Argo CD {real:?}: {conditions}"
        )])
    };
    until(look, Vec::is_empty).await
}
