//! The user's home folder, whatever the environment says.

use std::path::PathBuf;

/// The home folder in the user database, which no variable changes; `None` when the
/// user is not in it or it cannot be asked.
pub fn listed() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok()??;
    Some(user.dir)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_absolute() {
        assert!(super::listed().is_none_or(|home| home.is_absolute()));
    }
}
