//! A terminal of 80 by 24 for `gitops-runtime top`: `script` makes it, so that the program and its signals are real.

use std::process::Stdio;

use loadtest::sim::Simulation;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout_at};

use crate::runtime::{PROGRAM, SOON};

/// What the shell in the terminal does: tells the program's id, runs it, and tells how it left the terminal.
const SHELL: &str =
    r#"stty rows 24 cols 80; sh -c 'echo "pid $$."; exec "$PROGRAM" top'; echo "code $?."; stty -a"#;

/// Enters the alternate screen, and leaves it.
const ALTERNATE: [&str; 2] = ["\u{1b}[?1049h", "\u{1b}[?1049l"];

/// A terminal that the program runs in.
pub(super) struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    came: Vec<u8>,
}

impl Terminal {
    /// Starts the program, with the settings of the simulation's reporter.
    pub(super) async fn start(simulation: &Simulation, more: &[(&str, &str)]) -> Self {
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--command", SHELL, "/dev/null"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .env("PROGRAM", PROGRAM)
            .env("GITOPS_RUNTIME_CONFIG", simulation.directory().join("config.yaml"))
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keys, screen, came: Vec::new() }
    }

    /// Waits until this stands on the screen.
    pub(super) async fn shows(&mut self, part: &str) {
        self.until(part, |terminal| screen(&terminal.text()).contains(part)).await;
    }

    /// Waits until this does not stand on the screen.
    pub(super) async fn hides(&mut self, part: &str) {
        self.until(part, |terminal| !screen(&terminal.text()).contains(part)).await;
    }

    /// Types on its keyboard.
    pub(super) async fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
        self.keys.flush().await.unwrap();
    }

    /// Sends a signal to the program.
    pub(super) async fn signal(&mut self, signal: &str) {
        let text = self.text();
        let (_, id) = text.split_once("pid ").unwrap();
        let (id, _) = id.split_once('.').unwrap();
        assert!(Command::new("kill").args([signal, id]).status().await.unwrap().success());
    }

    /// Waits until the program has ended with this code and has given the terminal back as it was; gives all that came.
    pub(super) async fn ended(mut self, code: i32) -> String {
        let deadline = Instant::now() + SOON;
        while self.reads(deadline).await {}
        let text = self.text();
        let [before, after] = ALTERNATE.map(|change| text.rfind(change));
        assert!(before.is_some() && before < after, "the screen is not given back: {text:?}");
        let end = format!("code {code}.");
        let Some((_, modes)) = text.split_once(&end) else { panic!("{end} is not in {text:?}") };
        let modes: Vec<&str> = modes.split_whitespace().collect();
        for mode in ["icanon", "echo", "isig", "icrnl"] {
            assert!(modes.contains(&mode), "{mode} is not as it was: {modes:?}");
        }
        let [shown, hidden] = ["\u{1b}[?25h", "\u{1b}[?25l"].map(|change| text.rfind(change));
        assert!(shown > hidden, "the cursor is still hidden: {text:?}");
        let status = tokio::time::timeout(SOON, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success());
        text
    }

    /// What came, escapes included.
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.came).into_owned()
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + SOON;
        while !is_so(self) {
            assert!(self.reads(deadline).await, "waited for {what:?} in vain:\n{}", screen(&self.text()));
        }
    }

    /// Reads on; `false` at the end, or when it is time.
    async fn reads(&mut self, deadline: Instant) -> bool {
        let mut more = [0; 4096];
        match timeout_at(deadline, self.screen.read(&mut more)).await {
            Ok(Ok(read)) if read > 0 => {
                self.came.extend_from_slice(&more[..read]);
                true
            }
            _ => false,
        }
    }
}

/// The alternate screen as it looks after all that came: what is printed stands where the cursor was put.
fn screen(text: &str) -> String {
    let Some((_, text)) = text.split_once(ALTERNATE[0]) else { return String::new() };
    let mut cells = [[' '; 80]; 24];
    let (mut row, mut column) = (0, 0);
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        if next != '\u{1b}' {
            if let Some(cell) = cells.get_mut(row).and_then(|line: &mut [char; 80]| line.get_mut(column)) {
                *cell = next;
            }
            column += 1;
            continue;
        }
        let mut sequence = String::new();
        let end = rest.by_ref().find(|part| {
            sequence.extend(Some(*part).filter(|part| !part.is_ascii_alphabetic()));
            part.is_ascii_alphabetic()
        });
        let place = sequence.strip_prefix('[').and_then(|place| place.split_once(';'));
        match (end, place) {
            (Some('H'), Some((to_row, to_column))) => {
                let from_zero = |number: &str| number.parse::<usize>().unwrap().saturating_sub(1);
                (row, column) = (from_zero(to_row), from_zero(to_column));
            }
            (Some('J'), _) => cells = [[' '; 80]; 24],
            _ => {}
        }
    }
    cells.map(|line| line.iter().collect::<String>().trim_end().to_owned()).join("\n")
}
