//! What is done to Secrets.

use async_graphql::{Context, Object, Result};
use pipeline_core::SecretString;

use super::act;
use crate::dispatcher::Invocation;
use crate::gate::Subject;
use crate::operation::Operation;
use crate::schema::sealing::{SealSecretInput, SealedSecretOutput};
use crate::schema::services;

/// What is sealed for people.
#[derive(Default)]
pub(crate) struct SealingMutation;

#[Object]
impl SealingMutation {
    /// Seals a Secret with the certificate of the controller of sealed-secrets, so that it may stand in Git.
    async fn seal_secret(&self, context: &Context<'_>, args: SealSecretInput) -> Result<SealedSecretOutput> {
        let SealSecretInput { secret, namespace } = args;
        let secret = SecretString::from(secret);
        let subject = Subject { namespace: namespace.clone(), ..Subject::default() };
        let sealing = services(context)?.sealing.clone();
        act(context, Invocation::new(Operation::SEAL_SECRET, subject), async move {
            Ok(SealedSecretOutput { output: sealing.seal(secret, namespace).await? })
        })
        .await
    }
}
