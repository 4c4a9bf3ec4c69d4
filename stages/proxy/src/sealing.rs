//! Secrets, sealed for the controller of sealed-secrets of this runtime, with the certificate that it shows to anybody.
//!
//! takes: a Secret, and a namespace - gives: a SealedSecret - calls: `GET {controller}/v1/cert.pem` - fails: where there is no
//! controller; nothing of the Secret stands in an error, and no private key is ever read

use jiff::Timestamp;
use pipeline_core::{ExposeSecret as _, SecretString};
use pipeline_seal::{Certificate, SealError, seal};
use stages_client::{Client, HttpError, Method};

use crate::error::ActError;

const PEER: &str = "the controller of sealed-secrets";
const ACT: &str = "show its certificate";
/// The most bytes of an answer with certificates.
const MAX_ANSWER: usize = 64 << 10;
const NO_CONTROLLER: &str =
    "this runtime is not told of a controller of sealed-secrets: set appProxy.sealedSecrets.url";

/// Seals Secrets.
#[derive(Debug, Clone)]
pub(crate) struct Sealing {
    /// The controller of sealed-secrets; `None`: the runtime has none.
    pub(crate) controller: Option<Client>,
}

fn refused(error: &SealError) -> ActError {
    ActError::Wrong(error.to_string())
}

impl Sealing {
    /// The controller's certificate as PEM, which is valid now.
    pub(crate) async fn certificate(&self) -> Result<String, ActError> {
        self.fetch().await.map(|(pem, _)| pem)
    }

    /// The SealedSecret of a Secret, as YAML.
    pub(crate) async fn seal(&self, secret: SecretString, namespace: String) -> Result<String, ActError> {
        let (_, certificate) = self.fetch().await?;
        // A thousand values take a while.
        let sealed = tokio::task::spawn_blocking(move || {
            seal(secret.expose_secret(), Some(&namespace), None, &certificate)
        });
        sealed.await.map_err(|_| ActError::Stopping)?.map_err(|error| refused(&error))
    }

    async fn fetch(&self) -> Result<(String, Certificate), ActError> {
        let client = self.controller.as_ref().ok_or_else(|| ActError::Wrong(NO_CONTROLLER.to_owned()))?;
        let away = |source: HttpError| ActError::Away { peer: PEER, act: ACT, source };
        let request = client.request(ACT, Method::GET, &["v1", "cert.pem"]).map_err(away)?;
        let reply = client.send_within(ACT, request, MAX_ANSWER).await.map_err(away)?;
        if !(200..300).contains(&reply.status()) {
            let said = "see appProxy.sealedSecrets.url: it is to be the controller's Service".to_owned();
            return Err(ActError::Peer { peer: PEER, act: ACT, status: reply.status(), said });
        }
        let pem = std::str::from_utf8(reply.body()).map_err(|_| ActError::Unreadable(PEER))?;
        let certificate = Certificate::read(pem).map_err(|_| ActError::Unreadable(PEER))?;
        certificate.holds(Timestamp::now()).map_err(|error| refused(&error))?;
        Ok((pem.to_owned(), certificate))
    }
}
