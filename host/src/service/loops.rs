//! Loops as any logic's, without a word of their rules: what the command line shows
//! where the logic has no tool of its own for it, and whose loops there are.

use crate::contract::{model, tools};
use crate::logic::LogicError;
use crate::repo::ProjectRoot;
use crate::store::{OtherLogic, Tx, Writer};

use super::Service;
use super::failure::Failure;
use super::people::{LoopsOfProject, Refusal};
use super::project::{Resolution, Resolved, Site};

/// Says whose loops a database has beside those of the logic that runs.
pub(super) fn of_others(others: &[OtherLogic], runs: &Writer) -> Option<String> {
    if others.is_empty() {
        return None;
    }
    let counted = others.iter().map(|other| {
        let loops = if other.loops == 1 { "loop" } else { "loops" };
        format!("{} {loops} of the logic {}", other.loops, other.name)
    });
    let counted = counted.collect::<Vec<_>>().join(" and ");
    Some(format!("it has {counted}, which {runs} can read and not change"))
}

impl Service {
    /// Who the logic is, in a few words.
    pub fn logic_name(&self) -> String {
        self.writer().map_or_else(|_| "this logic".to_owned(), |logic| format!("the logic {logic}"))
    }

    /// Whether the logic has a tool of this name.
    ///
    /// # Errors
    /// A logic that does not tell its tools.
    pub fn offers(&self, tool: &str) -> Result<bool, LogicError> {
        Ok(self.reads_only(tool)?.is_some())
    }

    /// The logic's tools, in the order they are published.
    ///
    /// # Errors
    /// A logic that does not tell them.
    pub fn published_tools(&self) -> Result<Vec<tools::Tool>, LogicError> {
        self.catalogue()
    }

    /// The loops of this project, whatever logic wrote them.
    ///
    /// # Errors
    /// A failing database, or no project.
    pub fn loops_here(&self, include_finished: bool) -> Result<LoopsOfProject, Refusal> {
        let filter = tools::LoopFilter { include_finished, limit: u32::MAX, offset: 0 };
        self.in_project(|tx, resolved, _| {
            let loops = tx.loop_page(&resolved.project.id, &filter)?.loops;
            Ok(LoopsOfProject { project: resolved.project, loops })
        })
    }

    /// The loop of this slug in this root, whatever logic wrote it.
    ///
    /// # Errors
    /// No such loop; else as for [`Service::loops_here`].
    pub fn loop_here(&self, slug: &str) -> Result<model::LoopState, Refusal> {
        self.in_project(|tx, resolved, root| {
            let found = tx.loop_state(&resolved.project.id, &root.path, slug)?;
            found.ok_or_else(|| Refusal::UnknownSlug { slug: slug.to_owned() })
        })
    }

    /// The slugs of other logics' loops in this root.
    ///
    /// # Errors
    /// See [`Service::loops_here`].
    pub fn slugs_of_others(&self) -> Result<Vec<String>, Refusal> {
        self.in_project(|tx, _, root| {
            let all = tx.loops_of_others()?.into_iter();
            Ok(all.filter(|found| found.project_root == root.path).map(|found| found.slug).collect())
        })
    }

    /// Reads for the project of the root, asking git where that is needed.
    pub(super) fn in_project<T>(
        &self,
        work: impl Fn(&Tx<'_>, Resolved, &ProjectRoot) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let root = self.root.as_ref().map_err(|e| Failure::NoProject(e.to_string()))?;
        let site = self.site.get_or_init(|| Site::look(&root.path, root.default_name()));
        loop {
            let done = self.on_store(|store| {
                let tx = store.read()?;
                match site.resolve(&tx, String::new)? {
                    Resolution::Known(resolved) => work(&tx, resolved, root).map(Some),
                    Resolution::AskGit => Ok(None),
                }
            })?;
            match done {
                Some(done) => return Ok(done),
                None => site.ask_git(),
            }
        }
    }
}
