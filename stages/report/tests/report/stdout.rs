//! Lines on a pipe.

use std::io::{self, BufRead as _, BufReader, Write};

use pipeline_core::{Reason, Shutdown, Sink as _};
use stages_report::stdout::Config;

use crate::support::shipment;

#[tokio::test]
async fn lines_are_flushed_before_the_answer() {
    let (reader, writer) = io::pipe().unwrap();
    let sink = Config.build_onto(io::BufWriter::new(writer), Shutdown::new()).unwrap();
    assert_eq!(sink.name(), "stdout");
    assert!(sink.ship(&[shipment("1", 0), shipment("2", 1)]).await.iter().all(Result::is_ok));
    let mut lines = BufReader::new(reader).lines();
    for number in ["1", "2"] {
        let line: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["data"].to_string(), number);
    }
    drop(sink);
    assert!(lines.next().is_none());
}

#[tokio::test]
async fn a_reader_that_is_gone_stops_the_process() {
    let (reader, writer) = io::pipe().unwrap();
    let stop = Shutdown::new();
    let sink = Config.build_onto(writer, stop.clone()).unwrap();
    drop(reader);
    for _ in 0..2 {
        let error = sink.ship(&[shipment("1", 0)]).await.remove(0).unwrap_err();
        assert_eq!((error.is_retry(), error.reason()), (true, Reason::Stopping));
        assert_eq!(error.to_string(), "cannot write to standard output");
        assert!(stop.is_cancelled());
    }
}

/// Writes half of what it gets, then fails once.
struct Failing {
    taken: io::PipeWriter,
    fails: bool,
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.fails && bytes.len() > 10 {
            return self.taken.write(bytes.get(..10).unwrap());
        }
        if std::mem::take(&mut self.fails) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.taken.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.taken.flush()
    }
}

#[tokio::test]
async fn a_line_after_one_that_was_cut_stands_alone() {
    let (reader, writer) = io::pipe().unwrap();
    let stop = Shutdown::new();
    let sink = Config.build_onto(Failing { taken: writer, fails: true }, stop.clone()).unwrap();
    let error = sink.ship(&[shipment("1", 0)]).await.remove(0).unwrap_err();
    assert_eq!((error.is_retry(), error.reason()), (true, Reason::Io));
    assert!(!stop.is_cancelled());
    assert!(sink.ship(&[shipment("2", 0)]).await.remove(0).is_ok());
    drop(sink);
    let lines: Vec<String> = BufReader::new(reader).lines().map(Result::unwrap).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[1].starts_with("{\"idempotencyKey\"") && lines[1].ends_with("\"data\":2}"));
}
