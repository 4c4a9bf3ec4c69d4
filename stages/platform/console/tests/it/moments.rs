//! What an application was at a moment, and which one it was: names that are the same, ends, and another beginning.

use jiff::Timestamp;
use sha2::Digest as _;
use stages_platform_store::{Delivery, Operation, Report, Role, Text};

use crate::platform::{Platform, by, report};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Keeps reports of a runtime, each under a key of its own.
async fn keep(platform: &Platform, runtime: &str, reports: Vec<Report>) {
    let number = platform.store.runtime_named(runtime).await.unwrap().unwrap();
    let one = |report: Report| {
        let key = sha2::Sha256::digest(format!("{runtime} {:?} {}", report.entity, report.at)).into();
        Delivery { runtime: number, key, keyed: true, epoch: None, era: 0, report }
    };
    platform.store.keep(reports.into_iter().map(one).collect()).await.unwrap();
}

/// The application of a name, as of then, in the order of their times.
fn of(name: &str, resource: Option<(&str, &str)>, at: i64) -> Report {
    let mut one = report(resource, at);
    one.entity.app_name = name.to_owned();
    one.object = Some(Text::new(format!("{{\"at\":{at}}}")));
    Report { version: Some(at), health: Some("Healthy".to_owned()), sync: Some("Synced".to_owned()), ..one }
}

#[tokio::test]
async fn a_comparison_with_a_time_before_the_first_report_does_not_say_what_was_there() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let now = Timestamp::now().as_millisecond();
    let web = Some(("apps/v1", "Deployment"));
    keep(&platform, "prod", vec![of("cart", None, now - 2 * DAY), of("cart", web, now - 2 * DAY)]).await;
    let compared = async |from: &str| {
        platform.page(&ada, &format!("/applications/prod/argocd/cart?tab=compare{from}")).await
    };
    let (unknown, absent) = ("Nothing was reported before ", "It was not there at the earlier moment.");
    let page = compared("").await;
    assert!(page.contains(unknown) && !page.contains(absent), "{page}");
    assert!(page.contains("It was not reported yet at the earlier moment."), "{page}");
    let page = compared(&format!("&from={}", now - DAY)).await;
    assert!(!page.contains(unknown), "{page}");

    // It ended, and another one of its name was made: that there was none between is known.
    let end = Report { deleted: true, ..of("cart", None, now - DAY) };
    let again = |resource| Report { uid: "another".to_owned(), ..of("cart", resource, now - HOUR) };
    keep(&platform, "prod", vec![end, again(None), again(Some(("apps/v1", "StatefulSet")))]).await;
    let page = compared(&format!("&from={}&r=apps%2FStatefulSet%2Fshop%2Fweb&hours=1", now - DAY / 2)).await;
    assert!(page.contains(absent) && !page.contains(unknown), "{page}");
}

