//! The contract of accounts: each of these holds on both databases.

use stages_platform_store::{Account, Place, Retention, Role};

use crate::support::{KEEP_ALL, Opened, digest, open, open_with};

const NOW: i64 = 1_795_000_000_000;
const MINUTE: i64 = 60_000;

/// Runs the contract on a place that is new each time it is asked for.
pub(crate) async fn hold(place: &mut impl AsyncFnMut() -> Place) {
    the_first_account_is_made_by_a_link_once(open(&place().await).await).await;
    a_session_is_somebodys_until_it_ends(&place().await).await;
    sessions_that_have_ended_are_taken_away(&place().await).await;
}

pub(crate) fn ada() -> Account {
    Account { name: "ada".to_owned(), password: "$argon2id$made-up".to_owned(), role: Role::Admin }
}

/// A store with `ada` in it.
async fn with_ada(opened: Opened) -> Opened {
    opened.store.keep_link(digest("link"), NOW + MINUTE).await.unwrap();
    assert!(opened.store.use_link(digest("link"), NOW, &ada()).await.unwrap());
    opened
}

async fn the_first_account_is_made_by_a_link_once(opened: Opened) {
    let store = &opened.store;
    assert!(!store.has_accounts().await.unwrap());
    store.keep_link(digest("earlier"), NOW + MINUTE).await.unwrap();
    store.keep_link(digest("link"), NOW + MINUTE).await.unwrap();
    assert!(!store.link_is_good(digest("earlier"), NOW).await.unwrap(), "a later link makes it useless");
    assert!(store.link_is_good(digest("link"), NOW + MINUTE - 1).await.unwrap());
    assert!(!store.link_is_good(digest("link"), NOW + MINUTE).await.unwrap(), "it has ended");
    assert!(!store.use_link(digest("link"), NOW + MINUTE, &ada()).await.unwrap());
    assert!(!store.use_link(digest("earlier"), NOW, &ada()).await.unwrap());
    assert_eq!((store.has_accounts().await.unwrap(), store.account("ada").await.unwrap()), (false, None));

    let (ada, eve) = (ada(), Account { name: "eve".to_owned(), ..ada() });
    let (first, second) =
        tokio::join!(store.use_link(digest("link"), NOW, &ada), store.use_link(digest("link"), NOW, &eve));
    assert_ne!(first.unwrap(), second.unwrap(), "one of two that use a link at once");
    let found = (store.account("ada").await.unwrap(), store.account("eve").await.unwrap());
    assert!(matches!(found, (Some(_), None) | (None, Some(_))), "{found:?}");
    assert!(store.has_accounts().await.unwrap());
    assert!(!store.link_is_good(digest("link"), NOW).await.unwrap());

    // A name that is somebody's: the link stays good for another.
    let taken = found.0.or(found.1).unwrap();
    assert_eq!((&*taken.password, taken.role), ("$argon2id$made-up", Role::Admin));
    store.keep_link(digest("again"), NOW + MINUTE).await.unwrap();
    assert!(!store.use_link(digest("again"), NOW, &taken).await.unwrap());
    assert!(store.link_is_good(digest("again"), NOW).await.unwrap());
    opened.close().await;
}

async fn a_session_is_somebodys_until_it_ends(place: &Place) {
    let opened = with_ada(open(place).await).await;
    let store = &opened.store;
    let refused = store.keep_session(digest("none"), "nobody", NOW, NOW + MINUTE).await.unwrap_err();
    assert_eq!(refused.to_string(), "what was to be changed is not there any more: nothing was changed");
    store.keep_session(digest("one"), "ada", NOW, NOW + MINUTE).await.unwrap();
    store.keep_session(digest("two"), "ada", NOW, NOW + 2 * MINUTE).await.unwrap();
    let whose = async |session, now| opened.store.session(digest(session), now).await.unwrap();
    assert_eq!(whose("none", NOW).await, None);
    assert_eq!(whose("one", NOW + MINUTE - 1).await.as_deref(), Some("ada"));
    assert_eq!(whose("one", NOW + MINUTE).await, None);
    assert_eq!(whose("two", NOW + MINUTE).await.as_deref(), Some("ada"));
    store.end_session(digest("two")).await.unwrap();
    store.end_session(digest("two")).await.unwrap();
    assert_eq!(whose("two", NOW).await, None);
    assert_eq!(whose("one", NOW).await.as_deref(), Some("ada"));
    // What is kept outlives the process.
    opened.close().await;
    let opened = open(place).await;
    assert_eq!(opened.store.session(digest("one"), NOW).await.unwrap().as_deref(), Some("ada"));
    opened.close().await;
}

async fn sessions_that_have_ended_are_taken_away(place: &Place) {
    let interval = std::time::Duration::from_millis(10);
    let opened = with_ada(open_with(place, Retention { interval, ..KEEP_ALL }).await).await;
    let store = &opened.store;
    let now = jiff::Timestamp::now().as_millisecond();
    store.keep_session(digest("over"), "ada", now - 2 * MINUTE, now - MINUTE).await.unwrap();
    store.keep_session(digest("on"), "ada", now, now + 600 * MINUTE).await.unwrap();
    store.keep_link(digest("over"), now - MINUTE).await.unwrap();
    let stop = pipeline_core::Shutdown::new();
    let gone = async {
        // Before their end by the clock that is asked with, they are seen for as long as they are kept.
        while opened.store.session(digest("over"), now - 2 * MINUTE).await.unwrap().is_some()
            || opened.store.link_is_good(digest("over"), now - 2 * MINUTE).await.unwrap()
        {
            tokio::time::sleep(interval).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(store.retain(stop.clone()), gone) };
    tokio::time::timeout(std::time::Duration::from_secs(180), both).await.unwrap();
    assert_eq!(store.session(digest("on"), now).await.unwrap().as_deref(), Some("ada"));
    opened.close().await;
}
