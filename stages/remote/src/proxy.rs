//! A runtime's app proxy, which carries out what people ask for: reached through the platform, or directly where its address is
//! given.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stages_client::{Opened, Target, Url};

use crate::arguments::AppProxyArgs;
use crate::contexts::Contexts;
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::platform::{ANSWER, Platform, read};
use crate::show::Screen;
use crate::subscription::Subscription;
use crate::unencrypted::unencrypted;

/// The app proxy of a runtime.
pub(crate) struct Proxy {
    /// The platform, which passes on what it is asked, or the app proxy itself.
    peer: Platform,
    /// The path of the app proxy's GraphQL API there.
    path: Vec<String>,
    /// The name of the runtime.
    pub(crate) runtime: String,
}

/// Whether an address is at the host and port of a platform, and of its scheme.
fn is_at(platform: &str, url: &str) -> bool {
    let (Ok(platform), Ok(url)) = (Target::new(platform, ""), Url::parse(url)) else { return false };
    platform.told(&url).is_ok()
}

impl Proxy {
    /// The app proxy of a runtime: at the address that was typed, or through the platform of the context.
    pub(crate) async fn find(
        way: &AppProxyArgs,
        runtime: &str,
        environment: &Environment,
    ) -> Result<Self, RemoteError> {
        let all = Contexts::read(environment)?;
        let kept = all.chosen(way.place.context.as_deref(), environment)?;
        let owned = |path: &[&str]| path.iter().map(|part| (*part).to_owned()).collect();
        let (peer, path) = match &way.app_proxy {
            Some(url) => {
                let ca_file = way.app_proxy_ca_file.clone().or_else(|| kept.ca_file.clone());
                let url = url.trim_end_matches('/');
                if let Some(text) = unencrypted(url).filter(|_| !environment.completes) {
                    Screen::new(environment).note(&text);
                }
                // Whoever accepts any certificate of the platform does not accept any of another host.
                let insecure = kept.insecure && is_at(&kept.platform, url);
                let peer = Platform::at(url, kept.key.clone(), ca_file, insecure, ANSWER).await?;
                (peer, owned(&["api", "graphql"]))
            }
            None => {
                let path = owned(&["2.0", "api", "runtimes", runtime, "app-proxy", "graphql"]);
                (Platform::of(kept, ANSWER).await?, path)
            }
        };
        Ok(Self { peer, path, runtime: runtime.to_owned() })
    }

    fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Asks a query, and gives the data of the answer; `act` completes "cannot ...".
    pub(crate) async fn ask(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
    ) -> Result<Map<String, Value>, RemoteError> {
        self.peer.post(act, &self.path(), query, variables).await
    }

