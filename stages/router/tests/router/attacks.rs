//! Requests that two servers could read in two ways, and others that mean harm: each with the answer that it must get, and
//! what the service behind may see of it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{Running, SOON, Upstream, config, limits, proxied};
use stages_router::{Allowed, RouterConfig, Webhooks};

const TABLE: &str = include_str!("attacks.txt");
/// Sent after each attack, where the connection is still there: what an attack has left behind would change its answer.
const AFTER: &[u8] = b"GET /nowhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// One attack.
#[derive(Debug, Default)]
struct Attack {
    name: String,
    bytes: Vec<u8>,
    /// The answers, that to [`AFTER`] included where there is one.
    answers: Vec<String>,
    /// Requests that the service sees.
    seen: Vec<String>,
    /// One that it may see or not: its body is wrong, and how much of it arrives at once is not ours to say.
    may_see: Option<String>,
    /// Headers that it sees, as `name: value`.
    headers: Vec<String>,
    /// Headers that it does not see.
    hidden: Vec<String>,
}

fn table() -> Vec<Attack> {
    TABLE.split("\n== ").skip(1).map(attack).collect()
}

fn attack(text: &str) -> Attack {
    let mut lines = text.lines();
    let mut attack = Attack { name: lines.next().unwrap().to_owned(), ..Attack::default() };
    let mut request = Vec::new();
    for line in lines.filter(|line| !line.starts_with('#')) {
        if let Some(answers) = line.strip_prefix("-> ") {
            attack.answers = answers.split(' ').map(str::to_owned).collect();
        } else if let Some(seen) = line.strip_prefix("=> ") {
            attack.seen.push(seen.to_owned());
        } else if let Some(seen) = line.strip_prefix("=? ") {
            attack.may_see = Some(seen.to_owned());
        } else if let Some(header) = line.strip_prefix("=+ ") {
            attack.headers.push(header.to_owned());
        } else if let Some(header) = line.strip_prefix("=- ") {
            attack.hidden.push(header.to_owned());
        } else if attack.answers.is_empty() {
            request.push(line);
        }
    }
    let wanted = request.iter().position(|line| line.is_empty()).map_or(request.len(), |end| end + 1);
    for (number, line) in request.iter().enumerate() {
        attack.bytes.extend(plain(line));
        if number < wanted {
            attack.bytes.extend(b"\r\n");
        }
    }
    attack
}

/// `\r`, `\n`, `\0`, `\t`, `\\`, `\xff`, and `\{x*70000}` for many of one.
fn plain(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            bytes.extend(c.to_string().into_bytes());
            continue;
        }
        match rest.next().unwrap() {
            'r' => bytes.push(b'\r'),
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            '0' => bytes.push(0),
            '\\' => bytes.push(b'\\'),
            'x' => {
                let digits: String = rest.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            '{' => {
                let many: String = rest.by_ref().take_while(|c| *c != '}').collect();
                let (what, count) = many.rsplit_once('*').unwrap();
                bytes.extend(plain(what).repeat(count.parse().unwrap()));
            }
            other => panic!("{other}"),
        }
    }
    bytes
}

/// The statuses of all answers until the connection ends, and whether the head of the first was whole.
async fn answers(mut stream: TcpStream, bytes: &[u8]) -> Vec<String> {
    let mut read = Vec::new();
    stream.write_all(bytes).await.unwrap();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.unwrap_or(0);
        read.extend_from_slice(&part[..count]);
        if count == 0 || read.windows(4).any(|window| window == b"\r\n\r\n") {
            break;
        }
    }
    // It may have been closed: then there is no more answer.
    let _ = stream.write_all(AFTER).await;
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        read.extend_from_slice(&part[..count]);
    }
    let text = String::from_utf8_lossy(&read).into_owned();
    let mut answers: Vec<String> = Vec::new();
    for part in text.split("HTTP/1.").skip(1) {
        answers.extend(part.get(2..5).map(str::to_owned));
    }
    if answers.is_empty() { vec!["closed".to_owned()] } else { answers }
}

async fn attacked(service: &Upstream) -> Running {
    let behind = || {
        let mut behind = proxied(&service.url());
        behind.limits.body = 1_000;
        behind.limits.headers = 8 << 10;
        Some(behind)
    };
    let allowed = Allowed { namespace: Some("runtime".to_owned()), name: Some("push".to_owned()) };
    Running::start(RouterConfig {
        app_proxy: behind(),
        workflows: behind(),
        webhooks: Webhooks { allowed: vec![allowed], port: 80, limits: limits() },
        ..config()
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_attack_gets_its_answer_and_goes_no_further_than_it_may() {
    let table = table();
    assert!(table.len() >= 60, "{} attacks are too few", table.len());
    let mut wrong = Vec::new();
    for attack in table {
        // Of its own, so that what comes late of one attack is not taken for the next one's.
        let service = Upstream::recording().await;
        let running = attacked(&service).await;
        let answering = timeout(SOON, answers(running.connect().await, &attack.bytes));
        let got = answering.await.unwrap_or_else(|_| vec!["nothing".to_owned()]);
        let seen = service.seen.lock().unwrap().clone();
        let mut lines: Vec<String> = seen.iter().map(|seen| seen.line.clone()).collect();
        if let Some(may) = &attack.may_see
            && lines.first() == Some(may)
        {
            lines.remove(0);
        }
        if got != attack.answers || lines != attack.seen {
            wrong.push(format!(
                "{}: {got:?} and {lines:?}, not {:?} and {:?}",
                attack.name, attack.answers, attack.seen
            ));
            continue;
        }
        running.end().await;
        let headers = seen.into_iter().next().map(|seen| seen.headers).unwrap_or_default();
        let has = |name: &str| {
            let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap());
            values.collect::<Vec<_>>().join(" | ")
        };
        for header in &attack.headers {
            let (name, value) = header.split_once(": ").unwrap();
            if has(name) != value {
                wrong.push(format!("{}: {name} is {}", attack.name, has(name)));
            }
        }
        for name in &attack.hidden {
            if headers.contains_key(name) {
                wrong.push(format!("{}: {name} is there: {}", attack.name, has(name)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
