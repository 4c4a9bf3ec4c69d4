//! The name of a tunnel: whose it is, and which runtime's.

use std::fmt;

/// How many characters an account may have.
const MAX_ACCOUNT: usize = 24;
/// How many characters a runtime may have: with the account and the dash between them it is one DNS label.
const MAX_RUNTIME: usize = 38;

/// `<account>-<runtime>`, one DNS label. Neither part may hold a dash, so that no two pairs have the same name; but for a
/// client of a server that has other rules.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    label: String,
    dash: usize,
}

/// Why a text is not the name of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is not exactly one dash.
    #[error(
        "the name of a tunnel is <account>-<runtime> with one dash in it; a runtime with a dash in its name is reached by its id"
    )]
    Dash,
    /// A part is empty or too long.
    #[error("the {part} in the name of a tunnel has 1 to {most} characters")]
    Length {
        /// The part: the account or the runtime.
        part: &'static str,
        /// How many characters it may have.
        most: usize,
    },
    /// A part holds something other than lower-case letters and digits.
    #[error("the {0} in the name of a tunnel holds lower-case letters and digits alone")]
    Characters(&'static str),
}

impl Name {
    /// Reads `<account>-<runtime>`.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn read(text: &str) -> Result<Self, NameError> {
        let (account, runtime) = text.split_once('-').ok_or(NameError::Dash)?;
        if runtime.contains('-') {
            return Err(NameError::Dash);
        }
        for (part, text, most) in [("account", account, MAX_ACCOUNT), ("runtime", runtime, MAX_RUNTIME)] {
            if text.is_empty() || text.len() > most {
                return Err(NameError::Length { part, most });
            }
            if !text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
                return Err(NameError::Characters(part));
            }
        }
        Ok(Self { label: text.to_owned(), dash: account.len() })
    }

    /// Reads what a server of the frp family may know a runtime by, which has a dash in its name.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn read_adopted(text: &str) -> Result<Self, NameError> {
        let (account, runtime) = text.split_once('-').ok_or(NameError::Dash)?;
        let plain: String = runtime.chars().filter(|letter| *letter != '-').collect();
        if runtime.len() > MAX_RUNTIME {
            return Err(NameError::Length { part: "runtime", most: MAX_RUNTIME });
        }
        if runtime.starts_with('-') || runtime.ends_with('-') {
            return Err(NameError::Characters("runtime"));
        }
        let dash = Self::read(&format!("{account}-{plain}"))?.dash;
        Ok(Self { label: text.to_owned(), dash })
    }

    /// Whether no other account and runtime make this name.
    #[must_use]
    pub fn is_unambiguous(&self) -> bool {
        !self.runtime().contains('-')
    }

    /// The name as the label of a host.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.label
    }

    /// The part that names the runtime.
    #[must_use]
    pub fn runtime(&self) -> &str {
        self.label.get(self.dash + 1..).unwrap_or_default()
    }

    /// The name of the tunnel that a visitor asks for: the one label before `domain`.
    #[must_use]
    pub fn of_host(host: &str, domain: &str) -> Option<Self> {
        let host = host.rsplit_once(':').map_or(host, |(name, port)| {
            if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
        });
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        Self::read(host.strip_suffix(domain)?.strip_suffix('.')?).ok()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_two_parts_of_letters_and_digits() {
        let name = Name::read("account1-runtime1").unwrap();
        assert_eq!((name.as_str(), name.runtime()), ("account1-runtime1", "runtime1"));
        let longest = format!("{}-{}", "a".repeat(24), "b".repeat(38));
        assert_eq!(Name::read(&longest).unwrap().as_str().len(), 63);
    }

    #[test]
    fn other_names_are_refused_and_it_is_said_why() {
        let dash = "the name of a tunnel is <account>-<runtime> with one dash in it; a runtime with a dash in its name is reached by its id";
        let long = (format!("{}-b", "a".repeat(25)), format!("a-{}", "b".repeat(39)));
        for (text, why) in [
            ("", dash),
            ("shop", dash),
            ("a-b-c", dash),
            ("a--b", dash),
            ("-b", "the account in the name of a tunnel has 1 to 24 characters"),
            ("a-", "the runtime in the name of a tunnel has 1 to 38 characters"),
            (long.0.as_str(), "the account in the name of a tunnel has 1 to 24 characters"),
            (long.1.as_str(), "the runtime in the name of a tunnel has 1 to 38 characters"),
            ("A-b", "the account in the name of a tunnel holds lower-case letters and digits alone"),
            ("a-b.c", "the runtime in the name of a tunnel holds lower-case letters and digits alone"),
            ("a-b\u{e9}", "the runtime in the name of a tunnel holds lower-case letters and digits alone"),
        ] {
            assert_eq!(Name::read(text).unwrap_err().to_string(), why, "{text}");
        }
    }

    #[test]
    fn a_runtime_with_a_dash_is_adopted_and_told_from_others() {
        let name = Name::read_adopted("account1-team-prod").unwrap();
        assert_eq!((name.as_str(), name.runtime()), ("account1-team-prod", "team-prod"));
        assert!(!name.is_unambiguous() && Name::read_adopted("a-b").unwrap().is_unambiguous());
        let characters = "the runtime in the name of a tunnel holds lower-case letters and digits alone";
        for (text, why) in [
            ("shop", NameError::Dash.to_string()),
            ("a--b", characters.to_owned()),
            ("a-b-", characters.to_owned()),
            ("a-B-c", characters.to_owned()),
            (
                &format!("a-{}", "b-".repeat(20)),
                "the runtime in the name of a tunnel has 1 to 38 characters".to_owned(),
            ),
        ] {
            assert_eq!(Name::read_adopted(text).unwrap_err().to_string(), why, "{text}");
        }
    }

    #[test]
    fn a_host_names_the_tunnel_before_the_domain_and_no_deeper() {
        let of = |host| Name::of_host(host, "tunnels.example.com").map(|name| name.to_string());
        for host in ["a-b.tunnels.example.com", "A-B.Tunnels.Example.com:8080", "a-b.tunnels.example.com."] {
            assert_eq!(of(host).as_deref(), Some("a-b"), "{host}");
        }
        for host in [
            "tunnels.example.com",
            "x.a-b.tunnels.example.com",
            "a-b.example.com",
            "a-btunnels.example.com",
            "",
        ] {
            assert_eq!(of(host), None, "{host}");
        }
    }
}
