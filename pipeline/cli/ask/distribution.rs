//! `gitops-runtime distribution`: what each of a number of replicas would own, and what would move.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use pipeline_core::Key;
use pipeline_http::admin::wire::Applications;
use pipeline_ownership::sharding::preview::{Preview, Previewed, Question, Way};

use super::client::{Reporter, whole_key};
use super::say;
use super::show::{count, table};
use crate::cli::{DistributionArgs, ReporterArgs};
use crate::config::Variables;

/// Bytes of a file of names: some million of them.
const NAMES_BYTES: u64 = 64 << 20;

/// An application, and how many resources it has, where that is known.
type Application = (Key, Option<u64>);

/// Distributes the applications that a file names, or those of a running reporter.
pub(super) async fn run(asked: &DistributionArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    let DistributionArgs { replicas, from, shards, way, names, output, place } = asked;
    let text = |number: u32| number.to_string();
    let (replicas, way) = (Some(text(*replicas)), Some(way.clone()));
    let question = Question { replicas, from: from.map(text), shards: shards.map(text), way };
    let json = place.json || output == "json";
    match names {
        Some(file) => of_file(file, &question, json),
        None => of_reporter(place, variables, &question, json).await,
    }
}

async fn of_reporter(
    place: &ReporterArgs,
    variables: &Variables,
    question: &Question,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let preview = read(question)?;
    let reporter = Reporter::find(place, variables).await?;
    let answer: Applications = reporter.get(&["applications"]).await?.read()?;
    let applications: anyhow::Result<Vec<Application>> = answer
        .applications
        .iter()
        .map(|application| Ok((whole_key(&application.app)?, application.resources)))
        .collect();
    show(&distribute(preview, &applications?), json)
}

/// Reads a file, or standard input; it may wait for these, as nothing else runs in this
/// process.
fn of_file(file: &Path, question: &Question, json: bool) -> anyhow::Result<ExitCode> {
    let preview = read(question)?;
    let applications = if file == Path::new("-") {
        names(std::io::stdin().lock(), NAMES_BYTES).context("read names from standard input")?
    } else {
        let act = || format!("read names from {}", file.display());
        names(File::open(file).with_context(act)?, NAMES_BYTES).with_context(act)?
    };
    show(&distribute(preview, &applications), json)
}

fn read(question: &Question) -> anyhow::Result<Preview> {
    question.read()?.context("say how many replicas")
}

/// The names of a text: one a line, and after it the number of its resources, if that is known. What begins with `#` and
/// what is empty is skipped.
fn names(text: impl Read, most: u64) -> anyhow::Result<Vec<Application>> {
    let mut text = BufReader::new(text.take(most));
    let (mut applications, mut line, mut number) = (Vec::new(), String::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        if text.read_line(&mut line).with_context(|| format!("line {number}"))? == 0 {
            break;
        }
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { continue };
        let (namespace, name_in_it) = name.split_once('/').unwrap_or(("any", name));
        let key = Key::new(namespace, name_in_it);
        let Ok(key) = key else {
            bail!("line {number}: '{name}' is not the name of an application, such as shop or argocd/shop");
        };
        let resources = match words.next() {
            None => None,
            Some(word) => match word.parse() {
                Ok(resources) => Some(resources),
                Err(_) => bail!("line {number}: '{word}' is not the number of resources of an application"),
            },
        };
        if let Some(more) = words.next() {
            bail!(
                "line {number}: a line is a name and the number of its resources, and not '{more}' as well"
            );
        }
        applications.push((key, resources));
    }
    if text.into_inner().limit() == 0 {
        bail!("there are {most} bytes or more");
    }
    if applications.is_empty() {
        bail!("there is none");
    }
    Ok(applications)
}

fn distribute(preview: Preview, applications: &[Application]) -> Previewed {
    preview.of(applications.iter().map(|(key, resources)| (key, *resources)))
}

