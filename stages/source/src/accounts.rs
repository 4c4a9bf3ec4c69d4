//! Callers that are accounts of the cluster: who a token is of is asked of the cluster, and kept for a minute.

use std::collections::BTreeMap;
use std::time::Duration;

use moka::future::Cache;
use pipeline_core::{ExposeSecret as _, SecretString, async_trait};
use sha2::{Digest as _, Sha256};

use crate::callers::{Admitted, Callers};
use crate::operation::Operations;

/// How long an answer holds: a token that is taken back lives on for as long.
const KEPT: Duration = Duration::from_secs(60);
/// Tokens that are remembered, good and bad ones.
const TOKENS: u64 = 1_000;

/// Says whose a token is.
#[async_trait]
pub trait Review: std::fmt::Debug + Send + Sync {
    /// The name of its owner, `None` when nobody knows the token, `Err` when that could not be found out; why was said.
    async fn owner(&self, token: &SecretString) -> Result<Option<String>, Unreviewed>;
}

/// Whose a token is could not be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreviewed;

/// The accounts that may ask.
#[derive(Debug)]
pub struct Accounts<R> {
    review: R,
    allowed: BTreeMap<String, Operations>,
    known: Cache<[u8; 32], Admitted>,
}

impl<R: Review> Accounts<R> {
    /// Those with these names, such as `system:serviceaccount:argocd:event-reporter`, each to ask this.
    pub fn new(review: R, allowed: impl IntoIterator<Item = (String, Operations)>) -> Self {
        let known = Cache::builder().max_capacity(TOKENS).time_to_live(KEPT).build();
        Self { review, allowed: allowed.into_iter().collect(), known }
    }
}

#[async_trait]
impl<R: Review> Callers for Accounts<R> {
    async fn admit(&self, token: &SecretString) -> Admitted {
        let digest: [u8; 32] = Sha256::digest(token.expose_secret()).into();
        let review = async {
            let owner = self.review.owner(token).await?;
            let may = owner.and_then(|owner| self.allowed.get(&owner));
            Ok::<_, Unreviewed>(may.map_or(Admitted::No, |may| Admitted::To(*may)))
        };
        self.known.try_get_with(digest, review).await.unwrap_or(Admitted::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pipeline_core::{ExposeSecret as _, SecretString, async_trait};

    use super::{Accounts, Review, Unreviewed};
    use crate::callers::{Admitted, Callers as _};
    use crate::operation::{Operation, Operations};

    /// A token is its owner's name; counts how often it is asked.
    #[derive(Debug, Default)]
    struct Cluster(Arc<AtomicUsize>);

    #[async_trait]
    impl Review for Cluster {
        async fn owner(&self, token: &SecretString) -> Result<Option<String>, Unreviewed> {
            self.0.fetch_add(1, Ordering::SeqCst);
            match token.expose_secret() {
                "away" => Err(Unreviewed),
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
            assert_eq!(admit("system:serviceaccount:argocd:reporter").await, Admitted::To(Operations::ALL));
            assert_eq!(admit("system:serviceaccount:argocd:proxy").await, Admitted::To(commits));
            assert_eq!(admit("system:serviceaccount:argocd:other").await, Admitted::No);
            assert_eq!(admit("nobody").await, Admitted::No);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 4);
        // What could not be found out is asked again.
        assert_eq!((admit("away").await, admit("away").await), (Admitted::Unknown, Admitted::Unknown));
        assert_eq!(asked.load(Ordering::SeqCst), 6);
    }
}
