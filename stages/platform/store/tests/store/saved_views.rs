//! Views that people save: each of these holds on both databases.

use stages_platform_store::{Account, By, Place, Role, SAVED_VIEWS, SavedView};

use crate::accounts::{NOW, ada, by, with_ada};
use crate::support::{Opened, on};

/// Runs them on a place that is new each time it is asked for.
pub(crate) async fn hold(place: &mut impl AsyncFnMut() -> Place) {
    on(place, a_view_is_its_owners_alone_until_they_take_it_away_or_go).await;
}

fn view(name: &str, query: &str) -> SavedView {
    SavedView { name: name.to_owned(), query: query.to_owned() }
}

async fn a_view_is_its_owners_alone_until_they_take_it_away_or_go(opened: Opened) {
    let opened = with_ada(opened).await;
    let store = &opened.store;
    let lin = By { who: "lin".to_owned(), how: "session" };
    let account = Account { name: "lin".to_owned(), role: Role::Member, ..ada() };
    assert!(store.add_person(&by(), &account, NOW).await.unwrap());
    let (broken, mine) = (view("broken", "q=health%3Adegraded"), view("Apps", ""));
    assert!(store.save_view(&by(), &broken, NOW).await.unwrap());
    assert!(store.save_view(&by(), &mine, NOW).await.unwrap());
    assert!(store.save_view(&lin, &view("broken", "q=lin"), NOW).await.unwrap(), "it is another's name, too");
    assert_eq!(store.saved_views("ada").await.unwrap(), [mine.clone(), broken.clone()]);
    assert_eq!(store.saved_views("lin").await.unwrap(), [view("broken", "q=lin")]);
    assert_eq!(store.saved_views("nobody").await.unwrap(), []);

    // Saved again it is another filter, and no other view; more than so many there cannot be.
    let other = view("broken", "q=health%3Amissing&group=runtime");
    assert!(store.save_view(&by(), &other, NOW).await.unwrap());
    for number in 2..SAVED_VIEWS {
        assert!(store.save_view(&by(), &view(&format!("view {number:03}"), "q=a"), NOW).await.unwrap());
    }
    assert!(!store.save_view(&by(), &view("one more", "q=a"), NOW).await.unwrap());
    assert!(store.save_view(&by(), &broken, NOW).await.unwrap(), "one that there is may change");
    assert_eq!(store.saved_views("ada").await.unwrap().len(), SAVED_VIEWS);
    let nobody = By { who: "nobody".to_owned(), how: "session" };
    assert!(!store.save_view(&nobody, &broken, NOW).await.unwrap());

    assert!(!store.remove_view(&lin, "Apps", NOW).await.unwrap(), "it is not theirs");
    assert!(store.remove_view(&by(), "Apps", NOW).await.unwrap());
    assert!(!store.remove_view(&by(), "Apps", NOW).await.unwrap());
    assert!(store.save_view(&by(), &view("one more", "q=a"), NOW).await.unwrap());
    assert!(store.save_view(&by(), &view("one more", "q=a"), NOW).await.unwrap(), "it is kept as it is");
    let acts = store.audit(i64::MAX, 2).await.unwrap();
    let acts: Vec<_> = acts.iter().map(|act| (&*act.who, &*act.act, &*act.subject)).collect();
    assert_eq!(acts, [("ada", "view.save", "one more"), ("ada", "view.remove", "Apps")]);

    assert!(store.remove_person(&by(), "lin", NOW).await.unwrap());
    assert!(store.add_person(&by(), &account, NOW).await.unwrap());
    assert_eq!(store.saved_views("lin").await.unwrap(), [], "whoever has the name next has none of them");
    opened.close().await;
}
