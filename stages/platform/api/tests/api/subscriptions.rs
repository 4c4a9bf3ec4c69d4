//! What is told as it changes: to whoever sees it, from where they were, and to nobody for longer than they may.

use serde_json::{Value, json};

use crate::served::{Answers, Served, by, still, told};

const ALL: &str = "subscription All($after: Int, $runtime: String, $filters: ApplicationsFilterArgs) { applicationsChanged(after: $after, runtime: $runtime, filters: $filters) { sequence resync applications { metadata { runtime namespace name } healthStatus deleted } } }";
const ONE: &str = r#"subscription One($after: Int) { applicationChanged(runtime: "prod", namespace: "argocd", name: "shop", after: $after) { sequence resync application { healthStatus timeline(first: 5) { id healthStatus } resources { resource { name } } } } }"#;
const RULE: &str = r#"mutation { createAbacRule(rule: {entityType: "gitopsApplications", teams: ["shop"], actions: ["VIEW"], attributes: [{name: "RUNTIME", value: "prod"}]}) }"#;

/// The next change: how far it goes, and which applications it is of; `resync` instead of them.
async fn change(answers: &mut Answers) -> (i64, String) {
    let data = answers.data().await["applicationsChanged"].clone();
    let name = |one: &Value| {
        let of = |field: &str| one["metadata"][field].as_str().unwrap();
        format!("{}/{}/{}", of("runtime"), of("namespace"), of("name"))
    };
    let names: Vec<String> = data["applications"].as_array().unwrap().iter().map(name).collect();
    let text = if data["resync"] == true { format!("resync{}", names.join(" ")) } else { names.join(" ") };
    (data["sequence"].as_i64().unwrap(), text)
}

#[tokio::test]
async fn what_changes_is_told_to_whoever_sees_it_and_to_nobody_else() {
    let served = Served::new().await;
    let now = still().as_millisecond();
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    served.data(&served.admin, RULE, json!({})).await;
    let mut all = served.stream(&served.admin, ALL, json!({})).await;
    let mut reads = served.stream(&served.admin_reads, ALL, json!({})).await;
    let mut member = served.stream(&served.member, ALL, json!({})).await;
    let mut runtime = served.stream(&served.runtime, ALL, json!({})).await;
    let mut one = served.stream(&served.admin, ONE, json!({})).await;
    for answers in [&mut all, &mut reads, &mut member, &mut runtime] {
        assert_eq!(change(answers).await, (0, String::new()), "from where on they are told");
    }
    let begun = json!({"sequence": 0, "resync": false, "application": null});
    assert_eq!(one.data().await["applicationChanged"], begun);
    // Whoever sees it all hears of each, one after the other.
    let mut places = Vec::new();
    for (runtime, application) in [("eu1", "argocd/shop"), ("prod", "team/cart"), ("prod", "argocd/shop")] {
        served.report(runtime, application).await;
        for answers in [&mut all, &mut reads] {
            let (place, names) = change(answers).await;
            assert_eq!(names, format!("{runtime}/{application}"));
            places.push(place);
        }
    }
    let last = served.store.sequence().await.unwrap();
    assert!(places.is_sorted() && places.last() == Some(&last), "{places:?}");
    // The others hear of their own alone, and that is all that they heard by then.
    for answers in [&mut member, &mut runtime] {
        let (mut heard, mut upto) = (Vec::new(), 0);
        while upto < last {
            let (place, names) = change(answers).await;
            heard.extend(names.split(' ').map(str::to_owned));
            upto = place;
        }
        heard.sort();
        assert_eq!(heard, ["prod/argocd/shop", "prod/team/cart"]);
    }
    let told = one.data().await["applicationChanged"].clone();
    assert_eq!((&told["sequence"], &told["application"]["healthStatus"]), (&json!(last), &json!("DEGRADED")));
    assert_eq!(told["application"]["timeline"].as_array().unwrap().len(), 1, "{told}");
}

#[tokio::test]
async fn whoever_was_away_hears_what_changed_meanwhile_or_that_all_is_to_be_read_anew() {
    let served = Served::new().await;
    served.report("prod", "argocd/shop").await;
    let first = served.store.sequence().await.unwrap();
    served.report("prod", "team/cart").await;
    let last = served.store.sequence().await.unwrap();
    let from = async |after: i64, filters: Value| {
        let asked = json!({"after": after, "filters": filters});
        let mut answers = served.stream(&served.admin, ALL, asked).await;
        assert_eq!(change(&mut answers).await, (after, String::new()));
        answers
    };
    for (after, expected) in [(0, "prod/argocd/shop prod/team/cart"), (first, "prod/team/cart")] {
        let told = change(&mut from(after, json!(null)).await).await;
        assert_eq!(told, (last, expected.to_owned()));
    }
    // A place that there is not yet, as after a backup was restored, is one that nobody knows the way from.
    for after in [last + 1, -1, i64::from(i32::MAX) * 1_000] {
        let mut answers = from(after, json!(null)).await;
        assert_eq!(change(&mut answers).await, (last, "resync".to_owned()), "{after}");
        drop(answers);
    }
    let mut one = served.stream(&served.admin, ONE, json!({"after": last + 1})).await;
    one.data().await;
    let resync = json!({"sequence": last, "resync": true, "application": null});
    assert_eq!(one.data().await["applicationChanged"], resync);
    // What the filters leave out is not told of.
    let mut cart = from(0, json!({"namePrefix": "ca"})).await;
    assert_eq!(change(&mut cart).await, (last, "prod/team/cart".to_owned()));
    let mut labelled = from(0, json!({"labels": ["team=shop"], "deleted": false})).await;
    assert_eq!(change(&mut labelled).await, (last, "prod/argocd/shop".to_owned()));
    let mut elsewhere = served.stream(&served.admin, ALL, json!({"after": 0, "runtime": "eu1"})).await;
    change(&mut elsewhere).await;
    served.report("eu1", "argocd/shop").await;
    assert_eq!(change(&mut elsewhere).await.1, "eu1/argocd/shop");
    served.report_of("prod", "team/cart", |report| (report.deleted, report.version) = (true, Some(2))).await;
    let data = cart.data().await["applicationsChanged"].clone();
    assert_eq!(data["applications"][0]["deleted"], true, "{data}");
}

