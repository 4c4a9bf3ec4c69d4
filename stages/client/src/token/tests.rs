use std::path::Path;
use std::time::Duration;

use super::*;
use crate::token_file::POLL;

async fn text(token: &Token) -> String {
    token.read().await.unwrap().expose_secret().to_owned()
}

/// As a kubelet does it: written beside, then moved into place.
fn replace(path: &Path, content: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, content).unwrap();
    std::fs::rename(beside, path).unwrap();
}

#[tokio::test]
async fn a_replaced_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    replace(&path, "first\n");
    let token = Token::file(&path);
    assert_eq!(text(&token).await, "first");
    replace(&path, "\u{feff}as Windows writes it\r\n");
    assert_eq!(text(&token).await, "as Windows writes it");
    replace(&path, " other\n");
    assert_eq!(text(&token).await, "other");
    assert_eq!(token.header("Bearer ").await.unwrap().to_str().unwrap(), "Bearer other");
    assert_eq!(token.header("").await.unwrap().to_str().unwrap(), "other");
}

#[tokio::test]
async fn a_token_of_two_words_names_its_scheme_itself() {
    for (token, header) in [("abc", "Bearer abc"), ("Bearer abc", "Bearer abc"), ("Splunk a-b", "Splunk a-b")]
    {
        let value = Token::literal(token).header_of_any_scheme().await.unwrap();
        assert!(value.is_sensitive());
        assert_eq!(value.to_str().unwrap(), header);
    }
}

#[tokio::test]
async fn a_file_that_vanishes_leaves_the_token_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    replace(&path, "first");
    let token = Token::file(&path);
    assert_eq!(text(&token).await, "first");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text(&token).await, "first");
    replace(&path, "\n");
    assert_eq!(text(&token).await, "first");
    replace(&path, "second");
    assert_eq!(text(&token).await, "second");
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let shown = path.display();
    let refusal = async || Token::file(&path).header("Bearer ").await.unwrap_err().to_string();
    assert_eq!(refusal().await, format!("cannot read the token file {shown}"));
    replace(&path, " \n");
    assert_eq!(refusal().await, format!("the token file {shown} is empty"));
    replace(&path, &"x".repeat(64 * 1024 + 1));
    assert_eq!(refusal().await, format!("the token file {shown} is larger than 65536 bytes"));
    replace(&path, "two\nlines");
    assert_eq!(refusal().await, "the token holds characters that no header may hold");
    assert_eq!(Token::literal("a\u{7f}").header("").await.unwrap_err().to_string(), refusal().await);
}

#[tokio::test]
async fn debug_shows_no_token() {
    let token = Token::literal("canary");
    assert!(!format!("{token:?}").contains("canary"));
    assert_eq!(format!("{:?}", token.header("Bearer ").await.unwrap()), "Sensitive");
}

/// Fails unless `changed` returns.
async fn returns(changed: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(60), changed).await.expect("a change is noticed");
}

/// Fails if `changed` returns while it can look several times.
async fn waits(changed: impl Future<Output = ()>) {
    tokio::time::timeout(POLL * 5, changed).await.expect_err("nothing has changed");
}

#[tokio::test]
async fn a_change_is_noticed_once_the_content_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    replace(&path, "first\n");
    let token = Token::file(&path);
    let waiting = tokio::spawn({
        let token = token.clone();
        async move { token.changed().await }
    });
    waits(token.changed()).await;
    // Another file, other times, white space: the same token.
    replace(&path, "  first");
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    waits(token.changed()).await;
    // Nothing to try with.
    replace(&path, "\n");
    waits(token.changed()).await;
    std::fs::remove_file(&path).unwrap();
    waits(token.changed()).await;
    assert!(!waiting.is_finished());
    replace(&path, "other");
    returns(async { waiting.await.unwrap() }).await;
}

#[tokio::test]
async fn a_change_before_the_call_is_not_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    replace(&path, "first");
    let token = Token::file(&path);
    assert_eq!(text(&token).await, "first");
    replace(&path, "other");
    returns(token.changed()).await;
    // Told once, although nobody has tried the other one yet.
    waits(token.changed()).await;
    replace(&path, "first");
    returns(token.changed()).await;
    replace(&path, "third");
    assert_eq!(text(&token).await, "third");
    returns(token.changed()).await;
    waits(token.changed()).await;
}

#[tokio::test]
async fn an_edit_in_place_and_a_mounted_secret_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    // As a kubelet lays it out: the file is a link through `..data`, which is replaced as a whole.
    let (path, data) = (folder.path().join("token"), folder.path().join("..data"));
    for (version, content) in [("..1", "first"), ("..2", "other")] {
        std::fs::create_dir(folder.path().join(version)).unwrap();
        std::fs::write(folder.path().join(version).join("token"), content).unwrap();
    }
    std::os::unix::fs::symlink("..1", &data).unwrap();
    std::os::unix::fs::symlink("..data/token", &path).unwrap();
    let token = Token::file(&path);
    assert_eq!(text(&token).await, "first");
    let swapped = async {
        std::os::unix::fs::symlink("..2", folder.path().join("..new")).unwrap();
        std::fs::rename(folder.path().join("..new"), &data).unwrap();
        token.changed().await;
    };
    returns(swapped).await;
    assert_eq!(text(&token).await, "other");

    // As long as before, and with the time it had before.
    let times = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, "third").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(times).unwrap();
    returns(token.changed()).await;
    assert_eq!(text(&token).await, "third");
}

#[tokio::test]
async fn a_file_that_appears_is_a_change_and_a_configured_token_never_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let token = Token::file(&path);
    assert!(token.read().await.is_err());
    waits(token.changed()).await;
    let waiting = tokio::spawn({
        let token = token.clone();
        async move { token.changed().await }
    });
    waits(token.changed()).await;
    replace(&path, "first");
    returns(async { waiting.await.unwrap() }).await;
    waits(Token::literal("x").changed()).await;
}
