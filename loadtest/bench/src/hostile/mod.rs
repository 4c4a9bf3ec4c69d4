//! `loadtest bench hostile`: repositories that were made to do harm, and a source server that is asked about them.
//!
//! takes: six repositories by fixed recipes: names with a newline, `.git` and `..` in trees, links that lead out, a file of 2 GB
//! (256 MB in the short form), 10,000 directories in each other, submodules in circles - gives: for each how many questions were
//! answered and refused, the time of all of them, and the most memory that the source server had - calls: the program as a source
//! server, a process for each repository; git, which makes the repositories and serves them over HTTP - fails: when a process
//! ends, answers otherwise than it must, calls another repository, tells what stands in a file of this machine, leaves or removes
//! anything outside of its directory of clones, writes out what a tree names, or takes more anonymous memory than it may

mod maker;
mod recipes;
mod server;
mod subject;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use self::recipes::{Expected, Ground, Recipe};
use self::server::GitServer;
use self::subject::{Answered, Place, SECRET, Subject};
use crate::times::mib;
use loadtest_judge::screen::{judged, say, table};

/// The most anonymous memory that any of them may cost: as much as a walk over an honest repository of 2 GB may.
const ANONYMOUS: u64 = 256 << 20;
const SHORT: u64 = 256 << 20;
const LONG: u64 = 2 << 30;
/// What Argo CD compiled, as a question has it.
const COMPILED: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"thing","namespace":"shop"}}"#;

/// What came of one repository.
struct Figures {
    answered: usize,
    refused: usize,
    took: Duration,
    anonymous: u64,
    resident: u64,
    wrong: Vec<String>,
}

/// Runs it; whether all was as it must be.
pub(crate) async fn run(program: &Path, is_short: bool) -> anyhow::Result<bool> {
    let large = if is_short { SHORT } else { LONG };
    let folder = tempfile::TempDir::new().context("make a folder")?;
    let (server, url) = GitServer::start(folder.path().to_owned()).await?;
    let (mut good, mut rows, mut most) = (true, Vec::new(), 0);
    for recipe in Recipe::all() {
        say(&format!("== hostile: {}: {}", recipe.name, recipe.about));
        let place = Place::make()?;
        let ground = Ground { url: &url, secret: &place.secret(), large };
        let newest = recipe.make(folder.path(), &ground).context("make a repository")?;
        let figures = measured(program, &recipe, &newest, &place, (&server, &url))
            .await
            .with_context(|| format!("ask about {}", recipe.name))?;
        for wrong in &figures.wrong {
            say(&judged(&format!("  {}: {wrong}", recipe.name), false));
        }
        let is_good = figures.wrong.is_empty();
        good &= is_good;
        most = most.max(figures.anonymous);
        rows.push(vec![
            recipe.name.to_owned(),
            judged(if is_good { "passed" } else { "failed" }, is_good),
            figures.answered.to_string(),
            figures.refused.to_string(),
            format!("{:.2} s", figures.took.as_secs_f64()),
            mib(figures.anonymous),
            mib(figures.resident),
        ]);
    }
    say(&table(2, &["repository", "", "answers", "refusals", "time", "anonymous", "resident"], &rows));
    say(&format!(
        "hostile: the largest file has {}; a process each, with at most {} of {} anonymous memory; nothing is outside of its \
         directory of clones that was not there before",
        mib(large),
        mib(most),
        mib(ANONYMOUS),
    ));
    Ok(good)
}

async fn measured(
    program: &Path,
    recipe: &Recipe,
    newest: &str,
    place: &Place,
    (server, url): (&GitServer, &str),
) -> anyhow::Result<Figures> {
    let subject = Subject::start(program, place, url).await?;
    let before = place.listing()?;
    server.asked();
    let url = format!("{url}/{}.git", recipe.name);
    let begun = Instant::now();
    let questions = questions(&url, recipe);
    let asked = async {
        let mut all = Vec::with_capacity(questions.len());
        for (path, body) in &questions {
            all.push(subject.ask(path, body.as_ref()).await?);
        }
        anyhow::Ok(all)
    };
    let (answers, anonymous) = subject.watched(asked).await?;
    let (answers, took) = (answers?, begun.elapsed());
    let resident = subject.most_resident().unwrap_or(0);
    let mut wrong = Vec::new();
    for ((path, body), answer) in questions.iter().zip(&answers) {
        let of = |why: &str| {
            let shown = |text: &str| text.chars().take(300).collect::<String>();
            let asked = body.as_ref().map(Value::to_string).unwrap_or_default();
            format!(
                "{why}: {} {} is answered with {}: {}",
                path,
                shown(&asked),
                answer.status,
                shown(&answer.body)
            )
        };
        wrong.extend(misfit(recipe, answer).map(of));
    }
    if recipe.is_answered() && !answers.iter().any(|answer| answer.body.contains(newest)) {
        wrong.push(format!("no answer names the commit {newest}"));
    }
    let others: Vec<String> =
        server.asked().into_iter().filter(|name| *name != format!("{}.git", recipe.name)).collect();
    if !others.is_empty() {
        wrong.push(format!("others are called: {}", others.join(", ")));
    }
    if anonymous > ANONYMOUS {
        wrong.push(format!("it took {anonymous} bytes of anonymous memory, and may take {ANONYMOUS}"));
    }
    subject.stop().await?;
    let after = place.listing()?;
    let outside = before.iter().filter(|(path, is)| after.get(*path) != Some(is)).map(|(path, _)| path);
    let outside = outside.chain(after.keys().filter(|path| !before.contains_key(*path)));
    wrong.extend(outside.map(|path| format!("{} was written or removed", path.display())));
    wrong.extend(place.written_out()?.into_iter().map(|name| format!("{name} stands among the clones")));
    let refused = answers.iter().filter(|answer| answer.status != 200).count();
    Ok(Figures { answered: answers.len() - refused, refused, took, anonymous, resident, wrong })
}

