//! Repositories elsewhere, of real servers: `git http-backend` behind HTTP and HTTPS, `git upload-pack` behind SSH.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod branch;
mod broken;
mod cache;
mod commit;
mod github_app;
mod hosted;
mod hostile;
mod http;
mod openssh;
mod series;
mod ssh;
mod support;
mod tenants;
