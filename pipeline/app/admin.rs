//! Who may ask the running reporter: the admin socket and the admin address.

use std::sync::Arc;

use pipeline_http::admin::{Admin, Answering, Secret};

use super::build;
use crate::config::{Config, Places, SocketPlace};

/// Listens where the settings say so. A socket that cannot be made where the process itself chose the place is said
/// and gone without: nobody asked for it, and reporting does not need it.
///
/// # Errors
/// When another process answers on the socket, or a place that was asked for cannot be listened on.
pub(super) async fn listen(
    config: &Config,
    places: &Places,
    answering: Answering,
) -> anyhow::Result<Vec<Admin>> {
    let chosen = config.state.socket == SocketPlace::Auto;
    let mut servers = Vec::new();
    match &places.socket {
        Some(path) => match Admin::on_socket(path, answering.clone()).await {
            Ok(server) => servers.push(server),
            Err(error) if chosen && !error.is_taken() => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "there is no admin socket: explain, parked, replay and tail cannot ask"
                );
            }
            Err(error) => return Err(error.into()),
        },
        None if chosen => tracing::warn!("there is no directory for the admin socket: set state.directory"),
        None => {}
    }
    if let Some(address) = *config.admin.address {
        let secret = secret(config).await?;
        servers.push(Admin::on_address(&address.to_string(), secret, answering).await?);
    }
    Ok(servers)
}

/// The token of the admin address, which is read now: one that cannot be is told at the start.
async fn secret(config: &Config) -> anyhow::Result<Option<Secret>> {
    let Some(token) = build::token(&config.admin.token())? else { return Ok(None) };
    token.read().await?;
    Ok(Some(Arc::new(move || {
        let token = token.clone();
        Box::pin(async move {
            let read = token.read().await;
            read.inspect_err(|error| {
                let error: &dyn std::error::Error = error;
                tracing::warn!(error, "the admin token cannot be read");
            })
            .ok()
        })
    })))
}
