//! How visitors get to a client of the frp family.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::messages::{Message, StartWork, kind};
use super::packing::Packing;
use super::work_connections::WorkConnections;
use crate::Name;
use crate::registry::Conflict;
use crate::session::{Io, Lead, LeadError};

/// Leads visitors to a client of the frp family, each over a work connection.
pub(super) struct Visits {
    pub(super) name: Name,
    pub(super) connections: Arc<WorkConnections>,
    /// Where another work connection is asked of the client.
    pub(super) want: mpsc::Sender<()>,
    /// Where it is told that the client has lost the tunnel, and to whom.
    pub(super) lost: mpsc::Sender<(Name, Conflict)>,
    pub(super) places: Arc<Semaphore>,
    pub(super) within: Duration,
    pub(super) proxy_name: String,
    pub(super) packing: Packing,
}

impl fmt::Debug for Visits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Visits")
    }
}

#[async_trait]
impl Lead for Visits {
    async fn lead(&self, visitor: SocketAddr) -> Result<Box<dyn Io>, LeadError> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| LeadError::Full)?;
        let start = StartWork {
            proxy_name: self.proxy_name.clone(),
            src_addr: visitor.ip().to_string(),
            src_port: visitor.port(),
            error: String::new(),
        };
        let leading = async {
            loop {
                if !self.connections.has_one() {
                    self.want.send(()).await.map_err(|_| LeadError::Gone)?;
                }
                let mut work = self.connections.take().await.ok_or(LeadError::Gone)?;
                // One that was closed meanwhile is of no use.
                if work.is_over() {
                    continue;
                }
                // Another takes its place.
                self.want.send(()).await.map_err(|_| LeadError::Gone)?;
                if Message::write(&mut work, kind::START_WORK, &start).await.is_ok() {
                    return Ok(work);
                }
            }
        };
        let mut work = timeout(self.within, leading).await.unwrap_or(Err(LeadError::Late))?;
        work.hold(place);
        Ok(self.packing.unpacked(work))
    }

    fn lose(&self, to: Conflict) {
        let _ = self.lost.try_send((self.name.clone(), to));
    }
}
