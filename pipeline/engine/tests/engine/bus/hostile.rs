//! Bytes from anybody on any subject.

use bytes::Bytes;
use pipeline_bus::DecodeError;

use crate::bus::world::{SOURCE, config, delivered, published, ready, soon, state, taken};
use crate::server::{Server, client};

#[tokio::test]
async fn garbage_and_newer_formats_come_as_errors_that_can_be_acknowledged() {
    let server = Server::start();
    let (bus, mut deliveries) = ready(config(&server)).await;
    let raw = client(&server.url()).await;
    let good = state("good", 1, 10).encode(1_000_000).unwrap().bytes;
    let garbage = DecodeError::Garbage;
    let cases = [
        ("objects.0.u.state", Bytes::new(), Err(garbage("it is no map"))),
        ("objects.0.u.once.1", Bytes::from(vec![0xff; 1_000_000]), Err(garbage("it is no map"))),
        (
            "objects.0.v.once.2",
            Bytes::from_static(b"\x81\xa6format\x03"),
            Err(DecodeError::Newer { format: 3 }),
        ),
        (
            "objects.0.v.once.3",
            good.slice(..good.len() - 1),
            Err(garbage("it is malformed or has no format")),
        ),
        ("objects.0.no.subject.of.ours", good.clone(), Ok(state("good", 1, 10))),
        ("objects.0.x", good.clone(), Ok(state("good", 1, 10))),
    ];
    for (tail, bytes, _) in &cases {
        raw.publish(format!("gitops-runtime.{tail}"), bytes.clone()).await.unwrap().await.unwrap();
    }
    published(&bus, &state("after", 1, 10)).await;
    for (at, (tail, bytes, expected)) in (1..).zip(cases) {
        let delivery = delivered(&mut deliveries).await;
        assert_eq!(delivery.message, expected, "{tail}");
        assert_eq!(delivery.subject.is_some(), at <= 4, "{tail}");
        assert_eq!(delivery.sequence, at);
        assert!(delivery.size >= bytes.len());
        delivery.acker.ack().await.unwrap();
    }
    assert_eq!(taken(&mut deliveries).await, state("after", 1, 10));
    let empty = async {
        while bus.show(SOURCE).await.unwrap().stream.unwrap().messages > 0 {
            tokio::task::yield_now().await;
        }
    };
    soon("the last acknowledgement", empty).await;
}
