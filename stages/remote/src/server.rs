//! A server that tests ask.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Answers each request by its path and its body, which is JSON if there is one. Ends when it is dropped.
pub(crate) struct Server {
    /// Its address.
    pub(crate) url: String,
    serving: JoinHandle<()>,
}

impl Server {
    /// What is answered is written as it is, and ends the connection.
    pub(crate) async fn start(answer: impl Fn(&str, &Value) -> String + Send + Sync + 'static) -> Self {
        stages_client::install_crypto();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(answer);
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let answer = answer.clone();
                tokio::spawn(async move { serve(stream, &*answer).await });
            }
        });
        Self { url, serving }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// An answer of JSON.
pub(crate) fn ok(body: &Value) -> String {
    let body = body.to_string();
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

async fn serve(stream: TcpStream, answer: &impl Fn(&str, &Value) -> String) {
    let (mut stream, mut length, mut path) = (BufReader::new(stream), 0, None);
    loop {
        let mut line = String::new();
        // Whoever asked may have gone.
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        match line.to_ascii_lowercase().trim().split_once(": ") {
            Some(("content-length", bytes)) => length = bytes.parse().unwrap(),
            Some(_) => {}
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).await.is_err() {
        return;
    }
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    drop(stream.write_all(answer(&path.unwrap_or_default(), &body).as_bytes()).await);
}
