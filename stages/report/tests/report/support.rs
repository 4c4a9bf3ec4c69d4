//! Shipments, servers on loopback that end with the test, and a meter that remembers.

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use flate2::read::GzDecoder;
use pipeline_core::{
    Digest, EntityId, Key, Meter, NoMeter, Report, ReportKind, Sample, Shipment, Sink as _, StageError,
    Version,
};
use stages_client::Token;
use stages_report::platform::{Batch, Config, Platform};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// A report of `body` on its way out.
pub(crate) fn shipment(body: &str, counter: u32) -> Shipment {
    let (key, kind) = (Key::new("argocd", "store").unwrap(), ReportKind::of_object("app"));
    let content = Digest::of(body.as_bytes());
    let report = Report {
        body: Bytes::copy_from_slice(body.as_bytes()),
        trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
        ..Report::new(key, "uid-1".into(), Version(7), EntityId::OBJECT, kind, content)
    };
    Shipment::new(report, "ledger", "platform", counter.into())
}

/// Serves `router`; gives its base address.
pub(crate) async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

/// The sink for `address`, as it usually is.
pub(crate) fn config(address: &str, token: &str) -> Config {
    Config {
        address: address.to_owned(),
        path: "/2.0/api/events".to_owned(),
        token: Token::literal(token),
        http: stages_client::Config::new(Duration::from_secs(30), 64 << 20),
        gzip_level: 4,
        concurrency: 16,
        batch: None,
    }
}

/// Batches as they usually are.
pub(crate) fn batch(path: &str) -> Batch {
    Batch { path: path.to_owned(), reports: 100, bytes: 1 << 20, linger: Duration::from_millis(2) }
}

/// The sink for `address`, changed by `change`.
pub(crate) async fn platform(address: &str, change: impl FnOnce(&mut Config)) -> Platform {
    let mut config = config(address, "token-of-the-runtime");
    change(&mut config);
    config.build(Arc::new(NoMeter)).await.unwrap()
}

/// Ships one report.
pub(crate) async fn ship(sink: &Platform) -> Result<(), StageError> {
    let mut answers = sink.ship(&[shipment("{}", 0)]).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

/// Requests as they came.
pub(crate) type Requests = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// What a gzipped body holds.
pub(crate) fn unzipped(body: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(body).read_to_string(&mut text).unwrap();
    text
}

/// Host and port of a base address.
pub(crate) fn host(address: &str) -> &str {
    address.split_once("://").unwrap().1
}

/// Tells when it is dropped, as whatever holds it ends.
pub(crate) struct TellsEnd(pub(crate) Arc<Notify>);

impl Drop for TellsEnd {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Remembers samples.
#[derive(Default)]
pub(crate) struct Remembering(pub(crate) Mutex<Vec<Sample>>);

impl Meter for Remembering {
    fn record(&self, sample: Sample) {
        self.0.lock().unwrap().push(sample);
    }
}
