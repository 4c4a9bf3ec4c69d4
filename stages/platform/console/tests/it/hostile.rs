//! What runtimes report is text, whatever it says; and what is not there says why.

use jiff::Timestamp;

use crate::sample::Sample;
use crate::served::Served;

const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'&{{7*7}}";

#[tokio::test]
async fn hostile_text_in_every_field_is_shown_as_text() {
    let mut sample = Sample::new();
    sample.hostile = Some(HOSTILE.to_owned());
    let served = Served::with(sample, Timestamp::now).await;
    let session = served.signed_in().await;
    let segment =
        percent_encoding::utf8_percent_encode(HOSTILE, percent_encoding::NON_ALPHANUMERIC).to_string();
    let one = format!("/applications/{segment}/{segment}/{segment}");
    let resource = format!("apps%2F{segment}%2F{segment}%2F{segment}");
    let pages = [
        "/".to_owned(),
        "/applications".to_owned(),
        "/applications?group=matrix".to_owned(),
        "/applications?group=product".to_owned(),
        format!("/applications?q={segment}&group={segment}"),
        one.clone(),
        format!("{one}?tab=resources&r={resource}&q={segment}"),
        format!("{one}?tab=timeline"),
        format!("{one}?tab=compare&r={resource}&from=1&to=2"),
        format!("{one}/commits/1/{segment}?q={segment}"),
        format!("{one}/deployments"),
        format!("{one}?tab=drift"),
        format!("{one}?tab=errors"),
        format!("{one}?tab=events&r={resource}"),
        format!("{one}?tab=files"),
        format!("/preview/{segment}/{segment}/{segment}"),
        "/deployments".to_owned(),
        format!("/resources?q={segment}"),
        "/resources".to_owned(),
        "/runtimes".to_owned(),
        format!("/shipping/28/failures?q={segment}"),
        format!("/find?q={segment}"),
    ];
    for path in pages {
        let page = served.page(&session, &path).await;
        assert!(!page.contains("<script>") && !page.contains("<img"), "{path}");
        assert!(!page.contains("\"&gt;&lt;script"), "{path} lets an attribute be left");
        assert!(
            page.contains("&lt;img src=x onerror=alert(2)&gt;") || path.contains("/find"),
            "{path} shows the text"
        );
    }
}

#[tokio::test]
async fn what_is_empty_says_why_and_what_to_do_next() {
    let mut sample = Sample::new();
    sample.empty = true;
    let served = Served::with(sample, Timestamp::now).await;
    let sign_in =
        served.client.get(format!("{}/sign-in", served.url)).send().await.unwrap().text().await.unwrap();
    assert!(sign_in.contains("Nobody has an account yet."));
    let session = served.signed_in().await;
    for path in ["/", "/applications", "/runtimes"] {
        let page = served.page(&session, path).await;
        assert!(page.contains("No runtime reports here yet") && page.contains("/runtimes/add"), "{path}");
    }
    let full = Served::new().await;
    let session = full.signed_in().await;
    let page = full.page(&session, "/applications?q=env:production+by:nobody").await;
    assert!(
        page.contains("Nothing matches") && page.contains("/applications?q=env%3Aproduction\""),
        "{page}"
    );
    // What is written as a condition and is none is said to be searched for as it stands.
    let page = full.page(&session, "/applications?q=chnaged:1d+health:bad+https://x+env:production").await;
    for said in ["There is no key <code>chnaged:</code>", "<code>health:bad</code> is no value of it"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(!page.contains("<code>https:") && !page.contains("<code>env:production</code> is"), "{page}");
    let unknown =
        full.client.get(format!("{}/applications/eu-1/argocd/gone", full.url)).header("cookie", &session);
    let unknown = unknown.send().await.unwrap();
    assert_eq!(unknown.status(), reqwest::StatusCode::NOT_FOUND);
    assert!(unknown.text().await.unwrap().contains("This application is not known"));
    // A commit that nobody told of, and moments that are none.
    let one = "/applications/eu-1/argocd-production/payments/commits";
    for (began, revision) in
        [("1764000000000", "gone"), ("soon", "27cec84"), ("9999999999999999", "27cec84"), ("-0.5", "27cec84")]
    {
        let asked =
            full.client.get(format!("{}{one}/{began}/{revision}", full.url)).header("cookie", &session);
        let unknown = asked.send().await.unwrap();
        assert_eq!(unknown.status(), reqwest::StatusCode::NOT_FOUND, "{began}/{revision}");
        assert!(unknown.text().await.unwrap().contains("This commit is not known"));
    }
}
