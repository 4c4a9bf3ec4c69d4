//! What may be read.

use async_graphql::{Context, Object, Result};
use serde_json::Value;

use super::application::{
    Actions, ApplicationTree, DeepLink, Event, HistoryEntry, Items, ManagedResource, ResourceAction,
    ResourceDiff,
};
use super::git::{
    GitIntegration, GitOrganizationsArgs, GitRepositoriesArgs, ReadFileArgs, RepositoryBranchesAndTagsArgs,
    RepositoryFilesArgs, or_default,
};
use super::git_token::{ValidateGitProviderArgs, offering};
use super::inputs::{ApplicationId, ObjectId, ResourceId};
use super::rollout::{AnalysisRun, Rollout};
use super::runtime::{RuntimeStatus, VersionInfo};
use super::sealing::SealingCertificate;
use super::source::{ApplicationDetailsSourceInput, RepositoryAppDetailsOutput, ValidateApplicationArgs};
use super::workflow::Workflow;
use super::{Services, caller, services};
use crate::VERSION;
use crate::account::Account;
use crate::dispatcher::Invocation;
use crate::error::ActError;
use crate::gate::Subject;
use crate::git::{
    CheckedGitToken, GitFile, GitOrganization, GitToken, RepositoriesPage, RepositoryBranchesAndTagsOutput,
    RepositoryFiles,
};
use crate::operation::Operation;
use crate::validation::ApplicationProblem;

/// What may be read.
pub(crate) struct Query;

/// Workflows that are listed where no number is asked for.
const FIRST: usize = 100;
/// Workflows that are listed at most.
const MOST: usize = 500;

/// Reads something of an application, for whoever may.
async fn read<T>(
    context: &Context<'_>,
    operation: Operation,
    subject: Subject,
    doing: impl AsyncFnOnce(&Services) -> std::result::Result<T, ActError>,
) -> Result<T> {
    let (services, caller) = (services(context)?, caller(context)?);
    let done = services.dispatcher.read(caller, Invocation::new(operation, subject), doing(services)).await;
    done.map_err(|error| error.graphql())
}

/// Reads something of a provider of Git, as whoever may.
async fn read_git<T>(
    context: &Context<'_>,
    operation: Operation,
    doing: impl AsyncFnOnce(&Services, Account) -> std::result::Result<T, ActError>,
) -> Result<T> {
    let (services, caller) = (services(context)?, caller(context)?);
    let invocation = Invocation::new(operation, runtime());
    let done = services.dispatcher.read_as(caller, invocation, async |who| doing(services, who).await).await;
    done.map_err(|error| error.graphql())
}

/// The runtime itself, as rules see it.
fn runtime() -> Subject {
    Subject::default()
}

#[Object]
impl Query {
    /// What this is.
    async fn version_info(&self, context: &Context<'_>) -> Result<VersionInfo> {
        read(context, Operation::VERSION_INFO, runtime(), async |services| {
            let platform_host = services.platform.client.host().to_string();
            let version = VERSION.to_owned();
            Ok(VersionInfo { version, platform_host, platform_version: None })
        })
        .await
    }

    /// What the app proxy found of its runtime when it looked last.
    async fn runtime_status(&self, context: &Context<'_>) -> Result<RuntimeStatus> {
        read(context, Operation::RUNTIME_STATUS, runtime(), async |services| {
            Ok(services.status.borrow().clone())
        })
        .await
    }

    /// What Secrets are sealed with, so that they need not leave where they are typed.
    async fn sealing_certificate(&self, context: &Context<'_>) -> Result<SealingCertificate> {
        read(context, Operation::SEALING_CERTIFICATE, runtime(), async |services| {
            Ok(SealingCertificate { pem: services.sealing.certificate().await? })
        })
        .await
    }

    /// What an application has, and what that has.
    async fn resource_tree(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
    ) -> Result<ApplicationTree> {
        let app = application.name();
        read(context, Operation::RESOURCE_TREE, application.subject(), async |services| {
            services.argocd.tree(&app).await
        })
        .await
    }

