//! Machine code of replaced logics, kept on disk between starts.
//!
//! Loading machine code means running it, so an entry is only trusted when the
//! folder and the file belong to this user, nobody else may write or read them,
//! and the code is what was written: its digest stands before it. Whatever is
//! wrong with an entry, the component is compiled again; a cache never fails a
//! start, it only says in the log why it could not help.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::Engine;

/// An entry's first bytes; another number when its form changes.
const MAGIC: [u8; 8] = *b"lslogic1";

const DIGEST: usize = 32;

/// The place of one component's machine code.
pub(super) struct Entry {
    folder: PathBuf,
    file: PathBuf,
}

impl Entry {
    /// The place for a component as this engine compiles it: another version of
    /// the compiler, or other settings, have another one.
    pub fn new(folder: &Path, engine: &Engine, component: &[u8]) -> Self {
        let mut key = KeyHasher(Sha256::new_with_prefix(component));
        engine.precompile_compatibility_hash().hash(&mut key);
        let mut name = String::new();
        for byte in key.0.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        Self { folder: folder.to_owned(), file: folder.join(name + ".cwasm") }
    }

    /// The machine code, when there is an entry that can be trusted.
    pub fn load(&self) -> Option<Vec<u8>> {
        match self.read() {
            Ok(code) => Some(code),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(file = %self.file.display(), %error, "cached machine code is not used");
                None
            }
        }
    }

    /// Keeps machine code for the next start.
    pub fn save(&self, code: &[u8]) {
        if let Err(error) = self.write(code) {
            tracing::warn!(file = %self.file.display(), %error, "machine code could not be cached");
        }
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        ours(&fs::symlink_metadata(&self.folder)?)?;
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&self.file)?;
        ours(&file.metadata()?)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let code = bytes
            .strip_prefix(&MAGIC)
            .and_then(|rest| rest.split_first_chunk::<DIGEST>())
            .filter(|(digest, code)| Sha256::digest(code)[..] == digest[..])
            .map(|(_, code)| code.to_vec());
        code.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it was damaged"))
    }

    fn write(&self, code: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        ours(&fs::symlink_metadata(&self.folder)?)?;
        // Readers find the old or the new file, whole; two writers write the same.
        let temporary = self.file.with_extension(format!("{}.tmp", std::process::id()));
        let written = (|| {
            let mut file = create(&temporary)?;
            file.write_all(&MAGIC)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            drop(file);
            fs::rename(&temporary, &self.file)
        })();
        if written.is_err() {
            // What cannot be written cannot always be removed either.
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        // Left by a process of the same number that was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}

/// Fails unless this user alone can change what the metadata is of.
fn ours(metadata: &Metadata) -> io::Result<()> {
    let problem = if metadata.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if metadata.is_symlink() {
        "it is a symbolic link"
    } else if metadata.mode() & 0o077 != 0 {
        "other users may open it"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

/// Feeds whatever identifies an engine into a digest.
struct KeyHasher(Sha256);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        // Asked by nobody; the digest is taken whole.
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn entry(folder: &Path) -> Entry {
        Entry::new(&folder.join("a/b"), &Engine::default(), b"component")
    }

    #[test]
    fn what_was_saved_is_loaded() {
        let temporary = tempfile::tempdir().unwrap();
        let entry = entry(temporary.path());
        assert_eq!(entry.load(), None);
        entry.save(b"code");
        entry.save(b"new code");
        assert_eq!(entry.load().as_deref(), Some(&b"new code"[..]));
        assert_eq!(fs::metadata(&entry.folder).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&entry.file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&entry.folder).unwrap().count(), 1);
    }

    #[test]
    fn another_component_has_another_place() {
        let engine = Engine::default();
        let one = Entry::new(Path::new("x"), &engine, b"one");
        assert_eq!(one.file, Entry::new(Path::new("x"), &engine, b"one").file);
        assert_ne!(one.file, Entry::new(Path::new("x"), &engine, b"two").file);
    }

    #[test]
    fn an_entry_that_others_may_touch_is_not_trusted() {
        let temporary = tempfile::tempdir().unwrap();
        let entry = entry(temporary.path());
        entry.save(b"code");
        for (path, loose, tight) in [(&entry.file, 0o620, 0o600), (&entry.folder, 0o750, 0o700)] {
            fs::set_permissions(path, fs::Permissions::from_mode(loose)).unwrap();
            assert_eq!(entry.load(), None, "{}", path.display());
            fs::set_permissions(path, fs::Permissions::from_mode(tight)).unwrap();
            assert!(entry.load().is_some());
        }
        let elsewhere = temporary.path().join("elsewhere");
        fs::rename(&entry.file, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &entry.file).unwrap();
        assert_eq!(entry.load(), None);
    }

    #[test]
    fn a_damaged_entry_is_not_trusted() {
        let temporary = tempfile::tempdir().unwrap();
        let entry = entry(temporary.path());
        entry.save(b"code");
        let whole = fs::read(&entry.file).unwrap();
        for length in 0..whole.len() {
            fs::write(&entry.file, &whole[..length]).unwrap();
            assert_eq!(entry.load(), None, "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&entry.file, &bytes).unwrap();
            assert_eq!(entry.load(), None, "byte {at}");
        }
        entry.save(b"code");
        assert!(entry.load().is_some());
    }
}
