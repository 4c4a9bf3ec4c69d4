//! `loadtest router`: one router for ten minutes, with an event stream that lasts all the time, large bodies in both directions, and
//! thousands of connections that are kept, come and go, or never end their head.
//!
//! takes: nothing - gives: how late events were, latencies, and the memory of each part
//! calls: the router as a process on loopback, before a service of the harness - fails: when an answer is not whole, an event is
//! missing, or in the long form when a figure misses its bound

mod service;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use loadtest_judge::interrupt;
use loadtest_judge::screen::say;
use loadtest_sim::process::{self, Process, Start};
use loadtest_sim::{port, until};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::measure::{Measure, Measures};
use crate::times::{Times, mib, millis};
use crate::visitor::Visitor;
use crate::watch::most_while;

const EXAMPLES: &str = "\
Examples:
  Ten minutes of an event stream, and all else meanwhile:
    loadtest router
  The same in seconds, without a judgement of figures:
    loadtest router --short";

/// Arguments of `loadtest router`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Little of everything, without a judgement of figures
    #[arg(long)]
    short: bool,
    /// The program; else it is built
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// How much of everything.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// How long the event stream lasts at the least.
    events: Duration,
    body: u64,
    kept: usize,
    come_and_go: usize,
    slow: usize,
    /// The time that the router gives a head.
    head: &'static str,
    requests: usize,
    is_judged: bool,
}

const SHORT: Form = Form {
    events: Duration::from_secs(3),
    body: 16 << 20,
    kept: 200,
    come_and_go: 200,
    slow: 20,
    head: "1s",
    requests: 200,
    is_judged: false,
};
const LONG: Form = Form {
    events: Duration::from_secs(600),
    body: 1 << 30,
    kept: 10_000,
    come_and_go: 10_000,
    slow: 1_000,
    head: "10s",
    requests: 5_000,
    is_judged: true,
};

/// What must be held in the long form: of memory beyond what there was, of that for a connection that is kept, of an event's
/// time on its way.
const FLAT: u64 = 24 << 20;
const KEPT: u64 = 36 << 10;
const LATE: Duration = Duration::from_secs(1);
/// What a client who never ends its head sends, a byte at a time.
const HEAD: &str =
    "GET /app-proxy/bytes/1 HTTP/1.1\r\nHost: localhost\r\nX-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Whoever never ends a head is cut off within this, however busy the machine is.
const CUT_WITHIN: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(120);
const SMALL: &str = "/app-proxy/bytes/1024";
const PIECE: usize = 64 << 10;

/// Measures.
///
/// # Errors
/// When the program cannot be built, or the router does not answer.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::exit_of(all(args))
}

async fn all(args: &Args) -> anyhow::Result<bool> {
    let program = process::program(args.program.as_deref()).await?;
    let form = if args.short { SHORT } else { LONG };
    let begun = Instant::now();
    let service = service::start(begun).await?;
    let folder = tempfile::TempDir::new().context("make a folder")?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port::free()?));
    let args =
        ["router", &format!("--listen={listen}"), &format!("--app-proxy-url={service}"), "--workflows-url="];
    let settings = [
        "serve.address=127.0.0.1:0",
        "router.accessLog=false",
        "router.dns.servers=127.0.0.1:9",
        "router.appProxy.limits.maxBody=2Gi",
        // Those who are kept stay for as long as they are looked at.
        "router.keepAlive=1h",
        &format!("router.headTimeout={}", form.head),
    ];
    let router = Process::start(&Start::with_settings(program, args, settings, folder.path()))?;
    ready(listen).await?;
    let events = tokio::spawn(follow(listen, begun, form.events));
    let parts = Box::pin(parts(&router, listen, form)).await?;
    say(&format!("an event stream goes on until {:.0} s", form.events.as_secs_f64()));
    let late = events.await.context("follow the events")??;
    router.kill().await?;

    let mut measures = Measures::new("router", !form.is_judged);
    for part in &parts {
        let (name, more) = (&part.name, part.most.saturating_sub(part.before));
        measures.add([match (part.is_flat, part.kept) {
            (true, _) => Measure::memory(format!("{name}: memory beyond what there was"), more, FLAT),
            (_, 0) => Measure::beside(format!("{name}: memory beyond what there was"), mib(more)),
            (_, kept) => {
                Measure::number(format!("{name}: memory of each"), more / kept, KEPT, "B").of_a_while()
            }
        }]);
        let times = part.latencies.iter().map(|all| {
            let told = format!("{} / {}", millis(all.quantile(0.5)), millis(all.quantile(0.99)));
            Measure::beside(format!("{name}: p50 / p99 of 1 kB"), told)
        });
        measures.add(times);
    }
    measures.add([
        Measure::beside(
            format!("events in {:.0} s, each in its order", form.events.as_secs_f64()),
            late.count().to_string(),
        ),
        Measure::time("events are on their way, p99", late.quantile(0.99), LATE),
        Measure::beside("at most", millis(late.quantile(1.0))),
    ]);
    Ok(measures.judge())
}

