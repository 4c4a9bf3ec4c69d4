//! `gitops-runtime redact`: what it prints, what it says of it, and what it refuses.
#![expect(clippy::string_slice, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Runs `redact` with these flags and this text on standard input.
fn run(flags: &[&str], text: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gitops-runtime"))
        .arg("redact")
        .args(flags)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may be done before it has read all: the refusals do not ask for text.
    drop(child.stdin.take().unwrap().write_all(text));
    child.wait_with_output().unwrap()
}

fn printed(flags: &[&str], text: &str) -> String {
    let output = run(flags, text.as_bytes());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{flags:?}");
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(flags: &[&str], text: &[u8]) -> (Option<i32>, String) {
    let output = run(flags, text);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The text with each digest as `#`.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("redacted:hmac-sha256:");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        out.push('#');
        out.push_str(&part[32..]);
    }
    out
}

#[test]
fn a_manifest_is_printed_as_it_would_be_reported() {
    let manifest = "kind: Deployment\nspec:\n  env:\n  - name: DB_PASSWORD\n    value: thistle\n  - name: LOG\n    value: debug\n";
    assert_eq!(
        without_digests(&printed(&[], manifest)),
        "kind: Deployment\nspec:\n  env:\n  - name: DB_PASSWORD\n    value: \"#\"\n  - name: LOG\n    value: debug\n"
            .replace("\"#\"", "#")
    );
}

#[test]
fn what_holds_no_secret_is_printed_to_the_byte() {
    for text in [
        "kind: ConfigMap   # kept\ndata: {a: b}\n",
        "secret: rotate\n",
        "no manifest at all",
        "",
        "{\"a\": 1}\n",
    ] {
        assert_eq!(printed(&["-f", "-"], text), text);
    }
}

#[test]
fn several_documents_and_free_text_are_taken() {
    let documents = "data:\n  a: b\nkind: ConfigMap\n---\nkind: Secret\nstringData:\n  a: thistle\n";
    assert_eq!(without_digests(&printed(&[], documents)), documents.replace("thistle", "#"));
    let line = "connecting to postgres://app:thistle@db/x failed";
    assert_eq!(without_digests(&printed(&[], line)), "connecting to postgres://#@db/x failed");
    assert_eq!(without_digests(&printed(&[], "password: thistle8\n")), "password: #\n");
}

#[test]
fn it_explains_which_rule_touched_what_and_never_shows_a_value() {
    let manifest = "kind: Deployment\nspec:\n  password: thistle\n  args: [--token, thistle]\n  url: https://hooks.slack.com/services/T0/B0/thistle\n  text: |\n    one line\n    two glpat-0123456789thistlethistle\n";
    assert_eq!(
        printed(&["--explain"], manifest),
        "spec.args.1: argument\nspec.password: value under a name\nspec.text, line 2: gitlab-token\nspec.url: slack-webhook\n4 values were replaced\n"
    );
    assert_eq!(printed(&["--explain"], "a: b\nc: d\n"), "nothing was replaced\n");
    assert_eq!(
        printed(&["--explain"], "first line\nAKIAIOSFODNN7EXAMPLE in the second\n"),
        "line 2: aws-access-key-id\n1 value was replaced\n"
    );
}

#[test]
fn the_key_of_the_digests_can_be_given() {
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "0f".repeat(32)).unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, "password: thistle\nreplicas: 2\n").unwrap();
    let flags = ["-f", file.to_str().unwrap(), "--key-file", key.to_str().unwrap()];
    assert_eq!(printed(&flags, ""), printed(&flags, ""));
    let anew = printed(&flags[..2], "");
    assert_ne!(anew, printed(&flags[..2], ""), "a key that is thrown away is used twice");
}

#[test]
fn what_cannot_be_read_is_refused() {
    let folder = TempDir::new().unwrap();
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    assert_eq!(
        refused(&["-f", nowhere], b""),
        (Some(1), format!("gitops-runtime: read {nowhere}: No such file or directory (os error 2)\n"))
    );
    assert_eq!(
        refused(&["--key-file", nowhere], b""),
        (Some(1), format!("gitops-runtime: the redaction key {nowhere} does not exist\n"))
    );
    for (bytes, told) in [
        (&b"a: 1\npassword: \xff\xfe"[..], "not text in UTF-8: line 2 holds a byte that is none"),
        (b"\xff\xfea\0:\0", "text in UTF-16, as Windows PowerShell writes it: write it in UTF-8"),
        (b"\x1f\x8b\x08\x00", "packed by gzip: unpack it first"),
    ] {
        assert_eq!(refused(&[], bytes), (Some(1), format!("gitops-runtime: standard input is {told}\n")));
    }
    let (code, said) = refused(&["--explian"], b"");
    assert_eq!(code, Some(2));
    assert!(said.contains("a similar argument exists: '--explain'"), "{said}");
}

#[test]
fn its_help_shows_examples() {
    let help = printed(&["--help"], "");
    for line in [
        "    kubectl get deployment shop -o yaml | gitops-runtime redact\n",
        "    gitops-runtime redact -f values.yaml --explain\n",
    ] {
        assert!(help.contains(line), "{line} does not stand in\n{help}");
    }
}
