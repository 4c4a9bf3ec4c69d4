//! The images that are installed: the program that is at hand, the NATS server of the tests, and what else pods run.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use loadtest_image::Image;

/// Where distributions keep the certificates of authorities.
const AUTHORITIES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
/// Compressed as little as it gets: it goes from this machine to itself.
const LEVEL: i32 = 1;

/// A program of this machine's, by its name.
pub(crate) fn of_this_machine(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.with_context(|| format!("find {name} on PATH"))
}

/// An image of a program that runs by this name.
pub(crate) fn of(program: &Path, name: &str, entrypoint: &str) -> anyhow::Result<Image> {
    let authorities = AUTHORITIES.map(PathBuf::from).into_iter().find(|file| file.is_file());
    Ok(Image {
        program: program.canonicalize().with_context(|| format!("find {}", program.display()))?,
        entrypoint: entrypoint.to_owned(),
        further: Vec::new(),
        links: Vec::new(),
        state: Some(format!("var/lib/{entrypoint}")),
        authorities: Some(authorities.context("find certificates of authorities; install ca-certificates")?),
        license: None,
        materials: None,
        name: name.to_owned(),
        architecture: if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: String::new(),
        time: 0,
        level: LEVEL,
    })
}
