//! Lines of logs, as they are told.

use async_graphql::SimpleObject;

use crate::logs::{LogItem, LogLine};

/// A line of a log.
#[derive(Debug, SimpleObject)]
pub(crate) struct LogEntry {
    content: String,
    pod_name: Option<String>,
    timestamp: Option<String>,
}

/// An item of a stream of lines.
#[derive(Debug, SimpleObject, Default)]
pub(crate) struct ApplicationLogsResponse {
    data: Option<LogEntry>,
    error: Option<String>,
    done: Option<bool>,
}

/// A line of the log of a workflow's pod.
#[derive(Debug, SimpleObject)]
pub(crate) struct WorkflowLogEntry {
    pod_name: String,
    timestamp: Option<String>,
    content: String,
}

/// An item of a stream of lines.
#[derive(Debug, SimpleObject, Default)]
pub(crate) struct WorkflowLogsResponse {
    data: Option<WorkflowLogEntry>,
    error: Option<String>,
    done: Option<bool>,
}

impl From<LogItem> for ApplicationLogsResponse {
    fn from(item: LogItem) -> Self {
        match item {
            LogItem::Line(LogLine { content, pod_name, timestamp }) => {
                Self { data: Some(LogEntry { content, pod_name, timestamp }), ..Self::default() }
            }
            LogItem::End(error) => Self { error, done: Some(true), ..Self::default() },
        }
    }
}

impl From<LogItem> for WorkflowLogsResponse {
    fn from(item: LogItem) -> Self {
        match item {
            LogItem::Line(LogLine { content, pod_name, timestamp }) => {
                let pod_name = pod_name.unwrap_or_default();
                Self { data: Some(WorkflowLogEntry { pod_name, timestamp, content }), ..Self::default() }
            }
            LogItem::End(error) => Self { error, done: Some(true), ..Self::default() },
        }
    }
}
