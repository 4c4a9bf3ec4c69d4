//! What is done with Git integrations, and in repositories.

use async_graphql::{Context, Object, Result};

use super::{act, act_as};
use crate::account::Account;
use crate::dispatcher::Invocation;
use crate::error::ActError;
use crate::gate::Subject;
use crate::git::{CheckedGitToken, Commit, CommitRequest, Integration, PullRequest, SharingPolicy};
use crate::operation::Operation;
use crate::schema::git::{
    AddGitIntegrationArgs, CommitFilesArgs, CreatePullRequestArgs, DeleteFilesArgs, EditGitIntegrationArgs,
    FinishGitAuthArgs, GitAuth, GitIntegration, RegisterToGitIntegrationArgs, Registration, given,
    or_default,
};
use crate::schema::git_token::UpdateRuntimeGitTokenArgs;
use crate::schema::{Void, caller, services};
use crate::secret_names::REPOSITORIES_SECRET;

/// What people do at Git providers, as themselves.
#[derive(Default)]
pub(crate) struct GitMutation;

/// What is done with a Git integration.
fn of_git(operation: Operation, name: &str) -> Invocation {
    Invocation::new(operation, Subject::default()).of(format!("Git integration {name}"))
}

/// The integration that a token is to be registered with, for whoever may: that depends on the integration, which whoever may not even
/// do so much is told nothing of.
async fn registering(
    context: &Context<'_>,
    operation: Operation,
    name: &str,
) -> Result<(Integration, Invocation)> {
    let (services, invocation) = (services(context)?, of_git(operation, name));
    let found = services.dispatcher.read(caller(context)?, invocation.clone(), services.git.find(name)).await;
    let integration = found.map_err(|error| error.graphql())?;
    let invocation = match integration.sharing_policy {
        SharingPolicy::AllUsersInAccount => invocation,
        SharingPolicy::AccountAdmins => {
            Invocation { operation: invocation.operation.of_admins(), ..invocation }
        }
    };
    Ok((integration, invocation))
}

/// Commits, as whoever may.
async fn commit(
    context: &Context<'_>,
    operation: Operation,
    (integration, repo): (String, String),
    change: CommitRequest,
) -> Result<Commit> {
    let invocation = Invocation::new(operation, Subject::default())
        .of(format!("Git integration {integration} repository {repo}"));
    let files = services(context)?.files.clone();
    let doing = move |who: Account| async move { files.commit(&who, (&integration, &repo), change).await };
    act_as(context, invocation, doing).await
}

#[Object]
impl GitMutation {
    /// Adds a Git integration.
    async fn add_git_integration(
        &self,
        context: &Context<'_>,
        args: AddGitIntegrationArgs,
    ) -> Result<GitIntegration> {
        let (git, name) = (services(context)?.git.clone(), or_default(args.name));
        act(context, of_git(Operation::ADD_GIT, &name), async move {
            let integration = Integration::new(args.provider, args.api_url.as_deref(), args.sharing_policy)?;
            git.add(&name, &integration).await?;
            git.get(&name).await.map(GitIntegration::from)
        })
        .await
    }

    /// Changes a Git integration.
    async fn edit_git_integration(
        &self,
        context: &Context<'_>,
        args: EditGitIntegrationArgs,
    ) -> Result<GitIntegration> {
        let (git, name) = (services(context)?.git.clone(), or_default(args.name));
        let api_url = given(args.api_url);
        act(context, of_git(Operation::EDIT_GIT, &name), async move {
            git.edit(&name, api_url.as_deref(), args.sharing_policy).await?;
            git.get(&name).await.map(GitIntegration::from)
        })
        .await
    }

    /// Removes a Git integration, and all tokens that were registered with it.
    async fn remove_git_integration(
        &self,
        context: &Context<'_>,
        name: Option<String>,
    ) -> Result<Option<Void>> {
        let (git, name) = (services(context)?.git.clone(), or_default(name));
        act(context, of_git(Operation::REMOVE_GIT, &name), async move {
            git.remove(&name).await?;
            Ok(None)
        })
        .await
    }

    /// Registers the Git token of whoever asks, once its provider says that it may enough.
    async fn register_to_git_integration(
        &self,
        context: &Context<'_>,
        args: RegisterToGitIntegrationArgs,
    ) -> Result<GitIntegration> {
        let Registration { integration: name, user, username, token } =
            args.read().map_err(|error| error.graphql())?;
        let (integration, invocation) = registering(context, Operation::REGISTER_GIT, &name).await?;
        let git = services(context)?.git.clone();
        let doing = move |who: Account| async move {
            if user.is_some_and(|user| user != who.name) {
                let why = "a token is registered by whom it is of: leave userId out";
                return Err(ActError::Refused(why.to_owned()));
            }
            git.register(&name, &integration, &who, (username.as_deref(), &token)).await?;
            git.get(&name).await.map(GitIntegration::from)
        };
        act_as(context, invocation, doing).await
    }

