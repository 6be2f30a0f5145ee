//! Which project a root belongs to, from what is recorded and what git says.
//!
//! The order: a known root, the remote's address, the repository's own folder, the
//! root alone. A known root asks no git, as long as its stamp is the recorded one.

use std::path::Path;
use std::sync::OnceLock;

use crate::contract::tools::{Project, ProjectEvidence};
use crate::repo::{self, Identity};
use crate::store::{KnownRoot, ProjectRow, StoreError, Tx};

/// A root with what the file system and git tell of it.
#[derive(Debug)]
pub(super) struct Site {
    /// Absolute, with symbolic links resolved.
    pub root: String,
    /// The name of a project that begins here.
    name: String,
    stamp: String,
    /// The top of the work tree, when the root lies below it.
    below: Option<String>,
    /// What git says; asked when a stamp does not settle it.
    identity: OnceLock<Identity>,
}

/// A root's project as far as it is recorded or would be.
#[derive(Debug)]
pub(super) struct Resolved {
    pub project: ProjectRow,
    pub evidence: ProjectEvidence,
    /// The root is registered for another project, or for none.
    new_root: bool,
    /// Something is to be recorded with the next change.
    unrecorded: bool,
    /// The project that the root belonged to before.
    before: Option<String>,
}

/// A project, or that git has to be asked first.
pub(super) enum Resolution {
    Known(Resolved),
    AskGit,
}

impl Site {
    /// Looks at a root, without git.
    pub fn look(root: &str, name: &str) -> Site {
        let path = Path::new(root);
        let below = repo::work_tree_top(path).filter(|top| top != root);
        Site {
            root: root.to_owned(),
            name: name.to_owned(),
            stamp: repo::stamp(path),
            below,
            identity: OnceLock::new(),
        }
    }

    /// Asks git which repository the root lies in.
    pub fn ask_git(&self) {
        self.identity.get_or_init(|| repo::identify(Path::new(&self.root)));
    }

    /// What git said, once it was asked.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.get()
    }

    /// The top of the work tree, when the root lies below it.
    pub fn below(&self) -> Option<&str> {
        self.below.as_deref()
    }

    /// Whether the stamp may be recorded: git was able to say what it stands for.
    fn settled(&self) -> bool {
        self.identity.get().is_none_or(|identity| identity.note.is_none())
    }

    /// Finds the root's project; `fresh_id` is for one that does not exist yet.
    pub fn resolve(&self, tx: &Tx<'_>, fresh_id: impl FnOnce() -> String) -> Result<Resolution, StoreError> {
        let known = tx.project_of_root(&self.root)?;
        if let Some(KnownRoot { project, stamp }) = &known
            && stamp.as_deref() == Some(&self.stamp)
        {
            return Ok(Resolution::Known(Resolved {
                project: project.clone(),
                evidence: ProjectEvidence::KnownRoot,
                new_root: false,
                unrecorded: false,
                before: None,
            }));
        }
        let Some(identity) = self.identity.get() else { return Ok(Resolution::AskGit) };
        let before = known.as_ref().map(|known| known.project.name.clone());
        if let Some(KnownRoot { project, .. }) = known
            && still_same(&project, identity)
        {
            return Ok(Resolution::Known(Resolved {
                project: back_fill(project, identity),
                evidence: ProjectEvidence::KnownRoot,
                new_root: false,
                unrecorded: self.settled(),
                before: None,
            }));
        }
        let by_remote =
            identity.remote_key.as_deref().map(|key| tx.project_of_remote_key(key)).transpose()?;
        let by_repo = || {
            let key = identity.repo_key.as_deref();
            let found = key.map(|key| tx.project_of_repo_key(key)).transpose();
            // A folder that was used again is another repository, although its place is the same.
            Ok::<_, StoreError>(found?.flatten().filter(|project| still_same(project, identity)))
        };
        let (project, evidence) = match by_remote.flatten() {
            Some(project) => (project, ProjectEvidence::Remote),
            None => match by_repo()? {
                Some(project) => (project, ProjectEvidence::Repository),
                None => {
                    let name = self.name.clone();
                    let project = ProjectRow { id: fresh_id(), name, remote_key: None, repo_key: None };
                    let evidence = match (&identity.remote_key, &identity.repo_key) {
                        (Some(_), _) => ProjectEvidence::Remote,
                        (None, Some(_)) => ProjectEvidence::Repository,
                        (None, None) => ProjectEvidence::Folder,
                    };
                    (project, evidence)
                }
            },
        };
        let project = back_fill(project, identity);
        Ok(Resolution::Known(Resolved { project, evidence, new_root: true, unrecorded: true, before }))
    }

    /// Records the root, and what git told, with the change that is being stored.
    pub fn record(&self, resolved: &Resolved, tx: &Tx<'_>, at: i64) -> Result<(), StoreError> {
        if !resolved.unrecorded {
            return Ok(());
        }
        let stamp = self.settled().then_some(self.stamp.as_str());
        if resolved.new_root {
            tx.re_root(&resolved.project, &self.root, stamp, at)?;
            return Ok(());
        }
        tx.register_root(&resolved.project, &self.root, stamp, at)
    }

    /// The project as a decision sees it.
    pub fn facts(&self, resolved: &Resolved) -> Project {
        let project = &resolved.project;
        let git = self.identity.get().and_then(|identity| identity.note.clone());
        let moved = resolved.before.as_ref().map(|name| {
            format!(
                "this folder was a root of the project {name}, and is another repository now; \
                 `loop-state-mcp projects duplicates` shows both"
            )
        });
        Project {
            id: project.id.clone(),
            name: project.name.clone(),
            root: self.root.clone(),
            key: project.remote_key.clone().or_else(|| project.repo_key.clone()),
            evidence: resolved.evidence,
            note: moved.or(git),
            below: self.below.clone(),
        }
    }
}