    /// Live and target state of its resources.
    async fn managed_resources(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
    ) -> Result<Vec<ManagedResource>> {
        let app = application.name();
        read(context, Operation::MANAGED_RESOURCES, application.subject(), async |services| {
            let all: Items<ManagedResource> = services.argocd.managed(&app).await?;
            Ok(all.items.into_iter().map(|one| one.redacted(services.argocd.redactor())).collect())
        })
        .await
    }

    /// What is not as Git says: at what the application follows, or at other revisions.
    async fn application_diff(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        #[graphql(desc = "A branch, a tag or a commit; none: the one that the application follows.")]
        revision: Option<String>,
        #[graphql(desc = "The same of several sources, one for each in their order.")] revisions: Option<
            Vec<String>,
        >,
    ) -> Result<Vec<ResourceDiff>> {
        let app = application.name();
        read(context, Operation::APPLICATION_DIFF, application.subject(), async |services| {
            let all: Items<ManagedResource> = services.argocd.managed(&app).await?;
            let redactor = services.argocd.redactor();
            let all = all.items.into_iter().map(|one| one.redacted(redactor));
            let one = revision.filter(|revision| !revision.is_empty());
            let revisions = match (one, revisions.unwrap_or_default()) {
                (None, several) => several,
                (Some(one), several) if several.is_empty() => vec![one],
                _ => return Err(ActError::Wrong("give revision or revisions".to_owned())),
            };
            if revisions.is_empty() {
                return Ok(all.filter_map(ManagedResource::diff).collect());
            }
            let mut rendered = services.argocd.rendered(&app, &revisions).await?;
            let all: Vec<_> = all.map(|one| one.at(&mut rendered, redactor)).collect();
            let new = rendered.rest().map(|manifest| ManagedResource::new_at(&manifest, redactor));
            Ok(all.into_iter().chain(new).filter_map(ManagedResource::diff).collect())
        })
        .await
    }

    /// Its deployments, the newest first.
    async fn application_history(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
    ) -> Result<Vec<HistoryEntry>> {
        let app = application.name();
        read(context, Operation::APPLICATION_HISTORY, application.subject(), async |services| {
            services.argocd.application(&app).await.map(|found| HistoryEntry::all(&found))
        })
        .await
    }

    /// Of the application itself, or of a resource of it; the newest first.
    async fn application_events(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        resource: Option<ResourceId>,
    ) -> Result<Vec<Event>> {
        let app = application.name();
        read(context, Operation::APPLICATION_EVENTS, application.subject(), async |services| {
            let query = match resource {
                Some(of) => {
                    let object = (&*of.namespace, &*of.name);
                    // Of an object without its uid Argo CD knows no events.
                    let uid = services.argocd.uid(&app, (&of.group, &of.kind), object).await?;
                    vec![("resourceNamespace", of.namespace), ("resourceName", of.name), ("resourceUID", uid)]
                }
                None => Vec::new(),
            };
            let all: Items<Value> = services.argocd.events(&app, query).await?;
            let redactor = services.argocd.redactor();
            let mut all: Vec<Event> = all.items.iter().map(|one| Event::of(one, redactor)).collect();
            all.sort_by_key(|event| std::cmp::Reverse(event.at()));
            Ok(all)
        })
        .await
    }

    /// What a resource offers to be run.
    async fn resource_actions(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        resource: ResourceId,
    ) -> Result<Vec<ResourceAction>> {
        let app = application.name();
        read(context, Operation::RESOURCE_ACTIONS, application.subject(), async |services| {
            let found: Actions = services.argocd.actions(&app, resource.query()).await?;
            Ok(found.actions)
        })
        .await
    }

    /// Links that Argo CD is set to show beside the application, or beside a resource of it.
    async fn application_links(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        resource: Option<ResourceId>,
    ) -> Result<Vec<DeepLink>> {
        let app = application.name();
        read(context, Operation::APPLICATION_LINKS, application.subject(), async |services| {
            let all: Items<DeepLink> = services.argocd.links(&app, resource.map(|of| of.query())).await?;
            let redactor = services.argocd.redactor();
            Ok(all.items.into_iter().filter_map(|one| one.redacted(redactor)).collect())
        })
        .await
    }

