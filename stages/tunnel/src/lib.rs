//! Tunnels: how the outside reaches a runtime that nothing is exposed of.
//!
//! takes: visitors' requests at a [`Server`], whose host names a tunnel - gives: them to the service that a [`Client`] beside
//! the runtime forwards to, over a connection which the client opened - fails: with an answer to the visitor that says which
//! side is missing. The protocol that both speak is described in [`native`]; a server takes clients of the frp 0.44 family as
//! well, whose protocol is weaker. Servers behind one name tell each other of their tunnels over a [`Board`].

mod board;
mod body_progress;
mod client;
mod credentials;
mod deferred_flush;
mod dial;
mod frp;
mod head_timeout;
mod holding_body;
mod http_proxy;
mod io_errors;
mod lock;
mod metrics;
mod mux;
mod name;
pub mod native;
mod or_never;
mod peers;
mod platform;
mod proxy;
mod read_ahead;
mod registry;
mod relay;
mod server;
mod session;
mod visitors;
mod ws;

pub use board::{Board, BoardError, Posted, Watching};
pub use client::{Client, ClientConfig, ClientError, Protocol, Ready};
pub use credentials::{Anybody, Credentials, CredentialsError, CredentialsFile, LineError, Verdict};
pub use dial::{Dial, DialError};
pub use frp::Packing;
pub use http_proxy::ProxyError;
pub use name::{Name, NameError};
pub use platform::{PlatformCredentials, PlatformError};
pub use server::{Server, ServerConfig, ServerError, Times};
pub use visitors::{NetworkError, Networks};
pub use ws::{Frames, Side, WebSocket, accept_of};
