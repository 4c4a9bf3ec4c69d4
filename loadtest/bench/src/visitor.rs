//! A visitor: one connection, and one request after another over it.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use rustls::pki_types::ServerName;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Bytes of one read.
const PIECE: usize = 256 << 10;

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) struct Visitor {
    stream: BufReader<Box<dyn Stream>>,
    host: String,
}

impl Visitor {
    pub(crate) async fn connect(
        to: SocketAddr,
        host: &str,
        tls: Option<&TlsConnector>,
    ) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(to).await.with_context(|| format!("connect to {to}"))?;
        stream.set_nodelay(true).context("connect")?;
        let stream: Box<dyn Stream> = match tls {
            Some(tls) => {
                let name = ServerName::try_from(host.to_owned()).context("name the server")?;
                // What measures reads as much at once with TLS as without.
                let stream = BufReader::with_capacity(PIECE, stream);
                Box::new(tls.connect(name, stream).await.context("speak TLS to the server")?)
            }
            None => Box::new(stream),
        };
        Ok(Self { stream: BufReader::with_capacity(PIECE, stream), host: host.to_owned() })
    }

    /// Asks, and reads the head of the answer: how many bytes follow.
    pub(crate) async fn ask(&mut self, path: &str) -> anyhow::Result<u64> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream.write_all(request.as_bytes()).await.context("ask")?;
        let mut line = String::new();
        self.stream.read_line(&mut line).await.context("read an answer")?;
        ensure!(line.starts_with("HTTP/1.1 200"), "{path} is answered {:?}", line.trim_end());
        let mut length = None;
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await.context("read an answer")? == 0 {
                bail!("an answer ends in its head");
            }
            if line == "\r\n" {
                return length.context("an answer does not say how long it is");
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
    }

    /// Begins an answer that does not end.
    pub(crate) async fn hold(&mut self) -> anyhow::Result<()> {
        ensure!(self.ask("/hold").await? == 2, "a stream that is held has another length");
        Ok(())
    }

    /// Reads so many bytes of an answer.
    pub(crate) async fn read(&mut self, mut left: u64) -> anyhow::Result<()> {
        let mut bytes = vec![0; PIECE];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let (part, _) = bytes.split_at_mut(most);
            let read = self.stream.read(part).await.context("read an answer")?;
            ensure!(read > 0, "an answer ends {left} bytes early");
            left -= read as u64;
        }
        Ok(())
    }

    /// Asks, and reads all of the answer.
    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<u64> {
        let length = self.ask(path).await?;
        self.read(length).await?;
        Ok(length)
    }
}
