//! What stands at home beside what needs somebody, of what was reported: clusters, what moves, and how that stands to before.

use jiff::Timestamp;
use stages_platform_store::{By, Delivery, Operation, RetentionDays, Role};

use crate::platform::{Platform, report};

const HOUR: i64 = 3_600_000;

#[tokio::test]
async fn clusters_and_what_moves_stand_at_home_and_lead_to_their_applications() {
    let platform = Platform::new().await;
    let now = Timestamp::now().as_millisecond();
    let runtime = platform.store.runtime_named("prod").await.unwrap().unwrap();
    // When deployments began, in hours before now, and how they ended: three within 28 days, two in those before.
    let all = [
        (24 * 40, "Succeeded"),
        (24 * 30, "Succeeded"),
        (24 * 20, "Failed"),
        (30, "Succeeded"),
        (2, "Succeeded"),
    ];
    for (version, (hours, phase)) in (2..).zip(all) {
        let mut one = report(None, now - hours * HOUR);
        one.version = Some(version);
        one.health = Some("Degraded".to_owned());
        one.placement.cluster = "https://10.0.0.1:6443".to_owned();
        one.operation = Some(Operation {
            started_at: one.at,
            finished_at: Some(one.at + 1),
            phase: phase.to_owned(),
            revision: "abc".to_owned(),
            ..Operation::default()
        });
        let key = [u8::try_from(version).unwrap() + 100; 32];
        let delivery = Delivery { runtime, key, keyed: true, epoch: None, era: 0, report: one };
        platform.store.keep(vec![delivery]).await.unwrap();
    }
    let session = platform.session("ada", Role::Admin).await;
    let page = async |path: &str| platform.page(&session, path).await;
    let home = page("/").await;
    assert!(home.contains("3 deployments, 1 failed · ▲ 50 % against the 28 days before"), "{home}");
    // Each stands under its own day.
    for hours in [30, 2] {
        let day = Timestamp::from_millisecond(now - hours * HOUR).unwrap().strftime("%-d %b");
        assert!(home.contains(&format!("<title>{day}: 1 deployment, 0 failed</title>")), "{day}: {home}");
    }
    let (by, days) = (By { who: "ada".to_owned(), how: "session" }, RetentionDays { history: 90, keys: 90 });
    platform.store.keep_retention_days(&by, Some(days), now).await.unwrap();
    let shipped = page("/shipping/90/deployments").await;
    assert!(shipped.contains("the 90 days before are not kept"), "{shipped}");
    let mover = "<a href=\"/applications/prod/argocd/shop?tab=timeline\">shop</a></td>\
                 <td class=\"mute narrow-away\">prod</td><td class=\"number\">3</td>\
                 <td class=\"number\"><span class=\"bad\">1</span></td><td class=\"number mute\">▲ 1</td>";
    assert!(home.contains(mover), "{home}");
    let cluster = "/applications?q=cluster%3Ahttps%3A%2F%2F10.0.0.1%3A6443+runtime%3Aprod";
    for path in ["/", "/runtimes"] {
        let shown = page(path).await;
        assert!(
            shown.contains(&format!("<a href=\"{cluster}\">https://10.0.0.1:6443</a>")),
            "{path}: {shown}"
        );
        let unwell = format!("href=\"{cluster}+health%3Adegraded%2Cmissing\">1</a>");
        assert!(shown.contains(&unwell), "{path}: {shown}");
    }
    let one = "<a href=\"/applications/prod/argocd/shop?";
    assert!(page(cluster).await.contains(one));
    assert!(page(&format!("{cluster}+health%3Adegraded%2Cmissing")).await.contains(one));
    assert!(!page("/applications?q=cluster%3Ain-cluster").await.contains(one));

    // Whoever sees none of it is told nothing.
    let lin = platform.session("lin", Role::Member).await;
    for path in ["/", "/runtimes"] {
        let shown = platform.page(&lin, path).await;
        assert!(!shown.contains("10.0.0.1") && !shown.contains("Top movers"), "{path}: {shown}");
    }
}
