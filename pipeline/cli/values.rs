//! `gitops-runtime validate` and `gitops-runtime values convert`: the doctor, for people and for CI.
//!
//! takes: files of values of the chart - gives: every finding, or the values that mean the same here
//! calls: the API server of the kubeconfig, where there is one, to read - fails: when a file cannot be converted, or standard output cannot be written

mod cluster;

use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use pipeline_doctor::{Around, Cluster, File, Format, Tiers, Unreadable};

use self::cluster::Asked;
use super::{Shape, Tier, Validate, ValuesCommand};
use crate::config;

/// Bytes of the largest file that is read.
const LARGEST: u64 = 4 * 1024 * 1024;
/// Nothing is wrong, but not all could be measured.
const UNMEASURED: u8 = 3;

/// Judges values: 0 when nothing is wrong, 1 when something is, 3 with `--strict` when not all could be measured.
pub(crate) fn validate(given: &Validate) -> anyhow::Result<ExitCode> {
    let files: Vec<(String, Result<File, Unreadable>)> = given.files.iter().map(|path| read(path)).collect();
    let wanted = |tier: Tier| !given.skip.contains(&tier);
    let tiers =
        Tiers { files: wanted(Tier::Static), cluster: wanted(Tier::Cluster), network: wanted(Tier::Network) };
    let cluster =
        if tiers.cluster { Asked::find(given.kubeconfig.clone(), given.context.clone())? } else { None };
    let around = Around {
        settings: &config::judge,
        cluster: cluster.as_ref().map(|asked| asked as &dyn Cluster),
        namespace: given.namespace.as_deref(),
    };
    let report = pipeline_doctor::validate(&files, tiers, around);
    let format = match given.format {
        Shape::Table => Format::Table,
        Shape::Json => Format::Json,
        Shape::Sarif => Format::Sarif,
    };
    print(&report.write(format))?;
    Ok(if report.is_wrong() {
        ExitCode::FAILURE
    } else if given.strict && !report.unmeasured.is_empty() {
        UNMEASURED.into()
    } else {
        ExitCode::SUCCESS
    })
}

/// Converts values of the incumbent's chart.
pub(crate) fn convert(command: &ValuesCommand) -> anyhow::Result<ExitCode> {
    let ValuesCommand::Convert { file } = command;
    let (name, read) = read(file);
    match read {
        Ok(file) => {
            print(&pipeline_doctor::convert(&file).yaml().context("write the values as YAML")?)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(Unreadable { line, why }) => bail!("{name}: line {line}: {why}"),
    }
}

fn read(path: &Path) -> (String, Result<File, Unreadable>) {
    let standard = path == Path::new("-");
    let name = if standard { "standard input".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let done = if standard {
        io::stdin().lock().take(LARGEST + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text))
    };
    let file = match done {
        Ok(_) if text.len() as u64 <= LARGEST => File::read(&name, &text),
        Ok(_) => Err(Unreadable { line: 0, why: "more than 4 MiB" }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Unreadable { line: 0, why: "no such file" })
        }
        Err(_) => Err(Unreadable { line: 0, why: "nothing that can be read as text" }),
    };
    (name, file)
}

pub(super) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("write to standard output")
        }
        _ => Ok(()),
    }
}
