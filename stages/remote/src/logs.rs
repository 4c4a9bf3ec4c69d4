//! Lines of logs, as they come: of an application's pods, or a workflow's.

use serde::Deserialize;
use serde_json::Value;

use crate::error::RemoteError;
use crate::platform::read;
use crate::proxy::Proxy;
use crate::show::{Screen, plain};

/// Which lines are asked for, and how they are shown.
pub(crate) struct Logs<'a> {
    /// A subscription of `field`.
    pub(crate) query: &'static str,
    pub(crate) field: &'static str,
    pub(crate) variables: Value,
    /// What wrote them, for messages.
    pub(crate) of: &'a str,
    /// Show when each was written.
    pub(crate) timestamps: bool,
    /// Show which pod wrote each.
    pub(crate) pods: bool,
}

#[derive(Deserialize)]
struct LogMessage {
    data: Option<Entry>,
    error: Option<String>,
    done: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    content: String,
    pod_name: Option<String>,
    timestamp: Option<String>,
}

impl Logs<'_> {
    /// Shows them until they end, or until Ctrl-C.
    pub(crate) async fn show(self, proxy: &Proxy, screen: &Screen) -> Result<(), RemoteError> {
        let reading = async {
            let mut messages = proxy.subscribe("read logs", self.query, self.variables.clone()).await?;
            while let Some(mut item) = messages.next().await? {
                let piece: LogMessage = read(item.remove(self.field).unwrap_or_default())?;
                if let Some(error) = piece.error.filter(|error| !error.is_empty()) {
                    return Err(RemoteError::Missing(format!(
                        "the logs of {} cannot be read: {}",
                        self.of,
                        plain(&error)
                    )));
                }
                if let Some(entry) = piece.data {
                    screen.say(&self.line(&entry))?;
                }
                if piece.done == Some(true) {
                    return Ok(());
                }
            }
            // A proxy on the way may have closed the stream, without a word.
            let said = format!("the logs of {} broke off before their end: ask for them again", self.of);
            Err(RemoteError::Missing(said))
        };
        tokio::select! {
            ended = reading => ended,
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    }

    fn line(&self, entry: &Entry) -> String {
        let pod = entry.pod_name.as_deref().filter(|_| self.pods).map(|pod| format!("[{}] ", plain(pod)));
        let at = entry.timestamp.as_deref().filter(|_| self.timestamps).map(|at| format!("{} ", plain(at)));
        // What a program wrote is for the terminal that it was meant for, if for any.
        let content = crate::show::lines(entry.content.trim_end_matches('\n'));
        format!("{}{}{content}\n", pod.unwrap_or_default(), at.unwrap_or_default())
    }
}
