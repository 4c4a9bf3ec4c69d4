//! Applications by a range of their keys, as whoever compares asks for them.

use crate::support::{Opened, report};

pub(crate) async fn applications_are_found_by_a_range_of_their_keys(opened: Opened) {
    for (namespace, name) in [("team", "a"), ("team-b", "z"), ("team", "B"), ("team", "é"), ("teams", "a")] {
        let mut one = report(name, 1, 1);
        (one.entity.app_namespace, one.entity.app_name) = (namespace.to_owned(), name.to_owned());
        opened.keep(one).await;
    }
    let between = async |after: &str, upto: Option<&str>, most| {
        let found = opened.store.placed_between(opened.runtime.id, (after, upto), most).await.unwrap();
        found.into_iter().map(|one| format!("{}/{}", one.namespace, one.name)).collect::<Vec<_>>()
    };
    // Byte for byte, as whoever compares orders them: `-` comes before `/`, and capitals before small letters.
    let all = ["team-b/z", "team/B", "team/a", "team/é", "teams/a"];
    assert_eq!(between("", None, 10).await, all);
    assert_eq!(between("", None, 2).await, all[..2]);
    assert_eq!(between(all[1], None, 2).await, all[2..4]);
    assert_eq!(between(all[0], Some(all[3]), 10).await, all[1..4]);
    assert_eq!(between(all[4], None, 10).await, all[..0]);
    opened.close().await;
}
