//! How the program is linked.

use std::env;
use std::process::Command;

/// The first glibc that loads packed relocations.
const GLIBC: (u32, u32) = (2, 36);

/// What the linker is told for the program, if anything.
///
/// A program that may lie anywhere has an address to mend for each of its tables'
/// pointers, 50,000 of them. Packed they take a fiftieth of the room, and a start reads
/// so much less of the file into memory. Only where the system that builds is the one
/// that runs it, and says that its loader can read them; a linker that cannot pack
/// them ignores the word.
pub fn argument() -> Option<&'static str> {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let at_home = env::var_os("HOST") == env::var_os("TARGET");
    let glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    (at_home && glibc && loader()? >= GLIBC).then_some("-Wl,-z,pack-relative-relocs")
}

/// The version of this system's glibc.
fn loader() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let mut numbers = said.trim().strip_prefix("glibc ")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
