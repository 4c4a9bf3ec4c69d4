//! Tokens stand in no log, no answer, and nothing that is kept.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use tracing_subscriber::fmt::MakeWriter;

use crate::operations::{OPERATIONS, asked};
use crate::support::Running;
use crate::{argocd, cluster, provider, sealing};

/// Keeps what is logged.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

/// What the whole process logs, from the first call on.
pub(crate) fn logged() -> &'static Kept {
    static LOGGED: OnceLock<Kept> = OnceLock::new();
    LOGGED.get_or_init(|| {
        let kept = Kept::default();
        let subscriber =
            tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(kept.clone());
        tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
        kept
    })
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_token_is_logged_answered_or_recorded_whatever_goes_well_or_wrong() {
    let running = Running::start().await;
    running.register().await;
    let stranger = "goak_canary0of0a0stranger";
    let mut answers = String::new();
    for broken in
        [None, Some((500, format!("it broke: token={}", "c2VjcmV0"))), Some((401, "no session".to_owned()))]
    {
        *running.argocd.broken.lock().unwrap() = broken;
        for (query, ..) in OPERATIONS {
            for token in [stranger, &running.admin, &running.member, &running.runtime] {
                answers += &running
                    .ask(token, &asked(query).replace("PROVIDER", &running.provider.url))
                    .await
                    .to_string();
            }
        }
    }
    // A document that cannot be read is not quoted where a secret stands in it, nor one where that is of a wrong kind.
    for wrong in [
        r#"mutation { registerToGitIntegration(args: {token: "canary-of-git" }"#,
        r#"mutation { registerToGitIntegration(args: {token: "canary-of-git", more: "canary-of-git"}) { name } }"#,
        r#"mutation { registerToGitIntegration(args: {tokenType: "canary-of-git", token: 7}) { name } }"#,
        r#"mutation { registerToGitIntegration(args: {token: "github_pat_canary-of-git"}) { name } }"#,
        r#"mutation { sealSecret(args: {secret: "canary-of-a-secret", namespace: 7}) { output } }"#,
        r#"mutation { sealSecret(args: {secret: "canary-of-a-secret", namespace: "shop"}) { output } }"#,
    ] {
        let answer = running.ask(&running.admin, wrong).await;
        assert!(answer["errors"][0]["message"].is_string(), "{wrong}");
        let answer = answer.to_string();
        assert!(
            !answer.contains(provider::TOKEN) && !answer.contains(sealing::VALUE),
            "a secret stands in {answer}"
        );
    }
    running.platform.abort();
    for (query, ..) in OPERATIONS {
        answers += &running
            .ask(&running.admin, &asked(query).replace("PROVIDER", &running.provider.url))
            .await
            .to_string();
    }
    let recorded: String =
        running.audit(1).await.into_iter().map(|(who, act, what)| format!("{who} {act} {what}\n")).collect();
    let log = String::from_utf8(logged().0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("nobody is let in"), "something was logged");
    let tokens = [
        provider::TOKEN,
        sealing::VALUE,
        argocd::TOKEN,
        cluster::TOKEN,
        stranger,
        &running.admin,
        &running.member,
        &running.runtime,
        &running.reads,
    ];
    for token in tokens {
        for (place, text) in [("the log", &log), ("answers", &answers), ("the audit log", &recorded)] {
            assert!(!text.contains(token), "a token stands in {place}");
        }
    }
}
