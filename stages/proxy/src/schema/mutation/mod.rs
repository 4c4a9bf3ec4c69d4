//! What may be changed.

mod cluster;
mod git;
mod sealing;

use async_graphql::{Context, MergedObject, Result};

use self::cluster::ClusterMutation;
use self::git::GitMutation;
use self::sealing::SealingMutation;
use super::{caller, services};
use crate::account::Account;
use crate::dispatcher::Invocation;
use crate::error::ActError;

// Its fields stand in the schema in this order.
#[derive(MergedObject, Default)]
pub(crate) struct Mutation(ClusterMutation, GitMutation, SealingMutation);

/// Does something, for whoever may, and records it.
async fn act<T: Send + 'static>(
    context: &Context<'_>,
    invocation: Invocation,
    doing: impl Future<Output = std::result::Result<T, ActError>> + Send + 'static,
) -> Result<T> {
    // The future is boxed because it is held while the caller is authorized.
    let doing = Box::pin(doing);
    act_as(context, invocation, |_| doing).await
}

/// As [`act`], of what depends on the account.
async fn act_as<T: Send + 'static, Doing>(
    context: &Context<'_>,
    invocation: Invocation,
    doing: impl FnOnce(Account) -> Doing + Send + 'static,
) -> Result<T>
where
    Doing: Future<Output = std::result::Result<T, ActError>> + Send + 'static,
{
    let (services, caller) = (services(context)?, caller(context)?);
    services.dispatcher.act(caller, invocation, doing).await.map_err(|error| error.graphql())
}