    /// Asks a query, and reads one field of the answer's data.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
        field: &str,
    ) -> Result<T, RemoteError> {
        read(self.ask(act, query, variables).await?.remove(field).unwrap_or_default())
    }

    /// Downloads a file, at a path below the app proxy's own address.
    pub(crate) async fn file(&self, act: &'static str, path: &[&str]) -> Result<Opened, RemoteError> {
        self.peer.file(act, path).await
    }

    /// Begins a subscription.
    pub(crate) async fn subscribe(
        &self,
        act: &'static str,
        query: &str,
        variables: Value,
    ) -> Result<Subscription, RemoteError> {
        self.peer.subscribe(act, &self.path(), query, variables).await
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;

    use super::*;
    use crate::arguments::PlatformArgs;
    use crate::contexts::Context;
    use crate::contexts::tests::{environment, kept};
    use crate::server::ok;

    /// An authority that signs certificates.
    fn authority() -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    /// An app proxy with a certificate that an authority signed: its address, and how many requests came to it.
    async fn encrypted(by: &CertifiedIssuer<'static, KeyPair>) -> (String, Arc<AtomicUsize>) {
        stages_client::install_crypto();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let chain = vec![params.signed_by(&key, by).unwrap().der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let came = Arc::new(AtomicUsize::new(0));
        let counted = came.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut request = [0; 4_096];
                if stream.read(&mut request).await.unwrap_or(0) > 0 {
                    counted.fetch_add(1, Ordering::SeqCst);
                    // Whoever asked may have gone.
                    let _ = stream.write_all(ok(&json!({"data": {"a": 1}})).as_bytes()).await;
                }
            }
        });
        (url, came)
    }

    /// What becomes of a question to an app proxy at an address: nothing where it is answered.
    async fn asked(folder: &Path, kept: Context, url: &str, ca_file: Option<PathBuf>) -> Option<String> {
        let environment = environment(folder);
        let place = PlatformArgs { context: Some(kept.name.clone()) };
        Contexts::change(&environment, |all| all.put(kept)).unwrap();
        let way = AppProxyArgs { place, app_proxy: Some(url.to_owned()), app_proxy_ca_file: ca_file };
        let proxy = Proxy::find(&way, "prod", &environment).await.unwrap();
        proxy.ask("ask", "{ a }", json!({})).await.err().map(|error| error.line())
    }

    #[tokio::test]
    async fn what_is_accepted_of_a_platform_is_accepted_of_no_other_host_nor_where_authorities_are_given() {
        let (own, other) = (authority(), authority());
        let (url, came) = encrypted(&own).await;
        let folder = tempfile::TempDir::new().unwrap();
        let file = |name: &str, of: &CertifiedIssuer<'static, KeyPair>| {
            let path = folder.path().join(name);
            std::fs::write(&path, of.pem()).unwrap();
            path
        };
        let (own, other) = (file("own.pem", &own), file("other.pem", &other));
        let elsewhere = Context { insecure: true, ..kept("elsewhere") };
        let here = Context { platform: format!("{url}/platform"), insecure: true, ..kept("here") };
        let both = Context { ca_file: Some(other.clone()), ..here.clone() };
        for (kept, ca_file) in [
            (elsewhere.clone(), Some(other.clone())),
            (elsewhere.clone(), None),
            (here.clone(), Some(other)),
            (both, None),
        ] {
            let what = format!("{}, {ca_file:?}", kept.name);
            let said = asked(folder.path(), kept, &url, ca_file).await.unwrap_or_default();
            assert!(said.contains("certificate"), "{what}: {said}");
            assert_eq!(came.load(Ordering::SeqCst), 0, "{what}");
        }
        assert_eq!(asked(folder.path(), elsewhere, &url, Some(own)).await, None, "one that is trusted");
        assert_eq!(asked(folder.path(), here, &url, None).await, None, "the platform's own host");
        assert_eq!(came.load(Ordering::SeqCst), 2);
    }

    /// What is said beside the answer while the app proxy at an address is reached.
    fn said(url: &str, completes: bool) -> String {
        let folder = tempfile::TempDir::new().unwrap();
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "proxy::tests::an_app_proxy_is_reached", "--ignored"])
            .env("XDG_CONFIG_HOME", folder.path())
            .env("APP_PROXY", url)
            .env("COMPLETES", completes.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        String::from_utf8(output.stderr).unwrap()
    }

    #[test]
    fn whoever_sends_a_key_unencrypted_to_an_app_proxy_is_told() {
        let url = "http://prod.example.com/app-proxy";
        let note = format!("gitops-runtime: {url} is not encrypted: whoever is on the way reads the key\n");
        assert_eq!(said(&format!("{url}/"), false), note);
        assert_eq!(said(url, true), "", "a shell that completes shows names alone");
        assert_eq!(said("https://prod.example.com/app-proxy", false), "");
        assert_eq!(said("http://localhost:8080", false), "");
    }

    #[tokio::test]
    #[ignore = "runs in a process of its own"]
    async fn an_app_proxy_is_reached() {
        let variable = |name: &str| std::env::var(name).ok();
        let mut environment = Environment::of(variable);
        environment.completes = variable("COMPLETES").unwrap() == "true";
        Contexts::change(&environment, |all| all.put(kept("prod"))).unwrap();
        let place = PlatformArgs { context: Some("prod".to_owned()) };
        let way = AppProxyArgs { place, app_proxy: variable("APP_PROXY"), app_proxy_ca_file: None };
        Proxy::find(&way, "prod", &environment).await.unwrap();
    }
}
