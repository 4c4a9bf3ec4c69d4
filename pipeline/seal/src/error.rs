//! Why a Secret was not sealed. An error holds nothing of the Secret: neither a value nor the name of one.

/// Why a Secret was not sealed.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum SealError {
    /// The text is no certificate in PEM.
    #[error(
        "that is no certificate in PEM: give what the controller of sealed-secrets serves at /v1/cert.pem"
    )]
    NoCertificate,
    /// The key of the certificate is not one of RSA, or too long.
    #[error("the certificate's key is none of RSA with at most 4096 bits, which sealed-secrets seals with")]
    OtherKey,
    /// The certificate has ended, on the day that is given.
    #[error("the certificate has ended on {0}: fetch the controller's newest")]
    Ended(String),
    /// The Secret is neither YAML nor JSON of one object.
    #[error("the Secret cannot be read: it is neither YAML nor JSON of one object")]
    Unread,
    /// The Secret is longer than Kubernetes keeps.
    #[error("the Secret is longer than 1 MiB, which Kubernetes does not keep")]
    Long,
    /// The object is not a Secret.
    #[error("that is no Secret: its apiVersion is to be v1, its kind Secret")]
    OtherKind,
    /// The Secret has no name, or one that Kubernetes does not take.
    #[error("metadata.name is to be the name of a Secret in Kubernetes")]
    Name,
    /// There is no namespace, or one that Kubernetes does not take.
    #[error("a namespace is needed: give it in metadata.namespace, or beside the Secret")]
    Namespace,
    /// The Secret names another namespace than it is to be sealed for.
    #[error("metadata.namespace is another namespace than the Secret is to be sealed for")]
    OtherNamespace,
    /// The Secret has no values.
    #[error("the Secret has no value under data or stringData: there is nothing to seal")]
    Empty,
    /// The Secret has more values than are sealed at once.
    #[error("the Secret has more than 1000 values: make several of it")]
    Many,
    /// A value is not a text.
    #[error("a value under data or stringData is no text")]
    NoText,
    /// A value under `data` is not base64.
    #[error("a value under data is no base64: put plain texts under stringData")]
    NoBase64,
    /// The encryption, or writing down its result, failed.
    #[error("a value could not be sealed")]
    Cipher,
}
