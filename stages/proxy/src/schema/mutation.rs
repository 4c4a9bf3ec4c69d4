//! What may be changed.

use async_graphql::{Context, Object, Result, SimpleObject};
use pipeline_core::SecretString;
use serde_json::Value;

use super::git::{
    AddGitIntegrationArgs, CommitFilesArgs, CreatePullRequestArgs, DeleteFilesArgs, EditGitIntegrationArgs,
    FinishGitAuthArgs, GitAuth, GitIntegration, RegisterToGitIntegrationArgs, Registration, or_default,
};
use super::inputs::{
    ApplicationId, CreateWorkflowFromTemplateArgs, DeleteResourceOptions, ObjectId, RefreshType, ResourceId,
    RollbackOptions, SyncOptions,
};
use super::rollout::RolloutRollbackResponse;
use super::sealing::{SealSecretInput, SealedSecretOutput};
use super::workflow::NewWorkflow;
use super::{ActedOn, caller, works};
use crate::desk::About;
use crate::error::ActError;
use crate::gate::Subject;
use crate::git::{Change, Commit, Integration, PullRequest, SharingPolicy};
use crate::operation::Operation;
use crate::{rollouts, workflows};

/// What may be changed.
pub(crate) struct Mutation;

/// Whether an operation was told to end.
#[derive(SimpleObject)]
struct TerminateOperationResponse {
    terminated: bool,
}

/// Parameters of a workflow.
const PARAMETERS: usize = 200;

/// What kinds a restart is known for.
const RESTARTED: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// Does something, for whoever may, and records it.
async fn act<T: Send + 'static>(
    context: &Context<'_>,
    about: About,
    doing: impl Future<Output = std::result::Result<T, ActError>> + Send + 'static,
) -> Result<T> {
    let (works, caller) = (works(context)?, caller(context)?);
    works.desk.act(caller, about, doing).await.map_err(|error| error.graphql())
}

fn of(operation: Operation, application: &ApplicationId) -> About {
    About::new(operation, application.subject())
}

fn of_namespace(operation: Operation, namespace: &str) -> About {
    About::new(operation, Subject { namespace: namespace.to_owned(), ..Subject::default() })
}

/// As Argo CD takes it.
fn body(options: &impl serde::Serialize) -> std::result::Result<Value, ActError> {
    serde_json::to_value(options)
        .map_err(|_| ActError::Wrong("the options cannot be written as JSON".to_owned()))
}

/// What is done with a Git integration.
fn of_git(operation: Operation, name: &str) -> About {
    About::new(operation, Subject::default()).of(format!("Git integration {name}"))
}

/// The integration that a token is to be registered with, for whoever may: that depends on the integration, which whoever may not even
/// do so much is told nothing of.
async fn registering(
    context: &Context<'_>,
    operation: Operation,
    name: &str,
) -> Result<(Integration, About)> {
    let (works, about) = (works(context)?, of_git(operation, name));
    let found = works.desk.read(caller(context)?, about.clone(), works.git.find(name)).await;
    let integration = found.map_err(|error| error.graphql())?;
    let about = match integration.sharing_policy {
        SharingPolicy::AllUsersInAccount => about,
        SharingPolicy::AccountAdmins => About { operation: about.operation.of_admins(), ..about },
    };
    Ok((integration, about))
}

/// Commits, as whoever may.
async fn commit(
    context: &Context<'_>,
    operation: Operation,
    (integration, repo): (String, String),
    change: Change,
) -> Result<Commit> {
    let (works, caller) = (works(context)?, caller(context)?);
    let about = About::new(operation, Subject::default())
        .of(format!("Git integration {integration} repository {repo}"));
    let files = works.files.clone();
    let doing = move |who: String| async move { files.commit(&who, (&integration, &repo), change).await };
    works.desk.act_as(caller, about, doing).await.map_err(|error| error.graphql())
}

/// Changes a Rollout.
async fn rollout(
    context: &Context<'_>,
    operation: Operation,
    (application, rollout): (ApplicationId, ObjectId),
    change: rollouts::Change,
) -> Result<ActedOn> {
    let (app, works) = (application.name(), works(context)?);
    let about = of(operation, &application).of(format!("Rollout {}/{}", rollout.namespace, rollout.name));
    let (rollouts, ObjectId { namespace, name }) = (works.rollouts.clone(), rollout);
    act(context, about, async move {
        rollouts.change(&app, (&namespace, &name), change).await?;
        Ok(ActedOn::named(&namespace, &name))
    })
    .await
}

