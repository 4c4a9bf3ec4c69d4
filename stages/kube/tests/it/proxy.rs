//! An API server that is reached through a proxy: no name of it resolves here, and nobody else connects to it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use pipeline_core::{Key, Source as _, Version};
use serde_json::json;
use stages_kube::{Cluster, Config};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::fake::{Answer, Fake, app};
use crate::harness::build;
use crate::reach::{certificate_of, refused};

/// A name that never resolves (RFC 2606).
const SERVER: &str = "https://api.invalid:6443";
const CANARY: &str = "canary-hunter2";
/// Names the kubeconfig to the process that has another environment.
const CHILD: &str = "TEST_OF_PROXY_KUBECONFIG";

/// A proxy on loopback that connects whatever it is asked for to `server`, for who knows the password.
struct Proxy {
    address: SocketAddr,
    /// What was asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = asked.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, server, heard.clone()));
            }
        });
        Self { address, asked }
    }

    /// Its address, with the password in it.
    fn url(&self) -> String {
        format!("http://me:{CANARY}%40@{}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn connect(client: TcpStream, server: SocketAddr, asked: Arc<Mutex<Vec<String>>>) {
    let mut client = BufReader::new(client);
    let (mut head, mut line) = (Vec::new(), String::new());
    while client.read_line(&mut line).await.unwrap_or(0) > 2 {
        head.push(std::mem::take(&mut line));
    }
    let authorized = head.iter().any(|line| {
        // `me:canary-hunter2@`
        line.to_lowercase().starts_with("proxy-authorization:")
            && line.trim_end().ends_with(" Basic bWU6Y2FuYXJ5LWh1bnRlcjJA")
    });
    asked.lock().unwrap().push(head.first().map(|line| line.trim_end().to_owned()).unwrap_or_default());
    let answer =
        if authorized { "HTTP/1.1 200 OK\r\n\r\n" } else { "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n" };
    let _ = client.write_all(answer.as_bytes()).await;
    if authorized {
        let mut server = TcpStream::connect(server).await.unwrap();
        // However it ends.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

/// An API server whose certificate is for the name and for loopback, and its authority.
async fn api_server() -> (Fake, tempfile::NamedTempFile) {
    let (acceptor, authority) = certificate_of(&["api.invalid", "127.0.0.1"]);
    (Fake::start_tls(acceptor, |_| Answer::Json(app("home", "a", "u1", 1))).await, authority)
}

fn kubeconfig(folder: &Path, server: &str, authority: &Path, proxy: Option<&str>) -> Config {
    let mut cluster = json!({"server": server, "certificate-authority": authority});
    if let Some(proxy) = proxy {
        cluster["proxy-url"] = proxy.into();
    }
    let other = json!({"server": server, "proxy-url": "http://127.0.0.1:1"});
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "other", "cluster": other}, {"name": "c", "cluster": cluster}],
        "users": [{"name": "me", "user": {"token": "s3same"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "me"}}],
    });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, text.to_string()).unwrap();
    of_file(&path)
}

fn of_file(path: &Path) -> Config {
    Config {
        cluster: Cluster::Kubeconfig { path: Some(path.to_owned()), context: None },
        ..crate::harness::usual()
    }
}

async fn read(config: Config) -> Result<(), String> {
    let (watch, _, _) = build(config).await;
    let read = watch.read(&Key::new("home", "a").unwrap(), Version(1)).await;
    match read {
        Ok(event) => event.map(|_| ()).ok_or_else(|| "nothing".to_owned()),
        Err(error) => {
            let shown = format!("{error:?}");
            assert!(!shown.contains(CANARY), "{shown}");
            Err(error.to_string())
        }
    }
}

#[tokio::test]
async fn the_proxy_that_a_kubeconfig_names_is_used() {
    let (fake, authority) = api_server().await;
    let proxy = Proxy::start(fake.address).await;
    let folder = tempfile::tempdir().unwrap();
    let through = |proxy: &str| kubeconfig(folder.path(), SERVER, authority.path(), Some(proxy));
    assert_eq!(read(through(&proxy.url())).await, Ok(()));
    assert_eq!(proxy.asked(), ["CONNECT api.invalid:6443 HTTP/1.1"]);

    let wrong = format!("http://me:{CANARY}-too@{}", proxy.address);
    let failed = Err("get widget: the connection failed".to_owned());
    assert_eq!(read(through(&wrong)).await, failed);
    assert_eq!((proxy.asked().len(), fake.asked("get").len()), (2, 1));
}

