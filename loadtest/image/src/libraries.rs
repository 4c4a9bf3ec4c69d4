//! What a program is linked with, by the word of the loader that will load it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// The loader and the libraries of a program, where they stand; none of one that is linked statically.
pub(crate) fn of(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    // A path without a slash would be looked for elsewhere.
    let program = program.canonicalize().with_context(|| format!("find {}", program.display()))?;
    let output = Command::new("ldd").env("LC_ALL", "C").arg(&program).output().context("run ldd")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        if why.contains("not a dynamic executable") || said.contains("not a dynamic executable") {
            return Ok(Vec::new());
        }
        bail!("ask what {} is linked with: {}", program.display(), why.trim());
    }
    named(&said)
}

/// What `ldd` names: `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)` for the loader. What has no path is the kernel's.
fn named(said: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for line in said.lines() {
        let (name, found) = line.trim().split_once(" => ").unwrap_or(("", line.trim()));
        if found == "not found" {
            bail!("the library {name} is not on this machine");
        }
        let path = found.rsplit_once(" (").map_or(found, |(path, _)| path);
        if path.starts_with('/') {
            paths.push(PathBuf::from(path));
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\tlinux-vdso.so.1 (0x00007f5962415000)\n\
        \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f59623e4000)\n\
        \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f596093e000)\n\
        \t/lib64/ld-linux-x86-64.so.2 (0x00007f5962417000)\n";

    #[test]
    fn libraries_and_the_loader_are_named_and_what_is_the_kernels_is_not() {
        let expected = ["/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libc.so.6"];
        let expected: Vec<PathBuf> =
            expected.into_iter().chain(["/lib64/ld-linux-x86-64.so.2"]).map(PathBuf::from).collect();
        assert_eq!(named(SAID).unwrap(), expected);
        assert!(named("\tstatically linked\n").unwrap().is_empty());
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let error = named("\tlibmissing.so.1 => not found\n").unwrap_err();
        assert_eq!(error.to_string(), "the library libmissing.so.1 is not on this machine");
    }
}
