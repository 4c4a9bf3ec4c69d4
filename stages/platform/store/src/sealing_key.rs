//! Private keys that runtimes have here against their loss: what was sealed for one is opened by nothing else. Only the runtime itself
//! is given its key again; as the key that its own secrets are kept under, it stands in the store as it is.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pipeline_core::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use crate::audit::By;
use crate::connection::Arg;
use crate::error::StoreError;
use crate::report::Millis;
use crate::secret;
use crate::statement::Statement;
use crate::store::Store;
use crate::token::Runtime;

/// Keys of one runtime. More are refused rather than that the oldest goes: it is the only copy of what opens what was sealed for it.
pub const SEALING_KEYS: usize = 10;
/// The longest key.
const LONGEST: usize = 64 * 1_024;
/// Digits of the id of a key.
const ID: usize = 24;

/// A private key, as base64 of PEM. It is masked where it is printed.
#[derive(Debug, Clone)]
pub struct SealingKey(SecretString);

/// Whether a text is a private key.
fn is_key(pem: &str) -> bool {
    let pem = pem.trim();
    let first = pem.lines().next().unwrap_or_default();
    let last = pem.lines().next_back().unwrap_or_default();
    let is_of =
        |line: &str, mark: &str| line.starts_with(mark) && line.trim_end().ends_with("PRIVATE KEY-----");
    is_of(first, "-----BEGIN ") && is_of(last, "-----END ")
}

impl SealingKey {
    /// Reads a key: PEM, or base64 of it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(given: &SecretString) -> Result<Self, &'static str> {
        let text = given.expose_secret();
        if text.len() > LONGEST {
            return Err("a sealing key has at most 65536 bytes");
        }
        if is_key(text) {
            return Ok(Self(STANDARD.encode(text).into()));
        }
        let joined: String = text.split_ascii_whitespace().collect();
        let pem = STANDARD.decode(joined).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match pem {
            Some(pem) if is_key(&pem) => Ok(Self(given.clone())),
            _ => Err("a sealing key is a private key in PEM, or base64 of that"),
        }
    }

    /// Shows it, as base64 of PEM.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl Store {
    /// Keeps a key of a runtime; the id that it is asked for by, which is the same for the same key. `None`: it has too many.
    ///
    /// # Errors
    /// [`StoreError`] when it was not kept.
    pub async fn keep_sealing_key(
        &self,
        runtime: &Runtime,
        key: &SealingKey,
        now: Millis,
    ) -> Result<Option<String>, Arc<StoreError>> {
        let digest: [u8; 32] = Sha256::digest(key.expose()).into();
        let id: String = secret::digits()?.chars().take(ID).collect();
        let sql = "INSERT INTO sealing_keys (id, runtime_id, digest, body, created_at) SELECT $1, r.id, $3, $4, $5 FROM runtimes r \
                   WHERE r.id = $2 AND (SELECT count(*) FROM sealing_keys k WHERE k.runtime_id = $2) < $6 \
                   ON CONFLICT (runtime_id, digest) DO NOTHING";
        let most = i64::try_from(SEALING_KEYS).unwrap_or(i64::MAX);
        let values =
            [(&*id).into(), runtime.id.into(), digest.into(), key.expose().into(), now.into(), most.into()];
        let by = By { who: runtime.name.clone(), how: "token" };
        let kept = by.did("sealing-key.save", &format!("{}: {id}", runtime.name), now);
        if self.whether(vec![Statement::must(sql, values), kept]).await? {
            return Ok(Some(id));
        }
        let known = "SELECT id FROM sealing_keys WHERE runtime_id = $1 AND digest = $2";
        Ok(self.read().await?.one(known, &[Arg::Int(runtime.id), Arg::Bytes(&digest)]).await?)
    }

    /// The key of a runtime of that id; `None`: it has none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot be read.
    pub async fn sealing_key(&self, runtime: &Runtime, id: &str) -> Result<Option<SealingKey>, StoreError> {
        let sql = "SELECT body FROM sealing_keys WHERE id = $1 AND runtime_id = $2";
        let key = self.read().await?.one(sql, &[Arg::Text(id), Arg::Int(runtime.id)]).await?;
        Ok(key.map(SealingKey))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = "-----BEGIN RSA PRIVATE KEY-----\nbWFkZSB1cA==\n-----END RSA PRIVATE KEY-----\n";

    #[test]
    fn a_key_is_told_as_base64_of_pem_and_masked_where_it_is_printed() {
        let read = |text: &str| SealingKey::read(&text.into());
        let encoded = STANDARD.encode(PEM);
        let key = read(PEM).unwrap();
        assert_eq!(key.expose(), encoded);
        assert_eq!(
            read(&format!("{encoded}\n")).unwrap().expose(),
            format!("{encoded}\n"),
            "as it was given"
        );
        let (begin, end) = encoded.split_at(40);
        assert!(read(&format!("{begin}\n{end}")).is_ok(), "it may be broken into lines");
        let printed = format!("{key:?}");
        assert!(!printed.contains(&encoded) && !printed.contains("BEGIN"), "{printed}");
        let said = "a sealing key is a private key in PEM, or base64 of that";
        let certificate = PEM.replace("RSA PRIVATE KEY", "CERTIFICATE");
        for wrong in
            ["", "made-up", &*STANDARD.encode("made-up"), &*certificate, "-----BEGIN PRIVATE KEY-----"]
        {
            assert_eq!(read(wrong).unwrap_err(), said);
        }
        let long = format!("{PEM}{}", " ".repeat(LONGEST));
        assert_eq!(read(&long).unwrap_err(), "a sealing key has at most 65536 bytes");
    }
}
