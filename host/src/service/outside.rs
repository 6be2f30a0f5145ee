//! Facts from outside the database: looked up while no transaction is open, and
//! kept for the rest of the call.

use std::path::{Component, Path, PathBuf};

use crate::cancel::Cancel;
use crate::contract::model::LoopId;
use crate::contract::tools::{Answer, Captured, CapturedFile, EvidenceFile, Fact, Project, Query};
use crate::digest::digest;
use crate::evidence;
use crate::logic::Session;
use crate::mirror::{self, FileRead};
use crate::progress::Unit;
use crate::store::{Held, HeldFile, pack};

use super::failure::Failure;
use super::project::{Resolution, Site};
use super::{Ids, Service};

/// The folder of a loop, as the database knows it.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub root: String,
    pub slug: String,
}

/// Something to look up.
pub(super) struct Errand {
    pub query: Query,
    /// The folder, where the query is about one.
    pub folder: Option<Folder>,
}

/// What errands are done with.
pub(super) struct Gathering<'a> {
    pub service: &'a Service,
    pub cancel: &'a Cancel,
    pub ids: &'a Ids<'a>,
}

/// What was gathered so far in one call.
#[derive(Default)]
pub(super) struct Outside {
    facts: Vec<Fact>,
    /// The files that an archive of this call can be made of.
    pub held: Held,
    /// Folders that may get a project of their own with this call.
    sites: Vec<Site>,
}

impl Outside {
    /// The answer to a query, if it was gathered.
    pub fn answer(&self, query: &Query) -> Option<Answer> {
        self.facts.iter().find(|fact| fact.query == *query).map(|fact| fact.answer.clone())
    }

    /// The site of a root that the call asked about.
    pub fn site(&self, root: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.root == root)
    }

    /// Which loop's folder a query is about; `None` for one that is about none.
    pub fn loop_of(query: &Query) -> Option<&LoopId> {
        match query {
            Query::LoopFiles(id)
            | Query::FileText((id, _))
            | Query::LoopTree((id, _))
            | Query::Capture((id, _)) => Some(id),
            _ => None,
        }
    }

    /// Does one errand. `own` is the project of the call and `root` its root.
    ///
    /// The database is held only while it is asked: what takes long, a program above
    /// all, keeps no other call from it.
    pub fn gather(
        &mut self,
        errand: Errand,
        own: &str,
        root: &str,
        with: &Gathering<'_>,
    ) -> Result<(), Failure> {
        let Errand { query, folder } = errand;
        let place = folder.as_ref().map(|f| (Path::new(&f.root), f.slug.as_str()));
        let answer = match (&query, place) {
            (Query::LoopFiles(_), Some((root, slug))) => Answer::LoopFiles(mirror::files(root, slug)?),
            (Query::FileText((_, path)), Some((root, slug))) => {
                Answer::FileText(mirror::text(root, slug, path)?)
            }
            (Query::LoopTree((_, leave_out)), Some((root, slug))) => {
                Answer::LoopTree(mirror::tree(root, slug, leave_out)?)
            }
            (Query::Capture((id, paths)), Some((root, slug))) => {
                let mut session = with.service.logic.session(with.cancel)?;
                let mut files = Vec::with_capacity(paths.len());
                let progress = &with.service.progress;
                progress.begin_of("reading files", paths.len() as u64, Unit::Of("files"));
                for path in paths {
                    files.push(self.capture(id, root, slug, path, &mut session)?);
                    progress.add(1);
                }
                Answer::Capture(files)
            }
            (Query::RootsExist(roots), _) => {
                let elsewhere =
                    with.service.with_store(|store| Ok(store.read()?.roots_of_others(own, roots)?))?;
                let there = roots.iter().zip(elsewhere);
                Answer::RootsExist(there.map(|(root, other)| !other && Path::new(root).is_dir()).collect())
            }
            (Query::ProjectAt(folder), _) => Answer::ProjectAt(self.project_at(folder, with)?),
            (Query::Evidence(file), _) => {
                let EvidenceFile { workdir, path, content } = file;
                Answer::Evidence(evidence::file(Path::new(root), workdir, path, *content))
            }
            (Query::RunScript(script), _) => {
                with.cancel.takes_long();
                Answer::RunScript(with.service.scripts.run(Path::new(root), script, with.cancel))
            }
            _ => return Err(Failure::Unanswered { query: format!("{query:?}") }),
        };
        self.facts.push(Fact { query, answer });
        Ok(())
    }

    /// Reads a file and holds it, packed.
    fn capture(
        &mut self,
        id: &LoopId,
        root: &Path,
        slug: &str,
        path: &str,
        session: &mut Session<'_>,
    ) -> Result<CapturedFile, Failure> {
        let path = path.to_owned();
        let FileRead { bytes: content, modified_at } =
            match mirror::read_file(root, slug, &path, mirror::TEXT_MAX) {
                Ok(read) => read,
                Err(why) => return Ok(CapturedFile { path, content: Err(why.to_string()) }),
            };
        let body_sha256 = match std::str::from_utf8(&content) {
            Ok(text) => Some(digest(session.strip(text)?.body.as_bytes())),
            Err(_) => None,
        };
        let packed = pack(&content);
        let captured = Captured { bytes: packed.bytes, sha256: packed.sha256.clone(), body_sha256 };
        self.held.insert((id.clone(), path.clone()), HeldFile { packed, modified_at: Some(modified_at) });
        Ok(CapturedFile { path, content: Ok(captured) })
    }

    /// The project of any folder, also of one that does not exist yet.
    fn project_at(&mut self, folder: &str, with: &Gathering<'_>) -> Result<Result<Project, String>, Failure> {
        let root = match resolve(Path::new(folder)) {
            Ok(root) => root,
            Err(why) => return Ok(Err(why)),
        };
        let name = root.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/").to_owned();
        let site = Site::look(&root, &name);
        site.ask_git();
        let resolved =
            with.service.with_store(|store| Ok(site.resolve(&store.read()?, || with.ids.fresh())?))?;
        let Resolution::Known(resolved) = resolved else {
            return Err(Failure::Unanswered { query: format!("project-at {folder}") });
        };
        let facts = site.facts(&resolved);
        self.sites.push(site);
        Ok(Ok(facts))
    }
}

/// The absolute path of a folder, links resolved, as it will be once it is made.
fn resolve(folder: &Path) -> Result<String, String> {
    let climbs = folder.components().any(|part| matches!(part, Component::ParentDir));
    if climbs {
        return Err("`..` is part of it".to_owned());
    }
    let mut missing = Vec::new();
    let mut there = folder;
    let resolved = loop {
        match std::fs::canonicalize(there) {
            Ok(resolved) if resolved.is_dir() => break resolved,
            Ok(_) => return Err(format!("{} is not a folder", there.display())),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && !there.is_symlink() => {
                let (Some(parent), Some(name)) = (there.parent(), there.file_name()) else {
                    return Err(format!("{}: {cause}", there.display()));
                };
                missing.push(name);
                there = parent;
            }
            Err(cause) => return Err(format!("{}: {cause}", there.display())),
        }
    };
    let path: PathBuf = std::iter::once(resolved.as_os_str()).chain(missing.into_iter().rev()).collect();
    path.into_os_string().into_string().map_err(|path| format!("{} is not UTF-8", path.display()))
}
