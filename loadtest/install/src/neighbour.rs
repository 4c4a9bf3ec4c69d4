//! Another runtime beside the first: a namespace of its own, in which Pod Security enforces `restricted`, and a platform of its
//! own, which asks for another token and stands behind TLS of an authority that no image knows.
//!
//! takes: an installed release - gives: what is wrong with either of the two runtimes, and what is left of the second
//! calls: `helm`, `kubectl`, the API server - fails: when one of them does

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use loadtest_cluster::argocd::ArgoCd;
use loadtest_judge::screen::say;
use loadtest_sim::certificate::Authority;
use loadtest_sim::platform::{self, Keep, PlatformSim};
use loadtest_sim::reporter::merge;
use loadtest_sim::server::Listen;
use serde_json::{Value, json};

use crate::applications::Applications;
use crate::ground::{Ground, NAME, NAMESPACE, RELEASE, outside, port_of, secret};
use crate::until;

/// The namespace of the second runtime.
const OWN: &str = "runtime-two";
const TOKEN: &str = "token-of-the-second-runtime";
/// The Secret with the certificate of the authority.
const AUTHORITY: &str = "private-authority";
/// How the log says why everything is refused: the certificate does not verify.
const UNVERIFIED: &str = r#""reason":"tls""#;

/// The second runtime's surroundings.
pub(crate) struct Neighbour {
    pub(crate) namespace: &'static str,
    pub(crate) platform: Arc<PlatformSim>,
    /// What its platform should hold.
    pub(crate) applications: Applications,
    /// The certificate of the authority that signed its platform's.
    pub(crate) authority: String,
    /// With everything but that authority.
    pub(crate) values: Value,
    before: Vec<String>,
}

impl Neighbour {
    /// Makes all that a person makes before an installation.
    pub(crate) async fn start(ground: &Ground, namespace: &'static str) -> anyhow::Result<Self> {
        let host = ground.node()?.network().host();
        let authority = Authority::new()?;
        let name = format!("platform.{namespace}.svc");
        let platform = PlatformSim::start(platform::Config {
            listen: Listen {
                address: SocketAddr::new(IpAddr::from(host), 0),
                tls: Some(authority.server_of(vec![name.clone()])?),
            },
            token: Some(TOKEN.to_owned()),
            keep: Keep { last: true, reports: 0 },
        });
        let platform = Arc::new(platform.await?);
        let port = port_of(&platform.url())?;
        ground.restricted(namespace).await?;
        let argocd = ground.cluster.argocd.token(ArgoCd::REPORTER)?;
        let mut objects = vec![
            secret("codefresh-token", "Opaque", "token", TOKEN),
            secret("argocd-token", "Opaque", "token", &argocd),
            secret(AUTHORITY, "Opaque", "ca.crt", &authority.pem()),
        ];
        objects.extend(outside(namespace, "platform", port, &host.to_string(), port));
        for object in objects {
            ground.objects.apply_value(&object, namespace).await?;
        }
        let values = json!({
            "global": {
                "runtime": {"name": namespace},
                "codefresh": {"url": format!("https://{name}:{port}")},
                "integrations": {"argo-cd": {"namespace": ArgoCd::NAMESPACE}},
            },
            "reporter": {"persistence": {"storageClass": "local"}},
        });
        let before = ground.found(namespace).await?;
        let applications = ground.applications.told_to(platform.clone());
        Ok(Self { namespace, platform, applications, authority: authority.pem(), values, before })
    }

    /// Commits, and says what either platform does not hold of it in time.
    pub(crate) async fn follow(&self, ground: &Ground) -> anyhow::Result<Vec<String>> {
        let (mut wrong, _) = ground.applications.follow().await?;
        let lacking = self.applications.lacking().await?;
        wrong.extend(lacking.into_iter().map(|line| format!("the second platform: {line}")));
        Ok(wrong)
    }