/// Changes a workflow.
async fn workflow(
    context: &Context<'_>,
    operation: Operation,
    (namespace, name): (String, String),
    change: workflows::Change,
) -> Result<ActedOn> {
    let about = of_namespace(operation, &namespace).of(format!("Workflow {name}"));
    let workflows = works(context)?.workflows.clone();
    act(context, about, async move {
        workflows.change(&namespace, &name, change).await?;
        Ok(ActedOn::named(&namespace, &name))
    })
    .await
}

#[Object]
impl Mutation {
    /// Syncs an application to what Git says.
    async fn sync_application(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        options: Option<SyncOptions>,
    ) -> Result<ActedOn> {
        let options = options.unwrap_or_default();
        let operation = match &options.manifests {
            // What is applied then is not what Git says.
            Some(_) => Operation::SYNC.of_admins(),
            None => Operation::SYNC,
        };
        let argocd = works(context)?.argocd.clone();
        act(context, of(operation, &application), async move {
            options.check(&application)?;
            let ApplicationId { namespace, name, .. } = &application;
            argocd.sync(&application.name(), body(&options)?).await?;
            Ok(ActedOn::named(namespace, name))
        })
        .await
    }

    /// Ends the operation that an application is in.
    async fn terminate_operation(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
    ) -> Result<TerminateOperationResponse> {
        let argocd = works(context)?.argocd.clone();
        act(context, of(Operation::TERMINATE_OPERATION, &application), async move {
            argocd.terminate(&application.name()).await?;
            Ok(TerminateOperationResponse { terminated: true })
        })
        .await
    }

    /// Compares an application with Git anew.
    async fn refresh_application(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        #[graphql(default_with = "RefreshType::Normal")] r#type: RefreshType,
    ) -> Result<ActedOn> {
        let argocd = works(context)?.argocd.clone();
        act(context, of(Operation::REFRESH, &application).of(r#type.word()), async move {
            argocd.refresh(&application.name(), r#type.word()).await?;
            Ok(ActedOn::named(&application.namespace, &application.name))
        })
        .await
    }

    /// Deploys again what was deployed before.
    async fn rollback_application(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        options: RollbackOptions,
    ) -> Result<ActedOn> {
        let argocd = works(context)?.argocd.clone();
        act(context, of(Operation::ROLLBACK, &application), async move {
            argocd.rollback(&application.name(), body(&options)?).await?;
            Ok(ActedOn::named(&application.namespace, &application.name))
        })
        .await
    }

    /// Deletes a resource that an application has.
    async fn delete_resource(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        resource: ResourceId,
        options: Option<DeleteResourceOptions>,
    ) -> Result<bool> {
        let argocd = works(context)?.argocd.clone();
        act(context, of(Operation::DELETE_RESOURCE, &application).of(resource.place()), async move {
            let options = options.unwrap_or_default();
            let mut query = resource.query();
            query.push(("force", options.force.unwrap_or(false).to_string()));
            query.push(("orphan", options.orphan.unwrap_or(false).to_string()));
            argocd.delete(&application.name(), query).await?;
            Ok(true)
        })
        .await
    }

    /// Restarts the pods of a Deployment, StatefulSet or DaemonSet.
    async fn restart_resource(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        resource: ResourceId,
    ) -> Result<bool> {
        let argocd = works(context)?.argocd.clone();
        act(context, of(Operation::RESTART, &application).of(resource.place()), async move {
            if resource.group != "apps" || !RESTARTED.contains(&resource.kind.as_str()) {
                let text = "a Deployment, StatefulSet or DaemonSet of the group apps is restarted: run the action of any other";
                return Err(ActError::Wrong(text.to_owned()));
            }
            argocd.run(&application.name(), resource.query(), "restart").await?;
            Ok(true)
        })
        .await
    }

    /// An action that `resourceActions` names. What each needs to be allowed: restart and those of a Rollout as their own
    /// operations; any other is for admins.
    async fn run_resource_action(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        resource: ResourceId,
        action: String,
    ) -> Result<bool> {
        let argocd = works(context)?.argocd.clone();
        let operation = Operation::run_action(&resource.group, &resource.kind, &action);
        let named: String = action.chars().filter(|c| !c.is_control()).take(64).collect();
        let about = of(operation, &application).of(format!("{named} {}", resource.place()));
        act(context, about, async move {
            argocd.run(&application.name(), resource.query(), &action).await?;
            Ok(true)
        })
        .await
    }

    /// Ends the pause that it stands at; with `full`, all steps and analyses that are left.
    async fn promote_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
        #[graphql(default)] full: bool,
    ) -> Result<ActedOn> {
        let (operation, change) = match full {
            true => (Operation::promote_full(), rollouts::Change::PromoteFull),
            false => (Operation::PROMOTE, rollouts::Change::Promote),
        };
        self::rollout(context, operation, (application, rollout), change).await
    }