/// All that can be asked about the applications of a repository.
fn questions(url: &str, recipe: &Recipe) -> Vec<(String, Option<Value>)> {
    let mut all = vec![(format!("/v1/commit?repoURL={url}"), None)];
    for path in &recipe.paths {
        let source = json!({
            "repoURL": url, "path": path, "targetRevision": "main", "directory": {"recurse": true},
            "helm": {"valueFiles": ["values.yaml", "../up/values.yaml", "../../../../../../etc/passwd"]},
        });
        let plain = json!({"repoURL": url, "path": path, "targetRevision": "main"});
        let app = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "x", "namespace": "argocd"},
            "spec": {"source": plain, "destination": {"namespace": "shop"}},
        });
        let manifests = "/v1/manifests".to_owned();
        for source in [&source, &plain] {
            let sources = json!([{"source": source}]);
            let listed = json!({"namespace": "shop", "sources": sources});
            let compiled = json!({"namespace": "shop", "sources": sources, "compiled": [COMPILED]});
            all.extend([(manifests.clone(), Some(listed)), (manifests.clone(), Some(compiled))]);
        }
        all.push(("/v1/changes".to_owned(), Some(json!({"app": app, "to": "main"}))));
        all.push(("/getAppVersion".to_owned(), Some(app)));
    }
    all
}

/// Why an answer is not one that may be given, if it is not.
fn misfit(recipe: &Recipe, answer: &Answered) -> Option<&'static str> {
    let Ok(told) = serde_json::from_str::<Value>(&answer.body) else { return Some("it is no JSON") };
    if answer.body.contains(SECRET) {
        return Some("it tells what stands in a file of this machine");
    }
    let why = told["error"].as_str().unwrap_or_default();
    match (recipe.expected, answer.status) {
        (Expected::Answers(_), 200) => None,
        // A version that stands where nobody may look is not told.
        (Expected::Answers(refusals), 422) if refusals.iter().any(|says| why.ends_with(says)) => None,
        (Expected::Refusal(says), 502) if why.ends_with(says) => None,
        _ => Some("it is not what must be said"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repository_is_asked_about_in_every_way_for_each_of_its_paths() {
        for recipe in Recipe::all() {
            let all = questions("http://127.0.0.1:1/x.git", &recipe);
            assert_eq!(all.len(), 1 + recipe.paths.len() * 6, "{}", recipe.name);
        }
    }

    #[test]
    fn an_answer_that_tells_of_this_machine_or_refuses_for_another_reason_is_no_good_one() {
        let recipes = Recipe::all();
        let of = |name: &str| recipes.iter().find(|recipe| recipe.name == name).unwrap();
        let judge = |name: &str, status: u16, body: &str| {
            misfit(of(name), &Answered { status, body: body.to_owned() })
        };
        assert_eq!(judge("names", 200, "{}"), None);
        let outside = r#"{"error": "read the version in x: x leads out of the repository"}"#;
        assert_eq!(judge("links", 422, outside), None);
        assert_eq!(judge("names", 422, outside), Some("it is not what must be said"));
        assert_eq!(judge("names", 502, r#"{"error": "away"}"#), Some("it is not what must be said"));
        assert_eq!(judge("names", 200, "no"), Some("it is no JSON"));
        let leaked = format!("{{\"text\": \"{SECRET}\"}}");
        assert_eq!(judge("links", 200, &leaked), Some("it tells what stands in a file of this machine"));
        let large = r#"{"error": "x holds an object of 200000000 bytes, and no more than 104857600 are taken: raise the setting repositories.objectSize if there is memory for it"}"#;
        assert_eq!(judge("large", 502, large), None);
        assert_eq!(judge("large", 200, "{}"), Some("it is not what must be said"));
        assert_eq!(judge("large", 502, r#"{"error": "it is away"}"#), Some("it is not what must be said"));
    }
}