#[tokio::test]
async fn a_subscription_ends_with_its_key_with_what_its_owner_sees_and_with_the_platform() {
    let served = Served::new().await;
    let now = still().as_millisecond();
    let mut ended = served.stream(&served.member, ALL, json!({})).await;
    change(&mut ended).await;
    served.store.set_teams(&by("ada"), "lin", &["shop".to_owned()], now).await.unwrap();
    served.data(&served.admin, RULE, json!({})).await;
    served.report("prod", "argocd/shop").await;
    let other = "what you may see has changed: read it anew, and subscribe again";
    assert_eq!(ended.refused(ALL).await, other);
    let mut member = served.stream(&served.member, ALL, json!({"after": 0})).await;
    change(&mut member).await;
    assert_eq!(change(&mut member).await.1, "prod/argocd/shop");
    served.data(&served.admin, r#"mutation { removeUser(name: "lin") }"#, json!({})).await;
    served.report("prod", "team/cart").await;
    let gone = "this key, token or session is not known, or has ended";
    assert_eq!(member.refused(ALL).await, gone);

    let mut quiet = served.stream(&served.admin, ALL, json!({})).await;
    change(&mut quiet).await;
    let mut session = served.ask(&served.session, ALL, &json!({})).header("accept", "text/event-stream");
    session = session.header("sec-fetch-site", "same-origin");
    let session = session.send().await.unwrap();
    assert_eq!(session.status(), 403, "a page has a stream of its own, and asks no query of its own");
    served.stop.cancel();
    assert_eq!(quiet.answer().await, None, "it says that it ends");
}

#[tokio::test]
async fn a_stream_on_which_nothing_comes_lives() {
    let served = Served::new().await;
    let mut quiet = served.stream(&served.admin, ALL, json!({})).await;
    change(&mut quiet).await;
    quiet.read().await;
    served.report("prod", "argocd/shop").await;
    assert_eq!(change(&mut quiet).await.1, "prod/argocd/shop");
    assert!(quiet.beats > 0);
}

#[tokio::test]
async fn nobody_has_more_subscriptions_than_twenty_however_they_are_asked_for() {
    let served = Served::new().await;
    let many: String = (0..20).map(|n| format!("a{n}: applicationsChanged {{ sequence }} ")).collect();
    let many = format!("subscription {{ {many} }}");
    let mut open = served.stream(&served.admin, &many, json!({})).await;
    for _ in 0..20 {
        open.data().await;
    }
    let full = "20 subscriptions of yours are open, and no more may be: end one";
    for who in [&served.admin, &served.admin_reads] {
        assert_eq!(served.stream(who, ALL, json!({})).await.refused(ALL).await, full);
    }
    let mut other = served.stream(&served.member, ALL, json!({})).await;
    change(&mut other).await;
    drop(open);
    // Whoever has gone is noticed with the next beat.
    loop {
        let answer = served.stream(&served.admin, ALL, json!({})).await.answer().await.unwrap();
        if answer.get("errors").is_none() {
            break;
        }
        other.read().await;
    }
}

#[tokio::test]
async fn what_is_too_much_is_refused_before_anything_is_told() {
    let served = Served::new().await;
    let timelines = "subscription { applicationsChanged { applications { timeline(first: 500) { id } } } }";
    let refused =
        async |query: &str| served.stream(&served.admin, query, json!({})).await.refused(query).await;
    assert_eq!(refused(timelines).await, "Query is too complex.");
    let aliases: String = (0..101).map(|n| format!("a{n}: applicationsChanged {{ sequence }} ")).collect();
    assert_eq!(refused(&format!("subscription {{ {aliases} }}")).await, "Query is too complex.");
    let labels = "subscription { applicationsChanged(filters: {labels: [\"team\"]}) { sequence } }";
    assert_eq!(refused(labels).await, "a label is key=value");
    let query = "subscription { applicationsChanged(filters: {query: \"deployed:1h\"}) { sequence } }";
    let why = "a subscription takes no query: list by it, and subscribe by labels";
    assert_eq!(refused(query).await, why);
    // An answer alone says how it is to be asked for, and a stream takes whatever is asked.
    let alone = served.refused(&served.admin, ALL, json!({})).await;
    assert!(alone.contains("Subscriptions are not supported on this transport"), "{alone}");
    let mut query = served.stream(&served.admin, "{ me { name } }", json!({})).await;
    assert_eq!(query.data().await, json!({"me": {"name": "ada"}}));
    assert_eq!(query.answer().await, None);
    let stream = served.client.post(format!("{}/2.0/api/graphql", served.url));
    let stream = stream.header("accept", "text/event-stream").json(&json!({"query": ALL}));
    assert_eq!(told(stream.send().await.unwrap()).await.0, 401);
}
