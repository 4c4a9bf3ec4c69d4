//! How a runtime that somebody adds is installed.

use std::borrow::Cow;

use stages_platform_store::{is_new_runtime_name, runtime_id};
use url::form_urlencoded;

/// The chart, in a checkout of this repository.
const CHART: &str = "helm/gitops-runtime";
/// The Secret that the chart takes the runtime's token of.
const TOKEN_SECRET: &str = "codefresh-token";
/// The Secret that the chart takes Argo CD's token of.
const ARGO_CD_SECRET: &str = "argocd-token";
/// The account of Argo CD that the runtime reads with.
const ACCOUNT: &str = "gitops-runtime";
/// What it may read at Argo CD: each with what it may do that to.
const READS: &[&str] = &["applications, get, */*"];
/// What its app proxy needs at Argo CD besides: to act, to read logs, and to see the clusters that it tells the platform of.
const ACTS: &[&str] =
    &["applications, sync, */*", "applications, action/*, */*", "logs, get, */*", "clusters, get, *"];
/// The longest address of a registry or a repository, in bytes.
const LONGEST: usize = 400;

/// What somebody says of a runtime that they add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Its name at the platform.
    pub name: String,
    /// It is there already, under that name, which a new one might not be given.
    pub is_adopted: bool,
    /// The namespace that it is installed in.
    pub namespace: String,
    /// The namespace of Argo CD.
    pub argo_cd: String,
    /// The registry that the image was pushed to; empty where nodes have the image.
    pub registry: String,
    /// The Git repository that Argo CD takes the chart of; empty where it was not said.
    pub repository: String,
}

/// Something that is left to do once a runtime reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// What it is for.
    pub what: &'static str,
    /// The command that does it.
    pub command: String,
    /// The role that runs once it is done; `None`: none says so.
    pub role: Option<&'static str>,
}

impl Default for Installation {
    fn default() -> Self {
        Self {
            name: String::new(),
            is_adopted: false,
            namespace: "gitops-runtime".to_owned(),
            argo_cd: "argocd".to_owned(),
            registry: String::new(),
            repository: String::new(),
        }
    }
}

impl Installation {
    /// Reads a form's fields, as `application/x-www-form-urlencoded`; what is left empty has its default.
    #[must_use]
    pub fn of_form(body: &[u8]) -> Self {
        let mut all = Self::default();
        for (field, value) in form_urlencoded::parse(body) {
            let kept = match &*field {
                "name" => &mut all.name,
                "namespace" => &mut all.namespace,
                "argocd" => &mut all.argo_cd,
                "registry" => &mut all.registry,
                "repository" => &mut all.repository,
                "adopted" => {
                    all.is_adopted = value == "on";
                    continue;
                }
                _ => continue,
            };
            let value = value.trim();
            if !value.is_empty() {
                value.clone_into(kept);
            }
        }
        all
    }

    /// Why it cannot be installed as it is said, and which field says so; the name is for the platform to judge.
    #[must_use]
    pub fn refused(&self) -> Option<(&'static str, &'static str)> {
        let no_namespace = "A namespace has lower-case letters, digits and '-', begins and ends with one of the first two, and has at most 63.";
        if !is_label(&self.namespace) {
            return Some(("namespace", no_namespace));
        }
        if !is_label(&self.argo_cd) {
            return Some(("argocd", no_namespace));
        }
        if !is_address(&self.registry) || self.registry.contains("://") {
            return Some((
                "registry",
                "A registry is a host and perhaps a path, such as registry.example.com/platform.",
            ));
        }
        let is_repository =
            ["https://", "http://", "ssh://", "git@"].iter().any(|way| self.repository.starts_with(way));
        let is_well = self.repository.is_empty() || (is_repository && is_address(&self.repository));
        if !is_well {
            return Some((
                "repository",
                "A Git repository is an address, such as https://git.example.com/platform/gitops-runtime.git.",
            ));
        }
        None
    }

