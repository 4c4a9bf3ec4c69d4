//! What brings visitors in, and the traps of each kind.

/// A kind of entrance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    /// ingress-nginx, of the Kubernetes project.
    Community,
    /// That of NGINX's makers.
    Nginx,
    Traefik,
    Alb,
    Ambassador,
    /// Istio as a controller of Ingresses.
    IstioIngress,
    /// A VirtualService of Istio.
    Istio,
    /// An HTTPRoute of whatever gateway.
    Gateway,
    Tunnel,
    Unknown,
}

impl Controller {
    /// By the name in an IngressClass.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "k8s.io/ingress-nginx" | "k8s.io/ingress-nginx-codefresh" => Self::Community,
            "nginx.org/ingress-controller" => Self::Nginx,
            "traefik.io/ingress-controller" => Self::Traefik,
            "ingress.k8s.aws/alb" => Self::Alb,
            "getambassador.io/ingress-controller" => Self::Ambassador,
            "istio.io/ingress-controller" => Self::IstioIngress,
            _ => Self::Unknown,
        }
    }

    /// What makes an Ingress say where it is.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Community => {
                "see kubectl get service --all-namespaces for the controller's external address; start the controller \
                 with --publish-service=<namespace>/<service>, and without load balancers with --report-node-internal-ip-address"
            }
            Self::Nginx => {
                "start the controller with -report-ingress-status and -external-service=<service> (in its chart: \
                 controller.reportIngressStatus.enable=true)"
            }
            Self::Traefik => {
                "set providers.kubernetesIngress.publishedService.enabled=true in Traefik's chart, and see that its \
                 Service has an external address"
            }
            Self::Alb => {
                "see kubectl describe ingress: the load balancer's controller says there what it lacks: subnets with \
                 tags, rights, or a certificate for HTTPS"
            }
            Self::Ambassador => {
                "label the Service of Ambassador app.kubernetes.io/component=ambassador-service: it takes the address \
                 from there"
            }
            _ => "see the log of its controller, and whether its Service has an external address",
        }
    }

    /// What makes a name lead there.
    pub(super) fn name(self, address: Option<&str>) -> String {
        let place = address.map_or_else(|| "the entrance's external address".to_owned(), str::to_owned);
        match self {
            Self::Alb => format!("make an alias record (Route 53: A, alias) from the host to {place}"),
            Self::Tunnel => {
                "the tunnels' server has a record *.<its domain>: see that the host ends with that domain"
                    .to_owned()
            }
            _ => format!("make a DNS record from the host to {place}"),
        }
    }

    /// What gives it a certificate.
    pub(super) fn certificate(self) -> &'static str {
        match self {
            Self::Alb => {
                "request a certificate for the host in ACM, and name it in alb.ingress.kubernetes.io/certificate-arn"
            }
            Self::Nginx => {
                "the master Ingress of the host ends TLS, not the minion: patch its spec.tls with the Secret of the \
                 certificate"
            }
            Self::Istio | Self::Gateway => {
                "the Gateway's listener ends TLS: give it the Secret of a certificate for the host (Istio: \
                 credentialName, in the namespace of its pods)"
            }
            Self::Tunnel => "the tunnels' server ends TLS: it needs a certificate for *.<its domain>",
            _ => {
                "give spec.tls the Secret of a certificate for the host, from an authority that visitors trust"
            }
        }
    }

    /// What lets requests through to the router.
    pub(super) fn route(self) -> &'static str {
        match self {
            Self::Istio | Self::IstioIngress => {
                "Istio takes a VirtualService, not an Ingress: one with the host, its gateway, and the prefixes \
                 /webhooks, /workflows and /app-proxy to the router's Service"
            }
            Self::Gateway => {
                "see kubectl describe httproute, and that a listener of its Gateway takes the host"
            }
            Self::Alb => {
                "set alb.ingress.kubernetes.io/target-type: ip, and see in the target group whether its targets are healthy"
            }
            Self::Nginx => {
                "set nginx.org/mergeable-ingress-type: minion, and see that the host has a master Ingress"
            }
            Self::Tunnel => {
                "see the log of the tunnel's client: another one may hold the name, or its token be refused"
            }
            _ => {
                "see that the host and the prefixes /webhooks, /workflows and /app-proxy lead to the router's Service"
            }
        }
    }

    /// What lets WebSockets through.
    pub(super) fn socket(self) -> &'static str {
        match self {
            Self::Nginx => "set nginx.org/websocket-services to the name of the router's Service",
            Self::Ambassador => "set allow_upgrade: [websocket] in the Mapping",
            Self::Istio | Self::IstioIngress => {
                "see that no EnvoyFilter or DestinationRule (h2UpgradePolicy) turns upgrades off"
            }
            Self::Community => {
                "see that the load balancer before it passes TCP (AWS: \
                 service.beta.kubernetes.io/aws-load-balancer-backend-protocol: tcp), not HTTP"
            }
            _ => {
                "let each proxy before the router pass Upgrade: websocket (Contour: enableWebsockets: true; classic load \
                 balancers: TCP, not HTTP)"
            }
        }
    }

    /// What lets events through as they come.
    pub(super) fn events(self) -> &'static str {
        match self {
            Self::Community => {
                "set nginx.ingress.kubernetes.io/proxy-buffering: \"off\" and proxy-read-timeout: \"3600\""
            }
            Self::Nginx => "set nginx.org/proxy-buffering: \"False\" and nginx.org/proxy-read-timeout: 3600s",
            Self::Traefik => "take the buffering middleware away from the router's Ingress",
            Self::Alb => {
                "raise alb.ingress.kubernetes.io/load-balancer-attributes: idle_timeout.timeout_seconds=3600, and see what \
                 stands before it: the balancer itself holds nothing back"
            }
            _ => {
                "turn the buffering of answers off in each proxy before the router, and let idle streams stay open for an hour"
            }
        }
    }
}
