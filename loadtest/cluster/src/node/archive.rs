//! Images of static programs, busybox above all, as archives that containerd imports; no daemon and no base image are needed.
//!
//! The format: <https://github.com/moby/docker-image-spec/blob/v1.3.1/spec.md>

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

/// Where a static busybox may stand.
const PROGRAMS: [&str; 3] = ["/bin/busybox.static", "/usr/bin/busybox", "/bin/busybox"];

/// An archive of one layer under `names`, each of which runs its command when a pod gives none.
pub(super) fn busybox(names: &[(&str, &[&str])]) -> anyhow::Result<Vec<u8>> {
    let program = PROGRAMS.iter().map(PathBuf::from).find(|program| program.exists());
    let program = program.context("find busybox; .ci/setup installs it")?;
    let told = Command::new(&program).arg("--list").output().context("ask busybox for its commands")?;
    let commands = String::from_utf8(told.stdout).context("ask busybox for its commands")?;
    let layer = layer(&program, commands.lines().filter(|name| *name != "busybox"))?;
    pack(&layer, names)
}

/// An archive of a program, which is found by its own name, under `name`.
pub(super) fn program(program: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    let own = program.file_name().and_then(|own| own.to_str()).context("find the name of a program")?;
    let bytes = std::fs::read(program).with_context(|| format!("read {}", program.display()))?;
    let mut layer = Builder::new(Vec::new());
    append(&mut layer, &format!("bin/{own}"), 0o755, &bytes)?;
    folder(&mut layer)?;
    pack(&layer.into_inner().context("pack a layer")?, &[(name, &[own])])
}

fn pack(layer: &[u8], names: &[(&str, &[&str])]) -> anyhow::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    let mut images = Vec::new();
    for (number, (name, command)) in names.iter().enumerate() {
        let config = json!({
            "architecture": architecture()?,
            "os": "linux",
            "config": {"Cmd": command, "Env": ["PATH=/bin"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest(layer))]},
        });
        let file = format!("config-{number}.json");
        append(&mut archive, &file, 0o644, &bytes(&config)?)?;
        images.push(json!({"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]}));
    }
    append(&mut archive, "layer.tar", 0o644, layer)?;
    append(&mut archive, "manifest.json", 0o644, &bytes(&Value::from(images))?)?;
    archive.into_inner().context("pack an image")
}

fn layer<'a>(program: &Path, commands: impl Iterator<Item = &'a str>) -> anyhow::Result<Vec<u8>> {
    let program = std::fs::read(program).with_context(|| format!("read {}", program.display()))?;
    let mut layer = Builder::new(Vec::new());
    append(&mut layer, "bin/busybox", 0o755, &program)?;
    for command in commands {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        layer.append_link(&mut header, format!("bin/{command}"), "busybox").context("pack a command")?;
    }
    folder(&mut layer)?;
    layer.into_inner().context("pack a layer")
}

/// One that everybody may write to.
fn folder(layer: &mut Builder<Vec<u8>>) -> anyhow::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Directory);
    header.set_mode(0o1777);
    header.set_size(0);
    layer.append_data(&mut header, "tmp/", std::io::empty()).context("pack a folder")
}

fn append(archive: &mut Builder<Vec<u8>>, path: &str, mode: u32, bytes: &[u8]) -> anyhow::Result<()> {
    let mut header = Header::new_ustar();
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes).with_context(|| format!("pack {path}"))
}

fn bytes(value: &Value) -> anyhow::Result<Vec<u8>> {
    serde_json::to_vec(value).context("write JSON")
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// This machine, as images call it.
pub(super) fn architecture() -> anyhow::Result<&'static str> {
    Ok(match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no image is known for {other}"),
    })
}