/// A SOCKS5 proxy that leads to `peer`, whoever is asked for; gives its address, and whom the first connection asked for.
async fn socks5(peer: std::net::SocketAddr) -> (std::net::SocketAddr, tokio::task::JoinHandle<Vec<u8>>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 2];
        stream.read_exact(&mut greeting).await.unwrap();
        stream.read_exact(&mut vec![0; greeting[1].into()]).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut head = [0; 5];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head[..4], [5, 1, 0, 3], "a name to connect to");
        let mut name = vec![0; head[4].into()];
        stream.read_exact(&mut name).await.unwrap();
        stream.read_exact(&mut [0; 2]).await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut peer = tokio::net::TcpStream::connect(peer).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut stream, &mut peer).await });
        name
    });
    (address, asked)
}

#[tokio::test]
async fn a_socks_proxy_that_a_kubeconfig_names_is_used() {
    let (fake, authority) = api_server().await;
    let (address, asked) = socks5(fake.address).await;
    let folder = tempfile::tempdir().unwrap();
    let proxy = format!("socks5://{address}");
    assert_eq!(read(kubeconfig(folder.path(), SERVER, authority.path(), Some(&proxy))).await, Ok(()));
    assert_eq!(asked.await.unwrap(), b"api.invalid");
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_is_refused_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let authority = certificate_of(&["api.invalid"]).1;
    for proxy in [
        format!("socks4://me:{CANARY}@127.0.0.1:1080"),
        format!("socks5://me:{CANARY}@127.0.0.1:1080"),
        format!("ftp://me:{CANARY}@127.0.0.1"),
        format!("quic+{CANARY}://127.0.0.1"),
    ] {
        let config = kubeconfig(folder.path(), SERVER, authority.path(), Some(&proxy));
        let shown = refused(config).await;
        assert_eq!(
            shown,
            "proxy of the api server is not `http(s)://host:port`, or `socks5://host:port` without a user",
            "{proxy}"
        );
    }
}

#[tokio::test]
async fn a_password_in_the_servers_address_is_neither_used_nor_told() {
    let (fake, authority) = api_server().await;
    let folder = tempfile::tempdir().unwrap();
    let server = format!("https://me:{CANARY}@{}/below", fake.address);
    let config = kubeconfig(folder.path(), &server, authority.path(), None);
    assert_eq!(config.server().await.unwrap(), format!("https://{}/below", fake.address));
    assert_eq!(read(config).await, Ok(()));
}

/// The environment of a process cannot be changed from within, so this test runs itself again.
#[tokio::test]
async fn the_proxy_of_the_environment_is_used_but_for_what_it_excepts() {
    if let Some(path) = std::env::var_os(CHILD) {
        let read = read(of_file(Path::new(&path))).await;
        assert_eq!(read, Ok(()));
        return;
    }
    let (fake, authority) = api_server().await;
    let folder = tempfile::tempdir().unwrap();
    let loopback = format!("https://{}", fake.address);
    for (server, variables, through, reached) in [
        (SERVER, vec![], 0, false),
        (SERVER, vec!["HTTPS_PROXY"], 1, true),
        (SERVER, vec!["https_proxy"], 1, true),
        (SERVER, vec!["HTTPS_PROXY", "NO_PROXY=10.0.0.0/8,.other.invalid,127.0.0.1"], 1, true),
        (SERVER, vec!["HTTPS_PROXY", "NO_PROXY=10.0.0.0/8, .invalid"], 0, false),
        (SERVER, vec!["HTTPS_PROXY", "no_proxy=api.invalid"], 0, false),
        (SERVER, vec!["HTTPS_PROXY", "NO_PROXY=*"], 0, false),
        (SERVER, vec!["HTTP_PROXY"], 0, false),
        (loopback.as_str(), vec!["HTTPS_PROXY"], 0, true),
    ] {
        let proxy = Proxy::start(fake.address).await;
        drop(kubeconfig(folder.path(), server, authority.path(), None));
        let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "proxy::the_proxy_of_the_environment_is_used_but_for_what_it_excepts"])
            .env(CHILD, folder.path().join("kubeconfig"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for name in [
            "HTTPS_PROXY",
            "https_proxy",
            "HTTP_PROXY",
            "http_proxy",
            "ALL_PROXY",
            "all_proxy",
            "NO_PROXY",
            "no_proxy",
        ] {
            child.env_remove(name);
        }
        for variable in &variables {
            match variable.split_once('=') {
                Some((name, value)) => child.env(name, value),
                None => child.env(variable, proxy.url()),
            };
        }
        let ended = child.output().await.unwrap();
        let said =
            String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
        assert_eq!(
            (ended.status.success(), proxy.asked().len()),
            (reached, through),
            "{server} {variables:?}\n{said}"
        );
        assert!(!said.contains(CANARY), "{said}");
    }
}