/// Whether the repository that a root lies in now can be the project's.
///
/// Only what both know is compared: a folder outside any repository, or one that git
/// cannot tell about, stays with the project that it was recorded for.
fn still_same(project: &ProjectRow, now: &Identity) -> bool {
    let agree = |recorded: &Option<String>, found: &Option<String>| match (recorded, found) {
        (Some(recorded), Some(found)) => Some(recorded == found),
        _ => None,
    };
    agree(&project.remote_key, &now.remote_key).or(agree(&project.repo_key, &now.repo_key)).unwrap_or(true)
}

/// Adds what git knows and the record does not.
fn back_fill(project: ProjectRow, identity: &Identity) -> ProjectRow {
    ProjectRow {
        remote_key: project.remote_key.or_else(|| identity.remote_key.clone()),
        repo_key: project.repo_key.or_else(|| identity.repo_key.clone()),
        ..project
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_another_repository() {
        let project = |remote: &str, repo: &str| ProjectRow {
            id: String::new(),
            name: String::new(),
            remote_key: some(remote),
            repo_key: some(repo),
        };
        let now = |remote: &str, repo: &str| Identity {
            remote_key: some(remote),
            repo_key: some(repo),
            ..Identity::default()
        };
        fn some(key: &str) -> Option<String> {
            (!key.is_empty()).then(|| key.to_owned())
        }
        // Recorded remote and folder, those found now, and whether it is the same.
        let table = [
            (("h/a", "/a"), ("h/a", "/a"), true),
            (("h/a", "/a"), ("h/a", "/b"), true),
            (("h/a", "/a"), ("h/b", "/a"), false),
            (("h/a", "/a"), ("", "/a"), true),
            (("h/a", "/a"), ("", "/b"), false),
            (("h/a", ""), ("", "/b"), true),
            (("", "/a"), ("h/a", "/a"), true),
            (("", "/a"), ("h/a", "/b"), false),
            (("", "/a"), ("", "/b"), false),
            (("", ""), ("h/a", "/a"), true),
            (("h/a", "/a"), ("", ""), true),
            (("", ""), ("", ""), true),
        ];
        for ((remote, repo), (remote_now, repo_now), same) in table {
            let found = still_same(&project(remote, repo), &now(remote_now, repo_now));
            assert_eq!(found, same, "{remote} {repo} -> {remote_now} {repo_now}");
        }
    }
}
