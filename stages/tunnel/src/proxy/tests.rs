//! Connections that end between a request and its answer.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::*;
use crate::registry::Conflict;
use crate::session::{Io, Lead, Owner, Session};

/// What is led to, one after the other: whether a request is answered, or read and given up; after them nothing is.
#[derive(Debug)]
struct Ending {
    answers: Mutex<VecDeque<bool>>,
    is_passed_on: bool,
}

#[async_trait]
impl Lead for Ending {
    async fn lead(&self, _: SocketAddr) -> Result<Box<dyn Io>, LeadError> {
        let answers = self.answers.lock().unwrap().pop_front().ok_or(LeadError::Gone)?;
        let (near, mut far) = duplex(4096);
        tokio::spawn(async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(far.read_u8().await.unwrap());
            }
            if answers {
                far.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            }
        });
        Ok(Box::new(near))
    }

    fn is_passed_on(&self) -> bool {
        self.is_passed_on
    }

    fn lose(&self, _: Conflict) {}
}

/// What comes of a request that is led to these.
async fn sent(method: Method, is_passed_on: bool, answers: &[bool]) -> &'static str {
    let registry = Arc::new(Registry::new(Duration::ZERO));
    let proxy = Proxy {
        domain: "tunnels.example.com".to_owned(),
        trusted: Networks::default(),
        times: Times::default(),
        registry,
        metrics: Metrics::new(&prometheus::Registry::new()),
        visits: TaskTracker::new(),
        close: CancellationToken::new(),
    };
    let lead = Ending { answers: Mutex::new(answers.iter().copied().collect()), is_passed_on };
    let owner = Owner { client: "client".to_owned(), generation: 1 };
    let session = Arc::new(Session::new(1, owner, Box::new(lead), Networks::default()));
    let request = Request::builder().method(method).uri("/").header("host", "a").body(empty()).unwrap();
    let visitor = "192.0.2.1:1".parse().unwrap();
    match proxy.send(session.begin(), visitor, Box::new(request), &BodyProgress::default()).await {
        Ok(_) => "answered",
        Err(SendError::Unsent(_)) => "another is tried",
        Err(SendError::Broken) => "broken",
        Err(SendError::Away(_) | SendError::Full | SendError::Late | SendError::Refused) => "else",
    }
}

#[tokio::test]
async fn a_request_that_a_server_gave_up_which_it_was_passed_on_to_is_asked_again_or_led_another_way() {
    assert_eq!(sent(Method::GET, true, &[false, true]).await, "answered");
    assert_eq!(sent(Method::GET, true, &[false]).await, "another is tried", "that server is gone");
    assert_eq!(
        sent(Method::GET, true, &[false, false]).await,
        "broken",
        "it is the service that gives it up"
    );
    assert_eq!(sent(Method::POST, true, &[false, true]).await, "broken", "nobody knows what was done of it");
    assert_eq!(sent(Method::GET, false, &[false, true]).await, "broken", "nobody is in between");
}
