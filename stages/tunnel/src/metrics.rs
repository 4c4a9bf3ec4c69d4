//! What a server counts, and what a client does.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// Why somebody was refused, for the metric and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Credential,
    Revoked,
    Name,
    Taken,
    Superseded,
    Protocol,
    Address,
}

impl Refusal {
    const ALL: [Self; 7] = [
        Self::Credential,
        Self::Revoked,
        Self::Name,
        Self::Taken,
        Self::Superseded,
        Self::Protocol,
        Self::Address,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Credential => "credential",
            Self::Revoked => "revoked",
            Self::Name => "name",
            Self::Taken => "taken",
            Self::Superseded => "superseded",
            Self::Protocol => "protocol",
            Self::Address => "address",
        }
    }
}

/// How a visitor's request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    NoTunnel,
    Refused,
    Full,
    Unreachable,
    Late,
}

impl Outcome {
    const ALL: [Self; 6] =
        [Self::Answered, Self::NoTunnel, Self::Refused, Self::Full, Self::Unreachable, Self::Late];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::NoTunnel => "no_tunnel",
            Self::Refused => "refused",
            Self::Full => "full",
            Self::Unreachable => "unreachable",
            Self::Late => "late",
        }
    }
}

/// What a server counts. All series are there from the start.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub(crate) tunnels: IntGauge,
    requests: IntCounterVec,
    refused: IntCounterVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let tunnels =
            IntGauge::new("gitops_runtime_tunnel_server_tunnels", "Tunnels that are connected here")?;
        let requests = IntCounterVec::new(
            Opts::new(
                "gitops_runtime_tunnel_server_requests_total",
                "Requests of visitors by how they ended",
            ),
            &["outcome"],
        )?;
        let refused = IntCounterVec::new(
            Opts::new(
                "gitops_runtime_tunnel_server_refused_total",
                "Clients and visitors that were refused, by why",
            ),
            &["reason"],
        )?;
        for outcome in Outcome::ALL {
            requests.with_label_values(&[outcome.as_str()]);
        }
        for reason in Refusal::ALL {
            refused.with_label_values(&[reason.as_str()]);
        }
        registry.register(Box::new(tunnels.clone()))?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(refused.clone()))?;
        Ok(Self { tunnels, requests, refused })
    }

    pub(crate) fn ended(&self, outcome: Outcome) {
        self.requests.with_label_values(&[outcome.as_str()]).inc();
    }

    pub(crate) fn refused(&self, why: Refusal) {
        self.refused.with_label_values(&[why.as_str()]).inc();
    }
}

/// How a visitor who came through fared at the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    Led,
    Unreachable,
}

impl Visit {
    const ALL: [Self; 2] = [Self::Led, Self::Unreachable];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Led => "led",
            Self::Unreachable => "unreachable",
        }
    }
}

/// What a client counts. All series are there from the start.
#[derive(Debug, Clone)]
pub(crate) struct ClientMetrics {
    pub(crate) connections: IntGauge,
    pub(crate) failures: IntCounter,
    visits: IntCounterVec,
}

impl ClientMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let connections = IntGauge::new(
            "gitops_runtime_tunnel_client_connections",
            "Connections to the server that visitors are led through",
        )?;
        let failures = IntCounter::new(
            "gitops_runtime_tunnel_client_failures_total",
            "Connections to the server that broke, or could not be made",
        )?;
        let visits = IntCounterVec::new(
            Opts::new(
                "gitops_runtime_tunnel_client_visits_total",
                "Connections of visitors by whether the service was reached",
            ),
            &["outcome"],
        )?;
        for outcome in Visit::ALL {
            visits.with_label_values(&[outcome.as_str()]);
        }
        registry.register(Box::new(connections.clone()))?;
        registry.register(Box::new(failures.clone()))?;
        registry.register(Box::new(visits.clone()))?;
        Ok(Self { connections, failures, visits })
    }

    pub(crate) fn visited(&self, outcome: Visit) {
        self.visits.with_label_values(&[outcome.as_str()]).inc();
    }
}
