//! A client of what runs on this machine.

/// Asks by no proxy, and trusts no authority but those that are added.
pub fn local_client() -> reqwest::ClientBuilder {
    // Another part of this program may have been first, with the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let none: [reqwest::Certificate; 0] = [];
    reqwest::Client::builder().tls_certs_only(none).no_proxy()
}
