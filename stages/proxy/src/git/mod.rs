//! Git integrations, and the Git tokens that people register with them.
//!
//! takes: an integration, a person, their token - gives: integrations and who is registered - calls: the provider, which says what
//! a token may; the API server, which keeps it sealed - fails: a token that is not known, or may too little, is never kept

mod integration;
mod integrations;
mod kept;
mod provider;
mod seal;

pub(crate) use self::integration::{Integration, SharingPolicy};
pub(crate) use self::integrations::{Integrations, Listed};
pub(crate) use self::kept::Kept;
pub(crate) use self::provider::Provider;
