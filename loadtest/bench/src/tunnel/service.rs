//! What is behind a tunnel, as a process of its own, so that each end of a stream has a table of open files to itself: answers `GET /bytes/N` with so many bytes, and `GET /hold` with a head and one byte, after which
//! it says nothing until the visitor goes.

use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::Context as _;
use loadtest_judge::screen::say;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// Bytes of one write.
const PIECE: usize = 64 << 10;

/// The process.
pub(super) struct Service {
    pub(super) at: SocketAddr,
    _process: Child,
}

/// Starts it; it ends with what is given.
pub(super) async fn beside() -> anyhow::Result<Service> {
    let program = std::env::current_exe().context("find this program")?;
    let mut process = Command::new(program)
        .args(["tunnel", "--serve"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("start the service behind the tunnel")?;
    let said = process.stdout.take().context("read where the service is")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).await.context("read where the service is")?;
    let at = line.trim().parse().with_context(|| format!("read where the service is: {line:?}"))?;
    Ok(Service { at, _process: process })
}

/// Is that process.
pub(super) async fn serve() -> anyhow::Result<()> {
    say(&start().await?.to_string());
    // Whoever started it holds the other end, and needs it no longer once that is closed.
    let end = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    end.await.context("wait for the end")?.context("wait for the end").map(drop)
}

async fn start() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on loopback")?;
    let address = listener.local_addr().context("listen on loopback")?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // A visitor that goes away is no error of the service.
                let _ = answer(stream).await;
            });
        }
    });
    Ok(address)
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let piece = vec![b'x'; PIECE];
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
        }
        if path == "/hold" {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx").await?;
            stream.flush().await?;
            // Nothing more is said, and what the visitor says is their end.
            let _ = stream.read(&mut [0; 1]).await?;
            return Ok(());
        }
        let mut left: usize =
            path.strip_prefix("/bytes/").and_then(|number| number.parse().ok()).unwrap_or(2);
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n").as_bytes()).await?;
        while left > 0 {
            let (now, _) = piece.split_at(left.min(PIECE));
            stream.write_all(now).await?;
            left -= now.len();
        }
        stream.flush().await?;
    }
}
