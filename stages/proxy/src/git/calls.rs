//! The HTTP settings and the meter that all clients of Git providers share.

use std::path::PathBuf;
use std::sync::Arc;

use pipeline_core::{Call, Meter};
use stages_client::{BuildError, Client, Config, Target};

use crate::series::GIT;

/// The HTTP settings and the meter that all clients of Git providers share. Cloning shares.
#[derive(Clone)]
pub(crate) struct Calls {
    /// Counts and times each call.
    pub(crate) meter: Arc<dyn Meter>,
    /// A PEM file with authorities that are trusted besides the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Calls {
    /// A client of one provider.
    pub(super) async fn client(&self, target: Target, config: Config) -> Result<Client, BuildError> {
        let client = Config { ca_file: self.ca_file.clone(), ..config }.build(target).await?;
        Ok(client.metered(Call::new(GIT, "call"), self.meter.clone()))
    }
}
