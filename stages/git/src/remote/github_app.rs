//! GitHub Apps, as Secrets hold them, and how they prove who they are.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};

use super::ssh_key::{has_passphrase, tidy};
use super::{RepositoryUrl, Scheme};

/// Where the API is unless the Secret says otherwise.
const API: &str = "https://api.github.com";
/// Seconds by which a proof is dated back, for clocks that are behind, and for which it holds from now on. GitHub takes none that
/// holds for more than ten minutes.
const PROOF: (i64, i64) = (60, 300);

const NO_ID: &str =
    "they are those of a GitHub App without its githubAppID: add the number that stands on the app's page";
const ID: &str = "its githubAppID is no number: give the one that stands on the app's page";
const INSTALLATION: &str = "its githubAppInstallationID is no number: give the one that the address of the installation's page ends in, or leave it out";
const BASE: &str = "its githubAppEnterpriseBaseUrl is no address of https:// or http://: give that of the API, such as https://github.example.com/api/v3";
const NO_KEY: &str =
    "its githubAppPrivateKey is no key in PEM: give the whole file that GitHub gave, with its line breaks";
const LOCKED: &str = "its githubAppPrivateKey has a passphrase: give the file as GitHub gave it";
const BAD_KEY: &str = "its githubAppPrivateKey is damaged, or no RSA key of 2,048 to 4,096 bits: give the file that GitHub gave";

/// A GitHub App, as Secrets hold it.
#[derive(Debug, Clone)]
pub struct GitHubApp {
    pub(super) id: u64,
    /// Without one that of the repository is looked up.
    pub(super) installation: Option<u64>,
    /// Where its API is.
    pub(super) api: RepositoryUrl,
    pub(super) key: SecretString,
}

impl GitHubApp {
    /// Reads what a Secret holds of an app; `None`: no key of one.
    ///
    /// # Errors
    /// Why it cannot be used, and what to do.
    pub(super) fn read(value: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, &'static str> {
        let Some(key) = value("githubAppPrivateKey") else { return Ok(None) };
        // Argo CD takes 0 for none.
        let number = |name: &str| {
            let read = value(name).map(|text| text.trim().parse::<u64>()).transpose();
            read.map(|number| number.filter(|number| *number != 0))
        };
        let id = number("githubAppID").map_err(|_| ID)?.ok_or(NO_ID)?;
        let installation = number("githubAppInstallationID").map_err(|_| INSTALLATION)?;
        let api = value("githubAppEnterpriseBaseUrl").unwrap_or_else(|| API.to_owned());
        let api = RepositoryUrl::read(&api).ok();
        let api = api.filter(|api| matches!(api.scheme(), Scheme::Https | Scheme::Http)).ok_or(BASE)?;
        Ok(Some(Self { id, installation, api, key: key.into() }))
    }

