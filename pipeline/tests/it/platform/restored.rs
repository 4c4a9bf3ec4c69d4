//! What was deleted after the backup that the platform was restored from, and what the reporter makes of that.

use std::collections::BTreeMap;

use loadtest::sim::kube::Collection;
use pipeline_core::Key;
use serde_json::json;

use super::{Platform, names};
use crate::ask::answer;
use crate::runtime::Runtime;
use crate::told;
use crate::verify::{OTHER, SAME, findings, verified};

#[tokio::test]
async fn what_was_deleted_between_a_backup_and_its_restore_is_told_to_be_over_by_verify() {
    let mut platform = Platform::start().await;
    let simulation = told::world(|_| {}).await;
    ["shop", "web"].into_iter().for_each(|name| told::put(&simulation, name));
    let settings = json!({
        "platform": {"url": platform.url(), "tokenFile": platform.token_file()},
        "reporter": {"sharding": {"shards": 1}, "digest": {"enabled": true, "interval": "100ms"}},
    });
    let reporter = Runtime::start(&simulation, &settings).await;
    reporter.idle(2).await;
    let copy = platform.folder.path().join("copy.db").display().to_string();
    platform.command(&["backup", &copy]).await.unwrap();
    let observed = reporter.status().await.total.observed;
    assert!(simulation.kube.delete(Collection::Applications, &Key::new("argocd", "web").unwrap()));
    reporter.idle(observed + 1).await;
    reporter.says(SAME).await;
    let gone = [("shop".to_owned(), false), ("web".to_owned(), true)];
    assert_eq!(names(&platform).await, gone);

    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
    platform.command(&["restore", &copy]).await.unwrap();
    platform.up().await;
    assert_eq!(names(&platform).await, [("shop".to_owned(), false), ("web".to_owned(), false)]);
    reporter.says(OTHER).await;
    let (code, found) = verified(&simulation, &["--dry-run"]).await;
    let web = vec!["argocd/web"];
    let expected = BTreeMap::from([("receiverOthers", web.clone()), ("stillDifferent", web)]);
    assert_eq!((code, findings(&found)), (Some(1), expected), "{found:#}");
    assert_eq!(names(&platform).await[1], ("web".to_owned(), false), "a dry run tells nothing");

    let text = answer(&simulation, &["verify"]).await;
    let line = " ended  the receiver holds it, and it is not in the cluster any more  argocd/web  1\n";
    assert!(text.contains(line), "{text}");
    let last = "1 application reported again, 1 report acknowledged; nothing differs any more\n";
    assert!(text.ends_with(last), "{text}");
    assert_eq!(names(&platform).await, gone);
    let (code, after) = verified(&simulation, &[]).await;
    assert_eq!((code, findings(&after)), (Some(0), BTreeMap::new()), "{after:#}");
    assert_eq!(after["receiverOthers"], json!({"total": 0, "keys": []}), "{after:#}");
    reporter.stop().await;
    platform.silent_of_tokens();
    platform.runtime.take().unwrap().stop().await;
}