/// One part of it.
struct Part {
    name: String,
    /// Resident bytes of the router.
    before: u64,
    most: u64,
    /// Whether its memory must stay as it was.
    is_flat: bool,
    /// Connections that are open in it.
    kept: u64,
    /// Of small requests beside it.
    latencies: Option<Times>,
}

/// All that goes on beside the events, one after another.
async fn parts(router: &Process, at: SocketAddr, form: Form) -> anyhow::Result<Vec<Part>> {
    let mut parts = Vec::new();
    let before = resident(router)?;
    let latencies = small(at, form.requests).await?;
    let most = resident(router)?;
    parts.push(Part {
        name: format!("{} small requests", form.requests),
        before,
        most,
        is_flat: false,
        kept: 0,
        latencies: Some(latencies),
    });

    let name = format!("{} MiB up, and down", form.body >> 20);
    parts.push(watched(router, name, true, bodies(at, form.body)).await?);
    let name = format!("{} connections that come and go", form.come_and_go);
    parts.push(watched(router, name, true, come_and_go(at, form.come_and_go)).await?);

    let before = resident(router)?;
    let mut kept = Vec::with_capacity(form.kept);
    for _ in 0..form.kept {
        let mut visitor = Visitor::connect(at, "localhost", None).await?;
        visitor.get(SMALL).await?;
        kept.push(visitor);
    }
    let latencies = small(at, form.requests).await?;
    let most = resident(router)?;
    // Whoever is kept is served again.
    for visitor in &mut kept {
        visitor.get(SMALL).await?;
    }
    drop(kept);
    let name = format!("{} connections kept open", form.kept);
    parts.push(Part {
        name,
        before,
        most,
        is_flat: false,
        kept: form.kept as u64,
        latencies: Some(latencies),
    });

    let before = resident(router)?;
    let slow = tokio::spawn(slow(at, form.slow));
    let latencies = small(at, form.requests).await?;
    let most = resident(router)?;
    slow.await.context("send heads slowly")??;
    let name = format!("{} clients who never end a head, all cut off", form.slow);
    parts.push(Part { name, before, most, is_flat: false, kept: 0, latencies: Some(latencies) });
    Ok(parts)
}

