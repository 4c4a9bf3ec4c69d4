//! The way as a visitor sees it: name, connection, certificate, entrance, router, WebSocket, events.

use std::net::IpAddr;
use std::time::Duration;

use super::controller::Controller;
use super::hop::Hops;
use crate::rules::{DAY, PeerResponse, SOON, Unreached, within};

/// Below the address of a runtime, answered by its router.
pub(super) const PROBE: &str = "/webhooks/_access";
/// The router sends the second event this long after the first.
const HOLD: Duration = Duration::from_secs(5);

/// What became of a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upgraded {
    /// It said back what it was told.
    Echoed,
    /// The answer was not 101, but this.
    Refused(u16),
    /// It was opened, and nothing came back.
    Silent,
}

/// Somebody who visits, from here.
pub trait Visitor {
    /// The addresses of a host.
    ///
    /// # Errors
    /// Why there are none.
    fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unreached>;

    /// What a GET answers; redirects are followed.
    ///
    /// # Errors
    /// Why it was not reached.
    fn get(&self, url: &str) -> Result<PeerResponse, Unreached>;

    /// Opens a WebSocket and says something.
    ///
    /// # Errors
    /// Why it was not reached.
    fn socket(&self, url: &str) -> Result<Upgraded, Unreached>;

    /// How long the first bytes of an answer's body took; `None` where there was none.
    ///
    /// # Errors
    /// Why it was not reached.
    fn first(&self, url: &str) -> Result<Option<Duration>, Unreached>;

    /// The time, in seconds since 1970.
    fn now(&self) -> i64;
}

/// Where a runtime is to be found.
pub(super) struct Place<'a> {
    /// Without a slash at its end.
    pub(super) url: &'a str,
    pub(super) host: &'a str,
    pub(super) controller: Controller,
    /// Where its entrance says that it is.
    pub(super) stated: &'a [String],
}

/// Asks from outside in; gives up at the first that does not lead on.
pub(super) fn look(visitor: &dyn Visitor, place: &Place<'_>, hops: &mut Hops) {
    let Place { url, host, controller, stated } = place;
    let found = match visitor.addresses(host) {
        Ok(found) if !found.is_empty() => found,
        _ => {
            let address = stated.first().map(String::as_str);
            return hops.fails("name", format!("{host} does not resolve"), controller.name(address));
        }
    };
    named(visitor, place, &found, hops);
    let said = match visitor.get(&format!("{url}{PROBE}/hop")) {
        Ok(said) => said,
        Err(Unreached::Certificate(why)) => return hops.fails("certificate", why, controller.certificate()),
        Err(why @ (Unreached::Refused | Unreached::Silent | Unreached::Unresolved)) => {
            let todo = "open the port in front of the entrance: its Service's external address, security groups, firewalls";
            return hops.fails("connection", format!("{host}: {why}"), todo);
        }
        Err(why) => return hops.fails("connection", format!("{host}: {why}"), controller.certificate()),
    };
    hops.works("connection", format!("{host} answers"));
    certified(visitor, url, &said, *controller, hops);
    if !entered(&said, *controller, hops) {
        return;
    }
    match visitor.socket(&format!("{url}{PROBE}/socket")) {
        Ok(Upgraded::Echoed) => hops.works("WebSocket", "passes both ways"),
        Ok(Upgraded::Refused(503)) | Err(Unreached::Silent) => {
            hops.unmeasured("WebSocket", "the router is busy", "ask again");
        }
        Ok(Upgraded::Refused(status)) => {
            hops.fails("WebSocket", format!("the upgrade is answered with {status}"), controller.socket());
        }
        Ok(Upgraded::Silent) => {
            hops.fails("WebSocket", "it is opened, and nothing comes back", controller.socket());
        }
        Err(why) => hops.fails("WebSocket", why.to_string(), controller.socket()),
    }
    // Whoever is slow for once is not taken for somebody who holds streams back.
    let mut late = None;
    for _ in 0..2 {
        match visitor.first(&format!("{url}{PROBE}/events")) {
            Ok(Some(took)) if took < HOLD => return hops.works("events", "arrive as they are sent"),
            Ok(took) => late = took,
            Err(why) => return hops.fails("events", why.to_string(), controller.events()),
        }
    }
    let found = late.map_or("nothing of a stream arrives", |_| "a stream is held back until it ends");
    hops.fails("events", found, controller.events());
}

/// Whether the name leads where the entrance says that it is.
fn named(visitor: &dyn Visitor, place: &Place<'_>, found: &[IpAddr], hops: &mut Hops) {
    let Place { host, controller, stated, .. } = place;
    let said: Vec<String> = found.iter().map(IpAddr::to_string).collect();
    let mut there: Vec<IpAddr> = Vec::new();
    for address in *stated {
        match address.parse() {
            Ok(address) => there.push(address),
            Err(_) => there.extend(visitor.addresses(address).unwrap_or_default()),
        }
    }
    if !there.is_empty() && !found.iter().any(|address| there.contains(address)) {
        let todo = format!(
            "{}, unless a proxy of yours stands between",
            controller.name(stated.first().map(String::as_str))
        );
        let found = format!("{host} is {}, and the entrance is at {}", said.join(", "), stated.join(", "));
        return hops.doubts("name", found, todo);
    }
    hops.works("name", format!("{host} is {}", said.join(", ")));
}

fn certified(visitor: &dyn Visitor, url: &str, said: &PeerResponse, controller: Controller, hops: &mut Hops) {
    if !url.starts_with("https://") {
        let todo = "the platform's page, in a browser, reaches https addresses alone: give the entrance a certificate";
        return hops.doubts("certificate", "the address is one of plain HTTP", todo);
    }
    let left = said.certificates.iter().map(|one| one.ends - visitor.now()).min();
    match left {
        Some(left) if left / DAY <= SOON => {
            hops.doubts("certificate", format!("it ends {}", within(left)), controller.certificate());
        }
        Some(left) => hops.works("certificate", format!("is trusted here, for {} days", left / DAY)),
        None => hops.works("certificate", "is trusted here"),
    }
}

/// Whether it was the router who answered.
fn entered(said: &PeerResponse, controller: Controller, hops: &mut Hops) -> bool {
    if said.status == 200 && said.body["router"] == "gitops-runtime" {
        hops.works("entrance", "leads to the router");
        return true;
    }
    let (found, todo) = match said.status {
        404 => ("the entrance has no route for the host and /webhooks (404)".to_owned(), controller.route()),
        401 | 403 => (
            format!("something before the router refuses visitors ({})", said.status),
            "take logins and lists of addresses away from these paths, or put this one's address on them",
        ),
        502..=504 => {
            (format!("the entrance does not reach the router ({})", said.status), controller.route())
        }
        200 => ("something else than the router answers".to_owned(), controller.route()),
        status => (format!("the entrance answers {status}, not the router"), controller.route()),
    };
    hops.fails("entrance", found, todo);
    false
}
