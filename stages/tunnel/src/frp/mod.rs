//! The protocol of the frp 0.44 family, so that clients which are there already need no change. It is weaker than our own: the
//! token of a tunnel is sent in the clear inside of what TLS protects, what is called encryption has a key that everybody
//! knows, nothing is probed through the tunnel, and a drained client is not told so.
//!
//! A client connects, upgrades at [`PATH`] to a WebSocket whose text frames carry any bytes, and speaks yamux inside. Its first
//! stream is for control: messages, each a byte for its kind, its length, and JSON; after the login they are encrypted. Every
//! further stream is a work connection, opened when the server asks for one, and given to one visitor. A client that is told to
//! have no multiplexer (`tcp_mux`) opens a connection instead of each stream; one that is told to have TLS (`tls_enable`) speaks
//! it inside of the WebSocket.

mod carrier;
mod cipher;
pub(crate) mod client;
mod inner_tls;
mod liveness;
mod messages;
mod packing;
mod proxies;
mod requested_tunnel;
mod served_client;
pub(crate) mod server;
mod server_profile;
mod snappy;
mod visits;
mod work_connections;

use std::time::Duration;

use md5::{Digest as _, Md5};

pub(crate) use self::inner_tls::InnerTls;
pub use self::packing::Packing;
pub(crate) use self::proxies::ProxyNames;
pub(crate) use self::server_profile::ServerProfile;
pub(crate) use self::work_connections::ClientsWithoutMux;

/// The path at which clients upgrade.
pub(crate) const PATH: &str = "/~!frp";

/// How long the other side may be silent before it is taken to be gone: clients ping every thirty seconds. One whose multiplexer
/// answers pings is known to be gone earlier.
const SILENCE: Duration = Duration::from_secs(90);

/// The version of frp that is spoken.
const VERSION: &str = "0.44.0";

/// The proof in a login that client and server have the same token, which is empty.
fn privilege_key(timestamp: i64) -> String {
    hex::encode(Md5::digest(timestamp.to_string().as_bytes()))
}
