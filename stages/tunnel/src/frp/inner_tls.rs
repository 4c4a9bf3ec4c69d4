//! TLS that a client of the family speaks inside of its WebSocket.
//!
//! It is served with the server's own certificate, or with one that is made for the occasion and that nobody has signed: as the
//! family's servers do, whose clients look at no certificate unless they are told to.

use std::io;
use std::sync::OnceLock;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::carrier::Carrier;

/// The byte that clients of the family send before TLS.
const FRP_MARK: u8 = 0x17;
/// The first byte of TLS itself.
const TLS_HANDSHAKE: u8 = 0x16;

/// Ends the TLS inside of a WebSocket.
#[derive(Default)]
pub(crate) struct InnerTls(OnceLock<TlsAcceptor>);

impl InnerTls {
    /// Serves TLS with the server's certificate, if it has one.
    pub(crate) fn new(acceptor: Option<TlsAcceptor>) -> Self {
        Self(acceptor.map_or_else(OnceLock::new, OnceLock::from))
    }

    fn acceptor(&self) -> io::Result<&TlsAcceptor> {
        if let Some(acceptor) = self.0.get() {
            return Ok(acceptor);
        }
        let made = unsigned()?;
        Ok(self.0.get_or_init(|| made))
    }

    /// The client's connection without the TLS that may be around it, and the first byte that the client sends.
    pub(super) async fn accept(&self, mut carrier: Carrier) -> io::Result<(u8, Carrier)> {
        let first = carrier.first().await?;
        if !matches!(first, FRP_MARK | TLS_HANDSHAKE) {
            return Ok((first, carrier));
        }
        if first == FRP_MARK {
            carrier.skip();
        }
        let mut carrier = Carrier::new(self.acceptor()?.accept(carrier).await?);
        Ok((carrier.first().await?, carrier))
    }
}

/// Serves with a certificate that nobody has signed.
fn unsigned() -> io::Result<TlsAcceptor> {
    stages_client::install_crypto();
    let made = rcgen::generate_simple_self_signed(Vec::<String>::new()).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key).map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(std::sync::Arc::new(config)))
}
