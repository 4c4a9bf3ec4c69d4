//! `gitops-runtime runtime logs`: the logs of a runtime's own pods, as its app proxy makes an archive of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stages_client::Opened;

use crate::arguments::AppProxyArgs;
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::show::{Screen, plain};

pub(crate) async fn logs(
    runtime: &str,
    output: Option<&Path>,
    way: &AppProxyArgs,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    if way.app_proxy.is_none() {
        let said = "the platform passes no archives on: give the address of the runtime's app proxy with --app-proxy";
        return Err(RemoteError::Usage(said.to_owned()));
    }
    let proxy = Proxy::find(way, runtime, environment).await?;
    let mut archive = proxy.file("download the logs", &["api", "applications", "logs"]).await?;
    if output == Some(Path::new("-")) {
        let failed = |error| RemoteError::Terminal("write the archive", error);
        let mut out = io::stdout().lock();
        while let Some(chunk) = archive.chunk().await? {
            out.write_all(&chunk).map_err(failed)?;
        }
        return out.flush().map_err(failed);
    }
    let path =
        output.map_or_else(|| PathBuf::from(format!("{}-logs.tar.gz", plain(runtime))), Path::to_path_buf);
    save(&mut archive, &path, tokio::signal::ctrl_c()).await?;
    screen.say(&format!("the logs of {} are in {}\n", plain(runtime), plain(&path.to_string_lossy())))
}

/// Writes an archive into a temporary file beside `path`, and renames that once it is whole. If it fails or is interrupted, what is at
/// `path` stays, and the temporary file is removed.
async fn save(
    archive: &mut Opened,
    path: &Path,
    interrupted: impl Future<Output = io::Result<()>>,
) -> Result<(), RemoteError> {
    if path.exists() && !path.is_file() {
        let said = format!("{} is no file that an archive could replace", plain(&path.to_string_lossy()));
        return Err(RemoteError::Usage(said));
    }
    // The target of a link is replaced, and not the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut beside = path.clone().into_os_string();
    // Two processes that download the same write files of their own.
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let failed = |source| RemoteError::File { act: "write the archive", path: beside.clone(), source };
    let mut file = File::create_new(&beside).map_err(failed)?;
    let written = async {
        while let Some(chunk) = archive.chunk().await? {
            file.write_all(&chunk).map_err(failed)?;
        }
        file.sync_all().and_then(|()| std::fs::rename(&beside, &path)).map_err(failed)
    };
    let saved = tokio::select! {
        biased;
        Ok(()) = interrupted => {
            let said = format!("the download was interrupted: {} is as it was", plain(&path.to_string_lossy()));
            Err(RemoteError::Missing(said))
        }
        saved = written => saved,
    };
    if saved.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    saved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{ANSWER, Platform};
    use crate::server::Server;

    #[tokio::test]
    async fn an_archive_takes_the_place_of_what_was_there_once_it_is_whole() {
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length:";
        let server = Server::start(move |path, _| match path {
            "/whole" => format!("{head} 5\r\n\r\nwhole"),
            _ => format!("{head} 10\r\n\r\nhalf"),
        });
        let server = server.await;
        let platform = Platform::at(&server.url, "key".into(), None, false, ANSWER).await.unwrap();
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("logs.tar.gz");
        let download = async |what, path: &Path| {
            let mut archive = platform.file("download the logs", &[what]).await.unwrap();
            save(&mut archive, path, std::future::pending()).await.map_err(|error| error.to_string())
        };
        let held = || {
            let names = std::fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name());
            (names.count(), std::fs::read_to_string(&path).ok())
        };
        let host = server.url.strip_prefix("http://").unwrap();
        let cut =
            Err(format!("cannot download the logs at {host}: its answer ended before its end: try again"));
        assert_eq!(
            (download("cut", &path).await, held()),
            (cut.clone(), (0, None)),
            "half an archive is none"
        );
        std::fs::write(&path, "before").unwrap();
        assert_eq!((download("cut", &path).await, held()), (cut, (1, Some("before".to_owned()))));
        assert_eq!((download("whole", &path).await, held()), (Ok(()), (1, Some("whole".to_owned()))));

        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        std::fs::write(&path, "before").unwrap();
        assert_eq!((download("whole", &link).await, held()), (Ok(()), (2, Some("whole".to_owned()))));
        assert!(link.is_symlink());
        let said = format!("{} is no file that an archive could replace", folder.path().display());
        assert_eq!(download("whole", folder.path()).await, Err(said));
    }
}
