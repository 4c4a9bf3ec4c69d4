//! `gitops-runtime runtime install`, `upgrade` and `uninstall`: helm is run, and the platform tells whether the runtime reports.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write as _};
use std::process::{ExitStatus, Stdio};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::act::{Progress, confirm, wait};
use crate::arguments::act::WaitArgs;
use crate::arguments::install::{Helm, Install, Uninstall};
use crate::contexts::Contexts;
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::platform::Platform;
use crate::release::ReleaseObjects;
use crate::show::Screen;

/// The Secret that the chart takes the runtime's token of.
const SECRET: &str = "codefresh-token";

impl Helm {
    fn release<'a>(&'a self, runtime: &'a str) -> &'a str {
        self.release.as_deref().unwrap_or(runtime)
    }

    /// The arguments that tell helm which cluster and namespace.
    fn place(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> = vec!["--namespace".into(), self.namespace.clone().into()];
        if let Some(context) = &self.kube_context {
            all.extend(["--kube-context".into(), context.into()]);
        }
        if let Some(file) = &self.kubeconfig {
            all.extend(["--kubeconfig".into(), file.into()]);
        }
        all
    }

    /// The command as a shell takes it.
    fn line(&self, arguments: &[OsString]) -> String {
        let words = std::iter::once(self.helm.as_os_str()).chain(arguments.iter().map(OsString::as_os_str));
        let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
        words.join(" ") + "\n"
    }

    /// What helm prints for a command that changes nothing; `None` for a failure that is expected. Any other failure is shown.
    async fn look(
        &self,
        arguments: &[OsString],
        is_expected: fn(&str) -> bool,
    ) -> Result<Option<String>, RemoteError> {
        let output = Command::new(&self.helm).args(arguments).stdin(Stdio::null()).output().await;
        let output = output.map_err(|source| self.not_run(source))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()));
        }
        if is_expected(&said) {
            return Ok(None);
        }
        // Nobody is left to be told that standard error is closed.
        let _ = io::stderr().write_all(said.as_bytes());
        Err(ended(output.status))
    }

    /// The objects of a release; `None`: there is no such release.
    async fn objects_of(&self, release: &str) -> Result<Option<ReleaseObjects>, RemoteError> {
        let mut arguments: Vec<OsString> = vec!["get".into(), "manifest".into(), release.into()];
        arguments.extend(self.place());
        let manifest = self.look(&arguments, |said| said.contains("release: not found")).await?;
        manifest.as_deref().map(ReleaseObjects::read).transpose()
    }

    /// Prints what an installation or an upgrade would change.
    async fn plan(&self, release: &str, arguments: &[OsString], screen: &Screen) -> Result<(), RemoteError> {
        let has = self.objects_of(release).await?;
        let looks: [OsString; 3] = ["--dry-run".into(), "--output".into(), "json".into()];
        let arguments = [arguments, &looks].concat();
        let printed = self.look(&arguments, |_| false).await?.unwrap_or_default();
        let unread = || RemoteError::Missing("helm did not print what it would install".to_owned());
        let planned: Value = serde_json::from_str(&printed).map_err(|_| unread())?;
        let planned = ReleaseObjects::read(planned["manifest"].as_str().ok_or_else(unread)?)?;
        let does = if has.is_some() { "upgrade" } else { "install" };
        screen.tell(&format!("would {does} the release {release} in the namespace {}", self.namespace))?;
        has.unwrap_or_default().becomes(&planned, screen).map(drop)
    }

    /// The error of a helm that cannot be run.
    fn not_run(&self, source: io::Error) -> RemoteError {
        if source.kind() == ErrorKind::NotFound {
            return RemoteError::Missing(format!(
                "there is no {}: install Helm 3.14 or newer, or name it with --helm; --print shows the command",
                self.helm.display()
            ));
        }
        RemoteError::File { act: "run", path: self.helm.clone(), source }
    }

    /// Runs helm; what it prints is seen as it comes.
    async fn run(&self, arguments: &[OsString]) -> Result<(), RemoteError> {
        let status = Command::new(&self.helm).args(arguments).stdin(Stdio::null()).status().await;
        match status.map_err(|source| self.not_run(source))? {
            status if status.success() => Ok(()),
            status => Err(ended(status)),
        }
    }
}

impl Install {
    /// The arguments of helm that install the chart, or upgrade what is there.
    fn arguments(&self, is_new: bool, address: &str) -> Vec<OsString> {
        let release = self.helm.release(&self.name);
        let mut arguments: Vec<OsString> = vec!["upgrade".into(), release.into(), self.chart.clone().into()];
        arguments.extend(self.helm.place());
        if is_new {
            arguments.extend(["--install".into(), "--create-namespace".into()]);
            for (path, value) in [("global.runtime.name", &*self.name), ("global.codefresh.url", address)] {
                arguments.extend(["--set-string".into(), format!("{path}={value}").into()]);
            }
        } else {
            arguments.push("--reset-then-reuse-values".into());
            // What is there reports meanwhile: that the new pods are ready is for helm to say.
            let within = format!("{}s", self.timeout.as_millis().div_ceil(1000).max(1));
            arguments.extend(["--wait".into(), "--timeout".into(), within.into()]);
        }
        arguments.extend(self.values.iter().flat_map(|file| ["-f".into(), file.into()]));
        arguments.extend(self.set.iter().flat_map(|value| ["--set".into(), value.into()]));
        arguments
    }

