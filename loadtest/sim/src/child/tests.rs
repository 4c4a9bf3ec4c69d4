use super::*;

fn shell(directory: &Path, script: &str) -> Spec {
    Spec::new("program", "sh", directory).args(["-c", script])
}

/// Waits until its log holds `text`.
async fn logs(child: &Child, text: &str) {
    let said = async || child.last_lines(100).iter().any(|line| line == text);
    child.ready(Duration::from_secs(20), said).await.unwrap();
}

#[tokio::test]
async fn a_program_gets_its_arguments_and_its_environment_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let spec = Spec::new("env", "env", directory.path()).env("GREETING", "good day");
    let child = Child::start(&spec).unwrap();
    assert!(child.ended().await.unwrap().success());
    let mut lines = child.last_lines(100);
    lines.retain(|line| !line.starts_with("PATH="));
    lines.sort();
    assert_eq!(lines, ["GREETING=good day".to_owned(), format!("HOME={}", directory.path().display())]);
}

#[tokio::test]
async fn a_killed_program_is_started_again_with_the_same_log() {
    let directory = tempfile::tempdir().unwrap();
    let child = Child::start(&shell(directory.path(), "echo life $$; exec sleep 600")).unwrap();
    let first = child.id();
    logs(&child, &format!("life {first}")).await;
    assert!(child.is_running());

    child.kill().await.unwrap();
    assert!(!child.is_running());
    assert!(!is_alive(first));
    child.kill().await.unwrap();

    child.restart().await.unwrap();
    let second = child.id();
    assert_ne!(first, second);
    logs(&child, &format!("life {second}")).await;
    assert_eq!(child.last_lines(2), [format!("life {first}"), format!("life {second}")]);

    child.restart().await.unwrap();
    assert!(!is_alive(second));
    assert!(child.is_running());
}

#[tokio::test]
async fn a_program_may_end_in_its_own_way() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap 'echo ended; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let child = Child::start(&shell(directory.path(), script)).unwrap();
    logs(&child, "ready").await;
    child.stop().await.unwrap();
    assert_eq!(child.ended().await.unwrap().code(), Some(3));
    assert_eq!(child.last_lines(1), ["ended"]);
}

#[tokio::test]
async fn a_program_that_will_not_end_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut spec = shell(directory.path(), "trap '' TERM; echo ready; while :; do sleep 0.01; done");
    spec.patience = Duration::from_millis(200);
    let child = Child::start(&spec).unwrap();
    logs(&child, "ready").await;
    child.stop().await.unwrap();
    assert_eq!(child.ended().await.unwrap().code(), None);
    assert!(!is_alive(child.id()));
}

#[tokio::test]
async fn a_program_ends_when_nobody_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let child = Child::start(&shell(directory.path(), "exec sleep 600")).unwrap();
    let id = child.id();
    assert!(is_alive(id));
    drop(child);
    let gone = async {
        while is_alive(id) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap();
}

#[tokio::test]
async fn a_program_that_ends_early_is_told_with_the_end_of_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let script = "for i in $(seq 20); do echo line $i; done; echo no such flag >&2; exit 2";
    let child = Child::start(&shell(directory.path(), script)).unwrap();
    let error = child.ready(Duration::from_secs(20), async || false).await.unwrap_err().to_string();
    let log = directory.path().join("program.log");
    let lines: Vec<String> = (10..=20).map(|i| format!("line {i}")).collect();
    let expected = format!(
        "program ended before it was ready (exit status: 2); the end of {}:\n{}\nno such flag",
        log.display(),
        lines.join("\n")
    );
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_program_that_is_never_ready_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let child = Child::start(&shell(directory.path(), "echo waiting; exec sleep 600")).unwrap();
    logs(&child, "waiting").await;
    let error = child.ready(Duration::from_millis(50), async || false).await.unwrap_err().to_string();
    let log = directory.path().join("program.log");
    assert_eq!(error, format!("program is not ready after 50ms; the end of {}:\nwaiting", log.display()));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let child = Child::start(&Spec::new("absent", "/no/such/program", directory.path())).unwrap();
    let error = child.ready(Duration::from_secs(20), async || false).await.unwrap_err().to_string();
    assert!(error.starts_with("absent ended before it was ready (exit status: 127)"), "{error}");
    assert!(error.contains("/no/such/program"), "{error}");
}
