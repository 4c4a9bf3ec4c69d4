//! Pages of the console over HTTP: lists, searches, histories and differences, for one who sees everything and one who sees little.

use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;
use loadtest_sim::people::User;
use reqwest::header::CONTENT_ENCODING;

use super::fleet::{Fleet, Shape, name};
use crate::measure::Measure;
use crate::times::{Times, millis};
use loadtest_judge::median;
use loadtest_sim::{PATIENCE, local_client};

/// A page of a list takes so long, of one user at a time,
const LISTED: Duration = Duration::from_millis(100);
/// and comes as so many bytes.
const BYTES: u64 = 50_000;
/// A search of all resources takes so long.
const FOUND: Duration = Duration::from_millis(200);
/// Half of what somebody asks for who sees little takes at most as long as for somebody who sees everything, but for what two
/// runs differ by.
const NARROW: f64 = 1.1;

/// Somebody with a session, who takes answers as they come.
pub(super) struct Reader {
    client: reqwest::Client,
    url: String,
    session: String,
}

/// An answer.
struct Page {
    took: Duration,
    /// As it came over the wire, without its head.
    bytes: u64,
    text: String,
}

impl Reader {
    pub(super) fn new(url: &str, user: &User) -> anyhow::Result<Self> {
        let client = local_client().no_gzip().timeout(PATIENCE).build()?;
        let session = user.session().context("somebody with a session")?.to_owned();
        Ok(Self { client, url: url.to_owned(), session })
    }

    async fn page(&self, path: &str) -> anyhow::Result<Page> {
        let begun = Instant::now();
        let asked = self.client.get(format!("{}{path}", self.url)).header("cookie", &self.session);
        let asked = asked.header("accept", "text/html").header("accept-encoding", "gzip");
        let answer = asked.send().await.with_context(|| format!("ask for {path}"))?;
        let is_packed = answer.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
        let answer = answer.error_for_status().with_context(|| format!("ask for {path}"))?;
        let came = answer.bytes().await.with_context(|| format!("read {path}"))?;
        let took = begun.elapsed();
        let mut text = String::new();
        match is_packed {
            true => GzDecoder::new(&*came).read_to_string(&mut text).map(drop),
            false => (&*came).read_to_string(&mut text).map(drop),
        }
        .with_context(|| format!("read {path}"))?;
        Ok(Page { took, bytes: came.len() as u64, text })
    }
}

/// How many rows a page has.
fn rows(text: &str) -> usize {
    text.matches(" data-key=\"").count()
}

/// One who sees everything, and one who sees the applications of a team.
pub(super) struct Readers<'a> {
    pub(super) all: &'a Reader,
    pub(super) narrow: &'a Reader,
    pub(super) team: &'a str,
}

/// Lists and searches, so often each.
pub(super) async fn lists(
    readers: &Readers<'_>,
    fleet: &Fleet,
    shape: Shape,
    runs: usize,
) -> anyhow::Result<Vec<Measure>> {
    let (first, last) = (name(0), name(shape.applications - 1));
    let of_team = fleet.of_team(readers.team);
    let lists = [
        ("list, first page", String::new()),
        ("list, last page", format!("?page={}", (shape.applications - 1) / 200)),
        ("list by time of deployment, not grouped", "?group=none&sort=deployed".to_owned()),
        ("list of a text that many have", "?q=release".to_owned()),
        ("list of a text that one has", format!("?q={last}")),
        (
            "list of one label, not well",
            "?q=label%3Aenv%3Dproduction+health%3Adegraded%2Cmissing%2Cprogressing%2Chealthy".to_owned(),
        ),
    ];
    let mut both = Both::default();
    for (what, query) in lists {
        let asked = Asked { what, path: format!("/applications{query}"), bar: LISTED };
        both.ask(readers, &asked, runs).await?;
    }
    let page = readers.all.page("/applications").await?;
    ensure!(rows(&page.text) == shape.applications.min(200), "the list has {} rows", rows(&page.text));
    let page = readers.narrow.page("/applications").await?;
    ensure!(
        rows(&page.text) == of_team.min(200),
        "the narrow list has {} rows, not {of_team}",
        rows(&page.text)
    );
    let bytes = both.bytes;
    let searches = [
        ("resources, all of them", String::new()),
        ("resources of a kind", "deployment".to_owned()),
        ("resources of a name that many begin with", "payments".to_owned()),
        ("resources of one application", first),
        ("resources that there are none of", "nothing-is-called-so".to_owned()),
    ];
    for (what, text) in searches {
        let asked = Asked { what, path: format!("/resources?q={text}"), bar: FOUND };
        both.ask(readers, &asked, runs).await?;
    }
    let page = readers.all.page(&format!("/resources?q={}", name(0))).await?;
    ensure!(rows(&page.text) >= shape.resources, "a search finds {} resources alone", rows(&page.text));
    let Both { mut measures, slower, .. } = both;
    measures.push(Measure::number("bytes of a page of a list, at most", bytes, BYTES, "B"));
    let what = "the median of these: half of what who sees little asks for, as long as of who sees all";
    measures.push(Measure::ratio(what, median(slower).context("compare pages")?, NARROW));
    Ok(measures)
}

