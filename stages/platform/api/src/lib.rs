//! The API of the platform: GraphQL at `/2.0/api/graphql`, and the REST calls that a runtime makes when it is installed.
//!
//! takes: a request with an API key, a runtime's token or a session - gives: what whoever asks may see, also as it changes, and
//! changes what they may
//! calls: the store, and runtimes in the name of whoever asks - fails: 401 for who is not known, 413 for a body that is too long, 503 while the store does not answer;
//! whatever else is wrong stands under `errors` of an answer 200, as clients of this API expect it

mod addresses;
mod api;
mod authorize;
mod caller;
mod forward;
mod rest;
mod schema;
mod shares;
mod stored;

pub use api::{Api, table};
pub use forward::ForwardConfig;
pub use schema::sdl;
