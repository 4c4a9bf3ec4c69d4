//! A thread of its own for what takes every event in: see [`Engine::led_by`].
//!
//! [`Engine::led_by`]: pipeline_engine::run::Engine::led_by

use std::thread;

use anyhow::Context as _;
use pipeline_core::Shutdown;
use tokio::runtime::{Builder, Handle};

/// A runtime with one thread; what still runs on it when this is dropped ends where it waits.
pub(super) struct Lead {
    runtime: Handle,
    stop: Shutdown,
    thread: Option<thread::JoinHandle<()>>,
}

impl Lead {
    pub(super) fn start() -> anyhow::Result<Self> {
        let runtime =
            Builder::new_current_thread().enable_all().build().context("start the runtime of the watch")?;
        let (handle, stop) = (runtime.handle().clone(), Shutdown::new());
        let until = stop.clone();
        let run = move || runtime.block_on(until.cancelled());
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(run);
        Ok(Self { runtime: handle, stop, thread: Some(thread.context("start the thread of the watch")?) })
    }

    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // Its tasks catch their panics.
            let _ = thread.join();
        }
    }
}