    /// The error of a runtime that the platform does not know.
    fn unknown(&self, is_new: bool, address: &str) -> RemoteError {
        let name = &self.name;
        RemoteError::Missing(match is_new {
            true => format!(
                "there is no runtime '{name}' that you see: add it on the page Runtimes of {address}, which shows how its token \
                 becomes the Secret {SECRET} in the namespace {}; then install it",
                self.helm.namespace
            ),
            false => format!(
                "there is no runtime '{name}' that you see: `gitops-runtime runtime list` shows those that there are"
            ),
        })
    }
}

/// The error of a helm that failed.
fn ended(status: ExitStatus) -> RemoteError {
    let how = status.code().map_or_else(|| "was ended".to_owned(), |code| format!("ended with {code}"));
    RemoteError::Missing(format!("helm {how}: it said why above"))
}

/// A word, quoted for a shell where that is needed.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// When a runtime last reported, or was heard of at all, as a field of it says; `None`: it is not known.
async fn last(field: &str, platform: &Platform, name: &str) -> Result<Option<Option<String>>, RemoteError> {
    let query = format!("query Runtime($name: String!) {{ runtime(name: $name) {{ {field} }} }}");
    let found: Value = platform.get("read a runtime", &query, json!({"name": name}), "runtime").await?;
    Ok(found.as_object().map(|found| found.get(field).and_then(Value::as_str).map(str::to_owned)))
}

pub(crate) async fn install(
    given: &Install,
    is_new: bool,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    let all = Contexts::read(environment)?;
    let address = all.chosen(given.place.context.as_deref(), environment)?.platform.clone();
    let release = given.helm.release(&given.name);
    let arguments = given.arguments(is_new, &address);
    if given.helm.print {
        return screen.say(&given.helm.line(&arguments));
    }
    let platform = Platform::find(&given.place, environment).await?;
    let known = last("lastReportAt", &platform, &given.name).await?;
    let Some(mut before) = known else { return Err(given.unknown(is_new, &address)) };
    if given.helm.dry_run {
        return given.helm.plan(release, &arguments, screen).await;
    }
    given.helm.run(&arguments).await?;
    // What is asked for changed while helm waited; who has told all before has nothing new to report.
    let (told, nothing) = match is_new {
        true => ("lastReportAt", "nothing was reported yet"),
        false => ("lastHeardAt", "it was not heard of since"),
    };
    if !is_new && let Some(now) = last(told, &platform, &given.name).await? {
        before = now;
    }
    let waiting = WaitArgs { wait: true, timeout: given.timeout };
    let look = async || {
        Ok(match last(told, &platform, &given.name).await? {
            Some(Some(now)) if before.as_ref() != Some(&now) => {
                Progress::Done(format!("{} reports to {address}", given.name))
            }
            Some(_) => Progress::Pending(nothing.to_owned()),
            None => Progress::Failed(format!("the runtime {} is not known any more", given.name)),
        })
    };
    wait(&waiting, screen, look).await
}

pub(crate) async fn uninstall(
    given: &Uninstall,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    let release = given.helm.release(&given.name);
    let mut arguments: Vec<OsString> = vec!["uninstall".into(), release.into()];
    arguments.extend(given.helm.place());
    arguments.push("--wait".into());
    if given.helm.print {
        return screen.say(&given.helm.line(&arguments));
    }
    let (name, namespace) = (&given.name, &given.helm.namespace);
    let forgets = format!("take the runtime {name} and its tokens from the platform");
    let does = match given.record_only {
        true => forgets,
        false => format!("uninstall the release {release} in the namespace {namespace}, and {forgets}"),
    };
    if given.helm.dry_run && given.record_only {
        return screen.tell(&format!("would {does}"));
    }
    if given.helm.dry_run {
        let has = given.helm.objects_of(release).await?.ok_or_else(|| {
            RemoteError::Missing(format!(
                "there is no release {release} in the namespace {namespace}: --record-only has the platform alone forget the runtime"
            ))
        })?;
        return screen.tell(&format!("would {does}\n{}", has.removed()));
    }
    let platform = Platform::find(&given.place, environment).await?;
    if !given.yes {
        confirm(&does)?;
    }
    if !given.record_only {
        given.helm.run(&arguments).await?;
    }
    let query = "mutation DeleteRuntime($name: String!) { deleteRuntime(name: $name) }";
    let removed = platform.ask("take a runtime away", query, json!({"name": name})).await;
    let forgot = format!("the platform forgot the runtime {name} and its tokens\n");
    if given.record_only {
        removed?;
        return screen.tell(&forgot);
    }
    let mut text = format!("the release {release} is uninstalled\n");
    match &removed {
        Ok(_) => text += &forgot,
        Err(error) => {
            text += &format!(
                "the platform still knows the runtime {name}, which --record-only ends: {}\n",
                error.line()
            );
        }
    }
    text += &left_behind(release, namespace);
    screen.tell(&text)?;
    removed.map(drop)
}

/// What is left of a runtime once helm has uninstalled its release.
fn left_behind(release: &str, namespace: &str) -> String {
    format!(
        "what the chart leaves, so that nothing is lost, is still in the namespace {namespace}:\n  \
         the Secret {SECRET}, which is of no use any more\n  \
         the Secret {release}-gitops-runtime-generated\n  \
         the claims of its ledger and of its bus: kubectl get pvc --namespace {namespace}\n\
         kubectl delete namespace {namespace} takes all of it, where nothing else is in there\n\
         nothing of the chart has a finalizer; Applications that another chart made for its own use keep theirs, which Argo CD \
         alone ends: kubectl get applications.argoproj.io --all-namespaces --selector codefresh.io/internal=true\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_printed_as_a_shell_takes_it() {
        assert_eq!(
            ["a-b", "", "it's", "a b", "x=$y"].map(quoted),
            ["a-b", "''", r"'it'\''s'", "'a b'", "'x=$y'"]
        );
    }
}
