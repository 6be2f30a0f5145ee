//! Files below a working folder. Links are followed as long as they stay below it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::contract::tools::{FileFact, FoundFile};
use crate::digest::digest;

/// The largest file that is read, in bytes.
pub const BYTES_MAX: u64 = 8 << 20;

/// Looks at the file `path` below the folder `workdir` of the project `root`; with its
/// content, if that is wanted.
pub fn file(root: &Path, workdir: &str, path: &str, content: bool) -> FileFact {
    let found = match locate(root, workdir, path) {
        Ok(Some(found)) => found,
        Ok(None) => return FileFact::Outside,
        Err(cause) => return unread(&cause),
    };
    match read(&found) {
        Ok(Read::NotAFile) => FileFact::NotAFile,
        Ok(Read::TooLarge(bytes)) => FileFact::TooLarge(bytes),
        Ok(Read::Whole(bytes)) => FileFact::File(FoundFile {
            bytes: bytes.len() as u64,
            sha256: digest(&bytes),
            content: content.then_some(bytes),
        }),
        Err(cause) => unread(&cause),
    }
}

/// The working folder, links resolved; `None` when it lies outside the project.
pub(super) fn working_folder(root: &Path, workdir: &str) -> io::Result<Option<PathBuf>> {
    let root = std::fs::canonicalize(root)?;
    let folder = std::fs::canonicalize(root.join(workdir))?;
    Ok(folder.starts_with(&root).then_some(folder))
}

fn locate(root: &Path, workdir: &str, path: &str) -> io::Result<Option<PathBuf>> {
    let Some(folder) = working_folder(root, workdir)? else { return Ok(None) };
    let found = std::fs::canonicalize(folder.join(path))?;
    Ok(found.starts_with(&folder).then_some(found))
}

enum Read {
    NotAFile,
    TooLarge(u64),
    Whole(Vec<u8>),
}

fn read(path: &Path) -> io::Result<Read> {
    // The path is resolved: a link in its place now was put there meanwhile. Without
    // waiting, for a pipe may stand there.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(Read::NotAFile);
    }
    if meta.len() > BYTES_MAX {
        return Ok(Read::TooLarge(meta.len()));
    }
    // Room for its end as well, which is read like everything else.
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or_default() + 1);
    // It may grow between the look and the read.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    Ok(if length > BYTES_MAX { Read::TooLarge(length) } else { Read::Whole(bytes) })
}

fn unread(cause: &io::Error) -> FileFact {
    match cause.kind() {
        io::ErrorKind::NotFound => FileFact::Absent,
        // A part of the way is a file: there is nothing below it.
        io::ErrorKind::NotADirectory => FileFact::Absent,
        _ => FileFact::Unreadable(cause.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn say(fact: FileFact) -> String {
        match fact {
            FileFact::Absent => "absent".to_owned(),
            FileFact::NotAFile => "not a file".to_owned(),
            FileFact::Outside => "outside".to_owned(),
            FileFact::TooLarge(bytes) => format!("too large: {bytes}"),
            FileFact::Unreadable(why) => format!("unreadable: {why}"),
            FileFact::File(file) => {
                let text = file.content.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                format!("{} bytes, {}, {text:?}", file.bytes, &file.sha256[..8])
            }
        }
    }

    #[test]
    fn what_is_found() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let root = top.path().join("project");
        std::fs::create_dir_all(root.join("work/sub")).expect("folders");
        std::fs::write(top.path().join("secret"), "s").expect("a file");
        std::fs::write(root.join("above"), "a").expect("a file");
        std::fs::write(root.join("work/plain"), "text").expect("a file");
        std::fs::write(root.join("work/empty"), "").expect("a file");
        let large = File::create(root.join("work/large")).expect("a file");
        large.set_len(BYTES_MAX + 1).expect("a length");
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("work/pipe"), Mode::RUSR).expect("a pipe");
        for (to, at) in [
            ("plain", "work/link"),
            ("../../secret", "work/out"),
            ("../above", "work/up"),
            ("nowhere", "work/dangling"),
            ("cycle", "work/cycle"),
        ] {
            symlink(to, root.join(at)).expect("a link");
        }
        symlink(top.path(), root.join("away")).expect("a link");
        #[rustfmt::skip]
        let table = [
            ("work", "plain", true, r#"4 bytes, 982d9e3e, Some("text")"#),
            ("work", "plain", false, "4 bytes, 982d9e3e, None"),
            ("", "work/plain", false, "4 bytes, 982d9e3e, None"),
            ("work", "empty", true, r#"0 bytes, e3b0c442, Some("")"#),
            ("work", "link", false, "4 bytes, 982d9e3e, None"),
            ("work", "sub", false, "not a file"),
            ("work", "pipe", false, "not a file"),
            ("work", "large", true, "too large: 8388609"),
            ("work", "nope", false, "absent"),
            ("work", "plain/below", false, "absent"),
            ("work", "dangling", false, "absent"),
            ("nowhere", "plain", false, "absent"),
            ("work", "out", false, "outside"),
            ("work", "up", false, "outside"),
            ("", "work/up", false, "1 bytes, ca978112, None"),
            ("away", "secret", false, "outside"),
        ];
        for (workdir, path, content, expected) in table {
            assert_eq!(say(file(&root, workdir, path, content)), expected, "{workdir}/{path}");
        }
        assert!(say(file(&root, "work", "cycle", false)).starts_with("unreadable: "));
    }
}
