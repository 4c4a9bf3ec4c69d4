//! Passwords: Argon2id with 19 MiB, off the threads that serve, few at a time.

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

/// The shortest password that is taken.
pub(crate) const SHORTEST: usize = 12;
const LONGEST: usize = 1_024;
const AT_A_TIME: usize = 2;

/// A password could not be hashed or compared.
#[derive(Debug, thiserror::Error)]
#[error("a password could not be hashed")]
pub(crate) struct HashError;

/// Hashes passwords.
pub(crate) struct Passwords {
    places: Semaphore,
    /// Of a password that nobody has: it is compared for names that there are not, which then take as long.
    nobody: String,
}

fn argon2() -> Result<Argon2<'static>, HashError> {
    let parameters = Params::new(19 * 1_024, 2, 1, None).map_err(|_| HashError)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters))
}

impl Passwords {
    pub(crate) fn new() -> Self {
        // A constant would do; made from no password, it can never be right, since empty passwords are refused.
        let nobody = argon2()
            .and_then(|argon2| argon2.hash_password(b"").map(|hash| hash.to_string()).map_err(|_| HashError));
        Self { places: Semaphore::new(AT_A_TIME), nobody: nobody.unwrap_or_default() }
    }

    pub(crate) fn is_well(password: &str) -> bool {
        (SHORTEST..=LONGEST).contains(&password.chars().count())
    }

    pub(crate) async fn hash(&self, password: String) -> Result<String, HashError> {
        let _place = self.places.acquire().await.map_err(|_| HashError)?;
        let hashed = tokio::task::spawn_blocking(move || {
            let hash = argon2()?.hash_password(password.as_bytes()).map_err(|_| HashError)?;
            Ok(hash.to_string())
        });
        hashed.await.map_err(|_| HashError)?
    }

    /// Whether the password is the one of the hash; without one it is not, and takes as long.
    pub(crate) async fn is_right(&self, password: String, hash: Option<String>) -> Result<bool, HashError> {
        if password.is_empty() || password.len() > 4 * LONGEST {
            return Ok(false);
        }
        let _place = self.places.acquire().await.map_err(|_| HashError)?;
        let hash = hash.unwrap_or_else(|| self.nobody.clone());
        let compared = tokio::task::spawn_blocking(move || {
            Ok(argon2()?.verify_password(password.as_bytes(), &*hash).is_ok())
        });
        compared.await.map_err(|_| HashError)?
    }
}
