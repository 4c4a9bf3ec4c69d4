//! Capitals, in what is searched and in what is typed.

use stages_platform_store::{Condition, Selection, View, adopt};

use crate::support::{Opened, report};

pub(crate) async fn a_search_is_for_letters_whether_or_not_they_are_capitals(opened: Opened) {
    let token = adopt(&opened.place, "Prod-EU").await.unwrap();
    let runtime = opened.store.runtime(&token).await.unwrap().unwrap().id;
    let mut one = report("u", 1, 1);
    one.revision = Some("v1.2.0-RC1".to_owned());
    one.placement.labels = vec![("environment".to_owned(), "Staging".to_owned())];
    one.placement.namespace = "elsewhere".to_owned();
    one.commit.author = "Łukasz Żak <lz@example.com>".to_owned();
    opened.deliver_of(runtime, one).await;
    let text = |text: &str| Condition::Text(text.to_owned());
    let commit = |text: &str| Condition::Commit(text.to_owned());
    let author = |text: &str| Condition::Author(text.to_owned());
    for (condition, expected) in [
        (text("prod-eu"), 1),
        (text("PROD-EU"), 1),
        (text("staging"), 1),
        (text("Staging"), 1),
        (text("prod_eu"), 0),
        (commit("v1.2.0-rc1"), 1),
        (commit("V1.2.0-RC"), 1),
        (commit("1.2"), 0),
        (author("Łukasz Żak"), 1),
        (author("łukasz żak"), 1),
        (author("LZ@EXAMPLE"), 1),
        (author("l_@"), 0),
    ] {
        let selection = Selection { conditions: vec![condition.clone()], ..Selection::default() };
        let found = opened.store.list(&View::ALL, &selection, 0, 10).await.unwrap().matching;
        assert_eq!(found, expected, "{condition:?}");
    }
    opened.close().await;
}

/// What is searched of an application has an end, and images stand behind labels in it.
pub(crate) async fn a_label_is_found_however_many_images_there_are(opened: Opened) {
    let mut one = report("u", 1, 1);
    let images: Vec<String> = (0..2_000)
        .map(|image| format!("\"registry.example.com/a/rather/long/name/{image}:1.2.3\""))
        .collect();
    one.images = format!("[{}]", images.join(","));
    one.placement.labels = vec![("team".to_owned(), "Shop".to_owned())];
    opened.keep(one).await;
    let label = |key: &str, value: Option<&str>| Condition::Label(key.to_owned(), value.map(str::to_owned));
    let (text, image) =
        (|text: &str| Condition::Text(text.to_owned()), |text: &str| Condition::Image(text.to_owned()));
    for (condition, expected) in [
        (text("team=shop"), 1),
        (text("name/0:1.2.3"), 1),
        (text("name/1999"), 0),
        (image("name/1999"), 1),
        (label("team", Some("Shop")), 1),
        (label("team", Some("shop")), 1),
        (label("team", None), 1),
        (label("tea", None), 0),
        (label("team", Some("sho")), 0),
        (label("eam", Some("shop")), 0),
    ] {
        let selection = Selection { conditions: vec![condition.clone()], ..Selection::default() };
        let found = opened.store.list(&View::ALL, &selection, 0, 10).await.unwrap().matching;
        assert_eq!(found, expected, "{condition:?}");
    }
    opened.close().await;
}
