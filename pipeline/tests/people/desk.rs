//! Somebody at a command line, with a platform that knows what was recorded of real applications.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::platform::{PROGRAM, Platform, SOON};

/// A message of a command as it stands on standard error.
pub(crate) fn told(text: &str) -> String {
    format!("gitops-runtime: {text}\n")
}

/// What a command said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// What was printed by a command that did what it was asked for.
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The exit code and the message of one that did not.
    pub(crate) fn refused(self) -> (i32, String) {
        assert_eq!(self.out, "", "{self:?}");
        (self.code, self.err)
    }
}

/// Somebody at a command line.
pub(crate) struct Desk {
    pub(crate) platform: Platform,
    pub(crate) key: String,
    home: TempDir,
}

impl Desk {
    /// With a key that reads and changes, and not signed in.
    pub(crate) async fn start() -> Self {
        let platform = Platform::start().await;
        let key = platform.key().to_owned();
        Self { platform, key, home: TempDir::new().unwrap() }
    }

    /// Signed in, to a platform that knows some applications.
    pub(crate) async fn signed_in() -> Self {
        let desk = Self::start().await;
        let cases = loadtest::recordings::packed("incumbent-2.12").unwrap();
        let known = ["failing-sync", "directory-drift"];
        for line in cases.iter().filter(|case| known.contains(&&*case.name)).flat_map(|case| &case.reports) {
            desk.platform.report(&line.data).await;
        }
        let url = desk.platform.url();
        desk.typed(&["login", &url, "--name", "prod"], &desk.key).await.done();
        desk
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A command with the environment that it has here, and no other.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home.path());
        command.env("XDG_CONFIG_HOME", self.file("config")).current_dir(self.home.path()).kill_on_drop(true);
        command
    }

    /// Runs a command without a terminal.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Said {
        self.typed(arguments, "").await
    }

    /// The same, with this on its standard input.
    pub(crate) async fn typed(&self, arguments: &[&str], input: &str) -> Said {
        self.with(arguments, input, &[]).await
    }

    /// The same, with more in its environment.
    pub(crate) async fn with(&self, arguments: &[&str], input: &str, more: &[(&str, &str)]) -> Said {
        let mut command = self.command(PROGRAM);
        command.args(arguments).envs(more.iter().copied());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Whoever refuses reads nothing.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = tokio::time::timeout(SOON, child.wait_with_output()).await.unwrap().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let said =
            Said { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) };
        let all = format!("{}{}", said.out, said.err);
        assert!(
            !all.contains(&self.key) && !all.contains(self.platform.token()),
            "a secret is printed: {all}"
        );
        said
    }

    /// What a command prints as JSON.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["-o", "json"]].concat();
        serde_json::from_str(&self.run(&arguments).await.done()).unwrap()
    }

    pub(crate) async fn stop(mut self) {
        self.platform.stop().await;
    }
}
