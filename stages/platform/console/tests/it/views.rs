//! Views that people save: over HTTP, whose they are and what is refused; in a browser, by the keyboard alone.

use fantoccini::key::Key;
use reqwest::{Response, StatusCode};
use stages_platform_store::{By, SavedView};

use crate::served::Served;

async fn send(served: &Served, session: &str, query: &str, form: &[(&str, &str)]) -> Response {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let url = format!("{}/applications{query}", served.url);
    served.client.post(url).header("cookie", session).body(body).send().await.unwrap()
}

#[tokio::test]
async fn a_view_is_somebodys_own_leads_to_its_filter_and_goes_when_they_say_so() {
    let served = Served::new().await;
    let (ada, lin) = (served.signed_in().await, served.member().await);
    assert!(!served.page(&ada, "/applications").await.contains("Save view"), "there is nothing to save");
    let filter = "?q=health%3Adegraded+%22two+words%22&group=runtime&sort=name&page=3";
    assert!(served.page(&ada, &format!("/applications{filter}")).await.contains("Save view"));
    let saved = send(&served, &ada, filter, &[("name", " <b>broken ")]).await;
    assert_eq!(saved.status(), StatusCode::SEE_OTHER);
    assert_eq!(saved.headers()["location"], format!("/applications{filter}"), "the list is shown again");

    // It leads to the first page of its filter, where it is the one that is open and needs no saving.
    let own = "/applications?q=health%3Adegraded+%22two+words%22&group=runtime&sort=name";
    let link = format!("<a href=\"{}\">&lt;b&gt;broken</a>", own.replace('&', "&amp;"));
    let list = served.page(&ada, "/applications").await;
    assert!(list.contains(&link), "{list}");
    let open = served.page(&ada, own).await;
    assert!(open.contains(&link.replace("\">", "\" aria-current=\"page\">")), "{open}");
    assert!(!open.contains("Save view") && !open.contains("<b>broken"));
    let found = served.page(&ada, "/find?q=BROK").await;
    assert!(found.contains("&lt;b&gt;broken <span class=\"mute\">view</span>"), "{found}");
    for path in ["/applications", "/find?q=brok"] {
        assert!(!served.page(&lin, path).await.contains("broken"), "{path}: it is another's");
    }

    let long = format!("?q={}", vec!["x".repeat(900); 3].join("&q="));
    let (sixty, more) = ("é".repeat(60), "é".repeat(61));
    let name = "A view has a name of 1 to 60 characters.";
    for (query, form, why) in [
        (filter, &[("name", " ")][..], name),
        (filter, &[("name", &*more)][..], name),
        (filter, &[("name", "a\u{7}b")][..], name),
        (
            &long,
            &[("name", "long")][..],
            "A view keeps a filter of at most 2,000 characters: take something away.",
        ),
        (filter, &[("act", "remove"), ("name", "none")][..], "You have no such view (any more)."),
    ] {
        let refused = send(&served, &ada, query, form).await;
        assert_eq!(refused.status(), StatusCode::OK);
        let page = refused.text().await.unwrap();
        assert!(page.contains(&format!("<p class=\"bad\" role=\"alert\">{why}</p>")), "{why}: {page}");
    }
    let of_another = send(&served, &lin, "", &[("act", "remove"), ("name", "<b>broken")]).await;
    assert!(of_another.text().await.unwrap().contains("You have no such view (any more)."));

    // A name that somebody has is given to another filter.
    send(&served, &ada, "?q=mail", &[("name", "<b>broken")]).await;
    let views = served.store.saved_views("ada").await.unwrap();
    assert_eq!((views.len(), &*views[0].query), (1, "q=mail"));
    send(&served, &ada, "?q=a", &[("name", &sixty)]).await;
    for number in 2..50 {
        let saved = send(&served, &ada, "?q=a", &[("name", &format!("view {number}"))]).await;
        assert_eq!(saved.status(), StatusCode::SEE_OTHER, "{number}");
    }
    let refused = send(&served, &ada, "?q=a", &[("name", "one more")]).await.text().await.unwrap();
    assert!(refused.contains("You have 50 views: remove one first."), "{refused}");
    let removed = send(&served, &ada, "?q=a", &[("act", "remove"), ("name", &sixty)]).await;
    assert_eq!(
        (removed.status(), &removed.headers()["location"]),
        (StatusCode::SEE_OTHER, &"/applications?q=a".parse().unwrap())
    );
    assert_eq!(served.store.saved_views("ada").await.unwrap().len(), 49);
    let audit = served.page(&ada, "/audit").await;
    assert!(audit.contains("view.save") && audit.contains("view.remove"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_is_saved_opened_and_removed_by_the_keyboard_alone() {
    let served = Served::new().await;
    let browser = served.browser().await;
    let (enter, escape) = (char::from(Key::Enter).to_string(), char::from(Key::Escape).to_string());
    browser.goto(&format!("{}/applications", served.url)).await;
    browser.keys("/").await;
    browser.keys("health:degraded ").await;
    browser
        .until("document.querySelectorAll('.chip').length === 1 && document.querySelector('.views summary')")
        .await;
    browser.keys(&escape).await;
    browser.tab_to(".views summary").await;
    browser.keys(&enter).await;
    browser.tab_to("#view-name").await;
    let mut found = Vec::new();
    browser.what_keeps_out("a view that is saved", &mut found).await;
    browser.keys(&format!("what broke{enter}")).await;
    browser.until("document.querySelector('.views [aria-current]')?.textContent === 'what broke'").await;
    browser.what_keeps_out("a view that is open", &mut found).await;
    assert!(found.is_empty(), "{found:#?}");

    // From the list of everything, and by its name from anywhere.
    browser.goto(&format!("{}/applications", served.url)).await;
    browser.tab_to(".views a").await;
    browser.keys(&enter).await;
    let is_open = "document.querySelectorAll('.chip').length === 1 && document.querySelectorAll('[data-row]').length === 1";
    browser.until(is_open).await;
    browser.goto(&format!("{}/runtimes", served.url)).await;
    browser.keys("/").await;
    browser.keys("what br").await;
    browser.until("document.querySelector('#found a')?.textContent === 'what broke view'").await;
    browser.keys(&enter).await;
    browser.until(is_open).await;

    // It goes once that is confirmed, and Escape leaves it.
    browser.tab_to(".views [data-confirm] button").await;
    browser.keys(&enter).await;
    let what = "“what broke” goes from your views; what it shows stays.";
    browser.until(&format!("document.querySelector('dialog[open] p')?.textContent === '{what}'")).await;
    browser.keys(&escape).await;
    browser.until("!document.querySelector('dialog[open]')").await;
    assert_eq!(served.store.saved_views("admin").await.unwrap().len(), 1);
    browser.keys(&enter).await;
    browser.tab_to("dialog[open] .primary").await;
    browser.keys(&enter).await;
    browser.until("!document.querySelector('.views nav') && document.querySelector('.views summary')").await;
    assert!(served.store.saved_views("admin").await.unwrap().is_empty());
    browser.close().await;
}

#[tokio::test]
async fn a_view_that_was_saved_by_the_word_of_before_is_the_filter_by_the_word_of_now() {
    let served = Served::new().await;
    let session = served.signed_in().await;
    let by = By { who: "ada".to_owned(), how: "session" };
    let view = SavedView { name: "this week".to_owned(), query: "q=changed%3A7d".to_owned() };
    assert!(served.store.save_view(&by, &view, 1).await.unwrap());
    for word in ["changed", "deployed"] {
        let page = served.page(&session, &format!("/applications?q={word}:7d")).await;
        assert!(page.contains("aria-current=\"page\">this week</a>"), "{word}: {page}");
        assert!(page.contains("deployed: <b>7d</b>") && !page.contains("Save view"), "{word}: {page}");
    }
}
