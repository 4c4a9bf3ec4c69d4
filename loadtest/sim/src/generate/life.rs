//! Applications in states of someone's own choice: back to where they were, or born again under their name.

use super::{AppState, Fleet, time, uid};

impl Fleet {
    /// Puts an application into a state, whatever it was in; `false` when there is none of its number.
    pub fn set(&self, state: AppState) -> bool {
        let mut states = self.states();
        let Some(own) = states.get_mut(state.index as usize) else { return false };
        *own = state;
        true
    }

    /// The application of this number, also one that was deleted.
    #[must_use]
    pub fn find_any(&self, index: u32) -> Option<AppState> {
        self.states().get(index as usize).cloned()
    }

    /// `metadata.uid` of an application in this state.
    #[must_use]
    pub fn uid(&self, state: &AppState) -> String {
        let mut out = Vec::new();
        uid(&self.shape, state, 0, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// `status.operationState.finishedAt` of an application in this state; `None` while the operation runs.
    #[must_use]
    pub fn operation_end(state: &AppState) -> Option<String> {
        (state.commit == state.deployed).then(|| {
            let mut out = Vec::new();
            time(state.commit * 60 + 30, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        })
    }
}
