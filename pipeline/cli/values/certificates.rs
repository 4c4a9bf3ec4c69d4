//! The certificates that a peer shows, and which of them does not verify.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pipeline_doctor::Certificate;
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, Error};
use stages_client::ServerVerifier;
use x509_cert::der::Decode as _;

/// What was shown, and why it did not verify.
#[derive(Debug, Default)]
pub(in crate::cli) struct Chain {
    shown: Vec<CertificateDer<'static>>,
    /// Why, where it does not verify.
    pub(in crate::cli) why: Option<Error>,
}

/// A chain that a verifier fills in while somebody else waits for it.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct PresentedChain(pub(in crate::cli) Arc<Mutex<Chain>>);

impl Chain {
    /// Each certificate, the peer's own first; one that cannot be read is left out.
    pub(in crate::cli) fn certificates(&self) -> Vec<Certificate> {
        let told = |one: &x509_cert::TbsCertificate| {
            let ends = i64::try_from(one.validity().not_after.to_unix_duration().as_secs()).ok()?;
            Some(Certificate { subject: name(one.subject()), ends })
        };
        self.read().iter().filter_map(told).collect()
    }

    fn read(&self) -> Vec<x509_cert::TbsCertificate> {
        let read = |der: &CertificateDer<'_>| x509_cert::Certificate::from_der(der).ok();
        self.shown.iter().filter_map(read).map(|one| one.tbs_certificate().clone()).collect()
    }
}

/// Verifies as another does, or trusts everybody where it is insecure, and remembers what was shown.
pub(in crate::cli) fn recording(
    inner: Arc<ServerVerifier>,
    insecure: bool,
    shown: &PresentedChain,
) -> Arc<ServerVerifier> {
    let PresentedChain(shown) = shown.clone();
    ServerVerifier::by(move |presented| {
        let verified = inner.verify(presented);
        let mut chain = shown.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::iter::once(presented.own).chain(presented.between);
        chain.shown = all.map(|one| one.clone().into_owned()).collect();
        if insecure {
            return Ok(());
        }
        chain.why = verified.as_ref().err().cloned();
        verified
    })
}

/// Which certificate of a chain does not verify, and how.
pub(in crate::cli) fn described(chain: &Chain) -> String {
    let all = chain.read();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let Some(own) = all.first() else { return "its certificate cannot be read".to_owned() };
    let own_name = name(own.subject());
    // The verifier tells that one has expired, and not which.
    for one in &all {
        let (begins, ends) = (one.validity().not_before, one.validity().not_after);
        if ends.to_unix_duration() < now {
            return format!("the certificate of {} expired at {ends}", name(one.subject()));
        }
        if begins.to_unix_duration() > now {
            return format!("the certificate of {} begins at {begins}", name(one.subject()));
        }
    }
    match &chain.why {
        Some(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => format!("the certificate of {own_name} is for another host"),
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            let last = all.last().unwrap_or(own);
            let (subject, issuer) = (name(last.subject()), name(last.issuer()));
            if last.subject() == last.issuer() {
                format!("the certificate of {own_name} is signed by {subject}, which is not trusted here")
            } else {
                format!(
                    "the certificate of {subject} is signed by {issuer}, which is not trusted here and not shown"
                )
            }
        }
        Some(Error::InvalidCertificate(CertificateError::Revoked)) => {
            format!("the certificate of {own_name} was revoked")
        }
        Some(Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        )) => format!("the certificate of {own_name} is not one of a server"),
        _ => format!("the certificate of {own_name} does not verify"),
    }
}

/// A name for people, on one line.
fn name(name: &x509_cert::name::Name) -> String {
    let text: String =
        name.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect();
    if text.is_empty() { "no name".to_owned() } else { text }
}
