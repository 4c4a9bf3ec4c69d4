//! Simulators of a Kubernetes API server, an Argo CD server and a platform: real HTTP servers.
