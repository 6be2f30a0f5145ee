//! Stopping a program together with all that it started.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process_group};

/// Kills the process group that `child` leads.
///
/// The child must not have been waited for yet: until then the number is its own and
/// its group's, and afterwards it may be anybody's.
pub(crate) fn kill(child: &Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    // Nobody left in it is as good.
    let _ = kill_process_group(group, Signal::KILL);
}
