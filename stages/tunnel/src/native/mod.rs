//! The native protocol: a WebSocket of binary frames with yamux in it.
//!
//! The client upgrades at [`PATH`] with its token as `Authorization: Bearer`, and says in headers of which tunnel, which
//! client it is ([`CLIENT`]), in which life ([`GENERATION`]), and who may visit ([`ALLOW`]); one that waits beside a newer life
//! of it says for how long its question may stand ([`WAIT`]). The first stream is the client's,
//! and carries single bytes in both directions: `Note`. All others are the server's; their first byte says what for.

pub(crate) mod client;
pub(crate) mod server;

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// The path at which a client upgrades.
pub const PATH: &str = "/~tunnel/1";
/// The header that names the tunnel.
pub const TUNNEL: &str = "tunnel-name";
/// The header that tells one client of a tunnel from another.
pub const CLIENT: &str = "tunnel-client";
/// The header that orders the lives of one client: the newest has the tunnel.
pub const GENERATION: &str = "tunnel-generation";
/// The header that says which addresses may visit; without, all.
pub const ALLOW: &str = "tunnel-allow";
/// The header that says for how many milliseconds a client waits until the newer life of it that has the tunnel is gone; without,
/// it is told of that at once.
pub const WAIT: &str = "tunnel-wait";

/// The first byte of a stream that the server opens for a visitor: what follows is the visitor's.
pub(crate) const VISIT: u8 = 1;
/// The first byte of a stream on which the client answers with [`REACHED`] or [`UNREACHED`] whether the service can be reached.
pub(crate) const PROBE: u8 = 2;
/// The answer to [`PROBE`] when the service can be reached.
pub(crate) const REACHED: u8 = 1;
/// The answer to [`PROBE`] when the service cannot be reached.
pub(crate) const UNREACHED: u8 = 0;

/// What client and server tell each other over the control stream, each as one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The client is there; this is the first note of all.
    Hello = 1,
    /// Asks whether the other side is there.
    Ping = 2,
    /// Answers a ping.
    Pong = 3,
    /// The server leads visitors through from now on.
    Serving = 4,
    /// Whoever sends it is about to end, and is to get nothing new.
    Drain = 5,
    /// The server tells an older life of the client that a newer one has the tunnel.
    Superseded = 6,
    /// The server tells a client that another client has the tunnel.
    Taken = 7,
    /// The server tells a client that its token does not open the tunnel any more.
    Revoked = 8,
}

impl Note {
    pub(crate) fn of(byte: u8) -> Option<Self> {
        const ALL: [Note; 8] = [
            Note::Hello,
            Note::Ping,
            Note::Pong,
            Note::Serving,
            Note::Drain,
            Note::Superseded,
            Note::Taken,
            Note::Revoked,
        ];
        ALL.into_iter().find(|note| *note as u8 == byte)
    }

    async fn write(self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_u8(self as u8).await?;
        to.flush().await
    }
}
