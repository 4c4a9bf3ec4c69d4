//! `gitops-runtime seal`: a Secret, sealed where it is typed. Only the certificate is fetched.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;

use jiff::Timestamp;
use pipeline_core::{ExposeSecret as _, SecretString};
use pipeline_seal::{Certificate, SealError, seal};
use serde::Deserialize;
use serde_json::json;
use stages_client::{Config, Method, Target};

use crate::arguments::seal::{Scope, Seal};
use crate::environment::Environment;
use crate::error::{GIVEN, RemoteError};
use crate::platform::ANSWER;
use crate::show::Screen;
use crate::workflow;

/// Bytes that are read of a Secret, and of a certificate: more than may be sealed.
const SECRET: u64 = (1 << 20) + 1;
const CERTIFICATE: usize = 64 << 10;

#[derive(Deserialize)]
struct SealingCertificate {
    pem: String,
}

impl From<Scope> for pipeline_seal::Scope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Strict => Self::Strict,
            Scope::Namespace => Self::Namespace,
            Scope::Cluster => Self::Cluster,
        }
    }
}

fn wrong(error: &SealError) -> RemoteError {
    RemoteError::Usage(error.to_string())
}

pub(crate) async fn run(given: &Seal, screen: &Screen, environment: &Environment) -> Result<(), RemoteError> {
    let secret = secret(given.file.as_deref())?;
    let certificate = Certificate::read(&certificate(given, environment).await?);
    let certificate = certificate.map_err(|error| RemoteError::Missing(error.to_string()))?;
    certificate.holds(Timestamp::now()).map_err(|error| RemoteError::Missing(error.to_string()))?;
    let scope = given.scope.map(Into::into);
    let sealed = seal(secret.expose_secret(), given.namespace.as_deref(), scope, &certificate);
    screen.say(&sealed.map_err(|error| wrong(&error))?)
}

fn secret(file: Option<&Path>) -> Result<SecretString, RemoteError> {
    let act = "read the Secret of";
    let bytes = match file {
        Some(path) if path != Path::new("-") => {
            let failed = |source| RemoteError::File { act, path: path.to_path_buf(), source };
            bounded(File::open(path).map_err(failed)?, SECRET).map_err(failed)?
        }
        None if io::stdin().is_terminal() => {
            let said = "give the Secret with --file, or on standard input";
            return Err(RemoteError::Usage(said.to_owned()));
        }
        _ => {
            let failed = |error| RemoteError::Terminal("read the Secret", error);
            bounded(io::stdin().lock(), SECRET).map_err(failed)?
        }
    };
    String::from_utf8(bytes).map(SecretString::from).map_err(|_| wrong(&SealError::Unread))
}

fn bounded(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The certificate as PEM: of a file, of an address, or of a runtime.
async fn certificate(given: &Seal, environment: &Environment) -> Result<String, RemoteError> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match given.cert.as_deref() {
        Some(url) if url.starts_with("https://") || url.starts_with("http://") => {
            fetched(url).await.map(text)
        }
        Some(path) => {
            let (act, path) = ("read the certificate of", Path::new(path));
            let failed = |source| RemoteError::File { act, path: path.to_path_buf(), source };
            let most = u64::try_from(CERTIFICATE).unwrap_or(u64::MAX);
            bounded(File::open(path).map_err(failed)?, most).map_err(failed).map(text)
        }
        None => {
            let proxy = workflow::proxy(given.runtime.as_deref(), &given.way, environment).await?;
            let query = "query Certificate { sealingCertificate { pem } }";
            let shown: SealingCertificate =
                proxy.get("fetch the certificate", query, json!({}), "sealingCertificate").await?;
            Ok(shown.pem)
        }
    }
}

pub(crate) async fn fetched(url: &str) -> Result<Vec<u8>, RemoteError> {
    let act = "fetch the certificate";
    let target = Target::new(url, "").map_err(RemoteError::Address)?;
    let client = Config::new(ANSWER, CERTIFICATE).build(target).await.map_err(RemoteError::Client)?;
    let request = client.request(act, Method::GET, &[])?;
    let reply = client.send(act, request).await.map_err(|error| RemoteError::Http(error, GIVEN))?;
    if !(200..300).contains(&reply.status()) {
        let said = format!("it answered {}: is that where its certificate is?", reply.status());
        return Err(RemoteError::Refused { act, host: client.host().to_string(), said });
    }
    Ok(reply.into_body()?.to_vec())
}