#[tokio::test]
async fn an_application_is_shown_as_it_was_at_a_moment_however_long_ago_with_the_way_back() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let now = Timestamp::now().as_millisecond();
    let web = Some(("apps/v1", "Deployment"));
    let (bad, revision) = (Some("Degraded".to_owned()), |of: char| Some(of.to_string().repeat(40)));
    let then = [
        Report { health: bad.clone(), revision: revision('a'), ..of("cart", None, now - 20 * DAY) },
        Report {
            health: bad,
            health_message: Some("it hurt then".to_owned()),
            ..of("cart", web, now - 20 * DAY)
        },
        Report { revision: revision('b'), ..of("cart", None, now - 2 * DAY) },
        of("cart", web, now - 2 * DAY),
        Report { revision: revision('c'), ..of("cart", None, now - DAY / 24) },
    ];
    keep(&platform, "prod", then.into()).await;
    let path = "/applications/prod/argocd/cart";
    let at = async |moment: i64| platform.page(&ada, &format!("{path}?to={moment}")).await;
    let title = |page: &str| {
        page.split("<div class=\"title\"").nth(1).unwrap().split("</div>").next().unwrap().to_owned()
    };
    let back = format!("<a href=\"{path}\">show it now</a>");
    // Before all that the strip shows, and within it.
    for (moment, health, revision, hurt) in
        [(now - 19 * DAY, "Degraded", "aaaaaaa", true), (now - DAY, "Healthy", "bbbbbbb", false)]
    {
        let page = at(moment).await;
        let title = title(&page);
        assert!(title.contains(&format!("aria-label=\"{health}\"")) && title.contains(revision), "{title}");
        assert!(title.contains("as it was ") && title.contains(&back), "{title}");
        assert_eq!(page.contains("Deployment/web: it hurt then since "), hurt, "{page}");
    }
    let before = at(now - 30 * DAY).await;
    assert!(before.contains("No resource was reported at that moment"), "{before}");
    assert!(
        title(&before).contains("aria-label=\"Unknown\"") && !title(&before).contains("<code"),
        "{before}"
    );
    // What is to come is shown as it is now.
    for page in [platform.page(&ada, path).await, at(now + 400 * DAY).await] {
        let title = title(&page);
        assert!(title.contains("aria-label=\"Healthy\"") && title.contains("ccccccc"), "{title}");
        assert!(title.contains("as of ") && !title.contains("as it was"), "{title}");
    }
    // Whatever time an address asks for, its days have room.
    let long = platform.page(&ada, &format!("{path}?from=0")).await;
    assert!(long.matches("class=\"day\"").count() <= 20, "{long}");
}

#[tokio::test]
async fn what_a_clock_that_is_ahead_said_stands_there_at_once() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let now = Timestamp::now().as_millisecond();
    let mut ahead = of("cart", None, now + 45_000);
    ahead.health = Some("Degraded".to_owned());
    ahead.operation = Some(Operation {
        started_at: now + 40_000,
        finished_at: Some(now + 45_000),
        phase: "Failed".to_owned(),
        revision: "abcdef0123".to_owned(),
        message: "it is early".to_owned(),
        ..Operation::default()
    });
    keep(&platform, "prod", vec![of("cart", None, now - 1_000), ahead]).await;
    let page = platform.page(&ada, "/applications/prod/argocd/cart?tab=timeline").await;
    for told in ["Healthy → </span>Degraded", "abcdef0", "it is early"] {
        assert!(page.contains(told), "{told}: {page}");
    }
    for page in ["/", "/deployments", "/applications", "/shipping/7/failures"] {
        platform.page(&ada, page).await;
    }
}

#[tokio::test]
async fn a_sync_that_hangs_can_be_ended_and_a_failure_has_its_deployment_where_an_hour_is_shown() {
    const MINUTE: i64 = 60_000;
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let now = Timestamp::now().as_millisecond();
    let told = |at: i64, phase: &str, finished_at: Option<i64>| Report {
        health: Some("Degraded".to_owned()),
        health_message: Some("it hurts".to_owned()),
        operation: Some(Operation {
            started_at: now - 75 * MINUTE,
            finished_at,
            phase: phase.to_owned(),
            revision: "abcdef0123".to_owned(),
            ..Operation::default()
        }),
        ..of("cart", None, at)
    };
    let path = "/applications/prod/argocd/cart?hours=1";
    keep(&platform, "prod", vec![told(now - 70 * MINUTE, "Running", None)]).await;
    let hangs = platform.page(&ada, path).await;
    assert!(hangs.contains("data-act=\"terminate\""), "{hangs}");
    assert!(hangs.contains("it hurts since ") && hangs.contains(" after <code>abcdef0123</code>"), "{hangs}");
    keep(&platform, "prod", vec![told(now - MINUTE, "Failed", Some(now - MINUTE))]).await;
    let ended = platform.page(&ada, path).await;
    assert!(!ended.contains("data-act=\"terminate\""), "{ended}");
    assert!(ended.contains(" after <code>abcdef0123</code>"), "{ended}");

    // What somebody goes back to is told since a day before.
    let since = |at: i64| format!("deployments?since={}", Timestamp::from_millisecond(at).unwrap());
    let deployed =
        async |at: i64| platform.page(&ada, &format!("/applications/prod/argocd/cart/{}", since(at))).await;
    let told = "data-revision=\"abcdef0123\"";
    assert!(deployed(now).await.contains(told) && !deployed(now + DAY).await.contains(told));
}

