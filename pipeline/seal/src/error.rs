//! Why a Secret was not sealed. Nothing of it stands here: not a value, and not a key either.

/// Why a Secret was not sealed.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum SealError {
    /// No certificate.
    #[error(
        "that is no certificate in PEM: give what the controller of sealed-secrets serves at /v1/cert.pem"
    )]
    NoCertificate,
    /// A certificate of a key that is none of RSA.
    #[error("the certificate's key is none of RSA with at most 4096 bits, which sealed-secrets seals with")]
    OtherKey,
    /// A certificate that does not hold any more.
    #[error("the certificate has ended on {0}: fetch the controller's newest")]
    Ended(String),
    /// No YAML.
    #[error("the Secret cannot be read: it is neither YAML nor JSON of one object")]
    Unread,
    /// Too much.
    #[error("the Secret is longer than 1 MiB, which Kubernetes does not keep")]
    Long,
    /// Another object.
    #[error("that is no Secret: its apiVersion is to be v1, its kind Secret")]
    OtherKind,
    /// No name, or one that cannot be.
    #[error("metadata.name is to be the name of a Secret in Kubernetes")]
    Name,
    /// No namespace, or one that cannot be.
    #[error("a namespace is needed: give it in metadata.namespace, or beside the Secret")]
    Namespace,
    /// Two namespaces.
    #[error("metadata.namespace is another namespace than the Secret is to be sealed for")]
    OtherNamespace,
    /// Nothing to seal.
    #[error("the Secret has no value under data or stringData: there is nothing to seal")]
    Empty,
    /// Too much to seal.
    #[error("the Secret has more than 1000 values: make several of it")]
    Many,
    /// A value that is no text.
    #[error("a value under data or stringData is no text")]
    NoText,
    /// A value that is no base64.
    #[error("a value under data is no base64: put plain texts under stringData")]
    NoBase64,
    /// The cipher failed.
    #[error("a value could not be sealed")]
    Cipher,
}