    /// Holds a Rollout where it is.
    async fn pause_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::PAUSE, (application, rollout), rollouts::Change::Pause).await
    }

    /// Lets a Rollout that is held go on.
    async fn resume_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::RESUME, (application, rollout), rollouts::Change::Resume).await
    }

    /// Goes back to what is stable.
    async fn abort_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::ABORT, (application, rollout), rollouts::Change::Abort).await
    }

    /// Of one that was aborted.
    async fn retry_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::RETRY, (application, rollout), rollouts::Change::Retry).await
    }

    /// Restarts the pods of a Rollout.
    async fn restart_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        let change = rollouts::Change::Restart;
        self::rollout(context, Operation::RESTART_ROLLOUT, (application, rollout), change).await
    }

    /// Goes on with the step behind the one that a Rollout is at.
    async fn skip_current_step(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::SKIP_STEP, (application, rollout), rollouts::Change::SkipStep).await
    }

    /// To a revision that `rollout` names; none: to the one before.
    async fn rollback_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
        revision: Option<i64>,
    ) -> Result<RolloutRollbackResponse> {
        let rollouts = works(context)?.rollouts.clone();
        let place = format!("Rollout {}/{}", rollout.namespace, rollout.name);
        act(context, of(Operation::ROLLBACK_ROLLOUT, &application).of(place), async move {
            let ObjectId { namespace, name } = rollout;
            let new_revision = rollouts.rollback(&application.name(), (&namespace, &name), revision).await?;
            Ok(RolloutRollbackResponse { rollout: name, new_revision })
        })
        .await
    }

    /// Begins a workflow of a template.
    async fn create_workflow_from_template(
        &self,
        context: &Context<'_>,
        args: CreateWorkflowFromTemplateArgs,
    ) -> Result<NewWorkflow> {
        let workflows = works(context)?.workflows.clone();
        let about = of_namespace(Operation::CREATE_WORKFLOW, &args.namespace);
        let named: String =
            args.workflow_template_name.chars().filter(|c| !c.is_control()).take(253).collect();
        act(context, about.of(format!("WorkflowTemplate {named}")), async move {
            let parameters = args.parameters.unwrap_or_default();
            if parameters.len() > PARAMETERS {
                return Err(ActError::Wrong(format!("a workflow takes at most {PARAMETERS} parameters")));
            }
            let template = args.workflow_template_name;
            let new = workflows::New {
                generate_name: args.generate_name.unwrap_or_else(|| format!("{template}-")),
                cluster_scope: args.cluster_scope.unwrap_or(false),
                entrypoint: args.entrypoint,
                parameters: parameters.into_iter().map(|one| (one.name, one.value)).collect(),
                template,
            };
            Ok(NewWorkflow { new_workflow_name: workflows.create(&args.namespace, new).await? })
        })
        .await
    }

    /// What failed of it, once more; needs the server of Argo Workflows.
    async fn retry_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = workflows::Change::Retry;
        workflow(context, Operation::RETRY_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// The same workflow once more, from its beginning.
    async fn resubmit_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<NewWorkflow> {
        let workflows = works(context)?.workflows.clone();
        let about =
            of_namespace(Operation::RESUBMIT_WORKFLOW, &namespace).of(format!("Workflow {workflow_name}"));
        act(context, about, async move {
            Ok(NewWorkflow { new_workflow_name: workflows.resubmit(&namespace, &workflow_name).await? })
        })
        .await
    }

    /// Ends it at once, without its exit handlers.
    async fn terminate_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = workflows::Change::Terminate;
        workflow(context, Operation::TERMINATE_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// Ends it, and runs its exit handlers.
    async fn stop_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = workflows::Change::Stop;
        workflow(context, Operation::STOP_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// Begins no further step of it.
    async fn suspend_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = workflows::Change::Suspend;
        workflow(context, Operation::SUSPEND_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// Lets one that is suspended, or waits for somebody, go on.
    async fn resume_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = workflows::Change::Resume;
        workflow(context, Operation::RESUME_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// Adds a Git integration.
    async fn add_git_integration(
        &self,
        context: &Context<'_>,
        args: AddGitIntegrationArgs,
    ) -> Result<GitIntegration> {
        let (git, name) = (works(context)?.git.clone(), or_default(args.name));
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
        let (git, name) = (works(context)?.git.clone(), or_default(args.name));
        act(context, of_git(Operation::EDIT_GIT, &name), async move {
            git.edit(&name, args.api_url.as_deref(), args.sharing_policy).await?;
            git.get(&name).await.map(GitIntegration::from)
        })
        .await
    }

    /// Removes a Git integration, and all tokens that were registered with it; gives its name.
    async fn remove_git_integration(&self, context: &Context<'_>, name: Option<String>) -> Result<String> {
        let (git, name) = (works(context)?.git.clone(), or_default(name));
        act(context, of_git(Operation::REMOVE_GIT, &name), async move {
            git.remove(&name).await?;
            Ok(name)
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
        let (integration, about) = registering(context, Operation::REGISTER_GIT, &name).await?;
        let (works, caller) = (works(context)?, caller(context)?);
        let git = works.git.clone();
        let doing = move |who: String| async move {
            if user.is_some_and(|user| user != who) {
                let why = "a token is registered by whom it is of: leave userId out";
                return Err(ActError::Refused(why.to_owned()));
            }
            git.register(&name, &integration, who, (username.as_deref(), &token)).await?;
            git.get(&name).await.map(GitIntegration::from)
        };
        works.desk.act_as(caller, about, doing).await.map_err(|error| error.graphql())
    }

    /// Begins to register a token of the runtime's OAuth application at GitHub: whoever asks opens the address, and consents there.
    async fn begin_git_auth(&self, context: &Context<'_>, name: Option<String>) -> Result<GitAuth> {
        let name = or_default(name);
        let (integration, about) = registering(context, Operation::BEGIN_GIT_AUTH, &name).await?;
        let (works, caller) = (works(context)?, caller(context)?);
        let oauth = works.oauth.clone();
        let doing = move |who: String| async move {
            Ok(GitAuth { url: oauth.begin(&who, (&name, &integration)).await? })
        };
        works.desk.act_as(caller, about, doing).await.map_err(|error| error.graphql())
    }

    /// Registers that token, with the line that the browser shows since.
    async fn finish_git_auth(
        &self,
        context: &Context<'_>,
        args: FinishGitAuthArgs,
    ) -> Result<GitIntegration> {
        let FinishGitAuthArgs { name, line } = args;
        let name = or_default(name);
        let (integration, about) = registering(context, Operation::FINISH_GIT_AUTH, &name).await?;
        let (works, caller) = (works(context)?, caller(context)?);
        let (git, oauth) = (works.git.clone(), works.oauth.clone());
        let doing = move |who: String| async move {
            let token = oauth.finish(&who, (&name, &integration), &line).await?;
            git.register(&name, &integration, who, (None, &token)).await?;
            git.get(&name).await.map(GitIntegration::from)
        };
        works.desk.act_as(caller, about, doing).await.map_err(|error| error.graphql())
    }

    /// Forgets the Git token of whoever asks.
    async fn deregister_from_git_integration(
        &self,
        context: &Context<'_>,
        name: Option<String>,
    ) -> Result<GitIntegration> {
        let (works, caller, name) = (works(context)?, caller(context)?, or_default(name));
        let (git, about) = (works.git.clone(), of_git(Operation::DEREGISTER_GIT, &name));
        let doing = move |who: String| async move {
            git.deregister(&name, &who).await?;
            git.get(&name).await.map(GitIntegration::from)
        };
        works.desk.act_as(caller, about, doing).await.map_err(|error| error.graphql())
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
        let (works, caller) = (works(context)?, caller(context)?);
        let (integration, repo) = (or_default(args.integration_name.clone()), args.repo.clone());
        let place = format!("Git integration {integration} repository {repo} branch {}", args.head);
        let about = About::new(Operation::CREATE_PULL_REQUEST, Subject::default()).of(place);
        let (files, wanted) = (works.files.clone(), args.wanted());
        let doing =
            move |who: String| async move { files.pull_request(&who, (&integration, &repo), wanted).await };
        works.desk.act_as(caller, about, doing).await.map_err(|error| error.graphql())
    }

    /// Seals a Secret with the certificate of the controller of sealed-secrets, so that it may stand in Git.
    async fn seal_secret(&self, context: &Context<'_>, args: SealSecretInput) -> Result<SealedSecretOutput> {
        let SealSecretInput { secret, namespace } = args;
        let (secret, works) = (SecretString::from(secret), works(context)?);
        let subject = Subject { namespace: namespace.clone(), ..Subject::default() };
        let about = About::new(Operation::SEAL_SECRET, subject);
        let sealing = works.sealing.clone();
        let sealed =
            works.desk.act(caller(context)?, about, async move { sealing.seal(secret, namespace).await });
        let output = sealed.await.map_err(|error| error.graphql())?;
        Ok(SealedSecretOutput { output })
    }
}
