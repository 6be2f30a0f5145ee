//! What a report and a live view show, read in one transaction that changes nothing.

use crate::contract::tools::{Answer, LoopFilter, Query};
use crate::report::{HistoryBounds, LoopRecords, Overview, OverviewRow};
use crate::store::Version;

use super::failure::Failure;
use super::people::Refusal;
use super::{Service, VERSION};

impl Service {
    /// The id of the loop that a project root has under a slug, if there is one.
    ///
    /// # Errors
    /// A failing database.
    pub fn loop_at(&self, root: &str, slug: &str) -> Result<Option<String>, Refusal> {
        let asked = Query::SlugHolder((root.to_owned(), slug.to_owned()));
        self.read(|tx| match tx.answer("", root, &asked)? {
            Some(Answer::SlugHolder(id)) => Ok(id),
            _ => Ok(None),
        })
    }

    /// The time, as calls see it.
    ///
    /// # Errors
    /// The clock cannot be read.
    pub fn now(&self) -> Result<i64, Refusal> {
        Ok(self.seams.now().map_err(Failure::from)?)
    }

    /// A loop with as much of its history as the bounds allow; `None` when it is gone.
    ///
    /// # Errors
    /// A failing database or logic.
    pub fn loop_records(&self, id: &str, bounds: &HistoryBounds) -> Result<Option<LoopRecords>, Refusal> {
        let orders = self.status_orders()?;
        let at = self.seams.now().map_err(Failure::from)?;
        self.read(|tx| {
            let Some(state) = tx.loop_state_by_id(id)? else { return Ok(None) };
            let projects = tx.projects()?;
            let project = projects.into_iter().find(|known| known.project.id == state.loop_.project_id);
            Ok(Some(LoopRecords {
                at,
                version: VERSION.to_owned(),
                project: project.map(|known| known.project.name).unwrap_or_default(),
                orders: orders.clone(),
                steps: tx.newest_steps(id, bounds.steps)?,
                events: tx.newest_events(id, bounds.events)?,
                lessons: tx.newest_memories(id, bounds.lessons)?,
                ledger: tx.newest_ledger(id, bounds.ledger)?,
                state,
            }))
        })
    }

    /// The loops of this project, at most `limit` of them.
    ///
    /// # Errors
    /// No project, or a failing database or logic.
    pub fn overview(&self, limit: u32) -> Result<Overview, Refusal> {
        let orders = self.status_orders()?;
        let at = self.seams.now().map_err(Failure::from)?;
        self.in_project(|tx, resolved, root| {
            let project = resolved.project;
            let list = |include_finished: bool| {
                tx.loop_page(&project.id, &LoopFilter { include_finished, limit, offset: 0 })
            };
            let (open, all) = (list(false)?, list(true)?);
            let place = |of: &crate::contract::model::LoopSummary| (of.slug.clone(), of.project_root.clone());
            let at_work: std::collections::HashSet<_> = open.loops.iter().map(place).collect();
            let rows = all.loops.into_iter().map(|summary| {
                let finished = !at_work.contains(&place(&summary));
                OverviewRow { summary, finished }
            });
            Ok(Overview {
                at,
                version: VERSION.to_owned(),
                project: project.name,
                root: root.path.clone(),
                orders: orders.clone(),
                loops: rows.collect(),
                all: all.total.into(),
            })
        })
    }

    /// Which state of the database there is to read; another one means that someone
    /// changed something.
    ///
    /// # Errors
    /// A failing database.
    pub fn database_version(&self) -> Result<Version, Refusal> {
        self.on_store(|store| Ok(store.version()?))
    }

    /// The words that the tools of the logic take as a `status`, in the order in which
    /// their schemas list them: the one place where the host learns an order of statuses.
    fn status_orders(&self) -> Result<Vec<Vec<String>>, Refusal> {
        let tools = self.catalogue().map_err(Failure::from)?;
        let schemas = tools.iter().filter_map(|tool| serde_json::from_str(&tool.input_schema).ok());
        let words = |schema: serde_json::Value| -> Option<Vec<String>> {
            let list = schema["properties"]["status"]["enum"].as_array()?;
            list.iter().map(|word| word.as_str().map(str::to_owned)).collect()
        };
        Ok(schemas.filter_map(words).collect())
    }
}
