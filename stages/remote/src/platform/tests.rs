//! Lists of several pages, while what they show comes and goes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::*;
use crate::server::{Server, ok};

const QUERY: &str = "query List($pagination: SlicePaginationArgs, $ends: Boolean!) { applications(pagination: $pagination) { ends @include(if: $ends) pageInfo { endCursor hasNextPage } edges { node { name } } } }";

/// What a platform has, and how often it was asked.
#[derive(Default)]
struct Known {
    names: BTreeSet<String>,
    asked: usize,
    /// What is done once the first page was given.
    then: Option<fn(&mut BTreeSet<String>)>,
}

impl Known {
    fn answer(&mut self, variables: &Value) -> Value {
        let pagination = &variables["pagination"];
        let (after, first) = (pagination["after"].as_str().unwrap(), pagination["first"].as_u64().unwrap());
        let first = usize::try_from(first).unwrap();
        assert!((1..=PAGE_ROWS).contains(&first), "{first} rows are asked for");
        let behind: Vec<&String> = self.names.iter().filter(|name| &***name > after).collect();
        let page: Vec<&String> = behind.iter().copied().take(first).collect();
        let info = json!({"endCursor": page.last(), "hasNextPage": behind.len() > page.len()});
        let edges: Vec<Value> = page.iter().map(|name| json!({"node": {"name": name}})).collect();
        let mut list = json!({"pageInfo": info, "edges": edges});
        if variables["ends"] == true {
            list["ends"] = behind.chunks_exact(first).map(|page| page[first - 1].clone()).collect();
        }
        self.asked += 1;
        if let Some(then) = self.then.take() {
            then(&mut self.names);
        }
        json!({"data": {"applications": list}})
    }
}

/// The names that a list gives of so many, the first `limit`; whether there are more, and how often was asked. Once the first page
/// was given this is done to the names.
async fn listed(
    of: usize,
    limit: usize,
    then: Option<fn(&mut BTreeSet<String>)>,
) -> (Vec<String>, bool, usize) {
    let names = (0..of).map(|number| format!("app-{number:05}")).collect();
    let known = Arc::new(Mutex::new(Known { names, asked: 0, then }));
    let server = Server::start({
        let known = known.clone();
        move |_, body| ok(&known.lock().unwrap().answer(&body["variables"]))
    });
    let server = server.await;
    let platform = Platform::at(&server.url, "key".into(), None, false, ANSWER).await.unwrap();
    let rows = platform.rows("list", QUERY, &json!({}), "applications", limit).await.unwrap();
    let names = rows.nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()).collect();
    let asked = known.lock().unwrap().asked;
    (names, rows.more, asked)
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("app-{number:05}")).collect()
}

#[tokio::test]
async fn each_page_is_asked_for_once_and_all_rows_are_there_in_their_order() {
    // A list that ends with a page is not known to end before it is read.
    for (of, pages) in [(3, 1), (500, 1), (501, 2), (5_000, 10), (5_200, 11)] {
        let (names, more, asked) = listed(of, 20_000, None).await;
        assert_eq!((names, more), (numbered(0..of), false), "of {of}");
        assert!((pages..=pages + 1).contains(&asked), "of {of} was asked {asked} times");
    }
    for limit in [1, 500, 501, 700, 1_000, 1_999] {
        let (names, more, asked) = listed(2_000, limit, None).await;
        assert_eq!(
            (names, more, asked),
            (numbered(0..limit), true, limit.div_ceil(PAGE_ROWS)),
            "{limit} of them"
        );
    }
}

#[tokio::test]
async fn what_comes_meanwhile_is_shown_once_and_moves_nothing_else() {
    let (names, ..) = listed(
        3_000,
        20_000,
        Some(|names| {
            names.insert("app-00700-new".to_owned());
        }),
    )
    .await;
    let mut expected = numbered(0..3_000);
    expected.insert(701, "app-00700-new".to_owned());
    assert_eq!(names, expected);
}

#[tokio::test]
async fn what_goes_meanwhile_takes_nothing_else_with_it() {
    for gone in ["app-00700", "app-00999", "app-02999"] {
        let then: fn(&mut BTreeSet<String>) = match gone {
            "app-00700" => |names| assert!(names.remove("app-00700")),
            "app-00999" => |names| assert!(names.remove("app-00999")),
            _ => |names| assert!(names.remove("app-02999")),
        };
        let (names, ..) = listed(3_000, 20_000, Some(then)).await;
        let mut expected = numbered(0..3_000);
        expected.retain(|name| name != gone);
        assert_eq!(names, expected, "without {gone}");
    }
}

#[tokio::test]
async fn no_errors_may_be_written_as_null() {
    stages_client::install_crypto();
    let platform = Platform::at("http://127.0.0.1:1", "key".into(), None, false, ANSWER).await.unwrap();
    let answer = |body: &str| platform.answer("look", body.as_bytes()).map_err(|error| error.to_string());
    for errors in ["", r#","errors":null"#, r#","errors":[]"#] {
        assert_eq!(answer(&format!(r#"{{"data":{{"me":1}}{errors}}}"#)).unwrap()["me"], 1, "{errors}");
    }
    let why = answer(r#"{"data":null,"errors":[{"message":"a"},{"message":"b"}]}"#).unwrap_err();
    assert!(why.ends_with("a; b"), "{why}");
}
