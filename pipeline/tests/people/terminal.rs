//! Commands on a terminal: as wide as that, with colours unless nobody wants them, and with a key that is not shown.

use std::process::Stdio;

use tokio::io::AsyncReadExt as _;
use tokio::io::AsyncWriteExt as _;

use crate::desk::Desk;
use crate::platform::{PROGRAM, SOON};

/// Runs a command on a terminal of so many columns, and types `keys` once it shows `prompt`; what stood on the terminal.
pub(crate) async fn on_terminal(
    desk: &Desk,
    columns: u16,
    arguments: &str,
    more: &[(&str, &str)],
    typed: Option<(&str, &str)>,
) -> String {
    let shell = format!(r#"stty rows 24 cols {columns}; "$PROGRAM" {arguments}; echo "code $?.""#);
    let mut command = desk.command("script");
    let command = command.args(["--quiet", "--flush", "--command", &shell, "/dev/null"]);
    let command = command.env("SHELL", "/bin/sh").env("TERM", "xterm-256color").env("PROGRAM", PROGRAM);
    let command = command.envs(more.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let reading = async {
        let (mut text, mut typed, mut piece) = (String::new(), typed, [0; 4_096]);
        while !text.contains("\ncode ") {
            let read = screen.read(&mut piece).await.unwrap();
            assert!(read > 0, "it ended with {text}");
            text += &String::from_utf8_lossy(&piece[..read]);
            if let Some((_, answer)) = typed.filter(|(prompt, _)| text.contains(prompt)) {
                keys.write_all(answer.as_bytes()).await.unwrap();
                keys.flush().await.unwrap();
                typed = None;
            }
        }
        text
    };
    let text = tokio::time::timeout(SOON, reading).await.unwrap();
    let _ = child.kill().await;
    text.replace('\r', "")
}

#[tokio::test]
async fn a_table_fits_its_terminal_and_colours_are_on_terminals_alone() {
    let desk = Desk::signed_in().await;
    for columns in [60, 80, 160] {
        let shown = on_terminal(&desk, columns, "app list", &[("NO_COLOR", "1")], None).await;
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        let lines: Vec<&str> = shown.lines().take_while(|line| !line.starts_with("code")).collect();
        assert_eq!(lines.len(), 3, "{shown}");
        for line in &lines {
            assert!(line.chars().count() <= usize::from(columns), "{columns}: {line}");
        }
        assert!(lines[1].contains("OutOfSync"), "{shown}");
    }
    let coloured = on_terminal(&desk, 100, "app list", &[], None).await;
    assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    let dumb = on_terminal(&desk, 100, "app list", &[("TERM", "dumb")], None).await;
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");
    assert!(!desk.run(&["app", "list"]).await.done().contains('\u{1b}'));
    desk.stop().await;
}

#[tokio::test]
async fn help_fits_its_terminal_and_is_no_wider_than_is_read_with_ease() {
    let desk = Desk::start().await;
    for (columns, widest) in [(60, 60), (200, 110)] {
        for command in ["--help", "app --help", "app sync -h", "help runtime install", "git token"] {
            let shown = on_terminal(&desk, columns, command, &[("NO_COLOR", "1")], None).await;
            let lines: Vec<&str> = shown.lines().take_while(|line| !line.starts_with("code ")).collect();
            assert!(lines.len() > 5, "{shown}");
            // A word that is longer alone, and the form of a command, are left to the terminal.
            let folds = |line: &&&str| !line.starts_with("Usage: ") && line.split_whitespace().count() > 1;
            let width = lines.iter().filter(folds).map(|line| line.chars().count()).max().unwrap();
            assert!(width <= widest && width + 20 > widest, "{columns}: {command}: {width}: {shown}");
        }
    }
    desk.stop().await;
}

#[tokio::test]
async fn whoever_ends_the_prompt_with_ctrl_c_has_a_terminal_that_shows_what_is_typed() {
    let desk = Desk::start().await;
    let url = desk.platform.url();
    let prompt = format!("API key of {url}, made at {url}/settings: ");
    // The shell of the test outlives Ctrl-C, and is one that leaves the terminal as it finds it.
    let line = format!(r#"--version; trap : INT; "$PROGRAM" login {url}; echo "it ended with $?"; stty -a"#);
    let shown = on_terminal(&desk, 100, &line, &[], Some((&prompt, "\u{3}"))).await;
    let said =
        "gitops-runtime: cannot read the key from the terminal: operation interrupted\nit ended with 1\n";
    assert!(shown.contains(&format!("{prompt}\n{said}")), "{shown}");
    assert!(shown.contains(" echo ") && !shown.contains("-echo "), "{shown}");
    desk.stop().await;
}

#[tokio::test]
async fn a_key_is_asked_for_and_not_shown_while_it_is_typed() {
    let desk = Desk::start().await;
    let url = desk.platform.url();
    let prompt = format!("API key of {url}, made at {url}/settings: ");
    let line = format!("{}\n", desk.key);
    let shown =
        on_terminal(&desk, 100, &format!("login {url} --name prod"), &[], Some((&prompt, &line))).await;
    assert!(
        shown.contains(&format!("signed in to {url} as ada, an admin; the context is prod\n")),
        "{shown}"
    );
    assert!(shown.ends_with("code 0.\n") && !shown.contains("goak_"), "{shown}");
    assert_eq!(desk.run(&["context", "current"]).await.done(), "prod\n");
    desk.stop().await;
}
