//! The settings of traces: how their values are written, and what they come to.

use std::path::PathBuf;
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::Token;
use super::host::Host;
use super::problem::Problems;
use super::units::{As, MASK, Unit};

/// Where the protocol has its receivers listen, below an address without a path.
const PATH: &str = "/v1/traces";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traces {
    pub(crate) ratio: As<Ratio>,
    pub(crate) service: Service,
    pub(crate) otlp: Otlp,
    /// Whose traces they are beside the service.
    #[serde(skip)]
    pub(crate) host: Host,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    pub(crate) name: As<String>,
    pub(crate) namespace: As<Option<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Otlp {
    /// With its path, once it is known that traces are sent.
    pub(crate) url: As<Option<Url>>,
    token: As<Option<SecretString>>,
    token_file: As<Option<PathBuf>>,
    pub(crate) headers: As<Headers>,
    pub(crate) ca_file: As<Option<PathBuf>>,
    pub(crate) insecure: bool,
    pub(crate) timeout: As<Duration>,
}

impl Otlp {
    /// Sent as a bearer token.
    pub(crate) fn token(&self) -> Token {
        Token::of(&self.token, &self.token_file)
    }
}

impl Traces {
    /// What the settings come to; `None` when nothing is traced.
    pub(super) fn settle(mut self, host: &Host, problems: &mut Problems) -> Option<Self> {
        let otlp = &mut self.otlp;
        problems.token("traces.otlp", &otlp.token, &otlp.token_file);
        problems.positive("traces.otlp.timeout", *otlp.timeout);
        let (token, headers) = (otlp.token().is_given(), !otlp.headers.0.is_empty());
        let Some(url) = &mut *otlp.url else {
            for (at, given) in [("traces.otlp.token", token), ("traces.otlp.headers", headers)] {
                if given {
                    problems.add(at, "is for traces.otlp.url, which is not set");
                }
            }
            return None;
        };
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(if path.is_empty() { PATH } else { &path });
        if self.service.name.is_empty() {
            "gitops-runtime".clone_into(&mut self.service.name);
        }
        self.host = host.clone();
        (self.ratio.0 > 0.0).then_some(self)
    }
}

/// A share, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio(pub(crate) f64);

impl Unit for Ratio {
    const FORMAT: &'static str = "ratio";
    const NUMBER: Option<&'static str> = Some("number");

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not all, nor a number from 0 to 1 such as 0.01");
        if text == "all" {
            return Ok(Self(1.0));
        }
        let ratio: f64 = text.trim().parse().map_err(|_| wrong())?;
        if (0.0..=1.0).contains(&ratio) { Ok(Self(ratio)) } else { Err(wrong()) }
    }
}

/// Headers, whose values are secrets.
#[derive(Debug)]
pub(crate) struct Headers(pub(crate) Vec<(String, SecretString)>);

impl Unit for Headers {
    const FORMAT: &'static str = "http-headers";
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        if text == MASK {
            return Err("is the mask that config print shows, not a secret".to_owned());
        }
        let headers = text.split(',').map(str::trim).filter(|header| !header.is_empty()).map(header);
        headers.collect::<Option<_>>().map(Self).ok_or_else(|| {
            "must be headers such as x-tenant=a,x-key=b, of printable characters; those of the body are not for \
             it to give"
                .to_owned()
        })
    }
}

fn header(text: &str) -> Option<(String, SecretString)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let printable = !value.is_empty() && value.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    let of_body = name.starts_with("content-") || matches!(name.as_str(), "host" | "transfer-encoding");
    (!name.is_empty() && name.chars().all(fits) && printable && !of_body).then(|| (name, value.into()))
}

#[cfg(test)]
mod tests {
    use pipeline_core::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_ratio_is_all_or_a_number_from_0_to_1() {
        for (text, ratio) in [("all", 1.0), ("1", 1.0), ("0", 0.0), ("0.25", 0.25), (" 1e-3 ", 0.001)] {
            assert_eq!(Ratio::read(text), Ok(Ratio(ratio)));
        }
        for wrong in ["", "1.01", "-0.1", "NaN", "inf", "50%", "some"] {
            let text = Ratio::read(wrong).unwrap_err();
            assert_eq!(text, format!("'{wrong}' is not all, nor a number from 0 to 1 such as 0.01"));
        }
    }

    #[test]
    fn headers_are_read_and_never_repeated() {
        let read = |text: &str| {
            let headers = Headers::read(text).unwrap().0;
            headers.into_iter().map(|(name, value)| format!("{name}:{}", value.expose_secret())).collect()
        };
        let headers: Vec<String> = read(" X-Tenant = a b==, authorization=Basic eA== ,");
        assert_eq!(headers, ["x-tenant:a b==", "authorization:Basic eA=="]);
        assert_eq!(read("") as Vec<String>, [] as [&str; 0]);
        let bodies = ["Content-Type=canary", "content-length=canary", "host=canary"];
        let broken = ["canary", "=canary", "x=", "x canary=1", "x=canary\u{7}", "x=canarä", MASK];
        for wrong in bodies.into_iter().chain(broken) {
            let text = Headers::read(wrong).unwrap_err();
            assert!(!text.contains("canar") && !text.is_empty(), "{text}");
        }
        assert!(!format!("{:?}", Headers::read("x=canary").unwrap()).contains("canary"));
    }
}
