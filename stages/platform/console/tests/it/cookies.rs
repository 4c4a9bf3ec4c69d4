//! What a neighbour of this host may set in a browser: cookies for the domain of both, which are none of this platform.

use jiff::Timestamp;
use reqwest::{Response, StatusCode};
use url::Url;

use crate::oidc::{by, config, refused, told};
use crate::provider::{Person, Provider, client};
use crate::sample::Sample;
use crate::served::{Served, cookie};

const EXTERNAL: &str = "https://platform.example.com";

/// The cookie that an answer sets, whole.
fn set(response: &Response) -> &str {
    response.headers()["set-cookie"].to_str().unwrap()
}

#[tokio::test]
async fn over_https_a_session_is_one_that_no_neighbour_can_have_set() {
    let served = Served::behind(Some(EXTERNAL), Sample::new(), Timestamp::now, async |_| None).await;
    let link = served.link().await;
    let token = link.split_once("token=").unwrap().1;
    let form = [("token", token), ("name", "ada"), ("password", "correct horse battery")];
    let response = served.post("/welcome", &form).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    let (of_ada, rest) = set(&response).split_once("; ").unwrap();
    assert!(of_ada.starts_with("__Host-session="), "{of_ada}");
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Lax; Max-Age=604800; Secure");
    let asked = async |cookies: &str| {
        let asked = served.client.get(format!("{}/find?q=a", served.url)).header("cookie", cookies);
        asked.send().await.unwrap().status()
    };
    assert_eq!(asked(&format!("theme=dark; {of_ada}")).await, StatusCode::OK);
    // Of somebody who has an account, and would have `ada` work in it.
    let form = [("name", "ada"), ("password", "correct horse battery")];
    let other = cookie(&served.post("/sign-in", &form).await);
    let planted = other.strip_prefix("__Host-").unwrap();
    for cookies in [
        planted.to_owned(),
        format!("{of_ada}; {other}"),
        format!("{other}; {of_ada}"),
        format!("{of_ada}; {of_ada}"),
    ] {
        assert_eq!(asked(&cookies).await, StatusCode::UNAUTHORIZED, "{cookies}");
    }
    assert_eq!(asked(&format!("{planted}; {of_ada}")).await, StatusCode::OK, "it is as if it were not there");
    let out = served.client.post(format!("{}/sign-out", served.url)).header("cookie", of_ada);
    let gone = out.send().await.unwrap();
    assert_eq!(set(&gone), "__Host-session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure");
}

#[tokio::test]
async fn over_https_an_attempt_is_one_that_no_neighbour_can_have_set() {
    let mut provider = None;
    let served = Served::behind(Some(EXTERNAL), Sample::new(), Timestamp::now, async |url| {
        let started = Provider::start(url).await;
        let sign_in = by(config(&started.issuer, url));
        provider = Some(started);
        Some(sign_in)
    })
    .await;
    provider.as_ref().unwrap().person("mia", &[]).await;
    served.signed_in().await;
    let mut mia = Person::new();
    let start = Url::parse(&served.start()).unwrap();
    let begun = mia.get(&start).await;
    let (attempt, rest) = set(&begun).split_once("; ").unwrap();
    assert!(attempt.starts_with("__Host-attempt="), "{attempt}");
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure");
    let attempt = attempt.to_owned();
    let back = mia.on(start, begun, "mia").await;
    let comes =
        async |cookies: &str| client().get(back.clone()).header("cookie", cookies).send().await.unwrap();
    let stale = "This attempt began in another browser, or more than 10 minutes ago: begin again.";
    let gone = "__Host-attempt=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure";
    for cookies in [attempt.strip_prefix("__Host-").unwrap(), &format!("{attempt}; {attempt}")] {
        let answer = comes(cookies).await;
        assert_eq!(set(&answer), gone);
        assert_eq!(told(answer).await, refused(StatusCode::BAD_REQUEST, stale), "{cookies}");
    }
    let answer = comes(&attempt).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let all: Vec<_> =
        answer.headers().get_all("set-cookie").iter().map(|one| one.to_str().unwrap()).collect();
    assert!(
        matches!(all[..], [session, over] if session.starts_with("__Host-session=") && over == gone),
        "{all:?}"
    );
}
