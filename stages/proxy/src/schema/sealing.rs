//! Secrets that are sealed.

use async_graphql::{InputObject, SimpleObject};

/// A Secret that is to be sealed.
#[derive(InputObject)]
pub(crate) struct SealSecretInput {
    /// A Secret of Kubernetes, as YAML or JSON.
    pub(crate) secret: String,
    /// The namespace that it is for.
    pub(crate) namespace: String,
}

/// A Secret that was sealed.
#[derive(SimpleObject)]
pub(crate) struct SealedSecretOutput {
    /// The SealedSecret, as YAML.
    pub(crate) output: String,
}

/// What Secrets are sealed with.
#[derive(SimpleObject)]
pub(crate) struct SealingCertificate {
    /// As the controller of sealed-secrets shows it.
    pub(crate) pem: String,
}
