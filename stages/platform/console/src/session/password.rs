//! Passwords: Argon2id with 19 MiB, off the threads that serve, few at a time, and for which not many wait.

use std::sync::Arc;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The shortest password that is taken.
pub(crate) const SHORTEST: usize = 12;
const LONGEST: usize = 1_024;
const AT_A_TIME: usize = 2;
/// So many more wait for a place.
const WAITING: usize = 64;

/// A password could not be hashed or compared.
#[derive(Debug, thiserror::Error)]
#[error("a password could not be hashed")]
pub(crate) struct HashError;

/// All places are taken, and as many wait for one as may.
#[derive(Debug, thiserror::Error)]
#[error("too many passwords wait to be hashed")]
pub(crate) struct PasswordsBusy;

/// A place to hash one password. It lasts as long as the work, even where nobody waits for that any more.
pub(crate) struct PasswordPlace {
    _queued: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

/// Hashes passwords.
pub(crate) struct Passwords {
    places: Arc<Semaphore>,
    /// Of those who have a place or wait for one.
    queue: Arc<Semaphore>,
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
        let [places, queue] = [AT_A_TIME, AT_A_TIME + WAITING].map(|many| Arc::new(Semaphore::new(many)));
        Self { places, queue, nobody: nobody.unwrap_or_default() }
    }

    pub(crate) fn is_well(password: &str) -> bool {
        (SHORTEST..=LONGEST).contains(&password.chars().count())
    }

    /// Whether it may be anybody's; what may not is not worth a place.
    pub(crate) const fn may_be(password: &str) -> bool {
        !password.is_empty() && password.len() <= 4 * LONGEST
    }

    /// A place, as soon as there is one.
    pub(crate) async fn place(&self) -> Result<PasswordPlace, PasswordsBusy> {
        let queued = self.queue.clone().try_acquire_owned().map_err(|_| PasswordsBusy)?;
        let place = self.places.clone().acquire_owned().await.map_err(|_| PasswordsBusy)?;
        Ok(PasswordPlace { _queued: queued, _place: place })
    }

    pub(crate) async fn hash(&self, place: PasswordPlace, password: String) -> Result<String, HashError> {
        let hashed = tokio::task::spawn_blocking(move || {
            let _place = place;
            let hash = argon2()?.hash_password(password.as_bytes()).map_err(|_| HashError)?;
            Ok(hash.to_string())
        });
        hashed.await.map_err(|_| HashError)?
    }

    /// The hash that a password is compared with; whoever has none yet is as nobody.
    fn compared(&self, hash: Option<String>) -> String {
        hash.filter(|hash| !hash.is_empty()).unwrap_or_else(|| self.nobody.clone())
    }

    /// Whether the password is the one of the hash; without one it is not, and takes as long.
    pub(crate) async fn is_right(
        &self,
        place: PasswordPlace,
        password: String,
        hash: Option<String>,
    ) -> Result<bool, HashError> {
        if !Self::may_be(&password) {
            return Ok(false);
        }
        let hash = self.compared(hash);
        let compared = tokio::task::spawn_blocking(move || {
            let _place = place;
            Ok(argon2()?.verify_password(password.as_bytes(), &*hash).is_ok())
        });
        compared.await.map_err(|_| HashError)?
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn whoever_has_no_password_is_compared_with_nobodys_and_takes_as_long() {
        let passwords = Passwords::new();
        assert!(passwords.nobody.starts_with("$argon2id$"));
        for hash in [None, Some(String::new())] {
            assert_eq!(passwords.compared(hash), passwords.nobody);
        }
        assert_eq!(passwords.compared(Some("$argon2id$own".to_owned())), "$argon2id$own");
    }

    #[tokio::test]
    async fn so_many_wait_for_a_place_and_whoever_comes_then_is_refused() {
        let passwords = Passwords::new();
        let mut held = [passwords.place().await.unwrap(), passwords.place().await.unwrap()].map(Some);
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(passwords.place())).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()), "they wait");
        assert!(passwords.place().await.is_err());
        let place = held[0].take().unwrap();
        assert!(!passwords.is_right(place, "correct horse battery".to_owned(), None).await.unwrap());
        let next = waiting.remove(0).await.unwrap();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()), "a place is for one");
        // Whoever goes away makes room for another, who waits as well.
        drop(waiting.pop());
        let mut another = [Box::pin(passwords.place()), Box::pin(passwords.place())];
        assert!(another.iter_mut().all(|one| one.now_or_never().is_none()));
        assert!(passwords.place().await.is_err());
        drop((held, next));
        for one in waiting.into_iter().chain(another) {
            drop(one.await.unwrap());
        }
    }
}