    /// What a source of an application is made of, which is there or is to be: for admins alone.
    async fn repository_app_details(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        source: ApplicationDetailsSourceInput,
        #[graphql(desc = "None: `default`.")] project: Option<String>,
    ) -> Result<RepositoryAppDetailsOutput> {
        read(context, Operation::REPOSITORY_APP_DETAILS, application.subject(), async |services| {
            let details = source.details(&application, project.as_deref())?;
            let found: RepositoryAppDetailsOutput =
                services.argocd.details(&source.repo_url, details).await?;
            Ok(found.redacted(services.argocd.redactor()))
        })
        .await
    }

    /// What Argo CD would find wrong with an application, which is there or is to be: for admins alone. Nothing is changed.
    async fn validate_application(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        args: ValidateApplicationArgs,
    ) -> Result<Vec<ApplicationProblem>> {
        read(context, Operation::VALIDATE_APPLICATION, application.subject(), async |services| {
            let proposed = args.proposed(&application)?;
            Box::pin(proposed.problems(&services.argocd)).await
        })
        .await
    }

    /// A Rollout of the application.
    async fn rollout(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<Rollout> {
        let app = application.name();
        read(context, Operation::ROLLOUT, application.subject(), async |services| {
            let found = services.rollouts.find(&app, &rollout.namespace, &rollout.name).await?;
            let revisions = services.rollouts.revisions(&found).await?;
            Ok(Rollout::of(&found, &revisions))
        })
        .await
    }

    /// What analyses a Rollout of the application, the newest first.
    async fn analysis_runs(
        &self,
        context: &Context<'_>,
        application: ApplicationId,
        rollout: ObjectId,
    ) -> Result<Vec<AnalysisRun>> {
        let app = application.name();
        read(context, Operation::ANALYSIS_RUNS, application.subject(), async |services| {
            let found = services.rollouts.find(&app, &rollout.namespace, &rollout.name).await?;
            let runs = services.rollouts.analysis_runs(&found).await?;
            Ok(runs.iter().map(AnalysisRun::of).collect())
        })
        .await
    }

    /// Of a namespace, the newest first: 100, unless another number is asked for, and 500 at most.
    async fn workflows(
        &self,
        context: &Context<'_>,
        namespace: String,
        first: Option<u32>,
        #[graphql(desc = "Those that have all of these, each as KEY=VALUE.")] labels: Option<Vec<String>>,
    ) -> Result<Vec<Workflow>> {
        let subject = Subject { namespace: namespace.clone(), ..Subject::default() };
        read(context, Operation::WORKFLOW_LIST, subject, async |services| {
            let first = first.map_or(FIRST, |first| usize::try_from(first).unwrap_or(MOST).min(MOST));
            let found = services.workflows.list(&namespace, &labels.unwrap_or_default(), first).await?;
            Ok(found.iter().map(Workflow::of).collect())
        })
        .await
    }

    /// One workflow.
    async fn workflow(
        &self,
        context: &Context<'_>,
        namespace: String,
        workflow_name: String,
    ) -> Result<Workflow> {
        let subject = Subject { namespace: namespace.clone(), ..Subject::default() };
        read(context, Operation::WORKFLOW, subject, async |services| {
            services.workflows.get(&namespace, &workflow_name).await.map(|found| Workflow::of(&found))
        })
        .await
    }

    /// Git integrations, and who is registered with them.
    async fn git_integrations(&self, context: &Context<'_>) -> Result<Vec<GitIntegration>> {
        read_git(context, Operation::GIT_INTEGRATIONS, async |services, who| {
            let all = services.git.list().await?.into_iter();
            Ok(all.map(|one| one.seen_by(&who).into()).collect())
        })
        .await
    }

    /// One Git integration; none named: `default`.
    async fn git_integration(&self, context: &Context<'_>, name: Option<String>) -> Result<GitIntegration> {
        let name = or_default(name);
        read_git(context, Operation::GIT_INTEGRATION, async |services, who| {
            services.git.get(&name).await.map(|one| one.seen_by(&who).into())
        })
        .await
    }

    /// The token that whoever asks registered, once its provider says that it may enough still.
    async fn git_token(&self, context: &Context<'_>, integration_name: Option<String>) -> Result<GitToken> {
        let integration = or_default(integration_name);
        read_git(context, Operation::GIT_TOKEN, async |services, who| {
            services.git.check(&integration, who).await
        })
        .await
    }

    /// Whose a token is, once its provider says that it may enough; it is not kept. At an address that no Git integration of everybody
    /// has, for admins.
    async fn validate_git_provider(
        &self,
        context: &Context<'_>,
        args: ValidateGitProviderArgs,
    ) -> Result<CheckedGitToken> {
        let offered = args.read().map_err(|error| error.graphql())?;
        let invocation = offering(context, Operation::VALIDATE_GIT, &offered).await?;
        let (services, caller) = (services(context)?, caller(context)?);
        let checked = services.dispatcher.read(caller, invocation, offered.check(&services.git)).await;
        checked.map_err(|error| error.graphql())
    }

    /// Repositories that whoever asks may work with, by the token that they registered.
    async fn git_repositories(
        &self,
        context: &Context<'_>,
        args: Option<GitRepositoriesArgs>,
    ) -> Result<RepositoriesPage> {
        let args = args.unwrap_or_default();
        let integration = or_default(args.integration_name);
        read_git(context, Operation::GIT_REPOSITORIES, async |services, who| {
            services.files.repositories(&who, &integration, (args.page, args.limit)).await
        })
        .await
    }

    /// Organisations or groups of whoever asks, by the token that they registered; or by one that they give along, at an address that
    /// no Git integration of everybody has for admins alone.
    async fn git_organizations(
        &self,
        context: &Context<'_>,
        args: Option<GitOrganizationsArgs>,
    ) -> Result<Vec<GitOrganization>> {
        let GitOrganizationsArgs { integration_name, auth_details } = args.unwrap_or_default();
        if let Some(details) = auth_details {
            let offered = details.read().map_err(|error| error.graphql())?;
            let invocation = offering(context, Operation::GIT_ORGANIZATIONS, &offered).await?;
            let (services, caller) = (services(context)?, caller(context)?);
            let found = services
                .dispatcher
                .read(caller, invocation, offered.organizations(&services.git.calls))
                .await;
            return found.map_err(|error| error.graphql());
        }
        let integration = or_default(integration_name);
        read_git(context, Operation::GIT_ORGANIZATIONS, async |services, who| {
            services.files.organizations(&who, &integration).await
        })
        .await
    }

    /// Branches and tags of a repository.
    async fn repository_branches_and_tags(
        &self,
        context: &Context<'_>,
        args: RepositoryBranchesAndTagsArgs,
    ) -> Result<RepositoryBranchesAndTagsOutput> {
        let integration = or_default(args.integration_name);
        read_git(context, Operation::REPOSITORY_BRANCHES, async |services, who| {
            services.files.branches(&who, (&integration, &args.repo)).await
        })
        .await
    }

    /// What a directory of a repository holds.
    async fn repository_files(
        &self,
        context: &Context<'_>,
        args: RepositoryFilesArgs,
    ) -> Result<RepositoryFiles> {
        let integration = or_default(args.integration_name);
        let at = (args.revision, args.path.unwrap_or_default());
        read_git(context, Operation::REPOSITORY_FILES, async |services, who| {
            services.files.list(&who, (&integration, &args.repo), at).await
        })
        .await
    }

    /// A file of text of a repository, of 1 MiB at most.
    async fn read_file(&self, context: &Context<'_>, args: ReadFileArgs) -> Result<GitFile> {
        let integration = or_default(args.integration_name);
        let at = (args.revision, args.path);
        read_git(context, Operation::READ_FILE, async |services, who| {
            services.files.read(&who, (&integration, &args.repo), at).await
        })
        .await
    }
}
