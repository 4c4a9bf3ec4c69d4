//! What is no page, and what is too much for a form.

use loadtest_sim::local_client;
use reqwest::{Method, Response, redirect};
use stages_platform_store::Role;

use crate::platform::Platform;
use crate::served::Served;

async fn told(response: Response) -> (u16, String) {
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn what_is_no_page_leads_home_and_a_program_is_told_in_a_line() {
    let platform = Platform::new().await;
    let session = platform.session("ada", Role::Admin).await;
    let client = local_client().redirect(redirect::Policy::none()).build().unwrap();
    let ask = |method: &Method, path: &str| client.request(method.clone(), format!("{}{path}", platform.url));
    for (path, status) in
        [("/nothing", 404), ("/settings/nothing", 404), ("/applications/recorded", 404), ("/sign-out", 405)]
    {
        let page = || ask(&Method::GET, path).header("accept", "text/html,*/*");
        let (said, text) = told(page().header("cookie", &session).send().await.unwrap()).await;
        assert_eq!(said, status, "{path}");
        assert!(text.contains("<h2>There is no such page</h2>"), "{path}: {text}");
        assert!(text.contains("<a class=\"button\" href=\"/\">Home</a>"), "{path}: {text}");
        assert!(text.contains("Sign out ada") && !text.contains("aria-current"), "{path}: {text}");
        // Whoever is not signed in is, first.
        let response = page().send().await.unwrap();
        let to = format!("/sign-in?next={}", path.replace('/', "%2F"));
        assert_eq!(
            (response.status().as_u16(), &response.headers()["location"]),
            (303, &to.parse().unwrap())
        );
        let program = ask(&Method::GET, path).header("cookie", &session).send().await.unwrap();
        assert_eq!(told(program).await, (status, "there is no such page\n".to_owned()), "{path}");
    }
    let response = ask(&Method::GET, "/sign-out").send().await.unwrap();
    assert_eq!(response.headers()["allow"], "POST");
    // What begins as the API does is told as it tells.
    let said = (404, "the API has no such path\n".to_owned());
    assert_eq!(told(ask(&Method::GET, "/api/v1/nothing").send().await.unwrap()).await, said);
}

#[tokio::test]
async fn whoever_goes_back_to_what_a_form_was_answered_comes_to_the_page_that_it_stood_on() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    for (path, page) in [
        ("/settings/keys", "/settings"),
        ("/settings/keys/remove", "/settings/keys"),
        ("/settings/users/act", "/settings/users"),
        ("/settings/tokens/remove", "/settings/tokens"),
    ] {
        let asked = served.client.get(format!("{}{path}", served.url)).header("accept", "text/html,*/*");
        let response = asked.header("cookie", &session).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers()["location"].to_str().unwrap()),
            (303, page)
        );
    }
}

#[tokio::test]
async fn a_form_that_is_too_long_is_told_how_long_one_may_be() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    for path in ["/sign-in", "/welcome", "/settings/keys", "/settings/users", "/runtimes", "/applications"] {
        let sent = served.client.post(format!("{}{path}", served.url)).header("cookie", &session);
        let said = (413, "a form is at most 16384 bytes long\n".to_owned());
        assert_eq!(told(sent.body("a".repeat(20_000)).send().await.unwrap()).await, said, "{path}");
    }
}
