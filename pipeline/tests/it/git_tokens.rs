//! What becomes of a token of a Git provider that somebody gives by way of the platform: it passes, and stands nowhere but sealed.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stages_platform_store::backup;

use crate::killed_commits::{TOKEN, World, place};

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_passes_through_the_platform_stands_in_no_file_log_or_backup() {
    let world = World::start().await;
    let runtime = world.up().await;
    let ask =
        async |query: &str| serde_json::from_str::<Value>(&world.ask_the_platform(query).await).unwrap();
    let done = ask(&world.add()).await;
    assert_eq!(done["data"], json!({"addGitIntegration": {"name": "default"}}), "{done}");
    let register =
        format!(r#"mutation {{ registerToGitIntegration(args: {{token: "{TOKEN}"}}) {{ name }} }}"#);
    let done = ask(&register).await;
    assert_eq!(done["data"], json!({"registerToGitIntegration": {"name": "default"}}), "{done}");
    let commit = r#"mutation { commitFiles(args: {repo: "team/mono", files: [{path: "a.yaml", data: "a: 1"}]}) { sha } }"#;
    let done = ask(commit).await;
    assert!(done["data"]["commitFiles"]["sha"].is_string(), "it is kept, and opens the repository: {done}");
    // What fails is told, and not with the token.
    for wrong in [
        register.replace("name }", "nothing }"),
        register.replace("args: {", "args: {other: 1, "),
        register.replace(") { name } }", ""),
    ] {
        let refused = world.ask_the_platform(&wrong).await;
        assert!(!refused.contains(TOKEN), "{refused}");
    }
    let copy = world.folder.path().join("backup.db");
    backup(&place(world.folder.path()), &copy).await.unwrap();
    let lines = runtime.process().lines().clone();
    runtime.stop().await;

    let encoded = STANDARD.encode(TOKEN);
    let secret = [TOKEN, &encoded];
    let all = files(world.folder.path());
    let (mut acts, mut clones) = (0, 0);
    for path in &all {
        let bytes = std::fs::read(path).unwrap();
        assert!(secret.iter().all(|secret| !holds(&bytes, secret)), "{} holds the token", path.display());
        acts += usize::from(holds(&bytes, "registerToGitIntegration"));
        clones += usize::from(path.ends_with("config") && holds(&bytes, "remote"));
    }
    assert!(acts >= 2, "the audit log of store and backup was looked at, among {} files", all.len());
    let log = lines.all().join("\n");
    assert!(log.contains("committed") && secret.iter().all(|secret| !log.contains(secret)), "{log}");
    let kept = Value::from_iter(world.secrets.lock().unwrap().clone());
    let text = kept.to_string();
    assert!(
        !text.is_empty() && secret.iter().all(|secret| !text.contains(secret)),
        "the cluster holds it sealed"
    );
    println!("{} files, {clones} of them with a remote of Git", all.len());
}
