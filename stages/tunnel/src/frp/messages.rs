//! The messages that client and server of the frp family send each other.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::packing::Packing;
use super::privilege_key;
use crate::io_errors::invalid;

/// How many bytes the JSON of a message may have.
const MAX_MESSAGE: usize = 10_240;

/// The kinds of messages: their first byte.
pub(crate) mod kind {
    pub(crate) const LOGIN: u8 = b'o';
    pub(crate) const LOGIN_ANSWER: u8 = b'1';
    pub(crate) const NEW_PROXY: u8 = b'p';
    pub(crate) const NEW_PROXY_ANSWER: u8 = b'2';
    pub(crate) const CLOSE_PROXY: u8 = b'c';
    pub(crate) const WANT_WORK: u8 = b'r';
    pub(crate) const NEW_WORK: u8 = b'w';
    pub(crate) const START_WORK: u8 = b's';
    pub(crate) const PING: u8 = b'h';
    pub(crate) const PONG: u8 = b'4';
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Login {
    pub(crate) version: String,
    pub(crate) privilege_key: String,
    pub(crate) timestamp: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) run_id: String,
    pub(crate) pool_count: i64,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct LoginAnswer {
    pub(crate) version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) run_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
}

/// Addresses, as a list or as a text with commas.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Addresses {
    Text(String),
    List(Vec<String>),
}

impl Addresses {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(list) => list.join(","),
        }
    }
}

/// Asks for a proxy. It is never printed, as a token is in it.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct NewProxy {
    pub(crate) proxy_name: String,
    pub(crate) proxy_type: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) use_encryption: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) use_compression: bool,
    pub(crate) metas: std::collections::BTreeMap<String, String>,
    pub(crate) subdomain: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) custom_domains: Vec<String>,
    pub(crate) locations: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) http_user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) http_pwd: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) host_header_rewrite: String,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub(crate) headers: std::collections::BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) route_by_http_user: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ips_allow_list: Option<Addresses>,
}

impl NewProxy {
    /// The proxy of a tunnel.
    pub(crate) fn of(name: &str, token: &str, allowed: &str, packing: Packing) -> Self {
        Self {
            proxy_name: name.to_owned(),
            proxy_type: "http".to_owned(),
            use_encryption: packing.encryption,
            use_compression: packing.compression,
            metas: std::collections::BTreeMap::from([("Authorization".to_owned(), token.to_owned())]),
            subdomain: name.to_owned(),
            locations: vec!["/".to_owned()],
            ips_allow_list: (!allowed.is_empty()).then(|| Addresses::Text(allowed.to_owned())),
            ..Self::default()
        }
    }

    /// What it asks to be done to the bytes of visitors.
    pub(crate) fn packing(&self) -> Packing {
        Packing { encryption: self.use_encryption, compression: self.use_compression }
    }
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct NewProxyAnswer {
    pub(crate) proxy_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) remote_addr: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CloseProxy {
    pub(crate) proxy_name: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct NewWork {
    pub(crate) run_id: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<Proof>,
}

/// The proof that the sender has the token of the family, which is empty here; servers may ask for it each time
/// (`authenticate_heartbeats`, `authenticate_new_work_conns`).
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Proof {
    pub(crate) privilege_key: String,
    pub(crate) timestamp: i64,
}

impl Proof {
    /// As of now.
    pub(crate) fn now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let timestamp = i64::try_from(now).unwrap_or_default();
        Self { privilege_key: privilege_key(timestamp), timestamp }
    }
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Pong {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct StartWork {
    pub(crate) proxy_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) src_addr: String,
    pub(crate) src_port: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
}

/// A message that says nothing beside its kind.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Bare {}

/// One message as it came. The stream cannot be used any more when reading one was cancelled.
pub(crate) struct Message {
    pub(crate) kind: u8,
    json: Vec<u8>,
}

impl Message {
    /// Waits for the next.
    pub(crate) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let kind = from.read_u8().await?;
        let length = usize::try_from(from.read_i64().await?).ok().filter(|length| *length <= MAX_MESSAGE);
        let mut json = vec![0; length.ok_or_else(|| invalid("a message that is longer than one may be"))?];
        from.read_exact(&mut json).await?;
        Ok(Self { kind, json })
    }

    /// Tells of each, and of what ends them. A message is read in pieces, and what of it was read is not to be lost when something
    /// else happens.
    pub(crate) async fn tell_all(mut from: impl AsyncRead + Unpin, tell: mpsc::Sender<io::Result<Self>>) {
        loop {
            let message = Self::read(&mut from).await;
            let is_last = message.is_err();
            if tell.send(message).await.is_err() || is_last {
                return;
            }
        }
    }

    /// What it says. Older clients write null for what they do not say.
    pub(crate) fn content<T: DeserializeOwned>(&self) -> io::Result<T> {
        let said = serde_json::from_slice::<Map<String, Value>>(&self.json).and_then(|mut said| {
            said.retain(|_, value| !value.is_null());
            serde_json::from_value(said.into())
        });
        said.map_err(|_| invalid("a message that does not say what its kind says"))
    }

    /// Bytes of a message.
    pub(crate) fn bytes(kind: u8, content: &impl Serialize) -> io::Result<Vec<u8>> {
        let json = serde_json::to_vec(content).map_err(io::Error::other)?;
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(json.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&json);
        Ok(bytes)
    }

    pub(crate) async fn write(
        to: &mut (impl AsyncWrite + Unpin),
        kind: u8,
        content: &impl Serialize,
    ) -> io::Result<()> {
        to.write_all(&Self::bytes(kind, content)?).await?;
        to.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_that_is_too_long_or_says_something_else_is_refused() {
        for (length, why) in [
            (MAX_MESSAGE as i64 + 1, "a message that is longer than one may be"),
            (-1, "a message that is longer than one may be"),
        ] {
            let mut bytes = vec![kind::LOGIN];
            bytes.extend_from_slice(&length.to_be_bytes());
            let error = Message::read(&mut &bytes[..]).await.map(|_| ()).unwrap_err();
            assert_eq!(error.to_string(), why);
        }
        let bytes = Message::bytes(kind::LOGIN, &"text").unwrap();
        let message = Message::read(&mut &bytes[..]).await.unwrap();
        assert_eq!(
            message.content::<Login>().unwrap_err().to_string(),
            "a message that does not say what its kind says"
        );
    }

    #[test]
    fn what_is_null_is_as_what_is_not_there() {
        let said = serde_json::json!({
            "proxy_name": "a-b", "proxy_type": "http", "use_encryption": false, "group": null, "metas": null,
            "custom_domains": null, "subdomain": "a-b", "locations": null, "headers": null, "ips_allow_list": null,
        });
        let message = Message { kind: kind::NEW_PROXY, json: said.to_string().into() };
        let proxy: NewProxy = message.content().unwrap();
        assert_eq!((proxy.subdomain.as_str(), proxy.locations.len()), ("a-b", 0));
        let message = Message { kind: kind::NEW_WORK, json: r#"{"run_id":"a","privilege_key":null}"#.into() };
        assert!(message.content::<NewWork>().unwrap().proof.is_none());
    }
}