/// Does something, and looks at the memory of the router meanwhile.
async fn watched(
    router: &Process,
    name: String,
    is_flat: bool,
    doing: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Part> {
    let before = resident(router)?;
    let look = || router.resident().map(|bytes| [bytes]);
    let (done, most) = most_while(Duration::from_millis(20), look, doing).await;
    done?;
    let [most] = most.context("read the memory of the router")?;
    Ok(Part { name, before, most, is_flat, kept: 0, latencies: None })
}

fn resident(router: &Process) -> anyhow::Result<u64> {
    router.resident().context("read the memory of the router")
}

/// How long small requests take, one after another over one connection.
async fn small(at: SocketAddr, requests: usize) -> anyhow::Result<Times> {
    let mut all = Times::new()?;
    let mut visitor = Visitor::connect(at, "localhost", None).await?;
    for _ in 0..requests {
        let begun = Instant::now();
        ensure!(visitor.get(SMALL).await? == 1_024, "an answer has another length");
        all.add(begun.elapsed())?;
    }
    Ok(all)
}

async fn bodies(at: SocketAddr, size: u64) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(at).await.context("connect to the router")?;
    let head = format!(
        "POST /app-proxy/up HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.context("send a body")?;
    let piece = vec![b'x'; PIECE];
    for _ in 0..size / PIECE as u64 {
        stream.write_all(&piece).await.context("send a body")?;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.context("read an answer")?;
    ensure!(answer.ends_with(&size.to_string()), "a body of {size} bytes is answered {answer:?}");
    let down =
        format!("GET /app-proxy/bytes/{size} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(at).await.context("connect to the router")?;
    stream.write_all(down.as_bytes()).await.context("ask")?;
    let (mut read, mut piece) = (0, vec![0; PIECE]);
    loop {
        match stream.read(&mut piece).await.context("read a body")? {
            0 => break,
            more => read += more as u64,
        }
    }
    // Its head, and what tells the lengths of its pieces, come on top.
    ensure!(read > size, "{read} bytes were read of {size}");
    Ok(())
}

/// Connections that ask once and are closed by whoever asked, a few at a time.
async fn come_and_go(at: SocketAddr, number: usize) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for _ in 0..8 {
        running.spawn(async move {
            for _ in 0..number / 8 {
                Visitor::connect(at, "localhost", None).await?.get(SMALL).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done.context("come and go")??;
    }
    Ok(())
}

/// Clients who send a byte of a head every second, until each is cut off.
async fn slow(at: SocketAddr, number: usize) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for _ in 0..number {
        running.spawn(async move {
            let mut stream = TcpStream::connect(at).await.context("connect to the router")?;
            let cut = async {
                for byte in HEAD.bytes().cycle() {
                    let mut said = [0; 1_024];
                    if stream.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    // An answer may come before the end.
                    let read = timeout(Duration::from_secs(1), stream.read(&mut said)).await;
                    if let Ok(Ok(0) | Err(_)) = read {
                        return;
                    }
                }
            };
            timeout(CUT_WITHIN, cut).await.context("wait until a client who never ends its head is cut off")
        });
    }
    while let Some(done) = running.join_next().await {
        done.context("send a head slowly")??;
    }
    Ok(())
}

/// Follows the events for as long as they are to last, which one comes of at the least and none is later than the patience, and gives how long each was on its way.
async fn follow(at: SocketAddr, begun: Instant, lasting: Duration) -> anyhow::Result<Times> {
    let mut late = Times::new()?;
    let mut stream = TcpStream::connect(at).await.context("connect to the router")?;
    let ask = "GET /app-proxy/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.context("ask for events")?;
    let mut lines = BufReader::new(stream).lines();
    let (until, mut next, mut heard) = (Instant::now() + lasting, 0, Instant::now());
    while next == 0 || Instant::now() < until {
        let give_up = heard + PATIENCE;
        let line = timeout_at(give_up, lines.next_line()).await.context("wait for an event")?;
        let Some(line) = line.context("read an event")? else {
            bail!("the event stream ends after {next} events")
        };
        let Some((number, made)) = line.strip_prefix("data: ").and_then(|data| data.split_once(' ')) else {
            continue;
        };
        ensure!(number == next.to_string(), "event {number} comes when {next} is the next");
        let made = Duration::from_micros(made.parse().context("read an event")?);
        heard = Instant::now();
        late.add(begun.elapsed().saturating_sub(made))?;
        next += 1;
    }
    Ok(late)
}

/// Waits until a visitor is answered.
async fn ready(at: SocketAddr) -> anyhow::Result<()> {
    let ask = async || {
        let asked = async { Visitor::connect(at, "localhost", None).await?.get(SMALL).await };
        Ok(asked.await)
    };
    let answered = until(PATIENCE, Duration::from_millis(50), ask, Result::is_ok).await?;
    answered.map(drop).context("wait for the router")
}
