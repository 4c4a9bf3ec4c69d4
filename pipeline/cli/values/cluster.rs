//! The cluster of a kubeconfig, as the doctor asks it.

use std::path::PathBuf;

use anyhow::Context as _;
use pipeline_doctor::Cluster;
use serde_json::Value;
use stages_kube::{QuestionError, Reader};
use tokio::runtime::Runtime;

use crate::cli::single_thread;

/// A cluster, and the runtime in which its requests wait.
pub(crate) struct KubeconfigCluster {
    runtime: Runtime,
    reader: Reader,
    /// Why it did not answer the first request; it is not asked again, since each request would wait for a timeout.
    away: Option<String>,
}

impl KubeconfigCluster {
    /// The cluster of a kubeconfig, or of the pod; `None` where there is none.
    pub(crate) fn find(path: Option<PathBuf>, context: Option<String>) -> anyhow::Result<Option<Self>> {
        let runtime = single_thread()?;
        let is_named = path.is_some() || context.is_some();
        let cluster = if is_named {
            stages_kube::Cluster::Kubeconfig { path, context }
        } else {
            stages_kube::Cluster::Infer
        };
        match runtime.block_on(cluster.reader()) {
            Ok(reader) => {
                let mut asked = Self { runtime, reader, away: None };
                asked.away = asked.get("/version").err().map(|why| format!("offline: {why}"));
                Ok(Some(asked))
            }
            // A kubeconfig that was named must be usable.
            Err(error) if is_named => Err(error).context("find the cluster"),
            Err(_) => Ok(None),
        }
    }
}

impl KubeconfigCluster {
    /// Merges a patch into the object at a path, or asks what would come of it.
    pub(crate) fn merge(&self, path: &str, patch: &Value, dry: bool) -> Result<Value, QuestionError> {
        self.runtime.block_on(self.reader.merge(path, patch, dry))
    }
}

impl Cluster for KubeconfigCluster {
    fn get(&self, path: &str) -> Result<Option<Value>, String> {
        self.away.clone().map_or(Ok(()), Err)?;
        self.runtime.block_on(self.reader.get(path)).map_err(|error| said(&error))
    }

    fn metadata(&self, path: &str) -> Result<Option<Value>, String> {
        self.away.clone().map_or(Ok(()), Err)?;
        self.runtime.block_on(self.reader.metadata(path)).map_err(|error| said(&error))
    }

    fn may(&self, verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> Result<bool, String> {
        self.away.clone().map_or(Ok(()), Err)?;
        self.runtime.block_on(self.reader.may(verb, group, resource, namespace)).map_err(|error| said(&error))
    }
}

fn said(error: &QuestionError) -> String {
    error.to_string()
}