    /// Why no new runtime is called so. One that is there already is called as it is, as far as any can be.
    #[must_use]
    pub fn refused_as_new(&self) -> Option<(&'static str, &'static str)> {
        let why = "A new runtime's name has lower-case letters and digits, a letter first, and at most 38 of them. For one that is called so already, say so below.";
        (!self.is_adopted && !is_new_runtime_name(&self.name)).then_some(("name", why))
    }

    /// What it is told by where its name may not stand, as in the name of its release.
    #[must_use]
    pub fn id(&self) -> Cow<'_, str> {
        runtime_id(&self.name)
    }

    /// Makes its namespace, and the Secret with its token in there.
    #[must_use]
    pub fn secret(&self, token: &str) -> String {
        let namespace = &self.namespace;
        format!(
            "kubectl create namespace {namespace}\n\
             kubectl -n {namespace} create secret generic {TOKEN_SECRET} \\\n  \
             --from-literal=token={token}"
        )
    }

    /// Makes an account of Argo CD that reads applications and nothing else, and the Secret with its token.
    #[must_use]
    pub fn account(&self) -> String {
        let Self { namespace, argo_cd, .. } = self;
        let policy = self.policy(READS);
        format!(
            "kubectl -n {argo_cd} patch configmap argocd-cm --type merge \\\n  \
               -p '{{\"data\":{{\"accounts.{ACCOUNT}\":\"apiKey\"}}}}'\n\
             {policy}\n\
             token=$(argocd account generate-token --account {ACCOUNT}) &&\n  \
             kubectl -n {namespace} create secret generic {ARGO_CD_SECRET} --from-literal=token=\"$token\""
        )
    }

    /// Lets that account do this and nothing else.
    fn policy(&self, rights: &[&str]) -> String {
        let line = |right: &&str| format!("p, {ACCOUNT}, {right}, allow");
        let lines = rights.iter().map(line).collect::<Vec<_>>().join("\\n");
        format!(
            "kubectl -n {} patch configmap argocd-rbac-cm --type merge \\\n  \
               -p '{{\"data\":{{\"policy.{ACCOUNT}.csv\":\"{lines}\"}}}}'",
            self.argo_cd
        )
    }

    /// Installs it with Helm, from a checkout; `platform` is the platform's own address.
    #[must_use]
    pub fn helm(&self, platform: &str) -> String {
        let (id, namespace) = (self.id(), &self.namespace);
        let set = |(path, value)| format!(" \\\n  --set-string global.{path}={value}");
        let set: String = self.values(platform).into_iter().map(set).collect();
        format!("helm install {id} {CHART} --namespace {namespace}{set}")
    }

    /// The Application by which Argo CD installs it from Git.
    #[must_use]
    pub fn argo_cd(&self, platform: &str) -> String {
        let (id, Self { namespace, argo_cd, repository, .. }) = (self.id(), self);
        let (repository, note) = match repository.as_str() {
            "" => (
                "https://git.example.com/platform/gitops-runtime.git",
                " # your copy of the chart's repository",
            ),
            said => (said, ""),
        };
        format!(
            "apiVersion: argoproj.io/v1alpha1\n\
             kind: Application\n\
             metadata: {{name: \"{ACCOUNT}-{id}\", namespace: \"{argo_cd}\"}}\n\
             spec:\n\
             \x20 project: default\n\
             \x20 destination: {{server: https://kubernetes.default.svc, namespace: \"{namespace}\"}}\n\
             \x20 source:\n\
             \x20   repoURL: \"{repository}\"{note}\n\
             \x20   path: {CHART}\n\
             \x20   targetRevision: HEAD\n\
             \x20   helm:\n\
             \x20     releaseName: \"{id}\"\n\
             \x20     valuesObject:\n{}\
             \x20 syncPolicy: {{automated: {{}}}}",
            self.yaml(platform, "        ")
        )
    }

    /// The release for Terraform's provider of Helm. Both Secrets are made beside it, so that no token is in its state.
    #[must_use]
    pub fn terraform(&self, platform: &str) -> String {
        let (id, namespace) = (self.id(), &self.namespace);
        format!(
            "resource \"helm_release\" \"gitops_runtime_{id}\" {{\n\
             \x20 name      = \"{id}\"\n\
             \x20 chart     = \"{CHART}\"\n\
             \x20 namespace = \"{namespace}\"\n\
             \x20 values = [<<-YAML\n{}    YAML\n  ]\n\
             }}",
            self.yaml(platform, "    ")
        )
    }

    /// The chart's values that it sets, each by its path below `global`.
    fn values<'a>(&'a self, platform: &'a str) -> Vec<(&'static str, &'a str)> {
        let Self { name, argo_cd, registry, .. } = self;
        let mut all = vec![
            ("runtime.name", &**name),
            ("codefresh.url", platform),
            ("integrations.argo-cd.namespace", argo_cd),
        ];
        if !registry.is_empty() {
            all.push(("imageRegistry", registry));
        }
        all
    }

    /// The same as YAML, each line after `indent`.
    fn yaml(&self, platform: &str, indent: &str) -> String {
        let line = |(path, value): (&'static str, &str)| {
            let (first, below) = path.split_once('.').unwrap_or((path, ""));
            // A text in quotes is never taken for a number or a truth.
            let around = |inner: String, key: &str| format!("{{{key}: {inner}}}");
            let value = below.rsplit('.').filter(|key| !key.is_empty()).fold(format!("\"{value}\""), around);
            format!("{indent}  {first}: {value}\n")
        };
        let lines: String = self.values(platform).into_iter().map(line).collect();
        format!("{indent}global:\n{lines}")
    }

    /// Shows whether its account of Argo CD sees applications.
    #[must_use]
    pub fn looks(&self) -> String {
        let (id, namespace) = (self.id(), &self.namespace);
        format!("kubectl -n {namespace} logs -l app.kubernetes.io/instance={id} --tail 50")
    }

    /// What is left once it reports.
    #[must_use]
    pub fn left(&self) -> Vec<Left> {
        let (id, namespace) = (self.id(), &self.namespace);
        let with = |values: &str| {
            format!(
                "helm upgrade {id} {CHART} --namespace {namespace} --reset-then-reuse-values \\\n  {values}"
            )
        };
        vec![
            Left {
                what: "See that all of it stands right.",
                command: format!("helm test {id} --namespace {namespace}"),
                role: None,
            },
            Left {
                what: "Let its account of Argo CD sync, run actions, read logs and list clusters: the next step needs that.",
                command: self.policy(&[READS, ACTS].concat()),
                role: None,
            },
            Left {
                what: "Act on its cluster from here: sync, roll back, logs. It needs a way in, here an Ingress, and that account.",
                command: with(&format!(
                    "--set appProxy.enabled=true --set global.runtime.ingress.enabled=true \\\n  \
                     --set 'global.runtime.ingress.hosts={{{id}.example.com}}'"
                )),
                role: Some("app-proxy"),
            },
            Left {
                what: "Report Rollouts and Workflows step by step as well.",
                command: with("--set resourceReporter.enabled=true"),
                role: None,
            },
            Left {
                what: "Show which commits each deployment brought.",
                command: with(
                    "--set changeRevision.enabled=true --set changeRevision.report=true \\\n  --set changeRevision.argocdCredentials=true",
                ),
                role: Some("change-revision"),
            },
        ]
    }
}

/// Whether a text is a name as namespaces have them (RFC 1123's label).
fn is_label(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&text.len())
        && text.bytes().all(|byte| is_plain(byte) || byte == b'-')
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().next_back().is_some_and(is_plain)
}

/// Whether a text stands in a shell, in YAML and in Terraform as it is.
fn is_address(text: &str) -> bool {
    text.len() <= LONGEST
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:@~%+".contains(&byte))
}