fn show(previewed: &Previewed, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        let json = serde_json::to_string(previewed).context("write the answer as JSON")?;
        say(&format!("{json}\n"))?;
    } else {
        say(&text(previewed))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(previewed: &Previewed) -> String {
    let part = |of: u64, all: u64| format!("{:.1} %", of as f64 * 100.0 / all.max(1) as f64);
    let row = |(ordinal, share): (usize, &pipeline_ownership::sharding::preview::Share)| {
        vec![
            ordinal.to_string(),
            share.shards.len().to_string(),
            share.objects.to_string(),
            part(share.objects, previewed.objects),
            share.resources.to_string(),
            part(share.resources, previewed.resources),
        ]
    };
    let rows: Vec<Vec<String>> = previewed.replicas.iter().enumerate().map(row).collect();
    let mut text = table(0, &["REPLICA", "SHARDS", "APPLICATIONS", "", "RESOURCES", ""], &rows);
    text +=
        &format!("\n{}, {}", count(previewed.objects, "application"), count(previewed.resources, "resource"));
    if previewed.uncounted > 0 {
        text += &format!("; of {} it is not known how many", count(previewed.uncounted, "application"));
    }
    text.push('\n');
    if let Some(moved) = &previewed.moved {
        text += &format!(
            "from {} to {}: {} {} ({}), {}\n",
            moved.from,
            count(previewed.replicas.len() as u64, "replica"),
            count(moved.objects, "application"),
            if moved.objects == 1 { "moves" } else { "move" },
            part(moved.objects, previewed.objects),
            count(moved.resources, "resource")
        );
    }
    if previewed.way == Way::Leases && previewed.replicas.len() > 1 {
        text +=
            "which shards a replica has depends on its name; how many it has, and how many move, does not\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_names(text: &str) -> Result<Vec<Application>, String> {
        names(text.as_bytes(), NAMES_BYTES).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn names_are_read_with_the_numbers_of_their_resources() {
        let key = |namespace, name| Key::new(namespace, name).unwrap();
        assert_eq!(
            read_names("shop 12\n\n# not this\r\n  argocd/web\n"),
            Ok(vec![(key("any", "shop"), Some(12)), (key("argocd", "web"), None)])
        );
        for (text, message) in [
            ("", "there is none"),
            ("# a\n", "there is none"),
            ("a\na/b/c", "line 2: 'a/b/c' is not the name of an application, such as shop or argocd/shop"),
            ("a many", "line 1: 'many' is not the number of resources of an application"),
            ("a -1", "line 1: '-1' is not the number of resources of an application"),
            ("a 1 b", "line 1: a line is a name and the number of its resources, and not 'b' as well"),
        ] {
            assert_eq!(read_names(text), Err(message.to_owned()), "{text}");
        }
        let not_text = names([0xff_u8, b'\n'].as_slice(), NAMES_BYTES).unwrap_err();
        assert_eq!(format!("{not_text:#}"), "line 1: stream did not contain valid UTF-8");
        let long = names(std::io::repeat(b'a'), 100).unwrap_err();
        assert_eq!(long.to_string(), "there are 100 bytes or more");
    }

    #[test]
    fn that_a_single_application_moves_is_said_of_one() {
        let (replicas, from) = (Some("3".to_owned()), Some("2".to_owned()));
        let question = Question { replicas, from, ..Question::default() };
        let applications = read_names("a\nb\nc").unwrap();
        let shown = text(&distribute(question.read().unwrap().unwrap(), &applications));
        assert!(
            shown.contains("from 2 to 3 replicas: 1 application moves (33.3 %), 0 resources\n"),
            "{shown}"
        );
    }

    #[test]
    fn a_distribution_is_shown_as_a_table() {
        let question = Question {
            replicas: Some("2".to_owned()),
            from: Some("1".to_owned()),
            way: Some("fnv-modulo".to_owned()),
            ..Question::default()
        };
        let applications = read_names("a 3\nb 1\nc 5\nd").unwrap();
        let shown = text(&distribute(question.read().unwrap().unwrap(), &applications));
        assert_eq!(
            shown,
            " REPLICA  SHARDS  APPLICATIONS          RESOURCES
       0       1             2  50.0 %          8  88.9 %
       1       1             2  50.0 %          1  11.1 %

4 applications, 9 resources; of 1 application it is not known how many
from 1 to 2 replicas: 2 applications move (50.0 %), 1 resource
"
        );
    }
}
