//! `gitops-runtime redact`: prints what would leave the process of any text, for who wants to try before trusting.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use pipeline_redact::{RedactionKey, Redactor};

use crate::cli::Redact;

/// Bytes of the largest text that is read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Reads the text, prints it as it would leave, or what was done to it.
pub(crate) fn run(given: &Redact) -> anyhow::Result<()> {
    let key = match &given.key_file {
        Some(path) if !path.exists() => bail!("the redaction key {} does not exist", path.display()),
        Some(path) => RedactionKey::load_or_create(path)?,
        None => RedactionKey::generate().context("make a redaction key")?,
    };
    let text = read(&given.file)?;
    let explained = Redactor::new(key.as_bytes()).explain(&text);
    let mut out = io::stdout().lock();
    let written = if given.explain {
        explained.notes.iter().try_for_each(|note| writeln!(out, "{}: {}", note.place, note.rule)).and_then(
            |()| match explained.notes.len() {
                0 => writeln!(out, "nothing was replaced"),
                1 => writeln!(out, "1 value was replaced"),
                more => writeln!(out, "{more} values were replaced"),
            },
        )
    } else {
        out.write_all(explained.text.as_bytes())
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("write to standard output")
        }
        _ => Ok(()),
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    let standard = file == Path::new("-");
    let named = if standard { "standard input".to_owned() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    let done = if standard {
        io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
    };
    done.with_context(|| format!("read {named}"))?;
    if bytes.len() as u64 > LARGEST {
        bail!("{named} holds more than 64 MiB");
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        // What stands in it is not said.
        Err(error) => bail!("{named} is {}", told(error.as_bytes(), error.utf8_error().valid_up_to())),
    }
}

/// What something is that is not text in UTF-8, from this byte on, and what to do.
fn told(bytes: &[u8], from: usize) -> String {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            "text in UTF-16, as Windows PowerShell writes it: write it in UTF-8".to_owned()
        }
        [0x1f, 0x8b, ..] => "packed by gzip: unpack it first".to_owned(),
        _ => {
            let head = bytes.get(..from).unwrap_or_default();
            let line = 1 + head.iter().filter(|byte| **byte == b'\n').count();
            format!("not text in UTF-8: line {line} holds a byte that is none")
        }
    }
}
