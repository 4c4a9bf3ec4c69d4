//! Keys of people for programs: each of these holds on both databases.

use pipeline_core::{ExposeSecret as _, SecretString};
use stages_platform_store::{API_KEYS, By, Place, Scope};

use crate::accounts::{MINUTE, NOW, by, known, lin, with_ada};
use crate::support::{Opened, on};

/// Runs them on a place that is new each time it is asked for.
pub(crate) async fn hold(place: &mut impl AsyncFnMut() -> Place) {
    on(place, a_key_is_known_until_it_ends_or_is_taken_back).await;
    on(place, a_key_that_is_taken_back_takes_with_it_what_was_made_with_it).await;
    on(place, of_keys_that_are_made_at_once_no_more_are_kept_than_somebody_may_have).await;
}

async fn a_key_is_known_until_it_ends_or_is_taken_back(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    store.add_person(&by(), &lin(), NOW).await.unwrap();
    let of_lin = By { who: "lin".to_owned(), how: "session" };
    let key = store.add_key(&by(), "ci", Scope::Read, NOW + MINUTE, NOW).await.unwrap();
    let other = store.add_key(&of_lin, "backup", Scope::Full, NOW + 2 * MINUTE, NOW).await.unwrap();
    assert!(key.expose_secret().starts_with("goak_"));
    let nobody = By { who: "nobody".to_owned(), how: "session" };
    let refused = store.add_key(&nobody, "ci", Scope::Read, NOW + MINUTE, NOW).await.unwrap_err();
    assert_eq!(refused.to_string(), "what was to be changed is not there any more: nothing was changed");
    let whose = async |key: &SecretString, now| store.key(key, now).await.unwrap();
    assert_eq!(whose(&key, NOW).await, Some(known(1, "ada", Scope::Read, NOW + MINUTE)));
    assert_eq!(whose(&other, NOW).await, Some(known(2, "lin", Scope::Full, NOW + 2 * MINUTE)));
    assert_eq!(whose(&key, NOW + MINUTE).await, None, "it has ended");
    let mut wrong = key.expose_secret().to_owned();
    wrong.pop();
    let last = if key.expose_secret().ends_with('0') { "1" } else { "0" };
    for wrong in ["", "goak_", "gort_00", &format!("{wrong}{last}"), &format!("goak_{}", "0".repeat(64))] {
        assert_eq!(whose(&SecretString::from(wrong), NOW).await, None, "{wrong}");
    }
    let listed = store.keys(Some("ada")).await.unwrap();
    assert_eq!((listed.len(), &*listed[0].name, listed[0].scope), (1, "ci", Scope::Read));
    assert!(key.expose_secret().starts_with(&listed[0].prefix));
    assert_eq!(store.keys(None).await.unwrap().len(), 2);
    assert!(!store.remove_key(&of_lin, listed[0].id, false, NOW).await.unwrap(), "it is another's");
    assert!(store.remove_key(&by(), listed[0].id, false, NOW).await.unwrap());
    assert_eq!(whose(&key, NOW).await, None);
    let id = store.keys(Some("lin")).await.unwrap()[0].id;
    assert!(store.remove_key(&by(), id, true, NOW).await.unwrap(), "an admin takes back anybody's");
    assert_eq!(whose(&other, NOW).await, None);
    opened.close().await;
}

async fn a_key_that_is_taken_back_takes_with_it_what_was_made_with_it(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    let end = NOW + MINUTE;
    let id = async |key: &SecretString| store.key(key, NOW).await.unwrap().map(|key| key.id);
    let own = store.add_key(&by(), "own", Scope::Full, end, NOW).await.unwrap();
    let (first, mut made, mut with) = (id(&own).await, Vec::new(), id(&own).await);
    for _ in 0..3 {
        let next = store.add_key_with(with, &by(), "next", Scope::Full, end, NOW).await.unwrap();
        with = id(&next).await;
        made.push(next);
    }
    let other = store.add_key(&by(), "other", Scope::Full, end, NOW).await.unwrap();
    assert!(store.remove_key(&by(), first.unwrap(), false, NOW).await.unwrap());
    for key in [&own].into_iter().chain(&made) {
        assert_eq!(store.key(key, NOW).await.unwrap(), None);
    }
    assert!(store.key(&other, NOW).await.unwrap().is_some());
    // With one that is none any more none is made.
    assert!(store.add_key_with(first, &by(), "late", Scope::Full, end, NOW).await.is_err());
    assert_eq!(store.keys(Some("ada")).await.unwrap().len(), 1);
    opened.close().await;
}

async fn of_keys_that_are_made_at_once_no_more_are_kept_than_somebody_may_have(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    let end = NOW + MINUTE;
    let mut made = tokio::task::JoinSet::new();
    for _ in 0..API_KEYS + 5 {
        let store = store.clone();
        made.spawn(async move { store.add_key(&by(), "ci", Scope::Read, end, NOW).await });
    }
    let made = made.join_all().await;
    let refused: Vec<_> = made.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
    assert_eq!(refused, ["you have 50 keys: take one back first"; 5]);
    assert_eq!(store.keys(Some("ada")).await.unwrap().len(), API_KEYS);
    assert!(store.add_person(&by(), &lin(), NOW).await.unwrap());
    let of_lin = By { who: "lin".to_owned(), how: "session" };
    store.add_key(&of_lin, "ci", Scope::Read, end, NOW).await.unwrap();
    opened.close().await;
}