#[tokio::test]
async fn what_is_said_of_drift_holds_for_the_time_that_is_shown() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let now = Timestamp::now().as_millisecond();
    let state = |sync: &str, days: i64| {
        let sync = Some(sync.to_owned());
        [None, Some(("apps/v1", "Deployment"))]
            .map(|resource| Report { sync: sync.clone(), ..of("cart", resource, now - days * DAY) })
    };
    let all = [state("Synced", 30), state("OutOfSync", 20), state("Synced", 19)];
    keep(&platform, "prod", all.concat()).await;
    let page = async |days: u32| {
        platform.page(&ada, &format!("/applications/prod/argocd/cart?tab=drift&days={days}")).await
    };
    let week = page(7).await;
    assert!(week.contains("It did not drift in this time") && week.contains(">Show 90 days</a>"), "{week}");
    let quarter = page(90).await;
    assert!(quarter.contains("Deployment/web") && quarter.contains(">24 h 0 min<"), "{quarter}");
}

#[tokio::test]
async fn applications_of_one_name_are_told_apart_and_one_that_moved_is_where_it_is() {
    let platform = Platform::new().await;
    let ada = platform.session("ada", Role::Admin).await;
    let now = Timestamp::now().as_millisecond();
    platform.store.register(&by(), "second", "{}", false, now).await.unwrap().unwrap();
    let out = |namespace: &str| {
        let mut one = of("twin", None, now - 1_000);
        one.entity.app_namespace = namespace.to_owned();
        Report { sync: Some("OutOfSync".to_owned()), ..one }
    };
    keep(&platform, "prod", vec![out("argocd"), out("other")]).await;
    keep(&platform, "second", vec![out("argocd")]).await;
    let twins = |page: &str| {
        let keys =
            page.split("data-key=\"need/").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
        let mut keys: Vec<_> = keys.filter(|key| key.ends_with("/twin")).collect();
        keys.sort();
        keys
    };
    let home = platform.page(&ada, "/").await;
    assert_eq!(twins(&home), ["prod/argocd/twin", "prod/other/twin", "second/argocd/twin"]);

    // It moved: it ended in one runtime, and is in the other.
    let mut end = out("argocd");
    (end.deleted, end.at, end.version) = (true, now, Some(now));
    keep(&platform, "prod", vec![end]).await;
    assert_eq!(twins(&platform.page(&ada, "/").await), ["prod/other/twin", "second/argocd/twin"]);
    let ended = platform.page(&ada, "/applications/prod/argocd/twin?tab=timeline").await;
    assert!(
        ended.contains("deleted: this is its history")
            && ended.contains("<small class=\"mute\"> <bdi>deleted</bdi></small>"),
        "{ended}"
    );
    let drifts = platform.page(&ada, "/applications/prod/argocd/twin?tab=drift").await;
    assert!(!drifts.contains("it lasts"), "{drifts}");

    // Another one of its name is made there again: of another uid.
    let again = Report { uid: "another".to_owned(), version: Some(1), ..of("twin", None, now + 1) };
    keep(&platform, "prod", vec![again]).await;
    let alive = platform.page(&ada, "/applications/prod/argocd/twin?tab=timeline").await;
    assert!(!alive.contains("deleted: this is its history"), "{alive}");
    let lives: Vec<_> = ["created again</bdi>", ">deleted</bdi>"].map(|told| alive.find(told)).into();
    assert!(lives[0].is_some() && lives[0] < lives[1], "{alive}");
}
