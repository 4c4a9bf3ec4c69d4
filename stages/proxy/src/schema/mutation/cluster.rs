//! What is done to applications, Rollouts and workflows.

use async_graphql::{Context, Object, Result, SimpleObject};
use serde_json::Value;

use super::act;
use crate::argocd::ArgoCd;
use crate::dispatcher::Invocation;
use crate::error::ActError;
use crate::gate::Subject;
use crate::operation::Operation;
use crate::rollouts::RolloutChange;
use crate::schema::inputs::{
    ApplicationId, CreateWorkflowFromTemplateArgs, DeleteResourceOptions, ObjectId, RefreshType, ResourceId,
    RollbackOptions, SyncOptions,
};
use crate::schema::rollout::RolloutRollbackResponse;
use crate::schema::workflow::NewWorkflow;
use crate::schema::{ActedOn, BegunOperation, services, text};
use crate::shown::shown;
use crate::workflows::{NewFromTemplate, WorkflowChange};

/// What Argo CD, Argo Rollouts and Argo Workflows do for people.
#[derive(Default)]
pub(crate) struct ClusterMutation;

/// Whether an operation was told to end.
#[derive(SimpleObject)]
struct TerminateOperationResponse {
    terminated: bool,
    /// When that operation started, which tells it from others; null: it could not be read.
    started_at: Option<String>,
}

/// Parameters of a workflow.
const PARAMETERS: usize = 200;

/// What kinds a restart is known for.
const RESTARTED: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

fn of(operation: Operation, application: &ApplicationId) -> Invocation {
    Invocation::new(operation, application.subject())
}

fn of_namespace(operation: Operation, namespace: &str) -> Invocation {
    Invocation::new(operation, Subject { namespace: namespace.to_owned(), ..Subject::default() })
}

/// As Argo CD takes it.
fn body(options: &impl serde::Serialize) -> std::result::Result<Value, ActError> {
    serde_json::to_value(options)
        .map_err(|_| ActError::Wrong("the options cannot be written as JSON".to_owned()))
}

