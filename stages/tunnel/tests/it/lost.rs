//! Tunnels that a client loses to another one, which came to another server at the same moment.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use stages_tunnel::{Board, BoardError, Posted, Watching};
use tokio::sync::watch;

use crate::ears::Warnings;
use crate::spoken::{connected, logged_in, login, proxy};
use crate::world::{World, eventually};

/// A board on which another server says, once it is let, that it has a tunnel of a client that began earlier.
#[derive(Debug)]
struct Elsewhere(watch::Sender<bool>);

struct Looking {
    may_say: watch::Receiver<bool>,
    has_said: bool,
}

#[async_trait]
impl Board for Elsewhere {
    async fn put(&self, _: &str, _: Bytes, _: Duration) -> Result<(), BoardError> {
        Ok(())
    }

    async fn remove(&self, _: &str) -> Result<(), BoardError> {
        Ok(())
    }

    fn watch(&self) -> Box<dyn Watching> {
        Box::new(Looking { may_say: self.0.subscribe(), has_said: false })
    }
}

#[async_trait]
impl Watching for Looking {
    async fn next(&mut self) -> Posted {
        if self.has_said || self.may_say.wait_for(|may| *may).await.is_err() {
            return std::future::pending().await;
        }
        self.has_said = true;
        let card = json!({"address": "127.0.0.1:9", "key": "07".repeat(32), "leaving": false});
        let has = json!({"client": "another", "generation": 1, "allowed": ""});
        let all = [("server.other", card), ("tunnel.other.account2-runtime1", has)];
        Posted::All(all.map(|(key, value)| (key.to_owned(), value.to_string().into())).into())
    }
}

#[tokio::test]
async fn a_client_of_the_family_that_loses_one_of_its_tunnels_is_logged_with_the_name_of_that_one() {
    let warnings = Warnings::default();
    let _listening = warnings.listen();
    let (may_say, _) = watch::channel(false);
    let board = Arc::new(Elsewhere(may_say));
    let world = World::beside(Some(board.clone()), |_| {}).await;
    let (mut control, _) = logged_in(connected(&world).await, &login("", 0)).await;
    for (name, token) in [("account1-runtime1", "good-token"), ("account2-runtime1", "other-token")] {
        let answer = control.asks_for(&proxy(name, name, token)).await;
        assert_eq!(answer.get("error"), None, "{answer}");
    }
    board.0.send_replace(true);
    eventually("it is told", async || world.refused("taken") > 0).await;
    let line = "a client of a tunnel was refused tunnel=account2-runtime1 peer=127.0.0.1 reason=\"taken\"";
    assert!(warnings.said().contains(&line.to_owned()), "{:?}", warnings.said());
    assert_eq!(world.refused("taken"), 1);
}
