//! The metrics of a server and of a client.

use pipeline_core::Families;
use prometheus::{IntCounter, IntCounterVec, IntGauge, Registry};

/// Why a client or a visitor was refused, as the metric and the log say it.
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

/// The metrics of a server. All series are there from the start.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub(crate) tunnels: IntGauge,
    requests: IntCounterVec,
    refused: IntCounterVec,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_tunnel_server_");
        let requests = make.counters("requests_total", "Requests of visitors by how they ended", ["outcome"]);
        for outcome in Outcome::ALL {
            requests.with_label_values(&[outcome.as_str()]);
        }
        let help = "Clients and visitors that were refused, by why";
        let refused = make.counters("refused_total", help, ["reason"]);
        for reason in Refusal::ALL {
            refused.with_label_values(&[reason.as_str()]);
        }
        Self { tunnels: make.gauge("tunnels", "Tunnels that are connected here"), requests, refused }
    }

    pub(crate) fn ended(&self, outcome: Outcome) {
        self.requests.with_label_values(&[outcome.as_str()]).inc();
    }

    pub(crate) fn refused(&self, why: Refusal) {
        self.refused.with_label_values(&[why.as_str()]).inc();
    }
}

/// Whether a visitor who came to the client was led to the service.
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

/// The metrics of a client. All series are there from the start.
#[derive(Debug, Clone)]
pub(crate) struct ClientMetrics {
    pub(crate) connections: IntGauge,
    pub(crate) failures: IntCounter,
    visits: IntCounterVec,
}

impl ClientMetrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let make = Families::new(registry, "gitops_runtime_tunnel_client_");
        let help = "Connections of visitors by whether the service was reached";
        let visits = make.counters("visits_total", help, ["outcome"]);
        for outcome in Visit::ALL {
            visits.with_label_values(&[outcome.as_str()]);
        }
        Self {
            connections: make.gauge("connections", "Connections to the server that visitors are led through"),
            failures: make
                .counter("failures_total", "Connections to the server that broke, or could not be made"),
            visits,
        }
    }

    pub(crate) fn visited(&self, outcome: Visit) {
        self.visits.with_label_values(&[outcome.as_str()]).inc();
    }
}
