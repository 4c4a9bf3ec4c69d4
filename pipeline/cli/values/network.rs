//! Peers as the doctor asks them: over HTTP and TLS, by the proxies of the values or those of the environment.
//!
//! takes: questions - gives: answers, and the certificates that were shown
//! calls: each peer once per question, 10 s at most - fails: with why it was not reached; nothing of a question or of an
//! answer stands in it

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::TryStreamExt as _;
use pipeline_doctor::{Network, PeerResponse, Proxies, Request, Unreached, Way};
use reqwest::redirect::Policy;
use reqwest::{Method, NoProxy, Proxy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use stages_client::{ServerVerifier, proxy_exceptions};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::certificates::{PresentedChain, described, recording};
use crate::cli::single_thread;

/// The time one question may take.
const WITHIN: Duration = Duration::from_secs(10);
/// Bytes of the largest answer that is read.
const LARGEST: usize = 1 << 20;
/// What a proxy of the values is never asked for, as in the chart.
const DIRECT: &str = "localhost,127.0.0.1,::1,.svc,.svc.cluster.local";

/// The network.
pub(in crate::cli) struct Peers {
    runtime: Runtime,
}

impl Peers {
    pub(in crate::cli) fn new() -> anyhow::Result<Self> {
        Ok(Self { runtime: single_thread()? })
    }
}

impl Network for Peers {
    fn ask(&self, request: &Request<'_>) -> Result<PeerResponse, Unreached> {
        let shown = PresentedChain::default();
        let client = client(request, &shown)?;
        let answer = self.runtime.block_on(async { timeout(WITHIN, send(&client, request)).await });
        let shown = shown.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(Ok(answer)) => Ok(PeerResponse { certificates: shown.certificates(), ..answer }),
            Ok(Err(_)) if shown.why.is_some() => Err(Unreached::Certificate(described(&shown))),
            Ok(Err(error)) => Err(unreached(&error)),
            Err(_) => Err(Unreached::Silent),
        }
    }

    fn greeting(&self, host: &str, port: u16) -> Result<String, Unreached> {
        let line = async {
            let stream = TcpStream::connect((host, port)).await?;
            let mut line = String::new();
            BufReader::new(stream.take(LARGEST as u64)).read_line(&mut line).await?;
            Ok::<_, io::Error>(line)
        };
        match self.runtime.block_on(async { timeout(WITHIN, line).await }) {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(of_kind(&error)),
            Err(_) => Err(Unreached::Silent),
        }
    }

    fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }
}

fn other(why: &str) -> Unreached {
    Unreached::Other(why.to_owned())
}

pub(in crate::cli) fn client(
    request: &Request<'_>,
    shown: &PresentedChain,
) -> Result<reqwest::Client, Unreached> {
    let Way { authorities, insecure, proxies } = request.way;
    let roots: Vec<CertificateDer<'static>> = match authorities {
        Some(pem) => CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| other("the authorities of the values are not in PEM"))?,
        None => Vec::new(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let bad = |_| other("there are no certificates of authorities here: install ca-certificates");
    let is_https = request.url.starts_with("https://") || !proxies.https.is_empty();
    let verifier = match ServerVerifier::beside_system(roots) {
        Ok(verifier) => Some(verifier),
        Err(error) if is_https && !insecure => return Err(bad(error)),
        Err(_) => None,
    };
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("gitops-runtime/", env!("CARGO_PKG_VERSION")))
        // A token goes to the peer that it is for, and to no other.
        .redirect(if request.headers.is_empty() { Policy::limited(5) } else { Policy::none() })
        .timeout(WITHIN);
    if let Some(verifier) = verifier {
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| other("TLS cannot be spoken"))?
            .dangerous()
            .with_custom_certificate_verifier(recording(verifier, *insecure, shown))
            .with_no_client_auth();
        builder = builder.tls_backend_preconfigured(config);
    } else {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    through(builder, proxies)?.build().map_err(|_| other("an HTTP client cannot be made"))
}

fn through(
    mut builder: reqwest::ClientBuilder,
    proxies: &Proxies,
) -> Result<reqwest::ClientBuilder, Unreached> {
    let none = NoProxy::from_string(&format!("{DIRECT},{}", proxy_exceptions(&proxies.none)));
    let bad = |_| other("a proxy of the values has no address that can be used");
    if !proxies.http.is_empty() {
        builder = builder.proxy(Proxy::http(&proxies.http).map_err(bad)?.no_proxy(none.clone()));
    }
    if !proxies.https.is_empty() {
        builder = builder.proxy(Proxy::https(&proxies.https).map_err(bad)?.no_proxy(none));
    }
    Ok(builder)
}

async fn send(client: &reqwest::Client, request: &Request<'_>) -> Result<PeerResponse, reqwest::Error> {
    // Each is one of a few that the doctor knows.
    let method = Method::from_bytes(request.method.as_bytes()).unwrap_or(Method::GET);
    let mut sent = client.request(method, &request.url);
    for (name, value) in &request.headers {
        sent = sent.header(*name, value);
    }
    if let Some(body) = &request.body {
        sent = sent.json(body);
    }
    let answer = sent.send().await?;
    let status = answer.status().as_u16();
    let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: BTreeMap<String, String> =
        answer.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
    let mut body = Vec::new();
    let mut parts = answer.bytes_stream();
    while let Some(part) = parts.try_next().await? {
        if body.len() + part.len() > LARGEST {
            body.clear();
            break;
        }
        body.extend_from_slice(&part);
    }
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(PeerResponse { status, headers, body, certificates: Vec::new() })
}

/// Why a request got no answer. The error's own text may hold the address with all that stands in it.
pub(in crate::cli) fn unreached(error: &reqwest::Error) -> Unreached {
    if error.is_timeout() {
        return Unreached::Silent;
    }
    if error.is_builder() {
        return other("the address, or a token, cannot be sent");
    }
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            let error = innermost(error);
            if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                return Unreached::Other(format!("no TLS: {tls}"));
            }
            return of_kind(error);
        }
        // hyper's connectors tell these apart by their text alone.
        match cause.to_string().as_str() {
            "dns error" => return Unreached::Unresolved,
            "tunnel error" | "unsuccessful tunnel" => return other("the proxy does not lead there"),
            _ => {}
        }
        next = cause.source();
    }
    other(if error.is_redirect() { "it redirects in circles" } else { "the connection broke" })
}

/// What connectors wrap, once and again.
fn innermost(error: &io::Error) -> &io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()) {
        Some(inner) => innermost(inner),
        None => error,
    }
}

fn of_kind(error: &io::Error) -> Unreached {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Unreached::Refused,
        io::ErrorKind::TimedOut
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkDown => Unreached::Silent,
        io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
            other("the connection broke")
        }
        // What a resolver says has no kind of its own.
        _ if error.raw_os_error().is_none() => Unreached::Unresolved,
        _ => other("no connection"),
    }
}