    /// Begins to register a token of the runtime's OAuth application at GitHub: whoever asks opens the address, and consents there.
    async fn begin_git_auth(&self, context: &Context<'_>, name: Option<String>) -> Result<GitAuth> {
        let name = or_default(name);
        let (integration, invocation) = registering(context, Operation::BEGIN_GIT_AUTH, &name).await?;
        let oauth = services(context)?.oauth.clone();
        let doing = move |who: Account| async move {
            Ok(GitAuth { url: oauth.begin(&who, (&name, &integration)).await? })
        };
        act_as(context, invocation, doing).await
    }

    /// Registers that token, with the line that the browser shows since.
    async fn finish_git_auth(
        &self,
        context: &Context<'_>,
        args: FinishGitAuthArgs,
    ) -> Result<GitIntegration> {
        let FinishGitAuthArgs { name, line } = args;
        let name = or_default(name);
        let (integration, invocation) = registering(context, Operation::FINISH_GIT_AUTH, &name).await?;
        let services = services(context)?;
        let (git, oauth) = (services.git.clone(), services.oauth.clone());
        let doing = move |who: Account| async move {
            let token = oauth.finish(&who, (&name, &integration), &line).await?;
            git.register(&name, &integration, &who, (None, &token)).await?;
            git.get(&name).await.map(GitIntegration::from)
        };
        act_as(context, invocation, doing).await
    }

    /// Forgets the Git token of whoever asks.
    async fn deregister_from_git_integration(
        &self,
        context: &Context<'_>,
        name: Option<String>,
    ) -> Result<GitIntegration> {
        let (git, name) = (services(context)?.git.clone(), or_default(name));
        let invocation = of_git(Operation::DEREGISTER_GIT, &name);
        let doing = move |who: Account| async move {
            git.deregister(&name, &who).await?;
            git.get(&name).await.map(GitIntegration::from)
        };
        act_as(context, invocation, doing).await
    }

    /// Keeps the Git token that Argo CD reads repositories with, once its provider says that it may enough.
    async fn update_runtime_git_token(
        &self,
        context: &Context<'_>,
        args: UpdateRuntimeGitTokenArgs,
    ) -> Result<CheckedGitToken> {
        let (git, new) = (services(context)?.git.clone(), args.read().map_err(|error| error.graphql())?);
        let invocation = Invocation::new(Operation::UPDATE_RUNTIME_GIT_TOKEN, Subject::default());
        let invocation = invocation.of(format!("Secret {REPOSITORIES_SECRET}"));
        act(context, invocation, async move { Box::pin(git.update_runtime_token(new)).await }).await
    }

    /// Commits files to a branch, as whoever asks: with the token that they registered, and in their name. What others push
    /// meanwhile stays; where both changes do not go together, it is refused. A new branch is made where `baseRef` says what it
    /// begins at, and the first commit of a repository where there is none.
    async fn commit_files(&self, context: &Context<'_>, args: CommitFilesArgs) -> Result<Commit> {
        let place = (or_default(args.integration_name.clone()), args.repo.clone());
        commit(context, Operation::COMMIT_FILES, place, args.change()).await
    }

    /// Deletes files from a branch, as `commitFiles` commits them.
    async fn delete_files(&self, context: &Context<'_>, args: DeleteFilesArgs) -> Result<Commit> {
        let place = (or_default(args.integration_name.clone()), args.repo.clone());
        commit(context, Operation::DELETE_FILES, place, args.change()).await
    }

    /// Opens a pull request as whoever asks: with the token that they registered, and in their name. One that is open for the same
    /// branches already is given instead.
    async fn create_pull_request(
        &self,
        context: &Context<'_>,
        args: CreatePullRequestArgs,
    ) -> Result<PullRequest> {
        let (integration, repo) = (or_default(args.integration_name.clone()), args.repo.clone());
        let place = format!("Git integration {integration} repository {repo} branch {}", args.head);
        let invocation = Invocation::new(Operation::CREATE_PULL_REQUEST, Subject::default()).of(place);
        let (files, wanted) = (services(context)?.files.clone(), args.wanted());
        let doing =
            move |who: Account| async move { files.pull_request(&who, (&integration, &repo), wanted).await };
        act_as(context, invocation, doing).await
    }
}
