//! Seals Secrets of Kubernetes as the controller of [sealed-secrets](https://github.com/bitnami-labs/sealed-secrets) opens them,
//! so that they may stand in Git.
//!
//! takes: a Secret as YAML or JSON, and the controller's certificate - gives: a SealedSecret as YAML - calls: nothing
//! fails: with [`SealError`], in which nothing of the Secret stands
//!
//! Each value has a session key of its own, which RSA-OAEP-SHA-256 encrypts under a label that says where it may be opened; the
//! value itself is sealed by AES-256-GCM with that key. No private key is ever needed.

mod certificate;
mod error;
mod secret;
mod value;

pub use certificate::Certificate;
pub use error::SealError;
pub use secret::{Scope, seal};