    /// What there is in its namespace, or of roles, that was not there before it; the other way round is told as wrong.
    pub(crate) async fn left(&self, ground: &Ground) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let found = ground.found(self.namespace).await?;
        let gone = self.before.iter().filter(|line| !found.contains(line));
        let gone = gone.map(|line| format!("not the second release's, and gone: {line}")).collect();
        Ok((found.into_iter().filter(|line| !self.before.contains(line)).collect(), gone))
    }

    /// Waits until nothing is left of it but what `may_stay`, and says what else is, and what is gone that is another's.
    pub(crate) async fn gone(
        &self,
        ground: &Ground,
        may_stay: impl Fn(&str) -> bool,
    ) -> anyhow::Result<Vec<String>> {
        let look = async || {
            let (left, mut wrong) = self.left(ground).await?;
            let unsaid = left.iter().filter(|line| !may_stay(line));
            wrong.extend(unsaid.map(|line| format!("left: {line}")));
            Ok((left, wrong))
        };
        let (left, wrong) = until(look, |(_, wrong)| wrong.is_empty()).await?;
        if wrong.is_empty() {
            for line in left {
                say(&format!("  kept: {line}"));
            }
        }
        Ok(wrong)
    }
}

/// Installs a release of the same name in another namespace, both with rights in the whole cluster, and uninstalls it.
pub(crate) async fn take(ground: &mut Ground) -> anyhow::Result<Vec<String>> {
    let anywhere = json!({"reporter": {"applicationNamespaces": ["team-*"]}});
    ground.upgrade(&anywhere).await?;
    let mut neighbour = Neighbour::start(ground, OWN).await?;
    merge(&mut neighbour.values, &anywhere);

    // Without the authority the platform is told nothing, and the pod says why.
    ground.release(OWN, &neighbour.values, &["--wait"]).await?;
    let mut wrong = Vec::new();
    let said = refused(ground).await?;
    say(&format!("  without the authority the pod says: {said}"));
    if neighbour.platform.totals().taken > 0 {
        wrong.push("a platform was told something whose certificate does not verify".to_owned());
    }
    let trust = json!({"secretKeyRef": {"name": AUTHORITY, "key": "ca.crt"}});
    merge(&mut neighbour.values, &json!({"global": {"codefresh": {"tls": {"caCerts": trust}}}}));
    ground.release(OWN, &neighbour.values, &["--wait"]).await?;
    wrong.extend(neighbour.follow(ground).await?);

    let own = names(&ground.manifest(OWN).await?)?;
    let first = names(&ground.manifest(NAMESPACE).await?)?;
    wrong.extend(
        own.iter().filter(|name| first.contains(name)).map(|name| format!("both releases have {name}")),
    );
    say(&format!("  {} objects of one release and {} of the other", first.len(), own.len()));

    ground.tools.run("helm", &["uninstall", RELEASE, "--namespace", OWN, "--wait"]).await?;
    let kept =
        [format!("PersistentVolumeClaim {OWN}/{NAME}-reporter"), format!("Secret {OWN}/{NAME}-generated")];
    wrong.extend(neighbour.gone(ground, |line| kept.iter().any(|kept| kept == line)).await?);
    // The first one knows nothing of all that.
    wrong.extend(ground.applications.follow().await?.0);
    ground.upgrade(&json!({"reporter": {"applicationNamespaces": []}})).await?;
    wrong.extend(ground.applications.lacking().await?);
    Ok(wrong)
}

/// Kind, namespace and name of each object of a manifest.
fn names(manifest: &str) -> anyhow::Result<Vec<String>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).context("read a manifest")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
    };
    Ok(objects.iter().filter(|object| !object.is_null()).map(name).collect())
}

/// Waits until the reporter of the second release says that a certificate does not verify, and gives that line.
async fn refused(ground: &Ground) -> anyhow::Result<String> {
    let pod = format!("deploy/{NAME}-reporter");
    let look = async || ground.tools.run("kubectl", &["logs", "--namespace", OWN, &pod]).await;
    let log = until(look, |log| log.contains(UNVERIFIED)).await?;
    let refused = log.lines().find(|line| line.contains(UNVERIFIED)).map(str::to_owned);
    refused
        .with_context(|| format!("the log ends with {}", log.lines().last().unwrap_or_default()))
        .context("find what the pod says")
}
