//! How the text of one setting becomes a value: durations, sizes, addresses, secrets.
//!
//! takes: text - gives: the typed value, or what the text should have been. A message never repeats a secret
//! or an address, which may hold one.

use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pipeline_core::SecretString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use url::Url;

/// What `config print` shows instead of a secret.
pub(crate) const MASK: &str = "********";

/// A type of setting that is written as text.
pub(crate) trait Unit: Sized {
    /// The name of the format in the JSON schema.
    const FORMAT: &'static str;

    /// Whether the text must never be shown.
    const SECRET: bool = false;

    /// The JSON type of a bare number that may stand in a file where the text is one.
    const NUMBER: Option<&'static str> = None;

    /// Reads the text; the error says what it should have been.
    fn read(text: &str) -> Result<Self, String>;
}

/// A setting of type `T`, as it stands in a file.
#[derive(Debug)]
pub(crate) struct As<T> {
    value: T,
}

impl<T> Deref for As<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for As<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<'de, T: Unit> Deserialize<'de> for As<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let quote = || "must be text: put it in quotes".to_owned();
        let read = match Value::deserialize(deserializer)? {
            Value::String(text) => T::read(&text),
            Value::Number(number) if T::NUMBER.is_some() => T::read(&number.to_string()),
            Value::Number(number) if !T::SECRET => T::read(&number.to_string()).and_then(|_| Err(quote())),
            Value::Number(_) | Value::Bool(_) => Err(quote()),
            _ => Err("must be text".to_owned()),
        };
        read.map(|value| Self { value }).map_err(serde::de::Error::custom)
    }
}

impl<T: Unit> JsonSchema for As<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::FORMAT.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        match T::NUMBER {
            Some(number) => json_schema!({ "type": ["string", number], "format": T::FORMAT }),
            None => json_schema!({ "type": "string", "format": T::FORMAT }),
        }
    }
}

impl Unit for Duration {
    const FORMAT: &'static str = "time-span";

    fn read(text: &str) -> Result<Self, String> {
        pipeline_core::read_duration(text)
    }
}

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl Size {
    /// As a length in memory.
    pub(crate) fn len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Unit for Size {
    const FORMAT: &'static str = "byte-size";
    const NUMBER: Option<&'static str> = Some("integer");

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a size such as 512, 64Ki, 32Mi or 1Gi");
        let text = text.trim();
        let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let scale: u64 = match unit {
            "" => 1,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            "k" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(scale).map(Self).ok_or_else(wrong)
    }
}

impl Unit for Option<Url> {
    const FORMAT: &'static str = "http-address";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || "must be an address such as https://example.com".to_owned();
        let url = Url::parse(text).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must hold no user or password; give a token instead".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("must end with its path: no ? and no #".to_owned());
        }
        Ok(Some(url))
    }
}

/// An address, or a network.
#[derive(Debug)]
pub(crate) struct Network(pub(crate) ipnet::IpNet);

impl Unit for Network {
    const FORMAT: &'static str = "network";

    fn read(text: &str) -> Result<Self, String> {
        let address = || text.parse::<IpAddr>().ok().map(ipnet::IpNet::from);
        let network = text.parse().ok().or_else(address);
        network.map(Self).ok_or_else(|| format!("'{text}' is not an address or a network such as 10.0.0.0/8"))
    }
}

impl Unit for Option<SocketAddr> {
    const FORMAT: &'static str = "listen-address";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let text = text.replacen("localhost:", "127.0.0.1:", 1);
        let wrong = || format!("'{text}' is not an address to listen on such as 0.0.0.0:8088");
        text.parse().map(Some).map_err(|_| wrong())
    }
}

impl Unit for Option<PathBuf> {
    const FORMAT: &'static str = "file-path";

    fn read(text: &str) -> Result<Self, String> {
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }
}

