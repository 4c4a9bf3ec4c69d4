//! Authorization by accounts of the cluster: the owner of a token is asked of the cluster, and the answer is cached for a minute.

use std::collections::BTreeMap;
use std::time::Duration;

use moka::future::Cache;
use pipeline_core::{ExposeSecret as _, SecretString, async_trait};
use sha2::{Digest as _, Sha256};

use crate::callers::{Admission, Callers};
use crate::operation::Operations;

/// How long an answer is cached, for which a token that is revoked is still taken.
const CACHED: Duration = Duration::from_secs(60);
/// The most tokens that are cached, valid or not.
const MAX_TOKENS: u64 = 1_000;

/// Finds the owner of a token.
#[async_trait]
pub trait Review: std::fmt::Debug + Send + Sync {
    /// The name of the owner; `None`: the cluster does not know the token.
    ///
    /// # Errors
    /// If that cannot be found out; the implementation has logged why.
    async fn owner(&self, token: &SecretString) -> Result<Option<String>, ReviewError>;
}

/// The owner of a token could not be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewError;

/// Admits accounts of the cluster by their names.
#[derive(Debug)]
pub struct Accounts<R> {
    review: R,
    allowed: BTreeMap<String, Operations>,
    known: Cache<[u8; 32], Admission>,
}

impl<R: Review> Accounts<R> {
    /// Admits each account, such as `system:serviceaccount:argocd:event-reporter`, to its operations.
    pub fn new(review: R, allowed: impl IntoIterator<Item = (String, Operations)>) -> Self {
        let known = Cache::builder().max_capacity(MAX_TOKENS).time_to_live(CACHED).build();
        Self { review, allowed: allowed.into_iter().collect(), known }
    }
}

#[async_trait]
impl<R: Review> Callers for Accounts<R> {
    async fn admit(&self, token: &SecretString) -> Admission {
        let digest: [u8; 32] = Sha256::digest(token.expose_secret()).into();
        let review = async {
            let owner = self.review.owner(token).await?;
            let may = owner.and_then(|owner| self.allowed.get(&owner));
            Ok::<_, ReviewError>(may.map_or(Admission::No, |may| Admission::To(*may)))
        };
        self.known.try_get_with(digest, review).await.unwrap_or(Admission::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pipeline_core::{ExposeSecret as _, SecretString, async_trait};

    use super::{Accounts, Review, ReviewError};
    use crate::callers::{Admission, Callers as _};
    use crate::operation::{Operation, Operations};

    /// A token is its owner's name; counts how often it is asked.
    #[derive(Debug, Default)]
    struct Cluster(Arc<AtomicUsize>);

    #[async_trait]
    impl Review for Cluster {
        async fn owner(&self, token: &SecretString) -> Result<Option<String>, ReviewError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            match token.expose_secret() {
                "away" => Err(ReviewError),
                "nobody" => Ok(None),
                name => Ok(Some(name.to_owned())),
            }
        }
    }

    #[tokio::test]
    async fn those_who_may_ask_are_known_by_name_and_the_cluster_is_asked_once() {
        let asked = Arc::new(AtomicUsize::new(0));
        let commits = Operations::from_iter([Operation::Commit]);
        let allowed = [("argocd:reporter", Operations::ALL), ("argocd:proxy", commits)]
            .map(|(name, may)| (format!("system:serviceaccount:{name}"), may));
        let accounts = Accounts::new(Cluster(asked.clone()), allowed);
        let admit = async |token: &str| accounts.admit(&token.to_owned().into()).await;
        for _ in 0..3 {
            assert_eq!(admit("system:serviceaccount:argocd:reporter").await, Admission::To(Operations::ALL));
            assert_eq!(admit("system:serviceaccount:argocd:proxy").await, Admission::To(commits));
            assert_eq!(admit("system:serviceaccount:argocd:other").await, Admission::No);
            assert_eq!(admit("nobody").await, Admission::No);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        // What could not be found out is asked again.
        assert_eq!((admit("away").await, admit("away").await), (Admission::Unknown, Admission::Unknown));
        assert_eq!(asked.load(Ordering::SeqCst), 6);
    }
}
