//! How Git providers are called.

use std::path::PathBuf;
use std::sync::Arc;

use pipeline_core::{Call, Meter};
use stages_client::{BuildError, Client, Config, Target};

use crate::series::GIT;

/// How Git providers are called. Cloning shares.
#[derive(Clone)]
pub(crate) struct Calls {
    /// Told of each call.
    pub(crate) meter: Arc<dyn Meter>,
    /// Authorities that sign certificates of theirs, beside the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Calls {
    /// Who calls one of them.
    pub(super) async fn client(&self, target: Target, config: Config) -> Result<Client, BuildError> {
        let client = Config { ca_file: self.ca_file.clone(), ..config }.build(target).await?;
        Ok(client.metered(Call::new(GIT, "call"), self.meter.clone()))
    }
}
