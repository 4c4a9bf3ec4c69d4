//! Files of Go modules that the build of the cluster's programs does not ship beside them.
//!
//! takes: a module and its version, or a program that is built of it - gives: the folder of the module, fetched if it is not there
//! calls: `go` - fails: when there is none, or it cannot have the module

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::process::Command;

/// Where the build of the programs keeps a Go of its own, on machines that have none, below the folder of all that is kept.
const OWN_GO: &str = "gitops-runtime/cluster/go/bin/go";

/// The folder of a module.
pub async fn folder(module: &str, version: &str) -> anyhow::Result<PathBuf> {
    let act = || format!("fetch the Go module {module} {version}");
    let output = Command::new(go())
        .args(["mod", "download", "-json", &format!("{module}@{version}")])
        // Outside of any module: none is changed by this.
        .current_dir(std::env::temp_dir())
        .envs([("GOFLAGS", "-mod=mod"), ("GOTOOLCHAIN", "local"), ("GOWORK", "off"), ("GO111MODULE", "on")])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(act)?;
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match said["Dir"].as_str() {
        Some(folder) if output.status.success() => Ok(PathBuf::from(folder)),
        _ => {
            let why = said["Error"].as_str().map(str::to_owned);
            let why = why.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned());
            bail!("{}: {}", act(), why.trim())
        }
    }
}

/// The folder of a module that the program of a folder of `.ci/cluster` is built of, in the version that it is built of.
pub async fn of_program(program: &str, module: &str) -> anyhow::Result<PathBuf> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("the folder of the workspace")?;
    let file = root.join(".ci/cluster").join(program).join("go.mod");
    let text = tokio::fs::read_to_string(&file).await.with_context(|| format!("read {}", file.display()))?;
    let version = required(&text, module);
    folder(module, version.with_context(|| format!("find {module} in {}", file.display()))?).await
}

/// The version of a module that a `go.mod` requires.
fn required<'a>(text: &'a str, module: &str) -> Option<&'a str> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("require "));
    let mut versions = lines.filter_map(|line| line.strip_prefix(module)?.strip_prefix(' '));
    versions.find_map(|rest| rest.split_whitespace().next().filter(|version| version.starts_with('v')))
}

/// The machine's Go, else the one that the build of the programs installed.
fn go() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("go")).find(|file| file.is_file());
    let kept = || {
        let given = ["LOADTEST_CACHE", "XDG_CACHE_HOME"].map(std::env::var_os);
        match given {
            // It takes the place of the folder that is named after this program.
            [Some(kept), _] => Some(PathBuf::from(kept).join(OWN_GO.split_once('/')?.1)),
            [None, Some(cache)] => Some(PathBuf::from(cache).join(OWN_GO)),
            [None, None] => Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache").join(OWN_GO)),
        }
    };
    on_path.or_else(|| kept().filter(|file| file.is_file())).unwrap_or_else(|| PathBuf::from("go"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_module_is_the_one_that_is_required() {
        let text = "module a\n\ngo 1.25.0\n\nrequire b.example/c v1.0.0\n\nrequire (\n\tb.example/c/v3 v3.2.0\n\t\
                    b.example/d v0.1.0 // indirect\n)\n\nreplace b.example/d => ../d\n";
        assert_eq!(required(text, "b.example/c/v3"), Some("v3.2.0"));
        assert_eq!(required(text, "b.example/c"), Some("v1.0.0"));
        assert_eq!(required(text, "b.example/d"), Some("v0.1.0"));
        assert_eq!(required(text, "b.example/e"), None);
    }
}
