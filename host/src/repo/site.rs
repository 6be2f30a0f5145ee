//! Where a folder's repository lies, as far as files tell without git.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

use crate::digest::hex;

/// What is read of a file that holds a path, and of a configuration.
const TEXT_MAX: u64 = 1 << 20;

/// How deep configurations that include others are followed; git's own limit.
const INCLUDE_DEPTH: usize = 10;

/// How many configurations count at most.
const CONFIGS_MAX: usize = 64;

/// The stamp of a folder that lies in no repository.
const PLAIN: &str = "plain";

/// The repository nearest to a folder, found as git finds it: the first `.git` on
/// the way up, or the first folder that is laid out as a bare repository, and none
/// beyond the file system that the folder is on.
#[derive(Debug)]
pub(super) struct Site {
    /// The `.git`, or the bare repository.
    pub entry: PathBuf,
    /// Where the entry leads: itself, or the place that is written in it. `None`
    /// when nothing can be read in it.
    pub git_dir: Option<PathBuf>,
}

impl Site {
    /// Finds the site of a resolved folder.
    pub fn of(root: &Path) -> Option<Self> {
        let device = |folder: &Path| std::fs::metadata(folder).ok().map(|meta| meta.dev());
        let own = device(root);
        root.ancestors().take_while(|folder| device(folder) == own).find_map(|folder| {
            let entry = folder.join(".git");
            match std::fs::metadata(&entry) {
                Ok(meta) if meta.is_dir() => Some(Self { git_dir: Some(entry.clone()), entry }),
                Ok(_) => Some(Self { git_dir: linked(&entry), entry }),
                // A link that leads nowhere stands there, too.
                Err(_) if entry.is_symlink() => Some(Self { entry, git_dir: None }),
                Err(_) => is_bare(folder)
                    .then(|| Self { entry: folder.to_path_buf(), git_dir: Some(folder.to_path_buf()) }),
            }
        })
    }

    /// The folder that all work trees of the repository share, resolved; `None`
    /// when it is not there.
    pub fn common_dir(&self) -> Option<PathBuf> {
        let git_dir = self.git_dir.as_ref()?;
        let common = match line(&git_dir.join("commondir")) {
            Some(place) => git_dir.join(place),
            None => git_dir.clone(),
        };
        std::fs::canonicalize(common).ok()
    }

    /// Whether the entry is a file that names another place.
    pub fn is_pointer(&self) -> bool {
        self.git_dir.as_ref().is_some_and(|git_dir| *git_dir != self.entry)
    }
}

/// Returns a text that stays as it is while a folder's identity cannot have changed.
///
/// It costs a few looks at files and no process. It covers the place of the nearest
/// `.git` and which file or folder that is, the common git folder that it leads to,
/// and the state of that folder's `config` and of what it includes. So it changes
/// when the origin does, when another repository takes the place, when a plain
/// folder gets a repository at or above it, and when the repository that a linked
/// work tree belongs to goes away. It does not change when something is committed.
///
/// Take it before [`identify`](super::identify): a change in between then shows as
/// a stamp that no longer fits. It says nothing about git itself, so an identity with
/// a [`note`](super::Identity::note) is worth asking for again.
pub fn stamp(root: &Path) -> String {
    let Some(site) = std::fs::canonicalize(root).ok().as_deref().and_then(Site::of) else {
        return PLAIN.to_owned();
    };
    let mut digest = Sha256::new();
    let mut add = |path: &Path, state: String| {
        digest.update(path.as_os_str().as_bytes());
        // No path holds a NUL, so parts cannot run into each other.
        digest.update(format!("\0{state}\0"));
    };
    add(&site.entry, state(&site.entry));
    if let Some(common) = site.common_dir() {
        add(&common, state(&common));
        let mut configs = Vec::new();
        collect_configs(common.join("config"), 0, &mut configs);
        for config in configs {
            add(&config, state(&config));
        }
    }
    hex(&digest.finalize())
}

/// The top of the work tree that a folder lies in, resolved; `None` outside of one.
///
/// As [`stamp`], it asks no git.
pub fn work_tree_top(root: &Path) -> Option<String> {
    let site = Site::of(&std::fs::canonicalize(root).ok()?)?;
    let top = site.entry.parent().filter(|_| site.entry.ends_with(".git"))?;
    top.to_str().map(str::to_owned)
}

/// What tells a file from the one that stood there before, in text.
fn state(path: &Path) -> String {
    match std::fs::metadata(path) {
        // Its times and size change with each lock file that git makes in it.
        Ok(meta) if meta.is_dir() => format!("folder {} {}", meta.ino(), meta.uid()),
        // The time of change as well: copies and unpacked files keep the other one.
        Ok(meta) => format!(
            "file {} {} {} {}.{} {}.{}",
            meta.ino(),
            meta.uid(),
            meta.size(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec()
        ),
        Err(_) => "nothing".to_owned(),
    }
}

/// Adds a configuration and those that it names in sections called `include` or
/// `includeIf`, whether or not the condition holds.
///
/// This is not git's reading of the file: a name too many costs a look, and one with
/// escapes in it is missed.
fn collect_configs(config: PathBuf, depth: usize, into: &mut Vec<PathBuf>) {
    if depth > INCLUDE_DEPTH || into.len() >= CONFIGS_MAX || into.contains(&config) {
        return;
    }
    let text = read(&config).unwrap_or_default();
    into.push(config.clone());
    let mut including = false;
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let name = section.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            including = name.eq_ignore_ascii_case("include") || name.eq_ignore_ascii_case("includeif");
            line = line.rsplit_once(']').map_or("", |(_, rest)| rest.trim());
        }
        let Some((name, value)) = line.split_once('=').filter(|_| including) else { continue };
        if !name.trim().eq_ignore_ascii_case("path") {
            continue;
        }
        let value = value.trim().trim_matches('"');
        let path = match value.strip_prefix("~/") {
            Some(below) => std::env::var_os("HOME").map(|home| Path::new(&home).join(below)),
            None => config.parent().map(|folder| folder.join(value)),
        };
        if let Some(path) = path {
            collect_configs(path, depth + 1, into);
        }
    }
}

/// Where a `.git` file says that its repository is.
fn linked(entry: &Path) -> Option<PathBuf> {
    let text = line(entry)?;
    let bytes = text.as_os_str().as_bytes().strip_prefix(b"gitdir: ")?;
    Some(entry.parent()?.join(OsStr::from_bytes(bytes)))
}

/// Whether a folder has what each repository has.
fn is_bare(folder: &Path) -> bool {
    ["objects", "refs"].iter().all(|name| folder.join(name).is_dir())
        && folder.join("HEAD").symlink_metadata().is_ok()
}

/// A file's text without the line's end, as a path; `None` when there is none.
fn line(path: &Path) -> Option<PathBuf> {
    let mut bytes = read_bytes(path)?;
    while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        bytes.pop();
    }
    (!bytes.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(&bytes)))
}

fn read(path: &Path) -> Option<String> {
    read_bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn read_bytes(path: &Path) -> Option<Vec<u8>> {
    // Without waiting: a pipe may stand in a file's place.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    file.take(TEXT_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
