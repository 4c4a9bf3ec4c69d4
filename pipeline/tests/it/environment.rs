//! The incumbent's variables alone: swapping the image of a container is enough.

use std::collections::BTreeSet;
use std::path::PathBuf;

use loadtest::process::Start;
use loadtest::sim::Simulation;
use serde_json::Value;

use crate::runtime::{PROGRAM, Runtime, fleet, taken};

const APPLICATIONS: u32 = 30;

/// The container of one replica, as the incumbent's chart makes it.
fn container(simulation: &Simulation, replicas: u32, shard: u32) -> Start {
    let read = |name: &str| std::fs::read_to_string(simulation.directory().join(name)).unwrap();
    let argocd = simulation.argocd.url();
    let variables = [
        ("BINARY_NAME", "event-reporter"),
        ("ARGOCD_SERVER", argocd.strip_prefix("http://").unwrap()),
        ("ARGOCD_SERVER_ROOTPATH", "/argo-cd"),
        ("ARGOCD_TOKEN", &read("argocd-token")),
        ("CODEFRESH_URL", &simulation.platform.url()),
        ("CODEFRESH_TOKEN", &read("platform-token")),
        ("EVENT_REPORTER_REPLICAS", &replicas.to_string()),
        ("EVENT_REPORTER_SHARD", &shard.to_string()),
        ("EVENT_REPORTER_SHARDING_ALGORITHM", "legacy"),
        ("EVENT_REPORTER_LISTEN_ADDRESS", "127.0.0.1:0"),
        ("EVENT_REPORTER_METRICS_LISTEN_ADDRESS", "127.0.0.1:0"),
        ("EVENT_REPORTER_LOG_LEVEL", "INFO"),
        ("EVENT_REPORTER_LOGFORMAT", "json"),
        ("APP_QUEUE_SIZE", "1000"),
        ("RATE_LIMITER_ENABLED", "false"),
        ("ARGOCD_APPLICATION_NAMESPACES", ""),
        ("REDIS_SERVER", "redis:6379"),
        ("THREADINESS", "1"),
        ("KUBECONFIG", &simulation.directory().join("kubeconfig").display().to_string()),
        ("HOME", &simulation.directory().display().to_string()),
        ("GITOPS_RUNTIME_STATE__DIRECTORY", &simulation.directory().join("state").display().to_string()),
    ];
    Start {
        program: PathBuf::from(PROGRAM),
        args: Vec::new(),
        env: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        directory: simulation.directory().to_path_buf(),
    }
}

/// Names of the applications that a page says are in a shard.
fn placed(page: &str, shard: u32) -> BTreeSet<String> {
    let page: Value = serde_json::from_str(page).unwrap();
    let apps = page["default"]["apps"].as_object().unwrap();
    assert_eq!(apps.len(), APPLICATIONS as usize);
    let own = apps.iter().filter(|(_, at)| at.as_u64() == Some(u64::from(shard)));
    own.map(|(key, _)| key.strip_prefix("argocd/").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_incumbents_variables_alone_make_replicas_that_report_each_its_shard() {
    let simulation = fleet(APPLICATIONS, 1, |setup| setup.argocd_root = "/argo-cd".to_owned()).await;
    let mut all = BTreeSet::new();
    for shard in 0..2 {
        let runtime = Runtime::launch(container(&simulation, 2, shard)).await;
        runtime.until("the first list", |status| status.ready).await;
        let own = placed(&runtime.page("/app-distribution").await.1, shard);
        assert!((5..25).contains(&own.len()), "{own:?}");
        let before = all.len();
        all.extend(own.iter().cloned());
        assert_eq!(all.len(), before + own.len(), "an application is in two shards");
        taken(&simulation, 2 * all.len() as u64).await;
        let status = runtime.idle(own.len() as u64).await;
        let [figures] = status.shards[..] else { panic!("{status:?}") };
        assert_eq!((figures.shard, figures.acked), (shard, own.len() as u64));
        let log = runtime.stop().await;
        let not_needed = "this variable is known and not needed";
        let ignored: BTreeSet<&str> =
            log.iter().filter(|line| line.message == not_needed).map(|line| line.field("variable")).collect();
        assert_eq!(ignored, ["BINARY_NAME", "REDIS_SERVER", "THREADINESS"].into());
        let reported: BTreeSet<String> =
            simulation.platform.last().into_iter().map(|(entity, _)| entity.app_name).collect();
        assert_eq!(reported, all);
    }
    assert_eq!(all.len(), APPLICATIONS as usize);
    assert_eq!(simulation.platform.totals().posts, 2 * u64::from(APPLICATIONS));
}