/// A page that is asked for.
struct Asked {
    what: &'static str,
    path: String,
    bar: Duration,
}

/// What came of all that both were asked for.
#[derive(Default)]
struct Both {
    measures: Vec<Measure>,
    /// The most bytes of a page,
    bytes: u64,
    /// and of each page, how many times as long half of who sees little's took.
    slower: Vec<f64>,
}

impl Both {
    /// Has both ask in turns.
    async fn ask(&mut self, readers: &Readers<'_>, asked: &Asked, runs: usize) -> anyhow::Result<()> {
        let (mut all, mut narrow) = (Times::new()?, Times::new()?);
        for _ in 0..runs {
            let page = readers.all.page(&asked.path).await?;
            all.add(page.took)?;
            self.bytes = self.bytes.max(page.bytes);
            narrow.add(readers.narrow.page(&asked.path).await?.took)?;
        }
        let Asked { what, bar, .. } = asked;
        let ratio = narrow.quantile(0.5).as_secs_f64() / all.quantile(0.5).as_secs_f64().max(1e-6);
        self.slower.push(ratio);
        self.measures.push(Measure::p95(what, &all, *bar));
        self.measures.push(Measure::p95(&format!("{what}: who sees little"), &narrow, *bar));
        Ok(())
    }
}

/// The life of applications, and what differs between two moments of it, so often each.
pub(super) async fn histories(
    reader: &Reader,
    fleet: &Fleet,
    shape: Shape,
    runs: usize,
) -> anyhow::Result<Vec<Measure>> {
    let mut random = fastrand::Rng::with_seed(2);
    let (mut lives, mut differences, mut bytes) = (Times::new()?, Times::new()?, 0);
    for _ in 0..runs {
        let (index, day) = (random.usize(0..shape.lived), random.usize(0..shape.days));
        let path = fleet.path(index);
        let page = reader.page(&format!("{path}?tab=timeline&days=90")).await?;
        lives.add(page.took)?;
        bytes = bytes.max(page.bytes);
        let releases = page.text.matches("data-key=\"deployment/").count();
        ensure!(releases == shape.days + 1, "{path} shows {releases} releases, not {}", shape.days + 1);
        let ((from, to), resource) = (fleet.around(index, day), Fleet::rolled(index));
        let page =
            reader.page(&format!("{path}?tab=compare&days=90&from={from}&to={to}&r={resource}")).await?;
        differences.add(page.took)?;
        ensure!(page.text.contains("class=\"diff\""), "{path} differs in nothing between {from} and {to}");
    }
    Ok(vec![
        Measure::p95("all of an application's life", &lives, LISTED),
        Measure::p95("what differs between two moments of it", &differences, LISTED),
        Measure::beside("slowest of both", millis(lives.quantile(1.0).max(differences.quantile(1.0)))),
        Measure::beside("bytes of a life, at most", format!("{bytes} B")),
    ])
}
