//! The console over HTTP and in a browser, over data that is made up: what is tested here is what is shown, and to whom.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod access;
mod acts;
mod added;
mod asked;
mod axe;
mod brought;
mod browser;
mod forms;
mod found;
mod hostile;
mod journey;
mod live;
mod matrix;
mod oidc;
mod oidc_accounts;
mod oidc_journey;
mod overview;
mod owned;
mod packed;
mod platform;
mod provider;
mod refused;
mod reported;
mod reports;
mod routes;
mod runtime;
mod sample;
mod served;
mod settings;
mod steps;
mod stream;
mod submit;
mod troubled;
mod views;
mod workflows;
