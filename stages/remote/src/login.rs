//! `gitops-runtime login`: takes a key, asks the platform whose it is, and keeps it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::arguments::context::Login;
use crate::contexts::{Context, Contexts};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::platform::{Platform, SIGN_IN};
use crate::secret::SecretPrompt;
use crate::show::{Screen, plain};
use crate::unencrypted::unencrypted;

/// The platform answers in this time.
const ANSWER: Duration = Duration::from_secs(30);
/// How keys and the tokens of runtimes begin.
const KEYS: [&str; 2] = ["goak_", "gort_"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Me {
    name: String,
    is_admin: bool,
    runtime_name: Option<String>,
}

pub(crate) async fn run(
    login: &Login,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    let is_key = |text: &String| KEYS.iter().any(|mark| text.starts_with(mark));
    if !login.rest.is_empty() || login.url.as_ref().is_some_and(is_key) {
        return Err(RemoteError::Usage(
            "a key does not belong on the command line, where others on this machine and its history see it: it is asked \
             for, or give --token-file"
                .to_owned(),
        ));
    }
    let all = Contexts::read(environment)?;
    let before = match &login.url {
        Some(_) => None,
        None => Some(all.chosen(login.name.as_deref(), environment)?.clone()),
    };
    let url = login.url.as_ref().or(before.as_ref().map(|kept| &kept.platform));
    let url = url.map(|url| url.trim_end_matches('/').to_owned()).unwrap_or_default();
    let (target, host) = address(&url)?;
    let name = match (&login.name, &before) {
        (Some(name), _) => checked(name)?,
        (None, Some(before)) => before.name.clone(),
        (None, None) => host.clone(),
    };
    let other = all.contexts.iter().find(|one| one.name == name && one.platform != target);
    if let Some(other) = other.filter(|_| login.name.is_none()) {
        let text =
            format!("'{name}' is the context of {}: give this one another with --name", other.platform);
        return Err(RemoteError::Missing(text));
    }
    if let Some(text) = unencrypted(&target) {
        screen.note(&text);
    }
    let (ca_file, insecure) = trusted(login, before.as_ref())?;
    let key = wanted(&format!("API key of {target}, made at {target}/settings: "))
        .take(login.token_file.as_deref())?;
    let platform = Platform::at(&target, key.clone(), ca_file.clone(), insecure, ANSWER).await?;
    let me: Me =
        platform.get(SIGN_IN, "query Me { me { name isAdmin runtimeName } }", json!({}), "me").await?;
    if let Some(runtime) = me.runtime_name {
        return Err(RemoteError::Missing(format!(
            "this is the token of the runtime {runtime}: a person signs in with an API key, which is made at \
             {target}/settings"
        )));
    }
    let user = plain(&me.name);
    let role = if me.is_admin { ", an admin" } else { "" };
    let kept =
        Context { name: name.clone(), platform: target.clone(), user: user.clone(), ca_file, insecure, key };
    Contexts::change(environment, |all| {
        all.put(kept)?;
        all.current = Some(name.clone());
        Ok(())
    })?;
    if let Some(other) = environment.context.as_ref().filter(|other| **other != name) {
        screen
            .note(&format!("GITOPS_RUNTIME_CONTEXT={other} stands above the context {name} while it is set"));
    }
    screen.tell(&format!("signed in to {target} as {user}{role}; the context is {name}\n"))
}

/// The authorities that are trusted, and whether any certificate is accepted: as it is said now, else as it was before. One ends the
/// other.
fn trusted(login: &Login, before: Option<&Context>) -> Result<(Option<PathBuf>, bool), RemoteError> {
    match &login.ca_file {
        Some(file) => {
            let found = std::path::absolute(file);
            let path = file.clone();
            Ok((Some(found.map_err(|source| RemoteError::File { act: "find", path, source })?), false))
        }
        None if login.insecure => Ok((None, true)),
        None => Ok(before.map(|before| (before.ca_file.clone(), before.insecure)).unwrap_or_default()),
    }
}

/// The address of a platform as it is kept, and its host.
fn address(url: &str) -> Result<(String, String), RemoteError> {
    // Somebody types a host alone: nobody means to send a key unencrypted.
    let url = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
    let target = stages_client::Target::new(&url, "").map_err(RemoteError::Address)?;
    Ok((url, target.host().to_string()))
}

fn checked(name: &str) -> Result<String, RemoteError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:@".contains(c);
    if name.is_empty() || name.len() > 100 || !name.chars().all(fits) || name.starts_with('-') {
        let text = "the name of a context has 1 to 100 letters, digits and - _ . : @".to_owned();
        return Err(RemoteError::Usage(text));
    }
    Ok(name.to_owned())
}

/// How a key is asked for.
fn wanted(prompt: &str) -> SecretPrompt<'_> {
    SecretPrompt {
        prompt,
        read: "read the key from",
        none: "there is no key: make one on the platform's page Settings, API keys; it is asked for on a terminal, else read from standard input, or give --token-file",
        wrong: "this is no API key: a key is one word, which is made on the platform's page Settings, API keys",
        longest: 4_096,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::tests::kept;

    #[test]
    fn authorities_that_are_given_end_that_any_certificate_is_accepted_and_the_other_way_round() {
        let file = PathBuf::from("/etc/ca.pem");
        let login = |ca_file: Option<&PathBuf>, insecure| Login {
            url: None,
            name: None,
            token_file: None,
            ca_file: ca_file.cloned(),
            insecure,
            rest: Vec::new(),
        };
        let of = |login: &Login, before: Option<&Context>| trusted(login, before).unwrap();
        let insecure = Context { insecure: true, ..kept("a") };
        let secure = Context { ca_file: Some(file.clone()), ..kept("a") };
        assert_eq!(of(&login(Some(&file), false), Some(&insecure)), (Some(file.clone()), false));
        assert_eq!(of(&login(None, true), Some(&secure)), (None, true));
        assert_eq!(of(&login(None, false), Some(&insecure)), (None, true));
        assert_eq!(of(&login(None, false), Some(&secure)), (Some(file), false));
        assert_eq!(of(&login(None, false), None), (None, false));
    }

    #[test]
    fn an_address_without_a_scheme_is_an_encrypted_one() {
        let of = |url: &str| address(url).map_err(|error| error.line());
        let pair = |url: &str, host: &str| Ok((url.to_owned(), host.to_owned()));
        assert_eq!(of("p.example.com"), pair("https://p.example.com", "p.example.com"));
        assert_eq!(of("http://127.0.0.1:80/x"), pair("http://127.0.0.1:80/x", "127.0.0.1"));
        assert_eq!(
            of("https://ada:secret@p.example.com"),
            Err("the address must not hold a user name or a password".to_owned())
        );
    }
}
