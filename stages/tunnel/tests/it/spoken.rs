//! Both sides of the frp family as they speak where they have no multiplexer: what is said stands in their WebSocket as it is.

use std::sync::Arc;

use aes::Aes128;
use cfb_mode::cipher::KeyIvInit as _;
use cfb_mode::{BufDecryptor, BufEncryptor};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use serde_json::{Value, json};
use stages_tunnel::{Frames, Side, WebSocket, accept_of};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::recorded::{KEY, message};
use crate::world::{BOUND, World, read_to};

pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// A client's connection to a server, upgraded.
pub(crate) async fn connected(world: &World) -> Box<dyn Io> {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = "GET /~!frp HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nOrigin: http://a:80\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let head = head_of(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    Box::new(WebSocket::new(stream, Side::Client, Frames::Text))
}

async fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// The same with TLS inside, with the mark of the family before it or without; and the certificate that it is served with.
pub(crate) async fn with_tls(world: &World, is_marked: bool) -> (Box<dyn Io>, Vec<u8>) {
    let mut io = connected(world).await;
    if is_marked {
        io.write_all(&[0x17]).await.unwrap();
    }
    let config = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Whatever))
        .with_no_client_auth();
    let name = ServerName::try_from("tunnels.example.com").unwrap();
    let connecting = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, io);
    let io = tokio::time::timeout(BOUND, connecting).await.unwrap().unwrap();
    let certificate = io.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    (Box::new(io), certificate)
}

/// Takes any certificate, as a client of the family does that was told of no authority.
#[derive(Debug)]
struct Whatever;

impl ServerCertVerifier for Whatever {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::RSA_PSS_SHA256]
    }
}

/// A client's connection as a server takes it: upgraded.
pub(crate) async fn taken(listener: &TcpListener) -> Box<dyn Io> {
    let (mut stream, _) = tokio::time::timeout(BOUND, listener.accept()).await.unwrap().unwrap();
    let head = read_to(&mut stream, "\r\n\r\n").await;
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    let (_, key) = headers.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key")).unwrap();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        accept_of(key)
    );
    stream.write_all(answer.as_bytes()).await.unwrap();
    Box::new(WebSocket::new(stream, Side::Server, Frames::Text))
}

pub(crate) async fn say(io: &mut (impl AsyncWrite + Unpin), kind: char, content: &Value) {
    io.write_all(&message(kind, content)).await.unwrap();
    io.flush().await.unwrap();
}

/// The next message; `None` at the end.
pub(crate) async fn heard(io: &mut (impl AsyncRead + Unpin)) -> Option<(char, Value)> {
    let kind = tokio::time::timeout(BOUND, io.read_u8()).await.unwrap().ok()?;
    let mut json = vec![0; usize::try_from(io.read_u64().await.unwrap()).unwrap()];
    io.read_exact(&mut json).await.unwrap();
    Some((char::from(kind), serde_json::from_slice(&json).unwrap()))
}

/// What a login says beside its run id: that of a token which is empty.
pub(crate) fn login(run_id: &str, pool: u64) -> Value {
    json!({"version": "0.44.0", "os": "linux", "arch": "amd64", "run_id": run_id, "pool_count": pool,
        "privilege_key": "51571184e1a6a1fd304941e28480194d", "timestamp": 1_795_421_065})
}

/// A control connection after the login.
pub(crate) struct Control {
    io: Box<dyn Io>,
    reading: Option<BufDecryptor<Aes128>>,
    writing: Option<BufEncryptor<Aes128>>,
}

impl Control {
    pub(crate) fn new(io: Box<dyn Io>) -> Self {
        Self { io, reading: None, writing: None }
    }

    pub(crate) async fn say(&mut self, kind: char, content: &Value) {
        let mut bytes = message(kind, content);
        let writing = match &mut self.writing {
            Some(writing) => writing,
            None => {
                self.io.write_all(&[7; 16]).await.unwrap();
                self.writing.insert(BufEncryptor::new(&KEY.into(), &[7; 16].into()))
            }
        };
        writing.encrypt(&mut bytes);
        self.io.write_all(&bytes).await.unwrap();
        self.io.flush().await.unwrap();
    }

    async fn read(&mut self, bytes: &mut [u8]) -> Option<()> {
        let read = tokio::time::timeout(BOUND, self.io.read_exact(bytes));
        read.await.expect("something is said").ok()?;
        self.reading.as_mut().unwrap().decrypt(bytes);
        Some(())
    }

    /// The next message; `None` at the end.
    pub(crate) async fn heard(&mut self) -> Option<(char, Value)> {
        if self.reading.is_none() {
            let mut first = [0; 16];
            let read = tokio::time::timeout(BOUND, self.io.read_exact(&mut first));
            read.await.expect("something is said").ok()?;
            self.reading = Some(BufDecryptor::new(&KEY.into(), &first.into()));
        }
        let mut head = [0; 9];
        self.read(&mut head).await?;
        let mut json = vec![0; usize::from(u16::from_be_bytes([head[7], head[8]]))];
        self.read(&mut json).await?;
        Some((char::from(head[0]), serde_json::from_slice(&json).unwrap()))
    }

    /// The next message of this kind; what else is said meanwhile is passed over.
    pub(crate) async fn heard_of(&mut self, kind: char) -> Value {
        loop {
            let (other, content) = self.heard().await.expect("it goes on");
            if other == kind {
                return content;
            }
        }
    }

    /// Asks for a proxy, and gives the answer.
    pub(crate) async fn asks_for(&mut self, proxy: &Value) -> Value {
        self.say('p', proxy).await;
        self.heard_of('2').await
    }
}

/// A proxy of HTTP for a tunnel.
pub(crate) fn proxy(called: &str, subdomain: &str, token: &str) -> Value {
    json!({"proxy_name": called, "proxy_type": "http", "subdomain": subdomain, "locations": ["/"],
        "metas": {"Authorization": token}})
}

/// Logs in over a connection, and gives what is said from then on, and the run id.
pub(crate) async fn logged_in(mut io: Box<dyn Io>, login: &Value) -> (Control, String) {
    say(&mut io, 'o', login).await;
    let (kind, answer) = heard(&mut io).await.unwrap();
    assert!(kind == '1' && answer.get("error").is_none(), "{kind} {answer}");
    (Control::new(io), answer["run_id"].as_str().unwrap().to_owned())
}

/// A work connection that is offered over a connection of its own.
pub(crate) async fn offered(mut io: Box<dyn Io>, run_id: &str) -> Box<dyn Io> {
    say(&mut io, 'w', &json!({"run_id": run_id})).await;
    io
}

/// Reads the head of a visitor's request.
pub(crate) async fn request(io: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tokio::time::timeout(BOUND, io.read_u8()).await.unwrap().unwrap());
    }
    String::from_utf8(head).unwrap()
}
