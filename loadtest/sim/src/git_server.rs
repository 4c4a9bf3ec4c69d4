//! A Git server: the real `git http-backend`, asked for one answer; and `git` itself, for what stands behind it.
//!
//! takes: a folder of repositories, and a request - gives: what git answers - calls: the program `git`
//! fails: when it cannot be started, or answers what is no answer

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::command::fed;

/// What is asked of the repositories in a folder.
#[derive(Debug)]
pub struct GitRequest<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// The path below it, which may be another than that of the request.
    pub path: &'a str,
    /// Who asks and may push; `None`: somebody who may only fetch.
    pub writer: Option<&'a str>,
    /// The head of the request.
    pub head: &'a Parts,
    /// Its body.
    pub body: &'a [u8],
}

impl<'a> GitRequest<'a> {
    /// A request for the path that it names, of somebody who may only fetch.
    pub fn new(folder: &'a Path, head: &'a Parts, body: &'a [u8]) -> Self {
        Self { folder, path: head.uri.path(), writer: None, head, body }
    }

    /// What git answers.
    ///
    /// # Errors
    /// It cannot be started, or does not end its head.
    pub async fn answer(&self) -> anyhow::Result<Response> {
        let Self { folder, path, writer, head, body } = *self;
        let header =
            |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut child = Command::new("git")
            .arg("http-backend")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_PROJECT_ROOT", folder)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", head.uri.query().unwrap_or_default())
            .env("REQUEST_METHOD", head.method.as_str())
            .env("CONTENT_TYPE", header("content-type"))
            .env("GIT_PROTOCOL", header("git-protocol"))
            .envs(writer.map(|name| ("REMOTE_USER", name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("start git http-backend")?;
        let mut stdin = child.stdin.take().context("write to git http-backend")?;
        let written = async move {
            // What it does not want to hear it does not read.
            let _ = stdin.write_all(body).await;
        };
        let ((), done) = tokio::join!(written, child.wait_with_output());
        of_cgi(&done.context("wait for git http-backend")?.stdout)
    }
}

/// Runs the real git in a folder, as somebody of no settings of this machine; gives what it prints.
///
/// # Errors
/// It cannot be started, or fails; the error holds what it says.
pub fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    git_fed(folder, arguments, b"")
}

/// The same with this on its standard input.
///
/// # Errors
/// It cannot be started, or fails; the error holds what it says.
pub fn git_fed(folder: &Path, arguments: &[&str], input: &[u8]) -> anyhow::Result<String> {
    fed(&mut git_command(folder, arguments), input)
}

/// The real git in a folder, as somebody of no settings of this machine.
#[must_use]
pub fn git_command(folder: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new("git");
    command
        .args(arguments)
        .current_dir(folder)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .envs([("GIT_AUTHOR_NAME", "Init"), ("GIT_AUTHOR_EMAIL", "init@example.com")])
        .envs([("GIT_COMMITTER_NAME", "Init"), ("GIT_COMMITTER_EMAIL", "init@example.com")]);
    command
}

/// An answer as programs behind a web server write it.
fn of_cgi(output: &[u8]) -> anyhow::Result<Response> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").context("the answer has no head")?;
    let (head, body) = output.split_at(end + 4);
    let mut answer = Response::new(Body::from(Bytes::copy_from_slice(body)));
    for (name, value) in String::from_utf8_lossy(head).lines().filter_map(|line| line.split_once(": ")) {
        match name {
            "Status" => {
                let code = value.split(' ').next().unwrap_or_default();
                *answer.status_mut() =
                    StatusCode::from_bytes(code.as_bytes()).context("the status is none")?;
            }
            _ => {
                let name: HeaderName = name.parse().context("a header is none")?;
                answer.headers_mut().insert(name, HeaderValue::from_str(value).context("a header is none")?);
            }
        }
    }
    Ok(answer)
}
