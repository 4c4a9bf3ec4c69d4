//! Lines of logs, as they are told.

use async_graphql::SimpleObject;

use crate::component_logs::{ComponentItem, ComponentLine};
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

/// A line of one of the runtime's own logs.
#[derive(Debug, SimpleObject)]
pub(crate) struct ComponentLogEntry {
    content: String,
    component_name: String,
    pod_name: Option<String>,
    container_name: Option<String>,
    timestamp: Option<String>,
}

/// An item of a stream of lines; an error that is not `done` is of one log, and the others go on.
#[derive(Debug, SimpleObject, Default)]
pub(crate) struct ComponentLogResponse {
    data: Option<ComponentLogEntry>,
    error: Option<String>,
    done: Option<bool>,
}

impl From<ComponentItem> for ComponentLogResponse {
    fn from(item: ComponentItem) -> Self {
        match item {
            ComponentItem::Line(ComponentLine { log, timestamp, content }) => {
                let (pod_name, container_name) = (Some(log.pod), Some(log.container));
                let component_name = log.component;
                let data = ComponentLogEntry { content, component_name, pod_name, container_name, timestamp };
                Self { data: Some(data), ..Self::default() }
            }
            ComponentItem::Unread(error) => Self { error: Some(error), ..Self::default() },
            ComponentItem::End(error) => Self { error, done: Some(true), ..Self::default() },
        }
    }
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