    /// What proves that we are the app: a JWT that its key signs. It takes milliseconds of work.
    pub(super) fn proof(&self, now: Timestamp) -> Result<SecretString, &'static str> {
        let key = key(self.key.expose_secret())?;
        let (issued, ends) = (now.as_second() - PROOF.0, now.as_second() + PROOF.1);
        let claims = format!(r#"{{"iat":{issued},"exp":{ends},"iss":"{}"}}"#, self.id);
        let part = |of: &[u8]| URL_SAFE_NO_PAD.encode(of);
        let signed = format!("{}.{}", part(br#"{"alg":"RS256","typ":"JWT"}"#), part(claims.as_bytes()));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| BAD_KEY)?;
        Ok(format!("{signed}.{}", part(&signature)).into())
    }
}

/// Reads a key in PKCS#1, as GitHub gives it, or in PKCS#8.
fn key(text: &str) -> Result<RsaKeyPair, &'static str> {
    let text = tidy(text);
    if has_passphrase(&text) {
        return Err(LOCKED);
    }
    let form = |name: &str| {
        let (_, rest) = text.split_once(&format!("-----BEGIN {name}-----\n"))?;
        let (lines, _) = rest.split_once(&format!("-----END {name}-----"))?;
        let base64 = Zeroizing::new(lines.replace('\n', ""));
        STANDARD.decode(base64.as_bytes()).ok().map(Zeroizing::new)
    };
    match (form("RSA PRIVATE KEY"), form("PRIVATE KEY")) {
        (Some(of), _) => RsaKeyPair::from_der(&of).map_err(|_| BAD_KEY),
        (None, Some(of)) => RsaKeyPair::from_pkcs8(&of).map_err(|_| BAD_KEY),
        (None, None) => Err(NO_KEY),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use jiff::Timestamp;
    use secrecy::ExposeSecret as _;

    use super::GitHubApp;

    const KEY: &str = include_str!("../../tests/remote/keys/github_app");
    const PKCS8: &str = include_str!("../../tests/remote/keys/github_app_pkcs8");

    fn read(data: &[(&str, &str)]) -> Result<Option<GitHubApp>, &'static str> {
        GitHubApp::read(|name| {
            data.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn app(key: &str) -> GitHubApp {
        read(&[("githubAppID", "7"), ("githubAppPrivateKey", key)]).unwrap().unwrap()
    }

    #[test]
    fn a_proof_holds_for_six_minutes_and_begins_one_ago() {
        let now = Timestamp::from_second(1_767_225_660).unwrap();
        let proof = app(KEY).proof(now).unwrap();
        let parts: Vec<_> = proof.expose_secret().split('.').collect();
        let part = |at: usize| String::from_utf8(URL_SAFE_NO_PAD.decode(parts[at]).unwrap()).unwrap();
        assert_eq!((parts.len(), &*part(0)), (3, r#"{"alg":"RS256","typ":"JWT"}"#));
        assert_eq!(part(1), r#"{"iat":1767225600,"exp":1767225960,"iss":"7"}"#);
        for text in [
            PKCS8.to_owned(),
            KEY.replace('\n', "\r\n"),
            KEY.trim_end().to_owned(),
            format!("\u{feff}\n{KEY}"),
            KEY.lines().map(|line| format!("    {line} \n")).collect(),
        ] {
            assert_eq!(app(&text).proof(now).unwrap().expose_secret(), proof.expose_secret(), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_usable_key_is_told_apart() {
        let none = "its githubAppPrivateKey is no key in PEM: give the whole file that GitHub gave, with its line breaks";
        let locked = "its githubAppPrivateKey has a passphrase: give the file as GitHub gave it";
        let bad = "its githubAppPrivateKey is damaged, or no RSA key of 2,048 to 4,096 bits: give the file that GitHub gave";
        let elliptic = rcgen::KeyPair::generate().unwrap().serialize_pem();
        for (text, why) in [
            ("key".to_owned(), none),
            (KEY.replace('\n', r"\n"), none),
            (KEY.replace('\n', " "), none),
            (STANDARD.encode(KEY), none),
            (KEY.lines().take(5).collect::<Vec<_>>().join("\n"), none),
            (include_str!("../../tests/remote/keys/github_app.pub").to_owned(), none),
            (include_str!("../../tests/remote/keys/locked_pem").to_owned(), locked),
            (include_str!("../../tests/remote/keys/locked_pkcs8").to_owned(), locked),
            (elliptic, bad),
            (
                KEY.lines()
                    .enumerate()
                    .filter(|(at, _)| *at != 3)
                    .map(|(_, line)| format!("{line}\n"))
                    .collect(),
                bad,
            ),
        ] {
            assert_eq!(app(&text).proof(Timestamp::UNIX_EPOCH).unwrap_err(), why, "{text:?}");
        }
    }

    #[test]
    fn an_app_is_read_as_argo_cd_reads_it() {
        let key = ("githubAppPrivateKey", "key");
        let id = ("githubAppID", "7\n");
        assert!(read(&[id]).unwrap().is_none(), "without a key there is no app");
        for (more, installation, api) in [
            (&[][..], None, "https://api.github.com"),
            (&[("githubAppInstallationID", "0")], None, "https://api.github.com"),
            (
                &[
                    ("githubAppInstallationID", "9"),
                    ("githubAppEnterpriseBaseUrl", "https://GitHub.example.com/api/v3/"),
                ],
                Some(9),
                "https://github.example.com/api/v3",
            ),
        ] {
            let app = read(&[&[key, id], more].concat()).unwrap().unwrap();
            assert_eq!((app.id, app.installation, app.api.as_str()), (7, installation, api));
        }
        let without = "they are those of a GitHub App without its githubAppID: add the number that stands on the app's page";
        let base = "its githubAppEnterpriseBaseUrl is no address of https:// or http://: give that of the API, such as https://github.example.com/api/v3";
        for (data, why) in [
            (&[][..], without),
            (&[("githubAppID", "0")], without),
            (
                &[("githubAppID", "Iv1.8a61f9b3a7aba766")],
                "its githubAppID is no number: give the one that stands on the app's page",
            ),
            (
                &[id, ("githubAppInstallationID", "-9")],
                "its githubAppInstallationID is no number: give the one that the address of the installation's page ends in, or leave it out",
            ),
            (&[id, ("githubAppEnterpriseBaseUrl", "github.example.com")], base),
            (&[id, ("githubAppEnterpriseBaseUrl", "ssh://git@github.example.com")], base),
            (&[id, ("githubAppEnterpriseBaseUrl", "https://me:hidden@github.example.com")], base),
        ] {
            assert_eq!(read(&[&[key], data].concat()).unwrap_err(), why, "{data:?}");
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let shown = format!("{:?}", app(KEY));
        let wanted = r#"GitHubApp { id: 7, installation: None, api: RepositoryUrl { text: "https://api.github.com", below_home: false, literal: None }, key: SecretBox<str>([REDACTED]) }"#;
        assert_eq!(shown, wanted);
    }
}
