//! The certificate of the controller of sealed-secrets: it is enough to seal values, and cannot open them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rsa::RsaPublicKey;
use rsa::pkcs8::DecodePublicKey as _;
use x509_cert::der::{Decode as _, Encode as _};

use crate::SealError;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The certificate of the controller of sealed-secrets.
#[derive(Debug, Clone)]
pub struct Certificate {
    pub(crate) key: RsaPublicKey,
    ended: Timestamp,
}

impl Certificate {
    /// Reads the first certificate of a text in PEM, as the controller serves it.
    ///
    /// # Errors
    /// [`SealError::NoCertificate`] when there is none, [`SealError::OtherKey`] when its key is not one of RSA.
    pub fn read(pem: &str) -> Result<Self, SealError> {
        let body = pem.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map(|(body, _)| body);
        let body: String = body.ok_or(SealError::NoCertificate)?.split_ascii_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| SealError::NoCertificate)?;
        let read = x509_cert::Certificate::from_der(&der).map_err(|_| SealError::NoCertificate)?;
        let of = read.tbs_certificate();
        let key = of.subject_public_key_info().to_der().map_err(|_| SealError::NoCertificate)?;
        let key = RsaPublicKey::from_public_key_der(&key).map_err(|_| SealError::OtherKey)?;
        let until = of.validity().not_after.to_unix_duration().as_secs();
        let until = i64::try_from(until).ok().and_then(|until| Timestamp::from_second(until).ok());
        Ok(Self { key, ended: until.ok_or(SealError::NoCertificate)? })
    }

    /// Checks that it has not ended at `now`.
    ///
    /// # Errors
    /// [`SealError::Ended`] when it has: by then the controller has another, and the key of this one may be thrown away.
    pub fn holds(&self, now: Timestamp) -> Result<(), SealError> {
        match now <= self.ended {
            true => Ok(()),
            false => Err(SealError::Ended(self.ended.strftime("%F").to_string())),
        }
    }
}
