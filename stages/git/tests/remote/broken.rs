//! Servers that hang, send garbage, or send too much; a cache that is full.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use stages_git::remote::Checkouts;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::support::{Cache, Forge, Serving, address, backend, commit, config, noise, serve};

fn line(text: &str) -> Vec<u8> {
    format!("{:04x}{text}\n", text.len() + 5).into_bytes()
}

fn band(content: &[u8]) -> Vec<u8> {
    let mut packet = format!("{:04x}\x01", content.len() + 5).into_bytes();
    packet.extend(content);
    packet
}

const COMMIT: &str = "1234567890123456789012345678901234567890";

/// A server of the first version of the protocol that has a branch `main`, and answers what is asked of it with these bytes.
async fn answering(answer: Vec<u8>) -> String {
    let greeting = [
        line("# service=git-upload-pack"),
        b"0000".to_vec(),
        line(&format!("{COMMIT} HEAD\0side-band-64k ofs-delta")),
        line(&format!("{COMMIT} refs/heads/main")),
        b"0000".to_vec(),
    ]
    .concat();
    let app = axum::Router::new()
        .route(
            "/a/info/refs",
            axum::routing::get(async move || typed("application/x-git-upload-pack-advertisement", greeting)),
        )
        .route(
            "/a/git-upload-pack",
            axum::routing::post(async move || typed("application/x-git-upload-pack-result", answer)),
        );
    serve(app).await
}

/// Reads a request without a body.
async fn read_head(stream: &mut tokio::net::TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.is_ok_and(|read| read > 0) {}
}

fn typed(kind: &'static str, body: Vec<u8>) -> Response {
    Response::builder().header(CONTENT_TYPE, kind).body(Body::from(body)).unwrap()
}

