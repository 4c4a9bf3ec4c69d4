//! Requests that are part of a traced event say so, and no others do.

use axum::Router;
use axum::http::HeaderMap;
use pipeline_core::traced;

use crate::support::{client, get, serve};

#[tokio::test]
async fn a_request_carries_the_trace_of_the_work_that_it_is_part_of() {
    let router = Router::new().fallback(|headers: HeaderMap| async move {
        headers.get("traceparent").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    });
    let client = client(&serve(router).await, crate::support::config()).await;
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let said = async || String::from_utf8(get(&client).await.unwrap().body().to_vec()).unwrap();
    assert_eq!(said().await, "");
    assert_eq!(traced(Some(header.into()), said()).await, header);
    assert_eq!(traced(None, said()).await, "");
    assert_eq!(said().await, "");
}
