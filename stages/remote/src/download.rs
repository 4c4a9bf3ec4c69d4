//! `gitops-runtime runtime logs`: the logs of a runtime's own pods, as its app proxy makes an archive of them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::arguments::Way;
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::proxy::Proxy;
use crate::show::{Screen, plain};

pub(crate) async fn logs(
    runtime: &str,
    output: Option<&Path>,
    way: &Way,
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
    let failed = |source| RemoteError::File { act: "write the archive", path: path.clone(), source };
    let mut file = File::create(&path).map_err(failed)?;
    let written = async {
        while let Some(chunk) = archive.chunk().await? {
            file.write_all(&chunk).map_err(failed)?;
        }
        file.sync_all().map_err(failed)
    };
    if let Err(error) = written.await {
        // Half an archive is none.
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    screen.say(&format!("the logs of {} are in {}\n", plain(runtime), plain(&path.to_string_lossy())))
}