/// Files that a fetch left beside what is whole.
fn rests(cache: &Cache) -> Vec<String> {
    let found = std::process::Command::new("find")
        .arg(cache.folder.path())
        .args([
            "-path",
            "*objects/pack/*",
            "-type",
            "f",
            "-not",
            "-name",
            "pack-*.pack",
            "-not",
            "-name",
            "pack-*.idx",
        ])
        .output()
        .unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The thread that wrote ends a moment after who waited for it.
async fn nothing_is_left(cache: &Cache) {
    let until = std::time::Instant::now() + Duration::from_secs(120);
    while !rests(cache).is_empty() {
        assert!(std::time::Instant::now() < until, "{:?}", rests(cache));
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_in_place_of_a_pack_is_named_and_leaves_nothing() {
    let empty =
        b"PACK\0\0\0\x02\0\0\0\0\x02\x9d\x08\x82;\xd8\xa8\xea\xb5\x10\xadj\xc7\\\x82<\xfd>\xd3\x1e".to_vec();
    let bomb = b"PACK\0\0\0\x02\0\0\0\x01\xb0\x80\x80\x80\x40".to_vec();
    for (answer, wanted) in [
        (b"<html>".to_vec(), "HOST does not answer as a Git server does: a packet has no length"),
        (
            Vec::new(),
            "HOST does not answer as a Git server does: the connection ends in the middle of an answer",
        ),
        (
            [line("NAK"), band(b"PACK\0\0")].concat(),
            "HOST does not answer as a Git server does: the connection ends in the middle of an answer",
        ),
        (
            [line("NAK"), band(b"PACK\0\0"), b"0000".to_vec()].concat(),
            "what URL sent is damaged: it ends before its end",
        ),
        (
            [line("NAK"), band(b"garbage, and more of it"), b"0000".to_vec()].concat(),
            "what URL sent is damaged: it is no pack of version 2",
        ),
        (
            [line("NAK"), band(&bomb), b"0000".to_vec()].concat(),
            "URL holds an object of 2147483648 bytes, and no more than 104857600 are taken: raise the setting repositories.objectSize if there is memory for it",
        ),
        (
            [line("NAK"), band(&empty), b"0000".to_vec()].concat(),
            "URL did not send the commit 1234567890123456789012345678901234567890",
        ),
        (line("ERR upload-pack: not now"), "HOST refused: upload-pack: not now"),
        ([line("NAK"), b"0013\x03no more\x1b[31m\nx".to_vec()].concat(), "HOST refused: no more[31m"),
        (line("what is this"), "HOST does not answer as a Git server does: a part of its pack is of no band"),
    ] {
        let server = answering(answer).await;
        let url = format!("{server}/a");
        let cache = Cache::new(|_| {}).await;
        let host = server.trim_start_matches("http://");
        let wanted = wanted.replace("HOST", host).replace("URL", &url);
        assert_eq!(cache.refusal(&url, "main").await, wanted);
        nothing_is_left(&cache).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pack_that_lacks_what_its_commit_refers_to_is_refused() {
    // A commit alone, without its tree.
    let content = format!("tree {COMMIT}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content.as_bytes()).unwrap();
    let size = content.len();
    let head = [u8::try_from(0x90 | (size & 15)).unwrap(), u8::try_from(size >> 4).unwrap()];
    let mut pack = [b"PACK\0\0\0\x02\0\0\0\x01".to_vec(), head.to_vec(), encoder.finish().unwrap()].concat();
    let sum = {
        use sha1::Digest as _;
        sha1::Sha1::digest(&pack)
    };
    pack.extend(sum);
    let server = answering([line("NAK"), band(&pack), b"0000".to_vec()].concat()).await;
    let cache = Cache::new(|_| {}).await;
    let refusal = cache.refusal(&format!("{server}/a"), "main").await;
    assert_eq!(
        refusal,
        format!("{server}/a did not send the commit 1234567890123456789012345678901234567890")
    );
    nothing_is_left(&cache).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_left_and_others_go_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let (held, _rest) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_head(&mut stream).await;
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-advertisement\r\ncontent-length: 9999\r\n\r\n001e";
            let _ = stream.write_all(head).await;
            // Never closed.
            let _ = held.send(stream);
        }
    });
    let forge = Forge::new();
    let path = forge.repository("a");
    let well = Serving::new(&forge).http().await;
    let cache = Cache::new(|config| config.idle = Duration::from_secs(600)).await;
    let url = format!("http://{host}/a");
    let hanging = tokio::spawn({
        let (checkouts, url) = (cache.checkouts.clone(), url.clone());
        async move { checkouts.checkout(&address(&url), "main").await.err().map(|error| error.to_string()) }
    });
    let new = commit(&path, "main", "a.yaml", "a: 2\n");
    let found = cache.checkout(&format!("{well}/a.git"), "main").await.unwrap();
    assert_eq!(found.commit.to_string(), new);
    assert!(!hanging.is_finished(), "the other one does not wait for it");
    hanging.abort();
    let impatient = Cache::new(|config| config.idle = Duration::from_secs(1)).await;
    let wanted = format!("{host} sent nothing for 1 s: it hangs, or the network between does");
    assert_eq!(impatient.refusal(&url, "main").await, wanted);
}

/// Answers as a server does, but sends the second half of each pack only once it is told to.
async fn in_halves(
    State((serving, half, rest)): State<(Serving, Arc<Notify>, Arc<Notify>)>,
    request: Request,
) -> Response {
    let is_pack = request.method() == axum::http::Method::POST;
    let (parts, body) = backend(State(serving), request).await.into_parts();
    let whole = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    if !is_pack || whole.len() < 100_000 {
        return Response::from_parts(parts, Body::from(whole));
    }
    let (first, second) = (whole.slice(..whole.len() / 2), whole.slice(whole.len() / 2..));
    let first = futures::stream::iter([Ok::<_, std::io::Error>(first)]);
    let second = futures::stream::once(async move {
        half.notify_one();
        rest.notified().await;
        Ok(second)
    });
    Response::from_parts(parts, Body::from_stream(futures::StreamExt::chain(first, second)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_in_the_middle_of_a_pack_gives_its_turn_to_others_and_goes_on_later() {
    let forge = Forge::new();
    let (large, _) = (forge.repository("large"), forge.repository("small"));
    let new = commit(&large, "main", "big.txt", &noise(1_000_000));
    let (half, rest) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let state = (Serving::new(&forge), half.clone(), rest.clone());
    let slow = serve(axum::Router::new().fallback(in_halves).with_state(state)).await;
    let well = Serving::new(&forge).http().await;
    let cache = Cache::new(|config| config.concurrent = 1).await;
    let url = format!("{slow}/large.git");
    let waits = tokio::spawn({
        let checkouts = cache.checkouts.clone();
        async move { checkouts.checkout(&address(&url), "main").await.map(|found| found.commit) }
    });
    half.notified().await;
    cache.checkout(&format!("{well}/small.git"), "main").await.unwrap();
    assert!(!waits.is_finished(), "it holds up nobody, and was not given up");
    rest.notify_one();
    assert_eq!(waits.await.unwrap().unwrap().to_string(), new);
}

/// Answers as a server does, and breaks off in the middle of each pack.
async fn breaking(State(serving): State<Serving>, request: Request) -> Response {
    let is_pack = request.method() == axum::http::Method::POST;
    let (parts, body) = backend(State(serving), request).await.into_parts();
    let whole = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    if !is_pack || whole.len() < 100_000 {
        return Response::from_parts(parts, Body::from(whole));
    }
    let first = futures::stream::iter([Ok(whole.slice(..1_000))]);
    let breaks = futures::stream::once(async {
        // What came before is sent meanwhile.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Err(std::io::Error::other("it breaks"))
    });
    Response::from_parts(parts, Body::from_stream(futures::StreamExt::chain(first, breaks)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_while_a_commit_is_sent_is_no_reason_to_fetch_all_branches() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let new = commit(&path, "main", "big.txt", &noise(1_000_000));
    commit(&path, "side", "b.yaml", "b: 1\n");
    let serving = Serving::new(&forge);
    let server = serve(axum::Router::new().fallback(breaking).with_state(serving.clone())).await;
    let cache = Cache::new(|_| {}).await;
    let host = server.trim_start_matches("http://");
    let refusal = cache.refusal(&format!("{server}/a.git"), &new).await;
    assert!(refusal.starts_with(&format!("cannot connect to {host}: ")), "{refusal}");
    // The greeting, the list of branches, the pack.
    assert_eq!(serving.requests(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_servers_that_hang_as_may_be_fetched_from_hold_up_no_others() {
    let (held, mut hung) = tokio::sync::mpsc::unbounded_channel();
    let forge = Forge::new();
    forge.repository("a");
    let well = Serving::new(&forge).http().await;
    let cache = Cache::new(|config| config.concurrent = 2).await;
    let (mut hanging, mut streams) = (tokio::task::JoinSet::new(), Vec::new());
    for _ in 0..4 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = address(&format!("http://{}/a", listener.local_addr().unwrap()));
        let (held, checkouts) = (held.clone(), cache.checkouts.clone());
        tokio::spawn(async move {
            let _ = held.send(listener.accept().await.unwrap());
        });
        hanging.spawn(async move { checkouts.checkout(&url, "main").await.map(|_| ()) });
        // Connected, and never answered.
        streams.push(hung.recv().await.unwrap());
    }
    cache.checkout(&format!("{well}/a.git"), "main").await.unwrap();
    assert!(hanging.try_join_next().is_none(), "all four still wait for their servers");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_servers_that_say_a_little_all_the_time_as_may_be_fetched_from_hold_up_no_others() {
    let (begins, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let forge = Forge::new();
    forge.repository("a");
    let well = Serving::new(&forge).http().await;
    let cache = Cache::new(|config| config.concurrent = 2).await;
    let mut dripping = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = address(&format!("http://{}/a", listener.local_addr().unwrap()));
        let (begins, checkouts) = (begins.clone(), cache.checkouts.clone());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            let head =
                b"HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-advertisement\r\n\r\nfff0";
            stream.write_all(head).await.unwrap();
            let _ = begins.send(());
            // A byte of a packet that is not whole for hours.
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        dripping.spawn(async move { checkouts.checkout(&url, "main").await.map(|_| ()) });
        begun.recv().await.unwrap();
    }
    cache.checkout(&format!("{well}/a.git"), "main").await.unwrap();
    assert!(dripping.try_join_next().is_none(), "both go on, without a slot");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_never_ends_is_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                read_head(&mut stream).await;
                let head =
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-advertisement\r\n\r\n";
                let _ = stream.write_all(head).await;
                let flush = line(&format!("{COMMIT} refs/heads/{}", "x".repeat(60_000)));
                while stream.write_all(&flush).await.is_ok() {}
            });
        }
    });
    let url = format!("http://{host}/a");
    let cache = Cache::new(|config| config.timeout = Duration::from_secs(2)).await;
    let refusal = cache.refusal(&url, "main").await;
    let slow =
        format!("fetching {url} took longer than 2 s: raise the time limit if the repository is that large");
    let many =
        format!("{host} does not answer as a Git server does: it names more than 200,000 branches and tags");
    assert!(refusal == slow || refusal == many, "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_bytes_than_may_arrive_are_refused() {
    let forge = Forge::new();
    let path = forge.repository("a");
    let noise = noise(300_000);
    commit(&path, "main", "big.txt", &noise);
    let url = format!("{}/a.git", Serving::new(&forge).http().await);
    let cache = Cache::new(|config| config.fetch_bytes = 10_000).await;
    assert_eq!(
        cache.refusal(&url, "main").await,
        format!("{url} sends more than 10000 bytes: raise the size limit if the repository is that large")
    );
    nothing_is_left(&cache).await;
    let cache = Cache::new(|config| config.object_bytes = 100_000).await;
    assert_eq!(
        cache.refusal(&url, "main").await,
        format!(
            "{url} holds an object of 300000 bytes, and no more than 100000 are taken: raise the setting repositories.objectSize if there is memory for it"
        )
    );
    nothing_is_left(&cache).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_cannot_be_written_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cache"), "a file").unwrap();
    let error = Checkouts::new(config(folder.path())).await.err().unwrap().to_string();
    let directory = folder.path().join("cache");
    assert!(
        error.starts_with(&format!("cannot write to the cache directory {}: ", directory.display())),
        "{error}"
    );
}

/// Unmounts when the test ends, whichever way.
struct Mount(std::path::PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named_and_what_is_there_stays_usable() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_owned();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
        .arg(&at)
        .output()
        .is_ok_and(|done| done.status.success());
    if !mounted {
        // Only whoever may mount can make a disk that is full; the limit of bytes is proven for everybody above.
        return;
    }
    let _mount = Mount(at.clone());
    let forge = Forge::new();
    let (small, large) = (forge.repository("small"), forge.repository("large"));
    let noise = noise(4_000_000);
    commit(&large, "main", "big.txt", &noise);
    let server = Serving::new(&forge).http().await;
    let checkouts = Checkouts::new(config(&at)).await.unwrap();
    let url = |name: &str| address(&format!("{server}/{name}.git"));
    let one = checkouts.checkout(&url("small"), "main").await.unwrap().commit;
    let error = checkouts.checkout(&url("large"), "main").await.err().unwrap().to_string();
    assert!(error.contains("o space left on device"), "{error}");
    assert!(error.starts_with("cannot write to the cache directory "), "{error}");
    let two = commit(&small, "main", "a.yaml", "a: 2\n");
    assert_eq!(checkouts.checkout(&url("small"), &one.to_string()).await.unwrap().commit, one);
    assert_eq!(checkouts.checkout(&url("small"), "main").await.unwrap().commit.to_string(), two);
}
