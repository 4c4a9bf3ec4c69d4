//! Why there are no credentials, in words that hold none.
//!
//! What kube says of an exec plug-in quotes its command with the environment that the kubeconfig gives it, and
//! all that it printed: keys and tokens. Of such an error nothing but its kind is passed on.

use std::error::Error;

use kube::client::AuthError;

use crate::failure::LAYERS;

/// What is wrong with the credentials, if it is the credentials that `error` is about. They are read when the
/// client is built, and again with a request when they have expired, where the error comes inside of others.
pub(crate) fn refused(error: &kube::Error) -> Option<&'static str> {
    let mut layer: Option<&(dyn Error + 'static)> = Some(error);
    for _ in 0..LAYERS {
        let error = layer?;
        if let Some(error) = error.downcast_ref::<AuthError>() {
            return Some(what(error));
        }
        layer = error.source();
    }
    None
}

fn what(error: &AuthError) -> &'static str {
    match error {
        AuthError::AuthExecStart(_) => "the exec plug-in of the kubeconfig cannot be started",
        AuthError::AuthExecRun { .. } => "the exec plug-in of the kubeconfig failed, run its command by hand",
        AuthError::AuthExecParse(_) => "what the exec plug-in of the kubeconfig printed cannot be read",
        AuthError::ReadTokenFile(..) => "the token file cannot be read",
        _ => "what the kubeconfig names as credentials cannot be used",
    }
}
