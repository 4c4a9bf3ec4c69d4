//! A resource reporter while Prometheus looks on: one kind is there with an object that idles, one is not installed, and one
//! may not be read.

use std::net::SocketAddr;

use loadtest::process::{Process, Start};
use loadtest::sim::Simulation;
use loadtest::sim::kube::Collection;
use serde_json::json;

use crate::prometheus::SOON;

/// It, while it runs.
pub(crate) struct Kinds {
    process: Process,
    /// Where it serves its figures.
    pub(crate) target: SocketAddr,
}

impl Kinds {
    /// Starts it on the API server of a simulation.
    pub(crate) async fn start(simulation: &Simulation) -> Self {
        let kube = &simulation.kube;
        kube.define(Collection::Workflows, false);
        kube.forbid(Collection::Rollouts, true);
        let idle = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "former", "namespace": "shop"},
            "spec": {"replicas": 0}, "status": {"replicas": 0},
        });
        kube.apply(Collection::ReplicaSets, idle).unwrap();
        let settings = json!({
            "serve": {"address": "127.0.0.1:0", "metricsAddress": ""},
            "resources": {
                "kinds": ["rollouts.argoproj.io", "replicasets.apps", "workflows.argoproj.io"],
                "applications": false,
            },
        });
        let start = Start {
            program: env!("CARGO_BIN_EXE_gitops-runtime").into(),
            args: vec!["resource-reporter".into()],
            env: simulation.environment(&settings).unwrap(),
            directory: simulation.directory().to_path_buf(),
        };
        let mut process = Process::start(&start).unwrap();
        let target = process.address(SOON).await.unwrap();
        Self { process, target }
    }

    /// What it exposes.
    pub(crate) async fn page(&self) -> String {
        reqwest::get(format!("http://{}/metrics", self.target)).await.unwrap().text().await.unwrap()
    }

    pub(crate) async fn end(self) {
        self.process.kill().await.unwrap();
    }
}
