//! A server of names whose records a test changes.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Addresses by name, with their time to live in seconds.
type Records = Arc<Mutex<HashMap<String, (Vec<IpAddr>, u32)>>>;

pub(crate) struct Dns {
    pub(crate) address: SocketAddr,
    records: Records,
    /// Names that were asked for.
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Dns {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (address, records) = (socket.local_addr().unwrap(), Records::default());
        let (known, asked) = (records.clone(), Arc::<Mutex<Vec<String>>>::default());
        let log = asked.clone();
        let task = tokio::spawn(async move {
            let mut bytes = [0; 4096];
            loop {
                let (count, from) = socket.recv_from(&mut bytes).await.unwrap();
                let answer = answer(&bytes[..count], &known, &log);
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        Self { address, records, asked, task }
    }

    /// `name` is at these addresses from now on, for so many seconds.
    pub(crate) fn set(&self, name: &str, addresses: &[&str], seconds: u32) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self.records.lock().unwrap().insert(name.to_owned(), (addresses, seconds));
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn answer(bytes: &[u8], records: &Records, log: &Mutex<Vec<String>>) -> Vec<u8> {
    let question = Message::from_vec(bytes).unwrap();
    let query = question.queries.first().unwrap().clone();
    let name = query.name().to_string().to_ascii_lowercase();
    let mut answer = question.into_response();
    log.lock().unwrap().push(name.clone());
    match records.lock().unwrap().get(&name) {
        Some((addresses, seconds)) => {
            for address in addresses {
                let data = match (address, query.query_type()) {
                    (IpAddr::V4(address), RecordType::A) => RData::A((*address).into()),
                    (IpAddr::V6(address), RecordType::AAAA) => RData::AAAA((*address).into()),
                    _ => continue,
                };
                answer.add_answer(Record::from_rdata(query.name().clone(), *seconds, data));
            }
        }
        None => answer.metadata.response_code = ResponseCode::NXDomain,
    }
    answer.to_vec().unwrap()
}