/// Changes a Rollout.
async fn rollout(
    context: &Context<'_>,
    operation: Operation,
    (application, rollout): (ApplicationId, ObjectId),
    change: RolloutChange,
) -> Result<ActedOn> {
    let (app, services) = (application.name(), services(context)?);
    let invocation =
        of(operation, &application).of(format!("Rollout {}/{}", rollout.namespace, rollout.name));
    let (rollouts, ObjectId { namespace, name }) = (services.rollouts.clone(), rollout);
    act(context, invocation, async move {
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
    change: WorkflowChange,
) -> Result<ActedOn> {
    let invocation = of_namespace(operation, &namespace).of(format!("Workflow {name}"));
    let workflows = services(context)?.workflows.clone();
    act(context, invocation, async move {
        workflows.change(&namespace, &name, change).await?;
        Ok(ActedOn::named(&namespace, &name))
    })
    .await
}

/// Whether the operation before the one that is begun is asked about.
fn wants_previous(context: &Context<'_>) -> bool {
    context.look_ahead().field("previousStartedAt").exists()
}

/// When the last operation of an application started, if that is asked about. Argo CD forgets it as it takes another.
async fn previous(
    argocd: &ArgoCd,
    application: &ApplicationId,
    is_wanted: bool,
) -> std::result::Result<Option<String>, ActError> {
    if !is_wanted {
        return Ok(None);
    }
    Ok(text(&argocd.application(&application.name()).await?, "/status/operationState/startedAt"))
}

#[Object]
impl ClusterMutation {
    /// Syncs an application to what Git says.
    async fn sync_application(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        options: Option<SyncOptions>,
    ) -> Result<BegunOperation> {
        let options = options.unwrap_or_default();
        let operation = match &options.manifests {
            // What is applied then is not what Git says.
            Some(_) => Operation::SYNC.of_admins(),
            None => Operation::SYNC,
        };
        let (argocd, wants_previous) = (services(context)?.argocd.clone(), wants_previous(context));
        act(context, of(operation, &application), async move {
            options.check(&application)?;
            let previous_started_at = previous(&argocd, &application, wants_previous).await?;
            argocd.sync(&application.name(), body(&options)?).await?;
            Ok(BegunOperation::new(&application, previous_started_at))
        })
        .await
    }

    /// Ends the operation that an application is in.
    async fn terminate_operation(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
    ) -> Result<TerminateOperationResponse> {
        let argocd = services(context)?.argocd.clone();
        act(context, of(Operation::TERMINATE_OPERATION, &application), async move {
            let started_at = argocd.terminate(&application.name()).await?;
            Ok(TerminateOperationResponse { terminated: true, started_at })
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
        let argocd = services(context)?.argocd.clone();
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
    ) -> Result<BegunOperation> {
        let (argocd, wants_previous) = (services(context)?.argocd.clone(), wants_previous(context));
        act(context, of(Operation::ROLLBACK, &application), async move {
            let previous_started_at = previous(&argocd, &application, wants_previous).await?;
            argocd.rollback(&application.name(), body(&options)?).await?;
            Ok(BegunOperation::new(&application, previous_started_at))
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
        let argocd = services(context)?.argocd.clone();
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
        let argocd = services(context)?.argocd.clone();
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
        let argocd = services(context)?.argocd.clone();
        let operation = Operation::run_action(&resource.group, &resource.kind, &action);
        let named = format!("{} {}", shown(&action, 64), resource.place());
        let invocation = of(operation, &application).of(named);
        act(context, invocation, async move {
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
            true => (Operation::promote_full(), RolloutChange::PromoteFull),
            false => (Operation::PROMOTE, RolloutChange::Promote),
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
        self::rollout(context, Operation::PAUSE, (application, rollout), RolloutChange::Pause).await
    }

    /// Lets a Rollout that is held go on.
    async fn resume_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::RESUME, (application, rollout), RolloutChange::Resume).await
    }

    /// Goes back to what is stable.
    async fn abort_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::ABORT, (application, rollout), RolloutChange::Abort).await
    }

    /// Of one that was aborted.
    async fn retry_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::RETRY, (application, rollout), RolloutChange::Retry).await
    }

    /// Restarts the pods of a Rollout.
    async fn restart_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        let change = RolloutChange::Restart;
        self::rollout(context, Operation::RESTART_ROLLOUT, (application, rollout), change).await
    }

    /// Goes on with the step behind the one that a Rollout is at.
    async fn skip_current_step(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<ActedOn> {
        self::rollout(context, Operation::SKIP_STEP, (application, rollout), RolloutChange::SkipStep).await
    }

    /// To a revision that `rollout` names; none: to the one before.
    async fn rollback_rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
        revision: Option<i64>,
    ) -> Result<RolloutRollbackResponse> {
        let rollouts = services(context)?.rollouts.clone();
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
        let workflows = services(context)?.workflows.clone();
        let invocation = of_namespace(Operation::CREATE_WORKFLOW, &args.namespace);
        let named = format!("WorkflowTemplate {}", shown(&args.workflow_template_name, 253));
        act(context, invocation.of(named), async move {
            let parameters = args.parameters.unwrap_or_default();
            if parameters.len() > PARAMETERS {
                return Err(ActError::Wrong(format!("a workflow takes at most {PARAMETERS} parameters")));
            }
            let template = args.workflow_template_name;
            let new = NewFromTemplate {
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
        let change = WorkflowChange::Retry;
        workflow(context, Operation::RETRY_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// The same workflow once more, from its beginning.
    async fn resubmit_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<NewWorkflow> {
        let workflows = services(context)?.workflows.clone();
        let invocation =
            of_namespace(Operation::RESUBMIT_WORKFLOW, &namespace).of(format!("Workflow {workflow_name}"));
        act(context, invocation, async move {
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
        let change = WorkflowChange::Terminate;
        workflow(context, Operation::TERMINATE_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// Ends it, and runs its exit handlers.
    async fn stop_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = WorkflowChange::Stop;
        workflow(context, Operation::STOP_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// Begins no further step of it.
    async fn suspend_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = WorkflowChange::Suspend;
        workflow(context, Operation::SUSPEND_WORKFLOW, (namespace, workflow_name), change).await
    }

    /// Lets one that is suspended, or waits for somebody, go on.
    async fn resume_workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<ActedOn> {
        let change = WorkflowChange::Resume;
        workflow(context, Operation::RESUME_WORKFLOW, (namespace, workflow_name), change).await
    }
}
