//! A server with a certificate of its own.

use std::path::Path;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair};
use stages_client::CertificateFiles;
use stages_tunnel::Dial;

use crate::ears::Warnings;
use crate::service::Service;
use crate::world::{DOMAIN, World, eventually, run};

/// Files of a certificate for this machine and its key.
fn files(folder: &Path) -> CertificateFiles {
    CertificateFiles { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") }
}

/// Writes a new one, and gives it.
fn written(to: &CertificateFiles) -> CertifiedKey<KeyPair> {
    written_as(to, IsCa::NoCa)
}

/// As `written`; it may be that of an authority as well.
fn written_as(to: &CertificateFiles, is_ca: IsCa) -> CertifiedKey<KeyPair> {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = is_ca;
    let signing_key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&signing_key).unwrap();
    std::fs::write(&to.certificate, cert.pem()).unwrap();
    std::fs::write(&to.key, signing_key.serialize_pem()).unwrap();
    CertifiedKey { cert, signing_key }
}

/// A visitor who trusts this certificate alone, and connects anew each time.
fn visitor(trusted: &CertifiedKey<KeyPair>) -> reqwest::Client {
    let trusted = reqwest::Certificate::from_pem(trusted.cert.pem().as_bytes()).unwrap();
    let visitor = reqwest::Client::builder().tls_certs_only([trusted]).no_proxy();
    visitor.pool_max_idle_per_host(0).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_tls_of_its_own_a_client_that_trusts_the_certificate_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let tls = files(folder.path());
    let (signed, certificate) = (written(&tls), tls.certificate.clone());
    let (world, service) = (World::with(|config| config.tls = Some(tls)).await, Service::default());
    let mut config = world.client_config(service.start().await);
    let url = format!("https://{}", world.address).parse().unwrap();
    config.dial = Dial::new(&url, Some(&certificate), Duration::from_secs(30)).unwrap();
    let client = run(config.build(&prometheus::Registry::new()).unwrap());
    client.is_ready().await;
    let visit = visitor(&signed).get(format!("https://{}/headers", world.address));
    let answer = visit.header("host", format!("account1-runtime1.{DOMAIN}")).send().await.unwrap();
    let text = answer.text().await.unwrap();
    assert!(text.contains("x-forwarded-proto: https\n"), "{text}");
    client.stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_trusts_a_server_whose_own_certificate_was_given_as_its_authority() {
    let folder = tempfile::tempdir().unwrap();
    let tls = files(folder.path());
    // As OpenSSL makes one unless it is told otherwise.
    written_as(&tls, IsCa::Ca(BasicConstraints::Unconstrained));
    let certificate = tls.certificate.clone();
    let (world, service) = (World::with(|config| config.tls = Some(tls)).await, Service::default());
    let mut config = world.client_config(service.start().await);
    let url = format!("https://{}", world.address).parse().unwrap();
    config.dial = Dial::new(&url, Some(&certificate), Duration::from_secs(30)).unwrap();
    let client = run(config.build(&prometheus::Registry::new()).unwrap());
    client.is_ready().await;
    client.stopped().await;
}

#[tokio::test]
async fn a_certificate_that_was_renewed_is_served_without_a_restart_and_what_is_none_changes_nothing() {
    let warnings = Warnings::default();
    let _listening = warnings.listen();
    let folder = tempfile::tempdir().unwrap();
    let tls = files(folder.path());
    let (first, of_server) = (written(&tls), tls.clone());
    let world = World::with(|config| {
        config.tls = Some(of_server);
        config.times.renew = Duration::from_millis(20);
    });
    let world = world.await;
    let url = format!("https://{}/", world.address);
    let visits = async |visitor: &reqwest::Client| visitor.get(&url).send().await.is_ok();
    assert!(visits(&visitor(&first)).await);
    let new = visitor(&written(&tls));
    eventually("the new one is served", async || visits(&new).await).await;
    assert!(!visits(&visitor(&first)).await, "the former one is not served any more");
    // A key of another certificate, as when one of two files was written; and a file without any.
    let key = std::fs::read(&tls.key).unwrap();
    for (file, text) in
        [(&tls.key, KeyPair::generate().unwrap().serialize_pem()), (&tls.certificate, String::new())]
    {
        let refused = || {
            warnings.said().iter().filter(|line| line.starts_with("the certificate cannot be read")).count()
        };
        let before = refused();
        std::fs::write(file, text).unwrap();
        eventually("it is refused", async || refused() > before + 1).await;
        assert!(visits(&new).await);
        std::fs::write(&tls.key, &key).unwrap();
    }
}