impl Unit for Option<SecretString> {
    const FORMAT: &'static str = "secret";
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == MASK {
            return Err("is the mask that config print shows, not a secret".to_owned());
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("must hold no space and no control character".to_owned());
        }
        Ok((!text.is_empty()).then(|| text.into()))
    }
}

impl Unit for String {
    const FORMAT: &'static str = "plain-text";

    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Unit for Option<String> {
    const FORMAT: &'static str = String::FORMAT;

    fn read(text: &str) -> Result<Self, String> {
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}

/// A path of a URL: empty, or beginning with `/` and not ending with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UrlPath(pub(crate) String);

impl Unit for UrlPath {
    const FORMAT: &'static str = "url-path";

    fn read(text: &str) -> Result<Self, String> {
        if text.contains(['?', '#']) || text.contains(char::is_whitespace) {
            return Err(format!("'{text}' is not a path such as /argo-cd"));
        }
        let inner = text.trim_matches('/');
        Ok(Self(if inner.is_empty() { String::new() } else { format!("/{inner}") }))
    }
}

/// A pattern of namespaces: a glob, or a regular expression between slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(pub(crate) String);

impl Unit for Pattern {
    const FORMAT: &'static str = "namespace-pattern";

    fn read(text: &str) -> Result<Self, String> {
        let expression = text.len() > 1 && text.starts_with('/') && text.ends_with('/');
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-*?[]!^{},".contains(c);
        let plain = !text.is_empty() && text.chars().all(fits);
        match stages_kube::Namespaces::new("argocd", &[text.to_owned()]) {
            Ok(_) if expression || plain => Ok(Self(text.to_owned())),
            _ => Err(format!(
                "'{text}' is not a pattern of namespaces such as team-*, nor a regular expression such as /^team-/"
            )),
        }
    }
}

/// Where the admin socket is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum SocketPlace {
    /// In the state directory.
    Auto,
    /// There is none.
    #[default]
    None,
    /// Here.
    Path(PathBuf),
}

impl Unit for SocketPlace {
    const FORMAT: &'static str = "socket-path";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "" => Ok(Self::None),
            path if pipeline_http::admin::fits(Path::new(path)) => Ok(Self::Path(path.into())),
            _ => Err(
                "is longer than the 103 bytes that a socket's path may have; give a shorter one, such as \
                      /tmp/gitops-runtime.sock"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let read = |text| Size::read(text).map(|size| size.0);
        assert_eq!(read("64Mi"), Ok(64 << 20));
        assert_eq!(read("512"), Ok(512));
        assert_eq!(read("1k"), Ok(1_000));
        for wrong in ["", "Mi", "1.5Mi", "-1", "64MB", "64mi", "18446744073709551615Ki"] {
            let text = read(wrong).unwrap_err();
            assert_eq!(text, format!("'{wrong}' is not a size such as 512, 64Ki, 32Mi or 1Gi"));
        }
    }

    #[test]
    fn addresses_never_repeat_what_they_hold() {
        for wrong in
            ["canary", "ftp://canary", "https://canary:canary@host", "https://host/?canary", "http://"]
        {
            let text = <Option<Url> as Unit>::read(wrong).unwrap_err();
            assert!(!text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn paths_are_normalised() {
        assert_eq!(UrlPath::read("argo-cd/").unwrap().0, "/argo-cd");
        assert_eq!(UrlPath::read("/").unwrap().0, "");
    }
    #[test]
    fn a_socket_is_chosen_or_none_or_somewhere() {
        assert_eq!(SocketPlace::read("auto"), Ok(SocketPlace::Auto));
        assert_eq!(SocketPlace::read(""), Ok(SocketPlace::None));
        assert_eq!(SocketPlace::read("/run/s"), Ok(SocketPlace::Path("/run/s".into())));
        let long = SocketPlace::read(&format!("/{}", "x".repeat(103))).unwrap_err();
        assert!(long.starts_with("is longer than the 103 bytes that a socket's path may have"), "{long}");
    }
}
